//! What the configuration says of hearsay, and what its routes are to policies.
//!
//! ```text
//! hearsay {
//!     interface eth0 eth1;
//!     network 192.0.2.0/24;
//!     import from-neighbours;
//! }
//! ```

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use weft_config::{Document, Errors, InterfaceName, Ipv4Prefix, Located, Name};
use weft_policy::{Access, Filter, Kind, Policies, Program, Route, Value, Variable};

use crate::wire::INFINITY;

/// The statement.
pub(crate) const STATEMENT: &str = "hearsay";

/// What may be configured.
pub(crate) const SCHEMA: &str = r#"
container hearsay {
    help "hearsay: routers tell their neighbours what they have heard";
    leaf-list interface interface { help "an interface on which there may be neighbours"; }
    leaf-list network prefix { help "a network of IPv4 that neighbours are told, such as one on a link of this router"; }
    leaf-list import name { alone all none; help "which routes of neighbours are taken: all, none, or those that these policies accept, which are asked in order; all without it"; }
    leaf-list export name { alone all none; help "which routes neighbours are told: all, none, or those that these policies accept, which are asked in order; all without it"; }
    leaf hello duration { range 100ms 15s; default 1s; help "how often everything is told; a neighbour that is silent for four times as long is gone"; }
    leaf distance number { range 1 255; default 130; help "how little its routes are trusted compared with other protocols"; }
}
"#;

/// Aligned by hand with the constants below.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable::new("prefix", Kind::Prefix, "where the route leads"),
    Variable::new("hops", Kind::Number { most: INFINITY as u64 }, "how far that is; it only grows")
        .with(Access::Write),
    Variable::new("tag", Kind::Number { most: u32::MAX as u64 }, "a mark for the RIB")
        .with(Access::Write),
    Variable::new("neighbor", Kind::Address, "who told it; nobody of networks of this router"),
];
const HOPS: usize = 1;
const TAG: usize = 2;

/// A route, as policies see and change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) net: Ipv4Net,
    pub(crate) hops: u8,
    pub(crate) tag: u32,
    pub(crate) neighbour: Option<Ipv4Addr>,
}

impl Route for Told {
    fn read(&self, variable: usize) -> Option<Value<'_>> {
        match variable {
            0 => Some(Value::Prefix(IpNet::V4(self.net))),
            HOPS => Some(Value::Number(self.hops.into())),
            TAG => Some(Value::Number(self.tag.into())),
            _ => self.neighbour.map(|one| Value::Address(one.into())),
        }
    }
}

impl Told {
    /// The route as a filter lets it pass; none if it does not, or has become too long.
    pub(crate) fn pass(self, filter: &Filter) -> Option<Self> {
        let mut route = self;
        for (variable, value) in filter.run(&self)? {
            match (variable, value) {
                // Numbers are in the bounds of their variables.
                (HOPS, Some(Value::Number(hops))) => route.hops = (hops as u8).max(self.hops),
                (TAG, Some(Value::Number(tag))) => route.tag = tag as u32,
                _ => {}
            }
        }
        (route.hops < INFINITY).then_some(route)
    }
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) interfaces: BTreeSet<String>,
    pub(crate) networks: BTreeSet<Ipv4Net>,
    pub(crate) import: Filter,
    pub(crate) export: Filter,
    pub(crate) hello: Duration,
    pub(crate) distance: u32,
}

impl Default for Config {
    fn default() -> Self {
        let (import, export) = (Filter::All, Filter::All);
        let (interfaces, networks) = (BTreeSet::new(), BTreeSet::new());
        let hello = Duration::from_secs(1);
        Self { interfaces, networks, import, export, hello, distance: 130 }
    }
}

/// Reads the statement, and the policies that it names.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Config, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let policies = Policies::take(&mut block)?;
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(Config::default()) };
    let compile = |names: &[Located<Name>]| Program::new(&policies, VARIABLES, names).map(Rc::new);
    entry.read_block(|block| {
        let usual = Config::default();
        let interfaces: Vec<InterfaceName> = block.list("interface")?;
        let networks: Vec<Ipv4Prefix> = block.list("network")?;
        let net = |one: &Ipv4Prefix| Ipv4Net::new_assert(one.network(), one.prefix_len());
        let hello = Duration::from_millis(100)..=Duration::from_secs(15);
        Ok(Config {
            interfaces: interfaces.iter().map(ToString::to_string).collect(),
            networks: networks.iter().map(net).collect(),
            import: Filter::read(&block.list("import")?, usual.import, compile)?,
            export: Filter::read(&block.list("export")?, usual.export, compile)?,
            hello: block.leaf_in("hello", hello)?.unwrap_or(usual.hello),
            distance: block.leaf_in("distance", 1..=255)?.unwrap_or(usual.distance),
        })
    })
}
