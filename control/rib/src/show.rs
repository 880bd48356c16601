//! The state of the RIB, for operators.
//!
//! Answers are pages, so that a full table stalls nobody: whoever wants more asks for what is behind the last prefix.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};
use weft_routing::Candidate;
use weft_xrl::XrlError;

use crate::family::{Family, IpPrefix, Route};
use crate::fib::Fib;
use crate::interface;
use crate::origins::Origins;
use crate::tables::Tables;

/// Routes in an answer, if the caller does not say how many.
const PAGE: u32 = 1000;
/// Routes in an answer at most.
const LONGEST: u32 = 10_000;

/// What is asked for.
pub(crate) fn show(
    request: &interface::Show,
    tables: &Tables,
    origins: &Origins,
    fibs: &[Fib; 2],
) -> Result<Value, XrlError> {
    let shown = Shown { tables, origins };
    match request.what.as_str() {
        "routes" => match &request.prefix {
            Some(prefix) => shown.one(prefix),
            None => shown.page(request.from.as_deref(), request.at_most.unwrap_or(PAGE)),
        },
        "origins" => Ok(shown.origins()),
        "summary" => {
            let (v4, v6) = tables.len();
            let [fib_v4, fib_v6] = fibs;
            let version = |routes: usize, fib: &Fib| {
                let (told, refused) = fib.counts();
                json!({ "routes": routes, "fea": fib.describe(), "told": told, "refused": refused })
            };
            Ok(json!({
                "ipv4": version(v4, fib_v4), "ipv6": version(v6, fib_v6), "waiting": tables.waiting(),
            }))
        }
        other => {
            let note = format!("there is no `{other}` to show: say routes, origins or summary");
            Err(XrlError::bad_args(note))
        }
    }
}

struct Shown<'a> {
    tables: &'a Tables,
    origins: &'a Origins,
}

impl Shown<'_> {
    fn origins(&self) -> Value {
        let origin = |one: &crate::origins::Origin| {
            let (v4, v6) = self.tables.routes_of(one.id);
            json!({
                "protocol": one.protocol, "distance": one.standing.distance, "external": one.standing.is_external,
                "present": one.session.is_some(), "complete": one.has_told, "ipv4": v4, "ipv6": v6,
            })
        };
        self.origins.all().iter().map(origin).collect()
    }

    /// The routes that serve an address or prefix.
    fn one(&self, text: &str) -> Result<Value, XrlError> {
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let net = net.map_err(|_| {
            XrlError::bad_args(format!(
                "`{text}` is neither a prefix nor an address, such as 192.0.2.0/24"
            ))
        })?;
        let shown = match net {
            IpNet::V4(net) => self.serving(self.tables.v4(), &net),
            IpNet::V6(net) => self.serving(self.tables.v6(), &net),
        };
        Ok(shown.into_iter().collect())
    }

    fn serving<D: IpPrefix>(&self, family: &Family<D>, net: &D) -> Option<Value> {
        let mut name = net.prefix();
        loop {
            let (length, number) = family.table.index().table().longest(&name)?;
            if family.table.candidates(*number).next().is_some() {
                return Some(self.net(family, *number));
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
            let from = from.and_then(|net| if let IpNet::V4(net) = net { Some(net) } else { None });
            last = self.append(self.tables.v4(), from, most, &mut routes);
        }
        if last.is_none() {
            let from = from.and_then(|net| if let IpNet::V6(net) = net { Some(net) } else { None });
            last = self.append(self.tables.v6(), from, most, &mut routes);
        }
        Ok(json!({ "routes": routes, "next": last.map(|net| net.to_string()) }))
    }

    /// Appends routes until there are `most`; returns the last if there may be more.
    fn append<D: IpPrefix>(
        &self,
        family: &Family<D>,
        mut from: Option<D>,
        most: usize,
        routes: &mut Vec<Value>,
    ) -> Option<IpNet> {
        while routes.len() < most {
            let (net, number) = family.table.after(from.as_ref())?;
            from = Some(net);
            if family.table.candidates(number).next().is_some() {
                routes.push(self.net(family, number));
            }
        }
        from.map(IpPrefix::net)
    }

    fn net<D: IpPrefix>(&self, family: &Family<D>, number: u32) -> Value {
        let used = family.table.best(number);
        let candidates = family.table.candidates(number);
        let routes =
            candidates.map(|one| self.route(one, used.is_some_and(|used| std::ptr::eq(used, one))));
        json!({
            "prefix": family.table.destination(number).net().to_string(),
            "routes": routes.collect::<Vec<_>>(),
        })
    }

    fn route(&self, one: &Candidate<Route>, used: bool) -> Value {
        let (set, origin) = (one.route.set, self.origins.of(one.origin));
        let ways = self.tables.sets.ways(set).iter().map(|way| {
            json!({ "gateway": way.gateway.map(|gateway| gateway.to_string()), "interface": way.interface, "weight": way.weight })
        });
        let hops = self.tables.sets.hops(set).iter();
        let hops = hops.filter_map(|hop| hop.gateway).map(|gateway| gateway.to_string());
        let kind = match set.0 {
            0 => "blackhole",
            1 => "unreachable",
            2 => "prohibit",
            _ => "unicast",
        };
        json!({
            "protocol": origin.protocol, "used": used, "distance": origin.standing.distance,
            "metric": one.route.metric, "tag": one.route.tag, "kind": kind,
            "gateways": hops.collect::<Vec<_>>(), "ways": ways.collect::<Vec<_>>(),
        })
    }
}
