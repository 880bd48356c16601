//! What the RIB believes is what the protocol has, whatever happens between.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;
use weft_base::Instant;
use weft_runtime::Event;
use weft_xrl::{Input, Output, XrlError};

use crate::testing::TestRib;
use crate::{Hop, Origin, OriginNumber, Reach, Route, To, ToRib};

const NOW: Instant = Instant::ZERO;

fn net(number: u8) -> IpNet {
    match number % 2 {
        0 => format!("10.0.{number}.0/24").parse().unwrap(),
        _ => format!("2001:db8:{number}::/48").parse().unwrap(),
    }
}

fn route(kind: u8, metric: u32) -> Route {
    let hop =
        |last: u8| Hop { gateway: Some([192, 0, 2, last].into()), interface: None, weight: 1 };
    let to = match kind {
        0 => To::Blackhole,
        1 => To::Hops(vec![Hop { gateway: None, interface: Some(3), weight: 1 }]),
        2 => To::Hops(vec![hop(1), hop(2)]),
        kind => To::Hops(vec![hop(kind)]),
    };
    Route { to, metric, tag: 7 }
}

#[derive(Clone, Debug)]
enum Step {
    Set {
        net: u8,
        origin: usize,
        kind: u8,
        metric: u32,
    },
    Withdraw(u8),
    Answer,
    Die,
    Born,
    /// The RIB refuses what it was asked.
    Refuse,
    Tell(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..8, 0usize..2, 0u8..5, 0u32..2)
            .prop_map(|(net, origin, kind, metric)| Step::Set { net, origin, kind, metric }),
        3 => (0u8..8).prop_map(Step::Withdraw),
        8 => Just(Step::Answer),
        1 => Just(Step::Die),
        2 => Just(Step::Born),
        1 => Just(Step::Refuse),
        6 => any::<bool>().prop_map(Step::Tell),
    ];
    prop::collection::vec(step, 1..100)
}

fn born() -> Input {
    Input::Born { class: "rib".to_owned(), instance: "rib".to_owned() }
}

struct World {
    rib: TestRib,
    to_rib: ToRib,
    origins: [OriginNumber; 2],
    wanted: BTreeMap<IpNet, (usize, Route)>,
    is_there: bool,
}

impl World {
    fn new() -> Self {
        let mut to_rib = ToRib::new(1);
        let origins = ["one", "other"].map(|protocol| {
            let origin = Origin { protocol: protocol.to_owned(), external: false, distance: 1 };
            to_rib.open(origin, &mut Vec::new())
        });
        Self { rib: TestRib::default(), to_rib, origins, wanted: BTreeMap::new(), is_there: false }
    }

    fn hear(&mut self, input: Input) {
        let mut out = Vec::new();
        self.to_rib.hear(NOW, input, &mut out);
        self.rib.take(&mut out);
    }

    fn tell(&mut self, may_end: bool) {
        let mut out = Vec::new();
        self.to_rib.tell(may_end, &mut out);
        self.rib.take(&mut out);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Set { net: number, origin, kind, metric } => {
                let route = route(kind, metric);
                self.to_rib.set(net(number), self.origins[origin], route.clone());
                self.wanted.insert(net(number), (origin, route));
            }
            Step::Withdraw(number) => {
                self.to_rib.withdraw(&net(number));
                self.wanted.remove(&net(number));
            }
            Step::Answer => {
                if let Some(input) = self.rib.answer() {
                    self.hear(input);
                }
            }
            Step::Die => {
                self.rib.die();
                self.is_there = false;
                let (class, instance) = ("rib".to_owned(), "rib".to_owned());
                self.hear(Input::Died { class, instance });
            }
            Step::Born => {
                self.is_there = true;
                self.hear(born());
            }
            Step::Refuse => {
                if let Some(Input::Replied { token, .. }) = self.rib.answer() {
                    self.hear(Input::Replied { token, result: Err(XrlError::failed("no")) });
                    let mut out = Vec::new();
                    // Calls of before it has refused are forgotten.
                    if let Some(again) = self.to_rib.deadline() {
                        self.to_rib.hear(again, Input::World(Event::Tick), &mut out);
                    }
                    self.rib.take(&mut out);
                }
            }
            Step::Tell(may_end) => self.tell(may_end),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_rib_believes_what_is_set(steps in steps()) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        world.step(Step::Born);
        world.tell(true);
        while world.rib.has_calls() {
            world.step(Step::Answer);
            world.tell(true);
        }
        let expected: BTreeMap<_, _> = world
            .wanted
            .iter()
            .map(|(net, (origin, route))| {
                ((["one", "other"][*origin].to_owned(), *net), route.clone())
            })
            .collect();
        prop_assert_eq!(world.rib.routes, expected);
        prop_assert_eq!(world.to_rib.len(), world.wanted.len());
    }
}

#[test]
fn a_route_that_changes_its_origin_is_never_missing() {
    let mut world = World::new();
    world.step(Step::Set { net: 0, origin: 0, kind: 0, metric: 0 });
    world.step(Step::Born);
    while world.rib.has_calls() {
        world.step(Step::Answer);
        world.tell(true);
    }
    for origin in [1, 0] {
        world.step(Step::Set { net: 0, origin, kind: 0, metric: 0 });
        world.tell(true);
        while world.rib.has_calls() {
            world.step(Step::Answer);
            assert!(!world.rib.routes.is_empty());
        }
        let owner = world.rib.routes.keys().next().map(|(protocol, _)| protocol.as_str());
        assert_eq!((owner, world.rib.routes.len()), (Some(["one", "other"][origin]), 1));
    }
}

#[test]
fn a_rib_that_lives_on_keeps_what_is_told_again_and_no_more() {
    let mut world = World::new();
    world.step(Step::Born);
    for number in 0..2 {
        world.step(Step::Set { net: number, origin: 0, kind: 0, metric: 0 });
    }
    world.tell(true);
    while world.rib.has_calls() {
        world.step(Step::Answer);
        world.tell(true);
    }
    // Another life of the protocol, which has one of the routes.
    let mut after = World { rib: world.rib, ..World::new() };
    after.step(Step::Set { net: 1, origin: 0, kind: 0, metric: 0 });
    after.step(Step::Born);
    while after.rib.has_calls() {
        after.step(Step::Answer);
        after.tell(false);
    }
    assert_eq!(after.rib.routes.len(), 2, "it has not said that this is all");
    after.tell(true);
    while after.rib.has_calls() {
        after.step(Step::Answer);
    }
    let nets: Vec<_> = after.rib.routes.keys().map(|(_, net)| *net).collect();
    assert_eq!(nets, [net(1)]);
}

#[test]
fn what_is_reached_in_another_way_is_asked_for_again() {
    let [near, far]: [IpAddr; 2] = ["192.0.2.1", "198.51.100.1"].map(|text| text.parse().unwrap());
    let (mut rib, mut reach, mut out) = (TestRib::default(), Reach::new(2), Vec::<Output>::new());
    let talk = |rib: &mut TestRib, reach: &mut Reach, input: Input| {
        let (mut next, mut out) = (Some(input), Vec::new());
        while let Some(input) = next {
            reach.hear(NOW, input, &mut out);
            reach.ask(&mut out);
            rib.take(&mut out);
            next = rib.answer();
            while next.is_none() && rib.has_calls() {
                next = rib.answer();
            }
        }
    };
    rib.reach("192.0.2.0/24".parse().unwrap(), true);
    reach.want(BTreeSet::from([near, far]));
    reach.ask(&mut out);
    assert!(out.is_empty() && !reach.is_complete(), "nobody is there");
    talk(&mut rib, &mut reach, born());
    assert!(reach.is_complete() && reach.take_changed());
    assert!(reach.of(&near).is_some() && reach.of(&far).is_none());

    let told = rib.reach("198.51.100.0/24".parse().unwrap(), true).unwrap();
    talk(&mut rib, &mut reach, told);
    assert!(reach.take_changed() && reach.of(&far).is_some());
    let told = rib.reach("192.0.2.0/24".parse().unwrap(), false).unwrap();
    talk(&mut rib, &mut reach, told);
    assert!(reach.take_changed() && reach.of(&near).is_none());

    // What the RIB has said holds while it is away; the next one is asked again.
    let died = Input::Died { class: "rib".to_owned(), instance: "rib".to_owned() };
    talk(&mut rib, &mut reach, died);
    assert!(!reach.take_changed() && reach.of(&far).is_some());
    rib.die();
    rib.reach("198.51.100.0/24".parse().unwrap(), false);
    talk(&mut rib, &mut reach, born());
    assert!(reach.take_changed() && reach.of(&far).is_none());
    reach.want(BTreeSet::from([near]));
    assert!(reach.is_complete());
}
