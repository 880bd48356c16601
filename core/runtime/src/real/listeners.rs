//! Where a process listens: Unix sockets at paths, and TCP, bare or for TLS.
//!
//! Reference: unix(7), tcp(7).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{getpeername, getsockname};
use weft_base::Token;
use weft_keys::KeyHash;
use weft_port::datagrams::{self, Credentials};
use weft_port::unix::{self, Accepted};

use super::tcp;
use crate::address::ChannelKind;
use crate::{ChannelAddress, Peer};

/// A socket that listens.
pub(super) struct Listener {
    pub(super) token: Token,
    pub(super) kind: ChannelKind,
    /// The only key that is accepted, where keys are shown and there is one.
    pub(super) wanted: Option<KeyHash>,
    socket: unix::Listener,
}

impl Listener {
    /// Binds `address`. A socket that a dead process left at a path is replaced.
    pub(super) fn bind(token: Token, address: &ChannelAddress) -> Result<Self, String> {
        let kind = ChannelKind::of(address);
        let socket = match address {
            ChannelAddress::Packets(path)
            | ChannelAddress::Stream(path)
            | ChannelAddress::Flow(path) => unix::Listener::bind(path, kind.socket_type())?,
            ChannelAddress::Tcp(address) => {
                unix::Listener::of(tcp::listen_at(*address, unix::BACKLOG)?)
            }
            ChannelAddress::Tls { address, .. } => {
                unix::Listener::of(tcp::listen_anywhere("TLS", *address, unix::BACKLOG)?)
            }
        };
        Ok(Self { token, kind, wanted: wanted(address), socket })
    }

    /// A socket that listens already, and whose path is somebody else's.
    pub(super) fn inherited(token: Token, address: &ChannelAddress, socket: OwnedFd) -> Self {
        let kind = ChannelKind::of(address);
        Self { token, kind, wanted: wanted(address), socket: unix::Listener::of(socket) }
    }

    /// A socket that listens already for connections without frames.
    pub(super) fn of_bytes(token: Token, socket: OwnedFd) -> Self {
        let socket = unix::Listener::of(socket);
        Self { token, kind: ChannelKind::Bytes, wanted: None, socket }
    }

    /// Where it listens, having been asked to do so at `asked`.
    pub(super) fn address(&self, asked: &ChannelAddress) -> ChannelAddress {
        let bound = getsockname(self.fd()).ok().and_then(|bound| bound.try_into().ok());
        match (asked, bound) {
            (ChannelAddress::Tcp(_), Some(bound)) => ChannelAddress::Tcp(bound),
            (ChannelAddress::Tls { peer, .. }, Some(address)) => {
                ChannelAddress::Tls { address, peer: *peer }
            }
            _ => asked.clone(),
        }
    }

    /// Accepts one connection.
    pub(super) fn accept(&self) -> Accepted {
        self.socket.accept()
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }
}

fn wanted(address: &ChannelAddress) -> Option<KeyHash> {
    match address {
        ChannelAddress::Tls { peer, .. } => *peer,
        _ => None,
    }
}

/// Connects to the listener at `path`, without waiting.
pub(super) fn connect_to(path: &Path, kind: ChannelKind) -> Result<OwnedFd, String> {
    unix::connect(path, kind.socket_type(), Duration::ZERO)
}

/// Who is at the other end of a connected socket.
pub(super) fn peer(socket: BorrowedFd<'_>, kind: ChannelKind) -> io::Result<Peer> {
    if matches!(kind, ChannelKind::Tcp | ChannelKind::Tls | ChannelKind::Bytes) {
        let address = getpeername(socket)?.ok_or(Errno::NOTCONN)?;
        return Ok(Peer::Address(address.try_into()?));
    }
    Ok(process(datagrams::peer_credentials(socket)?))
}

/// A process as a peer.
pub(super) fn process(Credentials { pid, uid, gid }: Credentials) -> Peer {
    Peer::Process { pid, uid, gid }
}
