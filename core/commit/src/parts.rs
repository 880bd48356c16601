//! Which statements a component is given: its own, and those of others that it reads.

use weft_config::Tree;

/// Which statement is before which, and who reads those of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    order: Vec<String>,
    /// Whose statement, and which others its component reads.
    reads: Vec<(String, Vec<String>)>,
}

/// Statements those of which that others need come before those that need them; nobody reads those of others.
impl From<Vec<String>> for Parts {
    fn from(order: Vec<String>) -> Self {
        Self { order, reads: Vec::new() }
    }
}

impl Parts {
    /// The same, where the component of a statement reads these, too, wherever its own is there: a change of theirs is
    /// one of its own.
    #[must_use]
    pub fn with(mut self, statement: &str, reads: &[&str]) -> Self {
        if !reads.is_empty() {
            let reads = reads.iter().map(|one| (*one).to_owned()).collect();
            self.reads.push((statement.to_owned(), reads));
        }
        self
    }

    /// What the component of a statement is given of a configuration; nothing if its own statement is not there.
    #[must_use]
    pub fn of(&self, tree: &Tree, statement: &str) -> Tree {
        let own = tree.part(statement);
        let reads = self.reads.iter().find(|(of, _)| of == statement);
        match reads {
            Some((_, reads)) if !own.is_empty() => {
                let names: Vec<_> = reads.iter().map(String::as_str).chain([statement]).collect();
                tree.parts(&names)
            }
            _ => own,
        }
    }

    /// The place of a statement; behind all others if it is not known.
    pub(crate) fn rank(&self, statement: &str) -> usize {
        self.order.iter().position(|known| known == statement).unwrap_or(self.order.len())
    }
}
