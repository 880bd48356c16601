//! The loss program in the kernel, and its map.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::maps::{Array, Map, MapData};
use aya::programs::{SchedClassifier, loaded_programs};
use aya::{Ebpf, EbpfLoader};

use super::{LossProbability, LossSequence, LossStatistics};
use crate::ProgramError;
use crate::error::is_missing;

/// Name of the program, in the object file and at the hook.
pub(crate) const NAME: &str = "weft_loss";
const STATE_MAP: &str = "loss_state";
/// Its elements; see `bpf/loss.bpf.c`.
const CONFIG: u32 = 0;
const COUNTERS: u32 = 1;

const LOAD: &str = "load the ebpf loss program";
const FIND: &str = "find the maps of an attached ebpf program";
const READ: &str = "read a map of the loss program";
const WRITE: &str = "write a map of the loss program";

/// The compiled program.
#[cfg(weft_bpf)]
const OBJECT: Result<&[u8], ProgramError> =
    Ok(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/loss.bpf.o")));
#[cfg(not(weft_bpf))]
const OBJECT: Result<&[u8], ProgramError> =
    Err(ProgramError::NotBuilt { reason: env!("WEFT_BPF_SKIPPED") });

/// A loaded program with maps of its own, not yet attached.
pub(crate) struct Program {
    ebpf: Ebpf,
    state: State,
}

/// Loads the program. It is gone again when the value is dropped before it was attached.
pub(crate) fn load() -> Result<Program, ProgramError> {
    let refused = |error: &(dyn std::error::Error + 'static)| ProgramError::from_bpf(LOAD, error);
    // The program does not depend on the types of the running kernel, so these need not be read.
    let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT?).map_err(|e| refused(&e))?;
    classifier(&mut ebpf)?.load().map_err(|e| refused(&e))?;
    let state = State::new(ebpf.take_map(STATE_MAP), LOAD)?;
    Ok(Program { ebpf, state })
}

fn classifier(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier, ProgramError> {
    let program = ebpf.program_mut(NAME).ok_or_else(|| foreign(LOAD, NAME))?;
    program.try_into().map_err(|error| ProgramError::from_bpf(LOAD, &error))
}

impl Program {
    pub(crate) fn fd(&mut self) -> Result<BorrowedFd<'_>, ProgramError> {
        let fd = classifier(&mut self.ebpf)?.fd();
        Ok(fd.map_err(|error| ProgramError::from_bpf(LOAD, &error))?.as_fd())
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
pub(crate) struct State {
    words: Array<MapData, [u64; 2]>,
    /// The same map, to be handed on.
    descriptor: OwnedFd,
}

impl State {
    /// The map of an attached program.
    pub(crate) fn of_program(id: u32) -> Result<Self, ProgramError> {
        for id in map_ids(id)? {
            let data =
                MapData::from_id(id).map_err(|error| ProgramError::from_bpf(FIND, &error))?;
            if is_state(&data)? {
                return Self::new(Some(Map::Array(data)), FIND);
            }
        }
        Self::new(None, FIND)
    }

    /// The map that a descriptor stands for.
    pub(crate) fn of_descriptor(descriptor: OwnedFd) -> Result<Self, ProgramError> {
        let data = MapData::from_fd(descriptor);
        let data = data.map_err(|error| ProgramError::from_bpf(FIND, &error))?;
        Self::new(if is_state(&data)? { Some(Map::Array(data)) } else { None }, FIND)
    }

    fn new(map: Option<Map>, action: &'static str) -> Result<Self, ProgramError> {
        let Some(Map::Array(data)) = map else { return Err(foreign(action, "map")) };
        let descriptor = data.fd().as_fd().try_clone_to_owned();
        let descriptor = descriptor.map_err(|error| ProgramError::from_call(action, &error))?;
        let words = Array::try_from(Map::Array(data));
        let words = words.map_err(|error| ProgramError::from_bpf(action, &error))?;
        match words.len() > COUNTERS {
            true => Ok(Self { words, descriptor }),
            false => Err(foreign(action, "map")),
        }
    }

    /// The map, for whoever keeps it.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(crate) fn sequence(&self) -> Result<LossSequence, ProgramError> {
        let [seed, threshold] = self.read(CONFIG)?;
        Ok(LossSequence::new(seed, LossProbability::from_threshold(threshold)))
    }

    pub(crate) fn set_sequence(&mut self, sequence: LossSequence) -> Result<(), ProgramError> {
        let value = [sequence.seed(), sequence.probability().threshold()];
        self.words.set(CONFIG, value, 0).map_err(|error| ProgramError::from_bpf(WRITE, &error))
    }

    pub(crate) fn statistics(&self) -> Result<LossStatistics, ProgramError> {
        let [seen, dropped] = self.read(COUNTERS)?;
        Ok(LossStatistics { seen, dropped })
    }

    fn read(&self, element: u32) -> Result<[u64; 2], ProgramError> {
        self.words.get(&element, 0).map_err(|error| ProgramError::from_bpf(READ, &error))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("State").field(&self.descriptor).finish()
    }
}

fn is_state(data: &MapData) -> Result<bool, ProgramError> {
    let info = data.info().map_err(|error| ProgramError::from_bpf(FIND, &error))?;
    Ok(info.name_as_str() == Some(STATE_MAP))
}

/// The identifiers of the maps that a program uses.
fn map_ids(program: u32) -> Result<Vec<u32>, ProgramError> {
    for info in loaded_programs() {
        let info = match info {
            // Some other program was removed while the list was read.
            Err(error) if is_missing(&error) => continue,
            info => info.map_err(|error| ProgramError::from_bpf(FIND, &error))?,
        };
        if info.id() == program {
            let ids = info.map_ids().map_err(|error| ProgramError::from_bpf(FIND, &error))?;
            return Ok(ids.unwrap_or_default());
        }
    }
    Err(foreign(FIND, "program"))
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
