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

/// Most identifiers of a link. Each takes a bit of all filters.
pub const MAX_TAGS: u32 = 8;

/// The identifier of the link called `name`, with `bits` one bits (at least 1, at most
/// [`MAX_LINK_BITS`]).
///
/// The same name gives the same identifier everywhere, so whoever computes a tree needs to know
/// names only. The positions are the bytes below 160 of SHA-256 over a counter (32 bits, from zero)
/// and the name, each position once, until there are enough: identifiers with more bits hold those
/// with fewer. Bit 0 is the most significant bit of the first byte.
#[must_use]
pub fn link_identifier(name: &str, bits: u32) -> Xid {
    tagged_identifier(name, bits, 0, 1)
}

/// The identifier of the link called `name` for the tag `tag` of `tags` (at most [`MAX_TAGS`], numbered from 0).
/// One tag is [`link_identifier`].
///
/// With more there is one bit besides `bits`: the bit 159 − `tag` stands for the tag. All others are bytes below
/// 160 − `tags` of the same hashes, whose counters begin at `tag` · 2²⁴.
#[must_use]
pub fn tagged_identifier(name: &str, bits: u32, tag: u32, tags: u32) -> Xid {
    let (bits, tags) = (bits.clamp(1, MAX_LINK_BITS), tags.clamp(1, MAX_TAGS));
    let tag = tag.min(tags - 1);
    let reserved = if tags > 1 { tags } else { 0 };
    let mut id = [0; ID_LEN];
    let mut found = 0;
    for position in positions(name, tag, FILTER_BITS - reserved) {
        found += u32::from(set(&mut id, position));
        if found == bits {
            break;
        }
    }
    if tags > 1 {
        set(&mut id, FILTER_BITS - 1 - tag);
    }
    Xid::new(XidType::ZF, id)
}

/// Sets a bit; false if it was set.
fn set(id: &mut [u8; ID_LEN], position: u32) -> bool {
    let (byte, mask) = (&mut id[position as usize / 8], 0x80 >> (position % 8));
    let is_new = *byte & mask == 0;
    *byte |= mask;
    is_new
}

/// An endless sequence of bit positions, all below `end`, that `name` stands for.
fn positions(name: &str, tag: u32, end: u32) -> impl Iterator<Item = u32> {
    let block = move |counter: u32| -> [u8; 32] {
        Sha256::new().chain_update(counter.to_be_bytes()).chain_update(name).finalize().into()
    };
    (tag << 24..).flat_map(block).map(u32::from).filter(move |position| *position < end)
}

/// The filter with the fewest one bits that holds all links with these names, and its tag: of those with the
/// same, that of the first tag.
#[must_use]
pub fn best_filter<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    bits: u32,
    tags: u32,
) -> (u32, Xid) {
    let filter = |tag| {
        let links: Vec<_> =
            names.clone().map(|name| tagged_identifier(name, bits, tag, tags)).collect();
        (tag, union(&links))
    };
    let all = (1..tags.clamp(1, MAX_TAGS)).map(filter);
    all.fold(filter(0), |best, other| if fill(&other.1) < fill(&best.1) { other } else { best })
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

/// Pieces of five bits that an identifier is cut into.
pub(crate) const PIECES: usize = FILTER_BITS as usize / 5;

/// The bits of an identifier, in words that are compared at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits([u64; 3]);

impl Bits {
    pub(crate) fn of(xid: &Xid) -> Self {
        let mut padded = [0; 24];
        padded[..ID_LEN].copy_from_slice(&xid.id);
        let (words, _) = padded.as_chunks::<8>();
        Self([0, 1, 2].map(|index: usize| u64::from_le_bytes(words[index])))
    }

    /// All bits, five in each number.
    pub(crate) fn pieces(self) -> [u8; PIECES] {
        let [low, middle, high] = self.0;
        // Words that begin with pieces 0, 12 and 24, because pieces lie across the borders of the others.
        let words = [low, middle << 4 | low >> 60, high << 8 | middle >> 56];
        std::array::from_fn(|piece| {
            let (word, first) = (words[piece / 12], piece / 12 * 12);
            (word >> (5 * (piece - first)) & 0x1f) as u8
        })
    }

    /// Where the one bits are, ascending.
    pub(crate) fn positions(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, bits)| {
            let rest = std::iter::successors(Some(bits), |rest| Some(rest & rest.wrapping_sub(1)));
            let bits = rest.take_while(|rest| *rest != 0);
            bits.map(move |rest| 64 * word + rest.trailing_zeros() as usize)
        })
    }

    pub(crate) fn has(self, position: usize) -> bool {
        self.0[position / 64] >> (position % 64) & 1 == 1
    }

    /// The same without one of the bits.
    pub(crate) fn without(mut self, position: usize) -> Self {
        self.0[position / 64] &= !(1 << (position % 64));
        self
    }

    /// 64 bits from each of the positions 0, 32, 64 and 96 on, that of the position in the lowest place.
    pub(crate) fn windows(self) -> [u64; 4] {
        let [low, middle, high] = self.0;
        [low, low >> 32 | middle << 32, middle, middle >> 32 | high << 32]
    }

    pub(crate) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == [0; 3]
    }

    /// Whether all bits of `link` are set here: the link is in this filter. What an [`Index`](crate::index::Index) finds
    /// is held against it.
    #[cfg(test)]
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
    const EXPECTED_TAGGED: [&str; 2] = [
        "zf-8000000000000000800400010008000000000001",
        "zf-0000000000100000180000000020000000020080",
    ];
    const EXPECTED_SIXTEEN: &str = "zf-800004080000480081040401818a080000000000";

    /// Worked out likewise.
    #[test]
    fn a_tagged_identifier_never_changes() {
        let text = |tag, tags| tagged_identifier("r1-r2", 5, tag, tags).to_string();
        assert_eq!(text(0, 1), EXPECTED_FIVE);
        assert_eq!([text(0, 8), text(7, 8)], EXPECTED_TAGGED);
    }

    #[test]
    fn the_best_of_several_filters_has_fewer_bits() {
        let names = |tree: u32| (0..22).map(move |n| format!("tree {tree} link {n}"));
        let mean = |tags| {
            let fill_of = |tree| {
                let names: Vec<_> = names(tree).collect();
                f64::from(fill(&best_filter(names.iter().map(String::as_str), 5, tags).1))
            };
            (0..200).map(fill_of).sum::<f64>() / 200.0
        };
        // The best of eight lies 1.4 standard deviations below the mean, some 5 bits; the tag costs one, and so
        // many places less are worth another.
        assert!((79.0..82.0).contains(&mean(1)), "{}", mean(1));
        assert!((73.0..77.5).contains(&mean(8)), "{}", mean(8));
    }

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

    #[test]
    fn every_bit_is_in_one_piece_and_in_a_place_of_its_own() {
        for bit in 0..160 {
            let mut id = [0; 20];
            id[bit / 8] = 1 << (bit % 8);
            let mut expected = [0; PIECES];
            expected[bit / 5] = 1 << (bit % 5);
            assert_eq!(Bits::of(&zf(id)).pieces(), expected, "{bit}");
        }
    }

    #[test]
    fn a_bit_is_where_its_position_says() {
        let of = |positions: &[usize]| {
            let mut id = [0; 20];
            positions.iter().for_each(|at| id[at / 8] |= 1 << (at % 8));
            Bits::of(&zf(id))
        };
        let all = [0, 5, 31, 32, 63, 64, 95, 96, 127, 128, 159];
        let bits = of(&all);
        assert_eq!(bits.positions().collect::<Vec<_>>(), all);
        for at in 0..160 {
            assert_eq!(bits.has(at), all.contains(&at), "{at}");
            let rest: Vec<_> = all.into_iter().filter(|other| *other != at).collect();
            assert_eq!(bits.without(at), of(&rest), "{at}");
        }
        for (first, window) in [0, 32, 64, 96].into_iter().zip(bits.windows()) {
            for at in 0..64 {
                assert_eq!(window >> at & 1 == 1, bits.has(first + at), "{first} + {at}");
            }
        }
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
            let pieces = Bits::of(&zf(filter)).pieces().map(|piece| piece.count_ones());
            prop_assert_eq!(pieces.iter().sum::<u32>(), count);
        }

        #[test]
        fn identifiers_have_their_bits_and_are_nested(name in ".{0,40}", bits in 1u32..=16) {
            let link = link_identifier(&name, bits);
            prop_assert_eq!(fill(&link), bits);
            let wider = link_identifier(&name, bits + 1);
            prop_assert!(Bits::of(&wider).holds(Bits::of(&link)));
        }

        #[test]
        fn a_filter_holds_links_of_its_tag_only(
            names in prop::collection::vec("[a-z]{1,8}", 1..20),
            bits in 1u32..=16,
            tags in 2u32..=MAX_TAGS,
        ) {
            let of = |tag| {
                let links = names.iter().map(|name| tagged_identifier(name, bits, tag, tags));
                links.collect::<Vec<_>>()
            };
            for tag in 0..tags {
                let filter = Bits::of(&union(&of(tag)));
                for other in 0..tags {
                    for link in of(other) {
                        prop_assert_eq!(fill(&link), bits + 1);
                        prop_assert_eq!(filter.holds(Bits::of(&link)), tag == other);
                    }
                }
            }
            let (tag, best) = best_filter(names.iter().map(String::as_str), bits, tags);
            prop_assert_eq!(best, union(&of(tag)));
            let fills: Vec<_> = (0..tags).map(|tag| fill(&union(&of(tag)))).collect();
            prop_assert_eq!(Some(tag as usize), fills.iter().position(|of| Some(of) == fills.iter().min()));
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
