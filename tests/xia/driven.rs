//! A node without a driver: a test opens its ports, and carries its inputs and outputs.

use std::collections::BTreeMap;

use weft_base::{ChannelId, Instant, Packet, PortId, Random, Token};
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{Action, Component, Event, Peer};
use weft_xip::channel::{Response, emit_command};
use weft_xip::node::Node;

use crate::network::run_directory;

/// The channel of commands; applications have others.
const OPERATOR: ChannelId = ChannelId(1);

/// A running node.
pub(crate) struct Driven {
    node: Node,
}

impl Driven {
    /// The node with this `xia` block. `grant` gives each port that it asks for a number and says
    /// what is known of it.
    pub(crate) fn new(xia: &str, grant: impl Fn(&PortSpec) -> (PortId, PortInfo)) -> Self {
        let text = format!("version 1; node driven; xia {{ {xia} }}");
        let random = Random::from_seed(1);
        let node = weft::read_node_file("driven", &text, &run_directory("driven"), random).unwrap();
        let mut driven = Self { node };
        let mut events = vec![Event::Start];
        while let Some(event) = events.pop() {
            for action in driven.handle(event) {
                if let Action::OpenPort { token, spec } = action {
                    let (port, info) = grant(&spec);
                    events.push(Event::PortOpened { token, port, info });
                }
            }
        }
        driven.accept(OPERATOR);
        driven
    }

    pub(crate) fn handle(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.node.handle(Instant::ZERO, event, &mut out);
        out
    }

    /// Somebody connects.
    pub(crate) fn accept(&mut self, channel: ChannelId) {
        let peer = Peer::Process { pid: 1, uid: 0, gid: 0 };
        self.handle(Event::Accepted { token: Token(0), channel, peer });
    }

    /// A frame or datagram comes in.
    pub(crate) fn receive(&mut self, port: PortId, bytes: &[u8]) -> Vec<Action> {
        let mut packet = Packet::from_slice(bytes);
        packet.meta.port = port;
        self.handle(Event::Packets { port, packets: vec![packet] })
    }

    /// The same; what leaves for it, in order of ports. Nothing else may happen.
    pub(crate) fn forward(&mut self, port: PortId, bytes: &[u8]) -> Vec<(PortId, Packet)> {
        let mut sent = transmitted(self.receive(port, bytes));
        sent.sort_by_key(|(port, _)| *port);
        sent
    }

    /// Carries out a command, such as `principal remove ad`, which must succeed.
    pub(crate) fn command(&mut self, text: &str) {
        let messages = vec![emit_command(text).into()];
        for message in sent(self.handle(Event::Messages { channel: OPERATOR, messages })) {
            if let Response::Failed(error) = message {
                panic!("{text}: {error}");
            }
        }
    }

    /// The counters that are not zero, of a group such as `drops`.
    pub(crate) fn counters(&mut self, group: &str) -> BTreeMap<String, u64> {
        let messages = vec![emit_command("show counters").into()];
        let mut text = Vec::new();
        for message in sent(self.handle(Event::Messages { channel: OPERATOR, messages })) {
            match message {
                Response::Reply { part, .. } => text.extend(part),
                other => panic!("unexpected {other:?}"),
            }
        }
        let counters: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let group = counters[group].as_object().unwrap();
        let counts = group.iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// Ports and packets of actions that are nothing but transmissions.
pub(crate) fn transmitted(actions: Vec<Action>) -> Vec<(PortId, Packet)> {
    let one = |action| match action {
        Action::Transmit { port, packet } => (port, packet),
        other => panic!("unexpected {other:?}"),
    };
    actions.into_iter().map(one).collect()
}

/// Messages of actions that are nothing but messages to an application.
pub(crate) fn sent(actions: Vec<Action>) -> Vec<Response> {
    let one = |action| match action {
        Action::Send { message, .. } => Response::parse(message.buffer.into()).unwrap(),
        other => panic!("unexpected {other:?}"),
    };
    actions.into_iter().map(one).collect()
}
