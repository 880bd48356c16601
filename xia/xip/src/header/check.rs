//! The receive checks, and what they need of a header.
//!
//! Reference: as for [`header`](super).

use super::{FIXED_HEADER_LEN, field};
use crate::dag::{LastNode, ROW_LEN};
use crate::numbers::{MAX_NODES, XIP_VERSION};

/// Why bytes are no XIP packet. The checks are made in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HeaderError {
    /// Shorter than the fixed part.
    #[error("{len} bytes are too short for an XIP header, which has at least {FIXED_HEADER_LEN}")]
    TooShort {
        /// Bytes there are.
        len: usize,
    },
    /// Not version 1.
    #[error("the XIP version is {0}, only {XIP_VERSION} is known")]
    Version(u8),
    /// No destination, or more than nine rows.
    #[error("the destination address has {0} rows, 1 to {MAX_NODES} are possible")]
    DestinationRows(u8),
    /// More than nine source rows.
    #[error("the source address has {0} rows, at most {MAX_NODES} are possible")]
    SourceRows(u8),
    /// The last node is neither a destination row nor the entry node.
    #[error("the last node is row {last_node} of a destination address with {rows} rows")]
    LastNode {
        /// Row in the header.
        last_node: u8,
        /// Rows of the destination address.
        rows: u8,
    },
    /// The addresses are cut off.
    #[error("the XIP header has {header_len} bytes, only {len} are there")]
    HeaderCut {
        /// Length that the header says it has.
        header_len: usize,
        /// Bytes there are.
        len: usize,
    },
    /// The payload is cut off.
    #[error("the XIP packet has {total_len} bytes, only {len} are there")]
    PayloadCut {
        /// Length of header and payload according to the header.
        total_len: usize,
        /// Bytes there are.
        len: usize,
    },
}

#[inline]
pub(super) const fn row_offset(row: usize) -> usize {
    field::ROWS + row * ROW_LEN
}

/// `bytes` must hold the fixed part, as everywhere below.
#[inline]
pub(super) fn payload_len(bytes: &[u8]) -> u16 {
    let field = &bytes[field::PAYLOAD_LEN];
    u16::from_be_bytes([field[0], field[1]])
}

#[inline]
pub(super) fn header_len(bytes: &[u8]) -> usize {
    row_offset(usize::from(bytes[field::NUM_DST]) + usize::from(bytes[field::NUM_SRC]))
}

#[inline]
pub(super) fn check_header(bytes: &[u8]) -> Result<(), HeaderError> {
    let len = bytes.len();
    if len < FIXED_HEADER_LEN {
        return Err(HeaderError::TooShort { len });
    }
    check_fixed_part(bytes)?;
    let header_len = header_len(bytes);
    if len < header_len {
        return Err(HeaderError::HeaderCut { header_len, len });
    }
    let total_len = header_len + usize::from(payload_len(bytes));
    if len < total_len {
        return Err(HeaderError::PayloadCut { total_len, len });
    }
    Ok(())
}

#[inline]
fn check_fixed_part(bytes: &[u8]) -> Result<(), HeaderError> {
    let version = bytes[field::VERSION];
    let (rows, source_rows) = (bytes[field::NUM_DST], bytes[field::NUM_SRC]);
    let last_node = bytes[field::LAST_NODE];
    if version != XIP_VERSION {
        return Err(HeaderError::Version(version));
    }
    if rows == 0 || usize::from(rows) > MAX_NODES {
        return Err(HeaderError::DestinationRows(rows));
    }
    if usize::from(source_rows) > MAX_NODES {
        return Err(HeaderError::SourceRows(source_rows));
    }
    if last_node >= rows && last_node != LastNode::ENTRY_BYTE {
        return Err(HeaderError::LastNode { last_node, rows });
    }
    Ok(())
}
