//! What the configuration says of the RIB.
//!
//! ```text
//! rib {
//!     table 254;
//!     protocol rip { distance 100; }
//!     grace 120s;
//!     guard census { prefix 192.0.2.0/24; most 100; rate 10; }
//!     aggregate 198.51.100.0/22 { protocol static rip; }
//! }
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use ipnet::IpNet;
use weft_config::{Block, Document, Entry, Errors, Form, Located, Name, gather};
use weft_routing::Allowance;
use weft_routing::ip::{Version, split};

use crate::aggregates::{self, Aggregate};
use crate::arbiter::NEVER;
use crate::connected;
use crate::hops::{BLACKHOLE, PROHIBIT, UNREACHABLE};

/// The statement.
pub const STATEMENT: &str = "rib";

/// What may be configured.
pub const SCHEMA: &str = r#"
container rib {
    help "the routing information base: decides between the routes of all protocols";
    leaf table number { range 1 4294967295; default 254; help "the kernel's table that gets the routes; 254 is the main one"; }
    leaf grace duration { default 120s; help "how long the routes of a protocol that is gone serve on"; }
    list protocol {
        help "a protocol that tells routes";
        key protocol name { help "its name, such as bgp, or connected"; }
        leaf distance number { range 0 255; help "how little it is trusted, in place of its own word; routes with 255 are not used"; }
    }
    list guard {
        help "what a protocol may tell that is not trusted; every program of others has a guard, named here or not";
        key protocol name { help "the name of the protocol"; }
        leaf-list prefix prefix { help "its routes lead here, or to a part of this; anywhere without it"; }
        leaf most number { range 0 10000000; default 1000; help "how many routes it may have"; }
        leaf rate number { range 1 1000000; default 100; help "how many routes it may tell in a second, in the long run"; }
    }
    list aggregate {
        help "a network to which there is a route while routes to parts of it are used; packets that no such route serves are dropped";
        key prefix prefix { help "the network"; }
        leaf-list protocol name { help "whose routes count, such as static or ebgp; those of all without it"; }
        flag blackhole { help "drop packets without a word, as without any of these"; }
        flag unreachable { help "tell their senders that the network cannot be reached"; }
        flag prohibit { help "tell their senders that this is prohibited"; }
        leaf tag number { range 0 4294967295; default 0; help "a mark for the policies of protocols that tell it"; }
    }
}
"#;

/// The kernel's main table (rtnetlink(7), `RT_TABLE_MAIN`).
const MAIN: u32 = 254;
const PREFIX: Form = Form { what: "a prefix", example: "192.0.2.0/24" };
/// What a guarded protocol may tell of which nothing else is said.
const MOST: u32 = 1000;
const RATE: u32 = 100;
/// How long the routes of a protocol that is gone serve on.
const GRACE: Duration = Duration::from_secs(120);

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) table: u32,
    pub(crate) grace: Duration,
    /// By protocol, in place of what the protocol says itself.
    pub(crate) distances: BTreeMap<String, u32>,
    /// What protocols may tell that are not trusted.
    pub(crate) guards: BTreeMap<String, Allowance<Version>>,
    /// Networks to which there are routes while there are some to parts of them.
    pub(crate) aggregates: BTreeMap<IpNet, Aggregate>,
}

impl Config {
    /// What a protocol may tell; none if it is trusted: one for which a process of this binary speaks, and of which
    /// nothing is said.
    pub(crate) fn allowance(&self, protocol: &str, is_own: bool) -> Option<Allowance<Version>> {
        let usual = || Allowance { within: Vec::new(), most: MOST as usize, rate: RATE };
        self.guards.get(protocol).cloned().or_else(|| (!is_own).then(usual))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            table: MAIN,
            grace: GRACE,
            distances: BTreeMap::new(),
            guards: BTreeMap::new(),
            aggregates: BTreeMap::new(),
        }
    }
}

/// Reads the statement.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Config, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(Config::default()) };
    entry.read_block(|block| {
        let distances = gather(block.many("protocol").into_iter().map(|mut entry| {
            let protocol: Name = entry.argument("the protocol")?;
            let distance = entry.read_block(|block| Ok(block.leaf_in("distance", 0..=NEVER)?))?;
            Ok::<_, Errors>(distance.map(|distance| (protocol.to_string(), distance)))
        }))?;
        let guards = gather(block.many("guard").into_iter().map(guard))?;
        Ok(Config {
            guards: guards.into_iter().collect(),
            aggregates: aggregates(block)?,
            table: block.leaf_in("table", 1..=u32::MAX)?.unwrap_or(MAIN),
            grace: block.leaf("grace")?.unwrap_or(GRACE),
            distances: distances.into_iter().flatten().collect(),
        })
    })
}

fn aggregates(block: &mut Block<'_>) -> Result<BTreeMap<IpNet, Aggregate>, Errors> {
    let mut all = BTreeMap::new();
    let entries = block.many("aggregate").into_iter().map(|mut entry| {
        let net = entry.argument_with(PREFIX, prefix)?;
        if net.prefix_len() == net.max_prefix_len() {
            let sentence = format!("{net} is one address, and has no parts: name a network");
            return Err(entry.error_at(1, sentence).into());
        }
        let aggregate = entry.optional_block()?.read(|block| {
            let protocols: Vec<Located<Name>> = block.list("protocol")?;
            if let Some(bgp) = protocols.iter().find(|one| one.value.as_str() == "bgp") {
                let sentence = "routes of BGP are those of `ebgp` and `ibgp`: say one, or both";
                return Err(bgp.error(sentence).into());
            }
            let mut nowhere = None;
            for (name, set) in
                [("blackhole", BLACKHOLE), ("unreachable", UNREACHABLE), ("prohibit", PROHIBIT)]
            {
                let Some(entry) = block.one(name)? else { continue };
                entry.end()?;
                if nowhere.replace(set).is_some() {
                    let sentence =
                        "packets go nowhere in one way: leave out all but one of blackhole, unreachable and prohibit";
                    return Err(entry.error(sentence).into());
                }
            }
            let protocols = protocols.iter().map(|one| one.value.to_string()).collect();
            let (nowhere, tag) = (nowhere.unwrap_or(BLACKHOLE), block.leaf("tag")?.unwrap_or(0));
            Ok(Aggregate { protocols, nowhere, tag })
        })?;
        match all.insert(net, aggregate) {
            None => Ok(()),
            Some(_) => {
                let sentence = format!("the aggregate {net} was described before: leave one out");
                Err(entry.error_at(1, sentence).into())
            }
        }
    });
    gather(entries.collect::<Vec<Result<(), Errors>>>())?;
    Ok(all)
}

fn guard(mut entry: Entry<'_>) -> Result<(String, Allowance<Version>), Errors> {
    let protocol: Name = entry.argument("the protocol")?;
    if [connected::PROTOCOL, aggregates::PROTOCOL].contains(&protocol.as_str()) {
        let sentence = format!("{protocol} is what the RIB makes itself, and has no guard");
        return Err(entry.error_at(1, sentence).into());
    }
    let allowance = entry.optional_block()?.read(|block| {
        let within = gather(block.many("prefix").into_iter().map(|mut entry| {
            let mut nets = vec![entry.argument_with(PREFIX, prefix)?];
            while entry.peek().is_some() {
                nets.push(entry.argument_with(PREFIX, prefix)?);
            }
            entry.end()?;
            Ok::<_, Errors>(nets)
        }))?;
        Ok(Allowance {
            within: within.into_iter().flatten().map(split).collect(),
            most: block.leaf_in("most", 0..=10_000_000)?.unwrap_or(MOST) as usize,
            rate: block.leaf_in("rate", 1..=1_000_000)?.unwrap_or(RATE),
        })
    })?;
    Ok((protocol.to_string(), allowance))
}

fn prefix(text: &str) -> Result<IpNet, String> {
    let net: IpNet =
        text.parse().map_err(|_| "it needs an address, a slash and a length".to_owned())?;
    match net.trunc() == net {
        true => Ok(net),
        false => Err(format!("it has host bits: {} has none", net.trunc())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregates_are_read_or_refused_where_they_stand() {
        let text = "rib { aggregate 198.51.100.0/22; aggregate 2001:db8::/32 { protocol static rip; unreachable; tag 7; } }";
        let all = read("t", text).unwrap().aggregates;
        let of = |net: &str| &all[&net.parse::<IpNet>().unwrap()];
        let plain = Aggregate { protocols: [].into(), nowhere: BLACKHOLE, tag: 0 };
        assert_eq!(of("198.51.100.0/22"), &plain);
        let protocols = ["static", "rip"].map(str::to_owned).into();
        let other = Aggregate { protocols, nowhere: UNREACHABLE, tag: 7 };
        assert_eq!(of("2001:db8::/32"), &other);
        for (text, wrong) in [
            ("rib { aggregate 198.51.100.1/22; }", "t:1:17: "),
            ("rib { aggregate 192.0.2.1/32; }", "192.0.2.1/32 is one address"),
            ("rib { aggregate 192.0.2.0/24; aggregate 192.0.2.0/24; }", "was described before"),
            ("rib { aggregate 192.0.2.0/24 { blackhole; prohibit; } }", "in one way"),
            ("rib { aggregate 192.0.2.0/24 { protocol static bgp; } }", "`ebgp` and `ibgp`"),
            ("rib { guard aggregate; }", "t:1:13: aggregate is what the RIB makes itself"),
        ] {
            let said = read("t", text).unwrap_err().to_string();
            assert!(said.contains(wrong), "{said}");
        }
    }

    #[test]
    fn who_is_not_trusted_has_a_guard() {
        let text = "rib { guard a { prefix 192.0.2.0/24 2001:db8::/32; most 7; } guard b; }";
        let config = read("t", text).unwrap();
        let within = ["192.0.2.0/24", "2001:db8::/32"].map(|net| split(net.parse().unwrap()));
        let a = Allowance { within: within.to_vec(), most: 7, rate: RATE };
        assert_eq!(config.allowance("a", true), Some(a.clone()));
        assert_eq!(config.allowance("a", false), Some(a));
        let usual = Allowance { within: Vec::new(), most: MOST as usize, rate: RATE };
        assert_eq!(config.allowance("b", true), Some(usual.clone()));
        assert_eq!(config.allowance("c", false), Some(usual));
        assert_eq!(config.allowance("c", true), None);
        let error = read("t", "rib { guard a { prefix 10.0.0.1/8; } }").unwrap_err().to_string();
        assert!(error.starts_with("t:1:24:") && error.contains("10.0.0.0/8"), "{error}");
    }

    #[test]
    fn what_is_said_is_read() {
        let config = read(
            "",
            "rib { table 100; protocol rip { distance 90; } protocol bgp { distance 255; } }",
        )
        .unwrap();
        assert_eq!((config.table, config.grace), (100, GRACE));
        let distances = [("bgp".to_owned(), 255), ("rip".to_owned(), 90)];
        assert_eq!(config.distances, BTreeMap::from(distances));
        assert_eq!(read("", "").unwrap(), Config::default());
    }

    #[test]
    fn a_mistake_has_its_place() {
        let text = "rib { protocol rip { distance 256; } }";
        let error = read("node", text).unwrap_err().to_string();
        assert!(error.starts_with("node:1:31: "), "{error}");
    }
}
