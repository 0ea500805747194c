//! What looks like a secret: known forms of tokens and keys, and text too random to be a name.
//!
//! Only says that, and where; nothing here repeats what it found.

/// Fewest characters after the beginning of a known form: a word such as `npm_config` is no token.
const TAIL_MIN: usize = 16;

/// How well-known credentials begin, and what they are.
const KNOWN: &[(&str, &str)] = &[
    ("-----BEGIN", "a private key or certificate block"),
    ("github_pat_", "a GitHub token"),
    ("ghp_", "a GitHub token"),
    ("gho_", "a GitHub token"),
    ("ghu_", "a GitHub token"),
    ("ghs_", "a GitHub token"),
    ("ghr_", "a GitHub token"),
    ("glpat-", "a GitLab token"),
    ("xoxb-", "a Slack token"),
    ("xoxp-", "a Slack token"),
    ("xoxa-", "a Slack token"),
    ("xoxs-", "a Slack token"),
    ("sk-", "an API key"),
    ("sk_live_", "an API key"),
    ("sk_test_", "an API key"),
    ("rk_live_", "an API key"),
    ("AIza", "a Google API key"),
    ("AKIA", "an AWS access key"),
    ("ASIA", "an AWS access key"),
    ("tskey-", "a Tailscale key"),
    ("npm_", "an npm token"),
    ("pypi-", "a PyPI token"),
    ("dckr_pat_", "a Docker token"),
    ("dop_v1_", "a DigitalOcean token"),
    ("hvs.", "a Vault token"),
    ("shpat_", "a Shopify token"),
    ("SG.", "a SendGrid key"),
    ("AGE-SECRET-KEY-", "an age key"),
    ("eyJ", "a JSON web token"),
];

/// What `text` looks like, where it holds a well-known credential anywhere.
pub fn kind(text: &str) -> Option<&'static str> {
    find(text).map(|(_, kind)| kind)
}

/// Whether a key says that its value is a secret.
pub fn is_telling(key: &str) -> bool {
    let key = key.to_lowercase();
    key.ends_with("pin") || ["pass", "pwd", "secret", "token", "key", "cred"].iter().any(|word| key.contains(word))
}

/// The column, from 1, at which a well-known credential starts in `line`.
pub(super) fn column(line: &str) -> Option<usize> {
    find(line).map(|(at, _)| line[..at].chars().count() + 1)
}

fn find(text: &str) -> Option<(usize, &'static str)> {
    let known = KNOWN.iter().filter_map(|&(start, kind)| known_at(text, start).map(|at| (at, kind)));
    known.chain(seed_at(text)).chain(user_part_at(text)).min()
}

fn known_at(text: &str, start: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = text[from..].find(start) {
        let at = from + found;
        let tail = &text[at + start.len()..];
        if starts_word(text, at) && (start.starts_with('-') || is_tail(start, tail)) {
            return Some(at);
        }
        from = at + start.len();
    }
    None
}

fn starts_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

fn is_tail(start: &str, tail: &str) -> bool {
    let end = tail.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c))).unwrap_or(tail.len());
    let tail = &tail[..end];
    let capitals = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
    match start {
        "AKIA" | "ASIA" => tail.len() == 16 && tail.bytes().all(capitals),
        "eyJ" => tail.matches('.').count() == 2,
        // Names with dashes in them begin so as well; a key has digits and is long.
        "sk-" => tail.len() >= TAIL_MIN && tail.bytes().filter(u8::is_ascii_digit).count() >= 2,
        _ => tail.len() >= TAIL_MIN,
    }
}

/// A broker seed: `S`, what it is for, and 56 more of base32.
fn seed_at(text: &str) -> Option<(usize, &'static str)> {
    words(text)
        .find(|(_, word)| {
            let base32 = |b: u8| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b);
            word.len() == 58 && word.starts_with('S') && word.bytes().all(base32)
        })
        .map(|(at, _)| (at, "a NATS seed"))
}

/// `scheme://user:password@host`.
fn user_part_at(text: &str) -> Option<(usize, &'static str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let at = from + found + 3;
        let end = text[at..].find(|c: char| "/?# \t\"'".contains(c)).map_or(text.len(), |end| at + end);
        if text[at..end].split_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return Some((at, "a password in a URL"));
        }
        from = at;
    }
    None
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    text.split(|c: char| !c.is_ascii_alphanumeric()).map(move |word| {
        let at = from;
        from += word.len() + 1;
        (at, word)
    })
}

/// Whether `text` changes between digits and letters, or between cases, more often than a name does.
pub fn is_random(text: &str) -> bool {
    let shortest = 16;
    let bytes: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
    if bytes.len() < shortest || text.contains(char::is_whitespace) || text.contains(['/', ':']) {
        return false;
    }
    let pairs = || bytes.iter().zip(bytes.iter().skip(1));
    let digits = pairs().filter(|(one, other)| one.is_ascii_digit() != other.is_ascii_digit()).count();
    let cases = pairs().filter(|(one, other)| one.is_ascii_lowercase() && other.is_ascii_uppercase()).count();
    digits >= 4 || cases * 3 >= bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_credentials_are_recognised_wherever_they_stand() {
        let tail = "a1B2c3D4".repeat(5);
        for text in [
            format!("ghp_{tail}"),
            format!("before github_pat_{tail} after"),
            format!("tskey-auth-{tail}"),
            format!("sk-ant-{tail}"),
            "AKIAABCDEFGHIJKLMNOP".into(),
            format!("eyJ{tail}.{tail}.{tail}"),
            "-----BEGIN OPENSSH PRIVATE KEY-----".into(),
            format!("SU{}", "A2".repeat(28)),
            "postgres://user:word@db.example/x".into(),
        ] {
            assert!(kind(&text).is_some(), "{text}");
        }
    }

    #[test]
    fn ordinary_words_are_not_taken_for_credentials() {
        for text in [
            "npm_config",
            "sk-learn",
            "ssh-direct",
            "a-sk-b",
            "https://acme.example/a@b",
            "postgres://user@db.example/x",
            "eyJust",
            "AKIA",
            "task-with-a-rather-long-name",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_not_random_and_tokens_are() {
        for name in
            ["gatewayGithubClientSecret", "R2_ACCESS_KEY_ID", "hostSshPrivateKey", "s3", "GATEWAY_BROKER_SECRET"]
        {
            assert!(!is_random(name), "{name}");
        }
        for value in ["9f86d081884c7d659a2feaa0c55ad015", "a1B2c3D4e5F6g7H8", "kX2mP9qR7tY4wZ1vB8nL"] {
            assert!(is_random(value), "{value}");
        }
    }
}
