//! Error messages: what a ping hears of requests that a router drops.

use std::time::Duration;

use weft_runtime::LinkConfig;
use weft_runtime::sim::{InterfaceConfig, ProcessId};
use weft_xia_tools::{Ask, Ping, PingOptions, parse_address};

use crate::network::{Network, socket};

const HOST_A: &str = "hid-000000000000000000000000000000000000000a";
const HOST_B: &str = "hid-000000000000000000000000000000000000000b";
const NOBODY: &str = "hid-000000000000000000000000000000000000000c";
const NEAR: &str = "hid-0000000000000000000000000000000000000001";
const FAR: &str = "hid-0000000000000000000000000000000000000002";
const DOMAIN_A: &str = "ad-000000000000000000000000000000000000000a";
const DOMAIN_B: &str = "ad-000000000000000000000000000000000000000b";
/// `weft error reporter`
const REPORTER: &str = "xdp-77656674206572726f72207265706f7274657200";

/// a — near — far — b; `far` says `errors`, and its link to b is narrow.
fn network(errors: &str) -> Network {
    let mut network = Network::new(3);
    network.machine("a", &["eth0"]);
    network.machine("b", &["eth0"]);
    network.machine("near", &["eth0", "eth1"]);
    let far = network.machine("far", &["eth0"]);
    let narrow = InterfaceConfig { mtu: 1200, ..InterfaceConfig::new("eth1") };
    network.world.add_interface(far, narrow).unwrap();
    let host = |own: &str, domain: &str, other: &str, router: &str| {
        format!(
            "interface eth0; address {domain} {own}; principal hid {{ local {own}; }} \
             principal ad {{ route {other} via {router}; }} principal xdp;"
        )
    };
    let router = |own: &str, domain: &str, other: &str, next: &str| {
        format!(
            "interface eth0 eth1; principal hid {{ local {own}; }} \
             principal ad {{ local {domain}; route {other} via {next}; }} principal xdp;"
        )
    };
    network.stack("a", &host(HOST_A, DOMAIN_A, DOMAIN_B, NEAR));
    network.stack("near", &router(NEAR, DOMAIN_A, DOMAIN_B, FAR));
    network.stack("far", &format!("{errors} {}", router(FAR, DOMAIN_B, DOMAIN_A, NEAR)));
    network.stack("b", &host(HOST_B, DOMAIN_B, DOMAIN_A, FAR));
    let delay = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
    for (one, other) in [("a:eth0", "near:eth0"), ("near:eth1", "far:eth0"), ("far:eth1", "b:eth0")]
    {
        network.link(one, other, delay.clone());
    }
    network.run_until(100_000_000);
    network
}

/// Pings a host behind the second router; returns the ping, which has ended without an answer.
fn ping(network: &mut Network, host: &str, count: u64, size: usize, hop_limit: u8) -> ProcessId {
    let options = PingOptions {
        to: parse_address(&format!("{DOMAIN_B}-1:{host}-0")).unwrap(),
        count: Some(count),
        interval: Duration::from_millis(100),
        timeout: Duration::from_secs(1),
        size,
        hop_limit,
        quiet: false,
    };
    let ping = network.start("a", Ping::new(&socket("a"), options));
    assert_eq!(network.wait(ping, 10), 1, "{}", network.printed(ping));
    ping
}

/// What a ping has heard.
fn heard(network: &Network, ping: ProcessId) -> Vec<String> {
    let lines = network.world.lines(ping).iter().map(|line| line.text.clone());
    lines.filter(|line| line.contains("not delivered")).collect()
}

fn count(network: &mut Network, node: &str, name: &'static str) -> u64 {
    let ask = Ask::new(&socket(node), "show counters", |value| vec![value["errors"].to_string()]);
    let ask = network.start(node, ask);
    assert_eq!(network.wait(ask, 1), 0);
    let counters: serde_json::Value = serde_json::from_str(&network.printed(ask)).unwrap();
    counters[name].as_u64().unwrap_or(0)
}

#[test]
fn a_ping_hears_why_its_requests_were_dropped() {
    let mut network = network("errors 100;");
    let by = format!("(says {FAR}-1:{REPORTER}-0)");
    for (host, size, hop_limit, why) in [
        (NOBODY, 56, 128, "no edge of the last node leads anywhere from here"),
        (HOST_B, 56, 1, "the hop limit was used up"),
        (
            HOST_B,
            1250,
            128,
            "the packet is longer than the MTU of the port it would leave by, which is 1200 bytes",
        ),
    ] {
        let ping = ping(&mut network, host, 2, size, hop_limit);
        let line = format!("a request was not delivered: {why} {by}");
        assert_eq!(heard(&network, ping), [line]);
    }
    assert_eq!(count(&mut network, "far", "sent"), 6);
    assert_eq!(count(&mut network, "a", "received"), 6);
    assert_eq!(count(&mut network, "a", "refused"), 0);
    assert_eq!(count(&mut network, "near", "sent"), 0);
}

#[test]
fn unless_it_is_said_nobody_is_told() {
    let mut network = network("");
    let ping = ping(&mut network, NOBODY, 2, 56, 128);
    assert_eq!(heard(&network, ping), Vec::<String>::new());
    assert_eq!(count(&mut network, "a", "received"), 0);
}

#[test]
fn messages_are_no_more_than_is_said() {
    let mut network = network("errors 5;");
    let ping = ping(&mut network, NOBODY, 20, 56, 128);
    assert_eq!(heard(&network, ping).len(), 1, "a ping does not say the same again");
    let (sent, over) =
        (count(&mut network, "far", "sent"), count(&mut network, "far", "over-limit"));
    // Ten requests a second, for two seconds.
    assert_eq!((sent, over), (10, 10));
}
