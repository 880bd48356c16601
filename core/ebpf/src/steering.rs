//! Frames of one EtherType past the network stack to an AF_XDP socket.
//!
//! Reference: Linux kernel, Documentation/networking/af_xdp.rst.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::{LoadedProgram, Map, MapKind, MapShape, ProgramError, ProgramType, XdpLink, XdpMode};

const MAKE: &str = "make a map of the program that steers frames to a socket";
const NAME: &str = "weft_steer";

/// A program at XDP that hands the frames of one EtherType to an AF_XDP socket, as long as this lives. All other
/// frames go on to the network stack.
#[derive(Debug)]
pub struct Steering {
    link: XdpLink,
}

impl Steering {
    /// Attaches one to `interface`, which must be in the network namespace of the calling thread, for a socket
    /// that is bound to its first queue: in the driver, or where that cannot be in the network stack.
    ///
    /// # Errors
    /// [`ProgramError::NotBuilt`]; [`ProgramError::NotPermitted`] without `CAP_BPF` and `CAP_NET_ADMIN`; as
    /// [`XdpLink::attach`].
    pub fn attach(
        interface: &str,
        ethertype: u16,
        socket: BorrowedFd<'_>,
    ) -> Result<Self, ProgramError> {
        let object = crate::embedded!("steer")?;
        let refused = |error: std::io::Error| ProgramError::from_call(MAKE, &error);
        let variables = MapShape::numbered(MapKind::Array, 8, 1);
        let variables = Map::create("variables", variables).map_err(refused)?;
        let sockets = MapShape::numbered(MapKind::Sockets, 4, 1);
        let sockets = Map::create("sockets", sockets).map_err(refused)?;
        let first = 0u32.to_ne_bytes();
        variables.set(&first, &u64::from(ethertype.to_be()).to_ne_bytes()).map_err(refused)?;
        sockets.set(&first, &socket.as_raw_fd().to_ne_bytes()).map_err(refused)?;
        let maps = [("sockets", &sockets), (".bss", &variables)];
        let program = LoadedProgram::load(object, NAME, ProgramType::Xdp, &maps)?;
        let attach = |mode| Ok(Self { link: XdpLink::attach(interface, mode, &program)? });
        attach(XdpMode::Driver).or_else(|error| match error {
            ProgramError::NotSupported { .. } => attach(XdpMode::Generic),
            error => Err(error),
        })
    }

    /// Takes over what another process has attached, as its link.
    ///
    /// # Errors
    /// As [`XdpLink::adopt`].
    pub fn adopt(link: OwnedFd) -> Result<Self, ProgramError> {
        Ok(Self { link: XdpLink::adopt(NAME, link)? })
    }

    /// What holds it: its link.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.link.descriptor()
    }
}
