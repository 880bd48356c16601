//! The state of BGP, for operators.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde_json::{Map, Value, json};
use weft_base::Instant;
use weft_routing::Candidate;
use weft_routing::ip::{Asked, Version};
use weft_xrl::XrlError;

use super::Bgp;
use super::attributes::{self, NamedCommunity};
use super::limit::Held;
use super::peer::Peer;
use crate::fanout::Shown;
use crate::interface;
use crate::routes::{Path, next_hops};

impl Bgp {
    /// What is asked for.
    pub(super) fn show(&self, now: Instant, request: &interface::Show) -> Result<Value, XrlError> {
        let table = &self.routes.table;
        let wrong = |error: weft_routing::ip::PageError| XrlError::bad_args(error.to_string());
        let multicast = request.multicast == Some(true);
        match request.what.as_str() {
            "peers" => Ok(self.peers.values().map(|peer| self.peer(now, peer)).collect()),
            "peer" => match self.known(request.peer)? {
                Some(peer) => Ok(self.detail(now, peer)),
                None => Err(XrlError::bad_args("say which peer, by its address")),
            },
            "routes" => {
                if request.prefix.is_some() && request.within.is_some() {
                    let note = "say either what serves a prefix or what is within one";
                    return Err(XrlError::bad_args(note));
                }
                let which = self.which(request)?;
                let nets = |found: Vec<(Version, u32)>| -> Vec<_> {
                    found.into_iter().filter_map(|one| self.net(one, &which)).collect()
                };
                match &request.prefix {
                    Some(text) => {
                        let found = table.serving(multicast, text).map_err(wrong)?;
                        Ok(nets(found.into_iter().collect()).into())
                    }
                    None => {
                        let (from, at_most) = (request.from.as_deref(), request.at_most);
                        let within = request.within.as_deref();
                        let asked = Asked { multicast, within, from, at_most };
                        let page = table.page(&asked).map_err(wrong)?;
                        let next = page.next.map(|net| net.to_string());
                        Ok(json!({ "routes": nets(page.found), "next": next }))
                    }
                }
            }
            "summary" => Ok(self.summary()),
            other => {
                let note =
                    format!("there is no `{other}` to show: say peers, peer, routes or summary");
                Err(XrlError::bad_args(note))
            }
        }
    }

    /// Who this router is, how many sessions are in which state, how much there is of what.
    fn summary(&self) -> Value {
        let table = &self.routes.table;
        let (cohorts, slow) = self.fanout.count();
        let mut states = BTreeMap::<String, u64>::new();
        for peer in self.peers.values() {
            *states.entry(peer.state().to_string()).or_default() += 1;
        }
        let paths = |version: Version| {
            let of_peers = self.peers.values().map(|peer| table.routes_of(version, peer.origin));
            (version.name().replace(' ', "-"), Value::from(of_peers.sum::<usize>()))
        };
        let own = self.config.as_ref();
        json!({
            "as": own.map(|own| own.home.number), "confederation": own.and_then(|own| own.home.confederation),
            "router-id": own.map(|own| own.router_id.to_string()),
            "peers": states, "paths": Map::from_iter(Version::ALL.map(paths)),
            "ipv4": table.len(Version::V4), "ipv6": table.len(Version::V6),
            "ipv4-multicast": table.len(Version::V4Multicast), "ipv6-multicast": table.len(Version::V6Multicast),
            "attributes": self.routes.sets.len(), "cohorts": cohorts, "slow-cohorts": slow,
            "waiting": table.waiting(), "rib": self.to_rib.is_there(),
            "rpki-payloads": self.routes.validation.len(),
            "restarting": self.restart.defers(),
        })
    }

    pub(super) fn peer(&self, now: Instant, peer: &Peer) -> Value {
        // Families whose routes serve on, and for how many seconds at most.
        let stale = peer.stale.ends().map(|until| {
            let families: Vec<_> = peer.stale.versions().map(Version::name).collect();
            let long_lived: Vec<_> = peer.stale.long_lived().map(Version::name).collect();
            let seconds = until.since(now).as_secs();
            json!({ "families": families, "long-lived": long_lived, "seconds": seconds })
        });
        let paths = |version| self.routes.table.routes_of(version, peer.origin);
        json!({
            "address": peer.address.to_string(), "as": peer.remote_as(),
            "state": peer.state().to_string(), "up-for": peer.up.as_ref().map(|up| now.since(up.since).as_secs()),
            "ending": peer.ending,
            "ipv4": paths(Version::V4), "ipv6": paths(Version::V6),
            "ipv4-multicast": paths(Version::V4Multicast), "ipv6-multicast": paths(Version::V6Multicast),
            "updates": peer.tally.updates, "announced": peer.tally.announced, "withdrawn": peer.tally.withdrawn,
            "stale": stale, "damping": self.damping(peer.origin), "description": peer.config.session.description,
            "group": peer.config.group.as_deref(),
            "range": peer.range.map(|range| range.to_string()), "shutdown": peer.config.session.shutdown, "over-limit": peer.limit.held != Held::No, "faults": peer.tally.faults, "sessions": peer.tally.sessions,
        })
    }

    /// Which paths are asked for.
    fn which(&self, request: &interface::Show) -> Result<Which<'_>, XrlError> {
        let named = request.community.as_deref().map(NamedCommunity::parse).transpose();
        let community = named.map_err(XrlError::bad_args)?;
        let (from, to) = (self.known(request.received_from)?, self.known(request.advertised_to)?);
        let whose = match (from, to) {
            (None, None) => Whose::All,
            (Some(peer), None) => Whose::ReceivedFrom(peer),
            (None, Some(peer)) if peer.up.is_some() => Whose::AdvertisedTo(peer),
            (None, Some(peer)) => {
                let note =
                    format!("there is no session with {}, so it is told nothing", peer.address);
                return Err(XrlError::failed(note));
            }
            (Some(_), Some(_)) => {
                let note = "say either who has announced the paths or who is told of them";
                return Err(XrlError::bad_args(note));
            }
        };
        Ok(Which { whose, community })
    }

    /// A destination with these paths; none if it has none of them.
    fn net(&self, place: (Version, u32), which: &Which<'_>) -> Option<Value> {
        let table = &self.routes.table;
        let (version, number) = place;
        let net = table.net(version, number);
        let mut paths: Vec<_> = match which.whose {
            Whose::AdvertisedTo(peer) => {
                let told = self.fanout.shown(peer.origin, place, &self.routes);
                told.iter().map(|one| self.told_path(one)).collect()
            }
            Whose::All | Whose::ReceivedFrom(_) => {
                let best = table.best(version, number);
                let is_best = |one| best.is_some_and(|best| std::ptr::eq(best, one));
                let asked = table.candidates(version, number).filter(|one| which.is_asked(one));
                asked.map(|one| self.path(place, one, is_best(one), which)).collect()
            }
        };
        if let Some(community) = &which.community {
            paths.retain(|path| community.is_of(path));
        }
        let is_shown = !paths.is_empty() || which.is_everything();
        is_shown.then(|| json!({ "prefix": net.to_string(), "paths": paths }))
    }

    fn path(
        &self,
        place: (Version, u32),
        one: &Candidate<Path>,
        best: bool,
        which: &Which<'_>,
    ) -> Value {
        let (routes, version) = (&self.routes, place.0);
        let net = routes.table.net(version, place.1);
        // As policy has let it pass, if it has, and that is what is asked for.
        let is_as_used = one.route.is_accepted() && matches!(which.whose, Whose::All);
        let set = if is_as_used { one.route.accepted } else { one.route.received };
        let attributes = routes.sets.get(set).unpack();
        let next_hop = routes.sets.next_hop(set);
        let source = routes.source(one.origin);
        let address = |id| routes.next_hops.address(id).to_string();
        // Points, and when it is used again, if it is damped.
        let standing = routes.damping(one.origin).and_then(|damping| {
            let standing = damping.standing(routes.now, &(version, net, one.path))?;
            let seconds = standing.until.map(|until| until.since(routes.now).as_secs());
            let is_damped = standing.until.is_some();
            Some(json!({ "penalty": standing.penalty, "damped": is_damped, "seconds": seconds }))
        });
        let mut shown = attributes::shown(&attributes);
        for (name, value) in [
            ("protocol", json!(source.protocol().0)),
            ("peer", json!(source.party().map(|party| party.address.to_string()))),
            ("best", best.into()),
            ("accepted", one.route.is_accepted().into()),
            ("path-id", one.path.into()),
            ("unused", self.unused((version, net), one).into()),
            ("lost-by", routes.lost_by(place, one).into()),
            ("validity", self.shown_validity(&net, one).into()),
            ("long-lived-stale", source.is_stale(&attributes.communities).into()),
            ("blackhole", (one.route.is_accepted() && routes.is_blackhole(one)).into()),
            ("damping", standing.into()),
            ("next-hop", json!(source.party().map(|_| address(next_hop)))),
            ("metric", json!(routes.next_hops.metric(next_hop))),
            ("tag", json!(is_as_used.then(|| attributes.rare().tag))),
        ] {
            shown[name] = value;
        }
        shown
    }

    /// Whether the origin of a path is valid, if the RPKI says anything of any.
    fn shown_validity(&self, net: &IpNet, one: &Candidate<Path>) -> Option<&'static str> {
        let received = &self.routes.sets.get(one.route.received).unpack();
        let is_asked = self.routes.validation.len() > 0;
        is_asked.then(|| self.validity(net, received).word())
    }

    /// A path as a peer is told it.
    fn told_path(&self, one: &Shown) -> Value {
        let source = self.routes.source(one.source);
        let next_hop = one.attributes.next_hop.as_ref();
        let mut shown = attributes::shown(&one.attributes);
        for (name, value) in [
            ("protocol", json!(source.protocol().0)),
            ("peer", json!(source.party().map(|party| party.address.to_string()))),
            ("path-id", one.id.into()),
            ("next-hop", json!(next_hop.map(|hop| next_hops::address(hop).to_string()))),
        ] {
            shown[name] = value;
        }
        shown
    }
}

/// Which paths are shown.
struct Which<'a> {
    whose: Whose<'a>,
    /// Only those that have it.
    community: Option<NamedCommunity>,
}

/// Whose paths are shown.
enum Whose<'a> {
    /// All, as they are used here.
    All,
    /// Those that this peer has announced, as it has announced them.
    ReceivedFrom(&'a Peer),
    /// Those that this peer is told, as it sees them.
    AdvertisedTo(&'a Peer),
}

impl Which<'_> {
    /// Whether a path is one of those that peers have announced which are asked for.
    fn is_asked(&self, one: &Candidate<Path>) -> bool {
        match self.whose {
            Whose::ReceivedFrom(peer) => one.origin == peer.origin,
            Whose::All | Whose::AdvertisedTo(_) => true,
        }
    }

    /// Whether all paths are, also where there are none at the moment.
    fn is_everything(&self) -> bool {
        matches!(self.whose, Whose::All) && self.community.is_none()
    }
}
