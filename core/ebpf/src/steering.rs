//! Frames of one EtherType past the network stack to an AF_XDP socket.
//!
//! Reference: Linux kernel, Documentation/networking/af_xdp.rst.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::{LoadedProgram, Map, MapKind, MapShape, ProgramError, ProgramType, XdpLink, XdpMode};

const MAKE: &str = "make a map of the program that steers frames to a socket";
const NAME: &str = "weft_steer";
/// One socket, of the first queue.
const SHAPE: MapShape = MapShape::numbered(MapKind::Sockets, 4, 1);

/// Where programs at XDP find the AF_XDP socket of an interface's first queue, if there is one. The kernel forgets
/// a socket that is closed.
#[derive(Debug)]
pub struct PortSocket(Map);

impl PortSocket {
    /// Nothing yet.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`] without `CAP_BPF`.
    pub fn none() -> Result<Self, ProgramError> {
        Map::create("sockets", SHAPE).map(Self).map_err(refused)
    }

    /// Takes over what a descriptor stands for.
    pub(crate) fn of_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        Map::of_descriptor(descriptor, SHAPE).map(Self)
    }

    /// The same place once more.
    ///
    /// # Errors
    /// If there are too many descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Self::of_descriptor(self.descriptor().try_clone_to_owned()?)
    }

    /// Puts a socket here that is bound to the first queue.
    ///
    /// # Errors
    /// If it is no such socket.
    pub fn set(&self, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        self.0.set(&[0; 4], &socket.as_raw_fd().to_ne_bytes()).map_err(refused)
    }

    pub(crate) fn map(&self) -> &Map {
        &self.0
    }

    /// Its descriptor, for whoever keeps it.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor()
    }
}

/// A program at XDP that hands the frames of one EtherType to an AF_XDP socket, as long as this lives or somebody has
/// a copy of its descriptor. All other frames go on to the network stack.
#[derive(Debug)]
pub struct Steering {
    link: XdpLink,
}

impl Steering {
    /// Attaches one to `interface`, which must be in the network namespace of the calling thread: in the driver, or
    /// where that cannot be in the network stack.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`]; [`ProgramError::NotPermitted`] without `CAP_BPF` and `CAP_NET_ADMIN`; as
    /// [`XdpLink::attach`].
    pub fn attach(
        interface: &str,
        ethertype: u16,
        socket: &PortSocket,
    ) -> Result<Self, ProgramError> {
        let object = crate::embedded!("steer")?;
        let variables = MapShape::numbered(MapKind::Array, 8, 1);
        let variables = Map::create("variables", variables).map_err(refused)?;
        variables.set(&[0; 4], &u64::from(ethertype.to_be()).to_ne_bytes()).map_err(refused)?;
        let maps = [("sockets", socket.map()), (".bss", &variables)];
        let program = LoadedProgram::load(object, NAME, ProgramType::Xdp, &maps)?;
        let attach = |mode| Ok(Self { link: XdpLink::attach(interface, mode, &program)? });
        attach(XdpMode::Driver).or_else(|error| match error {
            ProgramError::NotSupported { .. } => attach(XdpMode::Generic),
            error => Err(error),
        })
    }

    /// The kernel's number of the program; nothing if its interface is gone.
    #[must_use]
    pub fn program(&self) -> Option<u32> {
        self.link.program()
    }

    /// What holds it: its link.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.link.descriptor()
    }

    /// Detaches the program, also if others have copies of its descriptor.
    ///
    /// # Errors
    /// As [`XdpLink::detach`].
    pub fn detach(self) -> Result<(), ProgramError> {
        self.link.detach()
    }
}

fn refused(error: io::Error) -> ProgramError {
    ProgramError::from_call(MAKE, &error)
}
