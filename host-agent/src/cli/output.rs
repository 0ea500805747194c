//! Writing to the two streams.

use std::io::{self, ErrorKind, Write as _};

use serde::Serialize;

use super::failure::Failure;

/// Prints `text` and a line end to stdout.
///
/// # Errors
///
/// The [`Failure`] to show where stdout takes no more; a reader that went away is none.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::message("cannot write to stdout").caused_by(&error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints `value` as JSON: over several lines, or on one.
///
/// # Errors
///
/// As [`data`].
pub(super) fn json(value: &impl Serialize, pretty: bool) -> Result<(), Failure> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    data(&text.map_err(|error| Failure::message("cannot print as JSON").caused_by(&error))?)
}

/// Prints `text` and a line end to stderr.
pub(super) fn talk(text: &str) {
    // Nobody is left to tell where stderr takes no more.
    let _untold = writeln!(io::stderr().lock(), "{text}");
}

/// Sets `rows` under `head` in columns as wide as their widest cell.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|cell| cell.chars().count())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let lines = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    std::iter::once(line(head.to_vec())).chain(lines).collect::<Vec<_>>().join("\n")
}

/// A moment, in milliseconds since the Unix epoch, as people write it.
pub(super) fn moment(milliseconds: u64) -> String {
    let since = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(since).map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    time.unwrap_or_else(|_| format!("{milliseconds} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["longer".to_owned(), "2".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows), "NAME    N\na       1\nlonger  2");
    }

    #[test]
    fn moment_is_in_utc() {
        assert_eq!(moment(1_780_272_000_123), "2026-06-01 00:00:00 UTC");
    }
}
