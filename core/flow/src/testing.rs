//! Sides that keep no rules, for tests (feature `testing`): a ring whose other side is played by whoever
//! writes into its memory, and an application that says what it wants to a stack's control socket.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test helper fails by panicking"
)]

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair,
};
use weft_mapping::{Fill, Mapping};
use weft_port::unix;

use crate::client::wait_readable;
use crate::layout::{CONTROL, DATA, Kind, Sizes};
use crate::ring::{Memory, Reader, Writer};
use crate::segment::{self, Side};
use crate::shared::Region;
use crate::wire::{Hello, Welcome};

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
    let sizes = Sizes { up: 1, down: 1 }.choose(kind);
    let file = segment::create(sizes).unwrap();
    let (writer, reader) = segment::rings(file.as_fd(), sizes, Side::Stack).unwrap();
    writer.prepare();
    reader.prepare();
    (writer, reader, Scribbler::of(file.as_fd(), sizes))
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
    let sizes = Sizes { up: 1, down: 1 }.choose(kind);
    let file = segment::create(sizes).unwrap();
    let side = |side| segment::rings(file.as_fd(), sizes, side).unwrap();
    (side(Side::Application), side(Side::Stack))
}

/// What an application greets with: the words, the memory, and its socket of the pair with the stack's.
#[derive(Debug)]
pub struct Greeting {
    /// The hello.
    pub words: Vec<u8>,
    /// The memory of the rings.
    pub memory: OwnedFd,
    /// The application's end of the pair.
    pub room: OwnedFd,
    /// The stack's end of the pair.
    pub theirs: OwnedFd,
}

impl Greeting {
    /// What a well-behaved application would say that wants rings of the smallest size.
    #[must_use]
    pub fn sound(kind: Kind) -> Self {
        let sizes = Sizes { up: 1, down: 1 }.choose(kind);
        let memory = segment::create(sizes).unwrap();
        // As an application would leave them: both readers sleep.
        segment::rings(memory.as_fd(), sizes, Side::Application).unwrap();
        let (room, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        Self { words: Hello { kind, sizes }.emit().to_vec(), memory, room, theirs }
    }
}

/// An application that says what it wants, when it wants.
#[derive(Debug)]
pub struct Intruder {
    /// Its connection to the control socket.
    pub control: OwnedFd,
}

impl Intruder {
    /// Connects to a stack.
    #[must_use]
    pub fn connect(path: &Path) -> Self {
        let patience = Duration::from_secs(60);
        Self { control: unix::connect(path, SocketType::SEQPACKET, patience).unwrap() }
    }

    /// Sends words and descriptors.
    pub fn say(&self, words: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let flags = SendFlags::NOSIGNAL;
        sendmsg(&self.control, &[IoSlice::new(words)], &mut control, flags).unwrap();
    }

    /// Waits for the answer: attached, or why not.
    ///
    /// # Errors
    /// What the stack said.
    pub fn answer(&self) -> Result<(), String> {
        wait_readable(self.control.as_fd(), None).unwrap();
        let mut answer = [0; 300];
        let (len, _) = recv(&self.control, &mut answer, RecvFlags::empty()).unwrap();
        match Welcome::parse(&answer[..len]).unwrap() {
            Welcome::Attached(_) => Ok(()),
            Welcome::Refused(why) => Err(why),
        }
    }

    /// Greets as a well-behaved application would, and gets a hand on everything.
    #[must_use]
    pub fn attach(&self, kind: Kind) -> (OwnedFd, Scribbler) {
        let Greeting { words, memory, room, theirs } = Greeting::sound(kind);
        let scribbler = Scribbler::of(memory.as_fd(), Sizes { up: 1, down: 1 }.choose(kind));
        self.say(&words, &[memory.as_fd(), theirs.as_fd()]);
        self.answer().unwrap();
        (room, scribbler)
    }
}

impl Scribbler {
    fn of(memory: BorrowedFd<'_>, sizes: Sizes) -> Self {
        let mapping = Arc::new(Mapping::new(memory, 0, sizes.total(), Fill::Later).unwrap());
        Self { whole: Region::whole(&mapping), len: sizes.total() }
    }

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
