//! Many peers, each of which is told by itself.

use super::*;

const PEERS: u8 = 10;

fn net(number: u16) -> Prefix {
    let [high, low] = number.to_be_bytes();
    ipnet::Ipv4Net::new([20, high, low, 0].into(), 24).unwrap().prefix()
}

/// How many prefixes a peer is told of, and how many are withdrawn.
fn counts(number: u8, out: &[Output]) -> (usize, usize) {
    let context = Context::new(Neighbour::External);
    let mut counts = (0, 0);
    for (_, body) in messages(number, out).iter().filter(|one| one.0 == MessageType::Update) {
        let update = Update::new_checked(body, &context).unwrap();
        counts.0 += update.reach().flat_map(|reach| reach.nlri).count();
        counts.1 += update.withdrawn().flat_map(|(_, nlri)| nlri).count();
    }
    counts
}

/// Connections are lost, and not back at once.
fn lose(world: &mut World, numbers: impl Iterator<Item = u8>) -> Vec<Output> {
    for number in numbers {
        world.happens(Event::Closed { channel: ChannelId(number.into()) });
    }
    world.now += Duration::from_secs(1);
    world.happens(Event::Tick)
}

/// What they have been told alike is remembered once, until only few are left.
#[test]
fn each_of_many_is_told_what_it_has_not_heard() {
    let peers: String = (1..=PEERS)
        .map(|number| {
            let (address, system) = (address(number), 65_000 + u32::from(number));
            format!("peer {address} {{ as {system}; passive on; import all; export all; }} ")
        })
        .collect();
    let text = format!("bgp {{ as 65000; router-id 192.0.2.1; {peers} }}");
    let mut world = World::started_as(config::read("t", &text).unwrap());
    world.born(false);
    (1..=PEERS).for_each(|number| drop(world.connect(number)));
    assert_eq!(world.bgp.fanout.count(), (PEERS.into(), 0));
    const ROUTES: u16 = 600;
    let out: Vec<_> = (0..ROUTES).flat_map(|number| world.announces(1, &net(number))).collect();
    assert_eq!(counts(1, &out), (0, 0), "it is the source");
    assert!((2..=PEERS).all(|number| counts(number, &out) == (ROUTES.into(), 0)));
    // Another one has a route that is not better, and it is all that there is then.
    let out: Vec<_> = (0..2).flat_map(|number| world.announces(2, &net(300 * number))).collect();
    assert!((1..=PEERS).all(|number| counts(number, &out) == (0, 0)));
    let out = lose(&mut world, 1..=1);
    let rest = usize::from(ROUTES) - 2;
    assert_eq!(counts(2, &out), (0, rest + 2), "two of them are its own now");
    assert!((3..=PEERS).all(|number| counts(number, &out) == (2, rest)));
    // Few are left.
    lose(&mut world, 4..=PEERS);
    assert_eq!(counts(3, &world.announces(2, &net(7))), (1, 0));
    let out = lose(&mut world, 2..=2);
    assert_eq!(counts(3, &out), (0, 3));
}
