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
        "run b \"weft echo 10.0.3.1:7\" as echo;
         wait-output echo \"echo is ready\";
         exec a \"weft ping 10.0.3.1:7 5\" as ping;
         expect-output ping \"answers 5 of 5\";
         expect-running echo;
         cut r1:eth1;
         exec a \"weft no-ping 10.0.3.1:7 2\" as cut;
         expect-output cut \"answers 0 of 2\";
         restore r2:eth0;
         exec a \"weft ping 10.0.3.1:7 5\" as restored;
         expect-output restored \"answers 5 of 5\";",
    ));
    assert_eq!(outcome.steps.len(), 11);
    assert!(outcome.steps.is_sorted_by_key(|step| step.begin_ns));
    assert_eq!(outcome.processes.len(), 4);
    assert_gone("chain");
}

/// Nodes that run something, without links.
fn nodes(name: &str, scenario: &str) -> String {
    format!(
        "version 1;
lab {name} {{
    variable TEXT default \"a text\";
    alias both joined @s @TEXT;
    node s {{ kind weft; config {{ say @both; block {{ inner @@; }} }} }}
    node c {{ kind command; run \"sh -c 'echo started; exec sleep 1000'\"; ready started; }}
    node l {{ kind linux; }}
    file data size 100000B;
    scenario default {{ {scenario} }}
}}"
    )
}

#[test]
fn stacks_get_their_configuration_and_names_are_replaced() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.succeed(&nodes(
        "names",
        "exec s \"weft run-dir\" as dir;
         expect-output dir \"/s\";
         exec l \"sh -c 'echo \\\"@both\\\"'\" as both;
         say \"@both\";",
    ));
    let stack = bench.stdout("s");
    assert!(stack.contains(r"version 1;\nnode s;\nsay "), "{stack}");
    assert!(stack.contains(r"block {\n    inner @;\n}"), "{stack}");
    let both = bench.stdout("both");
    assert!(both.starts_with("s-") && both.ends_with(":a text\n"), "{both}");
    assert_gone("names");
}

#[test]
fn processes_are_stopped_killed_and_started_again() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let outcome = bench.succeed(&nodes(
        "again",
        "expect-running s; expect-running c;
         restart s; expect-running s;
         kill c; start c; expect-running c;
         stop s; start s;",
    ));
    assert_eq!(outcome.steps.len(), 9);
    assert_eq!(bench.stdout("s").matches("stack is ready").count(), 3);
    assert_eq!(bench.stdout("c").matches("started").count(), 2);
    assert_gone("again");
}

#[test]
fn broken_expectations_fail_with_the_place_and_the_reason() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let cases = [
        (
            "exec l \"sh -c 'echo oops >&2; exit 3'\";",
            "exited with status 3, expected was status 0; it said: oops",
        ),
        ("exec l \"sleep 1000\" timeout 10ms;", "did not end within 10ms"),
        ("run l \"true\" as t; wait-output t \"never\";", "exited with status 0 without writing"),
        ("expect-output c \"finished\";", "c has not written \"finished\"; it said: started"),
        ("kill c; expect-running c;", "c was ended by signal 9"),
        ("start c;", "c still runs"),
        (
            "exec l \"cp data copy\"; exec l \"sh -c 'echo x >> copy'\"; expect-files-equal data copy;",
            "differ from byte 100000 on",
        ),
        ("expect-files-equal data nothing;", "nothing: No such file"),
        ("exec l \"/does/not/exist\";", "there is no such program"),
    ];
    for (scenario, reason) in cases {
        let error = bench.fail(&nodes("fails", scenario));
        assert!(error.contains(reason), "{error}");
        assert!(error.starts_with("test.lab:"), "{error}");
    }
    assert_gone("fails");
}

#[test]
fn equal_files_and_times_are_as_expected() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let outcome = bench.succeed(&nodes(
        "times",
        "exec l \"cp data copy\"; expect-files-equal data copy data;
         at 300ms; after 100ms; exec l \"false\" status 1;",
    ));
    assert!(outcome.time_ns >= 400_000_000);
    assert_gone("times");
}

#[test]
fn deleted_interfaces_are_gone() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let error =
        bench.fail(&chain("deleted", "delete-interface a:eth0; exec a \"ip link show eth0\";"));
    assert!(error.contains("does not exist"), "{error}");
    assert_gone("deleted");
}

#[test]
fn mistakes_that_only_the_host_knows_are_told_before_anything_is_built() {
    let bench = Bench::new();
    let cases = [
        ("alias x strange words;", "`strange` is no kind of alias"),
        ("node w { kind weft; config { wrong; } }", "the configuration of node `w` is wrong"),
    ];
    for (statement, reason) in cases {
        let text = format!("version 1; lab told {{ {statement} scenario default {{ }} }}");
        let error = bench.run(&text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(error.starts_with("test.lab:1:"), "{error}");
        assert!(!bench.output().exists());
    }
}

#[test]
fn interfaces_may_have_names_that_ip_takes_for_words() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.succeed(
        "version 1;
lab words {
    node a { kind linux; }
    node b { kind linux; }
    link a:up b:dev { address 10.0.0.1/24 10.0.0.2/24; rate 1Gbit/s; }
    link a:down b:mtu { delay 1ms; }
    scenario default {
        run b \"weft echo 10.0.0.2:7\" as echo;
        wait-output echo \"echo is ready\";
        exec a \"weft reach 10.0.0.2:7\";
        exec a \"ip link show dev down\";
        delete-interface b:mtu;
        exec b \"ip link show dev mtu\" status 1;
    }
}",
    );
    assert_gone("words");
}
