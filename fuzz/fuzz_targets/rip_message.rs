//! Messages of RIP and RIPng: what is read is written so that the same is read again.
//!
//! Input: a byte that says of which version and with what authentication, and the message.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use weft_rip::wire::auth::{Algorithm, Auth, Secret};
use weft_rip::wire::{Command, Entry, ng, v2};

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    let secret = || Secret::new("secret");
    let key =
        |algorithm| Auth::Keys { keys: BTreeMap::from([(1, (algorithm, secret()))]), signs: 1 };
    let auth = match kind & 7 {
        0 => Auth::Password(secret()),
        1 => key(Algorithm::Md5),
        2 => key(Algorithm::Sha1),
        3 => key(Algorithm::Sha512),
        4 => {
            let Ok(message) = ng::parse(bytes) else { return };
            let written = ng::write(message.command, &message.entries, 1400);
            let read = written.iter().map(|bytes| ng::parse(bytes).expect("it was written"));
            let read: Vec<_> = read.collect();
            if read.iter().any(|message| message.asks_for_all) {
                // A request for ::/0 alone is the one for all routes (RFC 2080 §2.4.1).
                assert_eq!(message.command, Command::Request);
                return;
            }
            let read = read.into_iter().flat_map(|message| message.entries);
            assert_eq!(read.collect::<Vec<Entry>>(), message.entries);
            return;
        }
        _ => Auth::None,
    };
    let Ok((message, _)) = v2::parse(bytes, &auth) else { return };
    let written = v2::write(message.command, &message.entries, &auth, 7);
    let read =
        written.iter().flat_map(|bytes| v2::parse(bytes, &auth).expect("it was written").0.entries);
    assert_eq!(read.collect::<Vec<Entry>>(), message.entries);
});
