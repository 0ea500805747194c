use super::*;

const HOST: &str = include_str!("../../../../examples/hosts/this-machine.yml");
const FLEET: &str = include_str!("../../../../examples/clanker.yml");

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("hosts")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn messages(checked: &Checked) -> String {
    checked.files.iter().map(ToString::to_string).collect()
}

#[test]
fn folder_gives_every_host_and_the_fleet() {
    let folder = folder(&[("hosts/this-machine.yml", HOST), ("clanker.yml", FLEET), ("hosts/notes.txt", "x")]);
    let checked = check(&[folder.path().to_owned()]).unwrap();
    assert_eq!(checked.files.len(), 2);
    assert!(!checked.files.iter().any(Findings::is_refused), "{}", messages(&checked));
}

#[test]
fn folder_of_host_specs_gives_them() {
    let folder = folder(&[("hosts/this-machine.yml", HOST), ("hosts/other.yml", HOST)]);
    let checked = check(&[folder.path().join("hosts")]).unwrap();
    assert_eq!(checked.files.len(), 2);
    assert!(messages(&checked).contains("other.yml"), "{}", messages(&checked));
}

#[test]
fn factory_yml_is_read_where_clanker_yml_is_absent() {
    let folder = folder(&[("hosts/this-machine.yml", HOST), ("factory.yml", FLEET)]);
    assert_eq!(find(folder.path()), Some(folder.path().join("factory.yml")));
    std::fs::write(folder.path().join("clanker.yml"), FLEET).unwrap();
    assert_eq!(find(folder.path()), Some(folder.path().join("clanker.yml")));
}

#[test]
fn fleet_file_alone_brings_its_host() {
    let folder =
        folder(&[("hosts/this-machine.yml", &HOST.replace("namePrefix", "namePrefx")), ("clanker.yml", FLEET)]);
    let checked = check(&[folder.path().join("clanker.yml")]).unwrap();
    assert!(messages(&checked).contains("did you mean `namePrefix`?"), "{}", messages(&checked));
}

#[test]
fn host_that_cannot_be_read_is_named_with_its_line() {
    let folder = folder(&[("clanker.yml", FLEET)]);
    let checked = check(&[folder.path().to_owned()]).unwrap();
    assert!(checked.unreadable);
    assert!(messages(&checked).contains("clanker.yml:2:1` names the host spec"), "{}", messages(&checked));
}

#[test]
fn two_hosts_with_one_id_or_prefix_are_refused() {
    let folder = folder(&[("hosts/a.yml", HOST), ("hosts/b.yml", HOST)]);
    let checked = check(&[folder.path().to_owned()]).unwrap();
    let text = messages(&checked);
    assert!(text.contains("b.yml:2:1` gives `id: this-machine`, which"), "{text}");
    assert!(text.contains("b.yml:3:1` gives `namePrefix: demo`, which"), "{text}");
}

#[test]
fn folder_without_either_is_no_input() {
    let folder = folder(&[]);
    assert!(matches!(check(&[folder.path().to_owned()]), Err(CheckError::Nothing { .. })));
    assert!(matches!(check(&[folder.path().join("none.yml")]), Err(CheckError::File(LoadError::Unreadable { .. }))));
}

#[test]
fn host_and_fleet_are_loaded_as_a_pair() {
    let folder = folder(&[("hosts/a.yml", HOST), ("clanker.yml", FLEET)]);
    let (host, fleet) = (folder.path().join("hosts/a.yml"), folder.path().join("clanker.yml"));
    std::fs::write(folder.path().join("hosts/this-machine.yml"), HOST).unwrap();
    assert_eq!(load_fleet(&fleet).unwrap().0.path, folder.path().join("./hosts/this-machine.yml"));
    let (host_spec, _) = load(&host, &fleet).unwrap();
    assert_eq!(host_spec.value.id.as_str(), "this-machine");
    std::fs::write(&fleet, FLEET.replace("pod:", "hostnames: { zone: other.localhost }\npod:")).unwrap();
    let refused = load(&host, &fleet).unwrap_err();
    assert!(refused.to_string().contains("is not a zone of `this-machine`"), "{refused}");
}

#[test]
fn faults_of_both_files_are_told_at_once() {
    let (host, fleet) = (HOST.replace("namePrefix", "namePrefx"), FLEET.replace("auth: none", "auth: nobody"));
    let folder = folder(&[("hosts/this-machine.yml", &host), ("clanker.yml", &fleet)]);
    let (host, fleet) = (folder.path().join("hosts/this-machine.yml"), folder.path().join("clanker.yml"));
    for refused in [load(&host, &fleet).unwrap_err(), load_fleet(&fleet).unwrap_err()] {
        let told = crate::cli::Failure::from(refused).to_string();
        for fault in ["lacks `namePrefix`", "did you mean `namePrefix`?", "gives `nobody`, which is unknown"] {
            assert!(told.contains(fault), "`{fault}` is not told:\n{told}");
        }
        assert!(told.contains("\n\nerror: "), "{told}");
    }
    // As `validate` does, of the fleet file alone.
    let checked = check(std::slice::from_ref(&fleet)).unwrap();
    assert_eq!(checked.files.iter().filter(|findings| findings.is_refused()).count(), 2, "{}", messages(&checked));

    // A host that cannot be read is one more fault of a file that has some, and else the only one.
    std::fs::remove_file(&host).unwrap();
    let refused = load_fleet(&fleet).unwrap_err().to_string();
    assert!(refused.contains("gives `nobody`") && refused.contains("which cannot be read"), "{refused}");
    std::fs::write(&fleet, FLEET).unwrap();
    assert!(matches!(load_fleet(&fleet).unwrap_err(), LoadError::Unreadable { .. }));
}
