//! Batches: packets wait for memory together.
//!
//! A look-up waits for the slot, then for the entry behind it, and a packet's next step waits for the look-up;
//! but packets do not wait for each other. So the slots of a group of packets are asked for first, then the entries; then
//! the decisions are carried out on the packets where they lie. While one group waits, others are worked on. What passed
//! through a node goes another round. In the end
//! the packets leave in their order, and those that the cache has nothing for are walked one by one.

use weft_base::{Instant, Packet, PortId};

use super::cached::Place;
use super::{Activity, DropReason, Forwarder, Trip, Verdict, spend_hop};
use crate::forward::dst::{CacheActivity, Guess, HopId, Way};
use crate::principal::SocketId;
use crate::{Targets, Xid, XipPacket};

/// Packets that wait for memory together.
const GROUP: usize = 16;

/// What a batch knows of one of its packets. It is written where it lies: a key can be long.
#[derive(Default)]
pub(super) struct Ahead {
    fate: Fate,
    exit: Exit,
    guess: Guess,
    place: Place,
}

impl Ahead {
    fn leaves(&self) -> bool {
        matches!(self.fate, Fate::Leave)
    }

    #[inline]
    fn leave_by(&mut self, exit: Exit) -> Fate {
        self.exit = exit;
        Fate::Leave
    }
}

/// What is to become of a packet.
#[derive(Clone, Copy, Default)]
enum Fate {
    /// It has a place where the cache may have a decision.
    #[default]
    Looking,
    /// It leaves as it is, to where [`Ahead::exit`] says.
    Leave,
    Drop(DropReason),
    /// It has to be walked from its last node.
    Walk,
}

/// Where a packet leaves.
#[derive(Clone, Copy)]
enum Exit {
    /// By this port; its link header is in place.
    Port(PortId),
    Socket(SocketId),
}

impl Default for Exit {
    fn default() -> Self {
        Self::Port(PortId::NONE)
    }
}

/// How many decisions packets of a port may cause. Those of a batch come from one port, as a rule.
struct Room {
    port: PortId,
    left: u32,
    /// They may cause none, so what the cache has nothing for is dropped.
    is_used_up: bool,
}

/// The packets of a group, with what is known of them; none if there is no such group.
#[inline]
fn group<'a>(
    packets: &'a mut [Packet],
    ahead: &'a mut [Ahead],
    number: Option<usize>,
) -> impl Iterator<Item = (&'a mut Packet, &'a mut Ahead)> {
    let len = packets.len();
    let begin = number.map_or(len, |number| len.min(number * GROUP));
    let group = begin..len.min(begin + GROUP);
    packets[group.clone()].iter_mut().zip(&mut ahead[group])
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
        let received = packets.iter().filter(|packet| packet.meta.port != PortId::NONE).count();
        self.activity.add(Activity::Received, received as u64);
        self.activity.add(Activity::Originated, (packets.len() - received) as u64);
        let mut room = Room { port: PortId::NONE, left: u32::MAX, is_used_up: false };
        let (mut is_first, mut looks) = (true, true);
        while looks {
            looks = false;
            for turn in 0..packets.len().div_ceil(GROUP) + 2 {
                if is_first {
                    let group = group(packets, ahead, Some(turn));
                    group.for_each(|(packet, ahead)| self.look_ahead(packet, ahead));
                }
                let waits = group(packets, ahead, turn.checked_sub(1));
                waits.for_each(|(packet, ahead)| self.fetch(now, packet, ahead, &mut room));
                for (packet, ahead) in group(packets, ahead, turn.checked_sub(2)) {
                    if let Fate::Looking = ahead.fate {
                        looks |= self.go_on(now, packet, ahead);
                    }
                }
            }
            is_first = false;
        }
        self.let_go(now, packets, ahead, out);
        packets.clear();
        self.ahead = all;
    }

    /// Makes the receive checks, cuts off what the link has added, and works out where the cache may have a
    /// decision.
    #[inline]
    fn look_ahead(&self, packet: &mut Packet, ahead: &mut Ahead) {
        let received = packet.meta.port != PortId::NONE;
        let Ok(view) = XipPacket::new_checked(packet.bytes()) else {
            ahead.fate = Fate::Drop(DropReason::Malformed);
            return;
        };
        let len = view.total_len();
        self.find_place(&view, received, ahead);
        packet.truncate(len);
    }

    /// Does with a packet what the cache says. True if it has passed through a node, and has to be looked for again.
    #[inline]
    fn go_on(&mut self, now: Instant, packet: &mut Packet, ahead: &mut Ahead) -> bool {
        ahead.fate = self.carry_out(now, packet, ahead);
        let looks = matches!(ahead.fate, Fate::Looking);
        if looks {
            self.look_ahead_again(packet, ahead);
        }
        looks
    }

    /// The next step of a packet that has passed through a node.
    #[inline(never)]
    fn look_ahead_again(&self, packet: &Packet, ahead: &mut Ahead) {
        let received = packet.meta.port != PortId::NONE;
        self.find_place(&XipPacket::checked_before(packet.bytes()), received, ahead);
    }

    #[inline(always)]
    fn find_place(&self, packet: &XipPacket<&[u8]>, received: bool, ahead: &mut Ahead) {
        let Ok(targets) = packet.candidate_edges() else {
            // It is counted there.
            ahead.fate = Fate::Walk;
            return;
        };
        ahead.fate = Fate::Looking;
        let probe = self.dst.look_for(packet, &targets, received, &mut ahead.place.key);
        ahead.place.probe = probe;
        self.dst.fetch_slots(probe);
    }

    /// Has the entry brought near, or, if there is none, what principals will need. A packet that may not cause a decision
    /// goes no further: a flood shall not cost more than this.
    #[inline]
    fn fetch(&mut self, now: Instant, packet: &Packet, ahead: &mut Ahead, room: &mut Room) {
        if !matches!(ahead.fate, Fate::Looking) {
            return;
        }
        ahead.guess = self.dst.fetch_entry(ahead.place.probe);
        if ahead.guess == Guess::Nothing {
            let port = packet.meta.port;
            if port != room.port {
                let is_used_up = port != PortId::NONE && self.slow_path.is_used_up(now, port);
                *room = Room { port, left: self.slow_path.room(now, port), is_used_up };
            }
            if room.is_used_up {
                self.cache_activity.add(CacheActivity::Miss, 1);
                ahead.fate = Fate::Drop(DropReason::SlowPathFull);
            } else if room.left > 0 {
                room.left -= 1;
                self.prefetch(packet);
            }
        }
    }

    /// Does with a packet what the cache says. It still looks when it has passed through a node.
    #[inline]
    fn carry_out(&mut self, now: Instant, packet: &mut Packet, ahead: &mut Ahead) -> Fate {
        let received = packet.meta.port != PortId::NONE;
        // Nothing has come or gone since the guess.
        let place = &ahead.place;
        let found = self.dst.find_guessed(&place.key, place.probe, ahead.guess);
        let Some(found) = found else {
            if received && self.slow_path.is_used_up(now, packet.meta.port) {
                self.cache_activity.add(CacheActivity::Miss, 1);
                return Fate::Drop(DropReason::SlowPathFull);
            }
            return Fate::Walk;
        };
        self.cache_activity.add(CacheActivity::Hit, 1);
        if let Some(hop) = found.hop() {
            return self.depart_ahead(now, packet, hop, ahead);
        }
        let mut view = XipPacket::checked_before(packet.bytes_mut());
        match found.way() {
            Way::Forward(hop) => self.depart_ahead(now, packet, hop, ahead),
            Way::Drop(reason) => {
                let trip = self.trip(now, packet.meta.port);
                self.note_drop(&XipPacket::checked_before(packet.bytes()), reason, &trip);
                Fate::Drop(reason)
            }
            way @ (Way::Through | Way::Deliver(_)) => {
                let slot = usize::from(found.slot());
                let Some(row) = view.take_edge(slot) else { return Fate::Walk };
                match (way, view.is_sink(usize::from(row))) {
                    (Way::Deliver(socket), true) => ahead.leave_by(Exit::Socket(socket)),
                    (Way::Deliver(_), false) => Fate::Drop(DropReason::NotPassable),
                    (_, true) => Fate::Drop(DropReason::NotASink),
                    (_, false) => Fate::Looking,
                }
            }
        }
    }

    /// Sends the packet to a neighbour, as [`Forwarder::depart`] does.
    #[inline(always)]
    fn depart_ahead(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        hop: HopId,
        ahead: &mut Ahead,
    ) -> Fate {
        let received = packet.meta.port != PortId::NONE;
        if !spend_hop(&mut XipPacket::checked_before(packet.bytes_mut()), received) {
            let trip = self.trip(now, packet.meta.port);
            let view = XipPacket::checked_before(packet.bytes());
            self.note_drop(&view, DropReason::HopLimit, &trip);
            return Fate::Drop(DropReason::HopLimit);
        }
        let departure = self.dst.departure(hop);
        let port = departure.hop().port;
        match departure.frame(packet) {
            Ok(()) => ahead.leave_by(Exit::Port(port)),
            Err(reason) => {
                let trip = self.trip(now, packet.meta.port);
                self.note_unframed(packet, reason, port, &trip);
                Fate::Drop(reason)
            }
        }
    }

    /// The packets leave in their order. Those that leave as they are go in runs, each packet straight from its place
    /// to that of its verdict.
    fn let_go(
        &mut self,
        now: Instant,
        mut packets: &mut [Packet],
        mut ahead: &[Ahead],
        out: &mut Vec<Verdict>,
    ) {
        while let Some(first) = ahead.first() {
            let leaves = first.leaves();
            let end = ahead.iter().position(|ahead| ahead.leaves() != leaves);
            let (run, rest) = ahead.split_at(end.unwrap_or(ahead.len()));
            ahead = rest;
            let (these, others) = packets.split_at_mut(run.len());
            packets = others;
            let these = these.iter_mut().zip(run);
            if leaves {
                self.count_leaving(run);
                out.extend(these.map(|(packet, ahead)| match ahead.exit {
                    Exit::Port(port) => Verdict::Transmit { port, packet: packet.take() },
                    Exit::Socket(socket) => Verdict::Deliver { socket, packet: packet.take() },
                }));
            } else {
                these.for_each(|(packet, ahead)| self.finish(now, packet, ahead.fate, out));
            }
        }
    }

    fn count_leaving(&mut self, run: &[Ahead]) {
        let forwarded = run.iter().filter(|ahead| matches!(ahead.exit, Exit::Port(_))).count();
        self.activity.add(Activity::Forwarded, forwarded as u64);
        self.activity.add(Activity::Delivered, (run.len() - forwarded) as u64);
    }

    /// Counts a packet that is dropped, which stays where it is until all of them go; or walks it on.
    #[inline]
    fn finish(&mut self, now: Instant, packet: &mut Packet, fate: Fate, out: &mut Vec<Verdict>) {
        if let Fate::Drop(reason) = fate {
            self.drop_packet(reason);
            return;
        }
        let mut trip = self.trip(now, packet.meta.port);
        self.walk(XipPacket::checked_before(packet.take()), &mut trip, out);
        self.route_pending(&mut trip, out);
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
        let mut place = Place::default();
        place.probe = self.dst.look_for(packet, targets, received, &mut place.key);
        place
    }
}
