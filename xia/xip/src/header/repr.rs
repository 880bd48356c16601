//! The XIP header as a value, and how it is written.
//!
//! Reference: as for [`header`](super).

use super::{XipPacket, field, row_offset};
use crate::dag::{Address, LastNode};
use crate::numbers::{DEFAULT_HOP_LIMIT, XIP_VERSION};

/// Why a header cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EmitError {
    /// The buffer is too short.
    #[error("the XIP header needs {header_len} bytes, the buffer has {len}")]
    BufferTooShort {
        /// Length of the header.
        header_len: usize,
        /// Length of the buffer.
        len: usize,
    },
    /// The destination has no such node.
    #[error("the last node is row {last_node} of a destination address with {rows} rows")]
    LastNode {
        /// Row of [`XipRepr::last_node`].
        last_node: u8,
        /// Rows of the destination address.
        rows: usize,
    },
}

/// An XIP header as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct XipRepr {
    /// The next header field, 0 in Linux XIA.
    pub next_header: u8,
    /// Length of the payload in bytes.
    pub payload_len: u16,
    /// How many more times the packet may be forwarded.
    pub hop_limit: u8,
    /// The last reached node of the destination.
    pub last_node: LastNode,
    /// Where the packet goes.
    pub destination: Address,
    /// Where an answer goes; `None` if the sender wants none.
    pub source: Option<Address>,
}

impl XipRepr {
    /// The header of a new packet: default hop limit, at the entry node.
    pub fn new(destination: Address, source: Option<Address>, payload_len: u16) -> XipRepr {
        XipRepr {
            next_header: 0,
            payload_len,
            hop_limit: DEFAULT_HOP_LIMIT,
            last_node: LastNode::Entry,
            destination,
            source,
        }
    }

    /// Reads the header of a packet.
    pub fn parse<T: AsRef<[u8]>>(packet: &XipPacket<T>) -> XipRepr {
        XipRepr {
            next_header: packet.next_header(),
            payload_len: packet.payload_len(),
            hop_limit: packet.hop_limit(),
            last_node: packet.last_node(),
            destination: packet.destination(),
            source: packet.source(),
        }
    }

    /// Length in bytes of the header.
    pub fn buffer_len(&self) -> usize {
        row_offset(self.destination.len() + self.source_rows())
    }

    /// Writes the header to the front of `buffer`; the payload has its place behind it.
    ///
    /// Changes nothing if there is an error.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), EmitError> {
        let (header_len, len) = (self.buffer_len(), buffer.len());
        if self.last_node.edge_row(self.destination.len()).is_none() {
            let (last_node, rows) = (self.last_node.to_byte(), self.destination.len());
            return Err(EmitError::LastNode { last_node, rows });
        }
        let too_short = EmitError::BufferTooShort { header_len, len };
        let header = buffer.get_mut(..header_len).ok_or(too_short)?;
        let (fixed, rows) = header.split_at_mut(field::ROWS);
        self.emit_fixed_part(fixed);
        let (destination, source) = rows.split_at_mut(self.destination.wire_len());
        self.destination.emit(destination).ok_or(too_short)?;
        if let Some(address) = &self.source {
            address.emit(source).ok_or(too_short)?;
        }
        Ok(())
    }

    fn emit_fixed_part(&self, fixed: &mut [u8]) {
        fixed[field::VERSION] = XIP_VERSION;
        fixed[field::NEXT_HEADER] = self.next_header;
        fixed[field::PAYLOAD_LEN].copy_from_slice(&self.payload_len.to_be_bytes());
        fixed[field::HOP_LIMIT] = self.hop_limit;
        fixed[field::NUM_DST] = self.destination.len() as u8;
        fixed[field::NUM_SRC] = self.source_rows() as u8;
        fixed[field::LAST_NODE] = self.last_node.to_byte();
    }

    fn source_rows(&self) -> usize {
        self.source.as_ref().map_or(0, Address::len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_HEADER_LEN;
    use super::*;
    use crate::{Xid, XidType};

    #[test]
    fn a_last_node_outside_the_destination_is_not_written() {
        let path = [XidType::HID, XidType::XDP].map(|kind| Xid::new(kind, [0xaa; 20]));
        let mut repr = XipRepr::new(Address::scoping(&path).unwrap(), None, 2);
        repr.last_node = LastNode::Row(2);
        let error = EmitError::LastNode { last_node: 2, rows: 2 };
        assert_eq!(repr.emit(&mut [0; MAX_HEADER_LEN]), Err(error));
    }
}
