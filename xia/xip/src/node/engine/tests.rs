//! The engine comes and goes while packets do, and what an earlier life of the process has left goes.

use weft_base::{Instant, Token};
use weft_runtime::{Action, Component, EngineReply, EngineRequest, Event, MapWrite};

use super::mode;
use crate::node::PacketIo;
use crate::node::ports::tests::{World, engine_requests, opened};

impl World {
    fn say(&mut self, word: &str) -> Vec<(Token, EngineRequest)> {
        let mut out = Vec::new();
        self.node.set_engine(mode(word).unwrap(), &mut out);
        engine_requests(out)
    }

    fn answer(&mut self, token: Token, result: Result<EngineReply, &str>) -> Vec<Action> {
        self.event(Event::EngineAnswered { token, result: result.map_err(str::to_owned) })
    }

    /// Time passes until something is due.
    fn wait(&mut self) -> Vec<(Token, EngineRequest)> {
        let mut out = Vec::new();
        self.node.handle(self.node.deadline().unwrap(), Event::Tick, &mut out);
        engine_requests(out)
    }

    fn is_waiting(&self) -> bool {
        self.node.deadline().is_some()
    }

    fn engine(&self) -> String {
        self.node.show_forwarding(&[])["interfaces"][0]["engine"].as_str().unwrap().to_owned()
    }
}

fn detach(requests: &[(Token, EngineRequest)]) -> Token {
    let [(token, EngineRequest::Detach { interface, .. })] = requests else {
        panic!("{requests:?}")
    };
    assert_eq!(interface, "eth0");
    *token
}

fn done() -> Result<EngineReply, &'static str> {
    Ok(EngineReply::Done { release: Vec::new() })
}

/// How many decisions are written.
fn decisions(actions: &[Action]) -> usize {
    let writes = actions.iter().map(|action| match action {
        Action::WriteTables { writes, .. } => {
            writes.iter().filter(|write| matches!(write, (1, MapWrite::Clear))).count()
        }
        _ => 0,
    });
    writes.sum()
}

#[test]
fn an_engine_knows_what_was_in_use_before_it_is_attached() {
    let mut world = World::new(PacketIo::Packet);
    for host in 1..=5 {
        // Addresses that occur once are no news.
        (0..1 + host % 2).for_each(|_| drop(world.forward_to(host, 100)));
    }
    let requests = world.say("auto");
    let [(token, EngineRequest::Open { .. })] = requests[..] else { panic!("{requests:?}") };
    let actions = world.answer(token, Ok(opened()));
    let [Action::AdoptTables { token, .. }] = actions[..] else { panic!("{actions:?}") };
    let actions = world.event(Event::TablesAdopted { token, result: Ok(()) });
    assert_eq!(decisions(&actions), 3);
    let written = actions.iter().position(|action| matches!(action, Action::WriteTables { .. }));
    let attached = actions.iter().position(|action| matches!(action, Action::Engine { .. }));
    assert!(written.unwrap() < attached.unwrap(), "{actions:?}");
}

#[test]
fn what_an_earlier_life_has_left_is_asked_to_go_until_it_does() {
    let mut world = World::new(PacketIo::Packet);
    let requests = world.say("auto");
    let [(token, EngineRequest::Open { .. })] = requests[..] else { panic!("{requests:?}") };
    // The FEA is away, and with it whoever could detach what it has left in the kernel.
    let token = detach(&engine_requests(world.answer(token, Err("nobody is there"))));
    assert!(!world.is_waiting() && world.node.kernel.is_opening());
    assert!(engine_requests(world.answer(token, Err("nobody is there"))).is_empty());
    let token = detach(&world.wait());
    world.answer(token, Err("nobody is there"));
    assert!(world.node.kernel.is_opening(), "it may forward by what does not hold any more");
    let token = detach(&world.wait());
    world.answer(token, done());
    assert!(!world.is_waiting() && !world.node.kernel.is_opening());
    assert_eq!(world.engine(), "portable");
}

#[test]
fn an_engine_that_was_not_detached_is_asked_to_go_again() {
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    let token = detach(&world.say("portable"));
    world.answer(token, Err("nobody is there"));
    let token = detach(&world.wait());
    world.answer(token, done());
    assert!(!world.is_waiting());
    // Who wants it again meanwhile need not wait for that.
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    let token = detach(&world.say("portable"));
    let again = world.say("generic");
    let [(opening, EngineRequest::Open { .. })] = again[..] else { panic!("{again:?}") };
    world.answer(token, Err("nobody is there"));
    let actions = world.answer(opening, Ok(opened()));
    let [Action::AdoptTables { token, .. }] = actions[..] else { panic!("{actions:?}") };
    let requests = engine_requests(world.event(Event::TablesAdopted { token, result: Ok(()) }));
    let [(token, EngineRequest::Attach { .. })] = requests[..] else { panic!("{requests:?}") };
    world.answer_attach(token);
    assert!(!world.is_waiting());
    assert_eq!(world.engine(), "generic");
}

#[test]
fn saying_it_again_tries_again_where_something_was_in_the_way() {
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    assert!(world.say("auto").is_empty(), "it is there");
    let mut world = World::new(PacketIo::Packet);
    let requests = world.say("auto");
    let [(token, EngineRequest::Open { .. })] = requests[..] else { panic!("{requests:?}") };
    let actions = world.answer(token, Ok(opened()));
    let [Action::AdoptTables { token, .. }] = actions[..] else { panic!("{actions:?}") };
    let requests = engine_requests(world.event(Event::TablesAdopted { token, result: Ok(()) }));
    let [(token, EngineRequest::Attach { .. })] = requests[..] else { panic!("{requests:?}") };
    world.answer(token, Err("another program is there"));
    assert_eq!(world.engine(), "portable");
    let requests = world.say("auto");
    let [(token, EngineRequest::Attach { .. })] = requests[..] else { panic!("{requests:?}") };
    world.answer_attach(token);
    assert_eq!(world.engine(), "generic");
}

#[test]
fn times_are_those_of_the_node() {
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    let token = detach(&world.say("portable"));
    let now = Instant::ZERO;
    world.answer(token, Err("nobody is there"));
    assert!(world.node.deadline().unwrap() > now);
}

#[test]
fn what_the_engine_had_no_place_for_is_offered_again_when_it_is_used() {
    let mut world = World::new(PacketIo::Packet);
    world.attached();
    let size = |world: &World| {
        let size = world.node.forwarder.cache_size();
        (size.offloaded, size.without_room)
    };
    let forward = |world: &mut World| assert_eq!(world.forward_to(1, 100).len(), 1);
    (0..2).for_each(|_| forward(&mut world));
    assert_eq!(size(&world), (1, 0));
    let token = world.node.kernel.tables().unwrap();
    let full = |token, host| Event::TablesFull { token, keys: vec![(1, vec![host])] };
    // Tables of before, and hosts of which nothing was told.
    world.event(full(Token(u32::MAX), 1));
    world.event(full(token, 2));
    assert_eq!(size(&world), (1, 0));
    world.event(full(token, 1));
    assert_eq!(size(&world), (0, 1));
    forward(&mut world);
    assert_eq!(size(&world), (1, 1));
}
