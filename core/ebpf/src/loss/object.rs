//! The loss program in the kernel, and its maps.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{Array, Map, MapData};
use aya::programs::{SchedClassifier, loaded_programs};
use aya::{Ebpf, EbpfLoader};

use super::{LossProbability, LossSequence, LossStatistics};
use crate::LossError;
use crate::error::is_missing;

/// Name of the program, in the object file and at the hook.
pub(super) const NAME: &str = "weft_loss";
const CONFIG_MAP: &str = "loss_config";
const COUNTERS_MAP: &str = "loss_counters";

const LOAD: &str = "load the ebpf loss program";
const FIND: &str = "find the maps of an attached ebpf program";
const READ: &str = "read a map of the loss program";
const WRITE: &str = "write a map of the loss program";

/// The compiled program.
#[cfg(weft_bpf)]
const OBJECT: Result<&[u8], LossError> =
    Ok(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/loss.bpf.o")));
#[cfg(not(weft_bpf))]
const OBJECT: Result<&[u8], LossError> =
    Err(LossError::NotBuilt { reason: env!("WEFT_BPF_SKIPPED") });

/// A loaded program with maps of its own, not yet attached.
pub(super) struct Program {
    ebpf: Ebpf,
    maps: Maps,
}

/// Loads the program. It is gone again when the value is dropped before it was attached.
pub(super) fn load() -> Result<Program, LossError> {
    let refused = |error: &(dyn std::error::Error + 'static)| LossError::from_bpf(LOAD, error);
    // The program does not depend on the types of the running kernel, so these need not be read.
    let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT?).map_err(|e| refused(&e))?;
    classifier(&mut ebpf)?.load().map_err(|e| refused(&e))?;
    let maps = Maps {
        config: typed(ebpf.take_map(CONFIG_MAP), LOAD)?,
        counters: typed(ebpf.take_map(COUNTERS_MAP), LOAD)?,
    };
    Ok(Program { ebpf, maps })
}

fn classifier(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier, LossError> {
    let program = ebpf.program_mut(NAME).ok_or_else(|| foreign(LOAD, NAME))?;
    program.try_into().map_err(|error| LossError::from_bpf(LOAD, &error))
}

impl Program {
    pub(super) fn fd(&mut self) -> Result<BorrowedFd<'_>, LossError> {
        let fd = classifier(&mut self.ebpf)?.fd();
        Ok(fd.map_err(|error| LossError::from_bpf(LOAD, &error))?.as_fd())
    }

    pub(super) fn maps_mut(&mut self) -> &mut Maps {
        &mut self.maps
    }

    /// Forgets the program, which lives on where it was attached.
    pub(super) fn into_maps(self) -> Maps {
        self.maps
    }
}

/// The maps of a program. Both have one element of two 64-bit words; see `bpf/loss.bpf.c`.
pub(super) struct Maps {
    /// Seed and threshold.
    config: Array<MapData, [u64; 2]>,
    /// Packets seen and dropped.
    counters: Array<MapData, [u64; 2]>,
}

impl Maps {
    /// The maps of an attached program.
    pub(super) fn of_program(id: u32) -> Result<Self, LossError> {
        let (mut config, mut counters) = (None, None);
        for id in map_ids(id)? {
            let data = MapData::from_id(id).map_err(|error| LossError::from_bpf(FIND, &error))?;
            let info = data.info().map_err(|error| LossError::from_bpf(FIND, &error))?;
            match info.name_as_str() {
                Some(CONFIG_MAP) => config = Some(Map::Array(data)),
                Some(COUNTERS_MAP) => counters = Some(Map::Array(data)),
                _ => {}
            }
        }
        Ok(Self { config: typed(config, FIND)?, counters: typed(counters, FIND)? })
    }

    pub(super) fn sequence(&self) -> Result<LossSequence, LossError> {
        let [seed, threshold] = read(&self.config)?;
        Ok(LossSequence::new(seed, LossProbability::from_threshold(threshold)))
    }

    pub(super) fn set_sequence(&mut self, sequence: LossSequence) -> Result<(), LossError> {
        let value = [sequence.seed(), sequence.probability().threshold()];
        self.config.set(0, value, 0).map_err(|error| LossError::from_bpf(WRITE, &error))
    }

    pub(super) fn statistics(&self) -> Result<LossStatistics, LossError> {
        let [seen, dropped] = read(&self.counters)?;
        Ok(LossStatistics { seen, dropped })
    }
}

fn read(map: &Array<MapData, [u64; 2]>) -> Result<[u64; 2], LossError> {
    map.get(&0, 0).map_err(|error| LossError::from_bpf(READ, &error))
}

/// The identifiers of the maps that a program uses.
fn map_ids(program: u32) -> Result<Vec<u32>, LossError> {
    for info in loaded_programs() {
        let info = match info {
            // Some other program was removed while the list was read.
            Err(error) if is_missing(&error) => continue,
            info => info.map_err(|error| LossError::from_bpf(FIND, &error))?,
        };
        if info.id() == program {
            let ids = info.map_ids().map_err(|error| LossError::from_bpf(FIND, &error))?;
            return Ok(ids.unwrap_or_default());
        }
    }
    Err(foreign(FIND, "program"))
}

fn typed(map: Option<Map>, action: &'static str) -> Result<Array<MapData, [u64; 2]>, LossError> {
    let map = map.ok_or_else(|| foreign(action, "map"))?;
    Array::try_from(map).map_err(|error| LossError::from_bpf(action, &error))
}

/// A part is missing: the program was not made by this version of weft.
fn foreign(action: &'static str, part: &str) -> LossError {
    LossError::Refused {
        action,
        detail: format!("{part} is missing; the program is of another version, detach it"),
    }
}

#[cfg(test)]
mod tests;
