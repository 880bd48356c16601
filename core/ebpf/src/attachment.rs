//! Programs at interfaces that live as long as somebody holds them.
//!
//! With links (TCX, Linux 6.6 and newer) a program is attached until the last descriptor of its link
//! is closed: whoever keeps a copy of the descriptor keeps it attached, and a later process takes it over
//! with [`Attachment::adopt`]. On older kernels a classifier below `clsact` takes the place; it belongs to
//! the interface, and stays when everybody is gone, until it is detached.
//!
//! Programs of others are never detached or replaced. At a hook for links there is room for all; they
//! run in the order in which they were attached, and those of links before classifiers.
//!
//! Reference: bpf(2); Linux kernel, net/core/dev.c (`sch_handle_ingress`, `sch_handle_egress`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use weft_netlink::Direction;

use crate::loss::{self, State};
use crate::tc::Hook;
use crate::{Program, ProgramError, sys, table};

const ATTACH: &str = "attach a program to an interface";
const ADOPT: &str = "look at the link of a program";
const DETACH: &str = "detach a program";

/// How programs are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By links.
    Link,
    /// As classifiers.
    Classifier,
}

impl Way {
    /// The better one that this kernel has.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`] without `CAP_NET_ADMIN`.
    pub fn available() -> Result<Self, ProgramError> {
        // The loopback interface has number 1 in every namespace.
        match sys::linked_programs(1, Direction::Ingress) {
            Ok(_) => Ok(Self::Link),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                Err(ProgramError::from_call("ask for the programs of an interface", &error))
            }
            Err(_) => Ok(Self::Classifier),
        }
    }
}

/// A program that we have attached to an interface. Dropping it closes our descriptors, no more.
#[derive(Debug)]
pub struct Attachment {
    interface: u32,
    direction: Direction,
    program: u32,
    hold: Hold,
    state: State,
}

#[derive(Debug)]
enum Hold {
    Link(OwnedFd),
    Classifier(Hook),
}

/// A program that was attached earlier, as what was kept of it says.
#[derive(Debug)]
pub struct Kept {
    /// The number of the interface.
    pub interface: u32,
    /// The hook.
    pub direction: Direction,
    /// Its link; none if it is a classifier.
    pub link: Option<OwnedFd>,
    /// Its map.
    pub state: OwnedFd,
}

impl Attachment {
    /// Attaches a program to `interface`, which must be in the network namespace of the calling thread.
    /// With [`Way::Link`] it is detached when this value and all copies of its descriptors are gone.
    ///
    /// # Errors
    /// See [`ProgramError`]; with [`Way::Classifier`] also [`ProgramError::AlreadyAttached`] and
    /// [`ProgramError::Occupied`].
    pub fn attach(
        interface: &str,
        direction: Direction,
        program: &Program,
        way: Way,
    ) -> Result<Self, ProgramError> {
        let Program::Loss(sequence) = program;
        let mut hook = Hook::open(interface, direction)?;
        let index = hook.index();
        let mut loaded = loss::load()?;
        loaded.state_mut().set_sequence(*sequence)?;
        let (hold, program) = match way {
            Way::Link => {
                let link = sys::create_link(index, direction, loaded.fd());
                let link = link.map_err(|error| match error.raw_os_error() {
                    Some(libc::ENODEV) => {
                        ProgramError::NoInterface { interface: interface.to_owned() }
                    }
                    _ => ProgramError::from_call(ATTACH, &error),
                })?;
                let info = sys::link_info(link.as_fd());
                let info = info.map_err(|error| ProgramError::from_call(ADOPT, &error))?;
                (Hold::Link(link), info.map_or(0, |info| info.program))
            }
            Way::Classifier => {
                hook.attach(loaded.fd(), loss::NAME)?;
                let id = hook.program_id(loss::NAME)?;
                (Hold::Classifier(hook), id)
            }
        };
        Ok(Self { interface: index, direction, program, hold, state: loaded.into_state() })
    }

    /// Takes over what an earlier process has attached. What was kept is checked, since it comes from
    /// elsewhere.
    ///
    /// # Errors
    /// [`ProgramError::NotOurs`] if it is something else, or not attached any more.
    pub fn adopt(program: &str, kept: Kept) -> Result<Self, ProgramError> {
        if program != table::LOSS {
            return Err(not_ours("weft has no program of this name"));
        }
        let Kept { interface, direction, link, state } = kept;
        let state = State::of_descriptor(state)?;
        let (hold, program) = match link {
            Some(link) => {
                let info = sys::link_info(link.as_fd());
                let info = info.map_err(|error| ProgramError::from_call(ADOPT, &error))?;
                let info = info.ok_or_else(|| not_ours("it is no link of traffic control"))?;
                if info.interface == 0 {
                    return Err(not_ours("its interface is gone, or it was detached"));
                }
                if (info.interface, info.direction) != (interface, direction) {
                    return Err(not_ours("it is attached elsewhere"));
                }
                (Hold::Link(link), info.program)
            }
            None => {
                let mut hook = Hook::of_index(interface, direction)?;
                let id = hook.program_id(loss::NAME)?;
                (Hold::Classifier(hook), id)
            }
        };
        Ok(Self { interface, direction, program, hold, state })
    }

    /// The number of its interface.
    #[must_use]
    pub fn interface(&self) -> u32 {
        self.interface
    }

    /// Its hook.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The kernel's number of the program.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.program
    }

    /// Its link, if it has one, and its map, for whoever keeps them.
    #[must_use]
    pub fn descriptors(&self) -> (Option<BorrowedFd<'_>>, BorrowedFd<'_>) {
        let link = match &self.hold {
            Hold::Link(link) => Some(link.as_fd()),
            Hold::Classifier(_) => None,
        };
        (link, self.state.descriptor())
    }

    /// The program with its parameters.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if the kernel does not let them be read.
    pub fn program(&self) -> Result<Program, ProgramError> {
        self.state.sequence().map(Program::Loss)
    }

    /// What it has counted since it was attached, by name.
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if the kernel does not let the counters be read.
    pub fn counters(&self) -> Result<Vec<(&'static str, u64)>, ProgramError> {
        self.state.statistics().map(table::counted)
    }

    /// Gives it other parameters, from the next packet on. What it counts goes on; see
    /// [`Program::can_become`].
    ///
    /// # Errors
    /// [`ProgramError::Refused`] if the kernel does not let them be written.
    pub fn set(&mut self, program: &Program) -> Result<(), ProgramError> {
        let Program::Loss(sequence) = program;
        self.state.set_sequence(*sequence)
    }

    /// Detaches it, also if others have copies of its descriptors. That somebody else has done so, or the
    /// interface is gone, is no error.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`], [`ProgramError::Refused`].
    pub fn detach(self) -> Result<(), ProgramError> {
        match self.hold {
            Hold::Link(link) => sys::detach_link(link.as_fd())
                .map_err(|error| ProgramError::from_call(DETACH, &error)),
            Hold::Classifier(mut hook) => match hook.detach(loss::NAME) {
                Err(ProgramError::NotAttached { .. } | ProgramError::NoInterface { .. }) => Ok(()),
                result => result,
            },
        }
    }
}

fn not_ours(detail: &'static str) -> ProgramError {
    ProgramError::NotOurs { program: table::LOSS, detail }
}
