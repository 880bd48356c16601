//! Stale routes go in the background, and in which order (Handley et al., XORP, §5.1.2).

use super::*;

#[test]
fn what_was_stale_when_a_sweep_began_goes_and_nothing_else() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (origin, decide) = (table.add_origin(), Lowest { barred: None });
    for number in 0..12 {
        table.set(net(number), origin, 0, 1, &decide);
    }
    table.renew(origin);
    // Half of it is told again before all of it is stale once more.
    for number in 0..6 {
        table.set(net(number), origin, 0, 1, &decide);
    }
    table.sweep(origin);
    table.work(3, &decide, |_, _| {});
    table.renew(origin);
    table.set(net(0), origin, 0, 1, &decide);
    while table.has_work() {
        table.work(3, &decide, |_, _| {});
    }
    assert_eq!(table.len(), 6);
    table.sweep(origin);
    while table.has_work() {
        table.work(3, &decide, |_, _| {});
    }
    assert_eq!(table.len(), 1);
}

/// Until the background work is done: of what a reader hears, in order.
fn heard_while_working(table: &mut RouteTable<Ipv4Net, u32>, reader: ReaderId) -> Vec<u32> {
    let (mut heard, decide) = (Vec::new(), Lowest { barred: None });
    while table.has_work() {
        table.work(1, &decide, |_, _| {});
        heard.extend(std::iter::from_fn(|| table.next(reader)));
    }
    heard
}

#[test]
fn what_can_go_another_way_does_so_first_and_neighbours_go_one_long_after_the_other() {
    // What a root of 2048 children is for.
    const COUNT: u32 = 1000;
    let scattered = |number: u32| {
        Ipv4Net::new_assert((number.wrapping_mul(0x9e37_79b1) & 0xffff_ff00).into(), 24)
    };
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (one, other, decide) = (table.add_origin(), table.add_origin(), Lowest { barred: None });
    for number in 0..COUNT {
        table.set(scattered(number), one, 0, 1, &decide);
    }
    let others: Vec<_> = (5..COUNT).step_by(100).collect();
    for number in &others {
        table.set(scattered(*number), other, 0, 2, &decide);
    }
    let reader = table.open_reader(Hears::Best);
    while table.next(reader).is_some() {}
    table.renew(one);
    table.sweep(one);
    let heard = heard_while_working(&mut table, reader);
    assert_eq!(heard[..others.len()], others);
    assert_eq!(heard.len(), COUNT as usize);
    let gone = &heard[others.len()..];
    // Of two neighbours one has gone when the first half has, of four all but one when three quarters have, and so on.
    let child = |number: &u32| u32::from(scattered(*number).addr()) >> 21;
    let bits = |number: &u32| [0, 1, 2].map(|bit| !child(number) >> bit & 1);
    assert!(gone.is_sorted_by_key(bits));
    // What goes last does not go in the order in which it came.
    let last: Vec<_> = gone.iter().filter(|number| bits(number) == [1, 1, 1]).collect();
    let far = last.windows(2).filter(|pair| pair[0].abs_diff(*pair[1]) >= 16).count();
    assert!(last.len() > 50 && far + 1 == last.len());
    // And the sweep does what it says that it will.
    let all: Vec<_> = (0..COUNT).map(scattered).collect();
    let order = super::sweep_order(&all).map(|place| place as u32);
    assert!(order.filter(|number| !others.contains(number)).eq(gone.iter().copied()));
    // What comes back afterwards stands where it stood.
    table.renew(other);
    table.sweep(other);
    heard_while_working(&mut table, reader);
    for number in 0..COUNT {
        table.set(scattered(number), one, 0, 1, &decide);
        assert_eq!(table.index().get(&scattered(number)), Some(number));
    }
}

#[test]
fn a_few_routes_of_a_large_table_go_in_the_order_in_which_they_came() {
    let mut table = RouteTable::<Ipv4Net, u32>::new();
    let (one, other, decide) = (table.add_origin(), table.add_origin(), Lowest { barred: None });
    for number in 0..1000 {
        table.set(far(number), if number % 10 == 3 { one } else { other }, 0, 1, &decide);
    }
    let reader = table.open_reader(Hears::Best);
    while table.next(reader).is_some() {}
    table.renew(one);
    table.sweep(one);
    let gone = heard_while_working(&mut table, reader);
    assert_eq!(gone, (3..1000).step_by(10).collect::<Vec<_>>());
}

#[test]
fn a_sweep_takes_all_wherever_the_walk_is_when_it_begins() {
    let all = [300_u32, 700]
        .map(|count| (0..2 * count as usize).step_by(37).map(move |steps| (count, steps)));
    for (count, steps) in all.into_iter().flatten() {
        let mut table = RouteTable::<Ipv4Net, u32>::new();
        let (one, other, decide) =
            (table.add_origin(), table.add_origin(), Lowest { barred: None });
        for number in 0..count {
            table.set(far(number), one, 0, 1, &decide);
            table.set(far(number * 7 % (count + 40)), other, 0, 2, &decide);
        }
        table.renew(one);
        table.sweep(one);
        for _ in 0..steps {
            table.work(1, &decide, |_, _| {});
        }
        table.renew(other);
        table.sweep(other);
        while table.has_work() {
            table.work(1, &decide, |_, _| {});
        }
        assert_eq!((table.len(), table.routes_of(one), table.routes_of(other)), (0, 0, 0));
    }
}
