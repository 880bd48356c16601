//! Options of TCP sockets for which there is no safe wrapper: `setsockopt(2)`.
//!
//! Reference: ip(7) (`IP_MINTTL`), tcp(7), socket(7) (`SO_BINDTODEVICE`); linux/tcp.h (`TCP_MD5SIG_EXT`),
//! linux/in6.h (`IPV6_MINHOPCOUNT`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{self, EMPTY};

/// `TCP_MD5SIG_MAXKEYLEN`.
pub(crate) const LONGEST_KEY: usize = 80;
/// `TCP_MD5SIG_FLAG_PREFIX`: the length of the prefix counts.
const WITH_PREFIX: u8 = 1;

/// `struct tcp_md5sig`.
#[repr(C)]
struct Signature {
    address: libc::sockaddr_storage,
    flags: u8,
    prefix_length: u8,
    key_length: u16,
    interface: libc::c_int,
    key: [u8; LONGEST_KEY],
}

/// Gives a socket the key of the peers in a network, or takes it away if it is empty.
pub(crate) fn set_key(
    socket: BorrowedFd<'_>,
    network: IpAddr,
    prefix_length: u8,
    key: &[u8],
) -> io::Result<()> {
    let mut signature = Signature {
        address: EMPTY,
        flags: WITH_PREFIX,
        prefix_length,
        key_length: u16::try_from(key.len()).unwrap_or(u16::MAX),
        interface: 0,
        key: [0; LONGEST_KEY],
    };
    address::encode(SocketAddr::new(network, 0), &mut signature.address);
    let place = signature.key.get_mut(..key.len()).ok_or(io::ErrorKind::InvalidInput)?;
    place.copy_from_slice(key);
    set(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT, &signature)
}

/// Drops what comes with less time to live.
pub(crate) fn set_least_ttl(socket: BorrowedFd<'_>, is_ipv4: bool, ttl: u8) -> io::Result<()> {
    let (level, option) = least(is_ipv4);
    set(socket, level, option, &libc::c_int::from(ttl))
}

/// With which time to live it must come.
#[cfg(test)]
pub(crate) fn least_ttl(socket: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<libc::c_int> {
    let (level, option) = least(is_ipv4);
    let mut value: libc::c_int = 0;
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the integer.
    super::check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut len)
    })?;
    Ok(value)
}

fn least(is_ipv4: bool) -> (libc::c_int, libc::c_int) {
    match is_ipv4 {
        true => (libc::IPPROTO_IP, libc::IP_MINTTL),
        false => (libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT),
    }
}

/// Sends and receives by one interface alone. Its name is shorter than the kernel's limit.
pub(crate) fn bind_to_interface(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut bytes = [0_u8; libc::IFNAMSIZ];
    let place = bytes.get_mut(..name.len()).ok_or(io::ErrorKind::InvalidInput)?;
    place.copy_from_slice(name.as_bytes());
    set(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &bytes)
}

fn set<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads at most the size of the value, which is initialised: integers, an array of bytes,
    // or the structure above, which has no padding.
    super::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}
