//! The outgoing side of an interface: a link model and the packets on their way.

use std::collections::VecDeque;

use weft_base::{Instant, Packet};

use super::hash::digest;
use crate::link::LinkModel;

/// A packet on the wire.
#[derive(Debug)]
pub(super) struct Flying {
    /// When it arrives.
    at: Instant,
    /// Stands for its bytes in the trace hash.
    pub(super) digest: u64,
    pub(super) packet: Packet,
}

/// A link model with the packets that it has accepted and that have not arrived.
///
/// Only the head of the line stands in the world's agenda, so that the agenda stays small however
/// many packets are on the wire.
#[derive(Debug)]
pub(super) struct Transmitter {
    pub(super) model: LinkModel,
    /// In order of arrival; equal times in order of sending.
    flight: VecDeque<Flying>,
    /// The earliest entry in the agenda that stands for this transmitter.
    scheduled: Option<Instant>,
    scratch: Vec<(Instant, Packet)>,
}

impl Transmitter {
    pub(super) fn new(model: LinkModel) -> Self {
        Self { model, flight: VecDeque::new(), scheduled: None, scratch: Vec::new() }
    }

    /// Sends `packet`.
    pub(super) fn offer(&mut self, now: Instant, packet: Packet) {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.model.offer(now, packet, &mut scratch);
        for (at, packet) in scratch.drain(..) {
            self.insert(at, packet);
        }
        self.scratch = scratch;
    }

    fn insert(&mut self, at: Instant, packet: Packet) {
        let flying = Flying { at, digest: digest(packet.bytes()), packet };
        if self.flight.back().is_none_or(|last| last.at <= at) {
            self.flight.push_back(flying);
        } else {
            let place = self.flight.partition_point(|other| other.at <= at);
            self.flight.insert(place, flying);
        }
    }

    /// When the agenda must call, if it does not know yet. The caller enters it.
    pub(super) fn unscheduled(&mut self) -> Option<Instant> {
        let head = self.flight.front()?.at;
        if self.scheduled.is_some_and(|scheduled| scheduled <= head) {
            return None;
        }
        self.scheduled = Some(head);
        self.scheduled
    }

    /// Takes the agenda's call for `at`. False if an earlier call has overtaken this one.
    pub(super) fn called(&mut self, at: Instant) -> bool {
        let expected = self.scheduled == Some(at);
        if expected {
            self.scheduled = None;
        }
        expected
    }

    /// Takes the packet that arrives first off the wire, if it arrives by `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Flying> {
        self.flight.pop_front_if(|flying| flying.at <= now)
    }

    /// Packets on the wire.
    pub(super) fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Drops the packets on the wire and returns how many they were.
    pub(super) fn clear(&mut self) -> usize {
        let count = self.flight.len();
        self.flight.clear();
        count
    }
}
