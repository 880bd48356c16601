//! The origins of a process, and what the RIB is told of their routes: every way to the RIB is made of this.
//!
//! Reference: Handley et al. (XORP), §5.2 (origins).
//!
//! Which routes there are, and which of them were told, is known to whoever has the origins. He is asked for
//! [batches](Batch) of changes as long as the RIB keeps up, and hears when it knows nothing any more.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use weft_base::Instant;
use weft_routing::Check;
use weft_xrl::{Input, Lane, Output, Reply, Window, XrlError};

use crate::dialogue::{Client, Dialogue};
use crate::{Hop, Route, To, rib};

/// The first number of a set of hops.
const FIRST_SET: u32 = 16;

/// A protocol, as the RIB knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name, such as `rip`.
    pub protocol: String,
    /// Whether its next routers may be far away.
    pub external: bool,
    /// Its administrative distance.
    pub distance: u32,
}

/// One of the origins of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OriginNumber(usize);

/// What a call was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Open(OriginNumber),
    Change(Lane),
    End,
}

/// An origin, and how far the RIB is with it.
#[derive(Debug)]
struct Opened {
    origin: Origin,
    /// The number that the RIB has given to it.
    number: Option<u32>,
    /// Whether routes serve on that an earlier process has told.
    kept: bool,
    /// Whether it was said that everything is told.
    has_ended: bool,
}

impl Opened {
    fn new(origin: Origin) -> Self {
        Self { origin, number: None, kept: false, has_ended: false }
    }
}

/// The origins of a process.
#[derive(Debug)]
pub struct Origins {
    dialogue: Dialogue<About>,
    all: Vec<Opened>,
    /// Calls with changes under way.
    window: Window,
    /// Whether the RIB knows nothing any more.
    forgets: bool,
    /// What it was told: as routes of which number, whether for multicast.
    check: Check<(u32, bool, IpNet), ()>,
}

impl Origins {
    /// None, and the number of their [`Dialogue`].
    #[must_use]
    pub fn new(number: u8) -> Self {
        let dialogue = Dialogue::new(rib::CLASS, number);
        let check = Check::default();
        let window = Window::default();
        Self { dialogue, all: Vec::new(), window, forgets: false, check }
    }

    /// One more origin. It stays, with or without routes; the same protocol again is the same one. Returns whether it
    /// has another distance than before, too: whoever opens an origin again tells all its routes again.
    pub fn open(&mut self, origin: Origin, out: &mut Vec<Output>) -> (OriginNumber, bool) {
        let known = self.all.iter().position(|one| one.origin.protocol == origin.protocol);
        let place = OriginNumber(known.unwrap_or(self.all.len()));
        match known {
            Some(known) if self.all[known].origin == origin => return (place, false),
            Some(known) => self.all[known] = Opened::new(origin),
            None => self.all.push(Opened::new(origin)),
        }
        if self.dialogue.is_there() {
            self.ask_to_open(place, out);
        }
        (place, known.is_some())
    }

    fn ask_to_open(&mut self, place: OriginNumber, out: &mut Vec<Output>) {
        let Origin { protocol, external, distance } = self.all[place.0].origin.clone();
        let request = rib::OpenOrigin { protocol, external, distance };
        self.dialogue.call(About::Open(place), request, out);
    }

    /// Whether the RIB is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.dialogue.is_there()
    }

    /// Whether the RIB takes routes of all of them.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.dialogue.is_there() && self.all.iter().all(|one| one.number.is_some())
    }

    /// Whether the RIB has forgotten what it was told since this was asked last.
    pub fn take_forgets(&mut self) -> bool {
        std::mem::take(&mut self.forgets)
    }

    /// Whether routes serve on that an earlier process has told; none if the RIB has not said so.
    #[must_use]
    pub fn has_kept(&self) -> Option<bool> {
        self.is_open().then(|| self.all.iter().any(|one| one.kept))
    }

    /// Whether a batch of changes may be told now.
    #[must_use]
    pub fn may_tell(&self) -> bool {
        self.is_open() && self.window.is_open()
    }

    /// Whether a batch may be told beside those under way: of changes that are new, of which so many wait.
    #[must_use]
    pub fn may_tell_new(&self, waiting: usize) -> bool {
        self.is_open() && self.window.is_open_for_new(waiting)
    }

    /// A batch without changes: of routes by which packets are forwarded, or of those for multicast.
    #[must_use]
    pub fn batch(&self, multicast: bool) -> Batch {
        let change = |one: &Opened| Change::new(one.number.unwrap_or(0), multicast);
        let changes = || self.all.iter().map(change).collect();
        Batch { changes: changes(), moved: changes() }
    }

    /// Tells the RIB changes, among those under way or [beside them](Self::may_tell_new).
    ///
    /// # Panics
    /// A route is taken back that it was not told, where there are assertions.
    #[track_caller]
    pub fn tell(&mut self, lane: Lane, batch: Batch, out: &mut Vec<Output>) {
        for request in batch.into_requests() {
            let key = |net| (request.origin, request.multicast == Some(true), net);
            request.routes.iter().for_each(|route| self.check.tell(key(route.net), ()));
            request.gone.iter().for_each(|net| self.check.change(key(*net), true, None));
            self.window.called(lane);
            self.dialogue.call(About::Change(lane), request, out);
        }
    }

    /// Nothing is left to tell, and these are all routes by which packets are forwarded, of so many; there are no others.
    ///
    /// # Panics
    /// The RIB was told something else, where there are assertions.
    #[track_caller]
    pub(crate) fn agrees(
        &mut self,
        size: usize,
        routes: impl Iterator<Item = (OriginNumber, IpNet)>,
    ) {
        if self.is_open() && self.check.is_due(size) {
            let number = |place: OriginNumber| self.all[place.0].number.unwrap_or(0);
            let told: Vec<_> =
                routes.map(|(place, net)| ((number(place), false, net), ())).collect();
            self.check.compare(told);
        }
    }

    /// Everything is told: says so when the RIB has taken it, once. Routes of an earlier life that were not told again
    /// go.
    pub fn end(&mut self, out: &mut Vec<Output>) {
        if !self.is_open() || !self.window.is_empty() {
            return;
        }
        for one in self.all.iter_mut().filter(|one| !one.has_ended) {
            one.has_ended = true;
            if let Some(origin) = one.number {
                self.dialogue.call(About::End, rib::End { origin }, out);
            }
        }
    }

    /// Whether it was said that everything is told.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.all.iter().all(|one| one.has_ended)
    }

    /// When something is to be done at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub fn hear(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) -> Option<Input> {
        Client::hear(self, now, input, out)
    }
}

impl Client<About> for Origins {
    fn dialogue(&mut self) -> &mut Dialogue<About> {
        &mut self.dialogue
    }

    fn began(&mut self, out: &mut Vec<Output>) {
        self.ended();
        (0..self.all.len()).for_each(|place| self.ask_to_open(OriginNumber(place), out));
    }

    fn ended(&mut self) {
        for one in &mut self.all {
            (one.number, one.kept, one.has_ended) = (None, false, false);
        }
        (self.window, self.forgets) = (Window::default(), true);
        self.check.forget();
    }

    fn answered(
        &mut self,
        about: &About,
        reply: Reply,
        _: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match about {
            About::Open(place) => {
                let rib::OpenOriginReply { origin, kept } = reply.read::<rib::OpenOrigin>()?;
                let opened = &mut self.all[place.0];
                (opened.number, opened.kept) = (Some(origin), kept == Some(true));
            }
            About::Change(lane) => self.window.answered(*lane),
            About::End => {}
        }
        Ok(())
    }
}

/// Changes that are told together.
#[derive(Debug)]
pub struct Batch {
    /// By the numbers of origins.
    changes: Vec<Change>,
    /// What goes to another origin is taken back behind these.
    moved: Vec<Change>,
}

impl Batch {
    /// How many changes it may have.
    pub const MOST: usize = Window::CHANGES;

    /// A network has this route now, or none; `before` is the origin whose route the RIB was told of.
    pub fn note(
        &mut self,
        net: IpNet,
        now: Option<(OriginNumber, &Route)>,
        before: Option<OriginNumber>,
    ) {
        if let Some((origin, route)) = now {
            self.changes[origin.0].set(net, route);
        }
        match (now, before) {
            (None, Some(before)) => self.changes[before.0].request.gone.push(net),
            (Some((origin, _)), Some(before)) if origin != before => {
                self.moved[before.0].request.gone.push(net);
            }
            _ => {}
        }
    }

    /// The calls that tell them, in order.
    pub fn requests(&self) -> impl Iterator<Item = &rib::Change> {
        let all = self.changes.iter().chain(&self.moved).map(|change| &change.request);
        all.filter(|request| !is_empty(request))
    }

    fn into_requests(self) -> impl Iterator<Item = rib::Change> {
        let all = self.changes.into_iter().chain(self.moved).map(|change| change.request);
        all.filter(|request| !is_empty(request))
    }
}

fn is_empty(request: &rib::Change) -> bool {
    request.routes.is_empty() && request.gone.is_empty()
}

/// A call in the making.
#[derive(Debug)]
struct Change {
    request: rib::Change,
    /// The numbers of sets of hops.
    sets: BTreeMap<Vec<Hop>, u32>,
}

impl Change {
    fn new(origin: u32, multicast: bool) -> Self {
        let (hops, routes, gone) = (Vec::new(), Vec::new(), Vec::new());
        let multicast = multicast.then_some(true);
        let request = rib::Change { origin, hops, routes, gone, multicast };
        Self { request, sets: BTreeMap::new() }
    }

    fn set(&mut self, net: IpNet, route: &Route) {
        let set = match &route.to {
            To::Blackhole => 0,
            To::Unreachable => 1,
            To::Prohibit => 2,
            To::Hops(hops) => self.set_of(hops),
        };
        let Route { metric, tag, .. } = *route;
        self.request.routes.push(rib::Route { net, set, metric, tag });
    }

    fn set_of(&mut self, hops: &[Hop]) -> u32 {
        if let Some(set) = self.sets.get(hops) {
            return *set;
        }
        // There are no more than routes in a call.
        let set = self.sets.len() as u32 + FIRST_SET;
        self.request.hops.extend(hops.iter().map(|hop| rib::Hop {
            set,
            gateway: hop.gateway.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            interface: hop.interface.unwrap_or(0),
            weight: hop.weight,
        }));
        self.sets.insert(hops.to_vec(), set);
        set
    }
}
