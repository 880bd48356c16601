//! Messages with descriptors over a Unix socket that keeps their borders.
//!
//! Reference: unix(7) (`SOCK_SEQPACKET`, `SCM_RIGHTS`), recvmsg(2).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

use crate::protocol::{LONGEST, Message, ProtocolError, Request};

/// How many descriptors one message may bring; the kernel closes what is beyond.
const DESCRIPTORS: usize = 4;

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
    /// Whether it was longer than a message may be, or brought more descriptors.
    pub(crate) truncated: bool,
}

/// Two ends of a channel, none of which waits.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Sends one message.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    let slices = [IoSlice::new(bytes)];
    rustix::io::retry_on_intr(|| sendmsg(socket, &slices, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one message; `None` at the end. An empty message is the end, too.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> rustix::io::Result<Option<Received>> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let result = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)
    })?;
    let descriptors = control
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => rights.collect(),
            _ => Vec::new(),
        })
        .collect();
    if result.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(result.bytes);
    let truncated = result.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(Some(Received { bytes, descriptors, truncated }))
}

/// The manager's end of its channel to the launcher, for managers and tests that are driven by hand.
#[derive(Debug)]
pub struct ManagerChannel {
    socket: OwnedFd,
}

impl ManagerChannel {
    /// The channel on an inherited socket.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Sends a request, with a descriptor if it is one to keep.
    ///
    /// # Errors
    /// The request is too long, the launcher is gone, or it does not read (`EAGAIN`).
    pub fn send(&self, request: &Request, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = request.encode().map_err(invalid)?;
        Ok(send(self.socket.as_fd(), &bytes, descriptor.as_slice())?)
    }

    /// The next message that is there; `None` when the launcher is gone.
    ///
    /// # Errors
    /// No message is there now (`EAGAIN`), or it cannot be read.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        match receive(self.socket.as_fd())? {
            Some(received) => Ok(Some(Message::decode(&received.bytes).map_err(invalid)?)),
            None => Ok(None),
        }
    }
}

impl AsFd for ManagerChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn invalid(error: ProtocolError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
