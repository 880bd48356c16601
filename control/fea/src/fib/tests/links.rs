//! Links that go and come back, on which the kernel forgets routes.

use super::*;

#[test]
fn a_link_that_is_lost_while_everything_is_told_anew_takes_no_route_for_good() {
    let mut world = World::new();
    world.interface(7, true);
    world.tell_everything();
    world.begin();
    // The kernel has told of the route, and forgets it now.
    world.interface(7, false);
    world.kernel.routes.clear();
    world.interface(7, true);
    world.change(&[("10.1.0.0/16", 1)], &[]);
    world.end();
    if world.events().again {
        world.tell_everything();
    }
    expect(&world, &[("10.1.0.0/16", 1)]);
    assert!(!world.events().again, "everything is told");
}

#[test]
fn a_link_that_is_lost_and_back_once_is_told_of_at_once_and_one_that_flaps_is_not() {
    let mut world = World::new();
    world.interface(7, true);
    world.tell_everything();
    let mut told = Vec::new();
    for millis in (0..20_000).step_by(250) {
        for up in [false, true] {
            world.interface(7, up);
        }
        if world.events().again {
            told.push(millis);
            world.tell_everything();
        }
        world.later(250);
    }
    assert_eq!(told[..2], [0, 1_000]);
    assert!((4..=7).contains(&told.len()), "{told:?}");
    // It is told at last, though nothing happens any more.
    world.interface(7, false);
    world.interface(7, true);
    assert!(!world.events().again);
    world.later(60_000);
    assert!(world.events().again);
}
