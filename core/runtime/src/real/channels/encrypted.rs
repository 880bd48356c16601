//! Channels of TLS: from the keys of the process to the channel that is open, and its end when a key
//! is not accepted any more.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::getsockname;
use weft_base::{ChannelId, Instant, Token};
use weft_keys::KeyHash;
use weft_port::datagrams;
use weft_port::unix::BACKLOG;

use super::{Channels, User};
use crate::address::ChannelKind;
use crate::real::bytestream::Stream;
use crate::real::channel::{Channel, State, Transport};
use crate::real::handshakes::{Became, Failed, Handshake};
use crate::real::poller::{Interest, Poller, Source};
use crate::real::{DriverDrop, Drops, clock, tcp};
use crate::{ChannelAddress, Event, Keys, Peer};

/// Where an end of a channel of TLS is, and how it is accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) token: Token,
    pub(super) address: SocketAddr,
    /// The only key that is accepted, if there is one.
    pub(super) wanted: Option<KeyHash>,
}

/// Who is at the other end of an open channel of TLS.
pub(super) struct Proven {
    key: KeyHash,
    wanted: Option<KeyHash>,
}

impl Channels {
    /// Shows this key, and accepts those, from now on. Ends channels of others.
    pub(in crate::real) fn set_keys(
        &mut self,
        keys: Keys,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Vec<Event> {
        let revoked = |proven: &Proven| match proven.wanted {
            Some(wanted) => wanted != proven.key,
            None => !keys.peers.contains(&proven.key),
        };
        let ended: Vec<_> =
            self.proven.iter().filter(|(_, one)| revoked(one)).map(|(id, _)| *id).collect();
        // What is under way was begun with the keys of before.
        self.handshakes.stop_listening();
        self.keys = Some(keys);
        let mut events = Vec::new();
        for id in ended {
            let told = self.usable(id).is_some();
            self.remove(id, poller);
            drops.add(DriverDrop::TlsRevoked, 1);
            events.extend(told.then_some(Event::Closed { channel: id }));
        }
        events
    }

    /// Why nothing can be encrypted, if nothing can.
    pub(super) fn known_keys(&self, what: &str, address: SocketAddr) -> Result<&Keys, String> {
        self.keys.as_ref().ok_or_else(|| {
            format!("cannot {what} TLS {address}: this process was given no key to show")
        })
    }

    /// Begins to connect.
    pub(super) fn connect_encrypted(
        &mut self,
        place: Place,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Result<(), String> {
        let Place { token, address, wanted } = place;
        let keys = self.known_keys("connect to", address)?;
        let handshake = Handshake::connect(token, address, wanted, keys, clock::now())?;
        self.begin(handshake, poller, drops)
            .map_err(|error| format!("cannot connect to TLS {address}: {error}"))
    }

    /// Begins with a connection that came in.
    pub(super) fn accept_encrypted(
        &mut self,
        socket: OwnedFd,
        place: Place,
        poller: &Poller,
        drops: &mut Drops,
    ) -> io::Result<()> {
        let Place { token, address, wanted } = place;
        let keys = self.known_keys("accept at", address).map_err(io::Error::other)?;
        let handshake = Handshake::accept(token, socket, address, wanted, keys, clock::now())
            .map_err(io::Error::other)?;
        self.begin(handshake, poller, drops)
    }

    fn begin(
        &mut self,
        handshake: Handshake,
        poller: &Poller,
        drops: &mut Drops,
    ) -> io::Result<()> {
        rustix::net::sockopt::set_tcp_nodelay(&handshake.socket, true)?;
        tcp::keep_alive(&handshake.socket)?;
        // A smaller buffer only means congestion earlier.
        let _ = datagrams::set_send_buffer(
            std::os::fd::AsFd::as_fd(&handshake.socket),
            super::SEND_BUFFER,
        );
        let id = ChannelId(self.last_channel + 1);
        self.handshakes.add(id, handshake, poller, drops)?;
        self.last_channel = id.0;
        Ok(())
    }

    /// Whether a channel is to become one yet, for which it may have to send or to receive.
    pub(in crate::real) fn is_handshaking(&self, id: ChannelId) -> bool {
        self.handshakes.has(id)
    }

    /// The descriptor of a handshake is ready.
    pub(super) fn shake_hands(
        &mut self,
        id: ChannelId,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Vec<Event> {
        let Some(keys) = &self.keys else { return Vec::new() };
        let own = keys.own.public_key().hash();
        match self.handshakes.advance(id, own, poller) {
            None | Some(Became::Pending(_)) => Vec::new(),
            Some(Became::Failed(handshake, failed)) => vec![fail(&handshake, failed, drops)],
            Some(Became::Open(handshake)) => self.open_encrypted(id, handshake, poller, drops),
        }
    }

    /// Makes a channel of a handshake that is done. Its descriptor is watched already.
    fn open_encrypted(
        &mut self,
        id: ChannelId,
        handshake: Handshake,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Vec<Event> {
        let accepted = handshake.was_accepted();
        let Some(key) = handshake.session.peer() else { return Vec::new() };
        let full = accepted && (!self.has_room() || self.has_its_share(User::Key(key)));
        if full {
            poller.remove(&handshake.socket);
            let error = format!("the key {key} has as many channels as are for one");
            let reason = DriverDrop::ConnectionRefused;
            return vec![fail(&handshake, Failed { reason, error }, drops)];
        }
        let Handshake { token, socket, session, address, wanted, early, .. } = handshake;
        let mut stream = Stream::encrypted(self.stream_limit, session);
        if !accepted {
            stream.take_long();
        }
        let mut messages = Vec::new();
        let begun = stream.begin_with(&early, &mut messages);
        self.make_room();
        // What is left of the handshake to send leaves first. Nothing else waits for room: a socket has it
        // nearly always, and would wake the process without end.
        let (state, interest) = match stream.is_empty() {
            true => (State::Open, Interest::Read),
            false => (State::Congested, Interest::Both),
        };
        let _ = poller.modify(&socket, Source::Channel(id), interest);
        let transport = Transport::Stream(socket, stream);
        self.open.insert(id, Channel::new(ChannelKind::Tls, transport, state));
        self.proven.insert(id, Proven { key, wanted });
        let mut events = vec![if accepted {
            self.users.insert(id, User::Key(key));
            Event::Accepted { token, channel: id, peer: Peer::Key { key, address } }
        } else {
            Event::Connected { token, channel: id }
        }];
        if !messages.is_empty() {
            events.push(Event::Messages { channel: id, messages });
        }
        if let Err(reason) = begun {
            drops.add(reason, 1);
            self.remove(id, poller);
            events.push(Event::Closed { channel: id });
        }
        events
    }

    /// When the next handshake, or closing a channel, has taken too long.
    pub(in crate::real) fn deadline(&self) -> Option<Instant> {
        self.handshakes.deadline().into_iter().chain(self.connections.deadline()).min()
    }

    /// Ends the handshakes, and the channels that are being closed, that have taken too long.
    pub(in crate::real) fn expire(
        &mut self,
        now: Instant,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Vec<Event> {
        self.linger_no_longer(now, poller);
        let mut events = Vec::new();
        while let Some((handshake, failed)) = self.handshakes.expire(now, poller) {
            events.push(fail(&handshake, failed, drops));
        }
        events
    }
}

/// Counts a handshake that failed and tells the process.
fn fail(handshake: &Handshake, failed: Failed, drops: &mut Drops) -> Event {
    let (token, Failed { reason, error }) = (handshake.token, failed);
    if handshake.was_accepted() {
        drops.add(reason, 1);
        Event::Rejected { token, error }
    } else {
        Event::ChannelFailed { token, error }
    }
}

/// The address, if it is one of TLS.
pub(super) fn place(token: Token, address: &ChannelAddress) -> Option<Place> {
    let ChannelAddress::Tls { address, peer } = address else { return None };
    Some(Place { token, address: *address, wanted: *peer })
}

/// Opens a socket that listens, for another process.
pub(in crate::real) fn open_listener(token: Token, address: SocketAddr) -> Event {
    let opened = tcp::listen_anywhere("TCP", address, BACKLOG).and_then(|socket| {
        let bound = getsockname(&socket).ok().and_then(|bound| bound.try_into().ok());
        let address = bound.ok_or_else(|| format!("TCP {address} is no address of TCP"))?;
        Ok((address, socket))
    });
    match opened {
        Ok((address, socket)) => Event::ListenerOpened { token, address, handle: socket.into() },
        Err(error) => Event::ChannelFailed { token, error },
    }
}
