//! The engine: neighbours, database, own advertisements and routes, put together.

mod flooding;
mod neighbour;
mod show;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::{CounterGroup, Counters, Instant, Random};
use weft_runtime::Component;

use crate::activity::Activity;
use crate::authority::Authority;
use crate::backoff::SpfTimer;
use crate::database::{Database, Entry};
use crate::event::{Input, Loss, Output};
use crate::ids::{Destination, LinkId, LsaId, MAX_METRIC, Metric, NodeId};
use crate::origin::Originator;
use crate::routes::Routes;
use crate::settings::{Settings, SettingsError};
use crate::spf::{OwnLinks, Reach, shortest_paths};
use crate::wire::LsaView;
use neighbour::Link;

pub use show::{Advertised, Neighbour, NeighbourState};

/// A node's part in link-state routing; see the crate's text.
#[derive(Debug)]
pub struct LinkState<A> {
    authority: A,
    node: NodeId,
    settings: Settings,
    random: Random,
    links: BTreeMap<LinkId, Link>,
    database: Database,
    originator: Originator,
    /// What is reached on this node.
    destinations: BTreeMap<Destination, Metric>,
    routes: Routes,
    reach: BTreeMap<NodeId, Reach>,
    spf: SpfTimer,
    /// There may be other shortest paths.
    topology_changed: bool,
    counters: Counters<Activity>,
    stopped: bool,
}

impl<A: Authority> LinkState<A> {
    /// A node without links and destinations. `random` makes numbers of sessions, which nobody may guess,
    /// and jitter.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub fn new(authority: A, settings: Settings, random: Random) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self {
            node: authority.node(),
            authority,
            random,
            links: BTreeMap::new(),
            database: Database::new(settings.database),
            originator: Originator::new(settings.origination, settings.lifetime),
            destinations: BTreeMap::new(),
            routes: Routes::default(),
            reach: BTreeMap::new(),
            spf: SpfTimer::new(settings.spf),
            topology_changed: false,
            counters: Counters::new(),
            stopped: false,
            settings,
        })
    }

    /// Behaves like this from now on; timers that run already run out as they are.
    ///
    /// # Errors
    /// The settings cannot be used; nothing has changed then.
    pub fn set_settings(&mut self, now: Instant, settings: Settings) -> Result<(), SettingsError> {
        settings.check()?;
        if settings.next_hops != self.settings.next_hops {
            self.topology_changed = true;
            self.routes.all_changed();
            self.spf.event(now);
        }
        self.settings = settings;
        Ok(())
    }

    /// This node's name.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    fn link_up(&mut self, now: Instant, id: LinkId, metric: Metric, neighbour: Option<NodeId>) {
        let session = self.session_number();
        let metric = metric.clamp(1, MAX_METRIC);
        self.links.insert(id, Link::new(now, id, metric, neighbour, session));
    }

    fn link_down(&mut self, now: Instant, id: LinkId, out: &mut Vec<Output>) {
        if let Some(mut link) = self.links.remove(&id) {
            self.lose(now, &mut link, Loss::LinkDown, out);
        }
    }

    fn set_metric(&mut self, now: Instant, id: LinkId, metric: Metric) {
        if let Some(link) = self.links.get_mut(&id) {
            link.metric = metric.clamp(1, MAX_METRIC);
            self.links_changed(now);
        }
    }

    fn advertise(&mut self, now: Instant, destinations: BTreeMap<Destination, Metric>) {
        self.destinations = destinations;
        self.destinations.values_mut().for_each(|metric| *metric = (*metric).min(MAX_METRIC));
        self.originate(now);
    }

    /// A number for a session: random, and not zero.
    fn session_number(&mut self) -> u64 {
        self.random.number().max(1)
    }

    /// The links over which packets may go.
    fn own_links(&self) -> OwnLinks {
        let mut links = OwnLinks::new();
        for link in self.links.values() {
            if let Some(node) = link.usable() {
                links.entry(node).or_default().push((link.id, link.metric));
            }
        }
        links
    }

    /// A link over which packets may go has come, gone or changed.
    fn links_changed(&mut self, now: Instant) {
        self.topology_changed = true;
        self.spf.event(now);
        self.originate(now);
    }

    /// Has what this node advertises issued, if it is something else now.
    fn originate(&mut self, now: Instant) {
        let links = self.own_links();
        let cheapest = links.into_iter().filter_map(|(node, links)| {
            Some((node, links.into_iter().map(|(_, metric)| metric).min()?))
        });
        self.originator.set(now, cheapest, &self.destinations);
    }

    /// Issues what is due.
    fn issue(&mut self, now: Instant) {
        let issued = self.originator.issue(now, &self.authority, &mut self.random);
        self.counters.add(Activity::LeftOut, u64::from(self.originator.left_out > 0));
        self.publish(now, issued);
    }

    /// Enters own advertisements, and has them told to everybody.
    fn publish(&mut self, now: Instant, issued: Vec<std::sync::Arc<[u8]>>) {
        for bytes in issued {
            // What was written just now can be read.
            let Ok(lsa) = LsaView::new_checked(&bytes) else { continue };
            self.counters.add(Activity::Issued, 1);
            self.install(now, lsa.version(), &lsa);
        }
    }

    /// Forgets what was not refreshed in time.
    fn expire(&mut self, now: Instant) {
        for (id, old) in self.database.expire(now) {
            self.counters.add(Activity::Expired, 1);
            self.content_changed(now, &id, Some(&old));
        }
    }

    /// An advertisement was replaced or displaced, or has expired: finds out what that means for routes.
    fn content_changed(&mut self, now: Instant, id: &LsaId, old: Option<&Entry>) {
        let old = old.and_then(Entry::lsa);
        let new = self.database.get(id).and_then(Entry::lsa);
        let is_there = |lsa: &Option<LsaView>| lsa.is_some_and(|lsa| !lsa.is_withdrawn());
        let links = |lsa: &Option<LsaView>| lsa.map_or(Vec::new(), |lsa| lsa.link_bytes().to_vec());
        if links(&old) != links(&new) || (id.fragment == 0 && is_there(&old) != is_there(&new)) {
            self.topology_changed = true;
            self.spf.event(now);
        }
        let names =
            |lsa: &Option<LsaView>| lsa.map_or(Vec::new(), |lsa| lsa.destination_bytes().to_vec());
        if names(&old) != names(&new) {
            let others = self.database.of_node(id.origin).filter(|lsa| lsa.id() != *id);
            let others = destinations(others);
            let allowed = |destination: &Destination| self.authority.allows(id.origin, destination);
            let with = |lsa: Option<LsaView>| {
                let mut all = others.clone();
                for (name, metric) in destinations(lsa.into_iter()) {
                    let least = all.entry(name).or_insert(metric);
                    *least = metric.min(*least);
                }
                all.retain(|destination, _| allowed(destination));
                all
            };
            self.routes.advertise(id.origin, &with(old), &with(new));
            if self.routes.has_changed() {
                self.spf.event(now);
            }
        }
    }

    /// Computes routes if it is time to.
    fn compute(&mut self, now: Instant, out: &mut Vec<Output>) {
        if !self.spf.take(now) {
            return;
        }
        let width = self.settings.next_hops;
        if std::mem::take(&mut self.topology_changed) {
            self.counters.add(Activity::Trees, 1);
            let reach = shortest_paths(&self.database, self.node, &self.own_links(), width);
            if reach != self.reach {
                self.reach = reach;
                self.routes.all_changed();
            }
        } else {
            self.counters.add(Activity::Partial, 1);
        }
        let changed = self.routes.work_out(self.node, &self.reach, width);
        out.extend(
            changed.into_iter().map(|(destination, route)| Output::Route { destination, route }),
        );
    }

    /// Withdraws everything and takes leave.
    fn stop(&mut self, now: Instant, out: &mut Vec<Output>) {
        let issued = self.originator.withdraw(&self.authority);
        self.publish(now, issued);
        let mut links = std::mem::take(&mut self.links);
        for link in links.values_mut() {
            self.flush(now, link, out);
            self.farewell(link, out);
        }
        self.stopped = true;
    }

    /// Does all that is due.
    fn settle(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.expire(now);
        self.lose_silent(now, out);
        self.issue(now);
        self.compute(now, out);
        let mut links = std::mem::take(&mut self.links);
        for link in links.values_mut() {
            self.flush(now, link, out);
            self.greet_in_time(now, link, out);
        }
        self.links = links;
    }
}

/// The destinations of advertisements, each with its least metric.
fn destinations<'a>(lsas: impl Iterator<Item = LsaView<'a>>) -> BTreeMap<Destination, Metric> {
    let mut all = BTreeMap::new();
    for (name, metric) in lsas.flat_map(|lsa| lsa.destinations()) {
        if let Some(destination) = Destination::new(name) {
            let least = all.entry(destination).or_insert(metric);
            *least = metric.min(*least);
        }
    }
    all
}

impl<A: Authority> Component for LinkState<A> {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        if self.stopped {
            return;
        }
        match input {
            Input::Tick => {}
            Input::LinkUp { link, metric, neighbour } => {
                self.link_down(now, link, out);
                self.link_up(now, link, metric, neighbour);
            }
            Input::LinkDown { link } => self.link_down(now, link, out),
            Input::Metric { link, metric } => self.set_metric(now, link, metric),
            Input::Received { link, message } => self.receive(now, link, &message, out),
            Input::Advertise { destinations } => self.advertise(now, destinations),
            Input::Stop => return self.stop(now, out),
        }
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        let links = self.links.values().filter_map(|link| link.deadline(self.settings.window));
        let others = [self.database.deadline(), self.originator.deadline(), self.spf.due()];
        links.chain(others.into_iter().flatten()).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        let help = "what was done with messages, advertisements and routes";
        vec![CounterGroup::new("link-state", help, &self.counters)]
    }
}

/// Milliseconds as they travel in 32 bits.
fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
