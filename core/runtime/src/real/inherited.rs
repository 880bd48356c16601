//! Sockets that were open before the process started: a launcher binds and connects them, so that the
//! process needs no right to do so, and that no connection is lost while it starts again.
//!
//! Reference: socket(7) (`SO_DOMAIN`, `SO_TYPE`, `SO_ACCEPTCONN`), fcntl(2).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};
use weft_base::{Handle, Token};

use super::listeners::Listener;
use crate::ChannelAddress;
use crate::address::ChannelKind;

/// A socket that was open before the process started.
#[derive(Debug)]
pub enum Inherited {
    /// A Unix socket that listens at `path`. An [`Action::Listen`](crate::Action::Listen) there, with
    /// an address whose channels have sockets of that type, uses it. The path stays when the process ends.
    Listener {
        /// The path to which the socket is bound.
        path: PathBuf,
        /// The socket, of type `SOCK_SEQPACKET` or `SOCK_STREAM`.
        socket: OwnedFd,
    },
    /// A connected socket, announced by [`Event::Inherited`](crate::Event::Inherited): a Unix socket of
    /// type `SOCK_SEQPACKET` or `SOCK_STREAM`, or TCP.
    Channel {
        /// What the process knows it by.
        name: String,
        /// The socket.
        socket: OwnedFd,
    },
    /// A descriptor of any kind that an earlier life of the process had kept, told by
    /// [`Event::Kept`](crate::Event::Kept).
    Kept {
        /// The name under which it was kept.
        name: String,
        /// The descriptor.
        descriptor: OwnedFd,
    },
}

/// The listening sockets that nobody has asked for yet.
#[derive(Default)]
pub(super) struct Inheritance {
    listeners: BTreeMap<PathBuf, (OwnedFd, ChannelKind)>,
}

impl Inheritance {
    /// Adds a listening socket.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn add(&mut self, path: PathBuf, socket: OwnedFd) -> io::Result<()> {
        let what = format!("the inherited socket for `{}`", path.display());
        let kind = kind(&socket).filter(|kind| *kind != ChannelKind::Tcp);
        let listens = sockopt::socket_acceptconn(&socket).unwrap_or(false);
        let Some(kind) = kind.filter(|_| listens) else {
            return Err(other_kind(&what, "a Unix socket that listens"));
        };
        prepare(&socket)?;
        self.listeners.insert(path, (socket, kind));
        Ok(())
    }

    /// The listener for `address` if its path was inherited, or why it cannot be used.
    pub(super) fn take(
        &mut self,
        token: Token,
        address: &ChannelAddress,
    ) -> Option<Result<Listener, String>> {
        let path = match address {
            ChannelAddress::Packets(path)
            | ChannelAddress::Stream(path)
            | ChannelAddress::Flow(path) => path,
            ChannelAddress::Tcp(_) | ChannelAddress::Tls { .. } => return None,
        };
        let wanted = ChannelKind::of(address);
        let (_, kind) = self.listeners.get(path)?;
        if kind.socket_type() != wanted.socket_type() {
            return Some(Err(format!(
                "cannot listen at {address}: the inherited socket is {}, and {} is asked for",
                kind.name(),
                wanted.name()
            )));
        }
        let (socket, _) = self.listeners.remove(path)?;
        Some(Ok(Listener::inherited(token, address, socket)))
    }
}

/// A listener of a socket that another process has opened for TLS.
///
/// # Errors
/// A sentence: it is not what `address` says.
pub(super) fn adopt(
    token: Token,
    address: &ChannelAddress,
    handle: Handle,
) -> Result<Listener, String> {
    let no_socket = |_| format!("cannot listen at {address}: no descriptor was given for it");
    let socket = handle.into_descriptor().map_err(no_socket)?;
    let listens = sockopt::socket_acceptconn(&socket).unwrap_or(false);
    let is_for_tls = matches!(address, ChannelAddress::Tls { .. });
    if !listens || !is_for_tls || kind(&socket) != Some(ChannelKind::Tcp) {
        return Err(format!("cannot listen at {address}: the socket given for it is not for that"));
    }
    prepare(&socket).map_err(|error| format!("cannot listen at {address}: {error}"))?;
    Ok(Listener::inherited(token, address, socket))
}

/// A TCP socket that another process has opened, and that listens or is connected. It never blocks from now on.
///
/// # Errors
/// A sentence: it is something else.
pub(super) fn tcp(handle: Handle, listens: bool) -> Result<OwnedFd, String> {
    let socket = handle.into_descriptor().map_err(|_| "it is no descriptor".to_owned())?;
    if kind(&socket) != Some(ChannelKind::Tcp) {
        return Err("it is no socket of TCP".to_owned());
    }
    if sockopt::socket_acceptconn(&socket).unwrap_or(false) != listens {
        let not = if listens { "does not listen" } else { "listens" };
        return Err(format!("it is a socket that {not}"));
    }
    prepare(&socket).map_err(|error| error.to_string())?;
    Ok(socket)
}

/// What kind of channel a connected socket makes. It never blocks from now on.
///
/// # Errors
/// It makes none.
pub(super) fn connected(name: &str, socket: &OwnedFd) -> io::Result<ChannelKind> {
    let what = format!("the inherited channel `{name}`");
    let is_connected = rustix::net::getpeername(socket).is_ok_and(|peer| peer.is_some());
    let Some(kind) = kind(socket).filter(|_| is_connected) else {
        return Err(other_kind(&what, "a connected Unix or TCP socket"));
    };
    prepare(socket)?;
    Ok(kind)
}

fn prepare(socket: &OwnedFd) -> io::Result<()> {
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    fcntl_setfl(socket, fcntl_getfl(socket)? | OFlags::NONBLOCK)?;
    Ok(())
}

/// What kind of channel a socket is for.
fn kind(socket: &OwnedFd) -> Option<ChannelKind> {
    let domain = sockopt::socket_domain(socket).ok()?;
    match (domain, sockopt::socket_type(socket).ok()?) {
        (AddressFamily::UNIX, SocketType::SEQPACKET) => Some(ChannelKind::Packets),
        (AddressFamily::UNIX, SocketType::STREAM) => Some(ChannelKind::Stream),
        (AddressFamily::INET | AddressFamily::INET6, SocketType::STREAM) => Some(ChannelKind::Tcp),
        _ => None,
    }
}

fn other_kind(what: &str, wanted: &str) -> io::Error {
    io::Error::other(format!("{what} is not {wanted}: whoever starts this process must pass one"))
}
