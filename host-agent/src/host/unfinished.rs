//! How a file is called until it is in its place, so that what a write that was cut off left is known again.

use std::ffi::OsStr;

/// A name with letters and digits between two ends that nobody else uses.
pub struct Unfinished {
    /// What it begins with.
    pub begins: &'static str,
    /// How many random letters and digits follow.
    pub random: usize,
    /// What it ends with.
    pub ends: &'static str,
}

impl Unfinished {
    /// Makes files of that name.
    #[must_use]
    pub fn builder(&self) -> tempfile::Builder<'static, 'static> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(self.begins).suffix(self.ends).rand_bytes(self.random);
        builder
    }

    /// Whether something may be called so by nobody else. Only a regular file is one of them.
    #[must_use]
    pub fn is(&self, name: &OsStr) -> bool {
        let random = name.to_str().and_then(|name| name.strip_prefix(self.begins)?.strip_suffix(self.ends));
        random.is_some_and(|random| {
            random.len() == self.random && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_known_again_and_no_other() {
        let unfinished = Unfinished { begins: ".new-", random: 6, ends: ".part" };
        let folder = tempfile::tempdir().unwrap();
        let made = unfinished.builder().tempfile_in(folder.path()).unwrap();
        assert!(unfinished.is(made.path().file_name().unwrap()));
        for other in ["new-aB3xYz.part", ".new-aB3xYz", ".new-aB3xY.part", ".new-aB3xYzz.part", ".new-a/3xYz.part", ""]
        {
            assert!(!unfinished.is(OsStr::new(other)), "{other}");
        }
    }
}
