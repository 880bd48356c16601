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

mod confederation;
mod damping;
mod filters;
mod graceful;
mod own;
mod range;
mod schema;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use weft_config::{Block, Document, Entry, Errors, Form, Keyword, Name, gather};
use weft_policy::{Policies, Program};

use crate::fsm::PeerAs;
use crate::home::Home;
use crate::policy::Filter;
use crate::routes::decision::Source;
use crate::wire::{AddPath, Families, Family, Neighbour};
use confederation::Systems;
pub(crate) use damping::Damping;
use filters::Filters;
pub(crate) use graceful::{Graceful, Mode, Standing};
pub(crate) use own::{Network, OwnConfig};
pub(crate) use range::Range;
pub use schema::SCHEMA;
pub(crate) use session::{Excess, PrefixLimit, SessionConfig, least_ttl, listener};

/// The statement.
pub const STATEMENT: &str = "bgp";
/// The statement of the process that says what the RPKI says.
pub const RPKI: &str = "rpki";

/// The port of BGP (RFC 4271 §3); the FEA opens no other for this process.
pub(crate) const PORT: u16 = 179;
/// Numbers of autonomous systems: 0 is nobody's (RFC 7607), the last one neither (RFC 7300).
const AS_NUMBERS: RangeInclusive<u32> = 1..=u32::MAX - 1;
/// The most next hops of a destination.
const MOST_PATHS: u32 = 64;
/// RFC 4271 §10.
const HOLD_TIME: Duration = Duration::from_secs(90);
/// RFC 4271 §4.2: 0, or at least this.
const SHORTEST_HOLD_TIME: Duration = Duration::from_secs(3);

const ADDRESS: Form = Form { what: "an address of IP", example: "192.0.2.1" };

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
        ("ipv4-multicast", Self(Family::IPV4_MULTICAST)),
        ("ipv6-multicast", Self(Family::IPV6_MULTICAST)),
    ];
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// This router's system.
    pub(crate) home: Home,
    /// All members of its confederation; none if it is in none.
    pub(crate) members: BTreeSet<u32>,
    pub(crate) router_id: Ipv4Addr,
    pub(crate) cluster_id: Ipv4Addr,
    /// Among how many next hops packets to a destination are shared out.
    pub(crate) multipath: usize,
    pub(crate) graceful: Graceful,
    pub(crate) policies: Rc<Policies>,
    /// There is somebody to say what the RPKI says.
    pub(crate) has_rpki: bool,
    pub(crate) peers: BTreeMap<IpAddr, PeerConfig>,
    /// Of neighbours that are not named; the smallest are first.
    pub(crate) ranges: Vec<Range>,
    /// This router's own networks.
    pub(crate) own: OwnConfig,
}

impl Config {
    /// The range around an address.
    pub(crate) fn range(&self, address: IpAddr) -> Option<&Range> {
        self.ranges.iter().find(|range| range.net.contains(&address))
    }
}

/// What is said of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerConfig {
    /// The group that it is in.
    pub(crate) group: Option<Rc<str>>,
    pub(crate) remote_as: PeerAs,
    /// Where that is.
    pub(crate) neighbour: Neighbour,
    pub(crate) local_address: Option<IpAddr>,
    pub(crate) passive: bool,
    pub(crate) hold_time: Duration,
    /// As this peer is told, in place of what all are.
    pub(crate) graceful: Option<Mode>,
    pub(crate) families: Families,
    pub(crate) add_path: Option<AddPath>,
    pub(crate) is_client: bool,
    pub(crate) next_hop_self: bool,
    pub(crate) session: SessionConfig,
    /// How its routes are damped, if they are.
    pub(crate) damping: Option<Damping>,
    pub(crate) import: Filter,
    pub(crate) export: Filter,
}

impl PeerConfig {
    /// Whether a session that is like this has to end before one can be like `other`. Groups, limits, damping, times of timers,
    /// descriptions and what is told before a shutdown can change while routes are exchanged.
    pub(crate) fn needs_reset(&self, other: &Self) -> bool {
        let filter = Filter::All;
        let hard = |one: &Self| Self {
            group: None,
            session: one.session.hard(),
            damping: None,
            import: filter.clone(),
            export: filter.clone(),
            ..one.clone()
        };
        hard(self) != hard(other)
    }

    /// What the peer at this address is to the decision until it has said its identifier.
    pub(crate) fn source(&self, address: IpAddr, config: &Config) -> Source {
        Source {
            own: None,
            neighbour: self.neighbour,
            system: match self.remote_as {
                PeerAs::Exactly(system) => system,
                // It says so itself when its session begins.
                PeerAs::External | PeerAs::Any => 0,
            },
            is_client: self.is_client,
            is_direct: self.neighbour == Neighbour::External && self.session.is_direct(),
            is_long_lived: config.graceful.is_long_lived(self.graceful),
            has_blackholes: self.session.blackhole,
            router_id: Ipv4Addr::UNSPECIFIED,
            address,
        }
    }
}

impl Config {
    /// Takes filters over that are the same before: so that they are seen to be the same without being compared.
    pub(crate) fn share(&mut self, before: &Self) {
        let programs = |config: &Self| {
            let mut all: Vec<Rc<Program>> = Vec::new();
            for peer in config.peers.values() {
                for program in [&peer.import, &peer.export].into_iter().filter_map(Filter::program)
                {
                    if !all.iter().any(|known| Rc::ptr_eq(known, program)) {
                        all.push(Rc::clone(program));
                    }
                }
            }
            all
        };
        let old = programs(before);
        for new in programs(self) {
            let Some(same) = old.iter().find(|old| **old == new) else { continue };
            for peer in self.peers.values_mut() {
                for filter in [&mut peer.import, &mut peer.export] {
                    if filter.program().is_some_and(|own| Rc::ptr_eq(own, &new)) {
                        *filter = Filter::Policies(Rc::clone(same));
                    }
                }
            }
        }
    }
}

/// Reads the statement; none if it is not there.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Option<Config>, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let policies = Rc::new(Policies::take(&mut block)?);
    let mut filters = Filters::new(&policies);
    let has_rpki = block.one(RPKI)?.is_some();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(None) };
    entry.read_block(|block| {
        let systems = Systems::read(block)?;
        let router_id: Ipv4Addr = block.required("router-id")?;
        let cluster_id = block.leaf("cluster-id")?.unwrap_or(router_id);
        let multipath = block.leaf_in("multipath", 1..=MOST_PATHS)?.unwrap_or(1) as usize;
        let graceful = Graceful::read(block)?;
        let common = Common { systems: &systems, damping: Damping::read(block)? };
        let mut peers = BTreeMap::new();
        let entries = entries(block)?.into_iter().map(|(mut entry, group)| {
            let address: IpAddr = entry.argument_with(ADDRESS, str::parse)?;
            let peer = peer(&entry, group.as_ref(), address, common, &mut filters)?;
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
        let ranges = range::read(block, common, &mut filters)?;
        let own = OwnConfig::read(block, &mut filters)?;
        let policies = Rc::clone(&policies);
        Ok(Some(Config {
            home: systems.home,
            members: systems.members,
            router_id,
            cluster_id,
            multipath,
            graceful,
            policies,
            has_rpki,
            peers,
            ranges,
            own,
        }))
    })
}

/// What is said for all peers and matters to what is said of each.
#[derive(Clone, Copy)]
struct Common<'a> {
    systems: &'a Systems,
    damping: Option<Damping>,
}

/// A group, and its name.
type Group<'d> = (Rc<str>, Entry<'d>);

/// The statements of all peers, and the groups around them.
fn entries<'d>(block: &mut Block<'d>) -> Result<Vec<(Entry<'d>, Option<Group<'d>>)>, Errors> {
    let mut all: Vec<_> = block.many("peer").into_iter().map(|entry| (entry, None)).collect();
    let mut names = BTreeSet::new();
    for mut group in block.many("group") {
        let name: Name = group.argument("the group")?;
        if !names.insert(name.to_string()) {
            let sentence = format!("the group {name} was described before: put both together");
            return Err(group.error_at(1, sentence).into());
        }
        let peers = group.block()?.many("peer");
        if peers.is_empty() {
            let sentence =
                format!("the group {name} has no peers: name one in it, or leave it out");
            return Err(group.error_at(1, sentence).into());
        }
        let group: Group<'_> = (name.as_str().into(), group);
        all.extend(peers.into_iter().map(|entry| (entry, Some(group.clone()))));
    }
    Ok(all)
}

fn peer(
    entry: &Entry<'_>,
    group: Option<&Group<'_>>,
    address: IpAddr,
    common: Common<'_>,
    filters: &mut Filters<'_>,
) -> Result<PeerConfig, Errors> {
    entry.read_block(|block| {
        if let Some((_, group)) = group {
            let mut group = group.block()?;
            group.many("peer");
            block.inherit(group);
        }
        let peer = statements(block, address, (common, false), filters)?;
        Ok(PeerConfig { group: group.map(|(name, _)| Rc::clone(name)), ..peer })
    })
}

/// What is said of a peer at this address, or of all in a range.
fn statements(
    block: &mut Block<'_>,
    address: IpAddr,
    (Common { systems, damping }, is_range): (Common<'_>, bool),
    filters: &mut Filters<'_>,
) -> Result<PeerConfig, Errors> {
    let (remote_as, neighbour) = system(block, systems, is_range)?;
    Ok(PeerConfig {
        group: None,
        remote_as,
        neighbour,
        local_address: block.leaf_with("local-address", ADDRESS, str::parse)?,
        passive: block.leaf("passive")?.unwrap_or(false),
        hold_time: hold_time(block)?,
        graceful: block.leaf("graceful-restart")?,
        families: families(block, address)?,
        add_path: block.leaf("add-path")?,
        is_client: client(block, neighbour)?,
        next_hop_self: block.leaf("next-hop-self")?.unwrap_or(false),
        session: SessionConfig::read(block, neighbour)?,
        damping: Damping::of_peer(block, damping, neighbour)?,
        import: filters.read(block, "import", neighbour)?,
        export: filters.read(block, "export", neighbour)?,
    })
}

/// In which system a peer is, and where that is; the neighbours of a range may be in any others than this one.
fn system(
    block: &mut Block<'_>,
    systems: &Systems,
    is_range: bool,
) -> Result<(PeerAs, Neighbour), Errors> {
    let mut entry = block.required_one("as")?;
    if is_range && entry.take("external") {
        entry.end()?;
        return Ok((PeerAs::External, Neighbour::External));
    }
    let what = if is_range { "a number, or external" } else { "a number" };
    let number: u32 = entry.argument(what)?;
    entry.end()?;
    if !AS_NUMBERS.contains(&number) {
        let sentence = format!("{number} is the number of no autonomous system");
        return Err(entry.error_at(1, sentence).into());
    }
    let remote_as = PeerAs::Exactly(number);
    match systems.place(remote_as) {
        Some(neighbour) => Ok((remote_as, neighbour)),
        None => {
            let sentence = format!(
                "{number} is the number of the confederation that this router is in: name the member that the peer is in"
            );
            Err(entry.error_at(1, sentence).into())
        }
    }
}

/// Whether it is a client: inside a system of this route reflector (RFC 4456 §6), outside of this route server (RFC 7947).
fn client(block: &mut Block<'_>, neighbour: Neighbour) -> Result<bool, Errors> {
    let mut is_client = false;
    for (name, where_it_is) in [
        ("route-reflector-client", Neighbour::Internal),
        ("route-server-client", Neighbour::External),
    ] {
        let Some(mut entry) = block.one(name)? else { continue };
        let is_on: bool = entry.argument("on or off")?;
        entry.end()?;
        if is_on && where_it_is != neighbour {
            let is_inside = where_it_is == Neighbour::Internal;
            let place = if is_inside { "in this" } else { "outside of this" };
            let sentence = format!(
                "only a peer {place} autonomous system can be such a client: leave this out, or mend `as`"
            );
            return Err(entry.error_at(1, sentence).into());
        }
        is_client |= is_on;
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
        assert_eq!(config.home, Home::alone(65000));
        let external = &config.peers[&"198.51.100.2".parse().unwrap()];
        assert_eq!((&external.import, &external.export), (&Filter::All, &Filter::None));
        assert!(external.passive);
        assert_eq!(external.hold_time, Duration::from_secs(9));
        assert_eq!(external.families, Families::from_iter([Family::IPV4_UNICAST]));
        let internal = &config.peers[&"2001:db8::2".parse().unwrap()];
        assert_eq!((&internal.import, &internal.export), (&Filter::All, &Filter::None));
        assert_eq!((internal.families.len(), internal.hold_time), (2, HOLD_TIME));
        assert_eq!(
            (internal.neighbour, external.neighbour),
            (Neighbour::Internal, Neighbour::External)
        );
        assert_eq!((internal.add_path, external.add_path), (Some(AddPath::Both), None));
        assert!(internal.is_client && internal.next_hop_self && !external.is_client);
        assert_eq!((config.cluster_id, config.multipath), (config.router_id, 1));
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
    fn peers_of_a_group_are_alike_but_for_what_they_say() {
        let text = "bgp { as 65000; router-id 192.0.2.1; peer 192.0.2.2 { as 1; }
            group clients { as 65001; hold-time 9s; import all; family ipv4-unicast; prefix-limit { most 5; }
                peer 192.0.2.3;
                peer 192.0.2.4 { as 65002; hold-time 30s; family ipv6-unicast; prefix-limit { most 7; } } } }";
        let config = read("t", text).unwrap().unwrap();
        let peer = |last: u8| &config.peers[&IpAddr::from([192, 0, 2, last])];
        let most = |last| peer(last).session.prefix_limit.map(|limit| limit.most);
        assert_eq!(
            (peer(2).remote_as, peer(2).import.clone(), most(2)),
            (PeerAs::Exactly(1), Filter::None, None)
        );
        assert_eq!(
            (peer(3).remote_as, peer(3).import.clone(), most(3)),
            (PeerAs::Exactly(65001), Filter::All, Some(5))
        );
        assert_eq!(
            (peer(4).remote_as, peer(4).import.clone(), most(4)),
            (PeerAs::Exactly(65002), Filter::All, Some(7))
        );
        assert_eq!([3, 4].map(|last| peer(last).hold_time.as_secs()), [9, 30]);
        assert_eq!([2, 3].map(|last| peer(last).group.as_deref()), [None, Some("clients")]);
        let moved = PeerConfig { group: Some("others".into()), ..peer(3).clone() };
        assert!(moved != *peer(3) && !moved.needs_reset(peer(3)), "that ends no session");
        assert_eq!(peer(4).families, Families::from_iter([Family::IPV6_UNICAST]));
        let schema = Schema::parse("s", &format!("version 1; {SCHEMA}")).unwrap();
        let tree = Tree::parse("t", &format!("version 1; {text}")).unwrap();
        schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
        for (text, part) in [
            ("group a { as 1; }", "no peers"),
            ("group a { peer 192.0.2.2; }", "as"),
            ("group a { as 1; peer 192.0.2.2; } group a { as 1; peer 192.0.2.3; }", "before"),
            ("peer 192.0.2.2 { as 1; } group a { as 1; peer 192.0.2.2; }", "before"),
            ("group a { as 1; impotr all; peer 192.0.2.2; }", "did you mean"),
        ] {
            let text = format!("bgp {{ as 1; router-id 192.0.2.1; {text} }}");
            let error = read("t", &text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{error}");
        }
    }

    #[test]
    fn what_can_change_while_routes_are_exchanged_resets_nothing() {
        let peer = |words: &str| {
            let text =
                format!("bgp {{ as 1; router-id 192.0.2.1; peer 192.0.2.2 {{ as 2; {words} }} }}");
            read("t", &text).unwrap().unwrap().peers.into_values().next().unwrap()
        };
        let plain = peer("");
        for soft in [
            "prefix-limit { most 5; }",
            "description x;",
            "connect-retry 5s;",
            "delay-open 5s;",
            "advertisement-interval 5s;",
            "graceful-shutdown on;",
            "shutdown;",
        ] {
            assert!(plain != peer(soft) && !plain.needs_reset(&peer(soft)), "{soft}");
        }
        for hard in
            ["md5-key x;", "hold-time 9s;", "ttl-security 1;", "local-role peer;", "passive on;"]
        {
            assert!(plain.needs_reset(&peer(hard)), "{hard}");
        }
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
            (peer("as 2; import some;"), "there is no policy `some`"),
            (peer("as 2; import all none;"), "stands alone"),
            (peer("as 2; family ipv4;"), "ipv4"),
            (peer("as 2; route-reflector-client on;"), "in this autonomous system"),
            (peer("as 1; route-server-client on;"), "outside of this autonomous system"),
            (peer("as 2; add-path all;"), "all"),
            (peer("as 2; impotr all;"), "did you mean `import`?"),
        ] {
            let error = read("t", &text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
