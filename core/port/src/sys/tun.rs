//! TUN and TAP devices: Documentation/networking/tuntap.rst of the Linux kernel.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use super::interface;

/// Which kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IP packets.
    Tun,
    /// Ethernet frames.
    Tap,
}

/// Opens the clone device, on which [`attach`] then makes an interface.
pub(crate) fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

/// Attaches `device` to the interface called `name`, which is made if it does not exist.
pub(crate) fn attach(device: &File, name: &str, kind: Kind) -> io::Result<()> {
    let mut request = interface::named_request(name)?;
    let kind = match kind {
        Kind::Tun => libc::IFF_TUN,
        Kind::Tap => libc::IFF_TAP,
    };
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF takes an ifreq and reads its name and flags.
    unsafe { interface::ioctl(device.as_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request) }
}
