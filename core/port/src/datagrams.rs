//! Batched I/O on sockets that keep message borders: the part that Ethernet ports, UDP ports and the
//! runtime's channels share.
//!
//! One system call moves up to [`BATCH`] datagrams, straight into and out of packets.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::sockopt;
use weft_base::Packet;

use crate::sys;

/// The most datagrams that one call moves.
pub const BATCH: usize = sys::mmsg::BATCH;

/// The longest datagram that [`receive`] takes whole, in bytes.
pub const LONGEST: usize = 65_536;

/// Receives up to `max` (at most [`BATCH`]) datagrams that are waiting on a socket without
/// addresses and hands each to `take` in order, with whether its end was cut off because it is
/// longer than [`LONGEST`]. Returns how many there were. Once the other side has closed, `take` sees
/// nothing but empty datagrams.
///
/// # Errors
/// Those of recvmmsg(2); `WouldBlock` if nothing is waiting.
pub fn receive(
    socket: BorrowedFd<'_>,
    max: usize,
    mut take: impl FnMut(Packet, bool),
) -> io::Result<usize> {
    sys::mmsg::receive(socket, max, |received| take(received.packet, received.truncated))
}

/// What came of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The queue is empty.
    All,
    /// The socket takes no more for now.
    Blocked,
}

/// Sends from the front of `queue` until it is empty or the socket is full. Calls `sent` with each
/// datagram that the kernel took, and `refused` with each that it did not and why; if `refused`
/// returns an error, sending ends with it and the queue still holds that datagram.
///
/// # Errors
/// Those of `refused`.
pub fn send<E>(
    socket: BorrowedFd<'_>,
    queue: &mut VecDeque<Packet>,
    destination: impl Fn(&Packet) -> Option<SocketAddr>,
    mut sent: impl FnMut(&Packet),
    mut refused: impl FnMut(Errno) -> Result<(), E>,
) -> Result<Sent, E> {
    while !queue.is_empty() {
        match sys::mmsg::send(socket, queue, &destination) {
            Ok(count) => queue.drain(..count).for_each(|packet| sent(&packet)),
            Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::AGAIN => return Ok(Sent::Blocked),
                Errno::INTR => {}
                errno => {
                    refused(errno)?;
                    queue.pop_front();
                }
            },
        }
    }
    Ok(Sent::All)
}

/// Asks for a receive buffer of `bytes`, beyond the system's limit if we may.
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))?;
    Ok(())
}

/// Asks for a send buffer of `bytes`, beyond the system's limit if we may.
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_send_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes))?;
    Ok(())
}

/// Who is at the other end of a Unix socket, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Process id; zero if the process is invisible from this process's PID namespace.
    pub pid: u32,
    /// Effective user id when the connection was made.
    pub uid: u32,
    /// Effective group id when the connection was made.
    pub gid: u32,
}

/// Asks who is at the other end of a connected Unix socket.
///
/// # Errors
/// Those of getsockopt(2).
pub fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<Credentials> {
    let peer = sys::socket::peer(socket)?;
    Ok(Credentials { pid: u32::try_from(peer.pid).unwrap_or(0), uid: peer.uid, gid: peer.gid })
}
