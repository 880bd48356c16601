//! Walking through a table in order, while it changes.

use super::node::{Found, Node, PLACES, Place, STRIDE, branch_of};
use super::{MOST_NODES, PrefixTable, ROOT, address, front_mask};
use crate::Prefix;

/// A place in the order of the prefixes of a table.
///
/// It holds no part of the table but the prefix that came last, so the table may change meanwhile: what was
/// there all the time comes once, in order; what is added or removed behind the place comes or does not.
/// A step goes down from the root, which costs about as much as a look-up.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Nothing else comes.
    within: Prefix,
    /// What came last.
    last: Option<Prefix>,
}

impl<V: Default> PrefixTable<V> {
    /// A cursor before the first prefix.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.cursor_within(Prefix::ALL)
    }

    /// A cursor for the prefixes that `prefix` contains, itself included.
    #[must_use]
    pub fn cursor_within(&self, prefix: Prefix) -> Cursor {
        Cursor { within: prefix, last: None }
    }

    /// A cursor behind `prefix`, whether that is in the table or not.
    #[must_use]
    pub fn cursor_behind(&self, prefix: Prefix) -> Cursor {
        Cursor { within: Prefix::ALL, last: Some(prefix) }
    }

    /// All prefixes and their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, &V)> {
        self.iter_within(Prefix::ALL)
    }

    /// The prefixes that `prefix` contains, itself included, and their values, in order.
    pub fn iter_within(&self, prefix: Prefix) -> impl Iterator<Item = (Prefix, &V)> {
        let mut cursor = self.cursor_within(prefix);
        std::iter::from_fn(move || cursor.next(self))
    }

    /// The first prefix from `from` on, or behind it.
    fn first_from(&self, from: &Prefix, behind: bool) -> Option<(Prefix, &V)> {
        let (home, _) = address(from);
        let (mut rest, mut left) = (from.bits(), home);
        let mut at = ROOT;
        // The nodes that were passed, and how long the way to them is.
        let (mut way, mut passed) = ([(ROOT, 0); MOST_NODES], 0);
        let mut place = loop {
            if left == 0 {
                let length = from.length() - home;
                break Place::at(from.branch_at(home), length, behind);
            }
            let branch = branch_of(rest.front());
            let node = self.nodes.get(at);
            let Some(child) = node.child(branch) else { break Place::behind(branch) };
            let lower = self.nodes.get(child);
            let (behind_branch, bits) = (rest.after(STRIDE), lower.path_bits());
            let path = behind_branch.front() & front_mask(bits);
            if bits + STRIDE > left || path != lower.path {
                // All below the child comes behind `from`, or all comes before.
                let later = lower.path >= path;
                let number = Place::behind(branch).number;
                break Place { number, branch: if later { branch } else { branch + 1 } };
            }
            way[passed] = (at, branch);
            passed += 1;
            at = child;
            rest = if bits > 0 { behind_branch.after(bits) } else { behind_branch };
            left -= STRIDE + bits;
        };
        let mut depth = home - left;
        loop {
            let node = self.nodes.get(at);
            if let Some(found) = node.first_from(place) {
                return Some(self.first_of(node, found, from.truncate(depth)));
            }
            passed = passed.checked_sub(1)?;
            let (upper, branch) = way[passed];
            depth -= node.path_bits() + STRIDE;
            (at, place) = (upper, Place::behind(branch));
        }
    }

    /// The first prefix of what was `found` at a node, to which `way` leads.
    fn first_of<'a>(
        &'a self,
        mut node: &'a Node,
        mut found: Found,
        mut way: Prefix,
    ) -> (Prefix, &'a V) {
        loop {
            match found {
                Found::Prefix(number) => {
                    let here = PLACES[usize::from(number)];
                    let prefix = way.extend(u64::from(here.branch) << (64 - STRIDE), here.length);
                    let value = self.values.get(node.values + node.value_index(number));
                    return (prefix, value);
                }
                Found::Branch(branch) => {
                    way = way.extend(u64::from(branch) << (64 - STRIDE), STRIDE);
                    node = self.nodes.get(node.children + node.child_index(branch));
                    way = way.extend(node.path, node.path_bits());
                    found = node
                        .first_from(Place::FIRST)
                        .expect("only the root has neither values nor children");
                }
            }
        }
    }
}

impl Cursor {
    /// The next prefix and its value; `None` behind the last. `table` should be the one that the cursor
    /// was made by, or one that is compared with it.
    pub fn next<'a, V: Default>(&mut self, table: &'a PrefixTable<V>) -> Option<(Prefix, &'a V)> {
        let from = self.last.unwrap_or(self.within);
        let next = table.first_from(&from, self.last.is_some());
        let next = next.filter(|(prefix, _)| self.within.contains(prefix))?;
        self.last = Some(next.0);
        Some(next)
    }
}
