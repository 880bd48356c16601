//! The echo responder: answers datagrams to a well-known XDP identifier with their own payload.
//!
//! XIA has no ICMP; `weft xia ping` sends to this sink. The identifier is a name, not a key hash:
//! whoever can reach a node may ask whether it is there. A responder never answers another one, so
//! that a forged source cannot set two of them against each other for ever; nor a tree, so that it cannot
//! make a copy for each of many receivers of a single packet.

use weft_base::Packet;

use crate::dag::Address;
use crate::header::{XipPacket, XipRepr};
use crate::{Xid, XidType};

/// The sink of every node's echo responder: the ASCII text `weft echo responder`, padded with zeros.
pub const ECHO_SINK: Xid = Xid::new(XidType::XDP, *b"weft echo responder\0");

/// The answer to an XIP packet that asks for an echo; `None` if it has no source to answer to, which is one
/// sender and no responder.
pub(super) fn answer(request: &Packet, own: &Address) -> Option<Packet> {
    let view = XipPacket::new_checked(request.bytes()).ok()?;
    let asker = view.source().filter(Address::is_valid)?;
    let is_tree = asker.rows().iter().any(|row| row.xid.kind == XidType::ZF);
    if is_tree || asker.sinks().any(|(_, sink)| sink == ECHO_SINK) {
        return None;
    }
    let mut reply = Packet::from_slice(view.payload());
    prepend_header(&mut reply, &XipRepr::new(asker, Some(*own), view.payload_len()))
        .then_some(reply)
}

/// Puts an XIP header in front of a payload; false if the header is not sound.
pub(super) fn prepend_header(packet: &mut Packet, repr: &XipRepr) -> bool {
    let len = repr.buffer_len();
    repr.emit(packet.push_front(len)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xid(kind: XidType) -> Xid {
        Xid::new(kind, [7; 20])
    }

    /// Whether somebody of this address is answered who asks for an echo at this one.
    fn is_answered(to: &[Xid], from: &[Xid]) -> bool {
        let (to, from) = (Address::scoping(to).unwrap(), Address::scoping(from).unwrap());
        let mut request = Packet::from_slice(b"ping");
        assert!(prepend_header(&mut request, &XipRepr::new(to, Some(from), 4)));
        answer(&request, &Address::simple(ECHO_SINK).unwrap()).is_some()
    }

    #[test]
    fn whoever_is_one_is_answered_and_a_tree_is_not() {
        let (host, tree, socket) = (xid(XidType::HID), xid(XidType::ZF), xid(XidType::XDP));
        assert!(is_answered(&[host, ECHO_SINK], &[host, socket]));
        // The multicast of a single packet must not become as many packets as there are receivers.
        assert!(!is_answered(&[host, ECHO_SINK], &[tree]));
        assert!(!is_answered(&[host, ECHO_SINK], &[tree, socket]));
        assert!(is_answered(&[tree, ECHO_SINK], &[host, socket]), "everybody there may answer one");
        assert!(!is_answered(&[host, ECHO_SINK], &[host, ECHO_SINK]));
    }
}
