//! Messages that show lines without the secrets in them.
//!
//! Each character of a secret is replaced by one of the same length, so that what stands behind it is
//! shown at its place.

use std::sync::Arc;

use super::{Members, Schema, Shape};
use crate::error::Errors;
use crate::source::{Location, Source, Span};
use crate::tree::{Level, Tree};

impl Schema {
    /// The same mistakes, with lines in which the secrets of `tree` cannot be read.
    #[must_use]
    pub fn hide_secrets(&self, errors: Errors, tree: &Tree) -> Errors {
        let mut found = Vec::new();
        secrets(&self.top, &tree.root, &mut found);
        if found.is_empty() {
            return errors;
        }
        let mut masked: Vec<(Arc<Source>, Arc<Source>)> = Vec::new();
        for (source, _) in &found {
            if !masked.iter().any(|(known, _)| Arc::ptr_eq(known, source)) {
                let spans = found.iter().filter(|(other, _)| Arc::ptr_eq(other, source));
                let text = without(source.text(), spans.map(|(_, span)| *span));
                masked.push((Arc::clone(source), Source::new(source.name(), &text)));
            }
        }
        errors.moved(|location| {
            let hidden = masked.iter().find(|(known, _)| Arc::ptr_eq(known, location.source()));
            hidden.map_or_else(
                || location.clone(),
                |(_, hidden)| Location::new(hidden, location.span()),
            )
        })
    }
}

/// Where the secrets of a block stand.
fn secrets(members: &Members, level: &Level, found: &mut Vec<(Arc<Source>, Span)>) {
    if !members.has_secret {
        return;
    }
    for node in &level.nodes {
        let Some(kind) = members.find(node.keyword()) else { continue };
        if kind.secret {
            found.extend(
                node.words()[1..].iter().map(|word| (Arc::clone(&node.source), word.span())),
            );
        }
        if let (Some(members), Some(block)) = (kind.inside(node.words()), node.block.as_deref()) {
            secrets(members, block, found);
        } else if let (Shape::Words { .. }, true, Some(block)) =
            (&kind.shape, kind.secret, &node.block)
        {
            hide_all(block, found);
        }
    }
}

/// A block of a secret statement, which should not be there.
fn hide_all(level: &Level, found: &mut Vec<(Arc<Source>, Span)>) {
    for node in &level.nodes {
        found.extend(node.words().iter().map(|word| (Arc::clone(&node.source), word.span())));
        if let Some(block) = &node.block {
            hide_all(block, found);
        }
    }
}

/// `text` with every character in `spans` replaced.
fn without(text: &str, spans: impl Iterator<Item = Span>) -> String {
    let mut spans: Vec<_> = spans.map(Span::range).collect();
    spans.sort_by_key(|range| range.start);
    let mut spans = spans.into_iter().peekable();
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        while spans.next_if(|range| range.end <= at).is_some() {}
        let is_hidden = spans.peek().is_some_and(|range| range.contains(&at));
        out.push(if is_hidden { stand_in(c) } else { c });
    }
    out
}

/// A character that is as long in UTF-8.
fn stand_in(c: char) -> char {
    match c.len_utf8() {
        1 => '*',
        2 => '·',
        3 => '•',
        _ => '🞲',
    }
}
