//! Messages with descriptors, as they are.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};

/// A message and what came with it; `None` at the end.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; 128 * 1024];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let result = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        // Who may not receive descriptors still hears what is said.
        Err(Errno::PERM) => {
            let (count, _) = recv(socket, &mut bytes[..], RecvFlags::empty()).ok()?;
            bytes.truncate(count);
            return (count > 0).then_some((bytes, Vec::new()));
        }
        result => result.ok()?,
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    bytes.truncate(result.bytes);
    (!bytes.is_empty()).then_some((bytes, descriptors))
}

/// Sends a message; whether somebody was there to get it. Without descriptors, as every process may.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[OwnedFd]) -> bool {
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    loop {
        let sent = match borrowed.is_empty() {
            true => rustix::net::send(socket, bytes, SendFlags::NOSIGNAL),
            false => sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL),
        };
        match sent {
            Ok(_) => return true,
            Err(Errno::AGAIN) => {
                let mut fds = [rustix::event::PollFd::from_borrowed_fd(
                    socket,
                    rustix::event::PollFlags::OUT,
                )];
                let _ = rustix::event::poll(&mut fds, None);
            }
            Err(_) => return false,
        }
    }
}
