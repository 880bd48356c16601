//! The signals that the launcher waits for.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// A child ended.
    Child,
    /// The node is to end.
    End,
}

/// A pipe for each signal, readable when that came.
pub(super) struct Signals {
    pipes: Vec<(UnixStream, SigId, Arrived)>,
}

impl Signals {
    /// Begins to watch.
    pub(super) fn watch() -> io::Result<Self> {
        let mut signals = Self { pipes: Vec::new() };
        let watched = [
            (SIGCHLD, Arrived::Child),
            (SIGTERM, Arrived::End),
            (SIGINT, Arrived::End),
            // The terminal is gone.
            (SIGHUP, Arrived::End),
        ];
        for (number, meaning) in watched {
            let (receiver, sender) = UnixStream::pair()?;
            receiver.set_nonblocking(true)?;
            let handler = low_level::pipe::register(number, sender)?;
            signals.pipes.push((receiver, handler, meaning));
        }
        Ok(signals)
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.iter().map(|(receiver, ..)| receiver.as_fd())
    }

    /// Empties the pipes; `End` wins.
    pub(super) fn take(&mut self) -> Option<Arrived> {
        let mut arrived = None;
        for (receiver, _, meaning) in &mut self.pipes {
            let came = receiver.read(&mut [0; 256]).unwrap_or(0) > 0;
            if came && arrived != Some(Arrived::End) {
                arrived = Some(*meaning);
            }
        }
        arrived
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (_, handler, _) in &self.pipes {
            low_level::unregister(*handler);
        }
    }
}
