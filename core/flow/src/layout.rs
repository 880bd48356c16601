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
/// The size of a ring, in bytes, for which none is asked.
const USUAL: u32 = 256 * 1024;
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
    /// The sizes that rings get for which these are wanted, zero meaning what is usual: the next power of
    /// two.
    pub(crate) fn choose(self, kind: Kind) -> Self {
        let size = |wanted: u32| {
            let wanted = if wanted == 0 { USUAL } else { wanted };
            wanted.min(LARGEST).next_power_of_two().max(kind.smallest())
        };
        Self { up: size(self.up), down: size(self.down) }
    }

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
    /// The largest ring that an application may bring, in bytes; those of the smallest size are always
    /// taken.
    pub largest: u32,
}

impl Default for Limits {
    /// 4 MiB.
    fn default() -> Self {
        Self { largest: 4 * 1024 * 1024 }
    }
}

impl Limits {
    /// Says in a sentence without an end why rings of these sizes are not taken, if they are not.
    pub(crate) fn check(self, kind: Kind, sizes: Sizes) -> Result<(), String> {
        let largest = self.largest.max(kind.smallest());
        let size = sizes.up.max(sizes.down);
        if size > largest {
            return Err(format!(
                "a ring of {size} bytes is too large, it takes {largest} at most: ask for a smaller one"
            ));
        }
        Ok(())
    }
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
        fn what_is_chosen_is_valid_and_no_smaller_than_wanted(up: u32, down: u32, datagram: bool) {
            let kind = if datagram { Kind::Datagram } else { Kind::Stream };
            let chosen = Sizes { up, down }.choose(kind);
            prop_assert!(chosen.are_valid(kind), "{chosen:?}");
            prop_assert!(chosen.up >= up.min(LARGEST) && chosen.down >= down.min(LARGEST));
        }
    }

    #[test]
    fn sizes_are_rounded_up_to_powers_of_two() {
        let chosen = Sizes { up: 0, down: 5000 }.choose(Kind::Stream);
        assert_eq!(chosen, Sizes { up: 256 * 1024, down: 8192 });
        let chosen = Sizes { up: 1, down: u32::MAX }.choose(Kind::Datagram);
        assert_eq!(chosen, Sizes { up: 128 * 1024, down: 64 * 1024 * 1024 });
    }

    #[test]
    fn a_stack_takes_rings_up_to_its_limit_and_always_the_smallest() {
        let limits = Limits { largest: 8192 };
        assert_eq!(limits.check(Kind::Stream, Sizes { up: 8192, down: 4096 }), Ok(()));
        let error = limits.check(Kind::Stream, Sizes { up: 4096, down: 16_384 }).unwrap_err();
        assert!(error.contains("16384") && error.contains("8192"), "{error}");
        let smallest = Sizes { up: 1, down: 1 }.choose(Kind::Datagram);
        assert_eq!(limits.check(Kind::Datagram, smallest), Ok(()));
    }
}
