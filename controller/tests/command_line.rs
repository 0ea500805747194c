//! The command as a script sees it: stdout, stderr and exit code together.

#![expect(clippy::unwrap_used, reason = "the exception for tests does not reach the helpers of an integration test")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use replicator::home::Home;
use replicator::serve::Store;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");

/// Runs in a folder without a fleet file.
fn replicator(home: &Path, arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replicator"));
    command.args(arguments).env("REPLICATOR_HOME", home).env("NO_COLOR", "1").env_remove("REPLICATOR_CONTEXT");
    command.current_dir("/");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments ends without reading.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn told(output: &Output) -> (i32, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn examples_validate_and_a_warning_refuses_under_strict_only() {
    let home = tempfile::tempdir().unwrap();
    let output = replicator(home.path(), &["validate", EXAMPLES], "");
    let (code, stdout, stderr) = told(&output);
    assert_eq!((code, stdout), (0, ""), "{stderr}");
    assert!(stderr.ends_with("Checked 2 files: 0 errors, 1 warning\n"), "{stderr}");
    let strict = replicator(home.path(), &["validate", "--strict", EXAMPLES], "");
    assert_eq!(told(&strict).0, 1);
}

#[test]
fn validate_tells_refused_from_unreadable() {
    let home = tempfile::tempdir().unwrap();
    let spec = home.path().join("a.yml");
    std::fs::write(&spec, "id: a\n").unwrap();
    let spec = spec.to_str().unwrap();
    let output = replicator(home.path(), &["validate", spec], "");
    let (code, stdout, stderr) = told(&output);
    assert_eq!((code, stdout), (1, ""));
    assert!(stderr.starts_with(&format!("error: `{spec}:1:1` lacks `")), "{stderr}");

    for unreadable in ["/nonexistent.yml", "/dev/null/x"] {
        let output = replicator(home.path(), &["validate", unreadable], "");
        let (code, _, stderr) = told(&output);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.starts_with(&format!("error: cannot read `{unreadable}`\n  caused by: ")), "{stderr}");
    }
    assert_eq!(told(&replicator(home.path(), &["validate", "--nonsense"], "")).0, 2);
}

#[test]
fn findings_are_data_for_a_program() {
    let home = tempfile::tempdir().unwrap();
    let spec = home.path().join("a.yml");
    std::fs::write(&spec, "id: a\nnamePrefx: b\n").unwrap();
    let output = replicator(home.path(), &["-o", "json", "validate", spec.to_str().unwrap()], "");
    let (code, stdout, stderr) = told(&output);
    assert_eq!((code, stderr), (1, ""));
    let data: serde_json::Value = serde_json::from_str(stdout).unwrap();
    let found = data["findings"].as_array().unwrap();
    assert_eq!(data["errors"], found.len());
    let unknown = found.iter().find(|finding| finding["code"] == "unknown-key").unwrap();
    assert_eq!((&unknown["line"], &unknown["column"], &unknown["severity"]), (&2.into(), &1.into(), &"error".into()));
}

#[test]
fn secret_goes_in_by_stdin_and_never_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let set = |value: &str| replicator(&home, &["secrets", "set", "token", "--app", "replicator-host"], value);
    let output = set("planted-value\n");
    let (code, stdout, stderr) = told(&output);
    let generation = stderr.strip_prefix("Stored `token` under `replicator-host`, generation ").unwrap().trim_end();
    assert!(code == 0 && stdout.is_empty() && generation.parse::<u64>().is_ok(), "{stderr}");
    // The same value with another line end is the same value.
    let held = format!("`token` holds that value already, generation {generation}\n");
    assert_eq!(told(&set("planted-value")), (0, "", held.as_str()));
    let empty = set("\n");
    let (code, stdout, stderr) = told(&empty);
    assert_eq!((code, stdout), (1, ""));
    assert!(stderr.starts_with("error: the value for `token` is empty\nhint: "), "{stderr}");
    let argument = replicator(&home, &["secrets", "set", "token", "planted-value"], "");
    let (code, _, stderr) = told(&argument);
    assert!(code == 2 && !stderr.contains("planted"), "{stderr}");
    let list = replicator(&home, &["secrets", "list", "-o", "json"], "");
    let nowhere = replicator(&home, &["secrets", "set", "other"], "planted-value");
    let (code, _, stderr) = told(&nowhere);
    assert!(code == 2 && stderr.contains("--fleet FILE") && stderr.contains("--app NAME"), "{stderr}");
    let rows: serde_json::Value = serde_json::from_str(told(&list).1).unwrap();
    assert_eq!((rows[0]["name"].as_str(), rows[0]["generation"].to_string().as_str()), (Some("token"), generation));
    assert!(!told(&list).1.contains("planted"));
}

#[test]
fn list_says_what_is_needed_and_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let fleet = format!("{EXAMPLES}/clanker.yml");
    let list = || {
        let output = replicator(&home, &["secrets", "list", "-o", "json", "--fleet", &fleet], "");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!((&list()[0]["name"], &list()[0]["generation"]), (&"webToken".into(), &serde_json::Value::Null));
    assert_eq!(list()[0]["needed_for"][0], "the environment of `acme/web`");
    let set = replicator(&home, &["secrets", "set", "webToken", "--fleet", &fleet], "planted-value");
    let generation = list()[0]["generation"].to_string();
    let stored = format!("Stored `webToken` under `replicator-demo`, generation {generation}\n");
    assert_eq!(told(&set), (0, "", stored.as_str()));
}

#[test]
fn full_disk_under_stdout_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    replicator(&home, &["secrets", "set", "token", "--app", "replicator-host"], "planted-value");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_replicator"));
    let output = command.args(["secrets", "list"]).env("REPLICATOR_HOME", &home).stdout(full).output().unwrap();
    let (code, _, stderr) = told(&output);
    assert!(code == 1 && stderr.contains("cannot write to stdout"), "{stderr}");
}

#[test]
fn stream_of_events_ends_with_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("home");
    let init = ["broker", "init", "--fleet", "lab", "--listen", "127.0.0.1:4222", "--insecure-loopback"];
    assert_eq!(told(&replicator(&root, &init, "")).0, 0);
    let home = Home::at(root.clone()).unwrap();
    drop(Store::open(&home.collected_events()).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_replicator"));
    command.args(["events", "--follow"]).env("REPLICATOR_HOME", &root).env_remove("REPLICATOR_CONTEXT");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Nothing is there to be said, so nothing is ever written to the one that went away.
    drop(child.stdout.take());
    let deadline = Instant::now() + Duration::from_secs(20);
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                panic!("it goes on though nobody reads");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!(ended.code(), Some(0));
}
