//! Messages as values, and how many HIDs go into one.

use weft_wire::MacAddr;
use weft_xip::Xid;
use weft_xip::xid::ID_LEN;

use super::{
    ADDRESS_LEN, HEADER_LEN, MAX_ADDRESSES, MAX_HIDS, NWP_VERSION, NwpError, NwpMessage,
    QuestionRepr, SealedRepr, TYPE_ANNOUNCEMENT, TYPE_CHALLENGE, TYPE_HERE, TYPE_NEIGHBOUR_LIST,
    TYPE_PROBE, TYPE_PROOF, TYPE_WITHDRAWAL, field,
};

/// A message as a value. Its XIDs are of type HID; only their identifiers travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NwpRepr {
    /// "These HIDs are mine."
    Announcement {
        /// Where the sender can be reached.
        hardware_address: MacAddr,
        /// The sender's HIDs, 1 to [`MAX_HIDS`].
        hids: Vec<Xid>,
    },
    /// "I know these HIDs."
    NeighbourList {
        /// 1 to [`MAX_HIDS`] neighbours.
        neighbours: Vec<NeighbourRepr>,
    },
    /// "Which of these HIDs are you?"
    Probe(QuestionRepr),
    /// "Prove which of these HIDs you are."
    Challenge(QuestionRepr),
    /// "I am these HIDs", in answer to a question.
    Here(QuestionRepr),
    /// "I have the key of this HID", in answer to a challenge.
    Proof(SealedRepr),
    /// "I am this HID no more."
    Withdrawal(SealedRepr),
}

/// One HID of a neighbour list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourRepr {
    /// The host.
    pub hid: Xid,
    /// Where it can be reached, at most [`MAX_ADDRESSES`].
    pub addresses: Vec<MacAddr>,
}

impl NwpRepr {
    /// Reads a checked message. Memory is bounded by the message's own length.
    #[must_use]
    pub fn parse(message: &NwpMessage) -> Self {
        match message {
            NwpMessage::Announcement(view) => Self::Announcement {
                hardware_address: view.hardware_address(),
                hids: view.hids().collect(),
            },
            NwpMessage::NeighbourList(view) => {
                let neighbour = |entry: super::NeighbourEntry| NeighbourRepr {
                    hid: entry.hid(),
                    addresses: entry.addresses().collect(),
                };
                Self::NeighbourList { neighbours: view.entries().map(neighbour).collect() }
            }
            NwpMessage::Probe(view) => Self::Probe(QuestionRepr::parse(view)),
            NwpMessage::Challenge(view) => Self::Challenge(QuestionRepr::parse(view)),
            NwpMessage::Here(view) => Self::Here(QuestionRepr::parse(view)),
            NwpMessage::Proof(view) => Self::Proof(SealedRepr::parse(view)),
            NwpMessage::Withdrawal(view) => Self::Withdrawal(SealedRepr::parse(view)),
        }
    }

    /// Length of the message in bytes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self {
            Self::Announcement { hids, .. } => field::HARDWARE_ADDRESS.end + hids.len() * ID_LEN,
            Self::NeighbourList { neighbours } => {
                HEADER_LEN + neighbours.iter().map(NeighbourRepr::len).sum::<usize>()
            }
            Self::Probe(question) | Self::Challenge(question) | Self::Here(question) => {
                HEADER_LEN + question.len()
            }
            Self::Proof(sealed) | Self::Withdrawal(sealed) => HEADER_LEN + sealed.len(),
        }
    }

    /// Writes the message to the front of `buffer`.
    ///
    /// # Errors
    /// The buffer is too short, or the message names no HID or too many; see [`NwpError`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), NwpError> {
        let (needed, available) = (self.buffer_len(), buffer.len());
        let buffer = buffer.get_mut(..needed).ok_or(NwpError::NoSpace { needed, available })?;
        let (header, body) = buffer.split_at_mut(HEADER_LEN);
        match self {
            Self::Announcement { hardware_address, hids } => {
                emit_header(header, TYPE_ANNOUNCEMENT, hids.len())?;
                let (address, ids) = body.split_at_mut(ADDRESS_LEN);
                address.copy_from_slice(&hardware_address.0);
                for (bytes, hid) in ids.chunks_exact_mut(ID_LEN).zip(hids) {
                    bytes.copy_from_slice(&hid.id);
                }
                Ok(())
            }
            Self::NeighbourList { neighbours } => {
                emit_header(header, TYPE_NEIGHBOUR_LIST, neighbours.len())?;
                let mut rest = body;
                for neighbour in neighbours {
                    let (entry, behind) = rest.split_at_mut(neighbour.len());
                    neighbour.emit(entry)?;
                    rest = behind;
                }
                Ok(())
            }
            Self::Probe(question) => question.emit(header, TYPE_PROBE, body),
            Self::Challenge(question) => question.emit(header, TYPE_CHALLENGE, body),
            Self::Here(question) => question.emit(header, TYPE_HERE, body),
            Self::Proof(sealed) => sealed.emit(header, TYPE_PROOF, body),
            Self::Withdrawal(sealed) => sealed.emit(header, TYPE_WITHDRAWAL, body),
        }
    }
}

impl NeighbourRepr {
    fn len(&self) -> usize {
        ID_LEN + 1 + self.addresses.len() * ADDRESS_LEN
    }

    /// `entry` has the entry's length.
    fn emit(&self, entry: &mut [u8]) -> Result<(), NwpError> {
        let (id, rest) = entry.split_at_mut(ID_LEN);
        let (count, addresses) = rest.split_at_mut(1);
        id.copy_from_slice(&self.hid.id);
        count[0] = counter(self.addresses.len(), MAX_ADDRESSES)?;
        for (bytes, address) in addresses.chunks_exact_mut(ADDRESS_LEN).zip(&self.addresses) {
            bytes.copy_from_slice(&address.0);
        }
        Ok(())
    }
}

pub(super) fn emit_header(header: &mut [u8], kind: u8, hids: usize) -> Result<(), NwpError> {
    if hids == 0 {
        return Err(NwpError::NoHids);
    }
    header[field::VERSION] = NWP_VERSION;
    header[field::TYPE] = kind;
    header[field::HID_COUNT] = counter(hids, MAX_HIDS)?;
    header[field::ADDRESS_LEN] = ADDRESS_LEN as u8;
    Ok(())
}

fn counter(count: usize, limit: usize) -> Result<u8, NwpError> {
    u8::try_from(count).map_err(|_| NwpError::TooMany { count, limit })
}

/// The announcements that tell of all `hids`, none longer than `mtu` bytes if that is possible.
///
/// Linux XIA sends one and leaves out what does not fit; receivers take any number.
pub fn announcements(
    hardware_address: MacAddr,
    hids: &[Xid],
    mtu: usize,
) -> impl Iterator<Item = NwpRepr> {
    let fit = mtu.saturating_sub(field::HARDWARE_ADDRESS.end) / ID_LEN;
    let announcement =
        move |hids: &[Xid]| NwpRepr::Announcement { hardware_address, hids: hids.to_vec() };
    hids.chunks(fit.clamp(1, MAX_HIDS)).map(announcement)
}

/// The lists that tell of all `neighbours`, none longer than `mtu` bytes if that is possible.
#[must_use]
pub fn neighbour_lists(neighbours: Vec<NeighbourRepr>, mtu: usize) -> Vec<NwpRepr> {
    let mut lists: Vec<Vec<NeighbourRepr>> = Vec::new();
    let mut len = 0;
    for neighbour in neighbours {
        len += neighbour.len();
        match lists.last_mut() {
            Some(list) if len <= mtu && list.len() < MAX_HIDS => list.push(neighbour),
            _ => {
                len = HEADER_LEN + neighbour.len();
                lists.push(vec![neighbour]);
            }
        }
    }
    lists.into_iter().map(|neighbours| NwpRepr::NeighbourList { neighbours }).collect()
}
