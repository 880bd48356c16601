//! Properties of headers and addresses over random values.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail with the test")]

use proptest::collection::vec;
use proptest::prelude::*;
use weft_xip::dag::{Edges, NO_EDGES};
use weft_xip::numbers::{MAX_FAN_OUT, MAX_NODES};
use weft_xip::{
    Address, DagBuilder, Edge, EdgesError, LastNode, Row, Xid, XidType, XipPacket, XipRepr,
};

fn any_xid() -> impl Strategy<Value = Xid> {
    (prop_oneof![0u32..0x30, any::<u32>()], any::<[u8; 20]>())
        .prop_map(|(kind, id)| Xid::new(XidType(kind), id))
}

/// A node: any XID but nat.
fn node() -> impl Strategy<Value = Xid> {
    any_xid().prop_filter("nat is no node", |xid| !xid.kind.is_nat())
}

fn rows(edge: impl Strategy<Value = u8>) -> impl Strategy<Value = Vec<Row>> {
    let edges = vec(edge, MAX_FAN_OUT);
    let row = (any_xid(), edges).prop_map(|(xid, bytes)| {
        let edges: Edges = std::array::from_fn(|slot| Edge::from_byte(bytes[slot]));
        Row { xid, edges }
    });
    vec(row, 1..=MAX_NODES)
}

/// Any bytes in the rows.
fn any_address() -> impl Strategy<Value = Address> {
    rows(any::<u8>()).prop_map(|rows| Address::from_rows(&rows).unwrap())
}

/// Edges that have a text: to rows below 36 or empty, chosen or not.
fn writable_address() -> impl Strategy<Value = Address> {
    let edge = (prop_oneof![0u8..36, Just(0x7f)], any::<bool>());
    rows(edge.prop_map(|(edge, chosen)| if chosen { edge | 0x80 } else { edge }))
        .prop_map(|rows| Address::from_rows(&rows).unwrap())
}

/// Sound graphs of every shape: each node gets an edge from an earlier one, then more are tried.
fn sound_address() -> impl Strategy<Value = Address> {
    let plan = (vec(node(), 1..=MAX_NODES), vec((0..MAX_NODES, 0..MAX_NODES), 0..40));
    (plan, vec(any::<prop::sample::Index>(), MAX_NODES)).prop_filter_map(
        "a node got no edge",
        |((xids, extra), parents)| {
            let mut dag = DagBuilder::new();
            let nodes: Vec<_> = xids.iter().map(|xid| dag.node(*xid).unwrap()).collect();
            for to in 0..nodes.len() {
                match parents[to].index(to + 1) {
                    0 => dag.entry(nodes[to]).map(|_| ()).ok()?,
                    from => dag.edge(nodes[from - 1], nodes[to]).map(|_| ()).ok()?,
                }
            }
            for (from, to) in extra.into_iter().filter(|(from, to)| from < to) {
                if to < nodes.len() {
                    // A full node takes no more; the graph is sound without the edge.
                    let _ = dag.edge(nodes[from], nodes[to]);
                }
            }
            Some(dag.build().unwrap())
        },
    )
}

fn any_repr() -> impl Strategy<Value = XipRepr> {
    let fixed = (any::<u8>(), any::<u8>(), any::<prop::sample::Index>(), 0u16..300);
    (fixed, any_address(), prop::option::of(any_address())).prop_map(
        |((next_header, hop_limit, last_node, payload_len), destination, source)| {
            let last_node = match last_node.index(destination.len() + 1) {
                0 => LastNode::Entry,
                row => LastNode::Row(row as u8 - 1),
            };
            XipRepr { next_header, payload_len, hop_limit, last_node, destination, source }
        },
    )
}

fn packet_of(repr: &XipRepr) -> Vec<u8> {
    let mut bytes = vec![0xee; repr.buffer_len() + usize::from(repr.payload_len)];
    repr.emit(&mut bytes).unwrap();
    bytes
}

/// Calls everything a packet offers; what it says is the business of other tests.
fn use_packet(bytes: &[u8]) {
    let Ok(mut packet) = XipPacket::new_checked(bytes.to_vec()) else { return };
    let repr = XipRepr::parse(&packet);
    let (text, back) = (repr.destination.to_string(), packet_of(&repr));
    assert!(text.len() <= MAX_NODES * 64);
    assert_eq!(back[..repr.buffer_len()], packet.as_bytes()[..repr.buffer_len()]);
    let _ = (repr.destination.check(), repr.destination.single_sink());
    for step in 0..=MAX_NODES {
        let Ok(targets) = packet.candidate_edges() else { break };
        assert!(step < MAX_NODES, "a walk took more steps than there are nodes");
        let edge = targets.len() - 1;
        assert_eq!(packet.take_edge(edge), Some(targets[edge]));
        assert_eq!(packet.last_node(), LastNode::Row(targets[edge]));
    }
    for edge in 0..6 {
        packet.mark_edge(edge);
    }
    packet.set_hop_limit(0);
    packet.payload_mut().fill(0);
    assert!(XipPacket::new_checked(packet.into_inner()).is_ok());
}

proptest! {
    #[test]
    fn parse_of_emit_is_the_header(repr in any_repr(), padding in 0usize..50) {
        let mut bytes = packet_of(&repr);
        let len = bytes.len();
        bytes.resize(len + padding, 0);
        let packet = XipPacket::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(XipRepr::parse(&packet), repr);
        prop_assert_eq!(packet.total_len(), len);
        prop_assert_eq!(packet.header_len(), repr.buffer_len());
        prop_assert_eq!(packet.payload().len(), usize::from(repr.payload_len));
    }

    #[test]
    fn a_packet_cut_anywhere_is_an_error(repr in any_repr()) {
        let bytes = packet_of(&repr);
        for len in 0..bytes.len() {
            prop_assert!(XipPacket::new_checked(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn a_header_is_not_written_into_a_shorter_buffer(repr in any_repr(), missing in 1usize..600) {
        let mut bytes = vec![0xee; repr.buffer_len().saturating_sub(missing)];
        prop_assert!(repr.emit(&mut bytes).is_err());
        prop_assert!(bytes.iter().all(|byte| *byte == 0xee));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..700)) {
        use_packet(&bytes);
    }

    /// Bytes that mostly pass the receive checks.
    #[test]
    fn arbitrary_rows_never_panic(
        (rows, source_rows, last_node) in (1u8..=9, 0u8..=9, prop_oneof![Just(0x7e), 0u8..9]),
        rest in vec(prop_oneof![3 => 0u8..10, 1 => Just(0x7fu8), 1 => any::<u8>()], 504),
    ) {
        let mut bytes = vec![1, 0, 0, 0, 64, rows, source_rows, last_node];
        bytes.extend(rest);
        use_packet(&bytes);
    }

    #[test]
    fn bytes_of_an_address_lead_back_to_it(address in any_address()) {
        let mut bytes = vec![0; address.wire_len()];
        prop_assert_eq!(address.emit(&mut bytes), Some(bytes.len()));
        prop_assert_eq!(Address::from_bytes(&bytes), Ok(address));
        bytes.pop();
        prop_assert_eq!(address.emit(&mut bytes), None);
        prop_assert!(Address::from_bytes(&bytes).is_err());
    }

    #[test]
    fn text_of_an_address_leads_back_to_it(address in writable_address()) {
        prop_assert_eq!(address.to_string().parse(), Ok(address));
        prop_assert_eq!(format!("{address:#}").parse(), Ok(address));
        prop_assert_eq!(address.to_string().to_uppercase().replace("0X", "0x").parse(), Ok(address));
    }

    #[test]
    fn text_of_a_valid_address_cut_anywhere_is_another_or_none(address in sound_address()) {
        let text = address.to_string();
        for len in 0..text.len() {
            prop_assert_ne!(text[..len].parse(), Ok(address));
        }
    }

    #[test]
    fn text_of_an_xid_leads_back_to_it_and_cut_anywhere_is_an_error(xid in any_xid()) {
        let text = xid.to_string();
        prop_assert_eq!(text.parse(), Ok(xid));
        for len in 0..text.len() {
            prop_assert!(text[..len].parse::<Xid>().is_err());
        }
    }

    #[test]
    fn errors_are_at_a_character_of_the_text(text in prop_oneof![".*", "[hidx0-9a-f:>*!\n-]{0,120}"]) {
        if let Err(error) = text.parse::<Address>() {
            prop_assert!(text.is_char_boundary(error.at));
        }
    }

    #[test]
    fn a_byte_changed_in_a_text_never_panics(
        address in sound_address(),
        place in any::<prop::sample::Index>(),
        new in any::<char>(),
    ) {
        let mut text: Vec<char> = address.to_string().chars().collect();
        let place = place.index(text.len());
        text[place] = new;
        let text: String = text.into_iter().collect();
        if let Ok(changed) = text.parse::<Address>() {
            prop_assert_eq!(changed.to_string().parse(), Ok(changed));
        }
    }

    #[test]
    fn built_addresses_pass_the_check(address in sound_address()) {
        prop_assert_eq!(address.check(), Ok(address.len()));
        let sinks = address.sinks().count();
        prop_assert!(sinks >= 1);
        prop_assert_eq!(address.single_sink().is_ok(), sinks == 1);
    }

    #[test]
    fn named_forms_pass_the_check_and_end_at_the_last(path in vec(node(), 1..=MAX_NODES)) {
        for build in [Address::scoping, Address::fallback, Address::refinement] {
            let address = build(&path).unwrap();
            prop_assert_eq!(address.check(), Ok(path.len()));
            prop_assert_eq!(address.single_sink(), Ok(path[path.len() - 1]));
            prop_assert!(address.rows().iter().map(|row| &row.xid).eq(&path));
        }
    }

    /// The check of one row never refuses what the check of the whole address accepts.
    #[test]
    fn a_valid_address_has_candidates_at_every_node_but_its_sinks(address in sound_address()) {
        prop_assert!(address.candidate_edges(LastNode::Entry).is_ok());
        for row in 0..address.len() {
            let candidates = address.candidate_edges(LastNode::Row(row as u8));
            if address.is_sink(row) {
                prop_assert_eq!(candidates, Err(EdgesError::AtSink));
            } else {
                prop_assert!(candidates.unwrap().iter().all(|target| usize::from(*target) > row));
            }
        }
    }

    #[test]
    fn packets_and_addresses_agree_about_candidates(repr in any_repr()) {
        let bytes = packet_of(&repr);
        let packet = XipPacket::new_checked(&bytes[..]).unwrap();
        let candidates = repr.destination.candidate_edges(repr.last_node);
        prop_assert_eq!(packet.candidate_edges(), candidates);
        for row in 0..=repr.destination.len() {
            prop_assert_eq!(packet.is_sink(row), repr.destination.is_sink(row));
            prop_assert_eq!(packet.destination_xid(row), repr.destination.row(row).map(|r| r.xid));
        }
        let of_sink = repr.destination.edges(LastNode::Row(repr.destination.len() as u8 - 1));
        prop_assert_eq!(of_sink, Some(NO_EDGES));
    }

    #[test]
    fn marks_are_all_that_a_walk_leaves(address in sound_address(), choices in vec(0usize..4, 9)) {
        let mut packet = XipPacket::new_checked(packet_of(&XipRepr::new(address, None, 0))).unwrap();
        for choice in choices {
            let Ok(targets) = packet.candidate_edges() else { break };
            packet.take_edge(choice % targets.len()).unwrap();
        }
        let LastNode::Row(last) = packet.last_node() else { panic!("no step was taken") };
        prop_assert!(address.is_sink(usize::from(last)));
        prop_assert_eq!(packet.destination().without_marks(), address);
        prop_assert!(!packet.destination().is_valid());
    }
}
