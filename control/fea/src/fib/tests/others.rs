//! What others delete.

use super::*;

impl World {
    /// Somebody else deletes routes.
    fn deleted_by_others(&mut self, table: u32, omitted: bool) {
        self.kernel.routes.clear();
        let space = RouteSpace { is_ipv6: false, table, protocol: PROTOCOL };
        let result = Ok(RouteReply::Deleted(Deletions { routes: [(space, 3)].into(), omitted }));
        let token = self.watch.unwrap();
        self.event(Event::RoutesAnswered { token, result });
    }

    pub(super) fn later(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.event(Event::Tick);
    }

    pub(super) fn tell_everything(&mut self) {
        self.begin();
        self.change(&[("10.1.0.0/16", 1)], &[]);
        self.end();
    }
}

#[test]
fn whose_routes_others_delete_is_told_to_begin_anew_but_not_all_the_time() {
    let mut world = World::new();
    world.tell_everything();
    world.deleted_by_others(100, false);
    world.later(1_000);
    assert!(!world.events().again, "that is somebody else's table");
    world.deleted_by_others(254, false);
    assert!(!world.events().again, "there may be more");
    world.later(100);
    assert!(world.events().again);
    world.tell_everything();
    expect(&world, &[("10.1.0.0/16", 1)]);
    // Somebody deletes it at once.
    world.deleted_by_others(254, false);
    world.later(500);
    assert!(!world.events().again);
    let events = world.begin_call(0, fib::Events { table: 254, is_ipv6: false, wait: 10_000 });
    world.later(500);
    assert!(world.answer::<fib::Events>(events).unwrap().unwrap().again);
    world.tell_everything();
    // Of which tables is not known.
    world.later(60_000);
    world.deleted_by_others(100, true);
    world.later(100);
    assert!(world.events().again);
    world.tell_everything();
    // Who begins anew by himself need not be told.
    world.later(60_000);
    world.deleted_by_others(254, false);
    world.tell_everything();
    world.later(60_000);
    assert!(!world.events().again);
    expect(&world, &[("10.1.0.0/16", 1)]);
}

#[test]
fn what_others_delete_is_asked_for_once_and_again_if_it_ended() {
    let mut world = World::new();
    world.tell_everything();
    let first = world.watch.take().unwrap();
    world.tell_everything();
    assert!(world.watch.is_none());
    world.event(Event::RoutesAnswered { token: first, result: Err("not any more".to_owned()) });
    assert!(world.log.iter().any(|line| line.contains("not any more")), "{:?}", world.log);
    world.tell_everything();
    assert!(world.watch.is_some());
}
