//! Thousands of links, beside a list that is searched from its beginning.

use std::collections::BTreeSet;

use weft_base::Random;
use weft_xip::principal::Branch;
use weft_xip::{Xid, XidType};

use crate::codes::Codes;
use crate::filter::Bits;
use crate::index::Index;
use crate::links::Target;
use crate::list::MatchList;
use crate::rows::Rows;
use crate::{FILTER_BITS, link_identifier};

/// The list, searched in each of the ways, and all that is in it.
struct Twin {
    lists: [MatchList; 2],
    entries: BTreeSet<(Target, Xid)>,
}

impl Twin {
    fn new() -> Self {
        let indices = [Index::Rows(Rows::default()), Index::Codes(Codes::default())];
        Self { lists: indices.map(MatchList::new), entries: BTreeSet::new() }
    }

    fn insert(&mut self, link: Xid, target: Target) {
        if self.entries.insert((target, link)) {
            self.lists.iter_mut().for_each(|list| list.insert(link, target));
        }
    }

    fn remove(&mut self, link: Xid, target: Target) {
        if self.entries.remove(&(target, link)) {
            self.lists.iter_mut().for_each(|list| list.remove(link, target));
        }
    }

    fn check(&self, filter: Xid) {
        let bits = Bits::of(&filter);
        let held = self.entries.iter().filter(|(_, link)| bits.holds(Bits::of(link)));
        let mut expected: Vec<_> = held.map(|(target, _)| *target).collect();
        expected.dedup();
        for list in &self.lists {
            let mut found = Vec::new();
            list.branches(bits, &mut found);
            let mut found: Vec<Target> = found.iter().map(Branch::target).collect();
            let first = found.first().copied();
            found.sort();
            assert_eq!(found, expected);
            if found.contains(&None) {
                assert_eq!(first, Some(None), "this node first");
            }
            assert!(list.iter().eq(self.entries.iter().map(|(target, link)| (*link, *target))));
        }
    }
}

fn target(n: u64) -> Target {
    let mut id = [0; 20];
    id[..8].copy_from_slice(&n.to_be_bytes());
    (n > 0).then_some(Xid::new(XidType::HID, id))
}

/// A filter with this many one bits.
fn filter(fill: u32, random: &mut Random) -> Xid {
    let mut id = [0_u8; 20];
    while id.iter().map(|byte| byte.count_ones()).sum::<u32>() < fill {
        let bit = random.below(u64::from(FILTER_BITS)) as usize;
        id[bit / 8] |= 1 << (bit % 8);
    }
    Xid::new(XidType::ZF, id)
}

fn link(n: u64) -> Xid {
    link_identifier(&format!("link {n}"), 5)
}

#[test]
fn links_come_and_go_by_the_thousand() {
    let mut random = Random::from_seed(4);
    for gateways in [1, 3, 70, 100_000] {
        let mut twin = Twin::new();
        // More come than go, then more go than come.
        for (come, go) in [(3, 1), (1, 3)] {
            for step in 0..3000 {
                for _ in 0..come {
                    twin.insert(link(random.below(4000)), target(random.below(gateways)));
                }
                for _ in 0..go {
                    let any = random.below(twin.entries.len() as u64 + 1) as usize;
                    let Some((target, link)) = twin.entries.iter().nth(any).copied() else {
                        continue;
                    };
                    twin.remove(link, target);
                }
                if step % 50 == 0 {
                    twin.check(filter((step / 50 * 3) % 161, &mut random));
                }
            }
        }
    }
}

#[test]
fn links_come_in_order_or_against_it() {
    let mut random = Random::from_seed(5);
    for backwards in [false, true] {
        let mut twin = Twin::new();
        for n in 0..2000 {
            let n = if backwards { 2000 - n } else { n };
            twin.insert(link(n), target(n));
        }
        (0..=160).for_each(|fill| twin.check(filter(fill, &mut random)));
        for n in 0..2000 {
            twin.remove(link(n), target(n));
            if n % 100 == 0 {
                twin.check(filter(80, &mut random));
            }
        }
    }
}
