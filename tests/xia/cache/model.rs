//! What a decision must be, and what it rests on.

use std::cmp::Reverse;

use weft_xip::Xid;
use weft_xip::forward::{Decision, DropReason, Forwarder, MAX_ASKED};
use weft_xip::principal::{Answer, Branch};

/// How a decision comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Derivation {
    /// The decision and its edge.
    pub(super) decision: (Decision, u8),
    /// What was asked, and the answers.
    pub(super) asked: Vec<(Xid, Answer)>,
    /// A gateway was tried after another one.
    pub(super) has_tried: bool,
}

impl Derivation {
    /// Whether there was a choice between gateways.
    pub(super) fn has_chosen(&self) -> bool {
        self.asked.iter().any(|(_, answer)| matches!(answer, Answer::AnyOf(_)))
    }
}

/// Works out what is to be done where edges lead to these XIDs.
pub(super) fn derive(forwarder: &Forwarder, edges: &[Xid], redirects: usize) -> Derivation {
    let asked = Vec::new();
    let mut walk = Walk { forwarder, edges, redirects, asked, of_this_edge: 0, has_tried: false };
    let (mut decision, mut failure) = (None, None);
    for (slot, edge) in (0..).zip(edges) {
        walk.of_this_edge = 0;
        match walk.follow(*edge, &[]) {
            Err(DropReason::Unreachable) => {}
            // What is wrong with the first edge tells most.
            Err(reason) => failure = failure.or(Some(reason)),
            Ok(found) => {
                decision = Some((found, slot));
                break;
            }
        }
    }
    let lost = || (Decision::Drop(failure.unwrap_or(DropReason::Unreachable)), 0);
    let decision = decision.unwrap_or_else(lost);
    Derivation { decision, asked: walk.asked, has_tried: walk.has_tried }
}

/// A decision being worked out.
struct Walk<'a> {
    forwarder: &'a Forwarder,
    edges: &'a [Xid],
    redirects: usize,
    asked: Vec<(Xid, Answer)>,
    /// How many XIDs were asked about for the edge in question.
    of_this_edge: usize,
    has_tried: bool,
}

impl Walk<'_> {
    /// Follows redirects from one XID, to which others have led; the error is why something else is to be tried.
    fn follow(&mut self, xid: Xid, chain: &[Xid]) -> Result<Decision, DropReason> {
        if chain.contains(&xid) {
            return Err(DropReason::RedirectLoop);
        }
        if chain.len() > self.redirects || self.of_this_edge == MAX_ASKED {
            return Err(DropReason::RedirectDepth);
        }
        let (chain, mut branches) = ([chain, &[xid]].concat(), Vec::new());
        let principal = self.forwarder.principal(xid.kind);
        let answer = principal.map_or(Answer::Unknown, |one| one.lookup(&xid, &mut branches));
        self.asked.push((xid, answer));
        self.of_this_edge += 1;
        match answer {
            Answer::Unknown => Err(DropReason::Unreachable),
            Answer::Redirect(to) => self.follow(to, &chain),
            Answer::AnyOf(_) => self.follow_any(&branches, &chain),
            Answer::Through => Ok(Decision::Through),
            Answer::Deliver(socket) => Ok(Decision::Deliver(socket)),
            Answer::Forward(hop) => Ok(Decision::Forward(hop)),
            Answer::Refuse(reason) => Ok(Decision::Drop(reason)),
            Answer::Branches => Ok(Decision::Several),
        }
    }

    /// The heaviest gateway that leads on.
    fn follow_any(&mut self, gateways: &[Branch], chain: &[Xid]) -> Result<Decision, DropReason> {
        let spread = self.forwarder.spread();
        let mut gateways: Vec<Xid> = gateways.iter().filter_map(Branch::target).collect();
        gateways.sort_by_key(|gateway| Reverse(spread.weight(self.edges, gateway)));
        let mut failure = None;
        for (tries, gateway) in gateways.into_iter().enumerate() {
            self.has_tried |= tries > 0;
            match self.follow(gateway, chain) {
                Err(DropReason::Unreachable) => {}
                Err(reason) => failure = failure.or(Some(reason)),
                found => return found,
            }
        }
        Err(failure.unwrap_or(DropReason::Unreachable))
    }
}
