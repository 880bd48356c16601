//! A ring whose other side is played by whoever writes into its memory; for tests (feature `testing`).
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test helper fails by panicking"
)]

use std::os::fd::AsFd;
use std::sync::Arc;

use crate::layout::{CONTROL, DATA, Kind, Limits, Sizes};
use crate::ring::{Memory, Reader, Writer};
use crate::segment::{self, Side};
use crate::shared::{Mapping, Region};

/// Bytes of the part of the memory where the indices and flags are.
pub const CONTROL_BYTES: usize = 2 * CONTROL;
/// Where the bytes of the rings begin.
pub const DATA_BEGIN: usize = DATA;

/// The memory of a flow, for somebody who keeps no rules.
pub struct Scribbler {
    whole: Region,
    /// Bytes of the whole memory.
    pub len: usize,
}

/// One side of a flow's rings, as the stack has them, and the other side's hand on the memory.
///
/// The rings have the smallest size that the kind allows.
#[must_use]
pub fn stack_side(
    kind: Kind,
) -> (Writer<impl Memory + use<>>, Reader<impl Memory + use<>>, Scribbler) {
    let sizes = Limits::default().grant(kind, Sizes { up: 1, down: 1 });
    let file = segment::create(sizes).unwrap();
    let (writer, reader) = segment::rings(&file, sizes, Side::Stack).unwrap();
    let mapping = Arc::new(Mapping::new(file.as_fd(), sizes.total()).unwrap());
    let whole = Region::whole(&mapping);
    (writer, reader, Scribbler { whole, len: sizes.total() })
}

/// Both sides of the rings of a flow of the smallest size: the application's and the stack's, each as
/// the end that writes and the end that reads.
#[must_use]
pub fn both_sides(
    kind: Kind,
) -> (
    (Writer<impl Memory + use<>>, Reader<impl Memory + use<>>),
    (Writer<impl Memory + use<>>, Reader<impl Memory + use<>>),
) {
    let sizes = Limits::default().grant(kind, Sizes { up: 1, down: 1 });
    let file = segment::create(sizes).unwrap();
    let side = |side| segment::rings(&file, sizes, side).unwrap();
    (side(Side::Application), side(Side::Stack))
}

impl Scribbler {
    /// Writes `bytes` at `at`, an offset into the whole memory; what lies beyond its end is left out.
    pub fn scribble(&self, at: usize, bytes: &[u8]) {
        let at = at.min(self.len);
        self.whole.write(at, &bytes[..bytes.len().min(self.len - at)]);
    }

    /// Reads `into.len()` bytes at `at`.
    pub fn look(&self, at: usize, into: &mut [u8]) {
        self.whole.read(at, into);
    }
}
