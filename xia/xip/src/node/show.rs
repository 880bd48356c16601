//! What a node shows of itself, as JSON whose lists are sorted.

mod tables;

use serde_json::{Map, Value, json};
use weft_base::{CounterGroup, Counters, Instant, LinkAddress, PortId, Reason};
use weft_port::PortStatistics;
use weft_runtime::DriverCounts;
use weft_wire::MacAddr;

use super::sockets::ECHO;
use super::{Node, Owner, Part};
use crate::LastNode;
use crate::forward::{Activity, DropReason, Step, Visit};
use crate::principal::{Answer, SocketId};

impl Node {
    /// The part of the node's state that `what` names, at the time `now`.
    ///
    /// # Errors
    /// There is nothing of this name.
    pub fn show(&mut self, now: Instant, what: &str) -> Result<Value, String> {
        match what {
            "node" => Ok(self.show_node()),
            "principals" => Ok(self.show_principals()),
            "routes" => Ok(self.show_routes()),
            "neighbours" => Ok(self.show_neighbours(now)),
            "counters" => Ok(self.show_counters()),
            "dst" => Ok(self.show_dst(false)),
            "all-dst" => Ok(self.show_dst(true)),
            "forwarding" => Ok(self.show_forwarding(&[])),
            "anchors" => Ok(self.show_anchors(false)),
            "all-anchors" => Ok(self.show_anchors(true)),
            "trace" => Ok(self.show_trace()),
            protocol if self.protocols.has(protocol) => {
                Ok(self.protocols.get(protocol).map(|protocol| protocol.show()).unwrap_or_default())
            }
            _ => Err(format!(
                "there is no `{what}` to show; there are: node, principals, routes, neighbours, counters, ports, \
                 forwarding, dst, all-dst, anchors, all-anchors, trace, and the protocols that the node runs"
            )),
        }
    }

    fn show_node(&self) -> Value {
        let scope: Vec<_> =
            self.settings.scope.path(&self.forwarder).iter().map(ToString::to_string).collect();
        let interfaces: Vec<_> = self
            .interfaces
            .iter()
            .map(|interface| match interface.up() {
                Some((_, info)) => json!({
                    "name": interface.name, "up": true,
                    "mac": MacAddr(info.mac).to_string(), "mtu": info.mtu,
                }),
                None => json!({
                    "name": interface.name, "up": false, "trouble": interface.trouble(),
                }),
            })
            .collect();
        json!({
            "name": self.settings.name,
            "scope": scope,
            "locals": self.locals().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "interfaces": interfaces,
            "principals": self.names.values().collect::<Vec<_>>(),
            "protocols": self.protocols.names().collect::<Vec<_>>(),
            "sockets": self.sockets.addresses().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    fn show_principals(&self) -> Value {
        let shown = self.names.iter().filter_map(|(kind, name)| {
            Some((name.clone(), self.forwarder.principal(*kind)?.show()))
        });
        Value::Object(shown.collect())
    }

    /// What became of packets here and in the kernel's engine, and those that were dropped.
    fn packet_counters(&self) -> (Counters<Activity>, Counters<DropReason>) {
        let mut activity = self.forwarder.activity().clone();
        let mut drops = self.forwarder.drops().clone();
        let tally = self.tally();
        activity.add(Activity::Received, tally.received());
        activity.add(Activity::Forwarded, tally.forwarded);
        tally.drops.into_iter().for_each(|(reason, count)| drops.add(reason, count));
        (activity, drops)
    }

    pub(super) fn show_counters(&self) -> Value {
        let (activity, drops) = self.packet_counters();
        json!({
            "activity": counts(&activity),
            "drops": counts(&drops),
            "cache": counts(self.forwarder.cache_activity()),
            "refusals": counts(&self.refusals),
            "errors": counts(self.forwarder.error_activity()),
        })
    }

    /// What the node and its parts have counted.
    pub(super) fn counter_groups(&self) -> Vec<CounterGroup> {
        let forwarder = &self.forwarder;
        let (activity, drops) = self.packet_counters();
        let own = [
            CounterGroup::new("xip-packets", "what became of packets", &activity),
            CounterGroup::new("xip-drops", "packets that were dropped while routed", &drops),
            CounterGroup::new(
                "xip-cache",
                "what the routing cache found and forgot",
                forwarder.cache_activity(),
            ),
            CounterGroup::new(
                "xip-errors",
                "what became of error messages",
                forwarder.error_activity(),
            ),
            CounterGroup::new("xip-refusals", "what applications asked in vain", &self.refusals),
        ];
        let principals =
            self.names.keys().filter_map(|kind| forwarder.principal(*kind)?.counters());
        let protocols =
            self.protocols.names().filter_map(|name| self.protocols.get(name)?.counters());
        own.into_iter().chain(principals).chain(protocols).collect()
    }

    /// What passed the ports and what was lost there, as the driver has counted it.
    pub(super) fn show_ports(&self, counted: &DriverCounts) -> Value {
        let nonzero = |drops: &mut dyn Iterator<Item = (&'static str, u64)>| {
            Value::Object(drops.map(|(name, count)| (name.to_owned(), json!(count))).collect())
        };
        let ports = counted.ports.iter().map(|(port, PortStatistics { received, sent, drops })| {
            json!({
                "port": port.0,
                "of": self.port_name(*port),
                "received_packets": received.packets,
                "received_bytes": received.bytes,
                "sent_packets": sent.packets,
                "sent_bytes": sent.bytes,
                "drops": nonzero(&mut drops.nonzero()),
            })
        });
        json!({
            "ports": ports.collect::<Vec<_>>(),
            "driver_drops": nonzero(&mut counted.drops.iter().copied()),
        })
    }

    fn show_trace(&mut self) -> Value {
        let visits: Vec<Visit> = self.forwarder.tracer().visits().cloned().collect();
        Value::Array(visits.iter().map(|visit| self.show_visit(visit)).collect())
    }

    fn show_visit(&self, visit: &Visit) -> Value {
        json!({
            "packet": format!("{:016x}", visit.packet.0),
            "time_ns": visit.time.as_nanos(),
            "from": self.port_name(visit.from),
            "steps": visit.steps.iter().map(|step| self.show_step(step)).collect::<Vec<_>>(),
        })
    }

    fn show_step(&self, step: &Step) -> Value {
        match step {
            Step::At(LastNode::Entry) => json!({"step": "at", "node": "entry"}),
            Step::At(LastNode::Row(row)) => json!({"step": "at", "node": row}),
            Step::Edge { slot, xid } => {
                json!({"step": "edge", "slot": slot, "xid": xid.to_string()})
            }
            Step::NoPrincipal(xid) => json!({"step": "no-principal", "xid": xid.to_string()}),
            Step::Asked { xid, answer } => {
                let (answer, detail) = self.show_answer(answer);
                json!({"step": "asked", "xid": xid.to_string(), "answer": answer, "detail": detail})
            }
            Step::Copied { to } => {
                json!({"step": "copied", "to": to.map(|xid| xid.to_string())})
            }
            Step::Sent { port, link } => {
                json!({"step": "sent", "port": self.port_name(*port), "link": link_text(link)})
            }
            Step::Delivered(socket) => {
                json!({"step": "delivered", "to": self.socket_name(*socket)})
            }
            Step::Dropped(reason) => {
                json!({"step": "dropped", "reason": reason.name(), "help": reason.help()})
            }
        }
    }

    pub(super) fn show_answer(&self, answer: &Answer) -> (&'static str, Option<String>) {
        match answer {
            Answer::Unknown => ("unknown", None),
            Answer::Redirect(xid) => ("redirect", Some(xid.to_string())),
            Answer::AnyOf(_) => ("any-of", None),
            Answer::Through => ("local", None),
            Answer::Deliver(_) => ("socket", None),
            Answer::Forward(hop) => {
                ("forward", Some(format!("{} {}", self.port_name(hop.port), link_text(&hop.link))))
            }
            Answer::Branches => ("branches", None),
            Answer::Refuse(reason) => ("refuse", Some(reason.name().to_owned())),
        }
    }

    /// The address that a socket is bound to.
    pub(super) fn socket_name(&self, socket: SocketId) -> String {
        let channel = self.sockets.channel(socket);
        match channel.and_then(|channel| self.sockets.address(channel)) {
            Some(address) => address.to_string(),
            None if socket == ECHO => "echo responder".to_owned(),
            None => "a socket that is closed by now".to_owned(),
        }
    }

    /// The interface, principal or protocol that has a port.
    pub(super) fn port_name(&self, port: PortId) -> String {
        let name = match self.owners.get(&port) {
            Some(Owner::Interface) => {
                let mut interfaces = self.interfaces.iter();
                interfaces.find(|interface| interface.has(port)).map(|found| found.name.clone())
            }
            Some(Owner::Part(Part::Principal(kind))) => self.names.get(kind).cloned(),
            Some(Owner::Part(Part::Protocol(name))) => Some((*name).to_owned()),
            None if port == PortId::NONE => Some("application".to_owned()),
            None => None,
        };
        name.unwrap_or_else(|| port.to_string())
    }
}

fn link_text(link: &LinkAddress) -> String {
    match link {
        LinkAddress::None => "-".to_owned(),
        LinkAddress::Mac(mac) => MacAddr(*mac).to_string(),
        LinkAddress::Udp(address) => address.to_string(),
        LinkAddress::Ip(address) => address.to_string(),
    }
}

pub(super) fn counts<R: Reason>(counters: &Counters<R>) -> Value {
    Value::Object(
        counters.iter().map(|(name, count)| (name.to_owned(), json!(count))).collect::<Map<_, _>>(),
    )
}
