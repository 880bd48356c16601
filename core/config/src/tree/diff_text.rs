//! Differences as people read them: the statements that go and come, below the path of their block.
//!
//! The form is that of Junos `show | compare`.

use std::fmt;

use super::diff::{Change, Diff, Edit};
use super::node::Node;
use super::print::{self, Margin};

/// Marks stand in the first column, statements in the fifth.
const GONE: Margin = Margin { mark: "-", first: 3, depth: 0 };
const NEW: Margin = Margin { mark: "+", first: 3, depth: 0 };

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        block(f, self, &mut Vec::new())
    }
}

/// What changed in the block of the statements `path`, and in the blocks inside of it.
fn block<'d>(f: &mut fmt::Formatter<'_>, diff: &'d Diff, path: &mut Vec<&'d Node>) -> fmt::Result {
    if is_visible(diff) {
        head(f, path)?;
    }
    for edit in &diff.edits {
        match edit {
            Edit::Keep(_) => {}
            Edit::Delete(node) => print::node(f, node, &GONE)?,
            Edit::Insert(node) => print::node(f, node, &NEW)?,
            Edit::Change(change) => comments(f, change)?,
        }
    }
    if let Some((old, new)) = diff.tail.as_deref() {
        print::comments(f, old, &GONE)?;
        print::comments(f, new, &NEW)?;
    }
    for edit in &diff.edits {
        if let Edit::Change(change) = edit {
            path.push(&change.new);
            block(f, &change.inner, path)?;
            path.pop();
        }
    }
    Ok(())
}

/// Whether there is a line to print for this block itself.
fn is_visible(diff: &Diff) -> bool {
    let visible = |edit: &Edit| match edit {
        Edit::Keep(_) => false,
        Edit::Delete(_) | Edit::Insert(_) => true,
        Edit::Change(change) => change.old.comments != change.new.comments,
    };
    diff.tail.is_some() || diff.edits.iter().any(visible)
}

fn head(f: &mut fmt::Formatter<'_>, path: &[&Node]) -> fmt::Result {
    write!(f, "[edit")?;
    for word in path.iter().flat_map(|node| &node.words) {
        write!(f, " {word}")?;
    }
    writeln!(f, "]")
}

/// The comments of a statement that stays, with the beginning of the statement itself.
fn comments(f: &mut fmt::Formatter<'_>, change: &Change) -> fmt::Result {
    let Change { old, new, .. } = change;
    if old.comments == new.comments {
        return Ok(());
    }
    for (node, margin) in [(old, GONE), (new, NEW)] {
        print::comments(f, node.above(), &margin)?;
        print::words(f, node, &margin)?;
        match node.beside() {
            Some(beside) => writeln!(f, " {{ … }} {beside}")?,
            None => writeln!(f, " {{ … }}")?,
        }
    }
    Ok(())
}
