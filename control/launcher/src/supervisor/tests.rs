//! The life of a node, to the nanosecond.

use super::*;
use crate::name::Secret;
use crate::protocol::{Command, Outcome, Request, State};

const GRACE: Duration = Duration::from_secs(5);

/// A supervisor, and what it wanted last in words.
struct Node {
    supervisor: Supervisor<u32>,
    now: Instant,
    requests: u64,
}

impl Node {
    /// A node whose manager runs as process 1.
    fn start() -> Self {
        let supervisor = Supervisor::new(Settings {
            run_directory: "/run/n".into(),
            groups: BTreeSet::new(),
            grace: GRACE,
            manager_failures: 3,
            missing: Vec::new(),
        });
        let mut node = Self { supervisor, now: Instant::from_nanos(1), requests: 0 };
        assert_eq!(node.tell(Input::Tick), ["start manager"]);
        assert!(node.started("manager", 1).is_empty());
        node
    }

    fn tell(&mut self, input: Input<u32>) -> Vec<String> {
        let mut out = Vec::new();
        self.supervisor.handle(self.now, input, &mut out);
        out.into_iter().filter_map(words).collect()
    }

    fn started(&mut self, name: &str, pid: i32) -> Vec<String> {
        self.tell(Input::Started { instance: named(name), uid: None, result: Ok(pid) })
    }

    fn ended(&mut self, pid: i32) -> Vec<String> {
        self.tell(Input::Ended { pid, exit: Exit { status: Some(0), ..Exit::default() } })
    }

    fn ask(&mut self, command: Command, descriptors: Vec<u32>) -> Vec<String> {
        self.requests += 1;
        let bytes = Request { id: self.requests, command }.encode().unwrap();
        self.tell(Input::Request { bytes, descriptors, truncated: false })
    }

    fn run(&mut self, name: &str, pid: i32) {
        let started = self.ask(Command::Start(spec(name)), Vec::new());
        assert_eq!(started, ["done".to_owned(), format!("start {name}")]);
        assert_eq!(self.started(name, pid), [format!("tell {name} runs")]);
    }

    /// Waits until the deadline.
    fn wait(&mut self) -> Vec<String> {
        self.now = self.supervisor.deadline().unwrap();
        self.tell(Input::Tick)
    }
}

fn words(output: Output) -> Option<String> {
    Some(match output {
        Output::StartManager => "start manager".to_owned(),
        Output::Start(spec) => format!("start {}", spec.instance),
        Output::Signal { pid, number } => format!("signal {number} to {pid}"),
        Output::Tell(Message::Reply { outcome, .. }) => match outcome {
            Outcome::Done {} => "done".to_owned(),
            Outcome::Refused { error } => error,
            Outcome::Usage(all) => format!("{} processes", all.len()),
            Outcome::Listing(listing) => {
                let one = |one: crate::protocol::Instance| match one.state {
                    State::Running { pid, .. } => format!("{}={pid}", one.spec.instance),
                    State::Ended { .. } => format!("{}=ended", one.spec.instance),
                    State::Failed { error } => format!("{}={error}", one.spec.instance),
                };
                listing.instances.into_iter().map(one).collect::<Vec<_>>().join(" ")
            }
        },
        Output::Tell(Message::Started { instance, .. }) => format!("tell {instance} runs"),
        Output::Tell(Message::Exited { instance, .. }) => format!("tell {instance} ended"),
        Output::Tell(Message::Failed { instance, .. }) => format!("tell {instance} failed"),
        Output::Tell(Message::Stopping {}) => "tell stopping".to_owned(),
        Output::Forget(name) => format!("forget {name}"),
        Output::Over(result) => format!("over {}", result.is_ok()),
        Output::Report(..) | Output::Notify(_) | Output::Tell(Message::Report { .. }) => {
            return None;
        }
    })
}

fn named(name: &str) -> Name {
    name.parse().unwrap()
}

fn spec(name: &str) -> Spec {
    Spec {
        instance: named(name),
        class: named("x"),
        arguments: Vec::new(),
        limits: Default::default(),
        listeners: Vec::new(),
        secret: Secret::new([1; 32]),
    }
}

fn list() -> Command {
    Command::List { after: None }
}

#[test]
fn what_ended_by_itself_stays_in_the_table_and_what_was_stopped_does_not() {
    let mut node = Node::start();
    node.run("a", 2);
    node.run("b", 3);
    assert_eq!(node.ended(2), ["tell a ended"]);
    assert_eq!(node.ask(list(), vec![]), ["a=ended b=3"]);
    assert_eq!(node.ask(Command::Usage {}, vec![]), ["2 processes"], "b and the manager");
    assert_eq!(node.ask(Command::Start(spec("b")), vec![]), ["b runs already"]);
    let stop = Command::Stop { instance: named("b"), grace_ms: 10 };
    assert_eq!(node.ask(stop, vec![]), ["signal 15 to 3", "done"]);
    let asked = node.now;
    assert_eq!(node.wait(), ["signal 9 to 3"]);
    assert_eq!(node.now, asked + Duration::from_millis(10));
    assert_eq!(node.ended(3), ["forget b", "tell b ended"]);
    assert_eq!(node.ask(list(), vec![]), ["a=ended"]);
    node.run("a", 4);
}

#[test]
fn what_could_not_be_started_is_told_and_can_be_tried_again() {
    let mut node = Node::start();
    node.ask(Command::Start(spec("a")), vec![]);
    assert_eq!(node.ask(list(), vec![]), [""], "it is neither here nor there");
    let result = Err("no".to_owned());
    let failed = node.tell(Input::Started { instance: named("a"), uid: None, result });
    assert_eq!(failed, ["tell a failed"]);
    assert_eq!(node.ask(list(), vec![]), ["a=no"]);
    node.run("a", 2);
}

#[test]
fn everything_outlives_the_manager_which_is_started_again() {
    let mut node = Node::start();
    node.run("a", 2);
    assert_eq!(node.tell(Input::Lost), ["signal 9 to 1"]);
    assert_eq!(node.ended(1), ["start manager"]);
    node.started("manager", 3);
    assert_eq!(node.ask(list(), vec![]), ["a=2"]);
    // The second death in a row is followed by a wait, the third by the end.
    let died = node.now;
    assert_eq!(node.ended(3), [""; 0]);
    assert_eq!(node.wait(), ["start manager"]);
    assert_eq!(node.now, died + Duration::from_millis(100));
    node.started("manager", 4);
    assert_eq!(node.ended(4), ["tell stopping", "signal 15 to 2"]);
    assert_eq!(node.ended(2), ["forget a", "tell a ended", "over false"]);
    assert_eq!(node.supervisor.deadline(), None);
}

#[test]
fn a_node_ends_with_its_manager_last_and_does_not_wait_for_ever() {
    let mut node = Node::start();
    node.run("a", 2);
    assert_eq!(node.tell(Input::End), ["tell stopping", "signal 15 to 2"]);
    assert_eq!(node.ask(Command::Start(spec("b")), vec![]), ["the node is ending"]);
    let asked = node.now;
    assert_eq!(node.wait(), ["signal 9 to 2"]);
    assert_eq!(node.now, asked + GRACE);
    assert_eq!(node.ended(2), ["forget a", "tell a ended", "signal 15 to 1"]);
    let asked = node.now;
    assert_eq!(node.wait(), ["signal 9 to 1"]);
    assert_eq!(node.now, asked + GRACE);
    assert_eq!(node.ended(1), ["over true"]);
    assert_eq!(node.tell(Input::Tick), [""; 0], "it is over once");
}

#[test]
fn a_manager_that_was_asked_to_end_may_close_its_connection_first() {
    let mut node = Node::start();
    assert_eq!(node.tell(Input::End), ["tell stopping", "signal 15 to 1"]);
    assert_eq!(node.tell(Input::Lost), [""; 0], "it may have more to do");
    assert_eq!(node.wait(), ["signal 9 to 1"], "but not for ever");
    assert_eq!(node.ended(1), ["over true"]);
}

#[test]
fn descriptors_are_kept_for_whom_the_manager_says() {
    let mut node = Node::start();
    let keep = || Command::Keep { name: named("link"), instance: None };
    assert_eq!(node.ask(keep(), vec![]), ["another number of descriptors came with it"]);
    assert_eq!(node.ask(keep(), vec![7]), ["done"]);
    let give = Command::Give { name: named("link"), instance: named("a") };
    assert_eq!(node.ask(give, vec![]), ["done"]);
    let a = named("a");
    assert_eq!(node.supervisor.kept_for(&a).collect::<Vec<_>>(), [(&named("link"), &7)]);
    assert_eq!(node.supervisor.kept_for(&named("b")).count(), 0);
    assert_eq!(node.ask(Command::Drop { name: named("link") }, vec![]), ["done"]);
    assert_eq!(node.supervisor.kept_for(&a).count(), 0);
}

#[test]
fn what_was_kept_for_an_instance_goes_when_it_is_taken_away() {
    let mut node = Node::start();
    let a = named("a");
    let stop = || Command::Stop { instance: named("a"), grace_ms: 10 };
    let keep = || Command::Keep { name: named("link"), instance: Some(named("a")) };
    let killed = |node: &mut Node, pid| {
        let kill = Command::Signal { instance: named("a"), number: SIGKILL };
        assert_eq!(node.ask(kill, vec![]), [format!("signal 9 to {pid}"), "done".to_owned()]);
        assert_eq!(node.ended(pid), ["tell a ended"]);
    };
    node.run("a", 2);
    assert_eq!(node.ask(keep(), vec![7]), ["done"]);
    // It is still there for one that died.
    killed(&mut node, 2);
    assert_eq!(node.supervisor.kept_for(&a).count(), 1);
    node.run("a", 3);
    assert_eq!(node.ask(stop(), vec![]), ["signal 15 to 3", "done"]);
    assert_eq!(node.ended(3), ["forget a", "tell a ended"]);
    assert_eq!(node.supervisor.kept_for(&a).count(), 0);
    // Its name is free for a program that is handed no descriptors.
    let flows = Spec { class: named("application"), ..spec("a") };
    assert_eq!(node.ask(Command::Start(flows), vec![]), ["done", "start a"]);
    assert_eq!(node.started("a", 4), ["tell a runs"]);

    // One that is down already is taken away, too; what is for others stays.
    assert_eq!(node.ask(keep(), vec![8]), ["done"]);
    let other = Command::Keep { name: named("other"), instance: Some(named("b")) };
    assert_eq!(node.ask(other, vec![9]), ["done"]);
    killed(&mut node, 4);
    assert_eq!(node.ask(stop(), vec![]), ["forget a", "done"]);
    assert_eq!(node.supervisor.kept_for(&a).count(), 0);
    assert_eq!(node.supervisor.kept_for(&named("b")).count(), 1);
}
