//! Changing a node while packets flow: principals come and go, and the empty set is valid.

use std::time::Duration;

use weft_runtime::LinkConfig;
use weft_runtime::sim::ProcessId;
use weft_xia_tools::{Ask, Ping, PingOptions, parse_address};

use crate::network::{Network, socket};

const HOST_A: &str = "hid-000000000000000000000000000000000000000a";
const HOST_B: &str = "hid-000000000000000000000000000000000000000b";
const DOMAIN: &str = "ad-00000000000000000000000000000000000000ad";

/// a — b, where a reaches the domain of b by a redirect.
fn network() -> Network {
    let mut network = Network::new(1);
    let host = |own: &str, more: &str| {
        format!("interface eth0; principal hid {{ local {own}; }} principal xdp; {more}")
    };
    let route = format!("principal ad {{ route {DOMAIN} via {HOST_B}; }}");
    let local = format!("principal ad {{ local {DOMAIN}; }}");
    network.machine("a", &["eth0"]);
    network.machine("b", &["eth0"]);
    network.stack("a", &host(HOST_A, &route));
    network.stack("b", &host(HOST_B, &local));
    network.link("a:eth0", "b:eth0", LinkConfig::default());
    network.run_until(10_000_000);
    network
}

/// Gives a command to the node of `name` and waits for the answer.
fn command(network: &mut Network, name: &str, text: &str) -> Result<(), String> {
    let ask = network.start(name, Ask::new(&socket(name), text, |value| vec![value.to_string()]));
    match network.wait(ask, 5) {
        0 => Ok(()),
        _ => Err(network.printed(ask)),
    }
}

/// What the node of `name` shows.
fn shown(network: &mut Network, name: &str, what: &str) -> serde_json::Value {
    let ask = Ask::new(&socket(name), what, |value| vec![value.to_string()]);
    let ask = network.start(name, ask);
    assert_eq!(network.wait(ask, 5), 0);
    serde_json::from_str(&network.printed(ask)).unwrap()
}

fn ping_through_the_domain(network: &mut Network) -> ProcessId {
    let options = PingOptions {
        to: parse_address(&format!("{DOMAIN}-1:{HOST_B}-0")).unwrap(),
        count: Some(40),
        interval: Duration::from_millis(10),
        timeout: Duration::from_secs(1),
        size: 56,
        hop_limit: 128,
        quiet: true,
    };
    network.start("a", Ping::new(&socket("a"), options))
}

/// How many of the 40 requests were answered.
fn answered(network: &mut Network, ping: ProcessId) -> u64 {
    network.wait(ping, 10);
    let printed = network.printed(ping);
    let line = printed.lines().find(|line| line.contains(" received, ")).unwrap().to_owned();
    line.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_principal_is_removed_and_added_while_packets_flow() {
    let mut network = network();
    let ping = ping_through_the_domain(&mut network);
    network.run_until(110_000_000);
    command(&mut network, "a", "principal remove ad").unwrap();
    network.run_until(210_000_000);
    command(&mut network, "a", "principal add ad").unwrap();
    command(&mut network, "a", &format!("set ad route {DOMAIN} via {HOST_B}")).unwrap();
    let answered = answered(&mut network, ping);
    assert!((25..=35).contains(&answered), "{answered} of 40 answered");
}

#[test]
fn sockets_are_found_again_when_their_principal_returns() {
    let mut network = network();
    let ping = ping_through_the_domain(&mut network);
    network.run_until(110_000_000);
    command(&mut network, "a", "principal remove xdp").unwrap();
    command(&mut network, "a", "principal add xdp").unwrap();
    let answered = answered(&mut network, ping);
    assert!(answered >= 38, "{answered} of 40 answered");
}

#[test]
fn an_interface_is_removed_and_added_while_the_node_runs() {
    let mut network = network();
    command(&mut network, "a", "interface remove eth0").unwrap();
    let error = command(&mut network, "a", "interface remove eth0").unwrap_err();
    assert!(error.contains("no interface eth0; it has: none"), "{error}");
    let ping = ping_through_the_domain(&mut network);
    assert_eq!(answered(&mut network, ping), 0);
    command(&mut network, "a", "interface add eth0").unwrap();
    let error = command(&mut network, "a", "interface add eth0").unwrap_err();
    assert!(error.contains("has the interface eth0 already"), "{error}");
    // Its neighbour, which never noticed, announces itself every five seconds, now or then.
    network.run_until(20_000_000_000);
    let ping = ping_through_the_domain(&mut network);
    assert_eq!(answered(&mut network, ping), 40);
}

#[test]
fn what_ports_have_moved_is_shown() {
    let mut network = network();
    let ping = ping_through_the_domain(&mut network);
    assert_eq!(answered(&mut network, ping), 40);
    let shown = shown(&mut network, "a", "show ports");
    let [nwp, xip] = &shown["ports"].as_array().unwrap()[..] else { panic!("{shown}") };
    let (nwp, xip) = if nwp["of"] == "hid" { (nwp, xip) } else { (xip, nwp) };
    assert_eq!((&nwp["of"], &xip["of"]), (&"hid".into(), &"eth0".into()));
    // 14 octets of Ethernet, the header with four rows each way, 56 of payload.
    let bytes = 40 * (14 + 8 + 5 * 28 + 56);
    assert_eq!(
        (&xip["sent_packets"], &xip["received_packets"]),
        (&40.into(), &40.into()),
        "{shown}"
    );
    assert_eq!((&xip["sent_bytes"], &xip["drops"]), (&bytes.into(), &serde_json::json!({})));
}

#[test]
fn the_routing_cache_is_shown_and_limited_while_packets_flow() {
    let mut network = network();
    let ping = ping_through_the_domain(&mut network);
    assert_eq!(answered(&mut network, ping), 40);
    let dst = shown(&mut network, "a", "show dst");
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert!(number(&dst["entries"]) > 0 && number(&dst["bytes"]) > 0, "{dst}");
    assert!(number(&dst["spare"]) < number(&dst["bytes"]), "{dst}");
    assert_eq!(number(&dst["limit"]), 64 << 20);
    let anchors = shown(&mut network, "a", "show anchors");
    let of = |xid: &str| {
        let mut all = anchors["shown"].as_array().unwrap().iter();
        all.find(|anchor| anchor["xid"] == xid).unwrap_or_else(|| panic!("{xid} {anchors}"))
    };
    let domain = of(DOMAIN);
    assert_eq!((&domain["answer"], &domain["detail"]), (&"redirect".into(), &HOST_B.into()));
    assert_eq!(domain["decisions"], 1, "that of the packets which this node sends: {anchors}");
    assert_eq!(of(HOST_B)["answer"], "forward");
    assert_eq!(of(HOST_A)["answer"], "local");

    // Less than a decision takes, and nothing at all: packets go on.
    for (limit, bytes) in [("100B", 100), ("off", 0)] {
        command(&mut network, "a", &format!("dst limit {limit}")).unwrap();
        let ping = ping_through_the_domain(&mut network);
        assert_eq!(answered(&mut network, ping), 40);
        let dst = shown(&mut network, "a", "show dst");
        assert_eq!((number(&dst["limit"]), number(&dst["entries"])), (bytes, 0), "{dst}");
        assert_eq!((number(&dst["bytes"]), number(&dst["spare"])), (0, 0), "{dst}");
        assert_eq!(shown(&mut network, "a", "show anchors")["anchors"], 0);
    }
    let error = command(&mut network, "a", "dst limit many").unwrap_err();
    assert!(error.contains("`many`"), "{error}");
    command(&mut network, "a", "dst limit 1MiB").unwrap();
    let ping = ping_through_the_domain(&mut network);
    assert_eq!(answered(&mut network, ping), 40);
    let dst = shown(&mut network, "a", "show dst");
    assert!(number(&dst["entries"]) > 0 && number(&dst["limit"]) == 1 << 20, "{dst}");
}

#[test]
fn routes_and_neighbours_of_all_principals_are_shown_together() {
    let mut network = network();
    let sink = "xdp-0000000000000000000000000000000000000001";
    command(&mut network, "a", &format!("set xdp route {sink} via {DOMAIN}")).unwrap();
    let mut shown = |what: &str| shown(&mut network, "a", what);
    let route = |principal: &str, xid: &str, via: &str| serde_json::json!({ "principal": principal, "origin": "stated", "xid": xid, "via": via });
    let routes = [route("ad", DOMAIN, HOST_B), route("xdp", sink, DOMAIN)];
    assert_eq!(shown("show routes"), serde_json::json!({ "routes": routes }));
    let neighbours = shown("show neighbours");
    let [one] = &neighbours["neighbours"].as_array().unwrap()[..] else { panic!("{neighbours}") };
    assert_eq!((&one["principal"], &one["xid"]), (&"hid".into(), &HOST_B.into()), "{one}");
    assert_eq!((&one["state"], &one["interface"]), (&"reachable".into(), &"eth0".into()), "{one}");
    assert!(one["age_ms"].as_u64() < Some(1000) && one.get("heard_ns").is_none(), "{one}");
}

#[test]
fn a_node_without_principals_runs_and_counts_what_it_cannot_route() {
    let mut network = Network::new(1);
    network.machine("a", &["eth0"]);
    network.stack("a", "interface eth0;");
    network.run_until(1_000_000);
    let error = command(&mut network, "a", "principal remove hid").unwrap_err();
    assert!(error.contains("it has: none"), "{error}");
    command(&mut network, "a", "principal add hid").unwrap();
    command(&mut network, "a", &format!("set hid local {HOST_A}")).unwrap();
}

#[test]
fn mistakes_in_commands_are_explained_and_change_nothing() {
    let mut network = network();
    for (text, answer) in [
        ("set ad route nonsense via nonsense", "ad-<40 hex digits>"),
        ("principal add nonsense", "known are"),
        ("principal add ad", "is there already"),
        ("set nonsense local x", "it has: ad, hid, xdp"),
        ("nonsense", "unknown command"),
        ("interface add a/b", "`a/b` is no name of an interface"),
    ] {
        let error = command(&mut network, "a", text).unwrap_err();
        assert!(error.contains(answer), "`{text}` was answered: {error}");
    }
}
