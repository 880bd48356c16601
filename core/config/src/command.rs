//! A single statement, as given on a command line or sent to a running node.

use std::sync::Arc;

use crate::document::MAX_SIZE;
use crate::entry::Entry;
use crate::error::{Error, ErrorKind, Errors};
use crate::parser;
use crate::source::{Location, Source, Span};
use crate::statement::Statement;

/// What messages call the text of a command.
const SOURCE_NAME: &str = "command";

/// One statement, the `;` of which may be left out.
///
/// ```
/// use weft_config::{Command, Ipv4Prefix};
/// let command = Command::parse("route 10.0.0.0/8 blackhole").unwrap();
/// let mut entry = command.entry();
/// assert_eq!(entry.keyword(), "route");
/// let prefix: Ipv4Prefix = entry.argument("the destination").unwrap();
/// assert_eq!(prefix.to_string(), "10.0.0.0/8");
/// entry.expect("blackhole").unwrap();
/// entry.end().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Command {
    source: Arc<Source>,
    statement: Statement,
}

impl Command {
    /// Parses the text of a command.
    ///
    /// # Errors
    /// The mistakes of its form; no statement or more than one.
    pub fn parse(text: &str) -> Result<Self, Errors> {
        if text.len() > MAX_SIZE {
            let kind = ErrorKind::TooLarge { size: text.len(), limit: MAX_SIZE };
            let nothing = Source::new(SOURCE_NAME, "");
            return Err(Error::new(kind, Location::new(&nothing, Span::default())).into());
        }
        let source = Source::new(SOURCE_NAME, text);
        let statement = parser::parse_command(&source)?;
        Ok(Self { source, statement })
    }

    /// A cursor over the words of the statement.
    pub fn entry(&self) -> Entry<'_> {
        Entry::new(&self.source, &self.statement)
    }

    /// The statement itself.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }
}

impl Statement {
    /// Parses a text of one statement, the `;` of which may be left out. Use [`Command::parse`] to
    /// read its words with error messages that show their place.
    ///
    /// # Errors
    /// Those of [`Command::parse`].
    pub fn parse_one(text: &str) -> Result<Self, Errors> {
        Command::parse(text).map(|command| command.statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> ErrorKind {
        Statement::parse_one(text).unwrap_err().iter().next().unwrap().kind().clone()
    }

    #[test]
    fn semicolon_is_optional_and_blocks_are_allowed() {
        let plain = Statement::parse_one("zf route a via b").unwrap();
        assert_eq!(plain, Statement::parse_one(" zf route a via b ; ").unwrap());
        assert_eq!(plain.words().len(), 5);
        assert_eq!(Statement::parse_one("a { b; }").unwrap().block().unwrap().len(), 1);
    }

    #[test]
    fn anything_but_one_statement_is_refused() {
        assert_eq!(kind(""), ErrorKind::EmptyCommand);
        assert_eq!(kind(" # nothing"), ErrorKind::EmptyCommand);
        assert_eq!(kind("; a"), ErrorKind::EmptyCommand);
        assert_eq!(kind("a; b"), ErrorKind::SecondStatement);
        assert_eq!(kind("a; ;"), ErrorKind::SecondStatement);
        assert_eq!(kind("a {} b"), ErrorKind::SecondStatement);
        assert_eq!(kind("a }"), ErrorKind::MissingSemicolon);
        assert_eq!(kind("a; }"), ErrorKind::StrayClose);
        assert_eq!(kind("a { b; "), ErrorKind::UnclosedBlock);
        assert_eq!(kind("a { b "), ErrorKind::MissingSemicolon);
    }
}
