//! Routes to large networks that are there while routes to parts of them are: the origin `aggregate`.
//!
//! Reference: RFC 4632 §5.1 (who tells others of an aggregate drops packets to those parts of it to which he has no route);
//! RFC 4271 §9.2.2.2 (aggregates of BGP); Handley et al. (XORP), Figure 5, whose aggregation stage stands in BGP. Here it stands in
//! the RIB, so that routes of all protocols make aggregates, all protocols can tell them, and the kernel drops what it has to.
//!
//! Aggregates are made by a reader of the tables: it counts, for each, the used routes to parts of it. As
//! long as nobody wants aggregates there is no reader. They lead no gateways, as if they were external: routes that need a gateway may be those
//! that an aggregate rests on, and it would take away what it needs.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weft_routing::ip::{News, Version, split};
use weft_routing::{Hears, OriginId, ReaderId, Said, Turns};

use crate::arbiter::{Route, Standing};
use crate::config::Config;
use crate::hops::SetId;
use crate::origins::Origins;
use crate::tables::Tables;

/// The name of the origin.
pub(crate) const PROTOCOL: &str = "aggregate";
/// Trusted more than what other systems say, so that it is told although one of them tells the same, and less than what was written
/// down; others have 5 for summaries, too.
pub(crate) const STANDING: Standing = Standing { distance: 5, is_external: true };
/// Changes that are looked at between two events, whether they concern an aggregate or not.
const SLICE: usize = 4096;

/// What is said of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aggregate {
    /// Whose routes it rests on; anybody's if there are none.
    pub(crate) protocols: BTreeSet<String>,
    /// How packets go nowhere that no other route serves.
    pub(crate) nowhere: SetId,
    pub(crate) tag: u32,
}

impl Aggregate {
    fn rests_on(&self, protocol: &str) -> bool {
        self.protocols.is_empty() || self.protocols.contains(protocol)
    }

    fn route(&self) -> Route {
        Route { set: self.nowhere, metric: 0, tag: self.tag }
    }
}

/// Those that are wanted, and what they rest on.
#[derive(Debug, Default)]
pub(crate) struct Aggregates {
    wanted: BTreeMap<IpNet, Aggregate>,
    counting: Option<Counting>,
}

/// The reader of both versions, and what it has read.
#[derive(Debug)]
struct Counting {
    origin: OriginId,
    readers: [(Version, ReaderId); 2],
    /// Of which of both it reads next.
    turns: Turns,
    /// From which origin the route to a destination is that is used.
    read: [Said; 2],
    /// The lengths of aggregates.
    lengths: [BTreeSet<u8>; 2],
    /// How many used routes each rests on, if it rests on any.
    counts: BTreeMap<IpNet, usize>,
    /// Everything that there was has been read once.
    is_complete: bool,
}

impl Aggregates {
    /// Those of the configuration are wanted from now on. What was there and is wanted still stays while it is counted anew.
    pub(crate) fn configure(
        &mut self,
        config: &Config,
        origins: &mut Origins,
        tables: &mut Tables,
    ) {
        let wanted = &config.aggregates;
        if self.wanted == *wanted {
            return;
        }
        let before = std::mem::replace(&mut self.wanted, wanted.clone());
        if let Some(counting) = self.counting.take() {
            for (version, reader) in counting.readers {
                tables.routes.close_reader(version, reader);
            }
            for net in before.keys().filter(|net| !wanted.contains_key(net)) {
                tables.withdraw(split(*net), counting.origin);
            }
            // If there are none nobody is to wait for them.
            origins.has_told(counting.origin, true);
        }
        if !wanted.is_empty() {
            let origin = origins.reserve(PROTOCOL, STANDING, config, tables);
            self.counting = Some(Counting::new(origin, wanted.keys(), tables));
        }
    }

    /// Whether there is more to read.
    pub(crate) fn has_work(&self, tables: &Tables) -> bool {
        self.counting.as_ref().is_some_and(|counting| counting.is_behind(tables))
    }

    /// Reads some of what has changed, and makes what follows from it so.
    pub(crate) fn work(&mut self, tables: &mut Tables, origins: &mut Origins) {
        let Some(counting) = &mut self.counting else { return };
        for _ in 0..SLICE {
            let is_behind = |(version, reader): &(Version, ReaderId)| {
                tables.routes.is_behind(*version, *reader)
            };
            let next = counting.turns.next(&counting.readers, is_behind);
            let Some((version, reader)) = next else { break };
            if let Some(news) = tables.routes.next(version, reader) {
                counting.note((version, &news), &self.wanted, origins, tables);
            }
        }
        if !counting.is_complete && !counting.is_behind(tables) {
            counting.is_complete = true;
            // Those of before that rest on nothing any more.
            for net in self.wanted.keys().filter(|net| !counting.counts.contains_key(net)) {
                tables.withdraw(split(*net), counting.origin);
            }
        }
        // After the start of this process not before all have told what aggregates rest on. A protocol that begins anew later has
        // routes that serve on, and may itself be waiting for what rests on them.
        let may_be_all = !origins.are_waited_for() || origins.have_told();
        origins.has_told(counting.origin, may_be_all && !counting.is_behind(tables));
    }
}

impl Counting {
    fn new<'a>(
        origin: OriginId,
        wanted: impl Iterator<Item = &'a IpNet>,
        tables: &mut Tables,
    ) -> Self {
        let mut lengths: [BTreeSet<u8>; 2] = Default::default();
        for net in wanted {
            lengths[usize::from(net.addr().is_ipv6())].insert(net.prefix_len());
        }
        let open = |version| (version, tables.routes.open_reader(version, Hears::Best));
        Self {
            origin,
            readers: Version::both(false).map(open),
            turns: Turns::default(),
            read: Default::default(),
            lengths,
            counts: BTreeMap::new(),
            is_complete: false,
        }
    }

    fn is_behind(&self, tables: &Tables) -> bool {
        self.readers.iter().any(|(version, reader)| tables.routes.is_behind(*version, *reader))
    }

    /// Another route is used to a destination, or none any more.
    fn note(
        &mut self,
        (version, news): (Version, &News<Route>),
        wanted: &BTreeMap<IpNet, Aggregate>,
        origins: &Origins,
        tables: &mut Tables,
    ) {
        let place = usize::from(version.is_ipv6());
        let now = news.best.map(|best| best.origin);
        let before = self.read[place].set((news.number, &news.prefix), now);
        if before == now {
            return;
        }
        let net = version.net(&news.prefix);
        let shorter = self.lengths[place].range(..net.prefix_len());
        for around in shorter.filter_map(|length| IpNet::new(net.addr(), *length).ok()) {
            let around = around.trunc();
            let Some(aggregate) = wanted.get(&around) else { continue };
            let rests = |on: Option<OriginId>| {
                on.is_some_and(|id| aggregate.rests_on(&origins.of(id).protocol))
            };
            let count = self.counts.get(&around).copied().unwrap_or(0);
            // What was counted before is among them.
            let count_now = count + usize::from(rests(now)) - usize::from(rests(before));
            match (count, count_now) {
                (0, 1..) => tables.set(split(around), self.origin, aggregate.route()),
                // Before everything is read there may be others.
                (1.., 0) if self.is_complete => {
                    tables.withdraw(split(around), self.origin);
                }
                _ => {}
            }
            match count_now {
                0 => self.counts.remove(&around),
                _ => self.counts.insert(around, count_now),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hops::BLACKHOLE;

    /// Networks within 10.0.0.0/13: few enough that aggregates have parts, and are parts of others.
    fn net(number: u8) -> IpNet {
        let length = 13 + number % 4;
        let part = u32::from(number / 4) & ((1 << (length - 13)) - 1);
        let address = 0x0a00_0000 | part << (32 - length);
        IpNet::new(std::net::Ipv4Addr::from(address).into(), length).unwrap()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Tell(usize, u8),
        TakeBack(usize, u8),
        /// These are wanted, the first of them of one protocol alone.
        Want(Vec<u8>, bool),
        /// Some of what has changed is read, or all.
        Read,
        Settle,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..2_usize, any::<u8>()).prop_map(|(who, net)| Step::Tell(who, net)),
            4 => (0..2_usize, any::<u8>()).prop_map(|(who, net)| Step::TakeBack(who, net)),
            2 => (prop::collection::vec(any::<u8>(), 0..6), any::<bool>())
                .prop_map(|(nets, one)| Step::Want(nets, one)),
            2 => Just(Step::Read),
            1 => Just(Step::Settle),
        ];
        prop::collection::vec(step, 1..120)
    }

    /// The networks to which there are aggregates, found by looking at everything: the longest first, since they are parts
    /// of the others.
    fn expected(
        wanted: &BTreeMap<IpNet, Aggregate>,
        told: &[BTreeSet<IpNet>; 2],
        names: [&str; 2],
    ) -> BTreeSet<IpNet> {
        let mut all: Vec<_> = wanted.iter().collect();
        all.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
        let mut there = BTreeSet::new();
        for (net, aggregate) in all {
            let is_part = |part: &IpNet| part != net && net.contains(part);
            // Of both the first one's are used, and an aggregate to the same before either.
            let used = (0..2).flat_map(|who| told[who].iter().map(move |net| (*net, who)));
            let used = used.filter(|(net, who)| *who == 0 || !told[0].contains(net));
            let of_protocols =
                used.filter(|(part, _)| !there.contains(part)).map(|(net, who)| (net, names[who]));
            let of_aggregates = there.iter().map(|net| (*net, PROTOCOL));
            let mut parts = of_protocols.chain(of_aggregates).filter(|(part, _)| is_part(part));
            let of = &aggregate.protocols;
            if parts.any(|(_, protocol)| of.is_empty() || of.contains(protocol)) {
                there.insert(*net);
            }
        }
        there
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn aggregates_are_there_while_used_routes_to_parts_of_them_are(steps in steps()) {
            let mut tables = Tables::new();
            let mut origins = Origins::new(&mut tables);
            let names = ["first", "second"];
            let ids = [(0, 7), (1, 9)].map(|(who, distance)| {
                let standing = Standing { distance, is_external: false };
                origins.reserve(names[who], standing, &Config::default(), &mut tables)
            });
            let mut told: [BTreeSet<IpNet>; 2] = Default::default();
            let (mut aggregates, mut wanted) = (Aggregates::default(), BTreeMap::new());
            for step in steps.into_iter().chain([Step::Settle]) {
                match step {
                    Step::Tell(who, number) => {
                        told[who].insert(net(number));
                        let route = Route { set: BLACKHOLE, metric: 0, tag: 0 };
                        tables.set(split(net(number)), ids[who], route);
                    }
                    Step::TakeBack(who, number) => {
                        told[who].remove(&net(number));
                        tables.withdraw(split(net(number)), ids[who]);
                    }
                    Step::Want(nets, has_one) => {
                        let only = nets.first().copied().filter(|_| has_one);
                        wanted = nets.iter().map(|number| {
                            let protocols = only.filter(|one| one == number).map(|_| "second".to_owned());
                            let protocols = protocols.into_iter().collect();
                            (net(*number), Aggregate { protocols, nowhere: BLACKHOLE, tag: 0 })
                        }).collect();
                        let config = Config { aggregates: wanted.clone(), ..Config::default() };
                        aggregates.configure(&config, &mut origins, &mut tables);
                    }
                    Step::Read => aggregates.work(&mut tables, &mut origins),
                    Step::Settle => {
                        while aggregates.has_work(&tables) || tables.has_work() {
                            aggregates.work(&mut tables, &mut origins);
                            tables.work();
                        }
                        let origin = origins.all().iter().find(|one| one.protocol == PROTOCOL);
                        let has = |net: &IpNet| {
                            origin.is_some_and(|one| tables.has_route(split(*net), one.id))
                        };
                        let there: BTreeSet<_> = (0..=u8::MAX).map(net).filter(has).collect();
                        prop_assert_eq!(there, expected(&wanted, &told, names));
                    }
                }
            }
        }
    }

    fn wanted(nets: &[&str]) -> Config {
        let plain = || Aggregate { protocols: BTreeSet::new(), nowhere: BLACKHOLE, tag: 0 };
        let all = nets.iter().map(|net| (net.parse().unwrap(), plain()));
        Config { aggregates: all.collect(), ..Config::default() }
    }

    /// As long as not everything was read, others may be counted that it rests on, too.
    #[test]
    fn what_is_counted_anew_does_not_go_before_everything_is_counted() {
        let mut tables = Tables::new();
        let mut origins = Origins::new(&mut tables);
        let standing = Standing { distance: 1, is_external: false };
        let config = wanted(&["2001:db8::/32"]);
        let id = origins.reserve("static", standing, &config, &mut tables);
        let route = Route { set: BLACKHOLE, metric: 0, tag: 0 };
        let part = |number: usize| format!("2001:db8:{number:x}::/48").parse::<IpNet>().unwrap();
        (0..2 * SLICE).for_each(|number| tables.set(split(part(number)), id, route));
        let mut aggregates = Aggregates::default();
        aggregates.configure(&config, &mut origins, &mut tables);
        let settle = |aggregates: &mut Aggregates, tables: &mut Tables, origins: &mut Origins| {
            while aggregates.has_work(tables) {
                aggregates.work(tables, origins);
            }
        };
        settle(&mut aggregates, &mut tables, &mut origins);
        let origin = origins.all().iter().find(|one| one.protocol == PROTOCOL).unwrap().id;
        let is_there =
            |tables: &Tables| tables.has_route(split("2001:db8::/32".parse().unwrap()), origin);
        assert!(is_there(&tables));
        let more = wanted(&["2001:db8::/32", "192.0.2.0/24"]);
        aggregates.configure(&more, &mut origins, &mut tables);
        aggregates.work(&mut tables, &mut origins);
        assert!(aggregates.has_work(&tables), "half of them are still to be counted");
        let counted = |one: &usize| {
            let (version, net) = split(part(*one));
            let number = tables.routes.number(version, &net).unwrap();
            aggregates.counting.as_ref().unwrap().read[1].get(number).is_some()
        };
        let gone: Vec<_> = (0..2 * SLICE).filter(counted).collect();
        assert!(!gone.is_empty() && gone.len() < 2 * SLICE);
        for number in gone {
            tables.withdraw(split(part(number)), id);
        }
        while aggregates.has_work(&tables) {
            aggregates.work(&mut tables, &mut origins);
            assert!(is_there(&tables));
        }
        // Without aggregates nobody waits until they are told, whenever they went.
        let has_told = |origins: &Origins| origins.of(origin).has_told;
        assert!(!has_told(&origins), "protocols may still come");
        aggregates.configure(&Config::default(), &mut origins, &mut tables);
        aggregates.work(&mut tables, &mut origins);
        assert!(has_told(&origins) && !is_there(&tables));
    }
}
