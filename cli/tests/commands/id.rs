//! `weft xia id`: keys on disk, and OpenSSL's opinion of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Done, finish, weft};

/// `weft xia id ARGUMENTS` in `directory`.
fn id(directory: &TempDir, arguments: &[&str]) -> Done {
    let mut command = weft(["xia", "id"]);
    command.args(arguments).current_dir(directory.path());
    finish(command)
}

/// A new key of this kind in a directory of its own: the XID that was printed, and the directory.
fn new_key(kind: &str) -> (String, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let done = id(&directory, &["new", "r1.key", "--kind", kind]);
    assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    (done.stdout.trim_end().to_owned(), directory)
}

fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What `openssl pkey -pubin -in PATH -outform DER | sha256sum` prints: 64 hexadecimal digits.
fn openssl_sha256(public: &Path) -> String {
    let mut openssl = Command::new("openssl")
        .args(["pkey", "-pubin", "-outform", "DER", "-in"])
        .arg(public)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs the command `openssl`: apt-get install openssl");
    let der = openssl.stdout.take().unwrap();
    let sum = Command::new("sha256sum").stdin(der).output().unwrap();
    assert!(openssl.wait().unwrap().success() && sum.status.success());
    let text = String::from_utf8(sum.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn the_name_is_the_beginning_of_the_hash_that_openssl_computes() {
    for kind in ["hid", "ad"] {
        let (xid, directory) = new_key(kind);
        let hash = openssl_sha256(&directory.path().join("r1.key.pub"));
        assert_eq!(xid, format!("{kind}-{}", &hash[..40]));
    }
}

#[test]
fn openssl_finds_the_public_key_in_the_private_one() {
    let (_, directory) = new_key("hid");
    let output = Command::new("openssl")
        .args(["pkey", "-pubout", "-in", "r1.key"])
        .current_dir(directory.path())
        .output()
        .expect("this test needs the command `openssl`: apt-get install openssl");
    assert!(output.status.success());
    assert_eq!(output.stdout, fs::read(directory.path().join("r1.key.pub")).unwrap());
}

#[test]
fn private_keys_are_for_their_owner_and_public_ones_for_everybody() {
    let (_, directory) = new_key("hid");
    assert_eq!(mode(directory.path().join("r1.key")), 0o600);
    assert_eq!(mode(directory.path().join("r1.key.pub")), 0o644);
}

#[test]
fn no_key_is_overwritten() {
    let (_, directory) = new_key("hid");
    let read = |name| fs::read(directory.path().join(name)).unwrap();
    let before = (read("r1.key"), read("r1.key.pub"));
    id(&directory, &["new", "r1.key"]).expect_failure(&["r1.key", "exists already"]);
    fs::remove_file(directory.path().join("r1.key.pub")).unwrap();
    id(&directory, &["new", "r1.key"]).expect_failure(&["r1.key exists already"]);
    assert_eq!(read("r1.key"), before.0);
}

#[test]
fn either_file_of_a_key_shows_the_same() {
    let (xid, directory) = new_key("hid");
    let private = id(&directory, &["show", "r1.key"]);
    let public = id(&directory, &["show", "r1.key.pub"]);
    assert_eq!(private.stdout, public.stdout);
    let pem = fs::read_to_string(directory.path().join("r1.key.pub")).unwrap();
    let ad = xid.replace("hid-", "ad-");
    assert_eq!(private.stdout, format!("as a host: {xid}\nas a domain: {ad}\n{pem}"));
    let json = id(&directory, &["show", "--json", "r1.key"]).json();
    assert_eq!(json, serde_json::json!({ "hid": xid, "ad": ad, "public_key": pem }));
}

#[test]
fn a_private_key_that_others_can_read_is_not_used() {
    let (_, directory) = new_key("hid");
    let path = directory.path().join("r1.key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    id(&directory, &["show", "r1.key"]).expect_failure(&["open to other users", "chmod 600"]);
}

#[test]
fn a_name_is_verified_by_the_key() {
    let (xid, directory) = new_key("ad");
    for path in ["r1.key", "r1.key.pub"] {
        let done = id(&directory, &["verify", &xid, path]);
        assert_eq!(done.status, Some(0), "{done:?}");
        assert_eq!(done.stdout, format!("{xid} is the hash of the key in {path}\n"));
    }
    let json = id(&directory, &["verify", "--json", &xid, "r1.key.pub"]).json();
    assert_eq!(json["verified"], true);
}

#[test]
fn the_name_of_another_key_is_refused() {
    let (xid, directory) = new_key("hid");
    let (other, _) = new_key("hid");
    let done = id(&directory, &["verify", &other, "r1.key.pub"]);
    assert_eq!(done.status, Some(1), "{done:?}");
    let expected = format!("{other} is not the hash of the key in r1.key.pub, which is {xid}\n");
    assert_eq!(done.stdout, expected);
    let done = id(&directory, &["verify", "--json", &other, "r1.key.pub"]);
    assert_eq!((done.status, &done.json()["verified"]), (Some(1), &false.into()));
}

#[test]
fn names_that_are_no_key_hashes_are_a_mistake_in_the_command() {
    let (xid, directory) = new_key("hid");
    let done = id(&directory, &["verify", &xid.replace("hid-", "xdp-"), "r1.key"]);
    assert_eq!(done.status, Some(2), "{done:?}");
    assert!(done.stderr.contains("no hash of a key"), "{done:?}");
    id(&directory, &["verify", &xid, "nowhere.key"])
        .expect_failure(&["there is no key nowhere.key"]);
}
