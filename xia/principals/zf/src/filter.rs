//! Bloom filters of 160 bits, and the link identifiers that are put into them.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009,
//! §3 (link identifiers, filters, false positives); Machado et al., "Linux XIA", §5.3 (the filter is
//! the XID).
//!
//! A link identifier has k bits set of m = 160. The filter of a multicast tree is the union of the
//! identifiers of its links, so it needs no state in the routers; but now and then all bits of a
//! link that is not in the tree are set by others. Such a *false positive* happens with the
//! probability ρ^k, where ρ is the fraction of bits that are set ([`false_positive_rate`]). With
//! k = 5 and a filter half full it is 3 %, and a filter is half full with 22 links
//! ([`expected_fill`]).

use sha2::{Digest, Sha256};
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// Bits of a filter, and of a link identifier (m).
pub const FILTER_BITS: u32 = 8 * ID_LEN as u32;

/// One bits of a generated link identifier (k), unless configured.
pub const DEFAULT_LINK_BITS: u32 = 5;

/// Most one bits of a generated link identifier. More would fill a filter with a few links.
pub const MAX_LINK_BITS: u32 = 16;

/// The identifier of the link called `name`, with `bits` one bits (at least 1, at most
/// [`MAX_LINK_BITS`]).
///
/// The same name gives the same identifier everywhere, so whoever computes a tree needs to know
/// names only. The positions are the bytes below 160 of SHA-256 over a counter (32 bits, from zero)
/// and the name, each position once, until there are enough: identifiers with more bits hold those
/// with fewer. Bit 0 is the most significant bit of the first byte.
#[must_use]
pub fn link_identifier(name: &str, bits: u32) -> Xid {
    let bits = bits.clamp(1, MAX_LINK_BITS);
    let mut id = [0; ID_LEN];
    let mut found = 0;
    for position in positions(name) {
        let (byte, mask) = (usize::from(position / 8), 0x80 >> (position % 8));
        if id[byte] & mask == 0 {
            id[byte] |= mask;
            found += 1;
        }
        if found == bits {
            break;
        }
    }
    Xid::new(XidType::ZF, id)
}

/// An endless sequence of bit positions that `name` stands for.
fn positions(name: &str) -> impl Iterator<Item = u8> {
    let block = move |counter: u32| -> [u8; 32] {
        Sha256::new().chain_update(counter.to_be_bytes()).chain_update(name).finalize().into()
    };
    (0..).flat_map(block).filter(|position| u32::from(*position) < FILTER_BITS)
}

/// The filter that holds all `links`: their union. No links give the empty filter.
#[must_use]
pub fn union(links: &[Xid]) -> Xid {
    let mut id = [0; ID_LEN];
    for link in links {
        id.iter_mut().zip(link.id).for_each(|(byte, other)| *byte |= other);
    }
    Xid::new(XidType::ZF, id)
}

/// Number of one bits of a filter, 0 to [`FILTER_BITS`].
#[must_use]
pub fn fill(filter: &Xid) -> u32 {
    Bits::of(filter).count()
}

/// The fraction of one bits to expect of a filter with `links` links of `bits` one bits each.
#[must_use]
pub fn expected_fill(links: u32, bits: u32) -> f64 {
    let miss = 1.0 - f64::from(bits.min(FILTER_BITS)) / f64::from(FILTER_BITS);
    1.0 - miss.powi(links.min(i32::MAX as u32) as i32)
}

/// The probability that `filter` matches a link of `bits` one bits that was not put into it.
#[must_use]
pub fn false_positive_rate(filter: &Xid, bits: u32) -> f64 {
    let fraction = f64::from(fill(filter)) / f64::from(FILTER_BITS);
    fraction.powi(bits.min(FILTER_BITS) as i32)
}

/// The bits of an identifier, in words that are compared at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits([u64; 3]);

impl Bits {
    pub(crate) fn of(xid: &Xid) -> Self {
        let mut padded = [0; 24];
        padded[..ID_LEN].copy_from_slice(&xid.id);
        let (words, _) = padded.as_chunks::<8>();
        Self([0, 1, 2].map(|index: usize| u64::from_ne_bytes(words[index])))
    }

    pub(crate) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == [0; 3]
    }

    /// Whether all bits of `link` are set here: the link is in this filter.
    pub(crate) fn holds(self, link: Bits) -> bool {
        // Without branches, because a filter is compared with many links in a row.
        let missing =
            (link.0[0] & !self.0[0]) | (link.0[1] & !self.0[1]) | (link.0[2] & !self.0[2]);
        missing == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zf(id: [u8; 20]) -> Xid {
        Xid::new(XidType::ZF, id)
    }

    /// The definition, bit by bit.
    fn holds_bit_by_bit(filter: &[u8; 20], link: &[u8; 20]) -> bool {
        (0..160).all(|bit| {
            let is_set = |id: &[u8; 20]| id[bit / 8] & (0x80 >> (bit % 8)) != 0;
            !is_set(link) || is_set(filter)
        })
    }

    /// Worked out from the rule in [`link_identifier`]'s text with another SHA-256.
    #[test]
    fn an_identifier_never_changes() {
        let text = |name, bits| link_identifier(name, bits).to_string();
        assert_eq!(text("r1-r2", 5), EXPECTED_FIVE);
        assert_eq!(text("r1-r2", 16), EXPECTED_SIXTEEN);
    }

    const EXPECTED_FIVE: &str = "zf-8000000000000000800400010008000000000000";
    const EXPECTED_SIXTEEN: &str = "zf-800004080000480081040401818a080000000000";

    #[test]
    fn the_number_of_bits_is_kept_within_its_range() {
        assert_eq!(fill(&link_identifier("x", 0)), 1);
        assert_eq!(fill(&link_identifier("x", u32::MAX)), MAX_LINK_BITS);
    }

    #[test]
    fn positions_are_spread_over_the_whole_identifier() {
        let mut count = [0u32; 160];
        for link in 0..4000 {
            let id = link_identifier(&format!("link {link}"), 5).id;
            for (bit, count) in count.iter_mut().enumerate() {
                *count += u32::from(id[bit / 8] & (0x80 >> (bit % 8)) != 0);
            }
        }
        // 20,000 bits in 160 places are 125 each; five standard deviations are 55.
        assert!(count.iter().all(|count| (70..180).contains(count)), "{count:?}");
    }

    #[test]
    fn a_filter_of_22_links_is_half_full_as_expected() {
        let links: Vec<_> = (0..22).map(|n| link_identifier(&format!("l{n}"), 5)).collect();
        assert!((expected_fill(22, 5) - 0.5).abs() < 0.01);
        assert!((70..=90).contains(&fill(&union(&links))));
        assert_eq!((expected_fill(0, 5), expected_fill(1, 160)), (0.0, 1.0));
    }

    #[test]
    fn false_positives_are_as_rare_as_expected() {
        let links: Vec<_> = (0..22).map(|n| link_identifier(&format!("l{n}"), 5)).collect();
        let filter = union(&links);
        let others = 20_000;
        let is_in =
            |n: &u32| Bits::of(&filter).holds(Bits::of(&link_identifier(&format!("other {n}"), 5)));
        let measured = (0..others).filter(is_in).count() as f64 / f64::from(others);
        let expected = false_positive_rate(&filter, 5);
        assert!((measured / expected - 1.0).abs() < 0.2, "{measured} instead of {expected}");
        assert_eq!(false_positive_rate(&union(&[]), 5), 0.0);
        assert_eq!(false_positive_rate(&zf([0xff; 20]), 5), 1.0);
    }

    proptest! {
        #[test]
        fn matching_is_what_the_definition_says(
            filter in any::<[u8; 20]>(),
            link in any::<[u8; 20]>(),
            sparse in any::<[u8; 20]>(),
            within in any::<bool>(),
        ) {
            // Random links hardly ever match; take some from within the filter.
            let mut link = link;
            link.iter_mut().zip(sparse).for_each(|(byte, other)| *byte &= other);
            if within { link.iter_mut().zip(filter).for_each(|(byte, other)| *byte &= other); }
            let fast = Bits::of(&zf(filter)).holds(Bits::of(&zf(link)));
            prop_assert_eq!(fast, holds_bit_by_bit(&filter, &link));
            prop_assert!(fast || !within);
            let count: u32 = filter.iter().map(|byte| byte.count_ones()).sum();
            prop_assert_eq!(fill(&zf(filter)), count);
            prop_assert_eq!(Bits::of(&zf(filter)).is_empty(), count == 0);
        }

        #[test]
        fn identifiers_have_their_bits_and_are_nested(name in ".{0,40}", bits in 1u32..=16) {
            let link = link_identifier(&name, bits);
            prop_assert_eq!(fill(&link), bits);
            let wider = link_identifier(&name, bits + 1);
            prop_assert!(Bits::of(&wider).holds(Bits::of(&link)));
        }

        #[test]
        fn a_union_holds_every_link(names in prop::collection::vec("[a-z]{1,8}", 0..40)) {
            let links: Vec<_> = names.iter().map(|name| link_identifier(name, 5)).collect();
            let filter = union(&links);
            prop_assert!(links.iter().all(|link| Bits::of(&filter).holds(Bits::of(link))));
            prop_assert!(fill(&filter) <= 5 * links.len() as u32);
        }
    }
}
