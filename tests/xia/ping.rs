//! Two hosts and a router: neighbours find each other, pings are answered, to the nanosecond.

use std::time::Duration;

use weft_runtime::LinkConfig;
use weft_xia_tools::{Ping, PingOptions, parse_address};

use crate::network::{Network, socket};

const HOST_A: &str = "hid-000000000000000000000000000000000000000a";
const HOST_B: &str = "hid-000000000000000000000000000000000000000b";
const ROUTER: &str = "hid-0000000000000000000000000000000000000001";
const DOMAIN: &str = "ad-00000000000000000000000000000000000000ad";

fn ping(from: &str, to: &str, count: u64) -> Ping {
    let options = PingOptions {
        to: parse_address(to).unwrap(),
        count: Some(count),
        interval: Duration::from_millis(100),
        timeout: Duration::from_secs(1),
        size: 56,
        hop_limit: 128,
        quiet: false,
    };
    Ping::new(&socket(from), options)
}

fn delay(milliseconds: u64) -> LinkConfig {
    LinkConfig { delay: Duration::from_millis(milliseconds), ..LinkConfig::default() }
}

/// a — b, each with HID and XDP.
fn two_hosts(seed: u64, link: LinkConfig) -> Network {
    let mut network = Network::new(seed);
    for (name, hid) in [("a", HOST_A), ("b", HOST_B)] {
        network.machine(name, &["eth0"]);
        network.stack(
            name,
            &format!("interface eth0; principal hid {{ local {hid}; }} principal xdp;"),
        );
    }
    network.link("a:eth0", "b:eth0", link);
    network
}

#[test]
fn neighbours_are_found_and_a_ping_is_answered() {
    let mut network = two_hosts(1, delay(5));
    network.run_until(20_000_000);
    let ping = network.start("a", ping("a", HOST_B, 3));
    assert_eq!(network.wait(ping, 5), 0);
    let printed = network.printed(ping);
    assert!(printed.contains("3 sent, 3 received, 0 % lost"), "{printed}");
    // Twice 5 ms of link, twice 10 µs of channel at each application's side.
    assert!(printed.contains("time=10.0"), "{printed}");
}

#[test]
fn the_same_seed_gives_the_same_packets_and_another_seed_others() {
    let hash = |seed| {
        let loss = LinkConfig { loss: 200_000_000, ..delay(5) };
        let mut network = two_hosts(seed, loss);
        network.run_until(1_000_000_000);
        let ping = network.start("a", ping("a", HOST_B, 20));
        network.wait(ping, 10);
        network.world.trace_hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

/// a — r — b, with b behind r and no direct neighbourhood.
fn through_a_router() -> Network {
    let mut network = Network::new(3);
    network.machine("a", &["eth0"]);
    network.machine("b", &["eth0"]);
    network.machine("r", &["eth0", "eth1"]);
    let host = |hid: &str| {
        format!(
            "interface eth0; address {DOMAIN} {hid}; principal hid {{ local {hid}; }} \
             principal ad {{ route {DOMAIN} via {ROUTER}; }} principal xdp;"
        )
    };
    network.stack("a", &host(HOST_A));
    network.stack("b", &host(HOST_B));
    network.stack(
        "r",
        &format!(
            "interface eth0 eth1; principal hid {{ local {ROUTER}; }} \
             principal ad {{ local {DOMAIN}; }} principal xdp;"
        ),
    );
    network.link("a:eth0", "r:eth0", delay(1));
    network.link("r:eth1", "b:eth0", delay(1));
    network.run_until(100_000_000);
    network
}

#[test]
fn a_domain_is_reached_by_a_redirect_to_its_gateway() {
    let mut network = through_a_router();
    let to = format!("{DOMAIN}-1:{HOST_B}-0");
    let ping = network.start("a", ping("a", &to, 2));
    assert_eq!(network.wait(ping, 5), 0, "{}", network.printed(ping));
    assert!(network.printed(ping).contains("time=4.0"));
}

#[test]
fn an_unreachable_host_is_said_to_be() {
    let mut network = through_a_router();
    let ping = network.start("a", ping("a", &HOST_B.replace('b', "c"), 2));
    assert_eq!(network.wait(ping, 5), 1);
    let lines = format!("{:?}", network.world.lines(ping));
    assert!(lines.contains("no edge of the last node leads anywhere from here"), "{lines}");
}
