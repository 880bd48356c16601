//! What is special about the ends of connections between nodes.

use weft_base::{ChannelId, Instant};

use super::{ChannelCount, Channels, EPHEMERAL, End};
use crate::Event;
use crate::sim::hash::digest;
use crate::sim::ids::{EndId, ProcessId};
use crate::sim::streams::Wire;
use crate::sim::world::World;

impl Channels {
    /// A TCP port that was not given out for long.
    pub(in crate::sim) fn give_port(&mut self) -> u16 {
        let port = EPHEMERAL.start() + self.given % EPHEMERAL.len() as u16;
        self.given = self.given.wrapping_add(1);
        port
    }

    /// An open end.
    fn open(&self, id: EndId) -> Option<&End> {
        self.ends.get(id.index())?.as_ref()
    }

    /// How things come to an end from another node.
    pub(in crate::sim) fn wire(&self, id: EndId) -> Option<Wire> {
        self.open(id)?.wire.as_deref().copied()
    }

    /// Says how things come to an end.
    pub(in crate::sim) fn set_wire(&mut self, id: EndId, wire: Wire) {
        let Some(end) = self.end(id) else { return };
        match &mut end.wire {
            Some(before) => **before = wire,
            None => end.wire = Some(Box::new(wire)),
        }
    }

    /// The other end, unless it is closed.
    pub(in crate::sim) fn peer(&self, id: EndId) -> Option<EndId> {
        self.open(id)?.peer
    }

    /// Whose an end is, and what that calls it.
    pub(in crate::sim) fn holder(&self, id: EndId) -> Option<(ProcessId, ChannelId)> {
        self.open(id)?.holder
    }

    /// When the last thing comes that is on its way to an end.
    pub(super) fn last_at(&self, id: EndId) -> Instant {
        let last = self.open(id).and_then(|end| end.incoming.back());
        last.map_or(Instant::ZERO, |(at, _)| *at)
    }

    /// Whether something has come to an end by now.
    pub(in crate::sim) fn is_due(&self, id: EndId, now: Instant) -> bool {
        let first = self.open(id).and_then(|end| end.incoming.front());
        first.is_some_and(|(at, _)| *at <= now)
    }

    /// Nothing comes to an end before a time.
    pub(in crate::sim) fn delay(&mut self, id: EndId, to: Instant) {
        let Some(end) = self.end(id) else { return };
        end.incoming.iter_mut().for_each(|(due, _)| *due = (*due).max(to));
    }

    /// Nothing of what is on its way comes to an end.
    pub(in crate::sim) fn lose(&mut self, id: EndId) {
        let Some(end) = self.end(id) else { return };
        end.incoming.clear();
        let lost = std::mem::take(&mut end.messages);
        end.bytes = 0;
        self.counters.add(ChannelCount::Closed, lost as u64);
    }
}

impl World {
    /// What a node receives on a connection counts for the hash of the world's course.
    pub(super) fn trace_stream(&mut self, id: EndId, events: &[Event]) {
        let holder = self.channels.holder(id);
        let Some((process, _)) = holder.filter(|_| self.channels.wire(id).is_some()) else {
            return;
        };
        let node = self.processes[process.index()].node.index() as u32;
        for event in events {
            let Event::Messages { messages, .. } = event else { continue };
            for message in messages {
                self.network.trace.feed(self.clock.now(), node, digest(message.bytes()));
            }
        }
    }
}
