//! What a process can have done with packet engines of the kernel.
//!
//! A process that makes decisions has an engine opened, and gets the descriptors of the tables that it may write;
//! then it has the engine's program attached to its interfaces. Where it may not do so itself, the FEA does. What
//! holds an engine comes back as descriptors, too, so that somebody can keep them beyond the life of a process.
//!
//! Reference: Handley et al. (XORP), §3 and §7 (one process has the privileges and the forwarding engine).

use weft_base::Handle;
use weft_ebpf::{EngineMode, Slot, XdpMode};

/// What to do with a packet engine.
#[derive(Debug)]
pub enum EngineRequest {
    /// Make the tables of an engine, if there are none of this size yet; answered by [`EngineReply::Opened`]. An engine with
    /// tables of another size is detached from everywhere.
    Open {
        /// Its name.
        engine: String,
        /// Room for so many entries in each of its tables that are found by key, in their order; that which the engine
        /// has by itself in those of which nothing is said.
        most: Vec<u32>,
    },
    /// Take over an engine that an earlier process has opened; answered by [`EngineReply::Adopted`].
    Adopt {
        /// Its name.
        engine: String,
        /// What was kept of it, by the names of [`EngineReply`].
        kept: Vec<(String, Handle)>,
    },
    /// Attach an engine's program to an interface, which becomes a port of the engine; answered by
    /// [`EngineReply::Attached`]. One that is there already stays, if that is where it may run.
    Attach {
        /// The name of the engine, which is open.
        engine: String,
        /// The name of the interface.
        interface: String,
        /// Its MAC address.
        mac: [u8; 6],
        /// The longest packet without its link header, in bytes.
        mtu: u32,
        /// Where the program may run.
        mode: EngineMode,
    },
    /// Detach it from an interface, by which no packets leave from then on; answered by [`EngineReply::Done`], also
    /// if it is not there, or not open.
    Detach {
        /// The name of the engine.
        engine: String,
        /// The name of the interface.
        interface: String,
    },
}

/// What came of an [`EngineRequest`].
#[derive(Debug)]
pub enum EngineReply {
    /// An engine is open.
    Opened {
        /// The tables that its process writes.
        tables: Vec<Handle>,
        /// What to keep of it; nothing if it was open before.
        keep: Vec<(String, Handle)>,
        /// What need not be kept any more, before that: it belonged to an engine with other tables.
        release: Vec<String>,
    },
    /// An engine was taken over.
    Adopted {
        /// The names of the interfaces that it is attached to.
        interfaces: Vec<String>,
    },
    /// An engine is attached to an interface.
    Attached {
        /// The number of the port.
        slot: Slot,
        /// Where the program runs.
        mode: XdpMode,
        /// Why it is not where it would be best, as far as that is known.
        fallback: Option<String>,
        /// What to keep of it; nothing if it was there before.
        keep: Vec<(String, Handle)>,
        /// What need not be kept any more: it belonged to interfaces that are gone.
        release: Vec<String>,
    },
    /// It is done. What was kept under these names need not be kept any more.
    Done {
        /// None if there was nothing.
        release: Vec<String>,
    },
}
