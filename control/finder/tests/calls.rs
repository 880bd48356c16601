//! Calls between processes: found through the Finder, kept to what each may do, and made again when
//! the Finder or a target has been away.

mod network;
mod raw;
mod remote;

use std::rc::Rc;
use std::time::Duration;

use network::{Network, probe, process};
use raw::{call, hello, name};
use weft_base::Handle;
use weft_xrl::frame::{Frame, Secret};
use weft_xrl::text::Xrl;
use weft_xrl::{Call, Input, Reply, finder};

const PROBE: Secret = [2; 32];
const CALLER: Secret = [3; 32];
const SECOND: Duration = Duration::from_secs(1);

fn add(a: u32, b: u32) -> probe::Add {
    probe::Add { a, b }
}

/// A network with a probe, and what the process `caller` may do.
fn with_access(access: &str) -> Network {
    let mut network = Network::new();
    network.spawn_owner(vec![process("probe", PROBE, ""), process("caller", CALLER, access)]);
    network.spawn_probe("probe", PROBE);
    network.run(SECOND);
    network
}

#[test]
fn a_call_finds_its_target_and_the_answer_its_caller() {
    let mut network = with_access("probe");
    network.spawn_caller("caller", Some(CALLER), "probe", add(40, 2));
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller calls probe", "caller: AddReply { sum: 42 }"]);
    network.spawn_caller("caller", Some(CALLER), "probe", add(u32::MAX, 2));
    network.run(SECOND);
    assert_eq!(
        network.take_log(),
        ["caller calls probe", "caller: 102 COMMAND_FAILED: the sum is too large"]
    );
}

#[test]
fn what_the_access_list_does_not_say_is_not_resolved() {
    for access in ["", "rib", "probe/probe/1.2/take", "probe/other"] {
        let mut network = with_access(access);
        network.spawn_caller("caller", Some(CALLER), "probe", add(1, 2));
        network.run(SECOND);
        assert_eq!(
            network.take_log(),
            ["caller: 201 RESOLVE_FAILED: caller may not call probe/1.2/add of probe"],
            "{access}"
        );
    }
}

#[test]
fn arguments_outside_of_their_range_are_refused_before_the_component_sees_them() {
    let mut network = with_access("probe/probe/1.2/add?a=1..9");
    network.spawn_caller("caller", Some(CALLER), "probe", add(9, 2));
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller calls probe", "caller: AddReply { sum: 11 }"]);
    network.spawn_caller("caller", Some(CALLER), "probe", add(10, 2));
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller: 101 BAD_ARGS: `a` may not be 10 for this caller"]);
}

#[test]
fn an_unknown_secret_gets_nowhere() {
    let mut network = with_access("probe");
    network.spawn_caller("stranger", Some([4; 32]), "probe", add(1, 2));
    network.run(SECOND * 3);
    let log = network.take_log();
    assert!(!log.is_empty());
    assert!(
        log.iter().all(|line| line == "stranger: the secret is not one of this node"),
        "{log:?}"
    );
}

#[test]
fn a_target_that_is_not_there_is_named_with_those_that_are() {
    let mut network = with_access("*");
    network.spawn_caller("caller", Some(CALLER), "rib", add(1, 2));
    network.run(SECOND);
    assert_eq!(
        network.take_log(),
        ["caller: 201 RESOLVE_FAILED: there is no component `rib`; there are: probe"]
    );
}

#[test]
fn a_call_that_is_not_answered_is_given_up_in_time() {
    let mut network = with_access("probe");
    network.spawn_caller("caller", Some(CALLER), "probe", probe::Forget);
    network.run(SECOND * 2);
    assert_eq!(
        network.take_log(),
        ["caller calls probe", "caller: 211 REPLY_TIMED_OUT: no reply came in time"]
    );
}

#[test]
fn a_process_cannot_register_as_another() {
    let mut network = with_access("");
    let log = Rc::clone(&network.log);
    network.spawn("thief", Some(CALLER), vec![&probe::INTERFACE], move |_, input, _| {
        if let Input::NotRegistered(why) = input {
            log.borrow_mut().push(why);
        }
    });
    network.run(Duration::from_millis(100));
    assert_eq!(network.take_log(), ["caller may register itself only, not thief as thief"]);
}

#[test]
fn only_the_owner_says_which_processes_there_are() {
    let mut network = with_access("*");
    let request = finder::SetProcesses { processes: vec![process("caller", CALLER, "*")] };
    network.spawn_caller("caller", Some(CALLER), "finder", request);
    network.run(SECOND);
    assert_eq!(
        network.take_log(),
        ["caller: 102 COMMAND_FAILED: only the manager says which processes there are"]
    );
    let request = finder::SetOperators { operators: Vec::new(), remote: None };
    network.spawn_caller("caller", Some(CALLER), "finder", request);
    network.run(SECOND);
    assert_eq!(
        network.take_log(),
        ["caller: 102 COMMAND_FAILED: only the manager says who may call"]
    );
}

#[test]
fn text_goes_in_and_text_comes_out() {
    let mut network = with_access("*");
    let log = Rc::clone(&network.log);
    network.spawn("caller", Some(CALLER), Vec::new(), move |_, input, out| match input {
        Input::Registered => {
            for (token, text) in [
                "finder://probe/probe/1.0/add?b:u32=2&a:u32=40",
                "finder://probe/probe/1.0/add?a:u32=40",
                "finder://finder/finder/1.0/targets",
                "finder://probe/probe/1.0/subtract?a:u32=40",
                "finder://probe/probe/1.9/add?b:u32=2&a:u32=40",
            ]
            .into_iter()
            .enumerate()
            {
                let xrl: Xrl = text.parse().unwrap();
                out.push(Call::from_text(token as u64, &xrl).into());
            }
        }
        Input::Replied { token, result } => {
            let text = match result {
                Ok(Reply::Text(text)) => text,
                Ok(Reply::Arguments(_)) => "arguments".to_owned(),
                Err(error) => error.to_string(),
            };
            log.borrow_mut().push(format!("{token} {text}"));
        }
        _ => {}
    });
    network.run(SECOND);
    let mut log = network.take_log();
    log.retain(|line| line != "caller calls probe");
    log.sort();
    assert_eq!(
        log,
        [
            "0 sum:u32=42",
            "1 101 BAD_ARGS: the argument `b:u32` is missing",
            "2 targets:list<target>=(class=probe;instance=probe;address=unix:/run/probe)",
            "3 202 NO_SUCH_METHOD: probe/1.2 has no method `subtract`; it has: echo, add, take, \
             forget, pass, zero, ten, twentyfive",
            "4 202 NO_SUCH_METHOD: probe has probe/1.2, not 1.9",
        ]
    );
}

#[test]
fn births_and_deaths_are_told() {
    let mut network = with_access("");
    let log = Rc::clone(&network.log);
    network.spawn("watcher", None, Vec::new(), move |_, input, out| match input {
        Input::Registered => out.push(weft_xrl::Output::Watch { class: None }),
        Input::Born { instance, .. } => log.borrow_mut().push(format!("{instance} is born")),
        Input::Died { instance, .. } => log.borrow_mut().push(format!("{instance} is dead")),
        _ => {}
    });
    network.run(SECOND);
    assert_eq!(network.take_log(), ["probe is born"]);
    let other = network.spawn_probe("caller", CALLER);
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller is born"]);
    network.world.kill(other);
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller is dead"]);
}

#[test]
fn of_a_caller_that_was_removed_it_is_said_that_it_will_not_come_back() {
    // Who does not end by itself is cut off.
    for (is_removed, ends) in [(false, true), (true, true), (true, false)] {
        let mut network = Network::new();
        let mut processes = vec![process("probe", PROBE, ""), process("caller", CALLER, "probe")];
        network.spawn_owner(processes.clone());
        let log = Rc::clone(&network.log);
        network.spawn("probe", Some(PROBE), vec![&probe::INTERFACE], move |_, input, out| {
            let mut log = log.borrow_mut();
            match input {
                Input::Called(called) => out.push(called.answer(Ok(probe::AddReply { sum: 0 }))),
                Input::Left { removed, .. } => log.push(format!("removed: {removed}")),
                _ => {}
            }
        });
        let caller = network.spawn_caller("caller", Some(CALLER), "probe", add(1, 1));
        network.run(SECOND);
        assert_eq!(network.take_log(), ["caller: AddReply { sum: 0 }"]);
        if is_removed {
            processes.pop();
            network.spawn_owner(processes);
            network.run(SECOND);
            assert_eq!(network.take_log(), [""; 0], "it may still say goodbye");
        }
        if ends {
            network.world.kill(caller);
        }
        network.run(if ends { SECOND } else { 4 * SECOND });
        // Who was cut off tries to come back.
        let mut left = network.take_log();
        left.retain(|line| line.starts_with("removed"));
        assert_eq!(left.last(), Some(&format!("removed: {is_removed}")), "{left:?}");
    }
}

/// A process that calls `add` every time it is told to tick, once a second.
fn spawn_ticker(network: &mut Network) {
    let log = Rc::clone(&network.log);
    network.spawn("caller", Some(CALLER), Vec::new(), move |now, input, out| match input {
        Input::Registered => {
            let call = Call::new(now.as_nanos(), "probe", add(1, 1));
            out.push(call.within(SECOND).into());
        }
        Input::Replied { result, .. } => {
            let ok = result.and_then(|reply| reply.read::<probe::Add>());
            log.borrow_mut().push(ok.map_or_else(|e| e.to_string(), |r| r.sum.to_string()));
        }
        _ => {}
    });
}

#[test]
fn when_the_finder_is_back_everybody_is_found_again_and_nobody_counts_as_dead() {
    let mut network = with_access("probe");
    let log = Rc::clone(&network.log);
    network.spawn("watcher", None, Vec::new(), move |_, input, out| match input {
        Input::Registered => out.push(weft_xrl::Output::Watch { class: None }),
        Input::Born { instance, .. } => log.borrow_mut().push(format!("{instance} is born")),
        Input::Died { instance, .. } => log.borrow_mut().push(format!("{instance} is dead")),
        _ => {}
    });
    spawn_ticker(&mut network);
    network.run(SECOND);
    assert_eq!(network.take_log().last().map(String::as_str), Some("2"));
    network.world.kill(network.finder);
    network.run(SECOND);
    network.restart_finder();
    // The ticker calls again when it is registered again, over the connection that it still has.
    network.run(SECOND * 5);
    assert_eq!(network.take_log(), ["caller calls probe", "2"]);
}

#[test]
fn a_target_that_was_restarted_is_resolved_anew() {
    let mut network = with_access("probe");
    let log = Rc::clone(&network.log);
    network.spawn("caller", Some(CALLER), Vec::new(), move |_, input, out| match input {
        Input::Registered => out.push(weft_xrl::Output::Watch { class: Some("probe".to_owned()) }),
        Input::Born { .. } => out.push(Call::new(1, "probe", add(1, 1)).within(SECOND).into()),
        Input::Replied { result, .. } => {
            let reply = result.and_then(|reply| reply.read::<probe::Add>());
            log.borrow_mut().push(format!("{reply:?}"));
        }
        _ => {}
    });
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller calls probe", "Ok(AddReply { sum: 2 })"]);
    let probes: Vec<_> = network
        .world
        .processes()
        .filter(|process| network.world.process_name(*process).contains("probe"))
        .collect();
    network.world.kill(probes[0]);
    network.run(SECOND);
    network.spawn_probe("probe", PROBE);
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller calls probe", "Ok(AddReply { sum: 2 })"]);
}

#[test]
fn what_a_target_cannot_be_sent_fails_though_it_is_the_first_call() {
    let mut network = Network::new();
    network.spawn_owner(vec![process("probe", PROBE, ""), process("caller", CALLER, "probe")]);
    // Handles cannot be written as text.
    let register = finder::Register {
        class: "probe".to_owned(),
        instance: "probe".to_owned(),
        sole: false,
        address: "text+unix:/run/probe".to_owned(),
        interfaces: vec![probe::INTERFACE.text.to_owned()],
    };
    network.run(SECOND);
    let says = vec![hello(PROBE), name::<finder::Register>(0), call(0, 1, register)];
    network.spawn_raw(Some("/run/probe"), says, true);
    let log = Rc::clone(&network.log);
    network.spawn("caller", Some(CALLER), Vec::new(), move |_, input, out| match input {
        Input::Registered => {
            let request =
                probe::Pass { handle: Handle::from_number(1), name: "a descriptor".to_owned() };
            out.push(Call::new(7, "probe", request).within(SECOND).into());
        }
        Input::Replied { result, .. } => log.borrow_mut().push(result.unwrap_err().to_string()),
        _ => {}
    });
    network.run(SECOND / 2);
    let log = network.take_log();
    assert!(log.len() == 1 && log[0].contains("text"), "{log:?}");
}

/// How many calls of the Finder were heard, and how many of one's own it refused.
fn heard_calls(heard: &raw::Heard) -> (usize, usize) {
    let heard = heard.borrow();
    let count = |is: fn(&Frame) -> bool| heard.iter().filter(|frame| is(frame)).count();
    (
        count(|frame| matches!(frame, Frame::Call { .. })),
        count(|frame| matches!(frame, Frame::Failed { .. })),
    )
}

#[test]
fn watches_of_one_process_are_bounded_and_told_once() {
    let mut network = with_access("");
    let watch = |id, class: &str| call(0, id, finder::Watch { class: Some(class.to_owned()) });
    let mut says = vec![hello(CALLER), name::<finder::Watch>(0)];
    says.extend((0..3).map(|id| watch(id, "probe")));
    says.extend((3..70).map(|id| watch(id, &format!("class{id}"))));
    let many = network.spawn_raw(None, says, true);
    let long = [watch(1, &"x".repeat(65)), watch(2, &"x".repeat(64))];
    let says = [hello(CALLER), name::<finder::Watch>(0)].into_iter().chain(long).collect();
    let long = network.spawn_raw(None, says, true);
    network.run(SECOND);
    assert_eq!(heard_calls(&many), (1, 4), "one birth, and 64 of 68 classes");
    assert_eq!(heard_calls(&long), (0, 1));
}

#[test]
fn who_watches_again_and_again_and_does_not_answer_is_ended() {
    let mut network = with_access("probe");
    let again = |id| {
        let class = || Some("probe".to_owned());
        let watch = call(0, id, finder::Watch { class: class() });
        [watch, call(1, id, finder::Unwatch { class: class() })]
    };
    let says = |times| {
        let names = [hello(CALLER), name::<finder::Watch>(0), name::<finder::Unwatch>(1)];
        names.into_iter().chain((0..times).flat_map(again)).collect()
    };
    let often = network.spawn_raw(None, says(1_000), false);
    let without_end = network.spawn_raw(None, says(20_000), false);
    network.run(SECOND);
    let ended =
        |heard: &raw::Heard| heard.borrow().iter().any(|frame| matches!(frame, Frame::Goodbye(_)));
    assert!(!ended(&often));
    assert!(ended(&without_end));
    network.spawn_caller("caller", Some(CALLER), "probe", add(40, 2));
    network.run(SECOND);
    assert_eq!(network.take_log(), ["caller calls probe", "caller: AddReply { sum: 42 }"]);
}
