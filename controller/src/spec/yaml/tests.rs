use std::path::Path;

use super::*;

fn read(text: &str) -> (Option<Rc<Node>>, Findings) {
    let mut findings = Findings::new(Path::new("a.yml"), text);
    (parse(text, &mut findings), findings)
}

fn refused(text: &str) -> String {
    let (node, findings) = read(text);
    assert!(findings.is_refused(), "{text} gave {node:?}");
    findings.to_string()
}

#[test]
fn every_value_knows_its_place() {
    let (node, findings) = read("a:\n  - b: 'c'\n  - d\n");
    assert!(!findings.is_refused(), "{findings}");
    let list = node.as_ref().unwrap().get("a").unwrap();
    let Value::Sequence(items) = &list.value else { panic!("{list:?}") };
    let c = items[0].get("b").unwrap();
    assert_eq!((c.place.line, c.place.column, c.place.width), (2, 8, 3));
    assert_eq!(c.value, Value::Scalar { text: "c".into(), plain: false });
    assert_eq!((items[1].place.line, items[1].place.column), (3, 5));
}

#[test]
fn anchors_are_followed() {
    let (node, _) = read("a: &x {b: c}\nd: *x\n");
    let node = node.unwrap();
    assert_eq!(node.get("a"), node.get("d"));
}

#[test]
fn syntax_outside_the_subset_is_refused() {
    for (text, says) in [
        ("a: 1\na: 2\n", "`a.yml:2:1` has the key `a` a second time"),
        ("a:\n\tb: 1\n", "`a.yml:2:1` has a tab"),
        ("a: &x {b: c}\nd:\n  <<: *x\n", "`a.yml:3:3` has a merge key"),
        ("a: !!str no\n", "has a YAML tag"),
        ("a: 1\n---\nb: 2\n", "starts a second document"),
        ("? [a]\n: b\n", "has a key that is no text"),
        ("a: &x [*x]\n", "has an alias to something it is part of"),
        ("a: *nothing\n", "is no YAML"),
        ("a: [b\n", "is no YAML"),
        ("", "starts a file that holds nothing"),
        ("# only words\n", "starts a file that holds nothing"),
    ] {
        let findings = refused(text);
        assert!(findings.contains(says), "{text:?}: {findings}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let large = "# x\n".repeat(SIZE_MAX / 4 + 1);
    assert!(refused(&large).contains("too large (more than 1048576 bytes)"));
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
    assert!(refused(&deep).contains("nested too deeply (got more than 64 levels)"));
    let just = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    assert!(!read(&just).1.is_refused());
}

#[test]
fn aliases_cannot_blow_a_file_up() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 10].join(", ")));
    }
    assert!(refused(&text).contains("aliases make it more than 100 times as large"));
}

#[test]
fn secret_in_clear_is_refused_and_not_repeated() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    for text in [
        format!("a: {token}\n"),
        format!("{token}: b\n"),
        format!("a: [\"{token}\"]\n"),
        format!("a: |\n  first\n  {token}\n"),
        format!("a: {{b: {token}\n"),
        format!("a: x\n{token}: 1\n{token}: 2\n"),
        "a: |\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  ghp_planted\n  -----END OPENSSH PRIVATE KEY-----\n".into(),
    ] {
        let findings = refused(&text);
        assert!(!findings.contains("ghp_") && !findings.contains("a1B2"), "{findings}");
    }
    assert!(refused(&format!("a: {token}\n")).contains("`a.yml:1:4` holds what looks like a GitHub token"));
}

#[test]
fn unreadable_line_does_not_give_a_secret_away() {
    for text in
        ["tokenFrom: \"hunter2\n", "tokenFrom:\thunter2\n", "a:\n  - [hunter2\n", "? {tokenFrom: hunter2}\n: b\n"]
    {
        let findings = refused(text);
        assert!(!findings.contains("hunter2"), "{findings}");
    }
}

#[test]
fn aliases_cannot_nest_deeper_than_text_may() {
    let mut text = String::from("a0: &a0 [x]\n");
    for level in 1..70 {
        text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(refused(&text).contains("nested too deeply"));
}

#[test]
fn file_full_of_faults_costs_no_more_than_its_length() {
    let (_, findings) = read(&"\t\n".repeat(SIZE_MAX / 2));
    assert!(findings.all().len() >= SIZE_MAX / 2);
}
