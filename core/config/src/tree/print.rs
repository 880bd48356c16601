//! From trees to their canonical text: one statement per line, four spaces per level, each comment
//! beside or above its statement.

use std::fmt::{self, Write};

use super::Tree;
use super::node::{Level, Node};

/// Spaces per level.
const INDENT: usize = 4;

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        level(f, &self.root, &Margin { mark: "", first: 0, depth: 0 })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        node(f, self, &Margin { mark: "", first: 0, depth: 0 })
    }
}

/// What stands before each line.
#[derive(Clone, Copy)]
pub(super) struct Margin {
    /// In the first column.
    pub(super) mark: &'static str,
    /// Columns between the mark and a statement of the outermost level.
    pub(super) first: usize,
    /// How many levels deeper the line stands.
    pub(super) depth: usize,
}

impl Margin {
    pub(super) fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:2$}", self.mark, "", self.first + self.depth * INDENT)
    }
}

fn level(f: &mut fmt::Formatter<'_>, level: &Level, margin: &Margin) -> fmt::Result {
    level.nodes.iter().try_for_each(|inner| node(f, inner, margin))?;
    comments(f, &level.tail, margin)
}

/// A statement with its comments and its block.
pub(super) fn node(f: &mut fmt::Formatter<'_>, node: &Node, margin: &Margin) -> fmt::Result {
    comments(f, node.above(), margin)?;
    words(f, node, margin)?;
    match node.block.as_deref() {
        None => f.write_char(';')?,
        Some(block) if block.nodes.is_empty() && block.tail.is_empty() => f.write_str(" {}")?,
        Some(block) => {
            f.write_str(" {\n")?;
            level(f, block, &margin.deeper())?;
            write!(f, "{margin}}}")?;
        }
    }
    if let Some(beside) = node.beside() {
        write!(f, " {beside}")?;
    }
    f.write_char('\n')
}

/// The margin and the words, without an end.
pub(super) fn words(f: &mut fmt::Formatter<'_>, node: &Node, margin: &Margin) -> fmt::Result {
    write!(f, "{margin}")?;
    for (index, word) in node.words.iter().enumerate() {
        if index > 0 {
            f.write_char(' ')?;
        }
        write!(f, "{word}")?;
    }
    Ok(())
}

/// Comments on lines of their own. The later lines of a long one stand as they were written.
pub(super) fn comments(
    f: &mut fmt::Formatter<'_>,
    comments: &[Box<str>],
    margin: &Margin,
) -> fmt::Result {
    comments.iter().try_for_each(|comment| {
        let mut lines = comment.split('\n');
        writeln!(f, "{margin}{}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(f, "{}{line}", margin.mark))
    })
}
