//! The power goes off at every request to the disk, and takes with it what was not durable.

use std::time::Duration;

use weft_base::Instant;

use crate::disk::{Disk, Loss};
use crate::node::{KEEP, Node, commit, commit_confirmed, edit};
use weft_commit::Action;

/// How many different losses are tried at each place.
const SEEDS: u64 = 24;

const SECOND: Duration = Duration::from_secs(1);

/// What an operator does, one step after the other; every step but the first is a commit.
const STEPS: usize = 9;

/// One commit. What runs tells its number.
fn step(node: &mut Node, number: usize) {
    if number == 0 {
        node.boot();
        if !node.is_off {
            let _ = node.ask_as(1, Action::Lock);
        }
        return;
    }
    // Steps 3 and 6 have to be confirmed; step 4 confirms, nobody confirms step 6.
    let _ = match number {
        4 => node.ask_as(1, commit()),
        7 => {
            node.wait(100 * SECOND);
            None
        }
        _ => {
            let _ = node.ask_as(1, edit(&format!("set fea mtu {number}")));
            let action = if [3, 6].contains(&number) { commit_confirmed(60) } else { commit() };
            node.ask_as(1, action)
        }
    };
}

/// What runs after each step.
fn expected(number: usize) -> usize {
    match number {
        4 => 3,
        7 => 5,
        other => other,
    }
}

fn mtu(node: &Node) -> usize {
    let text = node.running();
    let word = text.split("mtu ").nth(1).and_then(|rest| rest.split(';').next());
    word.map_or(0, |word| word.parse().unwrap())
}

/// Runs the steps until the power goes off; the steps that ended before, and whether it went off.
fn run(power_off_at: Option<usize>) -> (Node, usize) {
    let mut node = Node::off(Disk::default(), Instant::ZERO, 0, power_off_at);
    for number in 0..STEPS {
        step(&mut node, number);
        if node.is_off {
            return (node, number);
        }
        assert_eq!(mtu(&node), expected(number));
    }
    (node, STEPS)
}

#[test]
fn a_power_cut_anywhere_leaves_the_old_or_the_new_and_never_half() {
    let (whole, _) = run(None);
    let all = whole.disk.requests;
    assert!(all > 50, "{all} requests");
    assert!(whole.disk.revisions().len() <= KEEP + 1);
    let mut news = 0;
    for cut in 0..all {
        let (node, during) = run(Some(cut));
        assert!(node.is_off, "the power goes off at request {cut}");
        let losses = (0..SEEDS).map(Loss::Some).chain([Loss::All, Loss::Nothing]);
        for loss in losses {
            let disk = node.disk.after_power_cut(loss);
            let after = Node::start(disk, node.now, 0);
            let what = format!("power off before request {cut} in step {during}, {loss:?}");
            assert_eq!(after.failed, None, "{what}");
            let old = expected(during.saturating_sub(1));
            let found = mtu(&after);
            // While step 6 waits for nobody, or step 7 falls back, it may run or be fallen back from.
            let allowed = match during {
                0 => vec![0],
                7 => vec![6, 5],
                _ => vec![old, expected(during)],
            };
            assert!(allowed.contains(&found), "{what}: {found} runs, allowed is {allowed:?}");
            news += usize::from(found != old);
            assert_history_is_whole(after, &what);
        }
    }
    assert!(news > 100, "the new one is found, too: {news}");
}

/// Every revision that is listed can be restored, and edits can go on.
fn assert_history_is_whole(mut node: Node, what: &str) {
    assert!(
        node.notices.iter().all(|notice| !notice.contains("lost")),
        "{what}: {:?}",
        node.notices
    );
    node.ask(Action::Lock).unwrap();
    let numbers: Vec<u64> =
        node.configuration.revisions().map(|revision| revision.number).collect();
    for number in numbers {
        node.ask(Action::Restore(number)).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
    }
    node.ask(edit("set fea mtu 99")).unwrap();
    node.ask(commit()).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
    node.assert_components_hold_what_runs();
    let again = Node::start(node.disk.after_power_cut(Loss::All), node.now, 0);
    assert_eq!(mtu(&again), 99, "{what}: what was acknowledged is durable");
}

#[test]
fn a_second_power_cut_during_the_restart_changes_nothing() {
    let (whole, _) = run(None);
    for cut in (0..whole.disk.requests).step_by(3) {
        let (node, _) = run(Some(cut));
        let disk = node.disk.after_power_cut(Loss::Some(cut as u64));
        let once = Node::start(disk.clone(), node.now, 0);
        for again in 0..once.disk.requests {
            let mut second = Node::off(disk.clone(), node.now, 0, Some(again));
            second.boot();
            let disk = second.disk.after_power_cut(Loss::Some(again as u64));
            let third = Node::start(disk, node.now, 0);
            assert_eq!(third.running(), once.running(), "power off at {cut}, and at {again}");
        }
    }
}

#[test]
fn an_error_of_any_request_leaves_what_is_said_to_run() {
    use weft_runtime::DiskErrorKind;
    let (whole, _) = run(None);
    for failing in 0..whole.disk.requests {
        let mut node = Node::off(Disk::default(), Instant::ZERO, 0, None);
        node.disk.failing = Some((failing, DiskErrorKind::Other));
        for number in 0..STEPS {
            step(&mut node, number);
        }
        if node.failed.is_some() {
            continue;
        }
        node.assert_components_hold_what_runs();
        let again = Node::start(node.disk.after_power_cut(Loss::All), node.now, 0);
        if node.configuration.transaction().unconfirmed_until().is_none()
            && !node.notices.iter().any(|notice| notice.starts_with("the history does not know"))
        {
            assert_eq!(again.running(), node.running(), "request {failing} fails");
        }
    }
}
