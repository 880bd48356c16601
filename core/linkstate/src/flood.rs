//! What a neighbour is still to be told, and what it is to be told that we know.
//!
//! Reference: ISO 10589 §7.3.15 (the flags SRM and SSN are [`Flood::queue`] and the acknowledgements
//! here), RFC 2328 §13.3 and §13.5. A neighbour that comes up is told everything; its summaries take
//! back what it has already (ISO 10589 §7.3.17). What is under way without acknowledgement is bounded,
//! so that a full database neither drowns a slow neighbour nor a lossy link.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::Instant;

use crate::ids::{LsaHeader, LsaId, Version};

/// The wait for an acknowledgement is doubled so often.
const DOUBLINGS: u32 = 3;

/// An advertisement that was sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Flight {
    version: Version,
    again: Instant,
    tries: u32,
}

/// What is to be told to one neighbour.
#[derive(Debug, Default)]
pub(crate) struct Flood {
    /// Not sent yet.
    queue: BTreeSet<LsaId>,
    flight: BTreeMap<LsaId, Flight>,
    acks: BTreeMap<LsaId, Version>,
    ack_at: Option<Instant>,
    /// Nothing is sent before this, so that the neighbour's summaries can come first, or more can go with
    /// it.
    pub(crate) wait: Option<Instant>,
}

impl Flood {
    /// The neighbour is to have what we have of this.
    pub(crate) fn enqueue(&mut self, id: LsaId) {
        self.flight.remove(&id);
        self.queue.insert(id);
    }

    /// The neighbour has this version, or a newer one. `ours` is what we have.
    pub(crate) fn knows(&mut self, id: LsaId, theirs: Version, ours: Option<Version>) {
        if ours.is_none_or(|ours| theirs >= ours) {
            self.queue.remove(&id);
            self.flight.remove(&id);
        }
    }

    /// The neighbour is to be told that we have this version.
    pub(crate) fn acknowledge(&mut self, now: Instant, wait: Duration, header: LsaHeader) {
        let version = self.acks.entry(header.id).or_insert(header.version);
        *version = header.version.max(*version);
        self.ack_at = self.ack_at.or(Some(now + wait));
    }

    /// The acknowledgements that are to be sent, if it is time to, or `full` would fill a message.
    pub(crate) fn take_acks(&mut self, now: Instant, full: usize) -> Vec<LsaHeader> {
        if self.acks.len() < full && self.ack_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.ack_at = None;
        let acks = std::mem::take(&mut self.acks);
        acks.into_iter().map(|(id, version)| LsaHeader { id, version }).collect()
    }

    /// What is to be sent now, for the first time or again. `version` says what we have, if anything.
    pub(crate) fn take_due(
        &mut self,
        now: Instant,
        retransmit: Duration,
        window: usize,
        version: impl Fn(&LsaId) -> Option<Version>,
    ) -> (Vec<LsaId>, usize) {
        if self.wait.is_some_and(|until| until > now) {
            return (Vec::new(), 0);
        }
        self.wait = None;
        let mut due = Vec::new();
        for (id, flight) in &mut self.flight {
            if flight.again <= now {
                flight.tries += 1;
                flight.again = now + retransmit * (1 << flight.tries.min(DOUBLINGS));
                due.push(*id);
            }
        }
        let again = due.len();
        while self.flight.len() < window
            && let Some(id) = self.queue.pop_first()
        {
            if let Some(version) = version(&id) {
                self.flight.insert(id, Flight { version, again: now + retransmit, tries: 0 });
                due.push(id);
            }
        }
        // What has expired meanwhile is nothing to tell.
        self.flight.retain(|id, flight| version(id) == Some(flight.version));
        (due, again)
    }

    /// Whether the neighbour knows all that we know.
    pub(crate) fn is_complete(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// How much the neighbour is still to be told.
    pub(crate) fn outstanding(&self) -> usize {
        self.queue.len() + self.flight.len()
    }

    pub(crate) fn deadline(&self, window: usize) -> Option<Instant> {
        let sending = match self.wait {
            Some(until) if !self.is_complete() => Some(until),
            Some(_) => None,
            None if !self.queue.is_empty() && self.flight.len() < window => Some(Instant::ZERO),
            None => self.flight.values().map(|flight| flight.again).min(),
        };
        sending.into_iter().chain(self.ack_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    const WAIT: Duration = Duration::from_millis(250);

    fn id(number: u8) -> LsaId {
        LsaId { origin: NodeId([number; 20]), fragment: 0 }
    }

    fn version(sequence: u64) -> Version {
        Version { sequence, digest: [0; 16] }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_after_doubling_waits() {
        let mut flood = Flood::default();
        flood.enqueue(id(1));
        assert_eq!(flood.deadline(4), Some(Instant::ZERO));
        let mut sent = Vec::new();
        for _ in 0..7 {
            let now = flood.deadline(4).unwrap();
            let due = flood.take_due(now, WAIT, 4, |_| Some(version(1)));
            assert_eq!(due.0, [id(1)]);
            sent.push(now.since(Instant::ZERO).as_millis());
        }
        assert_eq!(sent, [0, 250, 750, 1750, 3750, 5750, 7750]);
        flood.knows(id(1), version(0), Some(version(1)));
        assert!(!flood.is_complete(), "an old version says nothing");
        flood.knows(id(1), version(1), Some(version(1)));
        assert!(flood.is_complete() && flood.deadline(4).is_none());
    }

    #[test]
    fn no_more_is_under_way_than_the_window_allows() {
        let mut flood = Flood::default();
        (1..=5).for_each(|number| flood.enqueue(id(number)));
        let take = |flood: &mut Flood| flood.take_due(at(1), WAIT, 2, |_| Some(version(1))).0;
        assert_eq!(take(&mut flood), [id(1), id(2)]);
        assert_eq!(take(&mut flood), []);
        flood.knows(id(1), version(1), Some(version(1)));
        assert_eq!(take(&mut flood), [id(3)]);
        assert_eq!(flood.outstanding(), 4);
    }

    #[test]
    fn what_is_gone_is_not_sent() {
        let mut flood = Flood::default();
        flood.enqueue(id(1));
        assert_eq!(flood.take_due(at(1), WAIT, 2, |_| None).0, []);
        assert!(flood.is_complete());
    }

    #[test]
    fn acknowledgements_wait_for_each_other_but_not_long() {
        let (mut flood, wait) = (Flood::default(), Duration::from_millis(10));
        let header = |number, sequence| LsaHeader { id: id(number), version: version(sequence) };
        flood.acknowledge(at(0), wait, header(1, 1));
        flood.acknowledge(at(5), wait, header(1, 2));
        flood.acknowledge(at(5), wait, header(2, 1));
        assert_eq!(flood.take_acks(at(9), 10), []);
        assert_eq!(flood.take_acks(at(10), 10), [header(1, 2), header(2, 1)]);
        flood.acknowledge(at(20), wait, header(1, 1));
        assert_eq!(flood.take_acks(at(20), 1), [header(1, 1)], "a full message does not wait");
        assert_eq!(flood.take_acks(at(40), 1), []);
    }
}
