//! From trees to their canonical text: one statement per line, four spaces per level, each comment
//! beside or above its statement.
//!
//! Large configurations are printed with every commit, so the text is put together in one string instead
//! of going through a formatter word by word.

use std::fmt;

use super::Tree;
use super::node::{Level, Node};

/// Spaces per level.
const INDENT: usize = 4;

/// What is put in front of lines, in as many pieces as it takes.
const SPACES: &str = "                                ";

const PLAIN: Margin = Margin { mark: "", first: 0, depth: 0 };

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        level(&mut text, &self.root, PLAIN);
        f.write_str(&text)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        node(&mut text, self, PLAIN);
        f.write_str(&text)
    }
}

impl Tree {
    /// The canonical text, as `Display` prints it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        level(&mut text, &self.root, PLAIN);
        text
    }

    /// The canonical text of the statements, without the version: what a component is given. Empty if
    /// there are none.
    pub fn body(&self) -> String {
        let mut text = String::new();
        self.statements().for_each(|statement| node(&mut text, statement, PLAIN));
        text
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
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn put(self, out: &mut String) {
        out.push_str(self.mark);
        let mut missing = self.first + self.depth * INDENT;
        while missing > 0 {
            let piece = missing.min(SPACES.len());
            out.push_str(&SPACES[..piece]);
            missing -= piece;
        }
    }
}

fn level(out: &mut String, level: &Level, margin: Margin) {
    level.nodes.iter().for_each(|inner| node(out, inner, margin));
    comments(out, &level.tail, margin);
}

/// A statement with its comments and its block.
pub(super) fn node(out: &mut String, node: &Node, margin: Margin) {
    comments(out, node.above(), margin);
    words(out, node, margin);
    match node.block.as_deref() {
        None => out.push(';'),
        Some(block) if block.nodes.is_empty() && block.tail.is_empty() => out.push_str(" {}"),
        Some(block) => {
            out.push_str(" {\n");
            level(out, block, margin.deeper());
            margin.put(out);
            out.push('}');
        }
    }
    if let Some(beside) = node.beside() {
        out.push(' ');
        out.push_str(beside);
    }
    out.push('\n');
}

/// The margin and the words, without an end.
pub(super) fn words(out: &mut String, node: &Node, margin: Margin) {
    margin.put(out);
    for (index, word) in node.words.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        word.put(out);
    }
}

/// Comments on lines of their own. The later lines of a long one stand as they were written.
pub(super) fn comments(out: &mut String, comments: &[Box<str>], margin: Margin) {
    for comment in comments {
        for (index, line) in comment.split('\n').enumerate() {
            match index {
                0 => margin.put(out),
                _ => out.push_str(margin.mark),
            }
            out.push_str(line);
            out.push('\n');
        }
    }
}
