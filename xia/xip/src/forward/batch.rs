//! Batches: packets wait for memory together.
//!
//! A look-up waits for the slot, then for the entry behind it, and a packet's next step waits for the look-up;
//! but packets do not wait for each other. So all slots are asked for first, then all entries; then the decisions
//! are carried out on the packets where they lie. What passed through a node goes another round. In the end
//! the packets leave in their order, and those that the cache has nothing for are walked one by one.

use weft_base::{Instant, Packet, PortId};

use super::cached::Place;
use super::{Activity, DropReason, Forwarder, Trip, Verdict, spend_hop};
use crate::forward::dst::{CacheActivity, Decision};
use crate::principal::SocketId;
use crate::{Targets, Xid, XipPacket};

/// What a batch knows of one of its packets. It is written where it lies: a key can be long.
#[derive(Default)]
pub(super) struct Ahead {
    fate: Fate,
    place: Place,
}

/// What is to become of a packet.
#[derive(Clone, Copy, Default)]
enum Fate {
    /// It has a place where the cache may have a decision.
    #[default]
    Looking,
    /// Its link header is in place.
    Transmit(PortId),
    Deliver(SocketId),
    Drop(DropReason),
    /// It has to be walked from its last node.
    Walk,
}

impl Forwarder {
    /// Routes packets as [`Forwarder::route`] does each of them, and empties the list. Some 64 at once
    /// are enough.
    pub fn route_batch(&mut self, now: Instant, packets: &mut Vec<Packet>, out: &mut Vec<Verdict>) {
        if packets.len() < 2 || self.tracer.is_on() || !self.dst.is_on() {
            if packets.len() > 1 {
                packets.iter().for_each(|packet| self.prefetch(packet));
            }
            packets.drain(..).for_each(|packet| self.route(now, packet, out));
            return;
        }
        let mut all = std::mem::take(&mut self.ahead);
        all.resize_with(packets.len().max(all.len()), Ahead::default);
        let ahead = &mut all[..packets.len()];
        packets.iter_mut().zip(&mut *ahead).for_each(|(packet, ahead)| {
            self.look_ahead(packet, ahead);
        });
        while self.fetch(now, packets, ahead) {
            for (packet, ahead) in packets.iter_mut().zip(&mut *ahead) {
                if let Fate::Looking = ahead.fate {
                    ahead.fate = self.carry_out(now, packet, &ahead.place);
                    if let Fate::Looking = ahead.fate {
                        self.look_ahead_again(packet, ahead);
                    }
                }
            }
        }
        for (packet, ahead) in packets.drain(..).zip(ahead) {
            self.let_go(now, packet, ahead.fate, out);
        }
        self.ahead = all;
    }

    /// Makes the receive checks, cuts off what the link has added, and works out where the cache may have a
    /// decision.
    #[inline]
    fn look_ahead(&mut self, packet: &mut Packet, ahead: &mut Ahead) {
        let received = packet.meta.port != PortId::NONE;
        self.activity.add(if received { Activity::Received } else { Activity::Originated }, 1);
        let Ok(view) = XipPacket::new_checked(packet.bytes()) else {
            ahead.fate = Fate::Drop(DropReason::Malformed);
            return;
        };
        self.find_place(&view, received, ahead);
        let len = view.total_len();
        packet.truncate(len);
    }

    /// The next step of a packet that has passed through a node.
    fn look_ahead_again(&self, packet: &Packet, ahead: &mut Ahead) {
        let received = packet.meta.port != PortId::NONE;
        self.find_place(&XipPacket::checked_before(packet.bytes()), received, ahead);
    }

    #[inline]
    fn find_place(&self, packet: &XipPacket<&[u8]>, received: bool, ahead: &mut Ahead) {
        let Ok(targets) = packet.candidate_edges() else {
            // It is counted there.
            ahead.fate = Fate::Walk;
            return;
        };
        ahead.fate = Fate::Looking;
        ahead.place.key.set(packet, &targets, received);
        ahead.place.probe = self.dst.probe(&ahead.place.key);
        self.dst.fetch_slot(ahead.place.probe);
    }

    /// Has the entries brought near, and of packets that have none what principals will need. False if no
    /// packet looks for anything.
    fn fetch(&self, now: Instant, packets: &[Packet], ahead: &[Ahead]) -> bool {
        let mut any = false;
        // The packets of a batch come from one port, as a rule.
        let (mut port, mut room) = (PortId::NONE, u32::MAX);
        for (packet, ahead) in packets.iter().zip(ahead) {
            if let Fate::Looking = ahead.fate {
                any = true;
                if !self.dst.fetch_entry(ahead.place.probe) {
                    if packet.meta.port != port {
                        port = packet.meta.port;
                        room = self.slow_path.room(now, port);
                    }
                    if room > 0 {
                        room -= 1;
                        self.prefetch(packet);
                    }
                }
            }
        }
        any
    }

    /// Does with a packet what the cache says. It still looks when it has passed through a node.
    #[inline]
    fn carry_out(&mut self, now: Instant, packet: &mut Packet, place: &Place) -> Fate {
        let received = packet.meta.port != PortId::NONE;
        let Some((decision, slot)) = self.dst.find(&place.key, place.probe) else {
            // A flood shall not cost more than this.
            if received && self.slow_path.is_used_up(now, packet.meta.port) {
                self.cache_activity.add(CacheActivity::Miss, 1);
                return Fate::Drop(DropReason::SlowPathFull);
            }
            return Fate::Walk;
        };
        self.cache_activity.add(CacheActivity::Hit, 1);
        let mut view = XipPacket::checked_before(packet.bytes_mut());
        match decision {
            Decision::Forward(hop) => {
                if !spend_hop(&mut view, received) {
                    let trip = self.trip(now, packet.meta.port);
                    let view = XipPacket::checked_before(packet.bytes());
                    self.note_drop(&view, DropReason::HopLimit, &trip);
                    return Fate::Drop(DropReason::HopLimit);
                }
                match self.egress.frame(hop.port, hop.link, packet) {
                    Ok(()) => Fate::Transmit(hop.port),
                    Err(reason) => {
                        let trip = self.trip(now, packet.meta.port);
                        self.note_unframed(packet, reason, hop.port, &trip);
                        Fate::Drop(reason)
                    }
                }
            }
            Decision::Drop(reason) => {
                let trip = self.trip(now, packet.meta.port);
                self.note_drop(&XipPacket::checked_before(packet.bytes()), reason, &trip);
                Fate::Drop(reason)
            }
            Decision::Through | Decision::Deliver(_) => {
                let Some(row) = view.take_edge(usize::from(slot)) else { return Fate::Walk };
                match (decision, view.is_sink(usize::from(row))) {
                    (Decision::Deliver(socket), true) => Fate::Deliver(socket),
                    (Decision::Deliver(_), false) => Fate::Drop(DropReason::NotPassable),
                    (_, true) => Fate::Drop(DropReason::NotASink),
                    (_, false) => Fate::Looking,
                }
            }
        }
    }

    fn let_go(&mut self, now: Instant, packet: Packet, fate: Fate, out: &mut Vec<Verdict>) {
        match fate {
            Fate::Transmit(port) => {
                self.activity.add(Activity::Forwarded, 1);
                out.push(Verdict::Transmit { port, packet });
            }
            Fate::Deliver(socket) => {
                self.activity.add(Activity::Delivered, 1);
                out.push(Verdict::Deliver { socket, packet });
            }
            Fate::Drop(reason) => {
                self.drop_packet(reason);
            }
            Fate::Looking | Fate::Walk => {
                let mut trip = self.trip(now, packet.meta.port);
                self.walk(XipPacket::checked_before(packet), &mut trip, out);
                self.route_pending(&mut trip, out);
            }
        }
    }

    /// Tells the principals of all XIDs in the packet's destination that they may be looked up.
    fn prefetch(&self, packet: &Packet) {
        let Ok(view) = XipPacket::new_checked(packet.bytes()) else { return };
        (0..view.destination_rows()).for_each(|row| self.prefetch_xid(view.destination_xid(row)));
    }

    fn prefetch_xid(&self, xid: Option<Xid>) {
        let Some(xid) = xid else { return };
        if let Some(principal) = self.principals.get(xid.kind) {
            principal.prefetch(&xid);
        }
    }

    /// What stays the same for a packet from `port`.
    pub(super) fn trip(&self, now: Instant, port: PortId) -> Trip {
        Trip {
            from: port,
            received: port != PortId::NONE,
            copies_left: self.limits.copies,
            is_branched: false,
            time: now,
        }
    }

    /// Where the cache may have the decision for a packet whose edges lead to `targets`.
    #[inline]
    pub(super) fn place_of<T: AsRef<[u8]>>(
        &self,
        packet: &XipPacket<T>,
        targets: &Targets,
        received: bool,
    ) -> Place {
        let key = super::dst::Key::of(packet, targets, received);
        let probe = self.dst.probe(&key);
        Place { key, probe }
    }
}
