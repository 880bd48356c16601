//! What the log says of faults in UPDATEs, however many there are.

use super::*;
use crate::wire::malformed::{AS_PATH, NEXT_HOP, NLRI, ORIGIN, body, body_with, message};

/// LOCAL_PREF, which means nothing from another system.
const LOCAL_PREF: &[u8] = &[0x40, 5, 4, 0, 0, 0, 200];

/// What the log says of faults.
fn lines(out: &[Output]) -> Vec<&str> {
    let line = |output| match output {
        &Output::World(Action::Report { level: Level::Warning, ref line }) => Some(line.as_str()),
        _ => None,
    };
    out.iter().filter_map(line).filter(|line| line.contains("in an UPDATE")).collect()
}

#[test]
fn of_many_faults_the_log_has_a_line_a_minute() {
    const SAID: &str = "10.0.1.2: in an UPDATE with 198.51.100.0/24: attribute 5 comes from another \
        autonomous system, where it has no meaning: its routes are used without it";
    let mut world = World::started("");
    world.born(false);
    // It may be silent as long as it likes.
    let connect = |world: &mut World| world.connect_as(1, Open::new(65001, 0, address(1)), &[]);
    connect(&mut world);
    let bad = message(&body_with(LOCAL_PREF));
    let out: Vec<_> = (0..1000).flat_map(|_| world.says(1, &bad)).collect();
    assert_eq!(lines(&out), [SAID]);
    world.now += Duration::from_millis(59_999);
    assert_eq!(lines(&world.says(1, &bad)), [""; 0]);
    world.now += Duration::from_millis(1);
    let out: Vec<_> = (0..9).flat_map(|_| world.says(1, &bad)).collect();
    assert_eq!(lines(&out), [format!("{SAID}; faults since the last such line: 1001")]);
    let peer = &world.bgp.peers[&IpAddr::from(address(1))];
    assert_eq!((peer.tally.faults, world.bgp.counters.get(Activity::Faults)), (1010, 1010));
    // Another session has a first one again.
    world.happens(Event::Closed { channel: ChannelId(1) });
    connect(&mut world);
    assert_eq!(lines(&world.says(1, &bad)), [SAID]);
}

#[test]
fn what_is_done_is_said_of_the_strongest_fault_and_of_networks_that_are_none() {
    let mut world = World::new();
    let origin: &[u8] = &[0x40, 1, 1, 9];
    let both = message(&body(&[origin, AS_PATH, NEXT_HOP, LOCAL_PREF], NLRI));
    let said = "10.0.1.2: in an UPDATE with 198.51.100.0/24: attribute 1 has a value without meaning: \
        its routes are taken for withdrawn; faults so far: 2";
    assert_eq!(lines(&world.says(1, &both)), [said]);
    let misplaced = message(&body(&[ORIGIN, AS_PATH, NEXT_HOP], &[8, 127]));
    let said = "10.0.2.2: in an UPDATE with 127.0.0.0/8: no packets from elsewhere go there: \
        that is not taken";
    let path: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xEA];
    let second = message(&body(&[ORIGIN, path, NEXT_HOP], &[8, 127]));
    assert_eq!(lines(&world.says(2, &second)), [said], "each peer has its own first one");
    assert_eq!(lines(&world.says(1, &misplaced)), [""; 0]);
}
