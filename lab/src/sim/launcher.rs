//! The launcher of a simulated node: the real one's decisions, carried out with simulated processes.
//!
//! It is a process of the simulated machine and the parent of all other processes of its node, as
//! `weft_launcher` is on a real one. It speaks the same protocol with the same manager, keeps the same
//! table, listening sockets and descriptors, and starts what the host program makes. There are no users,
//! no limits and nothing to isolate, and no descriptor is handed to a process at its start, which no
//! component asks for.

use std::collections::{BTreeMap, VecDeque};

use weft_base::{ChannelId, Handle, Instant, Packet, Token};
use weft_launcher::Name;
use weft_launcher::protocol::{Exit, ListenerKind, ListenerSpec, Message, Spec};
use weft_launcher::supervisor::{Input, Output, Settings, Supervisor};
use weft_runtime::sim::{Child, ParentAction, ParentEvent, ProcessId, Status};
use weft_runtime::{Action, ChannelAddress, Component, Event, Level, Process};

/// The name of the manager's channel to the launcher.
const CHANNEL: &str = "launcher";
/// The instance and the class of the manager.
const MANAGER: &str = "manager";
/// The signal of [`ParentAction::Kill`]; signal(7).
const SIGKILL: i32 = 9;

/// A process that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Starting<'a> {
    /// When.
    pub now: Instant,
    /// What it is called.
    pub instance: &'a str,
    /// What it is.
    pub class: &'a str,
    /// What it proves itself with; the manager has nothing.
    pub secret: Option<&'a [u8; 32]>,
}

/// Makes the processes of a node. An error is one sentence.
pub type Maker = Box<dyn FnMut(&Starting<'_>) -> Result<Box<dyn Process>, String>>;

/// The launcher of a simulated node; see the module's text.
pub struct SimLauncher {
    supervisor: Supervisor<Handle>,
    manager_listeners: Vec<ListenerSpec>,
    make: Maker,
    last_token: u32,
    /// Processes that are being started.
    starting: BTreeMap<Token, Name>,
    /// Processes that run, by process id.
    running: BTreeMap<i32, (Name, ProcessId)>,
    /// The signals that have ended processes of which the end was not told yet.
    fatal: BTreeMap<i32, i32>,
    listeners: BTreeMap<Name, Vec<ChannelAddress>>,
    /// The channel to the manager.
    link: Option<ChannelId>,
}

impl SimLauncher {
    /// The launcher of a node whose manager listens at `manager_listeners`, and whose processes `make`
    /// makes.
    #[must_use]
    pub fn new(settings: Settings, manager_listeners: Vec<ListenerSpec>, make: Maker) -> Self {
        Self {
            supervisor: Supervisor::new(settings),
            manager_listeners,
            make,
            last_token: 0,
            starting: BTreeMap::new(),
            running: BTreeMap::new(),
            fatal: BTreeMap::new(),
            listeners: BTreeMap::new(),
            link: None,
        }
    }

    /// Gives the supervisor an input, and does what it wants until it wants nothing more.
    fn tell(&mut self, now: Instant, input: Input<Handle>, out: &mut Vec<ParentAction>) {
        let mut inputs = VecDeque::from([input]);
        let mut wants = Vec::new();
        while let Some(input) = inputs.pop_front() {
            self.supervisor.handle(now, input, &mut wants);
            for want in wants.drain(..) {
                inputs.extend(self.carry_out(now, want, out));
            }
        }
    }

    /// Does what the supervisor wants; returns what came of it, if that is known already.
    fn carry_out(
        &mut self,
        now: Instant,
        want: Output,
        out: &mut Vec<ParentAction>,
    ) -> Option<Input<Handle>> {
        match want {
            Output::StartManager => return self.start(now, None, out),
            Output::Start(spec) => return self.start(now, Some(&spec), out),
            Output::Signal { pid, number } => self.signal(pid, number, out),
            Output::Tell(message) => self.tell_manager(&message, out),
            Output::Forget(name) => {
                let addresses = self.listeners.remove(&name).unwrap_or_default();
                out.extend(addresses.into_iter().map(ParentAction::Release));
            }
            Output::Report(level, line) => report(level, line, out),
            // Nobody supervises a simulated machine.
            Output::Notify(_) => {}
            Output::Over(result) => {
                let status = u8::from(result.is_err());
                if let Err(error) = result {
                    report(Level::Error, error.to_string(), out);
                }
                out.push(ParentAction::World(Action::Exit { status }));
            }
        }
        None
    }

    /// Starts the manager, or an instance for it.
    fn start(
        &mut self,
        now: Instant,
        spec: Option<&Spec>,
        out: &mut Vec<ParentAction>,
    ) -> Option<Input<Handle>> {
        // It is a name.
        let manager = || MANAGER.parse().ok();
        let instance: Name = spec.map(|spec| spec.instance.clone()).or_else(manager)?;
        let made = (self.make)(&Starting {
            now,
            instance: instance.as_str(),
            class: spec.map_or(MANAGER, |spec| spec.class.as_str()),
            secret: spec.map(|spec| spec.secret.bytes()),
        });
        let process = match made {
            Ok(process) => process,
            Err(error) => return Some(Input::Started { instance, uid: None, result: Err(error) }),
        };
        let specs = spec.map_or(&self.manager_listeners, |spec| &spec.listeners);
        let listeners: Vec<_> = specs.iter().map(address).collect();
        let old = self.listeners.insert(instance.clone(), listeners.clone()).unwrap_or_default();
        let unused = old.into_iter().filter(|address| !listeners.contains(address));
        out.extend(unused.map(ParentAction::Release));
        self.last_token = self.last_token.wrapping_add(1);
        let token = Token(self.last_token);
        let channel = spec.is_none().then(|| CHANNEL.to_owned());
        let name = instance.as_str().to_owned();
        self.starting.insert(token, instance);
        out.push(ParentAction::Spawn(Child { token, name, process, listeners, channel }));
        None
    }

    /// Does what a signal does to a process of weft; signal(7).
    fn signal(&mut self, pid: i32, number: i32, out: &mut Vec<ParentAction>) {
        let Some((name, child)) = self.running.get(&pid) else { return };
        match number {
            // SIGINT and SIGTERM
            2 | 15 => out.push(ParentAction::Stop(*child)),
            // SIGCHLD, SIGCONT, SIGURG and SIGWINCH do nothing.
            17 | 18 | 23 | 28 => {}
            // SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU
            19..=22 => {
                let line = format!("{name} goes on: the simulator stops no processes");
                report(Level::Warning, line, out);
            }
            _ => {
                self.fatal.insert(pid, number);
                out.push(ParentAction::Kill(*child));
            }
        }
    }

    fn tell_manager(&self, message: &Message, out: &mut Vec<ParentAction>) {
        if let (Some(channel), Ok(bytes)) = (self.link, message.encode()) {
            let message = Packet::from_slice(&bytes).into();
            out.push(ParentAction::World(Action::Send { channel, message }));
        }
    }

    fn world(&mut self, now: Instant, event: Event, out: &mut Vec<ParentAction>) {
        match event {
            Event::Start | Event::Tick => self.tell(now, Input::Tick, out),
            Event::Stop => self.tell(now, Input::End, out),
            Event::Messages { channel, messages } if self.link == Some(channel) => {
                for message in messages {
                    let bytes = message.bytes().to_vec();
                    let descriptors = message.handles;
                    self.tell(now, Input::Request { bytes, descriptors, truncated: false }, out);
                }
            }
            Event::Closed { channel } if self.link == Some(channel) => {
                self.link = None;
                self.tell(now, Input::Lost, out);
            }
            _ => {}
        }
    }

    fn spawned(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<(ProcessId, Option<ChannelId>), String>,
        out: &mut Vec<ParentAction>,
    ) {
        let Some(instance) = self.starting.remove(&token) else { return };
        let result = result.map(|(child, channel)| {
            self.link = channel.or(self.link);
            let pid = pid(child);
            self.running.insert(pid, (instance.clone(), child));
            pid
        });
        self.tell(now, Input::Started { instance, uid: None, result }, out);
    }

    fn ended(
        &mut self,
        now: Instant,
        child: ProcessId,
        status: Status,
        out: &mut Vec<ParentAction>,
    ) {
        let pid = pid(child);
        let signal = self.fatal.remove(&pid);
        let Some((name, _)) = self.running.remove(&pid) else { return };
        if name.as_str() == MANAGER {
            self.link = None;
        }
        let exit = match status {
            Status::Exited(status) => Exit { status: Some(status.into()), ..Exit::default() },
            Status::Killed | Status::Running => {
                Exit { signal: Some(signal.unwrap_or(SIGKILL)), ..Exit::default() }
            }
        };
        self.tell(now, Input::Ended { pid, exit }, out);
    }
}

impl Component for SimLauncher {
    type Input = ParentEvent;
    type Output = ParentAction;

    fn handle(&mut self, now: Instant, event: ParentEvent, out: &mut Vec<ParentAction>) {
        match event {
            ParentEvent::World(event) => self.world(now, event, out),
            ParentEvent::Spawned { token, child, channel } => {
                self.spawned(now, token, Ok((child, channel)), out);
            }
            ParentEvent::SpawnFailed { token, error } => self.spawned(now, token, Err(error), out),
            ParentEvent::Ended { child, status } => self.ended(now, child, status, out),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.supervisor.deadline()
    }
}

fn address(spec: &ListenerSpec) -> ChannelAddress {
    let path = spec.path.clone().into();
    match spec.kind {
        ListenerKind::Stream => ChannelAddress::Stream(path),
        ListenerKind::Seqpacket => ChannelAddress::Packets(path),
    }
}

/// The process id that a simulated process shows to others. A world has fewer than 2^31 processes.
fn pid(child: ProcessId) -> i32 {
    i32::try_from(child.index() + 1).unwrap_or(i32::MAX)
}

fn report(level: Level, line: String, out: &mut Vec<ParentAction>) {
    out.push(ParentAction::World(Action::Report { level, line }));
}
