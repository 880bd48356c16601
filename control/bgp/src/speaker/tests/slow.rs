//! Peers that do not keep up.

use super::*;

fn net(number: u8) -> Prefix {
    ipnet::Ipv4Net::new([203, 0, number, 0].into(), 24).unwrap().prefix()
}

#[test]
fn who_can_take_more_again_does_not_wait_for_another_one_who_cannot() {
    let mut world = World::started("");
    world.born(false);
    // At the same address, so that they are told the same.
    for number in [1, 2] {
        let open = Open::new(65000 + u32::from(number), HOLD, address(number));
        world.connect_to([10, 0, 0, 1].into(), number, open, &[]);
    }
    assert_eq!(world.bgp.fanout.count(), (1, 0));
    for number in [1, 2] {
        world.happens(Event::Congested { channel: ChannelId(number) });
    }
    assert_eq!(world.bgp.fanout.count(), (2, 2));
    world.happens(Event::Drained { channel: ChannelId(1) });
    let out = world.announces(2, &net(1));
    assert_eq!(sent(1, &out), [MessageType::Update]);
    let out = world.announces(1, &net(2));
    assert_eq!(sent(2, &out), [], "it cannot take more");
    let out = world.happens(Event::Drained { channel: ChannelId(2) });
    assert_eq!(sent(2, &out), [MessageType::Update]);
    assert_eq!(world.bgp.fanout.count(), (1, 0), "they are told the same again");
}
