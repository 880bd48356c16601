//! The principal itself: what the kernel tells, and what look-ups answer.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use serde_json::{Value, json};
use weft_base::{Instant, LinkAddress, PortId};
use weft_routing::Prefix;
use weft_runtime::{IpChange, IpWay, Level};
use weft_xip::changes::{Change, ChangeLog};
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, Branch, Input, NextHop, Output, Principal};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::name::{self, Version};
use crate::neighbours::{Neighbours, News};
use crate::routes::{Hop, Routes};

/// Whose routes and neighbours these are, in what is shown.
const KERNEL: &str = "kernel";

/// The principal X4ID or X6ID; see the crate's text.
#[derive(Debug)]
pub struct DualStack {
    version: Version,
    routes: Routes,
    neighbours: Neighbours,
    /// The interfaces of IP that are up, by index.
    names: BTreeMap<u32, String>,
    /// The ports of interfaces that carry XIP packets, by name.
    ports: BTreeMap<String, PortId>,
    /// Both in one: the ports by index.
    out: BTreeMap<u32, PortId>,
    changes: ChangeLog,
    /// What was known when the kernel's tables were told anew, and was not told again yet.
    old: Option<Old>,
    /// The kernel's rules of policy, which are not followed.
    rules: u32,
    /// Why the kernel's tables are not known.
    error: Option<String>,
    is_watching: bool,
    /// Routers may have become neighbours.
    has_new_ports: bool,
}

#[derive(Debug)]
struct Old {
    routes: BTreeSet<Prefix>,
    neighbours: BTreeSet<Hop>,
    names: BTreeSet<u32>,
    /// Whether no rules were told of again.
    rules: bool,
}

impl DualStack {
    /// A principal that has not been told anything.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self {
            version,
            routes: Routes::new(version),
            neighbours: Neighbours::default(),
            names: BTreeMap::new(),
            ports: BTreeMap::new(),
            out: BTreeMap::new(),
            changes: ChangeLog::default(),
            old: None,
            rules: 0,
            error: None,
            is_watching: false,
            has_new_ports: false,
        }
    }

    fn ip_changed(&mut self, change: IpChange, out: &mut Vec<Output>) {
        match change {
            IpChange::Again => {
                self.error = None;
                self.old = Some(Old {
                    routes: self.routes.iter().map(|(prefix, _)| prefix).collect(),
                    neighbours: self.neighbours.iter().map(|(hop, _)| hop).collect(),
                    names: self.names.keys().copied().collect(),
                    rules: true,
                });
            }
            IpChange::NoTable { is_ipv6, error } if is_ipv6 == (self.version == Version::V6) => {
                let line = format!("{} forwards nothing: {error}", self.version.kind());
                out.push(Output::Report { level: Level::Error, line });
                self.error = Some(error);
            }
            IpChange::Rules { is_ipv6, count } if is_ipv6 == (self.version == Version::V6) => {
                if let Some(old) = &mut self.old {
                    old.rules = false;
                }
                self.set_rules(count, out);
            }
            IpChange::NoTable { .. } | IpChange::Rules { .. } => {}
            IpChange::Interface { index, name } => {
                if let Some(old) = &mut self.old {
                    old.names.remove(&index);
                }
                self.set_interface(index, name);
            }
            IpChange::Route { destination, way } => {
                let Some(prefix) = self.routes.prefix(&destination) else { return };
                if let Some(old) = &mut self.old {
                    old.routes.remove(&prefix);
                }
                self.set_route(prefix, way);
            }
            IpChange::Neighbour { interface, ip, mac, idle } => {
                // Routes of IPv4 may lead over routers of IPv6, not the other way round.
                if Version::of(ip) == Version::V4 && self.version == Version::V6 {
                    return;
                }
                let hop = (interface, ip);
                if let Some(old) = &mut self.old {
                    old.neighbours.remove(&hop);
                }
                self.set_neighbour(hop, mac, idle, out);
            }
            IpChange::Complete => {
                let Some(old) = self.old.take() else { return };
                old.routes.into_iter().for_each(|prefix| self.set_route(prefix, None));
                for hop in old.neighbours {
                    self.set_neighbour(hop, None, false, out);
                }
                old.names.into_iter().for_each(|index| self.set_interface(index, None));
                if old.rules {
                    self.set_rules(0, out);
                }
            }
        }
    }

    fn set_route(&mut self, prefix: Prefix, way: Option<IpWay>) {
        if self.routes.set(prefix, way) {
            let (first, last) = self.routes.range(&prefix);
            self.changes.note(Change::Range(first, last));
        }
    }

    fn set_neighbour(&mut self, hop: Hop, mac: Option<[u8; 6]>, idle: bool, out: &mut Vec<Output>) {
        let news = self.neighbours.set(hop, mac, idle);
        if news == News::Nothing {
            return;
        }
        if news == News::Idle {
            out.push(find(hop));
        }
        // What rests on one that is idle is asked about again, so that it counts as used if something does.
        self.note(&hop);
    }

    /// Notes that everything that is sent to a neighbour may be answered otherwise.
    fn note(&mut self, hop: &Hop) {
        for prefix in self.routes.over(hop) {
            let (first, last) = self.routes.range(prefix);
            self.changes.note(Change::Range(first, last));
        }
        if Version::of(hop.1) == self.version {
            self.changes.note(Change::Xid(name::padded(hop.1)));
        }
    }

    fn set_rules(&mut self, count: u32, out: &mut Vec<Output>) {
        if std::mem::replace(&mut self.rules, count) == count {
            return;
        }
        let kind = self.version.kind();
        let (level, line) = match count {
            0 => (
                Level::Info,
                format!("{kind} goes where IP goes again: the rules of policy are gone"),
            ),
            _ => (
                Level::Warning,
                format!(
                    "{kind} does not follow the kernel's rules of policy (`ip rule`), of which there are {count}: \
                     it goes by the tables local, main and default"
                ),
            ),
        };
        out.push(Output::Report { level, line });
    }

    fn set_interface(&mut self, index: u32, name: Option<String>) {
        match name {
            Some(name) => self.names.insert(index, name),
            None => self.names.remove(&index),
        };
        self.join();
    }

    /// Works out which index has which port.
    fn join(&mut self) {
        let port = |(index, name): (&u32, &String)| Some((*index, *self.ports.get(name)?));
        let out = self.names.iter().filter_map(port).collect();
        if std::mem::replace(&mut self.out, out) != self.out {
            self.has_new_ports = true;
            // Any prefix may lead there.
            self.changes.note(Change::All);
        }
    }

    /// Has the kernel look for neighbours that are needed.
    fn seek(&mut self, now: Instant, out: &mut Vec<Output>) {
        let routes = &self.routes;
        for hop in self.neighbours.give_up(now, |hop| routes.has_router(hop)) {
            // Whoever still needs it will not find it, which notes it.
            self.note(&hop);
        }
        let mut routers = self.routes.take_routers(std::mem::take(&mut self.has_new_ports));
        routers.retain(|(interface, _)| self.out.contains_key(interface));
        out.extend(self.neighbours.seek_routers(now, routers).into_iter().map(find));
        let routes = &self.routes;
        out.extend(self.neighbours.seek(now, |hop| routes.has_router(hop)).into_iter().map(find));
        if self.neighbours.take_missed() {
            self.changes.note(Change::All);
        }
    }
}

fn find((interface, ip): Hop) -> Output {
    Output::FindNeighbour { interface, ip }
}

/// There is nothing to set and nothing to delete.
fn no_statements(kind: XidType, words: &[&str]) -> WordError {
    let word = words.first().copied().unwrap_or_default();
    let text = format!(
        "`{word}` is not a statement of {kind}, which has none: it follows the kernel's table of IP (`ip route`)"
    );
    WordError { word: words.first().map(|_| 0), ..WordError::new(text) }
}

impl Principal for DualStack {
    fn kind(&self) -> XidType {
        self.version.kind()
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        let Ok(ip) = name::from_xid(xid) else {
            return Answer::Refuse(DropReason::MalformedXid);
        };
        let (interface, gateway) = match self.routes.way(ip) {
            Some(IpWay::Local) => return Answer::Through,
            Some(IpWay::Out { interface, gateway }) => (interface, gateway),
            Some(IpWay::Nowhere) | None => return Answer::Unknown,
        };
        let Some(port) = self.out.get(&interface).copied() else { return Answer::Unknown };
        match self.neighbours.find((interface, gateway.unwrap_or(ip)), gateway.is_some()) {
            Some(mac) => Answer::Forward(NextHop { port, link: LinkAddress::Mac(mac) }),
            None => Answer::Unknown,
        }
    }

    fn prefetch(&self, xid: &Xid) {
        if let Ok(ip) = name::from_xid(xid) {
            // Nothing depends on the result, so the processor goes on without waiting for it.
            black_box(self.routes.way(ip).is_some());
        }
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
    }

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        if !std::mem::replace(&mut self.is_watching, true) {
            out.push(Output::WatchIp);
        }
        match input {
            Input::Ip { changes } => {
                changes.into_iter().for_each(|change| self.ip_changed(change, out));
            }
            Input::InterfaceUp { name, port, .. } => {
                self.ports.insert(name, port);
                self.join();
            }
            Input::InterfaceDown { port } => {
                self.ports.retain(|_, own| *own != port);
                self.join();
            }
            // It has no ports of its own.
            Input::Tick
            | Input::Adjacency { .. }
            | Input::PortOpened { .. }
            | Input::PortFailed { .. }
            | Input::PortLost { .. }
            | Input::Packets { .. } => {}
        }
        self.seek(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.is_watching { self.neighbours.deadline() } else { Some(Instant::ZERO) }
    }

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(no_statements(self.kind(), words))
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(no_statements(self.kind(), words))
    }

    fn show(&self) -> Value {
        let name =
            |index: &u32| self.names.get(index).cloned().unwrap_or_else(|| index.to_string());
        let (mut locals, mut routes) = (Vec::new(), Vec::new());
        for (prefix, way) in self.routes.iter() {
            let text = format!("{}/{}", self.routes.address(&prefix), prefix.length());
            match way {
                IpWay::Local => locals.push(json!({ "prefix": text })),
                IpWay::Nowhere => {
                    routes.push(json!({ "prefix": text, "interface": null, "origin": KERNEL }));
                }
                IpWay::Out { interface, gateway } => routes.push(json!({
                    "prefix": text,
                    "interface": name(interface),
                    "gateway": gateway.map(|gateway| gateway.to_string()),
                    "origin": KERNEL,
                })),
            }
        }
        let hop =
            |(interface, ip): &Hop| json!({ "interface": name(interface), "ip": ip.to_string() });
        let neighbours: Vec<_> = self
            .neighbours
            .iter()
            .map(|(at, mac)| {
                let mut line = hop(&at);
                line["link"] = mac.map(|byte| format!("{byte:02x}")).join(":").into();
                // One whose address means something on its link only has no XID.
                line["xid"] = name::to_xid(at.1).ok().map(|xid| xid.to_string()).into();
                line["origin"] = KERNEL.into();
                line
            })
            .collect();
        let sought: Vec<_> = self.neighbours.sought().map(hop).collect();
        json!({
            "locals": locals,
            "routes": routes,
            "neighbours": neighbours,
            "sought": sought,
            "rules": self.rules,
            "error": self.error,
        })
    }

    /// The addresses of this machine, without those that name no single host.
    fn locals(&self) -> Vec<Xid> {
        self.routes.locals().filter_map(|ip| name::to_xid(ip).ok()).collect()
    }
}
