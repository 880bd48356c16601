//! What routes of other protocols are to policies: which are told, and how.
//!
//! Reference: Handley et al. (XORP), §8.1 (policies, and tags that go with routes through the RIB).

use ipnet::IpNet;
use weft_policy::{Access, Kind, Route, Value, Variable};
use weft_protocol::Used;

use crate::config::Redistribute;
use crate::wire::INFINITY;

const NUMBER: Kind = Kind::Number { most: u32::MAX as u64 };

const PREFIX: usize = 0;
const PROTOCOL: usize = 1;
const METRIC: usize = 2;
const TAG: usize = 3;
const HOPS: usize = 4;

/// Aligned by hand with the constants above.
pub(crate) static VARIABLES: &[Variable] = &[
    Variable::new("prefix", Kind::Prefix, "where the route leads"),
    Variable::new("protocol", Kind::Text, "the protocol of the route, such as ebgp"),
    Variable::new("metric", NUMBER, "how far the network is, to that protocol"),
    Variable::new("tag", NUMBER, "the mark that the route has there, which neighbours are told")
        .with(Access::Write),
    Variable::new(
        "hops",
        Kind::Number { most: INFINITY as u64 - 1 },
        "the metric that neighbours are told, from 1 on",
    )
    .with(Access::Write),
];

/// A route of another protocol, and how it would be told.
struct Told<'a> {
    net: IpNet,
    used: &'a Used,
    hops: u8,
    tag: u32,
}

impl Route for Told<'_> {
    fn read(&self, variable: usize) -> Option<Value<'_>> {
        Some(match variable {
            PREFIX => Value::Prefix(self.net),
            PROTOCOL => Value::Text((&*self.used.protocol).into()),
            METRIC => Value::Number(self.used.metric.into()),
            TAG => Value::Number(self.tag.into()),
            HOPS => Value::Number(self.hops.into()),
            _ => return None,
        })
    }
}

/// With which metric and tag neighbours are told of a route of another protocol; none if they are not.
pub(crate) fn tell(net: IpNet, used: &Used, how: &Redistribute) -> Option<(u8, u16)> {
    let tag = how.tag.map_or(used.tag, u32::from);
    let route = Told { net, used, hops: how.metric, tag };
    let (mut hops, mut tag) = (route.hops, route.tag);
    for (variable, value) in how.policy.run(&route)? {
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

#[cfg(test)]
mod tests {
    use weft_policy::Filter;

    use super::*;
    use crate::Version;
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
