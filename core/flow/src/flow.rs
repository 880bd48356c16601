//! One end of a flow, driven by a loop that must never sleep anywhere but in its own poll.
//!
//! The rules for such a loop:
//!
//! * At first, and once [`Flow::receive`] has said [`Received::All`], [`Flow::fd`] is ready to read whenever it has
//!   something to do: messages, or the end. It may be ready for nothing; then `receive` quiets it.
//! * After [`Received::Enough`] there may be more for which nothing becomes ready: call it again before
//!   waiting (after the others had their turn: poll with a time of zero).
//! * When [`Flow::send`] says [`Sent::Blocked`], wait for [`Flow::room_fd`] to become ready to read and
//!   call it again; it says [`Sent::All`] once everything fitted. While nothing is blocked that
//!   descriptor is of no interest; whoever waits for it nevertheless calls [`Flow::hear_room`].
//! * [`Error::Closed`] comes after the last message, [`Error::Hostile`] as soon as it is seen. Either
//!   way the flow is to be dropped.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use weft_base::Buffer;
use weft_port::datagrams::Credentials;

use crate::bell::{Bell, Heard};
use crate::error::Error;
use crate::layout::{Kind, LONGEST, Sizes, record};
use crate::ring::{Asked, Hostile, Reader, Writer};
use crate::shared::Region;

/// One end of a flow: an application's or a stack's, which differ only in how they came about.
pub struct Flow {
    kind: Kind,
    sizes: Sizes,
    peer: Credentials,
    writer: Writer<Region>,
    reader: Reader<Region>,
    /// The control socket: wakings when there is something to read.
    data: Bell,
    /// Wakings when there is room again.
    room: Bell,
    congested: bool,
    /// The other side is gone; what it wrote before may still be read.
    gone: bool,
    broken: Option<&'static str>,
}

/// What came of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The queue is empty.
    All,
    /// There is no room for more; [`Flow::room_fd`] tells when there is.
    Blocked,
}

/// What came of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// As many as were asked for; there may be more, for which nobody is woken.
    Enough,
    /// All there was; [`Flow::fd`] tells when there is more.
    All,
}

impl Flow {
    pub(crate) fn new(
        (kind, sizes, peer): (Kind, Sizes, Credentials),
        (writer, reader): (Writer<Region>, Reader<Region>),
        (mut data, room): (Bell, Bell),
    ) -> Self {
        // The flag of this side's reader is up from the beginning.
        data.expect(1);
        let (congested, gone, broken) = (false, false, None);
        Self { kind, sizes, peer, writer, reader, data, room, congested, gone, broken }
    }

    /// What it carries.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The sizes of its rings.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Who is at the other end, as the kernel says.
    #[must_use]
    pub fn peer(&self) -> Credentials {
        self.peer
    }

    /// The descriptor to wait for (readable) before receiving.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.data.as_fd()
    }

    /// The descriptor to wait for (readable) before sending again what was [`Sent::Blocked`].
    #[must_use]
    pub fn room_fd(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    /// Whether the last sending found no room.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.congested
    }

    /// Sends from the front of `queue` until it is empty or there is no room. In a stream the borders
    /// of packets vanish, and of the one in front a part may be sent.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Hostile`]; [`Error::Empty`] or [`Error::TooLong`] for the packet
    /// in front, which stays there.
    pub fn send(&mut self, queue: &mut VecDeque<Buffer>) -> Result<Sent, Error> {
        let result = self.fill(queue);
        self.publish();
        result
    }

    fn fill(&mut self, queue: &mut VecDeque<Buffer>) -> Result<Sent, Error> {
        self.hear_of_room()?;
        while let Some(message) = queue.front_mut() {
            let taken = self.offer(message.bytes())?;
            if taken == message.len() {
                queue.pop_front();
            } else if taken > 0 {
                // It has more bytes than that.
                let _ = message.pull_front(taken);
            } else if !self.ask_for_room(message.len())? {
                return Ok(Sent::Blocked);
            }
        }
        self.congested = false;
        Ok(Sent::All)
    }

    /// Sends a message, or as much of `bytes` as there is room for in a stream; returns how many bytes,
    /// zero if there is no room, and then [`Flow::room_fd`] tells when there is.
    ///
    /// # Errors
    /// As [`Flow::send`].
    #[inline]
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.hear_of_room()?;
        let mut taken = self.offer(bytes)?;
        if taken == 0 && self.ask_for_room(bytes.len())? {
            taken = self.offer(bytes)?;
        }
        self.congested = taken == 0;
        self.publish();
        Ok(taken)
    }

    /// As [`Flow::try_send`], and asks nobody to tell when there is room.
    #[inline]
    pub(crate) fn send_now(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let taken = self.offer(bytes)?;
        self.publish();
        Ok(taken)
    }

    /// Receives up to `max` messages, or pieces of a stream of at most [`LONGEST`] bytes.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Hostile`], after what was taken before.
    pub fn receive(&mut self, max: usize, mut take: impl FnMut(Buffer)) -> Result<Received, Error> {
        for _ in 0..max {
            let Some(len) = self.next()? else { return Ok(Received::All) };
            let mut message = Buffer::with_capacity(len);
            self.copy_out(&mut message.spare_mut()[..len]);
            message.fill(len);
            take(message);
        }
        Ok(Received::Enough)
    }

    /// Receives one message, or what there is of a stream, into `buffer`; returns its length. `None`:
    /// there is nothing, and [`Flow::fd`] tells when there is.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Hostile`], or [`Error::BufferTooSmall`] for a message, which stays.
    #[inline]
    pub fn try_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        match self.next()? {
            Some(len) => self.take(len, buffer).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Flow::try_receive`], without a system call, and asks nobody to tell when there is
    /// something.
    #[inline]
    pub(crate) fn receive_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        self.usable()?;
        match self.look()? {
            Some(len) => self.take(len, buffer).map(Some),
            None => Ok(None),
        }
    }

    /// The length of the next message or piece of a stream. If there is none, the other side has been
    /// asked to wake this one.
    #[inline]
    fn next(&mut self) -> Result<Option<usize>, Error> {
        self.usable()?;
        loop {
            match self.look()? {
                Some(len) => return Ok(Some(len)),
                None if self.gone => return Err(Error::Closed),
                // Either it sleeps now, or there is something, or the other side is gone.
                None if self.settle()? => return Ok(None),
                None => {}
            }
        }
    }

    /// The length of the next message or piece of a stream.
    #[inline]
    fn look(&mut self) -> Result<Option<usize>, Error> {
        let found = match self.kind {
            Kind::Datagram => self.reader.next_len(),
            Kind::Stream => self.reader.ready().map(|len| (len > 0).then(|| len.min(LONGEST))),
        };
        found.map_err(|hostile| self.break_off(hostile))
    }

    /// Takes the next message or piece, of which [`Flow::look`] said the length.
    #[inline]
    fn take(&mut self, len: usize, buffer: &mut [u8]) -> Result<usize, Error> {
        let taken = match self.kind {
            Kind::Datagram if len > buffer.len() => {
                return Err(Error::BufferTooSmall { needed: len, given: buffer.len() });
            }
            Kind::Datagram => len,
            Kind::Stream => len.min(buffer.len()),
        };
        self.copy_out(&mut buffer[..taken]);
        Ok(taken)
    }

    #[inline]
    fn copy_out(&mut self, into: &mut [u8]) {
        match self.kind {
            Kind::Datagram => self.reader.take(into),
            Kind::Stream => {
                self.reader.read(into);
            }
        }
        if self.reader.release_by_quarters() {
            self.room.ring();
        }
    }

    /// There is nothing to read: quiets the descriptor and asks to be woken. False if there is
    /// something after all, or the other side is gone.
    fn settle(&mut self) -> Result<bool, Error> {
        if self.reader.release() {
            self.room.ring();
        }
        match self.data.hush() {
            Heard::Wakes => {}
            Heard::End => {
                self.gone = true;
                return Ok(false);
            }
            Heard::Nonsense(what) => return Err(self.break_off(Hostile(what))),
        }
        let Asked { sleep, owed } = self.reader.ask().map_err(|hostile| self.break_off(hostile))?;
        self.data.expect(owed);
        Ok(sleep)
    }

    /// Puts bytes into the ring, not yet seen by the other side; returns how many, zero if there is
    /// no room.
    #[inline]
    fn offer(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.usable()?;
        if self.gone {
            return Err(Error::Closed);
        }
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        let taken = match self.kind {
            Kind::Stream => self.writer.append(bytes),
            Kind::Datagram if bytes.len() > LONGEST => {
                return Err(Error::TooLong { len: bytes.len() });
            }
            Kind::Datagram => self.writer.put(bytes).map(|fits| if fits { bytes.len() } else { 0 }),
        };
        taken.map_err(|hostile| self.break_off(hostile))
    }

    #[inline]
    fn publish(&mut self) {
        if self.writer.publish() {
            self.data.ring();
        }
    }

    /// There was no room for `len` bytes: asks to be woken when there is. True if there is room after
    /// all.
    fn ask_for_room(&mut self, len: usize) -> Result<bool, Error> {
        self.publish();
        let needed = match self.kind {
            Kind::Datagram => record(len),
            Kind::Stream => 1,
        };
        let Asked { sleep, owed } =
            self.writer.ask(needed).map_err(|hostile| self.break_off(hostile))?;
        self.room.expect(owed);
        self.congested = sleep;
        Ok(!sleep)
    }

    /// Quiets the descriptor that tells when there is room, if somebody waited for that.
    #[inline]
    fn hear_of_room(&mut self) -> Result<(), Error> {
        self.usable()?;
        if self.congested { self.hear_room() } else { Ok(()) }
    }

    /// Takes what [`Flow::room_fd`] is ready for. To be called for a loop that waits for that descriptor
    /// even while nothing is blocked, so that it is quiet again.
    ///
    /// # Errors
    /// [`Error::Closed`]; what was sent before can still be received. [`Error::Hostile`].
    pub fn hear_room(&mut self) -> Result<(), Error> {
        match self.room.hush() {
            Heard::Wakes => Ok(()),
            Heard::End => {
                self.gone = true;
                Err(Error::Closed)
            }
            Heard::Nonsense(what) => Err(self.break_off(Hostile(what))),
        }
    }

    #[inline]
    fn usable(&self) -> Result<(), Error> {
        match self.broken {
            None => Ok(()),
            Some(what) => Err(Error::Hostile { what }),
        }
    }

    fn break_off(&mut self, Hostile(what): Hostile) -> Error {
        self.broken = Some(what);
        Error::Hostile { what }
    }
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow")
            .field("kind", &self.kind)
            .field("sizes", &self.sizes)
            .field("peer", &self.peer)
            .field("gone", &self.gone)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}
