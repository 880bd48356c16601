//! Programs at XDP: they see what an interface receives before the network stack does.
//!
//! Attached by links: a program stays until the last descriptor of its link is closed.
//!
//! Reference: bpf(2); Linux kernel, Documentation/networking/af_xdp.rst (modes), net/core/dev.c.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::xdp as sys;
use crate::tc::interface_index;
use crate::{LoadedProgram, ProgramError, XdpMode};

const ATTACH: &str = "attach a program to xdp";
const ADOPT: &str = "look at the link of a program at xdp";
const DETACH: &str = "detach a program from xdp";

/// How the kernel is asked for a mode (`XDP_FLAGS_*_MODE`).
const fn flags(mode: XdpMode) -> u32 {
    match mode {
        XdpMode::Generic => 1 << 1,
        XdpMode::Driver => 1 << 2,
        XdpMode::Hardware => 1 << 3,
    }
}

/// What a program at XDP says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpVerdict {
    /// Something went wrong: dropped.
    Aborted,
    /// Dropped.
    Drop,
    /// Goes on to the network stack.
    Pass,
    /// Leaves by the interface that it came by.
    Transmit,
    /// Leaves by another interface.
    Redirect,
}

impl XdpVerdict {
    const fn of_number(number: u32) -> Self {
        match number {
            1 => Self::Drop,
            2 => Self::Pass,
            3 => Self::Transmit,
            4 => Self::Redirect,
            _ => Self::Aborted,
        }
    }
}

/// A program that we have attached to an interface. Dropping it closes our descriptor, no more.
#[derive(Debug)]
pub struct XdpLink {
    link: OwnedFd,
    interface: u32,
}

impl XdpLink {
    /// Attaches a program to `interface`, which must be in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`ProgramError::NoInterface`]; [`ProgramError::NotPermitted`] without `CAP_NET_ADMIN`;
    /// [`ProgramError::NoDriver`] if the driver cannot; [`ProgramError::NotSupported`] or
    /// [`ProgramError::Refused`] if the kernel cannot, or another program is there.
    pub fn attach(
        interface: &str,
        mode: XdpMode,
        program: &LoadedProgram,
    ) -> Result<Self, ProgramError> {
        let index = interface_index(interface)
            .ok_or_else(|| ProgramError::NoInterface { interface: interface.to_owned() })?;
        let link = sys::create_link(index, flags(mode), program.descriptor());
        let link = link.map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) if mode == XdpMode::Driver => {
                let (interface, detail) = (interface.to_owned(), error.to_string());
                ProgramError::NoDriver { interface, detail }
            }
            Some(libc::EOPNOTSUPP) => {
                ProgramError::NotSupported { action: ATTACH, detail: error.to_string() }
            }
            _ => ProgramError::from_call(ATTACH, &error),
        })?;
        Ok(Self { link, interface: index })
    }

    /// Takes over a link that an earlier process has kept.
    ///
    /// # Errors
    /// [`ProgramError::NotOurs`] if it is something else, or its interface is gone.
    pub fn adopt(program: &'static str, link: OwnedFd) -> Result<Self, ProgramError> {
        let info = sys::link_info(link.as_fd());
        let info = info.map_err(|error| ProgramError::from_call(ADOPT, &error))?;
        match info {
            None => Err(ProgramError::NotOurs { program, detail: "it is no link of xdp" }),
            Some((0, _)) => Err(ProgramError::NotOurs {
                program,
                detail: "its interface is gone, or it was detached",
            }),
            Some((interface, _)) => Ok(Self { link, interface }),
        }
    }

    /// The number of its interface.
    #[must_use]
    pub fn interface(&self) -> u32 {
        self.interface
    }

    /// The kernel's number of the program; nothing if its interface is gone.
    #[must_use]
    pub fn program(&self) -> Option<u32> {
        let (interface, program) = sys::link_info(self.link.as_fd()).ok()??;
        (interface != 0).then_some(program)
    }

    /// The link, for whoever keeps it.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    /// Detaches the program, also if others have copies of its descriptor.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`], [`ProgramError::Refused`].
    pub fn detach(self) -> Result<(), ProgramError> {
        let detached = crate::sys::detach_link(self.link.as_fd());
        detached.map_err(|error| ProgramError::from_call(DETACH, &error))
    }
}

impl LoadedProgram {
    /// Runs a program for XDP on a frame, which begins with its link header. What it says, and the frame
    /// afterwards.
    ///
    /// # Errors
    /// What the kernel says: it takes frames of 14 bytes up to about a page, and `CAP_BPF`.
    pub fn run(&self, frame: &[u8]) -> io::Result<(XdpVerdict, Vec<u8>)> {
        let mut room = vec![0; frame.len() + 256];
        let (verdict, after) = sys::test_run(self.descriptor(), frame, 1, &mut room)?;
        Ok((XdpVerdict::of_number(verdict), after.to_vec()))
    }
}
