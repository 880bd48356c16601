//! Error messages: what a router tells the source of a packet that it has dropped.
//!
//! An extension of weft, off by default; Machado et al., "Linux XIA", and the kernel have none. The rules follow
//! those of ICMP (RFC 1122, §3.2.2; RFC 1812, §4.3.2): none about an error message, about multicast, or to
//! somebody who cannot be one sender; and not more than so many in a second.
//!
//! A message is an XIP packet to the source address of the packet that was dropped. Its own source ends in
//! [`ERROR_SINK`], by which it is known for what it is. The payload:
//!
//! ```text
//!  0       1       2               4
//! +-------+-------+---------------+
//! |version| kind  | MTU           |
//! | = 1   |       |               |
//! +-------+-------+---------------+------------------------------+
//! | the packet that was dropped, as it was then: all of its      |
//! | header, and the beginning of its payload                     |
//! +--------------------------------------------------------------+
//! ```
//!
//! | kind | meaning | MTU |
//! |---|---|---|
//! | 1 | unreachable: no edge of the last node leads anywhere | 0 |
//! | 2 | the hop limit was used up | 0 |
//! | 3 | too big for the link behind the router | the longest packet that would have passed, in bytes; 65,535 if longer |
//!
//! Numbers are in network byte order. The header is quoted as it was, with the payload length that the packet had, so
//! that the last node and the chosen edges tell how far it came. A whole message is no longer than the shortest
//! MTU that XIP allows.

use crate::dag::ROW_LEN;
use crate::forward::DropReason;
use crate::header::{FIXED_HEADER_LEN, HeaderError, XipPacket, XipRepr};
use crate::numbers::MIN_MTU;
use crate::{Address, Xid, XidType};

/// The last node of the source of every error message: the ASCII text `weft error reporter`, padded with a zero.
pub const ERROR_SINK: Xid = Xid::new(XidType::XDP, *b"weft error reporter\0");

const VERSION: u8 = 1;
/// Bytes before the packet that is quoted.
const FRONT_LEN: usize = 4;
/// Bytes of the payload that are quoted, if there is room.
const QUOTED_PAYLOAD: usize = 64;

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// No edge of its last node leads anywhere from the router.
    Unreachable,
    /// Its hop limit was used up.
    HopLimit,
    /// It is longer than the MTU of the link it would have left by.
    TooBig,
}

impl ErrorKind {
    const ALL: [Self; 3] = [Self::Unreachable, Self::HopLimit, Self::TooBig];

    /// The kind for a drop of which sources are told.
    #[must_use]
    pub fn of(reason: DropReason) -> Option<Self> {
        match reason {
            DropReason::Unreachable
            | DropReason::RedirectLoop
            | DropReason::RedirectDepth
            | DropReason::PortGone => Some(Self::Unreachable),
            DropReason::HopLimit => Some(Self::HopLimit),
            DropReason::TooBig => Some(Self::TooBig),
            _ => None,
        }
    }

    /// What it means, as of a packet dropped here.
    #[must_use]
    pub fn help(self) -> &'static str {
        weft_base::Reason::help(match self {
            Self::Unreachable => DropReason::Unreachable,
            Self::HopLimit => DropReason::HopLimit,
            Self::TooBig => DropReason::TooBig,
        })
    }

    fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Why bytes are no error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorMessageError {
    /// Shorter than the fixed part.
    #[error("{0} bytes are too short for an error message, which has at least {FRONT_LEN}")]
    TooShort(usize),
    /// Not version 1.
    #[error("the version of the error message is {0}, only {VERSION} is known")]
    Version(u8),
    /// A kind that is not known.
    #[error("the kind of the error message is {0}, there are 1 to 3")]
    Kind(u8),
    /// What is quoted does not begin with a whole XIP header.
    #[error("the packet that the error message quotes: {0}")]
    Quoted(HeaderError),
}

/// An error message, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage<'a> {
    /// Why the packet was dropped.
    pub kind: ErrorKind,
    /// The MTU in bytes, of [`ErrorKind::TooBig`].
    pub mtu: u16,
    /// The packet's header when it was dropped.
    pub about: XipRepr,
    /// The beginning of its payload, as much as was quoted.
    pub payload: &'a [u8],
}

impl<'a> ErrorMessage<'a> {
    /// Reads the payload of an error message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ErrorMessageError> {
        let Some((front, quoted)) = bytes.split_first_chunk::<FRONT_LEN>() else {
            return Err(ErrorMessageError::TooShort(bytes.len()));
        };
        let [version, number, mtu @ ..] = *front;
        if version != VERSION {
            return Err(ErrorMessageError::Version(version));
        }
        let kind = ErrorKind::ALL.into_iter().find(|kind| kind.number() == number);
        let kind = kind.ok_or(ErrorMessageError::Kind(number))?;
        let (about, payload) = read_quoted(quoted).map_err(ErrorMessageError::Quoted)?;
        Ok(Self { kind, mtu: u16::from_be_bytes(mtu), about, payload })
    }

    /// Bytes of the payload that [`ErrorMessage::emit`] makes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        FRONT_LEN + self.about.buffer_len() + self.payload.len()
    }

    /// The payload of the message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.buffer_len()];
        let [mtu_high, mtu_low] = self.mtu.to_be_bytes();
        bytes[..FRONT_LEN].copy_from_slice(&[VERSION, self.kind.number(), mtu_high, mtu_low]);
        let header_len = self.about.buffer_len();
        let (header, payload) = bytes[FRONT_LEN..].split_at_mut(header_len);
        self.about.emit(header).expect("the room was made for this header, which was one before");
        payload.copy_from_slice(self.payload);
        bytes
    }
}

/// The header of a packet whose payload may be cut off, and what there is of the payload.
fn read_quoted(quoted: &[u8]) -> Result<(XipRepr, &[u8]), HeaderError> {
    let mut copy = quoted.to_vec();
    let told = payload_len(quoted);
    let header_len = header_len(quoted);
    let there = quoted.len().saturating_sub(header_len).min(told.into());
    if let Some(field) = copy.get_mut(2..4) {
        // At most what the field said before.
        field.copy_from_slice(&(there as u16).to_be_bytes());
    }
    let packet = XipPacket::new_checked(&copy[..])?;
    let about = XipRepr { payload_len: told, ..XipRepr::parse(&packet) };
    Ok((about, &quoted[header_len..][..there]))
}

fn payload_len(packet: &[u8]) -> u16 {
    packet.get(2..4).map_or(0, |field| u16::from_be_bytes([field[0], field[1]]))
}

/// What the header's length would be, according to the fixed part.
fn header_len(packet: &[u8]) -> usize {
    let rows = packet.get(5..7).map_or(0, |rows| usize::from(rows[0]) + usize::from(rows[1]));
    FIXED_HEADER_LEN + rows * ROW_LEN
}

/// The payload of the message about `packet`, which goes to the packet's source from `own`. `None` if there is
/// no room for the packet's header, because all addresses are as long as can be.
pub(crate) fn about(kind: ErrorKind, mtu: usize, packet: &[u8], front: usize) -> Option<Vec<u8>> {
    let header_len = header_len(packet);
    let room = MIN_MTU.checked_sub(front + FRONT_LEN)?;
    if header_len > room {
        return None;
    }
    let quoted = packet.len().min(header_len + QUOTED_PAYLOAD).min(room);
    let mut bytes = vec![VERSION, kind.number()];
    bytes.extend(u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend(&packet[..quoted]);
    Some(bytes)
}

/// Whether a packet is an error message: its source says so.
#[inline]
pub(crate) fn is_error<T: AsRef<[u8]>>(packet: &XipPacket<T>) -> bool {
    let rows = packet.source_bytes();
    let last = rows.len().saturating_sub(ROW_LEN);
    rows[last..].starts_with(&ERROR_SINK.to_bytes())
}

/// Whom to tell of a dropped packet: its source, unless the message would be about an error, about multicast, or
/// to anybody but one sender.
pub(crate) fn source_to_tell<T: AsRef<[u8]>>(packet: &XipPacket<T>) -> Option<Address> {
    let source = packet.source().filter(Address::is_valid)?;
    let names =
        |address: &Address, xid: fn(Xid) -> bool| address.rows().iter().any(|row| xid(row.xid));
    let is_multicast = |xid: Xid| xid.kind == XidType::ZF;
    let is_reporter = |xid| xid == ERROR_SINK;
    let destination = packet.destination();
    let is_to_nobody = names(&source, is_multicast)
        || names(&source, is_reporter)
        || names(&destination, is_multicast)
        || names(&destination, is_reporter);
    (!is_to_nobody).then_some(source)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn xid(kind: XidType, id: u8) -> Xid {
        Xid::new(kind, [id; 20])
    }

    fn path(kinds: &[XidType]) -> Address {
        let path: Vec<_> = (1..).zip(kinds).map(|(id, kind)| xid(*kind, id)).collect();
        Address::scoping(&path).unwrap()
    }

    fn packet(destination: Address, source: Option<Address>, payload: &[u8]) -> Vec<u8> {
        let repr = XipRepr::new(destination, source, payload.len() as u16);
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).unwrap();
        bytes.extend(payload);
        bytes
    }

    fn told(destination: &[XidType], source: Option<&[XidType]>) -> bool {
        let bytes = packet(path(destination), source.map(path), &[]);
        source_to_tell(&XipPacket::new_checked(&bytes[..]).unwrap()).is_some()
    }

    #[test]
    fn layout() {
        let dropped = packet(path(&[XidType::HID]), Some(path(&[XidType::XDP])), b"payload");
        let bytes = about(ErrorKind::TooBig, 1400, &dropped, 64).unwrap();
        assert_eq!(bytes[..4], [1, 3, 0x05, 0x78]);
        assert_eq!(bytes[4..], dropped);
        let bytes = about(ErrorKind::Unreachable, 0, &dropped, 64).unwrap();
        assert_eq!(bytes[..4], [1, 1, 0, 0]);
        assert_eq!(about(ErrorKind::TooBig, 70_000, &dropped, 64).unwrap()[2..4], [0xff; 2]);
        assert!(ERROR_SINK.id.starts_with(b"weft error reporter"));
    }

    #[test]
    fn messages_fit_every_link_or_are_not_sent() {
        let longest = path(&[XidType::HID; 9]);
        let dropped = packet(longest, Some(longest), &[7; 500]);
        let front = FIXED_HEADER_LEN + 9 * ROW_LEN + 2 * ROW_LEN;
        let bytes = about(ErrorKind::HopLimit, 0, &dropped, front).unwrap();
        assert_eq!(front + bytes.len(), front + FRONT_LEN + 512 + QUOTED_PAYLOAD);
        let front = front + 6 * ROW_LEN;
        assert_eq!(front + about(ErrorKind::HopLimit, 0, &dropped, front).unwrap().len(), MIN_MTU);
        assert_eq!(about(ErrorKind::HopLimit, 0, &dropped, front + ROW_LEN), None);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let dropped = packet(path(&[XidType::HID]), None, b"");
        let good = about(ErrorKind::Unreachable, 0, &dropped, 0).unwrap();
        let with = |at: usize, byte| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            ErrorMessage::parse(&bytes).map(drop)
        };
        assert_eq!(with(0, 1), Ok(()));
        assert_eq!(with(0, 2), Err(ErrorMessageError::Version(2)));
        assert_eq!(with(1, 0), Err(ErrorMessageError::Kind(0)));
        assert_eq!(with(1, 4), Err(ErrorMessageError::Kind(4)));
        assert_eq!(with(4, 9), Err(ErrorMessageError::Quoted(HeaderError::Version(9))));
        for len in 0..good.len() {
            assert!(ErrorMessage::parse(&good[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn only_one_sender_is_told_and_never_of_errors_or_multicast() {
        let (host, tree) = ([XidType::HID, XidType::XDP], [XidType::ZF, XidType::XDP]);
        assert!(told(&host, Some(&host)));
        assert!(!told(&host, None));
        assert!(!told(&tree, Some(&host)));
        assert!(!told(&host, Some(&tree)));
        let reporter = Address::scoping(&[xid(XidType::HID, 1), ERROR_SINK]).unwrap();
        for (destination, source) in [(reporter, path(&host)), (path(&host), reporter)] {
            let bytes = packet(destination, Some(source), b"");
            let view = XipPacket::new_checked(&bytes[..]).unwrap();
            assert_eq!(source_to_tell(&view), None);
            assert_eq!(is_error(&view), source == reporter);
        }
    }

    fn address() -> impl Strategy<Value = Address> {
        prop::collection::vec((0u32..0x30, any::<[u8; 20]>()), 1..=9).prop_map(|xids| {
            let xids: Vec<_> = (0..)
                .zip(xids)
                .map(|(n, (kind, mut id))| {
                    id[0] = n;
                    Xid::new(XidType(kind + 1), id)
                })
                .collect();
            Address::scoping(&xids).unwrap()
        })
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read(
            destination in address(),
            source in prop::option::of(address()),
            payload in prop::collection::vec(any::<u8>(), 0..200),
            kind in prop::sample::select(&ErrorKind::ALL[..]),
            mtu in 0usize..100_000,
        ) {
            let dropped = packet(destination, source, &payload);
            let bytes = about(kind, mtu, &dropped, 100).unwrap();
            let message = ErrorMessage::parse(&bytes).unwrap();
            prop_assert_eq!(message.kind, kind);
            prop_assert_eq!(usize::from(message.mtu), mtu.min(65_535));
            let view = XipPacket::new_checked(&dropped[..]).unwrap();
            prop_assert_eq!(message.about, XipRepr::parse(&view));
            prop_assert_eq!(message.payload, &payload[..payload.len().min(QUOTED_PAYLOAD)]);
            prop_assert_eq!(message.emit(), bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused_and_written_as_they_were(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            rows in 0u8..4,
        ) {
            let mut bytes = bytes;
            for (byte, value) in bytes.iter_mut().zip([1, 1 + rows % 3, 0, 9, 1, 0, 0, 60, 9, 1 + rows, rows, 0]) {
                *byte = value;
            }
            if let Ok(message) = ErrorMessage::parse(&bytes) {
                let again = message.emit();
                prop_assert_eq!(&bytes[..again.len()], &again[..]);
            }
        }
    }
}
