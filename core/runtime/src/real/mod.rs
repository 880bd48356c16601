//! The real driver: one process with sockets, files and the machine's clock.
//!
//! [`run`] is the loop of [`Component`](crate::Component): wait, handle, carry out, repeat, on one
//! thread. `driver` holds the loop and its rules of fairness; every other file is one part of the
//! world:
//!
//! * `poller`: waiting for descriptors until an exact deadline (epoll_pwait2(2));
//! * `clock`: the monotonic clock;
//! * `ports`: packet ports of `weft_port`;
//! * `channels`: message channels, and connections to peers that speak protocols of others; `channel`: one of
//!   them, on a Unix socket of type `SOCK_SEQPACKET` (unix(7)), on a `bytestream`, or in shared memory
//!   (`flows`); `listeners`, `tcp` and `inherited`: where they come from; `tls`: encryption, which begins with
//!   `handshakes`;
//! * `outgoing`: the bounded queue in front of a port or channel;
//! * `interfaces`: the machine's interfaces, by `weft_netlink`;
//! * `routes`: routes of the machine's IP, by `weft_netlink`;
//! * `programs`: eBPF programs at interfaces, by `weft_ebpf`;
//! * `tuning`: how packets are taken from interfaces, and how threads share the processors;
//! * `disk`: files; `streams`: standard input and output, pipes and devices;
//! * `terminal`: output for people;
//! * `signals`: `SIGTERM` and `SIGINT` (signal(7)).
//!
//! Fairness, against receive livelock (Mogul and Ramakrishnan, "Eliminating Receive Livelock in an
//! Interrupt-driven Kernel", ACM TOCS 15(3), 1997): in each turn every ready source is served once
//! and gives at most one batch, and what was sent in the turn leaves at its end.

mod bytestream;
mod channel;
mod channels;
mod clock;
mod disk;
mod driver;
mod engines;
mod flows;
mod handshakes;
mod inherited;
mod interfaces;
mod lines;
mod listeners;
mod outgoing;
mod poller;
mod ports;
mod programs;
mod routes;
mod signals;
mod steered;
mod streams;
mod tcp;
mod terminal;
#[cfg(test)]
mod tests;
mod tls;
mod tuning;

use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

pub use clock::now;
pub use inherited::Inherited;
pub use lines::Lines;

use crate::{Keys, Level, Process};

weft_base::reasons! {
    /// What the driver drops or ignores.
    pub(crate) enum DriverDrop {
        PortGone = "port-gone", "an action named a port that is not open (any more)";
        PortQueueFull = "port-queue-full", "a port did not take packets as fast as they were sent";
        ChannelGone = "channel-gone", "an action named a channel that is not open (any more)";
        ChannelQueueFull = "channel-queue-full",
            "a message was sent on a congested channel whose queue was full";
        StreamQueueFull = "stream-queue-full",
            "a stream channel was closed: more was sent than its queue holds";
        MessageEmpty = "message-empty", "an empty message was sent; channels cannot carry it";
        MessageTooLong = "message-too-long", "a message was longer than its channel takes";
        MessageRefused = "message-refused", "the kernel did not take a message";
        FrameLength = "frame-length",
            "a stream channel was closed: a frame came in whose length no frame has";
        FrameCutOff = "frame-cut-off", "a stream channel ended within a frame";
        HandlesTooMany = "handles-too-many", "a message was sent with more than 16 handles";
        HandlesNotCarried = "handles-not-carried",
            "a message with handles was sent on a channel that carries none";
        FlowRefused = "flow-refused",
            "a connection came in that does not attach as flows do, and was told why";
        FlowBroken = "flow-broken",
            "a flow was closed: the other side broke the rules of its memory or sockets";
        HandlesMissing = "handles-missing",
            "a message came in with more than 16 handles, or more than there were descriptors for";
        HandlesMisplaced = "handles-misplaced",
            "a stream channel was closed: handles came in that no frame begins with";
        ConnectionRefused = "connection-refused",
            "a connection came in that could not be accepted, for lack of descriptors or by the limit";
        TlsKey = "tls-key", "a connection was refused: it did not show an accepted key";
        TlsHandshake = "tls-handshake",
            "a connection was refused: it broke off, or does not speak TLS as channels do";
        TlsTimeout = "tls-timeout", "a connection was refused: its TLS handshake took too long";
        TlsCrowded = "tls-crowded",
            "a connection was refused: it was the oldest of too many TLS handshakes";
        TlsRevoked = "tls-revoked", "a TLS channel was closed: its key is not accepted any more";
        TlsBroken = "tls-broken",
            "a TLS channel was closed: what came in is no TLS, or was changed on its way";
        TlsCutOff = "tls-cut-off", "a TLS channel ended without being closed";
        TableFull = "table-full",
            "a decision was not written because a table of a packet engine is full";
        OutputLost = "output-lost",
            "a line could not be printed because the reader of the output is gone or too slow";
    }
}

/// How many descriptors there is room for besides those of channels: of ports, files and the driver itself.
const OTHER_DESCRIPTORS: u64 = 256;

type Drops = weft_base::Counters<DriverDrop>;

/// How to run a process.
#[derive(Debug)]
pub struct Options {
    /// Reports that are less serious are not shown.
    pub level: Level,
    /// Who reports, if others write to standard error, too; see [`Lines`].
    pub name: Option<String>,
    /// Turn `SIGTERM` and `SIGINT` into [`Event::Stop`](crate::Event::Stop).
    pub signals: bool,
    /// How long a process may take to end after a stop; also how long unsent packets and messages
    /// are waited for at the end, and after a stop the reader of the output. Else that reader is waited
    /// for until a signal comes.
    pub grace: Duration,
    /// How many packets wait for a port that takes no more; those beyond are dropped and counted.
    pub port_queue: usize,
    /// How many messages wait for a congested channel of
    /// [`ChannelAddress::Packets`](crate::ChannelAddress::Packets) or
    /// [`ChannelAddress::Flow`](crate::ChannelAddress::Flow); those beyond are dropped and counted.
    pub channel_queue: usize,
    /// How many bytes wait for any other congested channel, at least those of the longest frame;
    /// what is sent beyond closes it.
    pub stream_queue: usize,
    /// How many channels may be open; further connections are closed at once. A quarter of them is the most
    /// for connections of one user who is neither root nor this process's. A flow takes two
    /// descriptors, any other channel one: the limit of descriptors (`RLIMIT_NOFILE`) is raised to hold
    /// them, as far as the process may.
    pub channels: usize,
    /// What the process proves itself with on channels of TLS, until it says something else by
    /// [`Action::SetKeys`](crate::Action::SetKeys).
    pub keys: Option<Keys>,
    /// How long a connection of TLS may take until it is a channel.
    pub handshake: Duration,
    /// The packet engines that the process may open.
    pub engines: Vec<weft_ebpf::Engine>,
    /// How to open ports.
    pub ports: weft_port::Options,
    /// Sockets that were opened for the process before it started.
    pub inherited: Vec<Inherited>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: Level::Info,
            name: None,
            signals: true,
            grace: Duration::from_secs(2),
            port_queue: 1024,
            channel_queue: 1024,
            stream_queue: 16 << 20,
            channels: 1024,
            keys: None,
            handshake: Duration::from_secs(10),
            engines: Vec::new(),
            ports: weft_port::Options::default(),
            inherited: Vec::new(),
        }
    }
}

/// Runs `process` on this thread until it exits and returns its exit status.
///
/// The first `SIGTERM` or `SIGINT` is an [`Event::Stop`](crate::Event::Stop). A second one, or the
/// end of the grace period, ends it with 128 plus the signal's number. If the driver itself cannot
/// start, or output is lost that still has a reader, it says why on standard error and the status is
/// not 0.
///
/// ```
/// use weft_base::Instant;
/// use weft_runtime::{Action, Component, Event, real};
///
/// struct Greeter;
///
/// impl Component for Greeter {
///     type Input = Event;
///     type Output = Action;
///
///     fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
///         if let Event::Start = event {
///             out.push(Action::Print { line: "hello".to_owned() });
///             out.push(Action::Exit { status: 0 });
///         }
///     }
///
///     fn deadline(&self) -> Option<Instant> {
///         None
///     }
/// }
///
/// assert_eq!(real::run(Box::new(Greeter), real::Options::default()), 0);
/// ```
#[must_use]
pub fn run(process: Box<dyn Process>, options: Options) -> u8 {
    make_room(&options);
    match driver::Driver::new(process, options) {
        Ok(driver) => driver.run(),
        Err(error) => {
            eprintln!("error: the event loop cannot start: {error}");
            1
        }
    }
}

/// Raises the limit of descriptors to what the channels can take, as far as that is allowed.
///
/// Reference: getrlimit(2), `RLIMIT_NOFILE`. The usual limit of 1,024 is for programs that use select(2).
fn make_room(options: &Options) {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = 2 * options.channels as u64 + OTHER_DESCRIPTORS;
    let allowed = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < allowed) {
        limit.current = Some(allowed);
        // Where that fails there is room for fewer channels.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
