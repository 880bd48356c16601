//! Forwarding of XIP packets: the walk through the destination address.
//!
//! Reference: Machado et al., "Linux XIA", §3 (traversal, `LastNode`), §4.2.1 and Figure 2 (routing
//! algorithm, routing redirects), §5.3 (multicast by redirects of several link identifiers).
//!
//! At the last node reached, the edges are tried in order. For each, the principal of the XID it
//! leads to is asked, over as many redirects as it takes: *unknown* tries the next edge; *any of several
//! gateways* looks one of them up, and another if that leads nowhere; *this
//! node* marks the edge as chosen and goes on from there, or delivers if it is the sink; *a next
//! hop* sends the packet with its address unchanged, so the next router takes the same decision
//! with its own tables; *branches* do each of these with a copy. When no edge leads on, the packet
//! is dropped; every drop has a [`DropReason`].
//!
//! The forwarder is a packet engine: packets in, [`Verdict`]s out, no I/O. What bounds the work a
//! packet can cause: a walk visits each row at most once, a chain of redirects is at most
//! [`Limits::redirects`] long and asks about [`MAX_ASKED`] XIDs at most, and one packet is copied at most [`Limits::copies`] times.
//!
//! The way of a packet: [`Forwarder::route`] (the header is checked, once) → `walk` → `step` (one last
//! node) → the cache, or `decide` (all edges) and `resolve` (one XID) → `depart` (hop limit, link header) or
//! [`Verdict::Deliver`].
//!
//! Decisions are kept in a routing cache (`dst`, Linux XIA's DST), which is always in step with the
//! principals' tables. Most of the time goes into waiting for the memory of large tables:
//! [`Forwarder::route_batch`] lets the packets of a batch wait together.

mod batch;
mod cached;
mod dst;
mod egress;
mod errors;
mod loops;
mod principals;
mod reasons;
mod resolve;
mod slow_path;
mod spread;
#[cfg(test)]
mod tests;
mod trace;
mod verdicts;

use arrayvec::ArrayVec;
use weft_base::{Counters, Instant, Packet, PortId, Random};

pub use cached::PrincipalMut;
pub use dst::{CacheActivity, CacheSize, CachedDecision, Decision};
pub use egress::{Egress, Framing};
pub use errors::ErrorActivity;
pub(crate) use errors::{Dropped, Errors};
pub use reasons::DropReason;
pub use resolve::{MAX_ASKED, MAX_REDIRECTS};
pub use slow_path::SlowPathLimit;
pub use spread::Spread;
pub use trace::{PacketId, Step, Tracer, Visit};
pub use verdicts::{Verdict, Verdicts};

use crate::changes::Change;
use crate::dag::EdgesError;
use crate::header::XipPacket;
use crate::numbers::MAX_FAN_OUT;
use crate::principal::{Answer, Branch, NextHop, Principal};
use crate::{Xid, XidType};
use batch::Ahead;
use dst::DstCache;
use egress::EgressTable;
use loops::LoopMemory;
use principals::Principals;
use resolve::{Chain, Outcome};
use slow_path::SlowPath;
use verdicts::Exit;

/// Bounds on the work that one packet can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest chain of redirects, 1 to [`MAX_REDIRECTS`].
    pub redirects: usize,
    /// Most packets that may leave for one that came, 1 or more. A zFilter with all bits set
    /// matches every link identifier; this is what keeps it from being an amplifier.
    pub copies: usize,
    /// Bytes that the routing cache may use; 0 switches it off.
    pub cache: usize,
    /// How many packets may cause a decision, of which each port has an equal share; `None` is no limit. Without a
    /// routing cache there is none.
    pub slow_path: Option<SlowPathLimit>,
    /// How many error messages to their sources packets of each input port may cause; `None`: nobody is told.
    pub errors: Option<SlowPathLimit>,
}

impl Limits {
    /// The same with the nearest values that can be.
    fn in_range(self) -> Self {
        Self {
            redirects: self.redirects.clamp(1, MAX_REDIRECTS),
            copies: self.copies.max(1),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { redirects: 8, copies: 64, cache: 64 << 20, slow_path: None, errors: None }
    }
}

weft_base::reasons! {
    /// What the forwarder did with packets, besides dropping them.
    pub enum Activity {
        Received = "received", "packets that came in on a port";
        Originated = "originated", "packets that applications of this node sent";
        Forwarded = "forwarded", "packets sent out of a port, copies included";
        Delivered = "delivered", "packets handed to applications of this node";
        Copied = "copied", "copies made for packets that go several ways at once";
        Redirected = "redirected", "look-ups answered by another XID to look up; the routing cache saves most of them";
    }
}

/// Routes XIP packets by means of the principals that are loaded.
pub struct Forwarder {
    principals: Principals,
    dst: DstCache,
    cache_activity: Counters<CacheActivity>,
    slow_path: SlowPath,
    errors: Errors,
    egress: EgressTable,
    limits: Limits,
    tracer: Tracer,
    activity: Counters<Activity>,
    drops: Counters<DropReason>,
    last_drop: Option<DropReason>,
    /// Packets of the current walk that still have to be routed: copies that go on through a node.
    pending: Vec<CheckedPacket>,
    /// Branches of the look-up in progress, kept to reuse its memory.
    branches: Vec<Branch>,
    /// What was asked for the decision in progress, each XID once.
    asked: Vec<(Xid, Answer)>,
    /// Where the edges lead that the latest decision was about.
    edges: ArrayVec<Xid, MAX_FAN_OUT>,
    spread: Spread,
    /// What a principal has told of changes; empty between two calls.
    changes: Vec<Change>,
    /// What is known of the packets of a batch; kept for its memory.
    ahead: Vec<Ahead>,
    loops: LoopMemory,
}

/// A packet whose header has passed the receive checks.
type CheckedPacket = XipPacket<Packet>;

/// What stays the same for a packet and all its copies.
struct Trip {
    /// The port that it came in on, or none.
    from: PortId,
    /// The port whose budget pays for what has to be decided: that which it came in on, or by which it was asked for.
    payer: PortId,
    /// Came in on a port, so that sending it on costs a hop.
    received: bool,
    /// Copies that may still be made.
    copies_left: usize,
    /// It goes several ways at once from here, or would if there were more.
    is_branched: bool,
    /// When it was given to the forwarder.
    time: Instant,
}

/// The edge that a packet is about to take.
#[derive(Clone, Copy)]
struct EdgeAhead {
    slot: u8,
    /// The row that it leads to.
    row: usize,
}

impl Forwarder {
    /// A forwarder without principals and ports: it drops everything, which is valid. `random` keys the hash of
    /// its cache and the choice between gateways.
    #[must_use]
    pub fn new(limits: Limits, mut random: Random) -> Self {
        let limits = limits.in_range();
        let spread = Spread::new(random.fork("spread").number());
        Self {
            principals: Principals::default(),
            dst: DstCache::new(limits.cache, &mut random),
            cache_activity: Counters::new(),
            slow_path: SlowPath::new(limits.slow_path),
            errors: Errors::new(limits.errors),
            egress: EgressTable::default(),
            limits,
            tracer: Tracer::default(),
            activity: Counters::new(),
            drops: Counters::new(),
            last_drop: None,
            pending: Vec::new(),
            branches: Vec::new(),
            asked: Vec::new(),
            edges: ArrayVec::new(),
            spread,
            changes: Vec::new(),
            ahead: Vec::new(),
            loops: LoopMemory::default(),
        }
    }

    /// Other bounds from now on. What was decided with other redirects is forgotten. Another engine is to be
    /// told anew ([`Forwarder::set_offloading`]) if sources are told of drops now and were not before, or the other way
    /// round.
    pub fn set_limits(&mut self, limits: Limits) {
        let limits = limits.in_range();
        let before = std::mem::replace(&mut self.limits, limits);
        if limits.redirects != before.redirects {
            self.flush_cache();
        }
        if limits.cache != before.cache {
            self.set_cache_limit(limits.cache);
        }
        if limits.slow_path != before.slow_path {
            self.share_slow_path();
        }
        if limits.errors != before.errors {
            self.errors.set_limit(limits.errors);
        }
    }

    /// Has the choice between several gateways depend on `seed`, which is to be the same whenever this node starts and
    /// another one at every other node. What was decided is forgotten.
    pub fn set_spread(&mut self, seed: u64) {
        self.spread = Spread::new(seed);
        self.flush_cache();
    }

    /// What gateways weigh here.
    #[must_use]
    pub fn spread(&self) -> &Spread {
        &self.spread
    }

    /// The principal of type `kind`.
    #[must_use]
    pub fn principal(&self, kind: XidType) -> Option<&dyn Principal> {
        self.principals.get(kind)
    }

    /// The types of all principals that are loaded, in order.
    pub fn kinds(&self) -> impl Iterator<Item = XidType> + '_ {
        self.principals.kinds()
    }

    /// Makes a port known that packets may leave by.
    pub fn add_port(&mut self, port: PortId, egress: Egress) {
        self.egress.insert(port, egress);
        self.ports_changed();
    }

    /// Forgets a port; packets to it are dropped and counted.
    pub fn remove_port(&mut self, port: PortId) {
        self.egress.remove(port);
        self.slow_path.remove_port(port);
        self.errors.remove_port(port);
        self.ports_changed();
    }

    /// There is another port, or one less.
    fn ports_changed(&mut self) {
        self.dst.ports_changed(&self.egress);
        self.share_slow_path();
    }

    /// What was done with packets so far.
    #[must_use]
    pub fn activity(&self) -> &Counters<Activity> {
        &self.activity
    }

    /// Why packets were dropped so far.
    #[must_use]
    pub fn drops(&self) -> &Counters<DropReason> {
        &self.drops
    }

    /// What became of error messages so far.
    #[must_use]
    pub fn error_activity(&self) -> &Counters<ErrorActivity> {
        &self.errors.activity
    }

    /// What sources are to be told of, and what became of it.
    pub(crate) fn errors(&mut self) -> &mut Errors {
        &mut self.errors
    }

    /// Why the latest packet given to [`Forwarder::route`], or a copy of it, was dropped; `None` if
    /// all of it went somewhere.
    #[must_use]
    pub fn last_drop(&self) -> Option<DropReason> {
        self.last_drop
    }

    /// The record of what happened to packets.
    pub fn tracer(&mut self) -> &mut Tracer {
        &mut self.tracer
    }

    /// Routes a packet that begins with its XIP header: received on `packet.meta.port`, or made on
    /// this node if that is [`PortId::NONE`]. Surplus bytes behind the payload are cut off.
    pub fn route(&mut self, now: Instant, packet: Packet, out: &mut Verdicts) {
        let payer = packet.meta.port;
        self.route_paid_by(now, packet, payer, out);
    }

    /// Routes a packet that was made on this node because another one came in on the port `asked_by`. What has to be
    /// decided for it counts towards the budget of that port, so that nobody uses up that of this node's applications from
    /// outside.
    pub fn route_answer(
        &mut self,
        now: Instant,
        mut packet: Packet,
        asked_by: PortId,
        out: &mut Verdicts,
    ) {
        packet.meta.port = PortId::NONE;
        self.route_paid_by(now, packet, asked_by, out);
    }

    fn route_paid_by(&mut self, now: Instant, packet: Packet, payer: PortId, out: &mut Verdicts) {
        let from = packet.meta.port;
        let received = from != PortId::NONE;
        self.activity.add(if received { Activity::Received } else { Activity::Originated }, 1);
        self.last_drop = None;
        let Ok(mut packet) = XipPacket::new_checked(packet) else {
            self.drop_packet(DropReason::Malformed);
            return;
        };
        packet.trim();
        self.tracer.begin(now, from, &packet);
        let mut trip = Trip { payer, ..self.trip(now, from) };
        self.walk(packet, &mut trip, out);
        self.route_pending(&mut trip, out);
    }

    /// Takes the packet on from its last node, until it leaves, is delivered or is dropped. Ends,
    /// because each node passed lies in a higher row than the one before.
    fn walk(&mut self, packet: CheckedPacket, trip: &mut Trip, out: &mut Verdicts) {
        let mut at = Some(packet);
        while let Some(packet) = at {
            at = self.step(packet, trip, out);
        }
    }

    /// Takes on the copies that a packet has left on the way.
    #[inline]
    fn route_pending(&mut self, trip: &mut Trip, out: &mut Verdicts) {
        while let Some(packet) = self.pending.pop() {
            self.walk(packet, trip, out);
        }
    }

    /// Tries the edges of the last node in order. Returns the packet if it passed through a node
    /// and has to go on from there.
    fn step(
        &mut self,
        packet: CheckedPacket,
        trip: &mut Trip,
        out: &mut Verdicts,
    ) -> Option<CheckedPacket> {
        let last_node = packet.last_node();
        self.tracer.step(|| Step::At(last_node));
        let targets = match packet.candidate_edges() {
            Ok(targets) => targets,
            Err(EdgesError::AtSink) => return self.drop_packet(DropReason::AtSink),
            Err(_) => return self.drop_packet(DropReason::MalformedEdges),
        };
        let mut chain = Chain::new();
        let (outcome, slot) = self.find_or_decide(&packet, &targets, trip, &mut chain);
        // There is no edge when nothing can be done with any.
        let row = targets.get(usize::from(slot)).map_or(0, |row| usize::from(*row));
        self.act(packet, EdgeAhead { slot, row }, outcome, &mut chain, trip, out)
    }

    /// Sends the packet the ways behind an edge of its last node, as a decision says that was made before.
    fn take_several(
        &mut self,
        packet: CheckedPacket,
        slot: u8,
        trip: &mut Trip,
        out: &mut Verdicts,
    ) {
        let Ok(targets) = packet.candidate_edges() else {
            self.drop_packet(DropReason::MalformedEdges);
            return;
        };
        let mut chain = Chain::new();
        let outcome = self.decide_one(cached::xids(&packet, &targets), slot, &mut chain);
        let row = targets.get(usize::from(slot)).map_or(0, |row| usize::from(*row));
        if let Some(packet) =
            self.act(packet, EdgeAhead { slot, row }, outcome, &mut chain, trip, out)
        {
            self.walk(packet, trip, out);
        }
    }

    /// Does with the packet what the look-up of an edge, over `chain`, has come to.
    fn act(
        &mut self,
        packet: CheckedPacket,
        edge: EdgeAhead,
        outcome: Outcome,
        chain: &mut Chain,
        trip: &mut Trip,
        out: &mut Verdicts,
    ) -> Option<CheckedPacket> {
        match outcome {
            Outcome::NextEdge(reason) | Outcome::Drop(reason) => {
                self.note_drop(&packet, reason, trip);
                self.drop_packet(reason)
            }
            Outcome::Through if packet.is_sink(edge.row) => self.drop_packet(DropReason::NotASink),
            Outcome::Through => self.take_edge(packet, edge),
            Outcome::Deliver(_) if !packet.is_sink(edge.row) => {
                self.drop_packet(DropReason::NotPassable)
            }
            Outcome::Deliver(socket) => {
                let packet = self.take_edge(packet, edge)?.into_inner();
                self.tracer.step(|| Step::Delivered(socket));
                self.activity.add(Activity::Delivered, 1);
                out.push(Exit::Socket(socket), packet);
                None
            }
            Outcome::Forward(hop) => self.depart(packet, hop, trip, out),
            Outcome::Branches => {
                self.branch(packet, edge, chain, trip, out);
                None
            }
        }
    }

    /// Sends a copy of the packet each of several ways.
    fn branch(
        &mut self,
        packet: CheckedPacket,
        edge: EdgeAhead,
        chain: &mut Chain,
        trip: &mut Trip,
        out: &mut Verdicts,
    ) {
        trip.is_branched = true;
        if self.branches.len() > 1 {
            let (id, hop_limit) = (trace::packet_id(&packet), packet.hop_limit());
            if !self.loops.admits(trip.time, id, hop_limit) {
                self.drop_packet(DropReason::CameBack);
                return;
            }
        }
        let branches = std::mem::take(&mut self.branches);
        let last = branches.len().saturating_sub(1);
        let come_from = chain.len();
        for (index, branch) in branches.iter().enumerate() {
            if trip.copies_left == 0 {
                self.drops.add(DropReason::CopyLimit, (branches.len() - index) as u64);
                self.tracer.step(|| Step::Dropped(DropReason::CopyLimit));
                break;
            }
            trip.copies_left -= 1;
            chain.truncate(come_from);
            self.tracer.step(|| Step::Copied { to: branch.target() });
            if index == last {
                self.follow(packet, edge, *branch, chain, trip, out);
                break;
            }
            self.activity.add(Activity::Copied, 1);
            self.follow(packet.duplicate(), edge, *branch, chain, trip, out);
        }
        // The list goes back for the next packet to use its memory.
        self.branches = branches;
    }

    /// Takes one of several ways.
    fn follow(
        &mut self,
        packet: CheckedPacket,
        edge: EdgeAhead,
        branch: Branch,
        chain: &mut Chain,
        trip: &mut Trip,
        out: &mut Verdicts,
    ) {
        let outcome = match branch {
            Branch::Through => Outcome::Through,
            Branch::To(xid) => match self.resolve(xid, chain) {
                Outcome::NextEdge(DropReason::Unreachable) => {
                    Outcome::Drop(DropReason::BranchUnreachable)
                }
                outcome => outcome,
            },
        };
        if let Some(passed) = self.act(packet, edge, outcome, chain, trip, out) {
            self.pending.push(passed);
        }
    }

    /// Marks the edge as chosen and makes its target the last node.
    fn take_edge(&mut self, mut packet: CheckedPacket, edge: EdgeAhead) -> Option<CheckedPacket> {
        match packet.take_edge(usize::from(edge.slot)) {
            Some(_) => Some(packet),
            None => self.drop_packet(DropReason::MalformedEdges),
        }
    }

    /// Sends the packet to a neighbour.
    fn depart(
        &mut self,
        packet: CheckedPacket,
        hop: NextHop,
        trip: &Trip,
        out: &mut Verdicts,
    ) -> Option<CheckedPacket> {
        let mut packet = packet.into_inner();
        if let Err(reason) = self.egress.departure(hop).send(&mut packet) {
            self.note_unsent(&packet, reason, hop.port, trip);
            return self.drop_packet(reason);
        }
        self.tracer.step(|| Step::Sent { port: hop.port, link: hop.link });
        self.activity.add(Activity::Forwarded, 1);
        out.push(Exit::Port(hop.port), packet);
        None
    }

    /// Takes down that a packet is dropped, if its source is to be told.
    #[inline]
    fn note_drop<T: AsRef<[u8]>>(
        &mut self,
        packet: &XipPacket<T>,
        reason: DropReason,
        trip: &Trip,
    ) {
        if self.errors.is_on() {
            self.errors.note(packet, reason, trip, 0);
        }
    }

    /// The same of a packet that could not leave by `port`.
    #[inline]
    fn note_unsent(&mut self, packet: &Packet, reason: DropReason, port: PortId, trip: &Trip) {
        if self.errors.is_on() {
            let mtu = if reason == DropReason::TooBig { self.egress.mtu(port) } else { 0 };
            self.errors.note(&XipPacket::checked_before(packet.bytes()), reason, trip, mtu);
        }
    }

    /// Counts a drop, and notes it as the last one.
    #[inline]
    fn count_drop(&mut self, reason: DropReason) {
        self.drops.add(reason, 1);
        self.last_drop = Some(reason);
    }

    /// Counts a drop; the packet goes out of scope at the caller.
    fn drop_packet(&mut self, reason: DropReason) -> Option<CheckedPacket> {
        self.count_drop(reason);
        self.tracer.step(|| Step::Dropped(reason));
        None
    }
}

impl Branch {
    /// The XID that this branch goes to; `None` if it goes on through the node.
    #[must_use]
    pub fn target(&self) -> Option<Xid> {
        match self {
            Self::Through => None,
            Self::To(xid) => Some(*xid),
        }
    }
}
