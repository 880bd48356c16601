//! `weft xia perf` between two hosts whose link loses, doubles and reorders: what it finds is what the link did.

use std::time::Duration;

use serde_json::Value;
use weft_base::Random;
use weft_runtime::LinkConfig;
use weft_runtime::sim::ProcessId;
use weft_xia_tools::parse_address;
use weft_xia_tools::perf::{
    PERF_SINK, Pace, PerfClient, PerfOptions, PerfServer, PerfServerOptions,
};
use weft_xip::channel::BindRequest;

use crate::network::{Network, socket};

const HOST_A: &str = "hid-000000000000000000000000000000000000000a";
const HOST_B: &str = "hid-000000000000000000000000000000000000000b";

/// a — b, whose link is the same both ways.
fn two_hosts(link: LinkConfig) -> Network {
    let mut network = Network::new(1);
    for (name, hid) in [("a", HOST_A), ("b", HOST_B)] {
        network.machine(name, &["eth0"]);
        network.stack(
            name,
            &format!("interface eth0; principal hid {{ local {hid}; }} principal xdp;"),
        );
    }
    network.link("a:eth0", "b:eth0", link);
    // Neighbours are found.
    network.run_until(10_000_000_000);
    network
}

fn options() -> PerfOptions {
    PerfOptions {
        to: parse_address(HOST_B).unwrap(),
        pace: Pace::Datagrams(1000),
        count: Some(10_000),
        duration: None,
        size: 200,
        echo: false,
        hop_limit: 128,
        timeout: Duration::from_secs(1),
        json: true,
    }
}

/// Runs a client on a against a server on b; returns what the client found, and the server.
fn measured(network: &mut Network, options: PerfOptions) -> (Value, ProcessId) {
    let serve =
        PerfServerOptions { bind: BindRequest::Sink(PERF_SINK), count: Some(1), json: true };
    let server = network.start("b", PerfServer::new(&socket("b"), serve));
    let random = Random::from_seed(5);
    let client = network.start("a", PerfClient::new(&socket("a"), options, random));
    assert_eq!(network.wait(client, 60), 0, "{:?}", network.world.lines(client));
    assert_eq!(network.wait(server, 60), 0);
    (last_line(network, client), server)
}

/// What a process has printed last.
fn last_line(network: &Network, process: ProcessId) -> Value {
    let printed = network.printed(process);
    serde_json::from_str(printed.lines().last().unwrap()).unwrap()
}

/// Whether a ratio is near another one, as far as 10,000 datagrams tell.
#[track_caller]
fn expect_near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 0.015, "{found} instead of {expected}");
}

#[test]
fn nothing_happens_on_a_perfect_link() {
    let mut network =
        two_hosts(LinkConfig { delay: Duration::from_millis(5), ..Default::default() });
    let (found, server) = measured(&mut network, PerfOptions { echo: true, ..options() });
    for side in ["arrived", "came_back"] {
        assert_eq!(found[side]["received"], 10_000, "{found}");
        for none in ["lost", "duplicates", "reordered", "too_late"] {
            assert_eq!(found[side][none], 0, "{side} {none}");
        }
        // 200 bytes of payload, a thousand times a second.
        assert_eq!(found[side]["datagrams_per_second"].as_f64().unwrap().round(), 1000.0);
        assert_eq!(found[side]["bits_per_second"].as_f64().unwrap().round(), 1_600_000.0);
    }
    // Twice 5 ms of link, and what channels take.
    let times = &found["round_trip_ns"];
    for part in ["min", "p50", "p99.9", "max"] {
        let nanos = times[part].as_u64().unwrap();
        assert!((10_000_000..10_200_000).contains(&nanos), "{part}: {nanos}");
    }
    let served = last_line(&network, server);
    assert_eq!((&served["received"], &served["echoes"]), (&10_000.into(), &10_000.into()));
}

#[test]
fn losses_are_found_on_one_way_and_on_both() {
    // One in ten each way.
    let mut network = two_hosts(LinkConfig { loss: 100_000_000, ..Default::default() });
    let (found, _) = measured(&mut network, PerfOptions { echo: true, ..options() });
    expect_near(&found["arrived"]["lost_ratio"], 0.1);
    expect_near(&found["came_back"]["lost_ratio"], 0.19);
    assert_eq!(found["arrived"]["duplicates"], 0);
    assert_eq!(found["arrived"]["reordered"], 0);
}

#[test]
fn duplicates_are_found_and_are_not_taken_for_anything_else() {
    let mut network = two_hosts(LinkConfig { duplicate: 100_000_000, ..Default::default() });
    let (found, _) = measured(&mut network, options());
    expect_near(&(found["arrived"]["duplicates"].as_f64().unwrap() / 10_000.0).into(), 0.1);
    assert_eq!((&found["arrived"]["lost"], &found["arrived"]["reordered"]), (&0.into(), &0.into()));
}

#[test]
fn reordering_is_found_as_rfc_4737_defines_it() {
    // A datagram in ten overtakes the five that are on the wire, of which those are reordered that no
    // overtaker was among: 1 - 0.9^5 of all that do not overtake.
    let link = LinkConfig {
        delay: Duration::from_micros(5500),
        reorder: 100_000_000,
        ..Default::default()
    };
    let mut network = two_hosts(link);
    let (found, _) = measured(&mut network, options());
    assert_eq!(
        (&found["arrived"]["lost"], &found["arrived"]["duplicates"]),
        (&0.into(), &0.into())
    );
    expect_near(&found["arrived"]["reordered_ratio"], 0.9 * (1.0 - 0.9_f64.powi(5)));
}

/// The link carries half of what is sent: the rest waits, longer and longer, and latencies say so from the
/// time at which datagrams should have left.
#[test]
fn a_link_that_is_too_slow_shows_in_throughput_and_latency() {
    // 200 bytes of payload have 14 + 8 + 4 * 28 bytes in front: 334 bytes, 500 times a second.
    let rate = std::num::NonZeroU64::new(334 * 8 * 500);
    let link = LinkConfig { rate, queue_packets: 100, ..Default::default() };
    let mut network = two_hosts(link);
    let (found, _) = measured(&mut network, PerfOptions { echo: true, ..options() });
    let arrived = &found["arrived"];
    assert_eq!(arrived["datagrams_per_second"].as_f64().unwrap().round(), 500.0, "{found}");
    expect_near(&arrived["lost_ratio"], 0.49);
    // A queue of 100 packets at 500 a second.
    let median = found["round_trip_ns"]["p50"].as_u64().unwrap();
    assert!((195_000_000..210_000_000).contains(&median), "{median}");
}

#[test]
fn where_nobody_measures_it_is_said() {
    let mut network = two_hosts(LinkConfig::default());
    let random = Random::from_seed(5);
    let client = network.start("a", PerfClient::new(&socket("a"), options(), random));
    assert_eq!(network.wait(client, 10), 1);
    let lines = format!("{:?}", network.world.lines(client));
    assert!(lines.contains("start `weft xia perf server` there"), "{lines}");
}

#[test]
fn as_fast_as_the_node_takes_them() {
    let mut network = two_hosts(LinkConfig::default());
    let unlimited = PerfOptions { pace: Pace::Unlimited, ..options() };
    let (found, _) = measured(&mut network, unlimited);
    assert_eq!((&found["sent"], &found["arrived"]["lost"]), (&10_000.into(), &0.into()));
}
