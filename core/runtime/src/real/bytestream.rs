//! A channel over a stream of bytes: Unix sockets of type `SOCK_STREAM`, TCP, and TLS over TCP.
//!
//! Messages are `crate::frames`, but with peers that speak protocols of others: there they are pieces of the
//! stream as they come. What is sent in a turn is put together in one buffer, which
//! leaves with one system call; what comes in is read in large pieces and cut.
//!
//! **Handles.** The kernel keeps descriptors with the first byte of the call that sent them, and a call
//! that receives ends with the bytes of the call that sent some. So a frame with handles is sent by a
//! call of its own, from its first byte on and not beyond its last, and whoever receives handles with
//! some bytes knows that they belong to the last frame that begins in these bytes.
//!
//! No message may be lost here, because its receiver relies on the order. What cannot be carried, and
//! what exceeds the limit of the queue, ends the channel.
//!
//! Reference: unix(7), tcp(7), `unix_stream_read_generic` in net/unix/af_unix.c of the Linux kernel.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use weft_base::{Buffer, Handle, Message};
use weft_port::datagrams::{self, MOST_HANDLES, Sent};

use super::channel::{Next, Pushed};
use super::tls::Session;
use super::{DriverDrop, Drops};
use crate::frames::{self, Cutter, FrameError};

/// How many bytes are read at a time, and how many wait at most until the end of the turn.
pub(super) const PIECE: usize = 256 << 10;
/// How long a piece of a stream without frames is at most.
const PLAIN_PIECE: usize = 64 << 10;
/// Memory that an empty queue keeps, in bytes.
const KEPT: usize = 1 << 20;

pub(super) struct Stream {
    /// What cuts frames, if there are any.
    cutter: Option<Cutter>,
    /// The handles of the frame of which only a part has come.
    awaiting: Vec<Handle>,
    queue: VecDeque<u8>,
    /// The frames in the queue that have handles, in order.
    marks: VecDeque<Mark>,
    /// How many bytes have left: the position in the stream of the first one in the queue.
    sent: u64,
    blocked: bool,
    listed: bool,
    limit: usize,
    /// What encrypts, if anything does.
    session: Option<Box<Session>>,
}

/// A frame with handles: where it begins and ends in the stream.
struct Mark {
    begin: u64,
    end: u64,
    handles: Vec<Handle>,
}

impl Stream {
    /// A stream whose queue holds up to `limit` bytes, or one message.
    pub(super) fn new(limit: usize) -> Self {
        Self::with(Some(Cutter::new(frames::FIRST_FRAME)), limit)
    }

    /// A stream without frames, whose queue holds as much.
    pub(super) fn plain(limit: usize) -> Self {
        Self::with(None, limit)
    }

    fn with(cutter: Option<Cutter>, limit: usize) -> Self {
        Self {
            cutter,
            awaiting: Vec::new(),
            queue: VecDeque::new(),
            marks: VecDeque::new(),
            sent: 0,
            blocked: false,
            listed: false,
            limit,
            session: None,
        }
    }

    /// The same, encrypted.
    pub(super) fn encrypted(limit: usize, session: Session) -> Self {
        Self { session: Some(Box::new(session)), ..Self::new(limit) }
    }

    /// Takes long frames from now on; until then, only those that strangers may send.
    pub(super) fn take_long(&mut self) {
        self.cutter.iter_mut().for_each(|cutter| cutter.extend_to(frames::LONGEST_FRAME));
    }

    /// Announces that nothing more is sent, where the carrier can tell. Call it when all was sent.
    pub(super) fn say_goodbye(&mut self) {
        self.session.iter_mut().for_each(|session| session.say_goodbye());
    }

    /// Whether what came in makes something leave that is no message.
    pub(super) fn has_to_answer(&self) -> bool {
        self.queue.is_empty() && !self.is_empty()
    }

    /// Queues a message, which fits; `None` if there is no room for it.
    pub(super) fn push(&mut self, message: Message) -> Option<Pushed> {
        let Message { buffer, handles } = message;
        let begin = self.sent + self.queue.len() as u64;
        if self.cutter.is_some() {
            let fits = frames::emit(buffer.bytes(), &mut self.queue);
            debug_assert!(fits, "the kind of channel has been checked");
        } else {
            self.queue.extend(buffer.bytes());
        }
        if self.queue.len() > self.limit && begin != self.sent {
            return None;
        }
        if !handles.is_empty() {
            let end = self.sent + self.queue.len() as u64;
            self.marks.push_back(Mark { begin, end, handles });
        }
        Some(if self.blocked {
            Pushed::Queued
        } else if self.queue.len() >= PIECE {
            Pushed::FullBatch
        } else if self.listed {
            Pushed::Queued
        } else {
            self.listed = true;
            Pushed::First
        })
    }

    /// The channel is being flushed because it was listed.
    pub(super) fn unlist(&mut self) {
        self.listed = false;
    }

    /// Whether something has left.
    pub(super) fn has_sent(&self) -> bool {
        self.sent > 0
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.session.as_ref().is_none_or(|session| session.is_flushed())
    }

    /// Hands the queue to the kernel.
    ///
    /// # Errors
    /// Those of send(2) and sendmsg(2) that last; how many bytes are left is no longer of interest then.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<Sent, Errno> {
        if self.session.is_some() {
            return self.flush_encrypted(socket);
        }
        while !self.queue.is_empty() {
            match self.send_run(socket) {
                Ok(count) => {
                    self.queue.drain(..count);
                    self.sent += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return Ok(Sent::Blocked);
                }
                Err(errno) => return Err(errno),
            }
        }
        self.queue.shrink_to(KEPT);
        self.blocked = false;
        Ok(Sent::All)
    }

    /// Encrypts the queue and hands it to the kernel.
    fn flush_encrypted(&mut self, socket: BorrowedFd<'_>) -> Result<Sent, Errno> {
        let Self { queue, sent, blocked, session, .. } = self;
        let Some(session) = session else { return Ok(Sent::All) };
        loop {
            loop {
                let count = session.give(queue.as_slices().0);
                if count == 0 {
                    break;
                }
                queue.drain(..count);
                *sent += count as u64;
            }
            *blocked = session.flush(socket)? == Sent::Blocked;
            if *blocked {
                return Ok(Sent::Blocked);
            }
            if queue.is_empty() {
                queue.shrink_to(KEPT);
                return Ok(Sent::All);
            }
        }
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        self.queue = VecDeque::new();
        self.marks.clear();
        self.blocked = false;
    }

    /// Sends up to the next frame with handles or, if one is in front, what belongs to it.
    fn send_run(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let to = |position: u64| usize::try_from(position - self.sent).unwrap_or(usize::MAX);
        match self.marks.front() {
            Some(mark) if mark.begin == self.sent => {
                let len = to(mark.end);
                let frame = &self.queue.make_contiguous()[..len];
                let count = datagrams::send_with_handles(socket, frame, &mark.handles)?;
                // With the first byte they have left; the rest of the frame is as any other bytes.
                self.marks.pop_front();
                Ok(count)
            }
            mark => {
                let len = mark.map_or(self.queue.len(), |mark| to(mark.begin));
                // Nearly always this is all: a queue that was emptied begins at its front again.
                let (front, _) = self.queue.as_slices();
                let front = &front[..front.len().min(len)];
                // Not sendmsg(2), which processes without handles can be forbidden to call.
                send(socket, front, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
        }
    }

    /// Reads one piece, and appends the messages that it completes. The end is that of the stream, or
    /// that it is of no use any more, which is counted.
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        piece: &mut [u8],
        messages: &mut Vec<Message>,
        drops: &mut Drops,
    ) -> Result<Next, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let most = if self.cutter.is_some() { piece.len() } else { PLAIN_PIECE.min(piece.len()) };
        let piece = &mut piece[..most];
        let received = recvmsg(socket, &mut [IoSliceMut::new(piece)], &mut control, flags)?;
        let handles = handles(&mut control);
        if self.session.is_some() {
            return Ok(self.receive_encrypted(&piece[..received.bytes], messages, drops));
        }
        let outcome = match received.bytes {
            _ if received.flags.contains(ReturnFlags::CTRUNC) => Err(DriverDrop::HandlesMissing),
            0 => self.end().map(|()| Next::End),
            count => self.cut(&piece[..count], handles, messages).map(|()| Next::Waits),
        };
        Ok(outcome.unwrap_or_else(|reason| {
            drops.add(reason, 1);
            Next::End
        }))
    }

    /// Decrypts and cuts bytes that came in; none are the end of the connection.
    fn receive_encrypted(
        &mut self,
        bytes: &[u8],
        messages: &mut Vec<Message>,
        drops: &mut Drops,
    ) -> Next {
        let Some(mut session) = self.session.take() else { return Next::End };
        let mut outcome = Ok(());
        let taken = session.take(bytes, |plain| {
            if outcome.is_ok() {
                outcome = self.cut(plain, Vec::new(), messages);
            }
        });
        self.session = Some(session);
        let end = match (outcome, taken) {
            (Err(reason), _) => Err(reason),
            (Ok(()), Err(_)) => Err(DriverDrop::TlsBroken),
            // The other side says when it is done, so that nobody else can end a connection unnoticed.
            (Ok(()), Ok(false)) if bytes.is_empty() => Err(DriverDrop::TlsCutOff),
            (Ok(()), Ok(false)) => return Next::Waits,
            (Ok(()), Ok(true)) => self.end(),
        };
        if let Err(reason) = end {
            drops.add(reason, 1);
        }
        Next::End
    }

    /// The other side sends nothing more.
    fn end(&self) -> Result<(), DriverDrop> {
        self.cutter.as_ref().map_or(Ok(()), |cutter| cutter.end().map_err(reason))
    }

    /// Takes what came behind the handshake.
    ///
    /// # Errors
    /// It is of no use.
    pub(super) fn begin_with(
        &mut self,
        early: &[u8],
        messages: &mut Vec<Message>,
    ) -> Result<(), DriverDrop> {
        self.cut(early, Vec::new(), messages)
    }

    /// Cuts bytes that came with `handles`.
    fn cut(
        &mut self,
        bytes: &[u8],
        handles: Vec<Handle>,
        messages: &mut Vec<Message>,
    ) -> Result<(), DriverDrop> {
        let Self { cutter, awaiting, .. } = self;
        let Some(cutter) = cutter else {
            messages.push(Buffer::compact(bytes).into());
            return Ok(());
        };
        let (before, mut last) = (cutter.taken(), None);
        let result = cutter.cut(bytes, |begin, bytes| {
            // What is awaited belongs to the first frame that ends here.
            let handles = std::mem::take(awaiting);
            messages.push(Message { buffer: Buffer::compact(bytes), handles });
            last = Some(begin);
        });
        result.map_err(reason)?;
        if handles.is_empty() {
            return Ok(());
        }
        let begun = cutter.begin();
        if begun < cutter.taken() {
            last = Some(begun);
        }
        if last.is_none_or(|last| last < before) {
            return Err(DriverDrop::HandlesMisplaced);
        }
        if begun < cutter.taken() {
            *awaiting = handles;
        } else if let Some(message) = messages.last_mut() {
            message.handles = handles;
        }
        Ok(())
    }
}

/// What the kernel handed over with some bytes.
fn handles(control: &mut RecvAncillaryBuffer<'_>) -> Vec<Handle> {
    let mut handles = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            handles.extend(descriptors.map(Handle::from));
        }
    }
    handles
}

fn reason(error: FrameError) -> DriverDrop {
    match error {
        FrameError::Length { .. } => DriverDrop::FrameLength,
        FrameError::CutOff { .. } => DriverDrop::FrameCutOff,
    }
}
