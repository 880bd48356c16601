//! The bounded queue in front of a port, or of a channel of packets.

use std::collections::VecDeque;

use weft_port::datagrams::BATCH;

/// Packets or messages that wait for the end of the turn, or for a kernel that takes no more.
pub(super) struct Outgoing<T> {
    pub(super) queue: VecDeque<T>,
    /// The kernel takes no more until it says that it is writable.
    pub(super) blocked: bool,
    limit: usize,
    listed: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits; the owner has to be flushed at the end of the turn. Said once per turn.
    First,
    /// It waits like those before it.
    Queued,
    /// It waits, and there is a whole batch: flush now.
    FullBatch,
    /// There was no room.
    Dropped,
}

impl<T> Outgoing<T> {
    /// An empty queue that keeps up to `limit` packets, but no fewer than one batch.
    pub(super) fn new(limit: usize) -> Self {
        Self { queue: VecDeque::new(), blocked: false, limit: limit.max(BATCH), listed: false }
    }

    /// Adds a packet.
    pub(super) fn push(&mut self, packet: T) -> Pushed {
        if self.queue.len() >= self.limit {
            return Pushed::Dropped;
        }
        self.queue.push_back(packet);
        if self.blocked {
            Pushed::Queued
        } else if self.queue.len() >= BATCH {
            Pushed::FullBatch
        } else if self.listed {
            Pushed::Queued
        } else {
            self.listed = true;
            Pushed::First
        }
    }

    /// The owner is being flushed because it was listed; says `First` again afterwards.
    pub(super) fn unlist(&mut self) {
        self.listed = false;
    }
}

#[cfg(test)]
mod tests {
    use weft_base::Packet;

    use super::*;

    #[test]
    fn a_queue_is_listed_once_per_turn_and_flushed_by_the_batch() {
        let mut outgoing = Outgoing::new(1000);
        assert_eq!(outgoing.push(Packet::new()), Pushed::First);
        for _ in 2..BATCH {
            assert_eq!(outgoing.push(Packet::new()), Pushed::Queued);
        }
        assert_eq!(outgoing.push(Packet::new()), Pushed::FullBatch);
        outgoing.queue.clear();
        assert_eq!(outgoing.push(Packet::new()), Pushed::Queued, "still listed");
        outgoing.unlist();
        assert_eq!(outgoing.push(Packet::new()), Pushed::First);
    }

    #[test]
    fn a_blocked_queue_fills_up_to_its_limit() {
        let mut outgoing = Outgoing::new(100);
        outgoing.blocked = true;
        for _ in 0..100 {
            assert_eq!(outgoing.push(Packet::new()), Pushed::Queued);
        }
        assert_eq!(outgoing.push(Packet::new()), Pushed::Dropped);
        assert_eq!(outgoing.queue.len(), 100);
    }
}
