use super::*;

fn own_ids(mode: u32) -> Ownership {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    Ownership { uid, gid, mode }
}

#[test]
fn written_file_has_its_owner_and_mode_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write(&path, b"one", own_ids(0o640)).unwrap();
    write(&path, b"two", own_ids(0o600)).unwrap();
    assert_eq!(read(&path).unwrap(), b"two");
    assert_eq!(look(&path).unwrap().unwrap().ownership, own_ids(0o600));
    assert_eq!(entries(folder.path()).unwrap(), 1);
}

#[test]
fn what_a_write_left_is_swept_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let theirs = [".replicator-notes", ".replicator-0123456789abcdef", "replicator-0123456789abcdef.part"];
    for name in theirs.iter().chain(&[".replicator-0123456789-bcdef.part"]) {
        fs::write(at(name), "theirs").unwrap();
    }
    fs::create_dir(at(".replicator-0123456789abcdef.part")).unwrap();
    std::os::unix::fs::symlink(at(theirs[0]), at(".replicator-fedcba9876543210.part")).unwrap();
    let under_way = PART.builder().tempfile_in(folder.path()).unwrap();
    hold(under_way.as_file());
    let before = entries(folder.path()).unwrap();
    let (_, left) = PART.builder().tempfile_in(folder.path()).unwrap().keep().unwrap();
    assert_eq!(sweep(folder.path()).unwrap(), 1);
    assert!(!left.exists() && under_way.path().exists());
    assert_eq!(entries(folder.path()).unwrap(), before);
}

/// A pipe that nobody writes to, or a link to one, keeps whoever opens it waiting.
#[test]
fn pipe_in_the_place_of_a_file_is_waited_for_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (pipe, turned) = (at(".replicator-0123456789abcdef.part"), at(".replicator-fedcba9876543210.part"));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::os::unix::fs::symlink(&pipe, &turned).unwrap();
    let (done, within) = std::sync::mpsc::channel();
    let paths = [pipe.clone(), turned.clone()];
    let beside = folder.path().join("other");
    let whole = folder.path().to_owned();
    std::thread::spawn(move || {
        let read = paths.iter().all(|path| read(path).is_err());
        let linked = paths.iter().all(|path| link(path, &beside).is_err());
        let _nobody_waits = done.send((sweep(&whole).unwrap(), read, linked));
    });
    assert_eq!(within.recv_timeout(std::time::Duration::from_secs(30)).unwrap(), (0, true, true));
    assert!(look(&pipe).unwrap().is_some() && look(&turned).unwrap().is_some());
}

/// To open a device may do something already: to open one of watchdogs starts it.
#[test]
fn what_is_no_file_is_not_even_opened() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    let folder = tempfile::tempdir().unwrap();
    let (device, file) = (folder.path().join(".replicator-0123456789abcdef.part"), folder.path().join("file"));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    // As of `/dev/null`, see null(4).
    let number = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(rustix::fs::CWD, &device, rustix::fs::FileType::CharacterDevice, mode, number).unwrap();
    fs::write(&file, "content").unwrap();
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    for path in [&device, &file] {
        inotify::add_watch(&watch, path, WatchFlags::OPEN).unwrap();
    }
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut opened = inotify::Reader::new(&watch, &mut buffer);
    assert!(read(&device).is_err() && link(&device, &folder.path().join("other")).is_err());
    assert_eq!(sweep(folder.path()).unwrap(), 0);
    assert_eq!(opened.next().unwrap_err(), Errno::AGAIN, "nobody opened it");
    assert_eq!(read(&file).unwrap(), b"content");
    assert!(opened.next().unwrap().events().contains(ReadFlags::OPEN), "the control");
}

#[test]
fn path_leads_where_its_links_do_and_what_is_not_there_is_taken_as_written() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(at.join("real/below")).unwrap();
    symlink("real", at.join("link")).unwrap();
    symlink(at.join("link/below"), at.join("chain")).unwrap();
    symlink("nowhere/yet", at.join("dangling")).unwrap();
    symlink("loop", at.join("loop")).unwrap();
    for (path, real) in [
        ("real/below/x", "real/below/x"),
        ("link", "real"),
        ("link/below/new", "real/below/new"),
        ("chain/../x/./y", "real/x/y"),
        ("dangling/x", "nowhere/yet/x"),
    ] {
        assert_eq!(resolve(&at.join(path)).unwrap(), at.join(real), "{path}");
    }
    assert_eq!(resolve(Path::new("/../..")).unwrap(), Path::new("/"));
    assert!(resolve(&at.join("loop/x")).is_err());
}

#[test]
fn link_is_seen_as_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(look(&link).unwrap().unwrap().file_type, FileType::Link);
    assert_eq!(look(&folder.path().join("none")).unwrap(), None);
    assert_eq!(unsafe_parent(&real.join("x")).unwrap(), None);
    fs::set_permissions(&real, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(unsafe_parent(&link.join("x")).unwrap(), Some(link));
}
