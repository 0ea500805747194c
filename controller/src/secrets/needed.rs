//! Which secrets are needed, and why: all missing ones are named at once, with the command that sets them.

use std::collections::{BTreeMap, BTreeSet};

use replicator_protocol::ids::SecretName;

/// One secret something needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// Its name.
    pub secret: SecretName,
    /// Who needs it and what for, in words.
    pub reason: String,
}

/// Needed secrets that were never set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub BTreeMap<SecretName, Vec<String>>);

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.0.len();
        write!(out, "{count} needed {} not set", if count == 1 { "secret is" } else { "secrets are" })?;
        let mut lead = ": ";
        for (name, reasons) in &self.0 {
            write!(out, "{lead}`{name}` ({})", reasons.join(", "))?;
            lead = "; ";
        }
        Ok(())
    }
}

impl std::error::Error for Missing {}

impl Missing {
    /// The commands that set them.
    pub fn hint(&self) -> String {
        let commands: Vec<_> = self.0.keys().map(|name| format!("`replicator secrets set {name}`")).collect();
        format!("store {} with {}", if self.0.len() == 1 { "it" } else { "them" }, commands.join(", "))
    }
}

/// Demands that every needed secret is among the ones held.
///
/// # Errors
///
/// [`Missing`], with all of them.
pub fn demand(needs: &[Need], held: &BTreeSet<SecretName>) -> Result<(), Missing> {
    let mut missing: BTreeMap<SecretName, Vec<String>> = BTreeMap::new();
    for need in needs.iter().filter(|need| !held.contains(&need.secret)) {
        missing.entry(need.secret.clone()).or_default().push(need.reason.clone());
    }
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_secrets_are_named_at_once_with_reason_and_command() {
        let need = |name: &str, reason: &str| Need { secret: SecretName::parse(name).unwrap(), reason: reason.into() };
        let needs = [need("one", "for a"), need("two", "for b"), need("two", "for c"), need("held", "for d")];
        let held = BTreeSet::from([SecretName::parse("held").unwrap()]);
        let missing = demand(&needs, &held).unwrap_err();
        assert_eq!(missing.to_string(), "2 needed secrets are not set: `one` (for a); `two` (for b, for c)");
        assert_eq!(missing.hint(), "store them with `replicator secrets set one`, `replicator secrets set two`");
        assert_eq!(demand(&needs[3..], &held), Ok(()));
    }
}
