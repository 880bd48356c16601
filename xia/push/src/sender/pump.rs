//! What leaves the sender and when: datagrams as the pace allows, announces, progress for people.

use weft_base::{Instant, Packet};

use super::batch::Batch;
use super::{
    Feed, LAST_ANNOUNCE_EVERY, PROGRESS_EVERY, Sender, SenderOutput, Stage, UNPACED_BATCH,
};
use crate::host::HostOutput;
use crate::wire::Announce;

impl Sender {
    /// Sends what may go now.
    pub(super) fn pump(&mut self, now: Instant, out: &mut Vec<SenderOutput>) {
        // With a rate the pacer is the limit.
        let most = if self.config.rate.is_some() { usize::MAX } else { UNPACED_BATCH };
        for _ in 0..most {
            if self.congested || !self.pacer.is_due(now) {
                break;
            }
            let Some(packet) = self.next_datagram(now) else {
                self.feed(now, out);
                break;
            };
            self.pacer.sent(now, packet.len());
            self.summary.datagram_bytes += packet.len() as u64;
            out.push(SenderOutput::Datagram(packet));
            // The block that was taken makes room for the next one to be read.
            self.feed(now, out);
        }
        self.send_progress(now, out);
        if matches!(self.stage, Stage::Closing { left: 0 }) {
            self.finish(now, out);
        }
    }

    fn next_datagram(&mut self, now: Instant) -> Option<Packet> {
        if self.announce_now > 0 || self.announce_at <= now {
            return self.announce(now);
        }
        let Stage::Sending(feed) = &mut self.stage else { return None };
        let object = self.object.as_mut()?;
        loop {
            if now < self.round_begins {
                return None;
            }
            if let Some(batch) = &mut self.batch {
                let size = object.description.symbol_size;
                if let Some((packet, is_source)) = batch.next(object.id, object.kind, size) {
                    self.summary.source_symbols += u64::from(is_source);
                    self.summary.repair_symbols += u64::from(!is_source);
                    return Some(packet);
                }
                self.batch = None;
            }
            let batch = match feed {
                Feed::File(feed) => feed.take(),
                Feed::Stream(feed) => feed.take(),
            }?;
            if batch.round > object.round {
                object.round = batch.round;
                self.summary.rounds = batch.round;
                self.round_begins = now + self.config.round_spacing;
            }
            self.batch = Some(batch);
        }
    }

    fn announce(&mut self, now: Instant) -> Option<Packet> {
        let every = match &mut self.stage {
            Stage::Sending(_) => self.config.announce_every,
            Stage::Closing { left: 0 } => return None,
            Stage::Closing { left } => {
                *left -= 1;
                LAST_ANNOUNCE_EVERY
            }
            _ => return None,
        };
        let object = self.object.as_ref()?;
        self.announce_now = self.announce_now.saturating_sub(1);
        self.announce_at = now + every;
        self.summary.announces += 1;
        let announce = Announce {
            object: object.id,
            kind: object.kind,
            round: u16::try_from(object.round).unwrap_or(u16::MAX),
            description: object.description.clone(),
            total: object.total,
        };
        Some(announce.emit())
    }

    fn send_progress(&mut self, now: Instant, out: &mut Vec<SenderOutput>) {
        let Stage::Sending(feed) = &self.stage else { return };
        let position = self.batch.as_ref().map(Batch::position);
        let (done, total) = match feed {
            Feed::Stream(feed) => (feed.length(), None),
            Feed::File(_) => match position {
                Some(position) => (position, self.summary.total.map(|total| total.length)),
                None => return,
            },
        };
        let round = self.summary.rounds;
        let note = |rate: u64| match round {
            0 => format!("source symbols, {rate} Mbit/s"),
            round => format!("repair round {round}, {rate} Mbit/s"),
        };
        self.progress(now, done, total, note, out);
    }

    /// Reports progress, now and then. `note` is given the rate in Mbit/s.
    pub(super) fn progress(
        &mut self,
        now: Instant,
        done: u64,
        total: Option<u64>,
        note: impl FnOnce(u64) -> String,
        out: &mut Vec<SenderOutput>,
    ) {
        let span = now.since(self.progress_at);
        if span < PROGRESS_EVERY {
            return;
        }
        let bits = (self.summary.datagram_bytes - self.progress_bytes) * 8;
        let rate = bits / u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
        (self.progress_at, self.progress_bytes) = (now, self.summary.datagram_bytes);
        let label = self.summary.name.clone();
        out.push(SenderOutput::Host(HostOutput::Progress { label, done, total, note: note(rate) }));
    }
}
