use replicator_protocol::ids::ResourceId;
use replicator_protocol::wire::declaration::{Capabilities, Directory, File, Mount};

use super::*;

fn policy(text: &str) -> Policy {
    Policy::new(toml::from_str(text).unwrap(), &Layout::new(Path::new("/agent")), "unix:///opt/runtime.sock")
}

fn checked(policy: &Policy, body: Kind) -> Option<(Code, String)> {
    let id = ResourceId::parse("web.server").unwrap();
    let refused = policy.resource(&Resource { id, confirms_link: false, body }).err()?;
    Some((refused.code, refused.fields["line"].clone()))
}

fn file(path: &str) -> Kind {
    Kind::File(File { path: path.into(), ..File::default() })
}

fn directory(path: &str) -> Kind {
    Kind::Directory(Directory { path: path.into(), ..Directory::default() })
}

fn bind(source: &str) -> Kind {
    let mount = Mount { source: Some(Source::Bind(source.into())), target: "/in".into(), read_only: true };
    Kind::Container(Container { mounts: vec![mount], ..Container::default() })
}

fn capability(name: &str) -> Kind {
    let capabilities = Some(Capabilities { add: vec![name.into()], drop: vec![] });
    Kind::Container(Container { capabilities, ..Container::default() })
}

#[test]
fn ordinary_places_need_no_policy() {
    let policy = policy("");
    for body in [
        file("/srv/app/config"),
        file("/etc/app.conf"),
        bind("/srv/app"),
        directory("/etc/app"),
        capability("NET_BIND_SERVICE"),
    ] {
        assert_eq!(checked(&policy, body), None);
    }
}

#[test]
fn what_hands_the_machine_over_is_refused_with_the_line_that_would_allow_it() {
    let policy = policy("");
    let binds = [
        "/",
        "/etc",
        "/etc/ssl",
        "/proc",
        "/var",
        "/var/run/docker.sock",
        "/run",
        "/agent/etc",
        "/opt/runtime.sock",
        "/opt",
    ];
    for source in binds {
        let (code, line) = checked(&policy, bind(source)).unwrap();
        assert_eq!((code, line), (Code::ForbiddenBind, format!("allow_binds = [\"{source}\"]")));
    }
    for path in ["/etc/sudoers.d/x", "/etc/cron.d/x", "/etc/ld.so.preload", "/etc/systemd/system/x.service"] {
        assert_eq!(checked(&policy, file(path)).unwrap().0, Code::ForbiddenPath, "{path}");
    }
    for path in ["/etc", "/etc/cron.d", "/usr/lib", "/agent/var"] {
        assert_eq!(checked(&policy, directory(path)).unwrap().0, Code::ForbiddenPath, "{path}");
    }
    let own = "/agent/var/lib/replicator-host-agent/anchor.a";
    assert_eq!(checked(&policy, file(own)).unwrap().0, Code::ForbiddenPath);
    for name in ["SYS_ADMIN", "CAP_SYS_PTRACE", "ALL"] {
        assert_eq!(checked(&policy, capability(name)).unwrap().0, Code::ForbiddenCapability, "{name}");
    }
}

#[test]
fn line_allows_what_it_names_and_what_is_below_and_no_more() {
    let policy =
        policy("allow_binds = ['/etc/ssl']\nallow_capabilities = ['SYS_PTRACE']\nallow_paths = ['/etc/cron.d/backup']");
    for body in [bind("/etc/ssl/certs"), capability("CAP_SYS_PTRACE"), file("/etc/cron.d/backup")] {
        assert_eq!(checked(&policy, body), None);
    }
    for body in [bind("/etc/ssh"), capability("SYS_ADMIN"), file("/etc/cron.d/other")] {
        assert!(checked(&policy, body).is_some());
    }
}

#[test]
fn link_is_as_forbidden_as_what_it_leads_to() {
    use std::os::unix::fs::symlink;
    let at = tempfile::tempdir().unwrap();
    let path = |name: &str| at.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("plain")).unwrap();
    for (target, name) in [
        ("/etc", "etc"),
        ("/etc/cron.d", "cron"),
        ("/run/docker.sock", "socket"),
        ("/opt/runtime.sock", "other-socket"),
        ("/agent/var/lib/replicator-host-agent", "own"),
        ("plain", "fine"),
    ] {
        symlink(target, path(name)).unwrap();
    }
    let default = policy("");
    for (name, line) in [
        ("etc/ssl", "/etc/ssl"),
        ("socket", "/run/docker.sock"),
        ("other-socket", "/opt/runtime.sock"),
        ("own/keys", "/agent/var/lib/replicator-host-agent/keys"),
    ] {
        let (code, refused) = checked(&default, bind(&path(name))).unwrap();
        assert_eq!((code, refused), (Code::ForbiddenBind, format!("allow_binds = [\"{line}\"]")), "{name}");
    }
    for name in ["cron/x", "etc/cron.d/x", "own/anchor.a"] {
        assert_eq!(checked(&default, file(&path(name))).unwrap().0, Code::ForbiddenPath, "{name}");
    }
    assert_eq!(checked(&default, file("/proc/self/root/etc/sudoers.d/x")).unwrap().0, Code::ForbiddenPath);
    for body in [bind(&path("fine")), file(&path("fine/x")), bind(&path("plain")), file(&path("etc/app.conf"))] {
        assert_eq!(checked(&default, body), None, "the control");
    }
    // A line for a folder that anyone may be given allows that folder, and not where a link in it leads.
    let widened = policy(&format!("allow_binds = ['{}']\nallow_paths = ['{0}']", path("")));
    assert!(checked(&widened, bind(&path("etc"))).is_some());
    assert!(checked(&widened, file(&path("cron/x"))).is_some());
    let led = policy("allow_binds = ['/etc/ssl']\nallow_paths = ['/etc/cron.d/x']");
    for body in [bind(&path("etc/ssl")), file(&path("cron/x")), file(&path("etc/cron.d/x"))] {
        assert_eq!(checked(&led, body), None, "the line is about where it leads");
    }
}

#[test]
fn unreadable_file_is_an_error_and_not_an_empty_policy() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    let refused = || Policy::load(&layout, "/none").unwrap_err().refusal();
    assert!(Policy::load(&layout, "/none").is_ok(), "no file is the default");
    layout.make_folders().unwrap();
    std::fs::write(layout.policy(), "# ours\nallow_bind = ['/etc']").unwrap();
    let refusal = refused();
    assert_eq!((refusal.code, refusal.fields["at"].as_str()), (Code::Policy, "line 2"));
    assert!(refusal.fields["error"].contains("unknown field `allow_bind`"), "{refusal}");
    assert!(refusal.fields["file"].ends_with("policy.toml"));
    for garbage in [&b"allow_binds = ["[..], b"allow_binds = ['\xff']", b"allow_binds = '/etc'"] {
        std::fs::write(layout.policy(), garbage).unwrap();
        assert_eq!(refused().code, Code::Policy);
    }
    std::fs::remove_file(layout.policy()).unwrap();
    std::fs::create_dir(layout.policy()).unwrap();
    assert_eq!(refused().fields["error"], "Is a directory (os error 21)");
}

#[test]
fn what_is_in_force_goes_by_the_default_where_the_file_cannot_be_read() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    layout.make_folders().unwrap();
    std::fs::write(layout.policy(), "allow_binds = '/etc/ssl'").unwrap();
    let policy = Policy::load_or_default(&layout, "/none");
    assert_eq!(checked(&policy, bind("/srv/app")), None);
    let id = ResourceId::parse("web.server").unwrap();
    let refusal = policy.resource(&Resource { id, confirms_link: false, body: bind("/etc/ssl") }).unwrap_err();
    assert_eq!((refusal.code, refusal.fields["at"].as_str()), (Code::ForbiddenBind, "line 1"), "{refusal}");
}
