//! The packet: a buffer and what is known of it.
//!
//! The metadata lies beside the bytes, not in them. [`Packet::duplicate`] copies the used bytes into
//! another frame: every copy of a multicast packet gets a link header of its own, and one copy of 1,500
//! bytes costs less than the reference counting and scattered sending that sharing would need.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};

use crate::buffer::recycle_all;
use crate::{Buffer, Instant, PortId};

/// The address of a neighbour on a link, as the port understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LinkAddress {
    /// The link has no addresses (TUN), or the frame carries its own header.
    #[default]
    None,
    /// An Ethernet address.
    Mac([u8; 6]),
    /// The other end of a UDP tunnel.
    Udp(SocketAddr),
    /// The other end of a tunnel directly over IP.
    Ip(IpAddr),
}

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Meta {
    /// Where it came in; [`PortId::NONE`] if it was made here.
    pub port: PortId,
    /// When it came in.
    pub time: Instant,
    /// Set by one stage for another on the same node; zero if nobody did.
    pub mark: u32,
    /// Received: who sent it. To be sent: who gets it. Ports whose frames carry their own
    /// addresses ([`LinkAddress::None`]) leave it alone.
    pub link: LinkAddress,
}

/// One packet: a [`Buffer`], as which it can be used, with metadata.
#[derive(PartialEq, Eq, Default)]
pub struct Packet {
    buffer: Buffer,
    /// What is known besides the bytes.
    pub meta: Meta,
}

impl Packet {
    /// An empty packet in a standard frame.
    #[must_use]
    pub fn new() -> Self {
        Buffer::new().into()
    }

    /// An empty packet that can take `capacity` bytes behind its headroom.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Buffer::with_capacity(capacity).into()
    }

    /// A packet that holds a copy of `bytes`.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Self {
        Buffer::from_slice(bytes).into()
    }

    /// A copy of bytes and metadata in a frame of its own, with full headroom.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self { buffer: self.buffer.duplicate(), meta: self.meta }
    }

    /// Takes the packet, as [`Buffer::take`] does the bytes. The metadata stays behind, too.
    #[must_use]
    #[inline]
    pub fn take(&mut self) -> Self {
        Self { buffer: self.buffer.take(), meta: self.meta }
    }

    /// Drops all of these packets and keeps the list's memory, as [`Vec::clear`] does, in less time.
    #[inline]
    pub fn drop_all(packets: &mut Vec<Self>) {
        recycle_all(packets.iter_mut().map(|packet| &mut packet.buffer));
        packets.clear();
    }

    /// The bytes alone.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

/// A packet of which nothing is known.
impl From<Buffer> for Packet {
    #[inline]
    fn from(buffer: Buffer) -> Self {
        Self { buffer, meta: Meta::default() }
    }
}

impl Deref for Packet {
    type Target = Buffer;

    #[inline]
    fn deref(&self) -> &Buffer {
        &self.buffer
    }
}

impl DerefMut for Packet {
    #[inline]
    fn deref_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }
}

impl AsRef<[u8]> for Packet {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl AsMut<[u8]> for Packet {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet").field("len", &self.len()).field("meta", &self.meta).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_packets_that_are_dropped_together_are_used_again() {
        let mut packets =
            vec![Packet::from_slice(b"abc"), Packet::with_capacity(9000), Packet::new()];
        let frames = [0, 2].map(|index| packets[index].spare_mut().as_ptr_range().end);
        _ = packets[1].take();
        packets.push(Packet::with_capacity(9000));
        let place = packets.as_ptr();
        Packet::drop_all(&mut packets);
        assert!(packets.is_empty() && packets.as_ptr() == place);
        let again =
            [Packet::new(), Packet::new()].map(|mut packet| packet.spare_mut().as_ptr_range().end);
        assert_eq!([again[1], again[0]], frames);
    }

    #[test]
    fn a_duplicate_is_independent() {
        let mut packet = Packet::from_slice(b"abc");
        packet.meta.mark = 5;
        let mut copy = packet.duplicate();
        copy.bytes_mut()[0] = b'x';
        assert_eq!((packet.bytes(), copy.bytes(), copy.meta.mark), (&b"abc"[..], &b"xbc"[..], 5));
    }
}
