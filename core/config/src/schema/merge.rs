//! Putting one configuration into another: `load merge`, `load replace`, `load override`.
//!
//! Reference: Junos OS CLI User Guide, "Loading a Configuration from a File or the Terminal".

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check::Extent;
use super::{Members, Schema, Shape};
use crate::error::{Error, Errors};
use crate::statement::Word;
use crate::tree::{Comments, Level, Node, Tree, is_version};

/// How a text that is loaded meets the configuration that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMode {
    /// Statements are added; a leaf that is there already gets the new value.
    Merge,
    /// As [`LoadMode::Merge`], but a statement marked `replace:` takes the place of the one that is
    /// there, with all that is in it, and one marked `delete:` takes it away.
    Replace,
    /// The text is the new configuration.
    Override,
}

/// What a mark in front of a statement asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Replace,
    Delete,
}

impl Schema {
    /// The configuration that `base` becomes when `new` is loaded.
    ///
    /// # Errors
    /// `new` says what the schema does not accept, or deletes what is not there.
    pub fn load(&self, base: &Tree, new: &Tree, mode: LoadMode) -> Result<Tree, Errors> {
        let marked = mode == LoadMode::Replace;
        let plain = if marked { unmarked(new) } else { new.clone() };
        let checked = self.check_extent(&plain, None, Extent::Piece);
        checked.map_err(|errors| self.hide_secrets(errors, &plain))?;
        let empty = Tree { root: Arc::new(Level::default()) };
        let base = if mode == LoadMode::Override { &empty } else { base };
        let mut root = Level::clone(&base.root);
        let merged = merge(&self.top, &mut root, &new.root, marked);
        merged.map_err(|errors| self.hide_secrets(errors, &plain))?;
        version_first(&mut root, &new.root, mode);
        let tree = Tree { root: Arc::new(root) };
        tree.check_depth()?;
        Ok(tree)
    }
}

/// Keeps one statement of the version, in front of all others.
fn version_first(root: &mut Level, new: &Level, mode: LoadMode) {
    let new = new.nodes.iter().find(|node| is_version(node));
    let old = root.nodes.iter().find(|node| is_version(node));
    let version = if mode == LoadMode::Override { new.or(old) } else { old.or(new) };
    let version = version.cloned().or_else(|| Tree::empty().root.nodes.first().cloned());
    root.nodes.retain(|node| !is_version(node));
    root.nodes.splice(0..0, version);
}

/// Merges statements into those of a block that `members` describes.
pub(super) fn merge(
    members: &Members,
    base: &mut Level,
    new: &Level,
    marked: bool,
) -> Result<(), Errors> {
    let mut slots: Vec<Option<Arc<Node>>> = base.nodes.drain(..).map(Some).collect();
    let before: Vec<Arc<Node>> = slots.iter().flatten().cloned().collect();
    let index = Index::new(members, &before, new.nodes.len());
    for node in &new.nodes {
        let (mark, node) = if marked { take_mark(node) } else { (Mark::None, Arc::clone(node)) };
        for piece in pieces(members, &node) {
            let slot = index.find(members, &piece);
            let freed = match mark {
                Mark::Delete => None,
                _ => make_way(members, &mut slots, &piece),
            };
            match (mark, slot) {
                (Mark::Delete, None) => return Err(nothing_to_delete(&piece).into()),
                (Mark::Delete, Some(slot)) => slots[slot] = None,
                (Mark::Replace, Some(slot)) => {
                    slots[slot] = Some(Arc::new(fresh(members, &piece, marked)?));
                }
                (Mark::None, Some(slot)) => match &mut slots[slot] {
                    Some(old) => into_statement(members, old, &piece, marked)?,
                    // It was deleted before.
                    empty => *empty = Some(Arc::new(fresh(members, &piece, marked)?)),
                },
                (_, None) => {
                    let new = Some(Arc::new(fresh(members, &piece, marked)?));
                    match freed {
                        Some(slot) => slots[slot] = new,
                        None => slots.push(new),
                    }
                }
            }
        }
    }
    base.nodes = slots.into_iter().flatten().collect();
    let more: Vec<_> = new.tail.iter().filter(|text| !base.tail.contains(text)).cloned().collect();
    base.tail.extend(more);
    Ok(())
}

/// Removes the values of a leaf-list that cannot stand beside this one; the place of the first of them.
fn make_way(members: &Members, slots: &mut [Option<Arc<Node>>], piece: &Node) -> Option<usize> {
    let kind = members.find(piece.keyword())?;
    let Shape::LeafList { alone, .. } = &kind.shape else { return None };
    let value = piece.words().get(1).filter(|_| !alone.is_empty())?;
    let stands_alone = |value: &Word| alone.iter().any(|one| one == value.text());
    let goes = |node: &Arc<Node>| {
        let other = node.words().get(1).filter(|_| node.keyword() == piece.keyword());
        other.is_some_and(|other| other != value && (stands_alone(other) || stands_alone(value)))
    };
    let mut first = None;
    for (place, slot) in slots.iter_mut().enumerate() {
        if slot.as_ref().is_some_and(goes) {
            *slot = None;
            first = first.or(Some(place));
        }
    }
    first
}

/// A new statement, as it is when nothing was there before.
fn fresh(members: &Members, piece: &Arc<Node>, marked: bool) -> Result<Node, Errors> {
    let mut node = Node { block: None, ..Node::clone(piece) };
    block_into(members, &mut node, piece, marked)?;
    Ok(node)
}

/// Merges a statement into the one that it is the same as.
fn into_statement(
    members: &Members,
    old: &mut Arc<Node>,
    piece: &Arc<Node>,
    marked: bool,
) -> Result<(), Errors> {
    if old == piece {
        return Ok(());
    }
    let old = Arc::make_mut(old);
    old.words.clone_from(&piece.words);
    old.source = Arc::clone(&piece.source);
    if piece.comments.is_some() {
        old.comments.clone_from(&piece.comments);
    }
    block_into(members, old, piece, marked)
}

fn block_into(
    members: &Members,
    node: &mut Node,
    piece: &Node,
    marked: bool,
) -> Result<(), Errors> {
    let kind = members.find(piece.keyword());
    let is_container = kind.is_some_and(|kind| matches!(kind.shape, Shape::Container(_)));
    let is_list = kind.is_some_and(|kind| matches!(kind.shape, Shape::List(_)));
    let anything = Arc::new(Members { any: true, ..Members::default() });
    let inside = kind.and_then(|kind| kind.inside(piece.words())).unwrap_or(&anything);
    match &piece.block {
        Some(block) => merge(inside, node.block_mut(), block, marked)?,
        None if is_container => drop(node.block_mut()),
        None => {}
    }
    // An entry that says nothing has one form.
    if is_list {
        node.drop_empty_block();
    }
    Ok(())
}

/// A statement as it is kept: one for each value of a leaf-list.
fn pieces(members: &Members, node: &Arc<Node>) -> Vec<Arc<Node>> {
    let kind = members.find(node.keyword());
    if !kind.is_some_and(|kind| matches!(kind.shape, Shape::LeafList { .. }))
        || node.words().len() <= 2
    {
        return vec![Arc::clone(node)];
    }
    let piece = |(index, value): (usize, &Word)| {
        let words = vec![node.words[0].clone(), value.clone()];
        let comments = node.comments.as_deref().map(|comments| Comments {
            above: if index == 0 { comments.above.clone() } else { Vec::new() },
            beside: comments.beside.clone().filter(|_| index + 2 == node.words.len()),
        });
        let comments = comments.filter(|comments| *comments != Comments::default()).map(Box::new);
        Arc::new(Node { words, comments, block: None, source: Arc::clone(&node.source) })
    };
    node.words[1..].iter().enumerate().map(piece).collect()
}

/// Where the statements of a block are found again.
enum Index<'n> {
    /// Few are looked for: one after the other.
    Few(&'n [Arc<Node>]),
    Many(BTreeMap<(&'n [Word], bool), usize>),
}

impl<'n> Index<'n> {
    fn new(members: &Members, nodes: &'n [Arc<Node>], questions: usize) -> Self {
        if questions <= 4 {
            return Self::Few(nodes);
        }
        // The first of several that are the same is the one that is found.
        let nodes = nodes.iter().enumerate().rev();
        Self::Many(nodes.map(|(index, node)| (sameness(members, node), index)).collect())
    }

    fn find(&self, members: &Members, node: &Node) -> Option<usize> {
        let wanted = sameness(members, node);
        match self {
            Self::Few(nodes) => nodes.iter().position(|node| {
                node.keyword() == wanted.0[0].text() && sameness(members, node) == wanted
            }),
            Self::Many(places) => places.get(&wanted).copied(),
        }
    }
}

/// What makes two statements of a block the same. Of those that are not described, one with a block
/// is not one without.
fn sameness<'n>(members: &Members, node: &'n Node) -> (&'n [Word], bool) {
    let is_unknown = members.find(node.keyword()).is_none();
    (members.identity(node), is_unknown && node.block.is_some())
}

/// The mark of a statement, and the statement without it.
fn take_mark(node: &Arc<Node>) -> (Mark, Arc<Node>) {
    let mark = match node.keyword() {
        "replace:" => Mark::Replace,
        "delete:" => Mark::Delete,
        _ => return (Mark::None, Arc::clone(node)),
    };
    if node.words.len() == 1 {
        return (Mark::None, Arc::clone(node));
    }
    let words = node.words[1..].to_vec();
    (mark, Arc::new(Node { words, ..Node::clone(node) }))
}

/// The tree without marks, and without what is marked to be deleted.
fn unmarked(tree: &Tree) -> Tree {
    fn level(old: &Level) -> Level {
        let nodes = old.nodes.iter().map(take_mark).filter(|(mark, _)| *mark != Mark::Delete);
        let nodes = nodes.map(|(_, node)| {
            let block = node.block.as_ref().map(|block| Arc::new(level(block)));
            Arc::new(Node { block, ..Node::clone(&node) })
        });
        Level { nodes: nodes.collect(), tail: old.tail.clone() }
    }
    Tree { root: Arc::new(level(&tree.root)) }
}

fn nothing_to_delete(node: &Node) -> Error {
    node.location().error("this is not there, so that it cannot be deleted: remove the statement")
}
