//! The principal itself: what is stated, what is known of interfaces, and what follows from both.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hint::black_box;

use foldhash::fast::FixedState;
use serde_json::Value;
use weft_base::{Instant, LinkAddress, PortId};
use weft_runtime::{IpChange, Level};
use weft_wire::MacAddr;
use weft_xip::changes::{Change, ChangeLog};
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, Branch, Input, NextHop, Output, Principal};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::interfaces::{Interfaces, Link};
use crate::name::{from_xid, to_xid};
use crate::statements::Statement;

/// The principal Ether; see the crate's text.
#[derive(Debug, Default)]
pub struct Ether {
    /// The interfaces that were stated, by name.
    pub(crate) stated: BTreeSet<String>,
    /// The stations that were stated, by the name of their interface.
    pub(crate) neighbours: BTreeMap<String, BTreeSet<MacAddr>>,
    pub(crate) interfaces: Interfaces,
    /// Why no indexes are known.
    pub(crate) error: Option<String>,
    /// What [`Principal::lookup`] answers, worked out whenever something changes. The seed is fixed: whoever may state
    /// neighbours may do worse than to make look-ups slow.
    answers: HashMap<Xid, Answer, FixedState>,
    changes: ChangeLog,
    is_watching: bool,
}

impl Ether {
    /// A principal to which nothing was stated.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The XIDs that an interface has itself.
    pub(crate) fn own_xids(&self, name: &str) -> Vec<Xid> {
        let Some(link) = self.interfaces.link(name) else { return Vec::new() };
        self.interfaces.indexes(name).filter_map(|index| to_xid(index, link.mac).ok()).collect()
    }

    /// What look-ups of an XID are answered, by what is stated and known.
    fn work_out(&self, xid: &Xid) -> Option<Answer> {
        let (index, mac) = from_xid(xid).ok()?;
        let (name, link) = self.interfaces.get(index)?;
        if mac == link.mac {
            return self.stated.contains(name).then_some(Answer::Through);
        }
        let hop = NextHop { port: link.port, link: LinkAddress::Mac(mac.0) };
        self.neighbours.get(name)?.contains(&mac).then_some(Answer::Forward(hop))
    }

    /// Works out again what look-ups of an XID are answered, and notes if it is something else.
    fn refresh(&mut self, xid: Xid) {
        let answer = self.work_out(&xid);
        let before = match (self.answers.entry(xid), answer) {
            (Entry::Occupied(mut place), Some(answer)) => Some(place.insert(answer)),
            (Entry::Occupied(place), None) => Some(place.remove()),
            (Entry::Vacant(place), Some(answer)) => {
                place.insert(answer);
                None
            }
            (Entry::Vacant(_), None) => None,
        };
        if before != answer {
            self.changes.note(Change::Xid(xid));
        }
    }

    /// The XIDs of all interfaces of this name, and of the stations on them.
    fn xids_of(&self, name: &str) -> Vec<Xid> {
        let own = self.interfaces.link(name).map(|link| link.mac);
        let stations = self.neighbours.get(name).into_iter().flatten().copied();
        let macs: Vec<_> = own.into_iter().chain(stations).collect();
        let of_one = |index| macs.iter().filter_map(move |mac| to_xid(index, *mac).ok());
        self.interfaces.indexes(name).flat_map(of_one).collect()
    }

    /// Changes what is known of the interfaces of this name, and works out again what follows from it.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Interfaces)) {
        let mut xids = self.xids_of(name);
        change(&mut self.interfaces);
        xids.extend(self.xids_of(name));
        xids.into_iter().for_each(|xid| self.refresh(xid));
    }

    fn set_name(&mut self, index: u32, name: Option<String>) {
        let before = self.interfaces.name(index).map(str::to_owned);
        if before == name {
            return;
        }
        if let Some(before) = before {
            self.change(&before, |interfaces| interfaces.set_name(index, None));
        }
        if let Some(name) = name {
            self.change(&name, |interfaces| interfaces.set_name(index, Some(name.clone())));
        }
    }

    fn interface_up(&mut self, name: &str, link: Link) {
        if self.interfaces.link(name) != Some(link) {
            self.change(name, |interfaces| interfaces.set_link(name, Some(link)));
        }
    }

    fn interface_down(&mut self, port: PortId) {
        let Some(name) = self.interfaces.name_of_port(port).map(str::to_owned) else { return };
        self.change(&name, |interfaces| interfaces.set_link(&name, None));
    }

    fn ip_changed(&mut self, change: IpChange, out: &mut Vec<Output>) {
        match change {
            IpChange::Again => {
                self.error = None;
                self.interfaces.begin_again();
            }
            // Where IPv4 cannot be watched, nothing can, and no interface is told of.
            IpChange::NoTable { is_ipv6: false, error } => {
                let line = format!("ether knows the index of no interface: {error}");
                out.push(Output::Report { level: Level::Error, line });
                self.error = Some(error);
            }
            IpChange::Interface { index, name } => {
                self.interfaces.told(index);
                self.set_name(index, name);
            }
            IpChange::Complete => {
                for index in self.interfaces.complete() {
                    self.set_name(index, None);
                }
            }
            IpChange::NoTable { .. }
            | IpChange::Rules { .. }
            | IpChange::Route { .. }
            | IpChange::Neighbour { .. } => {}
        }
    }

    /// Works out again what follows from a statement that has changed.
    fn refresh_stated(&mut self, statement: &Statement) {
        let (name, mac) = match statement {
            Statement::Interface(name) => (name, self.interfaces.link(name).map(|link| link.mac)),
            Statement::Neighbour { mac, interface } => (interface, Some(*mac)),
        };
        let indexes: Vec<_> = self.interfaces.indexes(name).collect();
        for xid in indexes.into_iter().filter_map(|index| to_xid(index, mac?).ok()) {
            self.refresh(xid);
        }
    }

    /// Takes a statement back; false if it was not made.
    fn remove(&mut self, statement: &Statement) -> bool {
        match statement {
            Statement::Interface(name) => self.stated.remove(name),
            Statement::Neighbour { mac, interface } => {
                let Some(stations) = self.neighbours.get_mut(interface) else { return false };
                let found = stations.remove(mac);
                if stations.is_empty() {
                    self.neighbours.remove(interface);
                }
                found
            }
        }
    }
}

impl Principal for Ether {
    fn kind(&self) -> XidType {
        XidType::ETHER
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        match self.answers.get(xid) {
            Some(answer) => *answer,
            None if from_xid(xid).is_err() => Answer::Refuse(DropReason::MalformedXid),
            None => Answer::Unknown,
        }
    }

    fn prefetch(&self, xid: &Xid) {
        // Nothing depends on the result, so the processor goes on without waiting for it.
        black_box(self.answers.contains_key(xid));
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
    }

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Ip { changes } => {
                changes.into_iter().for_each(|change| self.ip_changed(change, out));
            }
            Input::InterfaceUp { name, port, info } => {
                self.interface_up(&name, Link { port, mac: MacAddr(info.mac) });
            }
            Input::InterfaceDown { port } => self.interface_down(port),
            // It has no ports of its own.
            Input::Tick
            | Input::Adjacency { .. }
            | Input::PortOpened { .. }
            | Input::PortFailed { .. }
            | Input::PortLost { .. }
            | Input::Packets { .. } => {}
        }
    }

    fn set(&mut self, _: Instant, words: &[&str], out: &mut Vec<Output>) -> Result<(), WordError> {
        let statement = Statement::read(words)?;
        if !std::mem::replace(&mut self.is_watching, true) {
            out.push(Output::WatchIp);
        }
        match &statement {
            Statement::Interface(name) => self.stated.insert(name.clone()),
            Statement::Neighbour { mac, interface } => {
                self.neighbours.entry(interface.clone()).or_default().insert(*mac)
            }
        };
        self.refresh_stated(&statement);
        Ok(())
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let statement = Statement::read(words)?;
        if !self.remove(&statement) {
            return Err(WordError::new("there is no such statement to delete").absent());
        }
        self.refresh_stated(&statement);
        Ok(())
    }

    fn show(&self) -> Value {
        crate::show::show(self)
    }

    /// The interfaces that were stated and are up.
    fn locals(&self) -> Vec<Xid> {
        let mut locals: Vec<_> = self.stated.iter().flat_map(|name| self.own_xids(name)).collect();
        locals.sort_unstable();
        locals
    }
}
