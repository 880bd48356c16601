//! What this node advertises: cut into pieces, issued when it changes, and refreshed in time.
//!
//! Reference: RFC 2328 §12.4 and §13.4 (one's own advertisement comes back from before a restart), ISO
//! 10589 §7.3.2 (pieces), §7.3.21 (refreshing, with jitter §10.1). A change touches the piece that it
//! is in: what has not changed stays where it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weft_base::{Instant, Random};

use crate::authority::Authority;
use crate::backoff::Throttle;
use crate::ids::{Destination, LsaId, Metric, NodeId};
use crate::settings::Pauses;
use crate::wire::{LsaRepr, MAX_LSA_LEN};

/// What stands in front of an advertisement's bytes when its proof is made, so that no proof for
/// anything else can be taken for it.
pub(crate) const PURPOSE: &[u8] = b"weft link-state advertisement";

/// Room for links and destinations in one piece, in bytes.
const CAPACITY: usize = MAX_LSA_LEN - LsaRepr::EMPTY_LEN;

/// One thing that is advertised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Link(NodeId),
    Destination(Destination),
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Self::Link(_) => LsaRepr::link_len(),
            Self::Destination(destination) => LsaRepr::destination_len(destination),
        }
    }
}

#[derive(Debug, Default)]
struct Fragment {
    items: BTreeMap<Item, Metric>,
    /// The number of the last issue, of this node or of what it was before a restart.
    sequence: u64,
    /// When it is to be issued again though nothing has changed; `None` if it is to be issued now, or
    /// was withdrawn.
    refresh: Option<Instant>,
    withdrawn: bool,
}

impl Fragment {
    fn len(&self) -> usize {
        self.items.keys().map(Item::len).sum()
    }
}

/// The advertisements of this node.
#[derive(Debug)]
pub(crate) struct Originator {
    items: BTreeMap<Item, Metric>,
    fragments: BTreeMap<u8, Fragment>,
    throttle: Throttle,
    lifetime: Duration,
    /// What did not fit in 256 pieces.
    pub(crate) left_out: usize,
    /// Everything was withdrawn, for good.
    gone: bool,
}

impl Originator {
    /// A node that advertises nothing yet, not even that it is there.
    pub(crate) fn new(pauses: Pauses, lifetime: Duration) -> Self {
        Self {
            items: BTreeMap::new(),
            fragments: BTreeMap::new(),
            throttle: Throttle::new(pauses),
            lifetime,
            left_out: 0,
            gone: false,
        }
    }

    /// Sets what is advertised; it is issued when the throttle allows, if it has changed.
    pub(crate) fn set(
        &mut self,
        now: Instant,
        links: impl IntoIterator<Item = (NodeId, Metric)>,
        destinations: &BTreeMap<Destination, Metric>,
    ) {
        let links = links.into_iter().map(|(node, metric)| (Item::Link(node), metric));
        let destinations = destinations
            .iter()
            .map(|(destination, metric)| (Item::Destination(destination.clone()), *metric));
        let items = links.chain(destinations).collect();
        if self.items != items || self.fragments.is_empty() {
            self.items = items;
            self.throttle.ask(now);
        }
    }

    /// Somebody has one of this node's advertisements that is newer than what it knows of: from before
    /// it was started again. The next issue outbids it.
    pub(crate) fn outbid(&mut self, now: Instant, fragment: u8, sequence: u64) {
        let fragment = self.fragments.entry(fragment).or_default();
        fragment.sequence = fragment.sequence.max(sequence);
        fragment.refresh = None;
        fragment.withdrawn = false;
        self.throttle.ask(now);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.gone {
            return None;
        }
        // While an issue has to wait, what is to be refreshed waits with it: nothing can be done earlier.
        let refresh = || self.fragments.values().filter_map(|fragment| fragment.refresh).min();
        self.throttle.due().or_else(refresh)
    }

    /// The advertisements that are to be issued now.
    pub(crate) fn issue(
        &mut self,
        now: Instant,
        authority: &impl Authority,
        random: &mut Random,
    ) -> Vec<Arc<[u8]>> {
        if self.fragments.values().any(|fragment| fragment.refresh.is_some_and(|at| at <= now)) {
            self.throttle.ask(now);
        }
        if self.gone || !self.throttle.take(now) {
            return Vec::new();
        }
        self.place();
        let mut issued = Vec::new();
        for (number, fragment) in &mut self.fragments {
            let is_due = fragment.refresh.is_none_or(|at| at <= now) && !fragment.withdrawn;
            if !is_due || fragment.sequence == u64::MAX {
                continue;
            }
            fragment.sequence += 1;
            fragment.withdrawn = *number > 0 && fragment.items.is_empty();
            let half = self.lifetime / 2;
            let jitter = Duration::from_nanos(random.below(half.as_nanos() as u64 / 4));
            fragment.refresh = (!fragment.withdrawn).then(|| now + (half - jitter));
            let lifetime = if fragment.withdrawn { 0 } else { self.lifetime.as_secs() as u16 };
            issued.push(emit(*number, fragment, lifetime, authority));
        }
        issued
    }

    /// Withdraws everything: this node goes.
    pub(crate) fn withdraw(&mut self, authority: &impl Authority) -> Vec<Arc<[u8]>> {
        let mut issued = Vec::new();
        for (number, fragment) in self.fragments.iter_mut().filter(|(_, one)| !one.withdrawn) {
            fragment.items.clear();
            fragment.withdrawn = true;
            fragment.refresh = None;
            fragment.sequence = fragment.sequence.saturating_add(1);
            issued.push(emit(*number, fragment, 0, authority));
        }
        self.gone = true;
        issued
    }

    /// Puts each item into a piece, where it was before if it was there.
    fn place(&mut self) {
        let mut left: BTreeMap<&Item, Metric> =
            self.items.iter().map(|(item, metric)| (item, *metric)).collect();
        self.fragments.entry(0).or_default();
        for fragment in self.fragments.values_mut() {
            let before = fragment.items.len();
            let mut changed = false;
            fragment.items.retain(|item, metric| match left.remove(item) {
                Some(new) => {
                    changed |= std::mem::replace(metric, new) != new;
                    true
                }
                None => false,
            });
            if changed || fragment.items.len() != before {
                fragment.refresh = None;
            }
        }
        let mut room: Vec<usize> = (0..=255u8)
            .map(|number| CAPACITY - self.fragments.get(&number).map_or(0, Fragment::len))
            .collect();
        self.left_out = 0;
        // All pieces before this have less room than any item takes; so the search is short.
        for (item, metric) in left {
            let Some(number) = room.iter().position(|room| *room >= item.len()) else {
                self.left_out += 1;
                continue;
            };
            room[number] -= item.len();
            let fragment = self.fragments.entry(number as u8).or_default();
            fragment.items.insert(item.clone(), metric);
            fragment.refresh = None;
            fragment.withdrawn = false;
        }
    }
}

fn emit(number: u8, fragment: &Fragment, lifetime: u16, authority: &impl Authority) -> Arc<[u8]> {
    let (mut links, mut destinations) = (Vec::new(), Vec::new());
    for (item, metric) in &fragment.items {
        match item {
            Item::Link(node) => links.push((*node, *metric)),
            Item::Destination(destination) => destinations.push((destination.clone(), *metric)),
        }
    }
    let id = LsaId { origin: authority.node(), fragment: number };
    let repr = LsaRepr { id, sequence: fragment.sequence, lifetime, links, destinations };
    let prove = |bytes: &[u8]| authority.prove(&[PURPOSE, bytes].concat());
    repr.emit(authority.proof_len(), prove)
}

#[cfg(test)]
mod tests {
    use weft_keys::PrivateKey;

    use super::*;
    use crate::authority::Keys;
    use crate::settings::Settings;
    use crate::wire::LsaView;

    struct World {
        originator: Originator,
        keys: Keys,
        random: Random,
        destinations: BTreeMap<Destination, Metric>,
    }

    impl World {
        fn new() -> Self {
            let Settings { origination, lifetime, .. } = Settings::default();
            Self {
                originator: Originator::new(origination, lifetime),
                keys: Keys::new(PrivateKey::from_seed([1; 32])),
                random: Random::from_seed(1),
                destinations: BTreeMap::new(),
            }
        }

        fn set(&mut self, ms: u64, links: impl IntoIterator<Item = u16>) {
            let node = |number: u16| {
                let mut id = [0; 20];
                id[..2].copy_from_slice(&number.to_be_bytes());
                (NodeId(id), 10)
            };
            self.originator.set(at(ms), links.into_iter().map(node), &self.destinations);
        }

        fn issue(&mut self, ms: u64) -> Vec<LsaRepr> {
            let issued = self.originator.issue(at(ms), &self.keys, &mut self.random);
            issued.iter().map(|bytes| read(bytes)).collect()
        }
    }

    fn read(bytes: &[u8]) -> LsaRepr {
        LsaRepr::parse(&LsaView::new_checked(bytes).unwrap())
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn name(number: u8) -> Destination {
        Destination::new(&[number; 40]).unwrap()
    }

    #[test]
    fn a_node_without_anything_says_that_it_is_there() {
        let mut world = World::new();
        assert!(world.issue(0).is_empty());
        world.set(0, []);
        let issued = world.issue(0);
        assert_eq!((issued.len(), issued[0].sequence, issued[0].lifetime), (1, 1, 3600));
        world.set(1000, []);
        assert!(world.issue(1000).is_empty(), "nothing has changed");
    }

    #[test]
    fn only_the_pieces_that_change_are_issued_again() {
        let mut world = World::new();
        world.set(0, 0..100);
        let sizes = |issued: &[LsaRepr]| {
            issued.iter().map(|lsa| (lsa.id.fragment, lsa.links.len())).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&world.issue(0)), [(0, 46), (1, 46), (2, 8)]);
        world.set(100, (0..50).chain(51..100));
        assert_eq!(sizes(&world.issue(100)), [(1, 45)]);
        // What comes goes where there is room, and what needs no piece is withdrawn.
        world.destinations.insert(name(1), 3);
        world.set(500, (0..50).chain(51..92));
        let issued = world.issue(500);
        assert_eq!(sizes(&issued), [(2, 0)]);
        assert_eq!((issued[0].destinations.len(), issued[0].lifetime), (1, 3600));
        world.destinations.clear();
        world.set(2000, (0..50).chain(51..92));
        let issued = world.issue(2000);
        assert_eq!((sizes(&issued), issued[0].lifetime), (vec![(2, 0)], 0));
        world.set(9000, 0..92);
        assert_eq!(sizes(&world.issue(9000)), [(1, 46)]);
    }

    #[test]
    fn changes_in_a_row_wait_longer_and_longer() {
        let mut world = World::new();
        let mut issued = Vec::new();
        for ms in (0..2000).step_by(10) {
            world.set(ms, [ms as u16]);
            issued.extend(world.issue(ms).iter().map(|_| ms));
        }
        assert_eq!(issued, [0, 100, 300, 700, 1500]);
    }

    #[test]
    fn refreshed_after_half_of_its_lifetime_or_a_little_earlier() {
        let mut world = World::new();
        world.set(0, [1]);
        world.issue(0);
        let due = world.originator.deadline().unwrap().since(Instant::ZERO).as_secs_f64();
        assert!((1350.0..=1800.0).contains(&due), "{due}");
        assert!(world.issue(1_349_000).is_empty());
        let again = world.issue(1_800_000);
        assert_eq!((again.len(), again[0].sequence), (1, 2));
    }

    #[test]
    fn what_is_to_be_refreshed_while_a_change_has_to_wait_waits_with_it() {
        let mut world = World::new();
        world.set(0, 0..100);
        world.issue(0);
        let refresh = |world: &mut World, ms| {
            world.originator.fragments.get_mut(&1).unwrap().refresh = Some(at(ms));
        };
        // The next issue may be 100 ms after the first.
        refresh(&mut world, 20);
        world.set(10, 1..100);
        for ms in [10, 20, 99] {
            assert!(world.issue(ms).is_empty());
            assert_eq!(world.originator.deadline(), Some(at(100)));
        }
        let issued: Vec<_> = world.issue(100).iter().map(|lsa| lsa.id.fragment).collect();
        assert_eq!(issued, [0, 1]);
        refresh(&mut world, 50_000);
        assert_eq!(world.originator.deadline(), Some(at(50_000)), "nothing waits");
    }

    #[test]
    fn what_was_issued_before_a_restart_is_outbid() {
        let mut world = World::new();
        world.set(0, [1]);
        world.issue(0);
        world.originator.outbid(at(50), 0, 57);
        world.originator.outbid(at(50), 3, 9);
        assert!(world.issue(99).is_empty());
        let issued = world.issue(100);
        let heads: Vec<_> =
            issued.iter().map(|lsa| (lsa.id.fragment, lsa.sequence, lsa.lifetime)).collect();
        assert_eq!(heads, [(0, 58, 3600), (3, 10, 0)]);
    }

    #[test]
    fn who_goes_withdraws_everything() {
        let mut world = World::new();
        world.set(0, 0..50);
        world.issue(0);
        let gone: Vec<_> =
            world.originator.withdraw(&world.keys).iter().map(|bytes| read(bytes)).collect();
        let heads: Vec<_> = gone.iter().map(|lsa| (lsa.sequence, lsa.lifetime)).collect();
        assert_eq!(heads, [(2, 0), (2, 0)]);
        world.set(100, [1]);
        assert!(world.issue(1_000_000).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut world = World::new();
        world.set(0, 0..12_000);
        let issued = world.issue(0);
        assert_eq!((issued.len(), world.originator.left_out), (256, 12_000 - 256 * 46));
    }
}
