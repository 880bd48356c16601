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

/// The interface to which `device` is attached, and its kind. Fails with `ENOTTY` or `EBADFD` if it is
/// no such device, or attached to none, and with `InvalidData` if it carries other packets than ours.
pub(crate) fn attached(device: &File) -> io::Result<(String, Kind)> {
    let mut request = interface::named_request("-")?;
    // SAFETY: TUNGETIFF takes an ifreq and fills in its name and flags.
    let flags = unsafe {
        interface::ioctl(device.as_fd(), libc::TUNGETIFF as libc::Ioctl, &mut request)?;
        i32::from(request.ifr_ifru.ifru_flags)
    };
    let name: Vec<u8> =
        request.ifr_name.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8(name).map_err(|_| io::ErrorKind::InvalidData)?;
    match flags & (libc::IFF_TUN | libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) {
        flags if flags == libc::IFF_TUN | libc::IFF_NO_PI => Ok((name, Kind::Tun)),
        flags if flags == libc::IFF_TAP | libc::IFF_NO_PI => Ok((name, Kind::Tap)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
