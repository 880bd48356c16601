//! Messages of channels: bytes, and with them things of the operating system that change hands.
//!
//! A [`Handle`] is such a thing: an open descriptor that travels beside the bytes (`SCM_RIGHTS`, see
//! unix(7)), or what stands for one in a simulated world. Only channels within a machine carry handles.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{Buffer, Packet};

/// Something that one process opened and another may use: a descriptor of the operating system, or a
/// number that a simulated world gave out for one. Whoever has it owns it; it cannot be copied, and a
/// descriptor is closed when it is dropped.
pub struct Handle(Kind);

enum Kind {
    Descriptor(OwnedFd),
    Number(u64),
}

impl Handle {
    /// What stands for a descriptor in a simulated world. Only that world knows what it means.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(Kind::Number(number))
    }

    /// The number, in a simulated world.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.0 {
            Kind::Number(number) => Some(number),
            Kind::Descriptor(_) => None,
        }
    }

    /// The descriptor, in a real world, to be looked at.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Kind::Descriptor(descriptor) => Some(descriptor.as_fd()),
            Kind::Number(_) => None,
        }
    }

    /// The descriptor, in a real world, to be used.
    ///
    /// # Errors
    /// The handle itself if it belongs to a simulated world.
    pub fn into_descriptor(self) -> Result<OwnedFd, Self> {
        match self.0 {
            Kind::Descriptor(descriptor) => Ok(descriptor),
            kind @ Kind::Number(_) => Err(Self(kind)),
        }
    }
}

impl From<OwnedFd> for Handle {
    fn from(descriptor: OwnedFd) -> Self {
        Self(Kind::Descriptor(descriptor))
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Descriptor(descriptor) => f.debug_tuple("Handle").field(descriptor).finish(),
            Kind::Number(number) => f.debug_tuple("Handle").field(number).finish(),
        }
    }
}

/// One message of a channel.
#[derive(Debug, Default)]
pub struct Message {
    /// Its bytes.
    pub buffer: Buffer,
    /// What is handed over with them, in order.
    pub handles: Vec<Handle>,
}

impl Message {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }
}

impl From<Buffer> for Message {
    fn from(buffer: Buffer) -> Self {
        Self { buffer, handles: Vec::new() }
    }
}

/// The bytes of a packet are a message; what else is known of it stays here.
impl From<Packet> for Message {
    fn from(packet: Packet) -> Self {
        packet.into_buffer().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_descriptor_or_a_number_and_says_which() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let real = Handle::from(OwnedFd::from(ours));
        assert!(real.descriptor().is_some() && real.number().is_none());
        assert!(format!("{real:?}").starts_with("Handle(OwnedFd"));
        assert!(real.into_descriptor().is_ok());
        let simulated = Handle::from_number(7);
        assert!(simulated.descriptor().is_none());
        assert_eq!(simulated.into_descriptor().unwrap_err().number(), Some(7));
    }

    #[test]
    fn bytes_are_a_message_without_handles() {
        let message = Message::from(Buffer::from_slice(b"text"));
        assert_eq!((message.bytes(), message.handles.len()), (&b"text"[..], 0));
        assert_eq!(Message::from(Packet::from_slice(b"text")).bytes(), b"text");
    }
}
