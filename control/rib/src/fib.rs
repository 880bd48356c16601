//! What is decided goes to the FEA, which puts it where packets are forwarded.
//!
//! Reference: Handley et al. (XORP), §3 and Figure 1 (the RIB hands its routes to the FEA), §8.2 (the way of a route into
//! the kernel).
//!
//! Changes travel in batches of what there is: a single one at once, many together. A few batches are under way at a
//! time; while the FEA is slower than protocols, the rest waits in the table, where a destination that changes again
//! takes no more room. When the FEA comes, or has lost track, it is told everything, between `begin` and `end`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use weft_base::Instant;
use weft_routing::ip::{IpRoutes, News, Version};
use weft_routing::{Hears, ReaderId, Said};
use weft_runtime::{Action, Level};
use weft_xrl::profile::Profile;
use weft_xrl::{Call, Lane, Output, Reply, Request, Window, XrlError};

use crate::arbiter::Route;
use crate::connected::ORIGIN as CONNECTED;
use crate::fib_interface as interface;
use crate::hops::SetId;
use crate::tables::{Point, Tables};

/// The FEA's class.
pub(crate) const FEA: &str = "fea";
/// When the FEA is asked again that has refused.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a call may take: the FEA answers when it can take more, and the kernel can be slow.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long the FEA may have nothing to tell, in milliseconds; and how long that call may take.
const QUIET: u32 = 20_000;
/// Numbers of sets in calls; below are those without hops.
const FIRST_SET: u32 = 16;
/// Refused routes that are written to the log of those that come together.
const REPORTED: usize = 5;

/// How far the FEA is with us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It is not there.
    #[default]
    Away,
    /// It is told everything.
    Beginning,
    /// All is told that was known at the beginning.
    Ending,
    /// It is told what changes.
    Following,
    /// It has refused, and is asked again then.
    Refused(Instant),
}

/// The way to the FEA for one version of IP.
#[derive(Debug)]
pub(crate) struct Fib {
    version: Version,
    state: State,
    reader: Option<ReaderId>,
    /// Which destinations the FEA has a route to.
    said: Said,
    /// Calls with changes under way. The FEA sets new routes before it takes others back, but it must hear of them.
    window: Window,
    /// Grows with each beginning: answers of an earlier one mean nothing.
    life: u64,
    table: u32,
    /// How many changes it was told.
    told: u64,
    /// How many routes the kernel has refused.
    refused: u64,
}

/// What a call was about, in its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum About {
    Begin,
    Change,
    /// A change with nothing but routes that were told just now.
    New,
    End,
    Events,
}

impl Fib {
    /// Nobody is there yet.
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            state: State::Away,
            reader: None,
            said: Said::default(),
            window: Window::default(),
            life: 0,
            table: 0,
            told: 0,
            refused: 0,
        }
    }

    fn is_ipv6(&self) -> bool {
        self.version == Version::V6
    }

    /// The FEA is there; told again when the Finder has come back, which changes nothing.
    pub(crate) fn born(&mut self, table: u32, tables: &mut Tables, out: &mut Vec<Output>) {
        match self.state {
            State::Away | State::Refused(_) => self.begin(table, tables, out),
            State::Beginning | State::Ending | State::Following => {}
        }
    }

    /// The FEA is told everything.
    fn begin(&mut self, table: u32, tables: &mut Tables, out: &mut Vec<Output>) {
        self.away(tables);
        self.table = table;
        self.state = State::Beginning;
        self.reader = Some(tables.routes.open_reader(self.version, Hears::Best));
        let is_ipv6 = self.is_ipv6();
        out.push(
            self.call(About::Begin, interface::Begin { table, is_ipv6, metric: None, keep: None }),
        );
    }

    /// What is in the table that was used goes: another one is used from now on.
    pub(crate) fn move_to(&mut self, table: u32, tables: &mut Tables, out: &mut Vec<Output>) {
        if self.state == State::Away {
            return;
        }
        let (old, is_ipv6) = (self.table, self.is_ipv6());
        let begin = interface::Begin { table: old, is_ipv6, metric: None, keep: None };
        out.push(self.call(About::Begin, begin));
        out.push(self.call(About::End, interface::End { table: old, is_ipv6 }));
        self.begin(table, tables, out);
    }

    /// The FEA is gone. What it has put where packets are forwarded serves on.
    pub(crate) fn away(&mut self, tables: &mut Tables) {
        self.life += 1;
        self.window = Window::default();
        self.state = State::Away;
        self.said = Said::default();
        if let Some(reader) = self.reader.take() {
            tables.routes.close_reader(self.version, reader);
        }
    }

    fn call(&self, about: About, request: impl Request) -> Output {
        let token = self.life << 4 | u64::from(self.is_ipv6()) << 3 | about as u64;
        Call::new(token, FEA, request).within(PATIENCE).into()
    }

    fn events(&self) -> Output {
        let (table, is_ipv6) = (self.table, self.is_ipv6());
        self.call(About::Events, interface::Events { table, is_ipv6, wait: QUIET })
    }

    /// Tells what is to be told and can be. `may_end` says whether protocols have told all that they had.
    pub(crate) fn tell(&mut self, may_end: bool, tables: &mut Tables, out: &mut Vec<Output>) {
        let Some(reader) = self.reader else { return };
        while self.window.is_open() && tables.routes.is_behind(self.version, reader) {
            let change = self.batch(tables, |routes, version| routes.next(version, reader));
            if !self.send(Lane::All, change, &mut tables.profile, out) {
                break;
            }
        }
        if self.window.is_open_for_new(tables.routes.new_waiting(self.version, reader)) {
            let change = self.batch(tables, |routes, version| routes.next_new(version, reader));
            self.send(Lane::New, change, &mut tables.profile, out);
        }
        self.agrees(reader, tables);
        let is_done = self.window.is_empty() && !tables.routes.is_behind(self.version, reader);
        if self.state == State::Beginning && may_end && is_done {
            self.state = State::Ending;
            let (table, is_ipv6) = (self.table, self.is_ipv6());
            out.push(self.call(About::End, interface::End { table, is_ipv6 }));
        }
    }

    /// Whether the FEA was told what is used, now and then, if there is nothing left to tell.
    fn agrees(&mut self, reader: ReaderId, tables: &Tables) {
        let (version, routes) = (self.version, &tables.routes);
        if !routes.is_behind(version, reader) && self.said.is_due(routes.len(version)) {
            let all = routes.all_news(version).filter_map(|news| Some((news.prefix, news.best?)));
            let told = all.filter(|(_, best)| best.origin != CONNECTED);
            self.said.compare(told.map(|(prefix, best)| (prefix, best.origin)));
        }
    }

    /// Tells the FEA of changes; false if there are none.
    fn send(
        &mut self,
        lane: Lane,
        change: interface::Change,
        profile: &mut Profile<Point>,
        out: &mut Vec<Output>,
    ) -> bool {
        if profile.is_on(Point::Sent) {
            change.routes.iter().for_each(|route| profile.mark(Point::Sent, false, || route.net));
            change.gone.iter().for_each(|net| profile.mark(Point::Sent, true, || *net));
        }
        let count = change.routes.len() + change.gone.len();
        self.told += count as u64;
        if count > 0 {
            let about = match lane {
                Lane::All => About::Change,
                Lane::New => About::New,
            };
            out.push(self.call(about, change));
            self.window.called(lane);
        }
        count > 0
    }

    /// The next changes.
    fn batch(
        &mut self,
        tables: &mut Tables,
        mut next: impl FnMut(&mut IpRoutes<Route>, Version) -> Option<News<Route>>,
    ) -> interface::Change {
        let mut change = interface::Change {
            table: self.table,
            is_ipv6: self.is_ipv6(),
            ways: Vec::new(),
            routes: Vec::new(),
            gone: Vec::new(),
        };
        let mut numbers = BTreeMap::new();
        while change.routes.len() + change.gone.len() < Window::CHANGES
            && let Some(news) = next(&mut tables.routes, self.version)
        {
            let net = self.version.net(&news.prefix);
            // What is on a link the kernel knows itself.
            let best = news.best.filter(|best| best.origin != CONNECTED);
            let before = self.said.set((news.number, &news.prefix), best.map(|best| best.origin));
            let Some(best) = best else {
                change.gone.extend(before.map(|_| net));
                continue;
            };
            // As many as there are routes in a call at most.
            let next = numbers.len() as u32 + FIRST_SET;
            let number = *numbers.entry(best.route.set).or_insert(next);
            let set = tables.sets.nowhere(best.route.set).map_or(number, |nowhere| nowhere.0);
            if number == next && set == number {
                change.ways.extend(ways(tables, best.route.set, number));
            }
            change.routes.push(interface::Route { net, set, fresh: before.is_none() });
        }
        change
    }

    /// Of which version the call with this token was.
    pub(crate) fn is_for_ipv6(token: u64) -> bool {
        token >> 3 & 1 == 1
    }

    /// The FEA has answered, or did not.
    pub(crate) fn replied(
        &mut self,
        now: Instant,
        token: u64,
        result: Result<Reply, XrlError>,
        tables: &mut Tables,
        out: &mut Vec<Output>,
    ) {
        if token >> 4 != self.life {
            return;
        }
        let is = |about: About| token & 7 == about as u64;
        for (about, lane) in [(About::Change, Lane::All), (About::New, Lane::New)] {
            if is(about) {
                self.window.answered(lane);
            }
        }
        let news = match result {
            Ok(reply) if is(About::Events) => reply.read::<interface::Events>().map(Some),
            Ok(_) if is(About::Begin) => {
                out.push(self.events());
                Ok(None)
            }
            Ok(_) => {
                if is(About::End) && self.state == State::Ending {
                    self.state = State::Following;
                }
                Ok(None)
            }
            Err(error) => Err(error),
        };
        match news {
            Ok(None) => {}
            Ok(Some(interface::EventsReply { again: true, .. })) => {
                self.begin(self.table, tables, out);
            }
            Ok(Some(events)) => {
                self.report(&events, out);
                out.push(self.events());
            }
            Err(error) => {
                // If it is gone, the manager says so.
                let level = if error.is_gone() { Level::Debug } else { Level::Warning };
                let line =
                    format!("the FEA does not take routes, and will be asked again: {error}");
                out.push(Output::World(Action::Report { level, line }));
                self.away(tables);
                self.state = State::Refused(now + AGAIN);
            }
        }
    }

    /// Says which routes the kernel has refused.
    fn report(&mut self, events: &interface::EventsReply, out: &mut Vec<Output>) {
        self.refused += events.refused.len() as u64 + u64::from(events.omitted);
        for refusal in events.refused.iter().take(REPORTED) {
            warn(
                format!("the kernel refuses the route to {}: {}", refusal.net, refusal.error),
                out,
            );
        }
        let others = events.refused.len().saturating_sub(REPORTED) + events.omitted as usize;
        if others > 0 {
            warn(format!("the kernel refuses {others} more routes"), out);
        }
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Refused(again) => Some(again),
            State::Away | State::Beginning | State::Ending | State::Following => None,
        }
    }

    /// Asks again if it is time.
    pub(crate) fn tick(&mut self, now: Instant, tables: &mut Tables, out: &mut Vec<Output>) {
        if self.deadline().is_some_and(|again| again <= now) {
            self.begin(self.table, tables, out);
        }
    }

    /// How many changes the FEA was told, and how many routes the kernel has refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.told, self.refused)
    }

    /// For people.
    pub(crate) fn describe(&self) -> &'static str {
        match self.state {
            State::Away => "the FEA is not there",
            State::Beginning => "the FEA is told everything",
            State::Ending => "the FEA carries out what it was told",
            State::Following => "the FEA is told each change",
            State::Refused(_) => "the FEA has refused and will be asked again",
        }
    }
}

fn warn(line: String, out: &mut Vec<Output>) {
    out.push(Output::World(Action::Report { level: Level::Warning, line }));
}

fn ways(tables: &Tables, set: SetId, number: u32) -> impl Iterator<Item = interface::Way> + '_ {
    tables.sets.ways(set).iter().map(move |way| interface::Way {
        set: number,
        gateway: way.gateway.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        interface: way.interface,
        weight: way.weight,
    })
}
