//! Filters that hold cycles: the hop limit alone would let every round make more copies.

use weft_runtime::LinkConfig;
use weft_runtime::sim::{NodeCount, NodeId, Spawn};
use weft_xia_tools::{Cat, CatOptions};
use weft_xia_zf::{DEFAULT_LINK_BITS, link_identifier, union};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, XidType};

use crate::network::{Network, socket};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn hid(name: &str) -> String {
    format!("hid-{}", name.repeat(40))
}

/// A triangle whose nodes have an entry for the link to each of the others.
fn triangle() -> (Network, Vec<NodeId>) {
    let mut network = Network::new(1);
    let nodes: Vec<_> = NAMES.iter().map(|name| network.machine(name, &["eth0", "eth1"])).collect();
    for name in NAMES {
        let others = NAMES.iter().filter(|other| **other != name);
        let routes: String =
            others.map(|other| format!("route link {name}-{other} via {};", hid(other))).collect();
        let own = hid(name);
        network.stack(
            name,
            &format!(
                "interface eth0 eth1; principal hid {{ local {own}; }} principal xdp;
                 principal zf {{ {routes} }}"
            ),
        );
    }
    for (one, other) in [("a:eth0", "b:eth1"), ("b:eth0", "c:eth1"), ("c:eth0", "a:eth1")] {
        network.link(one, other, LinkConfig::default());
    }
    // Neighbour discovery has said what it says at the beginning.
    network.run_until(100_000_000);
    (network, nodes)
}

#[test]
fn a_filter_with_all_links_of_a_triangle_does_not_multiply_packets() {
    let (mut network, nodes) = triangle();
    let names =
        NAMES.iter().flat_map(|one| NAMES.iter().map(move |other| format!("{one}-{other}")));
    let links: Vec<_> = names.map(|name| link_identifier(&name, DEFAULT_LINK_BITS)).collect();
    let to = Address::simple(union(&links)).unwrap();
    let before = network.world.total(NodeCount::PortSent);
    let options = CatOptions {
        bind: BindRequest::Any(XidType::XDP),
        to: Some(to),
        size: 1000,
        linger: std::time::Duration::from_millis(100),
        count: None,
    };
    let cat = Spawn::new("cat", Box::new(Cat::new(&socket("a"), options)))
        .with_input(b"round and round".to_vec());
    let cat = network.world.spawn(nodes[0], cat);
    assert_eq!(network.wait(cat, 5), 0);
    // Two from each node. What comes back to one that has made its copies ends there.
    assert_eq!(network.world.total(NodeCount::PortSent) - before, 6);
}
