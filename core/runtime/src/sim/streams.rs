//! Connections of TCP between nodes, as their processes see them.
//!
//! A connection is a pair of ends of a channel (`channels`) and no packets: what is sent comes to the other side
//! after the delay of the way that the routes lead at that time, in order, at the rate of the slowest link on it. What
//! is modelled:
//!
//! * Making a connection takes a round trip. Who does not answer is asked again after 1, 2, 4, … seconds, and given
//!   up after 127 (tcp_syn_retries in Linux's ip-sysctl). No answer is given where there is no way there and back,
//!   where the time to live is too short for the way or shorter than the other side demands (RFC 5082), and where
//!   the keys (RFC 2385) differ. Where nobody listens there is an answer.
//! * What is on its way when that breaks waits, and is tried again after 0.2, 0.4, … up to 120 seconds. After the
//!   user timeout, or 924.6 seconds as Linux has it (tcp_retries2), the sender's channel is closed. The other side
//!   learns of it when it sends something.
//!
//! Not modelled: losses, queues, segments, IPv6, and that the other direction is needed for acknowledgements.
//! Interfaces are what ways lead over; to be bound to one matters for what is sent.
//!
//! Reference: RFC 9293; RFC 6298 §5; tcp(7).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use weft_base::{Handle, Instant, Token};
use weft_port::stream::{PeerKey, StreamKey, StreamListenerSpec, StreamOptions, StreamSpec};

use super::agenda::Due;
use super::channels::{Listener, Place};
use super::ids::{EndId, NodeId, ProcessId};
use super::paths::Path;
use super::process::Waiting;
use super::world::World;
use crate::address::ChannelKind;
use crate::{Event, Peer, StreamEvent, StreamRequest};

/// The time to live of what nobody says another for, as Linux sets it by default.
const TTL: u8 = 64;
/// How often connecting is tried again.
const RETRIES: u32 = 6;
/// After what time connecting is tried again first.
const FIRST_TRY: Duration = Duration::from_secs(1);
/// After what time something is sent again first, and at most.
const RESENT: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(120)];
/// After what time a connection is closed that nobody has adopted: whoever was to do so is gone.
const LENT: Duration = Duration::from_secs(10);
/// When a connection counts as broken unless its user timeout says it.
const BROKEN: Duration = Duration::from_millis(924_600);

/// The connections of a world that are no channels yet, and what its listeners demand.
#[derive(Debug, Default)]
pub(super) struct Streams {
    attempts: BTreeMap<u32, Attempt>,
    last: u32,
    /// What stands for descriptors that nobody has adopted.
    handles: BTreeMap<u64, Lent>,
    /// How sockets listen.
    specs: BTreeMap<(NodeId, SocketAddrV4), StreamListenerSpec>,
    /// Whose keys who can change.
    keyed: BTreeMap<(ProcessId, Token), (NodeId, SocketAddrV4)>,
}

/// A connection that is being made.
#[derive(Debug)]
struct Attempt {
    process: ProcessId,
    token: Token,
    spec: StreamSpec,
    local: SocketAddrV4,
    peer: SocketAddrV4,
    for_others: bool,
    tries: u32,
    /// The answer that is on its way: the end of the connection, or that nobody listens.
    answer: Option<Result<EndId, ()>>,
}

/// What a handle stands for, on which node.
#[derive(Debug)]
enum Lent {
    Connection(NodeId, EndId),
    Listener(NodeId, SocketAddrV4),
}

/// How things come to an end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    /// The node of the other end.
    from: NodeId,
    /// The own address.
    pub(super) local: SocketAddrV4,
    /// That of the other end.
    pub(super) peer: SocketAddrV4,
    /// With which time to live the other end sends, and what this one demands.
    ttl: u8,
    least_ttl: u8,
    /// How long the other end tries.
    timeout: Duration,
    /// When the connection is there.
    pub(super) open_at: Instant,
    /// When everything that was sent is on the link.
    free_at: Instant,
    /// Since when there is no way, and when it is tried again.
    stuck: Option<(Instant, Duration)>,
    /// The other end is gone without a word, and this one has learned of it.
    is_dead: bool,
}

/// What a first packet meets.
enum Met {
    Nothing,
    Nobody(Duration),
    Listener { place: (NodeId, SocketAddrV4), there: Path, back: Path },
}

impl World {
    pub(super) fn stream(&mut self, process: ProcessId, token: Token, request: StreamRequest) {
        let done = match request {
            StreamRequest::Open(spec) => self.begin_stream(process, token, spec, false),
            StreamRequest::OpenHandle(spec) => self.begin_stream(process, token, spec, true),
            StreamRequest::Cancel => Ok(self.cancel_stream(process, token)),
            StreamRequest::Adopt(handle) => self.adopt_stream(process, &handle).map(Some),
            StreamRequest::Listen(spec) => self
                .listen_for_streams(process, token, spec, Some((process, token)))
                .map(|local| Some(StreamEvent::Listening { local: local.into() })),
            StreamRequest::OpenListenerHandle(spec) => {
                self.listen_for_streams(process, token, spec, None).map(|local| {
                    let node = self.processes[process.index()].node;
                    let handle = self.lend(Lent::Listener(node, local));
                    Some(StreamEvent::ListenerOpened { handle, local: local.into() })
                })
            }
            StreamRequest::AdoptListener(handle) => {
                self.adopt_stream_listener(process, token, &handle).map(Some)
            }
            StreamRequest::SetKeys(keys) => {
                let result = self.set_stream_keys(process, token, keys);
                Ok(Some(StreamEvent::KeysSet { result }))
            }
        };
        let event = done.unwrap_or_else(|error| Some(StreamEvent::Failed { error }));
        event.into_iter().for_each(|event| self.tell_of_stream(process, token, event));
    }

    fn tell_of_stream(&mut self, process: ProcessId, token: Token, event: StreamEvent) {
        self.post(process, Waiting::Event(Event::Stream { token, event }));
    }

    fn lend(&mut self, lent: Lent) -> Handle {
        let number = self.handles.number();
        self.streams.handles.insert(number, lent);
        self.clock.schedule(self.clock.now() + LENT, Due::Lent(number));
        Handle::from_number(number)
    }

    /// Closes a connection that nobody has adopted.
    pub(super) fn give_up_handle(&mut self, number: u64) {
        if let Some(Lent::Connection(..)) = self.streams.handles.get(&number)
            && let Some(Lent::Connection(_, end)) = self.streams.handles.remove(&number)
        {
            self.close_end(end);
        }
    }

    /// Begins to connect.
    fn begin_stream(
        &mut self,
        process: ProcessId,
        token: Token,
        spec: StreamSpec,
        for_others: bool,
    ) -> Result<Option<StreamEvent>, String> {
        let node = self.processes[process.index()].node;
        let wrong = |why: &str| format!("cannot connect to TCP {}: {why}", spec.peer);
        spec.check().map_err(|error| wrong(&error))?;
        let peer = only_ipv4(spec.peer).map_err(|error| wrong(&error))?;
        self.check_interface(node, &spec.options).map_err(|error| wrong(&error))?;
        let asked = spec.local.map(only_ipv4).transpose().map_err(|error| wrong(&error))?;
        let ip = match asked.map(|local| *local.ip()).filter(|ip| !ip.is_unspecified()) {
            Some(ip) if self.network.is_local(node, ip) => ip,
            Some(ip) => return Err(wrong(&format!("the node does not have the address {ip}"))),
            None => self
                .network
                .address_towards(node, *peer.ip())
                .ok_or_else(|| wrong("no route leads there"))?,
        };
        let port = match asked.map_or(0, |local| local.port()) {
            0 => self.channels.give_port(),
            port => port,
        };
        let local = SocketAddrV4::new(ip, port);
        self.streams.last += 1;
        let number = self.streams.last;
        let attempt =
            Attempt { process, token, spec, local, peer, for_others, tries: 0, answer: None };
        self.streams.attempts.insert(number, attempt);
        self.try_stream(number);
        Ok(None)
    }

    fn check_interface(&self, node: NodeId, options: &StreamOptions) -> Result<(), String> {
        match &options.interface {
            Some(name) if self.find_interface(node, name).is_none() => {
                let names = self.network.interface_names(node);
                Err(format!("the node has no interface {name}; it has {names}"))
            }
            _ => Ok(()),
        }
    }

    /// Sends the first packet of a connection, which is answered after a round trip or not at all.
    fn try_stream(&mut self, number: u32) {
        let Some(attempt) = self.streams.attempts.get(&number) else { return };
        let tries = attempt.tries;
        let now = self.clock.now();
        let (answer, after) = match self.meet(attempt) {
            Met::Nothing => (None, FIRST_TRY * 2_u32.saturating_pow(tries)),
            Met::Nobody(after) => (Some(Err(())), after),
            Met::Listener { place, there, back } => {
                let mine = self.connect_ends(number, place, &there, &back);
                (mine.map(Ok), self.takes(&there) + self.takes(&back))
            }
        };
        if let Some(attempt) = self.streams.attempts.get_mut(&number) {
            attempt.tries += 1;
            attempt.answer = answer;
        }
        self.clock.schedule(now + after, Due::Stream(number));
    }

    /// How long something takes that is no longer than a header.
    fn takes(&self, path: &Path) -> Duration {
        path.delay.max(self.config.channels.latency)
    }

    /// What the first packet of a connection meets.
    fn meet(&self, attempt: &Attempt) -> Met {
        let Attempt { process, spec, local, peer, .. } = attempt;
        let node = self.processes[process.index()].node;
        let Some(there) = self.way(node, *peer.ip(), &spec.options) else { return Met::Nothing };
        let back = |options| {
            let back = self.way(there.to, *local.ip(), options)?;
            (back.to == node).then_some(back)
        };
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, peer.port());
        let places = [*peer, any].map(|address| (there.to, address));
        let listens = |place: &(NodeId, SocketAddrV4)| {
            let key = (place.0, Place::Bytes(place.1));
            self.channels.listeners.contains_key(&key)
        };
        let Some(place) = places.into_iter().find(listens) else {
            return match back(&StreamOptions::default()) {
                Some(back) => Met::Nobody(self.takes(&there) + self.takes(&back)),
                None => Met::Nothing,
            };
        };
        let Some(listener) = self.streams.specs.get(&place) else { return Met::Nothing };
        let options = listener.options_for((*local.ip()).into());
        let Some(back) = back(&options) else { return Met::Nothing };
        let fits = reaches(&spec.options, &options, &there)
            && reaches(&options, &spec.options, &back)
            && key_of(&listener.keys, *local.ip()) == spec.key.as_ref();
        match fits {
            true => Met::Listener { place, there, back },
            false => Met::Nothing,
        }
    }

    /// The way from a node, by the interface that the options name.
    fn way(&self, node: NodeId, to: Ipv4Addr, options: &StreamOptions) -> Option<Path> {
        let path = self.network.path(node, to)?;
        let bound = match &options.interface {
            Some(name) => Some(self.find_interface(node, name)?),
            None => None,
        };
        bound.is_none_or(|bound| path.first == Some(bound)).then_some(path)
    }

    /// Makes both ends of a connection, and gives one of them to who listens. The other one.
    fn connect_ends(
        &mut self,
        number: u32,
        place: (NodeId, SocketAddrV4),
        there: &Path,
        back: &Path,
    ) -> Option<EndId> {
        let now = self.clock.now();
        let Attempt { process, spec, local, peer, .. } = self.streams.attempts.get(&number)?;
        let options = self.streams.specs.get(&place)?.options_for((*local.ip()).into());
        let wire =
            |from, ends: [SocketAddrV4; 2], sender: &StreamOptions, own: &StreamOptions| Wire {
                from,
                local: ends[0],
                peer: ends[1],
                ttl: sender.ttl.map_or(TTL, std::num::NonZeroU8::get),
                least_ttl: own.least_ttl.map_or(0, std::num::NonZeroU8::get),
                timeout: sender.user_timeout.unwrap_or(BROKEN),
                open_at: now,
                free_at: now,
                stuck: None,
                is_dead: false,
            };
        let node = self.processes[process.index()].node;
        let mut theirs = wire(node, [*peer, *local], &spec.options, &options);
        let mut mine = wire(there.to, [*local, *peer], &options, &spec.options);
        mine.open_at = now + self.takes(there) + self.takes(back);
        theirs.open_at = mine.open_at + self.takes(there);
        let from = Peer::Address((*local).into());
        let (my_end, their_end) = self.channels.add(ChannelKind::Bytes);
        self.channels.set_wire(my_end, mine);
        self.channels.set_wire(their_end, theirs);
        let listener = self.channels.listeners.get_mut(&(place.0, Place::Bytes(place.1)))?;
        match listener.server {
            Some(server) => self.accept(server, their_end, from),
            None => listener.waiting.push_back((their_end, from)),
        }
        Some(my_end)
    }

    /// An answer has come, or none in time.
    pub(super) fn stream_due(&mut self, number: u32) {
        let Some(attempt) = self.streams.attempts.get(&number) else { return };
        let (process, token, peer) = (attempt.process, attempt.token, attempt.peer);
        if attempt.answer.is_none() && attempt.tries <= RETRIES && self.is_alive(process) {
            return self.try_stream(number);
        }
        let Some(attempt) = self.streams.attempts.remove(&number) else { return };
        let event = match attempt.answer {
            Some(Ok(end)) if !self.is_alive(process) => return self.close_end(end),
            Some(Ok(end)) if attempt.for_others => {
                let node = self.processes[process.index()].node;
                let handle = self.lend(Lent::Connection(node, end));
                let (local, peer) = (attempt.local.into(), peer.into());
                StreamEvent::HandleOpened { handle, local, peer }
            }
            Some(Ok(end)) => self.open_end(process, end, attempt.local, peer),
            Some(Err(())) => StreamEvent::Failed {
                error: format!(
                    "nobody listens at TCP {peer}: start the process that should, or choose another \
                     port"
                ),
            },
            None => {
                let error = format!("cannot connect to TCP {peer}: nobody answers there");
                StreamEvent::Failed { error }
            }
        };
        self.tell_of_stream(process, token, event);
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.processes[process.index()].body.is_some()
    }

    /// Makes an end a process's own.
    fn open_end(
        &mut self,
        process: ProcessId,
        end: EndId,
        local: SocketAddrV4,
        peer: SocketAddrV4,
    ) -> StreamEvent {
        let channel = self.hold(process, end);
        // What has come to it while it was nobody's.
        self.clock.schedule(self.clock.now(), Due::Channel(end));
        StreamEvent::Opened { channel, local: local.into(), peer: peer.into() }
    }

    fn cancel_stream(&mut self, process: ProcessId, token: Token) -> Option<StreamEvent> {
        let own = |one: &Attempt| (one.process, one.token) == (process, token);
        let attempts = &mut self.streams.attempts;
        let number = *attempts.iter().find(|(_, one)| own(one))?.0;
        let attempt = attempts.remove(&number)?;
        if let Some(Ok(end)) = attempt.answer {
            self.close_end(end);
        }
        let error = format!("connecting to TCP {} was given up, as was asked for", attempt.peer);
        Some(StreamEvent::Failed { error })
    }

    fn adopt_stream(&mut self, process: ProcessId, handle: &Handle) -> Result<StreamEvent, String> {
        let node = self.processes[process.index()].node;
        let number = handle.number();
        let lent = number.and_then(|number| self.streams.handles.remove(&number));
        let wire = match lent {
            Some(Lent::Connection(on, end)) if on == node => Some((end, self.channels.wire(end))),
            _ => None,
        };
        match wire {
            Some((end, Some(wire))) => Ok(self.open_end(process, end, wire.local, wire.peer)),
            Some((_, None)) => Err("the connection that was handed over is gone".to_owned()),
            None => Err(format!("{handle:?} stands for no connection of this node")),
        }
    }

    /// Binds a socket that listens.
    fn listen_for_streams(
        &mut self,
        process: ProcessId,
        token: Token,
        mut spec: StreamListenerSpec,
        server: Option<(ProcessId, Token)>,
    ) -> Result<SocketAddrV4, String> {
        let node = self.processes[process.index()].node;
        let asked = spec.local;
        let wrong = |why: String| format!("cannot listen at TCP {asked}: {why}");
        spec.check().map_err(wrong)?;
        let mut local = only_ipv4(asked).map_err(wrong)?;
        self.check_interface(node, &spec.options).map_err(wrong)?;
        if !local.ip().is_unspecified() && !self.network.is_local(node, *local.ip()) {
            return Err(wrong("the node does not have this address".to_owned()));
        }
        if local.port() == 0 {
            local.set_port(self.channels.give_port());
        }
        let clashes = |place: &Place| {
            let Place::Bytes(other) = place else { return false };
            other.port() == local.port()
                && (other.ip() == local.ip()
                    || other.ip().is_unspecified()
                    || local.ip().is_unspecified())
        };
        if self.channels.listeners.keys().any(|(on, place)| *on == node && clashes(place)) {
            return Err(wrong(
                "another process listens there: end it or choose another port".into(),
            ));
        }
        spec.local = local.into();
        let listener = Listener { server, ..Listener::new(process, ChannelKind::Bytes) };
        self.channels.listeners.insert((node, Place::Bytes(local)), listener);
        self.streams.specs.insert((node, local), spec);
        self.streams.keyed.insert((process, token), (node, local));
        Ok(local)
    }

    fn adopt_stream_listener(
        &mut self,
        process: ProcessId,
        token: Token,
        handle: &Handle,
    ) -> Result<StreamEvent, String> {
        let node = self.processes[process.index()].node;
        let number = handle.number();
        let lent = number.and_then(|number| self.streams.handles.remove(&number));
        let local = match lent {
            Some(Lent::Listener(on, local)) if on == node => local,
            _ => return Err(format!("{handle:?} stands for no listener of this node")),
        };
        let listener = self.channels.listeners.get_mut(&(node, Place::Bytes(local)));
        let Some(listener) = listener else {
            return Err("the listener that was handed over is closed".to_owned());
        };
        (listener.owner, listener.server) = (process, Some((process, token)));
        for (end, peer) in std::mem::take(&mut listener.waiting) {
            self.accept((process, token), end, peer);
        }
        Ok(StreamEvent::Listening { local: local.into() })
    }

    fn set_stream_keys(
        &mut self,
        process: ProcessId,
        token: Token,
        keys: Vec<PeerKey>,
    ) -> Result<(), String> {
        let place = self.streams.keyed.get(&(process, token));
        let spec = place.and_then(|place| self.streams.specs.get_mut(place));
        let Some(spec) = spec else {
            return Err("no socket that listens was opened here whose keys could be changed".into());
        };
        let changed = StreamListenerSpec { keys, ..spec.clone() };
        changed.check()?;
        *spec = changed;
        Ok(())
    }

    /// A process changes the keys of a listener no more; one that nobody has adopted is closed.
    pub(super) fn forget_stream_listener(&mut self, process: ProcessId, token: Token) {
        let Some((node, local)) = self.streams.keyed.remove(&(process, token)) else { return };
        let place = (node, Place::Bytes(local));
        let listener = self.channels.listeners.get(&place);
        if listener.is_some_and(|one| one.owner == process) {
            self.close_listener(&place);
        }
    }
}

/// # Ends
impl World {
    /// When something of `len` bytes that is sent now comes to an end.
    pub(super) fn stream_arrival(&self, wire: &mut Wire, len: usize) -> Instant {
        let (now, latency) = (self.clock.now(), self.config.channels.latency);
        let Some(path) = self.way_of(wire) else { return now + latency };
        let bits = len as u128 * 8 * 1_000_000_000;
        let nanos = path.rate.map_or(0, |rate| bits.div_ceil(u128::from(rate.get())));
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        wire.free_at = wire.free_at.max(now) + takes;
        wire.free_at + self.takes(&path)
    }

    /// The way to an end, if something comes there by it.
    fn way_of(&self, wire: &Wire) -> Option<Path> {
        let path = self.network.path(wire.from, *wire.local.ip())?;
        arrives(wire.ttl, wire.least_ttl, &path).then_some(path)
    }

    /// Whether what is due at an end has to wait, for lack of a way.
    pub(super) fn stream_is_stuck(&mut self, id: EndId) -> bool {
        let now = self.clock.now();
        let Some(mut wire) = self.channels.wire(id) else { return false };
        if wire.is_dead || !self.channels.is_due(id, now) {
            return false;
        }
        if self.way_of(&wire).is_some() {
            wire.stuck = None;
            self.channels.set_wire(id, wire);
            return false;
        }
        let (since, wait) = wire.stuck.unwrap_or((now, RESENT[0]));
        if now.since(since) >= wire.timeout {
            self.break_stream(id);
            return true;
        }
        let again = now + wait.min(wire.timeout - now.since(since));
        wire.stuck = Some((since, (wait * 2).min(RESENT[1])));
        self.channels.set_wire(id, wire);
        self.channels.delay(id, again);
        self.clock.schedule(again, Due::Channel(id));
        true
    }

    /// Nothing comes to this end any more: who sends has given up.
    fn break_stream(&mut self, id: EndId) {
        if let Some(sender) = self.channels.peer(id) {
            let holder = self.channels.holder(sender);
            self.channels.remove(sender);
            if let Some((process, channel)) = holder {
                self.processes[process.index()].channels.remove(&channel);
                self.post(process, Waiting::Event(Event::Closed { channel }));
            }
        }
        self.channels.lose(id);
    }

    /// Something was sent from an end whose other end is gone: it is told so, or tries in vain.
    pub(super) fn stream_is_dead(&mut self, id: EndId) {
        let Some(mut wire) = self.channels.wire(id).filter(|wire| !wire.is_dead) else { return };
        wire.is_dead = true;
        let node =
            self.channels.holder(id).map(|(process, _)| self.processes[process.index()].node);
        let there = node.and_then(|node| self.network.path(node, *wire.peer.ip()));
        let round = there
            .zip(self.way_of(&wire))
            .map(|(there, back)| self.takes(&there) + self.takes(&back));
        let at = self.clock.now() + round.unwrap_or(wire.timeout);
        self.channels.set_wire(id, wire);
        self.close_at(id, at);
    }
}

fn only_ipv4(address: SocketAddr) -> Result<SocketAddrV4, String> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => {
            Err("the simulator models IPv4 alone; use IPv4, or run it on namespaces".to_owned())
        }
    }
}

/// Whether what is sent with these options comes to who has those.
fn reaches(sender: &StreamOptions, receiver: &StreamOptions, path: &Path) -> bool {
    let ttl = sender.ttl.map_or(TTL, std::num::NonZeroU8::get);
    let least = receiver.least_ttl.map_or(0, std::num::NonZeroU8::get);
    arrives(ttl, least, path)
}

fn arrives(ttl: u8, least: u8, path: &Path) -> bool {
    ttl.checked_sub(path.routers).is_some_and(|left| left > 0 && left >= least)
}

/// The key of a peer: of several networks that of the smallest.
fn key_of(keys: &[PeerKey], peer: Ipv4Addr) -> Option<&StreamKey> {
    let holds = |one: &&PeerKey| {
        let IpAddr::V4(network) = one.network else { return false };
        let mask = u32::MAX.checked_shl(32 - u32::from(one.prefix_length.min(32))).unwrap_or(0);
        network.to_bits() & mask == peer.to_bits() & mask
    };
    let found = keys.iter().filter(holds).max_by_key(|one| one.prefix_length)?;
    Some(&found.key)
}
