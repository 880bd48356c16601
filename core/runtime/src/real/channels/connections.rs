//! Channels of bytes: connections of TCP to peers that speak protocols of others.
//!
//! A connection that is being made waits under a number of a channel until it is known what comes of it. It becomes a
//! channel then, or a descriptor for another process.
//!
//! Reference: connect(2), tcp(7).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{bind, getpeername, getsockname, sockopt};
use weft_base::{ChannelId, Handle, Instant, Token};
use weft_port::stream::{self, PeerKey, StreamKeys, StreamListenerSpec, StreamSpec};
use weft_port::unix::BACKLOG;

use super::Channels;
use crate::address::ChannelKind;
use crate::real::channel::State;
use crate::real::listeners::Listener;
use crate::real::poller::{Interest, Poller, Source};
use crate::real::{clock, inherited, tcp};
use crate::{Event, StreamEvent, StreamRequest};

/// How long closing a channel may take: what was sent before leaves, and the other side closes it, too. Who follows
/// no rules of ours could else keep it for ever.
const LINGER: Duration = Duration::from_secs(10);
/// How many channels may be closing; the oldest gives way, so that those who do not follow keep nobody out.
const CROWD: usize = 128;

/// What there is besides channels.
#[derive(Default)]
pub(super) struct Connections {
    making: BTreeMap<ChannelId, Making>,
    /// Sockets that listen, here or elsewhere, whose keys can be changed.
    keyed: BTreeMap<Token, Keyed>,
    /// When channels that are being closed go.
    lingering: BTreeMap<ChannelId, Instant>,
}

/// A connection that is being made.
struct Making {
    token: Token,
    socket: OwnedFd,
    peer: SocketAddr,
    for_others: bool,
}

/// A duplicate of a descriptor, and the keys of its socket.
struct Keyed {
    socket: OwnedFd,
    keys: StreamKeys,
}

impl Connections {
    /// A channel is being closed; another one that has to go for it.
    pub(super) fn linger(&mut self, id: ChannelId) -> Option<ChannelId> {
        self.lingering.insert(id, clock::now() + LINGER);
        let oldest = self.lingering.iter().min_by_key(|(_, until)| **until)?;
        (self.lingering.len() > CROWD).then_some(*oldest.0)
    }

    /// A channel is gone.
    pub(super) fn lingers_no_more(&mut self, id: ChannelId) {
        self.lingering.remove(&id);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.lingering.values().min().copied()
    }

    /// A listener is to be closed.
    pub(super) fn close_listener(&mut self, token: Token) {
        self.keyed.remove(&token);
    }
}

impl Channels {
    /// Does something with connections; says what came of it if that is known at once.
    pub(in crate::real) fn stream(
        &mut self,
        token: Token,
        request: StreamRequest,
        poller: &Poller,
    ) -> Option<Event> {
        let done = match request {
            StreamRequest::Open(spec) => self.make(token, &spec, false, poller),
            StreamRequest::OpenHandle(spec) => self.make(token, &spec, true, poller),
            StreamRequest::Cancel => Ok(self.give_up(token, poller)),
            StreamRequest::Adopt(handle) => self.adopt_connection(handle, poller).map(Some),
            StreamRequest::Listen(spec) => self.listen_for_bytes(token, &spec, poller).map(Some),
            StreamRequest::OpenListenerHandle(spec) => self.lend_listener(token, &spec).map(Some),
            StreamRequest::AdoptListener(handle) => {
                self.adopt_byte_listener(token, handle, poller).map(Some)
            }
            StreamRequest::SetKeys(keys) => {
                let result = self.set_stream_keys(token, &keys);
                Ok(Some(StreamEvent::KeysSet { result }))
            }
        };
        let event = done.unwrap_or_else(|error| Some(StreamEvent::Failed { error }));
        event.map(|event| Event::Stream { token, event })
    }

    /// Begins to connect.
    fn make(
        &mut self,
        token: Token,
        spec: &StreamSpec,
        for_others: bool,
        poller: &Poller,
    ) -> Result<Option<StreamEvent>, String> {
        spec.check().map_err(|error| format!("cannot connect: {error}"))?;
        let peer = spec.peer;
        let (socket, connected) =
            tcp::connect_with("TCP", peer, |socket| prepare(socket.as_fd(), spec))?;
        let making = Making { token, socket, peer, for_others };
        if connected {
            return self.finish_making(making, poller).map(Some);
        }
        let id = ChannelId(self.last_channel + 1);
        poller
            .add(&making.socket, Source::Channel(id), Interest::Write)
            .map_err(|error| format!("cannot connect to TCP {peer}: {error}"))?;
        self.last_channel = id.0;
        self.connections.making.insert(id, making);
        Ok(None)
    }

    /// Whether this is a connection that is being made.
    pub(super) fn is_being_made(&self, id: ChannelId) -> bool {
        self.connections.making.contains_key(&id)
    }

    /// It is known what comes of a connection.
    pub(super) fn connection_made(&mut self, id: ChannelId, poller: &Poller) -> Option<Event> {
        let making = self.connections.making.remove(&id)?;
        let token = making.token;
        let done = match sockopt::socket_error(&making.socket).unwrap_or(Err(Errno::IO)) {
            Ok(()) if getpeername(&making.socket).is_err() => {
                self.connections.making.insert(id, making);
                return None;
            }
            Ok(()) => {
                poller.remove(making.socket.as_fd());
                self.finish_making(making, poller)
            }
            Err(errno) => {
                poller.remove(making.socket.as_fd());
                Err(tcp::connect_error("TCP", making.peer, errno))
            }
        };
        let event = done.unwrap_or_else(|error| StreamEvent::Failed { error });
        Some(Event::Stream { token, event })
    }

    /// Makes of a connection what it is for.
    fn finish_making(&mut self, making: Making, poller: &Poller) -> Result<StreamEvent, String> {
        let Making { socket, peer, for_others, .. } = making;
        let wrong = |error: io::Error| format!("the connection to TCP {peer} is lost: {error}");
        let (local, peer) = ends(socket.as_fd()).map_err(wrong)?;
        if for_others {
            return Ok(StreamEvent::HandleOpened { handle: socket.into(), local, peer });
        }
        let channel = self.insert(socket, ChannelKind::Bytes, State::Open, poller);
        Ok(StreamEvent::Opened { channel: channel.map_err(wrong)?, local, peer })
    }

    /// Gives up what a token stands for, if that is being made.
    fn give_up(&mut self, token: Token, poller: &Poller) -> Option<StreamEvent> {
        let mut given_up = self.connections.making.extract_if(.., |_, one| one.token == token);
        let (_, making) = given_up.next()?;
        poller.remove(making.socket.as_fd());
        let error = format!("connecting to TCP {} was given up, as was asked for", making.peer);
        Some(StreamEvent::Failed { error })
    }

    /// Uses a connection that another process has made.
    fn adopt_connection(&mut self, handle: Handle, poller: &Poller) -> Result<StreamEvent, String> {
        let wrong = |why: String| format!("a connection that was handed over is of no use: {why}");
        let socket = inherited::tcp(handle, false).map_err(wrong)?;
        let (local, peer) = ends(socket.as_fd()).map_err(|error| wrong(error.to_string()))?;
        let channel = self.insert(socket, ChannelKind::Bytes, State::Open, poller);
        let channel = channel.map_err(|error| wrong(error.to_string()))?;
        Ok(StreamEvent::Opened { channel, local, peer })
    }

    /// Makes a channel of a connection that came in.
    pub(super) fn accept_bytes(
        &mut self,
        socket: OwnedFd,
        token: Token,
        peer: SocketAddr,
        poller: &Poller,
    ) -> io::Result<Event> {
        let local = getsockname(&socket)?.try_into()?;
        let channel = self.insert(socket, ChannelKind::Bytes, State::Open, poller)?;
        Ok(Event::Stream { token, event: StreamEvent::Accepted { channel, local, peer } })
    }

    /// Opens a socket that listens, and accepts at it.
    fn listen_for_bytes(
        &mut self,
        token: Token,
        spec: &StreamListenerSpec,
        poller: &Poller,
    ) -> Result<StreamEvent, String> {
        let (socket, keyed, local) = open_listener(spec)?;
        self.wait_at(Listener::of_bytes(token, socket), poller)
            .map_err(|error| format!("cannot listen at TCP {local}: {error}"))?;
        self.connections.keyed.insert(token, keyed);
        Ok(StreamEvent::Listening { local })
    }

    /// Opens a socket that listens for another process.
    fn lend_listener(
        &mut self,
        token: Token,
        spec: &StreamListenerSpec,
    ) -> Result<StreamEvent, String> {
        let (socket, keyed, local) = open_listener(spec)?;
        self.connections.keyed.insert(token, keyed);
        Ok(StreamEvent::ListenerOpened { handle: socket.into(), local })
    }

    /// Accepts at a socket that another process has opened.
    fn adopt_byte_listener(
        &mut self,
        token: Token,
        handle: Handle,
        poller: &Poller,
    ) -> Result<StreamEvent, String> {
        let wrong = |why: String| format!("a listener that was handed over is of no use: {why}");
        let socket = inherited::tcp(handle, true).map_err(wrong)?;
        let local = own(socket.as_fd()).map_err(|error| wrong(error.to_string()))?;
        self.wait_at(Listener::of_bytes(token, socket), poller)
            .map_err(|error| wrong(error.to_string()))?;
        Ok(StreamEvent::Listening { local })
    }

    fn set_stream_keys(&mut self, token: Token, keys: &[PeerKey]) -> Result<(), String> {
        let keyed = self.connections.keyed.get_mut(&token).ok_or_else(|| {
            "no socket that listens was opened here whose keys could be changed".to_owned()
        })?;
        keyed.keys.set(keyed.socket.as_fd(), keys)
    }

    /// Ends the channels that have taken too long to close.
    pub(super) fn linger_no_longer(&mut self, now: Instant, poller: &Poller) {
        let lingering = &self.connections.lingering;
        let late: Vec<_> =
            lingering.iter().filter(|(_, until)| **until <= now).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.remove(id, poller));
    }
}

/// Gives the socket of a connection that is to be made its options and its address.
fn prepare(socket: BorrowedFd<'_>, spec: &StreamSpec) -> Result<(), String> {
    stream::prepare(socket, spec.peer.is_ipv4(), &spec.options)?;
    if let Some(key) = &spec.key {
        StreamKeys::set_for(socket, spec.peer.ip(), key)?;
    }
    let Some(local) = &spec.local else { return Ok(()) };
    bind(socket, local).map_err(|errno| match errno {
        Errno::ADDRNOTAVAIL => format!(
            "no interface of this machine has the address {}, or the link that it is on is not said; \
             `ip address` lists those that there are",
            local.ip()
        ),
        errno => format!("it cannot begin at {local}: {errno}"),
    })
}

/// A socket that listens, a duplicate of it with its keys, and where it is.
fn open_listener(spec: &StreamListenerSpec) -> Result<(OwnedFd, Keyed, SocketAddr), String> {
    let address = spec.local;
    let wrong = |error: io::Error| format!("cannot listen at TCP {address}: {error}");
    spec.check().map_err(|error| format!("cannot listen: {error}"))?;
    let mut keys = StreamKeys::default();
    let socket = tcp::listen_with("TCP", address, BACKLOG, |socket| {
        stream::prepare(socket.as_fd(), address.is_ipv4(), &spec.options)?;
        stream::require_ttls(socket.as_fd(), address.is_ipv4(), &spec.least_ttls)?;
        keys.set(socket.as_fd(), &spec.keys)
    })?;
    let local = own(socket.as_fd()).map_err(wrong)?;
    let duplicate = socket.try_clone().map_err(wrong)?;
    Ok((socket, Keyed { socket: duplicate, keys }, local))
}

fn own(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    Ok(getsockname(socket)?.try_into()?)
}

/// The own address of a connected socket, and the other side's.
fn ends(socket: BorrowedFd<'_>) -> io::Result<(SocketAddr, SocketAddr)> {
    let peer = getpeername(socket)?.ok_or(Errno::NOTCONN)?;
    Ok((own(socket)?, peer.try_into()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_that_are_being_closed_the_oldest_gives_way() {
        let mut connections = Connections::default();
        let numbers = 1..=CROWD as u32;
        assert!(numbers.clone().all(|number| connections.linger(ChannelId(number)).is_none()));
        assert_eq!(connections.linger(ChannelId(1000)), Some(ChannelId(1)));
        connections.lingers_no_more(ChannelId(1));
        connections.lingers_no_more(ChannelId(2));
        assert_eq!(connections.linger(ChannelId(1001)), None);
        assert!(connections.deadline().is_some_and(|deadline| deadline > clock::now()));
    }
}
