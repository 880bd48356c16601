//! One session of BGP as a client has it that knows exactly what it wants, for `weft bgp replay` and the benchmarks: it opens
//! it, and nothing is ever negotiated but families, End-of-RIB, numbers with four octets, and for the benchmarks route refresh and
//! that several routes for a prefix are taken.
//!
//! Reference: RFC 4271 §4, §8; RFC 7911 §4.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::time::{ClockId, clock_gettime};
use weft_bgp::wire::{
    AddPath, Capability, Context, Cutter, Families, GracefulRestart, MessageType, Neighbour,
    Notification, Open, Update, keepalive,
};
use weft_routing::Prefix;

/// Where routers listen.
pub(crate) const PORT: u16 = 179;
/// Seconds that are offered; the router may offer less.
const HOLD_TIME: u16 = 180;
/// Between two attempts to open the session, and how long they go on.
const AGAIN: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(120);
/// At most between two messages of this end.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// How often something is said if the session never ends by silence.
const NEVER: Duration = Duration::from_secs(1 << 30);
/// How long a router may take to answer an OPEN.
const ANSWER: Duration = Duration::from_secs(60);
/// Bytes that are read at once, as a rule.
pub(crate) const CHUNK: usize = 256 << 10;
/// Enough for what opens a session.
const GREETING: usize = 4096;

/// A time of `CLOCK_MONOTONIC` in nanoseconds, the same in all processes and in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) u64);

impl Time {
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        // Neither is negative, since the machine was started.
        Self(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
    }

    /// How long it is since `before`; nothing if that was later.
    pub(crate) fn since(self, before: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(before.0))
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// Who speaks with whom, and of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The address to speak from; without it the kernel chooses.
    pub(crate) local: Option<IpAddr>,
    /// Where the router listens.
    pub(crate) router: SocketAddr,
    /// The autonomous system of this end.
    pub(crate) autonomous_system: u32,
    /// The identifier of this end; without it, the address in four octets.
    pub(crate) identifier: Option<Ipv4Addr>,
    /// Whose routes are exchanged, if the router does so, too.
    pub(crate) families: Families,
    /// Whether this end says that it sends its routes again when it is asked.
    pub(crate) offers_refresh: bool,
    /// Whether this end takes several routes for a prefix (RFC 7911).
    pub(crate) hears_paths: bool,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// There is no connection, or it was closed.
    Connection(String),
    /// The router has said why.
    Refused(Notification),
    /// The router says what cannot be said.
    Wrong(String),
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl Display for Unopened {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(why) | Self::Wrong(why) => f.write_str(why),
            Self::Refused(notification) => f.write_str(&refusal(notification)),
        }
    }
}

/// What is sent, and what is to be reported of it.
pub(crate) struct Piece<N> {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) note: N,
}

/// An open session; `N` are notes about what is sent.
pub(crate) struct Session<N> {
    socket: TcpStream,
    cutter: Cutter,
    context: Context,
    queue: VecDeque<Piece<N>>,
    /// Bytes of the first piece that were sent, and when it was begun.
    sent: usize,
    begun: Time,
    last_sent: Instant,
    last_heard: Instant,
    /// How long either end may be silent; none if it is no matter.
    hold_time: Option<Duration>,
}

/// What the router says of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Announced,
    Withdrawn,
}

impl<N> Session<N> {
    /// Attempts until the router, which may have to start yet, opens the session.
    pub(crate) fn open_soon(ends: &Ends) -> Result<Self, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match Self::open(ends) {
                Err(error) if Instant::now() > until => {
                    return Err(format!("{} opens no session: {error}", ends.router.ip()));
                }
                Err(_) => thread::sleep(AGAIN),
                Ok(open) => return Ok(open),
            }
        }
    }

    /// One attempt.
    pub(crate) fn open(ends: &Ends) -> Result<Self, Unopened> {
        let mut session = Self {
            socket: connected(ends)?,
            cutter: Cutter::new(),
            context: Context::new(Neighbour::External),
            queue: VecDeque::new(),
            sent: 0,
            begun: Time::now(),
            last_sent: Instant::now(),
            last_heard: Instant::now(),
            hold_time: None,
        };
        session.shake_hands(ends)?;
        session.socket.set_nonblocking(true)?;
        Ok(session)
    }

    fn shake_hands(&mut self, ends: &Ends) -> Result<(), Unopened> {
        let identifier = ends.identifier.unwrap_or(identifier(self.socket.local_addr()?.ip()));
        let mut open = Open::new(ends.autonomous_system, HOLD_TIME, identifier);
        open.capabilities.extend(ends.families.iter().map(Capability::Multiprotocol));
        open.capabilities.extend(ends.offers_refresh.then_some(Capability::RouteRefresh));
        if ends.hears_paths {
            let receives = |family| (family, AddPath::Receive);
            let families = ends.families.iter().map(receives).collect();
            open.capabilities.push(Capability::AddPath(families));
        }
        // It keeps nothing, and says when it has announced everything (RFC 4724 §3).
        open.capabilities.push(Capability::GracefulRestart(GracefulRestart {
            restarted: false,
            notification: false,
            time: 0,
            families: Vec::new(),
        }));
        self.socket.write_all(&open.emit())?;
        let (mut was_opened, mut chunk) = (false, [0; GREETING]);
        loop {
            let wrong = |error: weft_bgp::wire::MessageError| Unopened::Wrong(error.to_string());
            while let Some(message) = self.cutter.take().map_err(wrong)? {
                match message.kind {
                    MessageType::Open => {
                        was_opened = true;
                        let theirs = Open::parse(message.body()).map_err(wrong)?;
                        self.context = agreed(ends, &theirs);
                        let hold_time = HOLD_TIME.min(theirs.hold_time);
                        let seconds = Duration::from_secs(hold_time.into());
                        self.hold_time = (hold_time > 0).then_some(seconds);
                        self.socket.write_all(&keepalive())?;
                    }
                    MessageType::Keepalive if was_opened => return Ok(()),
                    MessageType::Notification => {
                        return Err(Unopened::Refused(Notification::parse(message.body())));
                    }
                    kind => {
                        return Err(Unopened::Wrong(format!("the router begins with {kind:?}")));
                    }
                }
            }
            match self.socket.read(&mut chunk)? {
                0 => {
                    let why = "the router has closed the connection";
                    return Err(Unopened::Connection(why.to_owned()));
                }
                length => self.cutter.push(&chunk[..length]),
            }
        }
    }

    /// How messages are read and written.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The address of this end.
    pub(crate) fn local(&self) -> io::Result<IpAddr> {
        Ok(self.socket.local_addr()?.ip())
    }

    /// For how long the router has said nothing although it should have; none if it has spoken.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        self.hold_time.filter(|hold_time| self.last_heard.elapsed() > *hold_time)
    }

    /// How many pieces are to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends behind everything else.
    pub(crate) fn push(&mut self, piece: Piece<N>) {
        self.queue.push_back(piece);
    }

    pub(crate) fn is_sending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// When there is something to send although nobody has asked for it.
    pub(crate) fn deadline(&self) -> Instant {
        // A third of the hold time, as RFC 4271 §4.4 has it.
        self.last_sent + self.hold_time.map_or(NEVER, |hold_time| KEEPALIVE.min(hold_time / 3))
    }

    /// Sends what the connection takes, and tells of each piece when it was begun and when it was done.
    pub(crate) fn send(&mut self, mut done: impl FnMut(N, Time, Time)) -> Result<(), String> {
        if self.queue.is_empty() && Instant::now() >= self.deadline() {
            self.last_sent = Instant::now();
            self.socket.write_all(&keepalive()).map_err(|error| error.to_string())?;
        }
        while let Some(piece) = self.queue.front() {
            if self.sent == 0 {
                self.begun = Time::now();
            }
            match self.socket.write(&piece.bytes[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
            self.last_sent = Instant::now();
            if self.sent < piece.bytes.len() {
                continue;
            }
            self.sent = 0;
            if let Some(Piece { note, .. }) = self.queue.pop_front() {
                done(note, self.begun, Time::now());
            }
        }
        Ok(())
    }

    /// Reads what has come, as much as `chunk` has room for, and tells of each prefix, with the time at which it was
    /// read.
    pub(crate) fn receive(
        &mut self,
        chunk: &mut [u8],
        mut see: impl FnMut(Said, Prefix, Time),
    ) -> Result<(), String> {
        let length = match self.socket.read(chunk) {
            Ok(0) => return Err("the router has closed the connection".to_owned()),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let now = Time::now();
        self.last_heard = Instant::now();
        self.cutter.push(&chunk[..length]);
        while let Some(message) = self.cutter.take().map_err(|error| error.to_string())? {
            match message.kind {
                MessageType::Update => {
                    let update = Update::new_checked(message.body(), &self.context);
                    let update = update.map_err(|error| error.to_string())?;
                    for (_, nlri) in update.withdrawn() {
                        nlri.iter().for_each(|(_, prefix)| see(Said::Withdrawn, prefix, now));
                    }
                    for reach in update.reach() {
                        let prefixes = reach.nlri.iter();
                        prefixes.for_each(|(_, prefix)| see(Said::Announced, prefix, now));
                    }
                }
                MessageType::Notification => {
                    return Err(refusal(&Notification::parse(message.body())));
                }
                MessageType::Open => return Err("the router opens twice".to_owned()),
                MessageType::Keepalive | MessageType::RouteRefresh => {}
            }
        }
        Ok(())
    }
}

fn connected(ends: &Ends) -> io::Result<TcpStream> {
    let family = if ends.router.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if let Some(local) = ends.local {
        bind(&socket, &SocketAddr::new(local, 0))?;
    }
    connect(&socket, &ends.router)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER))?;
    Ok(stream)
}

/// What both ends can do.
fn agreed(ends: &Ends, theirs: &Open) -> Context {
    let is_internal = theirs.autonomous_system() == ends.autonomous_system;
    let neighbour = if is_internal { Neighbour::Internal } else { Neighbour::External };
    let shared = theirs.families().into_iter().filter(|family| ends.families.contains(*family));
    let sent = theirs.capabilities.iter().flat_map(|capability| match capability {
        Capability::AddPath(all) => &all[..],
        _ => &[],
    });
    let sent = sent.filter(|(family, way)| way.sends() && ends.families.contains(*family));
    Context {
        families: shared.collect(),
        add_path_receive: sent.map(|(family, _)| *family).filter(|_| ends.hears_paths).collect(),
        four_octet_as: theirs.four_octet_as().is_some(),
        ..Context::new(neighbour)
    }
}

/// An identifier for whoever has this address: the address, or its last four octets.
fn identifier(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        // Zero is nobody's.
        IpAddr::V6(address) => Ipv4Addr::from_bits((address.to_bits() as u32).max(1)),
    }
}

fn refusal(notification: &Notification) -> String {
    format!("the router says: {notification}")
}

#[cfg(test)]
mod tests {
    use weft_bgp::wire::Family;

    use super::*;

    #[test]
    fn several_routes_for_a_prefix_are_taken_if_both_ends_say_so() {
        let family = Family::IPV4_UNICAST;
        let ends = |hears_paths| Ends {
            local: None,
            router: ([192, 0, 2, 1], PORT).into(),
            autonomous_system: 1,
            identifier: None,
            families: Families::from_iter([family]),
            offers_refresh: false,
            hears_paths,
        };
        let theirs = |way| {
            let mut open = Open::new(2, HOLD_TIME, Ipv4Addr::new(192, 0, 2, 1));
            let others = (Family::IPV6_UNICAST, AddPath::Send);
            open.capabilities.push(Capability::AddPath(vec![(family, way), others]));
            open
        };
        let taken = |hears, way| agreed(&ends(hears), &theirs(way)).add_path_receive;
        assert_eq!(taken(true, AddPath::Both), Families::from_iter([family]));
        assert_eq!(taken(true, AddPath::Receive), Families::default());
        assert_eq!(taken(false, AddPath::Send), Families::default());
    }
}
