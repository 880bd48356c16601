//! One channel: a connected socket, and how messages travel on it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use weft_base::{ChannelId, Message};
use weft_port::datagrams::{self, BATCH, Sent};

use super::bytestream::Stream;
use super::outgoing::{self, Outgoing};
use super::{DriverDrop, Drops};
use crate::Event;
use crate::address::{ChannelKind, Unsuitable};

/// A connected socket. An empty message on a socket that keeps message borders cannot be told from
/// the end, so it is not sent, and received it is the end.
pub(super) struct Channel {
    pub(super) socket: OwnedFd,
    pub(super) state: State,
    kind: ChannelKind,
    transport: Transport,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It is not known yet whether the other side accepts.
    Connecting,
    Open,
    /// The process was told to stop sending.
    Congested,
    /// Nothing can be sent any more; what the other side sent before can still be read.
    Broken,
    /// The process closed it; it goes when its queue is empty.
    Closing,
    /// The process closed it and everything has left. It goes when the other side closes it, too: a
    /// TCP socket that is closed with something unread makes the kernel forget what it has to send.
    Draining,
}

/// How messages travel.
pub(super) enum Transport {
    /// The kernel keeps their borders.
    Packets(Outgoing<Message>),
    /// As frames on a stream of bytes.
    Stream(Stream),
}

/// What became of a message that waits now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The channel has to be flushed at the end of the turn. Said once per turn.
    First,
    /// It waits like those before it.
    Queued,
    /// There is a whole batch: flush now.
    FullBatch,
}

/// Why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It alone is dropped.
    Dropped(DriverDrop),
    /// The channel has to be closed, as nothing may be missing on it.
    Fatal(DriverDrop),
}

impl Channel {
    pub(super) fn new(
        socket: OwnedFd,
        kind: ChannelKind,
        transport: Transport,
        state: State,
    ) -> Self {
        Self { socket, state, kind, transport }
    }

    /// Queues a message.
    pub(super) fn push(&mut self, message: Message) -> Result<Pushed, Refused> {
        let refused = if self.kind.may_drop() { Refused::Dropped } else { Refused::Fatal };
        self.kind.check(&message).map_err(|why| refused(reason(why)))?;
        match &mut self.transport {
            Transport::Packets(outgoing) => match outgoing.push(message) {
                outgoing::Pushed::First => Ok(Pushed::First),
                outgoing::Pushed::Queued => Ok(Pushed::Queued),
                outgoing::Pushed::FullBatch => Ok(Pushed::FullBatch),
                outgoing::Pushed::Dropped => Err(refused(DriverDrop::ChannelQueueFull)),
            },
            Transport::Stream(stream) => {
                stream.push(message).ok_or(refused(DriverDrop::StreamQueueFull))
            }
        }
    }

    /// The channel is being flushed because it was listed.
    pub(super) fn unlist(&mut self) {
        match &mut self.transport {
            Transport::Packets(outgoing) => outgoing.unlist(),
            Transport::Stream(stream) => stream.unlist(),
        }
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_flushed(&self) -> bool {
        match &self.transport {
            Transport::Packets(outgoing) => outgoing.queue.is_empty(),
            Transport::Stream(stream) => stream.is_empty(),
        }
    }

    /// Hands the queue to the kernel. A channel whose other side is gone takes everything, to no
    /// effect; that it is gone shows when it is read.
    ///
    /// # Errors
    /// The channel has to be closed; the reason is counted.
    pub(super) fn flush(&mut self, drops: &mut Drops) -> Result<Sent, ()> {
        let socket = self.socket.as_fd();
        let result = match &mut self.transport {
            Transport::Packets(outgoing) => {
                let sent = datagrams::send_messages(socket, &mut outgoing.queue, |errno| {
                    if is_gone(errno) {
                        return Err(errno);
                    }
                    drops.add(DriverDrop::MessageRefused, 1);
                    Ok(())
                });
                if sent.is_err() {
                    drops.add(DriverDrop::ChannelGone, outgoing.queue.len() as u64);
                    outgoing.queue.clear();
                }
                outgoing.blocked = sent == Ok(Sent::Blocked);
                sent
            }
            Transport::Stream(stream) => {
                let sent = stream.flush(socket);
                if sent.is_err() {
                    stream.clear();
                }
                sent
            }
        };
        match result {
            Ok(sent) => Ok(sent),
            Err(errno) if is_gone(errno) => {
                if self.state != State::Closing {
                    self.state = State::Broken;
                }
                Ok(Sent::All)
            }
            Err(_) => {
                drops.add(DriverDrop::MessageRefused, 1);
                Err(())
            }
        }
    }

    /// Receives one batch of messages as an event for the channel `id`. The second value says whether
    /// the channel is at its end.
    pub(super) fn receive(
        &mut self,
        id: ChannelId,
        piece: &mut [u8],
        drops: &mut Drops,
    ) -> (Option<Event>, bool) {
        let socket = self.socket.as_fd();
        let mut messages = Vec::new();
        let result = match &mut self.transport {
            Transport::Packets(_) => receive(socket, &mut messages, drops),
            Transport::Stream(stream) => stream.receive(socket, piece, &mut messages, drops),
        };
        let end = match result {
            Ok(goes_on) => !goes_on,
            // A reset is reported once, before what the other side had sent.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNRESET) => false,
            Err(_) => true,
        };
        let some = !messages.is_empty();
        (some.then_some(Event::Messages { channel: id, messages }), end)
    }

    /// Whether the socket must stay until the other side has closed it.
    pub(super) fn has_to_drain(&self) -> bool {
        self.kind == ChannelKind::Tcp && self.state != State::Draining
    }
}

/// Under which reason an unsuitable message is counted.
fn reason(why: Unsuitable) -> DriverDrop {
    match why {
        Unsuitable::Empty => DriverDrop::MessageEmpty,
        Unsuitable::TooLong => DriverDrop::MessageTooLong,
        Unsuitable::TooManyHandles => DriverDrop::HandlesTooMany,
        Unsuitable::NoHandles => DriverDrop::HandlesNotCarried,
    }
}

/// Receives one batch from a socket that keeps message borders; false at the end.
fn receive(
    socket: BorrowedFd<'_>,
    messages: &mut Vec<Message>,
    drops: &mut Drops,
) -> Result<bool, Errno> {
    let mut end = false;
    let result = datagrams::receive(socket, BATCH, |received| {
        if end || received.message.packet.is_empty() {
            end = true;
        } else if received.truncated {
            drops.add(DriverDrop::MessageTooLong, 1);
        } else if received.handles_missing {
            drops.add(DriverDrop::HandlesMissing, 1);
        } else {
            messages.push(received.message);
        }
    });
    match result {
        Ok(_) => Ok(!end),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// Whether sending failed because nobody is at the other end any more.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN)
}
