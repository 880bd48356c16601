//! The echo responder: answers datagrams to a well-known XDP identifier with their own payload.
//!
//! XIA has no ICMP; `weft xia ping` sends to this sink. The identifier is a name, not a key hash:
//! whoever can reach a node may ask whether it is there. A responder never answers another one, so
//! that a forged source cannot set two of them against each other for ever.

use weft_base::Packet;

use crate::dag::Address;
use crate::header::{XipPacket, XipRepr};
use crate::{Xid, XidType};

/// The sink of every node's echo responder: the ASCII text `weft echo responder`, padded with zeros.
pub const ECHO_SINK: Xid = Xid::new(XidType::XDP, *b"weft echo responder\0");

/// The answer to an XIP packet that asks for an echo; `None` if it has no source to answer to.
pub(super) fn answer(request: &Packet, own: &Address) -> Option<Packet> {
    let view = XipPacket::new_checked(request.bytes()).ok()?;
    let asker = view.source().filter(Address::is_valid)?;
    if asker.sinks().any(|(_, sink)| sink == ECHO_SINK) {
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
