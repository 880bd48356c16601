//! Routers whose packets come and go by AF_XDP: what the processes of a node hand each other for it, and what
//! happens when interfaces and processes come and go.

use std::fs;

use serde_json::Value;

use crate::engine::{EXAMPLE, STACK};
use crate::support::{assert_gone, is_root, succeeded, text, weft};

#[test]
fn packets_come_and_go_by_af_xdp_and_by_packet_sockets_where_that_cannot_be() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (network, _) = EXAMPLE.split_once("    scenario default {").unwrap();
    let network = network
        .replace("lab kernel-engine", "lab packet-io")
        .replacen("engine auto;", "packet-io xdp;", 1)
        .replacen("engine auto;", "packet-io auto;", 1);
    let ping = "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.02 --timeout 20";
    let steps = format!(
        r#"
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec r2 "weft xia ping @b --count 10 --interval 0.1 --quiet";
        exec a "{ping}" as first;
        expect-output first "20 received";
        exec r1 "weft xia engine --json" as xdp;
        exec r2 "weft xia engine --json" as auto;
        exec r1 "ip link set r2 down";
        exec r1 "ip link set r2 up";
        exec r2 "ip link set dev b down";
        exec r2 "ip link set dev b mtu 9000 up";
        exec r1 "weft xia ping @r2 --count 30 --interval 0.1 --quiet";
        exec r2 "weft xia ping @b --count 30 --interval 0.1 --quiet";
        exec a "{ping}" as second;
        expect-output second "20 received";
        exec r1 "weft xia engine --json" as xdp-again;
        exec r2 "weft xia engine --json" as instead;
        exec r2 "weft show xia forwarding" as shown;
        exec r1 "sh ../stack.sh kill";
        exec r1 "sh ../stack.sh revive" timeout 60s;
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec a "{ping}" as third;
        expect-output third "20 received";
        exec r1 "weft xia engine --json" as restarted;
        exec r1 "weft xia engine auto";
        exec r1 "sh -c 'until weft xia engine | grep -q r2.generic; do sleep 0.02; done'" timeout 60s;
        exec r1 "weft xia engine --json" as both;
        exec a "{ping}" as fourth;
        expect-output fourth "20 received";
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec r1 "sh ../stack.sh kill";
        exec r1 "sh ../stack.sh revive" timeout 60s;
        exec r1 "sh -c 'until ! weft show programs | grep -q engine; do sleep 0.02; done'" timeout 60s;
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec a "{ping}" as fifth;
        expect-output fifth "20 received";
        exec r1 "weft xia engine auto";
        exec r1 "sh -c 'until weft xia engine | grep -q r2.generic; do sleep 0.02; done'" timeout 60s;
        exec r1 "weft xia engine --json" as both-restarted;
        exec r1 "weft xia engine portable";
        exec r1 "sh -c 'until weft show programs | grep -q port.*steer; do sleep 0.02; done'" timeout 60s;
        exec a "{ping}" as sixth;
        expect-output sixth "20 received";
        exec r1 "weft configure -c 'set xia packet-io packet' -c commit";
        exec r1 "sh -c 'until weft xia engine | grep -q r2.portable && ! weft xia engine | grep -q AF_XDP; do sleep 0.02; done'" timeout 60s;
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia engine --json" as committed;
        exec a "{ping}" as seventh;
        expect-output seventh "20 received";
        "#
    );
    let lab = format!("{network}scenario default {{ {steps} }}\n}}\n");
    fs::write(directory.path().join("lab"), lab).unwrap();
    fs::write(directory.path().join("stack.sh"), STACK).unwrap();
    let output = weft(directory.path(), &["lab", "run", "lab", "--output", "out"]);
    let log = |name: &str| {
        fs::read_to_string(directory.path().join("out/logs").join(name)).unwrap_or_default()
    };
    assert!(output.status.success(), "{}\n{}", text(&output.stderr), log("r1.stderr"));
    succeeded(&output);
    assert_gone("packet-io", directory.path());
    let shown = |name: &str| -> Vec<(String, String)> {
        let value: Value = serde_json::from_str(&log(&format!("{name}.stdout"))).unwrap();
        let interfaces = value["interfaces"].as_array().unwrap().clone();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        interfaces.iter().map(|one| (word(&one["interface"]), word(&one["packet-io"]))).collect()
    };
    let of = |names: [(&str, &str); 2]| {
        names.map(|(interface, io)| (interface.to_owned(), io.to_owned())).to_vec()
    };
    let sorted = |name: &str| {
        let mut shown = shown(name);
        shown.sort();
        shown
    };
    for name in ["xdp", "xdp-again", "restarted", "both", "both-restarted"] {
        assert_eq!(sorted(name), of([("a", "xdp"), ("r2", "xdp")]), "{name}");
    }
    assert_eq!(sorted("auto"), of([("b", "xdp"), ("r1", "xdp")]));
    assert_eq!(sorted("committed"), of([("a", "packet"), ("r2", "packet")]));
    assert_eq!(sorted("instead"), of([("b", "packet"), ("r1", "xdp")]));
    let why =
        "packet sockets take the place of AF_XDP: the interface `b` carries packets of 9000 bytes";
    assert!(log("r2.stderr").contains(why), "{}", log("r2.stderr"));
    let shown = log("shown.stdout");
    assert!(shown.contains("r1 portable; packets by AF_XDP\n"), "{shown}");
    let why =
        "b portable; packets by packet sockets: the interface `b` carries packets of 9000 bytes";
    assert!(shown.contains(why), "{shown}");
    for name in ["both", "both-restarted"] {
        let value: Value = serde_json::from_str(&log(&format!("{name}.stdout"))).unwrap();
        for interface in value["interfaces"].as_array().unwrap() {
            assert_eq!(interface["engine"], "generic", "{name}: {value}");
        }
    }
}
