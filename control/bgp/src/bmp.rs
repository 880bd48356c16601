//! What stations that monitor BGP are told of peers, in messages of BMP.
//!
//! ```text
//!  0 version = 3
//!  1 length of the message (4)
//!  5 type
//!  6 the peer: type = 0, flags, distinguisher = 0 (8), address (16), system (4), identifier (4), time = not known (8)
//! 48 what the type says
//! ```
//!
//! Reference: RFC 7854 §4.1 (the common header), §4.2 (the peer), §4.6 (Route Monitoring), §4.9 (Peer Down), §4.10 (Peer Up). What is told is
//! what peers have announced, before policy (Adj-RIB-In). Whoever has the connection to a station says the rest:
//! who we are, and that it ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::fsm::Ending;
use crate::wire::{Context, HEADER_LEN, MessageType, Open, framed};

const VERSION: u8 = 3;

/// Types of messages.
mod kind {
    pub(super) const ROUTE_MONITORING: u8 = 0;
    pub(super) const PEER_DOWN: u8 = 2;
    pub(super) const PEER_UP: u8 = 3;
}

/// Flags of a peer: its address is one of IPv6.
const IS_IPV6: u8 = 1 << 7;
/// Numbers of systems in its messages have two octets.
const IS_SHORT: u8 = 1 << 5;

/// Why a session has ended (RFC 7854 §4.9): a NOTIFICATION was sent.
const SENT: u8 = 1;
/// One was received.
const RECEIVED: u8 = 3;
/// The other side has closed it without one.
const CLOSED: u8 = 4;

/// The peer that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) address: IpAddr,
    /// Its autonomous system.
    pub(crate) system: u32,
    pub(crate) identifier: Ipv4Addr,
    /// How its messages are read.
    pub(crate) context: Context,
}

impl Subject {
    /// There is a session with it, between these addresses, by our OPEN and its own.
    pub(crate) fn up(&self, local: SocketAddr, port: u16, opens: [&Open; 2], out: &mut Vec<u8>) {
        self.message(kind::PEER_UP, out, |out| {
            octets(local.ip(), out);
            out.extend(local.port().to_be_bytes());
            out.extend(port.to_be_bytes());
            opens.iter().for_each(|open| out.extend(open.emit()));
        });
    }

    /// There is none any more.
    pub(crate) fn down(&self, ending: &Ending, out: &mut Vec<u8>) {
        self.message(kind::PEER_DOWN, out, |out| match ending {
            Ending::Sent(notification) => {
                out.push(SENT);
                out.extend(notification.emit());
            }
            Ending::Received(notification) => {
                out.push(RECEIVED);
                out.extend(notification.emit());
            }
            Ending::Lost | Ending::Replaced => out.push(CLOSED),
        });
    }

    /// It has sent an UPDATE with this body.
    pub(crate) fn has_sent(&self, body: &[u8], out: &mut Vec<u8>) {
        self.message(kind::ROUTE_MONITORING, out, |out| framed(MessageType::Update, body, out));
    }

    /// It could have sent these messages, one behind the other.
    pub(crate) fn could_send(&self, messages: &[u8], out: &mut Vec<u8>) {
        let mut rest = messages;
        while let Some(header) = rest.first_chunk::<HEADER_LEN>() {
            let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
            let Some((message, behind)) = rest.split_at_checked(length.max(HEADER_LEN)) else {
                return;
            };
            self.message(kind::ROUTE_MONITORING, out, |out| out.extend(message));
            rest = behind;
        }
    }

    fn message(&self, kind: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend([VERSION, 0, 0, 0, 0, kind]);
        let is_ipv6 = if self.address.is_ipv6() { IS_IPV6 } else { 0 };
        let is_short = if self.context.four_octet_as { 0 } else { IS_SHORT };
        out.extend([0, is_ipv6 | is_short]);
        out.extend([0; 8]);
        octets(self.address, out);
        out.extend(self.system.to_be_bytes());
        out.extend(self.identifier.octets());
        out.extend([0; 8]);
        body(out);
        // A message of BGP has less than 64 KiB, and here are two at most.
        let length = (out.len() - start) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }
}

/// The end of the last whole message that ends within the first so many bytes, or of the first one.
pub(crate) fn cut(messages: &[u8], at_most: usize) -> usize {
    let mut end = 0;
    while let Some([_, a, b, c, d]) = messages[end..].first_chunk::<5>() {
        let next = end + u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if next > messages.len() || (end > 0 && next > at_most) {
            break;
        }
        end = next;
    }
    end
}

/// An address in 16 octets; those of IPv4 stand behind zeros.
fn octets(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(ip) => {
            out.extend([0; 12]);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => out.extend(ip.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Family, Neighbour, Notification, end_of_rib};

    fn subject(address: &str) -> Subject {
        Subject {
            address: address.parse().unwrap(),
            system: 65001,
            identifier: Ipv4Addr::new(192, 0, 2, 7),
            context: Context::new(Neighbour::External),
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Octet by octet as RFC 7854 §4.1, §4.2 and §4.9 have them.
    #[test]
    fn a_message_says_of_whom_it_is() {
        let mut out = Vec::new();
        subject("192.0.2.1").down(&Ending::Lost, &mut out);
        assert_eq!(
            hex(&out),
            "03000000310200000000000000000000000000000000000000000000\
             c00002010000fde9c0000207000000000000000004"
        );
        let short = Context { four_octet_as: false, ..Context::new(Neighbour::External) };
        out.clear();
        Subject { context: short, ..subject("2001:db8::1") }
            .down(&Ending::Received(Notification::cease(2)), &mut out);
        assert_eq!(out[6..8], [0, IS_IPV6 | IS_SHORT]);
        assert_eq!(hex(&out[16..32]), "20010db8000000000000000000000001");
        let notification = Notification::cease(2).emit();
        assert_eq!((out[48], &out[49..]), (RECEIVED, &notification[..]));
    }

    #[test]
    fn a_session_is_told_with_both_introductions() {
        let opens = [65000, 65001].map(|number| Open::new(number, 90, [192, 0, 2, 7].into()));
        let mut out = Vec::new();
        subject("192.0.2.1").up(
            "192.0.2.9:179".parse().unwrap(),
            4711,
            [&opens[0], &opens[1]],
            &mut out,
        );
        assert_eq!(out[5], kind::PEER_UP);
        assert_eq!(hex(&out[48..68]), "000000000000000000000000c000020900b31267");
        assert_eq!(out[68..], [opens[0].emit(), opens[1].emit()].concat());
    }

    /// The same, whether it came so or is put together of what is known.
    #[test]
    fn messages_are_told_one_by_one() {
        let both = [Family::IPV4_UNICAST, Family::IPV6_UNICAST].map(end_of_rib);
        let (mut one_by_one, mut together) = (Vec::new(), Vec::new());
        both.iter()
            .for_each(|one| subject("192.0.2.1").has_sent(&one[HEADER_LEN..], &mut one_by_one));
        subject("192.0.2.1").could_send(&both.concat(), &mut together);
        assert_eq!(one_by_one, together);
        let first = 48 + both[0].len();
        assert_eq!(cut(&together, together.len()), together.len());
        assert_eq!(cut(&together, together.len() - 1), first);
        assert_eq!(cut(&together, 1), first, "at least one");
        assert_eq!(cut(&[], 100), 0);
    }
}
