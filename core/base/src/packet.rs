//! The packet buffer.
//!
//! A [`Packet`] owns one frame of memory; nobody else sees it, so headers are rewritten in place
//! without locks or reference counts. Data starts [`HEADROOM`] bytes into the frame: lower layers put
//! their headers in front without moving what is there. The metadata lies beside the bytes, not in
//! them. [`Packet::duplicate`] copies the used bytes into another frame: every copy of a multicast
//! packet gets a link header of its own, and one copy of 1,500 bytes costs less than the reference
//! counting and scattered sending that sharing would need.
//!
//! Frames of the standard size come from a free list of the current thread and return there when the
//! packet is dropped, on whichever thread that is: no lock, no allocation in the steady state. Larger
//! packets get memory of their own. A port that lends frames of a kernel ring becomes another kind
//! of frame in this file; nothing outside of it has to know.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;

use crate::{Instant, PortId};

/// Bytes that a new packet keeps free in front of its data.
pub const HEADROOM: usize = 256;
/// Bytes of a standard frame, headroom included: a 1,500-byte MTU fits with room to spare.
pub const STANDARD_FRAME: usize = 2048;
/// Frames that one thread keeps for reuse (8 MiB).
const KEPT_FRAMES: usize = 4096;

thread_local! {
    static FREE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

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

/// One packet: bytes with free room in front and behind, and metadata.
pub struct Packet {
    frame: Box<[u8]>,
    start: usize,
    end: usize,
    /// What is known besides the bytes.
    pub meta: Meta,
}

impl Packet {
    /// An empty packet in a standard frame.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty packet that can take `capacity` bytes behind its headroom.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let frame = frame_for(capacity);
        Self { frame, start: HEADROOM, end: HEADROOM, meta: Meta::default() }
    }

    /// A packet that holds a copy of `bytes`.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Self {
        Self::filled(bytes, Meta::default())
    }

    /// A packet that holds a copy of `bytes` in memory of just that size, without room in front: for
    /// what is read and not sent on, and may come in great numbers.
    #[must_use]
    pub fn compact(bytes: &[u8]) -> Self {
        Self { frame: bytes.into(), start: 0, end: bytes.len(), meta: Meta::default() }
    }

    /// A packet with a copy of `bytes` and this metadata. It is put together in one go: a packet that
    /// is changed after it was made would have to be waited for when it moves.
    fn filled(bytes: &[u8], meta: Meta) -> Self {
        let mut frame = frame_for(bytes.len());
        let end = HEADROOM + bytes.len();
        frame[HEADROOM..end].copy_from_slice(bytes);
        Self { frame, start: HEADROOM, end, meta }
    }

    /// The packet's bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.frame[self.start..self.end]
    }

    /// The packet's bytes, to be changed in place.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.frame[self.start..self.end]
    }

    /// How many bytes it has.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Grows the packet by `count` bytes in front and returns them to be filled. Their content is
    /// whatever the frame held before. Takes a larger frame if the headroom is used up.
    #[inline]
    pub fn push_front(&mut self, count: usize) -> &mut [u8] {
        if count > self.start {
            self.grow(count + HEADROOM, 0);
        }
        self.start -= count;
        &mut self.frame[self.start..self.start + count]
    }

    /// Takes `count` bytes off the front. Returns false, and does nothing, if there are fewer.
    #[must_use]
    pub fn pull_front(&mut self, count: usize) -> bool {
        let enough = count <= self.len();
        if enough {
            self.start += count;
        }
        enough
    }

    /// Cuts the packet to its first `len` bytes, if it has more.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        // Most packets are as long as they should be: nothing is written then, which whoever moves
        // the packet next would have to wait for.
        if len < self.len() {
            self.end = self.start + len;
        }
    }

    /// Appends a copy of `bytes`. Takes a frame of twice the size or more if there is no room, so that
    /// a long packet can be written in small pieces.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if bytes.len() > self.frame.len() - self.end {
            self.grow(self.start, bytes.len().max(self.frame.len()));
        }
        self.frame[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// The free room behind the data, for a port to receive into; see [`Packet::fill`].
    #[must_use]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.frame[self.end..]
    }

    /// Declares the first `count` bytes of [`Packet::spare_mut`] to be data. A larger `count` than
    /// there is room means all of it.
    pub fn fill(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.frame.len());
    }

    /// A copy of bytes and metadata in a frame of its own, with full headroom.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self::filled(self.bytes(), self.meta)
    }

    /// Moves the data to a frame with at least `front` bytes free before and `back` behind it.
    #[cold]
    fn grow(&mut self, front: usize, back: usize) {
        let len = self.len();
        let mut frame = vec![0; front + len + back].into_boxed_slice();
        frame[front..front + len].copy_from_slice(self.bytes());
        recycle(std::mem::replace(&mut self.frame, frame));
        (self.start, self.end) = (front, front + len);
    }
}

/// A frame for `capacity` bytes behind the headroom. What it holds is whatever it held before.
fn frame_for(capacity: usize) -> Box<[u8]> {
    if capacity > STANDARD_FRAME - HEADROOM {
        return vec![0; HEADROOM + capacity].into_boxed_slice();
    }
    FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; STANDARD_FRAME].into_boxed_slice())
}

/// Gives a frame back to the current thread's free list, if it is of the standard size.
fn recycle(frame: Box<[u8]>) {
    if frame.len() != STANDARD_FRAME {
        return;
    }
    // When the thread is ending its list is gone already; the frame is then simply freed.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < KEPT_FRAMES {
            free.push(frame);
        }
    });
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

impl Drop for Packet {
    fn drop(&mut self) {
        recycle(std::mem::take(&mut self.frame));
    }
}

impl Default for Packet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet").field("len", &self.len()).field("meta", &self.meta).finish()
    }
}

/// Equal bytes and metadata; where in their frames the bytes lie does not matter.
impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.meta == other.meta
    }
}

impl Eq for Packet {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_in_front_without_moving_the_data() {
        let mut packet = Packet::from_slice(b"payload");
        packet.push_front(4).copy_from_slice(b"head");
        assert_eq!(packet.bytes(), b"headpayload");
        assert!(packet.pull_front(4));
        assert_eq!(packet.bytes(), b"payload");
        assert!(!packet.pull_front(8));
        assert_eq!(packet.len(), 7);
    }

    #[test]
    fn room_is_made_when_it_runs_out() {
        let mut packet = Packet::from_slice(&[7; 3000]);
        packet.push_front(HEADROOM + 1).fill(1);
        packet.extend(&[2; 5000]);
        assert_eq!(packet.len(), HEADROOM + 1 + 3000 + 5000);
        assert_eq!(packet.bytes()[HEADROOM], 1);
        assert_eq!(packet.bytes()[HEADROOM + 1], 7);
        assert_eq!(packet.bytes().last(), Some(&2));
    }

    #[test]
    fn a_long_packet_that_is_written_in_pieces_moves_seldom() {
        let mut packet = Packet::new();
        let mut moves = 0;
        for byte in 0..100_000_u32 {
            let before = packet.frame.len();
            packet.extend(&[byte as u8]);
            moves += usize::from(packet.frame.len() != before);
        }
        assert!(packet.bytes().iter().zip(0..100_000_u32).all(|(byte, n)| *byte == n as u8));
        assert!(moves < 10, "it moved {moves} times");
    }

    #[test]
    fn a_compact_packet_grows_when_it_must() {
        let mut packet = Packet::compact(b"payload");
        packet.push_front(4).copy_from_slice(b"head");
        packet.extend(b"tail");
        assert_eq!(packet.bytes(), b"headpayloadtail");
        assert!(Packet::compact(b"").is_empty());
    }

    #[test]
    fn a_duplicate_is_independent() {
        let mut packet = Packet::from_slice(b"abc");
        packet.meta.mark = 5;
        let mut copy = packet.duplicate();
        copy.bytes_mut()[0] = b'x';
        assert_eq!((packet.bytes(), copy.bytes(), copy.meta.mark), (&b"abc"[..], &b"xbc"[..], 5));
    }

    #[test]
    fn a_frame_is_used_again_by_the_same_thread() {
        let packet = Packet::new();
        let address = packet.frame.as_ptr();
        drop(packet);
        assert_eq!(Packet::new().frame.as_ptr(), address);
    }

    #[test]
    fn filling_never_goes_beyond_the_frame() {
        let mut packet = Packet::new();
        let room = packet.spare_mut().len();
        packet.fill(usize::MAX);
        assert_eq!(packet.len(), room);
        packet.truncate(10);
        assert_eq!(packet.len(), 10);
    }
}
