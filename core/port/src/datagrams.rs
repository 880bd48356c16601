//! Batched I/O on sockets that keep message borders: the part that Ethernet ports, UDP ports and the
//! runtime's channels share.
//!
//! One system call receives up to [`BATCH`] datagrams, straight into packets. Each is sent with a call of
//! its own: a batch would spare nothing that can be measured (see the handbook, "Performance"), and
//! sendmmsg(2) takes addresses from memory, where no system call filter sees them. Descriptors travel with
//! messages of Unix sockets (`SCM_RIGHTS`, see unix(7)).

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use weft_base::{Handle, Message, Packet};

use crate::sys;

/// The most datagrams that one call receives.
pub const BATCH: usize = sys::mmsg::BATCH;

/// The longest datagram that [`receive`] takes whole, in bytes.
pub const LONGEST: usize = 65_536;

/// The most descriptors that come and go with one message.
pub const MOST_HANDLES: usize = sys::rights::MOST;

/// A message that came in.
#[derive(Debug)]
pub struct Received {
    /// The message, with the handles that came along.
    pub message: Message,
    /// Its end was cut off because it is longer than [`LONGEST`].
    pub truncated: bool,
    /// There were more than [`MOST_HANDLES`] handles, or more than this process has room for. Those
    /// that are missing are closed.
    pub handles_missing: bool,
}

/// Receives up to `max` (at most [`BATCH`]) messages that are waiting on a connected Unix socket and
/// hands each to `take` in order. Returns how many there were. Once the other side has closed, `take`
/// sees nothing but empty messages.
///
/// # Errors
/// Those of recvmmsg(2); `WouldBlock` if nothing is waiting.
pub fn receive(
    socket: BorrowedFd<'_>,
    max: usize,
    mut take: impl FnMut(Received),
) -> io::Result<usize> {
    sys::mmsg::receive(socket, max, true, |received| {
        let handles = received.rights.descriptors.into_iter().map(Handle::from).collect();
        take(Received {
            message: Message { buffer: received.packet.into_buffer(), handles },
            truncated: received.truncated,
            handles_missing: received.rights.truncated,
        });
    })
}

/// What came of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The queue is empty.
    All,
    /// The socket takes no more for now.
    Blocked,
}

/// Sends from the front of `queue` until it is empty or the socket is full, each packet to where
/// `destination` says (`None`: where the socket is bound or connected to). Calls `sent` with each
/// datagram that the kernel took, and `refused` with each that it did not and why; if `refused`
/// returns an error, sending ends with it and the queue still holds that datagram.
///
/// # Errors
/// Those of `refused`.
pub fn send<E>(
    socket: BorrowedFd<'_>,
    queue: &mut VecDeque<Packet>,
    destination: impl Fn(&Packet) -> Option<SocketAddr>,
    sent: impl FnMut(&Packet),
    refused: impl FnMut(Errno) -> Result<(), E>,
) -> Result<Sent, E> {
    let send = |packet: &Packet| send_one(socket, packet.bytes(), destination(packet));
    send_each(queue, send, sent, refused)
}

/// The same by another way of sending one packet.
pub(crate) fn send_each<E>(
    queue: &mut VecDeque<Packet>,
    mut send: impl FnMut(&Packet) -> rustix::io::Result<()>,
    mut sent: impl FnMut(&Packet),
    mut refused: impl FnMut(Errno) -> Result<(), E>,
) -> Result<Sent, E> {
    while let Some(packet) = queue.front() {
        match send(packet) {
            Ok(()) => sent(packet),
            Err(Errno::AGAIN) => return Ok(Sent::Blocked),
            Err(Errno::INTR) => continue,
            Err(errno) => refused(errno)?,
        }
        queue.pop_front();
    }
    Ok(Sent::All)
}

/// The same for messages on a connected Unix socket.
///
/// # Errors
/// Those of `refused`.
pub fn send_messages<E>(
    socket: BorrowedFd<'_>,
    queue: &mut VecDeque<Message>,
    mut refused: impl FnMut(Errno) -> Result<(), E>,
) -> Result<Sent, E> {
    while let Some(first) = queue.front() {
        let result = match first.handles.is_empty() {
            true => send_one(socket, first.bytes(), None),
            false => send_with_handles(socket, first.bytes(), &first.handles).map(|_| ()),
        };
        match result {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(Sent::Blocked),
            Err(Errno::INTR) => continue,
            Err(errno) => refused(errno)?,
        }
        queue.pop_front();
    }
    Ok(Sent::All)
}

pub(crate) fn send_one(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    destination: Option<SocketAddr>,
) -> rustix::io::Result<()> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match destination {
        Some(address) => net::sendto(socket, bytes, flags, &address)?,
        None => net::send(socket, bytes, flags)?,
    };
    Ok(())
}

/// Sends bytes on a connected Unix socket, and with their first byte at most [`MOST_HANDLES`] handles.
/// Returns how many bytes were taken; a socket that keeps message borders takes all.
///
/// # Errors
/// Those of sendmsg(2); `AGAIN` if the socket is full, and `INVAL` for handles that are no descriptors
/// or too many.
pub fn send_with_handles(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    handles: &[Handle],
) -> rustix::io::Result<usize> {
    let descriptors: Option<Vec<_>> = handles.iter().map(Handle::descriptor).collect();
    let descriptors = descriptors.ok_or(Errno::INVAL)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)
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
