//! Routes whose packets are dropped (RFC 7999).

use ipnet::{IpNet, Ipv4Net};

use super::*;
use crate::numbers::community::{BLACKHOLE, NO_ADVERTISE};

/// A host that is attacked.
fn host() -> Ipv4Net {
    Ipv4Net::new([203, 0, 113, 7].into(), 32).unwrap()
}

/// Two peers, of which the first is as this says, and a next hop that is not reached.
fn world(words: &str) -> (World, Ipv4Addr) {
    let nowhere = Ipv4Addr::new(198, 51, 100, 10);
    let mut world = World::started("");
    world.rib.unreached.insert(nowhere.into());
    world.born(false);
    world.configure([words, ""]);
    world.connect(1);
    world.connect(2);
    (world, nowhere)
}

fn path(world: &World) -> serde_json::Value {
    let request = interface::Show { prefix: Some(host().to_string()), ..show("routes") };
    world.bgp.show(world.now, &request).unwrap()[0]["paths"][0].clone()
}

#[test]
fn packets_are_dropped_where_that_was_agreed_on_and_others_do_not_hear_of_it() {
    let (mut world, nowhere) = world("blackhole on;");
    let out = world.announces_with(1, &host().prefix(), nowhere, &[BLACKHOLE]);
    let net = IpNet::from(host());
    assert!(world.rib.routes.contains(&net) && world.rib.blackholes.contains(&net));
    assert_eq!(told(2, &out), None);
    let shown = path(&world);
    assert_eq!((&shown["blackhole"], &shown["unused"]), (&true.into(), &().into()));
    assert_eq!(shown["communities"], serde_json::json!(["blackhole", "no-export"]));
    // Without the community it is a route like others.
    world.announces(1, &host().prefix());
    assert!(world.rib.routes.contains(&net) && world.rib.blackholes.is_empty());
    let out = world.announces_with(1, &host().prefix(), nowhere, &[BLACKHOLE, NO_ADVERTISE]);
    assert_eq!(path(&world)["communities"], serde_json::json!(["blackhole", "no-advertise"]));
    assert!(world.rib.blackholes.contains(&net));
    assert_eq!(told(2, &out), None);
}

/// RFC 7999 §3.3: nobody is to be able to have others' packets dropped without that.
#[test]
fn without_that_it_is_a_community_like_others() {
    let (mut world, nowhere) = world("");
    let net = IpNet::from(host());
    world.announces_with(1, &host().prefix(), nowhere, &[BLACKHOLE]);
    assert!(!world.rib.routes.contains(&net));
    let out = world.announces_with(1, &host().prefix(), address(1), &[BLACKHOLE]);
    assert!(world.rib.routes.contains(&net) && world.rib.blackholes.is_empty());
    assert_eq!(*told(2, &out).unwrap().communities, [BLACKHOLE]);
}

#[test]
fn a_policy_says_whose_packets_are_dropped() {
    let (mut world, _) = world("");
    let text = format!(
        "policy {{
            policy-statement hosts {{
                term asked {{
                    from {{ prefix 203.0.113.0/24 orlonger; community has 65000:666; }}
                    then {{ community add blackhole; accept; }}
                }}
                then {{ community remove blackhole; accept; }}
            }}
        }}
        bgp {{ as 65000; router-id 192.0.2.1; multipath 4;
            peer 10.0.1.2 {{ as 65001; passive on; hold-time {HOLD}s; import hosts; export all; blackhole on; }}
            peer 10.0.2.2 {{ as 65002; passive on; hold-time {HOLD}s; import all; export all; }}
        }}"
    );
    world.configure_as(config::read("t", &text).unwrap());
    world.connect(1);
    world.announces_with(1, &host().prefix(), address(1), &[65000 << 16 | 666]);
    assert!(world.rib.blackholes.contains(&IpNet::from(host())));
    assert!(path(&world)["communities"].to_string().contains("no-export"));
    let other = Ipv4Net::new([198, 18, 0, 1].into(), 32).unwrap();
    let out = world.announces_with(1, &other.prefix(), address(1), &[BLACKHOLE, 7]);
    assert!(!world.rib.blackholes.contains(&IpNet::from(other)));
    assert_eq!(*told(2, &out).unwrap().communities, [7]);
}
