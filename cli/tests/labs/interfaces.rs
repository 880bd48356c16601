//! An interface that disappears takes nothing else with it.

use crate::network::{almost_cut, lab, push, receive, run, wait_until};
use crate::support::is_root;

#[test]
fn a_node_serves_its_other_interfaces_when_one_is_deleted() {
    if !is_root() {
        return;
    }
    // A packet socket for XIP and one for NWP on each interface that is left.
    let sockets = "test $(tail -n +2 /proc/net/packet | wc -l) = 4";
    let steps = receive("client1", "receiver1")
        + &receive("client3", "receiver3")
        // What is lost keeps client3 from being complete when its link goes.
        + &almost_cut("client3", "r:c3")
        + &push()
        + &wait_until("client3", "test -s client3/.weft-push-*.part")
        // Whoever looks at that very moment may still find it, set down.
        + "delete-interface r:c3;
           wait-output r \"interface c3: there is no interface `c3`\";
           wait-output client3 \"interface eth0: there is no interface `eth0`\";\n"
        // Whoever comes now can only be served by the node as it is now.
        + &receive("client2", "receiver2")
        + "wait-exit receiver1 timeout 10min;
           wait-exit receiver2 timeout 10min;
           expect-running r;
           expect-running client3;
           expect-running receiver3;
           expect-running sender;\n"
        + &wait_until("r", sockets)
        + "stop sender;
           expect-files-equal payload client1/payload client2/payload;";
    let ran = run("gone-interface", &lab("gone-interface", &steps), &[], &[]);
    // Said when it is lost and when it is not found again, not each time the node looks for it.
    let said = ran.said("r");
    let lines: Vec<_> = said.lines().filter(|line| line.contains("interface c3")).collect();
    assert!(lines.len() <= 4 && lines[1].contains(" xia: warning: "), "{said}");
}
