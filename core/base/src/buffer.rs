//! The buffer: bytes with room in front.
//!
//! A [`Buffer`] owns one frame of memory; nobody else sees it, so headers are rewritten in place
//! without locks or reference counts. Data starts [`HEADROOM`] bytes into the frame: lower layers put
//! their headers in front without moving what is there.
//!
//! Frames of the standard size come from a free list of the current thread and return there when the
//! buffer is dropped, on whichever thread that is: no lock, no allocation in the steady state. Larger
//! buffers get memory of their own. A port that lends frames of a kernel ring becomes another kind
//! of frame in this file; nothing outside of it has to know.

use std::cell::RefCell;
use std::fmt;

/// Bytes that a new buffer keeps free in front of its data.
pub const HEADROOM: usize = 256;
/// Bytes of a standard frame, headroom included: a 1,500-byte MTU fits with room to spare.
pub const STANDARD_FRAME: usize = 2048;
/// Frames that one thread keeps for reuse (8 MiB).
const KEPT_FRAMES: usize = 4096;

thread_local! {
    static FREE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes with free room in front and behind.
pub struct Buffer {
    frame: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer in a standard frame.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty buffer that can take `capacity` bytes behind its headroom.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let frame = frame_for(capacity);
        Self { frame, start: HEADROOM, end: HEADROOM }
    }

    /// A buffer that holds a copy of `bytes`. It is put together in one go: one that is changed after
    /// it was made would have to be waited for when it moves.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut frame = frame_for(bytes.len());
        let end = HEADROOM + bytes.len();
        frame[HEADROOM..end].copy_from_slice(bytes);
        Self { frame, start: HEADROOM, end }
    }

    /// A buffer that holds a copy of `bytes` in memory of just that size, without room in front: for
    /// what is read and not sent on, and may come in great numbers.
    #[must_use]
    pub fn compact(bytes: &[u8]) -> Self {
        Self { frame: bytes.into(), start: 0, end: bytes.len() }
    }

    /// Takes the bytes with their frame, and leaves a buffer without any memory, which costs nothing to drop. A buffer
    /// that is taken where it lies is moved once; one that comes out of an iterator as an `Option`, twice.
    #[must_use]
    #[inline]
    pub fn take(&mut self) -> Self {
        Self {
            frame: std::mem::take(&mut self.frame),
            start: std::mem::take(&mut self.start),
            end: std::mem::take(&mut self.end),
        }
    }

    /// The bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.frame[self.start..self.end]
    }

    /// The frame from the first byte on, as far as this many bytes; `None` if it ends before. Behind the bytes is whatever the
    /// frame held before. Who reads several things at places that cannot lie outside has them all checked at once.
    #[must_use]
    #[inline]
    pub fn window<const N: usize>(&self) -> Option<&[u8; N]> {
        self.frame.get(self.start..)?.first_chunk()
    }

    /// The bytes, to be changed in place.
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

    /// Grows the buffer by `count` bytes in front and returns them to be filled. Their content is
    /// whatever the frame held before. Takes a larger frame if the headroom is used up.
    #[inline]
    pub fn push_front(&mut self, count: usize) -> &mut [u8] {
        if count > self.start {
            self.grow(count + HEADROOM, 0);
        }
        self.start -= count;
        &mut self.frame[self.start..self.start + count]
    }

    /// Puts a header in front, as [`Buffer::push_front`] makes room for one.
    #[inline]
    pub fn prepend<const N: usize>(&mut self, header: &[u8; N]) {
        let room = self.frame.get_mut(..self.start).and_then(<[u8]>::last_chunk_mut);
        match room {
            Some(room) => {
                *room = *header;
                self.start -= N;
            }
            None => self.push_front(N).copy_from_slice(header),
        }
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

    /// Cuts the buffer to its first `len` bytes, if it has more.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        // Most data is as long as they should be: nothing is written then, which whoever moves
        // the buffer next would have to wait for.
        if len < self.len() {
            self.end = self.start + len;
        }
    }

    /// Appends a copy of `bytes`. Takes a frame of twice the size or more if there is no room, so that
    /// a long message can be written in small pieces.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.push_back(bytes.len()).copy_from_slice(bytes);
    }

    /// Grows the buffer by `count` bytes behind and returns them to be filled. Their content is whatever
    /// the frame held before. Takes a larger frame as [`Buffer::extend`] does.
    #[inline]
    pub fn push_back(&mut self, count: usize) -> &mut [u8] {
        if count > self.frame.len() - self.end {
            self.grow(self.start, count.max(self.frame.len()));
        }
        let start = self.end;
        self.end += count;
        &mut self.frame[start..self.end]
    }

    /// The free room behind the data, for a port to receive into; see [`Buffer::fill`].
    #[must_use]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.frame[self.end..]
    }

    /// Declares the first `count` bytes of [`Buffer::spare_mut`] to be data. A larger `count` than
    /// there is room means all of it.
    pub fn fill(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.frame.len());
    }

    /// A copy of the bytes in a frame of its own, with full headroom.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self::from_slice(self.bytes())
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

/// Takes the frames of these buffers and gives them back, as dropping each of them would do, with one look at the thread's list.
pub(crate) fn recycle_all<'a>(buffers: impl Iterator<Item = &'a mut Buffer>) {
    // What the list has no room for goes with its buffer.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        let room = KEPT_FRAMES.saturating_sub(free.len());
        let standard = buffers.filter(|buffer| buffer.frame.len() == STANDARD_FRAME);
        free.extend(standard.take(room).map(|buffer| {
            (buffer.start, buffer.end) = (0, 0);
            std::mem::take(&mut buffer.frame)
        }));
    });
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl AsMut<[u8]> for Buffer {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        // What was taken has left none.
        if !self.frame.is_empty() {
            recycle(std::mem::take(&mut self.frame));
        }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len()).finish()
    }
}

/// Equal bytes; where in their frames they lie does not matter.
impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_in_front_without_moving_the_data() {
        let mut buffer = Buffer::from_slice(b"payload");
        buffer.push_front(4).copy_from_slice(b"head");
        assert_eq!(buffer.bytes(), b"headpayload");
        assert!(buffer.pull_front(4));
        assert_eq!(buffer.bytes(), b"payload");
        assert!(!buffer.pull_front(8));
        assert_eq!(buffer.len(), 7);
        buffer.prepend(b"front");
        assert_eq!(buffer.bytes(), b"frontpayload");
    }

    #[test]
    fn room_is_made_when_it_runs_out() {
        let mut buffer = Buffer::from_slice(&[7; 3000]);
        buffer.push_front(HEADROOM + 1).fill(1);
        buffer.extend(&[2; 5000]);
        assert_eq!(buffer.len(), HEADROOM + 1 + 3000 + 5000);
        assert_eq!(buffer.bytes()[HEADROOM], 1);
        assert_eq!(buffer.bytes()[HEADROOM + 1], 7);
        assert_eq!(buffer.bytes().last(), Some(&2));
    }

    #[test]
    fn a_long_buffer_that_is_written_in_pieces_moves_seldom() {
        let mut buffer = Buffer::new();
        let mut moves = 0;
        for byte in 0..100_000_u32 {
            let before = buffer.frame.len();
            buffer.extend(&[byte as u8]);
            moves += usize::from(buffer.frame.len() != before);
        }
        assert!(buffer.bytes().iter().zip(0..100_000_u32).all(|(byte, n)| *byte == n as u8));
        assert!(moves < 10, "it moved {moves} times");
    }

    #[test]
    fn what_is_left_of_a_buffer_that_was_taken_can_be_used() {
        let mut buffer = Buffer::from_slice(b"payload");
        assert_eq!(buffer.take().bytes(), b"payload");
        assert!(buffer.is_empty() && buffer.spare_mut().is_empty());
        buffer.push_front(4).copy_from_slice(b"head");
        buffer.extend(b"tail");
        assert_eq!(buffer.bytes(), b"headtail");
    }

    #[test]
    fn a_window_ends_where_the_frame_does_and_not_where_the_bytes_do() {
        let mut buffer = Buffer::from_slice(b"payload");
        let window = buffer.window::<{ STANDARD_FRAME - HEADROOM }>().unwrap();
        assert_eq!(window.first_chunk(), Some(b"payload"));
        assert_eq!(buffer.window::<{ STANDARD_FRAME - HEADROOM + 1 }>(), None);
        assert!(buffer.pull_front(3));
        assert_eq!(buffer.window(), Some(b"load"));
        assert_eq!(Buffer::compact(b"payload").window(), Some(b"payload"));
        assert_eq!(Buffer::compact(b"payload").window::<8>(), None);
        assert_eq!(buffer.take().window(), Some(b"load"));
        assert_eq!(buffer.window::<1>(), None);
    }

    #[test]
    fn a_compact_buffer_grows_when_it_must() {
        let mut buffer = Buffer::compact(b"payload");
        buffer.push_front(4).copy_from_slice(b"head");
        buffer.extend(b"tail");
        assert_eq!(buffer.bytes(), b"headpayloadtail");
        let mut buffer = Buffer::compact(b"payload");
        buffer.prepend(b"head");
        assert_eq!(buffer.bytes(), b"headpayload");
        assert!(Buffer::compact(b"").is_empty());
    }

    #[test]
    fn a_frame_is_used_again_by_the_same_thread() {
        let buffer = Buffer::new();
        let address = buffer.frame.as_ptr();
        drop(buffer);
        assert_eq!(Buffer::new().frame.as_ptr(), address);
    }

    #[test]
    fn filling_never_goes_beyond_the_frame() {
        let mut buffer = Buffer::new();
        let room = buffer.spare_mut().len();
        buffer.fill(usize::MAX);
        assert_eq!(buffer.len(), room);
        buffer.truncate(10);
        assert_eq!(buffer.len(), 10);
    }
}
