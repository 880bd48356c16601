//! Route flap damping: routes of another system that come and go are not used until they have been still for a while.
//!
//! Reference: RFC 2439 §4.4 and §4.8 (what is kept of a route, and when it is not used), §4.8.6 and §4.8.7 (lists of what
//! may be used again); RFC 7196 (the values); Handley et al. (XORP), §5.1.1 (one stage, of which no other knows).
//!
//! It differs from RFC 2439 where the routers do whose values RFC 7196 is about: a record is of a prefix, whatever its AS
//! path is (§4.4.3), so that another path costs points in place of having a record of its own; and points go in the same
//! time whether the route is there or not (§4.2). The test `routes_are_damped_as_the_formula_says` has both.
//!
//! Only routes that have changed have a record here, which is forgotten when they have been still. A route without one costs
//! a look-up; a peer without damping costs nothing. The loss of a session is no change of its routes.
//!
//! A record has some 120 bytes with its places in the tables, and a peer [`MOST`] of them; what is beyond is not damped, and
//! counted.

mod penalty;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::IpNet;
use weft_base::Instant;
use weft_routing::ip::Version;

use crate::config::Damping as Config;
pub(crate) use penalty::Penalty;

/// Records of a peer at most: 8 MB.
const MOST: usize = 65_536;
/// What is due in the same span is in one list (RFC 2439 §4.2, `delta-reuse`).
const SPAN: Duration = Duration::from_secs(5);
/// What a change costs, as with the routers of RFC 7196.
const WITHDRAWAL: u32 = 1000;
const CHANGE: u32 = 500;

/// A route of a peer: its table, its prefix, and the identifier of the path (RFC 7911).
pub(crate) type Key = (Version, IpNet, u32);

/// What has become of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It was there, and is withdrawn.
    Withdrawn,
    /// It was there, and says something else now.
    Changed,
    /// It is announced, and was not there, or says what it said before.
    Announced,
}

/// What is known of a route that has changed.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// As it was when the route changed last.
    penalty: Penalty,
    changed: Instant,
    is_damped: bool,
}

/// What can be said of a route to operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) penalty: u32,
    /// When it is used again, if it is not.
    pub(crate) until: Option<Instant>,
}

/// The routes of a peer that have changed lately.
#[derive(Debug)]
pub(crate) struct Damping {
    config: Config,
    records: BTreeMap<Key, Record>,
    /// When something is to be done with which: every record is in one list.
    lists: BTreeMap<u64, Vec<Key>>,
    damped: usize,
    /// Routes that changed when there was no room for them.
    missed: u64,
}

impl Damping {
    /// No route has changed.
    pub(crate) fn new(config: Config) -> Self {
        Self { config, records: BTreeMap::new(), lists: BTreeMap::new(), damped: 0, missed: 0 }
    }

    pub(crate) fn config(&self) -> Config {
        self.config
    }

    /// How many routes are not used.
    pub(crate) fn damped(&self) -> usize {
        self.damped
    }

    /// How many have a record.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// How often there was no room for one.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }

    /// Something has become of a route. Returns whether it is not to be used.
    pub(crate) fn happened(&mut self, now: Instant, key: Key, event: Event) -> bool {
        let points = match event {
            Event::Withdrawn => WITHDRAWAL,
            Event::Changed => CHANGE,
            Event::Announced => return self.is_damped(&key),
        };
        let (config, is_full) = (self.config, self.records.len() >= MOST);
        let Some(record) = self.records.get_mut(&key) else {
            if is_full {
                self.missed += 1;
                return false;
            }
            let penalty = Penalty::new(points);
            let is_damped = penalty.points() > config.suppress;
            let record = Record { penalty, changed: now, is_damped };
            self.records.insert(key, record);
            self.damped += usize::from(is_damped);
            self.put(key, &record);
            return is_damped;
        };
        let left = record.penalty.after(now.since(record.changed), config.half_life);
        (record.penalty, record.changed) = (left.add(points), now);
        if !record.is_damped && record.penalty.points() > config.suppress {
            record.is_damped = true;
            self.damped += 1;
        }
        // Its place in the lists is looked at when its time comes.
        record.is_damped
    }

    /// Whether a route is not to be used.
    pub(crate) fn is_damped(&self, key: &Key) -> bool {
        self.records.get(key).is_some_and(|record| record.is_damped)
    }

    /// When something is to be done with a record: it is used again, or forgotten.
    fn due(&self, record: &Record) -> Instant {
        let Config { reuse, half_life, max_suppress, .. } = self.config;
        let time = match record.is_damped {
            true => record.penalty.time_until(reuse, half_life, max_suppress),
            // Half of that, as others do, so that it is not forgotten between two changes.
            false => record.penalty.time_until((reuse / 2).max(1), half_life, half_life * 32),
        };
        record.changed + time
    }

    fn put(&mut self, key: Key, record: &Record) {
        let due = self.due(record).as_nanos();
        self.lists.entry(due.div_ceil(span())).or_default().push(key);
    }

    /// When something is to be done.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let (list, _) = self.lists.first_key_value()?;
        Some(Instant::from_nanos(list.saturating_mul(span())))
    }

    /// Looks at so many records whose time may have come; returns the routes that are used again.
    pub(crate) fn tick(&mut self, now: Instant, most: usize) -> Vec<Key> {
        let mut again = Vec::new();
        let mut left = most;
        while left > 0 && self.deadline().is_some_and(|deadline| deadline <= now) {
            let Some(mut list) = self.lists.first_entry() else { break };
            let keys = list.get_mut();
            let taken = keys.split_off(keys.len().saturating_sub(left));
            if keys.is_empty() {
                list.remove();
            }
            left -= taken.len();
            for key in taken {
                again.extend(self.look(now, key));
            }
        }
        again
    }

    /// Looks at a record; returns the route if it is used again.
    fn look(&mut self, now: Instant, key: Key) -> Option<Key> {
        let mut record = *self.records.get(&key)?;
        if self.due(&record) > now {
            self.put(key, &record);
            return None;
        }
        if !record.is_damped {
            self.records.remove(&key);
            return None;
        }
        self.damped -= 1;
        let left = record.penalty.after(now.since(record.changed), self.config.half_life);
        // It may have been long enough though it has changed very often: then it stands like one that has just decayed.
        let penalty = left.min(Penalty::new(self.config.reuse));
        record = Record { penalty, changed: now, is_damped: false };
        self.records.insert(key, record);
        self.put(key, &record);
        Some(key)
    }

    /// How a route stands, if it has a record.
    pub(crate) fn standing(&self, now: Instant, key: &Key) -> Option<Standing> {
        let record = self.records.get(key)?;
        let left = record.penalty.after(now.since(record.changed), self.config.half_life);
        let until = record.is_damped.then(|| self.due(record));
        Some(Standing { penalty: left.points(), until })
    }
}

/// In nanoseconds.
fn span() -> u64 {
    // It is a few seconds.
    SPAN.as_nanos() as u64
}
