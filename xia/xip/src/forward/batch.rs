//! Batches: packets wait for memory together.
//!
//! A look-up waits for the slot, then for the entry behind it, and a packet's next step waits for the look-up;
//! but packets do not wait for each other. So the slots of a group of packets are asked for first, then the entries; then
//! the decisions are carried out on the packets where they lie. While some groups wait, others are worked on. What passed
//! through a node goes another round. In the end
//! the packets leave in their order, and those that the cache has nothing for are walked one by one.
//!
//! A group is asked for in one row, with nothing else in between: what asks for memory whose address has to be translated
//! first is not done until that is known, and as many wait for it together as the processor can look ahead.
//!
//! The processor can wait for some 24 lines of memory at once. Whoever asks for one more may not be heard, which costs the
//! packet all that it would have waited for; so a group is not larger, and its entries are asked for twice, the second time when
//! most of what the first time has brought is there. What is there already costs next to nothing.

use weft_base::{Instant, Packet, PortId};

use super::verdicts::{Exit, Verdicts};
use super::{Activity, DropReason, Forwarder, Trip};
use crate::forward::dst::{CacheActivity, Found, Guess, HopId, KeyPlace, Tag, Way};
use crate::header::{Glance, Shape};
use crate::{Xid, XipPacket};

/// Packets whose memory is asked for together.
const GROUP: usize = 22;
/// So many groups after a group was asked for it is used.
const LAG: usize = 1;

/// What a batch knows of one of its packets. The key stays in the packet, which is near.
#[derive(Default)]
#[repr(align(32))]
pub(super) struct Ahead {
    key: KeyPlace,
    tag: Tag,
    guess: Guess,
    exit: Exit,
    fate: Fate,
}

const _: () = assert!(size_of::<Ahead>() == 32, "two of them are a cache line");

impl Ahead {
    #[inline]
    fn leave_by(&mut self, exit: Exit) -> Fate {
        self.exit = exit;
        Fate::Leave
    }
}

/// What is to become of a packet.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Fate {
    /// It has a place where the cache may have a decision.
    #[default]
    Looking,
    /// It leaves as it is, to where [`Ahead::exit`] says.
    Leave,
    Drop(DropReason),
    /// It goes several ways at once, which lie behind this edge.
    Several(u8),
    /// It has to be walked from its last node.
    Walk,
}

/// How many decisions packets of a port may cause. Those of a batch come from one port, as a rule.
struct Room {
    port: PortId,
    left: u32,
    /// They may cause none, so what the cache has nothing for is dropped.
    is_used_up: bool,
}

/// What was done with the packets of a batch.
#[derive(Default)]
struct Tally {
    received: usize,
    hits: usize,
    /// That the cache has nothing for and that are dropped for it; those that are walked are counted there.
    refused: usize,
    forwarded: usize,
    delivered: usize,
    /// That have passed through a node, and have to be looked for again.
    passed: usize,
}

/// How the last headers looked: of packets as they came, and of those that have passed through a node.
#[derive(Default)]
struct Shapes {
    came: Shape,
    passed: Shape,
}

/// Some of the packets, and what is known of each.
struct Group<'a> {
    packets: &'a mut [Packet],
    ahead: &'a mut [Ahead],
}

impl Group<'_> {
    /// The packets of the group that comes this many before the one with this number, if there is one.
    #[inline]
    fn part(&mut self, number: usize, before: usize) -> Option<Group<'_>> {
        let begin = number.checked_sub(before)? * GROUP;
        let end = self.packets.len().min(begin + GROUP);
        let packets = self.packets.get_mut(begin..end).filter(|packets| !packets.is_empty())?;
        Some(Group { packets, ahead: self.ahead.get_mut(begin..end)? })
    }
}

impl Forwarder {
    /// Routes packets as [`Forwarder::route`] does each of them, and empties the list. Some 64 at once
    /// are enough.
    pub fn route_batch(&mut self, now: Instant, packets: &mut Vec<Packet>, out: &mut Verdicts) {
        if packets.len() < 2 || self.tracer.is_on() || !self.dst.is_on() {
            if packets.len() > 1 {
                packets.iter().for_each(|packet| self.prefetch(packet));
            }
            packets.drain(..).for_each(|packet| self.route(now, packet, out));
            return;
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.resize_with(packets.len().max(ahead.len()), Ahead::default);
        let known = &mut ahead[..packets.len()];
        if self.route_all(now, Group { packets, ahead: known }) {
            out.append(known.iter().map(|ahead| ahead.exit), packets);
        } else {
            self.let_go(now, Group { packets, ahead: known }, out);
            Packet::drop_all(packets);
        }
        self.ahead = ahead;
    }

    /// Works out what becomes of each packet, and does with it what the cache says. Returns whether all of them leave as they are.
    fn route_all(&mut self, now: Instant, mut all: Group<'_>) -> bool {
        let mut tally = Tally::default();
        let mut room = None;
        let mut shapes = Shapes::default();
        let mut is_first = true;
        while is_first || tally.passed > 0 {
            tally.passed = 0;
            for turn in 0..all.packets.len().div_ceil(GROUP) + 2 * LAG {
                if is_first && let Some(group) = all.part(turn, 0) {
                    self.look_ahead(group, &mut shapes.came, &mut tally);
                }
                if let Some(group) = all.part(turn, LAG + 1) {
                    self.ask_for_entries(group.ahead);
                }
                if let Some(group) = all.part(turn, LAG) {
                    self.fetch(now, group, &mut room, &mut tally);
                }
                if let Some(group) = all.part(turn, 2 * LAG) {
                    self.carry_out(now, group, &mut shapes.passed, &mut tally);
                }
            }
            is_first = false;
        }
        let originated = all.packets.len() - tally.received;
        self.cache_activity.add(CacheActivity::Hit, tally.hits as u64);
        self.cache_activity.add(CacheActivity::Miss, tally.refused as u64);
        self.activity.add(Activity::Received, tally.received as u64);
        self.activity.add(Activity::Originated, originated as u64);
        self.activity.add(Activity::Forwarded, tally.forwarded as u64);
        self.activity.add(Activity::Delivered, tally.delivered as u64);
        tally.forwarded + tally.delivered == all.packets.len()
    }

    /// Makes the receive checks, cuts off what the link has added, and works out where the cache may have a
    /// decision.
    #[inline(never)]
    fn look_ahead(&self, group: Group<'_>, shape: &mut Shape, tally: &mut Tally) {
        let mut received = 0;
        for (packet, ahead) in group.packets.iter_mut().zip(&mut *group.ahead) {
            received += usize::from(packet.meta.port != PortId::NONE);
            match self.find_place(packet, ahead, shape) {
                Some(0) => {}
                Some(surplus) => {
                    let len = packet.len() - surplus;
                    packet.truncate(len);
                }
                None => look_closely(packet, ahead),
            }
        }
        tally.received += received;
        for ahead in group.ahead {
            self.dst.fetch_slots(ahead.tag);
        }
    }

    /// Works out where the cache may have a decision, and says how much the link has added; `None` if there can be no
    /// decision, or the frame has no room for a window.
    #[inline(always)]
    fn find_place(&self, packet: &Packet, ahead: &mut Ahead, shape: &mut Shape) -> Option<usize> {
        let received = packet.meta.port != PortId::NONE;
        let window = packet.window()?;
        let Glance { total_len, xids, edges } = shape.glance(window, packet.len())?;
        ahead.fate = Fate::Looking;
        let key = KeyPlace::new(xids, edges, received);
        ahead.key = key;
        ahead.tag = self.dst.tag(&key.of_packet(window));
        Some(packet.len() - total_len)
    }

    /// Has the entries brought near, or, where there is none, what principals will need. A packet that may not cause a
    /// decision goes no further: a flood shall not cost more than this.
    #[inline(never)]
    fn fetch(
        &mut self,
        now: Instant,
        group: Group<'_>,
        room: &mut Option<Room>,
        tally: &mut Tally,
    ) {
        let mut refused = 0;
        for (packet, ahead) in group.packets.iter().zip(&mut *group.ahead) {
            if ahead.fate != Fate::Looking {
                continue;
            }
            ahead.guess = self.dst.guess(ahead.tag);
            if ahead.guess == Guess::NOTHING && !self.has_room(now, packet, room) {
                ahead.fate = Fate::Drop(DropReason::SlowPathFull);
                refused += 1;
            }
        }
        tally.refused += refused;
        self.ask_for_entries(group.ahead);
    }

    #[inline]
    fn ask_for_entries(&self, group: &[Ahead]) {
        for ahead in group {
            if ahead.guess != Guess::NOTHING {
                self.dst.fetch_entry(ahead.guess);
            }
        }
    }

    /// Whether a packet that the cache has nothing for may cause a decision. If so, it is prepared.
    #[inline]
    fn has_room(&mut self, now: Instant, packet: &Packet, room: &mut Option<Room>) -> bool {
        let port = packet.meta.port;
        let room = match room {
            Some(room) if room.port == port => room,
            _ => room.insert(self.room(now, port)),
        };
        if !room.is_used_up && room.left > 0 {
            room.left -= 1;
            self.prefetch(packet);
        }
        !room.is_used_up
    }

    /// How many decisions packets of a port may cause now.
    fn room(&mut self, now: Instant, port: PortId) -> Room {
        let is_used_up = self.slow_path.is_used_up(now, port);
        Room { port, left: self.slow_path.room(now, port), is_used_up }
    }

    /// Does with packets what the cache says. They still look when they have passed through a node.
    #[inline(never)]
    fn carry_out(&mut self, now: Instant, group: Group<'_>, shape: &mut Shape, tally: &mut Tally) {
        for (packet, ahead) in group.packets.iter_mut().zip(group.ahead) {
            if ahead.fate != Fate::Looking {
                continue;
            }
            let received = packet.meta.port != PortId::NONE;
            // Nothing has come or gone since the guess.
            let mut view = XipPacket::checked_before(packet.bytes_mut());
            let found = self.dst.find_guessed(&ahead.key.of_packet(view.inner()), ahead.guess);
            ahead.fate = match found.and_then(|found| found.hop()) {
                Some(hop) => {
                    tally.hits += 1;
                    let departure = self.dst.departure(hop);
                    match departure.admit(&mut view, received) {
                        Ok(()) => {
                            tally.forwarded += 1;
                            departure.put_on_link(packet);
                            ahead.leave_by(Exit::Port(departure.hop().port))
                        }
                        Err(reason) => self.refuse(now, packet, hop, reason),
                    }
                }
                None => self.carry_out_rest(now, packet, found, ahead, shape, tally),
            };
        }
    }

    /// The same if the guess was wrong, or the packet is for no neighbour.
    #[inline(never)]
    fn carry_out_rest(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        found: Option<Found>,
        ahead: &mut Ahead,
        shape: &mut Shape,
        tally: &mut Tally,
    ) -> Fate {
        let found = found.or_else(|| match ahead.guess {
            Guess::NOTHING => None,
            _ => self.dst.find(&ahead.key.of_packet(packet.bytes()), ahead.tag),
        });
        let Some(found) = found else { return self.miss(now, packet.meta.port, tally) };
        tally.hits += 1;
        match found.way() {
            Way::Forward(hop) => match self.dst.departure(hop).send(packet) {
                Ok(()) => {
                    tally.forwarded += 1;
                    ahead.leave_by(Exit::Port(self.dst.departure(hop).hop().port))
                }
                Err(reason) => self.refuse(now, packet, hop, reason),
            },
            Way::Drop(reason) => {
                let trip = self.trip(now, packet.meta.port);
                self.note_drop(&XipPacket::checked_before(packet.bytes()), reason, &trip);
                Fate::Drop(reason)
            }
            Way::Several => Fate::Several(found.slot()),
            way @ (Way::Through | Way::Deliver(_)) => {
                let mut view = XipPacket::checked_before(packet.bytes_mut());
                let Some(row) = view.take_edge(usize::from(found.slot())) else {
                    return Fate::Walk;
                };
                match (way, view.is_sink(usize::from(row))) {
                    (Way::Deliver(socket), true) => {
                        tally.delivered += 1;
                        ahead.leave_by(Exit::Socket(socket))
                    }
                    (Way::Deliver(_), false) => Fate::Drop(DropReason::NotPassable),
                    (_, true) => Fate::Drop(DropReason::NotASink),
                    (_, false) => {
                        tally.passed += 1;
                        let place = self.find_place(packet, ahead, shape);
                        self.dst.fetch_slots(ahead.tag);
                        place.map_or(Fate::Walk, |_| Fate::Looking)
                    }
                }
            }
        }
    }

    /// What becomes of a packet that the cache has nothing for.
    fn miss(&mut self, now: Instant, port: PortId, tally: &mut Tally) -> Fate {
        if self.slow_path.is_used_up(now, port) {
            tally.refused += 1;
            return Fate::Drop(DropReason::SlowPathFull);
        }
        Fate::Walk
    }

    /// What becomes of a packet that cannot leave for its neighbour.
    #[cold]
    fn refuse(&mut self, now: Instant, packet: &Packet, hop: HopId, reason: DropReason) -> Fate {
        let port = self.dst.departure(hop).hop().port;
        let trip = self.trip(now, packet.meta.port);
        self.note_unsent(packet, reason, port, &trip);
        Fate::Drop(reason)
    }

    /// The packets leave in their order, but for those that are dropped, which stay where they are until all of them go; others
    /// are walked.
    fn let_go(&mut self, now: Instant, all: Group<'_>, out: &mut Verdicts) {
        for (packet, ahead) in all.packets.iter_mut().zip(all.ahead) {
            match ahead.fate {
                Fate::Leave => out.push(ahead.exit, packet.take()),
                Fate::Drop(reason) => self.count_drop(reason),
                fate => self.finish(now, packet, fate, out),
            }
        }
    }

    /// Walks a packet on.
    #[inline(never)]
    fn finish(&mut self, now: Instant, packet: &mut Packet, fate: Fate, out: &mut Verdicts) {
        let mut trip = self.trip(now, packet.meta.port);
        let packet = XipPacket::checked_before(packet.take());
        match fate {
            Fate::Several(slot) => self.take_several(packet, slot, &mut trip, out),
            _ => self.walk(packet, &mut trip, out),
        }
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
            payer: port,
            received: port != PortId::NONE,
            copies_left: self.limits.copies,
            is_branched: false,
            time: now,
        }
    }
}

/// Of a packet that has no place: it is no packet, or there is nothing that it could be looked for by, which is counted where
/// it is walked. Its frame may also be a short one; then it finds its decision when it is walked.
#[cold]
fn look_closely(packet: &mut Packet, ahead: &mut Ahead) {
    ahead.fate = match XipPacket::new_checked(packet.bytes()).map(|view| view.total_len()) {
        Err(_) => Fate::Drop(DropReason::Malformed),
        Ok(len) => {
            packet.truncate(len);
            Fate::Walk
        }
    };
}
