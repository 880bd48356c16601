//! What the configuration says of BGP.
//!
//! ```text
//! bgp {
//!     as 65000;
//!     router-id 192.0.2.1;
//!     peer 198.51.100.2 {
//!         as 65001;
//!         import all;
//!         export all;
//!     }
//! }
//! ```
//!
//! Reference: RFC 4271 §4.2 and §10 (numbers and timers), RFC 8212 (nothing is exchanged with an external peer unless
//! that is said).

mod graceful;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use weft_config::{Block, Document, Entry, Errors, Form, Keyword, gather};

use crate::routes::decision::Source;
use crate::wire::{AddPath, Families, Family};
pub(crate) use graceful::{Graceful, Mode, Standing};

/// The statement.
pub const STATEMENT: &str = "bgp";

/// What may be configured.
pub const SCHEMA: &str = r#"
container bgp {
    help "the Border Gateway Protocol";
    leaf as number { mandatory; range 1 4294967294; help "the number of this router's autonomous system"; }
    leaf router-id ipv4 { mandatory; help "a number that no other router of the system has, in the form of an address of IPv4"; }
    leaf cluster-id ipv4 { help "what marks the routes that this router reflects, the same for all reflectors of the same clients; the router-id without it"; }
    container graceful-restart {
        help "routes serve on while this router's BGP, or a peer's, restarts";
        leaf mode one-of both helper off { default both; help "whether peers are asked to keep our routes, and theirs are kept, or only the latter"; }
        leaf restart-time duration { default 120s; help "how long peers keep our routes while we are away"; }
        leaf stale-time duration { default 360s; help "how long routes of a peer that is back may take to be announced again"; }
        leaf deferral-time duration { default 120s; help "how long peers may take after our restart until new routes are told"; }
    }
    list peer {
        help "a router to exchange routes with";
        key address address { help "the peer's address"; }
        leaf as number { mandatory; range 1 4294967294; help "the number of its autonomous system"; }
        leaf local-address address { help "this router's address of the session"; }
        leaf passive switch { default off; help "whether the peer must open the session"; }
        leaf hold-time duration { default 90s; help "after which silence the session ends: 0s for never, or from 3s on"; }
        leaf graceful-restart one-of both helper off { help "as the mode for all peers"; }
        leaf-list family one-of ipv4-unicast ipv6-unicast { help "which routes are exchanged; those of the address without it"; }
        leaf add-path one-of receive send both { help "whether several routes to a destination are exchanged (RFC 7911), if the peer wants that too"; }
        leaf route-reflector-client switch { default off; help "whether the peer is a client of this route reflector (RFC 4456)"; }
        leaf next-hop-self switch { default off; help "whether a peer in this system is told to send packets for other systems here"; }
        leaf import one-of all none { help "which of its routes are taken; of a peer in another system none without it"; }
        leaf export one-of all none { help "which routes it is told; a peer in another system none without it"; }
    }
}
"#;

/// The port of BGP (RFC 4271 §3); the FEA opens no other for this process.
pub(crate) const PORT: u16 = 179;
/// Numbers of autonomous systems: 0 is nobody's (RFC 7607), the last one neither (RFC 7300).
const AS_NUMBERS: RangeInclusive<u32> = 1..=u32::MAX - 1;
/// RFC 4271 §10.
const HOLD_TIME: Duration = Duration::from_secs(90);
/// RFC 4271 §4.2: 0, or at least this.
const SHORTEST_HOLD_TIME: Duration = Duration::from_secs(3);

const ADDRESS: Form = Form { what: "an address of IP", example: "192.0.2.1" };

/// Which routes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    All,
    None,
}

impl Keyword for Policy {
    const WHAT: &'static str = "a policy";
    const ALL: &'static [(&'static str, Self)] = &[("all", Self::All), ("none", Self::None)];
}

impl Keyword for AddPath {
    const WHAT: &'static str = "a direction";
    const ALL: &'static [(&'static str, Self)] =
        &[("receive", Self::Receive), ("send", Self::Send), ("both", Self::Both)];
}

/// A family of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named(Family);

impl Keyword for Named {
    const WHAT: &'static str = "a family of routes";
    const ALL: &'static [(&'static str, Self)] = &[
        ("ipv4-unicast", Self(Family::IPV4_UNICAST)),
        ("ipv6-unicast", Self(Family::IPV6_UNICAST)),
    ];
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) local_as: u32,
    pub(crate) router_id: Ipv4Addr,
    pub(crate) cluster_id: Ipv4Addr,
    pub(crate) graceful: Graceful,
    pub(crate) peers: BTreeMap<IpAddr, PeerConfig>,
}

/// What is said of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerConfig {
    pub(crate) remote_as: u32,
    pub(crate) local_address: Option<IpAddr>,
    pub(crate) passive: bool,
    pub(crate) hold_time: Duration,
    /// As this peer is told, in place of what all are.
    pub(crate) graceful: Option<Mode>,
    pub(crate) families: Families,
    pub(crate) add_path: Option<AddPath>,
    pub(crate) is_client: bool,
    pub(crate) next_hop_self: bool,
    pub(crate) import: bool,
    pub(crate) export: bool,
}

impl PeerConfig {
    /// Whether it is in this router's own system.
    pub(crate) fn is_internal(&self, config: &Config) -> bool {
        self.remote_as == config.local_as
    }

    /// What the peer at this address is to the decision until it has said its identifier.
    pub(crate) fn source(&self, address: IpAddr, config: &Config) -> Source {
        let (is_external, router_id) = (!self.is_internal(config), Ipv4Addr::UNSPECIFIED);
        Source { is_external, is_client: self.is_client, router_id, address }
    }
}

/// Reads the statement; none if it is not there.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Option<Config>, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(None) };
    entry.read_block(|block| {
        let local_as = block.required_in("as", AS_NUMBERS)?;
        let router_id: Ipv4Addr = block.required("router-id")?;
        let cluster_id = block.leaf("cluster-id")?.unwrap_or(router_id);
        let graceful = Graceful::read(block)?;
        let mut peers = BTreeMap::new();
        let entries = block.many("peer").into_iter().map(|mut entry| {
            let address: IpAddr = entry.argument_with(ADDRESS, str::parse)?;
            let peer = peer(&entry, address, local_as)?;
            match peers.insert(address, peer) {
                None => Ok(()),
                Some(_) => {
                    let sentence =
                        format!("the peer {address} was described before: put both together");
                    Err(entry.error_at(1, sentence).into())
                }
            }
        });
        gather(entries.collect::<Vec<Result<(), Errors>>>())?;
        Ok(Some(Config { local_as, router_id, cluster_id, graceful, peers }))
    })
}

fn peer(entry: &Entry<'_>, address: IpAddr, local_as: u32) -> Result<PeerConfig, Errors> {
    entry.read_block(|block| {
        let remote_as = block.required_in("as", AS_NUMBERS)?;
        // RFC 8212: with an external peer only what is said; RFC 4271 §9.2: inside a system everything.
        let is_internal = remote_as == local_as;
        let policy =
            |policy: Option<Policy>| policy.map_or(is_internal, |policy| policy == Policy::All);
        Ok(PeerConfig {
            remote_as,
            local_address: block.leaf_with("local-address", ADDRESS, str::parse)?,
            passive: block.leaf("passive")?.unwrap_or(false),
            hold_time: hold_time(block)?,
            graceful: block.leaf("graceful-restart")?,
            families: families(block, address)?,
            add_path: block.leaf("add-path")?,
            is_client: client(block, is_internal)?,
            next_hop_self: block.leaf("next-hop-self")?.unwrap_or(false),
            import: policy(block.leaf("import")?),
            export: policy(block.leaf("export")?),
        })
    })
}

/// Whether routes are reflected to and from it, which makes sense inside a system only (RFC 4456 §6).
fn client(block: &mut Block<'_>, is_internal: bool) -> Result<bool, Errors> {
    let Some(mut entry) = block.one("route-reflector-client")? else { return Ok(false) };
    let is_client: bool = entry.argument("on or off")?;
    entry.end()?;
    if is_client && !is_internal {
        let sentence = "only a peer in this autonomous system can be a client: leave this out, or \
                        mend `as`";
        return Err(entry.error_at(1, sentence).into());
    }
    Ok(is_client)
}

/// Of how long a silence a session may live.
fn hold_time(block: &mut Block<'_>) -> Result<Duration, Errors> {
    let Some(entry) = block.one("hold-time")? else { return Ok(HOLD_TIME) };
    let mut words = entry;
    let hold_time: Duration = words.argument("the hold time")?;
    words.end()?;
    let is_whole = hold_time.subsec_nanos() == 0 && hold_time.as_secs() <= u64::from(u16::MAX);
    if !hold_time.is_zero() && (hold_time < SHORTEST_HOLD_TIME || !is_whole) {
        let sentence = "a hold time is 0s for never, or from 3s to 65535s, in whole seconds";
        return Err(words.error_at(1, sentence).into());
    }
    Ok(hold_time)
}

/// Which routes are exchanged: those of the address if nothing is said.
fn families(block: &mut Block<'_>, address: IpAddr) -> Result<Families, Errors> {
    let named: Vec<Named> = block.list("family")?;
    if !named.is_empty() {
        return Ok(named.into_iter().map(|named| named.0).collect());
    }
    let own = if address.is_ipv4() { Family::IPV4_UNICAST } else { Family::IPV6_UNICAST };
    Ok(Families::from_iter([own]))
}

#[cfg(test)]
mod tests {
    use weft_config::{LoadMode, Schema, Tree};

    use super::*;

    const TEXT: &str = "bgp {
    as 65000;
    router-id 192.0.2.1;
    peer 198.51.100.2 { as 65001; hold-time 9s; passive on; import all; }
    peer 2001:db8::2 { as 65000; family ipv4-unicast; family ipv6-unicast; export none;
        add-path both; route-reflector-client on; next-hop-self on; }
}";

    #[test]
    fn what_is_said_is_read() {
        let config = read("t", TEXT).unwrap().unwrap();
        assert_eq!(config.local_as, 65000);
        let external = &config.peers[&"198.51.100.2".parse().unwrap()];
        assert_eq!((external.import, external.export, external.passive), (true, false, true));
        assert_eq!(external.hold_time, Duration::from_secs(9));
        assert_eq!(external.families, Families::from_iter([Family::IPV4_UNICAST]));
        let internal = &config.peers[&"2001:db8::2".parse().unwrap()];
        assert_eq!((internal.import, internal.export), (true, false));
        assert_eq!((internal.families.len(), internal.hold_time), (2, HOLD_TIME));
        assert!(internal.is_internal(&config) && !external.is_internal(&config));
        assert_eq!((internal.add_path, external.add_path), (Some(AddPath::Both), None));
        assert!(internal.is_client && internal.next_hop_self && !external.is_client);
        assert_eq!(config.cluster_id, config.router_id);
        assert_eq!(read("t", "").unwrap(), None);
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
        let peer = |words: &str| {
            format!("bgp {{ as 1; router-id 192.0.2.1; peer 192.0.2.2 {{ {words} }} }}")
        };
        for (text, part) in [
            ("bgp { router-id 192.0.2.1; }".to_owned(), "as"),
            ("bgp { as 0; router-id 192.0.2.1; }".to_owned(), "0"),
            ("bgp { as 1; router-id here; }".to_owned(), "here"),
            (peer(""), "as"),
            (peer("as 2; hold-time 2s;"), "from 3s"),
            (peer("as 2; hold-time 3500ms;"), "whole seconds"),
            (peer("as 2; import some;"), "some"),
            (peer("as 2; family ipv4;"), "ipv4"),
            (peer("as 2; route-reflector-client on;"), "in this autonomous system"),
            (peer("as 2; add-path all;"), "all"),
            (peer("as 2; impotr all;"), "did you mean `import`?"),
        ] {
            let error = read("t", &text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
