//! The configuration of a node, cut into the statements of its components.

use std::collections::BTreeMap;

use weft_config::{Document, Errors, Name};

use crate::Class;

/// The version of the configuration language that this program reads.
const VERSION: u32 = 1;

/// A component's statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The name of the file.
    pub(crate) source: String,
    /// The line of the text's beginning.
    pub(crate) line: u32,
    pub(crate) text: String,
}

/// A node's configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configuration {
    /// The name of the node.
    pub(crate) node: String,
    /// The statement of each class that has one.
    pub(crate) parts: BTreeMap<&'static str, Part>,
}

impl Configuration {
    /// Reads a configuration; the components check their statements themselves.
    ///
    /// # Errors
    /// Mistakes in what is common to all, each with its place.
    pub(crate) fn parse(source: &str, text: &str, classes: &[Class]) -> Result<Self, Errors> {
        let document = Document::parse(source, text)?;
        document.read(VERSION, |block| {
            let node: Name = block.required("node")?;
            let mut parts = BTreeMap::new();
            for class in classes {
                let Some(statement) = class.statement else { continue };
                if let Some(entry) = block.one(statement)? {
                    let range = entry.statement().span().range();
                    let line = u32::try_from(entry.location().line()).unwrap_or(u32::MAX);
                    let text = text.get(range).unwrap_or_default().to_owned();
                    parts.insert(class.name, Part { source: source.to_owned(), line, text });
                }
            }
            Ok(Self { node: node.as_str().to_owned(), parts })
        })
    }
}
