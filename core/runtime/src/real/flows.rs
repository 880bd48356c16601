//! Channels that are flows: messages through memory that both processes share (`weft_flow`).
//!
//! A channel is a flow once both sides have said hello, which takes an application one message each way:
//! meanwhile it is a [`Pending`]. The process hears of neither before. A flow has two descriptors, one
//! that tells when there is something to receive, and one that tells when there is room again; both are
//! watched all the time, so that a side that misuses one is cut off at once.
//!
//! What there is in the memory makes no descriptor ready once a batch was taken, so a channel that may
//! have more is [`Next::Unfinished`]: the loop comes back to it in the next turn, after the others.
//!
//! Reference: `weft_flow::Flow`, the rules for loops.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use weft_base::{Buffer, Message, Token};
use weft_flow::{Asked, Asking, Attached, Attaching, Error, Flow, Limits, Received, Sizes};
use weft_port::datagrams::{BATCH, Sent};

use super::channel::Next;
use super::outgoing::Outgoing;
use super::{DriverDrop, Drops};

/// What an application may bring: some seven hundred messages of 1,500 bytes each way. Its memory is not
/// charged to this process, yet takes of its addresses.
pub(super) const LIMITS: Limits = Limits { largest: 1 << 20 };
/// What this process brings where it is the application: what is usual.
pub(super) const WANTED: Sizes = Sizes { up: 0, down: 0 };

/// A connection that is to become a flow.
pub(super) enum Pending {
    /// It was accepted by the listener of this token.
    Attaching(Token, Attaching),
    /// It was asked for with this token.
    Asking(Token, Asking),
}

/// What became of a [`Pending`].
pub(super) enum Became {
    /// It still is.
    Pending(Pending),
    /// A flow. Who is told that it was accepted, or connected.
    Accepted(Token, Flow),
    Connected(Token, Flow),
    /// Nothing: who connected does not attach, which is counted.
    Nothing,
    /// Nothing, and why.
    Failed(Token, String),
}

impl Pending {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Attaching(_, attaching) => attaching.fd(),
            Self::Asking(_, asking) => asking.fd(),
        }
    }

    /// Its descriptor is ready.
    pub(super) fn advance(self, drops: &mut Drops) -> Became {
        match self {
            Self::Attaching(token, attaching) => match attaching.advance(&LIMITS) {
                Ok(Attached::NotYet(again)) => Became::Pending(Self::Attaching(token, again)),
                Ok(Attached::Flow(flow)) => Became::Accepted(token, flow),
                Err(error) => {
                    // Who says nothing and goes has only looked whether somebody is here.
                    drops.add(DriverDrop::FlowRefused, u64::from(!matches!(error, Error::Closed)));
                    Became::Nothing
                }
            },
            Self::Asking(token, asking) => match asking.advance() {
                Ok(Asked::NotYet(again)) => Became::Pending(Self::Asking(token, again)),
                Ok(Asked::Flow(flow)) => Became::Connected(token, flow),
                Err(error) => Became::Failed(token, error.to_string()),
            },
        }
    }
}

/// One end of a flow and what waits for room in it.
pub(super) struct FlowEnd {
    flow: Flow,
    pub(super) outgoing: Outgoing<Buffer>,
}

impl FlowEnd {
    pub(super) fn new(flow: Flow, limit: usize) -> Self {
        Self { flow, outgoing: Outgoing::new(limit) }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.flow.fd()
    }

    pub(super) fn room_fd(&self) -> BorrowedFd<'_> {
        self.flow.room_fd()
    }

    /// Puts the queue into the memory.
    ///
    /// # Errors
    /// `PIPE`: the other side is gone. `PROTO`: it broke the rules, which is counted. What waited is lost.
    pub(super) fn flush(&mut self, drops: &mut Drops) -> Result<Sent, Errno> {
        let Outgoing { queue, blocked, .. } = &mut self.outgoing;
        let sent = self.flow.send(queue);
        *blocked = matches!(sent, Ok(weft_flow::Sent::Blocked));
        match sent {
            Ok(weft_flow::Sent::All) => Ok(Sent::All),
            Ok(weft_flow::Sent::Blocked) => Ok(Sent::Blocked),
            Err(error) => {
                self.give_up(drops);
                let closed = matches!(error, Error::Closed);
                drops.add(DriverDrop::FlowBroken, u64::from(!closed));
                Err(if closed { Errno::PIPE } else { Errno::PROTO })
            }
        }
    }

    /// Takes one batch out of the memory.
    pub(super) fn receive(&mut self, messages: &mut Vec<Message>, drops: &mut Drops) -> Next {
        match self.flow.receive(BATCH, |buffer| messages.push(buffer.into())) {
            Ok(Received::Enough) => Next::Unfinished,
            Ok(Received::All) => Next::Waits,
            Err(error) => {
                drops.add(DriverDrop::FlowBroken, u64::from(!matches!(error, Error::Closed)));
                Next::End
            }
        }
    }

    /// Takes what the descriptor for room is ready for; whether the other side still is there and keeps
    /// the rules. If not, receiving comes to an end, and tells which. What waited is lost.
    pub(super) fn hear_room(&mut self, drops: &mut Drops) -> bool {
        let there = self.flow.hear_room().is_ok();
        if !there {
            self.give_up(drops);
        }
        there
    }

    /// Forgets what waits.
    fn give_up(&mut self, drops: &mut Drops) {
        let Outgoing { queue, blocked, .. } = &mut self.outgoing;
        drops.add(DriverDrop::ChannelGone, queue.len() as u64);
        queue.clear();
        *blocked = false;
    }
}
