//! What the kernel says of network interfaces: `netdevice(7)` requests and `getifaddrs(3)`.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{self, Source};

/// What is known of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) index: i32,
    pub(crate) mtu: usize,
    /// `None` if the interface has no Ethernet-like address.
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) up: bool,
}

/// Looks the interface called `name` up in the network namespace of `socket`.
///
/// # Errors
/// `ENODEV` if there is none, `InvalidInput` if there cannot be one.
pub(crate) fn look_up(socket: BorrowedFd<'_>, name: &str) -> io::Result<Interface> {
    let mut request = named_request(name)?;
    // SAFETY: this request and the three below read the name and fill in the union member that is
    // read afterwards.
    let index = unsafe {
        ioctl(socket, libc::SIOCGIFINDEX, &mut request)?;
        request.ifr_ifru.ifru_ifindex
    };
    // SAFETY: see above.
    let mtu = unsafe {
        ioctl(socket, libc::SIOCGIFMTU, &mut request)?;
        request.ifr_ifru.ifru_mtu
    };
    // SAFETY: see above.
    let flags = unsafe {
        ioctl(socket, libc::SIOCGIFFLAGS, &mut request)?;
        request.ifr_ifru.ifru_flags
    };
    // SAFETY: see above.
    let hardware = unsafe {
        ioctl(socket, libc::SIOCGIFHWADDR, &mut request)?;
        request.ifr_ifru.ifru_hwaddr
    };
    Ok(Interface {
        index,
        mtu: usize::try_from(mtu).unwrap_or(0),
        mac: mac(&hardware),
        up: i32::from(flags) & libc::IFF_UP != 0,
    })
}

/// Sets the interface called `name` up.
pub(crate) fn set_up(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = named_request(name)?;
    // SAFETY: reads the name and fills in the flags.
    unsafe { ioctl(socket, libc::SIOCGIFFLAGS, &mut request)? };
    // SAFETY: the flags were filled in; the second request reads name and flags.
    unsafe {
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        ioctl(socket, libc::SIOCSIFFLAGS, &mut request)
    }
}

/// A request about the interface called `name`.
pub(super) fn named_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: ifreq consists of integers and a union of plain data; zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Carries a request out.
///
/// # Safety
/// `code` must be a request that takes an `ifreq`.
pub(super) unsafe fn ioctl(
    fd: BorrowedFd<'_>,
    code: libc::Ioctl,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the request is exclusively borrowed and of the type that the caller vouches for.
    super::check(unsafe { libc::ioctl(fd.as_raw_fd(), code, std::ptr::from_mut(request)) })?;
    Ok(())
}

fn mac(hardware: &libc::sockaddr) -> Option<[u8; 6]> {
    if !matches!(hardware.sa_family, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
        return None;
    }
    let mut mac = [0; 6];
    for (to, from) in mac.iter_mut().zip(&hardware.sa_data) {
        *to = *from as u8;
    }
    Some(mac)
}

/// The name of the interface that has `address`.
pub(crate) fn with_address(address: IpAddr) -> Option<String> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: on success `list` is a list that is ours until it is freed.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = list;
    // SAFETY: `next` is null or an element of the list, which lives until freeifaddrs below.
    while let Some(entry) = unsafe { next.as_ref() } {
        if ip(entry.ifa_addr) == Some(address) {
            // SAFETY: the name of an element is a C string that lives as long as the list.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            found = name.to_str().ok().map(str::to_owned);
            break;
        }
        next = entry.ifa_next;
    }
    // SAFETY: `list` came from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// The IP address behind a pointer from `getifaddrs`, if there is one.
fn ip(raw: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null or an address that lives as long as the list.
    let family = i32::from(unsafe { raw.as_ref() }?.sa_family);
    let len = match family {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    let mut storage = address::EMPTY;
    // SAFETY: an address of this family has `len` bytes, fewer than the storage.
    unsafe {
        std::ptr::copy_nonoverlapping(
            raw.cast::<u8>(),
            std::ptr::from_mut(&mut storage).cast::<u8>(),
            len,
        );
    }
    match address::decode(&storage, len as libc::socklen_t) {
        Source::Ip(address) => Some(address.ip()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn loopback_is_known_by_name_and_by_address() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let loopback = look_up(socket.as_fd(), "lo").unwrap();
        assert!(loopback.up && loopback.index > 0 && loopback.mtu >= 1280);
        assert_eq!(loopback.mac, Some([0; 6]));
        assert_eq!(with_address("127.0.0.1".parse().unwrap()).as_deref(), Some("lo"));
        assert_eq!(with_address("192.0.2.77".parse().unwrap()), None);
    }

    #[test]
    fn names_that_cannot_be_are_refused_before_the_kernel_sees_them() {
        for name in ["", "sixteen-letters!", "nul\0"] {
            assert_eq!(named_request(name).err().unwrap().kind(), io::ErrorKind::InvalidInput);
        }
        assert!(named_request("fifteen-letters").is_ok());
    }
}
