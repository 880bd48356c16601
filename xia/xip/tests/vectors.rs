//! Headers and addresses against packets that other implementations have sent.
//!
//! Sources: `tests/vectors/xia/README.md`.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail with the test")]

#[path = "../../../tests/vectors/read.rs"]
mod read;

use read::{hex, pcap};
use weft_xip::numbers::ETHERTYPE_XIP;
use weft_xip::{Address, LastNode, XipPacket, XipRepr};

macro_rules! vector {
    ($name:literal) => {
        concat!("../../../tests/vectors/xia/", $name)
    };
}

/// Reads a packet, and demands that writing what was read gives the same bytes.
fn parse_and_emit(bytes: &[u8]) -> (XipRepr, Vec<u8>) {
    let packet = XipPacket::new_checked(bytes).unwrap();
    let repr = XipRepr::parse(&packet);
    let mut emitted = vec![0xee; repr.buffer_len()];
    repr.emit(&mut emitted).unwrap();
    emitted.extend_from_slice(packet.payload());
    assert_eq!(emitted, packet.as_bytes());
    (repr, packet.payload().to_vec())
}

/// What a vector must mean: the whole header and the payload.
struct Expected {
    hop_limit: u8,
    last_node: LastNode,
    destination: String,
    source: String,
    payload: &'static [u8],
}

fn check(bytes: &[u8], expected: &Expected) {
    let (repr, payload) = parse_and_emit(bytes);
    assert_eq!(repr.next_header, 0);
    assert_eq!(repr.hop_limit, expected.hop_limit);
    assert_eq!(repr.last_node, expected.last_node);
    assert_eq!(repr.destination.to_string(), expected.destination);
    assert_eq!(repr.source.map(|source| source.to_string()), Some(expected.source.clone()));
    assert_eq!(payload, expected.payload);
    assert_eq!(expected.destination.parse(), Ok(repr.destination));
}

const U4ID_CLIENT: &str = "u4id-c0a8386535d50000000000000000000000000000";
const U4ID_SERVER: &str = "u4id-c0a8396541d00000000000000000000000000000";
const XDP_CLIENT: &str = "xdp-007f4e38904e83634acc7e1340ef7665e3f1f57a";
const XDP_SERVER: &str = "xdp-007f4e38904e83634acc7e1340ef7665e3f1f57b";
const HID_SERVER: &str = "hid-0d3ae8ed035d21f247d86151a9d7e2d638dd2b72";

#[test]
fn xdp_over_ethernet() {
    let expected = Expected {
        hop_limit: 128,
        last_node: LastNode::Entry,
        destination: format!(
            "hid-9463bb7493ca3ecc77523c709423e4ca91cef653-1:{U4ID_CLIENT}-2:{XDP_CLIENT}-0"
        ),
        source: format!("{U4ID_SERVER}-1:{HID_SERVER}-2:{XDP_SERVER}-0"),
        payload: b"Hello, world!",
    };
    check(&hex(include_str!(vector!("xdp-over-ethernet.hex"))), &expected);
}

#[test]
fn xdp_inside_udp() {
    let expected = Expected {
        hop_limit: 128,
        last_node: LastNode::Entry,
        destination: format!("{U4ID_SERVER}-1:{HID_SERVER}-2:{XDP_SERVER}-0"),
        source: format!("u4id-0a00020f41d90000000000000000000000000000-1:{XDP_CLIENT}-0"),
        payload: b"Hello, world!",
    };
    let bytes = hex(include_str!(vector!("xdp-over-u4id.hex")));
    check(&bytes[20 + 8..], &expected);
}

/// The text of the destination is what Wireshark shows for this packet.
#[test]
fn chosen_entry_edge_is_in_the_last_row() {
    let expected = Expected {
        hop_limit: 127,
        last_node: LastNode::Row(0),
        destination: format!("!{U4ID_SERVER}-1***:{HID_SERVER}-2***:{XDP_SERVER}->0***"),
        source: format!("u4id-0a00020f41d90000000000000000000000000000-1:{XDP_CLIENT}-0"),
        payload: b"Hello, world!",
    };
    check(&hex(include_str!(vector!("xdp-after-u4id.hex"))), &expected);
}

#[test]
fn xdp_between_two_hosts() {
    let expected = Expected {
        hop_limit: 128,
        last_node: LastNode::Entry,
        destination: "hid-c5e995fe39f9e37fad9437c1b481a33e710d9571-1:\
                      xdp-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb01-0"
            .into(),
        source: "hid-3abc8eadef8bc3e2c95bfb5b2f233c97fc629d69-1:\
                 xdp-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa01-0"
            .into(),
        payload: b"hello xdp",
    };
    check(&hex(include_str!(vector!("xdp-two-hosts.hex"))), &expected);
}

#[test]
fn fallback_with_source() {
    let destination = "hid-1111111111111111111111111111111111111111-1:\
                       xdp-2222222222222222222222222222222222222222-10";
    let source = "hid-3333333333333333333333333333333333333333-1:\
                  xdp-4444444444444444444444444444444444444444-0";
    let expected = Expected {
        hop_limit: 128,
        last_node: LastNode::Entry,
        destination: destination.into(),
        source: source.into(),
        payload: b"hi",
    };
    let bytes = hex(include_str!(vector!("fallback.hex")));
    check(&bytes, &expected);

    let path = destination.parse::<Address>().unwrap().rows().to_vec();
    let built = Address::fallback(&[path[0].xid, path[1].xid]).unwrap();
    let repr = XipRepr::new(built, Some(source.parse().unwrap()), 2);
    let mut emitted = vec![0; repr.buffer_len()];
    repr.emit(&mut emitted).unwrap();
    assert_eq!(emitted, bytes[..bytes.len() - 2]);
}

/// The forms of the performance experiments: all but VIA have several sinks.
#[test]
fn net_eval_forms() {
    const GOAL: &str = "ad-0a80000000000000000000000000000000000000";
    let unknown = |number: u32| format!("ad-000102030405060708090a0b0c0d0e0f{number:08x}");
    let forms = [
        (include_str!(vector!("net-eval-fb0.hex")), format!("{GOAL}-0"), 1),
        (include_str!(vector!("net-eval-fb1.hex")), format!("{}:{GOAL}-01", unknown(1)), 2),
        (
            include_str!(vector!("net-eval-fb2.hex")),
            format!("{}:{}:{GOAL}-012", unknown(1), unknown(2)),
            3,
        ),
        (
            include_str!(vector!("net-eval-fb3.hex")),
            format!("{}:{}:{}:{GOAL}-0123", unknown(1), unknown(2), unknown(3)),
            4,
        ),
        (include_str!(vector!("net-eval-via.hex")), format!("{}-1:{GOAL}-0", unknown(1)), 1),
    ];
    for (text, destination, sinks) in forms {
        let (repr, payload) = parse_and_emit(&hex(text));
        assert_eq!(repr.destination.to_string(), destination);
        assert_eq!(repr.destination.sinks().count(), sinks, "{destination}");
        assert_eq!((repr.hop_limit, repr.source), (255, None));
        assert_eq!(payload, [0, 1, 0, 2]);
    }
}

/// XIP packets of a capture, those inside IPv4 and UDP included.
fn xip_packets(file: &[u8]) -> Vec<Vec<u8>> {
    const IP_AND_UDP: usize = 20 + 8;
    let mut packets = Vec::new();
    for frame in pcap(file) {
        match frame.ethertype() {
            ETHERTYPE_XIP => packets.push(frame.payload().to_vec()),
            0x0800 => packets.push(frame.payload()[IP_AND_UDP..].to_vec()),
            _ => {}
        }
    }
    packets
}

#[test]
fn every_packet_of_the_captures_parses_and_is_written_back() {
    let captures: [(&[u8], usize); 3] = [
        (include_bytes!(vector!("xia-u4id-2014.pcap")), 3),
        (include_bytes!(vector!("xia-serval-2014.pcap")), 22),
        (include_bytes!(vector!("xia-two-hosts.pcap")), 10),
    ];
    for (file, count) in captures {
        let packets = xip_packets(file);
        assert_eq!(packets.len(), count);
        for packet in packets {
            let (repr, _) = parse_and_emit(&packet);
            assert_eq!(repr.destination.without_marks().check(), Ok(repr.destination.len()));
            let source = repr.source.unwrap();
            assert_eq!(source.check(), Ok(source.len()));
            assert_eq!(repr.destination.to_string().parse(), Ok(repr.destination));
        }
    }
}
