//! What changes from step to step.

use std::net::IpAddr;
use std::time::Duration;

use weft_base::PortId;
use weft_port::PortInfo;
use weft_runtime::{InterfaceAddress, IpChange, IpWay};
use weft_xip::XidType;
use weft_xip::forward::{Egress, Framing};
use weft_xip::principal::{Input, Output, SocketId};

use super::neighbours::{Frame, Link};
use super::world::{INTERFACES, MTU, Open, World};

impl World {
    /// Changes something; says what.
    pub(super) fn change(&mut self) -> String {
        let what = self.change_one();
        self.carry();
        what
    }

    fn change_one(&mut self) -> String {
        match self.random.below(28) {
            0 => self.switch_principal(),
            1 => self.switch_interface(),
            2 | 3 => self.answer_port(),
            4 => self.lose_port(),
            5 | 6 => self.switch_socket(),
            7..11 => self.change_ip(),
            11 | 12 => self.learn(),
            13 => self.pass_time(),
            14 => self.change_host(),
            _ => self.statement(),
        }
    }

    /// Loads a principal, tells it of the interfaces, and opens nothing that it asks for yet.
    pub(super) fn load(&mut self, name: &str) {
        let principal = self.registry.make(name, &self.random).unwrap();
        let kind = principal.kind();
        self.forwarder.add_principal(principal);
        for ((name, port), mac) in INTERFACES.into_iter().zip(self.macs) {
            self.tell(kind, up(name, port, mac));
        }
    }

    fn switch_principal(&mut self) -> String {
        let names: Vec<_> = self.registry.names().collect();
        let name = names[self.random.below(names.len() as u64) as usize];
        let kind = self.registry.make(name, &self.random).unwrap().kind();
        self.asked.retain(|(of, ..)| *of != kind);
        self.open.retain(|open| open.kind != kind);
        match self.forwarder.remove_principal(kind) {
            Some(_) => format!("remove {name}"),
            None => {
                self.load(name);
                format!("add {name}")
            }
        }
    }

    fn switch_interface(&mut self) -> String {
        let at = self.random.below(2) as usize;
        let (name, port) = INTERFACES[at];
        let down = self.random.chance(1, 2);
        // Its address may be that of a station that somebody states.
        let mac = [2, 0, 0, 0, 0, 5 + self.random.below(3) as u8];
        if !down {
            self.macs[at] = mac;
        }
        for kind in self.forwarder.kinds().collect::<Vec<_>>() {
            self.tell(kind, if down { Input::InterfaceDown { port } } else { up(name, port, mac) });
        }
        format!("interface {name} {mac:?} down {down}")
    }

    /// Opens a port that a principal has asked for, or fails to.
    fn answer_port(&mut self) -> String {
        let Some((kind, token, link)) = self.asked.pop() else { return "nothing".to_owned() };
        self.last_port += 1;
        let port = PortId(self.last_port);
        let info = PortInfo { mac: [0; 6], mtu: MTU, local: None };
        self.forwarder.add_port(port, Egress { framing: Framing::Bare, mtu: MTU });
        if self.random.chance(1, 5) {
            self.tell(kind, Input::PortFailed { token, error: "no".to_owned() });
            return format!("port of {kind} failed");
        }
        self.open.push(Open { kind, port, link });
        self.tell(kind, Input::PortOpened { token, port, info });
        format!("port of {kind}")
    }

    fn lose_port(&mut self) -> String {
        let Some(Open { kind, port, .. }) = self.open.pop() else { return "nothing".to_owned() };
        self.tell(kind, Input::PortLost { port, error: "gone".to_owned() });
        format!("port of {kind} lost")
    }

    fn switch_socket(&mut self) -> String {
        let xid = self.xid(XidType::XDP);
        let socket = SocketId(self.random.below(3) as u32);
        let bind = self.random.chance(1, 2);
        if let Some(mut principal) = self.forwarder.principal_mut(XidType::XDP) {
            match bind {
                // Whether it could be bound does not matter.
                true => drop(principal.bind(xid, socket)),
                false => principal.unbind(&xid),
            }
        }
        format!("bind {bind} {xid}")
    }

    /// The kernel tells of a route, a neighbour or an interface, or of all that there is, which is less than before.
    fn change_ip(&mut self) -> String {
        let [second, third, last] = [2, 2, 3].map(|below| self.random.below(below) as u8);
        let (interface, name) = [(11, "a"), (12, "b")][self.random.below(2) as usize];
        let router = IpAddr::from([10, 0, 0, last]);
        let change = match self.random.below(12) {
            0..6 => {
                let (length, net) = [
                    (0, [0, 0, 0, 0]),
                    (8, [10, 0, 0, 0]),
                    (16, [10, second, 0, 0]),
                    (24, [10, second, third, 0]),
                    (32, [10, second, third, 1]),
                ][self.random.below(5) as usize];
                let destination = InterfaceAddress { ip: net.into(), prefix_length: length };
                let way = match self.random.below(8) {
                    0 => None,
                    1 => Some(IpWay::Local),
                    2 => Some(IpWay::Nowhere),
                    3 => Some(IpWay::Out { interface, gateway: None }),
                    _ => Some(IpWay::Out { interface, gateway: Some(router) }),
                };
                IpChange::Route { destination, way }
            }
            6..10 => {
                let host = [router, IpAddr::from([10, second, third, 1])];
                let ip = host[self.random.below(2) as usize];
                let mac = self.random.chance(2, 3).then_some([2, 0, 0, 0, 0, last]);
                IpChange::Neighbour { interface, ip, mac, idle: self.random.chance(1, 4) }
            }
            10 => {
                let name = self.random.chance(3, 4).then(|| name.to_owned());
                IpChange::Interface { index: interface, name }
            }
            _ => IpChange::Again,
        };
        let mut changes = vec![change];
        if changes == [IpChange::Again] {
            let name = Some(name.to_owned());
            changes.extend([IpChange::Interface { index: interface, name }, IpChange::Complete]);
        }
        let told = format!("{changes:?}");
        self.tell(XidType::X4ID, Input::Ip { changes: changes.clone() });
        self.tell(XidType::ETHER, Input::Ip { changes });
        told
    }

    /// Sets or deletes a statement; many are refused, and then nothing must have changed.
    fn statement(&mut self) -> String {
        let (kind, line) = match self.random.below(21) {
            0..5 => (XidType::AD, self.table_statement(XidType::AD)),
            5..7 => (XidType::XDP, self.table_statement(XidType::XDP)),
            7 => (XidType::HID, self.route_statement(XidType::HID)),
            8..10 => {
                let neighbour = self.xid(XidType::HID);
                let (interface, number) =
                    (INTERFACES[self.random.below(2) as usize].0, self.random.below(2));
                let line = match self.random.below(3) {
                    0 => format!("local {neighbour}"),
                    _ => format!(
                        "neighbour {neighbour} link 02:00:00:00:00:0{number} interface {interface}"
                    ),
                };
                (XidType::HID, line)
            }
            10..12 => {
                let role = ["local", "tunnel"][self.random.below(2) as usize];
                (XidType::U4ID, format!("{role} 127.0.0.{}:1", self.random.below(4)))
            }
            12..14 => (XidType::LPM, self.prefix_statement()),
            14 => {
                let (neighbour, interface) =
                    (self.xid(XidType::HID2), INTERFACES[self.random.below(2) as usize].0);
                let line =
                    format!("neighbour {neighbour} link 02:00:00:00:00:05 interface {interface}");
                (XidType::HID2, line)
            }
            15 => {
                let role = ["local", "tunnel"][self.random.below(2) as usize];
                match self.random.below(3) {
                    0 => (XidType::I4ID, format!("{role} 127.0.0.{}", self.random.below(4))),
                    1 => (XidType::U6ID, format!("{role} [::{}]:1", self.random.below(4))),
                    _ => (XidType::I6ID, format!("{role} ::{}", self.random.below(4))),
                }
            }
            16 | 17 => {
                let interface = INTERFACES[self.random.below(2) as usize].0;
                let line = match self.random.below(3) {
                    0 => format!("interface {interface}"),
                    _ => {
                        let last = 5 + self.random.below(2);
                        format!("neighbour 02:00:00:00:00:0{last} interface {interface}")
                    }
                };
                (XidType::ETHER, line)
            }
            _ => match self.random.below(4) {
                0 => (XidType::ZF, format!("fill-limit {}", self.random.below(3))),
                _ => (XidType::ZF, self.table_statement(XidType::ZF)),
            },
        };
        let delete = self.random.chance(1, 2);
        let words: Vec<_> = line.split(' ').collect();
        let mut out = Vec::new();
        if let Some(mut principal) = self.forwarder.principal_mut(kind) {
            let done = match delete {
                true => principal.delete(self.now, &words, &mut out),
                false => principal.set(self.now, &words, &mut out),
            };
            drop(done);
        }
        self.note(kind, out);
        format!("delete {delete} {line}")
    }

    fn table_statement(&mut self, kind: XidType) -> String {
        let xid = self.xid(kind);
        match self.random.below(4) {
            0 => format!("local {xid}"),
            // A link of a zFilter has one gateway in each statement.
            _ if kind == XidType::ZF => format!("route {xid} via {}", self.any_xid()),
            _ => self.route_statement(kind),
        }
    }

    /// A route of an XID, to one gateway or several or nowhere, or the default.
    fn route_statement(&mut self, kind: XidType) -> String {
        let xid = self.xid(kind);
        match self.random.below(8) {
            0 => format!("route default via {}", self.gateways()),
            1 => format!("route {xid} unreachable"),
            _ => format!("route {xid} via {}", self.gateways()),
        }
    }

    /// One gateway or several; now and then one is there twice, which is refused.
    fn gateways(&mut self) -> String {
        let count = [1, 1, 2, 2, 3, 5][self.random.below(6) as usize];
        let all: Vec<_> = (0..count).map(|_| self.any_xid().to_string()).collect();
        all.join(" ")
    }

    /// A routing protocol has found ways to an XID, or lost them.
    fn learn(&mut self) -> String {
        let xid = self.any_xid();
        let count = self.random.below(5);
        let via: Vec<_> = (0..count).map(|_| self.any_xid()).collect();
        if let Some(mut principal) = self.forwarder.principal_mut(xid.kind) {
            principal.learn(xid, &via);
        }
        format!("learn {xid} via {via:?}")
    }

    fn prefix_statement(&mut self) -> String {
        let len = [0, 8, 16, 24, 32][self.random.below(5) as usize];
        let (second, third) = (self.random.below(2), self.random.below(2));
        let prefix = match len {
            0 => "0.0.0.0/0".to_owned(),
            8 => "10.0.0.0/8".to_owned(),
            16 => format!("10.{second}.0.0/16"),
            24 => format!("10.{second}.{third}.0/24"),
            _ => format!("10.{second}.{third}.1/32"),
        };
        match self.random.below(4) {
            0 => format!("local {prefix}"),
            1 if self.random.chance(1, 3) => format!("route {prefix} unreachable"),
            _ => format!("route {prefix} via {}", self.gateways()),
        }
    }

    fn tell(&mut self, kind: XidType, input: Input) {
        let mut out = Vec::new();
        if let Some(mut principal) = self.forwarder.principal_mut(kind) {
            principal.handle(self.now, input, &mut out);
        }
        self.note(kind, out);
    }

    fn note(&mut self, kind: XidType, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::OpenPort { token, spec } => {
                    self.asked.push((kind, token, Link::of(&spec)));
                }
                Output::ClosePort { port } => self.open.retain(|open| open.port != port),
                Output::Transmit { port, packet } => {
                    let open = self.open.iter().find(|open| open.port == port);
                    let link = open.and_then(|open| open.link.clone());
                    self.frames.extend(link.map(|link| Frame { link, sender: None, packet }));
                }
                _ => {}
            }
        }
    }

    /// Carries frames between hosts and router until nobody says anything more.
    pub(super) fn carry(&mut self) {
        while let Some(frame) = self.frames.pop_front() {
            self.frames.extend(self.hosts.hear(self.now, &frame));
            let mac = INTERFACES.iter().position(|(name, _)| *name == frame.link.interface);
            let is_for = frame.is_for(self.macs[mac.unwrap()]);
            let hears = |open: &&Open| open.link.as_ref() == Some(&frame.link);
            let open = self.open.iter().find(hears).filter(|_| frame.sender.is_some() && is_for);
            if let Some(Open { kind, port, .. }) = open.cloned() {
                self.tell(kind, Input::Packets { port, packets: vec![frame.packet] });
            }
        }
    }

    /// Seconds go by, one after the other.
    fn pass_time(&mut self) -> String {
        let seconds = [1, 2, 5, 30][self.random.below(4) as usize];
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            for kind in self.forwarder.kinds().collect::<Vec<_>>() {
                let deadline = self.forwarder.principal(kind).and_then(|one| one.deadline());
                if deadline.is_some_and(|deadline| deadline <= self.now) {
                    self.tell(kind, Input::Tick);
                }
            }
            self.frames.extend(self.hosts.tick(self.now));
            self.carry();
        }
        format!("{seconds} s")
    }

    /// A host goes without a word or is there again, ends, or begins anew.
    fn change_host(&mut self) -> String {
        let host = self.random.below(self.hosts.len() as u64) as usize;
        match self.random.below(4) {
            0 => {
                self.hosts.switch(host);
                format!("host {host} goes or comes")
            }
            1 => {
                self.frames.extend(self.hosts.end(host));
                format!("host {host} ends")
            }
            _ => {
                self.begin_host(host);
                format!("host {host} begins anew")
            }
        }
    }

    pub(super) fn begin_host(&mut self, host: usize) {
        let random = self.random.fork("host");
        self.frames.extend(self.hosts.begin(host, self.now, &self.registry, &random));
    }
}

fn up(name: &str, port: PortId, mac: [u8; 6]) -> Input {
    let info = PortInfo { mac, mtu: MTU, local: None };
    Input::InterfaceUp { name: name.to_owned(), port, info }
}
