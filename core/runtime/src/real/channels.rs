//! Message channels between this process and others.
//!
//! Congestion is the carrier's: when a socket or the memory of a flow takes no more, the process hears
//! [`Event::Congested`], and [`Event::Drained`] once everything queued was taken.
//!
//! Reference: unix(7), tcp(7).

mod attaching;
mod connections;
mod encrypted;
mod listening;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};
use weft_base::{ChannelId, Message, Token};
use weft_flow::{Asking, Attaching, Kind};
use weft_keys::KeyHash;
use weft_port::datagrams::{self, Sent};
use weft_port::unix::Accepted;

use super::bytestream::{PIECE, Stream};
use super::channel::{Channel, Next, Pushed, Refused, State, Transport};
use super::flows::{Pending, WANTED};
use super::handshakes::Handshakes;
use super::inherited::{self, Inheritance};
use super::listeners::{Listener, connect_to, peer};
use super::outgoing::Outgoing;
use super::poller::{Interest, Poller, Source};
use super::{DriverDrop, Drops, Inherited, Options, tcp};
use crate::address::ChannelKind;
use crate::{ChannelAddress, Event, Keys, Peer};

use connections::Connections;
pub(super) use encrypted::open_listener;
use encrypted::{Place, Proven, place};

/// The kernel's send buffer per channel, in bytes: some four hundred messages of 1,500 bytes.
const SEND_BUFFER: usize = 1 << 20;
/// How many connections one listener accepts per turn.
const ACCEPTS_PER_TURN: usize = 16;
/// One user may have this part of all channels.
const SHARES: usize = 4;

/// Whose a connection is that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    /// A user of this machine.
    Uid(u32),
    /// Who has this key.
    Key(KeyHash),
}

pub(super) struct Channels {
    listeners: BTreeMap<u32, Listener>,
    open: BTreeMap<ChannelId, Channel>,
    /// Who asked for the channels that are [`State::Connecting`], and where they go.
    connecting: BTreeMap<ChannelId, (Token, SocketAddr)>,
    /// Connections that are to become flows.
    pending: BTreeMap<ChannelId, Pending>,
    /// The users who made the connections of these channels; some may be gone.
    users: BTreeMap<ChannelId, User>,
    /// What proves who this process is, and whom it accepts.
    keys: Option<Keys>,
    /// Connections that are to become channels of TLS, and whose such channels are.
    handshakes: Handshakes,
    proven: BTreeMap<ChannelId, Proven>,
    /// What there is besides of connections without frames.
    connections: Connections,
    /// Channels that may have more for which no descriptor becomes ready.
    unfinished: BTreeSet<ChannelId>,
    inheritance: Inheritance,
    last_listener: u32,
    last_channel: u32,
    /// Channels on which messages were sent in this turn.
    unflushed: Vec<ChannelId>,
    /// The number of this turn.
    turn: u64,
    /// Where streams are read to.
    piece: Vec<u8>,
    /// Given up for a moment to accept, and close, a connection when there are no descriptors left.
    spare: Option<File>,
    queue_limit: usize,
    stream_limit: usize,
    channel_limit: usize,
}

impl Channels {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            listeners: BTreeMap::new(),
            open: BTreeMap::new(),
            connecting: BTreeMap::new(),
            pending: BTreeMap::new(),
            users: BTreeMap::new(),
            keys: options.keys.clone(),
            handshakes: Handshakes::new(options.handshake),
            proven: BTreeMap::new(),
            connections: Connections::default(),
            unfinished: BTreeSet::new(),
            inheritance: Inheritance::default(),
            last_listener: 0,
            last_channel: 0,
            unflushed: Vec::new(),
            turn: 1,
            piece: Vec::new(),
            spare: spare(),
            queue_limit: options.channel_queue,
            stream_limit: options.stream_queue,
            channel_limit: options.channels,
        }
    }

    /// Takes over sockets that were open before the process started, and says which channels there are.
    ///
    /// # Errors
    /// A sentence about a socket that is not what it should be.
    pub(super) fn inherit(
        &mut self,
        inherited: Vec<Inherited>,
        poller: &Poller,
    ) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        for inherited in inherited {
            match inherited {
                Inherited::Listener { path, socket } => self.inheritance.add(path, socket)?,
                Inherited::Channel { name, socket } => {
                    let kind = inherited::connected(&name, &socket)?;
                    let channel = self.insert(socket, kind, State::Open, poller)?;
                    self.take_long(channel);
                    events.push(Event::Inherited { name, channel });
                }
                Inherited::Kept { name, descriptor } => {
                    events.push(Event::Kept { name, handle: descriptor.into() });
                }
            }
        }
        Ok(events)
    }

    /// Connects to a listener; says what came of it if that is known at once.
    pub(super) fn connect(
        &mut self,
        token: Token,
        address: &ChannelAddress,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        if let Some(place) = place(token, address) {
            let failed = self.connect_encrypted(place, poller, drops).err();
            return failed.map(|error| Event::ChannelFailed { token, error });
        }
        match self.try_connect(token, address, poller) {
            Ok(channel) => channel.map(|channel| Event::Connected { token, channel }),
            Err(error) => Some(Event::ChannelFailed { token, error }),
        }
    }

    fn try_connect(
        &mut self,
        token: Token,
        address: &ChannelAddress,
        poller: &Poller,
    ) -> Result<Option<ChannelId>, String> {
        let kind = ChannelKind::of(address);
        let path = match address {
            ChannelAddress::Packets(path) | ChannelAddress::Stream(path) => path,
            ChannelAddress::Flow(path) => {
                let asking = Asking::connect(path, Kind::Datagram, WANTED, Duration::ZERO)
                    .map_err(|error| error.to_string())?;
                self.wait_for(Pending::Asking(token, asking), poller)
                    .map_err(|error| format!("cannot connect to {address}: {error}"))?;
                return Ok(None);
            }
            ChannelAddress::Tcp(address) => {
                let (socket, connected) = tcp::connect_to(*address)?;
                let state = if connected { State::Open } else { State::Connecting };
                let channel = self
                    .insert(socket, kind, state, poller)
                    .map_err(|error| format!("cannot connect to TCP {address}: {error}"))?;
                self.take_long(channel);
                if !connected {
                    self.connecting.insert(channel, (token, *address));
                }
                return Ok(connected.then_some(channel));
            }
            ChannelAddress::Tls { .. } => return Ok(None),
        };
        let socket = connect_to(path, kind)?;
        let channel = self
            .insert(socket, kind, State::Open, poller)
            .map_err(|error| format!("cannot connect to {address}: {error}"))?;
        self.take_long(channel);
        Ok(Some(channel))
    }

    /// Accepts who waits at a listener.
    pub(super) fn accept(
        &mut self,
        number: u32,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = self.listeners.get(&number) else { return };
            let (token, kind, wanted) = (listener.token, listener.kind, listener.wanted);
            match listener.accept() {
                Accepted::Connection(socket) if self.has_room() => {
                    let place = |address| Place { token, address, wanted };
                    let adopted = match peer(socket.as_fd(), kind) {
                        Ok(Peer::Address(address)) if kind == ChannelKind::Tls => self
                            .accept_encrypted(socket, place(address), poller, drops)
                            .map(|()| None),
                        Ok(peer) => self.adopt(socket, kind, token, peer, poller),
                        Err(error) => Err(error),
                    };
                    match adopted {
                        Ok(event) => events.extend(event),
                        Err(_) => drops.add(DriverDrop::ConnectionRefused, 1),
                    }
                }
                Accepted::Connection(_) => drops.add(DriverDrop::ConnectionRefused, 1),
                Accepted::Nobody => return,
                Accepted::NoRoom => {
                    // Without this the listener would stay readable and keep the loop spinning.
                    self.spare = None;
                    drop(self.listeners.get(&number).map(Listener::accept));
                    self.spare = spare();
                    drops.add(DriverDrop::ConnectionRefused, 1);
                }
            }
        }
    }

    /// Whether there may be one channel more.
    fn has_room(&self) -> bool {
        self.open.len() + self.pending.len() < self.channel_limit
    }

    /// Makes a channel of an accepted connection, or begins to.
    fn adopt(
        &mut self,
        socket: OwnedFd,
        kind: ChannelKind,
        token: Token,
        peer: Peer,
        poller: &Poller,
    ) -> io::Result<Option<Event>> {
        if let (ChannelKind::Bytes, Peer::Address(peer)) = (kind, peer) {
            return self.accept_bytes(socket, token, peer, poller).map(Some);
        }
        let user = peer.uid().map(User::Uid);
        if user.is_some_and(|user| self.has_its_share(user)) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let event = if kind == ChannelKind::Flow {
            let attaching = Attaching::new(socket).map_err(io::Error::other)?;
            self.wait_for(Pending::Attaching(token, attaching), poller)?;
            None
        } else {
            let channel = self.insert(socket, kind, State::Open, poller)?;
            Some(Event::Accepted { token, channel, peer })
        };
        if let Some(user) = user {
            self.users.insert(ChannelId(self.last_channel), user);
        }
        Ok(event)
    }

    /// Whether a user has as many connections as are for one: with more, somebody who may only
    /// connect could keep everybody else out. Root, and the user of this process, could end it anyway.
    fn has_its_share(&mut self, user: User) -> bool {
        let Self { users, open, pending, .. } = self;
        users.retain(|id, _| open.contains_key(id) || pending.contains_key(id));
        let own = rustix::process::geteuid().as_raw();
        let trusted = [0, own].map(User::Uid).contains(&user);
        let theirs = users.values().filter(|one| **one == user).count();
        !trusted && theirs >= self.channel_limit / SHARES
    }

    /// Opens a channel on a socket.
    fn insert(
        &mut self,
        socket: OwnedFd,
        kind: ChannelKind,
        state: State,
        poller: &Poller,
    ) -> io::Result<ChannelId> {
        // A smaller buffer only means congestion earlier.
        let _ = datagrams::set_send_buffer(socket.as_fd(), SEND_BUFFER);
        if kind == ChannelKind::Tcp {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        let id = ChannelId(self.last_channel + 1);
        let interest = if state == State::Connecting { Interest::Write } else { Interest::Read };
        poller.add(&socket, Source::Channel(id), interest)?;
        let transport = if kind == ChannelKind::Packets {
            Transport::Packets(socket, Outgoing::new(self.queue_limit))
        } else {
            self.make_room();
            let stream = match kind {
                ChannelKind::Bytes => Stream::plain(self.stream_limit),
                _ => Stream::new(self.stream_limit),
            };
            Transport::Stream(socket, stream)
        };
        self.last_channel = id.0;
        self.open.insert(id, Channel::new(kind, transport, state));
        Ok(id)
    }

    /// Sees to it that streams can be read. The kernel gives such a piece page by page as it is used, and most processes
    /// read little at a time.
    fn make_room(&mut self) {
        if self.piece.is_empty() {
            self.piece = vec![0; PIECE];
        }
    }

    /// Queues a message to be sent at the end of the turn; returns what happened to the channel.
    pub(super) fn send(
        &mut self,
        id: ChannelId,
        message: Message,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        let usable = self.usable(id).filter(|channel| channel.state != State::Broken);
        let Some(channel) = usable else {
            drops.add(DriverDrop::ChannelGone, 1);
            return None;
        };
        match channel.push(message) {
            Ok(Pushed::First) => self.unflushed.push(id),
            Ok(Pushed::Queued) => {}
            Ok(Pushed::FullBatch) => return self.flush_one(id, poller, drops),
            Err(Refused::Dropped(reason)) => drops.add(reason, 1),
            Err(Refused::Fatal(reason)) => {
                drops.add(reason, 1);
                self.remove(id, poller);
                return Some(Event::Closed { channel: id });
            }
        }
        None
    }

    /// Closes a channel as soon as what was sent on it has left.
    pub(super) fn close(&mut self, id: ChannelId, poller: &Poller, drops: &mut Drops) {
        let Some(channel) = self.usable(id) else {
            return drops.add(DriverDrop::ChannelGone, 1);
        };
        channel.state = State::Closing;
        if channel.lingers() {
            let oldest = self.connections.linger(id);
            oldest.into_iter().for_each(|oldest| self.remove(oldest, poller));
        }
        self.flush_one(id, poller, drops);
    }

    /// Takes long messages on a channel from now on.
    pub(super) fn take_long(&mut self, id: ChannelId) {
        if let Some(channel) = self.open.get_mut(&id) {
            channel.take_long();
        }
    }

    /// The channels that may have more for which no descriptor becomes ready. Who asks serves them.
    pub(super) fn take_unfinished(&mut self) -> BTreeSet<ChannelId> {
        std::mem::take(&mut self.unfinished)
    }

    /// Whether there are such channels.
    pub(super) fn are_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Receives one batch of messages.
    pub(super) fn receive(
        &mut self,
        id: ChannelId,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        if self.is_handshaking(id) {
            return events.extend(self.shake_hands(id, poller, drops));
        }
        if self.is_being_made(id) {
            return events.extend(self.connection_made(id, poller));
        }
        if let Some(pending) = self.pending.remove(&id) {
            return events.extend(self.advance(id, pending, poller, drops));
        }
        let Self { open, piece, turn, .. } = self;
        let Some(channel) = open.get_mut(&id) else { return };
        // What comes on a flow that is being closed has to be taken, or its descriptor stays ready.
        let is_flow = channel.room_fd().is_some();
        if channel.state == State::Connecting || channel.state == State::Closing && !is_flow {
            return;
        }
        let unheard = matches!(channel.state, State::Draining | State::Closing);
        let (event, next) = channel.receive(id, piece, drops);
        let answers = channel.has_to_answer();
        if event.is_some() {
            channel.heard = *turn;
        }
        events.extend(event.filter(|_| !unheard));
        match next {
            Next::Waits if answers => events.extend(self.flush_one(id, poller, drops)),
            Next::Waits => {}
            Next::Unfinished => drop(self.unfinished.insert(id)),
            Next::End => {
                self.remove(id, poller);
                events.extend((!unheard).then_some(Event::Closed { channel: id }));
            }
        }
    }

    /// The descriptor that tells when a channel has room again is ready.
    pub(super) fn room(
        &mut self,
        id: ChannelId,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        let Some(channel) = self.open.get_mut(&id) else { return };
        if channel.hear_room(drops) {
            events.extend(self.flush_one(id, poller, drops));
        } else if channel.state == State::Closing {
            self.remove(id, poller);
        } else {
            // It stays ready from now on. What the other side sent before can still be received, and
            // then comes the end.
            channel.room_fd().inspect(|fd| poller.remove(fd));
            self.unfinished.insert(id);
        }
    }

    /// Sends what was queued in this turn: first to those who were not heard in it. Who was has asked, as a rule, and
    /// goes on meanwhile, but what a process passes on is what others wait for; each message that leaves before may
    /// wake somebody who takes the processor.
    pub(super) fn flush(
        &mut self,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        let mut unflushed = std::mem::take(&mut self.unflushed);
        let is_heard = |channel: &Channel| channel.heard == self.turn;
        unflushed.sort_by_key(|id| self.open.get(id).is_some_and(is_heard));
        self.turn += 1;
        for id in unflushed.drain(..) {
            if let Some(channel) = self.open.get_mut(&id) {
                channel.unlist();
            }
            events.extend(self.flush_one(id, poller, drops));
        }
        self.unflushed = unflushed;
    }

    /// Sends what waits on one channel: its turn is over, or the kernel takes messages again.
    pub(super) fn flush_one(
        &mut self,
        id: ChannelId,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        if self.is_being_made(id) {
            return self.connection_made(id, poller);
        }
        let channel = self.open.get_mut(&id)?;
        if channel.state == State::Connecting {
            return self.connected(id, poller);
        }
        let Ok(sent) = channel.flush(drops) else {
            let told = channel.state != State::Closing;
            self.remove(id, poller);
            return told.then_some(Event::Closed { channel: id });
        };
        let event = match (channel.state, sent) {
            (State::Closing, Sent::All) => {
                self.finish(id, poller);
                return None;
            }
            (State::Open, Sent::Blocked) => {
                channel.state = State::Congested;
                Some(Event::Congested { channel: id })
            }
            (State::Congested, Sent::All) => {
                channel.state = State::Open;
                Some(Event::Drained { channel: id })
            }
            (State::Open, Sent::All) => return None,
            _ => None,
        };
        let interest = match channel.state {
            State::Open | State::Broken | State::Draining => Interest::Read,
            State::Congested => Interest::Both,
            State::Closing | State::Connecting => Interest::Write,
        };
        // A flow has a descriptor of its own for that, which is always watched.
        if channel.room_fd().is_none() {
            // The descriptor was added when the channel opened; changing it needs no memory.
            let _ = poller.modify(channel.fd(), Source::Channel(id), interest);
        }
        event
    }

    /// A connection was made, or could not be.
    fn connected(&mut self, id: ChannelId, poller: &Poller) -> Option<Event> {
        let channel = self.open.get_mut(&id)?;
        let (token, address) = self.connecting.remove(&id)?;
        let result = sockopt::socket_error(channel.fd()).unwrap_or(Err(Errno::IO));
        if let Err(errno) = result {
            self.remove(id, poller);
            return Some(Event::ChannelFailed {
                token,
                error: tcp::connect_error("TCP", address, errno),
            });
        }
        channel.state = State::Open;
        let _ = poller.modify(channel.fd(), Source::Channel(id), Interest::Read);
        Some(Event::Connected { token, channel: id })
    }

    /// Closes a channel from which everything has left.
    fn finish(&mut self, id: ChannelId, poller: &Poller) {
        let Some(channel) = self.open.get_mut(&id) else { return };
        if channel.has_to_drain() && shutdown(channel.fd(), Shutdown::Write).is_ok() {
            channel.state = State::Draining;
            let _ = poller.modify(channel.fd(), Source::Channel(id), Interest::Read);
        } else {
            self.remove(id, poller);
        }
    }

    /// The end of the process: accepts nobody any more, removes the paths of the listeners, and says goodbye
    /// where that can be said.
    pub(super) fn end(&mut self) {
        self.open.values_mut().for_each(Channel::say_goodbye);
        self.listeners.clear();
        self.pending.clear();
        self.handshakes.stop_listening();
        self.connections = Connections::default();
    }

    /// Whether no message waits anywhere.
    pub(super) fn is_flushed(&self) -> bool {
        self.open.values().all(Channel::is_flushed)
    }

    /// A channel that the process knows and has not closed.
    fn usable(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let closed = [State::Connecting, State::Closing, State::Draining];
        self.open.get_mut(&id).filter(|channel| !closed.contains(&channel.state))
    }

    fn remove(&mut self, id: ChannelId, poller: &Poller) {
        self.unfinished.remove(&id);
        self.proven.remove(&id);
        self.connections.lingers_no_more(id);
        if let Some(channel) = self.open.remove(&id) {
            poller.remove(channel.fd());
            // The other side of a flow may hold this one, too: closing it would not end the watch.
            channel.room_fd().inspect(|fd| poller.remove(fd));
        }
    }
}

/// A descriptor to have one in reserve.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}
