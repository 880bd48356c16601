//! The state of BGP, for operators.

use ipnet::IpNet;
use serde_json::{Value, json};
use weft_base::Instant;
use weft_routing::Candidate;
use weft_routing::ip::Version;
use weft_xrl::XrlError;

use super::Bgp;
use super::limit::Held;
use super::peer::Peer;
use crate::interface;
use crate::routes::Path;

impl Bgp {
    /// What is asked for.
    pub(super) fn show(&self, now: Instant, request: &interface::Show) -> Result<Value, XrlError> {
        let table = &self.routes.table;
        let wrong = |error: weft_routing::ip::PageError| XrlError::bad_args(error.to_string());
        let multicast = request.multicast == Some(true);
        match request.what.as_str() {
            "peers" => Ok(self.peers.values().map(|peer| self.peer(now, peer)).collect()),
            "routes" => match &request.prefix {
                Some(text) => {
                    let found = table.serving(multicast, text).map_err(wrong)?;
                    Ok(found.into_iter().map(|found| self.net(found)).collect())
                }
                None => {
                    let page = table.page(multicast, request.from.as_deref(), request.at_most);
                    let page = page.map_err(wrong)?;
                    let routes: Vec<_> = page.found.into_iter().map(|one| self.net(one)).collect();
                    Ok(json!({ "routes": routes, "next": page.next.map(|net| net.to_string()) }))
                }
            },
            "summary" => {
                let (cohorts, slow) = self.fanout.count();
                Ok(json!({
                    "ipv4": table.len(Version::V4), "ipv6": table.len(Version::V6),
                    "ipv4-multicast": table.len(Version::V4Multicast), "ipv6-multicast": table.len(Version::V6Multicast),
                    "attributes": self.routes.sets.len(), "cohorts": cohorts, "slow-cohorts": slow,
                    "waiting": table.waiting(), "rib": self.to_rib.is_there(),
                    "restarting": self.restart.defers(),
                }))
            }
            other => {
                let note = format!("there is no `{other}` to show: say peers, routes or summary");
                Err(XrlError::bad_args(note))
            }
        }
    }

    fn peer(&self, now: Instant, peer: &Peer) -> Value {
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
            "state": peer.state().to_string(), "since": peer.up.as_ref().map(|up| up.since.as_nanos()),
            "ending": peer.ending,
            "ipv4": paths(Version::V4), "ipv6": paths(Version::V6),
            "ipv4-multicast": paths(Version::V4Multicast), "ipv6-multicast": paths(Version::V6Multicast),
            "updates": peer.tally.updates, "announced": peer.tally.announced, "withdrawn": peer.tally.withdrawn,
            "stale": stale, "damping": self.damping(peer.origin), "description": peer.config.session.description,
            "range": peer.range.map(|range| range.to_string()), "shutdown": peer.config.session.shutdown, "over-limit": peer.limit.held != Held::No, "faults": peer.tally.faults, "sessions": peer.tally.sessions,
        })
    }

    fn net(&self, (version, number): (Version, u32)) -> Value {
        let table = &self.routes.table;
        let best = table.best(version, number);
        let is_best = |one| best.is_some_and(|best| std::ptr::eq(best, one));
        let net = table.net(version, number);
        let paths = table
            .candidates(version, number)
            .map(|one| self.path((version, net), one, is_best(one)));
        json!({
            "prefix": net.to_string(), "paths": paths.collect::<Vec<_>>(),
        })
    }

    fn path(&self, (version, net): (Version, IpNet), one: &Candidate<Path>, best: bool) -> Value {
        let routes = &self.routes;
        // As policy has let it pass, if it has.
        let set = if one.route.is_accepted() { one.route.accepted } else { one.route.received };
        let shown = routes.sets.get(set).unpack();
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
        json!({
            "protocol": source.protocol().0,
            "peer": source.party().map(|party| party.address.to_string()), "best": best,
            "accepted": one.route.is_accepted(), "path-id": one.path,
            "unused": self.unused((version, net), one),
            "long-lived-stale": source.is_stale(&shown.communities), "damping": standing,
            "next-hop": source.party().map(|_| address(next_hop)),
            "metric": routes.next_hops.metric(next_hop),
            "as-path": shown.as_path.to_string(), "origin": format!("{:?}", shown.origin),
            "med": shown.med, "local-pref": shown.local_pref,
            "tag": one.route.is_accepted().then(|| routes.sets.get(one.route.accepted).rare().tag),
            "communities": shown.communities.iter()
                .map(|one| format!("{}:{}", one >> 16, one & 0xffff)).collect::<Vec<_>>(),
        })
    }
}
