//! Processes of a router that are killed during a transfer: each comes back alone, and the files arrive.

use crate::network::{lab, receive, run};
use crate::support::is_root;

/// Kills a process of the node and waits until it is back. Nothing else may have been started again.
pub(crate) const KILL: &str = r#"
set -eu
processes() {
    weft call finder://manager/manager/1.0/processes | tr '()' '\n\n' | grep '^instance='
}
others() {
    processes | grep -v "^instance=$1;" | sed 's/;class=.*;pid=/ /; s/;uid=.*//'
}
restarts() {
    processes | sed -n "s/^instance=$1;.*;state=running;.*;restarts=\([0-9]*\);.*/\1/p"
}
before=$(others "$1")
times=$(restarts "$1")
# The answer of a manager that kills itself does not come.
weft call "finder://manager/manager/1.0/signal?instance:txt=$1&number:u32=9" || test "$1" = manager
if test "$1" = manager; then
    until processes > /dev/null; do sleep 0.05; done
    after=$(others "$1")
else
    until test "$(restarts "$1")" = $((times + 1)); do sleep 0.05; done
    after=$(others "$1")
fi
test "$before" = "$after" || { echo "before: $before"; echo "after: $after"; exit 1; }
"#;

#[test]
fn each_process_that_is_killed_comes_back_alone_and_the_transfer_goes_on() {
    if !is_root() {
        return;
    }
    let kill = |process: &str| format!("exec r \"sh ../kill.sh {process}\" timeout 60s;\n");
    let steps = receive("client1", "first")
        + &receive("client2", "second")
        + &format!(
            "run server \"weft xia push payload --to {} --rate 4Mbit/s --json\" as sender;\n",
            crate::network::TO
        )
        + &["fea", "finder", "manager", "xia", "manager", "xia"].map(kill).concat()
        + "expect-running sender;
           wait-exit first timeout 10min;
           wait-exit second timeout 10min;
           stop sender;
           expect-files-equal payload client1/payload client2/payload;";
    let ran = run("killed-processes", &lab("killed-processes", &steps), &[("kill.sh", KILL)], &[]);
    assert_eq!(ran.files("client1"), ["payload"]);
    assert_eq!(ran.report("first")["sha256"], ran.report("second")["sha256"]);
}
