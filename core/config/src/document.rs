//! A whole text: parsing with its limits, and the `version` statement.

use std::sync::Arc;

use crate::block::Block;
use crate::error::{Error, ErrorKind, Errors};
use crate::parser;
use crate::source::{Location, Source, Span};
use crate::statement::Statement;

/// The longest text that is read, in bytes (16 MiB).
pub const MAX_SIZE: usize = 16 << 20;

/// How deep blocks may be nested.
pub const MAX_DEPTH: usize = 32;

/// The statements of a text, together with the text.
///
/// `Display` prints the canonical text, which parses to an equal tree.
#[derive(Debug, Clone)]
pub struct Document {
    source: Arc<Source>,
    statements: Vec<Statement>,
    comments: Vec<Span>,
}

impl Document {
    /// Parses a text that messages call `source_name`, usually the path of its file.
    ///
    /// # Errors
    /// All mistakes of the form that were found in one pass.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, Errors> {
        if text.len() > MAX_SIZE {
            let kind = ErrorKind::TooLarge { size: text.len(), limit: MAX_SIZE };
            let nothing = Source::new(source_name, "");
            return Err(Error::new(kind, Location::new(&nothing, Span::default())).into());
        }
        let source = Source::new(source_name, text);
        let (statements, comments) = parser::parse(&source)?;
        Ok(Self { source, statements, comments })
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// Bytes that are not UTF-8, and the errors of [`Document::parse`].
    pub fn parse_bytes(source_name: &str, bytes: &[u8]) -> Result<Self, Errors> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => return Self::parse(source_name, text),
            Err(error) => error,
        };
        let at = error.valid_up_to();
        let kind = ErrorKind::NotUtf8(bytes[at]);
        // The excerpt needs no more than the line, with the wrong bytes replaced.
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(at + 80).min(MAX_SIZE)]);
        let source = Source::new(source_name, &shown);
        Err(Error::new(kind, Location::new(&source, Span::new(at, at))).into())
    }

    /// The statements of the text, `version` included.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The text, its statements, and where its comments stand.
    pub(crate) fn into_parts(self) -> (Arc<Source>, Vec<Statement>, Vec<Span>) {
        (self.source, self.statements, self.comments)
    }

    /// The text.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Where in the text a span is.
    pub fn location(&self, span: Span) -> Location {
        Location::new(&self.source, span)
    }

    /// A cursor over all statements, without a check of the version.
    pub fn block(&self) -> Block<'_> {
        Block::new(&self.source, None, &self.statements)
    }

    /// A cursor over the statements behind `version`, which must come first and name `known`.
    ///
    /// # Errors
    /// The version is missing, not a number, or another one.
    pub fn versioned(&self, known: u32) -> Result<Block<'_>, Error> {
        let first = self.statements.first().filter(|first| first.keyword() == "version");
        let Some(first) = first else {
            let span =
                self.statements.first().map_or(Span::default(), |first| first.words()[0].span());
            return Err(Error::new(ErrorKind::NoVersion(known), self.location(span)));
        };
        let mut block = self.block();
        let found = block.required("version")?;
        if found != known {
            let kind = ErrorKind::OtherVersion { found, known };
            return Err(Error::new(kind, self.location(first.words()[1].span())));
        }
        // Not to be named among the statements that could stand instead of an unknown one.
        block.forget_asked();
        Ok(block)
    }

    /// Checks the version, lets `read` take the statements, and reports those that it left.
    ///
    /// # Errors
    /// Those of [`Document::versioned`], of `read`, and of [`Block::finish`].
    pub fn read<'d, T>(
        &'d self,
        known: u32,
        read: impl FnOnce(&mut Block<'d>) -> Result<T, Errors>,
    ) -> Result<T, Errors> {
        self.versioned(known)?.read(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_error(text: &str) -> ErrorKind {
        let document = Document::parse("t", text).unwrap();
        document.versioned(1).map(drop).unwrap_err().kind().clone()
    }

    #[test]
    fn version_must_come_first_and_be_known() {
        assert!(Document::parse("t", "version 1; a;").unwrap().versioned(1).is_ok());
        assert_eq!(version_error(""), ErrorKind::NoVersion(1));
        assert_eq!(version_error("a; version 1;"), ErrorKind::NoVersion(1));
        assert_eq!(version_error("version 2;"), ErrorKind::OtherVersion { found: 2, known: 1 });
        assert!(matches!(version_error("version one;"), ErrorKind::BadValue { .. }));
        assert!(matches!(version_error("version;"), ErrorKind::MissingWord { .. }));
        assert!(matches!(version_error("version 1; a; version 1;"), ErrorKind::Duplicate(_)));
    }

    #[test]
    fn text_beyond_the_limit_is_refused() {
        let just_fits = " ".repeat(MAX_SIZE);
        assert!(Document::parse("t", &just_fits).is_ok());
        let errors = Document::parse("t", &(just_fits + " ")).unwrap_err();
        let kind = ErrorKind::TooLarge { size: MAX_SIZE + 1, limit: MAX_SIZE };
        assert_eq!(errors.iter().next().unwrap().kind(), &kind);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_at_their_place() {
        let errors = Document::parse_bytes("t", b"a;\nb \xff;").unwrap_err();
        let error = errors.iter().next().unwrap();
        assert_eq!(error.kind(), &ErrorKind::NotUtf8(0xff));
        assert_eq!((error.location().line(), error.location().column()), (2, 3));
    }
}
