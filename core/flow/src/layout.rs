//! Where things lie in the shared memory of a flow, and how large its rings may be.
//!
//! ```text
//!        0  control of the ring "up" (application to stack)    512 bytes
//!      512  control of the ring "down" (stack to application)  512 bytes
//!     4096  bytes of "up", as many as its size says
//!        …  bytes of "down", as many as its size says
//!
//! control of one ring, each word in a line of 128 bytes:
//!        0  tail    u64  bytes written since the beginning; stored by the writer
//!      128  head    u64  bytes read since the beginning; stored by the reader
//!      256  reader  u32  1: the reader sleeps and asks to be woken; 1 at first
//!      384  writer  u32  1: the writer waits for room and asks to be woken
//!
//! a datagram in a ring, at a multiple of 8:
//!        0  length  u32  bytes that follow, 1 to 65,536
//!        4  bytes
//!        …  whatever, up to the next multiple of 8
//! ```
//!
//! All numbers are in the byte order of the machine, which both sides run on. A ring's byte `n` lies at
//! `n` modulo the ring's size, a power of two; a datagram may begin at the end of the ring and go on
//! at its beginning, its length never does. A stream has bytes only.
//!
//! A line has 128 bytes because processors fetch pairs of lines of 64, and some have lines of 128.

/// The longest message, in bytes; also the longest piece in which a stream is received.
pub const LONGEST: usize = 65_536;

/// Bytes of a line, which no two words share.
pub(crate) const LINE: usize = 128;
/// Bytes of the control part of one ring.
pub(crate) const CONTROL: usize = 4 * LINE;
/// Where the bytes of the rings begin.
pub(crate) const DATA: usize = 4096;
/// What stands in front of a datagram's bytes: its length.
pub(crate) const HEADER: usize = 4;
/// Datagrams begin at multiples of this.
pub(crate) const ALIGN: usize = 8;

/// The smallest ring for a stream: a page.
const SMALLEST_STREAM: u32 = 4096;
/// The smallest ring for datagrams: the longest and a second one that is being written.
const SMALLEST_DATAGRAM: u32 = 128 * 1024;
/// The largest ring that can be asked for.
pub(crate) const LARGEST: u32 = 64 * 1024 * 1024;

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Messages of 1 to [`LONGEST`] bytes, whose borders are kept.
    Datagram,
    /// Bytes.
    Stream,
}

impl Kind {
    /// The smallest ring, in bytes.
    pub(crate) fn smallest(self) -> u32 {
        match self {
            Self::Datagram => SMALLEST_DATAGRAM,
            Self::Stream => SMALLEST_STREAM,
        }
    }
}

/// The sizes of a flow's two rings, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of the ring from the application to the stack.
    pub up: u32,
    /// Of the ring from the stack to the application.
    pub down: u32,
}

impl Sizes {
    /// Bytes of the whole shared memory.
    pub(crate) fn total(self) -> usize {
        DATA + self.up as usize + self.down as usize
    }

    /// Whether both rings have a size that a flow of this kind may have.
    pub(crate) fn are_valid(self, kind: Kind) -> bool {
        [self.up, self.down]
            .into_iter()
            .all(|size| size.is_power_of_two() && (kind.smallest()..=LARGEST).contains(&size))
    }
}

/// What a stack allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a ring, in bytes, for applications that ask for none.
    pub usual: u32,
    /// The largest ring that an application gets, in bytes.
    pub largest: u32,
}

impl Default for Limits {
    /// 256 KiB and 4 MiB.
    fn default() -> Self {
        Self { usual: 256 * 1024, largest: 4 * 1024 * 1024 }
    }
}

impl Limits {
    /// What an application gets that asks for `wanted`, zero meaning what is usual: the next power of
    /// two within the limits.
    pub(crate) fn grant(self, kind: Kind, wanted: Sizes) -> Sizes {
        let size = |wanted: u32| {
            let wanted = if wanted == 0 { self.usual } else { wanted };
            let largest = previous_power_of_two(self.largest.min(LARGEST));
            wanted.min(largest).next_power_of_two().max(kind.smallest())
        };
        Sizes { up: size(wanted.up), down: size(wanted.down) }
    }
}

fn previous_power_of_two(size: u32) -> u32 {
    size.checked_ilog2().map_or(1, |bits| 1 << bits)
}

/// Bytes that a datagram of `len` bytes takes in a ring.
pub(crate) fn record(len: usize) -> usize {
    (HEADER + len).next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_datagram_fits_the_smallest_ring_and_leaves_a_third() {
        let room = SMALLEST_DATAGRAM as usize - record(LONGEST);
        assert!(room > SMALLEST_DATAGRAM as usize / 3);
    }

    proptest! {
        #[test]
        fn what_is_granted_is_valid(
            up: u32, down: u32, usual: u32, largest: u32, datagram: bool,
        ) {
            let kind = if datagram { Kind::Datagram } else { Kind::Stream };
            let granted = Limits { usual, largest }.grant(kind, Sizes { up, down });
            prop_assert!(granted.are_valid(kind), "{granted:?}");
            prop_assert!(granted.up <= largest.max(kind.smallest()));
        }
    }

    #[test]
    fn sizes_are_rounded_up_within_the_limits() {
        let limits = Limits { usual: 300_000, largest: 5_000_000 };
        let granted = limits.grant(Kind::Stream, Sizes { up: 0, down: 5000 });
        assert_eq!(granted, Sizes { up: 512 * 1024, down: 8192 });
        let granted = limits.grant(Kind::Datagram, Sizes { up: 1, down: u32::MAX });
        assert_eq!(granted, Sizes { up: 128 * 1024, down: 4 * 1024 * 1024 });
    }
}
