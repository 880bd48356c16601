//! What the configuration says of neighbours that it does not name: whoever connects from a network is one.
//!
//! Reference: RFC 4271 §8.1.1 and §8.2.1 ("unconfigured peers", which an implementation may accept).

use ipnet::IpNet;
use weft_config::{Block, Errors, Form, gather};

use super::filters::Filters;
use super::{Common, PeerConfig, statements};

/// How many there may be at a time if nothing is said.
const MOST: usize = 100;

const NETWORK: Form = Form { what: "a network of IP", example: "203.0.113.0/24" };

/// A network, without bits behind its length.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text.parse().map_err(|error| format!("{error}"))?;
    match net == net.trunc() {
        true => Ok(net),
        false => Err(format!("bits behind the length must be zero, as in {}", net.trunc())),
    }
}

/// A network of neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) net: IpNet,
    /// How many of them there may be.
    pub(crate) most: usize,
    /// What each of them is.
    pub(crate) peer: PeerConfig,
}

/// Reads all of them; those with the longest prefixes are first.
pub(super) fn read(
    block: &mut Block<'_>,
    common: Common<'_>,
    filters: &mut Filters<'_>,
) -> Result<Vec<Range>, Errors> {
    let entries = block.many("range").into_iter().map(|mut entry| {
        let net: IpNet = entry.argument_with(NETWORK, network)?;
        let range = entry.read_block(|block| {
            let most = block.leaf_in("limit", 1..=10_000)?.unwrap_or(MOST);
            let peer = PeerConfig {
                passive: true,
                ..statements(block, net.addr(), (common, true), filters)?
            };
            Ok(Range { net, most, peer })
        })?;
        Ok::<_, Errors>((entry, range))
    });
    let all = gather(entries.collect::<Vec<_>>())?;
    for (place, (entry, range)) in all.iter().enumerate() {
        if all[..place].iter().any(|(_, other)| other.net == range.net) {
            let sentence =
                format!("the range {} was described before: put both together", range.net);
            return Err(entry.error_at(1, sentence).into());
        }
    }
    let mut ranges: Vec<_> = all.into_iter().map(|(_, range)| range).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.net.prefix_len()));
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::read;
    use crate::fsm::PeerAs;
    use crate::policy::Filter;
    use crate::wire::Neighbour;

    #[test]
    fn the_smallest_range_around_an_address_counts() {
        let text = "bgp { as 65000; router-id 192.0.2.1;
            range 10.0.0.0/8 { as external; import all; }
            range 10.1.0.0/16 { as 65001; limit 3; md5-key hush; } }";
        let config = read("t", text).unwrap().unwrap();
        let range = |address: [u8; 4]| config.range(IpAddr::from(address));
        let wide = range([10, 2, 0, 1]).unwrap();
        assert_eq!((wide.peer.remote_as, wide.most), (PeerAs::External, 100));
        assert!(
            wide.peer.passive
                && wide.peer.import == Filter::All
                && wide.peer.neighbour == Neighbour::External
        );
        let narrow = range([10, 1, 0, 1]).unwrap();
        assert_eq!((narrow.peer.remote_as, narrow.most), (PeerAs::Exactly(65001), 3));
        assert_eq!(range([192, 0, 2, 1]), None);
        for (text, part) in [
            ("range 10.0.0.0/8 { as any; }", "as"),
            ("range 10.0.0.0/8 { as 0; }", "as"),
            ("range 10.0.0.0/8 { limit 3; }", "as"),
            ("range 10.0.0.0/8 { as 1; } range 10.0.0.0/8 { as 1; }", "before"),
            ("peer 10.0.0.1 { as external; }", "external"),
        ] {
            let text = format!("bgp {{ as 1; router-id 192.0.2.1; {text} }}");
            let error = read("t", &text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{error}");
        }
    }
}
