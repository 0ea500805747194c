//! Reasons in words: one for programs, one for people.

use replicator_protocol::wire::event::{Reason, ReasonCode};

/// The stable word for a program.
pub(super) fn code(reason: &Reason) -> &'static str {
    match ReasonCode::try_from(reason.code) {
        Ok(ReasonCode::New) => "new",
        Ok(ReasonCode::FieldChanged) => "field-changed",
        Ok(ReasonCode::InputChanged) => "input-changed",
        Ok(ReasonCode::DependencyChanged) => "dependency-changed",
        Ok(ReasonCode::FollowedRecreated) => "followed-recreated",
        Ok(ReasonCode::Drift) => "drift",
        Ok(ReasonCode::NoLongerDeclared) => "no-longer-declared",
        Ok(ReasonCode::Unfinished) => "unfinished",
        Ok(ReasonCode::SecretChanged) => "secret-changed",
        Ok(ReasonCode::Adopted) => "adopted",
        Ok(ReasonCode::Unspecified) | Err(_) => "unknown",
    }
}

/// The reason for people.
pub(super) fn says(reason: &Reason) -> String {
    let subject = &reason.subject;
    match ReasonCode::try_from(reason.code) {
        Ok(ReasonCode::New) => "new".into(),
        Ok(ReasonCode::FieldChanged) => match subject.split_once('/') {
            Some(("environment", name)) => format!("the variable `{name}` changed"),
            Some(_) | None => format!("`{subject}` changed"),
        },
        Ok(ReasonCode::DependencyChanged) => format!("`{subject}` changed"),
        Ok(ReasonCode::InputChanged) => format!("the file `{subject}` changed"),
        Ok(ReasonCode::FollowedRecreated) => format!("it shares the network of `{subject}`, which is recreated"),
        Ok(ReasonCode::Drift) => format!("found altered: {subject}"),
        Ok(ReasonCode::NoLongerDeclared) => "no longer declared".into(),
        Ok(ReasonCode::Unfinished) => "an earlier attempt did not finish".into(),
        Ok(ReasonCode::SecretChanged) => format!("the secret `{subject}` was set anew"),
        Ok(ReasonCode::Adopted) => "adopted as it stood".into(),
        Ok(ReasonCode::Unspecified) | Err(_) => "for a reason unknown here".into(),
    }
}

/// All reasons of one step, for people.
pub(super) fn all(reasons: &[Reason]) -> String {
    reasons.iter().map(says).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use replicator_protocol::change::reason;

    use super::*;

    #[test]
    fn changed_variable_is_named_as_one() {
        let said = ["environment/GREETING", "image"].map(|subject| says(&reason(ReasonCode::FieldChanged, subject)));
        assert_eq!(said, ["the variable `GREETING` changed", "`image` changed"]);
    }
}
