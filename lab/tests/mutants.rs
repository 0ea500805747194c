//! Every refusal code has a mutant: a patch that takes away the check that makes it. `scripts/mutants.sh` applies
//! them one by one and demands that a test turns red; what is kept here is that they go on to apply.

use std::path::Path;
use std::process::Command;

use replicator_protocol::refusal::Code;

#[test]
fn every_refusal_code_has_a_mutant_that_applies() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for code in Code::ALL {
        let patch = format!("lab/mutants/{}.patch", code.as_str());
        assert!(
            project.join(&patch).exists(),
            "`{code:?}` has no mutant: `{patch}` takes away the check that makes it"
        );
        let checked = Command::new("git").args(["apply", "--check", &patch]).current_dir(project).output().unwrap();
        assert!(checked.status.success(), "`{patch}` does not apply: {}", String::from_utf8_lossy(&checked.stderr));
    }
    let patches = std::fs::read_dir(project.join("lab/mutants")).unwrap().count();
    assert_eq!(patches, Code::ALL.len(), "a mutant belongs to no code");
}
