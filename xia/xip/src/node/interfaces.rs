//! The node's network interfaces: opened, lost, and tried again until they are back.
//!
//! Where AF_XDP is preferred and cannot be, packet sockets take its place.

use std::str::FromStr;
use std::time::Duration;

use weft_base::{Instant, PortId, Token};
use weft_port::{PortInfo, PortSpec};

use crate::numbers::ETHERTYPE_XIP;

/// Pause between attempts to open an interface.
const RETRY: Duration = Duration::from_secs(1);

/// By which sockets the node's interfaces give and take packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketIo {
    /// Packet sockets (AF_PACKET), beside everything else that uses the interface.
    #[default]
    Packet,
    /// AF_XDP, which is faster and which no packet filter and no recorder sees.
    Xdp,
    /// AF_XDP where it can be, else packet sockets.
    Auto,
}

impl PacketIo {
    const ALL: [Self; 3] = [Self::Packet, Self::Xdp, Self::Auto];

    /// Its word in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Xdp => "xdp",
            Self::Auto => "auto",
        }
    }
}

impl FromStr for PacketIo {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|io| io.name() == word).ok_or_else(|| {
            let word = word.escape_debug();
            format!("`{word}` is no way for packets: say packet, xdp or auto")
        })
    }
}

/// An interface that carries XIP packets, or should.
pub(super) struct Interface {
    pub(super) name: String,
    io: PacketIo,
    /// Packet sockets are tried next, though AF_XDP would be better: why it is not possible.
    instead: Option<String>,
    state: State,
    /// The failure was reported; say no more until it changes.
    reported: Option<String>,
    /// What was told of it while its port was being opened, which may be newer than what the port knows.
    told: Option<Told>,
    /// The port that is being replaced, by which the parts of the node know it until there is another.
    replaced: Option<PortId>,
}

/// What of an interface may change while its port is open: its Ethernet address and its MTU.
pub(super) type Told = ([u8; 6], usize);

enum State {
    /// To be opened at this time.
    Waiting(Instant),
    Opening(Token),
    Up(PortId, PortInfo),
}

/// What there is to tell the operator when a port could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing that was not said before.
    None,
    /// It is tried again another way, at once.
    OtherWay,
    /// It is tried again later.
    Trouble,
}

/// What becomes of a port whose interface has another address or MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    /// It goes on; this is what is known of it now.
    GoesOn(PortId, PortInfo),
    /// It is to be closed, and another one asked for at once.
    Replace(PortId),
}

impl Interface {
    pub(super) fn new(name: &str, io: PacketIo) -> Self {
        let (name, state) = (name.to_owned(), State::Waiting(Instant::ZERO));
        Self { name, io, instead: None, state, reported: None, told: None, replaced: None }
    }

    /// By which sockets it gives and takes packets, or would: never [`PacketIo::Auto`].
    pub(super) fn io(&self) -> PacketIo {
        match self.io {
            PacketIo::Auto if self.instead.is_some() => PacketIo::Packet,
            PacketIo::Auto => PacketIo::Xdp,
            io => io,
        }
    }

    /// The port and what is known of it, while it is up.
    pub(super) fn up(&self) -> Option<(PortId, PortInfo)> {
        match self.state {
            State::Up(port, info) => Some((port, info)),
            _ => None,
        }
    }

    /// Whether it is up on this port.
    pub(super) fn has(&self, port: PortId) -> bool {
        self.up().is_some_and(|(own, _)| own == port)
    }

    /// Whether its port was asked for and nothing has come yet.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Waiting(at) => Some(at),
            _ => None,
        }
    }

    /// Whether it is this interface's port that `token` asked for.
    pub(super) fn awaits(&self, token: Token) -> bool {
        matches!(self.state, State::Opening(awaited) if awaited == token)
    }

    /// The port to ask for, if it is time to.
    pub(super) fn open(&mut self, now: Instant, token: Token) -> Option<PortSpec> {
        let State::Waiting(at) = self.state else { return None };
        (at <= now).then(|| {
            self.state = State::Opening(token);
            self.told = None;
            let (interface, ethertype) = (self.name.clone(), ETHERTYPE_XIP);
            match self.io() {
                PacketIo::Xdp => PortSpec::Xdp { interface, ethertype },
                _ => PortSpec::Ethernet { interface, ethertype },
            }
        })
    }

    pub(super) fn opened(&mut self, port: PortId, info: PortInfo) {
        self.state = State::Up(port, info);
        (self.reported, self.replaced) = (None, None);
    }

    /// Takes note of what it is told to be. Returns what becomes of its port, if that is open and knew otherwise.
    pub(super) fn is_now(&mut self, now: Instant, told: Told) -> Option<Renewal> {
        let io = self.io();
        match &mut self.state {
            State::Waiting(_) => None,
            State::Opening(_) => {
                self.told = Some(told);
                None
            }
            State::Up(_, info) if (info.mac, info.mtu) == told => None,
            // Its frames are as long as the MTU that it was opened with needs, and it takes those to the address
            // that it knows.
            State::Up(port, _) if io == PacketIo::Xdp => {
                let port = *port;
                self.state = State::Waiting(now);
                self.replaced = Some(port);
                Some(Renewal::Replace(port))
            }
            State::Up(port, info) => {
                (info.mac, info.mtu) = told;
                Some(Renewal::GoesOn(*port, *info))
            }
        }
    }

    /// Gives and takes packets in this way from now on. Returns its port, if that is of another kind: it is to be closed,
    /// and another one asked for at once.
    pub(super) fn set_io(&mut self, now: Instant, io: PacketIo) -> Option<PortId> {
        let before = self.io();
        // What could not be may be by now.
        (self.io, self.instead) = (io, None);
        if self.io() == before {
            return None;
        }
        // Of one that is being opened nobody waits for the port any more; when it comes, it is closed.
        match std::mem::replace(&mut self.state, State::Waiting(now)) {
            State::Waiting(_) | State::Opening(_) => None,
            State::Up(port, _) => {
                self.replaced = Some(port);
                Some(port)
            }
        }
    }

    /// There will be no other port soon: the one that was replaced, if it was.
    pub(super) fn take_replaced(&mut self) -> Option<PortId> {
        self.replaced.take()
    }

    /// What was told of it while its port was being opened; once.
    pub(super) fn take_told(&mut self) -> Option<Told> {
        self.told.take()
    }

    /// Notes that it could not be opened, to try again.
    pub(super) fn failed(&mut self, now: Instant, error: &str) -> News {
        if self.io == PacketIo::Auto && self.instead.is_none() {
            self.instead = Some(error.to_owned());
            self.state = State::Waiting(now);
            return News::OtherWay;
        }
        self.lost(now, error)
    }

    /// Notes that it is not there any more, to try again later.
    pub(super) fn lost(&mut self, now: Instant, error: &str) -> News {
        self.instead = None;
        self.state = State::Waiting(now + RETRY);
        let news = self.reported.as_deref() != Some(error);
        self.reported = Some(error.to_owned());
        if news { News::Trouble } else { News::None }
    }

    /// Why packet sockets take the place of AF_XDP, if they do.
    pub(super) fn why_packet_sockets(&self) -> Option<&str> {
        self.instead.as_deref()
    }

    /// Why it is not up, if that is known.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.reported.as_deref()
    }
}
