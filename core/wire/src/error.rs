//! What can be wrong with a header that is read or written.

/// Why a header could not be read from, or written to, a buffer.
///
/// `header` names the header in the words of its specification. For bytes that came from a network
/// every variant is an event to count, never a reason to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The buffer ends before the header, or before the length that the header states.
    #[error("{header}: truncated, {needed} bytes are needed and {available} are there")]
    Truncated {
        /// The header that was read.
        header: &'static str,
        /// Bytes that the header needs.
        needed: usize,
        /// Bytes that the buffer has.
        available: usize,
    },
    /// A field has a value that its specification forbids or that is not supported here.
    #[error("{header}: field {field} is {value}, it must be {expected}")]
    Field {
        /// The header that was read.
        header: &'static str,
        /// The field in the words of the specification.
        field: &'static str,
        /// The value found.
        value: u32,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// The checksum of the header or message does not match its bytes.
    #[error("{header}: the checksum does not match the bytes")]
    Checksum {
        /// The header that was read.
        header: &'static str,
    },
    /// The packet is a fragment; only whole packets can be read further.
    #[error("{header}: the packet is a fragment, it must be reassembled first")]
    Fragment {
        /// The header that was read.
        header: &'static str,
    },
    /// The hop limit (time to live) is used up: the packet must not be forwarded.
    #[error("{header}: the hop limit is used up, the packet must not be forwarded")]
    HopLimitExceeded {
        /// The header that was to be forwarded.
        header: &'static str,
    },
    /// The buffer to write to is shorter than what is to be written.
    #[error(
        "{header}: {needed} bytes are to be written, the buffer has {available}; pass a longer one"
    )]
    NoSpace {
        /// The header that was to be written.
        header: &'static str,
        /// Bytes to be written.
        needed: usize,
        /// Bytes that the buffer has.
        available: usize,
    },
    /// The payload is longer than the length field of the header can say.
    #[error(
        "{header}: a payload of {length} bytes exceeds the {limit} bytes that its length field can state; split it"
    )]
    PayloadTooLong {
        /// The header that was to be written.
        header: &'static str,
        /// Length of the payload in bytes.
        length: usize,
        /// The longest payload in bytes.
        limit: usize,
    },
}
