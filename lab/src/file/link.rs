//! `link NODE:INTERFACE NODE:INTERFACE { … }`, `link-defaults { … }` and `route NODE …`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;
use std::time::Duration;

use weft_config::{
    Block, ByteSize, Entry, Error, Errors, FromWord, InterfaceName, Ipv4Interface, Ipv4Prefix,
    Located, Location, Name, Probability, Rate, ValueError, gather, suggest,
};
use weft_runtime::LinkConfig;

use super::ipv6::{self, Ipv6Interface};
use super::node::Node;

/// The least and the greatest MTU; below the least, Linux takes IPv4 off an interface (RFC 791 §3.2).
const MTU: std::ops::RangeInclusive<u32> = 68..=65_535;

/// A cable between two interfaces, with the same properties both ways.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) ends: [End; 2],
    pub(crate) properties: Properties,
}

/// An interface of a node.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// Index of the node.
    pub(crate) node: usize,
    pub(crate) interface: String,
    pub(crate) address: Option<Located<Ipv4Interface>>,
    pub(crate) address6: Option<Located<Ipv6Interface>>,
}

/// What a link does to packets, each way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Properties {
    pub(crate) model: LinkConfig,
    /// The largest packet in bytes, without Ethernet header.
    pub(crate) mtu: u32,
}

impl Default for Properties {
    fn default() -> Self {
        Self { model: LinkConfig::default(), mtu: 1500 }
    }
}

/// A static IPv4 route.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) node: usize,
    pub(crate) prefix: Ipv4Prefix,
    pub(crate) gateway: Ipv4Addr,
}

/// `NODE:INTERFACE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndName {
    node: Name,
    interface: InterfaceName,
}

impl FromWord for EndName {
    const WHAT: &'static str = "an end of a link";
    const EXAMPLE: &'static str = "server:eth0";

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let (node, interface) = text.split_once(':').ok_or(ValueError::Form("NODE:INTERFACE"))?;
        Ok(Self { node: Name::from_word(node)?, interface: InterfaceName::from_word(interface)? })
    }
}

/// Nodes by name.
pub(super) struct NodeIndex(BTreeMap<String, usize>);

impl NodeIndex {
    pub(super) fn new(nodes: &[Node]) -> Self {
        let name = |(index, node): (usize, &Node)| (node.name.value.as_str().to_owned(), index);
        Self(nodes.iter().enumerate().map(name).collect())
    }

    /// The index of the node that is called `name` at `location`.
    pub(super) fn find(&self, name: &Name, location: &Location) -> Result<usize, Error> {
        if let Some(index) = self.0.get(name.as_str()) {
            return Ok(*index);
        }
        let advice = match suggest(name.as_str(), self.0.keys().map(String::as_str)) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("add `node {name} {{ … }}`"),
        };
        Err(location.error(format!("there is no node `{name}`: {advice}")))
    }
}

/// Links by both of their ends: the link's index, and 0 or 1 for the end.
pub(super) type EndIndex = BTreeMap<EndName, (usize, usize)>;

/// Finds the end of a link that a step names.
pub(super) fn find_end(ends: &EndIndex, end: &Located<EndName>) -> Result<(usize, usize), Error> {
    ends.get(&end.value).copied().ok_or_else(|| {
        let EndName { node, interface } = &end.value;
        let of_node: Vec<String> = ends
            .keys()
            .filter(|other| other.node == *node)
            .map(|other| format!("`{node}:{}`", other.interface))
            .collect();
        let advice = match of_node.as_slice() {
            [] => format!("no link ends at node `{node}`"),
            _ => format!("links end at {}", of_node.join(", ")),
        };
        end.error(format!("no link ends at `{node}:{interface}`: {advice}"))
    })
}

/// Reads all links; the second value finds them by their ends.
pub(super) fn read_links(
    block: &mut Block<'_>,
    nodes: &NodeIndex,
) -> Result<(Vec<Link>, EndIndex), Errors> {
    let defaults = block.one("link-defaults")?;
    let defaults = match defaults {
        Some(entry) => entry.read_block(|block| read_properties(block, &Properties::default()))?,
        None => Properties::default(),
    };
    let mut seen: BTreeMap<EndName, Location> = BTreeMap::new();
    let mut ends = EndIndex::new();
    let mut index = 0;
    let links = gather(block.many("link").into_iter().map(|mut entry| {
        let names = read_ends(&mut entry, &mut seen)?;
        for (side, name) in names.iter().enumerate() {
            ends.insert(name.value.clone(), (index, side));
        }
        index += 1;
        read_link(&entry, &names, nodes, &defaults)
    }))?;
    check_addresses(&links)?;
    Ok((links, ends))
}

fn read_ends(
    entry: &mut Entry<'_>,
    seen: &mut BTreeMap<EndName, Location>,
) -> Result<[Located<EndName>; 2], Errors> {
    let first: Located<EndName> = entry.argument("the first end of the link")?;
    let second: Located<EndName> = entry.argument("the second end of the link")?;
    for end in [&first, &second] {
        if let Some(earlier) = seen.insert(end.value.clone(), end.location.clone()) {
            let EndName { node, interface } = &end.value;
            let sentence = format!(
                "the interface `{node}:{interface}` is at the end of two links: give one of them another name"
            );
            return Err(end.error(sentence).related("first used here", earlier).into());
        }
    }
    Ok([first, second])
}

fn read_link(
    entry: &Entry<'_>,
    names: &[Located<EndName>; 2],
    nodes: &NodeIndex,
    defaults: &Properties,
) -> Result<Link, Errors> {
    let find = |name: &Located<EndName>| Ok(nodes.find(&name.value.node, &name.location)?);
    let found = gather(names.iter().map(find))?;
    entry.read_block(|block| {
        let mut addresses = read_addresses(block)?.into_iter();
        let mut addresses6 = ipv6::read_addresses(block)?.into_iter();
        let mut end = |side: usize| End {
            node: found[side],
            interface: names[side].value.interface.as_str().to_owned(),
            address: addresses.next(),
            address6: addresses6.next(),
        };
        let ends = [end(0), end(1)];
        Ok(Link { ends, properties: read_properties(block, defaults)? })
    })
}

/// None, or one for each end.
fn read_addresses(block: &mut Block<'_>) -> Result<Vec<Located<Ipv4Interface>>, Errors> {
    let Some(mut entry) = block.one("address")? else { return Ok(Vec::new()) };
    let first: Located<Ipv4Interface> = entry.argument("the address of the first end")?;
    let second: Located<Ipv4Interface> = entry.argument("the address of the second end")?;
    entry.end()?;
    if first.value.network() != second.value.network() {
        return Err(second
            .error(format!(
                "the two ends are in different networks, {} and {}: use addresses of one network",
                first.value.network(),
                second.value.network()
            ))
            .into());
    }
    Ok(vec![first, second])
}

/// Reads the properties of a link; those that are not given are taken from `defaults`.
fn read_properties(block: &mut Block<'_>, defaults: &Properties) -> Result<Properties, Errors> {
    let Properties { model, mtu } = defaults.clone();
    let per_billion =
        |value: Option<Probability>, default| value.map_or(default, Probability::parts_per_billion);
    // A queue that is stated in bytes has no other limit.
    let (queue_packets, queue_bytes) = match read_queue(block)? {
        Some(bytes) => (usize::MAX, bytes),
        None => (model.queue_packets, model.queue_bytes),
    };
    let model = LinkConfig {
        rate: read_rate(block)?.or(model.rate),
        delay: block.leaf::<Duration>("delay")?.unwrap_or(model.delay),
        jitter: block.leaf::<Duration>("jitter")?.unwrap_or(model.jitter),
        loss: per_billion(block.leaf("loss")?, model.loss),
        duplicate: per_billion(block.leaf("duplicate")?, model.duplicate),
        reorder: per_billion(block.leaf("reorder")?, model.reorder),
        queue_packets,
        queue_bytes,
        ..model
    };
    Ok(Properties { model, mtu: block.leaf_in("mtu", MTU)?.unwrap_or(mtu) })
}

fn read_rate(block: &mut Block<'_>) -> Result<Option<NonZeroU64>, Error> {
    let Some(rate) = block.leaf::<Located<Rate>>("rate")? else { return Ok(None) };
    let bits = NonZeroU64::new(rate.value.bits_per_second());
    bits.map(Some).ok_or_else(|| {
        rate.error("a link of rate zero carries nothing: leave `rate` away for no limit")
    })
}

fn read_queue(block: &mut Block<'_>) -> Result<Option<usize>, Error> {
    let Some(size) = block.leaf::<ByteSize>("queue")? else { return Ok(None) };
    Ok(Some(usize::try_from(size.bytes()).unwrap_or(usize::MAX)))
}

/// No address may be given twice in a lab.
fn check_addresses(links: &[Link]) -> Result<(), Errors> {
    let mut seen: BTreeMap<IpAddr, &Location> = BTreeMap::new();
    let ends = links.iter().flat_map(|link| &link.ends);
    let given = ends.flat_map(|end| {
        let four = end.address.iter().map(|one| (one.value.address().into(), &one.location));
        four.chain(end.address6.iter().map(|one| (one.value.address.into(), &one.location)))
    });
    gather(given.map(|(ip, location)| match seen.insert(ip, location) {
        None => Ok(()),
        Some(first) => {
            let error = location
                .error(format!("the address {ip} is given to two interfaces: choose another one"));
            Err(error.related("first given here", first.clone()).into())
        }
    }))
    .map(drop)
}

/// Reads all routes, whose gateways must be neighbours of their nodes.
pub(super) fn read_routes(
    block: &mut Block<'_>,
    nodes: &NodeIndex,
    links: &[Link],
) -> Result<Vec<Route>, Errors> {
    gather(block.many("route").into_iter().map(|mut entry| {
        let name: Located<Name> = entry.argument("the node that gets the route")?;
        let node = nodes.find(&name.value, &name.location)?;
        let prefix = entry.argument("the destination prefix")?;
        entry.expect("via")?;
        let gateway: Located<Ipv4Addr> = entry.argument("the address of the next router")?;
        entry.end()?;
        check_gateway(node, &name.value, &gateway, links)?;
        Ok(Route { node, prefix, gateway: gateway.value })
    }))
}

fn check_gateway(
    node: usize,
    name: &Name,
    gateway: &Located<Ipv4Addr>,
    links: &[Link],
) -> Result<(), Error> {
    let ends = links.iter().flat_map(|link| &link.ends).filter(|end| end.node == node);
    let networks: Vec<Ipv4Interface> =
        ends.filter_map(|end| end.address.as_ref()).map(|address| address.value).collect();
    if networks.iter().any(|own| own.address() == gateway.value) {
        return Err(gateway.error(format!(
            "{} is an address of `{name}` itself: write that of the next router",
            gateway.value
        )));
    }
    if networks.iter().any(|own| own.network().contains(gateway.value)) {
        return Ok(());
    }
    let known: Vec<_> = networks.iter().map(|own| own.network().to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(gateway.error(format!(
        "node `{name}` has no interface in a network with {}: its networks are {known}",
        gateway.value
    )))
}
