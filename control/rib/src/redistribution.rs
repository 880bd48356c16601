//! Protocols that are told which routes of others are used.
//!
//! Reference: Handley et al. (XORP), §3 and §5.2 (route redistribution: the RIB passes on what protocols ask for).
//!
//! Each is a reader of the tables like the way to the FEA, at its own pace: a call asks for what is different, and is
//! answered when something is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ipnet::IpNet;
use weft_base::Instant;
use weft_routing::ip::{News, Version};
use weft_routing::{Hears, ReaderId, Said, Turns};
use weft_xrl::{Called, Output, XrlError};

use crate::aggregates;
use crate::arbiter::Route;
use crate::interface;
use crate::origins::{Origin, Origins};
use crate::reach::Session;
use crate::tables::Tables;

/// The longest that a protocol may wait, in milliseconds.
const LONGEST: u32 = 25_000;
/// Routes that one answer tells of at most.
const MOST: u32 = 4096;
/// The highest number of a reader.
const LAST_READER: u32 = 15;
/// Changes that are looked at for one client at once, whether they concern it or not.
const SLICE: usize = 4096;

/// A protocol.
#[derive(Debug)]
struct Client {
    wanted: Wanted,
    readers: [ReaderId; 2],
    /// What it was told of destinations.
    said: [Said; 2],
    /// Of which of both it is told next.
    turns: Turns,
    /// The beginning was not told yet.
    again: bool,
    /// That all was told was told.
    complete: bool,
    waiting: Option<Waiting>,
    /// What is to be told with the next answer.
    routes: Vec<interface::Used>,
    /// Of those with several.
    ways: Vec<interface::UsedWay>,
    gone: Vec<IpNet>,
}

/// Which routes a protocol wants.
#[derive(Debug)]
struct Wanted {
    /// Of these protocols.
    protocols: BTreeSet<String>,
    /// To these networks, of whoever's next routers are neighbours, and aggregates.
    nets: BTreeSet<IpNet>,
    /// Those for multicast.
    multicast: bool,
}

impl Wanted {
    fn has(&self, origin: &Origin, net: &IpNet) -> bool {
        self.protocols.contains(&origin.protocol) || (is_near(origin) && self.nets.contains(net))
    }

    /// Whether those of whom it wants routes have told all that they had.
    fn have_told(&self, origins: &Origins) -> bool {
        let mut missing = self.protocols.len();
        for origin in origins.all() {
            let is_named = self.protocols.contains(&origin.protocol);
            missing -= usize::from(is_named);
            let may_tell = is_named || (!self.nets.is_empty() && is_near(origin));
            if may_tell && !origin.has_told {
                return false;
            }
        }
        // Who else knows of its networks cannot be said before.
        !origins.are_waited_for() || (missing == 0 && self.nets.is_empty())
    }
}

/// Whether its routes are to networks of this router's system: those of neighbours, and aggregates.
fn is_near(origin: &Origin) -> bool {
    !origin.standing.is_external || origin.protocol == aggregates::PROTOCOL
}

/// The call with which it waits.
#[derive(Debug)]
struct Waiting {
    called: Called,
    at_most: usize,
    until: Instant,
}

/// Readers that have everything before them, of these versions.
fn readers(versions: [Version; 2], tables: &mut Tables) -> [ReaderId; 2] {
    versions.map(|version| tables.routes.open_reader(version, Hears::Best))
}

impl Client {
    fn new(wanted: Wanted, tables: &mut Tables) -> Self {
        Self {
            readers: readers(Version::both(wanted.multicast), tables),
            wanted,
            said: Default::default(),
            turns: Turns::default(),
            again: true,
            complete: false,
            waiting: None,
            routes: Vec::new(),
            ways: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Its readers, each with its version.
    fn readers(&self) -> [(Version, ReaderId); 2] {
        let versions = Version::both(self.wanted.multicast);
        std::array::from_fn(|place| (versions[place], self.readers[place]))
    }

    fn close(&self, tables: &mut Tables) {
        for (version, reader) in self.readers() {
            tables.routes.close_reader(version, reader);
        }
    }

    fn is_behind(&self, tables: &Tables) -> bool {
        self.readers().into_iter().any(|(version, reader)| tables.routes.is_behind(version, reader))
    }

    /// Whether there is something to look at for it.
    fn has_work(&self, tables: &Tables) -> bool {
        self.waiting.is_some() && self.is_behind(tables)
    }

    fn count(&self) -> usize {
        self.routes.len() + self.gone.len()
    }

    /// Looks at what has changed, until there is enough for an answer.
    fn read(&mut self, tables: &mut Tables, origins: &Origins) {
        let Some(at_most) = self.waiting.as_ref().map(|waiting| waiting.at_most) else { return };
        self.look(at_most, tables, origins);
    }

    fn look(&mut self, at_most: usize, tables: &mut Tables, origins: &Origins) {
        let readers = self.readers();
        for _ in 0..SLICE {
            if self.count() >= at_most {
                break;
            }
            let is_behind = |(version, reader): &(Version, ReaderId)| {
                tables.routes.is_behind(*version, *reader)
            };
            // However much there is to tell of one version, the other does not wait for it.
            let Some((version, reader)) = self.turns.next(&readers, is_behind) else { break };
            if let Some(news) = tables.routes.next(version, reader) {
                self.note(version, &news, tables, origins);
            }
        }
        for (version, reader) in readers {
            self.agrees(version, reader, tables, origins);
        }
    }

    /// Whether it was told what is used, now and then, if there is nothing left to tell.
    fn agrees(&mut self, version: Version, reader: ReaderId, tables: &Tables, origins: &Origins) {
        let (said, routes) = (&mut self.said[usize::from(version.is_ipv6())], &tables.routes);
        if !routes.is_behind(version, reader) && said.is_due(routes.len(version)) {
            let all = routes.all_news(version).filter_map(|news| Some((news.prefix, news.best?)));
            let told = all.filter(|(prefix, best)| {
                self.wanted.has(origins.of(best.origin), &version.net(prefix))
            });
            said.compare(told.map(|(prefix, best)| (prefix, best.origin)));
        }
    }

    fn note(&mut self, version: Version, news: &News<Route>, tables: &Tables, origins: &Origins) {
        let net = version.net(&news.prefix);
        let best = news.best.filter(|best| self.wanted.has(origins.of(best.origin), &net));
        let before = self.said[usize::from(version.is_ipv6())]
            .set((news.number, &news.prefix), best.map(|best| best.origin));
        let Some(best) = best else {
            self.gone.extend(before.map(|_| net));
            return;
        };
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let way = match tables.sets.ways(best.route.set) {
            [only] => Some(only),
            several => {
                self.ways.extend(several.iter().map(|way| interface::UsedWay {
                    net,
                    gateway: way.gateway.unwrap_or(nobody),
                    interface: way.interface,
                    weight: way.weight,
                }));
                None
            }
        };
        let origin = origins.of(best.origin);
        self.routes.push(interface::Used {
            net,
            protocol: origin.protocol.clone(),
            metric: best.route.metric,
            tag: best.route.tag,
            distance: origin.standing.distance,
            gateway: way.and_then(|way| way.gateway).unwrap_or(nobody),
            interface: way.map_or(0, |way| way.interface),
        });
    }

    /// Answers the call with which it waits if there is something, or if its time is over.
    fn answer(&mut self, is_over: bool, may_end: bool, tables: &Tables, out: &mut Vec<Output>) {
        let ends = may_end && !self.complete && !self.is_behind(tables);
        if !(is_over || ends || self.again || self.count() > 0) {
            return;
        }
        let Some(waiting) = self.waiting.take() else { return };
        self.complete |= ends;
        let reply = interface::RedistributeReply {
            again: std::mem::take(&mut self.again),
            routes: std::mem::take(&mut self.routes),
            gone: std::mem::take(&mut self.gone),
            complete: ends,
            ways: Some(std::mem::take(&mut self.ways)),
        };
        out.push(waiting.called.answer(Ok(reply)));
    }
}

/// All of them, by their sessions and their own numbers.
#[derive(Debug, Default)]
pub(crate) struct Redistribution(BTreeMap<(Session, u32), Client>);

impl Redistribution {
    /// A protocol asks with this call, and with no earlier one any more.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        called: Called,
        request: interface::Redistribute,
        tables: &mut Tables,
        out: &mut Vec<Output>,
    ) {
        let interface::Redistribute { reader, protocols, nets, begin, at_most, wait, multicast } =
            request;
        if reader > LAST_READER {
            let note = format!("a reader has a number from 0 to {LAST_READER}, not {reader}");
            return out.push(called.fail(XrlError::bad_args(note)));
        }
        let place = (called.session, reader);
        if let Some(client) = self.0.get_mut(&place) {
            client.answer(true, false, tables, out);
        }
        if begin || !self.0.contains_key(&place) {
            let protocols = protocols.into_iter().collect();
            let nets = nets.into_iter().map(|net| net.trunc()).collect();
            let multicast = multicast == Some(true);
            let client = Client::new(Wanted { protocols, nets, multicast }, tables);
            if let Some(before) = self.0.insert(place, client) {
                before.close(tables);
            }
        }
        let until = now + Duration::from_millis(wait.min(LONGEST).into());
        let at_most = at_most.clamp(1, MOST) as usize;
        if let Some(client) = self.0.get_mut(&place) {
            client.waiting = Some(Waiting { called, at_most, until });
        }
    }

    /// Tells those who wait what is different.
    pub(crate) fn tell(&mut self, tables: &mut Tables, origins: &Origins, out: &mut Vec<Output>) {
        for client in self.0.values_mut().filter(|client| client.waiting.is_some()) {
            client.read(tables, origins);
            let may_end = !client.complete && client.wanted.have_told(origins);
            client.answer(false, may_end, tables, out);
        }
    }

    /// Protocols are trusted otherwise than before: all routes are told again.
    pub(crate) fn tell_again(&mut self, tables: &mut Tables) {
        for client in self.0.values_mut() {
            for (version, reader) in client.readers() {
                tables.routes.tell_again(version, reader, Hears::Best);
            }
        }
    }

    /// Whether there is more to look at than was looked at.
    pub(crate) fn has_work(&self, tables: &Tables) -> bool {
        self.0.values().any(|client| client.has_work(tables))
    }

    /// A client is gone.
    pub(crate) fn left(&mut self, session: Session, tables: &mut Tables) {
        let all = (session, 0)..=(session, LAST_READER);
        self.0.extract_if(all, |_, _| true).for_each(|(_, client)| client.close(tables));
    }

    /// Answers those who have waited as long as they wanted.
    pub(crate) fn tick(&mut self, now: Instant, tables: &Tables, out: &mut Vec<Output>) {
        for client in self.0.values_mut() {
            if client.waiting.as_ref().is_some_and(|waiting| waiting.until <= now) {
                client.answer(true, false, tables, out);
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waiting = self.0.values().filter_map(|client| client.waiting.as_ref());
        waiting.map(|waiting| waiting.until).min()
    }
}

#[cfg(test)]
mod tests {
    use weft_routing::OriginId;

    use super::*;
    use crate::config::Config;

    fn wanted(protocols: &[&str], nets: &[&str]) -> Wanted {
        Wanted {
            protocols: protocols.iter().map(|one| (*one).to_owned()).collect(),
            nets: nets.iter().map(|one| one.parse().unwrap()).collect(),
            multicast: false,
        }
    }

    fn open(origins: &mut Origins, tables: &mut Tables, protocol: &str, external: bool) -> u32 {
        let protocol = protocol.to_owned();
        let request = interface::OpenOrigin { protocol, external, distance: 10 };
        let opened =
            origins.open(Instant::ZERO, (1, true), request, &Config::default(), tables).unwrap();
        opened.id.0.into()
    }

    #[test]
    fn networks_are_of_whoever_has_neighbours_and_protocols_are_those_that_are_named() {
        let mut tables = Tables::new();
        let mut origins = Origins::new(&mut tables);
        let [fixed, far] = [("static", false), ("ebgp", true)]
            .map(|(name, external)| open(&mut origins, &mut tables, name, external));
        let net = "192.0.2.0/24".parse().unwrap();
        let of = |number: u32| origins.of(OriginId(number as u16));
        for (wanted, expected) in [
            (wanted(&["static"], &[]), [true, false]),
            (wanted(&["ebgp"], &[]), [false, true]),
            (wanted(&[], &["192.0.2.0/24"]), [true, false]),
            (wanted(&[], &["192.0.2.0/25"]), [false, false]),
            (wanted(&["ebgp"], &["192.0.2.0/24"]), [true, true]),
        ] {
            assert_eq!([fixed, far].map(|one| wanted.has(of(one), &net)), expected, "{wanted:?}");
        }
    }

    #[test]
    fn of_two_versions_none_waits_until_the_other_has_nothing_to_tell() {
        let mut tables = Tables::new();
        let mut origins = Origins::new(&mut tables);
        let number = open(&mut origins, &mut tables, "static", false);
        let mut client = Client::new(wanted(&["static"], &[]), &mut tables);
        let many = (0..200).map(|n| IpNet::new([198, 51, n, 0].into(), 24).unwrap());
        let other: IpNet = "2001:db8::/32".parse().unwrap();
        for net in many.chain([other]) {
            let route = Route { set: crate::hops::BLACKHOLE, metric: 0, tag: 0 };
            tables.set(weft_routing::ip::split(net), OriginId(number as u16), route);
        }
        client.look(4, &mut tables, &origins);
        assert!(client.routes.iter().any(|route| route.net == other), "{:?}", client.routes);
        client.look(usize::MAX, &mut tables, &origins);
        assert_eq!(client.count(), 201);
    }

    #[test]
    fn those_that_are_wanted_are_waited_for_and_no_others() {
        let mut tables = Tables::new();
        let mut origins = Origins::new(&mut tables);
        origins.started(Instant::ZERO);
        let (named, net) = (wanted(&["static"], &[]), wanted(&[], &["192.0.2.0/24"]));
        assert!(wanted(&["connected"], &[]).have_told(&origins), "that is known at once");
        assert!(!named.have_told(&origins) && !net.have_told(&origins));
        let number = open(&mut origins, &mut tables, "static", false);
        open(&mut origins, &mut tables, "ebgp", true);
        assert!(!named.have_told(&origins));
        origins.end(1, number, &mut tables).unwrap();
        assert!(named.have_told(&origins), "whatever becomes of BGP");
        // Somebody may come who knows of the network.
        assert!(!net.have_told(&origins));
        origins.tick(Instant::ZERO + Duration::from_secs(3600), &mut tables);
        assert!(net.have_told(&origins));
        // And of a protocol that nobody has configured nothing will come.
        assert!(wanted(&["rip"], &[]).have_told(&origins));
    }
}
