//! Links that come and go at a node of zFilter: a filter leads where a comparison with each link says.
//!
//! Input: operations of four bytes each: what to do, with which links, from one on as many as the fourth says.
#![no_main]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weft_base::{Instant, Random};
use weft_xia_zf::{ZFilter, link_identifier, union};
use weft_xip::principal::{Branch, Principal};
use weft_xip::{Xid, XidType};

/// As many as an operation can name.
const LINKS_THERE: u32 = 4 * 256 + 255;

/// A link and its gateway, or none if it is this node's.
type Entry = (Xid, Option<Xid>);

fuzz_target!(|input: &[u8]| {
    let mut node = Node::new();
    for operation in input.as_chunks::<4>().0.iter().take(300) {
        node.carry_out(*operation);
    }
    node.check(Xid::new(XidType::ZF, [0xff; 20]));
});

/// The principal, and what it was told.
struct Node {
    zf: ZFilter,
    entries: BTreeSet<Entry>,
}

/// The first links have few bits, so that filters hold many of them, and some are the same.
fn link(number: u16) -> Xid {
    static LINKS: LazyLock<Vec<Xid>> = LazyLock::new(|| {
        (0..LINKS_THERE).map(|n| link_identifier(&n.to_string(), 1 + n / 100)).collect()
    });
    LINKS[usize::from(number)]
}

fn gateway(number: u8) -> Option<Xid> {
    (number > 0).then(|| Xid::new(XidType::HID, [number; 20]))
}

impl Node {
    fn new() -> Self {
        let mut zf = ZFilter::new();
        let all = zf.set(Instant::ZERO, &["fill-limit", "160"], &mut Vec::new());
        all.expect("a filter may be full");
        Self { zf, entries: BTreeSet::new() }
    }

    fn carry_out(&mut self, [what, low, high, count]: [u8; 4]) {
        let first = u16::from(low) + 256 * u16::from(high % 4);
        let links = first..first + u16::from(count);
        match what % 4 {
            // Each link to a gateway of its own, or all to one.
            0 => links.for_each(|n| self.add((link(n), gateway(n as u8)))),
            1 => links.for_each(|n| self.add((link(n), gateway(what / 4)))),
            2 => {
                let links: BTreeSet<Xid> = links.map(link).collect();
                let gone = |entry: &Entry| links.contains(&entry.0);
                let gone: Vec<Entry> = self.entries.iter().copied().filter(gone).collect();
                gone.into_iter().for_each(|entry| self.remove(entry));
            }
            _ => {
                let mut filter = union(&links.step_by(16).map(link).collect::<Vec<_>>());
                let mut random = Random::from_seed(u64::from(what) << 8 | u64::from(low));
                for _ in 0..what / 2 {
                    let bit = random.below(160) as usize;
                    filter.id[bit / 8] |= 1 << (bit % 8);
                }
                self.check(filter);
            }
        }
    }

    fn add(&mut self, entry: Entry) {
        if self.entries.insert(entry) {
            self.tell(entry, |zf, words| zf.set(Instant::ZERO, words, &mut Vec::new()));
        }
    }

    fn remove(&mut self, entry: Entry) {
        self.entries.remove(&entry);
        self.tell(entry, |zf, words| zf.delete(Instant::ZERO, words, &mut Vec::new()));
    }

    fn tell<E: std::fmt::Debug>(
        &mut self,
        (link, gateway): Entry,
        tell: impl Fn(&mut ZFilter, &[&str]) -> Result<(), E>,
    ) {
        let link = link.to_string();
        let told = match gateway {
            None => tell(&mut self.zf, &["local", &link]),
            Some(via) => tell(&mut self.zf, &["route", &link, "via", &via.to_string()]),
        };
        told.expect("the statement is right");
    }

    fn check(&self, filter: Xid) {
        let mut found = Vec::new();
        self.zf.lookup(&filter, &mut found);
        let holds =
            |link: &Xid| link.id.iter().zip(filter.id).all(|(link, filter)| link & !filter == 0);
        let held = self.entries.iter().filter(|(link, _)| holds(link));
        let expected: BTreeSet<Option<Xid>> = held.map(|(_, gateway)| *gateway).collect();
        if expected.contains(&None) {
            assert_eq!(found.first(), Some(&Branch::Through), "this node comes first");
        }
        let distinct: BTreeSet<Option<Xid>> = found.iter().map(Branch::target).collect();
        assert_eq!(distinct, expected);
        assert_eq!(found.len(), distinct.len(), "each branch once");
    }
}
