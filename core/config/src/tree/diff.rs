//! What leads from one tree to another: an edit script for each block that changed.
//!
//! Statements are the same if their words are; their blocks are then compared in turn. Which statements
//! of a block stay in their order is a longest common subsequence, found as a longest increasing
//! subsequence of the pairs (Hunt and Szymanski, "A Fast Algorithm for Computing Longest Common
//! Subsequences", CACM 1977); one that moved is deleted and inserted. Blocks that both trees share
//! are not looked at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Tree;
use super::node::{Level, Node};
use crate::statement::Word;

/// The differences between two trees. `Display` prints them with `+` and `-` before the lines, each
/// group below a line `[edit PATH]` that says where it stands.
///
/// ```
/// use weft_config::Tree;
/// let old = Tree::parse("old", "version 1; link eth0 { rate 2Mbit/s; loss 1%; }").unwrap();
/// let new = Tree::parse("new", "version 1; link eth0 { rate 3Mbit/s; loss 1%; }").unwrap();
/// let diff = old.diff(&new);
/// assert_eq!(diff.to_string(), "[edit link eth0]\n-   rate 2Mbit/s;\n+   rate 3Mbit/s;\n");
/// assert_eq!(diff.apply(&old).unwrap(), new);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// Of the statements of a block, in order; empty if none differs.
    pub(crate) edits: Vec<Edit>,
    /// The comments at the end of a block before and after, if they differ.
    pub(crate) tail: Option<Box<(Remarks, Remarks)>>,
}

/// Comments at the end of a block.
pub(crate) type Remarks = Vec<Box<str>>;

/// What happens to the next statements of the old block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// So many stay.
    Keep(usize),
    Delete(Arc<Node>),
    Insert(Arc<Node>),
    /// It stays, and what is in it changes.
    Change(Change),
}

/// A statement whose block or comments change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Arc<Node>,
    pub(crate) new: Arc<Node>,
    pub(crate) inner: Diff,
}

/// The differences do not begin at the tree that they were to be applied to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the differences are about another configuration: {0} is not there as they expect")]
pub struct DoesNotFit(String);

impl Diff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.tail.is_none()
    }

    /// The tree to which the differences lead from `old`.
    ///
    /// # Errors
    /// They do not begin at `old`.
    pub fn apply(&self, old: &Tree) -> Result<Tree, DoesNotFit> {
        if self.is_empty() {
            return Ok(old.clone());
        }
        Ok(Tree { root: Arc::new(self.apply_to(&old.root)?) })
    }

    fn apply_to(&self, old: &Level) -> Result<Level, DoesNotFit> {
        let tail = match self.tail.as_deref() {
            None => old.tail.clone(),
            Some((before, after)) if *before == old.tail => after.clone(),
            Some(_) => return Err(DoesNotFit("a comment at the end of a block".to_owned())),
        };
        if self.edits.is_empty() {
            return Ok(Level { nodes: old.nodes.clone(), tail });
        }
        let mut left = old.nodes.iter();
        let mut nodes = Vec::with_capacity(old.nodes.len());
        for edit in &self.edits {
            match edit {
                Edit::Keep(count) => {
                    nodes.extend(left.by_ref().take(*count).cloned());
                }
                Edit::Delete(node) => {
                    expect(node, left.next())?;
                }
                Edit::Insert(node) => nodes.push(Arc::clone(node)),
                Edit::Change(change) => nodes.push(change.apply_to(left.next())?),
            }
        }
        match left.next() {
            None => Ok(Level { nodes, tail }),
            Some(more) => Err(does_not_fit(more)),
        }
    }

    /// The differences of two blocks.
    pub(super) fn between(old: &Arc<Level>, new: &Arc<Level>) -> Self {
        if Arc::ptr_eq(old, new) {
            return Self::default();
        }
        let mut script = Script::default();
        let common = |old: &mut dyn Iterator<Item = &Arc<Node>>,
                      new: &mut dyn Iterator<Item = &Arc<Node>>| {
            old.zip(new).take_while(|(old, new)| is_pair(old, new)).count()
        };
        let first = common(&mut old.nodes.iter(), &mut new.nodes.iter());
        let (old_rest, new_rest) = (&old.nodes[first..], &new.nodes[first..]);
        let last = common(&mut old_rest.iter().rev(), &mut new_rest.iter().rev());
        let (old_middle, old_last) = old_rest.split_at(old_rest.len() - last);
        let (new_middle, new_last) = new_rest.split_at(new_rest.len() - last);

        script.pairs(&old.nodes[..first], &new.nodes[..first]);
        script.middle(old_middle, new_middle);
        script.pairs(old_last, new_last);
        let tail = (old.tail != new.tail).then(|| Box::new((old.tail.clone(), new.tail.clone())));
        Self { edits: script.finish(), tail }
    }
}

impl Change {
    fn apply_to(&self, old: Option<&Arc<Node>>) -> Result<Arc<Node>, DoesNotFit> {
        let block =
            old.filter(|node| is_pair(node, &self.old)).and_then(|node| node.block.as_ref());
        let block = block.ok_or_else(|| does_not_fit(&self.old))?;
        let block = Some(Arc::new(self.inner.apply_to(block)?));
        Ok(Arc::new(Node { block, ..Node::clone(&self.new) }))
    }
}

fn expect(node: &Arc<Node>, found: Option<&Arc<Node>>) -> Result<(), DoesNotFit> {
    match found {
        Some(found) if Arc::ptr_eq(found, node) || found == node => Ok(()),
        _ => Err(does_not_fit(node)),
    }
}

fn does_not_fit(node: &Node) -> DoesNotFit {
    let words: Vec<String> = node.words.iter().map(ToString::to_string).collect();
    DoesNotFit(format!("`{}`", words.join(" ")))
}

/// Whether the two are one statement, before and after.
fn is_pair(old: &Arc<Node>, new: &Arc<Node>) -> bool {
    Arc::ptr_eq(old, new) || key(old) == key(new)
}

/// What makes a statement the same in two trees.
fn key(node: &Node) -> (&[Word], bool) {
    (&node.words, node.block.is_some())
}

/// An edit script in the making.
#[derive(Default)]
struct Script {
    edits: Vec<Edit>,
    differs: bool,
}

impl Script {
    fn finish(self) -> Vec<Edit> {
        if self.differs { self.edits } else { Vec::new() }
    }

    fn push(&mut self, edit: Edit) {
        match (edit, self.edits.last_mut()) {
            (Edit::Keep(more), Some(Edit::Keep(count))) => *count += more,
            (edit, _) => {
                self.differs |= !matches!(edit, Edit::Keep(_));
                self.edits.push(edit);
            }
        }
    }

    /// Statements that are the same one by one.
    fn pairs(&mut self, old: &[Arc<Node>], new: &[Arc<Node>]) {
        old.iter().zip(new).for_each(|(old, new)| self.pair(old, new));
    }

    fn pair(&mut self, old: &Arc<Node>, new: &Arc<Node>) {
        if Arc::ptr_eq(old, new) {
            return self.push(Edit::Keep(1));
        }
        let inner = match (&old.block, &new.block) {
            (Some(old), Some(new)) => Diff::between(old, new),
            _ => Diff::default(),
        };
        match (inner.is_empty(), old.comments == new.comments) {
            (true, true) => self.push(Edit::Keep(1)),
            (true, false) if old.block.is_none() => {
                self.push(Edit::Delete(Arc::clone(old)));
                self.push(Edit::Insert(Arc::clone(new)));
            }
            _ => {
                let (old, new) = (Arc::clone(old), Arc::clone(new));
                self.push(Edit::Change(Change { old, new, inner }));
            }
        }
    }

    /// Statements of which none, some or all are the same, in any order.
    fn middle(&mut self, old: &[Arc<Node>], new: &[Arc<Node>]) {
        let (mut old_at, mut new_at) = (0, 0);
        let ends = (old.len(), new.len());
        for (old_next, new_next) in in_order(old, new).into_iter().chain([ends]) {
            old[old_at..old_next].iter().for_each(|node| self.push(Edit::Delete(Arc::clone(node))));
            new[new_at..new_next].iter().for_each(|node| self.push(Edit::Insert(Arc::clone(node))));
            if (old_next, new_next) != ends {
                self.pair(&old[old_next], &new[new_next]);
            }
            (old_at, new_at) = (old_next + 1, new_next + 1);
        }
    }
}

/// Indices of the same statements in both blocks: as many as can be had in ascending order.
fn in_order(old: &[Arc<Node>], new: &[Arc<Node>]) -> Vec<(usize, usize)> {
    let mut places: BTreeMap<_, VecDeque<usize>> = BTreeMap::new();
    for (index, node) in old.iter().enumerate() {
        places.entry(key(node)).or_default().push_back(index);
    }
    let mut pairs = Vec::new();
    for (index, node) in new.iter().enumerate() {
        if let Some(place) = places.get_mut(&key(node)).and_then(VecDeque::pop_front) {
            pairs.push((place, index));
        }
    }
    longest_increasing(&pairs)
}

/// The longest selection of pairs, ascending in the second member, that also ascends in the first.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]`: the pair with the least first member at which n + 1 ascending ones can end.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].0 < pair.0);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() { ends.push(index) } else { ends[length] = index }
    }
    let mut chosen: Vec<_> = std::iter::successors(ends.last().copied(), |&index| before[index])
        .map(|index| pairs[index])
        .collect();
    chosen.reverse();
    chosen
}
