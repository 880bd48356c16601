//! A process in the world: its inbox, its ports, and the record of what it said and how it ended.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use weft_base::{ChannelId, Instant, Packet, PortId};
use weft_port::PortStatistics;

use super::disk::OpenFiles;
use super::family::{Parent, ParentEvent};
use super::ids::{EndId, InterfaceId, NodeId, ProcessId};
use crate::{DriverCounts, Event, Level, Process};

/// How a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs.
    Running,
    /// It has ended by itself with this status; zero is success.
    Exited(u8),
    /// It was killed.
    Killed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed => f.write_str("killed"),
        }
    }
}

/// A line that a process has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub time: Instant,
    /// The level of a report; `None` for a line on standard output.
    pub level: Option<Level>,
    /// Without the line end.
    pub text: String,
}

/// How a process is started.
pub struct Spawn {
    /// Its name in reports.
    pub name: String,
    /// Its working directory, made if it does not exist.
    pub directory: PathBuf,
    /// What it reads from standard input.
    pub input: Vec<u8>,
    /// The process itself.
    pub(super) body: Body,
}

impl Spawn {
    /// A process in the directory `/` without input.
    #[must_use]
    pub fn new(name: impl Into<String>, process: Box<dyn Process>) -> Self {
        Self::of(name.into(), Body::Process(process))
    }

    /// A process that starts others, in the directory `/` without input.
    #[must_use]
    pub fn parent(name: impl Into<String>, parent: Box<dyn Parent>) -> Self {
        Self::of(name.into(), Body::Parent(parent))
    }

    fn of(name: String, body: Body) -> Self {
        Self { name, directory: PathBuf::from("/"), input: Vec::new(), body }
    }

    /// Starts it in `directory`.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Gives it `input` to read from standard input.
    #[must_use]
    pub fn with_input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("name", &self.name)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// A process as the world calls it.
pub(super) enum Body {
    Process(Box<dyn Process>),
    Parent(Box<dyn Parent>),
}

impl Body {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Process(process) => process.deadline(),
            Self::Parent(parent) => parent.deadline(),
        }
    }

    pub(super) fn has_background_work(&self) -> bool {
        match self {
            Self::Process(process) => process.has_background_work(),
            Self::Parent(parent) => parent.has_background_work(),
        }
    }
}

/// What waits for a process.
pub(super) enum Waiting {
    Event(Event),
    /// What a parent is told of its children.
    Family(ParentEvent),
    /// The packets that wait at this port, whatever they are by then.
    Packets(PortId),
    /// A tick, if the deadline still stands by then.
    Tick,
}

/// What a port is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    Ethernet(InterfaceId),
    Udp(SocketAddrV4),
    /// A group's port on an interface.
    Group {
        interface: InterfaceId,
        port: u16,
    },
    Closed,
}

/// A port of a process.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) binding: Binding,
    pub(super) waiting: Vec<Packet>,
    pub(super) statistics: PortStatistics,
}

/// A process and what the world keeps for it. The record outlives the process.
pub(super) struct Slot {
    pub(super) node: NodeId,
    pub(super) name: String,
    pub(super) status: Status,
    /// `None` when it has ended.
    pub(super) body: Option<Body>,
    /// Who has started it, unless the world was told to.
    pub(super) parent: Option<ProcessId>,
    /// Whether it may have children.
    pub(super) is_parent: bool,
    pub(super) inbox: VecDeque<Waiting>,
    /// Whether it stands in the world's list of processes with something in their inbox.
    pub(super) ready: bool,
    /// Whether it stands in the world's list, or agenda, for a background slice.
    pub(super) in_background: bool,
    /// The earliest entry in the agenda for its deadline.
    pub(super) timer: Option<Instant>,
    /// Port `n` is at place `n - 1`; closed ports keep their place.
    pub(super) ports: Vec<Port>,
    pub(super) channels: BTreeMap<ChannelId, EndId>,
    pub(super) last_channel: u32,
    pub(super) files: OpenFiles,
    pub(super) disk_answers: VecDeque<Event>,
    pub(super) lines: Vec<Line>,
    /// Calls of its `handle` at `calls_at`.
    pub(super) calls_now: u64,
    pub(super) calls_at: Instant,
    pub(super) calls: u64,
}

impl Slot {
    pub(super) fn new(node: NodeId, name: String, body: Body) -> Self {
        Self {
            node,
            name,
            status: Status::Running,
            is_parent: matches!(body, Body::Parent(_)),
            body: Some(body),
            parent: None,
            inbox: VecDeque::new(),
            ready: false,
            in_background: false,
            timer: None,
            ports: Vec::new(),
            channels: BTreeMap::new(),
            last_channel: 0,
            files: OpenFiles::default(),
            disk_answers: VecDeque::new(),
            lines: Vec::new(),
            calls_now: 0,
            calls_at: Instant::ZERO,
            calls: 0,
        }
    }

    /// The id that the next port will have.
    pub(super) fn next_port(&self) -> PortId {
        let number = u32::try_from(self.ports.len() + 1);
        PortId(number.expect("a process opens fewer than 2^32 ports"))
    }

    /// Opens a port, whose id is [`Slot::next_port`].
    pub(super) fn add_port(&mut self, binding: Binding) {
        let statistics = PortStatistics::default();
        self.ports.push(Port { binding, waiting: Vec::new(), statistics });
    }

    /// An open port.
    pub(super) fn port(&mut self, id: PortId) -> Option<&mut Port> {
        let place = (id.0 as usize).checked_sub(1)?;
        self.ports.get_mut(place).filter(|port| port.binding != Binding::Closed)
    }

    /// What its open ports have moved.
    pub(super) fn counts(&self) -> DriverCounts {
        let open = (1..).zip(&self.ports).filter(|(_, port)| port.binding != Binding::Closed);
        let ports = open.map(|(number, port)| (PortId(number), port.statistics.clone())).collect();
        // What is lost here is lost in the network, and counted there.
        DriverCounts { ports, ..DriverCounts::default() }
    }

    /// When the process wants to be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.body.as_ref()?.deadline()
    }

    /// Notes a call at `now`, for the search of runaways.
    pub(super) fn note_call(&mut self, now: Instant) {
        if self.calls_at != now {
            (self.calls_at, self.calls_now) = (now, 0);
        }
        self.calls_now += 1;
        self.calls += 1;
    }
}
