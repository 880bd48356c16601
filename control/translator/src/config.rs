//! What the configuration says of the translator.
//!
//! ```text
//! translator {
//!     from ebgp ibgp connected;       # or: from kernel;
//!     via x4id;
//!     neighbour 192.0.2.1 { via hid-a1e9156054e04fac899ae9f275132cdc07a5dbc4; }
//! }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use weft_config::{Document, Entry, Errors, Form, Keyword, Located, Name, gather};
use weft_runtime::IpWay;

use crate::gateways::{By, PORT, is_xid, name};
use crate::to_xia::Lead;

/// The statement.
pub const STATEMENT: &str = "translator";

/// What may be configured.
pub const SCHEMA: &str = r#"
container translator {
    help "routes of IP become routes of XIA's principal lpm";
    leaf-list from name { help "whose routes: protocols of the RIB such as ebgp, ibgp, static and connected; or kernel, for what the kernel's table says"; }
    leaf family one-of ipv4 ipv6 { default ipv4; help "of which version of IP; lpm cannot tell their prefixes apart"; }
    leaf via one-of x4id u4id i4id { default x4id; help "what the next router is called: as a neighbour (x4id, x6id), in a tunnel over UDP (u4id, u6id) or over IP (i4id, i6id)"; }
    leaf tunnel-port number { range 1 65535; default 13781; help "the UDP port of tunnels"; }
    list neighbour {
        help "a next router that is called otherwise";
        key address address { help "its address"; }
        leaf via text { mandatory; help "its XID, such as hid-…"; }
    }
}
"#;

/// The word that stands for the kernel in place of protocols.
const KERNEL: &str = "kernel";
/// The most gateways that a route of XIA can have.
const MOST_GATEWAYS: usize = 16;

const ADDRESS: Form = Form { what: "an address of IP", example: "192.0.2.1" };

/// Where routes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// From these protocols, by the RIB.
    Protocols(BTreeSet<String>),
    /// From the kernel's table, by the FEA.
    Kernel,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Ipv4,
    Ipv6,
}

impl Keyword for Family {
    const WHAT: &'static str = "a version of IP";
    const ALL: &'static [(&'static str, Self)] = &[("ipv4", Self::Ipv4), ("ipv6", Self::Ipv6)];
}

impl Keyword for By {
    const WHAT: &'static str = "a way to name routers";
    const ALL: &'static [(&'static str, Self)] =
        &[("x4id", Self::Neighbour), ("u4id", Self::Udp(PORT)), ("i4id", Self::Ip)];
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(crate) from: From,
    family: Family,
    by: By,
    /// The XIDs of some next routers.
    neighbours: BTreeMap<IpAddr, String>,
}

impl Config {
    /// Whether a prefix is translated: it is of the version, and not only for this machine or one link.
    pub(crate) fn takes(&self, net: &IpNet) -> bool {
        let address = net.addr();
        let is_of_version = match self.family {
            Family::Ipv4 => address.is_ipv4(),
            Family::Ipv6 => address.is_ipv6(),
        };
        let is_local = match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let is_nobody = address.is_unspecified() && net.prefix_len() > 0;
        is_of_version && !(is_local || is_nobody || address.is_loopback() || address.is_multicast())
    }

    /// Where a way of the kernel leads.
    pub(crate) fn lead_of_way(&self, way: IpWay) -> Lead {
        match way {
            IpWay::Local | IpWay::Out { gateway: None, .. } => Lead::Here,
            IpWay::Nowhere => Lead::Nowhere,
            IpWay::Out { gateway: Some(gateway), .. } => self.lead_over([gateway]),
        }
    }

    /// Where a route over these routers leads; nowhere if none of them has a name.
    pub(crate) fn lead_over(&self, routers: impl IntoIterator<Item = IpAddr>) -> Lead {
        let name = |router: IpAddr| match self.neighbours.get(&router) {
            Some(xid) => Some(xid.clone()),
            None => name(router, self.by),
        };
        let mut names: Vec<_> = routers.into_iter().filter_map(name).take(MOST_GATEWAYS).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { Lead::Nowhere } else { Lead::Via(names) }
    }
}

/// Reads the statement.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Option<Config>, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(None) };
    let config = entry.read_block(|block| {
        let from: Vec<Located<Name>> = block.list("from")?;
        let protocols: BTreeSet<_> = from.iter().map(|one| one.value.to_string()).collect();
        let from = match protocols.contains(KERNEL) {
            _ if protocols.is_empty() => {
                let sentence = "nothing says whose routes are translated: say `from ebgp ibgp connected;` or \
                                `from kernel;`";
                return Err(entry.error(sentence).into());
            }
            true if protocols.len() > 1 => {
                let sentence = "the kernel's table holds the routes of all protocols: name either `kernel` or \
                                protocols";
                return Err(entry.error(sentence).into());
            }
            true => From::Kernel,
            false => From::Protocols(protocols),
        };
        let family = block.leaf("family")?.unwrap_or(Family::Ipv4);
        let port = block.leaf_in("tunnel-port", 1..=u16::MAX)?.unwrap_or(PORT);
        let by = match block.leaf("via")?.unwrap_or(By::Neighbour) {
            By::Udp(_) => By::Udp(port),
            other => other,
        };
        let mut neighbours = BTreeMap::new();
        for (address, xid) in gather(block.many("neighbour").into_iter().map(neighbour))? {
            if neighbours.insert(address.value, xid).is_some() {
                let sentence = format!("{} was named before: put both together", address.value);
                return Err(address.location.error(sentence).into());
            }
        }
        Ok(Config { from, family, by, neighbours })
    })?;
    Ok(Some(config))
}

fn neighbour(mut entry: Entry<'_>) -> Result<(Located<IpAddr>, String), Errors> {
    let location = entry.location();
    let address =
        entry.argument_with(ADDRESS, |word| word.parse::<IpAddr>().map_err(|_| "it is none"))?;
    entry.read_block(|block| {
        let xid: Located<String> = block.required("via")?;
        if !is_xid(&xid.value) {
            let sentence = format!(
                "`{}` is no XID: write its type, a hyphen, and 40 hexadecimal digits",
                xid.value
            );
            return Err(xid.location.error(sentence).into());
        }
        Ok((Located { value: address, location: location.clone() }, xid.value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "hid-a1e9156054e04fac899ae9f275132cdc07a5dbc4";

    fn config(text: &str) -> Config {
        read("t", &format!("translator {{ {text} }}")).unwrap().unwrap()
    }

    fn over(config: &Config, router: &str) -> Lead {
        config.lead_over([router.parse().unwrap()])
    }

    #[test]
    fn next_routers_are_called_by_their_addresses_unless_somebody_says_otherwise() {
        let text = format!("from ebgp; neighbour 192.0.2.1 {{ via {HOST}; }}");
        let one = config(&text);
        let zeros = "0".repeat(32);
        assert_eq!(over(&one, "192.0.2.1"), Lead::Via(vec![HOST.to_owned()]));
        assert_eq!(over(&one, "192.0.2.2"), Lead::Via(vec![format!("x4id-c0000202{zeros}")]));
        assert_eq!(over(&one, "fe80::1"), Lead::Nowhere, "it names nobody on other links");
        let tunnel = config("from ebgp; via u4id; tunnel-port 5;");
        let name = format!("u4id-c00002020005{}", "0".repeat(28));
        assert_eq!(over(&tunnel, "192.0.2.2"), Lead::Via(vec![name]));
        let both = ["192.0.2.2", "192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let names = vec![HOST.to_owned(), format!("x4id-c0000202{zeros}")];
        assert_eq!(one.lead_over(both), Lead::Via(names), "in order, each once");
    }

    #[test]
    fn only_what_others_can_mean_is_translated() {
        let (v4, v6) = (config("from kernel;"), config("from kernel; family ipv6;"));
        let takes = |config: &Config, net: &str| config.takes(&net.parse().unwrap());
        for net in ["0.0.0.0/0", "10.0.0.0/8", "192.0.2.1/32"] {
            assert!(takes(&v4, net) && !takes(&v6, net), "{net}");
        }
        for net in
            ["127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "0.0.0.0/32"]
        {
            assert!(!takes(&v4, net), "{net}");
        }
        assert!(takes(&v6, "::/0") && takes(&v6, "2001:db8::/32"));
        assert!(!takes(&v6, "fe80::/64") && !takes(&v6, "ff00::/8") && !takes(&v6, "::1/128"));
    }

    #[test]
    fn mistakes_have_a_place_and_a_way_out() {
        for (text, part) in [
            ("via x4id;", "from ebgp ibgp connected"),
            ("from kernel ebgp;", "either `kernel` or protocols"),
            ("from ebgp; via x5id;", "x5id"),
            ("from ebgp; neighbour ten { via hid-1; }", "ten"),
            ("from ebgp; neighbour 10.0.0.1 { via hid-1; }", "40 hexadecimal digits"),
            ("from ebgp; tunnel-port 0;", "tunnel-port"),
            ("from ebgp; to lpm;", "to"),
        ] {
            let error = read("t", &format!("translator {{ {text} }}")).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
        assert_eq!(read("t", "").unwrap(), None);
    }
}
