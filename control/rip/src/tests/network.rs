//! Routers on links that fail: everybody's routes are the shortest ones, and nothing is counted to infinity for long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use weft_base::{Instant, Random};

use super::{MTU, link, net, plain};
use crate::Version;
use crate::config::Config;
use crate::speaker::{Datagram, Speaker};

/// How long a datagram is under way.
const DELAY: Duration = Duration::from_millis(1);

/// Routers, each with a network of its own, and links between two of them.
struct Network {
    now: Instant,
    routers: Vec<Speaker>,
    /// Both ends; links are numbered from 1, and routers call them so.
    links: Vec<(usize, usize)>,
    down: BTreeSet<usize>,
    /// What is under way: when it arrives, to whom, by which link, from whom.
    flights: VecDeque<(Instant, usize, u32, SocketAddr, Vec<u8>)>,
    random: Random,
    /// How many of 100 datagrams are lost.
    loss: u64,
}

impl Network {
    fn new(count: usize, links: &[(usize, usize)], seed: u64) -> Self {
        let random = Random::from_seed(seed);
        let routers = (0..count)
            .map(|place| {
                let own = random.fork(&place.to_string());
                let mut speaker = Speaker::new(Version::V2, own, 0);
                speaker.configure(Config::default());
                let stub = link(&format!("192.168.{place}.1/24"), plain(1));
                speaker.set_link(Instant::ZERO, 100, stub);
                speaker
            })
            .collect();
        let mut network = Self {
            now: Instant::ZERO,
            routers,
            links: links.to_vec(),
            down: (0..links.len()).collect(),
            flights: VecDeque::new(),
            random,
            loss: 0,
        };
        (0..links.len()).for_each(|place| network.mend(place));
        network
    }

    fn address(&self, link: usize, router: usize) -> String {
        let side = if self.links[link].0 == router { 1 } else { 2 };
        format!("10.0.{link}.{side}")
    }

    fn mend(&mut self, place: usize) {
        if !self.down.remove(&place) {
            return;
        }
        let index = place as u32 + 1;
        for router in [self.links[place].0, self.links[place].1] {
            let own = link(&format!("{}/24", self.address(place, router)), plain(1));
            let mut out = Vec::new();
            self.routers[router].set_link(self.now, index, own);
            self.routers[router].opened(self.now, index, MTU, &mut out);
            self.send(router, out);
        }
    }

    fn cut(&mut self, place: usize) {
        if !self.down.insert(place) {
            return;
        }
        let index = place as u32 + 1;
        for router in [self.links[place].0, self.links[place].1] {
            self.routers[router].remove_link(self.now, index);
        }
        self.flights.retain(|(_, _, link, ..)| *link != index);
    }

    fn send(&mut self, from: usize, out: Vec<Datagram>) {
        for Datagram { link, bytes, .. } in out {
            let place = (link as usize).wrapping_sub(1);
            if place >= self.links.len() || self.down.contains(&place) {
                continue;
            }
            if self.random.below(100) < self.loss {
                continue;
            }
            let (one, other) = self.links[place];
            let to = if one == from { other } else { one };
            let source = format!("{}:520", self.address(place, from)).parse().unwrap();
            self.flights.push_back((self.now + DELAY, to, link, source, bytes));
        }
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let due = self.routers.iter().filter_map(Speaker::deadline);
            let arrives = self.flights.front().map(|(at, ..)| *at);
            let next = due.chain(arrives).min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = next.max(self.now);
            while let Some((_, to, link, from, bytes)) =
                self.flights.pop_front_if(|(at, ..)| *at <= self.now)
            {
                let mut out = Vec::new();
                self.routers[to].received(self.now, link, from, &bytes, &mut out);
                self.send(to, out);
            }
            for router in 0..self.routers.len() {
                let mut out = Vec::new();
                self.routers[router].tick(self.now, &mut out);
                self.send(router, out);
            }
        }
        self.now = end;
    }

    /// How far it is from one router to each other one over links that work.
    fn distances(&self, from: usize) -> BTreeMap<usize, u8> {
        let mut found = BTreeMap::from([(from, 0)]);
        let mut queue = VecDeque::from([from]);
        while let Some(router) = queue.pop_front() {
            let near =
                self.links.iter().enumerate().filter(|(place, _)| !self.down.contains(place));
            for (_, (one, other)) in near {
                let to = match router {
                    router if router == *one => *other,
                    router if router == *other => *one,
                    _ => continue,
                };
                if !found.contains_key(&to) {
                    found.insert(to, found[&router] + 1);
                    queue.push_back(to);
                }
            }
        }
        found
    }

    /// Compares what each router knows of the others' networks with the shortest ways.
    fn check(&self) {
        for (place, router) in self.routers.iter().enumerate() {
            let distances = self.distances(place);
            for other in 0..self.routers.len() {
                let to = net(&format!("192.168.{other}.0/24"));
                let stored = router.table.get(&to).filter(|stored| stored.is_valid());
                let metric = stored.map(|stored| stored.route.metric);
                // The network itself is one hop behind its router.
                let expected = distances.get(&other).map(|far| far + 1).filter(|far| *far < 16);
                assert_eq!(metric, expected, "router {place} to {to}");
            }
        }
    }
}

const SQUARE: [(usize, usize); 4] = [(0, 1), (1, 2), (2, 3), (3, 0)];

#[test]
fn a_square_goes_the_other_way_round_when_a_link_fails() {
    let mut network = Network::new(4, &SQUARE, 1);
    network.run(Duration::from_secs(20));
    network.check();
    network.cut(0);
    // Triggered updates: at most three hops with 5 seconds each, and the reverse.
    network.run(Duration::from_secs(40));
    network.check();
    network.mend(0);
    network.run(Duration::from_secs(40));
    network.check();
}

#[test]
fn a_part_that_is_cut_off_is_forgotten() {
    let mut network = Network::new(4, &SQUARE, 2);
    network.run(Duration::from_secs(40));
    network.cut(0);
    network.cut(3);
    // Poisoned reverse keeps two routers from deceiving each other, not three; then it is counted to infinity.
    network.run(Duration::from_secs(120));
    network.check();
    network.run(Duration::from_secs(300));
    for router in [1, 2, 3] {
        let gone = network.routers[router].table.get(&net("192.168.0.0/24"));
        assert_eq!(gone, None, "it is not even known to be gone");
    }
}

#[test]
fn a_router_behind_fifteen_others_is_out_of_reach() {
    let links: Vec<_> = (0..17).map(|place| (place, place + 1)).collect();
    let mut network = Network::new(18, &links, 3);
    network.run(Duration::from_secs(120));
    network.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_network_finds_the_shortest_ways(
        count in 2usize..8, extra in prop::collection::vec((0usize..8, 0usize..8), 0..8),
        steps in prop::collection::vec((any::<bool>(), 0usize..16, 0u64..100), 0..12),
        loss in 0u64..20, seed: u64,
    ) {
        let chain = (1..count).map(|place| (place - 1, place));
        let extra = extra.into_iter().map(|(one, other)| (one % count, other % count));
        let mut links: Vec<_> = chain.chain(extra).filter(|(one, other)| one != other).collect();
        links.sort_unstable();
        links.dedup();
        let mut network = Network::new(count, &links, seed);
        network.loss = loss;
        for (mends, place, time) in steps {
            match mends {
                true => network.mend(place % links.len()),
                false => network.cut(place % links.len()),
            }
            network.run(Duration::from_secs(time));
        }
        // With losses nothing is sure; then everything settles.
        network.run(Duration::from_secs(200));
        network.loss = 0;
        network.run(Duration::from_secs(700));
        network.check();
    }
}
