//! The loss program in the kernel, and its map.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::Object;
use aya_obj::generated::bpf_insn;

use super::{LossProbability, LossSequence, LossStatistics};
use crate::{ProgramError, sys};

/// Name of the program, in the object file and at the hook.
pub(crate) const NAME: &str = "weft_loss";
const STATE_MAP: &str = "loss_state";
/// The elements of the map; see `bpf/loss.bpf.c`.
const CONFIG: u32 = 0;
const COUNTERS: u32 = 1;
const ELEMENTS: u32 = 2;

const READ_OBJECT: &str = "read the ebpf loss program that is built in";
const LOAD: &str = "load the ebpf loss program";
const FIND: &str = "find the map of an attached ebpf program";
const READ: &str = "read the map of the loss program";
const WRITE: &str = "write the map of the loss program";

/// Bytes where the structures of an object file may be read.
#[cfg(weft_bpf)]
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// The compiled program.
#[cfg(weft_bpf)]
const OBJECT: Result<&[u8], ProgramError> = {
    const ALIGNED: &Aligned<[u8]> =
        &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/loss.bpf.o")));
    Ok(&ALIGNED.0)
};
#[cfg(not(weft_bpf))]
const OBJECT: Result<&[u8], ProgramError> =
    Err(ProgramError::NotBuilt { reason: env!("WEFT_BPF_SKIPPED") });

/// A loaded program with a map of its own, not yet attached.
pub(crate) struct Program {
    program: OwnedFd,
    state: State,
}

/// Loads the program. It is gone again when the value is dropped before it was attached.
pub(crate) fn load() -> Result<Program, ProgramError> {
    let refused = |error: io::Error| ProgramError::from_call(LOAD, &error);
    let state = State { map: sys::create_array(ELEMENTS, STATE_MAP).map_err(refused)? };
    let object = linked(OBJECT?, &state)?;
    let program = object.programs.get(NAME).ok_or_else(|| foreign(READ_OBJECT, NAME))?;
    let function = object.functions.get(&program.function_key());
    let function = function.ok_or_else(|| foreign(READ_OBJECT, NAME))?;
    let instructions: Vec<u64> = function.instructions.iter().map(encode).collect();
    let loaded = sys::load(sys::SCHED_CLS, &instructions, &program.license, NAME);
    Ok(Program { program: loaded.map_err(refused)?, state })
}

/// The object file, in which the program refers to its map.
fn linked(bytes: &[u8], state: &State) -> Result<Object, ProgramError> {
    let broken = |error: &(dyn std::error::Error + 'static)| ProgramError::Refused {
        action: READ_OBJECT,
        detail: error.to_string(),
    };
    let mut object = Object::parse(bytes).map_err(|error| broken(&error))?;
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    let map = object.maps.get(STATE_MAP).cloned();
    let map = map.ok_or_else(|| foreign(READ_OBJECT, STATE_MAP))?;
    let number = state.map.as_raw_fd();
    let maps = std::iter::once((STATE_MAP, number, &map));
    object.relocate_maps(maps, &sections).map_err(|error| broken(&error))?;
    object.relocate_calls(&sections).map_err(|error| broken(&error))?;
    Ok(object)
}

/// `struct bpf_insn` of linux/bpf.h.
fn encode(instruction: &bpf_insn) -> u64 {
    let (to, from) = (instruction.dst_reg(), instruction.src_reg());
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let [a, b] = instruction.off.to_ne_bytes();
    let [c, d, e, f] = instruction.imm.to_ne_bytes();
    u64::from_ne_bytes([instruction.code, registers, a, b, c, d, e, f])
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
