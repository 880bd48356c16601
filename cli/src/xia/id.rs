//! `weft xia id …`: the keys behind the names of hosts and domains.
//!
//! Reference: Machado et al., "Linux XIA: An Interoperable Meta Network Architecture to Crowdsource
//! the Future Internet" (ANCS 2015), §3; Andersen et al., "Accountable Internet Protocol (AIP)"
//! (SIGCOMM 2008).
//!
//! The identifier of a HID or AD is the hash of its holder's public key: the first 160 bits of
//! SHA-256 over all of it, in SubjectPublicKeyInfo DER form. All of it, because whoever finds another
//! key with the same hash takes over the name. The tool of Linux XIA (AltraMayor/xiaconf) hashed only
//! the first 20 bytes of the DER form. Of these, 9 are the same in every key of that length, so that
//! a key with the same name needs nothing but the same 11 bytes at the beginning of its modulus.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use weft_keys::{FileError, KeyError, PrivateKey, PublicKey, file};
use weft_xip::{Xid, XidType};

use crate::output::{Outcome, json_lines, print_lines};

/// Commands for the keys behind names.
#[derive(Debug, Subcommand)]
pub(crate) enum IdCommand {
    /// Make a key and print the XID that is its hash
    #[command(after_help = "The private key is written to PATH with mode 0600, the public key to \
        PATH.pub; nothing is overwritten.\n\nExamples:\n  weft xia id new /etc/weft/r1.key\n  \
        weft xia id new --kind ad /etc/weft/campus.key")]
    New(NewArgs),
    /// Show the XIDs and the public key of a key file
    #[command(after_help = "Examples:\n  weft xia id show /etc/weft/r1.key\n  \
        weft xia id show --json /etc/weft/r1.key.pub")]
    Show(ShowArgs),
    /// Say whether an XID is the hash of a key
    #[command(after_help = "The exit status is 0 if it is, 1 if not.\n\nExample:\n  \
        weft xia id verify hid-<40 hex digits> r1.key.pub")]
    Verify(VerifyArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// Where the private key goes
    path: PathBuf,
    /// Of what the key is: a host or a domain
    #[arg(long, value_enum, default_value = "hid")]
    kind: Kind,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The key file, private or public
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The XID: hid-<40 hex digits> or ad-<40 hex digits>
    #[arg(value_parser = parse_key_hash)]
    xid: Xid,
    /// The key file, private or public
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The principals whose identifiers are key hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// A host.
    Hid,
    /// A domain, called administrative domain.
    Ad,
}

impl Kind {
    fn xid_type(self) -> XidType {
        match self {
            Self::Hid => XidType::HID,
            Self::Ad => XidType::AD,
        }
    }
}

/// Reads an XID whose identifier is a key hash.
fn parse_key_hash(text: &str) -> Result<Xid, String> {
    let xid: Xid = text.parse().map_err(|error| format!("{error}"))?;
    match xid.kind {
        XidType::HID | XidType::AD => Ok(xid),
        _ => {
            Err("the identifier of this principal is no hash of a key; give a hid or an ad".into())
        }
    }
}

/// The name of a key's holder.
fn xid_of(kind: XidType, key: &PublicKey) -> Xid {
    Xid::new(kind, key.hash().to_bytes())
}

pub(super) fn run(command: &IdCommand) -> Outcome {
    match command {
        IdCommand::New(args) => new(args),
        IdCommand::Show(args) => show(args),
        IdCommand::Verify(args) => verify(args),
    }
}

fn new(args: &NewArgs) -> Outcome {
    let key = PrivateKey::generate().map_err(|error| error.to_string())?;
    let public_path = with_pub(&args.path);
    create(&args.path, &public_path, &key)?;
    let xid = xid_of(args.kind.xid_type(), &key.public_key());
    if args.json {
        let value = json!({
            "xid": xid.to_string(),
            "private_key": args.path.display().to_string(),
            "public_key": public_path.display().to_string(),
        });
        print_lines(json_lines(&value))?;
    } else {
        print_lines([xid.to_string()])?;
    }
    Ok(0)
}

/// `PATH.pub`.
fn with_pub(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// Writes both files, or as a rule none of them.
fn create(path: &Path, public_path: &Path, key: &PrivateKey) -> Result<(), String> {
    // Looked at first, lest a private key is left alone for so simple a reason.
    if public_path.symlink_metadata().is_ok() {
        return Err(FileError::Exists(public_path.to_owned()).to_string());
    }
    file::create_private(path, key).map_err(|error| error.to_string())?;
    file::create_public(public_path, &key.public_key()).map_err(|error| {
        format!(
            "the private key {path} was made, the file beside it was not: {error}; \
             `weft xia id show {path}` prints its public key",
            path = path.display()
        )
    })
}

fn show(args: &ShowArgs) -> Outcome {
    let key = load(&args.path)?;
    if args.json {
        print_lines(json_lines(&shown_json(&key)))?;
    } else {
        print_lines(shown_text(&key).lines())?;
    }
    Ok(0)
}

/// The public key of a key file of either sort.
fn load(path: &Path) -> Result<PublicKey, String> {
    let is_private = |error: &FileError| {
        matches!(error, FileError::Key { source: KeyError::Label { found, .. }, .. }
            if found.ends_with("PRIVATE KEY"))
    };
    match file::load_public(path) {
        Err(error) if is_private(&error) => file::load_private(path).map(|key| key.public_key()),
        loaded => loaded,
    }
    .map_err(|error| error.to_string())
}

fn shown_json(key: &PublicKey) -> Value {
    json!({
        "hid": xid_of(XidType::HID, key).to_string(),
        "ad": xid_of(XidType::AD, key).to_string(),
        "public_key": key.to_spki_pem(),
    })
}

/// The same key names a host or a domain: its holder decides, nobody else can tell.
fn shown_text(key: &PublicKey) -> String {
    let mut text = String::new();
    for (what, kind) in [("as a host", XidType::HID), ("as a domain", XidType::AD)] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what}: {}", xid_of(kind, key));
    }
    text + &key.to_spki_pem()
}

fn verify(args: &VerifyArgs) -> Outcome {
    let key = load(&args.path)?;
    let own = xid_of(args.xid.kind, &key);
    let is_own = own == args.xid;
    if args.json {
        let value = json!({
            "verified": is_own, "xid": args.xid.to_string(), "key": own.to_string(),
        });
        print_lines(json_lines(&value))?;
    } else {
        print_lines([verdict(args.xid, own, &args.path)])?;
    }
    Ok(if is_own { 0 } else { 1 })
}

/// Whether `claimed` is `own`, the name of the key in `path`.
fn verdict(claimed: Xid, own: Xid, path: &Path) -> String {
    let path = path.display();
    if claimed == own {
        format!("{claimed} is the hash of the key in {path}")
    } else {
        format!("{claimed} is not the hash of the key in {path}, which is {own}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410 §10.1.
    const RFC_8410: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
        -----END PUBLIC KEY-----\n";
    /// `openssl pkey -pubin -outform DER | sha256sum` of that key.
    const HASH: &str = "a1e9156054e04fac899ae9f275132cdc07a5dbc4";

    fn key() -> PublicKey {
        PublicKey::from_spki_pem(RFC_8410).unwrap()
    }

    #[test]
    fn a_key_names_a_host_and_a_domain() {
        let expected = format!("as a host: hid-{HASH}\nas a domain: ad-{HASH}\n{RFC_8410}");
        assert_eq!(shown_text(&key()), expected);
        let value = shown_json(&key());
        assert_eq!(value["hid"], format!("hid-{HASH}"));
        assert_eq!(value["ad"], format!("ad-{HASH}"));
        assert_eq!(value["public_key"], RFC_8410);
    }

    #[test]
    fn only_names_that_are_key_hashes_can_be_verified() {
        assert!(parse_key_hash(&format!("hid-{HASH}")).is_ok());
        assert!(parse_key_hash(&format!("ad-{HASH}")).is_ok());
        let error = parse_key_hash(&format!("xdp-{HASH}")).unwrap_err();
        assert!(error.contains("no hash of a key"), "{error}");
        assert!(parse_key_hash("hid-12").is_err());
    }

    #[test]
    fn both_kinds_of_key_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let (private, public) = (directory.path().join("k"), directory.path().join("k.pub"));
        let key = PrivateKey::from_seed([8; 32]);
        create(&private, &public, &key).unwrap();
        assert_eq!(load(&private), Ok(key.public_key()));
        assert_eq!(load(&public), Ok(key.public_key()));
        std::fs::write(&public, "nothing").unwrap();
        assert!(load(&public).unwrap_err().contains("not a key in PEM form"));
    }

    #[test]
    fn no_private_key_is_made_beside_a_foreign_public_key() {
        let directory = tempfile::tempdir().unwrap();
        let (private, public) = (directory.path().join("k"), directory.path().join("k.pub"));
        std::fs::write(&public, "another's").unwrap();
        let error = create(&private, &public, &PrivateKey::from_seed([8; 32])).unwrap_err();
        assert!(error.contains("k.pub exists already"), "{error}");
        assert!(!private.exists());
        assert_eq!(std::fs::read(&public).unwrap(), b"another's");
    }

    #[test]
    fn verdicts_name_both_sides() {
        let own = xid_of(XidType::HID, &key());
        let path = Path::new("k.pub");
        assert_eq!(verdict(own, own, path), format!("hid-{HASH} is the hash of the key in k.pub"));
        let other = Xid::new(XidType::HID, [0; 20]);
        let text = verdict(other, own, path);
        assert!(text.ends_with(&format!("is not the hash of the key in k.pub, which is {own}")));
    }
}
