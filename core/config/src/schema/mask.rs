//! Trees and differences with `********` instead of each secret, to be shown.

use std::sync::Arc;

use super::check::HIDDEN;
use super::{Members, Schema};
use crate::source::Span;
use crate::statement::Word;
use crate::tree::{Change, Diff, Edit, Level, Node, Tree};

impl Schema {
    /// The configuration as it may be shown.
    #[must_use]
    pub fn mask(&self, tree: &Tree) -> Tree {
        Tree { root: self.top.mask_level(&tree.root) }
    }

    /// The differences as they may be shown: a secret that changes is seen to change. They cannot be
    /// applied any more.
    #[must_use]
    pub fn mask_diff(&self, diff: &Diff) -> Diff {
        self.top.mask_diff(diff)
    }
}

impl Members {
    fn mask_level(&self, level: &Arc<Level>) -> Arc<Level> {
        if !self.has_secret {
            return Arc::clone(level);
        }
        let nodes = level.nodes.iter().map(|node| self.mask_node(node)).collect();
        Arc::new(Level { nodes, tail: level.tail.clone() })
    }

    fn mask_node(&self, node: &Arc<Node>) -> Arc<Node> {
        let Some(kind) = self.find(node.keyword()).filter(|kind| kind.has_secret()) else {
            return Arc::clone(node);
        };
        let mut masked = Node::clone(node);
        if kind.secret {
            masked.words.truncate(1);
            masked.words.push(Word::new(HIDDEN.to_owned(), Span::default(), false));
            // A secret takes no block; if there is one, it is a mistake with something secret in it.
            masked.block = None;
        } else if let (Some(members), Some(block)) = (kind.inside(node.words()), &node.block) {
            masked.block = Some(members.mask_level(block));
        }
        Arc::new(masked)
    }

    fn mask_diff(&self, diff: &Diff) -> Diff {
        if !self.has_secret {
            return diff.clone();
        }
        let edits = diff.edits.iter().map(|edit| match edit {
            Edit::Keep(count) => Edit::Keep(*count),
            Edit::Delete(node) => Edit::Delete(self.mask_node(node)),
            Edit::Insert(node) => Edit::Insert(self.mask_node(node)),
            Edit::Change(change) => Edit::Change(self.mask_change(change)),
        });
        Diff { edits: edits.collect(), tail: diff.tail.clone() }
    }

    fn mask_change(&self, change: &Change) -> Change {
        let kind = self.find(change.old.keyword());
        let inside = kind.and_then(|kind| kind.inside(change.old.words()));
        let inner = match (kind, inside) {
            (Some(kind), _) if kind.secret => Diff::default(),
            (_, Some(members)) => members.mask_diff(&change.inner),
            (_, None) => change.inner.clone(),
        };
        Change { old: self.mask_node(&change.old), new: self.mask_node(&change.new), inner }
    }
}
