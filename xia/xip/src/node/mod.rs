//! An XIA node: the process that ties forwarder, principals, interfaces and applications together.
//!
//! Reference: Machado et al., "Linux XIA", §4 (the stack), §4.1 (principals come and go while packets
//! flow; even none at all is a valid configuration).
//!
//! The way of a packet in: [`Event::Packets`] on an interface's port → its link header is checked and
//! taken off → [`Forwarder::route`] → verdicts become [`Action::Transmit`] or a message to an
//! application. Packets of a tunnel go to the principal that owns the port and come back as
//! [`Output::Route`]. The way out: an application's [`Request::Send`] gets its XIP header and is
//! routed the same way, as a packet from no port.

mod cache;
mod commands;
pub mod config;
mod echo;
mod engine;
mod errors;
mod interfaces;
mod ports;
mod principals;
mod protocols;
mod reconfigure;
mod registry;
mod replies;
mod scheduling;
mod scope;
mod settings;
mod show;
mod sockets;
mod tallied;
#[cfg(test)]
mod testing;

use std::collections::{BTreeMap, VecDeque};

use weft_base::{
    ChannelId, CounterGroup, Counters, Instant, Packet, PortId, Random, Reason, Token,
};
use weft_port::PortSpec;
use weft_runtime::{Action, ChannelAddress, Component, Event, Level, Peer};
use weft_wire::ETHERNET_HEADER_LEN;

pub use echo::ECHO_SINK;
pub use interfaces::PacketIo;
pub use reconfigure::Plan;
pub use registry::{EngineFactory, Factory, ProtocolFactory, Registry};
pub use scope::Scope;
pub use settings::Settings;

use crate::channel::{self, Request};
use crate::dag::Address;
use crate::forward::{Forwarder, Limits, Verdict, Verdicts};
use crate::header::XipRepr;
use crate::principal::{Answer, Input, Output};
use crate::{Xid, XidType};
use echo::prepend_header;
use engine::KernelEngine;
use interfaces::Interface;
use protocols::Protocols;
use replies::Replies;
use scheduling::Share;
use settings::Whole;
use sockets::{ECHO, Sockets};

/// The token of the application listener; those of ports come after it.
const LISTENER: Token = Token(0);

weft_base::reasons! {
    /// Why a node did not take in a packet or message, before any routing.
    pub enum Refusal {
        Broadcast = "broadcast-frame", "the frame was sent to a group; XIP packets are unicast";
        ShortFrame = "short-frame", "the frame ends inside its link header";
        UnknownPort = "unknown-port", "the port has been closed meanwhile";
        BadMessage = "bad-message", "an application sent something that is no message";
        NotBound = "not-bound", "an application sent a datagram before it was bound";
        BadDestination = "bad-destination", "an application's destination address is malformed";
        NoEcho = "no-echo", "an echo request has no source to answer to, or comes from a tree or a responder";
        SocketGone = "socket-gone", "the application closed its socket meanwhile";
    }
}

/// A part of the node that has ports and timers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Principal(XidType),
    Protocol(&'static str),
}

/// Who has a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Interface,
    Part(Part),
}

/// An XIA node; see the module's text.
pub struct Node {
    settings: Settings,
    /// What holds where the configuration says nothing.
    unsaid: Whole,
    registry: Registry,
    random: Random,
    forwarder: Forwarder,
    kernel: KernelEngine,
    share: Share,
    interfaces: Vec<Interface>,
    owners: BTreeMap<PortId, Owner>,
    /// Who watches this machine's IP.
    ip_watchers: Vec<Part>,
    /// Ports asked for by parts of the node: their own token behind ours.
    awaited: BTreeMap<Token, (Part, Token)>,
    last_token: u32,
    names: BTreeMap<XidType, String>,
    /// Of each principal, how many were added before it.
    instances: BTreeMap<XidType, u64>,
    added: u64,
    protocols: Protocols,
    sockets: Sockets,
    peers: BTreeMap<ChannelId, Peer>,
    /// Who waits for what the ports have counted, longest first.
    asked_for_counts: VecDeque<ChannelId>,
    replies: Replies,
    refusals: Counters<Refusal>,
    /// Outputs of parts that were configured before the node started.
    early: Vec<(Part, Vec<Output>)>,
    started: bool,
    /// Whether the socket for applications is there.
    listening: bool,
    /// Whether the operator was told that the node is ready.
    announced: bool,
    verdicts: Verdicts,
}

impl Node {
    /// A node without interfaces and principals.
    #[must_use]
    pub fn new(settings: Settings, registry: Registry, random: Random) -> Self {
        let mut forwarder = Forwarder::new(settings.limits, random.fork("forwarder"));
        forwarder.set_spread(settings.spread_seed());
        Self {
            forwarder,
            unsaid: settings.whole(),
            settings,
            registry,
            random,
            kernel: KernelEngine::default(),
            share: Share::default(),
            interfaces: Vec::new(),
            owners: BTreeMap::new(),
            ip_watchers: Vec::new(),
            awaited: BTreeMap::new(),
            last_token: LISTENER.0,
            names: BTreeMap::new(),
            instances: BTreeMap::new(),
            added: 0,
            protocols: Protocols::default(),
            sockets: Sockets::default(),
            peers: BTreeMap::new(),
            asked_for_counts: VecDeque::new(),
            replies: Replies::default(),
            refusals: Counters::new(),
            early: Vec::new(),
            started: false,
            listening: false,
            announced: false,
            verdicts: Verdicts::new(),
        }
    }

    /// Adds an interface, which is opened when the node starts or at once if it runs.
    ///
    /// # Errors
    /// The node has it already.
    pub fn add_interface(&mut self, name: &str) -> Result<(), String> {
        if self.interfaces.iter().any(|interface| interface.name == name) {
            return Err(format!("the node has the interface {name} already"));
        }
        self.interfaces.push(Interface::new(name, self.settings.packet_io));
        Ok(())
    }

    /// Removes an interface: nothing is sent out of it and nothing taken in from now on.
    ///
    /// # Errors
    /// The node has no such interface.
    pub fn remove_interface(
        &mut self,
        now: Instant,
        name: &str,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let Some(index) = self.interfaces.iter().position(|interface| interface.name == name)
        else {
            let names: Vec<&str> = self.interfaces().collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("the node has no interface {name}; it has: {names}"));
        };
        let mut removed = self.interfaces.remove(index);
        if let Some((port, _)) = removed.up() {
            self.close_interface(port, out);
            self.interface_down(now, port, out);
        } else if let Some(port) = removed.take_replaced() {
            self.interface_down(now, port, out);
        }
        Ok(())
    }

    /// The names of the interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().map(|interface| interface.name.as_str())
    }

    /// The ports that principals and protocols ask for when the node starts.
    pub fn ports(&self) -> impl Iterator<Item = &PortSpec> {
        let outputs = self.early.iter().flat_map(|(_, outputs)| outputs);
        outputs.filter_map(|output| match output {
            Output::OpenPort { spec, .. } => Some(spec),
            _ => None,
        })
    }

    fn start(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.started = true;
        let address = ChannelAddress::Flow(self.settings.socket.clone());
        out.push(Action::Listen { token: LISTENER, address });
        out.push(Action::WatchInterfaces);
        self.start_share(out);
        self.open_engine(out);
        for (part, outputs) in std::mem::take(&mut self.early) {
            self.carry_out(now, part, outputs, out);
        }
        self.bind_echo();
        self.tell_locals(now, out);
    }

    fn next_token(&mut self) -> Token {
        self.last_token += 1;
        Token(self.last_token)
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        for index in 0..self.interfaces.len() {
            let token = self.next_token();
            if let Some(spec) = self.interfaces[index].open(now, token) {
                out.push(Action::OpenPort { token, spec });
            }
        }
        self.tick_parts(now, out);
        self.tick_engine(now, out);
    }

    /// Whether applications can come, and every port was tried.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.announced
    }

    /// Says that the node is ready, once: applications can come, and every port was tried.
    fn announce(&mut self, out: &mut Vec<Action>) {
        let opening = self.interfaces.iter().any(Interface::is_opening)
            || !self.awaited.is_empty()
            || self.kernel.is_opening();
        if self.listening && !opening && !std::mem::replace(&mut self.announced, true) {
            report(out, Level::Info, format!("node {} is ready", self.settings.name));
        }
    }

    fn packets(&mut self, now: Instant, port: PortId, packets: Vec<Packet>, out: &mut Vec<Action>) {
        match self.owners.get(&port) {
            Some(Owner::Interface) => self.frames(now, packets, out),
            Some(Owner::Part(part)) => {
                self.tell(now, *part, Input::Packets { port, packets }, out);
            }
            None => self.refusals.add(Refusal::UnknownPort, packets.len() as u64),
        }
    }

    /// Takes in Ethernet frames.
    fn frames(&mut self, now: Instant, mut frames: Vec<Packet>, out: &mut Vec<Action>) {
        frames.retain_mut(|frame| match take_link_header(frame) {
            Ok(()) => true,
            Err(refusal) => {
                self.refusals.add(refusal, 1);
                false
            }
        });
        let mut verdicts = std::mem::take(&mut self.verdicts);
        self.forwarder.route_batch(now, &mut frames, &mut verdicts);
        self.settle(now, verdicts, out);
    }

    /// Routes an XIP packet and carries out what comes of it.
    fn route(&mut self, now: Instant, packet: Packet, out: &mut Vec<Action>) {
        let mut verdicts = std::mem::take(&mut self.verdicts);
        self.forwarder.route(now, packet, &mut verdicts);
        self.settle(now, verdicts, out);
    }

    /// Routes an XIP packet that this node has made because of one from a port.
    fn route_answer(
        &mut self,
        now: Instant,
        packet: Packet,
        asked_by: PortId,
        out: &mut Vec<Action>,
    ) {
        let mut verdicts = std::mem::take(&mut self.verdicts);
        self.forwarder.route_answer(now, packet, asked_by, &mut verdicts);
        self.settle(now, verdicts, out);
    }

    /// Carries out verdicts and keeps their list for the next ones.
    fn settle(&mut self, now: Instant, mut verdicts: Verdicts, out: &mut Vec<Action>) {
        for verdict in verdicts.drain() {
            match verdict {
                Verdict::Transmit { port, packet } => out.push(Action::Transmit { port, packet }),
                Verdict::Deliver { socket, packet } if errors::is_error(&packet) => {
                    self.error_received(socket, &packet, out);
                }
                Verdict::Deliver { socket: ECHO, packet } => self.echo(now, &packet, out),
                Verdict::Deliver { socket, packet } => {
                    let channel = self.sockets.channel(socket);
                    match channel.zip(channel::emit_datagram(packet)) {
                        Some((channel, message)) => {
                            out.push(Action::Send { channel, message: message.into() });
                        }
                        None => self.refusals.add(Refusal::SocketGone, 1),
                    }
                }
            }
        }
        self.verdicts = verdicts;
        self.send_errors(now, out);
    }

    fn echo(&mut self, now: Instant, request: &Packet, out: &mut Vec<Action>) {
        let own = self.settings.scope.address_of(ECHO_SINK, &self.forwarder).ok();
        match own.and_then(|own| echo::answer(request, &own)) {
            // The answer is routed after this packet's verdicts, from a list of its own.
            Some(reply) => self.route_answer(now, reply, request.meta.port, out),
            None => self.refusals.add(Refusal::NoEcho, 1),
        }
    }

    /// Binds the echo responder, if it is on and there is a principal for its sink.
    fn bind_echo(&mut self) {
        if self.settings.echo && self.forwarder.principal(ECHO_SINK.kind).is_some() {
            // Only an application that took the well-known identifier first can be in the way.
            let _ = sockets::bind_sink(&mut self.forwarder, ECHO_SINK, ECHO);
        }
    }

    /// Unbinds the echo responder, if it is bound.
    fn unbind_echo(&mut self) {
        let Some(mut principal) = self.forwarder.principal_mut(ECHO_SINK.kind) else { return };
        if principal.lookup(&ECHO_SINK, &mut Vec::new()) == Answer::Deliver(ECHO) {
            principal.unbind(&ECHO_SINK);
        }
    }

    /// Changes what holds for all of the node. Addresses that applications have got stay theirs.
    fn set_whole(&mut self, now: Instant, whole: Whole, out: &mut Vec<Action>) {
        let before = self.settings.whole();
        self.settings.set_whole(whole);
        let Whole { limits, echo, packet_io, .. } = self.settings.whole();
        if packet_io != before.packet_io {
            self.set_packet_io(now, out);
        }
        match echo {
            true => self.bind_echo(),
            false => self.unbind_echo(),
        }
        if limits == before.limits {
            return;
        }
        self.forwarder.set_limits(limits);
        // The engine's tables are as large as the cache was, and it drops what sources are to be told of now.
        let reports = |limits: &Limits| limits.errors.is_some();
        if limits.cache != before.limits.cache || reports(&limits) != reports(&before.limits) {
            self.restart_engine(out);
        }
    }

    fn message(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: Packet,
        out: &mut Vec<Action>,
    ) {
        match Request::parse(message) {
            Ok(Request::Bind(request)) => {
                let answer = self.sockets.bind(
                    channel,
                    request,
                    &self.settings.scope,
                    &mut self.forwarder,
                    &mut self.random,
                );
                let message = match answer {
                    Ok(address) => channel::emit_bound(&address),
                    Err(error) => channel::emit_failed(&error),
                };
                out.push(Action::Send { channel, message: message.into() });
                self.tell_locals(now, out);
            }
            Ok(Request::Send { hop_limit, destination, payload }) => {
                self.send(now, channel, hop_limit, destination, payload, out);
            }
            Ok(Request::Command(text)) => self.command(now, channel, &text, out),
            Err(error) => {
                self.refusals.add(Refusal::BadMessage, 1);
                if !self.refuses(channel) {
                    self.replies.fail(channel, &error.to_string(), out);
                }
            }
        }
    }

    /// Sends an application's datagram.
    fn send(
        &mut self,
        now: Instant,
        channel: ChannelId,
        hop_limit: u8,
        destination: Address,
        mut payload: Packet,
        out: &mut Vec<Action>,
    ) {
        let reject =
            |text: &str| Action::Send { channel, message: channel::emit_rejected(text).into() };
        let Some(source) = self.sockets.address(channel) else {
            self.refusals.add(Refusal::NotBound, 1);
            out.push(reject("the socket is not bound; bind it before sending"));
            return;
        };
        let Ok(payload_len) = u16::try_from(payload.len()) else {
            out.push(reject("the datagram is longer than 65,535 bytes"));
            return;
        };
        let repr = XipRepr { hop_limit, ..XipRepr::new(destination, Some(*source), payload_len) };
        if !destination.is_valid() || !prepend_header(&mut payload, &repr) {
            self.refusals.add(Refusal::BadDestination, 1);
            out.push(reject("the destination address is malformed"));
            return;
        }
        payload.meta.port = PortId::NONE;
        let mut verdicts = std::mem::take(&mut self.verdicts);
        self.forwarder.route(now, payload, &mut verdicts);
        // A copy that was lost on one of several ways is the network's business.
        if verdicts.is_empty()
            && let Some(reason) = self.forwarder.last_drop()
        {
            out.push(reject(reason.help()));
        }
        self.settle(now, verdicts, out);
    }
}

impl Component for Node {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                self.start(now, out);
                self.tick(now, out);
            }
            Event::Stop => {
                self.stop_protocols(now, out);
                self.stop_principals(now, out);
                self.stop_engine(out);
                out.push(Action::Exit { status: 0 });
            }
            Event::Tick => self.tick(now, out),
            Event::Slice => self.replies.go_on(out),
            Event::PortOpened { token, port, info } => {
                self.port_opened(now, token, port, info, out);
                self.announce(out);
            }
            Event::PortFailed { token, error } => {
                self.port_failed(now, token, error, out);
                self.announce(out);
            }
            Event::PortLost { port, error } => self.port_lost(now, port, error, out),
            Event::Packets { port, packets } => self.packets(now, port, packets, out),
            Event::Interface { change } => self.interface_told(now, &change, out),
            Event::Ip { changes } => self.ip_changed(now, &changes, out),
            Event::Accepted { channel, peer, .. } => {
                self.peers.insert(channel, peer);
            }
            Event::Messages { channel, messages } => {
                for message in messages {
                    self.message(now, channel, message.buffer.into(), out);
                }
            }
            Event::Closed { channel } => {
                self.peers.remove(&channel);
                self.replies.forget(channel);
                self.sockets.close(channel, &mut self.forwarder);
                self.tell_locals(now, out);
            }
            Event::ChannelFailed { error, .. } => {
                report(out, Level::Error, format!("the socket for applications: {error}"));
                out.push(Action::Exit { status: 1 });
            }
            Event::Listening { .. } => {
                self.listening = true;
                self.announce(out);
            }
            Event::Counted { counts, .. } => self.answer_ports(&counts, out),
            Event::EngineAnswered { token, result } => {
                self.engine_answered(now, token, result, out);
                self.announce(out);
            }
            Event::Scheduled { token, result } => self.scheduled(token, result, out),
            Event::TablesAdopted { token, result } => {
                self.tables_adopted(token, result, out);
                self.announce(out);
            }
            Event::TablesFailed { token, error } => self.tables_failed(token, error, out),
            Event::TablesFull { token, keys } => self.tables_full(token, &keys),
            Event::TablesCounted { token, sums } => self.engine_counted(token, &sums, out),
            // A slow application loses datagrams, as with UDP; the driver counts them.
            Event::Congested { channel } => self.replies.set_congested(channel, true),
            Event::Drained { channel } => self.replies.set_congested(channel, false),
            // The node neither connects nor inherits channels; it opens no port for others, changes no
            // interfaces, and reads no files.
            Event::Connected { .. }
            | Event::Inherited { .. }
            | Event::HandlesOpened { .. }
            | Event::ListenerOpened { .. }
            | Event::Stream { .. }
            | Event::Rejected { .. }
            | Event::InterfaceConfigured { .. }
            | Event::RoutesAnswered { .. }
            | Event::Tuned { .. }
            | Event::ProgramAnswered { .. }
            | Event::Kept { .. }
            | Event::Disk { .. } => {}
        }
        self.tell_engine(out);
    }

    fn deadline(&self) -> Option<Instant> {
        let interfaces = self.interfaces.iter().filter_map(Interface::deadline);
        interfaces.chain(self.parts_deadline()).chain(self.kernel.deadline()).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        self.counter_groups()
    }

    fn has_background_work(&self) -> bool {
        self.replies.can_go_on() || self.has_more_for_engine()
    }
}

/// Checks an Ethernet header and takes it off.
fn take_link_header(frame: &mut Packet) -> Result<(), Refusal> {
    let to_group = frame.bytes().first().is_some_and(|byte| byte & 1 == 1);
    if to_group {
        Err(Refusal::Broadcast)
    } else if frame.pull_front(ETHERNET_HEADER_LEN) {
        Ok(())
    } else {
        Err(Refusal::ShortFrame)
    }
}

fn report(out: &mut Vec<Action>, level: Level, line: String) {
    out.push(Action::Report { level, line });
}

impl Node {
    /// The XIDs of all principals that are this node.
    fn locals(&self) -> Vec<Xid> {
        let kinds: Vec<_> = self.forwarder.kinds().collect();
        kinds
            .into_iter()
            .filter_map(|kind| self.forwarder.principal(kind))
            .flat_map(|principal| principal.locals())
            .collect()
    }
}
