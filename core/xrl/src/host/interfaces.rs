//! The machine's network interfaces, for every member that watches them.
//!
//! The driver tells a process once which interfaces there are; a member that asks later is told by the host. A process
//! that may not watch the kernel is told by the FEA: it asks what is different and is answered when something is. When
//! the FEA dies members keep what they know, and what the next one tells is compared with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_base::Token;
use weft_runtime::{Action, Event, Interface, InterfaceAddress, InterfaceChange, Level};

use super::from_fea::{Asked, OWN, Wanted};
use super::{Host, Now};
use crate::component::{Input, Reply};
use crate::{ErrorCode, XrlError, fea};

/// How many interfaces one answer of the FEA tells of at most.
const AT_MOST: u32 = 256;
/// How long an answer may take, in milliseconds: less than a call.
const WAIT: u32 = 20_000;

#[derive(Default)]
pub(super) struct Interfaces {
    watching: BTreeSet<usize>,
    known: BTreeMap<u32, Interface>,
    complete: bool,
    /// What the FEA, which tells everything anew, has not told yet.
    untold: BTreeSet<u32>,
}

/// How the FEA is asked.
pub(super) fn question(begin: bool) -> fea::WatchInterfaces {
    fea::WatchInterfaces { begin, at_most: AT_MOST, wait: WAIT }
}

impl Interfaces {
    /// A member begins to watch; whether somebody is to be asked.
    fn watch(&mut self, member: usize, inputs: &mut VecDeque<(usize, Input)>) -> bool {
        let is_first = self.watching.is_empty();
        if self.watching.insert(member) && !is_first {
            let known = self.known.values().cloned().map(InterfaceChange::Added);
            let changes = known.chain(self.complete.then_some(InterfaceChange::Complete));
            inputs.extend(changes.map(|change| (member, told(change))));
        }
        is_first
    }

    /// The driver tells of a change.
    pub(super) fn changed(
        &mut self,
        change: &InterfaceChange,
        inputs: &mut VecDeque<(usize, Input)>,
    ) {
        match change {
            InterfaceChange::Added(now) | InterfaceChange::Changed(now) => {
                self.known.insert(now.index, now.clone());
            }
            InterfaceChange::Removed { index, .. } => drop(self.known.remove(index)),
            InterfaceChange::Complete => self.complete = true,
        }
        inputs.extend(self.watching.iter().map(|member| (*member, told(change.clone()))));
    }

    /// The FEA has told something.
    fn heard(&mut self, reply: fea::WatchInterfacesReply, inputs: &mut VecDeque<(usize, Input)>) {
        let fea::WatchInterfacesReply { again, interfaces, addresses, gone, complete } = reply;
        if again {
            self.untold = self.known.keys().copied().collect();
        }
        let mut of: BTreeMap<u32, BTreeSet<InterfaceAddress>> = BTreeMap::new();
        for fea::Address { interface, address } in addresses {
            let (ip, prefix_length) = (address.addr(), address.prefix_len());
            of.entry(interface).or_default().insert(InterfaceAddress { ip, prefix_length });
        }
        for one in interfaces {
            let addresses = of.remove(&one.index).unwrap_or_default();
            let now = read(one, addresses);
            self.untold.remove(&now.index);
            match self.known.get(&now.index) {
                None => self.changed(&InterfaceChange::Added(now), inputs),
                Some(before) if *before == now => {}
                Some(_) => self.changed(&InterfaceChange::Changed(now), inputs),
            }
        }
        let gone = gone.into_iter().collect();
        self.remove(gone, inputs);
        if complete {
            let untold = std::mem::take(&mut self.untold);
            self.remove(untold, inputs);
            if !self.complete {
                self.changed(&InterfaceChange::Complete, inputs);
            }
        }
    }

    fn remove(&mut self, gone: BTreeSet<u32>, inputs: &mut VecDeque<(usize, Input)>) {
        for index in gone {
            self.untold.remove(&index);
            if let Some(Interface { name, .. }) = self.known.get(&index) {
                let change = InterfaceChange::Removed { index, name: name.clone() };
                self.changed(&change, inputs);
            }
        }
    }
}

impl Host {
    /// A member begins to watch.
    pub(super) fn watch_interfaces(&mut self, member: usize, now: &mut Now<'_>) {
        if !self.interfaces.watch(member, &mut self.inputs) {
            return;
        }
        match self.settings.ports_from_fea {
            true => self.ask_about_interfaces(true, now),
            false => now.out.push(Action::WatchInterfaces),
        }
    }

    fn ask_about_interfaces(&mut self, begin: bool, now: &mut Now<'_>) {
        let wanted = Wanted::Interfaces { begin };
        self.ask_fea(Asked { member: OWN, token: Token(0), wanted, deadline: now.time }, now);
    }

    /// The FEA has answered.
    pub(super) fn interfaces_answered(
        &mut self,
        is_away: bool,
        result: Result<Reply, XrlError>,
        now: &mut Now<'_>,
    ) {
        match result.and_then(|reply| reply.read::<fea::WatchInterfaces>()) {
            Ok(reply) => {
                self.interfaces.heard(reply, &mut self.inputs);
                self.ask_about_interfaces(false, now);
            }
            // It is being started.
            Err(error) if is_away || error.code == ErrorCode::ReplyTimedOut => {
                let wanted = Wanted::Interfaces { begin: true };
                let asked = Asked { member: OWN, token: Token(0), wanted, deadline: now.time };
                self.ask_later(asked, now);
            }
            Err(error) => {
                let line = format!("the FEA does not tell which interfaces there are: {error}");
                now.report(Level::Error, line);
            }
        }
    }
}

fn told(change: InterfaceChange) -> Input {
    Input::World(Event::Interface { change })
}

fn read(one: fea::Interface, addresses: BTreeSet<InterfaceAddress>) -> Interface {
    let fea::Interface { name, index, kind, mac, mtu, up, running, master } = one;
    let mac = (mac.0 != [0; 6]).then_some(mac.0);
    let master = (master != 0).then_some(master);
    Interface { index, name, kind, mac, mtu, up, running, master, addresses }
}
