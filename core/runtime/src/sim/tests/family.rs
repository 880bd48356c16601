//! Processes that start others.

use std::path::PathBuf;

use weft_base::ChannelId;

use super::*;

const PATH: &str = "/run/service";
/// Where flows are attached.
const FLOWS: &str = "/run/flows";

fn address() -> ChannelAddress {
    ChannelAddress::Stream(PathBuf::from(PATH))
}

fn send(channel: ChannelId, text: &str) -> Action {
    Action::Send { channel, message: Packet::from_slice(text.as_bytes()).into() }
}

/// Starts a child whenever it has none, with a name that counts.
struct Keeper {
    log: Log,
    make: fn(&Log) -> Box<dyn Process>,
    started: u32,
}

impl Component for Keeper {
    type Input = ParentEvent;
    type Output = ParentAction;

    fn handle(&mut self, now: Instant, event: ParentEvent, out: &mut Vec<ParentAction>) {
        self.log.borrow_mut().push(format!("{} parent: {event:?}", now.as_nanos()));
        let start = match event {
            ParentEvent::Ended { .. } => true,
            ParentEvent::World(event) => {
                if let Event::Messages { channel, .. } = event {
                    out.push(ParentAction::World(send(channel, "yes")));
                }
                matches!(event, Event::Start)
            }
            _ => false,
        };
        if start && self.started < 3 {
            self.started += 1;
            out.push(ParentAction::Spawn(Child {
                token: Token(self.started),
                name: format!("child{}", self.started),
                process: (self.make)(&self.log),
                listeners: vec![address(), ChannelAddress::Packets(PathBuf::from(FLOWS))],
                channel: Some("above".to_owned()),
            }));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

fn keeper(log: &Log, make: fn(&Log) -> Box<dyn Process>) -> Spawn {
    Spawn::parent("keeper", Box::new(Keeper { log: Rc::clone(log), make, started: 0 }))
}

/// Listens at the socket of its parent, says so, answers, and asks its parent something.
fn child(log: &Log) -> Box<dyn Process> {
    let log = Rc::clone(log);
    script("child", move |turn, event| {
        log.borrow_mut().push(format!("{} child: {}", turn.now.as_nanos(), describe(&event)));
        match event {
            Event::Start => {
                turn.act(Action::Report { level: crate::Level::Info, line: "here".to_owned() });
                turn.act(Action::Listen { token: Token(9), address: address() });
            }
            Event::Inherited { channel, .. } => turn.act(send(channel, "may I?")),
            Event::Messages { channel, messages } if messages[0].bytes() == b"hello" => {
                turn.act(send(channel, "good day"));
            }
            _ => {}
        }
    })
    .into_process()
}

fn client(log: &Log) -> Spawn {
    let log = Rc::clone(log);
    script("client", move |turn, event| {
        log.borrow_mut().push(format!("{} client: {}", turn.now.as_nanos(), describe(&event)));
        match event {
            Event::Start => turn.act(Action::Connect { token: Token(2), address: address() }),
            Event::Connected { channel, .. } => turn.act(send(channel, "hello")),
            _ => {}
        }
    })
}

fn find<'a>(log: &'a [String], part: &str) -> Vec<&'a str> {
    log.iter().map(String::as_str).filter(|line| line.contains(part)).collect()
}

#[test]
fn a_child_has_a_channel_to_its_parent_and_speaks_through_it() {
    let log = Log::default();
    let mut world = world(1);
    let (node, _) = host(&mut world, "a");
    let parent = world.spawn(node, keeper(&log, child));
    world.run_until(at(1_000_000)).unwrap();
    let said = log.borrow();
    assert_eq!(find(&said, "Spawned").len(), 1, "{said:?}");
    assert_eq!(find(&said, "child: channel1 [\"yes\"]").len(), 1, "{said:?}");
    assert_eq!(world.lines(parent)[0].text, "here");
    let child = world.processes().last().unwrap();
    assert!(world.lines(child).is_empty());
    assert_eq!(world.process_name(child), "child1 on a");
}

#[test]
fn connections_wait_while_a_child_is_started_anew() {
    let log = Log::default();
    let mut world = world(1);
    let (node, _) = host(&mut world, "a");
    // The first child dies before it listens.
    let parent = world.spawn(node, keeper(&log, |_| script("mute", |_, _| {}).into_process()));
    world.run_until(at(1_000_000)).unwrap();
    let mute = world.processes().last().unwrap();
    world.spawn(node, client(&log));
    world.run_until(at(2_000_000)).unwrap();
    assert_eq!(find(&log.borrow(), "client: Connected").len(), 1);
    assert!(find(&log.borrow(), "good day").is_empty());
    world.kill(mute);
    world.kill(parent);
    world.run_until(at(3_000_000)).unwrap();
    let closed = find(&log.borrow(), "client: Closed").len();
    assert_eq!(closed, 1, "who waits is refused when the parent has ended");

    log.borrow_mut().clear();
    world.spawn(node, keeper(&log, child));
    world.run_until(at(4_000_000)).unwrap();
    let first = world.processes().last().unwrap();
    world.kill(first);
    world.spawn(node, client(&log));
    world.run_until(at(5_000_000)).unwrap();
    let said = log.borrow();
    assert_eq!(find(&said, "Ended").len(), 1, "{said:?}");
    assert_eq!(find(&said, "good day").len(), 1, "{said:?}");
}

#[test]
fn a_kept_socket_serves_the_kind_of_channel_that_the_child_says() {
    let log = Log::default();
    let mut world = world(1);
    let (node, _) = host(&mut world, "a");
    let parent = world.spawn(
        node,
        keeper(&log, |log| {
            // The first child dies before it listens.
            let (log, first) = (Rc::clone(log), log.borrow().len() < 2);
            script("child", move |turn, event| match event {
                Event::Start if first => turn.act(Action::Exit { status: 0 }),
                Event::Inherited { .. } => {
                    let address = ChannelAddress::Flow(PathBuf::from(FLOWS));
                    turn.act(Action::Listen { token: Token(9), address });
                }
                event => log.borrow_mut().push(format!("child: {}", describe(&event))),
            })
            .into_process()
        }),
    );
    for (name, address) in [
        ("flow", ChannelAddress::Flow(PathBuf::from(FLOWS))),
        ("packets", ChannelAddress::Packets(PathBuf::from(FLOWS))),
        ("stream", ChannelAddress::Stream(PathBuf::from(FLOWS))),
    ] {
        let log = Rc::clone(&log);
        world.spawn(
            node,
            script(name, move |turn, event| {
                if let Event::Start = event {
                    turn.act(Action::Connect { token: Token(2), address: address.clone() });
                }
                log.borrow_mut().push(format!("{name}: {}", describe(&event)));
            }),
        );
    }
    world.run_until(at(1_000_000)).unwrap();
    let said = log.borrow();
    assert_eq!(find(&said, "child: Accepted").len(), 1, "{said:?}");
    assert_eq!(find(&said, "flow: Connected").len(), 1, "{said:?}");
    assert!(find(&said, "flow: Closed").is_empty(), "{said:?}");
    assert_eq!(find(&said, "packets: Closed").len(), 1, "{said:?}");
    assert_eq!(find(&said, "stream: cannot connect").len(), 1, "{said:?}");
    assert_eq!(world.status(parent), Status::Running);
}

#[test]
fn nobody_but_the_heir_listens_at_a_kept_address() {
    let log = Log::default();
    let mut world = world(1);
    let (node, _) = host(&mut world, "a");
    world.spawn(node, keeper(&log, child));
    world.spawn(node, keeper(&log, child));
    let other = Spawn::new("other", child(&log));
    world.spawn(node, other);
    world.run_until(at(1_000_000)).unwrap();
    let said = log.borrow();
    assert_eq!(find(&said, "SpawnFailed").len(), 1, "{said:?}");
    assert_eq!(find(&said, "keeper on a listens there already").len(), 1, "{said:?}");
    assert_eq!(find(&said, "Listening {").len(), 1, "{said:?}");
}

#[test]
fn children_end_with_their_parent() {
    let log = Log::default();
    let mut world = world(1);
    let (node, _) = host(&mut world, "a");
    let parent = world.spawn(node, keeper(&log, child));
    world.run_until(at(1_000_000)).unwrap();
    assert_eq!(world.running(), 2);
    world.kill(parent);
    assert_eq!(world.running(), 0);
    world.spawn(node, Spawn::new("next", child(&log)));
    world.run_until(at(2_000_000)).unwrap();
    assert_eq!(find(&log.borrow(), "Listening {").len(), 2, "the address is free again");
}
