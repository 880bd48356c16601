//! The principal itself: the ends on this node, and what look-ups answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZero;

use serde_json::{Value, json};
use weft_base::{CounterGroup, Counters, Instant, Packet, PortId, Token};
use weft_runtime::Level;
use weft_xip::changes::{Change, ChangeLog};
use weft_xip::forward::DropReason;
use weft_xip::kept_port::{KeptPort, PortState};
use weft_xip::principal::{Answer, Branch, Input, NextHop, Output, Principal};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::name;
use crate::statement::{Role, Statement};
use crate::way::{USUAL_PROTOCOL, Way};

weft_base::reasons! {
    /// What is counted.
    pub enum Activity {
        Received = "received", "packets that came in at an end on this node";
        PortGone = "port-gone", "packets that came in at an end that was deleted meanwhile";
    }
}

/// The principal of one of the ways over IP; see the crate's text.
#[derive(Debug)]
pub struct Tunnels {
    way: Way,
    /// The protocol number of ports that have one.
    protocol: NonZero<u8>,
    endpoints: BTreeMap<SocketAddr, Endpoint>,
    /// Where tunnels begin, while that endpoint's port is open.
    source: Option<Source>,
    changes: ChangeLog,
    counters: Counters<Activity>,
    last_token: u32,
}

/// An address of this node at which it receives.
#[derive(Debug)]
struct Endpoint {
    is_local: bool,
    is_tunnel: bool,
    port: KeptPort,
    /// Why there is no port, if there is none.
    error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    port: PortId,
    is_loopback: bool,
}

impl Tunnels {
    /// A node without ends of tunnels: it neither receives nor sends.
    #[must_use]
    pub fn new(way: Way) -> Self {
        Self {
            way,
            protocol: USUAL_PROTOCOL,
            endpoints: BTreeMap::new(),
            source: None,
            changes: ChangeLog::default(),
            counters: Counters::default(),
            last_token: 0,
        }
    }

    fn tunnel(&self) -> Option<(&SocketAddr, &Endpoint)> {
        self.endpoints.iter().find(|(_, endpoint)| endpoint.is_tunnel)
    }

    /// Works out again where tunnels begin.
    fn refresh(&mut self) {
        let source = self.tunnel().and_then(|(address, endpoint)| {
            let port = endpoint.port.port()?;
            Some(Source { port, is_loopback: address.ip().is_loopback() })
        });
        if source != self.source {
            // Every address is reached from there.
            self.source = source;
            self.changes.note(Change::All);
        }
    }

    fn add(
        &mut self,
        role: Role,
        address: SocketAddr,
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        if role == Role::Tunnel
            && let Some((other, _)) = self.tunnel()
            && *other != address
        {
            let other = self.way.text(*other);
            let text = format!("tunnels begin at {other} already; a node has one such address");
            return Err(WordError::at(0, text));
        }
        if !self.endpoints.contains_key(&address) {
            let token = self.next_token();
            let mut port = KeptPort::new(self.way.port(address, self.protocol));
            port.open(token, out);
            let endpoint = Endpoint { is_local: false, is_tunnel: false, port, error: None };
            self.endpoints.insert(address, endpoint);
            self.note(address);
        }
        if let Some(endpoint) = self.endpoints.get_mut(&address) {
            endpoint.is_local |= role == Role::Local;
            endpoint.is_tunnel |= role == Role::Tunnel;
        }
        self.refresh();
        Ok(())
    }

    fn remove(
        &mut self,
        role: Role,
        address: SocketAddr,
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        let text = format!("{} is not set so here", self.way.text(address));
        let missing = WordError::at(1, text).absent();
        let Some(endpoint) = self.endpoints.get_mut(&address) else { return Err(missing) };
        let flag = match role {
            Role::Local => &mut endpoint.is_local,
            Role::Tunnel => &mut endpoint.is_tunnel,
        };
        if !std::mem::take(flag) {
            return Err(missing);
        }
        if !endpoint.is_local && !endpoint.is_tunnel {
            endpoint.port.close(out);
            self.endpoints.remove(&address);
            self.note(address);
        }
        self.refresh();
        Ok(())
    }

    /// Opens all ports anew, for another protocol.
    fn change_protocol(&mut self, protocol: NonZero<u8>, out: &mut Vec<Output>) {
        if std::mem::replace(&mut self.protocol, protocol) == protocol {
            return;
        }
        for (address, endpoint) in &mut self.endpoints {
            endpoint.port.close(out);
            self.last_token += 1;
            endpoint.port = KeptPort::new(self.way.port(*address, protocol));
            endpoint.port.open(Token(self.last_token), out);
        }
        self.refresh();
    }

    /// Notes that what is answered for this address may be something else now.
    fn note(&mut self, address: SocketAddr) {
        // It has been checked that the address has an XID.
        let xid = name::to_xid(self.way, address);
        self.changes.note(xid.map_or(Change::All, Change::Xid));
    }

    fn next_token(&mut self) -> Token {
        self.last_token += 1;
        Token(self.last_token)
    }

    fn in_state(&mut self, state: PortState) -> Option<(&SocketAddr, &mut Endpoint)> {
        self.endpoints.iter_mut().find(|(_, endpoint)| endpoint.port.state() == state)
    }

    fn port_opened(&mut self, token: Token, port: PortId, out: &mut Vec<Output>) {
        let way = self.way;
        let Some((address, endpoint)) = self.in_state(PortState::Opening(token)) else {
            // The endpoint was deleted while its port was being opened.
            out.push(Output::ClosePort { port });
            return;
        };
        endpoint.error = None;
        if endpoint.port.opened(port) {
            let line = format!("XIP packets are received at {} again", way.text(*address));
            out.push(Output::Report { level: Level::Info, line });
        }
    }

    fn port_failed(
        &mut self,
        now: Instant,
        state: PortState,
        error: String,
        out: &mut Vec<Output>,
    ) {
        let way = self.way;
        let Some((address, endpoint)) = self.in_state(state) else { return };
        if endpoint.port.failed(now) {
            let address = way.text(*address);
            let line =
                format!("no XIP packets are received at {address}: {error}; it is tried again");
            out.push(Output::Report { level: Level::Warning, line });
        }
        endpoint.error = Some(error);
    }

    /// Asks again for ports that failed.
    fn retry(&mut self, now: Instant, out: &mut Vec<Output>) {
        for endpoint in self.endpoints.values_mut() {
            if endpoint.port.retry_at().is_some_and(|at| at <= now) {
                self.last_token += 1;
                endpoint.port.open(Token(self.last_token), out);
            }
        }
    }

    /// Takes packets out of their tunnel: the port has taken off the headers.
    fn receive(&mut self, port: PortId, packets: Vec<Packet>, out: &mut Vec<Output>) {
        let count = packets.len() as u64;
        if self.in_state(PortState::Open(port)).is_none() {
            return self.counters.add(Activity::PortGone, count);
        }
        self.counters.add(Activity::Received, count);
        out.extend(packets.into_iter().map(|mut packet| {
            packet.meta.port = port;
            Output::Route { packet }
        }));
    }
}

impl Principal for Tunnels {
    fn kind(&self) -> XidType {
        self.way.kind()
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        let Ok(address) = name::from_xid(xid) else {
            return Answer::Refuse(DropReason::MalformedXid);
        };
        if self.endpoints.contains_key(&address) {
            return Answer::Through;
        }
        match self.source {
            Some(source) if source.is_loopback || !address.ip().is_loopback() => {
                Answer::Forward(NextHop { port: source.port, link: self.way.link(address) })
            }
            _ => Answer::Unknown,
        }
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
    }

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Tick
            | Input::InterfaceUp { .. }
            | Input::InterfaceDown { .. }
            | Input::Adjacency { .. }
            | Input::Ip { .. } => {}
            Input::PortOpened { token, port, .. } => self.port_opened(token, port, out),
            Input::PortFailed { token, error } => {
                self.port_failed(now, PortState::Opening(token), error, out);
            }
            Input::PortLost { port, error } => {
                self.port_failed(now, PortState::Open(port), error, out);
            }
            Input::Packets { port, packets } => return self.receive(port, packets, out),
        }
        self.retry(now, out);
        self.refresh();
    }

    fn deadline(&self) -> Option<Instant> {
        self.endpoints.values().filter_map(|endpoint| endpoint.port.retry_at()).min()
    }

    fn set(&mut self, _: Instant, words: &[&str], out: &mut Vec<Output>) -> Result<(), WordError> {
        match Statement::read(self.way, words)? {
            Statement::End(role, address) => self.add(role, address, out),
            Statement::Protocol(protocol) => {
                self.change_protocol(protocol, out);
                Ok(())
            }
        }
    }

    fn delete(
        &mut self,
        _: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        match Statement::read(self.way, words)? {
            Statement::End(role, address) => self.remove(role, address, out),
            Statement::Protocol(protocol) if protocol == self.protocol => {
                self.change_protocol(USUAL_PROTOCOL, out);
                Ok(())
            }
            Statement::Protocol(_) => {
                let text = format!("the protocol number is {}", self.protocol);
                Err(WordError::at(1, text).absent())
            }
        }
    }

    fn show(&self) -> Value {
        let line = |(address, endpoint): (&SocketAddr, &Endpoint)| {
            let xid = name::to_xid(self.way, *address).map(|xid| xid.to_string());
            let state = match endpoint.port.state() {
                PortState::Closed => "closed",
                PortState::Opening(_) => "opening",
                PortState::Open(_) => "open",
                PortState::Failed(_) => "failed",
            };
            json!({
                "xid": xid.unwrap_or_default(),
                "address": self.way.text(*address),
                "tunnel": endpoint.is_tunnel,
                "state": state,
                "error": endpoint.error,
            })
        };
        let counters: serde_json::Map<_, _> =
            self.counters.iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        let locals: Value = self.endpoints.iter().map(line).collect();
        let mut shown = json!({ "locals": locals, "counters": counters });
        if !self.way.is_udp() {
            shown["protocol"] = self.protocol.get().into();
        }
        shown
    }

    fn counters(&self) -> Option<CounterGroup> {
        let help = "packets of tunnels";
        Some(CounterGroup::new("tunnels", help, &self.counters))
    }

    fn locals(&self) -> Vec<Xid> {
        self.endpoints.keys().filter_map(|end| name::to_xid(self.way, *end).ok()).collect()
    }
}
