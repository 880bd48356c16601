//! Which programs an interface has, whoever attached them.

use std::fmt;

use weft_netlink::{Direction, Refusal, TrafficControl, XdpMode};

use crate::{ProgramError, sys};

const LIST: &str = "list the programs of an interface";

/// Where a program hangs, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// Traffic control, by a link or without (TCX).
    Tcx(Direction),
    /// Traffic control, as a classifier below `clsact`.
    Classifier(Direction),
    /// The express data path, of which an interface has one in each mode.
    Xdp(XdpMode),
}

impl fmt::Display for HookKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcx(direction) => write!(f, "tcx {direction}"),
            Self::Classifier(direction) => write!(f, "clsact {direction}"),
            Self::Xdp(XdpMode::Driver) => f.write_str("xdp driver"),
            Self::Xdp(XdpMode::Generic) => f.write_str("xdp generic"),
            Self::Xdp(XdpMode::Hardware) => f.write_str("xdp hardware"),
        }
    }
}

/// A program that was found at an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// Where.
    pub hook: HookKind,
    /// The kernel's number of it.
    pub id: u32,
    /// Its name, as far as it may be known: without `CAP_SYS_ADMIN` that of classifiers alone, as whoever
    /// attached them said it.
    pub name: Option<String>,
    /// Whether this process has it bring frames to an AF_XDP port; see [`Steering`](crate::Steering).
    pub steers: bool,
}

/// The eBPF programs at an interface of the network namespace of the calling thread: those of traffic
/// control in the order in which they run, then those of XDP.
///
/// # Errors
/// [`ProgramError::NotPermitted`] without `CAP_NET_ADMIN`; [`ProgramError::NoInterface`].
pub fn programs_of(interface: u32) -> Result<Vec<FoundProgram>, ProgramError> {
    let refused = |refusal: &Refusal| match refusal.code() {
        Some(libc::ENODEV) => ProgramError::NoInterface { interface: interface.to_string() },
        Some(libc::EPERM) => ProgramError::NotPermitted { action: LIST },
        _ => ProgramError::Refused { action: LIST, detail: refusal.to_string() },
    };
    let control = TrafficControl::open();
    let mut control = control.map_err(|error| ProgramError::from_call(LIST, &error))?;
    let mut found = Vec::new();
    for direction in Direction::ALL {
        let linked = match sys::linked_programs(interface, direction) {
            Ok(linked) => linked,
            // The kernel has no such hooks.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Vec::new(),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                return Err(ProgramError::NoInterface { interface: interface.to_string() });
            }
            Err(error) => return Err(ProgramError::from_call(LIST, &error)),
        };
        let tcx =
            |id| FoundProgram { hook: HookKind::Tcx(direction), id, name: name(id), steers: false };
        found.extend(linked.into_iter().map(tcx));
        let classifiers = control.classifiers(interface, direction).map_err(|e| refused(&e))?;
        for classifier in classifiers {
            let Some(id) = classifier.program else { continue };
            let name = name(id).or(classifier.name);
            found.push(FoundProgram {
                hook: HookKind::Classifier(direction),
                id,
                name,
                steers: false,
            });
        }
    }
    for xdp in control.xdp(interface).map_err(|refusal| refused(&refusal))? {
        let (hook, id) = (HookKind::Xdp(xdp.mode), xdp.program);
        found.push(FoundProgram { hook, id, name: name(id), steers: false });
    }
    Ok(found)
}

/// The name of a program, if this process may know it.
#[must_use]
pub fn name(id: u32) -> Option<String> {
    sys::program_name(id).ok().filter(|name| !name.is_empty())
}
