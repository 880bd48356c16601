//! One channel: a connected socket or a flow, and how messages travel on it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use weft_base::{ChannelId, Message};
use weft_port::datagrams::{self, BATCH, Sent};

use super::bytestream::Stream;
use super::flows::FlowEnd;
use super::outgoing::{self, Outgoing};
use super::{DriverDrop, Drops};
use crate::Event;
use crate::address::{ChannelKind, Unsuitable};

/// One end of a channel. An empty message on a socket that keeps message borders cannot be told from
/// the end, so it is not sent, and received it is the end.
pub(super) struct Channel {
    pub(super) state: State,
    /// The last turn in which something came on it; 0 before the first.
    pub(super) heard: u64,
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
    Packets(OwnedFd, Outgoing<Message>),
    /// As frames on a stream of bytes.
    Stream(OwnedFd, Stream),
    /// Through shared memory.
    Flow(FlowEnd),
}

/// How it goes on after receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The descriptor becomes ready, or still is, when there is more.
    Waits,
    /// There may be more, for which no descriptor becomes ready.
    Unfinished,
    /// The channel is at its end.
    End,
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
    pub(super) fn new(kind: ChannelKind, transport: Transport, state: State) -> Self {
        Self { state, heard: 0, kind, transport }
    }

    /// The descriptor that tells when there is something to receive.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match &self.transport {
            Transport::Packets(socket, _) | Transport::Stream(socket, _) => socket.as_fd(),
            Transport::Flow(flow) => flow.fd(),
        }
    }

    /// The descriptor that tells when there is room again, where that is another one.
    pub(super) fn room_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.transport {
            Transport::Packets(..) | Transport::Stream(..) => None,
            Transport::Flow(flow) => Some(flow.room_fd()),
        }
    }

    /// Whether closing it takes no longer than so long, as its other side follows no rules of ours.
    pub(super) fn lingers(&self) -> bool {
        self.kind == ChannelKind::Bytes
    }

    /// Queues a message.
    pub(super) fn push(&mut self, message: Message) -> Result<Pushed, Refused> {
        let refused = if self.kind.may_drop() { Refused::Dropped } else { Refused::Fatal };
        self.kind.check(&message).map_err(|why| refused(reason(why)))?;
        let pushed = match &mut self.transport {
            Transport::Packets(_, outgoing) => outgoing.push(message),
            Transport::Flow(flow) => flow.outgoing.push(message.buffer),
            Transport::Stream(_, stream) => {
                return stream.push(message).ok_or(refused(DriverDrop::StreamQueueFull));
            }
        };
        match pushed {
            outgoing::Pushed::First => Ok(Pushed::First),
            outgoing::Pushed::Queued => Ok(Pushed::Queued),
            outgoing::Pushed::FullBatch => Ok(Pushed::FullBatch),
            outgoing::Pushed::Dropped => Err(refused(DriverDrop::ChannelQueueFull)),
        }
    }

    /// Takes long messages from now on, if the channel's kind carries any.
    pub(super) fn take_long(&mut self) {
        if let Transport::Stream(_, stream) = &mut self.transport {
            stream.take_long();
        }
    }

    /// The channel is being flushed because it was listed.
    pub(super) fn unlist(&mut self) {
        match &mut self.transport {
            Transport::Packets(_, outgoing) => outgoing.unlist(),
            Transport::Stream(_, stream) => stream.unlist(),
            Transport::Flow(flow) => flow.outgoing.unlist(),
        }
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_flushed(&self) -> bool {
        match &self.transport {
            Transport::Packets(_, outgoing) => outgoing.queue.is_empty(),
            Transport::Stream(_, stream) => stream.is_empty(),
            Transport::Flow(flow) => flow.outgoing.queue.is_empty(),
        }
    }

    /// Hands the queue to the kernel. A channel whose other side is gone takes everything, to no
    /// effect; that it is gone shows when it is read.
    ///
    /// # Errors
    /// The channel has to be closed; the reason is counted.
    pub(super) fn flush(&mut self, drops: &mut Drops) -> Result<Sent, ()> {
        let result = match &mut self.transport {
            Transport::Packets(socket, outgoing) => {
                let sent = datagrams::send_messages(socket.as_fd(), &mut outgoing.queue, |errno| {
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
            Transport::Stream(socket, stream) => {
                let mut sent = stream.flush(socket.as_fd());
                if sent == Ok(Sent::All) && self.state == State::Closing {
                    stream.say_goodbye();
                    sent = stream.flush(socket.as_fd());
                }
                if sent.is_err() {
                    stream.clear();
                }
                sent
            }
            Transport::Flow(flow) => match flow.flush(drops) {
                Ok(sent) => Ok(sent),
                // Already counted.
                Err(Errno::PROTO) => return Err(()),
                Err(errno) => Err(errno),
            },
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

    /// Receives one batch of messages as an event for the channel `id`, and says how it goes on.
    pub(super) fn receive(
        &mut self,
        id: ChannelId,
        piece: &mut [u8],
        drops: &mut Drops,
    ) -> (Option<Event>, Next) {
        let mut messages = Vec::new();
        let result = match &mut self.transport {
            Transport::Packets(socket, _) => receive(socket.as_fd(), &mut messages, drops),
            Transport::Stream(socket, stream) => {
                stream.receive(socket.as_fd(), piece, &mut messages, drops)
            }
            Transport::Flow(flow) => Ok(flow.receive(&mut messages, drops)),
        };
        // A reset is reported once, before what the other side had sent.
        let for_now = |errno| matches!(errno, Errno::AGAIN | Errno::INTR | Errno::CONNRESET);
        let next =
            result.unwrap_or_else(|errno| if for_now(errno) { Next::Waits } else { Next::End });
        let some = !messages.is_empty();
        (some.then_some(Event::Messages { channel: id, messages }), next)
    }

    /// Takes note of what the descriptor for room says; whether the other side is still there.
    pub(super) fn hear_room(&mut self, drops: &mut Drops) -> bool {
        let Transport::Flow(flow) = &mut self.transport else { return true };
        let there = flow.hear_room(drops);
        if !there && self.state != State::Closing {
            self.state = State::Broken;
        }
        there
    }

    /// The process ends: tells the other side so behind what waits, where the carrier can, as far as that
    /// leaves at once.
    pub(super) fn say_goodbye(&mut self) {
        if let Transport::Stream(socket, stream) = &mut self.transport
            && self.kind == ChannelKind::Tls
            && stream.flush(socket.as_fd()) == Ok(Sent::All)
        {
            stream.say_goodbye();
            let _ = stream.flush(socket.as_fd());
        }
    }

    /// Whether what was received makes something leave that is no message.
    pub(super) fn has_to_answer(&self) -> bool {
        matches!(&self.transport, Transport::Stream(_, stream) if stream.has_to_answer())
    }

    /// Whether the socket must stay until the other side has closed it.
    pub(super) fn has_to_drain(&self) -> bool {
        let is_tcp = match self.kind {
            ChannelKind::Tcp | ChannelKind::Tls => true,
            // Strangers to whom nothing was said wait for nothing.
            ChannelKind::Bytes => {
                matches!(&self.transport, Transport::Stream(_, stream) if stream.has_sent())
            }
            ChannelKind::Packets | ChannelKind::Stream | ChannelKind::Flow => false,
        };
        is_tcp && self.state != State::Draining
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

/// Receives one batch from a socket that keeps message borders.
fn receive(
    socket: BorrowedFd<'_>,
    messages: &mut Vec<Message>,
    drops: &mut Drops,
) -> Result<Next, Errno> {
    let mut end = false;
    let result = datagrams::receive(socket, BATCH, |received| {
        if end || received.message.buffer.is_empty() {
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
        Ok(_) => Ok(if end { Next::End } else { Next::Waits }),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// Whether sending failed because nobody is at the other end any more.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use weft_base::Buffer;

    use super::*;

    #[test]
    fn strangers_to_whom_nothing_was_said_are_not_waited_for() {
        let (own, _other) = UnixStream::pair().unwrap();
        let transport = Transport::Stream(own.into(), Stream::plain(1 << 20));
        let mut channel = Channel::new(ChannelKind::Bytes, transport, State::Open);
        assert!(!channel.has_to_drain());
        channel.push(Buffer::from_slice(b"goodbye").into()).unwrap();
        assert_eq!(channel.flush(&mut Drops::new()), Ok(Sent::All));
        assert!(channel.has_to_drain());
        channel.state = State::Draining;
        assert!(!channel.has_to_drain());
    }
}
