//! What routes are to policies: which of other protocols are told, and what is believed and told on a link, and how.
//!
//! Reference: Handley et al. (XORP), §8.1 (policies, and tags that go with routes through the RIB). RFC 2453 §3.6 and §3.9.2: a
//! route becomes longer with every router, which a policy on a link cannot undo, lest packets go in circles.

use std::net::IpAddr;

use ipnet::IpNet;
use weft_policy::{Access, Filter, Kind, Route, Value, Variable};
use weft_protocol::Used;

use crate::Version;
use crate::config::Redistribute;
use crate::table::{self, Source};
use crate::wire::INFINITY;

const NUMBER: Kind = Kind::Number { most: u32::MAX as u64 };

const PREFIX: usize = 0;
const PROTOCOL: usize = 1;
const METRIC: usize = 2;
const TAG: usize = 3;
const HOPS: usize = 4;
const NEIGHBOR: usize = 5;

/// Aligned by hand with the constants above.
pub(crate) static VARIABLES: &[Variable] = &[
    Variable::new("prefix", Kind::Prefix, "where the route leads"),
    Variable::new("protocol", Kind::Text, "the protocol of the route, such as ebgp or rip"),
    Variable::new("metric", NUMBER, "how far the network is, to another protocol"),
    Variable::new("tag", NUMBER, "the mark that the route has, which neighbours are told")
        .with(Access::Write),
    Variable::new(
        "hops",
        Kind::Number { most: INFINITY as u64 - 1 },
        "the metric of RIP, from 1 on",
    )
    .with(Access::Write),
    Variable::new("neighbor", Kind::Address, "the router that tells the route"),
];

/// A route as policies see it.
struct Seen<'a> {
    net: IpNet,
    protocol: Option<&'a str>,
    metric: Option<u32>,
    tag: u32,
    hops: u8,
    neighbor: Option<IpAddr>,
}

impl Route for Seen<'_> {
    fn read(&self, variable: usize) -> Option<Value<'_>> {
        Some(match variable {
            PREFIX => Value::Prefix(self.net),
            PROTOCOL => Value::Text(self.protocol?.into()),
            METRIC => Value::Number(self.metric?.into()),
            TAG => Value::Number(self.tag.into()),
            HOPS => Value::Number(self.hops.into()),
            NEIGHBOR => Value::Address(self.neighbor?),
            _ => return None,
        })
    }
}

impl Seen<'_> {
    /// Metric and tag behind a filter; none if the route does not pass.
    fn behind(&self, filter: &Filter) -> Option<(u8, u16)> {
        let (mut hops, mut tag) = (self.hops, self.tag);
        for (variable, value) in filter.run(self)? {
            match (variable, value) {
                // Numbers are in the bounds of their variables.
                (TAG, Some(Value::Number(set))) => tag = set as u32,
                (HOPS, Some(Value::Number(set))) => hops = (set as u8).max(1),
                _ => {}
            }
        }
        // Tags of RIP have 16 bits; a longer one says nothing there.
        Some((hops, u16::try_from(tag).unwrap_or(0)))
    }
}

/// With which metric and tag neighbours are told of a route of another protocol; none if they are not.
pub(crate) fn tell(net: IpNet, used: &Used, how: &Redistribute) -> Option<(u8, u16)> {
    let seen = Seen {
        net,
        protocol: Some(&used.protocol),
        metric: Some(used.metric),
        tag: how.tag.map_or(used.tag, u32::from),
        hops: how.metric,
        neighbor: None,
    };
    seen.behind(&how.policy)
}

/// A route on its way through `import` or `export` of a link; none if it does not pass. It becomes no shorter.
pub(crate) fn pass(
    version: Version,
    net: IpNet,
    route: &table::Route,
    filter: &Filter,
) -> Option<table::Route> {
    let (protocol, neighbor) = match route.source {
        Source::Learned { router } => (Some(version.statement()), Some(router)),
        Source::Connected => (Some("connected"), None),
        // `redistribute` has asked about what it was.
        Source::Redistributed => (None, None),
    };
    let (tag, hops) = (route.tag.into(), route.metric);
    let seen = Seen { net, protocol, metric: None, tag, hops, neighbor };
    let (metric, tag) = seen.behind(filter)?;
    Some(table::Route { metric: metric.max(route.metric), tag, ..*route })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;

    fn used(protocol: &str, metric: u32, tag: u32) -> Used {
        let (protocol, ways) = (protocol.to_owned(), Vec::new());
        Used { protocol, metric, tag, distance: 20, gateway: None, interface: None, ways }
    }

    #[test]
    fn a_policy_says_which_routes_are_told_and_how() {
        let text = "policy {
            policy-statement p {
                term far { from { tag 7; metric gt 100; } then { hops add 4; accept; } }
                term near { from { tag 7; protocol ebgp; } then { tag 70000; accept; } }
                term own { from { prefix 10.0.0.0/8 longer; hops 2; } then { tag 9; hops 0; accept; } }
            } }
            rip { redistribute ebgp { metric 2; policy p; } }";
        let config = read(Version::V2, "t", text).unwrap();
        let how = &config.redistribute["ebgp"];
        let net: IpNet = "192.0.2.0/24".parse().unwrap();
        assert_eq!(tell(net, &used("ebgp", 101, 7), how), Some((6, 7)));
        assert_eq!(tell(net, &used("ebgp", 100, 7), how), Some((2, 0)), "no tag of RIP");
        assert_eq!(tell(net, &used("ibgp", 100, 7), how), None);
        assert_eq!(tell(net, &used("ebgp", 101, 8), how), None);
        let own = "10.1.0.0/16".parse().unwrap();
        assert_eq!(tell(own, &used("ebgp", 0, 0), how), Some((1, 9)));
        // What statements say is what the policy sees.
        let tagged = Redistribute { tag: Some(7), ..how.clone() };
        assert_eq!(tell(net, &used("ebgp", 101, 0), &tagged), Some((6, 7)));
        let all = Redistribute { metric: 3, tag: None, policy: Filter::All };
        assert_eq!(tell(net, &used("x", 0, 65_536), &all), Some((3, 0)));
        assert_eq!(tell(net, &used("x", 0, 65_535), &all), Some((3, 65_535)));
    }

    #[test]
    fn a_route_on_a_link_is_believed_and_told_as_policies_say_and_becomes_no_shorter() {
        let text = "policy {
            policy-statement p {
                term near { from { neighbor 10.0.1.2; tag 7; } then { hops add 3; tag 8; accept; } }
                term short { from { protocol rip; prefix 10.0.0.0/8 longer; } then { hops 1; accept; } }
                term own { from { protocol connected; } then { accept; } }
            } }
            rip { interface eth0 { import p; } }";
        let config = read(Version::V2, "t", text).unwrap();
        let filter = &config.links["eth0"].import;
        let route =
            |source, metric, tag| table::Route { source, link: 1, gateway: None, metric, tag };
        let from = |last| Source::Learned { router: [10, 0, 1, last].into() };
        let passed = |net: &str, source, metric, tag| {
            let passed =
                pass(Version::V2, net.parse().unwrap(), &route(source, metric, tag), filter);
            passed.map(|route| (route.metric, route.tag))
        };
        assert_eq!(passed("192.0.2.0/24", from(2), 2, 7), Some((5, 8)));
        assert_eq!(
            passed("192.0.2.0/24", from(2), 14, 7),
            Some((15, 8)),
            "the farthest that there is"
        );
        assert_eq!(passed("192.0.2.0/24", from(3), 2, 7), None);
        assert_eq!(passed("10.1.0.0/16", from(3), 4, 0), Some((4, 0)), "no shorter");
        assert_eq!(passed("10.1.0.0/16", from(3), INFINITY, 0), Some((INFINITY, 0)));
        assert_eq!(passed("10.1.0.0/16", Source::Connected, 1, 0), Some((1, 0)));
        assert_eq!(passed("10.1.0.0/16", Source::Redistributed, 1, 0), None, "none of these");
    }

    #[test]
    fn every_variable_of_the_handbook_is_there() {
        let page = include_str!("../../../docs/src/policy.md");
        let (_, section) = page.split_once("## The variables of RIP").unwrap();
        for variable in VARIABLES {
            assert!(section.contains(&format!("`{}`", variable.name)), "{}", variable.name);
        }
    }

    #[test]
    fn a_metric_of_another_protocol_stays_below_infinity() {
        let text = "policy { policy-statement p { then { hops metric; accept; } } }
            rip { redistribute ebgp { policy p; } }";
        let config = read(Version::V2, "t", text).unwrap();
        let net: IpNet = "192.0.2.0/24".parse().unwrap();
        let told = |metric| tell(net, &used("ebgp", metric, 0), &config.redistribute["ebgp"]);
        for (metric, hops) in [(0, 1), (7, 7), (256, 15), (300, 15)] {
            assert_eq!(told(metric), Some((hops, 0)));
        }
    }
}
