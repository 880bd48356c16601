//! Socket addresses as the kernel writes them.

use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Who sent a datagram, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody in particular: the socket has no addresses (a connected Unix socket).
    None,
    /// A frame of a packet socket.
    Link {
        /// The Ethernet source address; zero if the link has another kind of address.
        mac: [u8; 6],
        /// `PACKET_HOST`, `PACKET_OTHERHOST` and so on.
        kind: u8,
    },
    /// A datagram of an IP socket.
    Ip(SocketAddr),
}

/// All zero: the kernel's "unspecified".
pub(crate) const EMPTY: libc::sockaddr_storage =
    // SAFETY: sockaddr_storage consists of integers, for which all bits zero is a value.
    unsafe { std::mem::zeroed() };

/// Reads what the kernel wrote into `storage`, of which `len` bytes are valid.
pub(crate) fn decode(storage: &libc::sockaddr_storage, len: libc::socklen_t) -> Source {
    let len = len as usize;
    match i32::from(storage.ss_family) {
        _ if len < size_of::<libc::sa_family_t>() => Source::None,
        libc::AF_PACKET if len >= size_of::<libc::sockaddr_ll>() => {
            // SAFETY: the storage is larger and stricter aligned than the type, which consists of
            // integers only, and the kernel filled in an address of this family.
            let link = unsafe { view::<libc::sockaddr_ll>(storage) };
            let mut mac = [0; 6];
            if usize::from(link.sll_halen) == mac.len() {
                mac.copy_from_slice(&link.sll_addr[..6]);
            }
            Source::Link { mac, kind: link.sll_pkttype }
        }
        libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: as above.
            let v4 = unsafe { view::<libc::sockaddr_in>(storage) };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Source::Ip(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let v6 = unsafe { view::<libc::sockaddr_in6>(storage) };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Source::Ip(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => Source::None,
    }
}

/// Writes `address` into `storage` as the kernel does; returns how many bytes are valid.
pub(crate) fn encode(address: SocketAddr, storage: &mut libc::sockaddr_storage) -> libc::socklen_t {
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is larger and stricter aligned than the type.
            unsafe { put(raw, storage) }
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { put(raw, storage) }
        }
    }
}

/// Sees `storage` as one of the concrete address types.
///
/// # Safety
/// `T` must be a socket address type made of integers, no larger than the storage.
unsafe fn view<T>(storage: &libc::sockaddr_storage) -> &T {
    const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
    // SAFETY: size checked above, alignment of the storage suits every address type (POSIX), and
    // every bit pattern is a value of `T` as the caller promises.
    unsafe { &*std::ptr::from_ref(storage).cast::<T>() }
}

/// Puts a concrete address into `storage`.
///
/// # Safety
/// `T` must be a socket address type, no larger than the storage.
unsafe fn put<T>(raw: T, storage: &mut libc::sockaddr_storage) -> libc::socklen_t {
    const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
    // SAFETY: size checked above; the storage is exclusively borrowed and suitably aligned.
    unsafe { std::ptr::from_mut(storage).cast::<T>().write(raw) };
    size_of::<T>() as libc::socklen_t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_addresses_are_read_as_they_were_written() {
        for text in ["127.0.0.1:4000", "203.0.113.9:65535", "[::1]:1", "[fe80::1%3]:9"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut storage = EMPTY;
            let len = encode(address, &mut storage);
            assert_eq!(decode(&storage, len), Source::Ip(address));
        }
    }

    #[test]
    fn a_short_or_unknown_address_is_nobody() {
        let mut storage = EMPTY;
        let len = encode("127.0.0.1:4000".parse().unwrap(), &mut storage);
        for short in 0..len {
            assert_eq!(decode(&storage, short), Source::None);
        }
        storage.ss_family = libc::AF_UNIX as libc::sa_family_t;
        assert_eq!(decode(&storage, 110), Source::None);
    }
}
