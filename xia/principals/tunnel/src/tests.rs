//! Endpoints as ports come and go.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use weft_base::{Instant, LinkAddress, Packet, PortId, Token};
use weft_port::{PortInfo, PortSpec};
use weft_runtime::Level;
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, BindError, Input, NextHop, Output, Principal, SocketId};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::{Tunnels, Way, to_xid};

const NOW: Instant = Instant::ZERO;
const HERE: &str = "10.99.0.3:13781";
const THERE: &str = "10.99.0.4:13781";

struct Node {
    tunnels: Tunnels,
    out: Vec<Output>,
}

impl Node {
    fn new() -> Self {
        Self::of(Way::U4id)
    }

    fn of(way: Way) -> Self {
        Self { tunnels: Tunnels::new(way), out: Vec::new() }
    }

    fn set(&mut self, line: &str) -> Result<(), WordError> {
        self.tunnels.set(NOW, &line.split(' ').collect::<Vec<_>>(), &mut self.out)
    }

    fn delete(&mut self, line: &str) -> Result<(), WordError> {
        self.tunnels.delete(NOW, &line.split(' ').collect::<Vec<_>>(), &mut self.out)
    }

    fn handle(&mut self, now: Instant, input: Input) {
        self.tunnels.handle(now, input, &mut self.out);
    }

    fn ask(&self, address: &str) -> Answer {
        self.tunnels.lookup(&xid(address), &mut Vec::new())
    }

    /// The token of the only output, which asks for the UDP port `address`.
    fn asked(&mut self, address: &str) -> Token {
        match self.out.drain(..).as_slice() {
            [Output::OpenPort { token, spec: PortSpec::Udp { local } }] => {
                assert_eq!(local.to_string(), address);
                *token
            }
            other => panic!("expected one request for a port, got {other:?}"),
        }
    }

    fn grant(&mut self, address: &str, port: PortId) {
        let token = self.asked(address);
        self.handle(NOW, opened(token, port));
        assert!(self.out.is_empty(), "{:?}", self.out);
    }
}

/// The U4ID of an address and a port, malformed ones included.
fn xid(address: &str) -> Xid {
    let address: std::net::SocketAddrV4 = address.parse().unwrap();
    let mut id = [0; 20];
    id[..4].copy_from_slice(&address.ip().octets());
    id[4..6].copy_from_slice(&address.port().to_be_bytes());
    Xid::new(XidType::U4ID, id)
}

fn opened(token: Token, port: PortId) -> Input {
    Input::PortOpened { token, port, info: PortInfo { mac: [0; 6], mtu: 1472, local: None } }
}

fn datagram_to(address: &str, port: PortId) -> Answer {
    let address: SocketAddr = address.parse().unwrap();
    Answer::Forward(NextHop { port, link: LinkAddress::Udp(address) })
}

/// A node whose tunnels begin at `HERE`, out of port 5.
fn with_tunnel() -> Node {
    let mut node = Node::new();
    node.set(&format!("tunnel {HERE}")).unwrap();
    node.grant(HERE, PortId(5));
    node
}

#[test]
fn answers_by_the_roles_of_a_u4id() {
    let mut node = with_tunnel();
    assert_eq!(node.ask(HERE), Answer::Through);
    assert_eq!(node.ask(THERE), datagram_to(THERE, PortId(5)));
    let malformed = Xid::new(XidType::U4ID, [7; 20]);
    let refused = Answer::Refuse(DropReason::MalformedXid);
    assert_eq!(node.tunnels.lookup(&malformed, &mut Vec::new()), refused);
    for address in ["0.0.0.0:1", "10.0.0.1:0", "224.0.0.5:1", "255.255.255.255:9"] {
        assert_eq!(node.ask(address), refused, "{address}");
    }
    assert_eq!(node.tunnels.bind(xid(HERE), SocketId(1)), Err(BindError::NoSockets));
}

#[test]
fn without_a_tunnel_source_others_are_unknown_and_malformed_ones_still_refused() {
    let mut node = Node::new();
    assert_eq!(node.ask(THERE), Answer::Unknown);
    assert_eq!(node.ask("0.0.0.0:0"), Answer::Refuse(DropReason::MalformedXid));
    node.set(&format!("local {HERE}")).unwrap();
    node.grant(HERE, PortId(5));
    assert_eq!(node.ask(HERE), Answer::Through);
    assert_eq!(node.ask(THERE), Answer::Unknown, "a local endpoint receives only");
}

#[test]
fn a_tunnel_leads_nowhere_until_its_port_is_open() {
    let mut node = Node::new();
    node.set(&format!("tunnel {HERE}")).unwrap();
    assert_eq!(node.ask(THERE), Answer::Unknown);
    assert_eq!(node.ask(HERE), Answer::Through);
    node.grant(HERE, PortId(5));
    assert_eq!(node.ask(THERE), datagram_to(THERE, PortId(5)));
}

#[test]
fn there_is_one_tunnel_source_at_most() {
    let mut node = with_tunnel();
    let error = node.set("tunnel 10.99.0.9:1").unwrap_err();
    assert!(error.text.contains(HERE), "{error}");
    assert!(node.out.is_empty());
    node.set(&format!("tunnel {HERE}")).unwrap();
    assert!(node.out.is_empty(), "the same again changes nothing");
    node.delete(&format!("tunnel {HERE}")).unwrap();
    node.set("tunnel 10.99.0.9:1").unwrap();
}

#[test]
fn an_endpoint_stays_until_both_of_its_statements_are_deleted() {
    let mut node = with_tunnel();
    node.set(&format!("local {HERE}")).unwrap();
    node.delete(&format!("tunnel {HERE}")).unwrap();
    assert!(node.out.is_empty(), "one port serves both");
    assert_eq!((node.ask(HERE), node.ask(THERE)), (Answer::Through, Answer::Unknown));
    assert_eq!(node.delete(&format!("tunnel {HERE}")).unwrap_err().word, Some(1));
    node.delete(&format!("local {HERE}")).unwrap();
    assert!(matches!(node.out.as_slice(), [Output::ClosePort { port: PortId(5) }]));
    assert_eq!(node.ask(HERE), Answer::Unknown);
    assert_eq!(node.delete(&format!("local {HERE}")).unwrap_err().word, Some(1));
}

#[test]
fn a_receiving_endpoint_becomes_the_tunnel_source_without_a_new_port() {
    let mut node = Node::new();
    node.set(&format!("local {HERE}")).unwrap();
    node.grant(HERE, PortId(5));
    node.set(&format!("tunnel {HERE}")).unwrap();
    assert!(node.out.is_empty());
    assert_eq!(node.ask(THERE), datagram_to(THERE, PortId(5)));
}

#[test]
fn loopback_is_reached_from_loopback_only() {
    let node = with_tunnel();
    assert_eq!(node.ask("127.0.0.1:53"), Answer::Unknown);
    let mut node = Node::new();
    node.set("tunnel 127.0.0.1:7000").unwrap();
    node.grant("127.0.0.1:7000", PortId(6));
    assert_eq!(node.ask("127.0.0.2:7000"), datagram_to("127.0.0.2:7000", PortId(6)));
}

#[test]
fn a_port_that_comes_too_late_is_closed() {
    let mut node = Node::new();
    node.set(&format!("local {HERE}")).unwrap();
    let token = node.asked(HERE);
    node.delete(&format!("local {HERE}")).unwrap();
    assert!(node.out.is_empty());
    node.handle(NOW, opened(token, PortId(5)));
    assert!(matches!(node.out.as_slice(), [Output::ClosePort { port: PortId(5) }]));
}

#[test]
fn a_port_that_fails_is_reported_once_and_tried_again() {
    let mut node = Node::new();
    node.set(&format!("tunnel {HERE}")).unwrap();
    let token = node.asked(HERE);
    let in_use = || "the address is in use".to_owned();
    node.handle(NOW, Input::PortFailed { token, error: in_use() });
    assert!(matches!(node.out.as_slice(), [Output::Report { level: Level::Warning, .. }]));
    node.out.clear();
    assert_eq!(node.tunnels.show()["locals"][0]["error"], "the address is in use");
    let due = NOW + Duration::from_secs(1);
    assert_eq!(node.tunnels.deadline(), Some(due));
    node.handle(NOW, Input::Tick);
    assert!(node.out.is_empty());
    node.handle(due, Input::Tick);
    let token = node.asked(HERE);
    node.handle(due, Input::PortFailed { token, error: in_use() });
    assert!(node.out.is_empty());
    let due = due + Duration::from_secs(2);
    node.handle(due, Input::Tick);
    let token = node.asked(HERE);
    node.handle(due, opened(token, PortId(5)));
    assert!(matches!(node.out.as_slice(), [Output::Report { level: Level::Info, .. }]));
    assert_eq!(node.ask(THERE), datagram_to(THERE, PortId(5)));
    assert_eq!(node.tunnels.deadline(), None);
}

#[test]
fn a_lost_port_ends_the_tunnel_until_it_is_back() {
    let mut node = with_tunnel();
    node.handle(NOW, Input::PortLost { port: PortId(5), error: "gone".into() });
    assert_eq!(node.ask(THERE), Answer::Unknown);
    node.out.clear();
    node.handle(NOW + Duration::from_secs(1), Input::Tick);
    let token = node.asked(HERE);
    node.handle(NOW, opened(token, PortId(8)));
    assert_eq!(node.ask(THERE), datagram_to(THERE, PortId(8)));
}

#[test]
fn datagrams_are_routed_as_received_on_their_port() {
    let mut node = with_tunnel();
    let packets = vec![Packet::from_slice(b"one"), Packet::from_slice(b"two")];
    node.handle(NOW, Input::Packets { port: PortId(5), packets });
    let routed: Vec<_> = node
        .out
        .drain(..)
        .map(|output| match output {
            Output::Route { packet } => (packet.bytes().to_vec(), packet.meta.port),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(routed, [(b"one".to_vec(), PortId(5)), (b"two".to_vec(), PortId(5))]);
    node.handle(NOW, Input::Packets { port: PortId(9), packets: vec![Packet::new()] });
    assert!(node.out.is_empty(), "not one of ours");
    assert_eq!(node.tunnels.show()["counters"], json!({ "received": 2, "port-gone": 1 }));
}

#[test]
fn shows_endpoints_in_order() {
    let mut node = with_tunnel();
    node.set("local 10.1.0.1:9").unwrap();
    let line = |address: &str, tunnel: bool, state: &str| {
        json!({
            "xid": xid(address).to_string(), "address": address, "tunnel": tunnel,
            "state": state, "error": null,
        })
    };
    let expected = json!([line("10.1.0.1:9", false, "opening"), line(HERE, true, "open")]);
    assert_eq!(node.tunnels.show()["locals"], expected);
    assert_eq!(node.tunnels.locals(), [xid("10.1.0.1:9"), xid(HERE)]);
}

/// An end of each way on this node, another one, and where the port sends what goes there.
const ENDS: [(Way, &str, &str, &str); 4] = [
    (Way::U4id, "10.99.0.3:13781", "10.99.0.4:13781", "udp:10.99.0.3:13781"),
    (Way::U6id, "[2001:db8::3]:13781", "[2001:db8::4]:13781", "udp:[2001:db8::3]:13781"),
    (Way::I4id, "10.99.0.3", "10.99.0.4", "ip:10.99.0.3:253"),
    (Way::I6id, "2001:db8::3", "2001:db8::4", "ip:[2001:db8::3]:253"),
];

#[test]
fn every_way_opens_its_port_and_sends_by_it() {
    for (way, here, there, spec) in ENDS {
        let mut node = Node::of(way);
        node.set(&format!("tunnel {here}")).unwrap();
        let token = match node.out.drain(..).as_slice() {
            [Output::OpenPort { token, spec: asked }] => {
                assert_eq!(asked.to_string(), spec);
                *token
            }
            other => panic!("expected one request for a port, got {other:?}"),
        };
        node.handle(NOW, opened(token, PortId(5)));
        let address = way.read(there).unwrap();
        let link = match way {
            Way::U4id | Way::U6id => LinkAddress::Udp(address),
            Way::I4id | Way::I6id => LinkAddress::Ip(address.ip()),
        };
        let ask = |end: &str| {
            let xid = to_xid(way, way.read(end).unwrap()).unwrap();
            node.tunnels.lookup(&xid, &mut Vec::new())
        };
        assert_eq!(ask(there), Answer::Forward(NextHop { port: PortId(5), link }));
        assert_eq!(ask(here), Answer::Through);
        assert_eq!(node.tunnels.kind(), way.kind());
        assert_eq!(node.tunnels.show()["locals"][0]["address"], here);
    }
}

#[test]
fn another_protocol_number_opens_the_ports_anew() {
    let mut node = Node::of(Way::I4id);
    node.set("tunnel 10.99.0.3").unwrap();
    let [Output::OpenPort { token, .. }] = node.out.drain(..).collect::<Vec<_>>()[..] else {
        panic!("a port")
    };
    node.handle(NOW, opened(token, PortId(5)));
    node.set("protocol 254").unwrap();
    match node.out.drain(..).as_slice() {
        [Output::ClosePort { port: PortId(5) }, Output::OpenPort { spec, .. }] => {
            assert_eq!(spec.to_string(), "ip:10.99.0.3:254");
        }
        other => panic!("{other:?}"),
    }
    let there = to_xid(Way::I4id, "10.99.0.4:0".parse().unwrap()).unwrap();
    let unknown = node.tunnels.lookup(&there, &mut Vec::new());
    assert_eq!(unknown, Answer::Unknown, "until the port is there");
    node.set("protocol 254").unwrap();
    assert!(node.out.is_empty(), "the same again changes nothing");
    assert_eq!(node.tunnels.show()["protocol"], 254);
    assert_eq!(node.delete("protocol 253").unwrap_err().word, Some(1));
    node.delete("protocol 254").unwrap();
    assert_eq!((node.out.len(), &node.tunnels.show()["protocol"]), (1, &json!(253)));
}
