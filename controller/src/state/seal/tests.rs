use super::*;

#[test]
fn data_key_is_made_once_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.key");
    let sealed = DataKey::load_or_make(&path).unwrap().seal("a/b", b"x").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(*DataKey::load_or_make(&path).unwrap().open("a/b", &sealed).unwrap(), b"x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(DataKey::load_or_make(&path), Err(DataKeyError::Open { mode: 0o640, .. })));
}

#[test]
fn key_is_never_replaced_where_anything_was_written_under_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home")).unwrap();
    crate::home::private_folder(home.root()).unwrap();
    assert!(DataKey::kept(&home).unwrap().is_none() && !home.data_key().exists(), "who only looks makes none");
    for (space, kept) in [("state", home.state()), ("secrets", home.secrets())] {
        let key = DataKey::of(&home).unwrap();
        let object = kept.join("app/host/00000000000000000001");
        std::fs::create_dir_all(object.parent().unwrap()).unwrap();
        std::fs::write(&object, key.seal(&format!("{space}/app/host/00000000000000000001"), b"x").unwrap()).unwrap();
        DataKey::of(&home).unwrap();

        let aside = folder.path().join("aside");
        std::fs::rename(home.data_key(), &aside).unwrap();
        let lost = DataKey::of(&home).err().unwrap();
        assert!(matches!(&lost, DataKeyError::Lost { object: found, .. } if *found == object), "{lost}");
        assert!(lost.hint().starts_with("restore ") && !home.data_key().exists());
        DataKey::load_or_make(&home.data_key()).unwrap();
        let another = DataKey::of(&home).err().unwrap();
        assert!(matches!(another, DataKeyError::Another { .. }), "{another}");

        // With the right one again, one damaged object is no reason to refuse it.
        std::fs::rename(&aside, home.data_key()).unwrap();
        std::fs::write(object.with_file_name("00000000000000000002"), "damaged").unwrap();
        DataKey::of(&home).unwrap();
        std::fs::remove_dir_all(&kept).unwrap();
    }
}

#[test]
fn object_opens_at_its_own_place_only_and_only_whole() {
    let folder = tempfile::tempdir().unwrap();
    let key = DataKey::load_or_make(&folder.path().join("data.key")).unwrap();
    let sealed = key.seal("a/b", b"x").unwrap();
    assert_ne!(sealed, key.seal("a/b", b"x").unwrap());
    assert!(key.open("a/c", &sealed).is_err());
    for at in 0..sealed.len() {
        let mut altered = sealed.clone();
        altered[at] ^= 1;
        assert!(key.open("a/b", &altered).is_err(), "byte {at}");
    }
    assert!(key.open("a/b", &[]).is_err());
}
