//! What operators see of locks, commits, refusals, fallbacks and revisions.

use std::time::Duration;

use crate::disk::Disk;
use crate::node::{ALICE, DIRECTORY, KEEP, Node, ROOT, commit, commit_confirmed, edit, who};
use weft_base::Instant;
use weft_commit::{Action, Done, Refusal};
use weft_config::{LoadMode, Tree};
use weft_runtime::DiskErrorKind;

const MINUTE: Duration = Duration::from_secs(60);
const ONE: &str = "version 1;\nfea {\n    mtu 1;\n}\n";
const TWO: &str = "version 1;\nfea {\n    mtu 2;\n}\n";

fn node() -> Node {
    let mut node = Node::start(Disk::default(), Instant::from_nanos(5), 1_000_000);
    assert!(node.is_ready);
    assert_eq!(node.ask(Action::Lock), Ok(Done::Locked));
    node
}

/// A node on which ONE runs, as revision 1.
fn running_one() -> Node {
    let mut node = node();
    node.ask(edit("set fea mtu 1")).unwrap();
    assert_eq!(committed(node.ask(commit())), 1);
    node
}

fn committed(result: Result<Done, Refusal>) -> u64 {
    match result {
        Ok(Done::Committed(revision)) => revision.number,
        other => panic!("{other:?}"),
    }
}

fn restarted(node: Node, off: Duration) -> Node {
    Node::start(node.disk, node.now + off, node.day)
}

#[test]
fn a_commit_reaches_the_components_in_order_and_the_history() {
    let mut node = running_one();
    for command in ["set bgp as 65001", "set rib limit 5", "delete fea"] {
        node.ask(edit(command)).unwrap();
    }
    assert_eq!(node.ask(Action::Check), Ok(Done::Checked));
    assert_eq!(node.running(), ONE);
    assert_eq!(committed(node.ask(commit())), 2);
    assert_eq!(node.running(), node.candidate());
    node.assert_components_hold_what_runs();
    let again = restarted(node, MINUTE);
    assert_eq!(again.running(), "version 1;\nbgp {\n    as 65001;\n}\nrib {\n    limit 5;\n}\n");
    let revisions: Vec<_> = again.configuration.revisions().collect();
    assert_eq!((revisions[0].number, revisions[0].user.as_str()), (2, "alice"));
    assert_eq!(revisions[0].comment, "why");
}

#[test]
fn one_session_edits_and_only_root_breaks_in() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 3")).unwrap();
    assert!(matches!(node.ask_as(3, Action::Lock), Some(Err(Refusal::Locked(_)))));
    assert!(matches!(node.ask_as(3, edit("set fea mtu 4")), Some(Err(Refusal::Locked(_)))));
    assert_eq!(node.ask_as(3, Action::Break), Some(Err(Refusal::NotRoot)));
    let Some(Ok(Done::Broken { lock, discarded: true })) = node.ask_as(ROOT, Action::Break) else {
        panic!("root may");
    };
    assert_eq!(lock.who, who(ALICE));
    assert_eq!(node.candidate(), ONE);
    assert!(matches!(node.ask(edit("set fea mtu 4")), Err(Refusal::Locked(_))));
    assert_eq!(node.ask_as(ROOT, Action::Break), Some(Err(Refusal::NoLock)));
    assert_eq!(node.ask_as(ROOT, Action::Unlock), Some(Ok(Done::Unlocked { discarded: false })));
    assert_eq!(node.ask(commit()), Err(Refusal::NotLocked));
}

#[test]
fn unlocking_throws_edits_away() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 3")).unwrap();
    assert_eq!(node.ask(Action::Unlock), Ok(Done::Unlocked { discarded: true }));
    assert_eq!(node.candidate(), ONE);
}

#[test]
fn the_schema_is_checked_before_anybody_is_asked() {
    let mut node = running_one();
    node.refusing = vec!["bgp".to_owned()];
    node.ask(edit("set bgp")).unwrap();
    let Err(Refusal::Mistakes(errors)) = node.ask(commit()) else { panic!("as is missing") };
    assert!(errors.to_string().contains("`bgp` lacks the statement `as`"), "{errors}");
    assert!(matches!(node.ask(edit("set fea mtu 9001")), Err(Refusal::Mistakes(_))));
    let text = Tree::parse_part("t", "fea { mtu x; }").unwrap();
    let load = Action::Load(text, LoadMode::Merge);
    assert!(matches!(node.ask(load), Err(Refusal::Mistakes(_))));
    assert_eq!(node.ask(Action::Revert), Ok(Done::Edited));
    assert_eq!(node.ask(commit()), Err(Refusal::NothingToCommit));
}

#[test]
fn an_objection_at_the_check_changes_nothing() {
    let mut node = running_one();
    node.objecting = vec!["fea".to_owned(), "rib".to_owned()];
    for command in ["set fea mtu 2", "set rib limit 1"] {
        node.ask(edit(command)).unwrap();
    }
    let Err(refusal @ Refusal::Refused(_)) = node.ask(commit()) else { panic!("they object") };
    assert_eq!(refusal.to_string(), "fea: I will not\nrib: I will not");
    assert!(matches!(node.ask(Action::Check), Err(Refusal::Refused(_))));
    assert_eq!(node.running(), ONE);
    node.assert_components_hold_what_runs();
    node.objecting.clear();
    assert_eq!(committed(node.ask(commit())), 2);
}

#[test]
fn a_refusal_takes_everything_back() {
    let mut node = running_one();
    node.refusing = vec!["bgp".to_owned()];
    for command in ["set fea mtu 2", "set rib limit 1", "set bgp as 1"] {
        node.ask(edit(command)).unwrap();
    }
    let Err(refusal) = node.ask(commit()) else { panic!("bgp refuses") };
    assert_eq!(refusal.to_string(), "bgp: I will not");
    assert_eq!(node.running(), ONE);
    node.assert_components_hold_what_runs();
    assert_ne!(node.candidate(), ONE, "the edits are still there");
    assert_eq!(restarted(node, MINUTE).running(), ONE);
}

#[test]
fn who_does_not_answer_refuses_and_is_told_the_old_block() {
    let mut node = running_one();
    node.silent = vec!["fea".to_owned()];
    node.ask(edit("set fea mtu 2")).unwrap();
    assert_eq!(node.ask_as(ALICE, commit()), None);
    assert!(matches!(node.ask(edit("set fea mtu 3")), Err(Refusal::Busy)));
    node.wait(MINUTE);
    let Some(Err(refusal)) = node.replies.pop_front() else { panic!("fea is silent") };
    assert_eq!(refusal.to_string(), "fea: it did not answer within 30 s");
    node.silent.clear();
    assert_eq!(committed(node.ask(commit())), 2);
}

#[test]
fn a_full_disk_takes_everything_back() {
    for request in 1..=6 {
        let mut node = running_one();
        node.ask(edit("set fea mtu 2")).unwrap();
        node.disk.failing = Some((node.disk.requests + request, DiskErrorKind::Full));
        let Err(refusal @ Refusal::RolledBack { .. }) = node.ask(commit()) else {
            panic!("request {request} fails");
        };
        assert!(refusal.to_string().starts_with("disk: request"), "{refusal}");
        node.assert_components_hold_what_runs();
        assert_eq!(node.disk.revisions(), ["0000000001.conf"]);
        assert_eq!(committed(node.ask(commit())), 2);
        assert_eq!(restarted(node, MINUTE).running(), TWO);
    }
}

#[test]
fn what_is_not_confirmed_falls_back_in_time() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(600)));
    assert_eq!(node.running(), TWO);
    assert!(node.configuration.transaction().unconfirmed_until().is_some());
    node.wait(9 * MINUTE);
    assert_eq!(node.running(), TWO);
    node.wait(2 * MINUTE);
    assert_eq!((node.running().as_str(), node.candidate().as_str()), (ONE, ONE));
    node.assert_components_hold_what_runs();
    assert_eq!(node.notices, ["nobody confirmed the last commit: revision 1 runs again"]);
    let again = restarted(node, MINUTE);
    assert_eq!(again.running(), ONE);
    assert_eq!(again.configuration.revisions().next().unwrap().number, 3);
}

#[test]
fn what_was_not_confirmed_is_nothing_to_go_back_to_though_the_disk_was_full() {
    // Whether the time was over while the node ran, or while it was down.
    for down in [false, true] {
        let mut node = running_one();
        node.ask(edit("set fea mtu 2")).unwrap();
        committed(node.ask(commit_confirmed(600)));
        if down {
            let late = node.now + 11 * MINUTE;
            let mut again = Node::off(node.disk, late, node.day, None);
            let read = Node::start(again.disk.clone(), Instant::ZERO, again.day).disk.requests;
            again.disk.failing = Some((read + 1, DiskErrorKind::Full));
            again.boot();
            node = again;
        } else {
            node.disk.failing = Some((node.disk.requests + 1, DiskErrorKind::Full));
            node.wait(11 * MINUTE);
        }
        assert_eq!(node.running(), ONE);
        assert!(node.notices[0].starts_with("the history does not know"), "{:?}", node.notices);
        let revision = node.configuration.transaction().revision().unwrap();
        assert_eq!((revision.number, revision.unconfirmed), (1, None));
        node.disk.failing = None;
        node.ask(edit("set fea mtu 3")).unwrap();
        committed(node.ask(commit_confirmed(600)));
        assert_eq!(restarted(node, 11 * MINUTE).running(), ONE);
    }
}

#[test]
fn a_confirmed_commit_stays() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(600)));
    assert!(matches!(node.ask(commit()), Ok(Done::Confirmed(revision)) if revision.number == 2));
    node.wait(20 * MINUTE);
    assert_eq!(node.running(), TWO);
    assert_eq!(node.ask(commit()), Err(Refusal::NothingToCommit));
    assert_eq!(restarted(node, MINUTE).running(), TWO);
}

#[test]
fn a_second_unconfirmed_commit_falls_back_to_what_was_confirmed() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(600)));
    node.wait(9 * MINUTE);
    node.ask(edit("set fea mtu 3")).unwrap();
    committed(node.ask(commit_confirmed(600)));
    node.wait(9 * MINUTE);
    assert_ne!(node.running(), ONE);
    let mut again = restarted(node, MINUTE / 2);
    assert_ne!(again.running(), ONE);
    again.wait(MINUTE);
    assert_eq!(again.running(), ONE);
}

#[test]
fn edits_survive_a_fallback() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(600)));
    node.ask(edit("set rib limit 7")).unwrap();
    let edits = node.candidate();
    node.wait(11 * MINUTE);
    assert_eq!((node.running(), node.candidate()), (ONE.to_owned(), edits));
}

#[test]
fn the_time_to_confirm_goes_on_while_the_manager_is_away() {
    let unconfirmed = || {
        let mut node = running_one();
        node.ask(edit("set fea mtu 2")).unwrap();
        committed(node.ask(commit_confirmed(600)));
        node
    };
    let mut early = restarted(unconfirmed(), 5 * MINUTE);
    assert_eq!(early.running(), TWO);
    early.wait(6 * MINUTE);
    assert_eq!(early.running(), ONE);
    early.assert_components_hold_what_runs();

    let mut confirmed = restarted(unconfirmed(), 5 * MINUTE);
    confirmed.ask(Action::Lock).unwrap();
    assert!(matches!(confirmed.ask(commit()), Ok(Done::Confirmed(_))));
    assert_eq!(restarted(confirmed, 60 * MINUTE).running(), TWO);

    let late = restarted(unconfirmed(), 11 * MINUTE);
    assert_eq!(late.running(), ONE);
    late.assert_components_hold_what_runs();
    assert_eq!(late.configuration.revisions().next().unwrap().number, 3);

    // A clock set back by a year does not give a year.
    let node = unconfirmed();
    let mut back = Node::start(node.disk, node.now + MINUTE, 0);
    back.wait(11 * MINUTE);
    assert_eq!(back.running(), ONE);
}

#[test]
fn a_node_starts_when_a_commit_expired_while_it_was_down() {
    // With a full disk, too, on which the fallback cannot be written.
    for full in [false, true] {
        let mut node = running_one();
        node.ask(edit("set fea mtu 2")).unwrap();
        committed(node.ask(commit_confirmed(600)));
        node.ask(Action::Unlock).unwrap();
        let late = node.now + 11 * MINUTE;
        let mut again = Node::off(node.disk, late, node.day, None);
        let file = Tree::parse("file", TWO).unwrap();
        again.asked_first = vec![Action::Lock, Action::Load(file, LoadMode::Override), commit()];
        if full {
            // What is there is read with fewer requests.
            let reading = Node::start(again.disk.clone(), node.now, node.day).disk.requests;
            let to_write = reading + 3;
            again.disk.failing = Some((to_write, DiskErrorKind::Full));
        }
        again.boot();
        assert!(again.is_ready);
        assert_eq!(again.replies.pop_front(), Some(Ok(Done::Locked)));
        assert_eq!(again.replies.pop_front(), Some(Ok(Done::Edited)));
        committed(again.replies.pop_front().unwrap());
        assert_eq!(again.running(), TWO);
        again.assert_components_hold_what_runs();
        let unwritten = |notice: &String| notice.starts_with("the history does not know");
        assert_eq!(again.notices.iter().any(unwritten), full, "{:?}", again.notices);
    }
}

#[test]
fn edits_outlive_a_commit_that_expired_while_the_node_was_down() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(600)));
    node.ask(edit("set rib limit 7")).unwrap();
    let edits = node.candidate();
    let late = node.now + 11 * MINUTE;
    let requests = node.disk.requests;
    let again = Node::start(node.disk.clone(), late, node.day);
    assert_eq!((again.running(), again.candidate()), (ONE.to_owned(), edits.clone()));
    // Wherever the node goes down meanwhile.
    for request in requests..again.disk.requests {
        let mut cut = Node::off(node.disk.clone(), late, node.day, Some(request));
        cut.boot();
        assert!(cut.is_off, "request {request}");
        let again = Node::start(cut.disk, late, cut.day);
        assert_eq!((again.running(), again.candidate()), (ONE.to_owned(), edits.clone()));
    }
}

#[test]
fn the_first_commit_falls_back_to_nothing() {
    let mut node = node();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(60)));
    let late = restarted(node, 2 * MINUTE);
    assert_eq!(late.running(), "version 1;\n");
}

#[test]
fn a_fallback_goes_on_where_a_component_refuses() {
    let mut node = running_one();
    node.ask(edit("set rib limit 1")).unwrap();
    committed(node.ask(commit()));
    for command in ["set fea mtu 2", "set rib limit 2"] {
        node.ask(edit(command)).unwrap();
    }
    committed(node.ask(commit_confirmed(60)));
    node.refusing = vec!["fea".to_owned()];
    node.wait(2 * MINUTE);
    let notice = "a component does not fall back, and is started again: fea: I will not";
    assert!(node.notices.contains(&notice.to_owned()), "{:?}", node.notices);
    assert!(node.components["rib"].to_string().contains("limit 1;"));
    assert_eq!(node.renewed, ["fea"]);
    node.assert_components_hold_what_runs();
}

#[test]
fn who_neither_answers_nor_goes_back_is_started_again_with_what_runs() {
    let mut node = running_one();
    node.ask(edit("delete fea")).unwrap();
    node.silent = vec!["fea".to_owned()];
    assert_eq!(node.ask_as(ALICE, commit()), None);
    node.wait(MINUTE);
    let Some(Err(refusal)) = node.replies.pop_front() else { panic!("fea is silent") };
    let silent = "fea: it did not answer within 30 s";
    let stuck = "and does not take back what was before, with which it is started again";
    assert_eq!(refusal.to_string(), format!("{silent}\n{stuck}: {silent}"));
    assert_eq!((node.running().as_str(), node.renewed.as_slice()), (ONE, &["fea".to_owned()][..]));
    node.assert_components_hold_what_runs();
}

#[test]
fn who_does_not_answer_while_falling_back_is_started_again_with_what_runs() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit_confirmed(60)));
    node.silent = vec!["fea".to_owned()];
    node.wait(MINUTE);
    assert_eq!(node.running(), TWO, "fea is asked");
    node.fall_back();
    assert_eq!((node.running().as_str(), node.renewed.as_slice()), (ONE, &["fea".to_owned()][..]));
    node.assert_components_hold_what_runs();
}

#[test]
fn revisions_are_restored_into_the_candidate() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit()));
    assert_eq!(node.ask(Action::Restore(1)), Ok(Done::Edited));
    assert_eq!((node.running().as_str(), node.candidate().as_str()), (TWO, ONE));
    assert_eq!(committed(node.ask(commit())), 3);
    assert!(matches!(node.ask(Action::Restore(9)), Err(Refusal::Disk(_))));
}

#[test]
fn the_history_is_bounded_and_keeps_what_may_be_needed() {
    let mut node = running_one();
    for mtu in 2..20 {
        node.ask(edit(&format!("set fea mtu {mtu}"))).unwrap();
        committed(node.ask(commit()));
    }
    assert_eq!(node.disk.revisions().len(), KEEP);
    for mtu in 20..40 {
        node.ask(edit(&format!("set fea mtu {mtu}"))).unwrap();
        committed(node.ask(commit_confirmed(60)));
    }
    let names = node.disk.revisions();
    assert_eq!((names.len(), names[0].as_str()), (KEEP + 1, "0000000019.conf"));
    node.wait(2 * MINUTE);
    assert_eq!(node.running(), "version 1;\nfea {\n    mtu 19;\n}\n");
}

#[test]
fn a_spoilt_revision_is_passed_over_and_named() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 2")).unwrap();
    committed(node.ask(commit()));
    let path = std::path::Path::new(DIRECTORY).join("0000000002.conf");
    node.disk.spoil(&path, 60);
    let mut again = restarted(node, MINUTE);
    assert_eq!(again.running(), ONE);
    assert!(again.notices[0].starts_with("revision 2 is lost: "), "{:?}", again.notices);
    again.ask(Action::Lock).unwrap();
    again.ask(edit("set fea mtu 3")).unwrap();
    assert_eq!(committed(again.ask(commit())), 3, "the number is not used twice");
}

#[test]
fn a_disk_that_cannot_be_read_is_an_error() {
    let mut disk = Disk::default();
    disk.failing = Some((1, DiskErrorKind::Denied));
    let node = Node::start(disk, Instant::ZERO, 0);
    assert!(!node.is_ready);
    assert_eq!(node.failed.as_deref(), Some("request 1 was made to fail"));
}

#[test]
fn differences_are_shown_without_secrets() {
    let mut node = running_one();
    node.ask(edit("set rib key geheim")).unwrap();
    let text = node.configuration.transaction().compare().to_string();
    assert_eq!(text, "[edit]\n+   rib {\n+       key ********;\n+   }\n");
}

#[test]
fn edits_and_their_lock_outlive_the_process() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 77")).unwrap();
    let edited = node.candidate();
    let mut again = restarted(node, MINUTE);
    assert_eq!((again.running().as_str(), again.candidate()), (ONE, edited));
    let lock = again.configuration.transaction().lock().unwrap();
    assert_eq!(lock.who, who(ALICE));
    let refused = again.ask_as(3, edit("set fea mtu 78")).unwrap();
    assert!(matches!(refused, Err(Refusal::Locked(_))), "{refused:?}");
    assert_eq!(committed(again.ask(commit())), 2);
    // The lock alone stays, too; without it nothing is kept.
    let mut again = restarted(again, MINUTE);
    assert!(again.configuration.transaction().lock().is_some());
    assert_eq!(again.candidate(), again.running());
    again.ask(edit("set fea mtu 79")).unwrap();
    again.ask(Action::Unlock).unwrap();
    let again = restarted(again, MINUTE);
    assert!(again.configuration.transaction().lock().is_none());
    assert_eq!(again.candidate(), again.running());
    assert!(!again.disk.names().iter().any(|name| name.ends_with("candidate")));
}

#[test]
fn edits_whose_file_is_spoilt_are_named_and_the_rest_goes_on() {
    let mut node = running_one();
    node.ask(edit("set fea mtu 77")).unwrap();
    node.disk.spoil(&std::path::Path::new(DIRECTORY).join("candidate"), 60);
    let again = restarted(node, MINUTE);
    assert_eq!((again.running().as_str(), again.candidate().as_str()), (ONE, ONE));
    assert!(again.configuration.transaction().lock().is_none());
    let notice = &again.notices[0];
    assert!(notice.starts_with("edits that were not committed are gone: "), "{notice}");
}

#[test]
fn what_the_disk_does_not_keep_is_edited_nevertheless() {
    let mut node = running_one();
    node.disk.failing = Some((node.disk.requests + 2, DiskErrorKind::Other));
    node.ask(edit("set fea mtu 77")).unwrap();
    let notice = &node.notices[0];
    assert!(notice.starts_with("edits would not outlive a restart: "), "{notice}");
    assert_eq!(committed(node.ask(commit())), 2);
}
