//! A receiver that is killed and started again goes on with what it had.

use crate::network::{almost_cut, lab, push, receive, run, wait_until};
use crate::support::is_root;

#[test]
fn a_killed_receiver_resumes_and_leaves_nothing_unfinished() {
    if !is_root() {
        return;
    }
    // So much is lost at first that nothing can be complete when the link is cut. The silence that
    // follows lets the receiver save its state.
    let steps = receive("client1", "first")
        + &receive("client2", "other")
        + &almost_cut("client1", "r:c1")
        + &push()
        + &wait_until("client1", "test -s client1/.weft-push-*.part")
        + "cut r:c1;\n"
        + &wait_until("client1", "test -s client1/.weft-push-*.state")
        + "kill first;
           restore r:c1;
           loss r:c1 1%;\n"
        + &receive("client1", "second")
        + "expect-running sender;
           wait-exit second timeout 10min;
           wait-exit other timeout 10min;
           stop sender;
           expect-files-equal payload client1/payload client2/payload;";
    let ran = run("killed-receiver", &lab("killed-receiver", &steps), &[], &[]);
    let (second, other) = (ran.report("second"), ran.report("other"));
    assert!(ran.said("second").contains("of an earlier run"));
    assert!(second["symbols_resumed"].as_u64().unwrap() > 0, "{second}");
    assert_eq!(other["symbols_resumed"], 0, "{other}");
    assert_eq!(second["sha256"], other["sha256"]);
    assert_eq!(ran.files("client1"), ["payload"]);
    assert_eq!(ran.files("client2"), ["payload"]);
}
