//! This process after its own restart: the routes that its forerunner told serve on in the RIB and in the kernel, and
//! nothing is told of new ones until all is heard again.
//!
//! Reference: RFC 4724 §4.1 (Restarting Speaker), §4.1.1 (which peers are waited for).

use std::time::Duration;

use weft_base::Instant;

use super::peer::Peer;
use crate::config::{Graceful, Mode, Standing};

/// How long the RIB may take to say whether routes serve on. Meanwhile no session is opened, for an OPEN could not be
/// taken back.
pub(super) const ASKING: Duration = Duration::from_secs(10);
/// How long a peer may take to announce what it has if it does not say where that ends.
const QUIET: Duration = Duration::from_secs(10);

/// How long one may take that has restarted itself. It may wait for us, and then says nothing until we have spoken; but
/// FRR says for two minutes that it has, and announces what it has after a second.
const RESTARTED: Duration = Duration::from_secs(5);

/// How far the process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits until the RIB says whether routes serve on.
    Asking,
    /// They do: it has heard nothing yet, and tells nothing.
    Deferring,
    /// Routes are taken and told as they come.
    Over,
}

/// The own restart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart {
    state: State,
    started: Instant,
    /// Packets are forwarded as a process of ours has said.
    forwards: bool,
}

impl Restart {
    /// The process has started.
    pub(super) fn new(started: Instant) -> Self {
        Self { state: State::Asking, started, forwards: false }
    }

    /// Whether sessions may begin.
    pub(super) fn may_begin(&self) -> bool {
        self.state != State::Asking
    }

    /// Whether nothing is told until peers have announced everything.
    pub(super) fn defers(&self) -> bool {
        self.state == State::Deferring
    }

    /// What peers are told of it.
    pub(super) fn standing(&self) -> Standing {
        Standing { has_restarted: self.defers(), forwards: self.forwards }
    }

    /// The RIB has said whether routes serve on, if `kept` is something. Returns whether sessions may begin now.
    pub(super) fn asked(&mut self, now: Instant, kept: Option<bool>, graceful: &Graceful) -> bool {
        if self.state != State::Asking || (kept.is_none() && now < self.started + ASKING) {
            return false;
        }
        self.forwards = kept == Some(true);
        // Peers that were not asked to keep our routes need them now.
        let defers = self.forwards && graceful.mode == Mode::Both;
        self.state = if defers { State::Deferring } else { State::Over };
        true
    }

    /// Everything was heard, or there was enough time for it.
    pub(super) fn finish(&mut self) {
        self.state = State::Over;
    }

    /// The RIB has everything.
    pub(super) fn has_told(&mut self) {
        self.forwards = true;
    }

    /// Whether peers have announced all that they had, as far as that is known.
    pub(super) fn have_announced<'a>(
        &self,
        now: Instant,
        graceful: &Graceful,
        mut peers: impl Iterator<Item = &'a Peer>,
    ) -> bool {
        self.is_late(now, graceful) || peers.all(|peer| has_announced(now, peer))
    }

    /// Whether there was enough time for all of it.
    pub(super) fn is_late(&self, now: Instant, graceful: &Graceful) -> bool {
        now >= self.started + graceful.deferral_time
    }

    /// When that may change with time.
    pub(super) fn deadline<'a>(
        &self,
        now: Instant,
        graceful: &Graceful,
        peers: impl Iterator<Item = &'a Peer>,
    ) -> Option<Instant> {
        let waited = peers.filter_map(waited_until);
        let all = waited.chain([self.started + ASKING, self.started + graceful.deferral_time]);
        all.filter(|one| *one > now).min()
    }
}

/// Until when a peer is waited for that does not say where what it has ends, or not before we do.
fn waited_until(peer: &Peer) -> Option<Instant> {
    let up = peer.up.as_ref()?;
    match &up.graceful {
        None => Some(up.since + QUIET),
        Some(graceful) => graceful.restarted.then(|| up.since + RESTARTED),
    }
}

fn has_announced(now: Instant, peer: &Peer) -> bool {
    // There is no session with one that may have none: it is not waited for.
    let Some(up) = &peer.up else { return !peer.may_run() };
    waited_until(peer).is_some_and(|until| until <= now)
        || peer.families().iter().all(|version| up.complete.contains(version))
}
