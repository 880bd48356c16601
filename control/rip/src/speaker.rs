//! What is told on which link, and when; and what becomes of what is heard.
//!
//! Reference: RFC 2453 §3.4.3 (split horizon), §3.8 (timers), §3.9 (input), §3.10 (output), §4.4 (next hops); RFC 2080 §2.3
//! to §2.6, which differ in what is named there.
//!
//! Nothing here does I/O: datagrams and time go in, datagrams come out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use weft_base::{Counters, Instant, Random};
use weft_policy::Filter;

use crate::Version;
use crate::config::{Config, LinkConfig, SplitHorizon};
use crate::policy;
use crate::table::{Outcome, Route, Source, Stored, Table};
use crate::wire::auth::Signed;
use crate::wire::{Command, Entry, INFINITY, Message, WireError, ng, v2};

weft_base::reasons! {
    /// What is counted.
    pub(crate) enum Activity {
        Heard = "heard", "messages that were read";
        Sent = "sent", "messages that were sent";
        Strangers = "strangers", "messages from who is no neighbour, or from another port";
        Malformed = "malformed", "messages that cannot be read";
        Unauthenticated = "unauthenticated", "messages whose authentication is missing, wrong or repeated";
        BadEntries = "bad-entries", "entries that make no sense";
        TimedOut = "timed-out", "routes of which nothing was heard";
        Triggered = "triggered-updates", "updates because something has changed";
        TooMany = "too-many", "messages of more neighbours, and routes, than are kept";
    }
}

/// By how much an update may be early or late (RFC 2453 §3.8), of the time between two.
const JITTER: u32 = 6;
/// Between two triggered updates at least and at most (RFC 2453 §3.10.1).
const SUPPRESSION: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Neighbours on a link at most.
pub(crate) const MOST_NEIGHBOURS: usize = 256;

/// A link on which the protocol is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) config: LinkConfig,
    /// This router's addresses there, with the lengths of their networks.
    pub(crate) addresses: Vec<IpNet>,
    /// The longest datagram, once the port is open.
    pub(crate) mtu: Option<usize>,
}

impl Link {
    /// Whether an address is on this link, and not this router's.
    fn has(&self, address: &IpAddr) -> bool {
        let is_own = self.addresses.iter().any(|own| own.addr() == *address);
        !is_own && self.addresses.iter().any(|own| own.contains(address))
    }
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    /// When it was heard last.
    pub(crate) heard: Instant,
    pub(crate) messages: u64,
    pub(crate) bad: u64,
    /// The last sequence number of each of its keys (RFC 4822 §3.2.2).
    sequences: BTreeMap<u8, u32>,
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) link: u32,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

/// Which routes a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    /// Those that have changed since they were told.
    Changed,
    /// All, and none can be reached any more.
    Farewell,
}

/// The protocol on all links.
pub(crate) struct Speaker {
    version: Version,
    random: Random,
    pub(crate) config: Config,
    /// By the numbers of interfaces.
    pub(crate) links: BTreeMap<u32, Link>,
    pub(crate) neighbours: BTreeMap<(u32, IpAddr), Neighbour>,
    pub(crate) table: Table,
    /// Links whose policies are other ones now, and what was said of them before.
    refiltered: BTreeMap<u32, LinkConfig>,
    /// When everything is told next; none while there are no links.
    update: Option<Instant>,
    /// Until when there may be no triggered update.
    suppressed: Instant,
    /// When the process was started, and the sequence number of then.
    started: Instant,
    epoch: u32,
    pub(crate) counters: Counters<Activity>,
}

impl Speaker {
    /// Without links. Sequence numbers of digests begin at `epoch`, which is to be higher than in an earlier life: the
    /// seconds of the wall clock are.
    pub(crate) fn new(version: Version, random: Random, epoch: u32) -> Self {
        Self {
            version,
            random,
            config: Config::default(),
            links: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            table: Table::default(),
            refiltered: BTreeMap::new(),
            update: None,
            suppressed: Instant::ZERO,
            started: Instant::ZERO,
            epoch,
            counters: Counters::new(),
        }
    }

    /// The process was started.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started = now;
    }

    /// A link is there, or different. Its networks are told from now on.
    pub(crate) fn set_link(&mut self, now: Instant, index: u32, link: Link) {
        let filters = |config: &LinkConfig| (config.import.clone(), config.export.clone());
        let filtered = filters(&link.config);
        let new = link.addresses.clone();
        let before = self.links.insert(index, link);
        if let Some(before) = &before
            && filters(&before.config) != filtered
        {
            self.refiltered.entry(index).or_insert_with(|| before.config.clone());
        }
        let old = before.map_or(Vec::new(), |before| before.addresses);
        for gone in networks(&old).filter(|net| !networks(&new).any(|other| other == *net)) {
            self.table.forget(now, &gone, Source::Connected, &self.config.timers);
            self.know_connected(gone);
        }
        for net in networks(&new) {
            let route =
                Route { source: Source::Connected, link: index, gateway: None, metric: 1, tag: 0 };
            self.table.know(net, route);
        }
        self.update.get_or_insert(now);
    }

    /// A link carries no packets any more, or is not wanted.
    pub(crate) fn remove_link(&mut self, now: Instant, index: u32) {
        if self.links.remove(&index).is_some() {
            self.neighbours.retain(|(link, _), _| *link != index);
            for gone in self.table.lose_link(now, index, &self.config.timers) {
                self.know_connected(gone);
            }
            if self.links.is_empty() {
                self.update = None;
            }
        }
    }

    /// The port of a link is open: its routers are asked for their routes (RFC 2453 §3.9.1).
    pub(crate) fn opened(&mut self, now: Instant, index: u32, mtu: usize, out: &mut Vec<Datagram>) {
        let Some(link) = self.links.get_mut(&index) else { return };
        link.mtu = Some(mtu);
        if !link.config.passive {
            self.ask(now, index, out);
            self.tell(now, index, self.version.group(), Which::All, out);
        }
    }

    /// Asks the routers of a link for all of their routes.
    fn ask(&mut self, now: Instant, index: u32, out: &mut Vec<Datagram>) {
        let sequence = self.sequence(now);
        let Some(link) = self.links.get(&index) else { return };
        let bytes = match self.version {
            Version::V2 => v2::ask_for_all(&link.config.auth, sequence),
            Version::Ng => ng::ask_for_all(),
        };
        self.counters.add(Activity::Sent, 1);
        out.push(Datagram { link: index, to: self.version.group(), bytes });
    }

    /// Where policies are other ones, routers are asked again what they have told, and are told what they are told in
    /// another way now, or not any more: that as unreachable.
    fn refilter(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        for (index, before) in std::mem::take(&mut self.refiltered) {
            let Some(link) = self.links.get(&index) else { continue };
            if link.mtu.is_none() {
                continue;
            }
            let (is_passive, is_other_import) =
                (link.config.passive, before.import != link.config.import);
            let before = Link { config: before, ..link.clone() };
            let differences = self.table.iter().filter_map(|(net, stored)| {
                let told = entry(self.version, *net, stored, index, &before);
                let tells = entry(self.version, *net, stored, index, link);
                let gone = told.map(|told| Entry { metric: INFINITY, ..told });
                if tells == told { None } else { tells.or(gone) }
            });
            let differences: Vec<_> = differences.collect();
            if !is_passive && !differences.is_empty() {
                self.send(now, index, self.version.group(), &differences, out);
            }
            if is_other_import {
                self.ask(now, index, out);
            }
        }
    }

    /// The port of a link is closed.
    pub(crate) fn closed(&mut self, index: u32) {
        if let Some(link) = self.links.get_mut(&index) {
            link.mtu = None;
        }
    }

    /// Another protocol knows a route, or does not any more.
    pub(crate) fn redistribute(&mut self, now: Instant, net: IpNet, route: Option<Route>) {
        match route {
            Some(route) => self.table.know(net, route),
            None => self.table.forget(now, &net, Source::Redistributed, &self.config.timers),
        }
        self.know_connected(net);
    }

    /// A network on a link of this router is known whatever else is known of it.
    fn know_connected(&mut self, net: IpNet) {
        let mut links = self.links.iter();
        if let Some((index, _)) =
            links.find(|(_, link)| networks(&link.addresses).any(|one| one == net))
        {
            let (source, link) = (Source::Connected, *index);
            self.table.know(net, Route { source, link, gateway: None, metric: 1, tag: 0 });
        }
    }

    /// A datagram came in (RFC 2453 §3.9).
    pub(crate) fn received(
        &mut self,
        now: Instant,
        index: u32,
        from: SocketAddr,
        bytes: &[u8],
        out: &mut Vec<Datagram>,
    ) {
        let Some(link) = self.links.get(&index) else { return };
        if !link.has(&from.ip()) {
            return self.counters.add(Activity::Strangers, 1);
        }
        let read = match self.version {
            Version::V2 => v2::parse(bytes, &link.config.auth),
            Version::Ng => ng::parse(bytes).map(|message| (message, None)),
        };
        match read {
            Ok((message, signed)) => {
                if !self.has_room(index, from.ip()) {
                    return self.counters.add(Activity::TooMany, 1);
                }
                if self.is_repeated(now, (index, from.ip()), signed) {
                    return self.refused(now, (index, from.ip()), Activity::Unauthenticated);
                }
                self.counters.add(Activity::Heard, 1);
                self.counters.add(Activity::BadEntries, message.bad_entries as u64);
                match message.command {
                    Command::Request => self.requested(now, index, from, message, out),
                    Command::Response => self.told(now, index, from, &message),
                }
            }
            Err(WireError::Auth(_)) => {
                self.refused(now, (index, from.ip()), Activity::Unauthenticated);
            }
            Err(_) => self.refused(now, (index, from.ip()), Activity::Malformed),
        }
    }

    /// A message of a neighbour is refused; of who is none it is only counted.
    fn refused(&mut self, _: Instant, from: (u32, IpAddr), why: Activity) {
        self.counters.add(why, 1);
        if let Some(neighbour) = self.neighbours.get_mut(&from) {
            neighbour.bad += 1;
        }
    }

    /// Whether the sequence number of a digest is lower than one before (RFC 4822 §3.2.2).
    fn is_repeated(&mut self, now: Instant, from: (u32, IpAddr), signed: Option<Signed>) -> bool {
        let Some(Signed { key, sequence }) = signed else { return false };
        // One that was silent for so long that its routes are gone may have begun anew.
        let timeout = self.config.timers.timeout;
        let neighbour = self.neighbours.get_mut(&from).filter(|one| now < one.heard + timeout);
        let last = neighbour.and_then(|one| one.sequences.get(&key).copied());
        if last.is_some_and(|last| sequence < last) {
            return true;
        }
        self.heard(now, from).sequences.insert(key, sequence);
        false
    }

    /// Whether a neighbour is known, or may become so.
    fn has_room(&self, link: u32, from: IpAddr) -> bool {
        self.neighbours.contains_key(&(link, from))
            || self.neighbours.keys().filter(|one| one.0 == link).count() < MOST_NEIGHBOURS
    }

    fn heard(&mut self, now: Instant, from: (u32, IpAddr)) -> &mut Neighbour {
        let new = || Neighbour { heard: now, messages: 0, bad: 0, sequences: BTreeMap::new() };
        self.neighbours.entry(from).or_insert_with(new)
    }

    /// Somebody asks for routes (RFC 2453 §3.9.1).
    fn requested(
        &mut self,
        now: Instant,
        index: u32,
        from: SocketAddr,
        mut message: Message,
        out: &mut Vec<Datagram>,
    ) {
        let is_router = from.port() == self.version.port();
        let Some(link) = self.links.get(&index) else { return };
        // On a passive link routers are told nothing; who asks from another port wants to look.
        if link.config.passive && is_router {
            return;
        }
        if message.asks_for_all {
            return self.tell(now, index, from, Which::All, out);
        }
        // Entry by entry, without split horizon: this is not for routing.
        for entry in &mut message.entries {
            let known = self.table.get(&entry.net);
            entry.metric = known.map_or(INFINITY, |known| known.route.metric);
            entry.tag = known.map_or(entry.tag, |known| known.route.tag);
            entry.next_hop = None;
        }
        self.send(now, index, from, &message.entries, out);
    }

    /// A router tells routes (RFC 2453 §3.9.2).
    fn told(&mut self, now: Instant, index: u32, from: SocketAddr, message: &Message) {
        if from.port() != self.version.port() || !self.is_router(&from.ip()) {
            return self.counters.add(Activity::Strangers, 1);
        }
        let neighbour = self.heard(now, (index, from.ip()));
        (neighbour.heard, neighbour.messages) = (now, neighbour.messages + 1);
        let Some(link) = self.links.get(&index) else { return };
        for entry in &message.entries {
            // RFC 2453 §4.4: one that is not on the link stands for the sender.
            let gateway = entry.next_hop.filter(|next_hop| link.has(next_hop));
            let route = Route {
                source: Source::Learned { router: from.ip() },
                link: index,
                gateway: Some(gateway.unwrap_or(from.ip())),
                metric: (entry.metric + link.config.cost).min(INFINITY),
                tag: entry.tag,
            };
            // What policy refuses this router does not reach that way, and no more if it did before.
            let passed = policy::pass(self.version, entry.net, &route, &link.config.import);
            let route = passed.unwrap_or(Route { metric: INFINITY, ..route });
            if self.table.learn(now, entry.net, route, &self.config.timers) == Outcome::TooMany {
                self.counters.add(Activity::TooMany, 1);
            }
        }
    }

    /// Whether routes may come from this address: of IPv6 they come from link-local ones (RFC 2080 §2.4.2).
    fn is_router(&self, address: &IpAddr) -> bool {
        match address {
            IpAddr::V4(_) => self.version == Version::V2,
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }

    /// Tells somebody on a link what there is.
    fn tell(
        &mut self,
        now: Instant,
        index: u32,
        to: SocketAddr,
        which: Which,
        out: &mut Vec<Datagram>,
    ) {
        let Some(link) = self.links.get(&index) else { return };
        let entries: Vec<_> = self
            .table
            .iter()
            .filter(|(_, stored)| which != Which::Changed || stored.has_changed)
            .filter_map(|(net, stored)| entry(self.version, *net, stored, index, link))
            .map(|entry| match which {
                Which::Farewell => Entry { metric: INFINITY, ..entry },
                Which::All | Which::Changed => entry,
            })
            .collect();
        self.send(now, index, to, &entries, out);
    }

    /// Sends a response with these entries.
    fn send(
        &mut self,
        now: Instant,
        index: u32,
        to: SocketAddr,
        entries: &[Entry],
        out: &mut Vec<Datagram>,
    ) {
        let sequence = self.sequence(now);
        let Some(link) = self.links.get(&index) else { return };
        let Some(mtu) = link.mtu else { return };
        let messages = match self.version {
            Version::V2 => v2::write(Command::Response, entries, &link.config.auth, sequence),
            Version::Ng => ng::write(Command::Response, entries, mtu),
        };
        self.counters.add(Activity::Sent, messages.len() as u64);
        out.extend(messages.into_iter().map(|bytes| Datagram { link: index, to, bytes }));
    }

    fn tell_all(&mut self, now: Instant, which: Which, out: &mut Vec<Datagram>) {
        let active = self.links.iter().filter(|(_, link)| !link.config.passive);
        let active: Vec<_> = active.map(|(index, _)| *index).collect();
        for index in active {
            self.tell(now, index, self.version.group(), which, out);
        }
        self.table.told();
    }

    /// This router goes: neighbours need not wait until its routes time out.
    pub(crate) fn stop(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.tell_all(now, Which::Farewell, out);
    }

    /// The sequence number of what is signed now.
    fn sequence(&self, now: Instant) -> u32 {
        // One that is too long begins anew, as the wall clock does.
        self.epoch.wrapping_add(now.since(self.started).as_secs() as u32)
    }

    /// Does what is due: routes time out, updates are sent.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        self.refilter(now, out);
        let outcomes = self.table.tick(now, &self.config.timers);
        let gone = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Gone).count();
        self.counters.add(Activity::TimedOut, gone as u64);
        if self.update.is_some_and(|update| update <= now) {
            // One whose routes nobody is told any more, not even as gone, is forgotten.
            let known = self.config.timers.timeout + self.config.timers.garbage;
            self.neighbours.retain(|_, one| now < one.heard + known);
            self.tell_all(now, Which::All, out);
            self.update = Some(now + self.interval());
        } else if self.table.has_changed() && self.suppressed <= now {
            self.counters.add(Activity::Triggered, 1);
            self.tell_all(now, Which::Changed, out);
            let [least, most] = SUPPRESSION;
            self.suppressed = now + least + self.below(most - least);
        }
    }

    /// Until the next update with everything: by chance, lest all routers send at once (RFC 2453 §3.8).
    fn interval(&mut self) -> Duration {
        let update = self.config.timers.update;
        let jitter = update / JITTER;
        update - jitter + self.below(2 * jitter)
    }

    fn below(&mut self, most: Duration) -> Duration {
        // No timer is as long as 64 bits can say.
        Duration::from_nanos(self.random.below(most.as_nanos() as u64 + 1))
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let has_links = self.update.is_some();
        let triggered = (has_links && self.table.has_changed()).then_some(self.suppressed);
        [self.update, triggered, self.table.deadline()].into_iter().flatten().min()
    }

    /// Takes other timers and links' settings; links are told one by one.
    pub(crate) fn configure(&mut self, config: Config) {
        self.config = config;
    }
}

/// The networks of addresses that can be told.
fn networks(addresses: &[IpNet]) -> impl Iterator<Item = IpNet> {
    let is_link_local = |net: &IpNet| match net.addr() {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    addresses.iter().filter(move |net| !is_link_local(net)).map(IpNet::trunc)
}

/// How a route is told on a link; none if it is not (RFC 2453 §3.4.3, §3.10.2).
fn entry(version: Version, net: IpNet, stored: &Stored, index: u32, link: &Link) -> Option<Entry> {
    let Some(route) = policy::pass(version, net, &stored.route, &link.config.export) else {
        // It may have been told before it became what policy refuses.
        let may_be_known = matches!(link.config.export, Filter::Policies(_))
            && (stored.has_changed || !stored.is_valid());
        let gone = Entry { net, metric: INFINITY, tag: 0, next_hop: None };
        return may_be_known.then_some(gone);
    };
    let Route { source, link: leads_to, gateway, metric, tag } = route;
    let is_same_link = leads_to == index;
    let metric = match (source, link.config.split_horizon) {
        (Source::Learned { .. }, SplitHorizon::On) if is_same_link && stored.is_valid() => {
            return None;
        }
        (Source::Learned { .. }, SplitHorizon::PoisonedReverse) if is_same_link => INFINITY,
        // Whoever is on the link knows its networks.
        (Source::Connected, SplitHorizon::On | SplitHorizon::PoisonedReverse)
            if is_same_link && stored.is_valid() =>
        {
            return None;
        }
        _ => metric,
    };
    // RFC 2453 §4.4: routers of other protocols on the link are reached without a detour.
    let next_hop = gateway
        .filter(|gateway| source == Source::Redistributed && is_same_link && link.has(gateway));
    Some(Entry { net, metric, tag, next_hop })
}
