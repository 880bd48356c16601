//! Routers whose interfaces get another MTU or MAC address while they carry packets.

use serde_json::Value;

use crate::engine::{run, run_with};
use crate::support::is_root;

const PING: &str = "weft xia ping @site-b-1:@b-0";

/// Of a ping, how many requests were answered.
fn received(output: &str) -> u64 {
    let line = output.lines().find(|line| line.contains(" received, "));
    let count = line.and_then(|line| line.split(", ").nth(1)?.split(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no line about what was received: {output}"))
}

#[test]
fn a_packet_is_too_big_for_a_link_as_it_is_now() {
    if !is_root() {
        return;
    }
    // The header of a ping takes 176 bytes here.
    let with = |engine: &str| {
        format!(
            r#"
            exec r1 "weft xia engine {engine}";
            until r1 "weft xia engine" says "{}";
            exec r1 "ip link set dev r2 mtu 1400";
            until r1 "weft xia show --json" says ": 1400";
            exec r1 "weft show programs";
            exec a "{PING} --size 1250 --count 5 --interval 0.01 --timeout 1" as long-{engine} status 1;
            expect-output long-{engine} "longer than the MTU of the port it would leave by, which is 1400 bytes";
            exec r1 "weft xia show counters --json" as counters-{engine};
            exec r1 "weft configure -c 'set interfaces interface r2 mtu 1500' -c commit";
            until r1 "weft xia show --json" lacks ": 1400";
            exec r1 "weft show programs";
            exec a "{PING} --size 1250 --count 20 --interval 0.01 --timeout 20 --quiet" as raised-{engine};
            expect-output raised-{engine} "20 received";
            exec r1 "weft configure -c 'delete interfaces' -c commit";
            "#,
            if engine == "auto" { "r2 generic" } else { "r2 portable" }
        )
    };
    let steps = with("portable") + &with("auto");
    let log = run_with("link-mtu", "engine auto; errors 1000;", &steps, &[]);
    for (engine, count) in [("portable", 5), ("auto", 10)] {
        let counters: Value =
            serde_json::from_str(&log(&format!("counters-{engine}.stdout"))).unwrap();
        assert_eq!(counters["drops"]["too-big"], count, "{engine}: {counters}");
    }
}

#[test]
fn a_router_with_another_address_is_reached_there_within_a_second() {
    if !is_root() {
        return;
    }
    let with = |engine: &str, before: &str, now: &str| {
        format!(
            r#"
            exec r2 "weft xia engine {engine}";
            until r2 "weft xia engine" says "{}";
            run a "{PING} --count 300 --interval 0.01 --timeout 1" as moving-{engine};
            wait-output moving-{engine} "from";
            exec r2 "ip link set dev r1 address {now}";
            until r1 "weft xia neighbour --json" says "{now}" timeout 5s;
            until r1 "weft xia neighbour --json" lacks "{before}" timeout 5s;
            wait-exit moving-{engine};
            exec r2 "weft xia engine --json" as before-{engine};
            exec a "{PING} --count 20 --interval 0.01 --timeout 20 --quiet" as there-{engine};
            expect-output there-{engine} "20 received";
            exec r2 "weft xia engine --json" as after-{engine};
            "#,
            if engine == "auto" { "r1 generic" } else { "r1 portable" }
        )
    };
    let steps = with("portable", "02:00:00:00:00:04", "02:00:00:00:00:94")
        + &with("auto", "02:00:00:00:00:94", "02:00:00:00:00:a4");
    let log = run("link-address", &steps, &[]);
    for engine in ["portable", "auto"] {
        let count = received(&log(&format!("moving-{engine}.stdout")));
        assert!(count >= 200, "{engine}: {count} of 300 in three seconds");
    }
    let forwarded = |name: &str| -> u64 {
        let shown: Value = serde_json::from_str(&log(&format!("{name}.stdout"))).unwrap();
        shown["counters"]["forwarded"].as_u64().unwrap()
    };
    let kernel = forwarded("after-auto") - forwarded("before-auto");
    assert!(kernel >= 30, "{kernel} of 40 packets there and back");
}

#[test]
fn ports_of_af_xdp_follow_a_link_that_takes_longer_packets_or_has_another_address() {
    if !is_root() {
        return;
    }
    let all = [("a", "eth0"), ("r1", "a"), ("r1", "r2"), ("r2", "r1"), ("r2", "b"), ("b", "eth0")];
    let raise =
        all.map(|(node, name)| format!("exec {node} \"ip link set dev {name} mtu 2000\";\n"));
    let until = |size: u32| {
        format!(
            r#"until a "{PING} --size {size} --count 5 --interval 0.01 --timeout 1" says "5 received";"#
        )
    };
    let steps = format!(
        r#"
        {}
        {}
        exec r2 "ip link set dev r1 address 02:00:00:00:00:94";
        until r1 "weft xia neighbour --json" says "02:00:00:00:00:94" timeout 5s;
        {}
        exec r1 "weft xia engine --json" as shown;
        "#,
        raise.concat(),
        until(1700),
        until(1700),
    );
    let log = run_with("link-af-xdp", "packet-io xdp;", &steps, &[]);
    let shown: Value = serde_json::from_str(&log("shown.stdout")).unwrap();
    for interface in shown["interfaces"].as_array().unwrap() {
        assert_eq!(interface["packet-io"], "xdp", "{shown}");
    }
}
