//! A receiver whose disk is full says so, and the others do not notice.

use crate::network::{lab, push, receive, run};
use crate::support::is_root;

/// A shell on client1 that receives into `disk`, a file system of `size` which only it sees.
///
/// `before` is done first, `after` when the receiver has ended well.
fn receive_on_a_small_disk(size: &str, before: &str, options: &str, after: &str) -> String {
    format!(
        "run client1 \"unshare --mount sh -c 'mkdir disk && mount -t tmpfs -o size={size} tmpfs disk \
         && {before} && weft xia receive disk --bind @files --count 1 --json {options} && {after}'\" \
         as full;
         wait-output full \"ready to receive\";\n"
    )
}

#[test]
fn a_receiver_that_shall_not_wait_ends_when_its_disk_is_full() {
    if !is_root() {
        return;
    }
    let steps = receive_on_a_small_disk("256k", "true", "--fail-when-full", "true")
        + &receive("client2", "other")
        + &push()
        + "wait-exit full status 1 timeout 10min;
           wait-exit other timeout 10min;
           stop sender;
           expect-files-equal payload client2/payload;";
    let ran = run("disk-fails", &lab("disk-fails", &steps), &[], &[]);
    let said = ran.said("full");
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or(&said);
    for part in ["payload", "disk/.weft-push-", "the disk is full; free some space", "later run"] {
        assert!(error.contains(part), "`{part}` is missing: {said}");
    }
    assert_eq!(error.matches("payload").count(), 1, "{error}");
}

#[test]
fn a_receiver_that_gave_up_goes_on_where_it_was_when_there_is_more_room() {
    if !is_root() {
        return;
    }
    let again = "--fail-when-full || mount -o remount,size=16m disk \
                 && weft xia receive disk --bind @files --count 1 --json";
    let steps = receive_on_a_small_disk("1m", "true", again, "cp disk/payload copy")
        + &push()
        + "wait-exit full timeout 10min;
           stop sender;
           expect-files-equal payload copy;";
    let ran = run("disk-resumes", &lab("disk-resumes", &steps), &[], &[]);
    let said = ran.said("full");
    assert!(said.contains("what was received stays for a later run"), "{said}");
    let resumed = ran.report("full")["symbols_resumed"].as_u64();
    assert!(resumed.is_some_and(|resumed| resumed > 300), "{resumed:?}: {said}");
}

#[test]
fn a_receiver_whose_disk_is_full_goes_on_when_there_is_room() {
    if !is_root() {
        return;
    }
    // Nobody else sees the disk: the way to it leads through the shell, and the file is copied.
    let before = "echo $$ > shell && head -c 7500000 /dev/zero > disk/filler";
    let after = "! ls disk/.weft-push-* && cp disk/payload copy";
    let steps = receive_on_a_small_disk("8m", before, "", after)
        + &receive("client2", "other")
        + &push()
        + "wait-output full \"free some space, and reception goes on\" timeout 10min;
           wait-exit other timeout 10min;
           expect-running full;
           exec client1 \"sh -c 'rm /proc/$(cat shell)/cwd/disk/filler'\";
           wait-exit full timeout 10min;
           stop sender;
           expect-files-equal payload client2/payload copy;";
    let ran = run("disk-waits", &lab("disk-waits", &steps), &[], &[]);
    let said = ran.said("full");
    assert!(said.contains("error: cannot write to `disk/.weft-push-"), "{said}");
    assert_eq!(ran.report("full")["bytes"], 2_000_000);
}
