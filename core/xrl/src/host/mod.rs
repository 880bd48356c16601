//! A process of components that call one another: [`Host`].
//!
//! Reference: Handley et al. (XORP), §6.2: each component registers with the Finder, has what it calls
//! resolved there, and caches the result until the Finder says that it is void.
//!
//! * `finder`: the connection with the Finder: registrations, resolving, births and deaths;
//! * `targets`: the components elsewhere that are called, each with its connection and known methods;
//! * `served`: connections of callers, what each may call, and the calls that are not answered yet;
//! * `from_fea`: packet ports and engines that the FEA opens for members;
//! * `streams`: connections of TCP that the FEA makes for members;
//! * `interfaces`: the machine's interfaces, for members that watch them;
//! * `ip`: where the machine's IP leads, likewise;
//! * `monitor`: what whoever watches the node asks of each member;
//! * `members`: the components of this process, and which events are whose.
//!
//! The way of a call out: [`Output::Call`] → a member of this process is called at once, the Finder
//! over its own connection, and anybody else through `targets`: resolved, connected, bound, sent. The
//! way in: a frame on a connection of `served` → its slot says which method it may be and in which
//! ranges its arguments must be → [`Input::Called`] → [`Output::Answer`] → a frame.

mod finder;
mod from_fea;
mod interfaces;
mod ip;
mod local;
mod members;
mod monitor;
mod served;
mod streams;
mod targets;

use std::collections::{BTreeMap, VecDeque};

use weft_base::{ChannelId, Instant, Message, Token};
use weft_runtime::{Action, ChannelAddress, Component, Event, Level, StreamEvent};

use crate::component::{Call, CallId, Called, Encoded, Input, Method, Output, Reply};
use crate::frame::Secret;
use crate::interface::Interface;
use crate::log::Log;
use crate::signature::Signatures;
use crate::{ErrorCode, FINDER, XrlError};
use finder::Finder;
use from_fea::{FromFea, Wanted};
use interfaces::Interfaces;
use ip::Ip;
use local::Local;
use members::Members;
use monitor::{CallCount, Monitor};
use served::Served;
use streams::Streams;
use targets::Targets;

/// How many messages of its own members one event may cause before others get their turn.
const STEPS_PER_EVENT: usize = 4096;

/// A component in a process, and what the Finder is told of it.
pub struct Part {
    /// Its class, such as `bgp`; empty for a tool, which nobody can call.
    pub class: String,
    /// Its name, which no other component has.
    pub instance: String,
    /// Whether there may be no other component of its class.
    pub sole: bool,
    /// What can be called, besides `monitor`, which every component has.
    pub interfaces: Vec<&'static Interface>,
    /// The component.
    pub component: Box<dyn Component<Input = Input, Output = Output>>,
}

/// How a process takes part.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the Finder is; without it only the members call one another. An address of
    /// [`ChannelAddress::Tls`] is that of a gateway of the node, through which all of its components are
    /// called; the driver must have been given [`Keys`](weft_runtime::Keys).
    pub finder: Option<ChannelAddress>,
    /// Where calls are taken; without it nobody can call.
    pub listen: Option<ChannelAddress>,
    /// What shows the Finder who this is.
    pub credential: Identity,
    /// Whether the FEA opens the members' packet ports and engines. Otherwise the process does it itself.
    pub ports_from_fea: bool,
}

/// What shows the Finder who a process is.
#[derive(Clone, Debug)]
pub enum Identity {
    /// The kernel's word on its user.
    User,
    /// The secret that it was given.
    Secret(Secret),
    /// A secret that a member will say with [`Output::Join`]; until then nobody is called.
    Later,
}

/// Who has a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Member(usize),
    Finder,
    Target,
    Served,
}

/// What the parts of a host share while one event is handled.
struct Now<'a> {
    time: Instant,
    out: &'a mut Vec<Action>,
}

impl Now<'_> {
    fn send(&mut self, channel: ChannelId, message: Message) {
        self.out.push(Action::Send { channel, message });
    }

    fn report(&mut self, level: Level, line: String) {
        self.out.push(Action::Report { level, line });
    }
}

/// A process of components; see the module's text.
pub struct Host {
    settings: Settings,
    members: Members,
    channels: BTreeMap<ChannelId, Owner>,
    finder: Finder,
    targets: Targets,
    served: Served,
    local: Local,
    from_fea: FromFea,
    streams: Streams,
    interfaces: Interfaces,
    ip: Ip,
    monitor: Monitor,
    log: Log<CallId>,
    signatures: Signatures,
    /// What members are to be told.
    inputs: VecDeque<(usize, Input)>,
    /// Empty between two inputs; kept for its memory.
    outputs: Vec<Output>,
}

impl Host {
    /// A process of `parts`, which have different instances.
    ///
    /// # Panics
    /// There are more than 15 parts.
    #[must_use]
    pub fn new(settings: Settings, parts: Vec<Part>) -> Self {
        Self {
            finder: Finder::default(),
            targets: Targets::through(gateway(&settings)),
            served: Served::default(),
            local: Local::default(),
            from_fea: FromFea::default(),
            streams: Streams::default(),
            interfaces: Interfaces::default(),
            ip: Ip::default(),
            monitor: Monitor::default(),
            log: Log::new(Level::Info),
            signatures: Signatures::default(),
            members: Members::new(parts),
            channels: BTreeMap::new(),
            inputs: VecDeque::new(),
            outputs: Vec::new(),
            settings,
        }
    }

    /// The process, whose log is of what is as serious as `level`; without this, it is of what is worth
    /// information.
    #[must_use]
    pub fn with_log(mut self, level: Level) -> Self {
        self.log = Log::new(level);
        self
    }

    fn start(&mut self, now: &mut Now<'_>) {
        if let Some(address) = self.settings.listen.clone() {
            now.out.push(Action::Listen { token: members::own_token(served::LISTENER), address });
        }
        if let Some(address) = self.settings.finder.clone() {
            if !matches!(self.settings.credential, Identity::Later) {
                self.finder.connect(address, now);
            }
        } else {
            for index in 0..self.members.len() {
                self.inputs.push_back((index, Input::Registered));
            }
        }
    }

    /// Takes what happened in the world.
    fn world(&mut self, event: Event, now: &mut Now<'_>) {
        match event {
            Event::Start => {
                self.start(now);
                self.members.tell_all(&mut self.inputs, || Event::Start);
            }
            Event::Stop => self.members.tell_all(&mut self.inputs, || Event::Stop),
            Event::Tick => {
                self.tick(now);
                self.members.tell_due(now.time, &mut self.inputs);
            }
            Event::Slice => self.members.tell_busy(&mut self.inputs),
            Event::Inherited { name, channel } => {
                // What a process inherits is for its first component.
                self.channels.insert(channel, Owner::Member(0));
                let event = Event::Inherited { name, channel };
                self.inputs.push_back((0, Input::World(event)));
            }
            Event::Kept { name, handle } => {
                self.inputs.push_back((0, Input::World(Event::Kept { name, handle })));
            }
            Event::Messages { channel, messages } => self.messages(channel, messages, now),
            Event::Congested { channel } => self.congestion(channel, true, now),
            Event::Drained { channel } => self.congestion(channel, false, now),
            Event::Closed { channel } => self.closed(channel, now),
            Event::Ip { changes } => self.ip.changed(&changes, &mut self.inputs),
            Event::Interface { change } => self.interfaces.changed(&change, &mut self.inputs),
            mut event => match members::token_of(&mut event).map(members::take_owner) {
                Some((None, token)) => self.own(token, event, now),
                Some((Some(member), _)) => self.of_member(member, event),
                None => {
                    if let Event::PortLost { port, .. } = &event {
                        self.monitor.port_gone(*port);
                    }
                    self.members.tell_owner(event, &mut self.inputs);
                }
            },
        }
    }

    /// Something that a member asked for happened.
    fn of_member(&mut self, member: usize, event: Event) {
        match &event {
            Event::Accepted { channel, .. } | Event::Connected { channel, .. } => {
                self.channels.insert(*channel, Owner::Member(member));
            }
            Event::Stream {
                event: StreamEvent::Opened { channel, .. } | StreamEvent::Accepted { channel, .. },
                ..
            } => {
                self.channels.insert(*channel, Owner::Member(member));
            }
            Event::PortOpened { port, token, .. } => {
                self.members.owns_port(member, *port);
                self.monitor.port_opened(member, *token, Some(*port));
            }
            Event::PortFailed { token, .. } => self.monitor.port_opened(member, *token, None),
            _ => {}
        }
        self.inputs.push_back((member, Input::World(event)));
    }

    /// Something that the host itself asked for happened.
    fn own(&mut self, token: Token, event: Event, now: &mut Now<'_>) {
        match event {
            Event::Accepted { channel, peer, .. } => {
                self.channels.insert(channel, Owner::Served);
                self.served.accepted(channel, peer);
            }
            Event::Connected { channel, .. } if token == finder::TOKEN => {
                self.channels.insert(channel, Owner::Finder);
                self.finder_connected(channel, now);
            }
            Event::Connected { channel, .. } => match self.targets.connected(token, channel, now) {
                Some(over) => {
                    self.channels.insert(channel, Owner::Target);
                    self.settle(over, now);
                }
                None => now.out.push(Action::Close { channel }),
            },
            Event::ChannelFailed { error, .. } if token == finder::TOKEN => {
                self.finder.failed(now, &error);
                // Another machine is not being started, as a Finder may be.
                if gateway(&self.settings).is_some() {
                    let refused = |index| (index, Input::NotRegistered(error.clone()));
                    self.inputs.extend((0..self.members.len()).map(refused));
                }
            }
            Event::ChannelFailed { error, .. } if token == served::LISTENER => {
                now.report(Level::Error, format!("calls cannot be taken: {error}"));
            }
            Event::ChannelFailed { error, .. } => {
                let over = self.targets.failed(token, &error);
                self.settle(over, now);
            }
            Event::Counted { counts, .. } => self.counted(&counts, now),
            // Nobody wants it any more.
            Event::Stream { event: StreamEvent::Opened { channel, .. }, .. } => {
                now.out.push(Action::Close { channel });
            }
            _ => {}
        }
    }

    fn messages(&mut self, channel: ChannelId, messages: Vec<Message>, now: &mut Now<'_>) {
        match self.channels.get(&channel) {
            Some(Owner::Member(member)) => {
                let event = Event::Messages { channel, messages };
                self.inputs.push_back((*member, Input::World(event)));
            }
            Some(Owner::Finder) => self.finder_messages(messages, now),
            Some(Owner::Target) => self.target_messages(channel, messages, now),
            Some(Owner::Served) => self.served_messages(channel, messages, now),
            None => {}
        }
    }

    fn congestion(&mut self, channel: ChannelId, congested: bool, now: &mut Now<'_>) {
        match self.channels.get(&channel) {
            Some(Owner::Member(member)) => {
                let event = match congested {
                    true => Event::Congested { channel },
                    false => Event::Drained { channel },
                };
                self.inputs.push_back((*member, Input::World(event)));
            }
            Some(Owner::Finder) => self.finder.set_congested(congested, now),
            Some(Owner::Target) => self.targets.set_congested(channel, congested, now),
            // Replies are bounded by the window of the caller, who must read them to go on.
            Some(Owner::Served) | None => {}
        }
    }

    fn closed(&mut self, channel: ChannelId, now: &mut Now<'_>) {
        match self.channels.remove(&channel) {
            Some(Owner::Member(member)) => {
                self.inputs.push_back((member, Input::World(Event::Closed { channel })));
            }
            Some(Owner::Finder) => self.finder_closed(now),
            Some(Owner::Target) => {
                let over = self.targets.closed(channel);
                self.settle(over, now);
                self.resolve_waiting(now);
            }
            Some(Owner::Served) => self.caller_left(channel),
            None => {}
        }
    }

    fn tick(&mut self, now: &mut Now<'_>) {
        if self.finder.is_due(now.time)
            && let Some(address) = self.settings.finder.clone()
        {
            self.finder.connect(address, now);
        }
        self.finder_expire(now);
        self.ask_again(now);
        let over = self.targets.expire(now.time);
        self.settle(over, now);
        for (owner, result) in self.local.expire(now.time) {
            self.replied(owner, result, now);
        }
    }

    /// Tells members what became of their calls.
    fn settle(&mut self, over: Vec<(Caller, XrlError)>, now: &mut Now<'_>) {
        for (caller, error) in over {
            self.replied(caller, Err(error), now);
        }
    }

    fn replied(&mut self, caller: Caller, result: Result<Reply, XrlError>, now: &mut Now<'_>) {
        if from_fea::is_own(caller) {
            return self.fea_answered(caller.token, result, now);
        }
        self.monitor.calls.add(CallCount::Failed, result.is_err().into());
        self.inputs.push_back((caller.member, Input::Replied { token: caller.token, result }));
    }

    /// Gives members their inputs and does what they want, until nothing is left or others are due.
    fn run(&mut self, now: &mut Now<'_>) {
        for _ in 0..STEPS_PER_EVENT {
            let Some((index, input)) = self.inputs.pop_front() else { break };
            let input = match input {
                Input::Called(called) => {
                    self.monitor.calls.add(CallCount::Received, 1);
                    if std::ptr::eq(called.interface, &raw const crate::monitor::INTERFACE) {
                        self.watched(index, called, now);
                        continue;
                    }
                    Input::Called(called)
                }
                input => input,
            };
            self.tell(index, input, now);
        }
    }

    /// Gives a member an input and does what it wants.
    fn tell(&mut self, member: usize, input: Input, now: &mut Now<'_>) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.members.handle(member, now.time, input, &mut outputs);
        for output in outputs.drain(..) {
            self.carry_out(member, output, now);
        }
        self.outputs = outputs;
    }

    /// Does in the world what a member wants, or has the FEA do it.
    fn act(&mut self, member: usize, mut action: Action, now: &mut Now<'_>) {
        let from_fea = self.settings.ports_from_fea;
        match action {
            Action::OpenPort { token, spec } if from_fea => {
                return self.have_done(member, token, Wanted::Port(spec), now);
            }
            Action::Engine { token, request } if from_fea => {
                return self.have_done(member, token, Wanted::Engine(request), now);
            }
            Action::Schedule { token, process: None, scheduling } if from_fea => {
                return self.have_done(member, token, Wanted::Scheduling(scheduling), now);
            }
            Action::Stream { token, request } if from_fea => {
                return self.have_connected(member, token, request, now);
            }
            Action::FindNeighbour { interface, ip } if from_fea => {
                return self.have_done(member, Token(0), Wanted::Neighbour { interface, ip }, now);
            }
            Action::WatchIp => return self.watch_ip(member, now),
            Action::WatchInterfaces => return self.watch_interfaces(member, now),
            Action::CloseListener { token } => self.listener_closed(member, token, now),
            Action::ClosePort { port } => self.monitor.port_gone(port),
            _ => {}
        }
        self.monitor.port_asked(member, &action);
        members::tag_token(member, &mut action);
        now.out.push(action);
    }

    fn carry_out(&mut self, member: usize, output: Output, now: &mut Now<'_>) {
        match output {
            Output::World(action) => self.act(member, action, now),
            Output::Call(call) => {
                self.monitor.calls.add(CallCount::Made, 1);
                self.call(member, call, now);
            }
            Output::Answer { id, result } => self.answer(id, result, now),
            Output::Watch { class } => self.watch(member, class, now),
            Output::Record { time, level, text } => {
                self.log.record(time, level, &text);
                self.answer_log(now);
            }
            Output::Join { secret } => {
                let waits = matches!(self.settings.credential, Identity::Later);
                self.settings.credential = Identity::Secret(secret);
                if let (true, Some(address)) = (waits, self.settings.finder.clone()) {
                    self.finder.connect(address, now);
                }
            }
        }
    }

    fn call(&mut self, member: usize, call: Call, now: &mut Now<'_>) {
        let caller = Caller { member, token: call.token };
        if let Some(callee) = self.members.find(&call.target) {
            if let Err(error) = self.call_member(caller, callee, call, now.time) {
                self.replied(caller, Err(error), now);
            }
        } else if self.settings.finder.is_none() {
            let note = format!("there is no component {} in this process", call.target);
            self.replied(caller, Err(XrlError::new(ErrorCode::NoFinder, note)), now);
        } else if call.target == FINDER {
            if let Err(error) = self.call_finder(caller, call, now) {
                self.replied(caller, Err(error), now);
            }
        } else {
            let over = self.targets.call(caller, call, now);
            self.settle(over, now);
            self.resolve_waiting(now);
        }
    }

    /// Calls a component of this process.
    fn call_member(
        &mut self,
        caller: Caller,
        callee: usize,
        call: Call,
        time: Instant,
    ) -> Result<(), XrlError> {
        let Call { method, arguments, timeout, .. } = call;
        let interfaces = self.members.interfaces(callee);
        let (interface, number, text) = match method {
            Method::Known(interface, number) => {
                let same = |one: &&&'static Interface| {
                    std::ptr::eq(**one, interface)
                        || one.name == interface.name && one.version.answers(interface.version)
                };
                let interface = interfaces.iter().find(same).ok_or_else(|| {
                    let path = interface.path_of(number);
                    let note = format!("{} has no method {path}", call.target);
                    XrlError::new(ErrorCode::NoSuchMethod, note)
                })?;
                (*interface, number, false)
            }
            Method::Path(path) => {
                let (interface, number) = crate::signature::find_method(&interfaces, &path)?;
                (interface, number, true)
            }
        };
        let signature = if text { self.signatures.of(interface, number) } else { None };
        let arguments = match &signature {
            Some(signature) => signature.arguments_from_text(arguments.args.bytes())?,
            None => arguments,
        };
        let id = self.local.begin(caller, signature, time + timeout)?;
        let name = match from_fea::is_own(caller) {
            true => "host".into(),
            false => self.members.instance(caller.member),
        };
        let (session, uid, pid) = (0, None, None);
        let called =
            Called { id, caller: name, session, uid, pid, interface, method: number, arguments };
        self.inputs.push_back((callee, Input::Called(called)));
        Ok(())
    }

    fn answer(&mut self, id: CallId, result: Result<Encoded, XrlError>, now: &mut Now<'_>) {
        match local::is_local(id) {
            true => {
                if let Some((caller, result)) = self.local.end(id, result) {
                    self.replied(caller, result, now);
                }
            }
            false => self.served.answer(id, result, now),
        }
    }
}

/// The gateway, if the Finder is reached through one: nobody listens for encrypted channels else.
fn gateway(settings: &Settings) -> Option<ChannelAddress> {
    settings.finder.clone().filter(|address| matches!(address, ChannelAddress::Tls { .. }))
}

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caller {
    member: usize,
    token: u64,
}

impl Component for Host {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, time: Instant, event: Event, out: &mut Vec<Action>) {
        let before = out.len();
        let mut now = Now { time, out };
        self.world(event, &mut now);
        self.run(&mut now);
        if self.log.take(time, &now.out[before..]) {
            self.answer_log(&mut now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.inputs.is_empty() {
            return Some(Instant::ZERO);
        }
        let own = [
            self.finder.deadline(),
            self.targets.deadline(),
            self.local.deadline(),
            self.from_fea.deadline(),
        ];
        own.into_iter().flatten().chain(self.members.deadline()).min()
    }

    fn has_background_work(&self) -> bool {
        self.members.are_busy()
    }
}
