//! Packet sockets: `packet(7)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What the kernel dropped because the socket's buffer was full, since the last time it was asked.
pub(crate) fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the structure.
    super::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut len,
        )
    })?;
    Ok(statistics.tp_drops)
}

/// A raw packet socket that receives nothing yet.
///
/// # Errors
/// `PermissionDenied` without CAP_NET_RAW.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed; protocol zero receives nothing until the socket is bound.
    let fd = super::check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Receives frames of `ethertype` on the interface with `index` from now on.
pub(crate) fn bind(socket: BorrowedFd<'_>, index: i32, ethertype: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes of the address.
    super::check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(())
}

/// Where a packet socket is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) ethertype: u16,
    /// The interface's index; less than one if it is gone, or there never was one.
    pub(crate) index: i32,
    /// The interface's address, unless it is gone or has another kind of address.
    pub(crate) mac: Option<[u8; 6]>,
}

/// Asks where a packet socket is bound (getsockname(2)).
///
/// # Errors
/// `InvalidInput` if it is a socket of another family.
pub(crate) fn bound(socket: BorrowedFd<'_>) -> io::Result<Bound> {
    let mut address = libc::sockaddr_ll {
        sll_family: 0,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the address, which is made of integers.
    super::check(unsafe {
        libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len)
    })?;
    if i32::from(address.sll_family) != libc::AF_PACKET {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let [a, b, c, d, e, f, ..] = address.sll_addr;
    Ok(Bound {
        ethertype: u16::from_be(address.sll_protocol),
        index: address.sll_ifindex,
        mac: (address.sll_halen == 6).then_some([a, b, c, d, e, f]),
    })
}

/// Does not hand up what this host sends.
pub(crate) fn ignore_outgoing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Lets the interface with `index` hand up frames for other hosts as long as the socket is open.
pub(crate) fn take_all(socket: BorrowedFd<'_>, index: i32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    let len = size_of::<libc::packet_mreq>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes of the request.
    super::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            len,
        )
    })?;
    Ok(())
}

/// Sends past the kernel's queueing discipline: faster, but nothing is shaped any more.
pub(crate) fn bypass_qdisc(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::PACKET_QDISC_BYPASS, 1)
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes of the value.
    super::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const value).cast(),
            len,
        )
    })?;
    Ok(())
}
