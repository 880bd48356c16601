//! Closing descriptors that somebody else has chosen.
//!
//! close(2) may wait: a file of FUSE or NFS is told of every close and has to answer (`flush`), and a TCP
//! socket may linger. So a descriptor that an application sent, and that is not what it should be, is
//! closed on a thread that has nothing else to do. Should that wait for ever, descriptors that come later
//! stay open, until this process has no room for more and takes none; whoever is served already does
//! not notice.
//!
//! Reference: close(2), socket(7) (`SO_LINGER`), `filp_flush` in fs/open.c of the Linux kernel.

use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Closes descriptors without waiting for it.
pub(crate) fn dispose(descriptors: impl IntoIterator<Item = OwnedFd>) {
    static CLOSER: OnceLock<Option<Sender<OwnedFd>>> = OnceLock::new();
    for descriptor in descriptors {
        let closer = CLOSER.get_or_init(start).as_ref();
        let left = match closer {
            Some(closer) => closer.send(descriptor).err().map(|error| error.0),
            None => Some(descriptor),
        };
        // Without a thread it stays open: better to have one less than to wait for ever.
        let _ = left.map(IntoRawFd::into_raw_fd);
    }
}

fn start() -> Option<Sender<OwnedFd>> {
    let (sender, receiver) = channel();
    let closer = thread::Builder::new().name("flow-closer".to_owned());
    closer.spawn(move || receiver.into_iter().for_each(drop::<OwnedFd>)).ok()?;
    Some(sender)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn descriptors_are_closed() {
        for _ in 0..3 {
            let (mut reader, writer) = std::io::pipe().unwrap();
            dispose([writer.into()]);
            // The end comes when the last writing end is closed.
            assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        }
    }
}
