//! What the configuration says of RIP and RIPng.
//!
//! ```text
//! rip {
//!     interface eth0;
//!     interface eth1 {
//!         cost 2;
//!         split-horizon on;
//!         authentication hmac-sha-256;
//!         key 1 { secret "..."; }
//!     }
//!     redistribute static { metric 3; }
//!     redistribute ebgp { policy marked; }
//! }
//! ```
//!
//! Reference: RFC 2453 §3.8 (timers), §3.9.2 (costs), §4.1 and RFC 4822 (authentication).

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use weft_config::{Block, Document, Entry, Errors, InterfaceName, Keyword, Located, Name, gather};
use weft_policy::{Filter, Policies, Program};

use crate::Version;
use crate::policy::VARIABLES;
use crate::wire::INFINITY;
use crate::wire::auth::{Algorithm, Auth, PASSWORD_LENGTH, Secret};

/// The statement of RIP version 2.
pub(crate) const STATEMENT: &str = "rip";
/// The statement of RIPng.
pub(crate) const STATEMENT_NG: &str = "ripng";

/// What may be said of an interface of either protocol.
macro_rules! interface_statements {
    () => {
        r#"
    list interface {
        help "an interface on which routes are exchanged, and whose networks are told";
        key interface interface { help "its name"; }
        leaf cost number { range 1 15; default 1; help "what is added to the metrics of routes that come in"; }
        leaf passive switch { default off; help "whether nothing is told on this interface"; }
        leaf split-horizon one-of off on poisoned-reverse { default poisoned-reverse; help "how routes are told to where they came from: as all, not, or as unreachable"; }
        leaf-list import name { alone all none; help "which routes are believed that routers on this link tell: all, none, or those that these policies accept, which are asked in order; all without it"; }
        leaf-list export name { alone all none; help "which routes are told on this link, in the same words; all without it"; }
"#
    };
}

/// What may be said of either protocol.
macro_rules! protocol_statements {
    () => {
        r#"
    list redistribute {
        help "a protocol whose routes are told to neighbours";
        key protocol name { help "its name, such as connected or static"; }
        leaf metric number { range 1 15; default 1; help "what these routes cost"; }
        leaf tag number { range 0 65535; help "a mark, in place of the route's own"; }
        leaf-list policy name { alone all none; help "which of these routes are told: all, none, or those that these policies accept, which are asked in order; all without it"; }
    }
    leaf distance number { range 1 255; default 120; help "how little its routes are trusted compared with other protocols"; }
    leaf update duration { range 1s 3600s; default 30s; help "how often everything is told"; }
    leaf timeout duration { range 3s 36000s; default 180s; help "after which silence a route is gone"; }
    leaf garbage duration { range 1s 36000s; default 120s; help "how long neighbours are told that a route is gone"; }
}
"#
    };
}

/// What may be configured of RIP version 2.
pub(crate) const SCHEMA: &str = concat!(
    r#"
container rip {
    help "the Routing Information Protocol, version 2";"#,
    interface_statements!(),
    r#"        leaf authentication one-of password md5 hmac-sha-1 hmac-sha-256 hmac-sha-384 hmac-sha-512 { help "how messages are authenticated; not at all without it"; }
        leaf password text { secret; help "of 1 to 16 bytes, for authentication by password"; }
        list key {
            help "a key for authentication by digest";
            key number number { range 0 255; help "its number, which neighbours give it, too"; }
            leaf secret text { secret; mandatory; help "what only neighbours know"; }
            leaf sign switch { default on; help "whether it may sign; of those that may the highest does"; }
        }
    }"#,
    protocol_statements!(),
);

/// What may be configured of RIPng.
pub(crate) const SCHEMA_NG: &str = concat!(
    r#"
container ripng {
    help "RIPng: the Routing Information Protocol for IPv6";"#,
    interface_statements!(),
    "    }",
    protocol_statements!(),
);

/// The administrative distance of XORP and others.
const DISTANCE: u32 = 120;

/// How long things take (RFC 2453 §3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Between two updates with everything.
    pub update: Duration,
    /// After which silence a route is gone.
    pub timeout: Duration,
    /// How long neighbours are told that it is gone.
    pub garbage: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        let [update, timeout, garbage] = [30, 180, 120].map(Duration::from_secs);
        Self { update, timeout, garbage }
    }
}

/// How routes are told on the link from which they came (RFC 2453 §3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitHorizon {
    /// As all others.
    Off,
    /// Not at all.
    On,
    /// As unreachable.
    PoisonedReverse,
}

impl Keyword for SplitHorizon {
    const WHAT: &'static str = "a kind of split horizon";
    const ALL: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("on", Self::On), ("poisoned-reverse", Self::PoisonedReverse)];
}

/// What authenticates messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Password,
    Digest(Algorithm),
}

impl Keyword for Kind {
    const WHAT: &'static str = "a kind of authentication";
    const ALL: &'static [(&'static str, Self)] = &[
        ("password", Self::Password),
        ("md5", Self::Digest(Algorithm::Md5)),
        ("hmac-sha-1", Self::Digest(Algorithm::Sha1)),
        ("hmac-sha-256", Self::Digest(Algorithm::Sha256)),
        ("hmac-sha-384", Self::Digest(Algorithm::Sha384)),
        ("hmac-sha-512", Self::Digest(Algorithm::Sha512)),
    ];
}

/// What is said of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// What is added to metrics.
    pub cost: u8,
    /// Whether nothing is told.
    pub passive: bool,
    /// How routes are told to where they came from.
    pub split_horizon: SplitHorizon,
    /// How messages are authenticated.
    pub auth: Auth,
    /// Which routes are believed that routers there tell, and how.
    pub import: Filter,
    /// Which routes are told there, and how.
    pub export: Filter,
}

/// How routes of another protocol are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redistribute {
    /// What they cost.
    pub metric: u8,
    /// A mark in place of their own.
    pub tag: Option<u16>,
    /// Which of them.
    pub policy: Filter,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// By the names of interfaces.
    pub links: BTreeMap<String, LinkConfig>,
    /// By the names of protocols.
    pub redistribute: BTreeMap<String, Redistribute>,
    /// The administrative distance.
    pub distance: u32,
    /// How long things take.
    pub timers: Timers,
}

impl Default for Config {
    fn default() -> Self {
        let (links, redistribute) = (BTreeMap::new(), BTreeMap::new());
        Self { links, redistribute, distance: DISTANCE, timers: Timers::default() }
    }
}

/// Reads the statement, and the policies that it names; nothing is done without it.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(version: Version, source: &str, text: &str) -> Result<Config, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let policies = Policies::take(&mut block)?;
    let entry = block.one(version.statement())?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(Config::default()) };
    entry.read_block(|block| {
        let links = gather(block.many("interface").into_iter().map(|entry| link(version, entry, &policies)))?;
        let others = block.many("redistribute").into_iter();
        let redistribute = gather(others.map(|entry| redistributed(entry, &policies)))?;
        let usual = Timers::default();
        let seconds = |least| Duration::from_secs(least)..=Duration::from_secs(36_000);
        let update = Duration::from_secs(1)..=Duration::from_secs(3600);
        let timers = Timers {
            update: block.leaf_in("update", update)?.unwrap_or(usual.update),
            timeout: block.leaf_in("timeout", seconds(3))?.unwrap_or(usual.timeout),
            garbage: block.leaf_in("garbage", seconds(1))?.unwrap_or(usual.garbage),
        };
        if timers.timeout <= timers.update {
            let sentence = "with a timeout that is no longer than the time between updates every route is gone \
                            again and again: three times as long is usual, and more is common";
            return Err(entry.error(sentence).into());
        }
        let distance = block.leaf_in("distance", 1..=255)?.unwrap_or(DISTANCE);
        let (links, redistribute) = (unique(links)?, unique(redistribute)?);
        Ok(Config { links, redistribute, distance, timers })
    })
}

/// By their names; none may be there twice.
fn unique<T>(all: Vec<(Located<String>, T)>) -> Result<BTreeMap<String, T>, Errors> {
    let mut found = BTreeMap::new();
    for (name, one) in all {
        if found.insert(name.value.clone(), one).is_some() {
            let sentence = format!("`{}` was described before: put both together", name.value);
            return Err(name.location.error(sentence).into());
        }
    }
    Ok(found)
}

fn link(
    version: Version,
    mut entry: Entry<'_>,
    policies: &Policies,
) -> Result<(Located<String>, LinkConfig), Errors> {
    let name: Located<InterfaceName> = entry.argument("the interface")?;
    let name = Located { value: name.value.to_string(), location: name.location };
    let config = entry.optional_block()?.read(|block| {
        let auth = match version {
            Version::V2 => auth(block, &entry)?,
            Version::Ng => Auth::None,
        };
        Ok(LinkConfig {
            cost: block.leaf_in("cost", 1..=INFINITY - 1)?.unwrap_or(1),
            passive: block.leaf("passive")?.unwrap_or(false),
            split_horizon: block.leaf("split-horizon")?.unwrap_or(SplitHorizon::PoisonedReverse),
            auth,
            import: filter(block, "import", policies)?,
            export: filter(block, "export", policies)?,
        })
    })?;
    Ok((name, config))
}

fn auth(block: &mut Block<'_>, entry: &Entry<'_>) -> Result<Auth, Errors> {
    let kind: Option<Kind> = block.leaf("authentication")?;
    let password: Option<Located<String>> = block.leaf("password")?;
    let keys = gather(block.many("key").into_iter().map(key))?;
    let wrong = |sentence: &str| Err(entry.error(sentence).into());
    match (kind, password, keys.is_empty()) {
        (None, None, true) => Ok(Auth::None),
        (None, ..) => {
            wrong("there is a secret and nothing that uses it: say `authentication`, too")
        }
        (Some(Kind::Password), Some(password), true) => {
            match (1..=PASSWORD_LENGTH).contains(&password.value.len()) {
                true => Ok(Auth::Password(Secret::new(password.value))),
                false => Err(password.location.error("a password has 1 to 16 bytes").into()),
            }
        }
        (Some(Kind::Password), ..) => {
            wrong("authentication by password needs `password`, and no `key`")
        }
        (Some(Kind::Digest(_)), Some(_), _) | (Some(Kind::Digest(_)), None, true) => {
            wrong("authentication by digest needs at least one `key`, and no `password`")
        }
        (Some(Kind::Digest(algorithm)), None, false) => {
            let signs = keys.iter().filter(|key| key.signs).map(|key| key.number).max();
            let Some(signs) = signs else {
                return wrong("none of the keys may sign: switch `sign` of one on");
            };
            let mut by_number = BTreeMap::new();
            for key in keys {
                if by_number.insert(key.number, (algorithm, key.secret)).is_some() {
                    return wrong("two keys have the same number: number them differently");
                }
            }
            Ok(Auth::Keys { keys: by_number, signs })
        }
    }
}

struct Key {
    number: u8,
    secret: Secret,
    signs: bool,
}

fn key(mut entry: Entry<'_>) -> Result<Key, Errors> {
    let number = entry.argument("the number of the key")?;
    entry.read_block(|block| {
        let secret: Located<String> = block.required("secret")?;
        if secret.value.is_empty() {
            return Err(secret.location.error("a secret has at least one byte").into());
        }
        let signs = block.leaf("sign")?.unwrap_or(true);
        Ok(Key { number, secret: Secret::new(secret.value), signs })
    })
}

fn redistributed(
    mut entry: Entry<'_>,
    policies: &Policies,
) -> Result<(Located<String>, Redistribute), Errors> {
    let name: Located<Name> = entry.argument("the protocol")?;
    let name = Located { value: name.value.to_string(), location: name.location };
    let config = entry.optional_block()?.read(|block| {
        Ok(Redistribute {
            metric: block.leaf_in("metric", 1..=INFINITY - 1)?.unwrap_or(1),
            tag: block.leaf("tag")?,
            policy: filter(block, "policy", policies)?,
        })
    })?;
    Ok((name, config))
}

/// All routes pass if the statement is not there.
fn filter(block: &mut Block<'_>, name: &str, policies: &Policies) -> Result<Filter, Errors> {
    Filter::read(&block.list(name)?, Filter::All, |names| {
        Program::new(policies, VARIABLES, names).map(Rc::new)
    })
}

#[cfg(test)]
mod tests {
    use weft_config::{LoadMode, Schema, Tree};

    use super::*;

    const TEXT: &str = "rip {
    interface eth0;
    interface eth1 {
        cost 2; passive on; split-horizon on; import none; export all;
        authentication md5;
        key 1 { secret one; }
        key 2 { secret two; sign off; }
    }
    interface eth2 { authentication password; password secret; }
    redistribute static { metric 3; tag 7; }
    redistribute connected;
    update 10s;
    timeout 60s;
}";

    #[test]
    fn what_is_said_is_read() {
        let config = read(Version::V2, "t", TEXT).unwrap();
        let link = &config.links["eth1"];
        assert_eq!((link.cost, link.passive, link.split_horizon), (2, true, SplitHorizon::On));
        assert_eq!((&link.import, &link.export), (&Filter::None, &Filter::All));
        let Auth::Keys { keys, signs } = &link.auth else { panic!() };
        assert_eq!((keys.len(), *signs), (2, 1));
        assert_eq!(config.links["eth2"].auth, Auth::Password(Secret::new("secret")));
        assert_eq!(config.links["eth0"].split_horizon, SplitHorizon::PoisonedReverse);
        let both = [("connected", (1, None)), ("static", (3, Some(7)))];
        let found = config.redistribute.iter().map(|(name, one)| (&**name, (one.metric, one.tag)));
        assert_eq!(found.collect::<Vec<_>>(), both);
        assert_eq!((config.timers.update.as_secs(), config.timers.garbage.as_secs()), (10, 120));
        assert_eq!(read(Version::V2, "t", "").unwrap(), Config::default());
        assert_eq!(format!("{:?}", link.auth).matches("one").count(), 0, "secrets are not shown");
    }

    #[test]
    fn the_schemas_accept_what_is_read() {
        let ng = "ripng { interface eth0 { cost 3; } redistribute static; }";
        for (version, schema, text) in [(Version::V2, SCHEMA, TEXT), (Version::Ng, SCHEMA_NG, ng)] {
            let schema = Schema::parse("s", &format!("version 1; {schema}")).unwrap();
            let tree = Tree::parse("t", &format!("version 1; {text}")).unwrap();
            let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
            let part = loaded.part(version.statement());
            let again: String = part.statements().map(ToString::to_string).collect();
            assert_eq!(read(version, "t", &again).unwrap(), read(version, "t", text).unwrap());
        }
    }

    #[test]
    fn mistakes_have_places() {
        for (text, part) in [
            ("interface eth0 { cost 16; }", "16"),
            ("interface eth0 { split-horizon maybe; }", "maybe"),
            ("interface eth0; interface eth0;", "described before"),
            ("interface eth0 { authentication md5; }", "at least one `key`"),
            ("interface eth0 { authentication password; }", "needs `password`"),
            ("interface eth0 { password x; }", "say `authentication`"),
            ("interface eth0 { authentication password; password 12345678901234567; }", "16 bytes"),
            ("interface eth0 { authentication md5; key 1 { secret x; sign off; } }", "may sign"),
            ("interface eth0 { authentication md5; key 1 { } }", "secret"),
            ("redistribute static { metric 16; }", "16"),
            ("redistribute static { policy q; }", "there is no policy `q`"),
            ("interface eth0 { import q; }", "there is no policy `q`"),
            ("interface eth0 { export all none; }", "stands alone"),
            ("timeout 20s;", "three times"),
            ("intrface eth0;", "did you mean `interface`?"),
        ] {
            let error =
                read(Version::V2, "t", &format!("rip {{ {text} }}")).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
        let text = "ripng { interface eth0 { password x; } }";
        assert!(read(Version::Ng, "t", text).is_err());
    }
}
