//! From an XID to a decision, over redirects.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.1. Linux XIA follows one redirect per edge and treats
//! a second one as a loop; here a chain may be longer, and a loop is recognised by an XID that
//! comes up twice. A chain that fails counts as "unknown": the next edge is tried.
//!
//! Where one of several gateways is to be looked up, `spread` says in which order they are tried; the first that
//! leads on is taken. Gateways can have several gateways in turn: so that such a tree does not grow without bound, no
//! more than [`MAX_ASKED`] XIDs are asked about for one edge.

use arrayvec::ArrayVec;

use super::{Activity, DropReason, Forwarder, Step};
use crate::Xid;
use crate::principal::{Answer, NextHop, SocketId};

/// The most redirects that can be configured for one look-up.
pub const MAX_REDIRECTS: usize = 16;

/// The most XIDs that are asked about for one edge, or one of several ways at once: more than a chain and the
/// gateways at its end.
pub const MAX_ASKED: usize = 64;

/// The XIDs that a look-up has gone through; the first is the edge's own. There is always room for
/// one more than the most redirects.
pub(super) type Chain = ArrayVec<Xid, { MAX_REDIRECTS + 1 }>;

/// What a look-up has come to.
pub(super) enum Outcome {
    /// Nothing, for this reason.
    NextEdge(DropReason),
    /// The XID is this node.
    Through,
    /// The XID is a socket.
    Deliver(SocketId),
    /// The XID is reached over this neighbour.
    Forward(NextHop),
    /// Several ways, which are in the forwarder's list.
    Branches,
    /// The packet must not go on.
    Drop(DropReason),
}

impl Forwarder {
    /// Asks about the XIDs that a node's edges lead to, in order, until one of them leads on. Returns the
    /// outcome, never [`Outcome::NextEdge`], and the edge that it is about. What was asked is in
    /// [`Forwarder::asked`] afterwards.
    pub(super) fn decide(
        &mut self,
        xids: impl Iterator<Item = Xid>,
        chain: &mut Chain,
    ) -> (Outcome, u8) {
        self.asked.clear();
        self.edges = xids.collect();
        let mut failure = DropReason::Unreachable;
        for slot in 0..self.edges.len() {
            let (xid, slot) = (self.edges[slot], slot as u8);
            self.tracer.step(|| Step::Edge { slot, xid });
            chain.clear();
            match self.resolve(xid, chain) {
                // What is wrong with an edge tells more than that another leads nowhere.
                Outcome::NextEdge(reason) if failure == DropReason::Unreachable => failure = reason,
                Outcome::NextEdge(_) => {}
                outcome => return (outcome, slot),
            }
        }
        (Outcome::Drop(failure), 0)
    }

    /// Asks again about one edge, of which is known that it is the first that leads on.
    pub(super) fn decide_one(
        &mut self,
        xids: impl Iterator<Item = Xid>,
        slot: u8,
        chain: &mut Chain,
    ) -> Outcome {
        self.asked.clear();
        self.edges = xids.collect();
        chain.clear();
        match self.edges.get(usize::from(slot)).copied() {
            Some(xid) => self.resolve(xid, chain),
            None => Outcome::Drop(DropReason::Unreachable),
        }
    }

    /// Looks up `xid`, to which the XIDs in `chain` were redirected; those that it goes through are
    /// added to them.
    #[inline]
    pub(super) fn resolve(&mut self, xid: Xid, chain: &mut Chain) -> Outcome {
        let mut left = MAX_ASKED;
        self.look_up(xid, chain, &mut left)
    }

    /// The same, asking about `left` XIDs at most.
    #[inline]
    fn look_up(&mut self, mut xid: Xid, chain: &mut Chain, left: &mut usize) -> Outcome {
        loop {
            if chain.contains(&xid) {
                return Outcome::NextEdge(DropReason::RedirectLoop);
            }
            if chain.len() > self.limits.redirects || *left == 0 {
                return Outcome::NextEdge(DropReason::RedirectDepth);
            }
            *left -= 1;
            match self.ask(&xid) {
                Answer::Unknown => return Outcome::NextEdge(DropReason::Unreachable),
                Answer::Redirect(to) => {
                    self.activity.add(Activity::Redirected, 1);
                    chain.push(xid);
                    xid = to;
                }
                Answer::AnyOf(_) => {
                    self.activity.add(Activity::Redirected, 1);
                    chain.push(xid);
                    return self.try_gateways(chain, left);
                }
                Answer::Through => return Outcome::Through,
                Answer::Deliver(socket) => return Outcome::Deliver(socket),
                Answer::Forward(hop) => return Outcome::Forward(hop),
                Answer::Branches => {
                    chain.push(xid);
                    return Outcome::Branches;
                }
                Answer::Refuse(reason) => return Outcome::Drop(reason),
            }
        }
    }

    /// Looks up the gateways that the last XID in `chain` was answered with, until one of them leads on.
    #[inline(never)]
    fn try_gateways(&mut self, chain: &mut Chain, left: &mut usize) -> Outcome {
        let gateways = self.spread.order(&self.edges, &self.branches);
        let come_from = chain.len();
        let mut failure = DropReason::Unreachable;
        for gateway in gateways {
            chain.truncate(come_from);
            match self.look_up(gateway, chain, left) {
                Outcome::NextEdge(reason) if failure == DropReason::Unreachable => failure = reason,
                Outcome::NextEdge(_) => {}
                outcome => return outcome,
            }
        }
        Outcome::NextEdge(failure)
    }

    /// Asks the principal of `xid`. An unknown type is an unknown XID.
    #[inline]
    fn ask(&mut self, xid: &Xid) -> Answer {
        self.branches.clear();
        let answer = match self.principals.get(xid.kind) {
            Some(principal) => {
                let answer = principal.lookup(xid, &mut self.branches);
                self.tracer.step(|| Step::Asked { xid: *xid, answer });
                answer
            }
            None => {
                self.tracer.step(|| Step::NoPrincipal(*xid));
                Answer::Unknown
            }
        };
        if !self.asked.iter().any(|(asked, _)| asked == xid) {
            self.asked.push((*xid, answer));
        }
        answer
    }
}
