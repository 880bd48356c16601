//! What a decision must be, and what it rests on.

use weft_xip::Xid;
use weft_xip::forward::{Decision, DropReason, Forwarder};
use weft_xip::principal::Answer;

/// How a decision comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Derivation {
    /// The decision and its edge; none for several ways at once.
    pub(super) decision: Option<(Decision, u8)>,
    /// What was asked, and the answers.
    pub(super) asked: Vec<(Xid, Answer)>,
}

/// Works out what is to be done where edges lead to these XIDs.
pub(super) fn derive(forwarder: &Forwarder, edges: &[Xid], redirects: usize) -> Derivation {
    let mut asked = Vec::new();
    let mut failure = None;
    for (slot, edge) in (0..).zip(edges) {
        match follow(forwarder, *edge, redirects, &mut asked) {
            Ok(decision) => {
                return Derivation { decision: decision.map(|decision| (decision, slot)), asked };
            }
            Err(DropReason::Unreachable) => {}
            Err(reason) => failure = failure.or(Some(reason)),
        }
    }
    let decision = Decision::Drop(failure.unwrap_or(DropReason::Unreachable));
    Derivation { decision: Some((decision, 0)), asked }
}

/// Follows redirects from one XID; the error is why the next edge is to be tried.
fn follow(
    forwarder: &Forwarder,
    mut xid: Xid,
    redirects: usize,
    asked: &mut Vec<(Xid, Answer)>,
) -> Result<Option<Decision>, DropReason> {
    let mut chain = Vec::new();
    loop {
        if chain.contains(&xid) {
            return Err(DropReason::RedirectLoop);
        }
        if chain.len() > redirects {
            return Err(DropReason::RedirectDepth);
        }
        chain.push(xid);
        let principal = forwarder.principal(xid.kind);
        let answer = principal.map_or(Answer::Unknown, |one| one.lookup(&xid, &mut Vec::new()));
        asked.push((xid, answer));
        match answer {
            Answer::Unknown => return Err(DropReason::Unreachable),
            Answer::Redirect(to) => xid = to,
            Answer::Through => return Ok(Some(Decision::Through)),
            Answer::Deliver(socket) => return Ok(Some(Decision::Deliver(socket))),
            Answer::Forward(hop) => return Ok(Some(Decision::Forward(hop))),
            Answer::Refuse(reason) => return Ok(Some(Decision::Drop(reason))),
            Answer::Branches => return Ok(None),
        }
    }
}
