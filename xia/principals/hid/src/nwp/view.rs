//! Messages as they stand in a frame.
//!
//! [`NwpMessage::new_checked`] walks the whole message once; after that no accessor can fail.

use weft_wire::MacAddr;
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

use super::{
    ADDRESS_LEN, HEADER_LEN, NWP_VERSION, NwpError, Question, Sealed, TYPE_ANNOUNCEMENT,
    TYPE_CHALLENGE, TYPE_HERE, TYPE_NEIGHBOUR_LIST, TYPE_PROBE, TYPE_PROOF, TYPE_WITHDRAWAL, field,
};

/// A message that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NwpMessage<'a> {
    /// "These HIDs are mine."
    Announcement(Announcement<'a>),
    /// "I know these HIDs."
    NeighbourList(NeighbourList<'a>),
    /// "Which of these HIDs are you?"
    Probe(Question<'a>),
    /// "Prove which of these HIDs you are."
    Challenge(Question<'a>),
    /// "I am these HIDs", in answer to a question.
    Here(Question<'a>),
    /// "I have the key of this HID", in answer to a challenge.
    Proof(Sealed<'a>),
    /// "I am this HID no more."
    Withdrawal(Sealed<'a>),
}

impl<'a> NwpMessage<'a> {
    /// Views the front of `bytes` as a message; what lies behind it is padding.
    ///
    /// # Errors
    /// The bytes are no message; the checks are made in the order of [`NwpError`]'s variants.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, NwpError> {
        require(bytes, HEADER_LEN)?;
        if bytes[field::VERSION] != NWP_VERSION {
            return Err(NwpError::Version(bytes[field::VERSION]));
        }
        let kind = bytes[field::TYPE];
        let known = TYPE_ANNOUNCEMENT..=TYPE_NEIGHBOUR_LIST;
        if !known.contains(&kind) && !(TYPE_PROBE..=TYPE_WITHDRAWAL).contains(&kind) {
            return Err(NwpError::Type(kind));
        }
        if bytes[field::HID_COUNT] == 0 {
            return Err(NwpError::NoHids);
        }
        if usize::from(bytes[field::ADDRESS_LEN]) != ADDRESS_LEN {
            return Err(NwpError::AddressLength(bytes[field::ADDRESS_LEN]));
        }
        match kind {
            TYPE_ANNOUNCEMENT => Announcement::check(bytes).map(Self::Announcement),
            TYPE_PROBE => Question::check(bytes).map(Self::Probe),
            TYPE_CHALLENGE => Question::check(bytes).map(Self::Challenge),
            TYPE_HERE => Question::check(bytes).map(Self::Here),
            TYPE_PROOF => Sealed::check(bytes).map(Self::Proof),
            TYPE_WITHDRAWAL => Sealed::check(bytes).map(Self::Withdrawal),
            _ => NeighbourList::check(bytes).map(Self::NeighbourList),
        }
    }
}

/// A checked announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement<'a> {
    /// The message without padding.
    bytes: &'a [u8],
}

impl<'a> Announcement<'a> {
    fn check(bytes: &'a [u8]) -> Result<Self, NwpError> {
        let len = field::HARDWARE_ADDRESS.end + usize::from(bytes[field::HID_COUNT]) * ID_LEN;
        require(bytes, len)?;
        Ok(Self { bytes: &bytes[..len] })
    }

    /// Where the sender can be reached.
    #[must_use]
    pub fn hardware_address(&self) -> MacAddr {
        hardware_address(self.bytes)
    }

    /// The sender's HIDs; at least one.
    pub fn hids(&self) -> impl Iterator<Item = Xid> + use<'a> {
        let (ids, _) = self.bytes[field::HARDWARE_ADDRESS.end..].as_chunks::<ID_LEN>();
        ids.iter().map(|id| Xid::new(XidType::HID, *id))
    }
}

/// A checked neighbour list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourList<'a> {
    /// The entries without header and padding.
    entries: &'a [u8],
}

impl<'a> NeighbourList<'a> {
    fn check(bytes: &'a [u8]) -> Result<Self, NwpError> {
        let mut end = HEADER_LEN;
        for _ in 0..bytes[field::HID_COUNT] {
            let count_at = end + ID_LEN;
            require(bytes, count_at + 1)?;
            end = count_at + 1 + usize::from(bytes[count_at]) * ADDRESS_LEN;
            require(bytes, end)?;
        }
        Ok(Self { entries: &bytes[HEADER_LEN..end] })
    }

    /// The HIDs with their addresses; at least one.
    pub fn entries(&self) -> impl Iterator<Item = NeighbourEntry<'a>> + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || {
            let entry;
            (entry, rest) = NeighbourEntry::split_from(rest)?;
            Some(entry)
        })
    }
}

/// One HID of a neighbour list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourEntry<'a> {
    id: &'a [u8; ID_LEN],
    addresses: &'a [[u8; ADDRESS_LEN]],
}

impl<'a> NeighbourEntry<'a> {
    fn split_from(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (id, rest) = bytes.split_first_chunk::<ID_LEN>()?;
        let (count, rest) = rest.split_first()?;
        let (addresses, rest) = rest.split_at_checked(usize::from(*count) * ADDRESS_LEN)?;
        let (addresses, _) = addresses.as_chunks::<ADDRESS_LEN>();
        Some((Self { id, addresses }, rest))
    }

    /// The host.
    #[must_use]
    pub fn hid(&self) -> Xid {
        Xid::new(XidType::HID, *self.id)
    }

    /// Where it can be reached; there may be no address at all.
    pub fn addresses(&self) -> impl Iterator<Item = MacAddr> + use<'a> {
        self.addresses.iter().map(|octets| MacAddr(*octets))
    }
}

/// The sender's address in a checked message other than a list.
pub(super) fn hardware_address(bytes: &[u8]) -> MacAddr {
    let mut octets = [0; ADDRESS_LEN];
    octets.copy_from_slice(&bytes[field::HARDWARE_ADDRESS]);
    MacAddr(octets)
}

pub(super) fn require(bytes: &[u8], needed: usize) -> Result<(), NwpError> {
    let available = bytes.len();
    if available < needed { Err(NwpError::Truncated { needed, available }) } else { Ok(()) }
}
