//! `file`: content, owner and mode of one file.

use std::collections::BTreeSet;

use super::{Fault, text};
use crate::wire::declaration::{File, file::Body};

/// Mode of a file that holds a secret.
pub const SECRET_MODE: u32 = 0o600;
/// Mode of any other file.
pub const PLAIN_MODE: u32 = 0o644;

const OPEN: &str = "${secret:";

/// The mode to give it: its own, else 0600 where it holds a secret, else 0644.
#[must_use]
pub fn mode(file: &File) -> u32 {
    let secret = matches!(file.body, Some(Body::Sealed(_))) || !file.secrets.is_empty();
    file.mode.unwrap_or(if secret { SECRET_MODE } else { PLAIN_MODE })
}

/// The names in `${secret:name}` placeholders of `content`, each once.
#[must_use]
pub fn placeholders(content: &str) -> BTreeSet<&str> {
    content.split(OPEN).skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

/// Puts values in the place of placeholders. Textual: no format is known here, and a value is not escaped for
/// whatever surrounds it. A value that itself looks like a placeholder stays as it is.
#[must_use]
pub fn fill<'v>(content: &str, value: impl Fn(&str) -> Option<&'v [u8]>) -> Vec<u8> {
    let mut parts = content.split(OPEN);
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.split_once('}').and_then(|(name, rest)| Some((value(name)?, rest))) {
            Some((value, rest)) => {
                out.extend_from_slice(value);
                out.extend_from_slice(rest.as_bytes());
            }
            None => {
                out.extend_from_slice(OPEN.as_bytes());
                out.extend_from_slice(part.as_bytes());
            }
        }
    }
    out
}

pub(super) fn faults(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    text::path("path", &file.path, &mut faults);
    text::owner("owner", &file.owner, &mut faults);
    text::owner("group", &file.group, &mut faults);
    text::mode("mode", file.mode, &mut faults);
    let wanted = match &file.body {
        Some(Body::Content(content)) => placeholders(content),
        Some(Body::Bytes(_)) => BTreeSet::new(),
        Some(Body::Sealed(sealed)) => {
            text::sealed("sealed", sealed, &mut faults);
            BTreeSet::new()
        }
        None => {
            faults.push(Fault::new("content", "is missing: exactly one of `content`, `bytes`, `sealed`"));
            BTreeSet::new()
        }
    };
    for name in wanted.iter().filter(|name| !file.secrets.contains_key(**name)) {
        faults.push(Fault::new("content", format!("has the placeholder `{name}` and no secret to fill it")));
    }
    for (name, sealed) in &file.secrets {
        if !wanted.contains(name.as_str()) {
            faults.push(Fault::new(format!("secrets.{name}"), "is used by no placeholder of `content`"));
        }
        text::sealed(&format!("secrets.{name}"), sealed, &mut faults);
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::declaration::Sealed;

    fn sealed() -> Sealed {
        let bytes = vec![1; 32];
        Sealed {
            secret: "token".into(),
            generation: 1,
            key_id: bytes.clone().into(),
            encapsulated_key: bytes.clone().into(),
            ciphertext: bytes.into(),
        }
    }

    fn file(content: &str) -> File {
        File { path: "/etc/app.json".into(), body: Some(Body::Content(content.into())), ..File::default() }
    }

    #[test]
    fn placeholder_without_secret_and_secret_without_placeholder_are_refused() {
        let mut both = file("{\"t\": \"${secret:t}\"}");
        both.secrets.insert("t".into(), sealed());
        assert_eq!(faults(&both), [], "the control has no fault");
        assert_eq!(faults(&file("${secret:t}")).len(), 1);
        let mut unused = file("plain");
        unused.secrets.insert("t".into(), sealed());
        assert_eq!(faults(&unused).len(), 1);
    }

    #[test]
    fn values_are_put_in_once_and_never_looked_into() {
        let values = |name: &str| match name {
            "a" => Some(&b"${secret:b}"[..]),
            "b" => Some(&b"B"[..]),
            _ => None,
        };
        assert_eq!(fill("<${secret:a}|${secret:b}|${secret:c}|${x}>", values), b"<${secret:b}|B|${secret:c}|${x}>");
    }

    #[test]
    fn mode_follows_whether_a_secret_is_held() {
        assert_eq!(mode(&file("x")), 0o644);
        assert_eq!(mode(&File { body: Some(Body::Sealed(sealed())), ..file("") }), 0o600);
        assert_eq!(mode(&File { body: Some(Body::Sealed(sealed())), mode: Some(0o640), ..file("") }), 0o640);
    }

    #[test]
    fn crooked_paths_and_owners_are_refused() {
        for path in ["", "/", "etc/x", "/etc/../x", "/etc//x", "/etc/x/", "/etc/./x", "/a\0b"] {
            assert!(!faults(&File { path: path.into(), ..file("x") }).is_empty(), "{path:?}");
        }
        for owner in ["Root", "a b", "-x", "4294967295", "1e3", "+1"] {
            assert!(!faults(&File { owner: owner.into(), ..file("x") }).is_empty(), "{owner:?}");
        }
        assert_eq!(faults(&File { owner: "0".into(), group: "www-data".into(), ..file("x") }), []);
    }
}
