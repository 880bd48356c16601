//! Key files on a real file system, in temporary folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Barrier;

use super::*;

fn key(number: u8) -> PrivateKey {
    PrivateKey::from_seed([number; 32])
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn keys_are_read_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let (private, public) = (folder.path().join("a"), folder.path().join("a.pub"));
    create_private(&private, &key(1)).unwrap();
    create_public(&public, &key(1).public_key()).unwrap();
    assert_eq!(load_private(&private).unwrap().public_key(), key(1).public_key());
    assert_eq!(load_public(&public).unwrap(), key(1).public_key());
    assert_eq!((mode_of(&private), mode_of(&public)), (0o600, 0o644));
}

#[test]
fn missing_folders_are_made_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one/two/key");
    create_private(&path, &key(1)).unwrap();
    assert_eq!(mode_of(&folder.path().join("one")), 0o700);
    assert_eq!(mode_of(&folder.path().join("one/two")), 0o700);
}

#[test]
fn existing_file_is_never_overwritten_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    create_private(&path, &key(1)).unwrap();
    let error = create_private(&path, &key(2)).unwrap_err();
    assert!(matches!(&error, FileError::Exists(shown) if *shown == path), "{error}");
    assert_eq!(load_private(&path).unwrap().public_key(), key(1).public_key());
    assert_eq!(names_in(folder.path()), ["key"]);
}

#[test]
fn dangling_link_is_not_followed_when_a_key_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    symlink(folder.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(create_private(&path, &key(1)), Err(FileError::Exists(_))));
    assert_eq!(names_in(folder.path()), ["key"]);
}

#[test]
fn of_many_creators_at_once_exactly_one_succeeds() {
    const CREATORS: u8 = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let barrier = Barrier::new(CREATORS.into());
    let create = |number| {
        barrier.wait();
        create_private(&path, &key(number)).map(|()| number)
    };
    let created: Vec<u8> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CREATORS).map(|n| scope.spawn(move || create(n))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
    });
    assert_eq!(created.len(), 1);
    assert_eq!(load_private(&path).unwrap().public_key(), key(created[0]).public_key());
    assert_eq!(names_in(folder.path()), ["key"]);
}

#[test]
fn private_key_that_others_can_access_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    create_private(&path, &key(1)).unwrap();
    for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = load_private(&path).unwrap_err();
        assert!(matches!(error, FileError::Open { mode: shown, .. } if shown == mode), "{error}");
    }
    for mode in [0o600, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        load_private(&path).unwrap();
    }
}

#[test]
fn permissions_of_a_linked_key_are_those_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("key"), folder.path().join("link"));
    create_private(&path, &key(1)).unwrap();
    symlink(&path, &link).unwrap();
    load_private(&link).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(load_private(&link), Err(FileError::Open { .. })));
}

#[test]
fn error_texts_name_the_path_and_how_to_mend_it() {
    let open = FileError::Open { path: "/etc/weft/keys/a".into(), mode: 0o644 };
    assert_eq!(
        open.to_string(),
        "the private key /etc/weft/keys/a is open to other users (mode 0644): run \
         `chmod 600 '/etc/weft/keys/a'`, and replace the key if somebody may have read it"
    );
    assert_eq!(
        FileError::Exists("/k".into()).to_string(),
        "/k exists already and is not overwritten: choose another name, or move it away"
    );
    assert_eq!(
        FileError::Missing("/k".into()).to_string(),
        "there is no key /k: create it, or correct the path"
    );
}

#[test]
fn whatever_is_no_key_file_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    assert!(matches!(load_private(&path), Err(FileError::Missing(_))));
    assert!(matches!(load_private(folder.path()), Err(FileError::NotAFile(_))));
    assert!(matches!(load_private(Path::new("/dev/zero")), Err(FileError::NotAFile(_))));

    let write = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    };
    write(&vec![b'a'; MAX_FILE_SIZE + 1]);
    assert!(matches!(load_private(&path), Err(FileError::TooLarge(_))));
    write(b"");
    assert!(matches!(load_private(&path), Err(FileError::Key { .. })));
    write(key(1).public_key().to_spki_pem().as_bytes());
    let error = load_private(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: the PEM text holds a `PUBLIC KEY`: a `PRIVATE KEY` is needed here",
            path.display()
        )
    );
}

#[test]
fn pipe_without_writer_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    assert!(matches!(load_private(&path), Err(FileError::NotAFile(_))));
}

#[test]
fn path_through_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = create_private(&file.join("key"), &key(1)).unwrap_err();
    assert!(matches!(error, FileError::Io { action: "create the folder", .. }), "{error}");
}
