//! Words that YAML does not take for the text they look like.

/// What YAML, 1.1 or 1.2, makes of a word without quotes, where that is not text.
pub(super) fn surprise(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false") {
        return Some("a boolean");
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !digits.contains(|c: char| c.is_ascii_digit()) {
        return matches!(lower.trim_start_matches(['+', '-']), ".inf" | ".nan").then_some("a number");
    }
    let radix = digits.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_'))
        || digits.strip_prefix("0b").is_some_and(|rest| rest.bytes().all(|b| b"01_".contains(&b)))
        || digits.strip_prefix("0o").is_some_and(|rest| rest.bytes().all(|b| (b'0'..=b'7').contains(&b)));
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sexagesimal = digits.contains(':')
        && digits.split(':').skip(1).all(|part| {
            let part = part.split('.').next().unwrap_or_default();
            (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()) && part < "60"
        })
        && digits.split(':').next().is_some_and(plain);
    let float = lower.replace('_', "").parse::<f64>().is_ok();
    let date =
        text.len() >= 8 && text.split('-').count() == 3 && text.split('-').all(|part| !part.is_empty() && plain(part));
    if date {
        return Some("a date");
    }
    (radix || sexagesimal || float || plain(digits)).then_some("a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_yaml_takes_for_something_else_are_known() {
        for text in [
            "no",
            "Yes",
            "on",
            "OFF",
            "y",
            "true",
            "012",
            "1:30",
            "1:30:59",
            "1.10",
            "1e3",
            "0x1F",
            "3000",
            "-1",
            "1_000",
            "2024-01-02",
            ".5",
            ".inf",
        ] {
            assert!(surprise(text).is_some(), "{text}");
        }
        for text in [
            "none",
            "v1",
            "1.2.3",
            "acme/web:1",
            "sha256:00",
            "12:ab",
            "1.x",
            "-",
            "local:a:1",
            "10.0.0.1",
            "1:75",
            "a-b-c",
        ] {
            assert_eq!(surprise(text), None, "{text}");
        }
    }
}
