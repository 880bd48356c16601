//! `weft metrics` and `weft show counters --prometheus`: what Prometheus would read.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use weft_port::testing::{Namespace, lacks, privileged};

use crate::processes::Node;
use crate::support::Running;

/// Reads the text as Prometheus' own Python client does, and prints what it found.
const PARSE: &str = "
import sys
from prometheus_client.parser import text_string_to_metric_families as parse
for family in parse(sys.stdin.read()):
    assert family.documentation and family.type in ('counter', 'gauge'), family
    for sample in family.samples:
        print(sample.name, *sorted(f'{k}={v}' for k, v in sample.labels.items()), int(sample.value))
";

fn parsed(text: &str) -> Option<String> {
    let python = |python: &str, code: &str| {
        let mut command = Command::new(python);
        command.args(["-c", code]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        command
    };
    let has_it = |one: &&str| {
        let found = python(one, "import prometheus_client").output();
        found.is_ok_and(|output| output.status.success())
    };
    // Distributions install it for their own Python, which need not be the first one.
    let Some(found) = ["python3", "/usr/bin/python3"].into_iter().find(has_it) else {
        lacks("python3-prometheus-client");
        return None;
    };
    let mut child = python(found, PARSE).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_scraper_reads_what_the_node_counts() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link set lo up");
    let node = namespace.run(Node::start);
    let server = Running::start(node.command("metrics", &["--listen", "127.0.0.1:0"]));
    let line = server.wait_for("metrics at http://");
    let address = line.trim_start_matches("metrics at http://").trim_end_matches("/metrics");
    let address: SocketAddr = address.parse().unwrap();
    // One that says nothing keeps nobody from the answer.
    let _silent = TcpStream::connect(address).unwrap();
    let answer = ask(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())), "{head}");
    if let Some(found) = parsed(text) {
        for part in [
            "weft_process_running class=xia node=r1 process=xia 1",
            "weft_xip_drops_total component=xia node=r1 reason=hop-limit 0",
            "weft_process_restarts_total class=fea node=r1 process=fea 0",
            "weft_interface_running interface=lo node=r1 ",
        ] {
            assert!(found.contains(part), "`{part}` is missing: {found}");
        }
    }
    // What routing is like, as soon as there is any.
    let commands = [
        "set rib",
        "set bgp as 65000",
        "set bgp router-id 192.0.2.1",
        "set bgp peer 192.0.2.2 as 65001",
        "set bgp peer 192.0.2.2 passive on",
        "commit",
    ];
    assert!(!text.contains("weft_bgp_") && !text.contains("weft_rib_"), "{text}");
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let done = node.run("configure", &commands.collect::<Vec<_>>());
    assert_eq!(done.status, Some(0), "{done:?}");
    let now = || node.run("show", &["counters", "--prometheus"]).stdout;
    node.wait_until(|| now().contains("weft_bgp_tells_rib{node=\"r1\"} 1\n"));
    node.wait_until(|| now().contains("weft_kernel_table_following{"));
    if let Some(found) = parsed(&now()) {
        for part in [
            "weft_bgp_peers node=r1 1",
            "weft_bgp_peer_up as=65001 node=r1 peer=192.0.2.2 0",
            "weft_bgp_peer_up_seconds as=65001 node=r1 peer=192.0.2.2 0",
            "weft_bgp_peer_paths as=65001 family=ipv4 node=r1 peer=192.0.2.2 0",
            "weft_bgp_prefixes family=ipv6 node=r1 0",
            "weft_rib_prefixes family=ipv6 node=r1 ",
            "weft_rib_changes_refused_total family=ipv4 node=r1 0",
            "weft_kernel_routes_refused family=ipv4 node=r1 owner=rib table=254 0",
            "weft_kernel_routes_waiting family=ipv4 node=r1 owner=rib table=254 0",
        ] {
            assert!(found.contains(part), "`{part}` is missing: {found}");
        }
    }
    for (request, status) in [
        (&b"HEAD /metrics HTTP/1.1\r\n\r\n"[..], "200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"\x16\x03\x01\x00\xa5", "400 Bad Request"),
        (&[b'a'; 8192], "431 Request Header Fields Too Large"),
    ] {
        let answer = ask(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{status}: {answer}");
    }
    let printed = node.run("show", &["counters", "--prometheus"]).stdout;
    assert!(printed.contains("# TYPE weft_xip_drops_total counter\n"), "{printed}");
    // A node that has ended is no empty answer.
    drop(node);
    let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
}
