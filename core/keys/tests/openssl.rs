//! Agreement with OpenSSL, in both directions. The command `openssl` must be installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use weft_keys::{PrivateKey, PublicKey, Signature, file};

/// Runs `openssl` and returns what it prints.
fn openssl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl")
        .args(arguments)
        .output()
        .expect("these tests need the command `openssl`: apt-get install openssl");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {said}");
    output.stdout
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// The bytes that `openssl pkey -text` shows below a heading, as hexadecimal digits.
fn shown_below(heading: &str, shown: &str) -> String {
    let lines = shown.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let block = lines.take_while(|line| line.starts_with(' '));
    block.flat_map(str::chars).filter(char::is_ascii_hexdigit).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn openssl_reads_our_private_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let key = PrivateKey::from_seed([0x5a; 32]);
    file::create_private(&path, &key).unwrap();
    let shown = openssl(&["pkey", "-in", text(&path), "-text", "-noout"]);
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.starts_with("ED25519 Private-Key:"), "{shown}");
    assert_eq!(shown_below("priv:", &shown), "5a".repeat(32));
    assert_eq!(shown_below("pub:", &shown), hex(&key.public_key().to_bytes()));
}

#[test]
fn openssl_writes_the_same_files_for_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let key = PrivateKey::from_seed([3; 32]);
    file::create_private(&path, &key).unwrap();
    let path = text(&path);
    assert_eq!(openssl(&["pkey", "-in", path]), key.to_pkcs8_pem().as_bytes());
    let public = key.public_key();
    assert_eq!(openssl(&["pkey", "-in", path, "-pubout"]), public.to_spki_pem().as_bytes());
    let der = openssl(&["pkey", "-in", path, "-pubout", "-outform", "DER"]);
    assert_eq!(der, public.to_spki_der());
}

#[test]
fn keys_made_by_openssl_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (private, public) = (folder.path().join("key"), folder.path().join("key.pub"));
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", text(&private)]);
    openssl(&["pkey", "-in", text(&private), "-pubout", "-out", text(&public)]);
    let key = file::load_private(&private).unwrap();
    assert_eq!(file::load_public(&public).unwrap(), key.public_key());
}

#[test]
fn keys_of_other_algorithms_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for algorithm in ["x25519", "ed448", "rsa"] {
        let path = folder.path().join(algorithm);
        openssl(&["genpkey", "-algorithm", algorithm, "-out", text(&path)]);
        let error = file::load_private(&path).unwrap_err();
        assert!(error.to_string().contains("not an unencrypted Ed25519 key"), "{error}");
    }
}

#[test]
fn hash_is_that_of_the_der_form_which_openssl_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (private, der) = (folder.path().join("key"), folder.path().join("der"));
    let key = PrivateKey::from_seed([9; 32]);
    file::create_private(&private, &key).unwrap();
    openssl(&["pkey", "-in", text(&private), "-pubout", "-outform", "DER", "-out", text(&der)]);
    let digest = openssl(&["dgst", "-sha256", "-binary", text(&der)]);
    assert_eq!(key.public_key().hash().to_bytes(), digest[..20]);
}

#[test]
fn signatures_are_exchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file_of = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let message = file_of("message", b"from here to there");
    let key = PrivateKey::from_seed([1; 32]);
    let private = file_of("key", key.to_pkcs8_pem().as_bytes());
    let public = file_of("key.pub", key.public_key().to_spki_pem().as_bytes());

    let signed = ["pkeyutl", "-sign", "-rawin", "-inkey", text(&private), "-in", text(&message)];
    let theirs: [u8; 64] = openssl(&signed).try_into().unwrap();
    let public_key = PublicKey::from_spki_pem(fs::read(&public).unwrap()).unwrap();
    public_key.verify(b"from here to there", &Signature::from_bytes(theirs)).unwrap();

    let ours = file_of("signature", &key.sign(b"from here to there").to_bytes());
    let mut verify = vec!["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", text(&public)];
    verify.extend(["-in", text(&message), "-sigfile", text(&ours)]);
    openssl(&verify);
}
