//! What a Linux XIA router did with 48 probes, done by a node with all its principals.
//!
//! Source and set-up: `tests/vectors/xia/README.md`; the numbers are those of
//! `xia-router-behaviour.json`. What leaves is compared byte for byte, Ethernet header included.
//!
//! Differences, each with its test:
//! * Linux XIA follows one redirect per edge and drops packets that meet a second (33); here eight are
//!   followed, unless configured.
//! * Copies for several links leave in the order of their gateways, not of the table's entries (27).

use std::collections::BTreeMap;

use weft_base::{LinkAddress, PortId};
use weft_port::{PortInfo, PortSpec};
use weft_xip::{Address, LastNode, Xid, XipPacket, XipRepr};

use crate::driven::Driven;
use crate::read::{Frame, pcap};

const CAPTURE: &[u8] = include_bytes!("../vectors/xia/xia-router-behaviour.pcap");
const FIRST_SECOND: u32 = 1_700_000_000;
const PROBE_COUNT: usize = 48;

/// The probe that meets two redirects, from LPM to AD to HID.
const TWO_REDIRECTS: usize = 33;

/// The router of the capture. Configured neighbours take the place of learned ones. The route of XDP is ours, for a chain of two redirects; no probe takes it.
const CONFIGURATION: &str = "
    interface side1 side2;
    principal hid {
        nwp off;
        local hid-973e0e9f67ff49823eddd7e9af3004651e7f2f4b;
        neighbour hid-1111111111111111111111111111111111111111
            link 02:00:00:00:00:01 interface side1;
        neighbour hid-2222222222222222222222222222222222222222
            link 02:00:00:00:00:02 interface side2;
    }
    principal ad {
        local ad-000102030405060708090a0b0c0d0e0f00000001;
        route ad-0a80000000000000000000000000000000000000
            via hid-2222222222222222222222222222222222222222;
    }
    principal lpm {
        route 10.0.0.0/8 via hid-2222222222222222222222222222222222222222;
        route 10.1.0.0/16 via ad-0a80000000000000000000000000000000000000;
        route 10.2.0.0/16 via hid-1111111111111111111111111111111111111111;
        local 10.3.0.0/16;
    }
    principal u4id { tunnel 10.99.0.3:13781; }
    principal uni4id;
    principal xdp {
        route xdp-7777777777777777777777777777777777777777
            via ad-0a80000000000000000000000000000000000000;
    }
    principal zf {
        route zf-0000000000000000000000000000000000000001
            via hid-2222222222222222222222222222222222222222;
        route zf-0000000000000000000000000000000000000002
            via hid-1111111111111111111111111111111111111111;
        local zf-0000000000000000000000000000000000000010;
    }";

/// A probe and what the router sent for it.
struct Probe {
    injected: Frame,
    outputs: Vec<Vec<u8>>,
}

fn probes() -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    for frame in pcap(CAPTURE) {
        let index = (frame.seconds - FIRST_SECOND) as usize;
        if frame.microseconds == 0 {
            assert_eq!(index, probes.len());
            probes.push(Probe { injected: frame, outputs: Vec::new() });
        } else {
            probes[index].outputs.push(frame.bytes);
        }
    }
    assert_eq!(probes.len(), PROBE_COUNT);
    probes
}

/// The port of an interface is its side.
const SIDE_1: PortId = PortId(1);
const TUNNEL: PortId = PortId(3);

/// The router of the capture with further statements.
fn router(extra: &str) -> Driven {
    Driven::new(&format!("{CONFIGURATION} {extra}"), |spec| match spec {
        PortSpec::Ethernet { interface, ethertype: 0xc0de } => {
            let side = if interface == "side1" { 1 } else { 2 };
            let mac = [0x52, 0x54, 0, 0, 0, 0x10 + side];
            (PortId(u32::from(side)), PortInfo { mac, mtu: 1500, local: None })
        }
        PortSpec::Udp { local } => {
            assert_eq!(local.to_string(), "10.99.0.3:13781");
            (TUNNEL, PortInfo { mac: [0; 6], mtu: 1472, local: Some(*local) })
        }
        other => panic!("the node asks for {other}"),
    })
}

/// What leaves for a frame that comes in on side 1; the sender's address says on which side.
fn inject(router: &mut Driven, frame: &[u8]) -> Vec<Vec<u8>> {
    let sent = router.forward(SIDE_1, frame);
    sent.into_iter().map(|(_, packet)| packet.bytes().to_vec()).collect()
}

/// The ports by which a frame leaves that comes in on side 1.
fn sides(router: &mut Driven, frame: &[u8]) -> Vec<u32> {
    router.forward(SIDE_1, frame).into_iter().map(|(port, _)| port.0).collect()
}

/// Why a frame is dropped; none if it is not.
fn reason(router: &mut Driven, frame: &[u8]) -> Option<String> {
    let before = router.counters("drops");
    router.forward(SIDE_1, frame);
    let after = router.counters("drops");
    let mut new = after.into_iter().filter(|(name, count)| before.get(name) != Some(count));
    let reason = new.next().map(|(name, _)| name);
    assert_eq!(new.next(), None, "one packet, one reason");
    reason
}

fn sorted(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.sort();
    frames
}

#[test]
fn sends_on_byte_for_byte_what_linux_xia_sends_on() {
    let mut node = router("");
    let mut compared = 0;
    for (index, probe) in probes().into_iter().enumerate() {
        if index == TWO_REDIRECTS {
            continue;
        }
        let sent = inject(&mut node, &probe.injected.bytes);
        assert_eq!(sorted(sent), sorted(probe.outputs), "probe {index}");
        compared += 1;
    }
    assert_eq!(compared, PROBE_COUNT - 1);
}

#[test]
fn each_drop_has_its_reason() {
    let expected = |index| match index {
        6 => Some("hop-limit"),
        7 | 9 | 10 | 18 | 19 | 43 => Some("malformed-header"),
        11 => Some("already-at-sink"),
        12 | 14 | 15 | 16 | 44 | 46 => Some("malformed-edges"),
        25 => Some("not-a-sink"),
        36 | 38 | 39 => Some("malformed-xid"),
        35 | 47 => Some("unreachable"),
        _ => None,
    };
    let mut node = router("");
    for (index, probe) in probes().into_iter().enumerate() {
        if index == TWO_REDIRECTS {
            continue;
        }
        let reason = reason(&mut node, &probe.injected.bytes);
        assert_eq!(reason.as_deref(), expected(index), "probe {index}");
        assert_eq!(reason.is_some(), probe.outputs.is_empty(), "probe {index}");
    }
}

#[test]
fn xids_of_principals_that_are_not_there_are_unknown() {
    let probes = probes();
    let mut node = router("");
    node.command("principal remove lpm");
    node.command("principal remove uni4id");
    for probe in &probes[31..=35] {
        let reason = reason(&mut node, &probe.injected.bytes);
        assert_eq!(reason.as_deref(), Some("unreachable"), "frame {}: LPM", probe.injected.number);
    }
    // Linux XIA refuses the malformed uni4id; to a node without that principal it is any XID.
    assert_eq!(sides(&mut node, &probes[39].injected.bytes), [2]);
}

/// A frame from side 1, like the probes, to this address.
fn frame_to(xids: &[&str]) -> Vec<u8> {
    let xids: Vec<Xid> = xids.iter().map(|xid| xid.parse().unwrap()).collect();
    let repr = XipRepr::new(Address::scoping(&xids).unwrap(), None, 0);
    let mut frame = vec![0x52, 0x54, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 1, 0xc0, 0xde];
    let mut header = vec![0; repr.buffer_len()];
    repr.emit(&mut header).unwrap();
    frame.extend(header);
    frame
}

const NAME: &str = "xdp-7777777777777777777777777777777777777777";

#[test]
fn a_second_redirect_is_followed_unless_configured_otherwise() {
    let probe = probes().swap_remove(TWO_REDIRECTS).injected.bytes;
    for frame in [probe, frame_to(&[NAME])] {
        assert_eq!(sides(&mut router(""), &frame), [2]);
        let reason = reason(&mut router("redirects 1;"), &frame);
        assert_eq!(reason.as_deref(), Some("redirect-depth"), "dropped, as by Linux XIA");
    }
}

#[test]
fn a_uni4id_leaves_by_the_tunnel_to_its_address() {
    let frame = frame_to(&["uni4id-4500000000010000fafa0000000000000a630004", NAME]);
    let sent = router("").forward(SIDE_1, &frame);
    let [(TUNNEL, packet)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(packet.meta.link, LinkAddress::Udp("10.99.0.4:13781".parse().unwrap()));
}

#[test]
fn a_packet_for_another_u4id_leaves_in_a_datagram_without_a_link_header() {
    let there = "u4id-0a63000435d50000000000000000000000000000";
    let frame = frame_to(&[there, NAME]);
    let sent = router("").forward(SIDE_1, &frame);
    let [(TUNNEL, packet)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(packet.meta.link, LinkAddress::Udp("10.99.0.4:13781".parse().unwrap()));
    let mut expected = frame[14..].to_vec();
    expected[4] -= 1;
    assert_eq!(packet.bytes(), expected);
}

#[test]
fn a_packet_out_of_a_tunnel_goes_on_behind_the_local_u4id() {
    let here = "u4id-0a63000335d50000000000000000000000000000";
    let host = "hid-2222222222222222222222222222222222222222";
    let frame = frame_to(&[here, host, NAME]);
    let sent = router("").forward(TUNNEL, &frame[14..]);
    let [(PortId(2), packet)] = sent.as_slice() else { panic!("{sent:?}") };
    let view = XipPacket::new_checked(&packet.bytes()[14..]).unwrap();
    assert_eq!((view.last_node(), view.hop_limit()), (LastNode::Row(0), 127));
}

#[test]
fn a_frame_to_everybody_is_not_routed() {
    let mut frame = probes().swap_remove(0).injected.bytes;
    frame[..6].fill(0xff);
    let mut node = router("");
    assert!(sides(&mut node, &frame).is_empty());
    assert_eq!(node.counters("refusals"), BTreeMap::from([("broadcast-frame".to_owned(), 1)]));
}
