//! What a tree is made of: nodes that stand in levels, both shared between trees.

use std::sync::Arc;

use crate::source::{Location, Source};
use crate::statement::Word;

/// A statement of a [`Tree`](super::Tree): its words, its comments, and perhaps a block.
///
/// Equality compares words, comments and blocks, and not positions. `Display` prints the canonical text.
#[derive(Debug, Clone)]
pub struct Node {
    /// Never empty.
    pub(crate) words: Vec<Word>,
    /// The text in which the words stand.
    pub(crate) source: Arc<Source>,
    /// `None` for the many statements without any.
    pub(crate) comments: Option<Box<Comments>>,
    pub(crate) block: Option<Arc<Level>>,
}

/// The comments of a statement, with their marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comments {
    /// On lines of their own before the statement.
    pub(crate) above: Vec<Box<str>>,
    /// Behind its end on the same line.
    pub(crate) beside: Option<Box<str>>,
}

/// The statements of one block, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Comments behind the last statement.
    pub(crate) tail: Vec<Box<str>>,
}

impl Node {
    /// A statement without comments and block. There must be a word.
    pub(crate) fn new(words: Vec<Word>, source: &Arc<Source>) -> Self {
        debug_assert!(!words.is_empty(), "a statement has at least one word");
        Self { words, source: Arc::clone(source), comments: None, block: None }
    }

    /// The first word.
    pub fn keyword(&self) -> &str {
        self.words[0].text()
    }

    /// All words; there is at least one.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The statements in braces; `None` if the statement ends with `;`.
    pub fn block(&self) -> Option<impl Iterator<Item = &Node>> {
        self.block.as_ref().map(|level| level.nodes.iter().map(|node| &**node))
    }

    /// Where the first word stands: in a file, or in a command.
    pub fn location(&self) -> Location {
        self.location_of(0)
    }

    /// Where a word stands; that of the first one if there are not so many.
    pub(crate) fn location_of(&self, index: usize) -> Location {
        let word = self.words.get(index).unwrap_or(&self.words[0]);
        Location::new(&self.source, word.span())
    }

    /// Right behind the last word, where one is missing.
    pub(crate) fn location_behind(&self) -> Location {
        let last = self.words.last().unwrap_or(&self.words[0]);
        Location::new(&self.source, last.span().behind())
    }

    /// Whether it begins with these words.
    pub(crate) fn begins_with(&self, words: &[Word]) -> bool {
        self.words.starts_with(words)
    }

    pub(crate) fn above(&self) -> &[Box<str>] {
        self.comments.as_ref().map_or(&[], |comments| &comments.above)
    }

    pub(crate) fn beside(&self) -> Option<&str> {
        self.comments.as_ref()?.beside.as_deref()
    }

    /// Its block, made if there is none, to be changed.
    pub(crate) fn block_mut(&mut self) -> &mut Level {
        Arc::make_mut(self.block.get_or_insert_default())
    }

    /// Leaves out a block in which nothing stands.
    pub(crate) fn drop_empty_block(&mut self) {
        if self.block.as_ref().is_some_and(|block| **block == Level::default()) {
            self.block = None;
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
            && self.comments == other.comments
            && match (&self.block, &other.block) {
                (None, None) => true,
                (Some(one), Some(two)) => Arc::ptr_eq(one, two) || one == two,
                _ => false,
            }
    }
}

impl Eq for Node {}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, two): (&Arc<Node>, &Arc<Node>)| Arc::ptr_eq(one, two) || one == two;
        self.tail == other.tail
            && self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(same)
    }
}

impl Eq for Level {}
