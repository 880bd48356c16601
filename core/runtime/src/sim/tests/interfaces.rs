//! Interfaces, as processes watch and change them.

use crate::{
    Direction, Interface, InterfaceAddress, InterfaceChange, InterfaceRequest, LossProbability,
    NewInterface, Program, ProgramReply, ProgramRequest,
};

use super::*;

fn show(change: &InterfaceChange) -> String {
    let text = |interface: &Interface| {
        let addresses: Vec<_> = interface.addresses.iter().map(ToString::to_string).collect();
        let state = (interface.up, interface.running);
        format!("{} {state:?} {} {addresses:?}", interface.name, interface.mtu)
    };
    match change {
        InterfaceChange::Added(now) => format!("+ {}", text(now)),
        InterfaceChange::Changed(now) => format!("= {}", text(now)),
        InterfaceChange::Removed { name, .. } => format!("- {name}"),
        InterfaceChange::Complete => "complete".to_owned(),
    }
}

/// Watches (twice, which changes nothing), makes these requests, and logs everything.
fn watcher(log: &Log, requests: Vec<InterfaceRequest>) -> Spawn {
    let log = Rc::clone(log);
    script("watcher", move |turn, event| match event {
        Event::Start => {
            turn.act(Action::WatchInterfaces);
            turn.act(Action::WatchInterfaces);
            for request in &requests {
                let (token, request) = (Token(1), request.clone());
                turn.act(Action::ConfigureInterface { token, request });
            }
        }
        Event::Interface { change } => log.borrow_mut().push(show(&change)),
        Event::InterfaceConfigured { result, .. } => {
            log.borrow_mut().push(result.err().unwrap_or_else(|| "done".to_owned()));
        }
        _ => {}
    })
}

fn address(text: &str) -> InterfaceAddress {
    InterfaceAddress { ip: text.parse().unwrap(), prefix_length: 24 }
}

#[test]
fn what_is_there_comes_first_and_then_each_change_of_the_own_node() {
    let mut world = world(1);
    let [(a, eth0), (_, other)] = pair(&mut world, &LinkConfig::default());
    world.add_address(eth0, [10, 0, 0, 1].into(), 24).unwrap();
    let log = Log::default();
    world.spawn(a, watcher(&log, vec![]));
    world.run_while(|_| true).unwrap();
    let first = ["+ eth0 (true, true) 1500 [\"10.0.0.1/24\"]", "complete"];
    assert_eq!(*log.borrow(), first);
    world.set_up(other, false);
    world.set_up(eth0, false);
    world.set_up(eth0, false);
    let eth1 = world.add_interface(a, InterfaceConfig::new("eth1")).unwrap();
    world.delete_interface(eth0);
    world.add_address(eth1, [10, 0, 1, 1].into(), 24).unwrap();
    world.run_while(|_| true).unwrap();
    let rest = [
        "= eth0 (false, false) 1500 [\"10.0.0.1/24\"]",
        "+ eth1 (true, false) 1500 []",
        "- eth0",
        "= eth1 (true, false) 1500 [\"10.0.1.1/24\"]",
    ];
    assert_eq!(log.borrow()[2..], rest);
}

#[test]
fn programs_are_refused_and_none_is_there() {
    let mut world = world(1);
    let [(a, _), _] = pair(&mut world, &LinkConfig::default());
    let log = Log::default();
    let told = Rc::clone(&log);
    let asks = script("asks", move |turn, event| match event {
        Event::Start => {
            let attach = ProgramRequest::Attach {
                interface: "eth0".to_owned(),
                direction: Direction::Ingress,
                program: Program::loss(LossProbability::ALWAYS, 0),
            };
            for request in [attach, ProgramRequest::List { interface: 1 }] {
                turn.act(Action::Program { token: Token(1), request });
            }
        }
        Event::ProgramAnswered { result, .. } => told.borrow_mut().push(match result {
            Ok(ProgramReply::Listed { found, .. }) => format!("{} programs", found.len()),
            Ok(other) => format!("{other:?}"),
            Err(error) => error,
        }),
        _ => {}
    });
    world.spawn(a, asks);
    world.run_while(|_| true).unwrap();
    let log = log.borrow();
    assert!(log[0].contains("say `loss` of the link in the lab file"), "{log:?}");
    assert_eq!(log[1..], ["0 programs"]);
}

#[test]
fn processes_change_interfaces_and_hear_why_not() {
    let mut world = world(1);
    let [(a, _), _] = pair(&mut world, &LinkConfig::default());
    let log = Log::default();
    let interface = || "eth0".to_owned();
    let own = address("10.0.0.1");
    let longer = InterfaceAddress { prefix_length: 25, ..own };
    let requests = vec![
        InterfaceRequest::SetMtu { interface: interface(), mtu: 1400 },
        InterfaceRequest::AddAddress { interface: interface(), address: own },
        InterfaceRequest::AddAddress { interface: interface(), address: own },
        InterfaceRequest::AddAddress { interface: interface(), address: longer },
        InterfaceRequest::AddAddress { interface: interface(), address: address("::1") },
        InterfaceRequest::DeleteAddress { interface: interface(), address: own },
        InterfaceRequest::DeleteAddress { interface: interface(), address: own },
        InterfaceRequest::SetUp { interface: "eth9".to_owned(), up: true },
        InterfaceRequest::Create { interface: "br".to_owned(), kind: NewInterface::Bridge },
        InterfaceRequest::Delete { interface: interface() },
    ];
    world.spawn(a, watcher(&log, requests));
    world.run_while(|_| true).unwrap();
    let log = log.borrow();
    let expected = [
        "+ eth0 (true, true) 1500 []",
        "complete",
        "= eth0 (true, true) 1400 []",
        "done",
        "= eth0 (true, true) 1400 [\"10.0.0.1/24\"]",
        "done",
        "done",
        "giving `eth0` the address 10.0.0.1/25 failed: the node has this address already",
        "giving `eth0` the address ::1/24 failed: the simulator models IPv4 only",
        "= eth0 (true, true) 1400 []",
        "done",
        "taking the address 10.0.0.1/24 from `eth0` failed: `eth0` does not have it",
        "setting `eth9` up failed: node a has no interface eth9; it has eth0",
        "making the interface `br` failed: the simulator models no virtual interfaces",
        "- eth0",
        "done",
    ];
    assert_eq!(log.len(), expected.len(), "{log:?}");
    for (line, expected) in log.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}
