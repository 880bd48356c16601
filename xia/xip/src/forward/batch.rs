//! Batches: packets wait for memory together.
//!
//! A look-up waits for the slot, then for the entry behind it, and a packet's next step waits for the look-up;
//! but packets do not wait for each other. So all slots are asked for first, then all entries, then the packets
//! are routed one after the other, with what they need close to the processor. What passed through a node goes
//! another round.

use std::hint::black_box;

use weft_base::{Instant, Packet, PortId};

use super::dst::{Key, Probe};
use super::{CheckedPacket, DropReason, Forwarder, Trip, Verdict};
use crate::{Targets, Xid, XipPacket};

/// A packet's next step: where its edges lead, and where the decision would be.
pub(super) struct Ahead {
    targets: Targets,
    key: Key,
    probe: Probe,
}

/// The packets of a round with their next steps. Kept for their memory, empty between two batches.
#[derive(Default)]
pub(super) struct Round {
    packets: Vec<CheckedPacket>,
    ahead: Vec<Ahead>,
    passed: Vec<CheckedPacket>,
}

impl Forwarder {
    /// Routes packets as [`Forwarder::route`] does each of them, and empties the list. Some 64 at once
    /// are enough. Verdicts on packets with the same destination keep the order of the packets.
    pub fn route_batch(&mut self, now: Instant, packets: &mut Vec<Packet>, out: &mut Vec<Verdict>) {
        if packets.len() < 2 || self.tracer.is_on() || !self.dst.is_on() {
            if packets.len() > 1 {
                packets.iter().for_each(|packet| self.prefetch(packet));
            }
            packets.drain(..).for_each(|packet| self.route(now, packet, out));
            return;
        }
        let mut round = std::mem::take(&mut self.round);
        for packet in packets.drain(..) {
            if let Some(packet) = self.receive(packet) {
                self.look_ahead(packet, &mut round);
            }
        }
        while !round.packets.is_empty() {
            self.fetch(&round);
            let Round { packets, ahead, passed } = &mut round;
            for (packet, ahead) in packets.drain(..).zip(ahead.drain(..)) {
                let mut trip = self.trip(now, packet_port(&packet));
                let Ahead { targets, key, probe } = ahead;
                passed.extend(self.go_ahead(packet, &targets, Some((&key, probe)), &mut trip, out));
                self.route_pending(&mut trip, out);
            }
            let mut passed = std::mem::take(&mut round.passed);
            passed.drain(..).for_each(|packet| self.look_ahead(packet, &mut round));
            round.passed = passed;
        }
        self.round = round;
    }

    /// Works out a packet's next step and adds both to the round.
    #[inline]
    fn look_ahead(&mut self, packet: CheckedPacket, round: &mut Round) {
        let Some(targets) = self.targets(&packet) else { return };
        let key = Key::of(&packet, &targets, packet_port(&packet) != PortId::NONE);
        let probe = self.dst.probe(&key);
        black_box(self.dst.fetch_slot(probe));
        round.packets.push(packet);
        round.ahead.push(Ahead { targets, key, probe });
    }

    /// Has the entries of a round brought near, and of packets that have none what principals will need.
    fn fetch(&self, round: &Round) {
        for (packet, ahead) in round.packets.iter().zip(&round.ahead) {
            match self.dst.fetch_slot(ahead.probe) {
                Some(entry) => {
                    black_box(self.dst.fetch_entry(entry));
                }
                None => self.prefetch_rows(packet, &ahead.targets),
            }
        }
    }

    /// Tells the principals of all XIDs in the packet's destination that they may be looked up.
    fn prefetch(&self, packet: &Packet) {
        let Ok(view) = XipPacket::new_checked(packet.bytes()) else { return };
        (0..view.destination_rows()).for_each(|row| self.prefetch_xid(view.destination_xid(row)));
    }

    fn prefetch_rows(&self, packet: &CheckedPacket, rows: &Targets) {
        rows.iter().for_each(|row| self.prefetch_xid(packet.destination_xid(usize::from(*row))));
    }

    fn prefetch_xid(&self, xid: Option<Xid>) {
        let Some(xid) = xid else { return };
        if let Some(principal) = self.principals.get(xid.kind) {
            principal.prefetch(&xid);
        }
    }

    /// What stays the same for a packet from `port`.
    pub(super) fn trip(&self, now: Instant, port: PortId) -> Trip {
        Trip { received: port != PortId::NONE, copies_left: self.limits.copies, time: now }
    }

    /// The rows that a packet may go to next; none if it cannot go on, which is counted.
    #[inline]
    pub(super) fn targets(&mut self, packet: &CheckedPacket) -> Option<Targets> {
        match packet.candidate_edges() {
            Ok(targets) => Some(targets),
            Err(crate::EdgesError::AtSink) => {
                self.drop_packet(DropReason::AtSink);
                None
            }
            Err(_) => {
                self.drop_packet(DropReason::MalformedEdges);
                None
            }
        }
    }
}

/// Where a packet came in.
#[inline]
fn packet_port(packet: &CheckedPacket) -> PortId {
    packet.inner().meta.port
}
