//! How packets are taken from interfaces and how the stack shares the processors, as the configuration wants it:
//! set by the FEA, in a namespace of the test.

use serde_json::Value;
use weft_netlink::{Napi, NapiControl};
use weft_port::testing::{Namespace, privileged};
use weft_runtime::{Priority, Scheduling};

use crate::processes::Node;
use crate::support::Done;

fn configure(node: &Node, commands: &[&str]) -> Done {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    node.run("configure", &commands.collect::<Vec<_>>())
}

/// What `weft show interfaces` says of the tuning of `eth0`.
fn shown(node: &Node) -> Value {
    let done = node.run("show", &["interfaces", "--json"]);
    let all: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let all = all["interfaces"].as_array().unwrap();
    all.iter().find(|one| one["name"] == "eth0").unwrap()["tuning"].clone()
}

/// What the kernel says of `eth0`.
fn kernel(namespace: &Namespace) -> (bool, Vec<Napi>) {
    let mut control = namespace.run(|| NapiControl::open().unwrap());
    let index = control.index("eth0").unwrap();
    (control.gro(index).unwrap(), control.napis(index).unwrap())
}

#[test]
fn packets_are_taken_as_is_configured_and_again_as_before() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add eth0 type veth peer name far");
    namespace.ip("link set far up");
    let node = namespace.run(Node::start);
    let done = configure(&node, &["set interfaces interface eth0 napi threaded on", "commit"]);
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    // A veth without GRO has no NAPI, which is said, with what helps.
    node.wait_for("interface eth0: it has no NAPI now");
    assert!(shown(&node)["refused"][0].as_str().unwrap().contains("`gro on`"));

    let tell = [
        "set interfaces interface eth0 gro on",
        "set interfaces interface eth0 napi priority fifo 3",
        "set interfaces interface eth0 napi processor 0",
        "set interfaces interface eth0 napi defer-interrupts 2",
        "set interfaces interface eth0 napi flush-timeout 50us",
        "commit",
    ];
    let done = configure(&node, &tell);
    assert_eq!(done.stdout, "revision 3 runs\n", "{done:?}");
    let tuning = shown(&node);
    let (gro, napis) = kernel(&namespace);
    assert!(gro && tuning["gro"] == true, "{tuning}");
    if napis[0].threaded.is_none() {
        // The kernel is too old.
        assert!(tuning["refused"][0].as_str().unwrap().contains("Linux 6.17"), "{tuning}");
        return;
    }
    assert_eq!(tuning["refused"], Value::Array(Vec::new()), "{tuning}");
    let thread = napis[0].thread.unwrap();
    assert_eq!(tuning["napis"][0]["thread"], thread, "{tuning}");
    let scheduling = Scheduling::of(thread).unwrap();
    assert_eq!(scheduling.priority, Some(Priority::Fifo(3)));
    assert_eq!(scheduling.processors.iter().copied().collect::<Vec<_>>(), [0]);
    assert_eq!(napis[0].defer_interrupts, Some(2));
    let text = node.run("show", &["interfaces"]).stdout;
    let line = format!(
        "thread {thread} with fifo 3 on processors 0, defer-interrupts 2, flush-timeout 50µs"
    );
    assert!(text.contains(&line), "{text}");

    // It comes up anew, with new NAPIs.
    namespace.ip("link set eth0 down");
    namespace.ip("link set eth0 up");
    node.wait_until(|| {
        let (_, now) = kernel(&namespace);
        let is_set = |napi: &Napi| {
            let fifo = |thread| Scheduling::of(thread).unwrap().priority == Some(Priority::Fifo(3));
            napi.defer_interrupts == Some(2) && napi.thread.is_some_and(fifo)
        };
        now.first().is_some_and(|napi| napi.id != napis[0].id && is_set(napi))
    });

    // What goes from the configuration is as before, and the rest stays.
    let done = configure(&node, &["delete interfaces interface eth0 napi", "commit"]);
    assert_eq!(done.stdout, "revision 4 runs\n", "{done:?}");
    let tuning = shown(&node);
    let (gro, napis) = kernel(&namespace);
    assert!(gro && tuning["napis"][0]["thread"].is_null(), "{tuning}");
    assert_eq!((napis[0].threaded, napis[0].defer_interrupts), (Some(false), Some(0)));
    // So it is at the end of the node.
    node.end();
    node.wait_until(|| !kernel(&namespace).0);
}

#[test]
fn the_stack_shares_the_processors_as_is_configured_and_again_as_before() {
    if !privileged() {
        return;
    }
    let node = Node::with("priority nice -5; processor 0; principal hid; principal xdp;");
    let pid = node.processes().into_iter().find(|(name, _)| name == "xia").unwrap().1;
    let shown = || {
        let done = node.run("show", &["xia", "forwarding", "--json"]);
        let shown: Value =
            serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        shown["scheduling"].clone()
    };
    node.wait_until(|| shown()["priority"] == "nice -5");
    assert_eq!(shown()["processors"], serde_json::json!([0]));
    let now = Scheduling::of(pid).unwrap();
    assert_eq!(now.priority, Some(Priority::Nice(-5)));
    assert_eq!(now.processors.iter().copied().collect::<Vec<_>>(), [0]);
    // Real time, which the control group of the process may have none of: then that is said, and how to mend it.
    let done = configure(
        &node,
        &["delete xia priority", "set xia priority fifo 2", "delete xia processor 0", "commit"],
    );
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    node.wait_until(|| shown()["processors"] != serde_json::json!([0]));
    let now = Scheduling::of(pid).unwrap();
    match shown()["refused"][0].as_str() {
        None => assert_eq!(now.priority, Some(Priority::Fifo(2))),
        Some(why) => {
            assert!(why.contains("rt_group_sched=0"), "{why}");
            assert_eq!(now.priority, Some(Priority::Nice(-5)));
            let text = node.run("show", &["xia", "forwarding"]).stdout;
            assert!(text.contains("thread as before: `fifo 2` cannot be given"), "{text}");
        }
    }
    let done = configure(&node, &["delete xia priority", "commit"]);
    assert_eq!(done.stdout, "revision 3 runs\n", "{done:?}");
    // The niceness that the launcher gives.
    node.wait_until(|| Scheduling::of(pid).unwrap().priority == Some(Priority::Nice(5)));
}
