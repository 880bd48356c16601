//! The ends of what is measured: a flow, or a Unix socket used the ordinary way, a call a message.
//!
//! Reference: unix(7), send(2), recv(2).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, connect, listen, recv, send, socket_with,
};
use weft_flow::{Attached, Client, Kind, Limits, Listener, Options};

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Carrier {
    /// A flow of datagrams.
    Flow,
    /// A flow that is a stream.
    FlowStream,
    /// A socket that keeps borders.
    Seqpacket,
    /// A socket that does not.
    Stream,
}

/// Where the other process connects.
pub(super) enum Door {
    Flow(Listener),
    Socket(OwnedFd),
}

/// One end, whose calls wait.
pub(super) enum End {
    Flow(Box<Client>),
    Socket(OwnedFd),
}

impl Carrier {
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Flow => Some(Kind::Datagram),
            Self::FlowStream => Some(Kind::Stream),
            Self::Seqpacket | Self::Stream => None,
        }
    }

    fn socket(self) -> io::Result<OwnedFd> {
        let kind = if self == Self::Stream { SocketType::STREAM } else { SocketType::SEQPACKET };
        Ok(socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
    }

    /// Opens the door at `path`.
    pub(super) fn listen(self, path: &Path) -> Result<Door, String> {
        if self.kind().is_some() {
            return Listener::bind(path).map(Door::Flow).map_err(|error| error.to_string());
        }
        let bound = || {
            let socket = self.socket()?;
            bind(&socket, &SocketAddrUnix::new(path)?)?;
            listen(&socket, 1)?;
            Ok(Door::Socket(socket))
        };
        bound().map_err(|error: io::Error| format!("cannot listen at {}: {error}", path.display()))
    }

    /// Goes through the door at `path`.
    pub(super) fn connect(self, path: &Path) -> Result<End, String> {
        if let Some(kind) = self.kind() {
            let client = Client::connect(path, &Options::new(kind));
            return client.map(|client| End::Flow(client.into())).map_err(|e| e.to_string());
        }
        let connected = || {
            let socket = self.socket()?;
            connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(End::Socket(socket))
        };
        connected()
            .map_err(|error: io::Error| format!("cannot connect to {}: {error}", path.display()))
    }
}

impl Door {
    /// Waits for the other process.
    pub(super) fn accept(&self) -> Result<End, String> {
        match self {
            Self::Flow(listener) => accept_flow(listener).map_err(|error| error.to_string()),
            Self::Socket(socket) => accept_with(socket, SocketFlags::CLOEXEC)
                .map(End::Socket)
                .map_err(|error| format!("cannot accept: {error}")),
        }
    }
}

fn accept_flow(listener: &Listener) -> Result<End, weft_flow::Error> {
    let wait = |fd: &dyn AsFd| {
        // Should it be interrupted, the next call finds nothing, and the loop waits again.
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)], None);
    };
    let mut attaching = loop {
        wait(&listener.fd());
        if let Some(attaching) = listener.accept()? {
            break attaching;
        }
    };
    loop {
        wait(&attaching.fd());
        match attaching.advance(&Limits::default())? {
            Attached::NotYet(again) => attaching = again,
            Attached::Flow(flow) => return Ok(End::Flow(Client::over(flow).into())),
        }
    }
}

impl End {
    /// Sends all of `bytes`, a message where there are such; false if the other end is gone.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> bool {
        match self {
            Self::Flow(client) => client.send(bytes, None).is_ok(),
            Self::Socket(socket) => {
                while !bytes.is_empty() {
                    match send(&*socket, bytes, SendFlags::NOSIGNAL) {
                        Ok(sent) => bytes = &bytes[sent..],
                        Err(_) => return false,
                    }
                }
                true
            }
        }
    }

    /// Receives a message or what there is of a stream; `None` if the other end is gone.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match self {
            Self::Flow(client) => client.receive(buffer, None).ok(),
            Self::Socket(socket) => match recv(&*socket, buffer, RecvFlags::empty()) {
                Ok((_, len)) if len > 0 => Some(len),
                _ => None,
            },
        }
    }
}
