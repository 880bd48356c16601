//! The principal itself: its state, and how inputs and statements change it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use weft_base::{CounterGroup, Counters, Instant, KeyedHash, LinkAddress, PortId, Random, Token};
use weft_keys::PrivateKey;
use weft_port::PortInfo;
use weft_runtime::Level;
use weft_wire::MacAddr;
use weft_xip::changes::{Change, ChangeLog};
use weft_xip::kept_port::PortState;
use weft_xip::principal::{Answer, Branch, GatewaySet, Input, NextHop, Output, Principal};
use weft_xip::table::gateways::{MAX_GATEWAYS, in_order};
use weft_xip::table::route::{RouteStatement, Way};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use crate::activity::Activity;
use crate::discovery::Announcer;
use crate::expiry::{DEFAULT_EXPIRY, Watch};
use crate::interfaces::{Interface, Interfaces, next_retry};
use crate::neighbours::Neighbours;
use crate::proof::{Policy, Prover};
use crate::statements::Statement;
use crate::version::{FIRST, SECOND, Version};

/// Neighbours that are learned at most, unless `neighbour-limit` says otherwise.
pub const DEFAULT_NEIGHBOUR_LIMIT: usize = 4096;

/// The principal HID; see the crate's text.
#[derive(Debug)]
pub struct Hid {
    pub(crate) version: Version,
    pub(crate) locals: BTreeSet<Xid>,
    pub(crate) neighbours: Neighbours,
    /// Routes that were stated, by their gateways, in order; one without any leads nowhere.
    pub(crate) routes: BTreeMap<Xid, Vec<Xid>>,
    /// The gateways to hosts that nothing is known of, in order, if there are any.
    pub(crate) default: Vec<Xid>,
    /// Routes that a routing protocol has found.
    pub(crate) learned: BTreeMap<Xid, Vec<Xid>>,
    pub(crate) interfaces: Interfaces,
    /// Where NWP is spoken; everywhere if nothing was said.
    pub(crate) switches: Switches<bool>,
    /// What is believed where.
    pub(crate) proofs: Switches<Policy>,
    pub(crate) limit: usize,
    pub(crate) counters: Counters<Activity>,
    pub(crate) announcer: Announcer,
    pub(crate) watch: Watch,
    pub(crate) prover: Prover,
    /// What [`Principal::lookup`] answers, worked out whenever something changes. Neighbours choose
    /// the keys, so the hash has a secret seed.
    answers: HashMap<Xid, Answer, KeyedHash>,
    /// What it answers about all other hosts.
    default_answer: Answer,
    changes: ChangeLog,
    last_token: u32,
}

/// What was stated for all interfaces, and for some.
#[derive(Debug)]
pub(crate) struct Switches<T> {
    everywhere: Option<T>,
    interfaces: BTreeMap<String, T>,
}

impl<T: Copy + PartialEq> Switches<T> {
    fn new() -> Self {
        Self { everywhere: None, interfaces: BTreeMap::new() }
    }

    /// What holds on an interface; `None` if nothing was said.
    pub(crate) fn of(&self, interface: &str) -> Option<T> {
        self.interfaces.get(interface).copied().or(self.everywhere)
    }

    fn set(&mut self, interface: Option<String>, value: T) {
        match interface {
            Some(name) => drop(self.interfaces.insert(name, value)),
            None => self.everywhere = Some(value),
        }
    }

    /// Takes back what was said; false if it was not.
    fn delete(&mut self, interface: Option<String>, value: T) -> bool {
        match interface {
            Some(name) if self.interfaces.get(&name) == Some(&value) => {
                self.interfaces.remove(&name).is_some()
            }
            Some(_) => false,
            None => self.everywhere.take_if(|there| *there == value).is_some(),
        }
    }
}

impl Hid {
    /// A node without identity, interfaces and neighbours. `random` decides which of many nodes
    /// speak up, and seeds a hash table.
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self::of_version(FIRST, random)
    }

    /// The same of the second version, which believes nothing without proof, and whose XIDs and frames are others.
    #[must_use]
    pub fn second(random: Random) -> Self {
        Self::of_version(SECOND, random)
    }

    fn of_version(version: Version, random: Random) -> Self {
        let hash = KeyedHash::new(&mut random.fork("answers"));
        let watch = Watch::new(random.fork("watch"));
        Self {
            version,
            locals: BTreeSet::new(),
            neighbours: Neighbours::default(),
            routes: BTreeMap::new(),
            default: Vec::new(),
            learned: BTreeMap::new(),
            interfaces: Interfaces::new(),
            switches: Switches::new(),
            proofs: Switches::new(),
            limit: DEFAULT_NEIGHBOUR_LIMIT,
            counters: Counters::new(),
            prover: Prover::new(random.fork("epochs")),
            announcer: Announcer::new(random),
            watch,
            answers: HashMap::with_hasher(hash),
            default_answer: Answer::Unknown,
            changes: ChangeLog::default(),
            last_token: 0,
        }
    }

    /// An XID of a message, all of which are read as those of the first version.
    pub(crate) fn own_kind(&self, xid: Xid) -> Xid {
        Xid::new(self.version.kind, xid.id)
    }

    /// Works out again what look-ups of `hid` are answered.
    pub(crate) fn refresh(&mut self, hid: Xid) {
        let answer = match self.locals.contains(&hid) {
            true => Some(Answer::Through),
            false => self.way(hid),
        };
        match answer {
            Some(answer) => self.answers.insert(hid, answer),
            None => self.answers.remove(&hid),
        };
        self.changes.note(Change::Xid(hid));
    }

    /// The way to another host. What was stated goes first; then what a routing protocol says, because
    /// it notices sooner that a neighbour is gone.
    fn way(&self, hid: Xid) -> Option<Answer> {
        let up = |name: &str| self.interfaces.contains_key(name);
        match self.route(&hid) {
            Some(via) if !self.neighbours.is_configured_where(hid, up) => Some(answer(via)),
            _ => self.next_hop(hid).map(Answer::Forward),
        }
    }

    /// The gateways of a host's route, if it has one.
    fn route(&self, hid: &Xid) -> Option<&[Xid]> {
        self.routes.get(hid).or_else(|| self.learned.get(hid)).map(Vec::as_slice)
    }

    /// Replaces the default; without gateways there is none.
    fn set_default(&mut self, via: Vec<Xid>) {
        if self.default != via {
            self.default_answer = answer(&via);
            self.default = via;
            self.changes.note(Change::All);
        }
    }

    fn next_hop(&self, hid: Xid) -> Option<NextHop> {
        let up = |name: &str| self.interfaces.contains_key(name);
        let (name, mac) = self.neighbours.best(hid, up)?;
        let port = self.interfaces.get(name)?.port;
        Some(NextHop { port, link: LinkAddress::Mac(mac.0) })
    }

    fn interface_up(
        &mut self,
        now: Instant,
        name: String,
        port: PortId,
        info: &PortInfo,
        out: &mut Vec<Output>,
    ) {
        if self.interfaces.contains_key(&name) {
            return self.interface_changed(now, &name, port, info, out);
        }
        let hids = self.neighbours.hids(&name);
        let interface =
            Interface::new(&name, port, info, self.version.ethertype, self.prover.epoch());
        self.interfaces.insert(name, interface);
        hids.into_iter().for_each(|hid| self.refresh(hid));
        self.apply_switches(out);
    }

    /// An interface has another address, MTU or port. Its neighbours are still there, and hear of the address at once.
    fn interface_changed(
        &mut self,
        now: Instant,
        name: &str,
        port: PortId,
        info: &PortInfo,
        out: &mut Vec<Output>,
    ) {
        let mac = MacAddr(info.mac);
        let moves = self.interfaces.get(name).is_some_and(|interface| interface.mac != mac);
        if moves {
            // Still from the address at which the HIDs are no more: nobody else may say so.
            let locals: Vec<_> = self.locals.iter().copied().collect();
            self.withdraw(name, &locals, out);
        }
        let Some(interface) = self.interfaces.get_mut(name) else { return };
        (interface.mac, interface.mtu) = (mac, info.mtu);
        if std::mem::replace(&mut interface.port, port) != port {
            self.neighbours.hids(name).into_iter().for_each(|hid| self.refresh(hid));
        }
        self.apply_switches(out);
        if moves && self.interfaces.get(name).is_some_and(|one| one.nwp.port().is_some()) {
            self.announce(now, name, out);
            self.announcer.repeat_soon(now);
        }
    }

    fn interface_down(&mut self, port: PortId, out: &mut Vec<Output>) {
        let found = self.interfaces.iter().find(|(_, interface)| interface.port == port);
        let Some(name) = found.map(|(name, _)| name.clone()) else { return };
        if let Some(mut interface) = self.interfaces.remove(&name) {
            interface.nwp.close(out);
        }
        let configured = self.neighbours.hids(&name);
        self.forget_learned(&name);
        configured.into_iter().for_each(|hid| self.refresh(hid));
    }

    /// Forgets what NWP said on an interface.
    fn forget_learned(&mut self, name: &str) {
        self.announcer.table_has_room();
        let lost = self.neighbours.forget_learned(name);
        lost.into_iter().for_each(|hid| self.refresh(hid));
    }

    /// Opens and closes NWP ports as the switches say.
    fn apply_switches(&mut self, out: &mut Vec<Output>) {
        let mut silenced = Vec::new();
        for (name, interface) in &mut self.interfaces {
            let wanted = interface.can_discover() && self.switches.of(name).unwrap_or(true);
            if wanted && interface.nwp.state() == PortState::Closed {
                self.last_token += 1;
                interface.nwp.open(Token(self.last_token), out);
            } else if !wanted && interface.nwp.state() != PortState::Closed {
                silenced.push(name.clone());
            }
        }
        let locals: Vec<_> = self.locals.iter().copied().collect();
        for name in silenced {
            self.withdraw(&name, &locals, out);
            if let Some(interface) = self.interfaces.get_mut(&name) {
                interface.nwp.close(out);
            }
            self.forget_learned(&name);
        }
    }

    fn port_opened(&mut self, now: Instant, token: Token, port: PortId, out: &mut Vec<Output>) {
        let mut all = self.interfaces.iter_mut();
        let asked = all.find(|(_, interface)| interface.nwp.state() == PortState::Opening(token));
        let Some((name, interface)) = asked else {
            // The interface went away, or NWP was switched off, while the port was being opened.
            out.push(Output::ClosePort { port });
            return;
        };
        if interface.nwp.opened(port) {
            let line = format!("neighbour discovery works again on {name}");
            out.push(Output::Report { level: Level::Info, line });
        }
        let name = name.clone();
        self.announce(now, &name, out);
        self.announcer.repeat_soon(now);
    }

    fn port_failed(&mut self, now: Instant, failed: PortState, error: &str, out: &mut Vec<Output>) {
        let mut all = self.interfaces.iter_mut();
        let Some((name, interface)) = all.find(|(_, interface)| interface.nwp.state() == failed)
        else {
            return;
        };
        if interface.nwp.failed(now) {
            let line = format!(
                "no neighbour discovery on {name}: {error}; it is tried again, \
                 configured neighbours work nevertheless"
            );
            out.push(Output::Report { level: Level::Warning, line });
        }
    }

    /// Asks again for ports that failed, announces by chance, and sets the next time for that.
    fn run_timers(&mut self, now: Instant, out: &mut Vec<Output>) {
        for interface in self.interfaces.values_mut() {
            if interface.nwp.retry_at().is_some_and(|at| at <= now) {
                self.last_token += 1;
                interface.nwp.open(Token(self.last_token), out);
            }
        }
        self.introduce_late(now, out);
        if self.announcer.repeats(now) {
            self.announce_everywhere(now, out);
        }
        if self.announcer.is_due(now) {
            self.announce_by_chance(now, out);
        }
        self.look_after(now, out);
        let can_announce = !self.locals.is_empty()
            && self.interfaces.values().any(|interface| interface.nwp.port().is_some());
        self.announcer.schedule(now, can_announce);
    }

    fn set_statement(
        &mut self,
        now: Instant,
        statement: Statement,
        out: &mut Vec<Output>,
    ) -> Result<(), String> {
        match statement {
            Statement::Local(hid) => self.add_local(now, hid, out)?,
            Statement::Neighbour { hid, mac, interface } => {
                if self.locals.contains(&hid) {
                    return Err(format!("{hid} is local here; delete that first"));
                }
                self.neighbours.configure(&interface, hid, mac);
                self.refresh(hid);
            }
            Statement::AllOf(_) => return Err("`link` is missing".to_owned()),
            Statement::Route(route) => self.add_route(route)?,
            Statement::Nwp { on, interface } => {
                self.switches.set(interface, on);
                self.apply_switches(out);
            }
            Statement::Proof { policy, interface } => {
                self.proofs.set(interface, policy);
                self.require_proofs(now, out);
            }
            Statement::Limit(limit) => {
                self.limit = limit;
                self.announcer.table_has_room();
            }
            Statement::Expiry(expiry) => {
                self.watch.expiry = expiry;
                self.watch_again(now);
            }
        }
        Ok(())
    }

    fn add_local(&mut self, now: Instant, hid: Xid, out: &mut Vec<Output>) -> Result<(), String> {
        if self.neighbours.is_configured(hid) {
            return Err(format!("{hid} is a configured neighbour; delete that first"));
        }
        if self.routes.contains_key(&hid) {
            return Err(format!("{hid} has a route; delete that first"));
        }
        if self.locals.insert(hid) {
            self.neighbours.forget_hid(hid);
            self.refresh(hid);
            self.announce_everywhere(now, out);
        }
        Ok(())
    }

    fn add_route(&mut self, route: RouteStatement) -> Result<(), String> {
        let via = match route.way {
            Way::Via(via) => via,
            Way::Unreachable => Vec::new(),
            Way::Any => return Err("`via` is missing".to_owned()),
        };
        let Some(hid) = route.destination else {
            self.set_default(via);
            return Ok(());
        };
        if self.locals.contains(&hid) {
            return Err(format!("{hid} is local here; delete that first"));
        }
        self.routes.insert(hid, via);
        self.refresh(hid);
        Ok(())
    }

    /// Removes gateways from a route, and the route with the last of them; or the whole route. False if there is no
    /// such route.
    fn remove_route(&mut self, route: RouteStatement) -> bool {
        let gateways = match &route.destination {
            Some(hid) => self.routes.get(hid),
            None => Some(&self.default).filter(|via| !via.is_empty()),
        };
        let Some(gateways) = gateways else { return false };
        let left: Vec<Xid> = match route.way {
            Way::Via(via) if via.iter().all(|xid| gateways.contains(xid)) => {
                gateways.iter().filter(|xid| !via.contains(xid)).copied().collect()
            }
            Way::Via(_) => return false,
            Way::Unreachable if !gateways.is_empty() => return false,
            Way::Unreachable | Way::Any => Vec::new(),
        };
        let Some(hid) = route.destination else {
            self.set_default(left);
            return true;
        };
        match left.is_empty() {
            true => self.routes.remove(&hid),
            false => self.routes.insert(hid, left),
        };
        self.refresh(hid);
        true
    }

    fn delete_statement(
        &mut self,
        now: Instant,
        statement: Statement,
        out: &mut Vec<Output>,
    ) -> Result<(), String> {
        let found = match statement {
            Statement::Local(hid) => {
                let found = self.locals.remove(&hid);
                if found {
                    self.announcer.forget_claim(hid);
                    self.refresh(hid);
                    self.withdraw_everywhere(&[hid], out);
                    self.announce_everywhere(now, out);
                }
                found
            }
            Statement::Neighbour { hid, mac, interface } => {
                let found = self.neighbours.remove(&interface, hid, mac);
                self.refresh(hid);
                found
            }
            Statement::AllOf(hid) => {
                let found = self.neighbours.remove_hid(hid);
                self.refresh(hid);
                found
            }
            Statement::Route(route) => self.remove_route(route),
            Statement::Nwp { on, interface } => {
                let found = self.switches.delete(interface, on);
                self.apply_switches(out);
                found
            }
            Statement::Proof { policy, interface } => {
                let found = self.proofs.delete(interface, policy);
                self.require_proofs(now, out);
                found
            }
            Statement::Limit(limit) => {
                let found = self.limit == limit;
                if found {
                    self.limit = DEFAULT_NEIGHBOUR_LIMIT;
                }
                found
            }
            Statement::Expiry(expiry) => {
                let found = self.watch.expiry == expiry;
                if found {
                    self.watch.expiry = Some(DEFAULT_EXPIRY);
                    self.watch_again(now);
                }
                found
            }
        };
        if found { Ok(()) } else { Err("there is no such statement to delete".to_owned()) }
    }
}

/// What is answered about hosts whose route has these gateways, in order.
fn answer(via: &[Xid]) -> Answer {
    match via {
        [] => Answer::Unknown,
        [via] => Answer::Redirect(*via),
        all => Answer::AnyOf(GatewaySet::of(all)),
    }
}

impl Principal for Hid {
    fn kind(&self) -> XidType {
        self.version.kind
    }

    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer {
        let answer = self.answers.get(xid).copied().unwrap_or(self.default_answer);
        if let Answer::AnyOf(_) = answer {
            let via = self.route(xid).unwrap_or(&self.default);
            branches.extend(via.iter().copied().map(Branch::To));
        }
        answer
    }

    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
    }

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Tick | Input::Adjacency { .. } | Input::Ip { .. } => {}
            Input::InterfaceUp { name, port, info } => {
                self.interface_up(now, name, port, &info, out);
            }
            Input::InterfaceDown { port } => self.interface_down(port, out),
            Input::PortOpened { token, port, .. } => self.port_opened(now, token, port, out),
            Input::PortFailed { token, error } => {
                self.port_failed(now, PortState::Opening(token), &error, out);
            }
            Input::PortLost { port, error } => {
                self.port_failed(now, PortState::Open(port), &error, out);
            }
            Input::Packets { port, packets } => self.receive(now, port, &packets, out),
        }
        self.run_timers(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let retry = next_retry(&self.interfaces);
        let due = self.neighbours.next_due();
        self.announcer.deadline().into_iter().chain(retry).chain(due).min()
    }

    fn set(
        &mut self,
        now: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        let statement = Statement::read(words, self.version.kind, false)?;
        self.set_statement(now, statement, out).map_err(WordError::new)?;
        self.run_timers(now, out);
        Ok(())
    }

    fn delete(
        &mut self,
        now: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError> {
        let statement = Statement::read(words, self.version.kind, true)?;
        self.delete_statement(now, statement, out).map_err(|text| WordError::new(text).absent())?;
        self.run_timers(now, out);
        Ok(())
    }

    fn learn(&mut self, xid: Xid, via: &[Xid]) {
        let mut via = in_order(via.iter().copied().filter(|via| *via != xid));
        via.truncate(MAX_GATEWAYS);
        match via.is_empty() {
            false => self.learned.insert(xid, via),
            true => self.learned.remove(&xid),
        };
        self.refresh(xid);
    }

    fn show(&self) -> Value {
        crate::show::show(self)
    }

    fn counters(&self) -> Option<CounterGroup> {
        let help = "what was done with messages of neighbour discovery";
        Some(CounterGroup::new(self.version.counters, help, &self.counters))
    }

    fn take_key(&mut self, key: &PrivateKey) {
        self.prover.set_key(key.clone());
        if self.version.names_itself {
            let hid = Xid::new(self.version.kind, key.public_key().hash().to_bytes());
            self.locals.insert(hid);
            self.refresh(hid);
        }
    }

    fn stop(&mut self, out: &mut Vec<Output>) {
        let locals: Vec<_> = self.locals.iter().copied().collect();
        self.withdraw_everywhere(&locals, out);
    }

    fn locals(&self) -> Vec<Xid> {
        self.locals.iter().copied().collect()
    }
}
