//! Messages of applications, operators' commands among them: a node takes any sequence of them, and
//! answers in its protocol and in JSON.
//!
//! Input: messages, each behind its length in two octets, in network byte order; the last one may
//! be shorter than it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_base::{ChannelId, Instant, Message, Packet, PortId, Random, Token};
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{Action, Component, Event, Peer};
use weft_xia_ad::Ad;
use weft_xia_ether::Ether;
use weft_xia_hid::Hid;
use weft_xia_lpm::Lpm;
use weft_xia_tunnel::{Tunnels, Way};
use weft_xia_uni4id::Uni4id;
use weft_xia_x4id::{DualStack, Version};
use weft_xia_xdp::Xdp;
use weft_xia_zf::ZFilter;
use weft_xip::channel::{Response, emit_command};
use weft_xip::forward::Limits;
use weft_xip::node::{Node, Registry, PacketIo, Scope, Settings};

/// Whom the messages come from.
const OPERATOR: ChannelId = ChannelId(1);
/// An application that is there all the time.
const APPLICATION: ChannelId = ChannelId(2);

fuzz_target!(|bytes: &[u8]| {
    let mut node = RunningNode::new();
    for message in messages(bytes) {
        node.tell(vec![Packet::from_slice(message)]);
    }
    // Whatever was asked of it, it still serves.
    let reply: Vec<u8> = node
        .tell(vec![emit_command("show")])
        .into_iter()
        .flat_map(|response| match response {
            Response::Reply { part, .. } => part,
            other => panic!("`show` is answered with {other:?}"),
        })
        .collect();
    let value: serde_json::Value = serde_json::from_slice(&reply).expect("replies are JSON");
    assert!(value.is_object(), "{value}");
});

fn messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let (message, rest) = rest.split_at(len);
        // The driver hands nothing on that is empty: it means the end.
        messages.extend((!message.is_empty()).then_some(message));
        bytes = rest;
    }
    messages
}

/// A node that runs, with a driver that opens every port it asks for.
struct RunningNode {
    node: Node,
    ports: u32,
}

impl RunningNode {
    fn new() -> Self {
        let registry = Registry::new()
            .with("ad", |random| Box::new(Ad::new(random)))
            .with("ether", |_| Box::new(Ether::new()))
            .with("hid", |random| Box::new(Hid::new(random)))
            .with("i4id", |_| Box::new(Tunnels::new(Way::I4id)))
            .with("lpm", |random| Box::new(Lpm::new(random)))
            .with("u4id", |_| Box::new(Tunnels::new(Way::U4id)))
            .with("u6id", |_| Box::new(Tunnels::new(Way::U6id)))
            .with("uni4id", |_| Box::new(Uni4id))
            .with("x4id", |_| Box::new(DualStack::new(Version::V4)))
            .with("xdp", |random| Box::new(Xdp::new(random)))
            .with("zf", |_| Box::new(ZFilter::new()));
        let settings = Settings {
            key: None,
            name: "fuzz".to_owned(),
            socket: "/run/fuzz/xia.sock".into(),
            limits: Limits::default(),
            echo: true,
            packet_io: PacketIo::Packet,
            scope: Scope::default(),
            operator: 0,
        };
        let mut node = Self { node: Node::new(settings, registry, Random::from_seed(1)), ports: 0 };
        node.node.add_interface("eth0").expect("there is no other");
        node.handle(Event::Start);
        for channel in [OPERATOR, APPLICATION] {
            let peer = Peer::Process { pid: 1, uid: 0, gid: 0 };
            node.handle(Event::Accepted { token: Token(0), channel, peer });
        }
        for name in ["hid", "xdp"] {
            node.tell(vec![emit_command(&format!("principal add {name}"))]);
        }
        node
    }

    /// What the node answers to messages of the operator.
    fn tell(&mut self, messages: Vec<Packet>) -> Vec<Response> {
        let messages = messages.into_iter().map(Message::from).collect();
        self.handle(Event::Messages { channel: OPERATOR, messages })
    }

    /// Handles an event and all that its actions cause; returns the messages sent to the operator.
    fn handle(&mut self, event: Event) -> Vec<Response> {
        let mut responses = Vec::new();
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Vec::new();
            self.node.handle(Instant::ZERO, event, &mut out);
            for action in out {
                match action {
                    Action::OpenPort { token, spec } => events.push(self.open(token, &spec)),
                    Action::Send { channel, message } => {
                        let response = Response::parse(message.buffer.into())
                            .expect("the node speaks the protocol");
                        responses.extend((channel == OPERATOR).then_some(response));
                    }
                    Action::Exit { .. } => panic!("a message ended the node"),
                    _ => {}
                }
            }
        }
        responses
    }

    fn open(&mut self, token: Token, spec: &PortSpec) -> Event {
        self.ports += 1;
        let port = PortId(self.ports);
        let local = match spec {
            PortSpec::Udp { local } => Some(*local),
            _ => None,
        };
        let info = PortInfo { mac: [2, 0, 0, 0, 0, 1], mtu: 1500, local };
        Event::PortOpened { token, port, info }
    }
}
