//! How much is made for peers before it can leave.

use super::*;
use crate::speaker::telling::AHEAD;

/// Whatever comes with one wake-up, sockets must have the chance to be full.
#[test]
fn however_much_comes_before_a_slice_peers_are_told_no_more_than_so_many_bytes_of_it() {
    const ROUTES: u32 = 1_000;
    let mut world = World::new();
    world.is_busy = true;
    let bytes = |output: &Output| match output {
        Output::World(Action::Send { message, .. }) => message.bytes().len(),
        _ => 0,
    };
    // Of each route there is a message of its own, as long as one may be.
    let communities: Vec<u32> = (0..980).map(|number| 65_001 << 16 | number).collect();
    let mut out = Vec::new();
    for number in 0..ROUTES {
        let net = ipnet::Ipv4Net::new((0x1400_0000 + (number << 8)).into(), 24).unwrap();
        let own = [&communities[..], &[65_002 << 16 | number]].concat();
        out.extend(world.announces_with(1, &net.prefix(), address(1), &own));
    }
    let before: usize = out.iter().map(bytes).sum();
    assert!((AHEAD..AHEAD + 4096).contains(&before), "{before}");
    world.is_busy = false;
    out.extend(world.happens(Event::Tick));
    let updates = sent(2, &out).into_iter().filter(|kind| *kind == MessageType::Update).count();
    assert_eq!(updates, ROUTES as usize, "all have been told in the end, once each");
}
