//! What becomes of tables whose owners go, and what owners say of them.

use super::*;

#[test]
fn routes_of_a_process_that_was_removed_go_at_once_and_those_of_one_that_died_do_not() {
    // Whoever hears of the removal after the end of the connection knows the session from before.
    for (ends, there) in [(vec![false], true), (vec![true], false), (vec![false, true], false)] {
        let mut world = World::new();
        world.tell_everything();
        for removed in ends {
            world.fea_hears(Input::Left { session: 0, removed });
        }
        assert_eq!(!world.there().is_empty(), there);
        // What somebody else has told since is not that one's any more.
        world.tell_everything();
        expect(&world, &[("10.1.0.0/16", 1)]);
    }
}

#[test]
fn the_metric_0_is_what_the_kernel_makes_of_it() {
    for (is_ipv6, net) in [(true, "2001:db8::/32"), (false, "10.0.0.0/8")] {
        let mut world = World::new();
        for _ in 0..2 {
            world.changes();
            let begin = fib::Begin { table: 254, is_ipv6, metric: Some(0), keep: None };
            world.call(0, begin).unwrap();
            let route = fib::Route { net: net.parse().unwrap(), set: 0, fresh: true };
            let change =
                fib::Change { is_ipv6, ways: vec![], routes: vec![route], ..change(&[], &[]) };
            world.call(0, change).unwrap();
            world.call(0, fib::End { table: 254, is_ipv6 }).unwrap();
        }
        assert_eq!(world.changes(), 0, "the kernel had it as it is");
        assert_eq!(world.there().len(), 1);
    }
}
