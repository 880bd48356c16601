//! A set of attributes as it is stored: words without what it does not have, a quarter of what the attributes take.
//!
//! ```text
//! 0 what there is: see [`flag`]; the kind of the next hop in bits 8 to 10, ORIGIN in bits 11 and 12
//!   MED, LOCAL_PREF (1 each)
//!   next hop (1, 4 or 8)
//!   communities, extended ones, large ones: a count (1), then 1, 2 or 3 each
//!   path, as in [`AsPath`]: all that is left
//! ```
//!
//! Sets that are alike have the same words, so that they can be compared, and found, by them. What few routes have stands
//! beside them as it is.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::{AsPath, Attributes, LargeCommunity, NextHop, Origin, Rare, RareBox, Segments};

/// What there is.
mod flag {
    pub(super) const MED: u32 = 1;
    pub(super) const LOCAL_PREF: u32 = 1 << 1;
    pub(super) const COMMUNITIES: u32 = 1 << 2;
    pub(super) const EXTENDED: u32 = 1 << 3;
    pub(super) const LARGE: u32 = 1 << 4;
    pub(super) const ATOMIC: u32 = 1 << 5;
}

/// Where the kind of the next hop stands, and the number of words of each kind.
const HOP_SHIFT: u32 = 8;
const HOP_WORDS: [usize; 4] = [0, 1, 4, 8];
/// Where ORIGIN stands.
const ORIGIN_SHIFT: u32 = 11;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Packed {
    words: Box<[u32]>,
    rare: RareBox,
}

/// Writes the words of a set.
pub(super) fn pack(attributes: &Attributes, words: &mut Vec<u32>) {
    let Attributes {
        as_path,
        next_hop,
        origin,
        atomic_aggregate,
        med,
        local_pref,
        communities,
        extended_communities,
        large_communities,
        rare: _,
    } = attributes;
    words.clear();
    let hop = match next_hop {
        None => 0,
        Some(NextHop::V4(_)) => 1,
        Some(NextHop::V6 { link_local: None, .. }) => 2,
        Some(NextHop::V6 { link_local: Some(_), .. }) => 3,
    };
    let flags = [
        (flag::MED, med.is_some()),
        (flag::LOCAL_PREF, local_pref.is_some()),
        (flag::COMMUNITIES, !communities.is_empty()),
        (flag::EXTENDED, !extended_communities.is_empty()),
        (flag::LARGE, !large_communities.is_empty()),
        (flag::ATOMIC, *atomic_aggregate),
    ];
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set).fold(0, |all, (one, _)| all | one);
    words.push(flags | hop << HOP_SHIFT | u32::from(origin.code()) << ORIGIN_SHIFT);
    words.extend(med);
    words.extend(local_pref);
    match next_hop {
        None => {}
        Some(NextHop::V4(ip)) => words.push(ip.to_bits()),
        Some(NextHop::V6 { global, link_local }) => {
            words.extend(v6_words(*global));
            words.extend(link_local.iter().flat_map(|ip| v6_words(*ip)));
        }
    }
    if !communities.is_empty() {
        words.push(count(communities));
        words.extend_from_slice(communities);
    }
    if !extended_communities.is_empty() {
        words.push(count(extended_communities));
        words.extend(extended_communities.iter().flat_map(|one| [(one >> 32) as u32, *one as u32]));
    }
    if !large_communities.is_empty() {
        words.push(count(large_communities));
        let words_of = |one: &LargeCommunity| [one.administrator, one.first, one.second];
        words.extend(large_communities.iter().flat_map(words_of));
    }
    words.extend_from_slice(as_path.words());
}

/// How many; what comes in a message, and what policies add to it, is far less than a word can count.
fn count<T>(items: &[T]) -> u32 {
    items.len() as u32
}

fn v6_words(ip: Ipv6Addr) -> [u32; 4] {
    let bits = ip.to_bits();
    [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
}

impl Packed {
    /// Words of [`pack`], and what few routes have.
    pub(super) fn new(words: &[u32], rare: RareBox) -> Self {
        Self { words: words.into(), rare }
    }

    /// Whether it is this set.
    pub(super) fn is(&self, words: &[u32], rare: &RareBox) -> bool {
        *self.words == *words && self.rare == *rare
    }

    /// Its words, and what few routes have: all by which it can be found.
    pub(super) fn parts(&self) -> (&[u32], &RareBox) {
        (&self.words, &self.rare)
    }

    fn has(&self, flag: u32) -> bool {
        self.words[0] & flag > 0
    }

    /// Which entrance a neighbour prefers.
    pub(crate) fn med(&self) -> Option<u32> {
        self.has(flag::MED).then(|| self.words[1])
    }

    /// Which route this autonomous system prefers.
    pub(crate) fn local_pref(&self) -> Option<u32> {
        self.has(flag::LOCAL_PREF).then(|| self.words[1 + usize::from(self.has(flag::MED))])
    }

    /// How it came to be known.
    pub(crate) fn origin(&self) -> Origin {
        match self.words[0] >> ORIGIN_SHIFT & 3 {
            0 => Origin::Igp,
            1 => Origin::Egp,
            _ => Origin::Incomplete,
        }
    }

    /// The autonomous systems it came through.
    pub(crate) fn path(&self) -> Segments<'_> {
        Segments::of(self.lists().3)
    }

    /// Its communities (RFC 1997).
    pub(crate) fn communities(&self) -> &[u32] {
        self.lists().0
    }

    /// What few routes have.
    pub(crate) fn rare(&self) -> &Rare {
        self.rare.get()
    }

    /// Where the next hop stands, and what stands behind it.
    fn hop(&self) -> (&[u32], &[u32]) {
        let kind = (self.words[0] >> HOP_SHIFT & 3) as usize;
        let begin = 1 + usize::from(self.has(flag::MED)) + usize::from(self.has(flag::LOCAL_PREF));
        self.words[begin..].split_at(HOP_WORDS[kind])
    }

    /// Communities, extended ones, large ones, the path.
    fn lists(&self) -> (&[u32], &[u32], &[u32], &[u32]) {
        let (_, mut rest) = self.hop();
        let mut list = |flag, width| {
            if !self.has(flag) {
                return &[][..];
            }
            let (list, behind) = rest[1..].split_at(rest[0] as usize * width);
            rest = behind;
            list
        };
        let communities = list(flag::COMMUNITIES, 1);
        let extended = list(flag::EXTENDED, 2);
        let large = list(flag::LARGE, 3);
        (communities, extended, large, rest)
    }

    /// The attributes.
    pub(crate) fn unpack(&self) -> Attributes {
        let (hop, _) = self.hop();
        let (communities, extended, large, path) = self.lists();
        let extended = extended.as_chunks().0.iter();
        let large = large.as_chunks().0.iter();
        Attributes {
            as_path: AsPath::from_words(path),
            next_hop: next_hop(hop),
            origin: self.origin(),
            atomic_aggregate: self.has(flag::ATOMIC),
            med: self.med(),
            local_pref: self.local_pref(),
            communities: communities.into(),
            extended_communities: extended
                .map(|[high, low]| u64::from(*high) << 32 | u64::from(*low))
                .collect(),
            large_communities: large
                .map(|[administrator, first, second]| LargeCommunity {
                    administrator: *administrator,
                    first: *first,
                    second: *second,
                })
                .collect(),
            rare: self.rare.clone(),
        }
    }
}

fn next_hop(words: &[u32]) -> Option<NextHop> {
    if let [ip] = words {
        return Some(NextHop::V4(Ipv4Addr::from_bits(*ip)));
    }
    let mut addresses = words.as_chunks::<4>().0.iter().map(|words| {
        let bits = words.iter().fold(0, |bits, word| bits << 32 | u128::from(*word));
        Ipv6Addr::from_bits(bits)
    });
    let global = addresses.next()?;
    Some(NextHop::V6 { global, link_local: addresses.next() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::tests::attributes;

    proptest! {
        /// What is stored is what was put in, and what is read off without unpacking is the same; sets have the same
        /// words if and only if they are alike, apart from what few routes have.
        #[test]
        fn sets_are_what_they_were(one in attributes(true), other in attributes(true)) {
            let (mut words, mut others) = (Vec::new(), Vec::new());
            pack(&one, &mut words);
            pack(&other, &mut others);
            let packed = Packed::new(&words, one.rare.clone());
            prop_assert_eq!(&packed.unpack(), &one);
            prop_assert_eq!(packed.med(), one.med);
            prop_assert_eq!(packed.local_pref(), one.local_pref);
            prop_assert_eq!(packed.origin(), one.origin);
            prop_assert_eq!(packed.communities(), &*one.communities);
            prop_assert_eq!(packed.path().length(), one.as_path.length());
            prop_assert_eq!(packed.path().first(), one.as_path.first());
            prop_assert_eq!(packed.rare(), one.rare());
            let alike = one == Attributes { rare: one.rare.clone(), ..other };
            prop_assert_eq!(words == others, alike);
            prop_assert!(packed.is(&words, &one.rare));
        }
    }

    #[test]
    fn a_usual_set_takes_little() {
        let usual = Attributes {
            as_path: AsPath::from_sequence(&[1, 2, 3, 4]),
            next_hop: Some(NextHop::V4([192, 0, 2, 1].into())),
            ..Attributes::default()
        };
        let mut words = Vec::new();
        pack(&usual, &mut words);
        assert_eq!(words.len(), 7);
    }
}
