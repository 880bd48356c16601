//! XIP packets: what passes the receive checks can be read, written back and walked to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_xip::numbers::MAX_NODES;
use weft_xip::{LastNode, XipPacket, XipRepr};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = XipPacket::new_checked(bytes) else { return };
    write_back(&packet);
    for row in 0..packet.destination_rows() {
        assert_eq!(packet.is_sink(row), packet.destination().is_sink(row));
    }
    for edge in 0..4 {
        walk(bytes.to_vec(), edge);
    }
});

/// The header that was read, written again, is the same bytes.
fn write_back(packet: &XipPacket<&[u8]>) {
    let repr = XipRepr::parse(packet);
    let mut header = vec![0; repr.buffer_len()];
    repr.emit(&mut header).expect("a header that was read can be written");
    assert_eq!(header, packet.as_bytes()[..header.len()]);
    assert_eq!(repr.destination.without_marks().without_marks(), repr.destination.without_marks());
    let _ = repr.destination.single_sink();
}

/// Takes edge number `edge`, or the last there is, at every node. The walk has to end, and the
/// packet to remain one.
fn walk(bytes: Vec<u8>, edge: usize) {
    let mut packet = XipPacket::new_checked(bytes).expect("checked before");
    for step in 0.. {
        assert!(step <= MAX_NODES, "more steps than nodes");
        let Ok(targets) = packet.candidate_edges() else { break };
        let edge = edge.min(targets.len() - 1);
        assert_eq!(packet.take_edge(edge), Some(targets[edge]));
        assert_eq!(packet.last_node(), LastNode::Row(targets[edge]));
    }
    packet.set_hop_limit(0);
    packet.payload_mut().fill(0);
    XipPacket::new_checked(packet.into_inner()).expect("the changes of a forwarder break nothing");
}
