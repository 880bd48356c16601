//! `xip hid`: the keys of hosts, and neighbours.
//!
//! A key is a file of the folder `prv`. weft's keys are Ed25519 in PKCS #8, as `weft xia id new` makes them, and their
//! HID is the hash of the whole public key (see `xia::id`). Keys that the Linux tool has made are RSA, and refused.

use std::path::{Path, PathBuf};

use serde_json::Value;
use weft_keys::{FileError, KeyError, PrivateKey, file};
use weft_xip::{Xid, XidType};

use super::context::{Context, exists, rows};
use super::lines::block;
use super::read::{exactly, expect, hardware_address, identifier};
use super::{Command, Failure, Printed};

pub(super) const COMMANDS: &[Command] = &[
    ("new", new_key),
    ("getpub", public_key),
    ("addaddr", add_address),
    ("deladdr", delete_address),
    ("showaddrs", show_addresses),
    ("addneigh", add_neighbour),
    ("delneigh", delete_neighbour),
    ("showneighs", show_neighbours),
];

pub(super) const USAGE: &str = "\
Usage: xip hid { new | getpub } NAME
       xip hid { addaddr | deladdr } NAME
       xip hid showaddrs
       xip hid { addneigh | delneigh } ID lladdr LLADDR dev DEV
       xip hid showneighs";

/// The file of the private key called `name`.
fn path(keys: &Path, words: &[&str]) -> Result<PathBuf, Failure> {
    let [name] = exactly(words)?;
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        let text = format!("Invalid name '{name}': it is a file of {}", keys.display());
        return Err(Failure::Wrong(text));
    }
    Ok(keys.join("prv").join(name))
}

fn new_key(context: &Context, words: &[&str]) -> Printed {
    let path = path(&context.keys, words)?;
    let key = PrivateKey::generate().map_err(|error| Failure::Wrong(error.to_string()))?;
    let created = file::create_private(&path, &key);
    created.map(|()| Vec::new()).map_err(|error| Failure::Wrong(error.to_string()))
}

fn load(context: &Context, words: &[&str]) -> Result<PrivateKey, Failure> {
    let key = file::load_private(&path(&context.keys, words)?);
    key.map_err(|error| {
        let hint = if is_rsa(&error) {
            "; the keys of Linux XIA are RSA, those of weft Ed25519: make one with `hid new`"
        } else {
            ""
        };
        Failure::Wrong(format!("Couldn't read private HID file: {error}{hint}"))
    })
}

/// Whether the file holds a key of the Linux tool.
fn is_rsa(error: &FileError) -> bool {
    matches!(error, FileError::Key { source: KeyError::Label { found, .. }, .. }
        if found == "RSA PRIVATE KEY")
}

/// The HID of the holder of a key.
fn name_of(key: &PrivateKey) -> Xid {
    Xid::new(XidType::HID, key.public_key().hash().to_bytes())
}

fn public_key(context: &Context, words: &[&str]) -> Printed {
    let key = load(context, words)?;
    let mut lines = vec![name_of(&key).to_string(), String::new()];
    lines.extend(key.public_key().to_spki_pem().lines().map(str::to_owned));
    Ok(lines)
}

fn add_address(context: &Context, words: &[&str]) -> Printed {
    let hid = name_of(&load(context, words)?).to_string();
    let shown = context.principal("hid")?;
    if rows(&shown, "locals").any(|local| *local == *hid) {
        return Err(exists(&format!("{hid} is local already")));
    }
    context.change(&format!("set hid local {hid}"))
}

fn delete_address(context: &Context, words: &[&str]) -> Printed {
    let hid = name_of(&load(context, words)?);
    context.change(&format!("delete hid local {hid}"))
}

fn show_addresses(context: &Context, words: &[&str]) -> Printed {
    exactly::<0>(words)?;
    let shown = context.principal("hid")?;
    let line = |local| block(format!("to {}", context.text(local)), [], "");
    Ok(rows(&shown, "locals").flat_map(line).collect())
}

/// A place of a neighbour, as the principal's statement has it, and its parts.
fn place<'a>(words: &[&'a str]) -> Result<(Xid, String, &'a str), Failure> {
    let [id, lladdr, address, dev, device] = exactly(words)?;
    expect(lladdr, "lladdr")?;
    expect(dev, "dev")?;
    Ok((identifier(XidType::HID, id)?, hardware_address(address)?.to_string(), device))
}

fn add_neighbour(context: &Context, words: &[&str]) -> Printed {
    let (hid, link, device) = place(words)?;
    context.expect_device(device)?;
    let shown = context.principal("hid")?;
    // A place that was learned is made one that stays.
    let is_same = |one: &&Value| {
        let named = one["xid"] == hid.to_string() && one["link"] == link;
        named && one["interface"] == device && one["origin"] == "configured"
    };
    if rows(&shown, "neighbours").any(|one| is_same(&one)) {
        return Err(exists(&format!("{hid} is at {link} on {device} already")));
    }
    context.change(&format!("set hid neighbour {hid} link {link} interface {device}"))
}

fn delete_neighbour(context: &Context, words: &[&str]) -> Printed {
    let (hid, link, device) = place(words)?;
    context.change(&format!("delete hid neighbour {hid} link {link} interface {device}"))
}

fn show_neighbours(context: &Context, words: &[&str]) -> Printed {
    exactly::<0>(words)?;
    let shown = context.principal("hid")?;
    let places: Vec<&Value> = rows(&shown, "neighbours").collect();
    let of_one = places.chunk_by(|one, next| one["xid"] == next["xid"]);
    Ok(of_one.flat_map(|places| neighbour(&context.text(&places[0]["xid"]), places)).collect())
}

/// A neighbour with its places.
fn neighbour(hid: &str, places: &[&Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |place: &&Value| {
        format!("lladdr: {}\tdev: {}", text(&place["link"]), text(&place["interface"]))
    };
    block(format!("to {hid}"), places.iter().map(line), "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_files_of_one_folder() {
        let keys = Path::new("/etc/xia/hid");
        assert_eq!(path(keys, &["r1"]), Ok(PathBuf::from("/etc/xia/hid/prv/r1")));
        for name in ["", "a/b", "../x", ".."] {
            assert!(path(keys, &[name]).is_err(), "{name}");
        }
        assert!(path(keys, &[]).is_err() && path(keys, &["a", "b"]).is_err());
    }

    #[test]
    fn a_place_of_a_neighbour_has_its_words() {
        let id = "00000000000000000000000000000000000000aa";
        let words = [id, "lladdr", "2:0:0:0:0:1", "dev", "eth0"];
        let (hid, link, device) = place(&words).unwrap();
        assert_eq!((link.as_str(), device), ("02:00:00:00:00:01", "eth0"));
        assert_eq!(hid.to_string(), format!("hid-{id}"));
        assert!(place(&[id, "link", "2:0:0:0:0:1", "dev", "eth0"]).is_err());
        assert!(place(&words[..3]).is_err());
    }

    #[test]
    fn places_of_a_neighbour_stand_together() {
        let places = [
            json!({ "link": "02:00:00:00:00:01", "interface": "eth0" }),
            json!({ "link": "02:00:00:00:00:02", "interface": "eth1" }),
        ];
        let lines = neighbour("hid-x", &places.iter().collect::<Vec<_>>());
        let expected = "to hid-x\nlladdr: 02:00:00:00:00:01\tdev: eth0\n\
                        lladdr: 02:00:00:00:00:02\tdev: eth1\nflags []\n";
        assert_eq!(lines.join("\n"), expected);
    }
}
