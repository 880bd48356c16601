//! The packets: what is the same in all of one form.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.1; AltraMayor/net-eval for the identifiers that nobody knows,
//! and the fields of IP packets.

use weft_wire::{ETHERNET_HEADER_LEN, EtherType, EthernetRepr, MacAddr};
use weft_xip::dag::ROW_LEN;
use weft_xip::header::FIXED_HEADER_LEN;
use weft_xip::numbers::ETHERTYPE_XIP;
use weft_xip::xid::XID_LEN;
use weft_xip::{Address, Edge, Row, Xid, XidType, XipRepr};

/// Where in an XID the identifier is.
const IDENTIFIER: usize = 4;

/// A form of packets.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Ord, Eq)]
pub(in crate::bench) enum Form {
    /// XIP: entry → this many domains that nobody knows, in order, and the destination at last.
    Fallback(usize),
    /// XIP: entry → the router's own domain → the destination.
    Via,
    /// IPv4.
    Ip,
}

impl Form {
    /// The most edges that lead on from a node of its addresses.
    pub(super) fn edges(self) -> usize {
        match self {
            Self::Fallback(unknown) => unknown + 1,
            Self::Via | Self::Ip => 1,
        }
    }
}

/// A frame that all packets of a form are made from.
pub(in crate::bench) struct Template {
    /// The program that makes them.
    pub(super) program: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Where the first bytes of the destination go.
    pub(super) identifier_at: usize,
    /// Where the first bytes of the first edge's identifier go, if a flood varies them.
    pub(super) flood_at: usize,
    /// Where the entry node's edges are, and what they are before a router has marked any.
    pub(super) edges_at: usize,
    pub(super) edges: [u8; 4],
}

/// The destination of a flood that has only one: a domain that nobody knows.
pub(super) fn nobody() -> Xid {
    let mut id = [0; 20];
    id[..4].copy_from_slice(&[0, 1, 2, 3]);
    Xid::new(XidType::AD, id)
}

/// The domain number `index` (from 1) that nobody knows.
pub(super) fn unknown(index: u8) -> Xid {
    let mut id: [u8; 20] = std::array::from_fn(|byte| byte as u8);
    id[16..].copy_from_slice(&[0, 0, 0, index]);
    Xid::new(XidType::AD, id)
}

/// The XIP address of a form; `local` is the router's domain.
pub(super) fn address(form: Form, local: Xid, destination: Xid) -> Address {
    let empty = [Edge::EMPTY; 4];
    let rows: Vec<Row> = match form {
        Form::Fallback(count) => {
            let unknown = (1..=count as u8).map(unknown).chain([destination]);
            let mut rows: Vec<_> = unknown.map(|xid| Row { xid, edges: empty }).collect();
            for (target, edge) in (0u8..).zip(&mut rows[count].edges).take(count + 1) {
                *edge = Edge::to(target);
            }
            rows
        }
        _ => {
            let [mut first, mut last] = [local, destination].map(|xid| Row { xid, edges: empty });
            first.edges[0] = Edge::to(1);
            last.edges[0] = Edge::to(0);
            vec![first, last]
        }
    };
    Address::from_rows(&rows).expect("there are one to four rows")
}

impl Template {
    /// Frames of `len` bytes, link header included.
    pub(in crate::bench) fn new(form: Form, local: Xid, len: usize) -> Self {
        match form {
            Form::Ip => Self::ip(len),
            _ => Self::xip(&address(form, local, Xid::NAT), len),
        }
    }

    fn xip(address: &Address, len: usize) -> Self {
        let mut bytes = framed(len, EtherType(ETHERTYPE_XIP));
        let header_len = FIXED_HEADER_LEN + address.wire_len();
        let payload_len = len.saturating_sub(ETHERNET_HEADER_LEN + header_len);
        let mut header = XipRepr::new(*address, None, payload_len as u16);
        header.hop_limit = 255;
        header
            .emit(&mut bytes[ETHERNET_HEADER_LEN..])
            .expect("who chooses the length sees to it that headers fit");
        let last = ETHERNET_HEADER_LEN + FIXED_HEADER_LEN + (address.len() - 1) * ROW_LEN;
        let edges_at = last + XID_LEN;
        let edges = bytes[edges_at..].first_chunk().copied().unwrap_or_default();
        // The row of the destination: its type was left out for the address to be a template.
        bytes[last..last + IDENTIFIER].copy_from_slice(&XidType::AD.0.to_be_bytes());
        let identifier_at = last + IDENTIFIER;
        let flood_at = ETHERNET_HEADER_LEN + FIXED_HEADER_LEN + IDENTIFIER;
        Self { program: "weft_xip_source", bytes, identifier_at, flood_at, edges_at, edges }
    }

    fn ip(len: usize) -> Self {
        /// Protocol 253 is for experiments (RFC 3692).
        const HEADER: [u8; 16] = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 255, 253, 0, 0, 10, 0, 0, 1];
        let mut bytes = framed(len, EtherType::IPV4);
        let header = &mut bytes[ETHERNET_HEADER_LEN..];
        let total = header.len() as u16;
        header[..HEADER.len()].copy_from_slice(&HEADER);
        header[2..4].copy_from_slice(&total.to_be_bytes());
        let program = "weft_ip_source";
        Self { program, bytes, identifier_at: 0, flood_at: 0, edges_at: 0, edges: [0; 4] }
    }
}

/// A frame with the payload of net-eval: numbers that count.
fn framed(len: usize, ethertype: EtherType) -> Vec<u8> {
    let mut bytes: Vec<u8> = (1_u16..).flat_map(u16::to_be_bytes).take(len).collect();
    let header = EthernetRepr { destination: MacAddr([0; 6]), source: MacAddr([0; 6]), ethertype };
    header.emit(&mut bytes).expect("every frame is longer than its link header");
    bytes
}

#[cfg(test)]
mod tests {
    use weft_xip::XipPacket;

    use super::*;

    #[test]
    fn templates_are_packets_whose_destination_is_in_the_last_row() {
        for (form, rows, edges) in [
            (Form::Fallback(0), 1, [0, 0x7f, 0x7f, 0x7f]),
            (Form::Fallback(3), 4, [0, 1, 2, 3]),
            (Form::Via, 2, [0, 0x7f, 0x7f, 0x7f]),
        ] {
            let mut template = Template::new(form, unknown(9), 256);
            assert_eq!(template.flood_at, ETHERNET_HEADER_LEN + FIXED_HEADER_LEN + IDENTIFIER);
            assert_eq!((template.bytes.len(), template.edges), (256, edges));
            template.bytes[template.identifier_at] = 11;
            let packet = XipPacket::new_checked(&template.bytes[ETHERNET_HEADER_LEN..]).unwrap();
            assert_eq!((packet.destination_rows(), packet.total_len()), (rows, 242));
            let last = packet.destination_xid(rows - 1).unwrap();
            assert_eq!((last.kind, last.id[0]), (XidType::AD, 11));
            assert!(packet.destination().is_valid(), "{form:?}");
        }
    }
}
