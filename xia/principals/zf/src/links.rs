//! The links that a node knows, and the list that filters are compared with.
//!
//! Unlike in other tables a link can be local and have several gateways at once: that is what
//! virtual links are made of.

use std::collections::{BTreeMap, BTreeSet};

use weft_xip::Xid;
use weft_xip::principal::Branch;

use crate::filter::Bits;
use crate::statement::Link;

/// Where a link leads: to a gateway, or `None` for this node.
pub(crate) type Target = Option<Xid>;

/// All links as they were configured, with their targets.
#[derive(Debug, Default)]
pub(crate) struct Links(BTreeMap<Link, BTreeSet<Target>>);

impl Links {
    /// False if the link leads there already.
    pub(crate) fn insert(&mut self, link: Link, target: Target) -> bool {
        self.0.entry(link).or_default().insert(target)
    }

    /// False if the link does not lead there.
    pub(crate) fn remove(&mut self, link: &Link, target: Target) -> bool {
        let Some(targets) = self.0.get_mut(link) else { return false };
        let removed = targets.remove(&target);
        if targets.is_empty() {
            self.0.remove(link);
        }
        removed
    }

    /// The gateways of a link.
    pub(crate) fn gateways(&self, link: &Link) -> Vec<Xid> {
        self.0.get(link).into_iter().flatten().filter_map(|target| *target).collect()
    }

    /// Each link with each of its targets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Link, Target)> {
        self.0.iter().flat_map(|(link, targets)| targets.iter().map(move |target| (link, *target)))
    }

    /// The links that have names.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &Link)> {
        self.0.keys().filter_map(|link| match link {
            Link::Name(name) => Some((name.as_str(), link)),
            Link::Identifier(_) => None,
        })
    }
}

/// Every link identifier with every target, in the order in which branches are taken: this node
/// first, so that other copies cannot use up the limit before it; then gateways in the order of
/// their XIDs. All links to a target stand together, so that the branch is taken once however many
/// of them match.
#[derive(Debug, Default)]
pub(crate) struct MatchList {
    /// What filters are compared with; a list of its own because only this is read for most links.
    links: Vec<Bits>,
    /// The same links, in the same order.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    target: Target,
    link: Xid,
    /// How many of the configured links these are; names can share an identifier.
    uses: u32,
}

impl MatchList {
    /// Adds a link.
    pub(crate) fn insert(&mut self, link: Xid, target: Target) {
        match self.find(link, target) {
            Ok(index) => self.entries[index].uses += 1,
            Err(index) => {
                self.links.insert(index, Bits::of(&link));
                self.entries.insert(index, Entry { target, link, uses: 1 });
            }
        }
    }

    /// Removes a link that was added.
    pub(crate) fn remove(&mut self, link: Xid, target: Target) {
        let Ok(index) = self.find(link, target) else { return };
        self.entries[index].uses -= 1;
        if self.entries[index].uses == 0 {
            self.links.remove(index);
            self.entries.remove(index);
        }
    }

    fn find(&self, link: Xid, target: Target) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&(target, link), |entry| (entry.target, entry.link))
    }

    /// Pushes the branch of every link that is in `filter`, each branch once.
    pub(crate) fn branches(&self, filter: Bits, branches: &mut Vec<Branch>) {
        for (link, entry) in self.links.iter().zip(&self.entries) {
            if filter.holds(*link) {
                let branch = entry.target.map_or(Branch::Through, Branch::To);
                if branches.last() != Some(&branch) {
                    branches.push(branch);
                }
            }
        }
    }

    /// Each link identifier with each of its targets, once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Xid, Target)> {
        self.entries.iter().map(|entry| (entry.link, entry.target))
    }
}
