//! What a process can ask about eBPF programs at network interfaces.
//!
//! Programs are those that `weft_ebpf` embeds. An attachment has a number that is good in this process;
//! its handles can be kept elsewhere, so that it goes on when the process dies and the next one adopts it.

use weft_base::Handle;
use weft_ebpf::{Direction, FoundProgram, Program};

/// Something to do with programs.
#[derive(Debug)]
pub enum ProgramRequest {
    /// Attach a program; answered by [`ProgramReply::Attached`].
    Attach {
        /// The name of the interface.
        interface: String,
        /// The hook.
        direction: Direction,
        /// Which, with its parameters.
        program: Program,
    },
    /// Take over what an earlier process has attached; answered by [`ProgramReply::Attached`].
    Adopt {
        /// The name of the program.
        name: String,
        /// The number of the interface.
        interface: u32,
        /// The hook.
        direction: Direction,
        /// Its link, if it had one.
        link: Option<Handle>,
        /// Its map.
        state: Handle,
    },
    /// Give an attached program other parameters; answered by [`ProgramReply::Done`].
    Set {
        /// The number of the attachment.
        attachment: u32,
        /// The same program with them.
        program: Program,
    },
    /// Detach a program; answered by [`ProgramReply::Done`]. That somebody else has done it is no error.
    Detach {
        /// The number of the attachment.
        attachment: u32,
    },
    /// List what is attached to an interface; answered by [`ProgramReply::Listed`].
    List {
        /// The number of the interface.
        interface: u32,
    },
}

/// What came of a [`ProgramRequest`].
#[derive(Debug)]
pub enum ProgramReply {
    /// A program is attached.
    Attached(Attached),
    /// It is done.
    Done,
    /// The programs of an interface.
    Listed {
        /// All of them.
        found: Vec<FoundProgram>,
        /// What those of this process have counted, by the number of the attachment.
        counters: Vec<(u32, Vec<(&'static str, u64)>)>,
    },
}

/// A program that this process has attached or adopted.
#[derive(Debug)]
pub struct Attached {
    /// The number of the attachment.
    pub attachment: u32,
    /// The kernel's number of the program.
    pub id: u32,
    /// The number of the interface.
    pub interface: u32,
    /// The hook.
    pub direction: Direction,
    /// The program with its parameters.
    pub program: Program,
    /// Its link, if it has one, to be kept. Without a link it stays at the interface by itself.
    pub link: Option<Handle>,
    /// Its map, to be kept.
    pub state: Handle,
}
