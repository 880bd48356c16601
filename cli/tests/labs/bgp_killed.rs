//! A BGP router whose processes are killed at random moments while its peers announce and withdraw routes.
//!
//! Two BIRDs announce 2,000 routes each, half of them the same ones. In the end the kernel has exactly what they announce,
//! the RIB says the same, and no packet that crossed the router meanwhile was lost.

use std::fmt::Write;

use weft_base::Random;

use crate::killed::KILL;
use crate::network::run;
use crate::support::is_root;

/// Routes of each of a BIRD's protocols.
const ROUTES: u32 = 1000;

const NETWORK: &str = r#"
    node as65001 { kind bird; config bird1.conf; }
    node as65002 { kind bird; config bird2.conf; }
    node r {
        kind weft;
        config {
            rib;
            bgp {
                as 65000;
                router-id 10.0.1.1;
                peer 10.0.1.2 { as 65001; import all; export all; }
                peer 10.0.2.2 { as 65002; import all; export all; }
            }
        }
    }
    link r:left as65001:up { address 10.0.1.1/24 10.0.1.2/24; }
    link r:right as65002:up { address 10.0.2.1/24 10.0.2.2/24; }
    route as65001 203.0.113.0/24 via 10.0.1.1;
    route as65002 10.0.1.0/24 via 10.0.2.1;
"#;

/// Waits until the kernel and the RIB have exactly what is expected.
const SETTLED: &str = r#"
set -eu
kernel() { ip route show proto 119 | cut -d ' ' -f 1 | sort; }
until kernel > kernel && cmp -s kernel ../expected; do sleep 0.1; done
weft show routes | awk '$1 == "*" && $3 == "ebgp" { print $2 }' | sort > rib
cmp rib ../expected
"#;

/// Deaths of the manager after which it is left alone until it has settled: a node gives up after ten in a row, each
/// within ten seconds of its start.
const MANAGER_DEATHS: u32 = 8;

/// The networks of one of a BIRD's protocols.
fn networks(protocol: u32) -> impl Iterator<Item = String> {
    (0..ROUTES).map(move |number| {
        format!("100.{}.{}.0/24", 64 + 4 * protocol + number / 256, number % 256)
    })
}

/// What a BIRD is told: it announces the routes of two protocols.
fn bird(number: u32, protocols: [u32; 2]) -> String {
    let mut text = format!(
        "router id 10.0.{number}.2;
         protocol device {{ }}
         protocol bgp r {{
             local as 6500{number};
             neighbor 10.0.{number}.1 as 65000;
             graceful restart on;
             ipv4 {{ import all; export all; }};
             connect delay time 1;
             error wait time 1, 1;
         }}\n"
    );
    for protocol in protocols {
        let _ = writeln!(text, "protocol static p{protocol} {{ ipv4;");
        networks(protocol).for_each(|net| {
            let _ = writeln!(text, "route {net} blackhole;");
        });
        text.push_str("}\n");
    }
    if number == 2 {
        text.push_str("protocol static far { ipv4; route 203.0.113.0/24 blackhole; }\n");
    }
    text
}

/// Kills each process so many times, in an order and at moments that the seed says.
fn kills(times: usize, seed: u64) -> String {
    let mut random = Random::from_seed(seed);
    let mut order = ["fea", "rib", "bgp", "finder", "manager"].repeat(times);
    let (mut steps, mut deaths) = (String::new(), 0);
    while !order.is_empty() {
        let process = order.swap_remove(random.below(order.len() as u64) as usize);
        // One of the protocols goes or comes; what it was before, nobody needs to know.
        let (node, protocol) = [(1, 0), (1, 1), (2, 1), (2, 2)][random.below(4) as usize];
        let change = ["enable", "disable", "restart"][random.below(3) as usize];
        let pause = random.below(400);
        if process == "manager" {
            deaths += 1;
            if deaths % MANAGER_DEATHS == 0 {
                steps += "exec r \"sleep 11\";\n";
            }
        }
        let _ = write!(
            steps,
            "exec as6500{node} \"birdc {change} p{protocol}\";
             exec r \"sleep 0.{pause:03}\";
             exec r \"sh ../kill.sh {process}\" timeout 60s;\n"
        );
    }
    steps
}

fn lab(times: usize, seed: u64) -> String {
    let wait = "exec r \"sh ../settled.sh\" timeout 120s;\n";
    let all = |number: u32, protocols: [u32; 2]| {
        protocols.map(|protocol| format!("exec as6500{number} \"birdc enable p{protocol}\";\n"))
    };
    let steps = "exec r \"sysctl -qw net.ipv4.ip_forward=1\";
           exec as65002 \"ip address add 203.0.113.1/32 dev lo\";\n"
        .to_owned()
        + wait
        + "run as65001 \"sh -c 'echo $$ > ping.pid; exec ping -i 0.02 -q 203.0.113.1'\" as ping;\n"
        + &kills(times, seed)
        + &all(1, [0, 1]).concat()
        + &all(2, [1, 2]).concat()
        + wait
        + "exec as65001 \"sh -c 'kill -INT $(cat ping.pid)'\";
           wait-exit ping;
           expect-output ping \" 0% packet loss\";";
    format!("version 1;\nlab bgp-killed {{{NETWORK}scenario default {{ {steps} }}\n}}\n")
}

fn check(times: usize, seed: u64) {
    if !is_root() {
        return;
    }
    let mut expected: Vec<_> = (0..3).flat_map(networks).collect();
    expected.push("203.0.113.0/24".to_owned());
    expected.sort();
    let expected = expected.join("\n") + "\n";
    let files = [
        ("kill.sh", KILL),
        ("settled.sh", SETTLED),
        ("expected", &expected),
        ("bird1.conf", &bird(1, [0, 1])),
        ("bird2.conf", &bird(2, [1, 2])),
    ];
    let ran = run("bgp-killed", &lab(times, seed), &files, &[]);
    println!("{}", ran.stderr);
}

#[test]
fn each_process_of_a_router_is_killed_under_load_and_no_route_is_lost_or_kept() {
    check(5, 1);
}

#[test]
#[ignore = "takes long; make soak runs it"]
fn soak_each_process_of_a_router_is_killed_fifty_times() {
    check(50, 2);
}
