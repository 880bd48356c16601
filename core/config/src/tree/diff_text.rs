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
        let mut text = String::new();
        block(&mut text, self, &mut Vec::new());
        f.write_str(&text)
    }
}

/// What changed in the block of the statements `path`, and in the blocks inside of it.
fn block<'d>(out: &mut String, diff: &'d Diff, path: &mut Vec<&'d Node>) {
    if is_visible(diff) {
        head(out, path);
    }
    for edit in &diff.edits {
        match edit {
            Edit::Keep(_) => {}
            Edit::Delete(node) => print::node(out, node, GONE),
            Edit::Insert(node) => print::node(out, node, NEW),
            Edit::Change(change) => comments(out, change),
        }
    }
    if let Some((old, new)) = diff.tail.as_deref() {
        print::comments(out, old, GONE);
        print::comments(out, new, NEW);
    }
    for edit in &diff.edits {
        if let Edit::Change(change) = edit {
            path.push(&change.new);
            block(out, &change.inner, path);
            path.pop();
        }
    }
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

fn head(out: &mut String, path: &[&Node]) {
    out.push_str("[edit");
    for word in path.iter().flat_map(|node| &node.words) {
        out.push(' ');
        word.put(out);
    }
    out.push_str("]\n");
}

/// The comments of a statement that stays, with the beginning of the statement itself.
fn comments(out: &mut String, change: &Change) {
    let Change { old, new, .. } = change;
    if old.comments == new.comments {
        return;
    }
    for (node, margin) in [(old, GONE), (new, NEW)] {
        print::comments(out, node.above(), margin);
        print::words(out, node, margin);
        out.push_str(" { … }");
        if let Some(beside) = node.beside() {
            out.push(' ');
            out.push_str(beside);
        }
        out.push('\n');
    }
}
