//! Routes, neighbours and engines of a node that forwards: what is shown is so, and what is changed takes effect.

use serde_json::Value;

use crate::engine::run;
use crate::support::is_root;

#[test]
fn live_routes_and_neighbours_decide_at_once_where_packets_go() {
    if !is_root() {
        return;
    }
    let ping = |status: &str, name: &str| {
        format!(
            "exec a \"weft xia ping @site-b-1:@b-0 --count 3 --interval 0.01 --timeout 0.5\" as {name}{status};\n"
        )
    };
    let steps = format!(
        r#"
        exec r1 "weft show xia forwarding --json" as forwarding;
        exec r1 "weft show xia forwarding" as lines;
        expect-output lines "a generic: a veth interface may lose";
        exec r1 "weft xia neighbour --json" as neighbours;
        exec r1 "weft xia neighbour" as table;
        expect-output table "reachable";
        exec r1 "weft xia route" as routes;
        expect-output routes "10.2.0.0/16";
        exec r1 "weft xia anchor" as anchors;
        expect-output anchors "forward r2";
        exec r1 "weft xia route delete 10.2.0.0/16";
        {}
        exec r1 "weft xia route delete 10.2.0.0/16" as again status 1;
        exec r1 "weft xia route add 10.2.0.0/16 via @r2";
        {}
        expect-output routed "3 received";
        exec r1 "weft xia neighbour add @r2 link 02:00:00:00:00:99 interface r2";
        {}
        exec r1 "weft xia neighbour" as misled;
        exec r1 "weft xia neighbour delete @r2 link 02:00:00:00:00:99 interface r2";
        {}
        expect-output found "3 received";
        exec r1 "weft xip hid showneighs" as showneighs;
        expect-output showneighs "dev: r2";
        exec r1 "weft xip dst show" as dst;
        exec r1 "weft xip lpm delroute 10.2.0.0 16";
        {}
        exec r1 "weft xip lpm addroute 10.2.0.0 16 gw @r2";
        exec r1 "weft xip lpm show routes" as showroutes;
        expect-output showroutes "lpm-0a02000000000000000000000000000000000000/16";
        {}
        expect-output back "3 received";
        "#,
        ping(" status 1", "cut"),
        ping("", "routed"),
        ping(" status 1", "lost"),
        ping("", "found"),
        ping(" status 1", "unrouted"),
        ping("", "back"),
    );
    let log = run("live-tables", &steps, &[]);
    let json = |name: &str| -> Value {
        let text = log(&format!("{name}.stdout"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let forwarding = json("forwarding");
    for interface in forwarding["interfaces"].as_array().unwrap() {
        assert_eq!(interface["engine"], "generic", "{forwarding}");
        assert!(interface["trouble"].as_str().is_some_and(|why| why.contains("veth")));
    }
    assert!(forwarding["counters"]["forwarded"].as_u64() > Some(0), "{forwarding}");
    assert!(forwarding["portable"]["misses"].as_u64() > Some(0), "{forwarding}");
    let neighbours = json("neighbours");
    let mut devices = Vec::new();
    for one in neighbours["neighbours"].as_array().unwrap() {
        assert_eq!((&one["state"], &one["used"]), (&"reachable".into(), &true.into()), "{one}");
        assert!(one["age_ms"].as_u64() < Some(60_000), "{one}");
        devices.push(one["interface"].as_str().unwrap());
    }
    // They stand in the order of their HIDs, which are those of new keys.
    devices.sort_unstable();
    assert_eq!(devices, ["a", "r2"], "{neighbours}");
    assert!(log("again.stderr").contains("0x0a02/16 has no such route"), "{}", log("again.stderr"));
    let dst = log("dst.stdout");
    let of_b = dst.split("\n\n").find(|entry| entry.contains("0: lpm-0a020001")).unwrap();
    assert!(of_b.contains("input, key_hash=0x0, chosen_edge=0"), "{dst}");
    assert!(of_b.contains("passthrough/sink_action=XDA_METHOD/XDA_METHOD"), "{dst}");
    let misled = log("misled.stdout");
    let of_r2: Vec<_> = misled.lines().filter(|line| line.contains(" r2 ")).collect();
    let is_used = |line: &&&str| line.ends_with("yes");
    assert_eq!(of_r2.len(), 2, "{misled}");
    let used: Vec<_> = of_r2.iter().filter(is_used).collect();
    assert!(used.len() == 1 && used[0].contains("02:00:00:00:00:99"), "{misled}");
}
