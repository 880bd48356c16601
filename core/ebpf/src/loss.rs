//! Seeded packet loss on an interface.
//!
//! [`LossLink::attach`] loads the embedded program, writes seed and probability into its map,
//! and hangs it below the traffic control hook. It stays there when the process ends. A later process
//! finds program and map again with [`LossLink::open`].

mod object;
mod sequence;

use std::fmt;

use crate::tc::Hook;
use crate::{Direction, ProgramError};
pub(crate) use object::{NAME, State, load};

pub use sequence::{LossProbability, LossSequence, ProbabilityError};

/// What a loss program has done since it was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossStatistics {
    /// Packets that passed the hook, dropped or not. The next one has this index in the sequence.
    pub seen: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// A loss program at one hook of one interface.
///
/// Dropping this value leaves the program attached: it ends with [`LossLink::detach`] or with its
/// interface.
///
/// What counts as one packet is what the hook sees: a TCP segment that the network stack has not yet
/// split for the wire (TSO, GSO) is one. Links that shall lose packets of the size of the MTU need
/// segmentation offload switched off at the sender.
pub struct LossLink {
    hook: Hook,
    state: State,
}

impl LossLink {
    /// Attaches a loss program to `interface`, which must be in the network namespace of the calling
    /// thread.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`] if clang was missing at build time; [`ProgramError::NoInterface`],
    /// [`ProgramError::AlreadyAttached`]; [`ProgramError::NotPermitted`] without `CAP_BPF` and
    /// `CAP_NET_ADMIN`; [`ProgramError::NotSupported`] if the kernel lacks BPF or the hook.
    pub fn attach(
        interface: &str,
        direction: Direction,
        probability: LossProbability,
        seed: u64,
    ) -> Result<Self, ProgramError> {
        let mut hook = Hook::open(interface, direction)?;
        let mut program = load()?;
        program.state_mut().set_sequence(LossSequence::new(seed, probability))?;
        hook.attach(program.fd(), NAME)?;
        Ok(Self { hook, state: program.into_state() })
    }

    /// Finds the loss program that any process attached to `interface`, which must be in the network
    /// namespace of the calling thread.
    ///
    /// # Errors
    /// [`ProgramError::NoInterface`], [`ProgramError::NotAttached`]; [`ProgramError::NotPermitted`] without
    /// `CAP_SYS_ADMIN`.
    pub fn open(interface: &str, direction: Direction) -> Result<Self, ProgramError> {
        let mut hook = Hook::open(interface, direction)?;
        let program_id = hook.program_id(NAME)?;
        Ok(Self { hook, state: State::of_program(program_id)? })
    }

    /// What the program has done since it was attached. While packets flow, the two numbers are of
    /// slightly different moments.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if the kernel does not let the counters be read.
    pub fn statistics(&self) -> Result<LossStatistics, ProgramError> {
        self.state.statistics()
    }

    /// The decisions of the program, for all packets from the first on.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if the kernel does not let the configuration be read.
    pub fn sequence(&self) -> Result<LossSequence, ProgramError> {
        self.state.sequence()
    }

    /// Changes the probability from the next packet on. Seed and counters go on.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if the kernel does not let the configuration be written.
    pub fn set_probability(&mut self, probability: LossProbability) -> Result<(), ProgramError> {
        let seed = self.sequence()?.seed();
        self.state.set_sequence(LossSequence::new(seed, probability))
    }

    /// Detaches the program. The `clsact` queueing discipline, which does nothing by itself, stays.
    ///
    /// # Errors
    /// [`ProgramError::NotAttached`] if somebody else has detached it; [`ProgramError::NoInterface`] if
    /// the interface is gone; [`ProgramError::NotPermitted`].
    pub fn detach(mut self) -> Result<(), ProgramError> {
        self.hook.detach(NAME)
    }
}

impl fmt::Debug for LossLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossLink").field("hook", &self.hook).finish_non_exhaustive()
    }
}
