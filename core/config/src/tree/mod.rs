//! The configuration as it is kept and edited: statements in order, with their comments, cheap to
//! copy and to compare.
//!
//! A tree never changes behind its owner's back: an edited copy shares every untouched block with its
//! origin. So a copy costs nothing, and what two trees share need not be compared, checked or kept
//! twice.

mod build;
mod diff;
mod diff_text;
mod find;
mod node;
mod origin;
mod print;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::document::{Document, MAX_DEPTH};
use crate::error::{Error, ErrorKind, Errors};
use crate::source::{Source, Span};
use crate::statement::Word;

pub(crate) use build::comment_text;
pub(crate) use diff::{Change, Edit};
pub use diff::{Diff, DoesNotFit};
pub use node::Node;
pub(crate) use node::{Comments, Level};

/// The version of the language that trees are written in.
pub const VERSION: u32 = 1;

/// The name of the statement that states it.
pub(crate) const VERSION_WORD: &str = "version";

/// A whole configuration. `Display` prints the canonical text, which parses to an equal tree.
///
/// ```
/// use weft_config::Tree;
/// let text = "version 1;\n# The uplink.\nlink eth0 {\n    rate 2Mbit/s; # measured\n}\n";
/// let tree = Tree::parse("node.conf", text).unwrap();
/// assert_eq!(tree.to_string(), text);
/// assert_eq!(tree.names(), ["link"]);
/// ```
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) root: Arc<Level>,
}

impl Tree {
    /// A configuration that says nothing.
    pub fn empty() -> Self {
        let text = format!("{VERSION_WORD} {VERSION};");
        let source = Source::new("empty", &text);
        let word = |text: &str| Word::new(text.to_owned(), Span::default(), false);
        let version = Node::new(vec![word(VERSION_WORD), word(&VERSION.to_string())], &source);
        let root = Level { nodes: vec![Arc::new(version)], tail: Vec::new() };
        Self { root: Arc::new(root) }
    }

    /// Parses a text that messages call `source_name`, which begins with its version.
    ///
    /// # Errors
    /// All mistakes of the form that were found in one pass; another version.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, Errors> {
        Self::from_document(Document::parse(source_name, text)?)
    }

    /// Parses the bytes of a file, as [`Tree::parse`].
    ///
    /// # Errors
    /// Those of [`Tree::parse`]; bytes that are not UTF-8.
    pub fn parse_bytes(source_name: &str, bytes: &[u8]) -> Result<Self, Errors> {
        Self::from_document(Document::parse_bytes(source_name, bytes)?)
    }

    /// Parses a piece of a configuration, such as one to be merged, whose version may be left out.
    ///
    /// # Errors
    /// Those of [`Tree::parse`].
    pub fn parse_part(source_name: &str, text: &str) -> Result<Self, Errors> {
        let document = Document::parse(source_name, text)?;
        if document.statements().first().is_some_and(|first| first.keyword() == VERSION_WORD) {
            return Self::from_document(document);
        }
        let mut statements = document.statements().iter();
        if let Some(late) = statements.find(|statement| statement.keyword() == VERSION_WORD) {
            let text = "the version is the first statement, or is left out: move or remove it";
            return Err(document.location(late.span()).error(text).into());
        }
        let mut part = build::root(document);
        part.nodes.splice(0..0, Self::empty().root.nodes.iter().cloned());
        Ok(Self { root: Arc::new(part) })
    }

    /// The tree of a text, the version of which is checked.
    ///
    /// # Errors
    /// The version is missing or another one.
    pub fn from_document(document: Document) -> Result<Self, Errors> {
        document.versioned(VERSION)?;
        Ok(Self { root: Arc::new(build::root(document)) })
    }

    /// The statements of the configuration, without its version.
    pub fn statements(&self) -> impl Iterator<Item = &Node> {
        self.root.nodes.iter().map(|node| &**node).filter(|node| !is_version(node))
    }

    /// The first words of all statements, each once, in the order of their first appearance.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for node in self.statements() {
            if !names.contains(&node.keyword()) {
                names.push(node.keyword());
            }
        }
        names
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.statements().next().is_none()
    }

    /// The part of the configuration whose statements begin with `name`: what concerns one component.
    #[must_use]
    pub fn part(&self, name: &str) -> Self {
        self.parts(&[name])
    }

    /// The part of the configuration whose statements begin with one of these names.
    #[must_use]
    pub fn parts(&self, names: &[&str]) -> Self {
        let belongs = |node: &&Arc<Node>| is_version(node) || names.contains(&node.keyword());
        let nodes = self.root.nodes.iter().filter(belongs).cloned().collect();
        Self { root: Arc::new(Level { nodes, tail: Vec::new() }) }
    }

    /// Whether the canonical text can be read back: blocks are not nested too deep.
    pub(crate) fn check_depth(&self) -> Result<(), Errors> {
        fn check(level: &Level, depth: usize) -> Result<(), Errors> {
            let mut blocks = level.nodes.iter().filter(|node| node.block.is_some());
            blocks.try_for_each(|node| match &node.block {
                Some(_) if depth == MAX_DEPTH => {
                    Err(Error::new(ErrorKind::TooDeep { limit: MAX_DEPTH }, node.location()).into())
                }
                Some(block) => check(block, depth + 1),
                None => Ok(()),
            })
        }
        check(&self.root, 0)
    }

    /// How many statements there are in all blocks.
    pub fn count(&self) -> usize {
        fn count(level: &Level) -> usize {
            let inner = |node: &Arc<Node>| 1 + node.block.as_deref().map_or(0, count);
            level.nodes.iter().map(inner).sum()
        }
        count(&self.root)
    }

    /// Whether the two are copies of one tree, which are equal without being compared.
    #[must_use]
    pub fn is_copy_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// The differences that lead from this tree to `new`.
    pub fn diff(&self, new: &Self) -> Diff {
        Diff::between(&self.root, &new.root)
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::empty()
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.is_copy_of(other) || self.root == other.root
    }
}

impl Eq for Tree {}

pub(crate) fn is_version(node: &Node) -> bool {
    node.keyword() == VERSION_WORD
}
