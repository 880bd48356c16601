//! Cutting the stream of a connection into PDUs.
//!
//! Reference: RFC 8210 §5.1 (each says how long it is).

use super::pdu::Header;

/// Cuts PDUs out of a stream.
#[derive(Debug, Default)]
pub struct Cutter {
    bytes: Vec<u8>,
    /// What was taken.
    taken: usize,
}

impl Cutter {
    /// Takes more of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend(bytes);
    }

    /// The bytes of the next PDU, if they are there. One whose beginning is wrong is given as far as it is there: nobody knows where
    /// the next one begins.
    pub fn take(&mut self) -> Option<&[u8]> {
        let rest = &self.bytes[self.taken..];
        let length = match Header::of(rest.first_chunk()?) {
            Ok(header) if header.length > rest.len() => return None,
            Ok(header) => header.length,
            Err(_) => rest.len(),
        };
        self.taken += length;
        Some(&rest[..length])
    }

    /// How many bytes wait for more.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.taken
    }
}
