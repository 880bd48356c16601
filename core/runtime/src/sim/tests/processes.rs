//! Deadlines, background slices, ends of processes, runaways.

use super::*;
use crate::Level;

/// Spawns a script that logs, and is told the number of each event.
fn counted(
    log: &Log,
    mut each: impl FnMut(&mut Turn<'_>, &Event, usize) + 'static,
) -> Box<dyn crate::Process> {
    let log = Rc::clone(log);
    let mut number = 0;
    let script = move |turn: &mut Turn<'_>, event: Event| {
        log.borrow_mut().push(format!("{} {}", turn.now.as_nanos(), describe(&event)));
        each(turn, &event, number);
        number += 1;
    };
    Box::new(Script { script, deadline: None, background: 0 })
}

#[test]
fn deadlines_tick_at_their_time_and_only_the_last_one_counts() {
    let mut world = world(1);
    let (a, _) = host(&mut world, "a");
    let log = Log::default();
    let process = counted(&log, |turn, _, number| {
        *turn.deadline = [Some(500), Some(200), Some(900), None][number].map(at);
        if number == 0 {
            turn.act(Action::Disk { token: Token(0), request: list_root() });
        }
    });
    world.spawn(a, Spawn::new("clock", process));
    assert_eq!(world.run_while(|_| true).unwrap(), Ended::Idle);
    let log = log.borrow();
    assert_eq!((log[0].as_str(), log.len()), ("0 Start", 4));
    assert_eq!(log[2..], ["200 Tick", "900 Tick"], "not at 500: that was taken back");
}

fn list_root() -> crate::DiskRequest {
    crate::DiskRequest::List { path: "/".into() }
}

#[test]
fn a_deadline_in_the_past_is_due_now() {
    let mut world = world(1);
    let (a, _) = host(&mut world, "a");
    let log = Log::default();
    world.run_until(at(100)).unwrap();
    let process = counted(&log, |turn, _, number| {
        *turn.deadline = (number == 0).then_some(at(5));
    });
    world.spawn(a, Spawn::new("late", process));
    world.run_while(|_| true).unwrap();
    assert_eq!(*log.borrow(), ["100 Start", "100 Tick"]);
}

/// Runs two processes with work, and one that sends a frame to one of them at time 5.
fn background_run(slice_cost: u64) -> Vec<String> {
    let config = WorldConfig {
        slice_cost: std::time::Duration::from_nanos(slice_cost),
        ..WorldConfig::default()
    };
    let mut world = World::new(config);
    let link = LinkConfig { delay: std::time::Duration::from_nanos(5), ..Default::default() };
    let [(a, _), (b, _)] = pair(&mut world, &link);
    let log = Log::default();
    let process = counted(&log, |turn, event, _| match event {
        Event::Start => {
            *turn.background = 3;
            turn.act(open("eth0"));
        }
        Event::Slice => *turn.background -= 1,
        _ => {}
    });
    world.spawn(b, Spawn::new("worker", process));
    world.spawn(a, sender(vec![frame(b"x")]));
    world.run_while(|_| true).unwrap();
    log.take()
}

#[test]
fn slices_come_when_nothing_else_is_due() {
    let free = ["0 Start", "0 port1 opened", "0 Slice", "0 Slice", "0 Slice", "5 port1 [15]"];
    assert_eq!(background_run(0), free);
    let dear = ["0 Start", "0 port1 opened", "0 Slice", "5 port1 [15]", "5 Slice", "10 Slice"];
    assert_eq!(background_run(5), dear);
}

#[test]
fn nothing_follows_an_exit() {
    let mut world = world(1);
    let (a, _) = host(&mut world, "a");
    let process = script("brief", |turn, _| {
        turn.act(Action::Print { line: "first".into() });
        turn.act(Action::Report { level: Level::Warning, line: "second".into() });
        turn.act(Action::Exit { status: 3 });
        turn.act(Action::Print { line: "never".into() });
    });
    let id = world.spawn(a, process);
    assert_eq!((world.running(), world.status(id)), (1, Status::Running));
    world.run_while(|_| true).unwrap();
    assert_eq!((world.running(), world.status(id)), (0, Status::Exited(3)));
    let lines: Vec<_> = world.lines(id).iter().map(|l| (l.level, l.text.as_str())).collect();
    assert_eq!(lines, [(None, "first"), (Some(Level::Warning), "second")]);
}

#[test]
fn a_stubborn_process_is_killed_after_its_grace_period() {
    let mut world = world(1);
    let (a, _) = host(&mut world, "a");
    let stubborn = world.spawn(a, script("stubborn", |_, _| {}));
    let obedient = world.spawn(
        a,
        script("obedient", |turn, event| {
            if matches!(event, Event::Stop) {
                turn.act(Action::Exit { status: 0 });
            }
        }),
    );
    world.run_until(at(7)).unwrap();
    world.stop(stubborn);
    world.stop(obedient);
    world.run_until(at(7) + std::time::Duration::from_nanos(9_999_999_999)).unwrap();
    assert_eq!(world.status(stubborn), Status::Running);
    assert_eq!(world.status(obedient), Status::Exited(0));
    world.run_until(at(7) + millis(10_000)).unwrap();
    assert_eq!(world.status(stubborn), Status::Killed);
    assert_eq!(world.status(obedient), Status::Exited(0), "ended before");
}

#[test]
fn a_killed_process_hears_nothing_more_and_a_new_one_takes_its_place() {
    let mut world = world(1);
    let [(a, _), (b, _)] = pair(&mut world, &LinkConfig { delay: millis(1), ..Default::default() });
    let (first, second) = (Log::default(), Log::default());
    let victim = world.spawn(b, listener(&first));
    world.spawn(a, sender(vec![frame(b"x")]));
    world.run_until(at(500_000)).unwrap();
    world.kill(victim);
    world.kill(victim);
    assert_eq!((world.status(victim), world.running()), (Status::Killed, 0));
    world.run_until(at(2_000_000)).unwrap();
    assert_eq!(first.borrow().len(), 1);
    assert_eq!(world.node_counters(b).get(NodeCount::NoListener), 1);
    world.spawn(b, listener(&second));
    world.spawn(a, sender(vec![frame(b"x")]));
    world.run_while(|_| true).unwrap();
    assert_eq!(*second.borrow(), ["2000000 port1 opened", "3000000 port1 [15]"]);
}

#[test]
fn a_process_that_wakes_itself_forever_is_named() {
    let mut world =
        World::new(WorldConfig { max_steps_per_instant: 1000, ..WorldConfig::default() });
    let (a, _) = host(&mut world, "a");
    world.spawn(a, script("innocent", |_, _| {}));
    world.spawn(a, script("spinner", |turn, _| *turn.deadline = Some(turn.now)));
    let error = world.run_until(at(1)).unwrap_err().to_string();
    assert!(error.contains("process spinner on node a"), "{error}");
    assert!(error.contains("without any progress in time"), "{error}");
}

#[test]
fn a_world_without_end_stops_after_its_steps() {
    let mut world = World::new(WorldConfig { max_steps: 1000, ..WorldConfig::default() });
    let (a, _) = host(&mut world, "a");
    let tick = std::time::Duration::from_secs(1);
    world.spawn(a, script("ticker", move |turn, _| *turn.deadline = Some(turn.now + tick)));
    let error = world.run_while(|_| true).unwrap_err().to_string();
    assert!(error.contains("1000 steps in all") && error.contains("ticker"), "{error}");
}
