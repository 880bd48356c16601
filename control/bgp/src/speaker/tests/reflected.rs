//! What a route reflector passes on says who has announced it (RFC 4456 §8), also when that one has become another.

use super::*;
use crate::wire::{AddPath, Families, GracefulRestart};

/// The prefixes, and as whose, that the second peer is told, with the last word on each.
fn originators(out: &[Output], adds_path: bool) -> BTreeMap<Prefix, Option<Ipv4Addr>> {
    let mut context = Context::new(Neighbour::Internal);
    if adds_path {
        context.add_path_receive = Families::from_iter([Family::IPV4_UNICAST]);
    }
    let mut all = BTreeMap::new();
    for (kind, body) in messages(2, out) {
        if kind != MessageType::Update {
            continue;
        }
        let update = Update::new_checked(&body, &context).unwrap();
        let originator = update.judge(&context).attributes.rare().originator_id;
        let nets = update.reach().flat_map(|reach| reach.nlri.iter().collect::<Vec<_>>());
        all.extend(nets.map(|(_, prefix)| (prefix, originator)));
        assert_eq!(update.withdrawn().count(), 0);
    }
    all
}

fn internal(number: u8) -> Open {
    Open::new(65000, HOLD, address(number))
}

#[test]
fn who_is_back_as_another_router_is_passed_on_as_that() {
    for adds_path in [false, true] {
        let mut world = World::started("");
        world.born(false);
        let of = |number: u8, more: &str| {
            format!(
                "peer {} {{ as 65000; passive on; hold-time {HOLD}s; route-reflector-client on; {more} }}",
                address(number)
            )
        };
        let (first, second) = (of(1, ""), of(2, if adds_path { "add-path both;" } else { "" }));
        let text = format!("bgp {{ as 65000; router-id 192.0.2.1; {first} {second} }}");
        world.configure_as(config::read("t", &text).unwrap());
        let families = vec![(Family::IPV4_UNICAST, true)];
        let graceful = GracefulRestart { restarted: true, notification: true, time: 60, families };
        let graceful = Capability::GracefulRestart(graceful);
        let both = [Capability::AddPath(vec![(Family::IPV4_UNICAST, AddPath::Both)])];
        world.connect_as(1, internal(1), std::slice::from_ref(&graceful));
        let mut out = world.connect_as(2, internal(2), if adds_path { &both[..] } else { &[] });
        let nets: Vec<_> = (0..2000u32)
            .map(|n| ipnet::Ipv4Net::new((0x4000_0000 + (n << 8)).into(), 24).unwrap().prefix())
            .collect();
        let attributes = Attributes {
            next_hop: Some(NextHop::V4(address(1))),
            local_pref: Some(100),
            ..Attributes::default()
        };
        let context = Context::new(Neighbour::Internal);
        let encoder = UpdateEncoder::new(&attributes, Family::IPV4_UNICAST, &context).unwrap();
        let mut bytes = Vec::new();
        encoder.all(nets.iter().map(|net| (0, *net)), &mut bytes);
        out.extend(world.says(1, &bytes));
        let expected = |number| nets.iter().map(|net| (*net, Some(address(number)))).collect();
        assert_eq!(originators(&out, adds_path), expected(1), "{adds_path}");
        world.happens(Event::Closed { channel: ChannelId(1) });
        // As the same router it changes nothing, and as another one all of it, announced again or not.
        let mut out = world.connect_as(1, internal(1), std::slice::from_ref(&graceful));
        out.extend(world.says(1, &bytes));
        assert!(originators(&out, adds_path).is_empty());
        world.happens(Event::Closed { channel: ChannelId(1) });
        let out = world.connect_as(1, internal(9), &[graceful]);
        assert_eq!(originators(&out, adds_path), expected(9), "{adds_path}");
        let out = world.says(1, &bytes);
        assert!(originators(&out, adds_path).is_empty(), "it says what is known");
    }
}
