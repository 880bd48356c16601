//! System calls that have no safe wrapper elsewhere.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What an interface can do for the network stack, and can be told not to do.
/// Reference: Linux, include/uapi/linux/ethtool.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offload {
    /// Computing the checksums of what is sent (`ETHTOOL_STXCSUM`).
    TransmitChecksum,
    /// Cutting TCP data into segments (`ETHTOOL_STSO`).
    TcpSegmentation,
    /// The same, in software right before the driver (`ETHTOOL_SGSO`).
    GenericSegmentation,
}

impl Offload {
    fn command(self) -> u32 {
        match self {
            Self::TransmitChecksum => 0x17,
            Self::TcpSegmentation => 0x1f,
            Self::GenericSegmentation => 0x24,
        }
    }
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Switches an offload of `interface` off. `socket` is any socket in the interface's namespace.
pub(crate) fn switch_off(
    socket: BorrowedFd<'_>,
    interface: &str,
    offload: Offload,
) -> io::Result<()> {
    let mut value = EthtoolValue { command: offload.command(), data: 0 };
    // SAFETY: `ifreq` is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: for this request the kernel reads the name, which ends with a zero, and accesses one
    // `ethtool_value` behind the pointer; both live until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
