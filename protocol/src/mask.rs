//! Hides secret values in whatever is about to be printed or told, also where they stand encoded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use crate::secret::SecretBytes;

/// What stands in place of a value.
const MASK: &str = "[masked]";

/// Holds the values to hide. It has no `Debug`.
pub struct Masker {
    shortest: usize,
    /// Longest first, so that a value that holds another is hidden whole.
    forms: Vec<Zeroizing<String>>,
}

impl Masker {
    /// A masker that hides nothing yet, and never a value of less than `shortest` characters: that one stands in
    /// ordinary words.
    #[must_use]
    pub fn new(shortest: usize) -> Self {
        Self { shortest, forms: Vec::new() }
    }

    /// Hides `value` from now on; one of several lines is hidden line by line.
    pub fn hide(&mut self, value: &SecretBytes) {
        let bytes = value.expose();
        let mut forms = Vec::new();
        if bytes.len() >= self.shortest {
            forms.extend(encoded(bytes));
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            let parts = text.lines().chain([text]).map(str::trim);
            for part in parts.filter(|part| part.chars().count() >= self.shortest) {
                forms.push(Zeroizing::new(part.to_owned()));
                forms.extend(encoded(part.as_bytes()));
                forms.push(Zeroizing::new(url_encoded(part)));
                forms.push(Zeroizing::new(json_escaped(part)));
            }
        }
        self.forms.extend(forms);
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

fn encoded(bytes: &[u8]) -> impl Iterator<Item = Zeroizing<String>> {
    let base64 = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|engine| engine.encode(bytes));
    base64.into_iter().chain([hex::encode(bytes)]).map(Zeroizing::new)
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
        let mut masker = Masker::new(8);
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
        let key = masker(&["-----BEGIN KEY-----\nabcdefghijkl\r\nxy\n"]);
        assert_eq!(key.mask("read abcdefghijkl and xy"), "read [masked] and xy");
        assert_eq!(masker(&["ab\ncd\nefg\n"]).mask("read ab\ncd\nefg and ab"), "read [masked] and ab");
    }

    #[test]
    fn value_that_is_no_text_is_hidden_encoded() {
        let mut masker = Masker::new(8);
        masker.hide(&SecretBytes::new(vec![0xff; 8]));
        assert_eq!(masker.mask("ffffffffffffffff //////////8="), "[masked] [masked]");
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
