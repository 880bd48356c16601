//! The links that a node knows, as they were configured.
//!
//! Unlike in other tables a link can be local and have several gateways at once: that is what
//! virtual links are made of.

use std::collections::{BTreeMap, BTreeSet};

use weft_xip::Xid;

use crate::statement::Link;

/// Where a link leads: to a gateway, or `None` for this node.
pub(crate) type Target = Option<Xid>;

/// All links as they were configured, with their targets.
#[derive(Debug, Default)]
pub(crate) struct Links(BTreeMap<Link, BTreeSet<Target>>);

impl Links {
    /// Whether the link leads there.
    pub(crate) fn has(&self, link: &Link, target: Target) -> bool {
        self.0.get(link).is_some_and(|targets| targets.contains(&target))
    }

    /// Makes the link lead there, too.
    pub(crate) fn insert(&mut self, link: Link, target: Target) {
        self.0.entry(link).or_default().insert(target);
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
