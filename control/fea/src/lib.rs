//! The forwarding engine abstraction (FEA): what stands between other components and the network.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §3 (the FEA hides how
//! packets are forwarded) and §7 (all network access goes through it, so that no other process needs
//! privileges).
//!
//! It opens packet ports, and TCP sockets that listen, and hands their descriptors to those who ask: what a caller may ask for is a
//! matter of its access list, which can name the interfaces and protocols. For protocols of others it makes connections
//! of TCP, too (`streams`). What was handed over works on when the FEA dies. For those who cannot take descriptors it relays packets (`relays`). It attaches
//! eBPF programs (`programs`), and engines that forward in the kernel (`engines`). It watches
//! the network interfaces, tells which there are, and makes them what the configuration says
//! (`interfaces`), with how packets are taken from them and how threads share the processors (`tuning`). To those who forward by the kernel's tables of IP it tells where these lead (`ip`), and for those
//! who know where they should lead it sets them (`fib`).

mod engines;
mod fib;
mod interfaces;
mod ip;
mod news;
mod programs;
mod relays;
mod streams;
mod tuning;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use engines::Engines;
use fib::Fib;
use interfaces::Interfaces;
pub use interfaces::{SCHEMA, STATEMENT};
use ip::Ip;
use news::{Callers, Question};
use programs::Programs;
use relays::Relays;
use streams::{Opened, Streams, Wish};
use tuning::Tunings;
use weft_base::{CounterGroup, Counters, Instant, Random, Token};
use weft_config::Errors;
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{Action, Component, Event, InterfaceChange, StreamEvent};
use weft_xrl::profile::{self, Clock};
use weft_xrl::{
    Called, Encoded, Handle, Input, Interface, Mac, Output, XrlError, configurable, fea,
};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
mod manager {
    //! The manager's interface.
    include!(concat!(env!("OUT_DIR"), "/manager.rs"));
}

weft_base::reasons! {
    /// What the FEA counts.
    enum Activity {
        ListenersOpened = "listeners-opened", "TCP sockets that listen, opened for others";
        ListenersFailed = "listeners-failed", "TCP sockets that could not be opened to listen";
        StreamsOpened = "streams-opened", "connections of TCP that were made for others";
        StreamsFailed = "streams-failed", "connections of TCP, or sockets for them, that could not be made";
        PortsOpened = "ports-opened", "packet ports that were opened for others";
        PortsFailed = "ports-failed", "packet ports that could not be opened";
        InterfaceChanges = "interface-changes", "changes of network interfaces that the kernel told";
    }
}

/// The interfaces of the FEA.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&fea::INTERFACE, &weft_xrl::fib::INTERFACE, &configurable::INTERFACE, &profile::INTERFACE]
}

/// The FEA; see the crate's text.
pub struct Fea {
    /// Who waits for a port.
    waiting: BTreeMap<Token, Called>,
    last_token: u32,
    interfaces: Interfaces,
    /// Who watches them.
    watching: Callers<u32>,
    programs: Programs,
    engines: Engines,
    relays: Relays,
    streams: Streams,
    tunings: Tunings,
    ip: Ip,
    fib: Fib,
    counters: Counters<Activity>,
}

/// What is left to do for a call.
enum Next {
    Answer(Encoded),
    OpenPort(PortSpec),
    OpenListener(SocketAddr),
    OpenRelay(PortSpec),
    Stream(Wish),
    WatchInterfaces(fea::WatchInterfaces),
    Receive(fea::ReceivePackets),
    Attach(fea::AttachProgram),
    Detach(fea::DetachProgram),
    List(Option<String>),
    OpenEngine(fea::OpenEngine),
    AttachEngine(fea::AttachEngine),
    DetachEngine(fea::DetachEngine),
    WatchIp(fea::WatchIp),
    Tuning,
    Schedule(fea::Schedule),
}

impl Fea {
    /// An FEA that has opened nothing yet.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        Self {
            waiting: BTreeMap::new(),
            last_token: 0,
            interfaces: Interfaces::default(),
            watching: Callers::default(),
            programs: Programs::default(),
            engines: Engines::default(),
            relays: Relays::default(),
            streams: Streams::default(),
            tunings: Tunings::default(),
            ip: Ip::default(),
            fib: Fib::new(random),
            counters: Counters::new(),
        }
    }

    /// The same with a clock for its profile points, if there is one.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<Clock>) -> Self {
        self.fib.set_clock(clock);
        self
    }

    fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        match called.interface.name {
            name if name == fea::INTERFACE.name => {}
            name if name == weft_xrl::fib::INTERFACE.name => {
                return self.fib.called(now, called, out);
            }
            name if name == profile::INTERFACE.name => {
                return out.push(self.fib.profile.answer(called));
            }
            _ => return self.manage(called, out),
        }
        let call = called.read::<fea::Call>();
        match call.and_then(|call| self.carry_out(&called, call, out)) {
            Ok(Next::Answer(encoded)) => {
                out.push(Output::Answer { id: called.id, result: Ok(encoded) });
            }
            Ok(Next::OpenPort(spec)) => {
                if let Some(note) = self.xdp_in_the_way(&spec) {
                    return out.push(called.fail(XrlError::failed(note)));
                }
                // An engine at the interface must be known, to hand packets to the port.
                self.engines.adopt(out);
                let token = self.token();
                out.push(Output::World(Action::OpenHandles { token, spec }));
                self.waiting.insert(token, called);
            }
            Ok(Next::OpenListener(address)) => {
                let token = self.token();
                out.push(Output::World(Action::OpenListener { token, address }));
                self.waiting.insert(token, called);
            }
            Ok(Next::OpenRelay(spec)) => {
                let token = self.token();
                out.push(Output::World(Action::OpenPort { token, spec }));
                self.relays.opening(token, called);
            }
            Ok(Next::Stream(wish)) => {
                let token = self.token();
                self.streams.carry_out(token, called, wish, out);
            }
            Ok(Next::WatchInterfaces(fea::WatchInterfaces { begin, at_most, wait })) => {
                let question = Question { begin, at_most, wait };
                self.watching.ask(now, called, &question, &self.interfaces, out);
            }
            Ok(Next::Receive(request)) => self.relays.receive(now, called, &request, out),
            Ok(Next::WatchIp(request)) => self.ip.watch(now, called, &request, out),
            Ok(Next::Attach(request)) => {
                if let Some(note) = self.engine_in_the_way(&request.interface) {
                    return out.push(called.fail(XrlError::failed(note)));
                }
                let interface = self.interfaces.named(&request.interface);
                self.programs.attach(called, interface, &request, out);
            }
            Ok(Next::Detach(request)) => {
                let interface = self.interfaces.named(&request.interface);
                self.programs.detach(called, interface, &request, out);
            }
            Ok(Next::List(interface)) => self.list_programs(called, interface.as_deref(), out),
            Ok(Next::OpenEngine(request)) => self.engines.open(called, request, out),
            Ok(Next::AttachEngine(request)) => {
                let index = self.interfaces.named(&request.interface).map(|one| one.index);
                let program = index.and_then(|index| self.programs.at(index));
                self.engines.attach(called, request, program, out);
            }
            Ok(Next::Tuning) => {
                let tunings = self.interfaces.tunings();
                self.tunings.tell(called, tunings, out);
            }
            Ok(Next::Schedule(request)) => self.tunings.schedule(called, &request, out),
            Ok(Next::DetachEngine(request)) => self.engines.detach(called, request, out),
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// Does what can be done at once.
    fn carry_out(
        &mut self,
        called: &Called,
        call: fea::Call,
        out: &mut Vec<Output>,
    ) -> Result<Next, XrlError> {
        Ok(match call {
            fea::Call::OpenPort(request) => Next::OpenPort(spec_of_handle(&request.spec)?),
            fea::Call::OpenListener(fea::OpenListener { address }) => {
                let wrong = |_| {
                    let note = format!("`{address}` is no address of TCP, such as 192.0.2.1:6500");
                    XrlError::bad_args(note)
                };
                Next::OpenListener(address.parse().map_err(wrong)?)
            }
            fea::Call::OpenStream(request) => Next::Stream(streams::open(request)?),
            fea::Call::CancelStream(fea::CancelStream { number }) => {
                Next::Stream(Wish::Cancel { number })
            }
            fea::Call::OpenStreamListener(request) => Next::Stream(streams::listen(request)?),
            fea::Call::SetStreamKeys(request) => Next::Stream(streams::set_keys(request)?),
            fea::Call::CloseStreamListener(fea::CloseStreamListener { number }) => {
                Next::Stream(Wish::Close { number })
            }
            fea::Call::OpenRelay(request) => {
                self.relays.check_room(called)?;
                Next::OpenRelay(spec(&request.spec)?)
            }
            fea::Call::ReceivePackets(request) => {
                self.relays.check_owner(called, request.relay)?;
                Next::Receive(request)
            }
            fea::Call::SendPackets(request) => {
                self.relays.send(called, request, out)?;
                Next::Answer(Encoded::default())
            }
            fea::Call::CloseRelay(fea::CloseRelay { relay }) => {
                self.relays.close(called, relay, out)?;
                Next::Answer(Encoded::default())
            }
            fea::Call::AttachProgram(request) => Next::Attach(request),
            fea::Call::DetachProgram(request) => Next::Detach(request),
            fea::Call::ListPrograms(fea::ListPrograms { interface }) => Next::List(interface),
            fea::Call::OpenEngine(request) => Next::OpenEngine(request),
            fea::Call::AttachEngine(request) => Next::AttachEngine(request),
            fea::Call::DetachEngine(request) => Next::DetachEngine(request),
            fea::Call::WatchIp(request) => Next::WatchIp(request),
            fea::Call::Tuning(_) => Next::Tuning,
            fea::Call::Schedule(request) => Next::Schedule(request),
            fea::Call::FindNeighbour(fea::FindNeighbour { interface, address }) => {
                out.push(Output::World(Action::FindNeighbour { interface, ip: address }));
                Next::Answer(Encoded::default())
            }
            fea::Call::Interfaces(_) => Next::Answer(Encoded::new(self.interfaces.told()?)),
            fea::Call::WatchInterfaces(request) => Next::WatchInterfaces(request),
        })
    }

    fn token(&mut self) -> Token {
        self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
        Token(self.last_token)
    }

    fn opened(
        &mut self,
        token: Token,
        handles: Vec<Handle>,
        info: PortInfo,
        out: &mut Vec<Output>,
    ) {
        let Some(called) = self.waiting.remove(&token) else { return };
        let mut handles = handles.into_iter();
        let Some(port) = handles.next() else {
            return out.push(called.fail(XrlError::failed("what was opened has no descriptor")));
        };
        self.counters.add(Activity::PortsOpened, 1);
        out.push(called.answer(Ok(fea::OpenPortReply {
            port,
            parts: handles.collect(),
            mac: Mac(info.mac),
            // No packet is as long as 32 bits can say.
            mtu: u32::try_from(info.mtu).unwrap_or(u32::MAX),
            local: info.local.map(|local| local.to_string()),
        })));
    }

    /// The driver has answered what was asked about connections.
    fn stream(&mut self, token: Token, event: StreamEvent, out: &mut Vec<Output>) {
        let activity = match self.streams.answered(token, event, out) {
            Some(Opened::Stream) => Activity::StreamsOpened,
            Some(Opened::Listener) => Activity::ListenersOpened,
            Some(Opened::Failed) => Activity::StreamsFailed,
            None => return,
        };
        self.counters.add(activity, 1);
    }

    fn list_programs(&mut self, called: Called, interface: Option<&str>, out: &mut Vec<Output>) {
        let all = self.interfaces.all().into_iter().flatten();
        let engine_at = |name: &str| self.engines.at(name).map(str::to_owned);
        match interface {
            None => self.programs.list(called, all, engine_at, out),
            Some(name) => match self.interfaces.named(name) {
                Some(one) => self.programs.list(called, std::iter::once(one), engine_at, out),
                None => {
                    let name = name.escape_debug();
                    let note = format!(
                        "there is no interface `{name}`: `weft show interfaces` lists them"
                    );
                    out.push(called.fail(XrlError::failed(note)));
                }
            },
        }
    }

    /// Why no program is attached to an interface where it would not see what a packet engine forwards.
    fn engine_in_the_way(&self, interface: &str) -> Option<String> {
        let engine = self.engines.at(interface)?;
        Some(format!(
            "the packet engine {engine} is at the interface {interface}, and what it forwards would not \
             meet the program: let the portable engine forward there"
        ))
    }

    /// Why a port that goes past the network stack is not opened.
    fn xdp_in_the_way(&self, spec: &PortSpec) -> Option<String> {
        let PortSpec::Xdp { interface, .. } = spec else { return None };
        let program = self.programs.at(self.interfaces.named(interface)?.index)?;
        Some(format!(
            "the program {program} is at the interface {interface}, and would not see packets of AF_XDP: detach \
             it first"
        ))
    }

    /// Carries between interfaces and programs what they want of each other.
    fn settle(&mut self, out: &mut Vec<Output>) {
        loop {
            if let Some(wanted) = self.interfaces.take_programs() {
                let in_the_way = wanted.values().find_map(|(name, _)| self.engine_in_the_way(name));
                match in_the_way {
                    Some(error) => self.interfaces.programs_attached(Err(error), out),
                    None => self.programs.configure(wanted, out),
                }
                continue;
            }
            match self.programs.take_outcome() {
                Some(result) => self.interfaces.programs_attached(result, out),
                None => return,
            }
        }
    }

    /// What the manager asks.
    fn manage(&mut self, mut called: Called, out: &mut Vec<Output>) {
        let wrong = |errors: Errors| XrlError::failed(errors.to_string());
        let result = called.read::<configurable::Call>().and_then(|call| match call {
            configurable::Call::Check(configurable::Check { source, text, .. }) => {
                Interfaces::check(&source, &text).map_err(wrong)?;
                Ok(Some(Encoded::default()))
            }
            configurable::Call::Configure(configurable::Configure { source, text, .. }) => {
                self.interfaces.configure(&source, &text, called.id, out).map_err(wrong)?;
                Ok(None)
            }
            configurable::Call::Schema(_) => {
                let text = SCHEMA.to_owned();
                Ok(Some(Encoded::new(configurable::SchemaReply { text })))
            }
            configurable::Call::Status(_) => {
                let missing: Vec<_> = self.interfaces.missing().collect();
                let detail = match missing.is_empty() {
                    true => String::new(),
                    false => format!("waits for the interfaces {}", missing.join(", ")),
                };
                Ok(Some(Encoded::new(configurable::StatusReply { ready: true, detail })))
            }
        });
        if let Some(result) = result.transpose() {
            out.push(Output::Answer { id: called.id, result });
        }
    }
}

fn spec(text: &str) -> Result<PortSpec, XrlError> {
    text.parse().map_err(|error| XrlError::bad_args(format!("`{text}` is no packet port: {error}")))
}

/// The port that a process is to use by itself. Over IPv6 it can send only as one does at an address of its own, to
/// which its two sockets are bound (see `weft_port::open_descriptors`).
fn spec_of_handle(text: &str) -> Result<PortSpec, XrlError> {
    let spec = spec(text)?;
    let cannot_send = match &spec {
        PortSpec::Udp { local: SocketAddr::V6(local) } => local.ip().is_unspecified(),
        PortSpec::Ip { local: IpAddr::V6(local), .. } => local.is_unspecified(),
        PortSpec::Group { group, .. } => group.is_ipv6(),
        PortSpec::Udp { .. }
        | PortSpec::Ip { .. }
        | PortSpec::Ethernet { .. }
        | PortSpec::Xdp { .. }
        | PortSpec::Tap { .. }
        | PortSpec::Tun { .. } => false,
    };
    if cannot_send {
        return Err(XrlError::bad_args(format!(
            "a port of IPv6 without an address of its own ({spec}) is of no use to a process with a system call \
             filter: it may send to addresses of the length of IPv4's alone, or from sockets that it connects; \
             give an address of this host, or have the packets relayed"
        )));
    }
    Ok(spec)
}

impl Component for Fea {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.fib.profile.begin(now);
        match input {
            Input::Called(called) => self.called(now, called, out),
            Input::Left { session, removed } => {
                self.relays.left(session, out);
                self.streams.left(session, out);
                self.ip.left(session);
                self.watching.left(session);
                self.fib.left(now, (session, removed), out);
            }
            Input::World(Event::RoutesAnswered { token, result }) => {
                self.fib.answered(now, token, result, out);
            }
            Input::World(Event::Ip { changes }) => self.ip.changed(changes, out),
            Input::World(Event::HandlesOpened { token, handles, info }) => {
                // A port may come with a program at XDP.
                self.tunings.again();
                self.opened(token, handles, info, out);
            }
            Input::World(Event::ListenerOpened { token, address, handle }) => {
                if let Some(called) = self.waiting.remove(&token) {
                    self.counters.add(Activity::ListenersOpened, 1);
                    let (listener, local) = (handle, address.to_string());
                    out.push(called.answer(Ok(fea::OpenListenerReply { listener, local })));
                }
            }
            Input::World(Event::ChannelFailed { token, error }) => {
                if let Some(called) = self.waiting.remove(&token) {
                    self.counters.add(Activity::ListenersFailed, 1);
                    out.push(called.fail(XrlError::failed(error)));
                }
            }
            Input::World(Event::Stream { token, event }) => self.stream(token, event, out),
            Input::Registered => {
                self.engines.adopt(out);
                self.programs.registered(out);
            }
            Input::Replied { token, result } if self.engines.has_called(token) => {
                self.engines.replied(&result, out);
            }
            Input::Replied { token, result } => self.programs.replied(token, result, out),
            Input::World(Event::Kept { name, handle }) => {
                if let Some((name, handle)) = self.engines.kept(name, handle) {
                    self.programs.kept(name, handle);
                }
            }
            Input::World(Event::Tuned { token, tuned }) => self.tunings.tuned(token, tuned, out),
            Input::World(Event::Scheduled { token, result }) => {
                self.tunings.scheduled(token, result, out);
            }
            Input::World(Event::EngineAnswered { token, result }) => {
                // With its program at XDP the NAPIs of an interface come and go.
                self.tunings.again();
                self.engines.answered(token, result, out);
            }
            Input::World(Event::ProgramAnswered { token, result }) => {
                self.programs.answered(token, result, out);
            }
            Input::World(Event::Start) => out.push(Output::World(Action::WatchInterfaces)),
            Input::World(Event::Interface { change }) => {
                if change != InterfaceChange::Complete {
                    self.counters.add(Activity::InterfaceChanges, 1);
                }
                if let InterfaceChange::Removed { index, .. } = &change {
                    self.programs.interface_gone(*index, out);
                }
                match &change {
                    InterfaceChange::Added(one) | InterfaceChange::Changed(one) => {
                        self.watching.note(one.index);
                    }
                    InterfaceChange::Removed { index, .. } => self.watching.note(*index),
                    InterfaceChange::Complete => {}
                }
                self.fib.interface(now, &change, out);
                self.interfaces.changed(change, out);
                self.watching.tell(&self.interfaces, out);
            }
            Input::World(Event::InterfaceConfigured { token, result }) => {
                self.interfaces.answered(token, result, out);
            }
            Input::World(Event::PortFailed { token, error }) => {
                self.counters.add(Activity::PortsFailed, 1);
                out.extend(self.relays.failed(token, &error));
                if let Some(called) = self.waiting.remove(&token) {
                    out.push(called.fail(XrlError::failed(error)));
                }
            }
            Input::World(Event::PortOpened { token, port, info }) => {
                match self.relays.opened(token, port, &info) {
                    Some(answer) => {
                        self.counters.add(Activity::PortsOpened, 1);
                        out.push(answer);
                    }
                    None => out.push(Output::World(Action::ClosePort { port })),
                }
            }
            Input::World(Event::Packets { port, packets }) => {
                self.relays.packets(port, packets, out);
            }
            Input::World(Event::PortLost { port, error }) => self.relays.lost(port, &error, out),
            Input::World(Event::Tick) => {
                self.relays.expire(now, out);
                self.ip.expire(now, out);
                self.watching.expire(now, &self.interfaces, out);
                self.fib.expire(now, out);
            }
            Input::World(Event::Stop) => {
                self.programs.stop(out);
                self.tunings.stop(out);
                out.push(Output::World(Action::Exit { status: 0 }));
            }
            _ => {}
        }
        self.settle(out);
        self.tunings.settle(self.interfaces.tunings(), out);
    }

    fn deadline(&self) -> Option<Instant> {
        let others = [self.ip.deadline(), self.watching.deadline(), self.fib.deadline()];
        others.into_iter().flatten().chain(self.relays.deadline()).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![
            CounterGroup::new("fea-activity", "what the FEA has done", &self.counters),
            self.fib.counters(),
        ]
    }
}
