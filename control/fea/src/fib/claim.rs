//! What the kernel has of a table, while its owner tells everything anew: which of it is claimed.
//!
//! It is a sorted list, in the order in which the kernel tells of routes, and lives from `begin` to `end` only.

use std::cmp::Ordering;
use std::sync::Arc;

use weft_runtime::{KernelRoute, RouteTarget};

use super::queue::Key;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Claim {
    is_ipv6: bool,
    there: Vec<There>,
    is_sorted: bool,
    /// Those before it were looked at in [`Claim::unclaimed`].
    seen: usize,
}

/// A route that the kernel has.
#[derive(Debug)]
struct There {
    key: Key,
    is_claimed: bool,
    /// Nothing if it is of a kind that nobody tells.
    target: Option<Arc<RouteTarget>>,
}

/// What a wanted route is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there as it is wanted.
    Same,
    /// It is there, but otherwise.
    Other,
    /// There is none, or it was claimed before.
    Nothing,
}

impl Claim {
    pub(crate) fn new(is_ipv6: bool) -> Self {
        Self { is_ipv6, there: Vec::new(), is_sorted: true, seen: 0 }
    }

    /// What the kernel has told so far is void.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.is_ipv6);
    }

    /// The kernel tells of routes.
    pub(crate) fn push(&mut self, routes: Vec<KernelRoute>) {
        for KernelRoute { destination, metric, target } in routes {
            let key = Key { destination, metric };
            let last = self.there.last();
            self.is_sorted &=
                last.is_none_or(|last| order(self.is_ipv6, &last.key, &key) != Ordering::Greater);
            self.there.push(There { key, is_claimed: false, target });
        }
    }

    /// The kernel has told everything.
    pub(crate) fn complete(&mut self) {
        if !std::mem::replace(&mut self.is_sorted, true) {
            // Some order of which nothing is known here.
            let is_ipv6 = self.is_ipv6;
            self.there.sort_by(|one, other| order(is_ipv6, &one.key, &other.key));
        }
    }

    /// A route is wanted.
    pub(crate) fn claim(&mut self, key: &Key, target: &RouteTarget) -> Found {
        let Some(there) = self.find(key) else { return Found::Nothing };
        if std::mem::replace(&mut there.is_claimed, true) {
            return Found::Nothing;
        }
        match &there.target {
            Some(found) if target.became(found) => Found::Same,
            _ => Found::Other,
        }
    }

    /// A route is deleted by its owner, who knows of it.
    pub(crate) fn release(&mut self, key: &Key) {
        if let Some(there) = self.find(key) {
            there.is_claimed = true;
        }
    }

    fn find(&mut self, key: &Key) -> Option<&mut There> {
        let is_ipv6 = self.is_ipv6;
        let place = self.there.binary_search_by(|there| order(is_ipv6, &there.key, key)).ok()?;
        self.there.get_mut(place)
    }

    /// The next routes that nobody has claimed, of at most so many that are looked at; `None` behind the last one.
    pub(crate) fn unclaimed(&mut self, most: usize) -> Option<Vec<Key>> {
        let rest = self.there.get_mut(self.seen..).filter(|rest| !rest.is_empty())?;
        let count = most.min(rest.len());
        self.seen += count;
        let piece = rest[..count].iter_mut();
        // What goes is not there any more for who wants it later.
        let is_left = |there: &mut There| !std::mem::replace(&mut there.is_claimed, true);
        Some(piece.filter_map(|there| is_left(there).then_some(there.key)).collect())
    }
}

/// As the kernel tells: by addresses, and of one address for IPv4 the longest prefix first and for IPv6 the shortest.
fn order(is_ipv6: bool, one: &Key, other: &Key) -> Ordering {
    let lengths = || {
        let by_length = one.destination.prefix_length.cmp(&other.destination.prefix_length);
        if is_ipv6 { by_length } else { by_length.reverse() }
    };
    let by_address = one.destination.ip.cmp(&other.destination.ip);
    by_address.then_with(lengths).then_with(|| one.metric.cmp(&other.metric))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;
    use weft_runtime::InterfaceAddress;

    use super::*;

    fn key(is_ipv6: bool, number: u8, prefix_length: u8, metric: u32) -> Key {
        let ip = match is_ipv6 {
            true => IpAddr::V6(Ipv6Addr::from_bits(u128::from(number) << 100)),
            false => IpAddr::V4(Ipv4Addr::from_bits(u32::from(number) << 24)),
        };
        Key { destination: InterfaceAddress { ip, prefix_length }, metric }
    }

    fn target(number: u8) -> RouteTarget {
        [RouteTarget::Blackhole, RouteTarget::Prohibit][usize::from(number % 2)].clone()
    }

    proptest! {
        /// In whatever order the kernel tells, what is wanted is found, and the rest is what nobody wanted.
        #[test]
        fn everything_is_found_and_the_rest_is_left(
            is_ipv6: bool,
            there in prop::collection::btree_map((0..6u8, 8..11u8, 0..3u32), 0..3u8, 0..40),
            wanted in prop::collection::vec(((0..6u8, 8..11u8, 0..3u32), 0..2u8), 0..40),
            order in any::<u64>(),
        ) {
            let of = |(number, length, metric): (u8, u8, u32)| key(is_ipv6, number, length, metric);
            let mut routes: Vec<_> = there
                .iter()
                .map(|(what, kind)| KernelRoute {
                    destination: of(*what).destination,
                    metric: what.2,
                    target: (*kind < 2).then(|| Arc::new(target(*kind))),
                })
                .collect();
            let turn = order as usize % routes.len().max(1);
            routes.rotate_left(turn);
            let mut claim = Claim::new(is_ipv6);
            for piece in routes.chunks(7) {
                claim.push(piece.to_vec());
            }
            claim.complete();
            let mut left = there.clone();
            for (what, kind) in wanted {
                let expected = match left.remove(&what) {
                    None => Found::Nothing,
                    Some(there) if there == kind => Found::Same,
                    Some(_) => Found::Other,
                };
                prop_assert_eq!(claim.claim(&of(what), &target(kind)), expected);
            }
            let mut unclaimed = Vec::new();
            while let Some(some) = claim.unclaimed(3) {
                unclaimed.extend(some);
            }
            unclaimed.sort();
            let mut left: Vec<_> = left.keys().map(|what| of(*what)).collect();
            left.sort();
            prop_assert_eq!(unclaimed, left);
        }
    }
}
