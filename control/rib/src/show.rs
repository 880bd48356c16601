//! The state of the RIB, for operators.

use serde_json::{Map, Value, json};
use weft_base::Reason;
use weft_routing::ip::{Asked, PageError, Version};
use weft_routing::{Allowance, Candidate, Guard, OriginId, Refusal};
use weft_xrl::XrlError;

use crate::arbiter::Route;
use crate::connected::Connected;
use crate::fib::Fib;
use crate::hops;
use crate::interface;
use crate::origins::Origins;
use crate::tables::Tables;

/// What is asked for.
pub(crate) fn show(
    request: &interface::Show,
    tables: &Tables,
    origins: &Origins,
    connected: &Connected,
    fibs: &[Fib; 2],
) -> Result<Value, XrlError> {
    let shown = Shown { tables, origins, connected, only: only(request, origins)? };
    let multicast = request.multicast == Some(true);
    let wrong = |error: PageError| XrlError::bad_args(error.to_string());
    match request.what.as_str() {
        "routes" => match &request.prefix {
            Some(text) => {
                let found = tables.routes.serving(multicast, text).map_err(wrong)?;
                Ok(found.into_iter().filter_map(|found| shown.net(found)).collect())
            }
            None => {
                let (within, from) = (request.within.as_deref(), request.from.as_deref());
                let asked = Asked { multicast, within, from, at_most: request.at_most };
                let page = tables.routes.page(&asked).map_err(wrong)?;
                let routes: Vec<_> =
                    page.found.into_iter().filter_map(|found| shown.net(found)).collect();
                Ok(json!({ "routes": routes, "next": page.next.map(|net| net.to_string()) }))
            }
        },
        "origins" => Ok(shown.origins()),
        "summary" => {
            let [fib_v4, fib_v6] = fibs;
            let version = |version, fib: &Fib| {
                let (routes, (told, refused)) = (tables.routes.len(version), fib.counts());
                json!({ "routes": routes, "fea": fib.describe(), "told": told, "refused": refused })
            };
            Ok(json!({
                "ipv4": version(Version::V4, fib_v4), "ipv6": version(Version::V6, fib_v6),
                "ipv4-multicast": { "routes": tables.routes.len(Version::V4Multicast) },
                "ipv6-multicast": { "routes": tables.routes.len(Version::V6Multicast) },
                "waiting": tables.routes.waiting(),
            }))
        }
        other => {
            let note = format!("there is no `{other}` to show: say routes, origins or summary");
            Err(XrlError::bad_args(note))
        }
    }
}

/// The protocol whose routes alone are asked for.
fn only(request: &interface::Show, origins: &Origins) -> Result<Option<OriginId>, XrlError> {
    let Some(name) = &request.protocol else { return Ok(None) };
    let found = origins.all().iter().find(|one| one.protocol == *name);
    let names = || origins.all().iter().map(|one| one.protocol.as_str()).collect::<Vec<_>>();
    let unknown = || {
        let (name, names) = (name.escape_debug(), names().join(", "));
        XrlError::bad_args(format!("no protocol `{name}` has told routes: say one of {names}"))
    };
    found.map(|one| Some(one.id)).ok_or_else(unknown)
}

struct Shown<'a> {
    tables: &'a Tables,
    origins: &'a Origins,
    connected: &'a Connected,
    /// Whose routes are shown; those of all if nothing is said.
    only: Option<OriginId>,
}

impl Shown<'_> {
    fn origins(&self) -> Value {
        let origin = |one: &crate::origins::Origin| {
            let routes = |version| self.tables.routes.routes_of(version, one.id);
            json!({
                "protocol": one.protocol, "distance": one.standing.distance, "external": one.standing.is_external,
                "present": one.session.is_some(), "complete": one.has_told, "ipv4": routes(Version::V4), "ipv6": routes(Version::V6),
                "ipv4-multicast": routes(Version::V4Multicast), "ipv6-multicast": routes(Version::V6Multicast),
                "guard": one.guard.as_ref().map(guard),
            })
        };
        self.origins.all().iter().map(origin).collect()
    }

    /// A destination with the routes that are shown; none if it has none of them.
    fn net(&self, (version, number): (Version, u32)) -> Option<Value> {
        let all = &self.tables.routes;
        let used = all.best(version, number);
        let is_used = |one| used.is_some_and(|used| std::ptr::eq(used, one));
        let is_asked = |one: &&Candidate<Route>| self.only.is_none_or(|only| only == one.origin);
        let routes = all.candidates(version, number).filter(is_asked);
        let routes: Vec<_> = routes.map(|one| self.route(one, is_used(one))).collect();
        let prefix = all.net(version, number).to_string();
        (!routes.is_empty()).then(|| json!({ "prefix": prefix, "routes": routes }))
    }

    fn route(&self, one: &Candidate<Route>, used: bool) -> Value {
        let (set, origin) = (one.route.set, self.origins.of(one.origin));
        let ways = self.tables.sets.ways(set).iter().map(|way| {
            json!({
                "gateway": way.gateway.map(|gateway| gateway.to_string()), "interface": way.interface,
                "name": self.connected.name(way.interface), "weight": way.weight,
            })
        });
        let gateways = self.tables.sets.hops(set).iter().filter_map(|hop| hop.gateway);
        let gateways: Vec<_> = gateways.map(|gateway| gateway.to_string()).collect();
        let kind = match self.tables.sets.nowhere(set) {
            Some(hops::BLACKHOLE) => "blackhole",
            Some(hops::PROHIBIT) => "prohibit",
            Some(_) => "unreachable",
            None => "unicast",
        };
        json!({
            "protocol": origin.protocol, "used": used, "distance": origin.standing.distance,
            "metric": one.route.metric, "tag": one.route.tag, "kind": kind,
            "gateways": gateways, "ways": ways.collect::<Vec<_>>(),
        })
    }
}

/// What a protocol may tell that is not trusted, and what was refused.
fn guard(guard: &Guard<Version>) -> Value {
    let Allowance { within, most, rate } = guard.allowance();
    let within: Vec<_> = within.iter().map(|(of, net)| of.net(net).to_string()).collect();
    let refused = Refusal::ALL.iter().map(|one| (one.name().to_owned(), guard.refused().get(*one)));
    let refused: Map<_, _> = refused.map(|(name, count)| (name, count.into())).collect();
    json!({ "within": within, "most": most, "rate": rate, "refused": refused })
}
