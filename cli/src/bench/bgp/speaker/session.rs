//! One session of BGP as a client has it that knows exactly what it wants: it opens it, and nothing is ever
//! negotiated but IPv4, route refresh, End-of-RIB, and numbers with four octets.
//!
//! Reference: RFC 4271 §4, §8.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use weft_bgp::wire::{
    Capability, Context, Cutter, Family, GracefulRestart, MessageType, Neighbour, Notification,
    Open, Update, keepalive,
};
use weft_routing::Prefix;

use super::super::Time;

const PORT: u16 = 179;
/// Seconds; the router may offer less, but nobody offers less than three times the next one.
const HOLD_TIME: u16 = 180;
/// Between two attempts to open the session, and how long they go on.
const AGAIN: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(120);
const KEEPALIVE: Duration = Duration::from_secs(20);
/// How long a router may take to answer an OPEN.
const ANSWER: Duration = Duration::from_secs(60);
/// Bytes that are read at once, as a rule.
pub(in super::super) const CHUNK: usize = 256 << 10;
/// Enough for what opens a session.
const GREETING: usize = 4096;

/// Who speaks with whom.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in super::super) struct Ends {
    /// The speaker's address
    #[arg(long)]
    pub(in super::super) local: Ipv4Addr,
    /// The router's address
    #[arg(long)]
    pub(in super::super) router: Ipv4Addr,
    /// The speaker's autonomous system
    #[arg(long = "as")]
    pub(in super::super) autonomous_system: u32,
}

/// What is sent, and what is to be reported of it.
pub(in super::super) struct Piece<N> {
    pub(in super::super) bytes: Arc<[u8]>,
    pub(in super::super) note: N,
}

/// An open session; `N` are notes about what is sent.
pub(in super::super) struct Session<N> {
    socket: TcpStream,
    cutter: Cutter,
    context: Context,
    queue: VecDeque<Piece<N>>,
    /// Bytes of the first piece that were sent, and when it was begun.
    sent: usize,
    begun: Time,
    last_sent: Instant,
}

/// What the router says of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Said {
    Announced,
    Withdrawn,
}

impl<N> Session<N> {
    /// Attempts until the router, which may have to start yet, opens the session.
    pub(in super::super) fn open_soon(ends: &Ends) -> Result<Self, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match Self::open(ends) {
                Err(error) if Instant::now() > until => {
                    return Err(format!("{} opens no session: {error}", ends.router));
                }
                Err(_) => thread::sleep(AGAIN),
                open => return open,
            }
        }
    }

    /// One attempt.
    fn open(ends: &Ends) -> Result<Self, String> {
        let socket = connected(ends).map_err(|error| error.to_string())?;
        let mut session = Self {
            socket,
            cutter: Cutter::new(),
            context: Context::new(Neighbour::External),
            queue: VecDeque::new(),
            sent: 0,
            begun: Time::now(),
            last_sent: Instant::now(),
        };
        session.shake_hands(ends)?;
        session.socket.set_nonblocking(true).map_err(|error| error.to_string())?;
        Ok(session)
    }

    fn shake_hands(&mut self, ends: &Ends) -> Result<(), String> {
        let mut open = Open::new(ends.autonomous_system, HOLD_TIME, ends.local);
        open.capabilities.push(Capability::Multiprotocol(Family::IPV4_UNICAST));
        open.capabilities.push(Capability::RouteRefresh);
        // It keeps nothing, and says when it has announced everything (RFC 4724 §3).
        open.capabilities.push(Capability::GracefulRestart(GracefulRestart {
            restarted: false,
            notification: false,
            time: 0,
            families: Vec::new(),
        }));
        self.socket.write_all(&open.emit()).map_err(|error| error.to_string())?;
        let (mut was_opened, mut chunk) = (false, [0; GREETING]);
        loop {
            while let Some(message) = self.cutter.take().map_err(|error| error.to_string())? {
                match message.kind {
                    MessageType::Open => {
                        was_opened = true;
                        let sent = self.socket.write_all(&keepalive());
                        sent.map_err(|error| error.to_string())?;
                    }
                    MessageType::Keepalive if was_opened => return Ok(()),
                    MessageType::Notification => return Err(refusal(message.body())),
                    _ => return Err(format!("the router begins with {:?}", message.kind)),
                }
            }
            match self.socket.read(&mut chunk).map_err(|error| error.to_string())? {
                0 => return Err("the router has closed the connection".to_owned()),
                length => self.cutter.push(&chunk[..length]),
            }
        }
    }

    pub(in super::super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends behind everything else.
    pub(in super::super) fn push(&mut self, piece: Piece<N>) {
        self.queue.push_back(piece);
    }

    pub(in super::super) fn is_sending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// When there is something to send although nobody has asked for it.
    pub(in super::super) fn deadline(&self) -> Instant {
        self.last_sent + KEEPALIVE
    }

    /// Sends what the connection takes, and tells of each piece when it was begun and when it was done.
    pub(in super::super) fn send(
        &mut self,
        mut done: impl FnMut(N, Time, Time),
    ) -> Result<(), String> {
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
    pub(in super::super) fn receive(
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
                MessageType::Notification => return Err(refusal(message.body())),
                MessageType::Open => return Err("the router opens twice".to_owned()),
                MessageType::Keepalive | MessageType::RouteRefresh => {}
            }
        }
        Ok(())
    }
}

fn connected(ends: &Ends) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(ends.local, 0))?;
    connect(&socket, &SocketAddrV4::new(ends.router, PORT))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER))?;
    Ok(stream)
}

fn refusal(body: &[u8]) -> String {
    format!("the router says: {}", Notification::parse(body))
}
