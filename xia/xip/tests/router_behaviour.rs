//! What a Linux XIA router did with 48 probes, as far as header and rows decide it.
//!
//! Source: `tests/vectors/xia/README.md`. The probes' numbers are those of
//! `xia-router-behaviour.json`.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail with the test")]

#[path = "../../../tests/vectors/read.rs"]
mod read;

use read::{Frame, pcap};
use weft_xip::{CheckError, EdgesError, HeaderError, LastNode, XipPacket};

const CAPTURE: &[u8] = include_bytes!("../../../tests/vectors/xia/xia-router-behaviour.pcap");
const PROBES: &str = include_str!("../../../tests/vectors/xia/xia-router-behaviour.json");
const FIRST_SECOND: u32 = 1_700_000_000;
const PROBE_COUNT: usize = 48;

/// A probe and what the router sent for it.
struct Probe {
    injected: Vec<u8>,
    outputs: Vec<Frame>,
}

fn probes() -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    for frame in pcap(CAPTURE) {
        let index = (frame.seconds - FIRST_SECOND) as usize;
        if frame.microseconds == 0 {
            assert_eq!(index, probes.len());
            probes.push(Probe { injected: frame.payload().to_vec(), outputs: Vec::new() });
        } else {
            probes[index].outputs.push(frame);
        }
    }
    assert_eq!(probes.len(), PROBE_COUNT);
    probes
}

#[test]
fn headers_that_the_router_dropped_fail_the_receive_checks() {
    let expected = |index| match index {
        7 => Some(HeaderError::Version(2)),
        9 => Some(HeaderError::DestinationRows(0)),
        10 => Some(HeaderError::LastNode { last_node: 5, rows: 1 }),
        18 => Some(HeaderError::DestinationRows(10)),
        19 => Some(HeaderError::PayloadCut { total_len: 136, len: 46 }),
        43 => Some(HeaderError::SourceRows(10)),
        _ => None,
    };
    for (index, probe) in probes().iter().enumerate() {
        let result = XipPacket::new_checked(&probe.injected[..]);
        assert_eq!(result.err(), expected(index), "probe {index}");
        assert!(expected(index).is_none() || probe.outputs.is_empty(), "probe {index}");
    }
}

#[test]
fn rows_that_the_router_dropped_have_no_candidate_edges() {
    let expected = |index| match index {
        11 => Some(EdgesError::AtSink),
        12 | 46 => Some(CheckError::ChosenEdge { row: 0, edge: 0 }.into()),
        14 => Some(CheckError::GapInEdges { row: 0, edge: 1 }.into()),
        15 => Some(CheckError::EdgeOutOfRange { row: 0, edge: 0, target: 3 }.into()),
        16 => Some(CheckError::NoEntry.into()),
        _ => None,
    };
    for (index, probe) in probes().iter().enumerate() {
        let Ok(packet) = XipPacket::new_checked(&probe.injected[..]) else { continue };
        assert_eq!(packet.candidate_edges().err(), expected(index), "probe {index}");
        assert!(expected(index).is_none() || probe.outputs.is_empty(), "probe {index}");
    }
}

#[test]
fn an_edge_that_leads_back_is_found_after_the_step_to_its_row() {
    let probe = &probes()[44];
    let mut packet = XipPacket::new_checked(probe.injected.clone()).unwrap();
    assert_eq!(packet.take_edge(0), Some(1));
    let error = CheckError::NotTopological { row: 1, edge: 0, target: 0 };
    assert_eq!(packet.candidate_edges(), Err(EdgesError::Malformed(error)));
    assert!(probe.outputs.is_empty());
}

/// Hop limit, last node, chosen bit and the cut after the payload explain every byte.
#[test]
fn what_the_router_sent_is_what_our_changes_make_of_the_probe() {
    let mut outputs = 0;
    for (index, probe) in probes().iter().enumerate() {
        for output in &probe.outputs {
            let sent = XipPacket::new_checked(output.payload()).unwrap();
            let mut packet = XipPacket::new_checked(probe.injected.clone()).unwrap();
            packet.set_hop_limit(packet.hop_limit() - 1);
            if sent.last_node() != packet.last_node() {
                let targets = packet.candidate_edges().unwrap();
                let edge = targets.iter().position(|row| LastNode::Row(*row) == sent.last_node());
                packet.take_edge(edge.unwrap()).unwrap();
            }
            assert_eq!(packet.as_bytes(), output.payload(), "probe {index}");
            outputs += 1;
        }
    }
    assert_eq!(outputs, 28);
}

#[test]
fn the_list_of_probes_agrees_with_the_capture() {
    let list: serde_json::Value = serde_json::from_str(PROBES).unwrap();
    for (index, probe) in probes().iter().enumerate() {
        let described: Vec<String> = probe.outputs.iter().map(describe).collect();
        let listed = list[index][2].as_array().unwrap();
        let listed: Vec<&str> = listed.iter().map(|output| output[1].as_str().unwrap()).collect();
        assert_eq!(described, listed, "probe {index}");
    }
    assert_eq!(list.as_array().unwrap().len(), PROBE_COUNT);
}

fn describe(frame: &Frame) -> String {
    let packet = XipPacket::new_checked(frame.payload()).unwrap();
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let edges: Vec<String> =
        packet.destination().rows().iter().map(|row| bytes(&row.to_bytes()[24..])).collect();
    format!(
        "XIP to {} len={} plen={} hl={} last={:02x} edges={}",
        bytes(&frame.bytes[..6]),
        frame.bytes.len(),
        packet.payload_len(),
        packet.hop_limit(),
        packet.last_node().to_byte(),
        edges.join(",")
    )
}
