//! Routes of a peer that is away: they serve on until it has announced them again, or has had its time.
//!
//! Reference: RFC 4724 §4.2 (Receiving Speaker); RFC 8538 §4; RFC 9494 §4.2 (routes that live long).
//!
//! A route that is stale is told onward as ever (§4.2: "MUST NOT differentiate"). That it is stale is only known by the
//! generation in which it was announced, which is counted up when the peer goes (`weft_routing::RouteTable::renew`).
//!
//! When the peer's restart time is over, routes that may live long are marked as such (`crate::routes::rounds`), and are what
//! is used last from then on. When their time ends is certain from the beginning: a peer that comes and goes without
//! having announced everything makes it no longer.
//!
//! A connection that fails is often back at once, with the same routes. So those of a peer that has not asked for anything
//! serve on for a moment, too; without that they would begin to go, to come again.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;
use weft_routing::OriginId;
use weft_routing::ip::Version;

use crate::config::Graceful;
use crate::incoming::family;
use crate::routes::Routes;
use crate::wire::{Families, GracefulRestart, LongLived};

/// How long routes serve on of a peer that has not asked for it: it may be back at once, and announce the same.
const BRIEF: Duration = Duration::from_millis(20);
/// How long such a peer may be silent when it was back in time, before it is taken to have announced what it has; and how
/// long it may take for all of that.
const RENEWAL: Duration = Duration::from_secs(1);
const LONGEST_RENEWAL: Duration = Duration::from_secs(60);

/// What a peer has said of graceful restart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) graceful: &'a GracefulRestart,
    pub(super) long_lived: &'a [LongLived],
}

impl Said<'_> {
    /// For how long routes of a family are to serve on, and for how long behind that, which the configuration limits.
    fn times(&self, version: Version, own: &Graceful) -> [Duration; 2] {
        let time = Duration::from_secs(self.graceful.time.into());
        let limit = own.long_lived[version as usize].map_or(Duration::ZERO, |long| long.limit);
        let long = self.long_lived.iter().find(|tuple| tuple.family == family(version));
        let long = long.map_or(Duration::ZERO, |long| Duration::from_secs(long.stale_time.into()));
        [if self.lists(version, false) { time } else { Duration::ZERO }, long.min(limit)]
    }

    /// Whether it has listed a family, and, if it `must_forward`, has gone on forwarding for it.
    fn lists(&self, version: Version, must_forward: bool) -> bool {
        let family = family(version);
        let mut families = self.graceful.families.iter();
        families.any(|(one, forwards)| *one == family && (*forwards || !must_forward))
    }

    /// Whether it has gone on forwarding for a family whose routes live long.
    fn forwards_long(&self, version: Version) -> bool {
        let family = family(version);
        self.long_lived.iter().any(|tuple| tuple.family == family && tuple.forwarding)
    }
}

/// Whose routes are stale.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    origin: OriginId,
    kept: BTreeMap<Version, Kept>,
}

/// How far it has come with routes of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The peer is away, and has its restart time.
    Away,
    /// It is still away, and its routes live long.
    LongLived,
    /// It is back, and announces them again.
    Back,
    /// It is back, and has not announced everything, but the time is over for which routes live long: none are stale.
    BackLate,
}

/// Routes of a family that serve on.
#[derive(Clone, Copy, Debug)]
struct Kept {
    stage: Stage,
    /// When the stage has begun, and when it ends.
    since: Instant,
    until: Instant,
    /// The peer has not asked for it.
    is_brief: bool,
    /// If they may live long: when that begins, and when it ends.
    long: Option<[Instant; 2]>,
}

impl Kept {
    /// When something is to be done.
    fn deadline(&self) -> Instant {
        match (self.stage, self.long) {
            (Stage::Back, Some([_, end])) => end.min(self.until),
            _ => self.until,
        }
    }
}

/// What has come with time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Expired {
    /// Routes have gone that the peer has asked to be kept.
    pub(super) has_gone: bool,
    /// Routes live long from now on.
    pub(super) is_long_lived: bool,
}

impl Stale {
    /// Nothing is.
    pub(super) fn new(origin: OriginId) -> Self {
        Self { origin, kept: BTreeMap::new() }
    }

    /// Nothing is, or nothing is left of it.
    pub(super) fn is_empty(&self, routes: &Routes) -> bool {
        self.kept.keys().all(|version| routes.table.routes_of(*version, self.origin) == 0)
    }

    fn asked(&self) -> impl Iterator<Item = (Version, &Kept)> {
        let all = self.kept.iter().map(|(version, kept)| (*version, kept));
        all.filter(|(_, kept)| !kept.is_brief && kept.stage != Stage::BackLate)
    }

    /// In which families it has some that the peer has asked to be kept.
    pub(super) fn versions(&self) -> impl Iterator<Item = Version> + '_ {
        self.asked().map(|(version, _)| version)
    }

    /// Of these, in which they live long.
    pub(super) fn long_lived(&self) -> impl Iterator<Item = Version> + '_ {
        self.asked().filter(|(_, kept)| kept.stage == Stage::LongLived).map(|(version, _)| version)
    }

    /// When the first of them go if the peer does not come, or does not announce them.
    pub(super) fn ends(&self) -> Option<Instant> {
        let end = |kept: &Kept| match (kept.stage, kept.long) {
            (Stage::Away, Some([_, end])) => end,
            _ => kept.deadline(),
        };
        self.kept.values().map(end).min()
    }

    /// When something is to be done.
    pub(super) fn until(&self) -> Option<Instant> {
        self.kept.values().map(Kept::deadline).min()
    }

    /// The peer, which exchanged routes of these families, is away: those serve on for which it has `said` so, if its
    /// session has ended as it must for that; and others for a moment if the connection `is_lost` and nobody has ended it.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        exchanged: &[Version],
        (said, own): (Option<Said<'_>>, &Graceful),
        is_lost: bool,
        routes: &mut Routes,
    ) {
        for version in exchanged.iter().copied() {
            let [time, long] = said.map_or([Duration::ZERO; 2], |said| said.times(version, own));
            let is_asked = !time.is_zero() || !long.is_zero();
            let before = self.kept.remove(&version);
            if routes.table.routes_of(version, self.origin) == 0 {
                // Whose time would that be?
                continue;
            }
            let is_late = before.is_some_and(|kept| kept.stage == Stage::BackLate);
            let long_before = before.and_then(|kept| kept.long).filter(|_| is_asked && !is_late);
            if before.is_some() && long_before.is_none() {
                // What was stale before has had its time.
                routes.sweep(version, self.origin);
            }
            routes.table.renew(version, self.origin);
            if is_asked && !is_late {
                let begin = now + time;
                let new = (!long.is_zero()).then(|| [begin, begin + long]);
                // RFC 9494 §4.2: the end stays where it is until the peer has announced everything.
                let long = long_before.or(new);
                let until = long.map_or(begin, |[begin, _]| begin);
                let kept = Kept { stage: Stage::Away, since: now, until, is_brief: false, long };
                self.kept.insert(version, kept);
            } else if is_lost && !is_late {
                let (stage, until, long) = (Stage::Away, now + BRIEF, None);
                let kept = Kept { stage, since: now, until, is_brief: true, long };
                self.kept.insert(version, kept);
            } else {
                routes.sweep(version, self.origin);
            }
        }
    }

    /// The peer is back, with these families, and may take the `time` that is for peers that have asked for it: where it
    /// has not gone on forwarding though it said so, stale routes go at once.
    pub(super) fn resumed(
        &mut self,
        now: Instant,
        time: Duration,
        exchanged: Families,
        said: Option<Said<'_>>,
        routes: &mut Routes,
    ) {
        for (version, kept) in self.kept.clone() {
            let forwards = said.is_some_and(|said| match kept.stage {
                Stage::LongLived => said.forwards_long(version),
                _ => said.lists(version, true),
            });
            if exchanged.contains(family(version)) && (kept.is_brief || forwards) {
                let until = now + if kept.is_brief { RENEWAL } else { time };
                self.kept.insert(version, Kept { stage: Stage::Back, since: now, until, ..kept });
            } else {
                self.sweep(version, routes);
            }
        }
    }

    /// The peer announces something. One that has not asked for anything has said nothing of how long it will take.
    pub(super) fn announces(&mut self, now: Instant) {
        for kept in self.kept.values_mut() {
            if kept.is_brief && kept.stage == Stage::Back {
                kept.until = (now + RENEWAL).min(kept.since + LONGEST_RENEWAL);
            }
        }
    }

    /// The peer has announced all that it has of a family, or there is nothing to wait for.
    pub(super) fn end(&mut self, version: Version, routes: &mut Routes) {
        if self.kept.contains_key(&version) {
            self.sweep(version, routes);
        }
    }

    /// Nothing is waited for any more.
    pub(super) fn end_all(&mut self, routes: &mut Routes) {
        for version in std::mem::take(&mut self.kept).into_keys() {
            self.sweep(version, routes);
        }
    }

    /// Lets what has had its time go, or live long.
    pub(super) fn expire(&mut self, now: Instant, routes: &mut Routes) -> Expired {
        let mut expired = Expired::default();
        for (version, kept) in self.kept.clone() {
            if kept.deadline() > now {
                continue;
            }
            match (kept.stage, kept.long) {
                (Stage::Away, Some([_, end])) if now < end => {
                    let kept = Kept { stage: Stage::LongLived, since: now, until: end, ..kept };
                    self.kept.insert(version, kept);
                    routes.live_long(version, self.origin);
                    expired.is_long_lived = true;
                }
                (Stage::Back, Some(_)) if now < kept.until => {
                    routes.sweep(version, self.origin);
                    self.kept.insert(version, Kept { stage: Stage::BackLate, since: now, ..kept });
                    expired.has_gone = true;
                }
                (Stage::BackLate, _) => {
                    self.kept.remove(&version);
                }
                _ => {
                    self.sweep(version, routes);
                    expired.has_gone |= !kept.is_brief;
                }
            }
        }
        expired
    }

    fn sweep(&mut self, version: Version, routes: &mut Routes) {
        self.kept.remove(&version);
        routes.sweep(version, self.origin);
    }
}
