//! Message channels between processes of a node.
//!
//! Listeners are known by node and path, or by node and TCP address. A message takes
//! [`ChannelConfig::latency`]; what is on its way stands in a queue of the receiving end. When that
//! reaches [`ChannelConfig::congested_at`] (streams: [`ChannelConfig::stream_congested_at`] bytes) the
//! sender is told so, and once more when it has drained to half. What is sent beyond
//! [`ChannelConfig::limit`], or does not suit the kind of channel, is dropped and counted; a stream is
//! closed then, as the real driver does. A process that dies closes its channels; what it sent before
//! still arrives, then [`Event::Closed`]. Unlike on a real file system, the directory of a listener's
//! path need not exist. Listeners that processes inherit: `inheritance`.

mod ends;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use weft_base::{ChannelId, Counters, Instant, Message, Token};

use super::agenda::Due;
use super::ids::{EndId, NodeId, ProcessId};
use super::process::Waiting;
use super::streams::Wire;
use super::world::World;
use crate::address::{ChannelKind, only_loopback};
use crate::frames::{FIRST_FRAME, LONGEST_FRAME};
use crate::{ChannelAddress, Event, Peer, StreamEvent};

/// The TCP ports that the system chooses from, as Linux does by default.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;
/// How many connections may wait to be accepted, as with the real driver.
const BACKLOG: usize = 128;

/// How channels behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// How long a message, a connection and a close take.
    pub latency: Duration,
    /// At how many messages on their way the sender learns of congestion.
    pub congested_at: usize,
    /// How many messages may be on their way; further ones are dropped.
    pub limit: usize,
    /// At how many bytes on their way the sender on a stream learns of congestion.
    pub stream_congested_at: usize,
    /// How many bytes may be on their way on a stream, at least those of the longest message;
    /// sending more closes it.
    pub stream_limit: usize,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(10),
            congested_at: 256,
            limit: 4096,
            stream_congested_at: 1 << 20,
            stream_limit: 16 << 20,
        }
    }
}

weft_base::reasons! {
    /// What the channels of a world count.
    /// `sent = delivered + unsuitable + overflow + closed +` messages on their way.
    pub enum ChannelCount {
        Sent = "sent", "messages sent";
        Delivered = "delivered", "messages given to their receiver";
        Unsuitable = "unsuitable", "dropped: empty, too long, or with handles that the channel does not carry";
        Overflow = "overflow", "dropped: the sender ignored the congestion";
        Closed = "closed", "dropped: the receiver closed the channel, or it never was open";
    }
}

/// Something on its way to an end of a channel.
#[derive(Debug)]
enum Item {
    Accepted {
        token: Token,
        peer: Peer,
    },
    /// The same of a connection of TCP.
    StreamAccepted {
        token: Token,
        local: SocketAddr,
        peer: SocketAddr,
    },
    Connected {
        token: Token,
    },
    Message(Message),
    Closed,
}

/// Where a listener is on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Path(PathBuf),
    Tcp(SocketAddr),
    /// For connections without frames.
    Bytes(SocketAddrV4),
}

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    /// With whom it closes.
    pub(super) owner: ProcessId,
    pub(super) kind: ChannelKind,
    /// Who may listen at it besides its owner.
    pub(super) heir: Option<ProcessId>,
    /// Who accepts, if anybody does.
    pub(super) server: Option<(ProcessId, Token)>,
    /// Connections that wait for somebody to accept them, with who they are from.
    pub(super) waiting: VecDeque<(EndId, Peer)>,
}

/// One end of a channel.
#[derive(Debug)]
pub(super) struct End {
    /// Whose it is and what that calls it; `None` while it waits to be accepted.
    holder: Option<(ProcessId, ChannelId)>,
    kind: ChannelKind,
    /// The other end, unless it is closed.
    peer: Option<EndId>,
    incoming: VecDeque<(Instant, Item)>,
    /// Messages in `incoming`, and their bytes.
    messages: usize,
    bytes: usize,
    /// Whether the sender was told to wait.
    congested: bool,
    /// The longest message that it takes, where messages are frames.
    longest: usize,
    /// How things come here from another node.
    wire: Option<Box<Wire>>,
}

/// All channels and listeners of a world.
#[derive(Debug)]
pub(super) struct Channels {
    config: ChannelConfig,
    pub(super) listeners: BTreeMap<(NodeId, Place), Listener>,
    /// How many TCP ports were given out.
    given: u16,
    /// Closed ends leave their place empty.
    ends: Vec<Option<End>>,
    pub(super) counters: Counters<ChannelCount>,
}

impl Channels {
    pub(super) fn new(config: ChannelConfig) -> Self {
        let (listeners, ends) = (BTreeMap::new(), Vec::new());
        Self { config, listeners, given: 0, ends, counters: Counters::new() }
    }

    pub(super) fn end(&mut self, id: EndId) -> Option<&mut End> {
        self.ends.get_mut(id.index())?.as_mut()
    }

    /// The kind of the channel that an end belongs to.
    pub(super) fn kind(&mut self, id: EndId) -> Option<ChannelKind> {
        Some(self.end(id)?.kind)
    }

    /// Adds both ends of a channel.
    pub(super) fn add(&mut self, kind: ChannelKind) -> (EndId, EndId) {
        let first = self.ends.len();
        let (a_id, b_id) = (EndId::at(first), EndId::at(first + 1));
        for peer in [b_id, a_id] {
            self.ends.push(Some(End {
                holder: None,
                kind,
                peer: Some(peer),
                incoming: VecDeque::new(),
                messages: 0,
                bytes: 0,
                congested: false,
                longest: if kind == ChannelKind::Bytes { usize::MAX } else { FIRST_FRAME },
                wire: None,
            }));
        }
        (a_id, b_id)
    }

    /// Closes an end and returns the other, if that is open.
    pub(super) fn remove(&mut self, id: EndId) -> Option<EndId> {
        let end = self.ends.get_mut(id.index())?.take()?;
        self.counters.add(ChannelCount::Closed, end.messages as u64);
        self.end(end.peer?)?.peer = None;
        end.peer
    }
}

impl End {
    /// Whether a message of `len` bytes fits in.
    fn has_room(&self, len: usize, config: &ChannelConfig) -> bool {
        match self.kind {
            kind if kind.may_drop() => self.messages < config.limit,
            _ => self.bytes == 0 || self.bytes + len <= config.stream_limit,
        }
    }

    /// How full it is, and when that is congestion.
    fn load(&self, config: &ChannelConfig) -> (usize, usize) {
        match self.kind {
            kind if kind.may_drop() => (self.messages, config.congested_at),
            _ => (self.bytes, config.stream_congested_at),
        }
    }
}

/// Refuses what a modelled node has no TCP for that leads to another.
fn no_encryption(what: &str, address: &ChannelAddress) -> Result<(), String> {
    match address {
        ChannelAddress::Tls { .. } => Err(format!(
            "cannot {what} {address}: the simulator has no TLS; use namespaces for that"
        )),
        _ => Ok(()),
    }
}

impl World {
    /// Says that there is no encryption.
    pub(super) fn refuse_encryption(
        &mut self,
        process: ProcessId,
        token: Token,
        what: &str,
        address: &ChannelAddress,
    ) {
        if let Err(error) = no_encryption(what, address) {
            self.post(process, Waiting::Event(Event::ChannelFailed { token, error }));
        }
    }

    /// Accepts nobody any more at the listeners of a token.
    pub(super) fn stop_listening(&mut self, process: ProcessId, token: Token) {
        self.forget_stream_listener(process, token);
        let server = Some((process, token));
        let listeners = &mut self.channels.listeners;
        listeners.retain(|_, one| one.server != server || one.owner != process);
        let lent = listeners.values_mut().filter(|one| one.server == server);
        lent.for_each(|one| one.server = None);
    }

    pub(super) fn listen(&mut self, process: ProcessId, token: Token, address: &ChannelAddress) {
        let event = match self.try_listen(process, token, address) {
            Ok(address) => Event::Listening { token, address },
            Err(error) => Event::ChannelFailed { token, error },
        };
        self.post(process, Waiting::Event(event));
    }

    fn try_listen(
        &mut self,
        process: ProcessId,
        token: Token,
        address: &ChannelAddress,
    ) -> Result<ChannelAddress, String> {
        let mut address = address.clone();
        no_encryption("listen at", &address)?;
        if let ChannelAddress::Tcp(address) = &mut address {
            only_loopback("listen at", *address)?;
            if address.port() == 0 {
                address.set_port(self.free_port(process, address.ip())?);
            }
        }
        let key = self.place(process, &address);
        let kind = ChannelKind::of(&address);
        if !self.take_over(process, token, &address, &key)? {
            let server = Some((process, token));
            let listener = Listener { server, ..Listener::new(process, kind) };
            self.channels.listeners.insert(key, listener);
        }
        Ok(address)
    }

    /// A TCP port at which nobody listens.
    fn free_port(&mut self, process: ProcessId, ip: IpAddr) -> Result<u16, String> {
        let node = self.processes[process.index()].node;
        for _ in EPHEMERAL {
            let port = self.channels.give_port();
            let place = Place::Tcp(SocketAddr::new(ip, port));
            if !self.channels.listeners.contains_key(&(node, place)) {
                return Ok(port);
            }
        }
        Err(format!("cannot listen at TCP {ip}: no port is free"))
    }

    pub(super) fn place(&self, process: ProcessId, address: &ChannelAddress) -> (NodeId, Place) {
        let slot = &self.processes[process.index()];
        let place = match address {
            ChannelAddress::Packets(path)
            | ChannelAddress::Stream(path)
            | ChannelAddress::Flow(path) => Place::Path(slot.files.resolve(path)),
            ChannelAddress::Tcp(address) | ChannelAddress::Tls { address, .. } => {
                Place::Tcp(*address)
            }
        };
        (slot.node, place)
    }

    pub(super) fn connect_channel(
        &mut self,
        process: ProcessId,
        token: Token,
        address: &ChannelAddress,
    ) {
        if let Err(error) = self.try_connect(process, token, address) {
            self.post(process, Waiting::Event(Event::ChannelFailed { token, error }));
        }
    }

    fn try_connect(
        &mut self,
        process: ProcessId,
        token: Token,
        address: &ChannelAddress,
    ) -> Result<(), String> {
        no_encryption("connect to", address)?;
        if let ChannelAddress::Tcp(address) = address {
            only_loopback("connect to", *address)?;
        }
        let kind = ChannelKind::of(address);
        let place = self.place(process, address);
        let Some(listener) = self.channels.listeners.get(&place) else {
            return Err(format!(
                "cannot connect to {address}: nobody listens there; is the stack running on this \
                 node?"
            ));
        };
        // Nobody has said yet what the channels of a socket are that waits to be inherited.
        let same = match listener.server {
            Some(_) => listener.kind == kind,
            None => listener.kind.socket_type() == kind.socket_type(),
        };
        if !same {
            return Err(format!(
                "cannot connect to {address}: the listener's socket is {}, and {} is asked for",
                listener.kind.name(),
                kind.name()
            ));
        }
        if listener.waiting.len() >= BACKLOG {
            return Err(format!(
                "cannot connect to {address}: {BACKLOG} connections wait there to be accepted"
            ));
        }
        let server = listener.server;
        let peer = match address {
            ChannelAddress::Tcp(address) => {
                Peer::Address(SocketAddr::new(address.ip(), self.free_port(process, address.ip())?))
            }
            _ => Peer::Process { pid: process.index() as u32 + 1, uid: 0, gid: 0 },
        };
        let (mine, theirs) = self.channels.add(kind);
        let channel = self.hold(process, mine);
        self.take_long(process, channel);
        match server {
            Some(server) => self.accept(server, theirs, peer),
            None => {
                let listener = self.channels.listeners.get_mut(&place);
                listener.into_iter().for_each(|one| one.waiting.push_back((theirs, peer)));
            }
        }
        self.dispatch(mine, Item::Connected { token });
        Ok(())
    }

    /// Gives a connection to who listens.
    pub(super) fn accept(&mut self, server: (ProcessId, Token), end: EndId, peer: Peer) {
        let (process, token) = server;
        self.hold(process, end);
        let mut at = self.clock.now() + self.channels.config.latency;
        if let Some(end) = self.channels.end(end) {
            let mut item = Item::Accepted { token, peer };
            if let Some(wire) = &end.wire {
                at = at.max(wire.open_at);
                let (local, peer) = (wire.local.into(), wire.peer.into());
                item = Item::StreamAccepted { token, local, peer };
            }
            // What was sent while it waited comes behind.
            end.incoming.iter_mut().for_each(|(due, _)| *due = (*due).max(at));
            end.incoming.push_front((at, item));
        }
        self.clock.schedule(at, Due::Channel(end));
    }

    /// Two processes on one node are connected from the beginning; what each of them calls it.
    pub(super) fn pair(&mut self, a: ProcessId, b: ProcessId) -> (ChannelId, ChannelId) {
        let (a_end, b_end) = self.channels.add(ChannelKind::Packets);
        (self.hold(a, a_end), self.hold(b, b_end))
    }

    /// Makes an end of a channel a process's own.
    pub(super) fn hold(&mut self, process: ProcessId, end: EndId) -> ChannelId {
        let channel = self.next_channel(process);
        self.processes[process.index()].channels.insert(channel, end);
        if let Some(end) = self.channels.end(end) {
            end.holder = Some((process, channel));
        }
        channel
    }

    fn next_channel(&mut self, process: ProcessId) -> ChannelId {
        let slot = &mut self.processes[process.index()];
        slot.last_channel += 1;
        ChannelId(slot.last_channel)
    }

    pub(super) fn send_message(
        &mut self,
        process: ProcessId,
        channel: ChannelId,
        message: Message,
    ) {
        self.channels.counters.add(ChannelCount::Sent, 1);
        let own = self.processes[process.index()].channels.get(&channel).copied();
        if let Some(end) = own.filter(|own| self.channels.peer(*own).is_none()) {
            self.stream_is_dead(end);
        }
        let Some(kind) = own.and_then(|own| Some(self.channels.end(own)?.kind)) else {
            return self.channels.counters.add(ChannelCount::Closed, 1);
        };
        if kind.check(&message).is_err() {
            return self.refuse_message(process, channel, kind, ChannelCount::Unsuitable);
        }
        let peer = own.and_then(|own| self.channels.end(own)?.peer);
        let config = self.channels.config.clone();
        let Some((peer, end)) = peer.and_then(|id| Some((id, self.channels.end(id)?))) else {
            return self.channels.counters.add(ChannelCount::Closed, 1);
        };
        let len = message.buffer.len();
        if !kind.may_drop() && len > end.longest {
            return self.refuse_message(process, channel, kind, ChannelCount::Unsuitable);
        }
        if !end.has_room(len, &config) {
            return self.refuse_message(process, channel, kind, ChannelCount::Overflow);
        }
        end.messages += 1;
        end.bytes += len;
        let (load, limit) = end.load(&config);
        let newly_congested = load >= limit && !end.congested;
        end.congested |= newly_congested;
        self.dispatch(peer, Item::Message(message));
        if newly_congested {
            self.post(process, Waiting::Event(Event::Congested { channel }));
        }
    }

    /// Takes long messages on a channel from now on.
    pub(super) fn take_long(&mut self, process: ProcessId, channel: ChannelId) {
        let end = self.processes[process.index()].channels.get(&channel).copied();
        if let Some(end) = end.and_then(|id| self.channels.end(id)) {
            end.longest = LONGEST_FRAME;
        }
    }

    /// Drops a message or, where none may be missing, closes the channel.
    fn refuse_message(
        &mut self,
        process: ProcessId,
        channel: ChannelId,
        kind: ChannelKind,
        reason: ChannelCount,
    ) {
        self.channels.counters.add(reason, 1);
        if !kind.may_drop() {
            self.close_channel(process, channel);
            self.post(process, Waiting::Event(Event::Closed { channel }));
        }
    }

    /// Sends something on its way to an end.
    fn dispatch(&mut self, to: EndId, item: Item) {
        let mut at = self.clock.now() + self.channels.config.latency;
        if let Some(mut wire) = self.channels.wire(to) {
            let len = if let Item::Message(message) = &item { message.buffer.len() } else { 0 };
            at = self.stream_arrival(&mut wire, len).max(self.channels.last_at(to));
            self.channels.set_wire(to, wire);
        }
        self.put(to, at, item);
    }

    /// Closes an end, of which the other one is gone, at a time.
    pub(super) fn close_at(&mut self, to: EndId, at: Instant) {
        self.put(to, at.max(self.channels.last_at(to)), Item::Closed);
    }

    fn put(&mut self, to: EndId, at: Instant, item: Item) {
        if let Some(end) = self.channels.end(to) {
            if end.incoming.back().is_none_or(|(last, _)| *last != at) {
                self.clock.schedule(at, Due::Channel(to));
            }
            end.incoming.push_back((at, item));
        }
    }

    /// Gives an end what has come to it by now.
    pub(super) fn channel_arrival(&mut self, id: EndId) {
        let now = self.clock.now();
        if self.channels.holder(id).is_some() && self.stream_is_stuck(id) {
            return;
        }
        let Some(end) = self.channels.end(id) else { return };
        let Some((process, channel)) = end.holder else { return };
        let mut messages = Vec::new();
        let mut events = Vec::new();
        while let Some((_, item)) = end.incoming.pop_front_if(|(at, _)| *at <= now) {
            if let Item::Message(message) = item {
                messages.push(message);
                continue;
            }
            flush(channel, &mut messages, &mut events);
            events.push(match item {
                Item::Accepted { token, peer } => Event::Accepted { token, channel, peer },
                Item::StreamAccepted { token, local, peer } => {
                    let event = StreamEvent::Accepted { channel, local, peer };
                    Event::Stream { token, event }
                }
                Item::Connected { token } => Event::Connected { token, channel },
                Item::Message(_) | Item::Closed => Event::Closed { channel },
            });
        }
        flush(channel, &mut messages, &mut events);
        self.settle_channel(id, &events);
        for event in events {
            if matches!(event, Event::Closed { .. }) {
                self.processes[process.index()].channels.remove(&channel);
                self.channels.remove(id);
            }
            self.post(process, Waiting::Event(event));
        }
    }

    /// Counts what was delivered and tells the sender when the end has drained.
    fn settle_channel(&mut self, id: EndId, events: &[Event]) {
        let (mut delivered, mut bytes) = (0, 0);
        for event in events {
            if let Event::Messages { messages, .. } = event {
                delivered += messages.len();
                bytes += messages.iter().map(|message| message.buffer.len()).sum::<usize>();
            }
        }
        self.channels.counters.add(ChannelCount::Delivered, delivered as u64);
        self.trace_stream(id, events);
        let config = self.channels.config.clone();
        let Some(end) = self.channels.end(id) else { return };
        end.messages -= delivered;
        end.bytes -= bytes;
        let (load, limit) = end.load(&config);
        if !end.congested || load > limit / 2 {
            return;
        }
        end.congested = false;
        let peer = end.peer;
        let sender = peer.and_then(|peer| self.channels.end(peer)?.holder);
        if let Some((process, channel)) = sender {
            self.post(process, Waiting::Event(Event::Drained { channel }));
        }
    }

    pub(super) fn close_channel(&mut self, process: ProcessId, channel: ChannelId) {
        if let Some(end) = self.processes[process.index()].channels.remove(&channel) {
            self.close_end(end);
        }
    }

    pub(super) fn close_end(&mut self, end: EndId) {
        if let Some(peer) = self.channels.remove(end) {
            self.dispatch(peer, Item::Closed);
        }
    }

    /// Takes away the listeners and channels of a process that has ended.
    pub(super) fn close_channels(&mut self, process: ProcessId) {
        self.close_listeners(process);
        let channels: Vec<_> = self.processes[process.index()].channels.keys().copied().collect();
        for channel in channels {
            self.close_channel(process, channel);
        }
    }
}

/// Turns collected messages into one event.
fn flush(channel: ChannelId, messages: &mut Vec<Message>, events: &mut Vec<Event>) {
    if !messages.is_empty() {
        events.push(Event::Messages { channel, messages: std::mem::take(messages) });
    }
}
