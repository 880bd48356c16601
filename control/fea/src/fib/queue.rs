//! The changes of a table that wait for the kernel, each prefix once.
//!
//! A change to a prefix that waits already is put together with it: the last one counts. What can be known without the
//! table is which routes the kernel does not have yet: one that is gone before it was set costs nothing. A route that
//! goes and comes again is set in its own place, which the kernel sees and does nothing (IPv4).
//!
//! New routes go ahead of deletions, which nobody's packets wait for; but an eighth of each piece is theirs, so that
//! they come to an end however many routes there are.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry as Place, HashMap};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use weft_base::KeyedHash;
use weft_runtime::{InterfaceAddress, RouteChange, RouteOperation, RouteTarget};

/// What the kernel knows a route of a table by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) destination: InterfaceAddress,
    pub(crate) metric: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let length = u64::from(self.destination.prefix_length);
        match self.destination.ip {
            IpAddr::V4(ip) => state.write_u64(u64::from(ip.to_bits()) << 32 | length),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                state.write_u64((bits >> 64) as u64);
                state.write_u64(bits as u64 ^ length << 56);
            }
        }
        state.write_u64(u64::from(self.metric));
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Looked up and never gone through.
    entries: HashMap<Key, Entry, KeyedHash>,
    /// In the order in which routes came. What has changed since is found in the entry.
    routes: VecDeque<Key>,
    deletions: VecDeque<Key>,
}

#[derive(Debug, Default)]
struct Entry {
    /// Nothing if it came and went while it waited.
    wanted: Option<Wanted>,
    /// Where its key stands.
    in_routes: bool,
    in_deletions: bool,
}

#[derive(Debug)]
enum Wanted {
    /// The kernel has none of ours.
    New(Arc<RouteTarget>),
    /// It may have one.
    Other(Arc<RouteTarget>),
    Gone,
}

impl Queue {
    /// An empty queue. Who announces prefixes chooses the keys, and does not know the hash.
    pub(crate) fn new(hash: KeyedHash) -> Self {
        let (routes, deletions) = (VecDeque::new(), VecDeque::new());
        Self { entries: HashMap::with_hasher(hash), routes, deletions }
    }

    /// How many prefixes wait, with those of which nothing is left to do.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many routes wait.
    pub(crate) fn routes(&self) -> usize {
        self.routes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.routes.clear();
        self.deletions.clear();
    }

    /// A route is wanted. `fresh` says that the kernel had none of ours before what waits.
    pub(crate) fn put(&mut self, key: Key, target: Arc<RouteTarget>, fresh: bool) {
        let entry = self.entries.entry(key).or_default();
        entry.wanted = Some(match entry.wanted {
            None if fresh => Wanted::New(target),
            Some(Wanted::New(_)) => Wanted::New(target),
            None | Some(Wanted::Other(_) | Wanted::Gone) => Wanted::Other(target),
        });
        if !std::mem::replace(&mut entry.in_routes, true) {
            self.routes.push_back(key);
        }
    }

    /// A route is not wanted any more.
    pub(crate) fn delete(&mut self, key: Key) {
        let entry = self.entries.entry(key).or_default();
        entry.wanted = match entry.wanted {
            Some(Wanted::New(_)) => None,
            None | Some(Wanted::Other(_) | Wanted::Gone) => Some(Wanted::Gone),
        };
        if entry.wanted.is_some() && !std::mem::replace(&mut entry.in_deletions, true) {
            self.deletions.push_back(key);
        }
    }

    /// The next changes, at most so many; none if there is nothing to do.
    pub(crate) fn take(&mut self, most: usize) -> Vec<RouteChange> {
        let mut changes = Vec::with_capacity(most.min(self.entries.len()));
        let share = self.deletions.len().min(most / 8);
        while changes.len() < most - share
            && let Some(key) = self.routes.pop_front()
        {
            changes.extend(self.take_route(key));
        }
        while changes.len() < most
            && let Some(key) = self.deletions.pop_front()
        {
            changes.extend(self.take_deletion(key));
        }
        changes
    }

    fn take_route(&mut self, key: Key) -> Option<RouteChange> {
        let Place::Occupied(mut place) = self.entries.entry(key) else { return None };
        let entry = place.get_mut();
        entry.in_routes = false;
        let operation = match entry.wanted.take() {
            Some(Wanted::New(target)) => Some(RouteOperation::Add(target)),
            Some(Wanted::Other(target)) => Some(RouteOperation::Replace(target)),
            gone => {
                entry.wanted = gone;
                None
            }
        };
        if !entry.in_deletions {
            place.remove();
        }
        operation.map(|operation| key.change(operation))
    }

    fn take_deletion(&mut self, key: Key) -> Option<RouteChange> {
        let Place::Occupied(mut place) = self.entries.entry(key) else { return None };
        let entry = place.get_mut();
        entry.in_deletions = false;
        let is_gone = matches!(entry.wanted, Some(Wanted::Gone));
        if is_gone {
            entry.wanted = None;
        }
        if !entry.in_routes {
            place.remove();
        }
        is_gone.then(|| key.change(RouteOperation::Delete))
    }
}

impl Key {
    fn change(self, operation: RouteOperation) -> RouteChange {
        RouteChange { destination: self.destination, metric: self.metric, operation }
    }
}

impl From<&RouteChange> for Key {
    fn from(change: &RouteChange) -> Self {
        Self { destination: change.destination, metric: change.metric }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use weft_base::Random;
    use weft_runtime::RouteWay;

    use super::*;

    fn queue() -> Queue {
        Queue::new(KeyedHash::new(&mut Random::from_seed(1)))
    }

    fn key(number: u8) -> Key {
        let destination = InterfaceAddress { ip: [10, number, 0, 0].into(), prefix_length: 16 };
        Key { destination, metric: 40 }
    }

    fn target(number: u8) -> Arc<RouteTarget> {
        let gateway = Some([192, 0, 2, number].into());
        Arc::new(RouteTarget::ways(vec![RouteWay { gateway, interface: 1, weight: 1 }]))
    }

    /// What a kernel has that makes changes, and how many it was told.
    #[derive(Debug, Default)]
    struct Kernel {
        routes: BTreeMap<Key, Arc<RouteTarget>>,
        told: usize,
    }

    impl Kernel {
        fn make(&mut self, changes: Vec<RouteChange>) {
            self.told += changes.len();
            for change in changes {
                let key = Key::from(&change);
                match change.operation {
                    RouteOperation::Add(target) => {
                        assert!(self.routes.insert(key, target).is_none(), "{key:?} is not new");
                    }
                    RouteOperation::Replace(target) => drop(self.routes.insert(key, target)),
                    RouteOperation::Delete => drop(self.routes.remove(&key)),
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(u8, u8),
        Delete(u8),
        Take(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..12u8, 0..3u8).prop_map(|(to, way)| Step::Put(to, way)),
            3 => (0..12u8).prop_map(Step::Delete),
            2 => (1..20usize).prop_map(Step::Take),
        ]
    }

    proptest! {
        /// Whatever is taken when, the kernel has at last what was wanted at last; never is it told to add what is
        /// there; and nothing waits twice.
        #[test]
        fn the_kernel_has_at_last_what_was_wanted(steps in prop::collection::vec(step(), 0..200)) {
            let (mut queue, mut kernel) = (queue(), Kernel::default());
            let (mut wanted, mut changes) = (BTreeMap::new(), 0);
            for step in steps {
                match step {
                    Step::Put(to, way) => {
                        let fresh = wanted.insert(key(to), target(way)).is_none();
                        queue.put(key(to), target(way), fresh);
                        changes += 1;
                    }
                    Step::Delete(to) => {
                        if wanted.remove(&key(to)).is_some() {
                            queue.delete(key(to));
                            changes += 1;
                        }
                    }
                    Step::Take(most) => {
                        let taken = queue.take(most);
                        prop_assert!(taken.len() <= most);
                        kernel.make(taken);
                    }
                }
                prop_assert!(queue.len() <= 12);
                prop_assert!(queue.routes.len() <= 12 && queue.deletions.len() <= 12);
            }
            while !queue.is_empty() {
                kernel.make(queue.take(5));
            }
            prop_assert_eq!(&kernel.routes, &wanted);
            prop_assert!(kernel.told <= changes);
            prop_assert!(queue.routes.is_empty() && queue.deletions.is_empty());
        }
    }

    #[test]
    fn what_comes_and_goes_while_it_waits_costs_nothing() {
        let mut queue = queue();
        for _ in 0..1000 {
            queue.put(key(1), target(1), true);
            queue.delete(key(1));
        }
        assert_eq!(queue.len(), 1);
        assert!(queue.take(10).is_empty() && queue.is_empty());
        // One that the kernel has, and has again, is set once in its own place and never deleted.
        for _ in 0..1000 {
            queue.delete(key(1));
            queue.put(key(1), target(1), true);
        }
        let taken = queue.take(10);
        assert!(matches!(&taken[..], [RouteChange { operation: RouteOperation::Replace(_), .. }]));
        assert!(queue.is_empty());
    }

    #[test]
    fn new_routes_go_ahead_of_deletions_which_have_a_share() {
        let mut queue = queue();
        (0..100).for_each(|number| queue.delete(key(number)));
        (100..200).for_each(|number| queue.put(key(number), target(1), true));
        let is_deletion = |change: &RouteChange| matches!(change.operation, RouteOperation::Delete);
        let taken = queue.take(16);
        assert_eq!(
            taken.iter().map(is_deletion).collect::<Vec<_>>(),
            [[false; 14].as_slice(), &[true; 2]].concat()
        );
        assert_eq!((Key::from(&taken[0]), Key::from(&taken[14])), (key(100), key(0)));
        let rest: Vec<_> =
            std::iter::from_fn(|| Some(queue.take(16)).filter(|taken| !taken.is_empty()))
                .flatten()
                .collect();
        assert_eq!(rest.len(), 200 - 16);
        assert_eq!(rest.iter().rev().take_while(|change| is_deletion(change)).count(), 86);
    }
}
