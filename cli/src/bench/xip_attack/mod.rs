//! `weft bench xip-attack`: what a flood of addresses that never occur twice leaves of a router.
//!
//! Reference: Machado et al., "Linux XIA", §8, leaves open what such a flood does to the routing cache; the
//! traffic of those who are hurt is that of §6.3.1: packets of 256 bytes whose destinations follow Zipf's law.
//!
//! The router is the portable engine in memory, on one core. It gets batches of both kinds of packets in turn:
//! legitimate ones, and those of the flood, which come at half of the rate that the router can forward at most.
//! This rate is measured in each run right before the flood, since a machine whose memory others use is faster at times,
//! and the peer has the same flood in this run. From the time that each kind takes follows how many legitimate packets a
//! second the router has time for beside the flood, of which those count that leave. The peer is the same with a flood
//! whose packets all have one address, with as many edges, which is in the cache as unreachable. So the two differ in what
//! this is about alone, that addresses are new.
//!
//! With a budget (`slow-path` in the node file) packets may cause so many decisions in a second, of which each port has
//! an equal share; without one, all packets of the flood are decided.
//!
//! That is the engine alone; `network` measures both engines with packets that come in and leave by ports.
//!
//! Also counted are the useful decisions that were displaced: of those that were used more than once before the flood
//! began, the ones that are gone, and the ones that have gone in between, for which fewer packets are counted than
//! there were. All decisions for legitimate packets have room in the cache, so that without a flood none goes.

mod flood;
mod network;

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use weft_base::{Instant, Packet, PortId, Random};
use weft_xip::forward::{Activity, Forwarder, Limits, SlowPathLimit, Verdicts};
use weft_xip::{Xid, XidType};

use super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::report::{Bound, Goal, Row};
use super::xip_engine::stopwatch::Stopwatch;
use super::xip_engine::world::{self, IN, Names};
use super::xip_engine::zipf::Zipf;
use super::xip_forward::XipForward;
use super::xip_forward::traffic::Flood as Flooding;
use flood::{Addresses, Flood, Kind, Packets};

/// Legitimate destinations.
const DOMAINS: usize = 100_000;
const EXPONENT: f64 = 1.0;
/// The memory of a node's cache, unless it is configured.
const CACHE: usize = 64 << 20;
/// Packets that the forwarder gets at once.
const BATCH: usize = 64;
/// Batches that are routed to know the router's peak.
const PEAK_BATCHES: usize = 8000;
/// When nothing has come for so long that budgets are full.
const QUIET: Instant = Instant::from_nanos(1_000_000_000_000);
/// Batches of the flood that come before anything is measured.
const BEGINNING: usize = 1000;
/// The part of the batches that took longest, which others have interrupted.
const INTERRUPTED: f64 = 0.01;

/// The benchmark.
pub(super) struct XipAttack;

/// What one experiment is about.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    /// The flood comes by the port of the legitimate packets.
    shares_port: bool,
    /// Decisions that packets may cause in a second, of which each port has its share.
    budget: Option<u32>,
}

/// The budget of a node, unless it is configured.
const USUAL: u32 = 25_000;
/// One for more new addresses than usual.
const GENEROUS: u32 = 400_000;

/// A budget as a node file says it: a fifth of it may come at once.
fn limit(per_second: u32) -> SlowPathLimit {
    SlowPathLimit { per_second, burst: per_second / 5 }
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in Kind::ALL {
        for budget in [Some(USUAL), Some(GENEROUS), None] {
            cases.push(Case { kind, shares_port: true, budget });
        }
    }
    if !quick {
        for kind in Kind::ALL {
            cases.push(Case { kind, shares_port: false, budget: Some(USUAL) });
        }
    }
    cases
}

impl Case {
    fn name(&self, figure: &str) -> String {
        let port = if self.shares_port { "same port" } else { "another port" };
        let budget =
            self.budget.map_or("no budget".to_owned(), |most| format!("{most} decisions/s"));
        format!("{}, {port}, {budget}: {figure}", self.kind.name())
    }
}

const LEGITIMATE: &str = "legitimate packets";
const FLOOD: &str = "packets of the flood";
const OF_FLOOD: &str = "time for one of the flood";
const OF_LEGITIMATE: &str = "time for a legitimate one";
const DISPLACED: &str = "useful decisions displaced";
const MEMORY: &str = "memory over the limit's";
const FLOOD_PANEL: &str = "Packets of the flood";
const DISPLACED_PANEL: &str = "Useful decisions displaced";
const MEMORY_PANEL: &str = "Memory over the limit";

impl Bench for XipAttack {
    fn name(&self) -> &'static str {
        "xip-attack"
    }

    fn summary(&self) -> &'static str {
        "legitimate packets that an XIP router in memory has time for during a flood of new addresses"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        let sides = 2 * cases(plan.quick).len() * plan.runs;
        let in_network = 2 * network::cases(plan.quick).len() * plan.runs;
        Duration::from_secs(10)
            + Duration::from_nanos(600 * BATCH as u64)
                * (sides * (batches(plan) + PEAK_BATCHES)) as u32
            + Duration::from_millis(if plan.quick { 900 } else { 1500 }) * in_network as u32
    }

    fn needs(&self, plan: &Plan) -> Vec<Program> {
        let mut in_network = network::cases(plan.quick).into_iter();
        match in_network.any(|case| plan.includes(&case.experiment())) {
            true => XipForward.needs(plan),
            false => Vec::new(),
        }
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        let in_network = network::cases(plan.quick);
        let network = match in_network.iter().any(|case| plan.includes(&case.experiment())) {
            true => Some(network::Flooded::new(plan.quick)?),
            false => None,
        };
        let mut random = Random::from_seed(1);
        let domains = (0..DOMAINS).map(|_| world::name(XidType::AD, &mut random)).collect();
        let names = Names::new(domains, &mut random);
        let zipf = Zipf::new(DOMAINS, EXPONENT);
        Ok(Box::new(Attacked {
            names,
            zipf,
            cases: cases(plan.quick),
            batches: batches(plan),
            rates: HashMap::new(),
            in_network,
            network,
        }))
    }
}

/// Batches of each kind in one run.
fn batches(plan: &Plan) -> usize {
    if plan.quick { 6_000 } else { 20_000 }
}

/// Everything that lasts for all runs.
struct Attacked {
    names: Names,
    zipf: Zipf,
    cases: Vec<Case>,
    batches: usize,
    /// Packets of the flood a second, by case and run.
    rates: HashMap<(usize, usize), f64>,
    /// Cases in a network, which come after the others.
    in_network: Vec<network::Case>,
    /// If any of them is measured.
    network: Option<network::Flooded>,
}

impl Attacked {
    /// A router that knows all domains and has decided nothing yet.
    fn router(names: &Names, budget: Option<u32>) -> Result<Forwarder, String> {
        let slow_path = budget.map(limit);
        let limits = Limits { cache: CACHE, slow_path, ..Limits::default() };
        world::router_with(names, limits).map_err(|error| error.to_string())
    }

    /// A case in the network, by its number among those.
    fn measure_in_network(
        &mut self,
        case: usize,
        flood: Flooding,
        run: usize,
    ) -> Result<Vec<f64>, String> {
        let network = self.network.as_mut().ok_or("no network was prepared")?;
        network.measure(self.in_network[case], flood, run)
    }

    /// A case by its number, with its own flood or that of its peer.
    fn measure(&mut self, number: usize, is_peer: bool, run: usize) -> Result<Vec<f64>, String> {
        let case = self.cases[number];
        let addresses = if is_peer { Addresses::One } else { Addresses::New };
        let mut router = Self::router(&self.names, case.budget)?;
        let mut legitimate = Packets::new(&self.names, &self.zipf, run as u64);
        warm(&mut router, &mut legitimate);
        // Whichever of the two comes first says how large the flood is for both; the other one measures it, too, so that both
        // routers have seen the same.
        let peak = peak(&mut router, &mut legitimate);
        let rate = *self.rates.entry((number, run)).or_insert(peak / 2.0);
        let useful = useful(&router);
        let before: HashMap<_, _> = legitimate.made().collect();
        let packets = (BEGINNING + self.batches) * BATCH;
        let kind = (case.kind, addresses);
        let mut flood = Flood::new(kind, &self.names, &self.zipf, run as u64, packets);
        let port = if case.shares_port { IN } else { PortId(IN.0 + 1) };
        // The flood's time, not the machine's: so many packets come in a second, however fast this is computed.
        let step = Duration::from_secs_f64(BATCH as f64 / rate);
        let mut now = QUIET;
        let (mut of_flood, mut of_others) = (Stopwatch::new(BATCH), Stopwatch::new(BATCH));
        let mut batch = Vec::with_capacity(BATCH);
        let mut sent = 0;
        // What is measured is how it goes on, not how it begins: the burst that a budget allows is over.
        for _ in 0..BEGINNING {
            now += step;
            batch.extend((0..BATCH).map(|_| flood.packet(port)));
            route(&mut router, now, &mut batch);
        }
        for _ in 0..self.batches {
            now += step;
            batch.extend((0..BATCH).map(|_| flood.packet(port)));
            of_flood.time(|| route(&mut router, now, &mut batch));
            let before = router.activity().get(Activity::Forwarded);
            batch.extend((0..BATCH).map(|_| legitimate.packet()));
            of_others.time(|| route(&mut router, now, &mut batch));
            sent += router.activity().get(Activity::Forwarded) - before;
        }
        // The mean, not the median: how many batches have slow packets is what this is about.
        let (of_flood, of_others) =
            (of_flood.mean_without(INTERRUPTED), of_others.mean_without(INTERRUPTED));
        let left = (1.0 - rate / 1e9 * of_flood).max(0.0);
        let served = sent as f64 / (self.batches * BATCH) as f64;
        let to_domains: HashMap<_, _> =
            legitimate.made().map(|(domain, made)| (domain, made - before[&domain])).collect();
        let gone = displaced(&useful, &self::useful(&router), &to_domains);
        Ok(vec![
            left * 1e9 / of_others * served,
            rate,
            of_flood,
            of_others,
            100.0 * gone as f64 / useful.len().max(1) as f64,
            memory_over_limit(&router),
        ])
    }
}

/// Sends every legitimate destination a packet, and some as many as they get in the long run.
fn warm(router: &mut Forwarder, legitimate: &mut Packets<'_>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut now = Instant::ZERO;
    for round in 0..5 * DOMAINS / BATCH {
        // Slowly enough for every budget.
        now += Duration::from_millis(10);
        batch.extend((0..BATCH).map(|place| match round * BATCH + place {
            domain if domain < DOMAINS => legitimate.packet_to(domain),
            _ => legitimate.packet(),
        }));
        route(router, now, &mut batch);
    }
}

fn route(router: &mut Forwarder, now: Instant, batch: &mut Vec<Packet>) {
    let mut verdicts = Verdicts::new();
    router.route_batch(now, batch, &mut verdicts);
    black_box(&verdicts);
}

/// What the cache takes beyond its limit, in hundredths of that.
fn memory_over_limit(router: &Forwarder) -> f64 {
    let size = router.cache_size();
    let over = (size.bytes + size.spare).saturating_sub(size.limit);
    100.0 * over as f64 / size.limit as f64
}

/// The goals of a case with the usual budget, whose figures have these names.
fn goals(rows: &[Row], name: impl Fn(&str) -> String) -> [Goal; 3] {
    let row = |figure| rows.iter().find(|row| row.figure.case == name(figure));
    let goal = |figure, bound, measured| Goal { name: name(figure), bound, measured };
    let median = |figure| row(figure).map_or(f64::NAN, |row: &Row| row.weft.median());
    let ratio = row(LEGITIMATE).map_or(f64::NAN, Row::ratio);
    [
        goal(LEGITIMATE, Bound::AtLeast(0.8), ratio),
        goal(DISPLACED, Bound::AtMost(5.0), median(DISPLACED)),
        goal(MEMORY, Bound::AtMost(0.0), median(MEMORY)),
    ]
}

/// How often decisions that were used more than once were used, by their edges.
fn useful(router: &Forwarder) -> HashMap<Vec<Xid>, u64> {
    let used = router.cached().filter(|entry| entry.hits >= 2);
    used.map(|entry| (entry.edges, entry.hits)).collect()
}

/// How many of the decisions `before` were not there all the time until `after`, when so many packets have been `sent` to each
/// domain.
fn displaced(
    before: &HashMap<Vec<Xid>, u64>,
    after: &HashMap<Vec<Xid>, u64>,
    sent: &HashMap<Xid, u64>,
) -> usize {
    let stayed = |(edges, hits): (&Vec<Xid>, &u64)| {
        let used = edges.last().and_then(|domain| sent.get(domain)).copied().unwrap_or(0);
        after.get(edges).is_some_and(|now| *now >= hits + used)
    };
    before.iter().filter(|entry| !stayed(*entry)).count()
}

/// How many legitimate packets a second a warm router forwards if nothing else comes.
fn peak(router: &mut Forwarder, legitimate: &mut Packets<'_>) -> f64 {
    let (mut stopwatch, mut batch) = (Stopwatch::new(BATCH), Vec::with_capacity(BATCH));
    for _ in 0..PEAK_BATCHES {
        batch.extend((0..BATCH).map(|_| legitimate.packet()));
        stopwatch.time(|| route(router, QUIET, &mut batch));
    }
    1e9 / stopwatch.mean_without(INTERRUPTED)
}

impl Session for Attacked {
    fn experiments(&self) -> Vec<Experiment> {
        let experiment = |case: &Case| {
            let figure = |name, unit, panel| Figure { case: case.name(name), unit, panel };
            Experiment {
                peer_name: "the same flood on one cached address".to_owned(),
                figures: vec![
                    figure(LEGITIMATE, "packets/s", "Legitimate packets during a flood"),
                    figure(FLOOD, "packets/s", FLOOD_PANEL),
                    figure(OF_FLOOD, "ns/packet", "Time for packets"),
                    figure(OF_LEGITIMATE, "ns/packet", "Time for packets"),
                    figure(DISPLACED, "%", DISPLACED_PANEL),
                    figure(MEMORY, "%", MEMORY_PANEL),
                ],
                most_runs: None,
            }
        };
        let in_network = self.in_network.iter().map(network::Case::experiment);
        self.cases.iter().map(experiment).chain(in_network).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        match self.cases.get(experiment) {
            Some(_) => self.measure(experiment, false, run),
            None => self.measure_in_network(experiment - self.cases.len(), Flooding::New, run),
        }
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        match self.cases.get(experiment) {
            Some(_) => self.measure(experiment, true, run),
            None => self.measure_in_network(experiment - self.cases.len(), Flooding::One, run),
        }
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let defended = self.cases.iter().filter(|case| case.budget == Some(USUAL));
        let in_memory = defended.flat_map(|case| goals(rows, |figure| case.name(figure)));
        let in_network = self.in_network.iter().flat_map(|case| case.goals(rows));
        in_memory.chain(in_network).collect()
    }
}

#[cfg(test)]
mod tests {
    use weft_xip::XipPacket;

    use super::*;

    #[test]
    fn a_decision_that_went_and_came_back_is_displaced() {
        let mut random = Random::from_seed(1);
        let [stayed, gone, back, idle] = [(); 4].map(|()| world::name(XidType::AD, &mut random));
        let decisions = |of: &[(Xid, u64)]| -> HashMap<_, _> {
            of.iter().map(|(domain, hits)| (vec![*domain], *hits)).collect()
        };
        let before = decisions(&[(stayed, 2), (gone, 9), (back, 3), (idle, 4)]);
        let after = decisions(&[(stayed, 7), (back, 7), (idle, 4)]);
        let sent = [(stayed, 5), (gone, 5), (back, 5)].into();
        assert_eq!(displaced(&before, &after, &sent), 2);
        assert_eq!(displaced(&before, &before, &HashMap::new()), 0);
    }

    /// Few destinations.
    fn few() -> (Names, Zipf) {
        let mut random = Random::from_seed(1);
        let domains = (0..50).map(|_| world::name(XidType::AD, &mut random)).collect();
        (Names::new(domains, &mut random), Zipf::new(50, EXPONENT))
    }

    /// The whole benchmark in small: the flood is what it is called, and a budget spares the router most of it.
    #[test]
    fn a_budget_holds_and_a_flood_without_one_fills_the_cache() {
        let (names, zipf) = few();
        for kind in Kind::ALL {
            let mut decided = [0, 0];
            for (decided, budget) in decided.iter_mut().zip([Some(1000), None]) {
                let mut router = Attacked::router(&names, budget).unwrap();
                let mut flood = Flood::new((kind, Addresses::New), &names, &zipf, 1, 1000 * BATCH);
                let now = Instant::ZERO + Duration::from_secs(1);
                for _ in 0..1000 {
                    let mut batch = (0..BATCH).map(|_| flood.packet(IN)).collect();
                    route(&mut router, now, &mut batch);
                }
                *decided = router.cache_size().entries;
                let sent = router.activity().get(Activity::Forwarded) as usize;
                let is_deliverable = matches!(kind, Kind::Deliverable | Kind::Long);
                assert_eq!(sent, if is_deliverable { *decided } else { 0 }, "{kind:?}");
            }
            // All come in by one port, and the router has one for each neighbour.
            let burst = limit(1000).share(names.neighbours.len()).burst as usize;
            assert_eq!(decided, [burst, 1000 * BATCH], "{kind:?}");
        }
    }

    #[test]
    fn a_peers_flood_has_the_same_form_and_takes_one_decision() {
        let (names, zipf) = few();
        for kind in Kind::ALL {
            let flood = |addresses| Flood::new((kind, addresses), &names, &zipf, 1, 3 * BATCH);
            let (mut new, mut one) = (flood(Addresses::New), flood(Addresses::One));
            let edges = |packet: &Packet| {
                XipPacket::new_checked(packet.bytes()).unwrap().destination_rows()
            };
            assert_eq!(edges(&new.packet(IN)), edges(&one.packet(IN)), "{kind:?}");
            let mut router = Attacked::router(&names, Some(USUAL)).unwrap();
            for _ in 0..2 {
                let mut batch = (0..BATCH).map(|_| one.packet(IN)).collect();
                route(&mut router, QUIET, &mut batch);
            }
            assert_eq!(router.cache_size().entries, 1, "{kind:?}");
            assert_eq!(router.activity().get(Activity::Forwarded), 0, "{kind:?}");
        }
    }
}
