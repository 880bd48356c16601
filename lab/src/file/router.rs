//! The statements of nodes on which a router of others runs: `config PATH;` and `daemons NAME…;`.

use serde::{Deserialize, Serialize};
use weft_config::{Block, Entry, Errors, Keyword, Located};

use super::names::Names;
use super::template::Template;

/// Whose router it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RouterKind {
    Bird,
    Frr,
    GoBgp,
    ExaBgp,
}

/// A router of others.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    pub(crate) kind: RouterKind,
    /// The file of this machine that it reads; without one, a step makes it.
    pub(crate) config: Option<Located<Template>>,
    /// The processes of FRR, in the order in which they are started. Empty for the others.
    pub(crate) daemons: Vec<&'static str>,
}

/// A process of FRR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Daemon(&'static str);

/// What tells the kernel of FRR's routes, and the other processes of interfaces.
pub(crate) const ZEBRA: &str = "zebra";
/// The process that can do without zebra.
const BGPD: &str = "bgpd";

impl Keyword for Daemon {
    const WHAT: &'static str = "a process of FRR";
    const ALL: &'static [(&'static str, Self)] = &[
        (BGPD, Self(BGPD)),
        (ZEBRA, Self(ZEBRA)),
        ("ripd", Self("ripd")),
        ("ripngd", Self("ripngd")),
        ("staticd", Self("staticd")),
        ("ospfd", Self("ospfd")),
        ("ospf6d", Self("ospf6d")),
        ("isisd", Self("isisd")),
        ("babeld", Self("babeld")),
        ("bfdd", Self("bfdd")),
    ];
}

impl RouterKind {
    /// The word for it in lab files.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Bird => "bird",
            Self::Frr => "frr",
            Self::GoBgp => "gobgp",
            Self::ExaBgp => "exabgp",
        }
    }
}

impl Router {
    /// Reads the statements of a node, which stands at `node`.
    pub(super) fn read(
        kind: RouterKind,
        is_deferred: bool,
        block: &mut Block<'_>,
        node: &Entry<'_>,
        names: &Names,
    ) -> Result<Self, Errors> {
        let config: Option<Located<String>> = block.leaf("config")?;
        if config.is_none() && !is_deferred {
            return Err(node
                .error(
                    "the router has no configuration: add `config PATH;`, or `start off;` and \
                     make the file NODE.conf in a step before `start NODE;`",
                )
                .into());
        }
        let template = |path: Located<String>| -> Result<_, Errors> {
            let template = Template::parse(&path.value, &path, names)?;
            Ok(Located { value: template, location: path.location })
        };
        let config = config.map(template).transpose()?;
        let daemons = if kind == RouterKind::Frr { read_daemons(block)? } else { Vec::new() };
        Ok(Self { kind, config, daemons })
    }
}

/// The processes that are named, behind zebra; all but a lone bgpd need it.
fn read_daemons(block: &mut Block<'_>) -> Result<Vec<&'static str>, Errors> {
    let Some(mut entry) = block.one("daemons")? else { return Ok(vec![ZEBRA, BGPD]) };
    let first: Daemon = entry.argument("the first process")?;
    let mut named = vec![first.0];
    named.extend(entry.rest::<Daemon>()?.iter().map(|daemon| daemon.0));
    entry.end()?;
    if named != [BGPD] {
        named.retain(|name| *name != ZEBRA);
        named.insert(0, ZEBRA);
    }
    Ok(named)
}
