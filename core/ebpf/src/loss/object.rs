//! The loss program in the kernel, and its map.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{LossProbability, LossSequence, LossStatistics};
use crate::{ProgramError, object, sys};

/// Name of the program, in the object file and at the hook.
pub(crate) const NAME: &str = "weft_loss";
const STATE_MAP: &str = "loss_state";
/// The elements of the map; see `bpf/loss.bpf.c`.
const CONFIG: u32 = 0;
const COUNTERS: u32 = 1;
const ELEMENTS: u32 = 2;

const LOAD: &str = "load the ebpf loss program";
const FIND: &str = "find the map of an attached ebpf program";
const READ: &str = "read the map of the loss program";
const WRITE: &str = "write the map of the loss program";

/// The compiled program.
const OBJECT: Result<&[u8], ProgramError> = crate::embedded!("loss");

/// A loaded program with a map of its own, not yet attached.
pub(crate) struct Program {
    program: OwnedFd,
    state: State,
}

/// Loads the program. It is gone again when the value is dropped before it was attached.
pub(crate) fn load() -> Result<Program, ProgramError> {
    let refused = |error: io::Error| ProgramError::from_call(LOAD, &error);
    let state = State { map: sys::create_array(ELEMENTS, STATE_MAP).map_err(refused)? };
    let maps = [(STATE_MAP, state.map.as_fd())];
    let program = object::load(OBJECT?, NAME, object::ProgramType::TrafficControl, &maps)?;
    Ok(Program { program, state })
}

impl Program {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Forgets the program, which lives on where it was attached.
    pub(crate) fn into_state(self) -> State {
        self.state
    }
}

/// The map of a program: two elements of two 64-bit words; see `bpf/loss.bpf.c`.
#[derive(Debug)]
pub(crate) struct State {
    map: OwnedFd,
}

impl State {
    /// The map of an attached program.
    pub(crate) fn of_program(id: u32) -> Result<Self, ProgramError> {
        let maps = sys::maps_of(id).map_err(|error| ProgramError::from_call(FIND, &error))?;
        let state = maps.into_iter().find_map(|map| Self::of_descriptor(map).ok());
        state.ok_or_else(|| foreign(FIND, STATE_MAP))
    }

    /// The map that a descriptor stands for.
    pub(crate) fn of_descriptor(map: OwnedFd) -> Result<Self, ProgramError> {
        let found = sys::is_array(map.as_fd(), ELEMENTS, STATE_MAP);
        match found.map_err(|error| ProgramError::from_call(FIND, &error))? {
            true => Ok(Self { map }),
            false => Err(foreign(FIND, STATE_MAP)),
        }
    }

    /// The map, for whoever keeps it.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    pub(crate) fn sequence(&self) -> Result<LossSequence, ProgramError> {
        let [seed, threshold] = self.read(CONFIG)?;
        Ok(LossSequence::new(seed, LossProbability::from_threshold(threshold)))
    }

    pub(crate) fn set_sequence(&mut self, sequence: LossSequence) -> Result<(), ProgramError> {
        let value = [sequence.seed(), sequence.probability().threshold()];
        sys::write_element(self.map.as_fd(), CONFIG, value)
            .map_err(|error| ProgramError::from_call(WRITE, &error))
    }

    pub(crate) fn statistics(&self) -> Result<LossStatistics, ProgramError> {
        let [seen, dropped] = self.read(COUNTERS)?;
        Ok(LossStatistics { seen, dropped })
    }

    fn read(&self, element: u32) -> Result<[u64; 2], ProgramError> {
        sys::read_element(self.map.as_fd(), element)
            .map_err(|error| ProgramError::from_call(READ, &error))
    }
}

/// A part is missing: the program was not made by this version of weft.
fn foreign(action: &'static str, part: &str) -> ProgramError {
    ProgramError::Refused {
        action,
        detail: format!("{part} is missing; the program is of another version, detach it"),
    }
}

#[cfg(test)]
mod tests;
