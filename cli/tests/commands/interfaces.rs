//! Network interfaces as the configuration wants them: set by the FEA, in a namespace of the test.

use std::process::Command;

use weft_port::testing::{Namespace, privileged};

use crate::processes::Node;
use crate::support::Done;

fn configure(node: &Node, commands: &[&str]) -> Done {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    node.run("configure", &commands.collect::<Vec<_>>())
}

fn ip(namespace: &Namespace, arguments: &str) -> String {
    let run = || Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let output = namespace.run(run);
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn interfaces_are_made_set_and_taken_back() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    ip(&namespace, "link add eth0 type veth peer name far");
    ip(&namespace, "address add 10.9.9.9/24 dev eth0");
    let node = namespace.run(Node::start);
    let done = configure(
        &node,
        &[
            "set interfaces interface eth0 address 192.0.2.1/24",
            "set interfaces interface eth0 mtu 1400",
            "set interfaces interface br0 kind bridge",
            "set interfaces interface v0 kind veth v1",
            "set interfaces interface v0 master br0",
            "commit",
        ],
    );
    assert_eq!(done.stdout, "revision 2 runs\n", "{done:?}");
    let eth0 = ip(&namespace, "address show eth0");
    for part in ["mtu 1400", "UP", "192.0.2.1/24", "10.9.9.9/24"] {
        assert!(eth0.contains(part), "`{part}` is missing: {eth0}");
    }
    assert!(ip(&namespace, "link show v0").contains("master br0"));

    // What the kernel refuses changes nothing, not even what could be done.
    let refused = [
        "set interfaces interface eth0 address 192.0.2.2/24",
        "set interfaces interface lo mtu 65535",
        "set interfaces interface v1 kind bridge",
        "set interfaces interface v1 master far",
        "commit",
    ];
    configure(&node, &refused).expect_failure(&["far"]);
    assert!(!ip(&namespace, "address show eth0").contains("192.0.2.2"));

    // One that is not there is configured when it appears.
    let done =
        configure(&node, &["set interfaces interface late address 198.51.100.1/24", "commit"]);
    assert_eq!(done.stdout, "revision 3 runs\n", "{done:?}");
    ip(&namespace, "link add late type veth peer name later");
    node.wait_until(|| {
        let late = ip(&namespace, "address show late");
        late.contains("198.51.100.1/24") && late.contains("UP")
    });

    // The FEA that comes back knows the configuration, and changes nothing that is right.
    node.call(&["finder://manager/manager/1.0/signal?instance:txt=fea&number:u32=9"]);
    let show = "finder://fea/fea/1.0/interfaces";
    node.wait_until(|| node.call(&[show]).status == Some(0));
    let done = configure(&node, &["delete interfaces", "commit"]);
    assert_eq!(done.stdout, "revision 4 runs\n", "{done:?}");
    let all = ip(&namespace, "address show");
    assert!(!all.contains("192.0.2.1") && !all.contains("198.51.100.1"), "{all}");
    assert!(!all.contains("br0") && !all.contains("v0"), "{all}");
    assert!(all.contains("10.9.9.9/24"), "{all}");
    assert!(node.processes().iter().any(|(name, _)| name == "fea"));
}
