use std::path::{Path, PathBuf};

use super::Effect;

/// What does something that outlives the process.
const EFFECTS: &[&str] = &[
    "fs::write(",
    "fs::rename(",
    "fs::remove_",
    "fs::create_dir",
    "fs::set_permissions(",
    "fs::hard_link(",
    "fs::copy(",
    "File::create",
    "OpenOptions::new(",
    "File::options(",
    "DirBuilder::new(",
    "NamedTempFile::new",
    "tempfile_in(",
    "tempdir_in(",
    ".persist",
    "Beside::write",
    "Command::new(",
    ".spawn()",
    "kill_process(",
    ".put_opts(",
    "context.publish(",
    "client.publish(",
    ".send_publish(",
    " ask(client, uid, UPDATE",
    " ask(client, uid, DELETE",
    ".ack()",
    ".create_stream(",
    ".update_stream(",
    ".create_consumer_on_stream(",
    "Connection::open(",
    ".transaction_with_behavior(",
    ".execute(",
    ".execute_batch(",
];
/// Functions that only make a part of an effect ready; whoever calls them passes the point.
const PARTS: &[(&str, &str)] = &[
    // A command that is run by `enrol`.
    ("bootstrap/agent.rs", "command"),
    // A file on its way, and its way: whoever uses them says what it is.
    ("beside.rs", "write"),
    ("beside.rs", "replace"),
    ("beside.rs", "place"),
    // A file on its way, which `create` and `replace` have put in its place.
    ("keys/files.rs", "place"),
    // It only reads.
    ("bootstrap/systemd.rs", "own_words"),
    // Within one transaction of `append`, `open` or `catch_up`.
    ("serve/store.rs", "keep"),
    ("serve/store.rs", "note"),
    // A table of the connection's own, which nobody else sees.
    ("serve/store/file.rs", "open_to_read"),
    ("projections/mod.rs", "prepare"),
    ("projections/mod.rs", "forget"),
    ("projections/mod.rs", "fold"),
];
/// Functions in which several calls are one effect, or in which one point stands behind several: how many points fewer
/// they have.
const FEWER: &[(&str, &str, usize)] = &[
    // A command that is made ready and then run.
    ("bootstrap/detached.rs", "start", 1),
    // Its `gone` passes one behind each of four.
    ("bootstrap/agent.rs", "forget", 3),
    // A statement of the transaction.
    ("projections/mod.rs", "catch_up", 1),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The functions of `code` that are no closure, each with its name.
fn functions(code: &str) -> Vec<(&str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let signature = line.trim_start().split_once("fn ").filter(|(before, _)| {
            before.split_whitespace().all(|word| word.starts_with("pub") || word == "async" || word == "const")
        });
        match signature {
            Some((_, name)) => all.push((name.split(['(', '<']).next().unwrap(), String::new())),
            None => all.extend(all.is_empty().then(|| ("", String::new()))),
        }
        let text = &mut all.last_mut().unwrap().1;
        text.push_str(line);
        text.push('\n');
    }
    all
}

#[test]
fn no_effect_is_without_its_point() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut past, mut points) = (Vec::new(), String::new());
    for path in sources(&root) {
        if path.ends_with("tests.rs") || path.ends_with("point.rs") {
            continue;
        }
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        points.push_str(code);
        for (function, body) in functions(code) {
            let does: usize = EFFECTS.iter().map(|effect| body.matches(effect).count()).sum();
            let points = body.matches("point::behind(").count();
            if PARTS.contains(&(name.as_str(), function)) {
                assert!(does > 0, "`{function}` in `{name}` does nothing: take it off the list");
                continue;
            }
            let fewer = FEWER.iter().find(|(file, of, _)| (*file, *of) == (name.as_str(), function));
            let wanted = does.saturating_sub(fewer.map_or(0, |(_, _, fewer)| *fewer));
            if points < wanted || (fewer.is_some() && points > wanted) {
                past.push(format!("`{function}` in `{name}`: {does} effects, {points} points"));
            }
        }
    }
    assert!(past.is_empty(), "not one behind each: {past:#?}");
    for effect in Effect::ALL {
        assert!(points.contains(&format!("Effect::{effect:?}")), "no function passes `{}`", effect.as_str());
    }
}
