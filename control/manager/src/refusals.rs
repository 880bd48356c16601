//! What components have against their configuration, in the words and at the places of the operator.
//!
//! A component is given its statements as canonical text, and tells of its mistakes at positions of
//! that text (`component.xif`); operators are told at positions of what they wrote.

use weft_commit::Reason;
use weft_config::{Document, Errors, LoadMode, Schema, Tree};
use weft_xrl::configurable::Check;
use weft_xrl::finder;

use crate::log::{LOG, LogLevels, read_log};
use crate::operators::{OPERATORS, read_operators};
use crate::programs::{PROGRAM, Program, read_programs};
use crate::{Class, Manager};

/// What the text is called that a component is given.
pub(crate) const SOURCE: &str = "configuration";

impl Manager {
    /// What a component said of its statements, which it was given as text.
    pub(crate) fn reason(&self, name: &str, part: &Tree, note: &str) -> Reason {
        if part.is_empty() {
            return note.into();
        }
        refused(name, part, note, self.commits.machine().transaction().schema()).into()
    }
}

/// What a component said of its statements, at their places, and without the secrets in them.
fn refused(name: &str, part: &Tree, note: &str, schema: &Schema) -> Errors {
    schema.hide_secrets(part.noted(SOURCE, note, &format!("{name} refuses this: ")), part)
}

/// Lets components say whether they would take a configuration, where no node runs. `ask` asks one of them.
///
/// # Errors
/// What those say that would not, each mistake with its place.
pub fn check_statements(
    configuration: &Tree,
    schema: &Schema,
    classes: &[Class],
    mut ask: impl FnMut(&Class, Check) -> Result<(), String>,
) -> Result<(), Errors> {
    let configuration = kept(schema, configuration);
    for class in classes {
        let part = class.part(&configuration);
        if part.is_empty() {
            continue;
        }
        let text = part.body();
        let check = Check { source: SOURCE.to_owned(), line: 1, text, number: None };
        ask(class, check).map_err(|note| refused(&class.name, &part, &note, schema))?;
    }
    Ok(())
}

/// The programs of others that a tree names.
pub(crate) fn programs_of(tree: &Tree, classes: &[Class]) -> Result<Vec<Program>, Errors> {
    let part = tree.part(PROGRAM);
    let read = |document: &Document| read_programs(&mut document.block(), classes);
    read_back(&part, read)
}

/// How much processes write, as a tree says.
pub(crate) fn log_of(tree: &Tree) -> Result<LogLevels, Errors> {
    read_back(&tree.part(LOG), |document| read_log(&mut document.block()))
}

/// The operators that a tree names.
pub(crate) fn operators_of(tree: &Tree) -> Result<finder::SetOperators, Errors> {
    read_back(&tree.part(OPERATORS), |document| read_operators(&mut document.block()))
}

fn read_back<T>(
    part: &Tree,
    read: impl FnOnce(&Document) -> Result<T, Errors>,
) -> Result<T, Errors> {
    let read = Document::parse(SOURCE, &part.body()).and_then(|document| read(&document));
    read.map_err(|errors| part.original(errors))
}

/// The file that a node was started with, in the form in which configurations are kept, so that what runs
/// can be compared with it.
pub(crate) fn kept(schema: &Schema, file: &Tree) -> Tree {
    schema.load(&Tree::empty(), file, LoadMode::Override).unwrap_or_else(|_| file.clone())
}
