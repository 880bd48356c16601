//! Message channels between this process and others on the machine.
//!
//! Unix sockets of type `SOCK_SEQPACKET` keep message borders and order, and tell when the other side
//! is gone. An empty message cannot be told from the end, so it is not sent, and received it is the
//! end. Congestion is the kernel's: when the socket takes no more, the process hears
//! [`Event::Congested`], and [`Event::Drained`] once everything queued was taken.
//!
//! Reference: unix(7).

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use weft_base::{ChannelId, Packet, Token};
use weft_port::datagrams::{self, BATCH, LONGEST, Sent};

use super::listeners::{Accepted, Listener, connect_to};
use super::outgoing::{Outgoing, Pushed};
use super::poller::{Interest, Poller, Source};
use super::{DriverDrop, Drops, Options};
use crate::{Event, Peer};

/// The kernel's send buffer per channel, in bytes: some four hundred messages of 1,500 bytes.
const SEND_BUFFER: usize = 1 << 20;
/// How many connections one listener accepts per turn.
const ACCEPTS_PER_TURN: usize = 16;

pub(super) struct Channels {
    listeners: BTreeMap<u32, Listener>,
    open: BTreeMap<ChannelId, Channel>,
    last_listener: u32,
    last_channel: u32,
    /// Channels on which messages were sent in this turn.
    unflushed: Vec<ChannelId>,
    /// Given up for a moment to accept, and close, a connection when there are no descriptors left.
    spare: Option<File>,
    queue_limit: usize,
    channel_limit: usize,
}

struct Channel {
    socket: OwnedFd,
    outgoing: Outgoing,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The process was told to stop sending.
    Congested,
    /// Nothing can be sent any more; what the other side sent before can still be read.
    Broken,
    /// The process closed it; it goes when its queue is empty.
    Closing,
}

impl Channels {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            listeners: BTreeMap::new(),
            open: BTreeMap::new(),
            last_listener: 0,
            last_channel: 0,
            unflushed: Vec::new(),
            spare: spare(),
            queue_limit: options.channel_queue,
            channel_limit: options.channels,
        }
    }

    /// Binds a listener and says what came of it.
    pub(super) fn listen(&mut self, token: Token, path: &Path, poller: &Poller) -> Event {
        let number = self.last_listener + 1;
        let bound = Listener::bind(token, path).and_then(|listener| {
            poller
                .add(listener.fd(), Source::Listener(number), Interest::Read)
                .map_err(|error| format!("cannot listen at `{}`: {error}", path.display()))?;
            Ok(listener)
        });
        match bound {
            Ok(listener) => {
                self.last_listener = number;
                self.listeners.insert(number, listener);
                Event::Listening { token }
            }
            Err(error) => Event::ChannelFailed { token, error },
        }
    }

    /// Connects to a listener and says what came of it.
    pub(super) fn connect(&mut self, token: Token, path: &Path, poller: &Poller) -> Event {
        let connected = connect_to(path).and_then(|socket| {
            self.insert(socket, poller)
                .map_err(|error| format!("cannot connect to `{}`: {error}", path.display()))
        });
        match connected {
            Ok(channel) => Event::Connected { token, channel },
            Err(error) => Event::ChannelFailed { token, error },
        }
    }

    /// Accepts who waits at a listener.
    pub(super) fn accept(
        &mut self,
        number: u32,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = self.listeners.get(&number) else { return };
            let token = listener.token;
            match listener.accept() {
                Accepted::Connection(socket) if self.open.len() < self.channel_limit => {
                    match self.adopt(socket, token, poller) {
                        Ok(event) => events.push_back(event),
                        Err(_) => drops.add(DriverDrop::ConnectionRefused, 1),
                    }
                }
                Accepted::Connection(_) => drops.add(DriverDrop::ConnectionRefused, 1),
                Accepted::Nobody => return,
                Accepted::NoRoom => {
                    // Without this the listener would stay readable and keep the loop spinning.
                    self.spare = None;
                    drop(self.listeners.get(&number).map(Listener::accept));
                    self.spare = spare();
                    drops.add(DriverDrop::ConnectionRefused, 1);
                }
            }
        }
    }

    /// Makes a channel of an accepted connection.
    fn adopt(&mut self, socket: OwnedFd, token: Token, poller: &Poller) -> io::Result<Event> {
        let peer = datagrams::peer_credentials(socket.as_fd())?;
        let peer = Peer { pid: peer.pid, uid: peer.uid, gid: peer.gid };
        let channel = self.insert(socket, poller)?;
        Ok(Event::Accepted { token, channel, peer })
    }

    fn insert(&mut self, socket: OwnedFd, poller: &Poller) -> io::Result<ChannelId> {
        // A smaller buffer only means congestion earlier.
        let _ = datagrams::set_send_buffer(socket.as_fd(), SEND_BUFFER);
        let id = ChannelId(self.last_channel + 1);
        poller.add(&socket, Source::Channel(id), Interest::Read)?;
        self.last_channel = id.0;
        let outgoing = Outgoing::new(self.queue_limit);
        self.open.insert(id, Channel { socket, outgoing, state: State::Open });
        Ok(id)
    }

    /// Queues a message to be sent at the end of the turn; returns what happened to the channel.
    pub(super) fn send(
        &mut self,
        id: ChannelId,
        message: Packet,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        let reason = match self.usable(id) {
            None => DriverDrop::ChannelGone,
            Some(_) if message.is_empty() => DriverDrop::MessageEmpty,
            Some(_) if message.len() > LONGEST => DriverDrop::MessageTooLong,
            Some(channel) if channel.state == State::Broken => DriverDrop::ChannelGone,
            Some(channel) => match channel.outgoing.push(message) {
                Pushed::First => {
                    self.unflushed.push(id);
                    return None;
                }
                Pushed::Queued => return None,
                Pushed::FullBatch => return self.flush_one(id, poller, drops),
                Pushed::Dropped => DriverDrop::ChannelQueueFull,
            },
        };
        drops.add(reason, 1);
        None
    }

    /// Closes a channel as soon as what was sent on it has left.
    pub(super) fn close(&mut self, id: ChannelId, poller: &Poller, drops: &mut Drops) {
        let Some(channel) = self.usable(id) else {
            return drops.add(DriverDrop::ChannelGone, 1);
        };
        channel.state = State::Closing;
        self.flush_one(id, poller, drops);
    }

    /// Receives one batch of messages.
    pub(super) fn receive(
        &mut self,
        id: ChannelId,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        let Some(channel) = self.usable(id) else { return };
        let (mut messages, mut end) = (Vec::new(), false);
        let result = datagrams::receive(channel.socket.as_fd(), BATCH, |message, truncated| {
            if end || message.is_empty() {
                end = true;
            } else if truncated {
                drops.add(DriverDrop::MessageTooLong, 1);
            } else {
                messages.push(message);
            }
        });
        if !messages.is_empty() {
            events.push_back(Event::Messages { channel: id, messages });
        }
        let failed = result.is_err_and(|error| {
            // A reset is reported once, before what the other side had sent.
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            !matches!(errno, Errno::AGAIN | Errno::INTR | Errno::CONNRESET)
        });
        if end || failed {
            self.remove(id, poller);
            events.push_back(Event::Closed { channel: id });
        }
    }

    /// Sends what was queued in this turn.
    pub(super) fn flush(
        &mut self,
        poller: &Poller,
        events: &mut VecDeque<Event>,
        drops: &mut Drops,
    ) {
        let mut unflushed = std::mem::take(&mut self.unflushed);
        for id in unflushed.drain(..) {
            if let Some(channel) = self.open.get_mut(&id) {
                channel.outgoing.unlist();
            }
            events.extend(self.flush_one(id, poller, drops));
        }
        self.unflushed = unflushed;
    }

    /// Sends what waits on one channel: its turn is over, or the kernel takes messages again.
    pub(super) fn flush_one(
        &mut self,
        id: ChannelId,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        let channel = self.open.get_mut(&id)?;
        let sent = channel.flush(drops);
        let event = match (channel.state, sent) {
            (State::Closing, Sent::All) => {
                self.remove(id, poller);
                return None;
            }
            (State::Open, Sent::Blocked) => {
                channel.state = State::Congested;
                Some(Event::Congested { channel: id })
            }
            (State::Congested, Sent::All) => {
                channel.state = State::Open;
                Some(Event::Drained { channel: id })
            }
            (State::Open, Sent::All) => return None,
            (State::Congested | State::Closing, Sent::Blocked) | (State::Broken, _) => None,
        };
        let interest = match channel.state {
            State::Open | State::Broken => Interest::Read,
            State::Congested => Interest::Both,
            State::Closing => Interest::Write,
        };
        // The descriptor was added when the channel opened; changing it needs no memory.
        let _ = poller.modify(&channel.socket, Source::Channel(id), interest);
        event
    }

    /// Accepts nobody any more, and removes the paths of the listeners.
    pub(super) fn stop_listening(&mut self) {
        self.listeners.clear();
    }

    /// Whether messages still wait somewhere.
    pub(super) fn is_flushed(&self) -> bool {
        self.open.values().all(|channel| channel.outgoing.queue.is_empty())
    }

    /// A channel that the process has not closed.
    fn usable(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.open.get_mut(&id).filter(|channel| channel.state != State::Closing)
    }

    fn remove(&mut self, id: ChannelId, poller: &Poller) {
        if let Some(channel) = self.open.remove(&id) {
            poller.remove(&channel.socket);
        }
    }
}

impl Channel {
    /// Hands the queue to the kernel. A channel whose other side is gone takes everything, to no
    /// effect; that it is gone shows when it is read.
    fn flush(&mut self, drops: &mut Drops) -> Sent {
        let sent = datagrams::send(
            self.socket.as_fd(),
            &mut self.outgoing.queue,
            |_| None,
            |_| (),
            |errno| match errno {
                Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Err(()),
                _ => {
                    drops.add(DriverDrop::MessageRefused, 1);
                    Ok(())
                }
            },
        );
        let sent = sent.unwrap_or_else(|()| {
            drops.add(DriverDrop::ChannelGone, self.outgoing.queue.len() as u64);
            self.outgoing.queue.clear();
            if self.state != State::Closing {
                self.state = State::Broken;
            }
            Sent::All
        });
        self.outgoing.blocked = sent == Sent::Blocked;
        sent
    }
}

/// A descriptor to have one in reserve.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}
