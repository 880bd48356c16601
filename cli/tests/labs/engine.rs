//! The kernel's engine under a node's processes: what it does while they are dead, and while it comes and goes.

use std::fs;

use serde_json::Value;

use crate::support::{assert_gone, is_root, succeeded, text, weft};

pub(crate) const EXAMPLE: &str = include_str!("../../../examples/kernel-engine.lab");

/// Runs other steps on the example's network; returns what commands have written, by their names.
pub(crate) fn run(
    name: &str,
    steps: &str,
    files: &[(&str, &str)],
) -> impl Fn(&str) -> String + use<> {
    run_with(name, "engine auto;", steps, files)
}

/// The same with routers that say `forwarding` of how they forward.
pub(crate) fn run_with(
    name: &str,
    forwarding: &str,
    steps: &str,
    files: &[(&str, &str)],
) -> impl Fn(&str) -> String + use<> {
    run_on(&network(name, forwarding), name, steps, files)
}

/// The example's network, with routers that say `forwarding` of how they forward.
fn network(name: &str, forwarding: &str) -> String {
    let (network, _) = EXAMPLE.split_once("    scenario default {").unwrap();
    network.replace("lab kernel-engine", &format!("lab {name}")).replace("engine auto;", forwarding)
}

/// Steps on a network like the example's.
fn run_on(
    network: &str,
    name: &str,
    steps: &str,
    files: &[(&str, &str)],
) -> impl Fn(&str) -> String + use<> {
    let directory = tempfile::tempdir().unwrap();
    let neighbours = r#"
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec r2 "weft xia ping @b --count 10 --interval 0.1 --quiet";
        exec a "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.02 --timeout 20 --quiet";
    "#;
    let lab = format!("{network}scenario default {{ {neighbours} {steps} }}\n}}\n");
    fs::write(directory.path().join("lab"), lab).unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let output = weft(directory.path(), &["lab", "run", "lab", "--output", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    succeeded(&output);
    assert_gone(name, directory.path());
    move |name| {
        let path = directory.path().join("out/logs").join(name);
        fs::read_to_string(path).unwrap_or_default()
    }
}

/// What is known of a process of the node, and how it is killed so that nobody starts it again.
pub(crate) const STACK: &str = r#"
set -eu
of() {
    weft call finder://manager/manager/1.0/processes | tr '()' '\n\n' |
        sed -n "s/^instance=$1;.*;pid=\([0-9]*\);.*/\1/p"
}
case "$1" in
kill)
    manager=$(of manager)
    xia=$(of xia)
    kill -STOP "$manager"
    kill -KILL "$xia"
    while test -d /proc/"$xia"; do sleep 0.02; done
    echo "$manager" > manager.pid
    ;;
fea)
    fea=$(of fea)
    kill -KILL "$fea"
    until new=$(of fea) && test -n "$new" && test "$new" != "$fea"; do sleep 0.02; done
    # It is there when it answers.
    until weft show programs > /dev/null 2>&1; do sleep 0.02; done
    ;;
refused)
    why='the packet engine xip is at the interface a'
    attach='program:txt=loss&interface:txt=a&direction:txt=ingress&rate:u32=5'
    weft call "finder://fea/fea/1.0/attach_program?$attach" 2>&1 | grep "$why"
    weft configure -c 'set interfaces interface a loss rate 5%' -c commit 2>&1 | grep "$why"
    weft show programs | grep '^a .*xdp generic .*engine  *xip'
    ;;
revive)
    kill -CONT "$(cat manager.pid)"
    until weft xia show > /dev/null 2>&1; do sleep 0.05; done
    ;;
esac
"#;

#[test]
fn known_flows_survive_the_stack_and_a_link_that_goes_down_ends_them() {
    if !is_root() {
        return;
    }
    let steps = r#"
        exec r1 "weft xia engine --json" as before;
        exec r1 "sh ../stack.sh kill";
        exec a "weft xia ping @site-b-1:@b-0 --count 100 --interval 0.01 --timeout 20" as orphaned;
        expect-output orphaned "100 received";
        exec r1 "ip link set r2 down";
        exec a "weft xia ping @site-b-1:@b-0 --count 5 --interval 0.01 --timeout 0.5" as down status 1;
        exec r1 "ip link set r2 up";
        exec r1 "sh ../stack.sh revive" timeout 60s;
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia ping @a --count 10 --interval 0.1 --quiet";
        exec r1 "weft xia engine --json" as revived-engine;
        exec r1 "weft show counters xia --json" as revived-counters;
        exec a "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.02 --timeout 20" as revived;
        expect-output revived "20 received";
        exec r1 "weft show counters xia --json" as counters;
        exec r1 "weft xia show counters --json" as own-counters;
        exec r1 "weft xia engine --json" as after;
        exec r1 "weft xia dst check" as check;
        expect-output check "0 wrong";
    "#;
    let log = run("engine-orphaned", steps, &[("stack.sh", STACK)]);
    let engine =
        |name: &str| -> Value { serde_json::from_str(&log(&format!("{name}.stdout"))).unwrap() };
    let (before, after) = (engine("before"), engine("after"));
    for shown in [&before, &after] {
        assert_eq!(shown["kernel"], "on", "{shown}");
        for interface in shown["interfaces"].as_array().unwrap() {
            assert_eq!(interface["engine"], "generic", "{shown}");
        }
    }
    let forwarded = |shown: &Value| shown["counters"]["forwarded"].as_u64().unwrap();
    // There and back; the counters are those of one engine all the time.
    assert!(forwarded(&after) >= forwarded(&before) + 200, "{before} {after}");
    assert!(log("down.stdout").contains("0 received"), "{}", log("down.stdout"));
    // What the kernel forwards is counted among all that the stack forwards, since the stack began.
    let kernel = forwarded(&after) - forwarded(&engine("revived-engine"));
    assert!(kernel >= 30, "most of 40 packets");
    let counted = |name: &str, counter: &str| -> u64 {
        let shown: Value = engine(name);
        let groups = shown["components"][0]["counters"].as_array().unwrap();
        let packets = groups.iter().find(|group| group["name"] == "xip-packets").unwrap();
        let mut counts = packets["counts"].as_array().unwrap().iter();
        counts.find(|count| count["reason"] == counter).unwrap()["count"].as_u64().unwrap()
    };
    for counter in ["received", "forwarded"] {
        let now = counted("counters", counter);
        assert!(now >= counted("revived-counters", counter) + 40, "{counter}");
        assert_eq!(engine("own-counters")["activity"][counter], now, "{counter}");
    }
}

/// Gives the interface to r1 another MAC address, and keeps the one that it had.
const MAC: &str = r#"
set -eu
ip -o link show r1 | sed 's/.*link.ether \([0-9a-f:]*\) .*/\1/' > mac.before
ip link set r1 address 02:00:00:00:77:77
"#;

#[test]
fn a_stack_that_is_ready_again_has_nothing_sent_to_where_a_neighbour_was_before() {
    if !is_root() {
        return;
    }
    let steps = r#"
        exec r1 "sh ../stack.sh kill";
        exec r2 "sh ../mac.sh";
        # Until r2's stack has heard of its own new address, its engine takes what is sent to the old one.
        exec a "sh -c 'while weft xia ping @site-b-1:@b-0 --count 1 --timeout 0.3 --quiet; do :; done'" timeout 30s;
        exec a "weft xia ping @site-b-1:@b-0 --count 5 --interval 0.01 --timeout 0.5" as stale status 1;
        run a "weft xia ping @site-b-1:@b-0 --count 3000 --interval 0.005 --timeout 5" as meanwhile;
        exec r1 "sh ../stack.sh revive" timeout 60s;
        until r1 "weft show log xia" says "is ready" timeout 60s;
        run r2 "sh -c 'exec tcpdump -l -n -i r1 ether dst $(cat mac.before)'" as frames;
        wait-output frames "listening on";
        exec r1 "weft xia ping @r2 --count 10 --interval 0.1 --quiet";
        exec a "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.02 --timeout 20" as revived;
        expect-output revived "20 received";
        stop frames;
        kill meanwhile;
        exec r1 "weft xia engine --json" as after;
    "#;
    let log = run("engine-stale", steps, &[("stack.sh", STACK), ("mac.sh", MAC)]);
    assert!(log("stale.stdout").contains("0 received"), "{}", log("stale.stdout"));
    assert!(log("frames.stderr").contains("\n0 packets captured"), "{}", log("frames.stderr"));
    assert_eq!(log("frames.stdout").trim(), "");
    let after: Value = serde_json::from_str(&log("after.stdout")).unwrap();
    assert_eq!(after["kernel"], "on", "{after}");
}

#[test]
fn an_engine_survives_the_process_that_holds_it_and_the_next_one_can_take_it_away() {
    if !is_root() {
        return;
    }
    let steps = r#"
        exec r1 "sh ../stack.sh fea" timeout 60s;
        exec a "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.01 --timeout 20" as held;
        expect-output held "20 received";
        exec r1 "sh ../stack.sh refused";
        exec r1 "weft xia engine portable";
        exec a "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.01 --timeout 20" as portable;
        expect-output portable "20 received";
        exec r1 "sh -c 'while ip link show a | grep xdp; do sleep 0.05; done'" timeout 60s;
        exec r1 "weft xia engine auto";
        exec r1 "sh -c 'until weft xia engine | grep r2.generic; do sleep 0.05; done'" timeout 60s;
        exec a "weft xia ping @site-b-1:@b-0 --count 20 --interval 0.01 --timeout 20" as again;
        expect-output again "20 received";
        exec r1 "weft xia engine --json" as shown;
    "#;
    let log = run("engine-held", steps, &[("stack.sh", STACK)]);
    let shown: Value = serde_json::from_str(&log("shown.stdout")).unwrap();
    for interface in shown["interfaces"].as_array().unwrap() {
        assert_eq!(interface["engine"], "generic", "{shown}");
    }
    assert!(log("r1.stderr").contains("is taken over; it is at: a, r2"), "{}", log("r1.stderr"));
}

#[test]
fn the_engine_comes_and_goes_without_losing_a_packet() {
    let network = network("engine-changes", "engine auto;");
    comes_and_goes("engine-changes", &network, ("auto", "generic"));
}

/// A `veth` takes what a program in driver mode hands to it if GRO is on at its other end, and such a program can come to
/// it without its rings being made anew if GRO is on at this end.
#[test]
fn the_engine_in_driver_mode_comes_and_goes_without_losing_a_packet() {
    let mut network = network("engine-driver", "engine driver;");
    for interfaces in [&["eth0"][..], &["a", "r2"], &["r1", "b"]] {
        let taken = format!("xia {{\n                interface {};", interfaces.join(" "));
        assert!(network.contains(&taken), "{taken}");
        let gro = |name: &&str| format!("interface {name} {{ gro on; }} ");
        let gro: String = interfaces.iter().map(gro).collect();
        network = network.replace(&taken, &format!("interfaces {{ {gro}}}\n            {taken}"));
    }
    comes_and_goes("engine-driver", &network, ("driver", "driver"));
}

/// Switches r1's engine off, and on as `how` says, again and again, while packets flow.
fn comes_and_goes(name: &str, network: &str, (how, shown_as): (&str, &str)) {
    if !is_root() {
        return;
    }
    let change = |round| {
        format!(
            "exec r1 \"weft xia engine portable\"; after 100ms;
             exec r1 \"weft xia engine --json\" as away-{round};
             exec r1 \"weft xia engine {how}\";
             exec r1 \"sh -c 'until test $(weft xia engine | grep -c ^[ar].*{shown_as}) = 2; do sleep 0.02; done'\" timeout 60s;
             after 100ms;
             exec r1 \"weft xia engine --json\" as there-{round};\n"
        )
    };
    let steps = String::from(
        "run a \"weft xia ping @site-b-1:@b-0 --count 4000 --interval 0.002 --timeout 20\" as pings;\n",
    ) + &(0..10).map(change).collect::<String>()
        + "wait-exit pings;
           expect-output pings \"4000 received\";
           exec r1 \"weft xia engine\" as which;
           expect-output which \"the kernel's is on\";";
    let log = run_on(network, name, &steps, &[]);
    let shown =
        |name: &str| -> Value { serde_json::from_str(&log(&format!("{name}.stdout"))).unwrap() };
    // While the first packets flow, for certain, the kernel has forwarded some of them, and then none.
    let forwarded = shown("there-0")["counters"]["forwarded"].as_u64().unwrap();
    assert!(forwarded > 0, "{}", shown("there-0"));
    for round in 0..10 {
        let away = shown(&format!("away-{round}"));
        assert!(
            away["interfaces"].as_array().unwrap().iter().all(|one| one["engine"] == "portable"),
            "{away}"
        );
    }
}

/// Where the program cannot be, the portable engine forwards, beside the kernel's at other interfaces; and `auto` can be
/// said again when nothing is in the way any more.
#[test]
fn an_interface_where_the_engine_cannot_be_has_the_portable_one_and_says_why() {
    if !is_root() {
        return;
    }
    let call = |method: &str, more: &str| {
        let what = "program:txt=loss&interface:txt=a&direction:txt=ingress";
        format!("exec r1 \"weft call 'finder://fea/fea/1.0/{method}?{what}{more}'\";\n")
    };
    let pings = |name: &str| {
        format!(
            "exec a \"weft xia ping @site-b-1:@b-0 --count 20 --interval 0.01 --timeout 20\" as {name};
             expect-output {name} \"20 received\";
             exec r1 \"weft xia engine --json\" as {name}-engine;\n"
        )
    };
    let auto = |interface: &str| {
        format!(
            "exec r1 \"weft xia engine auto\";
             exec r1 \"sh -c 'until weft xia engine | grep -q {interface}.generic; do sleep 0.02; done'\" \
             timeout 60s;\n"
        )
    };
    let steps = [
        call("attach_program", "&rate:u32=0"),
        auto("r2"),
        // Where it was refused is known when both were answered.
        "exec r1 \"sh -c 'until weft xia engine | grep -q a.portable:; do sleep 0.02; done'\" timeout 60s;\n"
            .to_owned(),
        pings("refused"),
        call("detach_program", ""),
        auto("a"),
        pings("again"),
    ];
    let log = run_with("engine-refused", "engine portable;", &steps.concat(), &[]);
    let at = |name: &str, interface: &str| -> Value {
        let shown: Value = serde_json::from_str(&log(&format!("{name}-engine.stdout"))).unwrap();
        let mut interfaces = shown["interfaces"].as_array().unwrap().iter();
        interfaces.find(|one| one["interface"] == interface).unwrap().clone()
    };
    let refused = at("refused", "a");
    assert_eq!(refused["engine"], "portable");
    assert!(refused["trouble"].as_str().unwrap().contains("loss"), "{refused}");
    assert_eq!(at("refused", "r2")["engine"], "generic");
    assert_eq!(
        [at("again", "a"), at("again", "r2")].map(|one| one["engine"].clone()),
        ["generic"; 2]
    );
}
