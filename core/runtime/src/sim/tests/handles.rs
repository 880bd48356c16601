//! Ports that one process opens for another.

use weft_base::{Buffer, Handle};

use super::*;
use crate::{ChannelAddress, Message};

const TOKEN: Token = Token(5);

fn address() -> ChannelAddress {
    ChannelAddress::Stream("/run/fea".into())
}

/// Listens, and hands everyone who connects a handle for `spec`.
fn opener(spec: PortSpec) -> Spawn {
    let mut waiting = None;
    script("opener", move |turn, event| match event {
        Event::Start => turn.act(Action::Listen { token: TOKEN, address: address() }),
        Event::Accepted { channel, .. } => {
            waiting = Some(channel);
            turn.act(Action::OpenHandles { token: TOKEN, spec: spec.clone() });
        }
        Event::HandlesOpened { handles, info, .. } => {
            let local = info.local.map_or(String::from("-"), |local| local.to_string());
            let buffer = Buffer::from_slice(format!("{} {local}", info.mtu).as_bytes());
            let message = Message { buffer, handles };
            turn.act(Action::Send { channel: waiting.unwrap(), message });
        }
        _ => {}
    })
}

/// Connects, adopts the port as `spec` with this address, and logs what comes of it.
fn adopter(spec: PortSpec, mac: [u8; 6], twice: bool, log: &Log) -> Spawn {
    let log = Rc::clone(log);
    script("adopter", move |turn, event| match event {
        Event::Start => turn.act(Action::Connect { token: TOKEN, address: address() }),
        Event::Messages { mut messages, .. } => {
            let text = String::from_utf8(messages[0].bytes().to_vec()).unwrap();
            let (mtu, local) = text.split_once(' ').unwrap();
            let info =
                weft_port::PortInfo { mac, mtu: mtu.parse().unwrap(), local: local.parse().ok() };
            let handle = messages[0].handles.remove(0);
            let number = handle.number().unwrap();
            turn.act(Action::AdoptPort {
                token: TOKEN,
                spec: spec.clone(),
                handles: vec![handle],
                info,
            });
            if twice {
                let handle = Handle::from_number(number);
                turn.act(Action::AdoptPort {
                    token: TOKEN,
                    spec: spec.clone(),
                    handles: vec![handle],
                    info,
                });
            }
        }
        Event::PortOpened { .. } | Event::PortFailed { .. } | Event::Packets { .. } => {
            log.borrow_mut().push(describe(&event));
        }
        _ => {}
    })
}

fn ethernet() -> PortSpec {
    PortSpec::Ethernet { interface: "eth0".into(), ethertype: TYPE }
}

#[test]
fn an_adopted_port_works_and_a_handle_is_for_one_port() {
    let mut world = world(1);
    let [(a, _), (b, eth0)] = pair(&mut world, &LinkConfig::default());
    let (log, mac) = (Log::default(), world.mac(eth0).0);
    world.spawn(b, opener(ethernet()));
    world.spawn(b, adopter(ethernet(), mac, true, &log));
    world.run_until(at(1_000_000)).unwrap();
    world.spawn(a, sender(vec![frame(b"hello")]));
    world.run_while(|_| true).unwrap();
    let log = log.borrow();
    assert!(log[0].ends_with("opened"), "{log:?}");
    assert!(log[1].contains("stands for no port"), "{log:?}");
    assert!(log[2].ends_with("[19]"), "{log:?}");
}

#[test]
fn a_handle_is_not_another_port_than_it_was_opened_for() {
    let udp = PortSpec::Udp { local: "0.0.0.0:0".parse().unwrap() };
    for (opened, adopted, expected) in [
        (udp.clone(), udp.clone(), "port1 opened"),
        (udp, ethernet(), "is not ethernet:eth0:0x88b5: it is udp:0.0.0.0:0"),
    ] {
        let mut world = world(1);
        let (node, _) = host(&mut world, "a");
        let log = Log::default();
        world.spawn(node, opener(opened));
        world.spawn(node, adopter(adopted, [0; 6], false, &log));
        world.run_while(|_| true).unwrap();
        assert!(log.borrow()[0].contains(expected), "{:?}", log.borrow());
    }
}
