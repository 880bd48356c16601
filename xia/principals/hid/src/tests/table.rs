//! Interfaces, ports and statements: what look-ups answer as they come and go.

use std::time::Duration;

use serde_json::json;
use weft_base::{Instant, LinkAddress, PortId, Token};
use weft_port::PortInfo;
use weft_runtime::Level;
use weft_wire::{EthernetFrame, MacAddr};
use weft_xip::Xid;
use weft_xip::principal::{
    Answer, BindError, Branch, GatewaySet, Input, NextHop, Output, Principal, SocketId,
};

use super::exchange::frame;
use super::link::{NWP_PORT, Node, XIP_PORT, announcement, hid, info, mac, reached_at};
use crate::discovery::REPEAT;

const NOW: Instant = Instant::ZERO;

/// Node 1, with its NWP port open and nothing left to do.
fn ready() -> Node {
    let mut node = Node::new(1);
    node.set(NOW, &format!("local {}", hid(1)));
    node.up(NOW);
    node.grant(NOW);
    node.out.clear();
    node
}

fn hear_from(node: &mut Node, id: u8) {
    node.receive(NOW, &frame(&announcement(id), mac(id), MacAddr::BROADCAST));
    node.out.clear();
}

#[test]
fn answers_by_the_roles_of_a_hid() {
    let mut node = ready();
    hear_from(&mut node, 2);
    assert_eq!(node.ask(hid(1)), Answer::Through);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    assert_eq!(node.ask(hid(3)), Answer::Unknown);
    assert_eq!(node.hid.locals(), [hid(1)]);
    assert_eq!(node.hid.bind(hid(1), SocketId(1)), Err(BindError::NoSockets));
}

#[test]
fn hosts_that_nothing_is_known_of_have_the_default() {
    let mut node = Node::new(1);
    let ask = |node: &Node, id: u8| node.hid.lookup(&hid(id), &mut Vec::new());
    node.set(NOW, &format!("route default via {}", hid(8)));
    assert_eq!(ask(&node, 2), Answer::Redirect(hid(8)));
    node.set(NOW, &format!("route {} unreachable", hid(2)));
    node.hid.learn(hid(2), &[hid(7)]);
    assert_eq!(ask(&node, 2), Answer::Unknown, "whatever a protocol says");
    node.hid.learn(hid(3), &[hid(7)]);
    assert_eq!(ask(&node, 3), Answer::Redirect(hid(7)));
    let text = |id: u8| hid(id).to_string();
    let rows = json!([
        { "xid": "default", "via": text(8) },
        { "xid": text(2), "via": null },
    ]);
    assert_eq!(node.hid.show()["routes"], rows);
    let refused = |node: &mut Node, line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        node.hid.delete(NOW, &words, &mut Vec::new()).is_err()
    };
    assert!(refused(&mut node, &format!("route default via {}", hid(7))));
    assert!(refused(&mut node, &format!("route {} via {}", hid(2), hid(7))));
    node.delete(NOW, &format!("route {} unreachable", hid(2)));
    assert_eq!(ask(&node, 2), Answer::Redirect(hid(7)));
    node.set(NOW, &format!("route default via {} {}", hid(9), hid(8)));
    let mut branches = Vec::new();
    let both = [hid(8), hid(9)];
    assert_eq!(node.hid.lookup(&hid(4), &mut branches), Answer::AnyOf(GatewaySet::of(&both)));
    assert_eq!(branches, both.map(Branch::To));
    node.delete(NOW, "route default");
    assert_eq!(ask(&node, 4), Answer::Unknown);
    assert!(refused(&mut node, "route default"));
}

#[test]
fn routes_come_between_configured_and_learned_neighbours() {
    let mut node = ready();
    let via = |id| Answer::Redirect(hid(id));
    let route = format!("route {} via {}", hid(2), hid(8));
    node.hid.learn(hid(2), &[hid(9)]);
    assert_eq!(node.ask(hid(2)), via(9));
    // What NWP says is believed for some time, and a protocol knows better.
    hear_from(&mut node, 2);
    assert_eq!(node.ask(hid(2)), via(9));
    node.set(NOW, &route);
    assert_eq!(node.ask(hid(2)), via(8));
    let neighbour = format!("neighbour {} link 02:00:00:00:00:07 interface eth0", hid(2));
    node.set(NOW, &neighbour);
    assert_eq!(node.ask(hid(2)), reached_at(mac(7)));
    node.delete(NOW, &neighbour);
    assert_eq!(node.ask(hid(2)), via(8));
    node.delete(NOW, &route);
    assert!(node.hid.delete(NOW, &["route", &hid(2).to_string()], &mut Vec::new()).is_err());
    assert_eq!(node.ask(hid(2)), via(9));
    // A neighbour over whom the way to itself leads is simply a neighbour.
    node.hid.learn(hid(2), &[hid(2)]);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    node.hid.learn(hid(2), &[]);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    node.hid.learn(hid(1), &[hid(9)]);
    assert_eq!(node.ask(hid(1)), Answer::Through, "what is local stays local");
}

#[test]
fn a_host_can_be_behind_several_gateways() {
    let mut node = ready();
    let any_of = |all: &[Xid]| Answer::AnyOf(GatewaySet::of(all));
    node.hid.learn(hid(2), &[hid(8), hid(2), hid(7)]);
    let learned = [hid(7), hid(8)];
    let mut branches = Vec::new();
    assert_eq!(node.hid.lookup(&hid(2), &mut branches), any_of(&learned));
    assert_eq!(branches, learned.map(Branch::To));
    node.set(NOW, &format!("route {} via {} {}", hid(2), hid(9), hid(8)));
    branches.clear();
    assert_eq!(node.hid.lookup(&hid(2), &mut branches), any_of(&[hid(8), hid(9)]));
    assert_eq!(branches, [hid(8), hid(9)].map(Branch::To), "what was stated goes first");
    let row = |via| json!({ "xid": hid(2).to_string(), "via": hid(via).to_string() });
    assert_eq!(node.hid.show()["routes"], json!([row(8), row(9)]));
    assert_eq!(node.hid.show()["learned"], json!([row(7), row(8)]));
    let words = ["route", &hid(2).to_string(), "via", &hid(7).to_string()];
    assert!(node.hid.delete(NOW, &words, &mut Vec::new()).is_err());
    node.delete(NOW, &format!("route {} via {}", hid(2), hid(9)));
    assert_eq!(node.ask(hid(2)), Answer::Redirect(hid(8)));
    node.delete(NOW, &format!("route {}", hid(2)));
    assert_eq!(node.ask(hid(2)), any_of(&learned));
}

#[test]
fn a_configured_neighbour_is_used_while_its_interface_is_up() {
    let mut node = Node::new(1);
    let line = format!("neighbour {} link 02:00:00:00:00:07 interface eth0", hid(7));
    node.set(NOW, &line);
    assert_eq!(node.ask(hid(7)), Answer::Unknown);
    node.up(NOW);
    assert_eq!(node.ask(hid(7)), reached_at(mac(7)));
    node.handle(NOW, Input::InterfaceDown { port: XIP_PORT });
    assert_eq!(node.ask(hid(7)), Answer::Unknown);
    node.up(NOW);
    node.delete(NOW, &line);
    assert_eq!(node.ask(hid(7)), Answer::Unknown);
    let words: Vec<_> = line.split(' ').collect();
    assert!(node.hid.delete(NOW, &words, &mut Vec::new()).is_err());
}

#[test]
fn an_interface_that_goes_down_takes_what_was_learned_on_it() {
    let mut node = ready();
    hear_from(&mut node, 2);
    node.handle(NOW, Input::InterfaceDown { port: XIP_PORT });
    assert!(matches!(node.out.as_slice(), [Output::ClosePort { port: NWP_PORT }]));
    assert_eq!(node.ask(hid(2)), Answer::Unknown);
    assert_eq!(node.hid.deadline(), None);
    node.out.clear();
    node.up(NOW);
    assert_eq!(node.ask(hid(2)), Answer::Unknown, "it has to be learned again");
    node.grant(NOW);
    assert_eq!(node.out.len(), 1, "a new interface is announced on at once");
}

#[test]
fn an_interface_with_another_port_keeps_its_neighbours() {
    let mut node = ready();
    hear_from(&mut node, 2);
    let port = PortId(20);
    node.handle(NOW, Input::InterfaceUp { name: "eth0".into(), port, info: info(mac(1)) });
    assert!(node.out.is_empty(), "{:?}", node.out);
    let there = NextHop { port, link: LinkAddress::Mac(mac(2).0) };
    assert_eq!(node.ask(hid(2)), Answer::Forward(there));
    node.handle(NOW, Input::InterfaceDown { port: XIP_PORT });
    assert_eq!(node.ask(hid(2)), Answer::Forward(there), "the old port is nobody's");
}

/// Tells that the interface of [`ready`] has this address and MTU now; what is sent.
fn changed(node: &mut Node, address: MacAddr, mtu: usize) -> Vec<(MacAddr, u8, usize)> {
    let info = PortInfo { mtu, ..info(address) };
    node.handle(NOW, Input::InterfaceUp { name: "eth0".into(), port: XIP_PORT, info });
    sent(node)
}

/// From where each frame was sent that is the only output, and the type and the length of its message.
fn sent(node: &mut Node) -> Vec<(MacAddr, u8, usize)> {
    let sent = node.out.drain(..).map(|output| match output {
        Output::Transmit { port: NWP_PORT, packet } => {
            let frame = EthernetFrame::new_checked(packet.bytes()).unwrap();
            assert!(frame.destination().is_broadcast());
            (frame.source(), frame.payload()[1], frame.payload().len())
        }
        other => panic!("unexpected {other:?}"),
    });
    sent.collect()
}

#[test]
fn an_interface_with_another_mtu_keeps_its_neighbours() {
    let mut node = ready();
    hear_from(&mut node, 2);
    assert_eq!(changed(&mut node, mac(1), 1400), []);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    // Messages are no longer than it.
    for id in 30..130 {
        node.set(NOW, &format!("local {}", hid(id)));
    }
    assert!(sent(&mut node).iter().all(|(.., len)| *len <= 1400));
    let mut lengths = changed(&mut node, mac(9), 400).into_iter().map(|(.., len)| len);
    assert!(lengths.all(|len| len <= 400));
}

#[test]
fn an_interface_with_another_address_is_announced_from_there_and_keeps_its_neighbours() {
    const ANNOUNCEMENT: u8 = 1;
    const WITHDRAWAL: u8 = 0x84;
    let mut node = ready();
    hear_from(&mut node, 2);
    let kinds = |sent: Vec<(MacAddr, u8, usize)>| -> Vec<_> {
        sent.into_iter().map(|(from, kind, _)| (from, kind)).collect()
    };
    let sent_now = kinds(changed(&mut node, mac(9), 1500));
    assert_eq!(sent_now, [(mac(1), WITHDRAWAL), (mac(9), ANNOUNCEMENT)]);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    node.handle(NOW + REPEAT, Input::Tick);
    assert_eq!(kinds(sent(&mut node)), [(mac(9), ANNOUNCEMENT)], "who missed it hears it again");
    node.set(NOW, "nwp off");
    node.out.clear();
    assert_eq!(changed(&mut node, mac(10), 1500), []);
}

#[test]
fn of_two_interfaces_the_first_by_name_is_used_and_the_other_takes_over() {
    let mut node = ready();
    let other = PortInfo { mac: [2, 0, 0, 0, 1, 1], ..info(mac(1)) };
    node.handle(NOW, Input::InterfaceUp { name: "eth1".into(), port: PortId(20), info: other });
    let token = match node.out.drain(..).next() {
        Some(Output::OpenPort { token, .. }) => token,
        other => panic!("{other:?}"),
    };
    node.handle(NOW, Input::PortOpened { token, port: PortId(21), info: other });
    let bytes = frame(&announcement(2), mac(2), MacAddr::BROADCAST);
    let packets = vec![weft_base::Packet::from_slice(&bytes)];
    node.handle(NOW, Input::Packets { port: PortId(21), packets });
    let over_eth1 = NextHop { port: PortId(20), link: LinkAddress::Mac(mac(2).0) };
    assert_eq!(node.ask(hid(2)), Answer::Forward(over_eth1));
    hear_from(&mut node, 2);
    assert_eq!(node.ask(hid(2)), reached_at(mac(2)));
    node.handle(NOW, Input::InterfaceDown { port: XIP_PORT });
    assert_eq!(node.ask(hid(2)), Answer::Forward(over_eth1));
}

#[test]
fn a_hid_is_local_or_a_neighbour_but_never_both() {
    let mut node = ready();
    hear_from(&mut node, 2);
    let neighbour = format!("neighbour {} link 02:00:00:00:00:07 interface eth0", hid(7));
    node.set(NOW, &neighbour);
    for line in
        [format!("local {}", hid(7)), neighbour.replace(&hid(7).to_string(), &hid(1).to_string())]
    {
        let words: Vec<_> = line.split(' ').collect();
        assert!(node.hid.set(NOW, &words, &mut Vec::new()).is_err(), "{line}");
    }
    assert_eq!(node.ask(hid(7)), reached_at(mac(7)));
    node.set(NOW, &format!("local {}", hid(2)));
    assert_eq!(node.ask(hid(2)), Answer::Through, "what was only learned gives way");
    node.delete(NOW, &format!("local {}", hid(2)));
    assert_eq!(node.ask(hid(2)), Answer::Unknown);
}

#[test]
fn nwp_is_switched_off_everywhere_or_on_one_interface() {
    let mut node = ready();
    hear_from(&mut node, 2);
    node.set(NOW, "nwp off");
    let [Output::Transmit { packet, .. }, Output::ClosePort { port: NWP_PORT }] =
        node.out.as_slice()
    else {
        panic!("it takes leave and closes the port: {:?}", node.out);
    };
    assert_eq!(packet.bytes()[15], 0x84, "a withdrawal");
    assert_eq!(node.ask(hid(2)), Answer::Unknown);
    assert_eq!(node.hid.deadline(), None);
    node.out.clear();
    node.set(NOW, "nwp on eth0");
    node.grant(NOW);
    node.out.clear();
    node.delete(NOW, "nwp on eth0");
    assert!(matches!(node.out.last(), Some(Output::ClosePort { .. })), "off holds again");
    node.out.clear();
    node.delete(NOW, "nwp off");
    node.grant(NOW);
    assert!(node.hid.delete(NOW, &["nwp", "off"], &mut Vec::new()).is_err());
}

#[test]
fn a_port_that_comes_too_late_is_closed() {
    let mut node = Node::new(1);
    node.up(NOW);
    let token = node.asked();
    node.set(NOW, "nwp off eth0");
    node.handle(NOW, Input::PortOpened { token, port: NWP_PORT, info: info(mac(1)) });
    assert!(matches!(node.out.as_slice(), [Output::ClosePort { port: NWP_PORT }]));
}

#[test]
fn a_link_without_hardware_addresses_has_no_discovery() {
    let mut node = Node::new(1);
    let info = info(MacAddr::UNSPECIFIED);
    node.handle(NOW, Input::InterfaceUp { name: "lo".into(), port: XIP_PORT, info });
    assert!(node.out.is_empty());
    assert_eq!(node.hid.show()["interfaces"][0]["nwp"], "off");
}

#[test]
fn a_port_that_fails_is_asked_for_again_less_and_less_often() {
    let mut node = Node::new(1);
    node.up(NOW);
    let mut token = node.asked();
    let mut now = NOW;
    let mut waits = Vec::new();
    for round in 0..9 {
        node.handle(now, Input::PortFailed { token, error: "no permission".into() });
        let reports = node.out.drain(..).filter(|o| matches!(o, Output::Report { .. })).count();
        assert_eq!(reports, usize::from(round == 0), "said once");
        let due = node.hid.deadline().unwrap();
        waits.push(due.since(now).as_secs());
        node.handle(due - Duration::from_nanos(1), Input::Tick);
        assert!(node.out.is_empty());
        now = due;
        node.handle(now, Input::Tick);
        token = node.asked();
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    node.handle(now, Input::PortOpened { token, port: NWP_PORT, info: info(mac(1)) });
    assert!(matches!(node.out.as_slice(), [Output::Report { level: Level::Info, .. }]));
    node.out.clear();
    node.handle(now, Input::PortLost { port: NWP_PORT, error: "gone".into() });
    assert!(matches!(node.out.as_slice(), [Output::Report { level: Level::Warning, .. }]));
    assert_eq!(node.hid.deadline(), Some(now + Duration::from_secs(1)));
}

#[test]
fn answers_to_questions_nobody_asked_are_harmless() {
    let mut node = ready();
    node.handle(NOW, Input::PortFailed { token: Token(77), error: "?".into() });
    node.handle(NOW, Input::PortLost { port: PortId(77), error: "?".into() });
    node.handle(NOW, Input::InterfaceDown { port: PortId(77) });
    node.handle(NOW, Input::Packets { port: PortId(77), packets: Vec::new() });
    assert!(node.out.is_empty());
    assert_eq!(node.hid.show()["interfaces"][0]["nwp"], "on");
}

#[test]
fn shows_everything_in_order() {
    let mut node = ready();
    node.set(NOW, &format!("neighbour {} link 02:00:00:00:00:07 interface eth5", hid(7)));
    hear_from(&mut node, 2);
    node.set(NOW, &format!("neighbour {} link 02:00:00:00:00:09 interface eth0", hid(2)));
    let shown = node.hid.show();
    let line = |id: u8, last: u8, interface: &str, origin: &str, used: bool| {
        let learned = origin == "learned";
        json!({
            "xid": hid(id).to_string(), "link": mac(last).to_string(), "interface": interface,
            "origin": origin, "proven": false, "used": used,
            "state": if learned { "reachable" } else { "configured" },
            "heard_ns": learned.then(|| NOW.as_nanos()),
        })
    };
    assert_eq!(shown["locals"], json!([hid(1).to_string()]));
    assert_eq!(
        shown["neighbours"],
        json!([
            line(2, 2, "eth0", "learned", false),
            line(2, 9, "eth0", "configured", true),
            line(7, 7, "eth5", "configured", false),
        ])
    );
    assert_eq!(
        shown["interfaces"],
        json!([
            { "name": "eth0", "link": mac(1).to_string(), "nwp": "on", "proof": "preferred", "neighbours": 2 },
        ])
    );
    assert_eq!(shown["neighbour-limit"], 4096);
}
