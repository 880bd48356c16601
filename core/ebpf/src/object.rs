//! Programs in object files, as clang makes them, and their loading.
//!
//! Reference: Linux kernel, Documentation/bpf/btf.rst (`.maps`); the file is read by aya-obj.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::generated::bpf_insn;

use crate::{Map, ProgramError, sys};

const READ: &str = "read an ebpf program that is built in";
const LOAD: &str = "load an ebpf program";

/// The kinds of programs that are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramType {
    /// For the hooks of traffic control.
    TrafficControl,
    /// For what an interface receives, before the network stack sees it.
    Xdp,
    /// For what a socket receives: see [`attach_filter`](crate::attach_filter).
    SocketFilter,
}

impl ProgramType {
    const fn number(self) -> u32 {
        match self {
            Self::TrafficControl => sys::SCHED_CLS,
            Self::Xdp => 6,
            Self::SocketFilter => 1,
        }
    }
}

/// A program in the kernel, by a descriptor of it. It goes when nothing holds it: no descriptor, and no
/// interface that it is attached to.
#[derive(Debug)]
pub struct LoadedProgram {
    descriptor: OwnedFd,
}

impl LoadedProgram {
    /// Loads program `name` of an object file, with these maps under the names by which it knows them. Its
    /// variables are the map `.bss`: an array of one element.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`] without `CAP_BPF` and `CAP_NET_ADMIN`; [`ProgramError::Refused`] if
    /// the file or the program is wrong, or refers to a map that is not given.
    pub fn load(
        object: &[u8],
        name: &str,
        program_type: ProgramType,
        maps: &[(&str, &Map)],
    ) -> Result<Self, ProgramError> {
        let maps: Vec<_> = maps.iter().map(|(name, map)| (*name, map.descriptor())).collect();
        let descriptor = load(object, name, program_type, &maps)?;
        Ok(Self { descriptor })
    }

    /// Its descriptor.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// As [`LoadedProgram::load`].
pub(crate) fn load(
    object: &[u8],
    name: &str,
    program_type: ProgramType,
    maps: &[(&str, BorrowedFd<'_>)],
) -> Result<OwnedFd, ProgramError> {
    let object = linked(object, name, maps)?;
    let program = object.programs.get(name).ok_or_else(|| missing(name))?;
    let function = object.functions.get(&program.function_key()).ok_or_else(|| missing(name))?;
    let instructions: Vec<u64> = function.instructions.iter().map(encode).collect();
    let loaded = sys::load(program_type.number(), &instructions, &program.license, name);
    loaded.map_err(|error| ProgramError::from_call(LOAD, &error))
}

/// The object file, in which the program refers to its maps.
fn linked(
    bytes: &[u8],
    name: &str,
    given: &[(&str, BorrowedFd<'_>)],
) -> Result<aya_obj::Object, ProgramError> {
    let broken = |error: &(dyn std::error::Error + 'static)| ProgramError::Refused {
        action: READ,
        detail: match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    };
    let mut object = aya_obj::Object::parse(bytes).map_err(|error| broken(&error))?;
    // Others may refer to other maps.
    let others = object.programs.iter().filter(|(other, _)| *other != name);
    let others: HashSet<_> = others.map(|(_, program)| program.function_key()).collect();
    object.functions.retain(|key, _| !others.contains(key));
    object.programs.retain(|other, _| other == name);
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    let mut maps = Vec::new();
    for (name, descriptor) in given {
        let map = object.maps.get(*name).cloned().ok_or_else(|| missing(name))?;
        maps.push((*name, descriptor.as_raw_fd(), map));
    }
    let maps = maps.iter().map(|(name, descriptor, map)| (*name, *descriptor, map));
    object.relocate_maps(maps, &sections).map_err(|error| broken(&error))?;
    object.relocate_calls(&sections).map_err(|error| broken(&error))?;
    Ok(object)
}

/// A part is missing: the file was not made for this version of weft.
fn missing(part: &str) -> ProgramError {
    ProgramError::from_call(READ, &io::Error::other(format!("it has no {part}")))
}

/// `struct bpf_insn` of linux/bpf.h.
fn encode(instruction: &bpf_insn) -> u64 {
    let (to, from) = (instruction.dst_reg(), instruction.src_reg());
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let [a, b] = instruction.off.to_ne_bytes();
    let [c, d, e, f] = instruction.imm.to_ne_bytes();
    u64::from_ne_bytes([instruction.code, registers, a, b, c, d, e, f])
}

/// Bytes where the structures of an object file may be read.
#[doc(hidden)]
#[repr(C, align(8))]
pub struct Aligned<T: ?Sized>(pub T);

/// The object file of a program that the build script of the calling crate has compiled with
/// `weft_bpf_build`: `embedded!("loss")` is that of `bpf/loss.bpf.c`.
///
/// A `Result<&'static [u8], ProgramError>`: an error if clang was missing then.
#[macro_export]
macro_rules! embedded {
    ($name:literal) => {{
        #[cfg(weft_bpf)]
        const OBJECT: Result<&[u8], $crate::ProgramError> = {
            const ALIGNED: &$crate::Aligned<[u8]> =
                &$crate::Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
            Ok(&ALIGNED.0)
        };
        #[cfg(not(weft_bpf))]
        const OBJECT: Result<&[u8], $crate::ProgramError> =
            Err($crate::ProgramError::NotBuilt { reason: env!("WEFT_BPF_SKIPPED") });
        OBJECT
    }};
}
