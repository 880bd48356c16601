//! Connections that are to become channels of TLS: connecting, agreeing on keys, being welcome.
//!
//! Who has not proved a key yet costs little and not for long: each connection has a time limit from
//! its first packet to the welcome, and of those that came in there are only so many. When one more
//! comes the oldest gives way, so that a crowd that says nothing keeps nobody out who is quicker.
//!
//! Reference: RFC 8446 §2; for the welcome, `tls`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};
use weft_base::{ChannelId, Instant, Token};
use weft_keys::KeyHash;

use super::poller::{Interest, Poller, Source};
use super::tls::{self, Session, WELCOME};
use super::{DriverDrop, Drops, tcp};
use crate::Keys;

/// How many that came in may be on their way at a time.
const CROWD: usize = 64;
/// What a handshake is read in, in bytes: about what one of ours has.
const PIECE: usize = 4 << 10;

/// A connection that is to become a channel.
pub(super) struct Handshake {
    pub(super) token: Token,
    pub(super) socket: OwnedFd,
    pub(super) session: Session,
    pub(super) address: SocketAddr,
    /// The only key that is accepted, if there is one.
    pub(super) wanted: Option<KeyHash>,
    /// What came behind the handshake.
    pub(super) early: Vec<u8>,
    side: Side,
    /// When it was begun.
    begun: Instant,
}

/// On which side this process is, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It connects, and TCP does so yet.
    Connecting,
    /// It connected.
    Connected,
    /// It accepted.
    Accepted,
}

/// Why there is no channel: how it is counted, and a sentence.
pub(super) struct Failed {
    pub(super) reason: DriverDrop,
    pub(super) error: String,
}

/// What became of a handshake.
pub(super) enum Became {
    /// It needs more of the other side.
    Pending(Handshake),
    /// A channel.
    Open(Handshake),
    /// Nothing.
    Failed(Handshake, Failed),
}

impl Handshake {
    /// Begins to connect.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn connect(
        token: Token,
        address: SocketAddr,
        wanted: Option<KeyHash>,
        keys: &Keys,
        now: Instant,
    ) -> Result<Self, String> {
        let session = Session::connect(keys, wanted, address.ip())?;
        let (socket, connected) = tcp::connect_anywhere(address)?;
        let side = if connected { Side::Connected } else { Side::Connecting };
        Ok(Self::new(token, socket, session, address, wanted, side, now))
    }

    /// Begins with a connection that came in.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn accept(
        token: Token,
        socket: OwnedFd,
        address: SocketAddr,
        wanted: Option<KeyHash>,
        keys: &Keys,
        now: Instant,
    ) -> Result<Self, String> {
        let session = Session::accept(keys, wanted)?;
        Ok(Self::new(token, socket, session, address, wanted, Side::Accepted, now))
    }

    fn new(
        token: Token,
        socket: OwnedFd,
        session: Session,
        address: SocketAddr,
        wanted: Option<KeyHash>,
        side: Side,
        now: Instant,
    ) -> Self {
        Self { token, socket, session, address, wanted, early: Vec::new(), side, begun: now }
    }

    /// Whether this process accepted it.
    pub(super) fn was_accepted(&self) -> bool {
        self.side == Side::Accepted
    }

    /// Its descriptor is ready.
    fn advance(mut self, own: KeyHash) -> Became {
        match self.step(own) {
            Ok(true) => Became::Open(self),
            Ok(false) => Became::Pending(self),
            Err(failed) => Became::Failed(self, failed),
        }
    }

    /// Goes on as far as it can; whether it is done.
    fn step(&mut self, own: KeyHash) -> Result<bool, Failed> {
        if self.side == Side::Connecting {
            let result = sockopt::socket_error(&self.socket).unwrap_or(Err(Errno::IO));
            result.map_err(|errno| Failed {
                reason: DriverDrop::TlsHandshake,
                error: tcp::connect_error("TLS", self.address, errno),
            })?;
            self.side = Side::Connected;
        }
        let result = self.hear(own);
        // What the other side has to know of a failure leaves now or never.
        let flushed = self.session.flush(self.socket.as_fd());
        result?;
        flushed.map_err(|errno| self.broken(&errno.to_string()))?;
        if self.session.is_handshaking() {
            return Ok(false);
        }
        if self.was_accepted() {
            self.session.give(WELCOME);
            let flushed = self.session.flush(self.socket.as_fd());
            flushed.map_err(|errno| self.broken(&errno.to_string()))?;
            return Ok(true);
        }
        match self.early.split_at_checked(WELCOME.len()) {
            None => Ok(false),
            Some((welcome, rest)) if welcome == WELCOME => {
                self.early = rest.to_vec();
                Ok(true)
            }
            Some(_) => Err(self.broken("it does not say what nodes say first")),
        }
    }

    /// Takes what came in.
    fn hear(&mut self, own: KeyHash) -> Result<(), Failed> {
        let mut piece = [0; PIECE];
        let count = match recv(&self.socket, &mut piece[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(self.broken("it ended the connection")),
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(errno) => return Err(self.broken(&errno.to_string())),
        };
        let Self { session, early, .. } = self;
        match session.take(&piece[..count], |plain| early.extend_from_slice(plain)) {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.broken("it ended the connection")),
            Err(error) => {
                let (reason, what) = tls::explain(&error, own);
                Err(Failed { reason, error: format!("the peer at {} {what}", self.address) })
            }
        }
    }

    fn broken(&self, why: &str) -> Failed {
        let error = format!("the handshake with the peer at {} broke off: {why}", self.address);
        Failed { reason: DriverDrop::TlsHandshake, error }
    }

    /// What to wait for.
    fn interest(&self) -> Interest {
        match self.side {
            Side::Connecting => Interest::Write,
            _ if self.session.is_flushed() => Interest::Read,
            _ => Interest::Both,
        }
    }
}

/// All connections that are to become channels.
pub(super) struct Handshakes {
    all: BTreeMap<ChannelId, Handshake>,
    /// How long each may take.
    patience: Duration,
}

impl Handshakes {
    pub(super) fn new(patience: Duration) -> Self {
        Self { all: BTreeMap::new(), patience }
    }

    /// Adds one under the next number; the oldest of those that came in gives way if there are too many.
    ///
    /// # Errors
    /// Its descriptor cannot be waited for.
    pub(super) fn add(
        &mut self,
        id: ChannelId,
        handshake: Handshake,
        poller: &Poller,
        drops: &mut Drops,
    ) -> rustix::io::Result<()> {
        // Something to send has to wait for the connection; the side that accepts has nothing yet.
        let interest = if handshake.was_accepted() { Interest::Read } else { Interest::Write };
        poller.add(&handshake.socket, Source::Channel(id), interest)?;
        self.all.insert(id, handshake);
        let mut accepted = self.all.iter().filter(|(_, one)| one.was_accepted());
        if let Some((oldest, _)) = accepted.next()
            && accepted.count() >= CROWD
        {
            let oldest = *oldest;
            self.take(oldest, poller);
            drops.add(DriverDrop::TlsCrowded, 1);
        }
        Ok(())
    }

    /// Whether this is one.
    pub(super) fn has(&self, id: ChannelId) -> bool {
        self.all.contains_key(&id)
    }

    /// The descriptor of one is ready. `None` if it is not yet done.
    pub(super) fn advance(
        &mut self,
        id: ChannelId,
        own: KeyHash,
        poller: &Poller,
    ) -> Option<Became> {
        let handshake = self.all.remove(&id)?;
        match handshake.advance(own) {
            Became::Pending(handshake) => {
                // The descriptor was added with the handshake; changing it needs no memory.
                let _ = poller.modify(&handshake.socket, Source::Channel(id), handshake.interest());
                self.all.insert(id, handshake);
                None
            }
            Became::Failed(handshake, failed) => {
                poller.remove(&handshake.socket);
                Some(Became::Failed(handshake, failed))
            }
            open @ Became::Open(_) => Some(open),
        }
    }

    /// When the next one has taken too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.all.values().map(|handshake| handshake.begun + self.patience).min()
    }

    /// Takes out one that has taken too long, with the sentence about it.
    pub(super) fn expire(&mut self, now: Instant, poller: &Poller) -> Option<(Handshake, Failed)> {
        let late = |(_, one): &(&ChannelId, &Handshake)| one.begun + self.patience <= now;
        let id = *self.all.iter().find(late)?.0;
        let handshake = self.take(id, poller)?;
        let error = format!(
            "the peer at {} did not get done with its handshake in {:?}",
            handshake.address, self.patience
        );
        Some((handshake, Failed { reason: DriverDrop::TlsTimeout, error }))
    }

    /// Forgets those that came in.
    pub(super) fn stop_listening(&mut self) {
        self.all.retain(|_, handshake| !handshake.was_accepted());
    }

    fn take(&mut self, id: ChannelId, poller: &Poller) -> Option<Handshake> {
        let handshake = self.all.remove(&id)?;
        poller.remove(&handshake.socket);
        Some(handshake)
    }
}
