//! Who tells routes: the protocols.
//!
//! Reference: Handley et al. (XORP), §5.2 and Figure 7 (origin stages). Each says its administrative distance, which
//! the configuration can change.
//!
//! A protocol whose process dies leaves its routes behind for a time: its next process tells them again, and what it
//! does not tell goes. Those of a process that the node does not want any more go at once.

use std::time::Duration;

use weft_base::{Instant, Reason};
use weft_routing::ip::Version;
use weft_routing::{Guard, OriginId, Prefix};
use weft_xrl::XrlError;

use crate::aggregates;
use crate::arbiter::{NEVER, Standing};
use crate::config::Config;
use crate::connected;
use crate::interface;
use crate::tables::Tables;

/// How long after the start protocols may take to come, until the FEA is told that there is nothing more.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long protocols may take that live and only have to hear of it, or were killed with this process, until what others
/// have told is taken for all.
const COMING: Duration = Duration::from_secs(3);
/// Protocols at most: names are chosen by callers.
const MOST: usize = 256;

/// Who speaks for the origins of the RIB's own: nobody else can.
const NOBODY_ELSE: u64 = u64::MAX;

/// An origin of routes.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) protocol: String,
    pub(crate) id: OriginId,
    /// What the protocol says that it is.
    own: Standing,
    pub(crate) standing: Standing,
    /// Who speaks for it.
    pub(crate) session: Option<u64>,
    /// Who spoke for it last, and is gone.
    gone: Option<u64>,
    /// Whether it has told all that it had.
    pub(crate) has_told: bool,
    /// When its stale routes go.
    pub(crate) ends: Option<Instant>,
    /// Whether a process of this binary speaks for it.
    is_own: bool,
    /// What stands between it and the tables if it is not trusted.
    pub(crate) guard: Option<Guard<Version>>,
    /// Whether it was said that it tells what it may not.
    has_complained: bool,
    /// Whether it may tell now what was refused before, and has to tell everything anew.
    must_begin: bool,
}

impl Origin {
    /// One of the RIB's own, with what it is by itself and as the configuration wants it.
    fn new(protocol: &str, id: OriginId, [own, standing]: [Standing; 2]) -> Self {
        Self {
            protocol: protocol.to_owned(),
            id,
            own,
            standing,
            session: Some(NOBODY_ELSE),
            gone: None,
            has_told: true,
            ends: None,
            is_own: true,
            guard: None,
            has_complained: false,
            must_begin: false,
        }
    }

    /// Whether it is of the RIB's own.
    fn is_reserved(&self) -> bool {
        self.session == Some(NOBODY_ELSE)
    }
}

/// What came of somebody's wish to speak for a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) id: OriginId,
    /// Routes that were told before serve on.
    pub(crate) has_kept: bool,
    /// It is trusted otherwise than before.
    pub(crate) is_other: bool,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Origins {
    all: Vec<Origin>,
    /// Until when protocols are waited for, if they are.
    patience: Option<Instant>,
    /// Until when more of them may come at any moment.
    coming: Option<Instant>,
}

impl Origins {
    /// Only the networks on this router's links.
    pub(crate) fn new(tables: &mut Tables) -> Self {
        let standing = Standing { distance: 0, is_external: false };
        let id = tables.add_origin(standing);
        let connected = Origin::new(connected::PROTOCOL, id, [standing; 2]);
        let start = Some(Instant::ZERO);
        Self { all: vec![connected], patience: start, coming: start }
    }

    /// The process has started.
    pub(crate) fn started(&mut self, now: Instant) {
        (self.patience, self.coming) = (Some(now + PATIENCE), Some(now + COMING));
    }

    /// The origin of the networks on this router's links.
    pub(crate) fn connected(&self) -> OriginId {
        self.all[0].id
    }

    pub(crate) fn all(&self) -> &[Origin] {
        &self.all
    }

    /// The protocol of a route.
    pub(crate) fn of(&self, id: OriginId) -> &Origin {
        // Origins are made in the order of their numbers.
        &self.all[usize::from(id.0)]
    }

    /// An origin of the RIB's own: what it tells follows from what others have told.
    pub(crate) fn reserve(
        &mut self,
        protocol: &str,
        own: Standing,
        config: &Config,
        tables: &mut Tables,
    ) -> OriginId {
        if let Some(origin) = self.all.iter().find(|one| one.protocol == protocol) {
            return origin.id;
        }
        let standing = standing(own, protocol, config);
        let origin = Origin::new(protocol, tables.add_origin(standing), [own, standing]);
        self.all.push(origin);
        self.all[self.all.len() - 1].id
    }

    /// Whether one of the RIB's own has told everything.
    pub(crate) fn has_told(&mut self, id: OriginId, told: bool) {
        self.all[usize::from(id.0)].has_told = told;
    }

    /// Somebody wants to speak for a protocol: a process of this binary, or who is guarded.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        (session, is_own): (u64, bool),
        request: interface::OpenOrigin,
        config: &Config,
        tables: &mut Tables,
    ) -> Result<Opened, XrlError> {
        let interface::OpenOrigin { protocol, external, distance } = request;
        if distance > NEVER {
            let note = format!("a distance is from 0 to {NEVER}, not {distance}");
            return Err(XrlError::bad_args(note));
        }
        let own = Standing { distance, is_external: external };
        let is_reserved = protocol == aggregates::PROTOCOL;
        let there = self.all.iter_mut().find(|one| one.protocol == protocol);
        if let Some(origin) = there {
            if origin.session.is_some_and(|other| other != session) {
                return Err(taken(&protocol));
            }
            if origin.own.is_external != external {
                let note =
                    format!("`{protocol}` was internal or external before, and cannot change");
                return Err(XrlError::failed(note));
            }
            origin.own = own;
            (origin.session, origin.has_told, origin.ends) = (Some(session), false, None);
            origin.gone = None;
            origin.is_own = is_own;
            (origin.has_complained, origin.must_begin) = (false, false);
            origin.set_guard(now, config, tables);
            let standing = standing(own, &origin.protocol, config);
            let is_other = standing.distance != origin.standing.distance;
            if is_other {
                origin.standing = standing;
                tables.set_standing(origin.id, standing);
            }
            tables.begin(origin.id);
            let has_kept = tables.has_routes_of(origin.id);
            return Ok(Opened { id: origin.id, has_kept, is_other });
        }
        if is_reserved {
            return Err(taken(&protocol));
        }
        if self.all.len() >= MOST {
            return Err(XrlError::failed(format!("there are {MOST} protocols already")));
        }
        let standing = standing(own, &protocol, config);
        let id = tables.add_origin(standing);
        let origin = Origin::new(&protocol, id, [own, standing]);
        let (session, has_told) = (Some(session), false);
        let mut origin = Origin { session, has_told, is_own, ..origin };
        origin.set_guard(now, config, tables);
        self.all.push(origin);
        Ok(Opened { id, has_kept: false, is_other: false })
    }

    /// Whether an origin may tell a route; if not, it was counted, and what is to be said about it comes back once.
    pub(crate) fn may_tell(
        &mut self,
        now: Instant,
        id: OriginId,
        (version, prefix): (Version, Prefix),
        tables: &Tables,
    ) -> Result<(), Option<String>> {
        let origin = &mut self.all[usize::from(id.0)];
        let Some(guard) = &mut origin.guard else { return Ok(()) };
        let is_new = !tables.has_told((version, prefix), id);
        let count = tables.reckon((version, prefix), id, guard.allowance().most);
        let told = guard.tells(now, (version.with(false), &prefix), count, is_new);
        told.map_err(|refusal| {
            let net = version.net(&prefix);
            let is_first = !std::mem::replace(&mut origin.has_complained, true);
            is_first.then(|| {
                format!(
                    "`{}` tells what it may not, which is refused: {net}, as it would be among {}; \
                     `guard` in the statement `rib` allows more",
                    origin.protocol,
                    refusal.help()
                )
            })
        })
    }

    /// An origin takes back what it has not told.
    pub(crate) fn was_not_told(&mut self, id: OriginId) {
        if let Some(guard) = &mut self.all[usize::from(id.0)].guard {
            guard.was_not_told();
        }
    }

    /// The origin with this number, if the session may speak for it and what it tells makes sense without the rest.
    pub(crate) fn check(&self, session: u64, number: u32) -> Result<OriginId, XrlError> {
        let origin = &self.all[self.place(session, number)?];
        if origin.must_begin {
            return Err(XrlError::failed(format!(
                "`{}` may tell more now, of which some was refused before: open the origin again, and tell everything",
                origin.protocol.escape_debug()
            )));
        }
        Ok(origin.id)
    }

    fn place(&self, session: u64, number: u32) -> Result<usize, XrlError> {
        let origin = usize::try_from(number).ok().filter(|place| *place < self.all.len());
        let origin = origin.filter(|place| self.all[*place].session == Some(session));
        origin.ok_or_else(|| {
            let note = format!("{number} is no origin of this caller's: `open_origin` makes one");
            XrlError::bad_args(note)
        })
    }

    pub(crate) fn begin(
        &mut self,
        session: u64,
        number: u32,
        tables: &mut Tables,
    ) -> Result<(), XrlError> {
        let place = self.place(session, number)?;
        let origin = &mut self.all[place];
        (origin.has_told, origin.has_complained, origin.must_begin) = (false, false, false);
        tables.begin(origin.id);
        Ok(())
    }

    pub(crate) fn end(
        &mut self,
        session: u64,
        number: u32,
        tables: &mut Tables,
    ) -> Result<(), XrlError> {
        let place = self.place(session, number)?;
        self.all[place].has_told = true;
        tables.end(self.all[place].id);
        Ok(())
    }

    /// The protocol has no routes any more.
    pub(crate) fn close(
        &mut self,
        session: u64,
        number: u32,
        tables: &mut Tables,
    ) -> Result<(), XrlError> {
        let place = self.place(session, number)?;
        let origin = &mut self.all[place];
        (origin.session, origin.has_told) = (None, true);
        tables.begin(origin.id);
        tables.end(origin.id);
        Ok(())
    }

    /// A caller is gone: its routes serve on for a time, unless the node does not want it any more.
    pub(crate) fn left(
        &mut self,
        now: Instant,
        (session, removed): (u64, bool),
        config: &Config,
        tables: &mut Tables,
    ) {
        for origin in self.all.iter_mut().filter(|one| one.session == Some(session)) {
            (origin.session, origin.ends) = (None, Some(now + config.grace));
            origin.gone = Some(session);
            tables.begin(origin.id);
        }
        for origin in self.all.iter_mut().filter(|one| removed && one.gone == Some(session)) {
            (origin.gone, origin.ends, origin.has_told) = (None, None, true);
            tables.end(origin.id);
        }
    }

    /// The configuration has changed.
    pub(crate) fn configure(&mut self, now: Instant, config: &Config, tables: &mut Tables) {
        for origin in &mut self.all {
            let standing = standing(origin.own, &origin.protocol, config);
            if standing.distance != origin.standing.distance {
                origin.standing = standing;
                tables.set_standing(origin.id, standing);
            }
            origin.ends = origin.ends.map(|ends| ends.min(now + config.grace));
            origin.set_guard(now, config, tables);
        }
    }

    /// Takes the routes of protocols that have not come back.
    pub(crate) fn tick(&mut self, now: Instant, tables: &mut Tables) {
        self.patience = self.patience.filter(|patience| *patience > now);
        self.coming = self.coming.filter(|coming| *coming > now);
        for origin in &mut self.all {
            if origin.ends.is_some_and(|ends| ends <= now) {
                (origin.ends, origin.has_told) = (None, true);
                tables.end(origin.id);
            }
        }
    }

    /// Whether protocols have told all that they had: what the FEA has besides is of no use any more. Soon after the start
    /// others may still come, and nothing is taken for all. Those that are not trusted are waited for a while after it, and
    /// then hold up nobody.
    pub(crate) fn have_told(&self) -> bool {
        let mut others = self.all.iter().filter(|one| !one.is_reserved()).peekable();
        let somebody_came = others.peek().is_some();
        let is_awaited = |one: &&Origin| one.guard.is_none() || self.are_waited_for();
        let all = others.filter(is_awaited).all(|one| one.has_told);
        all && self.coming.is_none() && (somebody_came || !self.are_waited_for())
    }

    /// Whether protocols may still come that the configuration has started.
    pub(crate) fn are_waited_for(&self) -> bool {
        self.patience.is_some()
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let ends = self.all.iter().filter_map(|one| one.ends);
        ends.chain(self.patience).chain(self.coming).min()
    }
}

impl Origin {
    /// Lets it tell what the configuration says. What it has told and may not tell any more goes.
    fn set_guard(&mut self, now: Instant, config: &Config, tables: &mut Tables) {
        if self.is_reserved() {
            return;
        }
        let allowance = config.allowance(&self.protocol, self.is_own);
        let before = self.guard.as_ref().map(Guard::allowance);
        if before == allowance.as_ref() {
            return;
        }
        if let Some(allowance) = &allowance {
            tables.withdraw_unless(self.id, |(version, net)| {
                allowance.holds(version.with(false), net)
            });
        }
        let allows_more = match (before, &allowance) {
            (Some(before), Some(allowance)) => allowance.exceeds(before),
            (before, allowance) => before.is_some() && allowance.is_none(),
        };
        // Nobody here knows any more what was refused.
        self.must_begin |= allows_more && self.has_complained;
        match (&mut self.guard, allowance) {
            (Some(guard), Some(allowance)) => guard.allow(allowance),
            (guard, allowance) => *guard = allowance.map(|allowance| Guard::new(now, allowance)),
        }
    }
}

/// How a protocol stands with the configuration.
fn taken(protocol: &str) -> XrlError {
    XrlError::failed(format!("somebody else speaks for `{}`", protocol.escape_debug()))
}

fn standing(own: Standing, protocol: &str, config: &Config) -> Standing {
    let distance = config.distances.get(protocol).copied().unwrap_or(own.distance);
    Standing { distance, ..own }
}
