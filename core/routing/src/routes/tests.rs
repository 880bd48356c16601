//! Each sequence of operations is carried out by the table and by a naive twin: a map of all routes, from which
//! everything follows. Readers of different pace must end with the twin's best routes.

use std::collections::BTreeMap;

use ipnet::Ipv4Net;
use proptest::prelude::*;

use super::*;

mod sweeps;

/// The lower the better; above 100 a route cannot be used, and what `barred` says neither.
struct Lowest {
    barred: Option<u32>,
}

impl Lowest {
    fn usable(&self, route: u32) -> bool {
        route <= 100 && self.barred != Some(route)
    }
}

impl Decide<u32> for Lowest {
    fn best(&self, candidates: Candidates<'_, u32>) -> Option<usize> {
        let key = |one: &Candidate<u32>| (one.route, one.origin, one.path);
        candidates.best_by(|one| self.usable(one.route), |one, other| key(one) < key(other))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set { net: u8, origin: u8, path: u32, route: u32 },
    Withdraw { net: u8, origin: u8, path: u32 },
    Renew(u8),
    Sweep(u8),
    Bar(Option<u32>),
    Work(usize),
    Read(u8, usize),
    Open(u8),
    Close(u8),
    Fork(u8, u8),
    Again(u8),
    Tidy,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (net, origin, path) = (0u8..12, 0u8..3, 0u32..2);
    let route = prop_oneof![4 => 0u32..5, 1 => Just(101u32)];
    let set = (net.clone(), origin.clone(), path.clone(), route)
        .prop_map(|(net, origin, path, route)| Step::Set { net, origin, path, route });
    let withdraw = (net, origin.clone(), path).prop_map(|(net, origin, path)| Step::Withdraw {
        net,
        origin,
        path,
    });
    let step = prop_oneof![
        12 => set,
        6 => withdraw,
        1 => origin.clone().prop_map(Step::Renew),
        1 => origin.prop_map(Step::Sweep),
        1 => prop::option::of(0u32..5).prop_map(Step::Bar),
        4 => (1usize..8).prop_map(Step::Work),
        6 => (0u8..3, 1usize..6).prop_map(|(reader, most)| Step::Read(reader, most)),
        1 => (0u8..3).prop_map(Step::Open),
        1 => (0u8..3).prop_map(Step::Close),
        1 => (0u8..3, 0u8..3).prop_map(|(one, other)| Step::Fork(one, other)),
        1 => (0u8..3).prop_map(Step::Again),
        1 => Just(Step::Tidy),
    ];
    prop::collection::vec(step, 1..200)
}

fn net(number: u8) -> Ipv4Net {
    // Some contain others.
    Ipv4Net::new([10, number / 3 * 16, 0, 0].into(), 12 + number % 3).unwrap().trunc()
}

/// What a reader believes, from what it has heard: the best routes, or all that can be used, the best first.
type Belief = BTreeMap<Ipv4Net, Vec<(OriginId, u32, u32)>>;

#[derive(Default)]
struct Twin {
    /// By destination, origin and path: the route, and its generation.
    routes: BTreeMap<(Ipv4Net, OriginId, u32), (u32, u64)>,
    generations: [u64; 3],
}

impl Twin {
    fn belief(&self, hears: Hears, decide: &Lowest) -> Belief {
        let mut all = Belief::new();
        for ((net, origin, path), (route, _)) in &self.routes {
            if decide.usable(*route) {
                all.entry(*net).or_default().push((*origin, *path, *route));
            }
        }
        for routes in all.values_mut() {
            sort(routes, hears);
        }
        all
    }
}

/// The best first, and only it for who hears of no others.
fn sort(routes: &mut Vec<(OriginId, u32, u32)>, hears: Hears) {
    routes.sort_by_key(|(origin, path, route)| (*route, *origin, *path));
    if hears == Hears::Best {
        routes.truncate(1);
    }
}

fn said(one: &Candidate<u32>) -> (OriginId, u32, u32) {
    (one.origin, one.path, one.route)
}

struct Listener {
    reader: ReaderId,
    hears: Hears,
    belief: Belief,
}

impl Listener {
    fn believe(&mut self, table: &RouteTable<Ipv4Net, u32>, number: u32, decide: &Lowest) {
        let net = table.destination(number);
        let best = table.best(number).into_iter();
        let mut routes: Vec<_> = match self.hears {
            Hears::Best => best.map(said).collect(),
            Hears::All => {
                table.candidates(number).filter(|one| decide.usable(one.route)).map(said).collect()
            }
        };
        if routes.is_empty() {
            self.belief.remove(&net);
            return;
        }
        sort(&mut routes, self.hears);
        self.belief.insert(net, routes);
    }
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let origins: Vec<_> = (0..3).map(|_| table.add_origin()).collect();
    let mut decide = Lowest { barred: None };
    let mut twin = Twin::default();
    let mut readers: [Option<Listener>; 3] = Default::default();
    for step in steps {
        match step {
            Step::Set { net: number, origin, path, route } => {
                let (net, place) = (net(number), usize::from(origin));
                let key = (net, origins[place], path);
                let old = twin.routes.insert(key, (route, twin.generations[place]));
                let before = table.set(net, origins[place], path, route, &decide);
                prop_assert_eq!(before, old.map(|old| old.0));
            }
            Step::Withdraw { net: number, origin, path } => {
                let (net, origin) = (net(number), origins[usize::from(origin)]);
                let was = twin.routes.remove(&(net, origin, path)).map(|route| route.0);
                prop_assert_eq!(table.withdraw(&net, origin, path, &decide), was);
            }
            Step::Renew(origin) => {
                let origin = usize::from(origin);
                twin.generations[origin] += 1;
                table.renew(origins[origin]);
            }
            Step::Sweep(origin) => {
                let origin = usize::from(origin);
                table.sweep(origins[origin]);
                while table.has_work() {
                    table.work(3, &decide, |_, _| {});
                }
                let fresh = twin.generations[origin];
                twin.routes.retain(|(_, of, _), (_, generation)| {
                    *of != origins[origin] || *generation == fresh
                });
            }
            Step::Bar(barred) => {
                decide.barred = barred;
                table.decide_again();
            }
            Step::Work(most) => table.work(most, &decide, |_, _| {}),
            Step::Read(reader, most) => {
                if let Some(one) = &mut readers[usize::from(reader)] {
                    for _ in 0..most {
                        let Some(number) = table.next(one.reader) else {
                            prop_assert!(!table.is_behind(one.reader));
                            break;
                        };
                        one.believe(&table, number, &decide);
                    }
                }
            }
            Step::Open(reader) => {
                let place = &mut readers[usize::from(reader)];
                if place.is_none() {
                    let hears = if reader == 2 { Hears::All } else { Hears::Best };
                    let reader = table.open_reader(hears);
                    *place = Some(Listener { reader, hears, belief: Belief::new() });
                }
            }
            Step::Close(reader) => {
                if let Some(one) = readers[usize::from(reader)].take() {
                    table.close_reader(one.reader);
                }
            }
            Step::Fork(one, other) => {
                if let Some(like) = &readers[usize::from(one)]
                    && readers[usize::from(other)].is_none()
                {
                    let fork = table.fork_reader(like.reader);
                    prop_assert!(table.have_read_the_same(like.reader, fork));
                    let (hears, belief) = (like.hears, like.belief.clone());
                    readers[usize::from(other)] = Some(Listener { reader: fork, hears, belief });
                }
            }
            Step::Again(reader) => {
                if let Some(one) = &readers[usize::from(reader)] {
                    table.tell_again(one.reader, one.hears);
                }
            }
            Step::Tidy => table.tidy_all(),
        }
        for (place, origin) in origins.iter().enumerate() {
            let routes = twin.routes.keys().filter(|(_, of, _)| of == origin).count();
            prop_assert_eq!(table.routes_of(*origin), routes, "origin {}", place);
            let of = |(key, told): &(&(Ipv4Net, OriginId, u32), &(u32, u64))| {
                key.1 == *origin && told.1 == twin.generations[place]
            };
            let fresh = twin.routes.iter().filter(of).count();
            prop_assert_eq!(table.fresh_routes_of(*origin), fresh, "origin {}", place);
        }
    }
    while table.has_work() {
        table.work(5, &decide, |_, _| {});
    }
    let best = twin.belief(Hears::Best, &decide);
    prop_assert_eq!(table.len(), best.len());
    for one in readers.iter_mut().flatten() {
        while let Some(number) = table.next(one.reader) {
            one.believe(&table, number, &decide);
        }
        prop_assert_eq!(&one.belief, &twin.belief(one.hears, &decide));
    }
    for (net, best) in &best {
        let number = Index::<Ipv4Net>::get(table.index(), net).unwrap();
        let found = table.best(number).unwrap();
        prop_assert_eq!((found.origin, found.path, found.route), best[0]);
    }
    // Nothing is kept of what all have read.
    prop_assert_eq!(table.waiting(), 0);
    table.tidy_all();
    prop_assert_eq!(table.log.len(), 0);
    let mut nets: Vec<_> = twin.routes.keys().map(|(net, _, _)| *net).collect();
    nets.dedup();
    let mut kept = Vec::new();
    while let Some((net, _)) = table.after(kept.last()) {
        kept.push(net);
    }
    prop_assert_eq!(kept, nets);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_a_map_of_all_routes(steps in steps()) {
        run(steps)?;
    }
}

#[test]
fn who_is_told_again_hears_of_what_goes_meanwhile() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (origin, decide) = (table.add_origin(), Lowest { barred: None });
    let reader = table.open_reader(Hears::Best);
    for number in 0..4 {
        table.set(net(number), origin, 0, 1, &decide);
    }
    while table.next(reader).is_some() {}
    // One goes of which it has not heard, then it is told again, and another one goes before it comes there.
    table.withdraw(&net(1), origin, 0, &decide);
    table.tell_again(reader, Hears::Best);
    table.withdraw(&net(3), origin, 0, &decide);
    let mut heard = BTreeMap::new();
    while let Some(number) = table.next(reader) {
        heard.insert(table.destination(number), table.best(number).is_some());
    }
    let all = [(0, true), (1, false), (2, true), (3, false)];
    assert_eq!(heard, all.map(|(number, is_there)| (net(number), is_there)).into());
    assert!(!table.is_behind(reader));
}

#[test]
fn an_origin_that_begins_anew_without_end_keeps_nothing_that_is_stale() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (origin, decide) = (table.add_origin(), Lowest { barred: None });
    let finish = |table: &mut RouteTable<Ipv4Net, u32>| {
        while table.has_work() {
            table.work(1, &decide, |_, _| {});
        }
    };
    for times in [33_000, 100_000] {
        table.set(net(0), origin, 0, 1, &decide);
        (0..times).for_each(|_| table.renew(origin));
        table.set(net(1), origin, 0, 1, &decide);
        table.sweep(origin);
        finish(&mut table);
        assert_eq!((table.routes_of(origin), table.len()), (1, 1), "{times}");
        // Nothing is stale: there is nothing to do.
        table.sweep(origin);
        assert!(!table.has_work());
    }
    // What becomes stale while others go waits, and takes no more room however often that is.
    for _ in 0..1000 {
        table.renew(origin);
        table.sweep(origin);
    }
    finish(&mut table);
    assert_eq!(table.routes_of(origin), 0);
}

#[test]
fn a_reader_that_sleeps_costs_no_more_than_the_table() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (origin, decide) = (table.add_origin(), Lowest { barred: None });
    let reader = table.open_reader(Hears::Best);
    for round in 0..10_000 {
        table.set(net((round % 12) as u8), origin, 0, round % 7, &decide);
    }
    assert!(table.waiting() <= 2 * 1024 + 24, "{} changes wait", table.waiting());
    let mut heard = Vec::new();
    while let Some(number) = table.next(reader) {
        heard.push(table.destination(number));
    }
    heard.sort();
    heard.dedup();
    assert_eq!(heard.len(), 12);
}

#[test]
fn a_peering_that_comes_back_with_the_same_routes_changes_nothing() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (origin, decide) = (table.add_origin(), Lowest { barred: None });
    for number in 0..12 {
        table.set(net(number), origin, 0, 1, &decide);
    }
    let reader = table.open_reader(Hears::Best);
    while table.next(reader).is_some() {}
    for _ in 0..3 {
        table.renew(origin);
        table.sweep(origin);
        table.work(4, &decide, |_, _| {});
        while let Some(number) = table.next(reader) {
            assert!(table.best(number).is_none());
        }
        let there = table.len();
        assert!((1..12).contains(&there));
        for number in 0..12 {
            table.set(net(number), origin, 0, 1, &decide);
        }
        while table.has_work() {
            table.work(4, &decide, |_, _| {});
        }
        let mut heard = 0;
        while table.next(reader).is_some() {
            heard += 1;
        }
        assert_eq!((heard, table.len()), (12 - there, 12), "only what had gone is told again");
    }
}

#[test]
fn destinations_can_be_anything_that_has_an_order() {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Name(&'static str);
    impl Destination for Name {
        type Index = crate::OrderedIndex<Self>;
    }
    let mut table = RouteTable::<Name, u32>::new();
    let (origin, decide) = (table.add_origin(), Lowest { barred: None });
    for name in ["/b", "/a", "/c"] {
        table.set(Name(name), origin, 0, 1, &decide);
    }
    assert_eq!(table.withdraw(&Name("/b"), origin, 0, &decide), Some(1));
    assert_eq!(table.withdraw(&Name("/b"), origin, 0, &decide), None);
    assert_eq!(table.after(None).unwrap().0, Name("/a"));
    assert_eq!(table.after(Some(&Name("/a"))).unwrap().0, Name("/c"));
    assert_eq!(table.after(Some(&Name("/c"))), None);
}

/// What stands between a destination that is told now and a reader.
fn heard_before(
    table: &mut RouteTable<Ipv4Net, u32>,
    reader: ReaderId,
    awaited: Ipv4Net,
) -> Option<usize> {
    let mut heard = 0;
    while let Some(number) = table.next(reader) {
        if table.destination(number) == awaited {
            return Some(heard);
        }
        heard += 1;
    }
    None
}

/// Networks of which none is among those of [`net`].
fn far(number: u32) -> Ipv4Net {
    Ipv4Net::new((0x4000_0000 + (number << 8)).into(), 24).unwrap()
}

#[test]
fn what_is_told_now_does_not_wait_behind_a_peering_that_goes() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (one, other, decide) = (table.add_origin(), table.add_origin(), Lowest { barred: None });
    for number in 0..4000 {
        table.set(far(number), one, 0, 1, &decide);
    }
    table.set(net(1), other, 0, 1, &decide);
    let reader = table.open_reader(Hears::Best);
    while table.next(reader).is_some() {}
    table.renew(one);
    table.sweep(one);
    while table.has_work() {
        table.work(100, &decide, |_, _| {});
    }
    assert_eq!(table.waiting(), 4000);
    // A new route, and one that is taken back, come before nearly all of what goes in the background.
    table.withdraw(&net(1), other, 0, &decide);
    table.set(net(0), other, 0, 1, &decide);
    assert_eq!(heard_before(&mut table, reader, net(0)), Some(0));
    assert_eq!(heard_before(&mut table, reader, net(1)), Some(0));
    // But what goes has its share however much is told.
    let mut gone = 0;
    for round in 0..800 {
        table.set(net(2), other, 0, round % 7, &decide);
        let number = table.next(reader).unwrap();
        gone += usize::from(table.best(number).is_none());
    }
    assert!(gone >= 100, "{gone} of 800 were in the background");
    let mut heard = gone;
    while let Some(number) = table.next(reader) {
        heard += usize::from(table.best(number).is_none());
    }
    assert_eq!(heard, 4000);
}

#[test]
fn what_was_urgent_and_was_heard_is_not_urgent_any_more() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (one, other, decide) = (table.add_origin(), table.add_origin(), Lowest { barred: None });
    let reader = table.open_reader(Hears::Best);
    for number in 0..4000 {
        table.set(far(number), one, 0, 1, &decide);
    }
    while table.next(reader).is_some() {}
    for number in 0..4000 {
        table.withdraw(&far(number), one, 0, &decide);
    }
    table.set(net(0), other, 0, 1, &decide);
    assert_eq!(heard_before(&mut table, reader, net(0)), Some(0));
}

#[test]
fn what_was_urgent_stays_so_until_it_is_heard() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (one, other, mut decide) =
        (table.add_origin(), table.add_origin(), Lowest { barred: None });
    for number in 0..4000 {
        table.set(far(number), one, 0, 1, &decide);
    }
    let reader = table.open_reader(Hears::Best);
    while table.next(reader).is_some() {}
    table.set(net(0), other, 0, 2, &decide);
    // The walk finds that nothing leads there any more before the reader has heard that something does.
    decide.barred = Some(2);
    table.sweep(one);
    table.renew(one);
    table.sweep(one);
    table.decide_again();
    while table.has_work() {
        table.work(100, &decide, |_, _| {});
    }
    assert_eq!(heard_before(&mut table, reader, net(0)), Some(0));
}
