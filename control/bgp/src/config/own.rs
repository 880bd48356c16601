//! What the configuration says of networks of this router's own.
//!
//! ```text
//! network 192.0.2.0/24;
//! network 198.51.100.0/24 { always on; }
//! redistribute static { policy to-everybody; }
//! ```
//!
//! Reference: RFC 4271 §9.4 (originating BGP routes).

use std::collections::BTreeMap;

use ipnet::IpNet;
use weft_config::{Block, Entry, Errors, Form, Located, Name, gather};
use weft_routing::ip::is_destination;

use super::filters::Filters;
use super::range::network;
use crate::policy::Filter;
use crate::to_rib::PROTOCOLS;
use crate::wire::Neighbour;

const NETWORK: Form = Form { what: "a network of IP", example: "192.0.2.0/24" };

/// One network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// Whether it is told without a route to it.
    pub(crate) always: bool,
    pub(crate) policy: Filter,
}

/// This router's own networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnConfig {
    pub(crate) networks: BTreeMap<IpNet, Network>,
    /// By the names of protocols.
    pub(crate) redistribute: BTreeMap<String, Filter>,
}

impl OwnConfig {
    /// Reads all that is said of them.
    pub(super) fn read(block: &mut Block<'_>, filters: &mut Filters<'_>) -> Result<Self, Errors> {
        let mut own = Self::default();
        let networks = block.many("network").into_iter().map(|entry| own.network(entry, filters));
        gather(networks.collect::<Vec<_>>())?;
        let others = block.many("redistribute").into_iter();
        gather(others.map(|entry| own.protocol(entry, filters)).collect::<Vec<_>>())?;
        Ok(own)
    }

    fn network(&mut self, mut entry: Entry<'_>, filters: &mut Filters<'_>) -> Result<(), Errors> {
        let net: IpNet = entry.argument_with(NETWORK, network)?;
        if !is_destination(&net) {
            let sentence = format!("{net} is no network that others could send packets to");
            return Err(entry.error_at(1, sentence).into());
        }
        let network = entry.optional_block()?.read(|block| {
            let always = block.leaf("always")?.unwrap_or(false);
            Ok(Network { always, policy: filters.read(block, "policy", Neighbour::Internal)? })
        })?;
        match self.networks.insert(net, network) {
            None => Ok(()),
            Some(_) => {
                let sentence = format!("the network {net} was described before: leave one out");
                Err(entry.error_at(1, sentence).into())
            }
        }
    }

    fn protocol(&mut self, mut entry: Entry<'_>, filters: &mut Filters<'_>) -> Result<(), Errors> {
        let name: Located<Name> = entry.argument("the protocol")?;
        let name = name.value.to_string();
        if name == super::STATEMENT || PROTOCOLS.iter().any(|(protocol, _)| *protocol == name) {
            let sentence = "routes of BGP are told anyway: `export` of a peer says which";
            return Err(entry.error_at(1, sentence).into());
        }
        let policy = entry
            .optional_block()?
            .read(|block| filters.read(block, "policy", Neighbour::Internal))?;
        match self.redistribute.insert(name, policy) {
            None => Ok(()),
            Some(_) => {
                let sentence = "this protocol was described before: put both together";
                Err(entry.error_at(1, sentence).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn what_is_said_is_read_and_mistakes_have_places() {
        let text = "policy { policy-statement p { then { accept; } } }
            bgp { as 1; router-id 192.0.2.1;
                network 192.0.2.0/24;
                network 2001:db8::/32 { always on; policy p; }
                redistribute static { policy p; }
                redistribute rip; }";
        let own = read("t", text).unwrap().unwrap().own;
        let said = own.networks.values().map(|one| (one.always, one.policy == Filter::All));
        assert_eq!(said.collect::<Vec<_>>(), [(false, true), (true, false)]);
        let said = own.redistribute.iter().map(|(name, one)| (&**name, *one == Filter::All));
        assert_eq!(said.collect::<Vec<_>>(), [("rip", true), ("static", false)]);
        // Both halves of everything, too.
        let halves = "bgp { as 1; router-id 192.0.2.1; network 0.0.0.0/1; network 128.0.0.0/1; }";
        assert_eq!(read("t", halves).unwrap().unwrap().own.networks.len(), 2);
        for (text, part) in [
            ("network 192.0.2.1/24;", "192.0.2.0/24"),
            ("network 224.0.0.0/4;", "no network that others"),
            ("network fe80::/64;", "no network that others"),
            ("network 192.0.2.0/24; network 192.0.2.0/24;", "leave one out"),
            ("network 192.0.2.0/24 { policy q; }", "there is no policy `q`"),
            ("network 192.0.2.0/24 { alwys on; }", "did you mean `always`?"),
            ("redistribute ebgp;", "told anyway"),
            ("redistribute bgp;", "told anyway"),
            ("redistribute rip; redistribute rip;", "put both together"),
        ] {
            let text = format!("bgp {{ as 1; router-id 192.0.2.1; {text} }}");
            let error = read("t", &text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
