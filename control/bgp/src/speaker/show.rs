//! The state of BGP, for operators.
//!
//! Routes come in pages, so that a full table stalls nobody: whoever wants more asks for what is behind the last prefix.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde_json::{Value, json};
use weft_routing::{BitString, Candidate, Destination, PrefixIndex, RouteTable};
use weft_xrl::XrlError;

use super::Bgp;
use super::peer::Peer;
use crate::interface;
use crate::routes::{Afi, Path};

/// Routes in an answer, if the caller does not say how many.
const PAGE: u32 = 1000;
/// Routes in an answer at most.
const LONGEST: u32 = 10_000;

impl Bgp {
    /// What is asked for.
    pub(super) fn show(&self, request: &interface::Show) -> Result<Value, XrlError> {
        match request.what.as_str() {
            "peers" => Ok(self.peers.values().map(|peer| self.peer(peer)).collect()),
            "routes" => match &request.prefix {
                Some(prefix) => self.one(prefix),
                None => self.page(request.from.as_deref(), request.at_most.unwrap_or(PAGE)),
            },
            "summary" => {
                let (cohorts, slow) = self.fanout.count();
                Ok(json!({
                    "ipv4": self.routes.len(Afi::V4), "ipv6": self.routes.len(Afi::V6),
                    "attributes": self.routes.sets.len(), "cohorts": cohorts, "slow-cohorts": slow,
                    "waiting": self.routes.waiting(Afi::V4) + self.routes.waiting(Afi::V6),
                    "rib": self.to_rib.is_there(),
                }))
            }
            other => {
                let note = format!("there is no `{other}` to show: say peers, routes or summary");
                Err(XrlError::bad_args(note))
            }
        }
    }

    fn peer(&self, peer: &Peer) -> Value {
        json!({
            "address": peer.address.to_string(), "as": peer.config.remote_as,
            "state": peer.state().to_string(), "since": peer.up.as_ref().map(|up| up.since.as_nanos()),
            "ending": peer.ending.as_ref().map(ToString::to_string),
            "ipv4": self.routes.paths_of(Afi::V4, peer.origin), "ipv6": self.routes.paths_of(Afi::V6, peer.origin),
            "updates": peer.tally.updates, "announced": peer.tally.announced, "withdrawn": peer.tally.withdrawn,
            "faults": peer.tally.faults, "sessions": peer.tally.sessions,
        })
    }

    /// The paths that serve an address or prefix.
    fn one(&self, text: &str) -> Result<Value, XrlError> {
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let net = net.map_err(|_| {
            XrlError::bad_args(format!(
                "`{text}` is neither a prefix nor an address, such as 192.0.2.0/24"
            ))
        })?;
        let shown = match net {
            IpNet::V4(net) => self.serving(self.routes.v4(), &net),
            IpNet::V6(net) => self.serving(self.routes.v6(), &net),
        };
        Ok(shown.into_iter().collect())
    }

    fn serving<D: Destination<Index = PrefixIndex> + BitString>(
        &self,
        table: &RouteTable<D, Path>,
        net: &D,
    ) -> Option<Value> {
        let mut name = net.prefix();
        loop {
            let (length, number) = table.index().table().longest(&name)?;
            if table.candidates(*number).next().is_some() {
                return Some(self.net(table, *number));
            }
            name = name.truncate(length.checked_sub(1)?);
        }
    }

    /// Some routes behind a prefix, and behind which to go on.
    fn page(&self, from: Option<&str>, at_most: u32) -> Result<Value, XrlError> {
        let from = from.map(str::parse::<IpNet>).transpose().map_err(|_| {
            XrlError::bad_args(
                "`from` is the prefix behind which to go on, as the last answer says it",
            )
        })?;
        let most = at_most.clamp(1, LONGEST) as usize;
        let (mut routes, mut last) = (Vec::new(), None);
        if !matches!(from, Some(IpNet::V6(_))) {
            let from: Option<Ipv4Net> =
                if let Some(IpNet::V4(net)) = from { Some(net) } else { None };
            last = self.append(self.routes.v4(), from, most, &mut routes).map(IpNet::V4);
        }
        if last.is_none() {
            let from: Option<Ipv6Net> =
                if let Some(IpNet::V6(net)) = from { Some(net) } else { None };
            last = self.append(self.routes.v6(), from, most, &mut routes).map(IpNet::V6);
        }
        Ok(json!({ "routes": routes, "next": last.map(|net| net.to_string()) }))
    }

    /// Appends routes until there are `most`; returns the last if there may be more.
    fn append<D: Destination<Index = PrefixIndex> + BitString + std::fmt::Display>(
        &self,
        table: &RouteTable<D, Path>,
        mut from: Option<D>,
        most: usize,
        routes: &mut Vec<Value>,
    ) -> Option<D> {
        while routes.len() < most {
            let (net, number) = table.after(from.as_ref())?;
            from = Some(net);
            if table.candidates(number).next().is_some() {
                routes.push(self.net(table, number));
            }
        }
        from
    }

    fn net<D: Destination<Index = PrefixIndex> + BitString>(
        &self,
        table: &RouteTable<D, Path>,
        number: u32,
    ) -> Value {
        let best = table.best(number);
        let paths = table.candidates(number);
        let paths =
            paths.map(|one| self.path(one, best.is_some_and(|best| std::ptr::eq(best, one))));
        json!({
            "prefix": format!("{:?}", table.destination(number)),
            "paths": paths.collect::<Vec<_>>(),
        })
    }

    fn path(&self, one: &Candidate<Path>, best: bool) -> Value {
        let (routes, received) = (&self.routes, self.routes.sets.get(one.route.received));
        let next_hop = routes.sets.next_hop(one.route.received);
        json!({
            "peer": routes.source(one.origin).address.to_string(), "best": best,
            "accepted": one.route.is_accepted(), "path-id": one.path,
            "next-hop": routes.next_hops.address(next_hop).to_string(),
            "metric": routes.next_hops.metric(next_hop),
            "as-path": received.as_path.to_string(), "origin": format!("{:?}", received.origin),
            "med": received.med, "local-pref": received.local_pref,
            "communities": received.communities.iter()
                .map(|one| format!("{}:{}", one >> 16, one & 0xffff)).collect::<Vec<_>>(),
        })
    }
}
