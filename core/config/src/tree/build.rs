//! From statements with positions to a tree: each comment finds its statement.
//!
//! A comment behind the end of a statement, on the same line, stays beside it. Any other one stands
//! above the statement that follows it, or behind the last one of its block. One between the words of
//! a statement moves above it.

use std::sync::Arc;

use crate::document::Document;
use crate::source::{Source, Span, is_unsafe_to_show};
use crate::statement::Statement;

use super::node::{Comments, Level, Node};

/// The statements of a whole text.
pub(super) fn root(document: Document) -> Level {
    let (source, statements, comments) = document.into_parts();
    let end = source.text().len();
    let mut builder = Builder { source, comments, next: 0 };
    builder.level(statements, end)
}

struct Builder {
    source: Arc<Source>,
    comments: Vec<Span>,
    /// Index of the first comment that has no statement yet.
    next: usize,
}

impl Builder {
    /// The statements of a block that ends at the byte `end`.
    fn level(&mut self, statements: Vec<Statement>, end: usize) -> Level {
        let nodes = statements.into_iter().map(|statement| Arc::new(self.node(statement, end)));
        let nodes = nodes.collect();
        Level { nodes, tail: self.comments_before(end) }
    }

    fn node(&mut self, statement: Statement, end_of_block: usize) -> Node {
        let (words, block, span) = statement.into_parts();
        let first = span.range().start;
        // With a block, what stands between the words and `{` belongs above, too.
        let head_end = words.last().map_or(first, |word| word.span().range().end);
        let head_end = if block.is_some() { head_end } else { span.range().end };
        let above = self.comments_before(head_end);
        let block = block.map(|statements| Arc::new(self.level(statements, span.range().end)));
        let beside = self.comment_beside(span.range().end, end_of_block);
        let comments =
            (!above.is_empty() || beside.is_some()).then(|| Box::new(Comments { above, beside }));
        Node { words, source: Arc::clone(&self.source), comments, block }
    }

    /// Those that begin before the byte `end`.
    fn comments_before(&mut self, end: usize) -> Vec<Box<str>> {
        let mut taken = Vec::new();
        while let Some(span) = self.comments.get(self.next).filter(|span| span.range().start < end)
        {
            taken.push(self.text(*span));
            self.next += 1;
        }
        taken
    }

    /// The one that follows on the same line, and fits on it.
    fn comment_beside(&mut self, end: usize, end_of_block: usize) -> Option<Box<str>> {
        let span = *self.comments.get(self.next)?;
        let (range, text) = (span.range(), self.source.text());
        let follows = range.start >= end
            && range.start < end_of_block
            && !text.get(end..range.end).is_some_and(|between| between.contains('\n'));
        // What stands between belongs to another statement if it is not blank.
        let directly = text.get(end..range.start).is_some_and(|gap| gap.trim().is_empty());
        (follows && directly).then(|| {
            self.next += 1;
            self.text(span)
        })
    }

    fn text(&self, span: Span) -> Box<str> {
        comment_text(self.source.text().get(span.range()).unwrap_or_default())
    }
}

/// A comment as it is kept: without line end, and with nothing that moves a terminal's cursor.
pub(crate) fn comment_text(text: &str) -> Box<str> {
    let lines: Vec<String> = text.split('\n').map(clean).collect();
    lines.join("\n").into_boxed_str()
}

fn clean(line: &str) -> String {
    let replace =
        |c| if is_unsafe_to_show(c) && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    line.trim_end().chars().map(replace).collect()
}
