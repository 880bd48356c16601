//! An interface that carries Ethernet frames, as whoever opens a port on it must know it.
//!
//! Reference: netdevice(7).

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::sys::interface;
use crate::{OpenError, PortInfo, PortSpec};

/// An interface that is up.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) index: i32,
    pub(crate) info: PortInfo,
}

impl Link {
    /// Looks the interface `name` up, in the network namespace of the calling thread, for the port `spec`.
    pub(crate) fn find(spec: &PortSpec, name: &str) -> Result<Self, OpenError> {
        let found = look_up(spec, name)?;
        if found.mac.is_none() {
            return Err(OpenError::NotEthernet { name: name.to_owned() });
        }
        Self::of(&found, name)
    }

    /// The same for a port that needs no Ethernet.
    pub(crate) fn find_any(spec: &PortSpec, name: &str) -> Result<Self, OpenError> {
        Self::of(&look_up(spec, name)?, name)
    }

    fn of(found: &interface::Interface, name: &str) -> Result<Self, OpenError> {
        if !found.up {
            return Err(OpenError::InterfaceDown { name: name.to_owned() });
        }
        let mac = found.mac.unwrap_or_default();
        let info = PortInfo { mac, mtu: found.mtu, local: None };
        Ok(Self { index: found.index, info })
    }
}

fn look_up(spec: &PortSpec, name: &str) -> Result<interface::Interface, OpenError> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::system(spec, "socket"))?;
    interface::look_up(socket.as_fd(), name).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NODEV) => OpenError::NoInterface { name: name.to_owned() },
        None => OpenError::BadName { name: name.to_owned() },
        Some(_) => OpenError::system(spec, "ioctl")(error),
    })
}
