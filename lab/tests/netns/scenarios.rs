//! What scenarios do and expect.

use crate::support::{Bench, assert_gone, is_root};

/// Two hosts with two routers between them.
fn chain(name: &str, scenario: &str) -> String {
    format!(
        "version 1;
lab {name} {{
    seed 1;
    node a {{ kind linux; }}
    node r1 {{ kind linux; }}
    node r2 {{ kind linux; }}
    node b {{ kind linux; }}
    link a:eth0 r1:eth0 {{ address 10.0.1.1/24 10.0.1.2/24; }}
    link r1:eth1 r2:eth0 {{ address 10.0.2.1/24 10.0.2.2/24; }}
    link r2:eth1 b:eth0 {{ address 10.0.3.2/24 10.0.3.1/24; }}
    route a 10.0.0.0/8 via 10.0.1.2;
    route r1 10.0.3.0/24 via 10.0.2.2;
    route r2 10.0.1.0/24 via 10.0.2.1;
    route b 10.0.0.0/8 via 10.0.3.2;
    scenario default {{ {scenario} }}
}}"
    )
}

#[test]
fn packets_pass_two_routers() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let outcome = bench.succeed(&chain(
        "chain",
        "run b 'weft echo 10.0.3.1:7' as echo;
         wait-output echo \"echo is ready\";
         exec a \"weft ping 10.0.3.1:7 5\" as ping;
         expect-output ping \"answers 5 of 5\";
         expect-running echo;
         cut r1:eth1;
         exec a \"weft ping 10.0.3.1:7 2\" as cut;
         expect-output cut \"answers 0 of 2\";
         restore r2:eth0;
         exec a \"weft ping 10.0.3.1:7 5\" as restored;
         expect-output restored \"answers 5 of 5\";"
            .replace('\'', "\"")
            .as_str(),
    ));
    assert_eq!(outcome.steps.len(), 11);
    assert!(outcome.steps.is_sorted_by_key(|step| step.begin_ns));
    assert_eq!(outcome.processes.len(), 4);
    assert_gone("chain");
}
