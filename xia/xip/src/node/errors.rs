//! Error messages, sent and received.
//!
//! An application is told of a message as it is told of a datagram that could not leave its own node
//! ([`Response::Rejected`](channel::Response::Rejected)): none gets one for a datagram that somebody sent to it.

use weft_base::{Instant, Packet};
use weft_runtime::Action;

use super::Node;
use super::echo::prepend_header;
use crate::channel;
use crate::error_message::{self, ERROR_SINK, ErrorKind, ErrorMessage};
use crate::forward::{Dropped, ErrorActivity};
use crate::header::{XipPacket, XipRepr};
use crate::principal::SocketId;

/// Whether a packet is an error message.
pub(super) fn is_error(packet: &Packet) -> bool {
    XipPacket::new_checked(packet.bytes()).is_ok_and(|packet| error_message::is_error(&packet))
}

impl Node {
    /// Tells sources of the packets that were dropped since.
    pub(super) fn send_errors(&mut self, now: Instant, out: &mut Vec<Action>) {
        for dropped in self.forwarder.errors().take() {
            if let Some(packet) = self.error_about(&dropped) {
                self.forwarder.errors().activity.add(ErrorActivity::Sent, 1);
                self.route_answer(now, packet, dropped.port, out);
            }
        }
    }

    fn error_about(&self, dropped: &Dropped) -> Option<Packet> {
        let own = self.settings.scope.address_of(ERROR_SINK, &self.forwarder).ok()?;
        let repr = XipRepr::new(dropped.source, Some(own), 0);
        let payload =
            error_message::about(dropped.kind, dropped.mtu, &dropped.packet, repr.buffer_len())?;
        let mut packet = Packet::from_slice(&payload);
        let repr = XipRepr { payload_len: u16::try_from(payload.len()).ok()?, ..repr };
        prepend_header(&mut packet, &repr).then_some(packet)
    }

    /// Tells an application what somebody says became of its datagram, if it has sent it.
    pub(super) fn error_received(
        &mut self,
        socket: SocketId,
        packet: &Packet,
        out: &mut Vec<Action>,
    ) {
        let told = self.sockets.channel(socket).zip(self.text_of(socket, packet));
        let activity =
            if told.is_some() { ErrorActivity::Received } else { ErrorActivity::Refused };
        self.forwarder.errors().activity.add(activity, 1);
        if let Some((channel, text)) = told {
            let message = channel::emit_rejected(&text).into();
            out.push(Action::Send { channel, message });
        }
    }

    fn text_of(&self, socket: SocketId, packet: &Packet) -> Option<String> {
        let view = XipPacket::new_checked(packet.bytes()).ok()?;
        let message = ErrorMessage::parse(view.payload()).ok()?;
        // Whoever does not see the datagrams does not know all of this address, as a rule.
        let is_own = message.about.source.as_ref() == self.sockets.address_of(socket);
        let by = view.source().filter(|_| is_own)?;
        let help = message.kind.help();
        Some(match message.kind {
            ErrorKind::TooBig => format!("{help}, which is {} bytes (says {by})", message.mtu),
            _ => format!("{help} (says {by})"),
        })
    }
}
