//! What links do to packets.

use std::fs;
use std::process::Command;

use weft_lab::Outcome;

use crate::support::{Bench, assert_gone, is_root};

/// Two hosts with a link of these properties.
fn pair(name: &str, link: &str, scenario: &str) -> String {
    format!(
        "version 1;
lab {name} {{
    seed 7;
    node a {{ kind linux; }}
    node b {{ kind linux; }}
    link a:eth0 b:eth0 {{ address 10.0.0.1/24 10.0.0.2/24; {link} }}
    scenario default {{ {scenario} }}
}}"
    )
}

/// Until the neighbour is known, the kernel keeps only the last packets of a burst.
const NEIGHBOURS: &str = "exec a \"ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0\";
    exec b \"ip neighbour add 10.0.0.1 lladdr 02:00:00:00:00:01 dev eth0\";";

/// Sends `count` datagrams of 1,000 bytes over a link. The numbers of those that got lost, and how
/// long it took from the first one's departure to the last one's arrival, in milliseconds.
fn send(bench: &Bench, name: &str, link: &str, count: u32) -> (String, u64) {
    let scenario = format!(
        "{NEIGHBOURS}
         run b \"weft receive 10.0.0.2:9 {count}\" as receiver;
         wait-output receiver \"receiver is ready\";
         exec a \"weft send 10.0.0.2:9 {count} 1000\";
         wait-exit receiver;"
    );
    bench.succeed(&pair(name, link, &scenario));
    assert_gone(name);
    let said = bench.stdout("receiver");
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let took = value("took ").strip_suffix(" ms").unwrap().parse().unwrap();
    (value("lost "), took)
}

fn lost(list: &str) -> usize {
    list.matches(|c: char| c.is_ascii_digit()).count().min(list.split(',').count())
}

#[test]
fn loss_in_the_kernel_follows_from_the_seed() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let (first, _) = send(&bench, "loss-a", "loss 20%;", 100);
    let (second, _) = send(&bench, "loss-a", "loss 20%;", 100);
    assert_eq!(first, second, "the same seed loses the same packets");
    assert!((5..=40).contains(&lost(&first)), "{first}");
    let (none, _) = send(&bench, "loss-a", "", 100);
    assert_eq!(none, "[]");
}

#[test]
fn user_space_links_delay_and_lose() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let (first, _) = send(&bench, "delay-a", "loss 20%; delay 2ms;", 100);
    assert!((5..=40).contains(&lost(&first)), "{first}");
    let scenario = "run b \"weft echo 10.0.0.2:7\" as echo;
         wait-output echo \"echo is ready\";
         exec a \"weft ping 10.0.0.2:7 10\" as ping;
         expect-output ping \"answers 10 of 10\";
         loss a:eth0 100%;
         exec a \"weft no-ping 10.0.0.2:7 1\" as lost;
         expect-output lost \"answers 0 of 1\";
         loss a:eth0 0%; cut b:eth0;
         exec a \"weft no-ping 10.0.0.2:7 1\" as cut;
         expect-output cut \"answers 0 of 1\";
         restore b:eth0;
         exec a \"weft ping 10.0.0.2:7 1\" as restored;
         expect-output restored \"answers 1 of 1\";";
    let outcome: Outcome = bench.succeed(&pair("delay-b", "delay 10ms;", scenario));
    let ping = outcome.steps.iter().find(|step| step.step.ends_with("as ping")).unwrap();
    assert!(ping.end_ns - ping.begin_ns >= 10 * 20_000_000, "ten round trips of 20 ms");
    assert_gone("delay-b");
}

#[test]
fn rates_limit_what_passes_a_link() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    for (name, link) in [
        ("rate-kernel", "rate 4Mbit/s; queue 1MiB;"),
        ("rate-user", "rate 4Mbit/s; queue 1MiB; delay 1ms;"),
        // Without a size the queue holds 1,000 packets.
        ("default-kernel", "rate 4Mbit/s;"),
        ("default-user", "rate 4Mbit/s; delay 1ms;"),
    ] {
        // 200 frames of 1,042 bytes at 4 Mbit/s take 417 ms; 16 KiB may go at once.
        let (lost, took) = send(&bench, name, link, 200);
        assert_eq!(lost, "[]");
        assert!(took >= 350, "{name} took {took} ms");
    }
}

#[test]
fn frames_of_any_length_pass_links_with_a_rate() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    for (name, link) in [
        ("long-kernel", "rate 100Mbit/s; mtu 40000; queue 0B;"),
        ("long-user", "rate 100Mbit/s; mtu 40000; queue 0B; delay 1ms;"),
    ] {
        let scenario = "run b \"weft echo 10.0.0.2:7\" as echo;
             wait-output echo \"echo is ready\";
             exec a \"weft reach 10.0.0.2:7 39000\";";
        bench.succeed(&pair(name, link, scenario));
    }
}

#[test]
fn captures_show_both_ends_to_other_programs() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let path = bench.directory.path().join("capture.pcapng");
    let scenario = "run b \"weft echo 10.0.0.2:7\" as echo;
         wait-output echo \"echo is ready\";
         exec a \"weft ping 10.0.0.2:7 3\";";
    let outcome = bench.run_with(&pair("capture", "", scenario), |options| {
        options.capture = Some(path.clone());
    });
    assert_eq!(outcome.unwrap().error, None);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    for name in [b"a:eth0", b"b:eth0"] {
        assert!(bytes.windows(name.len()).any(|window| window == name));
    }
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "udp.dstport"];
    let tshark = Command::new("tshark").arg("-r").arg(&path).args(fields).output();
    let Ok(tshark) = tshark else {
        return weft_port::testing::lacks("tshark");
    };
    let text = String::from_utf8(tshark.stdout).unwrap();
    let at = |name: &str| text.lines().filter(|line| *line == format!("{name}\t7")).count();
    assert_eq!((at("a:eth0"), at("b:eth0")), (3, 3), "{text}");
}
