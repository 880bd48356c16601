//! Routers of others: started, found by commands, ended, and what is said when they cannot be.

use std::fs;

use crate::support::{Bench, assert_gone, is_root};

const BIRD: &str = "router id 10.0.0.1;
protocol device { }
protocol static {
 ipv4;
 include \"routes\";
}
protocol bgp b { local as 65001; neighbor 10.0.0.2 as 65002; ipv4 { import all; export all; };
    graceful restart; connect delay time 1; error wait time 1, 1; }
";
const FRR: &str = "router bgp 65002
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 neighbor 10.0.0.1 remote-as 65001
 neighbor 10.0.0.1 timers connect 1
exit
";
const GOBGP: &str = "[global.config]
as = 65003
router-id = \"10.0.0.3\"
";
const EXABGP: &str = "neighbor 10.0.0.9 { router-id 10.0.0.4; local-address 10.0.0.4; local-as 65004; peer-as 65009; }
";

/// A directory with the configurations of the four.
fn bench() -> Bench {
    let bench = Bench::new();
    for (name, text) in [("bird", BIRD), ("frr", FRR), ("gobgp", GOBGP), ("exabgp", EXABGP)] {
        fs::write(bench.directory.path().join(name), text).unwrap();
    }
    bench
}

/// Two routers with a link, and two without.
fn four(bench: &Bench, name: &str, scenario: &str) -> String {
    let files = bench.directory.path().display();
    format!(
        "version 1;
lab {name} {{
    node b {{ kind bird; config {files}/bird; start off; }}
    node f {{ kind frr; config {files}/frr; }}
    node g {{ kind gobgp; config {files}/gobgp; }}
    node e {{ kind exabgp; config {files}/exabgp; }}
    link b:eth0 f:eth0 {{ address 10.0.0.1/24 10.0.0.2/24; address6 2001:db8::1/64 2001:db8::2/64; }}
    scenario default {{ {scenario} }}
}}"
    )
}

#[test]
fn routers_start_answer_and_end() {
    if !is_root() {
        return;
    }
    let bench = bench();
    let text = four(
        &bench,
        "routers",
        "exec b \"sh -c 'echo route 192.0.2.0/24 blackhole\\\\; > routes'\";
         start b;
         until f \"ip route show proto bgp\" says \"via 10.0.0.1\";
         exec f \"vtysh -c 'show bgp summary'\" as frr;
         expect-output frr \"10.0.0.1\";
         exec g \"gobgp global\" as gobgp;
         expect-output gobgp \"65003\";
         until e \"exabgpcli version\" says \"exabgp 4\";
         exec b \"ping -c 1 2001:db8::2\";
         kill b;
         start b;
         until f \"ip route show proto bgp\" says \"via 10.0.0.1\";
         exec b \"birdc down\";
         wait-exit b;
         restart f; restart g; restart e;
         expect-running f; expect-running g; expect-running e;
         stop f; stop g; stop e;",
    );
    bench.succeed(&text);
    assert_eq!(bench.stdout("b").matches("router is ready").count(), 2);
    assert_gone("routers");
}

#[test]
fn what_routers_do_not_understand_they_say_themselves() {
    if !is_root() {
        return;
    }
    let cases = [
        ("bird", "nonsense;", "syntax error"),
        ("frr", "router bgp 65002\n nonsense 5\nexit\n", "line 2: % Unknown command"),
        ("gobgp", "[global.config]\nas = 65003\nnonsense = 5\n", "invalid keys: nonsense"),
        ("exabgp", "neighbor 10.0.0.9 { nonsense 5; }\n", "invalid keyword \\\"nonsense\\\""),
    ];
    for (kind, wrong, reason) in cases {
        let bench = bench();
        let path = bench.directory.path().join("wrong");
        fs::write(&path, wrong).unwrap();
        let lab = format!(
            "version 1; lab wrong {{ node x {{ kind {kind}; config {}; }} scenario default {{ }} }}",
            path.display()
        );
        let error = bench.run(&lab).unwrap_err().to_string();
        let reason = reason.replace('\\', "");
        assert!(error.contains(&reason), "{kind}: {error}");
        assert_gone("wrong");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_before_anything_is_built() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let lab =
        "version 1; lab none { node x { kind bird; config /no/such/file; } scenario default { } }";
    let error = bench.run(lab).unwrap_err().to_string();
    assert!(error.contains("cannot read /no/such/file"), "{error}");
    assert_gone("none");
}

#[test]
fn a_command_is_repeated_until_it_says_what_is_awaited() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let lab = |step: &str| {
        format!("version 1; lab until {{ node l {{ kind linux; }} scenario default {{ {step} }} }}")
    };
    bench.succeed(&lab("until l \"sh -c 'echo x >> count; wc -l < count'\" says 3;
         until l \"sh -c 'tail -n +2 count > less; cp less count; cat count'\" lacks x;
         exec l \"sh -c '! test -s count'\";"));
    let cases = [
        (
            "until l \"echo never\" says ever-more timeout 50ms;",
            "did not write \"ever-more\" within 50ms",
        ),
        (
            "until l \"echo never\" says ever-more timeout 50ms;",
            "exited with status 0; it said: never",
        ),
        (
            "until l false lacks x timeout 50ms;",
            "did not succeed without writing \"x\" within 50ms",
        ),
        ("until l \"sleep 1000\" says x timeout 50ms;", "did not write \"x\" within 50ms"),
    ];
    for (step, reason) in cases {
        let error = bench.fail(&lab(step));
        assert!(error.contains(reason), "{error}");
    }
    assert_gone("until");
}
