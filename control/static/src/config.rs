//! What the configuration says of static routes.
//!
//! ```text
//! static {
//!     route 198.51.100.0/24 {
//!         next-hop 192.0.2.1 { weight 2; }
//!         next-hop 192.0.2.2;
//!         backup 1 { next-hop 203.0.113.1; metric 10; }
//!         backup 2 { unreachable; }
//!     }
//!     route 2001:db8::/32 { next-hop fe80::1 { interface eth0; } }
//! }
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use weft_config::{Block, Document, Entry, Errors, Form, InterfaceName, gather};
use weft_protocol::To;

/// The statement.
pub const STATEMENT: &str = "static";

/// Where packets go: what may be said of a route, and of a backup.
macro_rules! way_statements {
    () => {
        r#"        list next-hop {
            help "a next router; several share the packets";
            key address address { help "its address"; }
            leaf interface interface { help "the interface that it is on; needed for link-local addresses"; }
            leaf weight number { range 1 256; default 1; help "its share of the packets, compared with others"; }
        }
        leaf-list interface interface { help "the destinations are on the link of this interface"; }
        flag blackhole { help "drop the packets"; }
        flag unreachable { help "drop the packets, and tell their senders that there is no way"; }
        flag prohibit { help "drop the packets, and tell their senders that it is not allowed"; }
"#
    };
}

/// What may be configured.
pub const SCHEMA: &str = concat!(
    r#"
container static {
    help "routes that never change by themselves";
    list route {
        help "a route: where packets for a prefix go";
        key prefix prefix { help "the prefix, such as 198.51.100.0/24"; }
"#,
    way_statements!(),
    r#"        leaf metric number { range 0 4294967295; default 0; help "of several routes of one distance the lowest is used"; }
        leaf distance number { range 1 255; default 1; help "how little the route is trusted compared with other protocols; 255 is never used"; }
        leaf tag number { range 0 4294967295; default 0; help "a mark for policies"; }
        list backup {
            help "what is used while nothing above can be reached; the lowest number first";
            key number number { range 1 255; help "its place"; }
"#,
    way_statements!(),
    r#"            leaf metric number { range 0 4294967295; help "in place of the route's"; }
            leaf tag number { range 0 4294967295; help "in place of the route's"; }
        }
    }
}
"#
);

/// The distance of XORP and others for static routes.
pub(crate) const DISTANCE: u32 = 1;

const PREFIX: Form = Form { what: "a prefix", example: "198.51.100.0/24" };
const ADDRESS: Form = Form { what: "an address of IP", example: "192.0.2.1" };

/// A next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The next router; none if the destinations are on the link.
    pub(crate) gateway: Option<IpAddr>,
    /// The name of the interface; none if it follows from the gateway.
    pub(crate) interface: Option<String>,
    pub(crate) weight: u32,
}

/// Where a route may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// To those of these that can be reached.
    Hops(Vec<NextHop>),
    /// Nowhere.
    Nowhere(To),
}

/// A choice, and what the route is like with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub(crate) choice: Choice,
    pub(crate) metric: u32,
    pub(crate) tag: u32,
}

/// What is said of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    pub(crate) distance: u32,
    /// What is wanted most comes first.
    pub(crate) alternatives: Vec<Alternative>,
}

/// What is said.
pub type Config = BTreeMap<IpNet, StaticRoute>;

/// Reads the statement.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Config, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(Config::new()) };
    entry.read_block(|block| {
        let mut routes = Config::new();
        let entries = block.many("route").into_iter().map(|mut entry| {
            let net = entry.argument_with(PREFIX, prefix)?;
            let route = route(&entry, net)?;
            match routes.insert(net, route) {
                None => Ok(()),
                Some(_) => {
                    let sentence =
                        format!("the route to {net} was described before: put both together");
                    Err(entry.error_at(1, sentence).into())
                }
            }
        });
        gather(entries.collect::<Vec<Result<(), Errors>>>())?;
        Ok(routes)
    })
}

fn prefix(text: &str) -> Result<IpNet, String> {
    let net: IpNet =
        text.parse().map_err(|_| "it needs an address, a slash and a length".to_owned())?;
    match net.trunc() == net {
        true => Ok(net),
        false => Err(format!("it has host bits: {} has none", net.trunc())),
    }
}

fn route(entry: &Entry<'_>, net: IpNet) -> Result<StaticRoute, Errors> {
    entry.read_block(|block| {
        let distance = block.leaf_in("distance", 1..=255)?.unwrap_or(DISTANCE);
        let own = alternative(block, net, entry, (0, 0))?;
        let mut backups = BTreeMap::new();
        for mut backup in block.many("backup") {
            let number: u8 = backup.argument("the place of the backup")?;
            let read = backup
                .read_block(|block| alternative(block, net, &backup, (own.metric, own.tag)))?;
            if backups.insert(number, read).is_some() {
                let sentence =
                    format!("there is a backup {number} already: number them differently");
                return Err(backup.error_at(1, sentence).into());
            }
        }
        let alternatives = std::iter::once(own).chain(backups.into_values()).collect();
        Ok(StaticRoute { distance, alternatives })
    })
}

/// Reads where a route leads; `metric` and `tag` are what it has if nothing is said.
fn alternative(
    block: &mut Block<'_>,
    net: IpNet,
    entry: &Entry<'_>,
    (metric, tag): (u32, u32),
) -> Result<Alternative, Errors> {
    let metric = block.leaf("metric")?.unwrap_or(metric);
    let tag = block.leaf("tag")?.unwrap_or(tag);
    let mut hops = gather(block.many("next-hop").into_iter().map(|hop| next_hop(hop, net)))?;
    let interfaces: Vec<InterfaceName> = block.list("interface")?;
    hops.extend(interfaces.into_iter().map(|name| {
        let interface = Some(name.to_string());
        NextHop { gateway: None, interface, weight: 1 }
    }));
    let mut nowhere = Vec::new();
    for (word, to) in
        [("blackhole", To::Blackhole), ("unreachable", To::Unreachable), ("prohibit", To::Prohibit)]
    {
        if block.flag(word)? {
            nowhere.push(to);
        }
    }
    // The kernel has no ways of IPv6 without a router beside others.
    if net.addr().is_ipv6() && hops.len() > 1 && hops.iter().any(|hop| hop.gateway.is_none()) {
        let sentence =
            "of IPv6 an `interface` stands alone: give next hops, or leave the rest to a backup";
        return Err(entry.error(sentence).into());
    }
    let choice = match (hops.is_empty(), nowhere.pop()) {
        (false, None) => Choice::Hops(hops),
        (true, Some(to)) if nowhere.is_empty() => Choice::Nowhere(to),
        (true, None) => {
            let sentence =
                "it leads nowhere: say next-hop, interface, blackhole, unreachable or prohibit";
            return Err(entry.error(sentence).into());
        }
        _ => {
            let sentence =
                "it can lead to next hops, or drop packets in one way: leave the rest to a backup";
            return Err(entry.error(sentence).into());
        }
    };
    Ok(Alternative { choice, metric, tag })
}

fn next_hop(mut entry: Entry<'_>, net: IpNet) -> Result<NextHop, Errors> {
    let gateway: IpAddr = entry.argument_with(ADDRESS, str::parse)?;
    // The kernel takes routes of IPv4 by routers of IPv6 (RFC 8950), not the reverse.
    if gateway.is_ipv4() && net.addr().is_ipv6() {
        let sentence =
            format!("{gateway} cannot be the next router for {net}: give an address of IPv6");
        return Err(entry.error_at(1, sentence).into());
    }
    let (interface, weight) = entry.optional_block()?.read(|block| {
        let interface: Option<InterfaceName> = block.leaf("interface")?;
        Ok((interface, block.leaf_in("weight", 1..=256)?.unwrap_or(1)))
    })?;
    let is_link_local = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
    if is_link_local && interface.is_none() {
        let sentence = format!("{gateway} may be on every link: say `interface`, too");
        return Err(entry.error_at(1, sentence).into());
    }
    let interface = interface.map(|name| name.to_string());
    Ok(NextHop { gateway: Some(gateway), interface, weight })
}

#[cfg(test)]
mod tests {
    use weft_config::{LoadMode, Schema, Tree};

    use super::*;

    const TEXT: &str = "static {
    route 198.51.100.0/24 {
        next-hop 192.0.2.1 { weight 2; }
        next-hop 192.0.2.2;
        interface eth1;
        metric 5;
        tag 7;
        distance 200;
        backup 2 { unreachable; }
        backup 1 { next-hop 203.0.113.1; metric 10; }
    }
    route 2001:db8::/32 { next-hop fe80::1 { interface eth0; } }
    route 0.0.0.0/0 { blackhole; }
}";

    #[test]
    fn what_is_said_is_read() {
        let config = read("t", TEXT).unwrap();
        assert_eq!(config.len(), 3);
        let route = &config[&"198.51.100.0/24".parse().unwrap()];
        assert_eq!((route.distance, route.alternatives.len()), (200, 3));
        let [own, first, last] = &route.alternatives[..] else { panic!() };
        let Choice::Hops(hops) = &own.choice else { panic!() };
        let weights: Vec<_> = hops.iter().map(|hop| (hop.weight, hop.gateway.is_some())).collect();
        assert_eq!(weights, [(2, true), (1, true), (1, false)]);
        assert_eq!((own.metric, own.tag), (5, 7));
        assert_eq!((first.metric, first.tag), (10, 7));
        assert_eq!((last.metric, &last.choice), (5, &Choice::Nowhere(To::Unreachable)));
        assert_eq!(config[&"0.0.0.0/0".parse().unwrap()].distance, DISTANCE);
        assert_eq!(read("t", "").unwrap(), Config::new());
    }

    #[test]
    fn the_schema_accepts_what_is_read() {
        let schema = Schema::parse("s", &format!("version 1; {SCHEMA}")).unwrap();
        let tree = Tree::parse("t", &format!("version 1; {TEXT}")).unwrap();
        let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
        let text: String = loaded.part(STATEMENT).statements().map(ToString::to_string).collect();
        assert_eq!(read("t", &text).unwrap(), read("t", TEXT).unwrap());
    }

    #[test]
    fn mistakes_have_places() {
        for (text, part) in [
            ("route 198.51.100.1/24 { blackhole; }", "198.51.100.0/24"),
            ("route here { blackhole; }", "here"),
            ("route 198.51.100.0/24 { }", "leads nowhere"),
            ("route 198.51.100.0/24 { blackhole; prohibit; }", "in one way"),
            ("route 198.51.100.0/24 { blackhole; next-hop 192.0.2.1; }", "in one way"),
            ("route 198.51.100.0/24 { next-hop 192.0.2.1 { weight 0; } }", "0"),
            ("route 2001:db8::/32 { next-hop 192.0.2.1; }", "address of IPv6"),
            ("route 2001:db8::/32 { next-hop fe80::1; }", "`interface`"),
            ("route 2001:db8::/32 { interface eth0 eth1; }", "alone"),
            ("route 2001:db8::/32 { interface eth0; next-hop 2001:db8::1; }", "alone"),
            ("route 2001:db8::/32 { blackhole; backup 1 { interface eth0 eth1; } }", "alone"),
            ("route 0.0.0.0/0 { blackhole; backup 1 { } }", "leads nowhere"),
            ("route 0.0.0.0/0 { blackhole; distance 0; }", "0"),
            ("route 0.0.0.0/0 { blackhole; } route 0.0.0.0/0 { prohibit; }", "described before"),
            ("route 0.0.0.0/0 { backhole; blackhole; }", "did you mean"),
        ] {
            let error = read("t", &format!("static {{ {text} }}")).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
