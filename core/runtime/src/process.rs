//! The border between a process and the world: everything that can happen to it, everything it can do.
//!
//! A process — a stack, or an application such as a file receiver — is a [`Component`] whose inputs
//! are [`Event`]s and whose outputs are [`Action`]s. The real driver (`real`) carries
//! actions out with sockets and files; the simulator (`sim`) with a modelled world.
//! Neither knows what the bytes mean.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use weft_base::{ChannelId, Handle, Message, Packet, PortId, Token};
use weft_ebpf::{MapShape, MapWrite};
use weft_netlink::{InterfaceChange, InterfaceRequest, IpChange};
use weft_port::{PortInfo, PortSpec, PortStatistics, Scheduling};

use crate::{
    ChannelAddress, Component, DiskError, DiskReply, DiskRequest, EngineReply, EngineRequest, Keys,
    Peer, ProgramReply, ProgramRequest, RouteReply, RouteRequest, StreamEvent, StreamRequest,
    Tuned, Tuning,
};

/// A component at the border of a process.
pub trait Process: Component<Input = Event, Output = Action> {}

impl<T: Component<Input = Event, Output = Action>> Process for T {}

/// What the world tells a process.
#[derive(Debug)]
pub enum Event {
    /// The first event of every process.
    Start,
    /// Somebody wants it to end (a signal, the lab); it answers with [`Action::Exit`] when it is
    /// ready. Drivers end it anyway after a grace period.
    Stop,
    /// Its deadline has come, or the driver merely checks.
    Tick,
    /// Do one slice of background work; see [`Component::has_background_work`].
    Slice,

    /// A port asked for is open.
    PortOpened {
        /// The token of [`Action::OpenPort`] or [`Action::AdoptPort`].
        token: Token,
        /// The new port.
        port: PortId,
        /// What is known of it.
        info: PortInfo,
    },
    /// A port asked for could not be opened.
    PortFailed {
        /// The token of [`Action::OpenPort`], [`Action::OpenHandles`] or [`Action::AdoptPort`].
        token: Token,
        /// Why, and what to do about it, in one sentence.
        error: String,
    },
    /// The descriptors of a port are open.
    HandlesOpened {
        /// The token of [`Action::OpenHandles`].
        token: Token,
        /// The descriptors, to be handed to whoever adopts them, in this order. The first one is the port's
        /// socket or device.
        handles: Vec<Handle>,
        /// What is known of the port.
        info: PortInfo,
    },
    /// An open port is gone (its interface was deleted or set down) and closed.
    PortLost {
        /// The port that was.
        port: PortId,
        /// Why, in one sentence.
        error: String,
    },
    /// The interfaces of this machine are different from what was told before; see
    /// [`Action::WatchInterfaces`].
    Interface {
        /// How.
        change: InterfaceChange,
    },
    /// Where this machine's IP leads is different from what was told before; see [`Action::WatchIp`].
    Ip {
        /// How, in order.
        changes: Vec<IpChange>,
    },
    /// An interface was changed, or could not be.
    InterfaceConfigured {
        /// The token of [`Action::ConfigureInterface`].
        token: Token,
        /// Why not, and what to do about it, in one sentence.
        result: Result<(), String>,
    },
    /// An answer to [`Action::Routes`].
    RoutesAnswered {
        /// The token of the action.
        token: Token,
        /// What came of it, or why nothing is known of what came of it, in one sentence.
        result: Result<RouteReply, String>,
    },
    /// The answer to [`Action::Tune`].
    Tuned {
        /// The token of the action.
        token: Token,
        /// How the interface is now.
        tuned: Tuned,
    },
    /// The answer to [`Action::Schedule`].
    Scheduled {
        /// The token of the action.
        token: Token,
        /// How the process is scheduled now, and sentences about what of it was refused, why, and how to mend it;
        /// or why nothing was done.
        result: Result<(Scheduling, Vec<String>), String>,
    },
    /// The answer to [`Action::Program`].
    ProgramAnswered {
        /// The token of the request.
        token: Token,
        /// What came of it, or why nothing did, and what to do about it, in one sentence.
        result: Result<ProgramReply, String>,
    },
    /// The answer to [`Action::Engine`].
    EngineAnswered {
        /// The token of the request.
        token: Token,
        /// What came of it, or why nothing did, and what to do about it, in one sentence.
        result: Result<EngineReply, String>,
    },
    /// The answer to [`Action::AdoptTables`].
    TablesAdopted {
        /// The token of the action.
        token: Token,
        /// Why they cannot be used, in one sentence.
        result: Result<(), String>,
    },
    /// Adopted tables could not be written as [`Action::WriteTables`] says, so that nobody knows what is in them.
    TablesFailed {
        /// The token of [`Action::AdoptTables`].
        token: Token,
        /// Why, in one sentence.
        error: String,
    },
    /// What did not fit when adopted tables were written. There may be a place for it later.
    TablesFull {
        /// The token of [`Action::AdoptTables`].
        token: Token,
        /// The keys that were left out, with the numbers of their tables.
        keys: Vec<(usize, Vec<u64>)>,
    },
    /// The answer to [`Action::CountTables`].
    TablesCounted {
        /// The token of [`Action::AdoptTables`].
        token: Token,
        /// What programs have counted, by the numbers of the tables; nothing of tables that are for something else.
        sums: Vec<Vec<u64>>,
    },
    /// Packets came in.
    Packets {
        /// Where.
        port: PortId,
        /// At least one, in order of arrival.
        packets: Vec<Packet>,
    },

    /// A listener is ready for connections.
    Listening {
        /// The token of [`Action::Listen`].
        token: Token,
        /// Where, with the TCP port that the system has chosen if the action left it open.
        address: ChannelAddress,
    },
    /// A socket that listens is open.
    ListenerOpened {
        /// The token of [`Action::OpenListener`].
        token: Token,
        /// Where, with the port that the system has chosen if the action left it open.
        address: SocketAddr,
        /// The descriptor, to be handed to whoever adopts it.
        handle: Handle,
    },
    /// Somebody connected to a listener.
    Accepted {
        /// The token of [`Action::Listen`].
        token: Token,
        /// The new channel.
        channel: ChannelId,
        /// Who it is, as the kernel says.
        peer: Peer,
    },
    /// Somebody connected to a listener of [`ChannelAddress::Tls`] and was turned away, which is also
    /// counted.
    Rejected {
        /// The token of [`Action::Listen`].
        token: Token,
        /// Who, and why, in one sentence.
        error: String,
    },
    /// Something happened to a connection of TCP of [`Action::Stream`], or one has come in.
    Stream {
        /// The token of the action, or of the one by which connections are accepted.
        token: Token,
        /// What happened.
        event: StreamEvent,
    },
    /// A channel asked for is connected.
    Connected {
        /// The token of [`Action::Connect`].
        token: Token,
        /// The new channel.
        channel: ChannelId,
    },
    /// Listening or connecting failed.
    ChannelFailed {
        /// The token of the action.
        token: Token,
        /// Why, and what to do about it, in one sentence.
        error: String,
    },
    /// A connected channel was there when the process started; told right after [`Event::Start`].
    Inherited {
        /// What whoever started the process calls it.
        name: String,
        /// The channel.
        channel: ChannelId,
    },
    /// A descriptor of an earlier life of this process was kept for it; told right after
    /// [`Event::Start`].
    Kept {
        /// The name under which it was kept.
        name: String,
        /// The descriptor.
        handle: Handle,
    },
    /// Messages came in on a channel; message borders are kept.
    Messages {
        /// On which.
        channel: ChannelId,
        /// At least one, in order.
        messages: Vec<Message>,
    },
    /// The other side does not keep up: stop sending until [`Event::Drained`]. What is sent
    /// nevertheless is queued up to a limit. Beyond it a channel of [`ChannelAddress::Packets`] drops
    /// and counts messages; any other is closed, since its users rely on every message.
    Congested {
        /// On which channel.
        channel: ChannelId,
    },
    /// A congested channel takes messages again.
    Drained {
        /// Which.
        channel: ChannelId,
    },
    /// The channel is gone: the other side closed it or died, or the driver closed it because a
    /// message could not be carried or came in malformed, which it counts by reason
    /// ([`Action::Count`]).
    Closed {
        /// Which.
        channel: ChannelId,
    },

    /// The answer to [`Action::Disk`].
    Disk {
        /// The token of the request.
        token: Token,
        /// What came of it.
        result: Result<DiskReply, DiskError>,
    },
    /// The answer to [`Action::Count`].
    Counted {
        /// The token of the request.
        token: Token,
        /// What was counted until now.
        counts: DriverCounts,
    },
}

/// What a driver has moved and dropped for a process since that began.
#[derive(Clone, Debug, Default)]
pub struct DriverCounts {
    /// Of each open port.
    pub ports: BTreeMap<PortId, PortStatistics>,
    /// What programs have counted in adopted tables, by the tokens of [`Action::AdoptTables`]; as in
    /// [`Event::TablesCounted`].
    pub tables: BTreeMap<Token, Vec<Vec<u64>>>,
    /// What the driver dropped before a port or behind it, by the name of the reason; only what is
    /// not zero.
    pub drops: Vec<(&'static str, u64)>,
}

/// What a process asks of the world.
#[derive(Debug)]
pub enum Action {
    /// Open a packet port; answered by [`Event::PortOpened`] or [`Event::PortFailed`].
    OpenPort {
        /// Comes back in the answer.
        token: Token,
        /// What to open.
        spec: PortSpec,
    },
    /// Open the descriptors of a packet port without using it, for another process that may not do so
    /// itself; answered by [`Event::HandlesOpened`] or [`Event::PortFailed`].
    OpenHandles {
        /// Comes back in the answer.
        token: Token,
        /// What to open.
        spec: PortSpec,
    },
    /// Make a packet port of descriptors that another process opened. It is checked that they are what
    /// `spec` says; no privileges are needed. Answered by [`Event::PortOpened`] or
    /// [`Event::PortFailed`].
    AdoptPort {
        /// Comes back in the answer.
        token: Token,
        /// What the other process was asked to open.
        spec: PortSpec,
        /// What it opened.
        handles: Vec<Handle>,
        /// What it said about it.
        info: PortInfo,
    },
    /// Close a port. Packets sent before are still sent.
    ClosePort {
        /// Which.
        port: PortId,
    },
    /// Send a packet out of a port. For UDP ports the packet's `meta.link` is the destination.
    Transmit {
        /// Where.
        port: PortId,
        /// What.
        packet: Packet,
    },

    /// Tell which network interfaces there are, by one [`Event::Interface`] each, and from then on each
    /// change. Asking again changes nothing.
    WatchInterfaces,
    /// Tell where this machine's IP leads and which neighbours it knows, by [`Event::Ip`], and from then on each
    /// change. Whoever asks again is told everything anew.
    WatchIp,
    /// Have this machine's IP look for a neighbour, or whether it is still there. What comes of it
    /// [`Event::Ip`] tells; if nothing does, nothing.
    FindNeighbour {
        /// The index of the interface that it is on.
        interface: u32,
        /// Its address.
        ip: IpAddr,
    },
    /// Change an interface; answered by [`Event::InterfaceConfigured`].
    ConfigureInterface {
        /// Comes back in the answer.
        token: Token,
        /// What to change.
        request: InterfaceRequest,
    },

    /// Do something with routes of this machine's IP; answered by [`Event::RoutesAnswered`].
    Routes {
        /// Comes back in the answers.
        token: Token,
        /// What to do.
        request: RouteRequest,
    },
    /// Make an interface take packets as is wanted, and put back what is not wanted any more; answered by
    /// [`Event::Tuned`].
    Tune {
        /// Comes back in the answer.
        token: Token,
        /// The index of the interface.
        interface: u32,
        /// All that is wanted.
        tuning: Tuning,
    },
    /// Have the first thread of a process share the processors as is wanted, and put back what is not wanted any
    /// more; answered by [`Event::Scheduled`].
    Schedule {
        /// Comes back in the answer.
        token: Token,
        /// The number of the process; nothing is this one.
        process: Option<u32>,
        /// All that is wanted.
        scheduling: Scheduling,
    },

    /// From now on show this key on new channels of [`ChannelAddress::Tls`], and accept those of others.
    /// Channels of keys that are not accepted any more are closed.
    SetKeys {
        /// Which.
        keys: Keys,
    },

    /// Do something with the eBPF programs of interfaces; answered by [`Event::ProgramAnswered`].
    /// Requests of one process are carried out in order.
    Program {
        /// Comes back in the answer.
        token: Token,
        /// What to do.
        request: ProgramRequest,
    },

    /// Do something with packet engines; answered by [`Event::EngineAnswered`]. Requests of one process are
    /// carried out in order.
    Engine {
        /// Comes back in the answer.
        token: Token,
        /// What to do.
        request: EngineRequest,
    },
    /// Use the tables of an engine that another process has opened. It is checked that they are what is said; no
    /// privileges are needed. Answered by [`Event::TablesAdopted`].
    AdoptTables {
        /// Comes back in the answer, and stands for these tables from then on. Those that it stood for before are
        /// used no more.
        token: Token,
        /// The tables. Their numbers are their places in this list.
        tables: Vec<(MapShape, Handle)>,
    },
    /// Write into adopted tables. It holds when the next action is carried out; what does not fit is left out and
    /// counted, and [`Event::TablesFull`] tells it. If anything else goes wrong, the rest is left out, and
    /// [`Event::TablesFailed`] tells it.
    WriteTables {
        /// The token of [`Action::AdoptTables`].
        token: Token,
        /// What to write into which table, in order.
        writes: Vec<(usize, MapWrite)>,
    },
    /// Say what programs have counted in adopted tables; answered by [`Event::TablesCounted`].
    CountTables {
        /// The token of [`Action::AdoptTables`].
        token: Token,
    },

    /// Accept connections; answered by [`Event::Listening`] or [`Event::ChannelFailed`].
    Listen {
        /// Comes back in the answer and with each connection.
        token: Token,
        /// Where. A stale socket of a dead process at a path is replaced, a live one is an error.
        address: ChannelAddress,
    },
    /// Open a TCP socket that listens, without using it, for another process that may not do so itself;
    /// answered by [`Event::ListenerOpened`] or [`Event::ChannelFailed`].
    OpenListener {
        /// Comes back in the answer.
        token: Token,
        /// Where. Port 0 lets the system choose.
        address: SocketAddr,
    },
    /// Accept connections of [`ChannelAddress::Tls`] with a socket that another process has opened;
    /// answered like [`Action::Listen`].
    AdoptListener {
        /// Comes back in the answer and with each connection.
        token: Token,
        /// Where it listens.
        address: ChannelAddress,
        /// What the other process has opened.
        handle: Handle,
    },
    /// Do something with connections of TCP to peers that speak protocols of others; answered by
    /// [`Event::Stream`].
    Stream {
        /// Comes back in the answer.
        token: Token,
        /// What to do.
        request: StreamRequest,
    },
    /// Accept no connections any more; those that are open stay.
    CloseListener {
        /// The token of [`Action::Listen`], [`Action::AdoptListener`], or that of a listener of
        /// [`Action::Stream`].
        token: Token,
    },
    /// Connect to a listener; answered by [`Event::Connected`] or [`Event::ChannelFailed`].
    Connect {
        /// Comes back in the answer.
        token: Token,
        /// Where the listener is.
        address: ChannelAddress,
    },
    /// Send a message on a channel. What each kind of channel takes: [`ChannelAddress`].
    Send {
        /// Which.
        channel: ChannelId,
        /// What.
        message: Message,
    },
    /// Take messages of up to [`LONGEST_FRAME`](crate::frames::LONGEST_FRAME) bytes on a channel of frames
    /// that somebody else opened. Until this is said, they have up to
    /// [`FIRST_FRAME`](crate::frames::FIRST_FRAME) bytes, and a longer one closes the channel: each takes
    /// memory, for which one must know who sends it.
    TakeLong {
        /// Which.
        channel: ChannelId,
    },
    /// Close a channel. Messages sent before still arrive.
    Close {
        /// Which.
        channel: ChannelId,
    },

    /// Do something with a file; answered by [`Event::Disk`]. Requests of one process are carried
    /// out in order.
    Disk {
        /// Comes back in the answer.
        token: Token,
        /// What to do.
        request: DiskRequest,
    },

    /// Say what was moved and dropped until now; answered by [`Event::Counted`].
    Count {
        /// Comes back in the answer.
        token: Token,
    },

    /// Write a line to standard output.
    Print {
        /// Without the line end.
        line: String,
    },
    /// Write a line for the operator: standard error or the log.
    Report {
        /// How serious it is.
        level: Level,
        /// Without the line end.
        line: String,
    },
    /// From now on write only reports that are as serious as this. In the simulator all are kept.
    LogLevel {
        /// The least serious level that is written.
        level: Level,
    },
    /// Show how far long work has come. Drivers show it on a terminal and drop it elsewhere.
    Progress {
        /// What is being done, such as a file name.
        label: String,
        /// How much is done.
        done: u64,
        /// How much there is, if that is known.
        total: Option<u64>,
        /// More for people, such as a rate.
        note: String,
    },
    /// End the process.
    Exit {
        /// Zero for success.
        status: u8,
    },
}

/// How serious a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Something does not work and somebody has to act.
    Error,
    /// Something is odd, or works with less than was asked for.
    Warning,
    /// A change of state that operators want to see.
    Info,
    /// Detail for debugging.
    Debug,
}

impl Level {
    /// All levels, the most serious first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warning, Self::Info, Self::Debug];

    /// Its word in logs and configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| {
            let text = text.escape_debug();
            format!("`{text}` is no level: say error, warning, info or debug")
        })
    }
}
