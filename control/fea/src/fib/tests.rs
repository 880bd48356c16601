//! The FEA and its callers in one process, with a kernel that is made up.

mod kernel;
mod links;
mod others;
mod tables;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use proptest::prelude::*;
use weft_runtime::{Component, Event, InterfaceAddress, RouteTarget, RouteWay};
use weft_xrl::{Call, Host, Identity, Input, IpNet, Part, Reply, Request, Settings};

use self::kernel::Kernel;
use super::*;
use crate::Fea;

/// The answers to calls, by their numbers.
type Answers = BTreeMap<u64, Result<Reply, XrlError>>;

/// The calls that somebody is to make, and their answers.
#[derive(Clone, Default)]
struct Caller(Rc<RefCell<(VecDeque<Call>, Answers)>>);

impl Component for Caller {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        let (calls, answers) = &mut *self.0.borrow_mut();
        match input {
            Input::World(Event::Tick) => out.extend(calls.drain(..).map(Output::Call)),
            Input::Replied { token, result } => drop(answers.insert(token, result)),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.0.borrow().0.is_empty()).then_some(Instant::ZERO)
    }
}

/// The FEA, and what it is to hear besides.
struct Hearing(Fea, Rc<RefCell<VecDeque<Input>>>);

impl Component for Hearing {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let others = std::mem::take(&mut *self.1.borrow_mut());
        others.into_iter().chain([input]).for_each(|input| self.0.handle(now, input, out));
    }

    fn deadline(&self) -> Option<Instant> {
        match self.1.borrow().is_empty() {
            true => self.0.deadline(),
            false => Some(Instant::ZERO),
        }
    }
}

/// A process of the FEA and two callers.
struct World {
    host: Host,
    /// What the FEA is to hear besides.
    hears: Rc<RefCell<VecDeque<Input>>>,
    kernel: Kernel,
    callers: [Caller; 2],
    now: Instant,
    last_call: u64,
    /// What the kernel was asked and has not answered, if it is slow.
    asked: VecDeque<(Token, RouteRequest)>,
    slow: bool,
    /// What the kernel calls the question what others delete.
    watch: Option<Token>,
    log: Vec<String>,
}

impl World {
    fn new() -> Self {
        let callers = [Caller::default(), Caller::default()];
        let part = |name: &str, caller: &Caller| Part {
            class: String::new(),
            instance: name.to_owned(),
            sole: false,
            interfaces: Vec::new(),
            component: Box::new(caller.clone()),
        };
        let hears = Rc::default();
        let fea = Part {
            class: "fea".to_owned(),
            instance: "fea".to_owned(),
            sole: true,
            interfaces: crate::interfaces(),
            component: Box::new(Hearing(
                Fea::new(&mut weft_base::Random::from_seed(1)),
                Rc::clone(&hears),
            )),
        };
        let settings = Settings {
            finder: None,
            listen: None,
            credential: Identity::User,
            ports_from_fea: false,
        };
        let parts = vec![fea, part("rib", &callers[0]), part("other", &callers[1])];
        let mut world = Self {
            host: Host::new(settings, parts),
            hears,
            kernel: Kernel::default(),
            callers,
            now: Instant::ZERO,
            last_call: 0,
            asked: VecDeque::new(),
            slow: false,
            watch: None,
            log: Vec::new(),
        };
        world.event(Event::Start);
        world
    }

    fn fea_hears(&mut self, input: Input) {
        self.hears.borrow_mut().push_back(input);
        self.event(Event::Tick);
    }

    fn event(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut actions = Vec::new();
            self.host.handle(self.now, event, &mut actions);
            for action in actions {
                match action {
                    Action::Routes { token, request: RouteRequest::Watch { .. } } => {
                        self.watch = Some(token);
                    }
                    Action::Routes { token, request } => self.asked.push_back((token, request)),
                    Action::Report { line, .. } => self.log.push(line),
                    Action::WatchInterfaces => {}
                    other => panic!("{other:?}"),
                }
            }
            if !self.slow {
                events.extend(self.kernel_answers());
            }
            if events.is_empty() && self.host.deadline().is_some_and(|at| at <= self.now) {
                events.push_back(Event::Tick);
            }
        }
    }

    fn kernel_answers(&mut self) -> Vec<Event> {
        let Some((token, request)) = self.asked.pop_front() else { return Vec::new() };
        let answers = self.kernel.carry_out(request);
        answers.into_iter().map(|result| Event::RoutesAnswered { token, result }).collect()
    }

    fn one_answer(&mut self) {
        for event in self.kernel_answers() {
            self.event(event);
        }
    }

    /// Calls, and returns the number of the call.
    fn begin_call<R: Request>(&mut self, caller: usize, request: R) -> u64 {
        self.last_call += 1;
        let call = Call::new(self.last_call, "fea", request).within(Duration::from_secs(86_400));
        self.callers[caller].0.borrow_mut().0.push_back(call);
        self.event(Event::Tick);
        self.last_call
    }

    fn answer<R: Request>(&mut self, call: u64) -> Option<Result<R::Reply, XrlError>> {
        let of = |caller: &Caller| caller.0.borrow_mut().1.remove(&call);
        let answer = self.callers.iter().find_map(of)?;
        Some(answer.and_then(|reply| reply.read::<R>()))
    }

    fn call<R: Request>(&mut self, caller: usize, request: R) -> Result<R::Reply, XrlError> {
        let call = self.begin_call(caller, request);
        self.answer::<R>(call).unwrap_or_else(|| panic!("it is not answered; {:?}", self.log))
    }

    fn begin(&mut self) {
        self.call(0, begin()).unwrap();
    }

    fn change(&mut self, routes: &[(&str, u32)], gone: &[&str]) {
        self.call(0, change(routes, gone)).unwrap();
    }

    fn end(&mut self) {
        self.call(0, END).unwrap();
    }

    fn events(&mut self) -> fib::EventsReply {
        self.call(0, fib::Events { table: 254, is_ipv6: false, wait: 0 }).unwrap()
    }

    /// What the kernel has of the main table, and the number of the gateway.
    fn there(&self) -> BTreeMap<String, u8> {
        let number = |target: &RouteTarget| match target {
            RouteTarget::Ways(ways) => match ways[0].gateway {
                Some(std::net::IpAddr::V4(ip)) => ip.octets()[3],
                _ => 255,
            },
            RouteTarget::Blackhole => 0,
            _ => 254,
        };
        let all = self.kernel.routes.iter();
        all.map(|((_, to, _), (_, target))| (to.to_string(), number(target))).collect()
    }

    /// How many changes the kernel was told since this was asked.
    fn changes(&mut self) -> u64 {
        std::mem::take(&mut self.kernel.changes)
    }

    fn interface(&mut self, index: u32, up: bool) {
        self.interface_and_carrier(index, up, up);
    }

    fn interface_and_carrier(&mut self, index: u32, up: bool, running: bool) {
        let interface = Interface {
            index,
            name: format!("eth{index}"),
            kind: "ethernet".to_owned(),
            mac: None,
            mtu: 1500,
            up,
            running,
            master: None,
            addresses: BTreeSet::new(),
        };
        self.event(Event::Interface { change: InterfaceChange::Changed(interface) });
    }
}

fn begin() -> fib::Begin {
    fib::Begin { table: 254, is_ipv6: false, metric: None, keep: None }
}

const END: fib::End = fib::End { table: 254, is_ipv6: false };

/// Routes by the gateways 192.0.2.1 to 192.0.2.9 on interface 7; with 0 nowhere. What is written with a `!` is not
/// fresh.
fn change(routes: &[(&str, u32)], gone: &[&str]) -> fib::Change {
    let ways = (1..10u8).map(|number| fib::Way {
        set: 2 + u32::from(number),
        gateway: [192, 0, 2, number].into(),
        interface: 7,
        weight: 1,
    });
    let route = |(net, number): &(&str, u32)| fib::Route {
        net: net.trim_start_matches('!').parse().unwrap(),
        set: if *number == 0 { 0 } else { 2 + number },
        fresh: !net.starts_with('!'),
    };
    fib::Change {
        table: 254,
        is_ipv6: false,
        ways: ways.collect(),
        routes: routes.iter().map(route).collect(),
        gone: gone.iter().map(|net| net.parse().unwrap()).collect(),
    }
}

fn expect(world: &World, expected: &[(&str, u8)]) {
    let expected = expected.iter().map(|(to, number)| ((*to).to_owned(), *number)).collect();
    assert_eq!(world.there(), expected);
}

#[test]
fn a_table_is_told_followed_and_told_anew() {
    let mut world = World::new();
    world.begin();
    world.change(&[("10.1.0.0/16", 1), ("10.2.0.0/16", 2), ("10.3.0.0/16", 0)], &[]);
    world.end();
    expect(&world, &[("10.1.0.0/16", 1), ("10.2.0.0/16", 2), ("10.3.0.0/16", 0)]);
    assert_eq!(world.changes(), 3);
    world.change(&[("!10.1.0.0/16", 3)], &["10.2.0.0/16", "10.77.0.0/16"]);
    world.end();
    expect(&world, &[("10.1.0.0/16", 3), ("10.3.0.0/16", 0)]);
    assert_eq!(world.changes(), 3);

    // The same again costs nothing, however often the kernel has to tell what it has.
    world.kernel.interrupted = true;
    world.begin();
    world.change(&[("10.3.0.0/16", 0)], &[]);
    world.change(&[("10.1.0.0/16", 3)], &[]);
    world.end();
    assert_eq!(world.changes(), 0);
    // What is new, other, or not told costs one change each; what was told twice counts as it was told last.
    world.begin();
    world.change(&[("10.1.0.0/16", 4), ("10.4.0.0/16", 1), ("10.5.0.0/16", 1)], &[]);
    world.change(&[("!10.1.0.0/16", 5)], &["10.5.0.0/16"]);
    expect(&world, &[("10.1.0.0/16", 5), ("10.3.0.0/16", 0), ("10.4.0.0/16", 1)]);
    world.end();
    expect(&world, &[("10.1.0.0/16", 5), ("10.4.0.0/16", 1)]);
    assert_eq!(world.events(), fib::EventsReply { again: false, refused: vec![], omitted: 0 });
}

#[test]
fn what_is_told_before_the_kernel_is_read_waits_for_that() {
    let mut world = World::new();
    world.begin();
    world.change(&[("10.1.0.0/16", 1), ("10.2.0.0/16", 2)], &[]);
    world.end();
    world.changes();
    world.slow = true;
    let begin = world.begin_call(0, begin());
    let first = world.begin_call(0, change(&[("10.1.0.0/16", 1)], &[]));
    let second = world.begin_call(0, change(&[("10.3.0.0/16", 1)], &[]));
    let end = world.begin_call(0, END);
    assert!(world.answer::<fib::Begin>(begin).is_none());
    assert!(world.answer::<fib::Change>(first).is_none());
    world.one_answer();
    world.answer::<fib::Begin>(begin).unwrap().unwrap();
    world.answer::<fib::Change>(first).unwrap().unwrap();
    world.answer::<fib::Change>(second).unwrap().unwrap();
    assert!(world.answer::<fib::End>(end).is_none(), "the kernel has not done it");
    world.one_answer();
    world.answer::<fib::End>(end).unwrap().unwrap();
    expect(&world, &[("10.1.0.0/16", 1), ("10.3.0.0/16", 1)]);
    assert_eq!(world.changes(), 2);

    // Whoever begins anew before the end has told nothing yet.
    let end = world.begin_call(0, END);
    world.answer::<fib::End>(end).unwrap().unwrap();
    let calls = [world.begin_call(0, self::begin()), world.begin_call(0, self::begin())];
    let end = world.begin_call(0, END);
    while !world.asked.is_empty() {
        world.one_answer();
    }
    let error = world.answer::<fib::Begin>(calls[0]).unwrap().unwrap_err();
    assert!(error.to_string().contains("begun anew"), "{error}");
    world.answer::<fib::Begin>(calls[1]).unwrap().unwrap();
    world.answer::<fib::End>(end).unwrap().unwrap();
    expect(&world, &[]);
}

#[test]
fn the_kernel_has_one_piece_at_a_time_and_callers_wait_when_very_much_waits() {
    let mut world = World::new();
    world.begin();
    world.slow = true;
    let piece = |number: u32| {
        let nets: Vec<_> = (0..2_500u32)
            .map(|index| std::net::Ipv4Addr::from_bits((number * 2_500 + index) << 8))
            .map(|ip| IpNet::new(ip.into(), 24).unwrap())
            .collect();
        let route = |net: &IpNet| fib::Route { net: *net, set: 0, fresh: true };
        let routes = nets.iter().map(route).collect();
        fib::Change { table: 254, is_ipv6: false, ways: vec![], routes, gone: vec![] }
    };
    let calls: Vec<_> = (0..5).map(|number| world.begin_call(0, piece(number))).collect();
    let answered = |world: &mut World| {
        calls.iter().filter(|call| world.answer::<fib::Change>(**call).is_some()).count()
    };
    assert_eq!(answered(&mut world), 3, "some 8,000 may wait");
    assert_eq!(world.asked.len(), 1);
    // A route of which the kernel has not heard yet goes without it; one that comes meanwhile is not left behind.
    let gone = world.begin_call(
        0,
        fib::Change { gone: vec!["0.48.211.0/24".parse().unwrap()], ..change(&[], &[]) },
    );
    let mut turns = 0;
    while answered(&mut world) == 0 {
        world.one_answer();
        turns += 1;
    }
    assert!(turns > 5, "{turns}");
    let end = world.begin_call(0, END);
    world.slow = false;
    world.one_answer();
    world.answer::<fib::Change>(gone).unwrap().unwrap();
    world.answer::<fib::End>(end).unwrap().unwrap();
    assert_eq!(world.there().len(), 12_499);
    assert_eq!((world.kernel.most_at_a_time, world.changes()), (AT_A_TIME, 12_499));
}

#[test]
fn others_are_left_alone_and_refusals_are_told() {
    let mut world = World::new();
    let foreign = InterfaceAddress { ip: [10, 9, 0, 0].into(), prefix_length: 16 };
    let way = RouteWay { gateway: Some([192, 0, 2, 77].into()), interface: 7, weight: 1 };
    let target = RouteTarget::ways(vec![way]);
    world.kernel.routes.insert(((false, 254), foreign, METRIC), (4, target));
    let bad = InterfaceAddress { ip: [10, 8, 0, 0].into(), prefix_length: 16 };
    world.kernel.bad.insert(bad);
    let events = world.begin_call(0, fib::Events { table: 254, is_ipv6: false, wait: 1000 });
    let reply = world.answer::<fib::Events>(events).unwrap().unwrap();
    assert!(reply.again, "nobody knows what this caller has told");

    world.begin();
    let events = world.begin_call(0, fib::Events { table: 254, is_ipv6: false, wait: 1000 });
    world.change(&[("10.7.0.0/16", 1), ("10.8.0.0/16", 1), ("10.9.0.0/16", 1)], &[]);
    world.end();
    let reply = world.answer::<fib::Events>(events).unwrap().unwrap();
    let shown = |reply: fib::EventsReply| {
        let line = |refusal: fib::Refusal| format!("{} {}", refusal.net, refusal.error);
        reply.refused.into_iter().map(line).collect::<Vec<_>>()
    };
    let mut all = shown(reply);
    all.extend(shown(world.events()));
    assert_eq!(all, ["10.8.0.0/16 Nexthop has invalid gateway", "10.9.0.0/16 File exists"]);
    // Not even another route to the same prefix takes its place, nor is it deleted.
    world.change(&[("!10.9.0.0/16", 2)], &[]);
    world.end();
    world.change(&[], &["10.9.0.0/16"]);
    world.end();
    world.begin();
    world.end();
    expect(&world, &[("10.9.0.0/16", 77)]);
    assert_eq!(shown(world.events()), ["10.9.0.0/16 File exists"]);

    // A table is one caller's.
    let error = world.call(1, begin()).unwrap_err().to_string();
    assert!(error.contains("table 254 of IPv4 is that of rib"), "{error}");
    let error = world.call(1, change(&[], &[])).unwrap_err().to_string();
    assert!(error.contains("that of rib"), "{error}");
    let request = fib::Events { table: 254, is_ipv6: false, wait: 0 };
    assert!(world.call(1, request).is_err());
    world.call(1, fib::Begin { table: 100, is_ipv6: true, metric: Some(7), keep: None }).unwrap();
    world.call(1, fib::End { table: 100, is_ipv6: true }).unwrap();
    let tables = world.call(0, fib::Tables).unwrap().tables;
    let line = |table: &fib::Table| {
        format!(
            "{} {} {} {} {}",
            table.table, table.is_ipv6, table.owner, table.metric, table.state
        )
    };
    let lines: Vec<_> = tables.iter().map(line).collect();
    assert_eq!(lines, ["100 true other 7 following", "254 false rib 40 following"]);
}

#[test]
fn a_route_does_not_wait_for_many_that_go() {
    let mut world = World::new();
    world.begin();
    world.end();
    let net =
        |number: u32| IpNet::new(std::net::Ipv4Addr::from_bits(number << 8).into(), 24).unwrap();
    world.slow = true;
    let gone = (0..20_000).map(net).collect();
    let many = world.begin_call(0, fib::Change { gone, ..change(&[], &[]) });
    let new = world.begin_call(0, change(&[("10.1.0.0/16", 1)], &[]));
    assert!(world.answer::<fib::Change>(many).is_none());
    world.answer::<fib::Change>(new).unwrap().unwrap();
    // One piece is with the kernel already.
    (0..2).for_each(|_| world.one_answer());
    expect(&world, &[("10.1.0.0/16", 1)]);
    assert!(world.answer::<fib::Change>(many).is_none());
}

#[test]
fn who_might_not_be_right_any_more_is_told_to_begin_anew() {
    let mut world = World::new();
    world.interface(7, true);
    world.interface(8, true);
    world.begin();
    world.change(&[("10.1.0.0/16", 1)], &[]);
    world.end();
    world.interface(8, false);
    assert!(!world.events().again, "nothing leads there");
    world.interface_and_carrier(7, true, false);
    assert!(world.events().again, "next hops that routes share go with the carrier");
    world.later(60_000);
    let events = world.begin_call(0, fib::Events { table: 254, is_ipv6: false, wait: 10_000 });
    world.interface(7, false);
    assert!(world.answer::<fib::Events>(events).unwrap().unwrap().again);
    assert!(!world.events().again, "that is said once");
    // The kernel takes nothing for an interface that is down; when it is up, it may.
    world.kernel.routes.clear();
    world.kernel.bad.insert(InterfaceAddress { ip: [10, 1, 0, 0].into(), prefix_length: 16 });
    world.begin();
    world.change(&[("10.1.0.0/16", 1)], &[]);
    world.end();
    let events = world.events();
    assert_eq!((events.again, events.refused.len()), (false, 1));
    world.interface(8, true);
    assert!(world.events().again);
    world.kernel.bad.clear();
    world.begin();
    world.change(&[("10.1.0.0/16", 1)], &[]);
    world.end();
    world.interface(7, true);
    assert!(!world.events().again, "nothing is refused");

    world.kernel.broken = true;
    world.change(&[("10.2.0.0/16", 1)], &[]);
    assert!(world.events().again);
    let error = world.call(0, begin()).unwrap_err().to_string();
    assert!(error.contains("no buffer space"), "{error}");
    assert!(world.log.iter().any(|line| line.contains("no buffer space")), "{:?}", world.log);
    world.kernel.broken = false;
    world.begin();
    world.change(&[("10.1.0.0/16", 1), ("10.2.0.0/16", 1)], &[]);
    world.end();
    expect(&world, &[("10.1.0.0/16", 1), ("10.2.0.0/16", 1)]);
    // Whoever waits for news is answered in time that there is none.
    let events = world.begin_call(0, fib::Events { table: 254, is_ipv6: false, wait: 10_000 });
    assert!(world.answer::<fib::Events>(events).is_none());
    world.now += Duration::from_secs(10);
    world.event(Event::Tick);
    assert!(!world.answer::<fib::Events>(events).unwrap().unwrap().again);
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u32),
    Delete(u8),
    /// Begin anew and tell everything, of which the kernel has lost some.
    Again(u8),
    Answer,
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..8u8, 0..3u32).prop_map(|(to, way)| Step::Put(to, way)),
        3 => (0..8u8).prop_map(Step::Delete),
        1 => any::<u8>().prop_map(Step::Again),
        4 => Just(Step::Answer),
        1 => Just(Step::Settle),
    ]
}

proptest! {
    /// Whatever is told and however slow the kernel is, when all is told it has what is wanted and nothing else.
    #[test]
    fn the_kernel_has_what_is_wanted(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new();
        world.slow = true;
        let mut wanted = BTreeMap::<String, u32>::new();
        for step in steps {
            match step {
                Step::Put(to, way) => {
                    let net = format!("10.{to}.0.0/16");
                    let fresh = wanted.insert(net.clone(), way).is_none();
                    let net = if fresh { net } else { format!("!{net}") };
                    world.begin_call(0, change(&[(&net, way)], &[]));
                }
                Step::Delete(to) => {
                    let net = format!("10.{to}.0.0/16");
                    if wanted.remove(&net).is_some() {
                        world.begin_call(0, change(&[], &[&net]));
                    }
                }
                Step::Again(lost) => {
                    let lost = InterfaceAddress { ip: [10, lost % 8, 0, 0].into(), prefix_length: 16 };
                    world.kernel.routes.retain(|(_, to, _), _| *to != lost);
                    world.begin_call(0, begin());
                    for (net, way) in &wanted {
                        world.begin_call(0, change(&[(net, *way)], &[]));
                    }
                    world.begin_call(0, END);
                }
                Step::Answer => world.one_answer(),
                Step::Settle => {
                    while !world.asked.is_empty() {
                        world.one_answer();
                    }
                }
            }
        }
        let end = world.begin_call(0, END);
        while !world.asked.is_empty() {
            world.one_answer();
        }
        world.answer::<fib::End>(end).unwrap().unwrap();
        let wanted: BTreeMap<_, _> = wanted.into_iter().map(|(net, way)| (net, way as u8)).collect();
        prop_assert_eq!(world.there(), wanted.clone());
        // To tell it again is free.
        world.slow = false;
        world.changes();
        world.begin();
        let again: Vec<_> = wanted.iter().map(|(net, way)| (net.as_str(), u32::from(*way))).collect();
        world.change(&again, &[]);
        world.end();
        prop_assert_eq!(world.changes(), 0);
    }
}
