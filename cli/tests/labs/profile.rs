//! Profile points: a route's way from BIRD through BGP, the RIB and the FEA into the kernel.

use serde_json::Value;

use crate::network::run;
use crate::support::is_root;

const BIRD: &str = "
router id 10.0.1.2;
protocol device { }
# The way to the next hop is known when the other route comes.
protocol static anchor { ipv4; route 203.0.113.0/24 blackhole; }
protocol static probe { disabled; ipv4; route 198.51.100.0/24 blackhole; }
protocol bgp r {
    local as 65001;
    neighbor 10.0.1.1 as 65000;
    ipv4 { import none; export all; };
    connect delay time 1;
    error wait time 1, 1;
}
";

const LAB: &str = r#"
version 1;
lab profile {
    file bird-conf from bird.conf;
    node peer { kind linux; }
    node r {
        kind weft;
        config {
            rib;
            bgp { as 65000; router-id 10.0.1.1; peer 10.0.1.2 { as 65001; import all; export all; } }
        }
    }
    link r:eth0 peer:eth0 { address 10.0.1.1/24 10.0.1.2/24; }
    scenario default {
        exec r "sh -c 'until weft show protocol && weft show profile; do sleep 0.02; done'";
        exec r "weft profile on" as points;
        expect-output points "fea/kernel: entering the kernel";
        run peer "bird -f -c bird-conf -s bird.ctl" as bird;
        exec r "sh -c 'until ip route show 203.0.113.0/24 | grep -q 10.0.1.2; do sleep 0.02; done'";
        exec peer "birdc -s bird.ctl enable probe";
        exec r "sh -c 'until weft show profile --marks | grep -q \"fea/taken.* add 198\"; do sleep 0.02; done'";
        exec peer "birdc -s bird.ctl disable probe";
        exec r "sh -c 'until weft show profile --marks | grep -q \"fea/taken.* delete 198\"; do sleep 0.02; done'";
        exec r "weft show profile 198.51.100.0/24 --json" as table;
        exec r "weft show profile" as people;
        expect-output people "arriving at the RIB";
        exec r "weft profile on bgp/nowhere" as unknown status 1;
        exec r "weft profile off";
        exec r "weft profile clear";
        exec r "weft show profile" as nothing;
        expect-output nothing "nothing was recorded";
    }
}
"#;

/// The paper's points, and what the kernel says; nobody else is told of the route.
const POINTS: [&str; 9] = [
    "bgp/entered",
    "bgp/queued",
    "bgp/sent",
    "rib/arrived",
    "rib/queued",
    "rib/sent",
    "fea/arrived",
    "fea/kernel",
    "fea/taken",
];

#[test]
fn a_route_passes_every_point_on_its_way_into_the_kernel_and_out_of_it() {
    if !is_root() {
        return;
    }
    let ran = run("profile", LAB, &[("bird.conf", BIRD)], &[]);
    let table = std::fs::read_to_string(ran.path("logs/table.stdout")).unwrap();
    let table: Value = serde_json::from_str(&table).unwrap();
    for change in ["announced", "withdrawn"] {
        let rows = table["points"].as_array().unwrap().iter();
        let rows: Vec<_> = rows.filter(|row| row["change"] == change).collect();
        let name = |row: &&Value| {
            format!("{}/{}", row["component"].as_str().unwrap(), row["point"].as_str().unwrap())
        };
        assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), POINTS, "{change}");
        assert!(rows.iter().all(|row| row["routes"] == 1), "{table}");
        let times: Vec<_> = rows.iter().map(|row| row["max"].as_f64().unwrap()).collect();
        assert!(times.is_sorted() && times[8] > 0.0, "{times:?}");
    }
}
