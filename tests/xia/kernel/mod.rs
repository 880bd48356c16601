//! The kernel engine beside the portable one: what it does with a frame is what the portable engine does, or
//! it passes the frame on, unchanged.
//!
//! The program runs without any interface (BPF_PROG_TEST_RUN), with the decisions that are in the portable
//! engine's cache. Needs root; without it each test says so and returns.

mod passing;
mod router;

use std::collections::BTreeMap;

use weft_base::{Packet, Random};
use weft_ebpf::XdpVerdict;
use weft_port::testing::privileged;
use weft_xia_kernel::TableSizes;
use weft_xip::{Xid, XidType};

use crate::read::{Frame, pcap};
use router::{NEIGHBOURS, Router, xid};

const CAPTURE: &[u8] = include_bytes!("../../vectors/xia/xia-router-behaviour.pcap");
const FIRST_SECOND: u32 = 1_700_000_000;

/// The frames that were sent to the Linux XIA router, by their numbers.
fn probes() -> Vec<Frame> {
    let injected = |frame: &Frame| frame.microseconds == 0 && frame.seconds >= FIRST_SECOND;
    pcap(CAPTURE).into_iter().filter(injected).collect()
}

#[test]
fn probes_leave_the_kernel_as_they_leave_the_portable_engine() {
    if !privileged() {
        return;
    }
    let probes = probes();
    assert_eq!(probes.len(), 48);
    let mut router = Router::new();
    for probe in &probes {
        assert_eq!(router.check(&probe.bytes), XdpVerdict::Pass, "nothing is decided yet");
    }
    // The kernel is told of what is used again.
    probes.iter().for_each(|probe| drop(router.portable(&probe.bytes)));
    router.follow();
    let mut passed = Vec::new();
    for (number, probe) in probes.iter().enumerate() {
        let leaves = router.portable(&probe.bytes).len();
        match router.check(&probe.bytes) {
            XdpVerdict::Pass => passed.push((number, leaves)),
            _ => assert!(leaves <= 1, "probe {number}"),
        }
    }
    // Those that leave nevertheless go several ways at once, or may: zFilters.
    let leaving = passed.iter().filter(|(_, leaves)| *leaves > 0).map(|(number, _)| *number);
    assert_eq!(leaving.collect::<Vec<_>>(), [27, 28, 30]);
    let counted = router.counted();
    for name in ["forwarded", "dropped", "passed-hop-limit", "passed-malformed", "passed-sink"] {
        assert!(counted[name] > 0, "{name}: {counted:?}");
    }
}

/// What comes and goes while frames are forwarded.
const ROUTES: [(XidType, &str); 4] = [
    (
        XidType::HID,
        "neighbour hid-2222222222222222222222222222222222222222 link 02:00:00:00:00:02 interface side2",
    ),
    (
        XidType::AD,
        "route ad-0a80000000000000000000000000000000000000 via hid-2222222222222222222222222222222222222222",
    ),
    (
        XidType::AD,
        "route ad-0a80000000000000000000000000000000000000 via hid-1111111111111111111111111111111111111111",
    ),
    (XidType::AD, "local ad-000102030405060708090a0b0c0d0e0f00000001"),
];

/// Frames of all kinds, sound and broken, while decisions come and go.
#[test]
fn any_frame_is_treated_as_by_the_portable_engine_or_passed() {
    if !privileged() {
        return;
    }
    let mut router = Router::new();
    let mut random = Random::from_seed(4);
    let mut counts = BTreeMap::new();
    for step in 0..40_000 {
        let frame = frame(&mut random);
        let verdict = router.check(&frame);
        *counts.entry(format!("{verdict:?}")).or_insert(0_u32) += 1;
        // Whatever was changed, it holds for the next frame.
        if random.chance(1, 50) {
            let (kind, line) = ROUTES[random.below(ROUTES.len() as u64) as usize];
            router.change(kind, line, random.chance(1, 2));
            router.follow();
        }
        if step % 100 == 0 {
            router.follow();
        }
    }
    assert!(counts["Redirect"] > 2_500 && counts["Drop"] > 5_000, "{counts:?}");
    let tally = router.check_tally();
    assert!(tally.forwarded > 2_500 && tally.drops.len() > 1, "{tally:?}");
    let counted = router.counted();
    // No port was lost, no source is told, nothing is limited, and loopback takes all packets.
    let never = ["limited", "passed-drop", "passed-no-hop", "passed-reluctant"];
    let met = |(name, count): (&&str, &u64)| (*count > 0) != never.contains(name);
    assert!(counted.iter().all(met), "{counted:?}");
}

#[test]
fn a_neighbour_that_moves_or_is_lost_takes_its_decisions_along() {
    if !privileged() {
        return;
    }
    let mut router = Router::new();
    let frame = sound_frame(&[NEIGHBOURS[1]], 64);
    for _ in 0..2 {
        assert_eq!(router.check(&frame), XdpVerdict::Pass, "decided, and used again");
        router.follow();
    }
    assert_eq!(router.check(&frame), XdpVerdict::Redirect);
    let hid = NEIGHBOURS[1];
    let at = |mac| format!("neighbour {hid} link {mac} interface side2");
    router.change(XidType::HID, &at("02:00:00:00:00:02"), true);
    router.follow();
    // It is known that it is unknown, and nobody has to ask.
    assert_eq!(router.check(&frame), XdpVerdict::Drop);
    router.change(XidType::HID, &at("02:00:00:00:00:77"), false);
    router.follow();
    assert_eq!(router.check(&frame), XdpVerdict::Redirect);
    assert_eq!(router.kernel(&frame).1[..6], [2, 0, 0, 0, 0, 0x77]);
}

/// The working set gets into tables that are too small for all, and nothing is wrong meanwhile.
#[test]
fn full_tables_take_in_what_is_in_use() {
    if !privileged() {
        return;
    }
    let mut router = Router::with(TableSizes { decisions: [4; 4], ..TableSizes::default() });
    let unknown =
        |n: u32| Xid::new(XidType(0x9990), std::array::from_fn(|at| (n >> (at % 4 * 8)) as u8));
    for n in 0..20 {
        let frame = sound_frame(&[unknown(n), NEIGHBOURS[1]], 64);
        (0..3).for_each(|_| {
            router.check(&frame);
            router.follow();
        });
        assert!(router.offloaded() <= 4);
    }
    let frames = [100, 101].map(|n| sound_frame(&[unknown(n), NEIGHBOURS[1]], 64));
    for _ in 0..40 {
        for frame in &frames {
            router.check(frame);
            router.follow();
        }
    }
    for frame in &frames {
        assert_eq!(router.check(frame), XdpVerdict::Redirect);
    }
    assert_eq!(router.offloaded(), 4);
}

#[test]
fn a_flood_of_frames_that_would_be_passed_is_limited() {
    if !privileged() {
        return;
    }
    let mut router = Router::new();
    let new = sound_frame(&[xid("hid-9999999999999999999999999999999999999999")], 64);
    // To a socket of this node.
    let known = sound_frame(&[xid(router::KNOWN[7])], 64);
    router.check(&known);
    router.check(&known);
    router.follow();
    router.limit_passing(Some(1000));
    let passed = (0..20_000).filter(|_| router.kernel(&new).0 == XdpVerdict::Pass).count() as u64;
    // One more for each second that it took.
    assert!((1000..2000).contains(&passed), "{passed}");
    assert_eq!(router.counted()["limited"], 20_000 - passed);
    for _ in 0..10_000 {
        assert_eq!(router.kernel(&known).0, XdpVerdict::Pass);
    }
    assert_eq!(router.counted()["passed-known"], 10_000);
    router.limit_passing(None);
    assert_eq!(router.kernel(&new).0, XdpVerdict::Pass);
}

#[test]
fn packets_whose_sources_are_to_be_told_are_passed_on_up_to_the_limit() {
    if !privileged() {
        return;
    }
    let mut router = Router::with_errors();
    let unreachable = sound_frame(&[xid("hid-9999999999999999999999999999999999999999")], 64);
    for _ in 0..2 {
        assert_eq!(router.check(&unreachable), XdpVerdict::Pass, "decided, and used again");
        router.follow();
    }
    router.limit_passing(Some(100));
    let passed = (0..5000).filter(|_| router.kernel(&unreachable).0 == XdpVerdict::Pass).count();
    // One more for each second that it took.
    assert!((100..1000).contains(&passed), "{passed}");
    let counted = router.counted();
    assert_eq!((counted["passed-drop"], counted["limited"]), (passed as u64, 5000 - passed as u64));
    assert_eq!((counted["passed-known"], counted["dropped"]), (0, 0));
}

/// A frame to the first row, and if that leads nowhere to the next one, and so on.
fn sound_frame(xids: &[Xid], hop_limit: u8) -> Vec<u8> {
    let count = xids.len() as u8;
    let mut bytes = router::HEADER.to_vec();
    bytes.extend([1, 0, 0, 0, hop_limit, count, 0, 0x7e]);
    for (row, xid) in (1..).zip(xids) {
        bytes.extend(xid.to_bytes());
        let edge = |slot: u8| if row == count && slot < count { slot } else { 0x7f };
        bytes.extend([0, 1, 2, 3].map(edge));
    }
    bytes
}

/// Some frame: mostly a sound one, with an address of up to nine rows.
fn frame(random: &mut Random) -> Vec<u8> {
    let rows =
        1 + random.below(4) as u8 + if random.chance(1, 4) { random.below(6) as u8 } else { 0 };
    let source_rows = if random.chance(1, 6) { random.below(11) as u8 } else { 0 };
    let payload = random.below(40) as u8;
    let hop_limit = [64, 64, 64, 1, 0][random.below(5) as usize];
    let last_node = match random.below(8) {
        0 => random.below(12) as u8,
        _ => 0x7e,
    };
    let mut bytes = router::HEADER.to_vec();
    if random.chance(1, 40) {
        bytes[5] ^= 1;
    }
    let version = if random.chance(1, 60) { 2 } else { 1 };
    bytes.extend([version, 0, 0, payload, hop_limit, rows, source_rows, last_node]);
    for row in 0..rows {
        bytes.extend(any_xid(random).to_bytes());
        bytes.extend(edges(random, row, rows));
    }
    bytes.resize(bytes.len() + usize::from(source_rows) * 28 + usize::from(payload), 0x5a);
    match random.below(20) {
        // Padding of the link, or bytes that were cut off.
        0..4 => bytes.resize(bytes.len() + 1 + random.below(30) as usize, 0),
        4 => bytes.truncate(15.max(bytes.len() - 1 - random.below(30) as usize)),
        5 => bytes[14 + random.below(40).min(35) as usize] ^= 1 << random.below(8),
        6 if payload > 0 => {
            // Longer than the link takes.
            let at = router::HEADER.len() + 2;
            let before = usize::from(payload);
            bytes.resize(bytes.len() + 2000 - before, 0);
            bytes[at..at + 2].copy_from_slice(&2000_u16.to_be_bytes());
        }
        _ => {}
    }
    bytes
}

/// Edges of a row, mostly to higher rows and without gaps; of the last row, those of the entry node.
fn edges(random: &mut Random, row: u8, rows: u8) -> [u8; 4] {
    let mut edges = [0x7f; 4];
    let is_last = row + 1 == rows;
    let lowest = if is_last { 0 } else { row + 1 };
    let count = if is_last { 1 + random.below(4) } else { random.below(4) } as usize;
    for edge in &mut edges[..count] {
        *edge = lowest + random.below(u64::from(rows - lowest)) as u8;
    }
    if random.chance(1, 30) {
        edges[random.below(4) as usize] = random.below(256) as u8;
    }
    edges
}

fn any_xid(random: &mut Random) -> Xid {
    let known = router::KNOWN;
    match random.below(known.len() as u64 + 3) as usize {
        place if place < known.len() => xid(known[place]),
        place => Xid::new(XidType(0x9990 + place as u32), [7; 20]),
    }
}

/// Only for the type: packets come in on the first side.
fn received(bytes: &[u8]) -> Packet {
    let mut packet = Packet::from_slice(bytes);
    packet.meta.port = router::SIDES[0];
    packet
}
