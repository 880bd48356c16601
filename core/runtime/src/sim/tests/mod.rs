//! Tests of the world as a whole, with scripted processes.

mod channels;
mod conservation;
mod ethernet;
mod family;
mod handles;
mod interfaces;
mod ip;
mod ip_watchers;
mod kernel_routes;
mod processes;
mod streams;

use std::cell::RefCell;
use std::rc::Rc;

use weft_base::{Instant, Packet, PortId, Token};
use weft_port::PortSpec;

use super::*;
use crate::{Action, ChannelAddress, Component, Event, LinkConfig, Process};

/// The EtherType of the tests (local experimental, IEEE 802 §9.2.3).
const TYPE: u16 = 0x88b5;

/// What happened to a process, in words, with the time in nanoseconds.
type Log = Rc<RefCell<Vec<String>>>;

/// The world as a script sees it in one event.
struct Turn<'a> {
    now: Instant,
    out: &'a mut Vec<Action>,
    deadline: &'a mut Option<Instant>,
    background: &'a mut u32,
}

impl Turn<'_> {
    fn act(&mut self, action: Action) {
        self.out.push(action);
    }

    fn send(&mut self, port: PortId, bytes: &[u8]) {
        self.act(Action::Transmit { port, packet: Packet::from_slice(bytes) });
    }
}

/// A process that follows a script.
struct Script<F> {
    script: F,
    deadline: Option<Instant>,
    /// Slices still to do.
    background: u32,
}

impl<F: FnMut(&mut Turn<'_>, Event)> Component for Script<F> {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, input: Event, out: &mut Vec<Action>) {
        let (deadline, background) = (&mut self.deadline, &mut self.background);
        (self.script)(&mut Turn { now, out, deadline, background }, input);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn has_background_work(&self) -> bool {
        self.background > 0
    }
}

impl Spawn {
    /// The process itself.
    fn into_process(self) -> Box<dyn Process> {
        match self.body {
            process::Body::Process(process) => process,
            process::Body::Parent(_) => panic!("{} is a parent", self.name),
        }
    }
}

/// A process that does what `script` says.
fn script(name: &str, script: impl FnMut(&mut Turn<'_>, Event) + 'static) -> Spawn {
    Spawn::new(name, Box::new(Script { script, deadline: None, background: 0 }))
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn millis(millis: u64) -> std::time::Duration {
    std::time::Duration::from_millis(millis)
}

fn world(seed: u64) -> World {
    World::new(WorldConfig { seed, ..WorldConfig::default() })
}

fn open(interface: &str) -> Action {
    let spec = PortSpec::Ethernet { interface: interface.into(), ethertype: TYPE };
    Action::OpenPort { token: Token(1), spec }
}

/// Adds a node with an interface `eth0` that hangs on nothing.
fn host(world: &mut World, name: &str) -> (NodeId, InterfaceId) {
    let node = world.add_node(name).unwrap();
    (node, world.add_interface(node, InterfaceConfig::new("eth0")).unwrap())
}

/// Two nodes with a link between their `eth0`, alike in both directions.
fn pair(world: &mut World, link: &LinkConfig) -> [(NodeId, InterfaceId); 2] {
    let (a, b) = (host(world, "a"), host(world, "b"));
    world.connect((a.1, link.clone()), (b.1, link.clone())).unwrap();
    [a, b]
}

/// A broadcast frame of the tests' type.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(TYPE.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Describes an event as the logs have it.
fn describe(event: &Event) -> String {
    match event {
        Event::Packets { port, packets } => {
            let sizes: Vec<_> = packets.iter().map(|packet| packet.len()).collect();
            format!("{port} {sizes:?}")
        }
        Event::Messages { channel, messages } => {
            let texts: Vec<_> =
                messages.iter().map(|m| String::from_utf8_lossy(m.bytes()).into_owned()).collect();
            format!("{channel} {texts:?}")
        }
        Event::PortOpened { port, .. } => format!("{port} opened"),
        Event::PortFailed { error, .. } => error.clone(),
        Event::PortLost { port, error } => format!("{port} lost: {error}"),
        Event::ChannelFailed { error, .. } => error.clone(),
        other => format!("{other:?}"),
    }
}

/// A process that opens `eth0` at the start and logs everything after that.
fn listener(log: &Log) -> Spawn {
    let log = Rc::clone(log);
    script("listener", move |turn, event| match event {
        Event::Start => turn.act(open("eth0")),
        event => {
            log.borrow_mut().push(format!("{} {}", turn.now.as_nanos(), describe(&event)));
        }
    })
}

/// A process that opens `eth0`, sends these frames at once, and exits.
fn sender(frames: Vec<Vec<u8>>) -> Spawn {
    script("sender", move |turn, event| match event {
        Event::Start => turn.act(open("eth0")),
        Event::PortOpened { port, .. } => {
            for frame in &frames {
                turn.send(port, frame);
            }
            turn.act(Action::Exit { status: 0 });
        }
        _ => {}
    })
}
