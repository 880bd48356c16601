//! The channel to the manager.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::channel;

/// So many messages may wait for the manager before the launcher listens to it again.
const QUEUE: usize = 256;

/// The launcher's end of the channel.
pub(super) struct Link {
    pub(super) socket: OwnedFd,
    queue: VecDeque<Vec<u8>>,
}

impl Link {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket, queue: VecDeque::new() }
    }

    /// Sends a message when the manager reads.
    pub(super) fn tell(&mut self, bytes: Vec<u8>) {
        self.queue.push_back(bytes);
        self.flush();
    }

    /// Whether the manager reads what it is told, so that more can be done for it.
    pub(super) fn takes_requests(&self) -> bool {
        self.queue.len() < QUEUE
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.takes_requests());
        flags.set(PollFlags::OUT, !self.queue.is_empty());
        flags
    }

    /// Sends what waits, as far as the manager reads.
    pub(super) fn flush(&mut self) {
        while let Some(bytes) = self.queue.front() {
            match channel::send(self.socket.as_fd(), bytes, &[]) {
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return,
                // Sent, or there is nobody; that is seen when the channel is read.
                Ok(()) | Err(_) => self.queue.pop_front(),
            };
        }
    }
}
