//! Routes of the kernel that callers set by the FEA of a node, in a namespace of the test, with ip(8) as witness.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;
use weft_port::testing::{Namespace, privileged};

use crate::processes::Node;
use crate::support::Done;

/// A namespace with the interface `one`, which has addresses, and a route that somebody else has set.
fn namespace() -> Namespace {
    let namespace = Namespace::new();
    namespace.ip("link add name one index 77 type veth peer name two");
    namespace.ip("link set one up");
    namespace.ip("link set two up");
    namespace.ip("address add 192.0.2.1/24 dev one");
    namespace.ip("address add 2001:db8::1/64 dev one nodad");
    namespace.ip("route add 10.9.0.0/16 via 192.0.2.66 metric 40 proto static");
    namespace
}

fn ip_text(namespace: &Namespace, arguments: &str) -> String {
    let run = || Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let output = namespace.run(run);
    // A table that is not there is no table without routes to ip(8).
    let text = String::from_utf8(output.stdout).unwrap();
    if text.is_empty() { "[]".to_owned() } else { text }
}

/// The routes of the protocol of weft: prefix, and kind or gateways.
fn routes(namespace: &Namespace, table: &str, version: &str) -> BTreeMap<String, String> {
    let text = ip_text(namespace, &format!("{version} -j route show table {table} proto 119"));
    let all: Value = serde_json::from_str(&text).unwrap();
    let gateways = |route: &Value| {
        let hops = route["nexthops"].as_array().cloned().unwrap_or_else(|| vec![route.clone()]);
        let hops = hops.iter().map(|hop| {
            let weight = hop["weight"].as_u64().map(|weight| format!("*{weight}"));
            format!("{}{}", hop["gateway"].as_str().unwrap_or("-"), weight.unwrap_or_default())
        });
        hops.collect::<Vec<_>>().join(" ")
    };
    let one = |route: &Value| {
        assert_eq!(route["metric"], 40, "{route}");
        let to = route["dst"].as_str().unwrap().to_owned();
        match route["type"].as_str() {
            None | Some("unicast") => (to, gateways(route)),
            Some(kind) => (to, kind.to_owned()),
        }
    };
    all.as_array().unwrap().iter().map(one).collect()
}

fn expect(namespace: &Namespace, table: &str, version: &str, expected: &[(&str, &str)]) {
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(to, what)| ((*to).to_owned(), (*what).to_owned())).collect();
    assert_eq!(routes(namespace, table, version), expected);
}

fn xrl(method: &str, (table, is_ipv6): (u32, bool), rest: &str) -> String {
    format!("finder://fea/fib/1.0/{method}?table:u32={table}&is_ipv6:bool={is_ipv6}{rest}")
}

const MAIN: (u32, bool) = (254, false);

fn begin(table: (u32, bool)) -> String {
    xrl("begin", table, "")
}

fn end(table: (u32, bool)) -> String {
    xrl("end", table, "")
}

/// Ways are given as set, gateway and weight; routes as prefix and set.
fn change(
    table: (u32, bool),
    ways: &[(u32, &str, u32)],
    routes: &[(&str, u32)],
    gone: &[&str],
) -> String {
    let ways = ways.iter().map(|(set, gateway, weight)| {
        format!("(set={set};gateway={gateway};interface=77;weight={weight})")
    });
    let routes = routes.iter().map(|(net, set)| format!("(net={net};set={set};fresh=true)"));
    let join = |all: Vec<String>| all.join(",");
    let rest = format!(
        "&ways:list<way>={}&routes:list<route>={}&gone:list<ipnet>={}",
        join(ways.collect()),
        join(routes.collect()),
        gone.join(",")
    );
    xrl("change", table, &rest)
}

/// Calls one after the other, by one caller, who is gone afterwards.
fn call(node: &Node, calls: &[String]) -> Done {
    node.call(&calls.iter().map(String::as_str).collect::<Vec<_>>())
}

fn good(node: &Node, calls: &[String]) -> String {
    let done = call(node, calls);
    assert_eq!(done.status, Some(0), "{done:?}");
    done.stdout
}

/// What the FEA has counted of routes, if it is there.
fn counted(node: &Node, reason: &str) -> Option<u64> {
    let all = call(node, &["finder://fea/monitor/1.0/counters".to_owned()]).stdout;
    let wanted = format!("(group=fea-routes;of=;reason={reason};");
    let (_, found) = all.split_once(&wanted)?;
    let (_, value) = found.split_once("value=")?;
    value.split(')').next()?.parse().ok()
}

fn count(node: &Node, reason: &str) -> u64 {
    counted(node, reason).unwrap()
}

fn state(node: &Node) -> String {
    good(node, &["finder://fea/fib/1.0/tables".to_owned()])
}

#[test]
fn routes_come_by_calls_and_stay_when_the_fea_is_killed() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let node = namespace.run(Node::start);
    let ways = [(3, "192.0.2.2", 1), (4, "192.0.2.2", 1), (4, "192.0.2.3", 5)];
    let told = [("10.1.0.0/16", 3), ("10.2.0.0/16", 4), ("10.3.0.0/16", 0), ("10.9.0.0/16", 3)];
    let six = (1000, true);
    let said = good(
        &node,
        &[
            begin(MAIN),
            change(MAIN, &ways, &told, &[]),
            end(MAIN),
            xrl("events", MAIN, "&wait:u32=0"),
            begin(six),
            change(six, &[(9, "fe80::2", 1)], &[("2001:db8:7::/48", 9), ("::/0", 1)], &[]),
            end(six),
        ],
    );
    assert!(
        said.contains(
            "again:bool=false&refused:list<refusal>=(net=10.9.0.0/16;error=File%20exists"
        ),
        "{said}"
    );
    let main = [
        ("10.1.0.0/16", "192.0.2.2"),
        ("10.2.0.0/16", "192.0.2.2*1 192.0.2.3*5"),
        ("10.3.0.0/16", "blackhole"),
    ];
    expect(&namespace, "main", "-4", &main);
    expect(&namespace, "1000", "-6", &[("2001:db8:7::/48", "fe80::2"), ("default", "unreachable")]);
    let foreign = "10.9.0.0/16 via 192.0.2.66 dev one proto static metric 40 \n";
    assert_eq!(ip_text(&namespace, "route show 10.9.0.0/16"), foreign);
    assert!(
        state(&node).contains("(table=254;is_ipv6=false;owner=;metric=40;state=left;"),
        "{}",
        state(&node)
    );

    let shown = node.run("show", &["kernel", "--json"]).json();
    let left = serde_json::json!({
        "table": 254, "version": "ipv4", "owner": null, "state": "left", "told-anew": false,
        "metric": 40, "waiting": 0, "refused": 1,
    });
    assert_eq!(shown["tables"][0], left);
    let lines = node.run("show", &["kernel"]).stdout;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = lines.lines().map(words).collect();
    assert_eq!(lines[0], ["TABLE", "VERSION", "OWNER", "STATE", "METRIC", "WAITING", "REFUSED"]);
    assert_eq!(lines[1], ["254", "ipv4", "-", "left", "40", "0", "1"]);
    assert_eq!(lines[2], ["1000", "ipv6", "-", "left", "40", "0", "0"]);

    // Forwarding goes on without an FEA. The next one knows nothing of who has told what.
    let fea = |node: &Node| node.processes().into_iter().find(|(name, _)| name == "fea");
    let before = fea(&node).unwrap();
    good(&node, &["finder://manager/manager/1.0/signal?instance:txt=fea&number:u32=9".to_owned()]);
    let events = xrl("events", MAIN, "&wait:u32=0");
    node.wait_until(|| {
        fea(&node).is_some_and(|now| now != before)
            && call(&node, std::slice::from_ref(&events)).stdout.contains("again:bool=true")
    });
    expect(&namespace, "main", "-4", &main);
    expect(&namespace, "1000", "-6", &[("2001:db8:7::/48", "fe80::2"), ("default", "unreachable")]);

    // What is told anew as it is costs nothing, and what is not told goes.
    let again = [("10.1.0.0/16", 3), ("10.2.0.0/16", 4)];
    good(&node, &[begin(MAIN), change(MAIN, &ways, &again, &[]), end(MAIN)]);
    expect(&namespace, "main", "-4", &main[..2]);
    let counts: Vec<_> = ["same", "added", "replaced", "deleted"]
        .iter()
        .map(|reason| count(&node, reason))
        .collect();
    assert_eq!(counts, [2, 0, 0, 1]);
    good(&node, &[change(MAIN, &ways, &[("10.4.0.0/16", 2)], &["10.1.0.0/16"]), end(MAIN)]);
    let now = [("10.2.0.0/16", "192.0.2.2*1 192.0.2.3*5"), ("10.4.0.0/16", "prohibit")];
    expect(&namespace, "main", "-4", &now);

    // Nobody wants them any longer than their owner has said.
    good(&node, &[xrl("begin", MAIN, "&keep:u32=0"), end(MAIN)]);
    good(
        &node,
        &[xrl("begin", six, "&keep:u32=0"), change(six, &[], &[("::/0", 1)], &[]), end(six)],
    );
    node.wait_until(|| routes(&namespace, "1000", "-6").is_empty());
    expect(&namespace, "main", "-4", &[]);
    assert_eq!(ip_text(&namespace, "route show 10.9.0.0/16"), foreign);

    // Mistakes are the caller's.
    for (wrong, part) in [
        (change(MAIN, &[], &[("10.1.0.0/16", 3)], &[]), "the set 3, which has no way"),
        (change(six, &[], &[], &["10.0.0.0/8"]), "no prefix of IPv6"),
        (begin((0, false)), "the main one is 254"),
    ] {
        call(&node, &[wrong]).expect_failure(&["101 BAD_ARGS", part]);
    }
}

#[test]
fn who_has_a_table_is_told_when_the_kernel_forgets_it_and_nobody_else_gets_it() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    let node = namespace.run(Node::start);
    let ways = [(3, "192.0.2.2", 1)];
    let calls = [
        begin(MAIN),
        change(MAIN, &ways, &[("10.1.0.0/16", 3)], &[]),
        end(MAIN),
        xrl("events", MAIN, "&wait:u32=60000"),
    ];
    let arguments: Vec<_> =
        ["--timeout", "60000"].into_iter().chain(calls.iter().map(String::as_str)).collect();
    let mut owner = node.command("call", &arguments);
    let owner = owner.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    node.wait_until(|| state(&node).contains("state=following"));
    expect(&namespace, "main", "-4", &[("10.1.0.0/16", "192.0.2.2")]);
    let done = call(&node, &[begin(MAIN)]);
    done.expect_failure(&["102 COMMAND_FAILED", "table 254 of IPv4 is that of"]);
    let done = call(&node, &[change(MAIN, &[], &[], &["10.1.0.0/16"])]);
    done.expect_failure(&["table 254 of IPv4 is that of"]);
    // The kernel deletes what leads there without a word.
    namespace.ip("link set one down");
    let done = Done::from(owner.wait_with_output().unwrap());
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(done.stdout.contains("again:bool=true"), "{done:?}");
    expect(&namespace, "main", "-4", &[]);
    namespace.ip("link set one up");
    good(&node, &calls[..3]);
    expect(&namespace, "main", "-4", &[("10.1.0.0/16", "192.0.2.2")]);
    assert!(count(&node, "lost") >= 1);
}

#[test]
fn the_rib_tells_a_new_fea_everything_and_what_the_kernel_has_forgotten() {
    if !privileged() {
        return;
    }
    let namespace = namespace();
    // A statement besides that of the stack.
    let start = || Node::begin("principal xdp;\n}\nrib {", |_| {});
    let node = namespace.run(start);
    node.wait_for("node r1: 4 processes run");
    let origin =
        "finder://rib/rib/1.0/open_origin?protocol:txt=static&external:bool=false&distance:u32=1";
    let told = "finder://rib/rib/1.0/change?origin:u32=1\
                &hops:list<hop>=(set=16;gateway=192.0.2.2;interface=77;weight=1)\
                &routes:list<route>=(net=10.1.0.0/16;set=16;metric=1;tag=0),(net=10.2.0.0/16;set=0;metric=1;tag=0)\
                &gone:list<ipnet>=";
    let end = "finder://rib/rib/1.0/end?origin:u32=1";
    let said = good(&node, &[origin, told, end].map(str::to_owned));
    assert!(said.starts_with("origin:u32=1"), "{said}");
    let main = [("10.1.0.0/16", "192.0.2.2"), ("10.2.0.0/16", "blackhole")];
    let follows = || {
        let all = call(&node, &["finder://fea/fib/1.0/tables".to_owned()]).stdout;
        all.contains("(table=254;is_ipv6=false;owner=rib;metric=40;state=following;")
    };
    node.wait_until(|| follows() && routes(&namespace, "main", "-4").len() == 2);
    expect(&namespace, "main", "-4", &main);

    good(&node, &["finder://manager/manager/1.0/signal?instance:txt=fea&number:u32=9".to_owned()]);
    node.wait_until(|| follows() && counted(&node, "same") == Some(2));
    expect(&namespace, "main", "-4", &main);
    let changes = ["added", "replaced", "deleted", "refused"].map(|reason| count(&node, reason));
    assert_eq!(changes, [0; 4], "the kernel has everything already");

    // The kernel deletes what leads there without a word.
    namespace.ip("link set one down");
    expect(&namespace, "main", "-4", &main[1..]);
    namespace.ip("link set one up");
    node.wait_until(|| routes(&namespace, "main", "-4").len() == 2);
    expect(&namespace, "main", "-4", &main);
}
