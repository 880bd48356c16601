//! Peers that are told the same are told together, and those that are not take turns (Handley et al., XORP, §5.1.1).

use super::*;

/// How many prefixes a sending announces.
fn announced(sending: &Sending) -> usize {
    let messages = messages(&sending.bytes);
    let count = |(_, body): &(MessageType, Vec<u8>)| {
        let update = Update::new_checked(body, &context(1)).unwrap();
        update.reach().map(|reach| reach.nlri.iter().count()).sum::<usize>()
    };
    messages.iter().map(count).sum()
}

/// Forty peers that are told different things take turns: in one go no more is told than others can wait for.
#[test]
fn cohorts_take_turns_when_there_are_many() {
    const NETS: u16 = 1500;
    let mut world = World::new();
    world.step(&Step::Up(0));
    let what = Announced {
        length: 0,
        med: 0,
        preference: 0,
        community: false,
        no_llgr: false,
        is_stale: false,
    };
    let encoder =
        UpdateEncoder::new(&attributes(0, what), Family::IPV4_UNICAST, &context(0)).unwrap();
    let net = |number: u16| {
        let [high, low] = number.to_be_bytes();
        (0, Ipv4Net::new(Ipv4Addr::new(203, high, low, 0), 24).unwrap().prefix())
    };
    let mut bytes = Vec::new();
    encoder.all((0..NETS).map(net).collect::<Vec<_>>(), &mut bytes);
    world.take(0, &bytes);
    while world.routes.has_work() {
        world.routes.work();
    }
    let mut heard = BTreeMap::new();
    for number in 0..40 {
        let origin = world.routes.add_source(source(1));
        let audience = Audience { local_address: [10, 0, 1, number].into(), ..world.audience(1) };
        world.fanout.join(origin, Version::V4, audience, context(1), &mut world.routes);
        heard.insert(origin, 0);
    }
    let mut calls = 0;
    while world.fanout.has_work(&world.routes) {
        let mut at_once = 0;
        for sending in world.fanout.tell(&mut world.routes) {
            let count = announced(&sending);
            at_once += count;
            for origin in &sending.to {
                *heard.get_mut(origin).unwrap_or(&mut 0) += count;
            }
        }
        calls += 1;
        assert!(at_once < TOGETHER + 512, "{at_once} at once");
        let has_heard = heard.values().filter(|count| **count > 0).count();
        // The one that has announced them has its turns, too, and hears nothing.
        assert!(has_heard >= 40.min(7 * calls), "{has_heard} have heard something after {calls}");
    }
    assert!(heard.values().all(|count| *count == usize::from(NETS)), "{heard:?}");
}

/// What they are told again is made once, and they are with the others again when they have heard it.
#[test]
fn peers_that_ask_together_are_told_together() {
    let mut world = World::new();
    let (no_llgr, is_stale) = (false, false);
    let what = Announced { length: 0, med: 0, preference: 0, community: false, no_llgr, is_stale };
    world.step(&Step::Up(0));
    world.step(&Step::Announce { peer: 0, net: 0, what });
    while world.routes.has_work() {
        world.routes.work();
    }
    let mut join = || {
        let origin = world.routes.add_source(source(1));
        let audience = world.audience(1);
        world.fanout.join(origin, Version::V4, audience, context(1), &mut world.routes);
        origin
    };
    let [one, other, third] = [join(), join(), join()];
    let tell = |world: &mut World| {
        let mut sendings = Vec::new();
        while world.fanout.has_work(&world.routes) {
            sendings.extend(world.fanout.tell(&mut world.routes));
        }
        sendings
    };
    tell(&mut world);
    let together = world.fanout.count();
    let asks = BTreeSet::from([one, other]);
    world.fanout.tell_again(&asks, Version::V4, false, &mut world.routes);
    assert_eq!(world.fanout.count().0, together.0 + 1);
    let sendings = tell(&mut world);
    assert!(sendings.iter().all(|sending| sending.to == [one, other]), "{sendings:?}");
    let told: usize = sendings.iter().map(announced).sum();
    assert_eq!((told, world.fanout.count()), (1, together));
    // All of them need no other cohort.
    let all = BTreeSet::from([one, other, third]);
    world.fanout.tell_again(&all, Version::V4, false, &mut world.routes);
    assert_eq!(world.fanout.count(), together);
    let sendings = tell(&mut world);
    assert!(sendings.iter().all(|sending| sending.to == [one, other, third]), "{sendings:?}");
    assert_eq!(sendings.iter().map(announced).sum::<usize>(), 1);
}
