//! The gateway: operators on another machine, which is a network namespace, call a node's components.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use rustix::process::{Pid, Signal, kill_process};
use weft_base::{Instant, Token};
use weft_keys::{KeyHash, file};
use weft_port::testing::{Namespace, privileged};
use weft_port::{Options, Port, PortSpec};
use weft_runtime::{Action, ChannelAddress, Component, Event, Keys, real};

use crate::processes::Node;
use crate::support::{Done, finish, weft};

const GATEWAY: &str = "10.77.0.1:6500";
const PROCESSES: &str = "finder://manager/manager/1.0/processes";
const SHOW: &str = "finder://xia/xia/1.0/show?what:txt=counters";

/// Two machines with a cable between them: a node with a gateway, and where its operator sits.
struct Machines {
    here: Namespace,
    there: Namespace,
    node: Node,
    keys: tempfile::TempDir,
}

impl Machines {
    fn start() -> Self {
        let (there, here) = (Namespace::new(), Namespace::new());
        there.connect("cable", &here, "cable");
        there.ip("address add 10.77.0.1/24 dev cable");
        here.ip("address add 10.77.0.2/24 dev cable");
        let keys = tempfile::tempdir().unwrap();
        for name in ["node", "eve", "mallory"] {
            let done = finish(weft([
                Path::new("xia"),
                "id".as_ref(),
                "new".as_ref(),
                &keys.path().join(name),
            ]));
            assert_eq!(done.status, Some(0), "{done:?}");
        }
        let node = there.run(Node::start);
        let machines = Self { here, there, node, keys };
        let pem = std::fs::read_to_string(machines.key("node")).unwrap();
        let key = pem.lines().nth(1).unwrap();
        machines.configure(&[
            &format!("set gateway listen {GATEWAY}"),
            &format!("set gateway key \"{key}\""),
            &format!(
                "set operators key {} access manager/manager/1.0/processes",
                machines.hash("eve")
            ),
            "commit",
        ]);
        machines.wait_for_gateway();
        machines
    }

    fn key(&self, name: &str) -> PathBuf {
        self.keys.path().join(name)
    }

    fn hash(&self, name: &str) -> KeyHash {
        file::load_private(&self.key(name)).unwrap().public_key().hash()
    }

    fn configure(&self, commands: &[&str]) {
        let commands: Vec<_> = commands.iter().flat_map(|command| ["-c", command]).collect();
        let done = self.node.run("configure", &commands);
        assert_eq!(done.status, Some(0), "{done:?}");
    }

    /// Waits until the gateway listens.
    fn wait_for_gateway(&self) {
        self.node.wait_until(|| {
            let done = self.node.call(&["finder://gateway/gateway/1.0/status"]);
            done.status == Some(0) && done.stdout.contains(GATEWAY)
        });
    }

    /// What somebody with a key says on the other machine to the node that should have a key.
    fn run(&self, who: &str, node: &str, command: &[&str]) -> Done {
        let (name, key) = (self.hash(node).to_string(), self.key(who));
        let mut command = weft(command);
        command.args(["--node", GATEWAY, "--node-key", &name, "--key"]).arg(key);
        self.here.run(|| finish(command))
    }

    fn call(&self, who: &str, xrl: &str) -> Done {
        self.run(who, "node", &["call", xrl])
    }
}

/// What came in on the cable since it was opened.
fn seen(wire: &mut dyn Port) -> Vec<u8> {
    let mut frames = Vec::new();
    loop {
        let before = frames.len();
        wire.receive(&mut frames, 64).unwrap();
        if frames.len() == before {
            return frames.iter().flat_map(|frame| frame.bytes().to_vec()).collect();
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn operators_on_other_machines_call_what_they_may_and_nobody_reads_it() {
    if !privileged() {
        return;
    }
    let machines = Machines::start();
    let spec = PortSpec::Ethernet { interface: "cable".to_owned(), ethertype: 0x0800 };
    let open = || weft_port::open(&spec, &Options::default()).unwrap();
    let mut wires = [machines.here.run(open), machines.there.run(open)];

    let done = machines.call("eve", PROCESSES);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(done.stdout.contains("instance=gateway") && done.stdout.contains("instance=finder"));
    for wire in &mut wires {
        let seen = seen(&mut **wire);
        assert!(seen.len() > 1000, "{}", seen.len());
        for text in ["gateway", "finder", "manager", "processes", "operator"] {
            assert!(!contains(&seen, text), "`{text}` was on the wire");
        }
    }

    let eve = machines.hash("eve");
    let expected = format!("operator (key {eve}) may not call xia/1.0/show of xia");
    machines.call("eve", SHOW).expect_failure(&["RESOLVE_FAILED", &expected]);
    let unknown = machines.hash("mallory").to_string();
    machines.call("mallory", PROCESSES).expect_failure(&["refused this side", &unknown]);
    let shown = format!("showed the key {}, expected {unknown}", machines.hash("node"));
    machines.run("eve", "mallory", &["call", PROCESSES]).expect_failure(&[&shown]);

    // Who may call everything edits the configuration, too, and sees no secret.
    machines.configure(&[&format!("delete operators key {eve} access"), "commit"]);
    let done =
        machines.run("eve", "node", &["configure", "-c", "set log level debug", "-c", "commit"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    let done = machines.run("eve", "node", &["configure", "-c", "show"]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(done.stdout.contains("level debug"), "{done:?}");
    let pem = std::fs::read_to_string(machines.key("node")).unwrap();
    assert!(!done.stdout.contains(pem.lines().nth(1).unwrap()), "{done:?}");
}

/// Connects, says that it has, and ends when the other side has closed the connection.
struct Guest {
    node: KeyHash,
    connected: Sender<()>,
}

impl Component for Guest {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                let (address, peer) = (GATEWAY.parse().unwrap(), Some(self.node));
                let address = ChannelAddress::Tls { address, peer };
                out.push(Action::Connect { token: Token(1), address });
            }
            Event::Connected { .. } => self.connected.send(()).unwrap(),
            Event::Closed { .. } => out.push(Action::Exit { status: 0 }),
            other => panic!("{other:?}"),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_key_that_is_taken_back_ends_its_connections() {
    if !privileged() {
        return;
    }
    let machines = Machines::start();
    let own = file::load_private(&machines.key("eve")).unwrap();
    let (connected, wait) = channel();
    let guest = Guest { node: machines.hash("node"), connected };
    std::thread::scope(|scope| {
        let run = move || {
            let keys = Some(Keys { own, peers: [].into() });
            real::run(Box::new(guest), real::Options { keys, signals: false, ..Default::default() })
        };
        let thread = scope.spawn(|| machines.here.run(run));
        wait.recv().unwrap();
        machines.configure(&["delete operators", "commit"]);
        assert_eq!(thread.join().unwrap(), 0);
    });
    machines.call("eve", PROCESSES).expect_failure(&["refused this side"]);
}

#[test]
fn a_gateway_that_is_killed_leaves_the_others_alone_and_is_back() {
    if !privileged() {
        return;
    }
    let machines = Machines::start();
    let before: BTreeMap<_, _> = machines.node.processes().into_iter().collect();
    let gateway = Pid::from_raw(before["gateway"].cast_signed()).unwrap();
    kill_process(gateway, Signal::KILL).unwrap();
    machines.node.wait_until(|| machines.call("eve", PROCESSES).status == Some(0));
    let after: BTreeMap<_, _> = machines.node.processes().into_iter().collect();
    for (name, pid) in before {
        assert_eq!(after[&name] == pid, name != "gateway", "{name}");
    }
    // Another address is listened at, and the old one is not any more.
    let moved = GATEWAY.replace("6500", "6501");
    machines.configure(&[&format!("set gateway listen {moved}"), "commit"]);
    machines.node.wait_until(|| {
        machines.node.call(&["finder://gateway/gateway/1.0/status"]).stdout.contains(&moved)
    });
    machines.call("eve", PROCESSES).expect_failure(&["nobody listens at TLS"]);
}
