//! eBPF programs at interfaces, as the configuration and calls want them: attached by the FEA, in namespaces
//! of the test.

use std::ops::Range;

use serde_json::Value;
use weft_base::Packet;
use weft_ebpf::testing::{Foreign, attach as attach_foreign};
use weft_ebpf::{Direction, LossProbability, LossSequence, programs_of};
use weft_port::testing::{Namespace, privileged, receive_some, send_all};
use weft_port::{Options, Port, open};

use crate::processes::Node;
use crate::support::Done;

/// A node with the interface `eth0`, at the other end of which the test sends and behind which it receives.
struct Wire {
    node: Node,
    here: Namespace,
    sender: Box<dyn Port>,
    receiver: Box<dyn Port>,
    /// Keeps the other end.
    _there: Namespace,
}

fn port(namespace: &Namespace, interface: &str) -> Box<dyn Port> {
    // "Local experimental EtherType 1" of IEEE 802: nothing else uses it.
    let spec = format!("ethernet:{interface}:0x88b5").parse().unwrap();
    namespace.run(|| open(&spec, &Options::default()).map_err(|error| error.to_string())).unwrap()
}

fn frame(number: u64) -> Packet {
    let mut bytes = vec![0xff; 60];
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
    bytes[14..22].copy_from_slice(&number.to_be_bytes());
    Packet::from_slice(&bytes)
}

fn loss(percent: f64, seed: u64) -> LossSequence {
    LossSequence::new(seed, LossProbability::from_fraction(percent / 100.0).unwrap())
}

impl Wire {
    fn new() -> Self {
        let (here, there) = (Namespace::new(), Namespace::new());
        here.silence();
        there.silence();
        here.connect("eth0", &there, "far");
        let node = here.run(Node::start);
        let (sender, receiver) = (port(&there, "far"), port(&here, "eth0"));
        Self { node, here, sender, receiver, _there: there }
    }

    /// Sends these packets of a sequence; exactly those that it keeps arrive.
    fn pass(&mut self, sequence: LossSequence, numbers: Range<u64>) {
        send_all(numbers.clone().map(frame), &mut *self.sender);
        let expected: Vec<u64> = numbers.filter(|number| !sequence.drops(*number)).collect();
        let number =
            |packet: &Packet| u64::from_be_bytes(packet.bytes()[14..22].try_into().unwrap());
        let arrived = receive_some(&mut *self.receiver, expected.len());
        assert_eq!(arrived.iter().map(number).collect::<Vec<_>>(), expected);
    }

    fn configure(&self, commands: &[&str]) -> Done {
        let commands = commands.iter().flat_map(|command| ["-c", command]);
        self.node.run("configure", &commands.collect::<Vec<_>>())
    }

    fn commit(&self, commands: &[&str]) {
        let done = self.configure(&[commands, &["commit"]].concat());
        assert_eq!(done.status, Some(0), "{done:?}");
    }

    /// What `weft show programs` tells of the programs of `eth0`, or of those of one owner.
    fn programs(&self, owner: Option<&str>) -> Vec<Value> {
        let done = self.node.run("show", &["programs", "eth0", "--json"]);
        assert_eq!(done.status, Some(0), "{done:?}");
        let all = done.json()["programs"].as_array().unwrap().clone();
        all.into_iter().filter(|one| owner.is_none_or(|owner| one["owner"] == owner)).collect()
    }

    fn is_back(&self) -> bool {
        self.node.call(&["finder://fea/fea/1.0/list_programs"]).status == Some(0)
    }

    /// The names of the programs of `eth0`, as the kernel has them.
    fn in_kernel(&self) -> Vec<String> {
        in_kernel(&self.here)
    }
}

fn in_kernel(namespace: &Namespace) -> Vec<String> {
    let list = || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let index = rustix::net::netdevice::name_to_index(socket, "eth0").unwrap();
        let found = programs_of(index).unwrap();
        found.into_iter().map(|one| one.name.unwrap()).collect()
    };
    namespace.run(list)
}

fn attach(node: &Node, arguments: &str) -> Done {
    node.call(&[&format!("finder://fea/fea/1.0/attach_program?{arguments}")])
}

#[test]
fn configured_loss_is_exact_and_outlives_the_fea_but_not_the_node() {
    if !privileged() {
        return;
    }
    let mut wire = Wire::new();
    let sequence = loss(30.0, 7);
    let interface = "set interfaces interface eth0";
    let set = |words: &str| format!("{interface} loss {words}");
    wire.commit(&[&set("rate 30%"), &set("seed 7")]);
    wire.pass(sequence, 0..100);
    let [first] = &wire.programs(None)[..] else { panic!("{:?}", wire.programs(None)) };
    assert_eq!(first["owner"], "configuration", "{first}");
    assert_eq!((&first["program"], &first["name"]), (&"loss".into(), &"weft_loss".into()));
    assert_eq!(first["parameters"], "rate 30% seed 7");
    assert_eq!(first["counters"]["seen"], 100, "{first}");

    // The FEA dies: packets are lost as if nothing had happened, and the next one takes the program over.
    let before = wire.node.processes();
    wire.node.call(&["finder://manager/manager/1.0/signal?instance:txt=fea&number:u32=9"]);
    wire.pass(sequence, 100..200);
    wire.node.wait_until(|| wire.is_back() && wire.node.processes() != before);
    wire.pass(sequence, 200..300);
    let taken_over = |seen: u64| {
        let programs = wire.programs(None);
        programs.len() == 1
            && programs[0]["owner"] == "configuration"
            && programs[0]["id"] == first["id"]
            && programs[0]["counters"]["seen"] == seen
    };
    wire.node.wait_until(|| taken_over(300));
    let dropped = (0..300).filter(|number| sequence.drops(*number)).count();
    assert_eq!(wire.programs(None)[0]["counters"]["dropped"], dropped);

    // Another rate is another threshold for the same sequence; another seed begins anew.
    wire.commit(&[&set("rate 60%")]);
    wire.pass(loss(60.0, 7), 300..400);
    assert_eq!(wire.programs(None)[0]["id"], first["id"]);
    wire.commit(&[&set("seed 8")]);
    wire.pass(loss(60.0, 8), 0..100);
    let table = wire.node.run("show", &["programs"]).stdout;
    assert!(table.contains("loss rate 60% seed 8") && table.contains("seen 100"), "{table}");

    wire.commit(&["delete interfaces interface eth0 loss"]);
    assert!(wire.in_kernel().is_empty());
    wire.pass(loss(0.0, 0), 0..10);
    wire.commit(&[&set("rate 30%")]);
    assert_eq!(wire.in_kernel(), ["weft_loss"]);
    let Wire { node, here, _there, .. } = wire;
    drop(node); // It is killed.
    while !in_kernel(&here).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn programs_of_others_are_listed_by_name_and_stay() {
    if !privileged() {
        return;
    }
    let mut wire = Wire::new();
    let held: Vec<_> = wire.here.run(|| {
        let ingress = Direction::Ingress;
        [
            (Foreign::Tcx(ingress), "theirs_tcx"),
            (Foreign::Classifier(ingress), "theirs_tc"),
            (Foreign::Xdp, "theirs_xdp"),
        ]
        .map(|(at, name)| attach_foreign("eth0", at, name).unwrap())
        .into()
    });
    let theirs = ["theirs_tcx", "theirs_tc", "theirs_xdp"];
    let listed = |wire: &Wire| -> Vec<String> {
        let all = wire.programs(Some("other"));
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&wire), theirs);
    let hooks: Vec<_> = wire.programs(None).iter().map(|one| one["hook"].clone()).collect();
    assert_eq!(hooks, ["tcx ingress", "clsact ingress", "xdp generic"]);

    wire.commit(&["set interfaces interface eth0 loss rate 50%"]);
    wire.pass(loss(50.0, 0), 0..100);
    assert_eq!(listed(&wire), theirs);
    assert_eq!(wire.in_kernel(), ["theirs_tcx", "weft_loss", "theirs_tc", "theirs_xdp"]);
    wire.commit(&["delete interfaces"]);
    assert_eq!(wire.in_kernel(), theirs);
    // No call detaches what is not weft's.
    let detach = "finder://fea/fea/1.0/detach_program?program:txt=loss&interface:txt=eth0&direction:txt=ingress";
    let done = wire.node.call(&[detach]);
    done.expect_failure(&["weft has no program loss at ingress of `eth0`", "left alone"]);
    assert_eq!(wire.in_kernel(), theirs);
    drop(held);
}

#[test]
fn calls_attach_programs_and_what_is_wrong_is_refused() {
    if !privileged() {
        return;
    }
    let mut wire = Wire::new();
    let place = "program:txt=loss&interface:txt=eth0&direction:txt=ingress";
    let done = attach(&wire.node, &format!("{place}&rate:u32=500000000&seed:u64=3"));
    assert_eq!(done.status, Some(0), "{done:?}");
    wire.pass(loss(50.0, 3), 0..100);
    let [own] = &wire.programs(None)[..] else { panic!("{:?}", wire.programs(None)) };
    assert_eq!((&own["owner"], &own["hook"]), (&"call".into(), &"tcx ingress".into()));
    let id = own["id"].to_string();
    attach(&wire.node, &format!("{place}&rate:u32=1")).expect_failure(&[
        "eth0",
        &id,
        "detach_program",
    ]);
    for (arguments, part) in [
        ("program:txt=gain&interface:txt=eth0&direction:txt=ingress", "there is loss"),
        ("program:txt=loss&interface:txt=eth0&direction:txt=egress", "needs its `rate`"),
        (
            "program:txt=loss&interface:txt=eth0&direction:txt=egress&rate:u32=1000000001",
            "between 0 and 1",
        ),
        (
            "program:txt=loss&interface:txt=eth0&direction:txt=up&rate:u32=1",
            "`ingress` or `egress`",
        ),
        (
            "program:txt=loss&interface:txt=eth9&direction:txt=egress&rate:u32=1",
            "no interface `eth9`",
        ),
    ] {
        attach(&wire.node, arguments).expect_failure(&[part]);
    }
    // The configuration does not take over what a call has attached: the commit is rolled back.
    let refused = [
        "set interfaces interface eth0 address 192.0.2.1/24",
        "set interfaces interface eth0 loss rate 5%",
        "commit",
    ];
    wire.configure(&refused).expect_failure(&["eth0", &id, "detach_program"]);
    let addresses = wire.node.run("show", &["interfaces"]).stdout;
    assert!(!addresses.contains("192.0.2.1"), "{addresses}");
    // Mistakes are told with their places.
    let wrong = ["set interfaces interface eth0 loss rate 500%", "commit"];
    wire.configure(&wrong).expect_failure(&["500%"]);
    let missing = ["set interfaces interface eth0 loss seed 7", "commit"];
    wire.configure(&missing).expect_failure(&["rate"]);

    // What a call has attached outlives the FEA, too.
    wire.node.call(&["finder://manager/manager/1.0/signal?instance:txt=fea&number:u32=9"]);
    wire.pass(loss(50.0, 3), 100..200);
    wire.node.wait_until(|| wire.is_back() && wire.programs(Some("call")).len() == 1);
    assert_eq!(wire.programs(None)[0]["id"].to_string(), id);
    let done = wire.node.call(&[&format!("finder://fea/fea/1.0/detach_program?{place}")]);
    assert_eq!(done.status, Some(0), "{done:?}");
    assert!(wire.in_kernel().is_empty());
    // Only processes of the node have something kept.
    let keep = "finder://manager/manager/1.0/release?name:txt=loss-1-in-c-map";
    wire.node.call(&[keep]).expect_failure(&["operator", "is none"]);
}
