//! The routing information base: decides between the routes of all protocols.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §3 (what a RIB is for), §5.2 (its stages)
//! and §5.2.1 (interest registration).
//!
//! The way of a route: a protocol's `change` is read by `Rib::change`, which makes its next hops sets (`hops`) and puts
//! the route into the table of its version of IP (`tables`), where the arbiter decides what is best (`arbiter`). Readers of the tables
//! hear of it: the way to the FEA (`fib`) sends it on. Routes to gateways change with the internal routes that lead
//! there (`leads`, `reach`), and so do the answers that clients were given. Other readers
//! make aggregates (`aggregates`), and tell protocols what others have told (`redistribution`). What takes long — the routes of a protocol that is
//! gone, a next hop of a million routes that moved — is done in slices (`tables`).

mod aggregates;
mod arbiter;
mod config;
mod connected;
mod fib;
mod hops;
mod leads;
mod origins;
mod reach;
mod redistribution;
mod show;
mod tables;
#[cfg(test)]
mod tests;
mod watchers;

use std::collections::{BTreeMap, BTreeSet};

use aggregates::Aggregates;
use arbiter::Route;
use config::Config;
pub use config::{SCHEMA, STATEMENT};
use connected::Connected;
use fib::{FEA, Fib};
use hops::{Hop, SetId};
use ipnet::IpNet;
use origins::Origins;
use redistribution::Redistribution;
use tables::{Point, Tables};
use watchers::Watchers;
use weft_base::{CounterGroup, Counters, Instant};
use weft_routing::TOGETHER;
use weft_routing::ip::{Version, split_for};
use weft_runtime::{Action, Component, Event, InterfaceChange, Level, MOST_WAYS};
use weft_xrl::profile::{self, Clock, Profile};
use weft_xrl::{Called, Encoded, Input, Interface, Output, XrlError, configurable};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod interface {
    //! The RIB's interface.
    include!(concat!(env!("OUT_DIR"), "/rib.rs"));
}

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
mod fib_interface {
    //! What the FEA does with routes.
    include!(concat!(env!("OUT_DIR"), "/fib.rs"));
}

weft_base::reasons! {
    /// What the RIB counts.
    enum Activity {
        Told = "told", "routes that protocols have told";
        Gone = "gone", "routes that protocols have taken back";
        NotThere = "not-there", "routes taken back that nobody had told";
        NoSet = "no-set", "routes left out because their set of hops was not told with them";
        Refused = "refused", "routes that guards have refused, of protocols that are not trusted";
        BadHop = "bad-hop", "hops left out because they name nothing or are too many, and routes whose hops are of the wrong version of IP";
        Registered = "registered", "addresses that clients have asked for";
        Invalidated = "invalidated", "answers to clients that hold no longer";
    }
}

/// Numbers of sets below this are those without hops.
const FIRST_SET: u32 = 16;

/// The interfaces of the RIB.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&interface::INTERFACE, &configurable::INTERFACE, &profile::INTERFACE]
}

/// The RIB; see the crate's text.
pub struct Rib {
    config: Config,
    /// The names of those who are trusted; everybody if there are none.
    own: BTreeSet<&'static str>,
    tables: Tables,
    origins: Origins,
    connected: Connected,
    aggregates: Aggregates,
    /// Until it is known what is on the links of this router, protocols wait: they would be told that next hops cannot be
    /// reached, and take back what leads there. None if nobody has to wait.
    waiting: Option<Vec<Called>>,
    watchers: Watchers,
    redistribution: Redistribution,
    /// IPv4 and IPv6.
    fibs: [Fib; 2],
    counters: Counters<Activity>,
}

/// What is left to do for a call.
enum Next {
    Answer(Encoded),
    /// Until answers hold no longer, or so many milliseconds.
    Wait(u32),
    /// Until a route is different.
    Redistribute(interface::Redistribute),
}

impl Default for Rib {
    fn default() -> Self {
        Self::new()
    }
}

impl Rib {
    /// A RIB that knows no routes yet.
    #[must_use]
    pub fn new() -> Self {
        let mut tables = Tables::new();
        let config = Config::default();
        let origins = Origins::new(&mut tables);
        Self {
            config,
            own: BTreeSet::new(),
            tables,
            origins,
            connected: Connected::default(),
            aggregates: Aggregates::default(),
            waiting: None,
            watchers: Watchers::default(),
            redistribution: Redistribution::default(),
            fibs: [Fib::new(Version::V4), Fib::new(Version::V6)],
            counters: Counters::new(),
        }
    }

    /// A RIB that trusts processes with these names. The routes of all others pass a guard.
    #[must_use]
    pub fn trusting(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self { own: names.into_iter().collect(), ..Self::new() }
    }

    /// The same with a clock for its profile points, if there is one.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<Clock>) -> Self {
        self.tables.profile = Profile::new(clock);
        self
    }

    fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        if called.interface.name == profile::INTERFACE.name {
            return out.push(self.tables.profile.answer(called));
        }
        let next = match called.interface.name == interface::INTERFACE.name {
            true => {
                let is_own = self.own.is_empty() || self.own.contains(&*called.caller);
                let who = (called.session, is_own);
                called.read().and_then(|call| self.asked(now, who, call, out))
            }
            false => called.read().and_then(|call| self.manage(now, call, out)).map(Next::Answer),
        };
        match next {
            Ok(Next::Answer(encoded)) => {
                out.push(Output::Answer { id: called.id, result: Ok(encoded) });
            }
            Ok(Next::Wait(wait)) => self.watchers.wait(now, called, wait, out),
            Ok(Next::Redistribute(request)) => {
                self.redistribution.ask(now, called, request, &mut self.tables, out);
            }
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// Does what a protocol or an operator asks.
    fn asked(
        &mut self,
        now: Instant,
        (session, is_own): (u64, bool),
        call: interface::Call,
        out: &mut Vec<Output>,
    ) -> Result<Next, XrlError> {
        use interface::Call;
        Ok(Next::Answer(match call {
            Call::OpenOrigin(request) => {
                let config = &self.config;
                let who = (session, is_own);
                let opened = self.origins.open(now, who, request, config, &mut self.tables)?;
                if opened.is_other {
                    self.redistribution.tell_again(&mut self.tables);
                }
                Encoded::new(interface::OpenOriginReply {
                    origin: u32::from(opened.id.0),
                    kept: Some(opened.has_kept),
                })
            }
            Call::Change(request) => {
                self.change(now, session, request, out)?;
                Encoded::default()
            }
            Call::Begin(interface::Begin { origin }) => {
                self.origins.begin(session, origin, &mut self.tables)?;
                Encoded::default()
            }
            Call::End(interface::End { origin }) => {
                self.origins.end(session, origin, &mut self.tables)?;
                Encoded::default()
            }
            Call::CloseOrigin(interface::CloseOrigin { origin }) => {
                self.origins.close(session, origin, &mut self.tables)?;
                Encoded::default()
            }
            Call::Register(interface::Register { addresses }) => {
                self.counters.add(Activity::Registered, addresses.len() as u64);
                let ways = addresses.into_iter().map(|address| {
                    let (block, answer) = self.tables.register(session, address);
                    watchers::way(block, &answer)
                });
                Encoded::new(interface::RegisterReply { ways: ways.collect() })
            }
            Call::Deregister(interface::Deregister { blocks }) => {
                blocks.into_iter().for_each(|block| self.tables.deregister(session, block));
                Encoded::default()
            }
            Call::Invalid(interface::Invalid { wait }) => return Ok(Next::Wait(wait)),
            Call::Redistribute(request) => return Ok(Next::Redistribute(request)),
            Call::Show(request) => {
                let shown =
                    show::show(&request, &self.tables, &self.origins, &self.connected, &self.fibs)?;
                Encoded::new(interface::ShowReply { json: shown.to_string() })
            }
        }))
    }

    /// A protocol tells routes, and takes others back.
    fn change(
        &mut self,
        now: Instant,
        session: u64,
        request: interface::Change,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        let origin = self.origins.check(session, request.origin)?;
        let sets = self.sets(request.hops);
        let place = |net: IpNet| split_for(net, request.multicast == Some(true));
        let (routes, gone) = (request.routes, request.gone);
        self.counters.add(Activity::Told, routes.len() as u64);
        for (number, interface::Route { net, set, metric, tag }) in routes.iter().enumerate() {
            if number % TOGETHER == 0 {
                self.tables.approach(routes[number..].iter().map(|route| place(route.net)));
            }
            self.tables.profile.mark_event(Point::Arrived, false, || *net);
            let Some(set) = sets.get(set) else {
                self.counters.add(Activity::NoSet, 1);
                continue;
            };
            if !self.tables.sets.can_serve(*set, place(*net).0) {
                self.counters.add(Activity::BadHop, 1);
                // What was told before does not hold any more either.
                self.tables.withdraw(place(*net), origin);
                continue;
            }
            match self.origins.may_tell(now, origin, place(*net), &self.tables) {
                Ok(()) => self.tables.set(
                    place(*net),
                    origin,
                    Route { set: *set, metric: *metric, tag: *tag },
                ),
                Err(line) => {
                    self.counters.add(Activity::Refused, 1);
                    let report = |line| Action::Report { level: Level::Warning, line };
                    out.extend(line.map(report).map(Output::World));
                }
            }
        }
        for (number, net) in gone.iter().enumerate() {
            if number % TOGETHER == 0 {
                self.tables.approach(gone[number..].iter().map(|net| place(*net)));
            }
            self.tables.profile.mark_event(Point::Arrived, true, || *net);
            let reason = match self.tables.withdraw(place(*net), origin) {
                true => Activity::Gone,
                false => {
                    self.origins.was_not_told(origin);
                    Activity::NotThere
                }
            };
            self.counters.add(reason, 1);
        }
        let own = sets.into_values().filter(|set| !set.is_nowhere());
        own.for_each(|set| self.tables.give(set));
        Ok(())
    }

    /// The sets of hops that a call has told, by the numbers that it gave them.
    fn sets(&mut self, hops: Vec<interface::Hop>) -> BTreeMap<u32, SetId> {
        let mut sets: BTreeMap<u32, Vec<Hop>> = BTreeMap::new();
        for hop in hops.into_iter().filter(|hop| hop.set >= FIRST_SET) {
            let gateway = Some(hop.gateway).filter(|gateway| !gateway.is_unspecified());
            let interface = Some(hop.interface).filter(|interface| *interface > 0);
            let has_room = sets.get(&hop.set).is_none_or(|hops| hops.len() < MOST_WAYS);
            if has_room && (gateway.is_some() || interface.is_some()) {
                let weight = hop.weight.clamp(1, 256);
                sets.entry(hop.set).or_default().push(Hop { gateway, interface, weight });
            } else {
                self.counters.add(Activity::BadHop, 1);
            }
        }
        let nowhere = (hops::BLACKHOLE.0..=hops::PROHIBIT.0).map(|number| (number, SetId(number)));
        let sets = sets.into_iter().map(|(number, hops)| (number, self.tables.set_of(hops)));
        nowhere.chain(sets).collect()
    }

    /// What the manager asks.
    fn manage(
        &mut self,
        now: Instant,
        call: configurable::Call,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        use configurable::{Call, Check, Configure, SchemaReply, StatusReply};
        let wrong = |errors: weft_config::Errors| XrlError::failed(errors.to_string());
        Ok(match call {
            Call::Check(Check { source, text, .. }) => {
                config::read(&source, &text).map_err(wrong)?;
                Encoded::default()
            }
            Call::Configure(Configure { source, text, .. }) => {
                let config = config::read(&source, &text).map_err(wrong)?;
                self.configure(now, config, out);
                Encoded::default()
            }
            Call::Schema(_) => Encoded::new(SchemaReply { text: SCHEMA.to_owned() }),
            Call::Status(_) => {
                let detail = self.fibs[0].describe().to_owned();
                Encoded::new(StatusReply { ready: true, detail })
            }
        })
    }

    fn configure(&mut self, now: Instant, config: Config, out: &mut Vec<Output>) {
        let table_changes = config.table != self.config.table;
        let trust_changes = config.distances != self.config.distances;
        self.config = config;
        self.origins.configure(now, &self.config, &mut self.tables);
        self.aggregates.configure(&self.config, &mut self.origins, &mut self.tables);
        if trust_changes {
            self.redistribution.tell_again(&mut self.tables);
        }
        if table_changes {
            for fib in &mut self.fibs {
                fib.move_to(self.config.table, &mut self.tables, out);
            }
        }
    }
}

impl Component for Rib {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.tables.profile.begin(now);
        match input {
            Input::World(Event::Start) => {
                self.origins.started(now);
                self.waiting = Some(Vec::new());
                out.push(Output::World(Action::WatchInterfaces));
            }
            Input::Registered => out.push(Output::Watch { class: Some(FEA.to_owned()) }),
            Input::Born { class, .. } if class == FEA => {
                for fib in &mut self.fibs {
                    fib.born(self.config.table, &mut self.tables, out);
                }
            }
            Input::Died { class, .. } if class == FEA => {
                self.fibs.iter_mut().for_each(|fib| fib.away(&mut self.tables));
            }
            Input::Called(called) => match &mut self.waiting {
                Some(waiting) if called.interface.name == interface::INTERFACE.name => {
                    waiting.push(called);
                }
                _ => self.called(now, called, out),
            },
            Input::Left { session, removed } => {
                self.waiting.iter_mut().for_each(|all| all.retain(|one| one.session != session));
                self.tables.left(session);
                self.watchers.left(session);
                self.redistribution.left(session, &mut self.tables);
                let who = (session, removed);
                self.origins.left(now, who, &self.config, &mut self.tables);
            }
            Input::Replied { token, result } => {
                let [v4, v6] = &mut self.fibs;
                let fib = if Fib::is_for_ipv6(token) { v6 } else { v4 };
                fib.replied(now, token, result, &mut self.tables, out);
            }
            Input::World(Event::Interface { change }) => {
                let is_complete = matches!(change, InterfaceChange::Complete);
                let origin = self.origins.connected();
                self.connected.changed(change, origin, &mut self.tables);
                if let Some(waiting) = self.waiting.take_if(|_| is_complete) {
                    waiting.into_iter().for_each(|called| self.called(now, called, out));
                }
            }
            Input::World(Event::Slice) => self.tables.work(),
            Input::World(Event::Tick) => {
                self.origins.tick(now, &mut self.tables);
                self.watchers.tick(now, out);
                self.redistribution.tick(now, &self.tables, out);
                self.fibs.iter_mut().for_each(|fib| fib.tick(now, &mut self.tables, out));
            }
            Input::World(Event::Stop) => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
        self.aggregates.work(&mut self.tables, &mut self.origins);
        let invalid = self.tables.take_invalid();
        self.counters.add(Activity::Invalidated, invalid.len() as u64);
        self.watchers.invalid(invalid, out);
        let may_end = self.origins.have_told() && !self.aggregates.has_work(&self.tables);
        self.fibs.iter_mut().for_each(|fib| fib.tell(may_end, &mut self.tables, out));
        self.redistribution.tell(&mut self.tables, &self.origins, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let deadlines =
            [self.origins.deadline(), self.watchers.deadline(), self.redistribution.deadline()];
        deadlines.into_iter().chain(self.fibs.iter().map(Fib::deadline)).flatten().min()
    }

    fn has_background_work(&self) -> bool {
        self.tables.has_work()
            || self.redistribution.has_work(&self.tables)
            || self.aggregates.has_work(&self.tables)
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![CounterGroup::new("rib-activity", "what the RIB has done", &self.counters)]
    }
}
