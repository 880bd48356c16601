//! The same scenarios in virtual time: equal runs, faults, and what the simulator refuses.

// All of this file is tests, helpers too.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use weft_base::{FileId, Instant, LinkAddress, Packet, PortId, Random, Token};
use weft_lab::{EngineKind, Host, Lab, LabError, Log, Options, Outcome, SimNode, Variables, run};
use weft_port::PortSpec;
use weft_runtime::sim::Spawn;
use weft_runtime::{Action, Component, DiskReply, DiskRequest, Event, OpenMode, Process};

/// Sends every datagram back.
struct Echo(SocketAddr);

impl Component for Echo {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => out.push(open(self.0)),
            Event::PortOpened { .. } => out.push(Action::Print { line: "echo is ready".into() }),
            Event::Packets { port, packets } => {
                out.extend(packets.into_iter().map(|packet| Action::Transmit { port, packet }));
            }
            Event::Stop => out.push(Action::Exit { status: 0 }),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Sends a datagram every 10 ms, and counts the answers until 100 ms after the last one.
struct Ping {
    to: SocketAddr,
    left: u64,
    count: u64,
    answers: u64,
    port: Option<PortId>,
    next: Instant,
}

impl Component for Ping {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => out.push(open("0.0.0.0:0".parse().unwrap())),
            Event::PortOpened { port, .. } => (self.port, self.next) = (Some(port), now),
            Event::Packets { packets, .. } => self.answers += packets.len() as u64,
            _ => {}
        }
        let Some(port) = self.port.filter(|_| now >= self.next) else { return };
        if self.left == 0 {
            let line = format!("answers {} of {}", self.answers, self.count);
            out.extend([Action::Print { line }, Action::Exit { status: 0 }]);
            return;
        }
        self.left -= 1;
        let pause = if self.left == 0 { 100 } else { 10 };
        self.next = now + Duration::from_millis(pause);
        let mut packet = Packet::from_slice(&self.left.to_be_bytes());
        packet.meta.link = LinkAddress::Udp(self.to);
        out.push(Action::Transmit { port, packet });
    }

    fn deadline(&self) -> Option<Instant> {
        self.port.map(|_| self.next)
    }
}

fn open(local: SocketAddr) -> Action {
    Action::OpenPort { token: Token(1), spec: PortSpec::Udp { local } }
}

/// Prints one line and then waits for its end, if it has one.
struct Say {
    lines: Vec<String>,
    ends: bool,
}

impl Component for Say {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                out.extend(self.lines.drain(..).map(|line| Action::Print { line }));
                if self.ends {
                    out.push(Action::Exit { status: 0 });
                }
            }
            Event::Stop => out.push(Action::Exit { status: 0 }),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Writes bytes to standard output as a file, in pieces, and goes on for ever.
struct Write {
    pieces: Vec<&'static str>,
    file: Option<FileId>,
}

impl Component for Write {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let request = DiskRequest::Open { path: "-".into(), mode: OpenMode::Replace };
                out.push(Action::Disk { token: Token(0), request });
            }
            Event::Disk { result: Ok(DiskReply::Opened { file, .. }), .. } => {
                self.file = Some(file);
            }
            _ => {}
        }
        if let Some(file) = self.file.filter(|_| !self.pieces.is_empty()) {
            let bytes = self.pieces.remove(0).as_bytes().to_vec();
            let request = DiskRequest::Write { file, offset: 0, bytes };
            out.push(Action::Disk { token: Token(1), request });
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

struct TestHost;

impl Host for TestHost {
    fn program(&self) -> &Path {
        Path::new("/does/not/exist")
    }

    fn alias(&self, _: &str, words: &[String]) -> Result<String, String> {
        Ok(words.concat())
    }

    fn identifier(&self, node: &str, mut identity: Random) -> Result<String, String> {
        Ok(format!("{node}-{}", identity.number()))
    }

    fn check(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&self, _: &str, _: &Path, _: Random) -> Result<(), String> {
        Err("nothing is prepared in the simulator".into())
    }

    fn node_arguments(&self, _: &Path, _: &Path) -> Vec<OsString> {
        Vec::new()
    }

    fn ready(&self, _: &str) -> &str {
        "stack is ready"
    }

    fn link_arguments(&self) -> Vec<OsString> {
        Vec::new()
    }

    fn router_arguments(&self) -> Vec<OsString> {
        vec!["router".into()]
    }

    fn trace_arguments(&self, one_in: NonZeroU64) -> Vec<String> {
        vec!["trace".into(), one_in.to_string()]
    }

    fn visits_arguments(&self) -> Vec<String> {
        vec!["visits".into()]
    }

    fn node_process(
        &self,
        node: &SimNode<'_>,
        config: &str,
        mut identity: Random,
        _: Random,
    ) -> Result<Spawn, String> {
        if config.contains("broken") {
            let lines = vec!["the configuration is broken".into()];
            return Ok(Spawn::new(node.name, Box::new(Say { lines, ends: true })));
        }
        let name = format!("{}-{} {}", node.name, identity.number(), node.run_dir.display());
        let lines = vec![name, format!("{config:?}"), "stack is ready".into()];
        Ok(Spawn::new(node.name, Box::new(Say { lines, ends: false })))
    }

    fn command_process(
        &self,
        node: &SimNode<'_>,
        words: &[String],
        _: Random,
    ) -> Result<Box<dyn Process>, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let address = |text: &str| text.parse::<SocketAddr>().map_err(|error| error.to_string());
        Ok(match words.as_slice() {
            ["echo", local] => Box::new(Echo(address(local)?)),
            ["ping", to, count] => {
                let count = count.parse().unwrap();
                let (to, next) = (address(to)?, Instant::ZERO);
                Box::new(Ping { to, left: count, count, answers: 0, port: None, next })
            }
            ["write"] => Box::new(Write { pieces: vec!["a line\nhel", "lo\n"], file: None }),
            ["trace", _] => Box::new(Say { lines: Vec::new(), ends: true }),
            ["visits"] => {
                let time = if node.name == "s" { 7_000_000 } else { 5_000_000 };
                let line = format!(
                    r#"[{{"packet": "abc", "time_ns": {time}, "from": "eth0", "steps": []}}]"#
                );
                Box::new(Say { lines: vec![line], ends: true })
            }
            _ => return Err(format!("{words:?} is no command")),
        })
    }
}

struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn try_run(&self, text: &str, seed: Option<u64>) -> Result<(Outcome, String), LabError> {
        let mut lab = Lab::parse("test.lab", text, &Variables::new())?;
        seed.into_iter().for_each(|seed| lab.set_seed(seed));
        let options = Options {
            engine: EngineKind::Sim,
            output: Some(self.path("out")),
            capture: Some(self.path("capture.pcapng")),
            ..Options::default()
        };
        let mut log = Vec::new();
        let outcome = run(&lab, &options, &TestHost, &mut Log::new(&mut log))?;
        Ok((outcome, String::from_utf8(log).unwrap()))
    }

    fn run(&self, text: &str) -> (Outcome, String) {
        self.try_run(text, None).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Two hosts with two routers between them, and 10 ms each way.
fn chain(scenario: &str) -> String {
    format!(
        "version 1;
lab chain {{
    seed 1;
    node a {{ kind linux; }}
    node r1 {{ kind linux; }}
    node r2 {{ kind linux; }}
    node b {{ kind linux; }}
    link-defaults {{ loss 5%; }}
    link a:eth0 r1:eth0 {{ address 10.0.1.1/24 10.0.1.2/24; }}
    link r1:eth1 r2:eth0 {{ address 10.0.2.1/24 10.0.2.2/24; delay 10ms; }}
    link r2:eth1 b:eth0 {{ address 10.0.3.2/24 10.0.3.1/24; }}
    route a 10.0.0.0/8 via 10.0.1.2;
    route r1 10.0.3.0/24 via 10.0.2.2;
    route r2 10.0.1.0/24 via 10.0.2.1;
    route b 10.0.0.0/8 via 10.0.3.2;
    file data size 100kB;
    file other size 100kB;
    scenario default {{ {scenario} }}
}}"
    )
}

const PINGS: &str = "run b \"weft echo 10.0.3.1:7\" as echo;
    wait-output echo \"echo is ready\";
    exec a \"weft ping 10.0.3.1:7 100\" as ping;
    expect-running echo;";

#[test]
fn runs_of_one_seed_are_equal_and_those_of_another_differ() {
    let run = |seed| {
        let bench = Bench::new();
        let (outcome, _) = bench.try_run(&chain(PINGS), Some(seed)).unwrap();
        assert_eq!(outcome.error, None);
        let said = fs::read_to_string(bench.path("out/logs/ping.stdout")).unwrap();
        (outcome.trace_hash.unwrap(), outcome.time_ns, said)
    };
    let (first, second, other) = (run(1), run(1), run(2));
    assert_eq!(first, second);
    assert_ne!(first.0, other.0);
    assert_eq!(first.1, 99 * 10_000_000 + 100_000_000, "virtual time is exact");
    let answers: u64 = first.2.split(' ').nth(1).unwrap().parse().unwrap();
    assert!((50..90).contains(&answers), "six times 5 % are lost: {}", first.2);
}

#[test]
fn links_are_changed_and_cut_at_exact_times() {
    let scenario = "run b \"weft echo 10.0.3.1:7\" as echo;
        loss a:eth0 0%; loss r1:eth1 0%; loss r2:eth1 0%;
        exec a \"weft ping 10.0.3.1:7 5\" as all; expect-output all \"answers 5 of 5\";
        cut r2:eth0;
        exec a \"weft ping 10.0.3.1:7 5\" as none; expect-output none \"answers 0 of 5\";
        restore r1:eth1;
        exec a \"weft ping 10.0.3.1:7 5\" as again; expect-output again \"answers 5 of 5\";
        delete-interface b:eth0;
        exec a \"weft ping 10.0.3.1:7 5\" as gone; expect-output gone \"answers 0 of 5\";
        stop echo;
        at 1h; after 1min;";
    let (outcome, log) = Bench::new().run(&chain(scenario));
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.time_ns, 3660 * 1_000_000_000);
    assert!(log.contains("[    0.140s] 7/18"), "{log}");
}

#[test]
fn bytes_that_are_written_as_a_file_are_output() {
    let scenario = "run a \"weft write\" as w; wait-output w \"hello\" timeout 1s;
        expect-output w \"a line\"; expect-running w;";
    let (outcome, _) = Bench::new().run(&chain(scenario));
    assert_eq!(outcome.error, None);
}

#[test]
fn broken_expectations_fail_with_the_place_and_the_reason() {
    let bench = Bench::new();
    let cases = [
        ("expect-files-equal data data; expect-files-equal data other;", "differ from byte 0 on"),
        ("expect-files-equal data nothing;", "nothing"),
        ("run b \"weft echo 10.0.3.1:7\" as e; wait-exit e timeout 5s;", "did not end within 5s"),
        (
            "run b \"weft echo 10.0.3.1:7\" as e; kill e; expect-running e;",
            "e was ended by signal 9",
        ),
        ("exec a \"weft dance\";", "is no command"),
        (
            "run a \"weft ping 10.0.3.1:7 1\" as p; wait-output p \"never\";",
            "exited with status 0 without writing \"never\"; it said: answers 0 of 1",
        ),
        (
            "exec a \"weft ping 10.0.3.1:7 1\" status 1;",
            "expected was status 1; it said: answers 0 of 1; packets dropped by nodes so far: 1 no-socket at b",
        ),
    ];
    for (scenario, reason) in cases {
        let (outcome, _) = bench.run(&chain(scenario));
        let error = outcome.error.unwrap();
        assert!(error.contains(reason), "{error}");
        assert!(error.starts_with("test.lab:"), "{error}");
    }
}

#[test]
fn stacks_have_the_identity_of_their_names_and_traces_are_joined() {
    let text = "version 1;
lab stacks {
    node s { kind weft; config { peer @t; } }
    node t { kind weft; config { } }
    link s:eth0 t:eth0;
    scenario default { trace; restart s; show-trace; say \"@s\"; }
}";
    let bench = Bench::new();
    let (outcome, log) = bench.run(text);
    assert_eq!(outcome.error, None);
    let said = log.lines().last().unwrap();
    let stack = fs::read_to_string(bench.path("out/logs/s.stdout")).unwrap();
    assert!(stack.starts_with(&format!("{said} /run/s\n")), "{stack}{said}");
    assert!(stack.contains("peer t-"), "{stack}");
    assert!(log.contains("packet abc\n    0.000000 ms  t  from eth0\n    2.000000 ms  s"), "{log}");
}

#[test]
fn foreign_programs_are_refused_before_anything_is_built() {
    let bench = Bench::new();
    let text = "version 1;
lab foreign {
    node a { kind command; run \"sleep 1\"; }
    node b { kind linux; }
    scenario default { exec b \"true\"; }
}";
    let error = bench.try_run(text, None).unwrap_err().to_string();
    assert!(error.contains("test.lab:3:10: node `a` runs a program of its own"), "{error}");
    assert!(error.contains("test.lab:5:31: the simulator runs only `weft` commands"), "{error}");
    assert!(!bench.path("out").exists());
}

#[test]
fn captures_hold_every_frame_at_every_interface() {
    let bench = Bench::new();
    bench.run(&chain(PINGS));
    let bytes = fs::read(bench.path("capture.pcapng")).unwrap();
    let (mut rest, mut kinds) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        kinds.push(word(0));
        rest = &rest[word(4) as usize..];
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == 1).count(), 6, "interfaces");
    let frames = kinds.iter().filter(|kind| **kind == 6).count();
    // 100 requests over three links, each seen twice, and the answers; a part of them is lost.
    assert!((800..1200).contains(&frames), "{frames}");
}

#[test]
fn routers_of_others_are_refused_before_anything_is_built() {
    let bench = Bench::new();
    let text = "version 1;
lab routers {
    node a { kind gobgp; config /no/such/file; }
    node b { kind linux; }
    link a:up b:up { address6 2001:db8::1/64 2001:db8::2/64; }
    scenario default { until a \"gobgp global\" says AS; }
}";
    let error = bench.try_run(text, None).unwrap_err().to_string();
    assert!(error.contains("test.lab:3:10: node `a` is a router of kind `gobgp`"), "{error}");
    assert!(error.contains("test.lab:5:31: simulated links have no addresses of IPv6"), "{error}");
    assert!(error.contains("test.lab:6:32: the simulator runs only `weft` commands"), "{error}");
    assert!(!bench.path("out").exists());
}

#[test]
fn a_simulated_command_is_repeated_in_virtual_time() {
    let bench = Bench::new();
    let text = "version 1;
lab again {
    node s { kind weft; config { } start off; }
    scenario default {
        start s;
        until s \"weft visits\" says abc;
        until s \"weft visits\" says never timeout 1s;
    }
}";
    let (outcome, _) = bench.run(text);
    let error = outcome.error.unwrap();
    assert!(error.contains("test.lab:7:9"), "{error}");
    assert!(
        error.contains("did not write \"never\" within 1s; at last it exited with status 0"),
        "{error}"
    );
    assert!(outcome.time_ns >= 1_000_000_000, "virtual time has passed");
}

#[test]
fn what_was_never_started_does_not_run() {
    let text = "version 1;
lab deferred {
    node s { kind weft; config { } start off; }
    scenario default { expect-running s; }
}";
    let (outcome, _) = Bench::new().run(text);
    let error = outcome.error.unwrap();
    assert!(error.ends_with("s was not started"), "{error}");
}

#[test]
fn logs_keep_what_every_process_of_a_name_has_written() {
    let bench = Bench::new();
    let text = "version 1;
lab again {
    node s { kind weft; config { } }
    scenario default { restart s; until s \"weft visits\" says never timeout 30ms; }
}";
    bench.run(text);
    let log = |name: &str| fs::read_to_string(bench.path(&format!("out/logs/{name}"))).unwrap();
    assert_eq!(log("s.stdout").matches("stack is ready").count(), 2);
    assert!(log("exec.1.stdout").matches("abc").count() > 1, "{}", log("exec.1.stdout"));
}

#[test]
fn logs_are_kept_of_nodes_that_do_not_start() {
    let bench = Bench::new();
    let text = "version 1;
lab broken {
    node s { kind weft; config { broken; } }
    node t { kind weft; config { } }
    link s:eth0 t:eth0;
    scenario default { say \"never\"; }
}";
    let error = bench.try_run(text, None).unwrap_err().to_string();
    assert!(error.contains("s exited with status 0 without writing"), "{error}");
    let said = fs::read_to_string(bench.path("out/logs/s.stdout")).unwrap();
    assert_eq!(said, "the configuration is broken\n");
    assert!(bench.path("out/logs/t.stdout").exists());
    assert!(fs::metadata(bench.path("capture.pcapng")).unwrap().len() > 0, "the capture, too");
}
