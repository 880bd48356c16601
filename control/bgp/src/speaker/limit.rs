//! How many prefixes a peer may announce, and what becomes of its session if it announces more.
//!
//! Reference: RFC 4271 §6.7; RFC 4486 §4 (without the data, which are optional); RFC 8538 §5 (the peer is to forget our
//! routes).

use weft_base::Instant;
use weft_routing::OriginId;
use weft_routing::ip::Version;

use crate::config::{Excess, PrefixLimit};
use crate::incoming::family;
use crate::routes::Routes;

/// What became of the limit so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limit {
    /// The operator was told that there is more.
    has_warned: bool,
    /// There is no session until then, or until an operator wants one.
    pub(super) held: Held,
}

/// Whether there may be a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Held {
    #[default]
    No,
    Until(Instant),
    /// Until an operator says so.
    Always,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    /// The operator is told this.
    Warn(String),
    /// The session ends for this.
    End(String),
}

impl Limit {
    /// Looks at how much a peer has announced.
    pub(super) fn judge(
        &mut self,
        limit: Option<PrefixLimit>,
        origin: OriginId,
        routes: &Routes,
    ) -> Verdict {
        let Some(limit) = limit else { return Verdict::Fine };
        let over = Version::ALL
            .into_iter()
            // Those that serve on from an earlier session are not announced.
            .find(|version| routes.table.fresh_routes_of(*version, origin) > limit.most);
        let Some(version) = over else {
            self.has_warned = false;
            return Verdict::Fine;
        };
        let family = family(version);
        let line = format!("it has announced more than {} prefixes of {family}", limit.most);
        match limit.excess {
            Excess::Warn if std::mem::replace(&mut self.has_warned, true) => Verdict::Fine,
            Excess::Warn => Verdict::Warn(line),
            Excess::End => Verdict::End(line),
        }
    }

    /// The session has ended for it.
    pub(super) fn hold(&mut self, now: Instant, limit: Option<PrefixLimit>) {
        let after = limit.and_then(|limit| limit.restart_after);
        self.held = after.map_or(Held::Always, |after| Held::Until(now + after));
    }

    /// When there may be a session again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.held {
            Held::Until(until) => Some(until),
            Held::No | Held::Always => None,
        }
    }

    /// Whether there may be one from now on, and was none before.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let is_over = self.deadline().is_some_and(|until| until <= now);
        if is_over {
            self.held = Held::No;
        }
        is_over
    }
}
