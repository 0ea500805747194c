//! Hides secret values in whatever is about to be printed, also where they stand encoded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use replicator_protocol::secret::SecretBytes;
use zeroize::Zeroizing;

/// Shortest value, in characters, that is masked: a shorter one would hide ordinary words.
const SHORTEST: usize = 8;
/// What stands in place of a value.
const MASK: &str = "[masked]";

/// Holds the values to hide. It has no `Debug`.
#[derive(Default)]
pub struct Masker {
    /// Longest first, so that a value that holds another is hidden whole.
    forms: Vec<Zeroizing<String>>,
}

impl Masker {
    /// A masker that hides nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hides `value` from now on; one of several lines is hidden line by line.
    pub fn hide(&mut self, value: &SecretBytes) {
        let bytes = value.expose();
        let mut forms = encoded(bytes);
        if let Ok(text) = std::str::from_utf8(bytes) {
            for line in text.lines().map(str::trim_end) {
                forms.push(Zeroizing::new(line.to_owned()));
                forms.extend(encoded(line.as_bytes()));
                forms.push(Zeroizing::new(url_encoded(line)));
                forms.push(Zeroizing::new(json_escaped(line)));
            }
        }
        self.forms.extend(forms.into_iter().filter(|form| form.chars().count() >= SHORTEST));
        self.forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.forms.dedup();
    }

    /// `text` with every value hidden.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |masked, form| {
            if masked.contains(form.as_str()) { masked.replace(form.as_str(), MASK) } else { masked }
        })
    }
}

fn encoded(bytes: &[u8]) -> Vec<Zeroizing<String>> {
    if bytes.len() < SHORTEST {
        return Vec::new();
    }
    let base64 = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|engine| engine.encode(bytes));
    base64.into_iter().chain([hex::encode(bytes)]).map(Zeroizing::new).collect()
}

fn url_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().fold(String::new(), |mut out, byte| {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masker(values: &[&str]) -> Masker {
        let mut masker = Masker::new();
        for value in values {
            masker.hide(&SecretBytes::new(value.as_bytes().to_vec()));
        }
        masker
    }

    #[test]
    fn value_is_hidden_plain_and_encoded() {
        let secret = "p@ss \"word\" 1";
        let masker = masker(&[secret]);
        let shown = [
            secret.to_owned(),
            STANDARD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
            hex::encode(secret),
            "p%40ss%20%22word%22%201".to_owned(),
            "p@ss \\\"word\\\" 1".to_owned(),
        ];
        for form in shown {
            assert_eq!(masker.mask(&format!("a {form} b")), "a [masked] b", "{form}");
        }
    }

    #[test]
    fn secret_of_several_lines_is_hidden_line_by_line() {
        let masker = masker(&["-----BEGIN KEY-----\nabcdefghijkl\r\nxy\n"]);
        assert_eq!(masker.mask("read abcdefghijkl and xy"), "read [masked] and xy");
    }

    #[test]
    fn short_value_would_hide_ordinary_words_and_is_left() {
        assert_eq!(masker(&["token"]).mask("the token"), "the token");
    }

    #[test]
    fn value_that_holds_another_is_hidden_whole() {
        assert_eq!(masker(&["abcdefgh", "abcdefgh-and-more"]).mask("x abcdefgh-and-more"), "x [masked]");
    }
}
