//! NWP messages: what is read is written as the same bytes, and a host takes any of them.
//!
//! Input: a message, without its Ethernet header.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use weft_base::{Instant, Packet, PortId, Random};
use weft_keys::PrivateKey;
use weft_port::PortInfo;
use weft_xia_hid::Hid;
use weft_xia_hid::nwp::{NwpMessage, NwpRepr};
use weft_xip::principal::{Answer, Input, Output, Principal};
use weft_xip::{Xid, XidType};

const LOCAL: Xid = Xid::new(XidType::HID, [1; 20]);
const XIP: PortId = PortId(1);
const NWP: PortId = PortId(2);
const MTU: usize = 1500;
const LIMIT: usize = 20;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = NwpMessage::new_checked(bytes) {
        let repr = NwpRepr::parse(&message);
        let mut written = vec![0; repr.buffer_len()];
        repr.emit(&mut written).expect("a message that was read can be written");
        assert_eq!(written, bytes[..written.len()]);
    }
    receive(bytes);
});

/// Gives the message to a host, as a broadcast and to it alone.
fn receive(bytes: &[u8]) {
    let (mut hid, mut out) = host();
    for destination in [[0xff; 6], [2, 0, 0, 0, 0, 1]] {
        let frame = [&destination[..], &[2, 0, 0, 0, 0, 9, 0xc0, 0xdf], bytes].concat();
        let packets = vec![Packet::from_slice(&frame)];
        hid.handle(Instant::ZERO, Input::Packets { port: NWP, packets }, &mut out);
    }
    // What was learned is asked after, and expires.
    for seconds in 1..40 {
        hid.handle(Instant::ZERO + Duration::from_secs(seconds), Input::Tick, &mut out);
    }
    for output in out.drain(..) {
        match output {
            Output::Transmit { port, packet } => {
                assert_eq!(port, NWP);
                assert!(packet.len() <= 14 + MTU);
                NwpMessage::new_checked(&packet.bytes()[14..]).expect("we send what can be read");
            }
            Output::Report { .. } => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(hid.lookup(&LOCAL, &mut Vec::new()), Answer::Through);
    assert!(hid.show()["neighbours"].as_array().is_some_and(|list| list.len() <= LIMIT));
    hid.handle(Instant::ZERO, Input::InterfaceDown { port: XIP }, &mut out);
    assert_eq!(hid.show()["neighbours"].as_array().map(Vec::len), Some(0));
}

fn host() -> (Hid, Vec<Output>) {
    let mut hid = Hid::new(Random::from_seed(1));
    let mut out = Vec::new();
    let key = PrivateKey::from_seed([1; 32]);
    hid.take_key(&key);
    let own = Xid::new(XidType::HID, key.public_key().hash().to_bytes());
    hid.set(Instant::ZERO, &["local", &own.to_string()], &mut out).expect("it is a host");
    for words in [["local", &LOCAL.to_string()], ["neighbour-limit", &LIMIT.to_string()]] {
        hid.set(Instant::ZERO, &words, &mut out).expect("the statements are right");
    }
    let info = PortInfo { mac: [2, 0, 0, 0, 0, 1], mtu: MTU, local: None };
    let up = Input::InterfaceUp { name: "eth0".into(), port: XIP, info };
    hid.handle(Instant::ZERO, up, &mut out);
    let Some(Output::OpenPort { token, .. }) = out.drain(..).next() else {
        panic!("the host asks for its port");
    };
    hid.handle(Instant::ZERO, Input::PortOpened { token, port: NWP, info }, &mut out);
    out.clear();
    (hid, out)
}
