//! Files in the form of MRT: what is read is written so that the same is read again.
//!
//! Input: the bytes of a file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_bgp::mrt::{Record, Records, emit_message, emit_peers, emit_rib};

fuzz_target!(|bytes: &[u8]| {
    for (seconds, record) in Records::new(bytes).map_while(Result::ok) {
        let mut written = Vec::new();
        let is_written = match &record {
            Record::Peers(peers) => {
                emit_peers(seconds, peers, &mut written);
                // What is no UTF-8 in the name of a view is replaced by something longer.
                peers.view.len() <= 20_000
            }
            Record::Rib(rib) => emit_rib(seconds, rib, &mut written),
            Record::Message(message) => {
                emit_message(seconds, message, &mut written);
                true
            }
        };
        if is_written {
            let again: Vec<_> = Records::new(&written[..]).map_while(Result::ok).collect();
            assert_eq!(again, [(seconds, record)]);
        }
    }
});
