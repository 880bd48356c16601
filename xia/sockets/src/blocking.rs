//! A socket for ordinary programs: blocking calls, one thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt,
};
use weft_base::Packet;
use weft_xip::Address;
use weft_xip::channel::{self, BindRequest, Response};
use weft_xip::numbers::DEFAULT_HOP_LIMIT;

/// The longest message that a node sends, in bytes.
const MESSAGE_LEN: usize = 66_000;

/// Why a call on an [`XdpSocket`] failed.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// There is no node at this path, or this user may not talk to it.
    #[error(
        "cannot reach a node at {path}: {error}; start one with `weft run` or name it with --node"
    )]
    NoNode {
        /// The path of the node's socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The node went away.
    #[error("the node closed the connection")]
    Closed,
    /// Nothing came within the time that [`XdpSocket::set_timeout`] set.
    #[error("nothing was received in time")]
    TimedOut,
    /// The node refused, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The system refused.
    #[error("the connection to the node failed: {0}")]
    Io(#[from] io::Error),
}

/// A datagram socket, bound to an address of the node on this machine.
///
/// ```no_run
/// use std::path::Path;
/// use weft_xia_sockets::XdpSocket;
/// use weft_xip::{Address, XidType, channel::BindRequest};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Path::new("/run/weft/host/xia.sock");
/// let socket = XdpSocket::bind(node, BindRequest::Any(XidType::XDP))?;
/// let server: Address = "hid-0123456789012345678901234567890123456789-1:\
///                        xdp-9876543210987654321098765432109876543210-0".parse()?;
/// socket.send_to(b"hello", &server)?;
/// let (answer, from) = socket.recv_from()?;
/// # let _ = (answer, from); Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct XdpSocket {
    fd: OwnedFd,
    address: Address,
    hop_limit: u8,
}

impl XdpSocket {
    /// Connects to the node whose socket is at `node` and binds as `request` says.
    ///
    /// # Errors
    /// There is no node, or it refuses the bind.
    pub fn bind(node: &Path, request: BindRequest) -> Result<Self, SocketError> {
        let no_node = |error: rustix::io::Errno| SocketError::NoNode {
            path: node.to_owned(),
            error: error.into(),
        };
        let fd =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)?;
        connect(&fd, &SocketAddrUnix::new(node).map_err(no_node)?).map_err(no_node)?;
        send_message(&fd, &request.emit())?;
        match receive(&fd)? {
            Response::Bound(address) => Ok(Self { fd, address, hop_limit: DEFAULT_HOP_LIMIT }),
            Response::Failed(reason) => Err(SocketError::Refused(reason)),
            other => Err(SocketError::Refused(format!("unexpected answer to a bind: {other:?}"))),
        }
    }

    /// The address that others reach this socket by.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sets how far datagrams may go, in hops.
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// Sets how long [`XdpSocket::recv_from`] waits; `None`: for ever.
    ///
    /// # Errors
    /// The system refused, for instance a time of zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> Result<(), SocketError> {
        sockopt::set_socket_timeout(&self.fd, sockopt::Timeout::Recv, timeout)
            .map_err(|error| SocketError::Io(error.into()))
    }

    /// Sends a datagram. That it left says nothing about its arrival.
    ///
    /// # Errors
    /// The node went away.
    pub fn send_to(&self, payload: &[u8], destination: &Address) -> Result<(), SocketError> {
        let mut message = Packet::from_slice(payload);
        channel::emit_send(self.hop_limit, destination, &mut message);
        send_message(&self.fd, &message)
    }

    /// Waits for a datagram; returns its payload and its source, if the sender gave one.
    ///
    /// # Errors
    /// Nothing came in time; the node went away; [`SocketError::Refused`] says that an earlier
    /// datagram could not leave the node.
    pub fn recv_from(&self) -> Result<(Vec<u8>, Option<Address>), SocketError> {
        loop {
            match receive(&self.fd)? {
                Response::Datagram { source, payload } => {
                    return Ok((payload.bytes().to_vec(), source));
                }
                Response::Rejected(reason) | Response::Failed(reason) => {
                    return Err(SocketError::Refused(reason));
                }
                Response::Bound(_) | Response::Reply { .. } => {}
            }
        }
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn send_message(fd: &OwnedFd, message: &Packet) -> Result<(), SocketError> {
    match send(fd, message.bytes(), SendFlags::NOSIGNAL) {
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => Err(SocketError::Closed),
        Err(error) => Err(SocketError::Io(error.into())),
    }
}

fn receive(fd: &OwnedFd) -> Result<Response, SocketError> {
    let mut message = Packet::with_capacity(MESSAGE_LEN);
    let len = match recv(fd, message.spare_mut(), RecvFlags::empty()) {
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => return Err(SocketError::Closed),
        Ok((len, _)) => len,
        Err(rustix::io::Errno::AGAIN) => return Err(SocketError::TimedOut),
        Err(error) => return Err(SocketError::Io(error.into())),
    };
    message.fill(len);
    Response::parse(message).map_err(|error| SocketError::Refused(error.to_string()))
}
