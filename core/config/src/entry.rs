//! A cursor over the words of one statement.

use std::sync::Arc;

use crate::block::Block;
use crate::error::{Error, ErrorKind, Errors, gather};
use crate::source::{Location, Source, Span, shown};
use crate::statement::{Statement, Word};
use crate::value::{Form, ReadWord, ValueError};

/// A statement being read: its words in order, then [`Entry::end`] or one of the block methods,
/// which report whatever is left.
///
/// ```
/// use weft_config::{Block, Document, Name};
/// let document = Document::parse("t", "link a via b { }").unwrap();
/// let mut entry = document.block().one("link").unwrap().unwrap();
/// let first: Name = entry.argument("the first node").unwrap();
/// let via: Option<Name> = entry.take("via").then(|| entry.argument("a node")).transpose().unwrap();
/// let block: Block = entry.block().unwrap();
/// block.finish().unwrap();
/// assert_eq!((first.as_str(), via.unwrap().as_str()), ("a", "b"));
/// ```
#[derive(Debug, Clone)]
pub struct Entry<'d> {
    source: &'d Arc<Source>,
    statement: &'d Statement,
    /// Index of the next word.
    next: usize,
}

impl<'d> Entry<'d> {
    pub(crate) fn new(source: &'d Arc<Source>, statement: &'d Statement) -> Self {
        Self { source, statement, next: 1 }
    }

    /// The first word.
    pub fn keyword(&self) -> &'d str {
        self.statement.keyword()
    }

    /// The statement.
    pub fn statement(&self) -> &'d Statement {
        self.statement
    }

    /// Where the first word stands.
    pub fn location(&self) -> Location {
        self.at(self.statement.words()[0].span())
    }

    /// Where in the text of this statement a span is, such as that of a word in its block.
    pub fn location_of(&self, span: Span) -> Location {
        self.at(span)
    }

    /// A mistake that the consumer found in this statement, shown at its first word.
    pub fn error(&self, sentence: impl Into<String>) -> Error {
        self.location().error(sentence)
    }

    /// A mistake that the consumer found in word `index` of this statement (0 is the first word).
    pub fn error_at(&self, index: usize, sentence: impl Into<String>) -> Error {
        let words = self.statement.words();
        let word = words.get(index).unwrap_or(&words[0]);
        self.at(word.span()).error(sentence)
    }

    /// A mistake: the words of this statement that were taken so far repeat those of `first`, for
    /// example the name of a node.
    #[must_use]
    pub fn duplicate_of(&self, first: &Entry<'_>) -> Error {
        let taken: Vec<_> = self.statement.words()[..self.next].iter().map(Word::text).collect();
        let kind = ErrorKind::Duplicate(taken.join(" "));
        self.error_of(kind).related("first given here", first.location())
    }

    /// The next word, which stays the next one.
    pub fn peek(&self) -> Option<&'d str> {
        self.next_word().map(Word::text)
    }

    /// The next word as a value. `what` names it in the message when it is missing, with article:
    /// "the destination".
    ///
    /// # Errors
    /// There is no next word, or it is no such value.
    pub fn argument<T: ReadWord>(&mut self, what: &str) -> Result<T, Error> {
        self.value(what, T::FORM, T::read_word)
    }

    /// The next word, if there is one, as a value.
    ///
    /// # Errors
    /// It is no such value.
    pub fn optional<T: ReadWord>(&mut self) -> Result<Option<T>, Error> {
        self.next_word().map(|_| self.argument("")).transpose()
    }

    /// The next word as a value of a type that does not implement [`crate::FromWord`]; `form` and
    /// the message of the error complete the sentence.
    ///
    /// # Errors
    /// There is no next word, or `parse` refuses it.
    pub fn argument_with<T, E: std::fmt::Display>(
        &mut self,
        form: Form,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Error> {
        let parse = |text: &str, _| parse(text).map_err(|e| ValueError::Other(e.to_string()));
        self.value(form.what, form, parse)
    }

    /// All words that are left.
    ///
    /// # Errors
    /// Those that are no such values.
    pub fn rest<T: ReadWord>(&mut self) -> Result<Vec<T>, Errors> {
        let left = self.statement.words().len() - self.next;
        gather((0..left).map(|_| self.argument("").map_err(Errors::from)))
    }

    /// Takes the next word if it is this one.
    pub fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.next += usize::from(is_next);
        is_next
    }

    /// Takes the next word, which must be this one.
    ///
    /// # Errors
    /// It is another one, or there is none.
    pub fn expect(&mut self, word: &str) -> Result<(), Error> {
        match self.next_word() {
            None => Err(self.missing(&format!("the word `{word}`"), word)),
            Some(_) if self.take(word) => Ok(()),
            Some(found) => {
                let kind = ErrorKind::ExpectedWord {
                    found: found.text().to_owned(),
                    expected: word.to_owned(),
                };
                Err(Error::new(kind, self.at(found.span())))
            }
        }
    }

    /// The end of a statement without block.
    ///
    /// # Errors
    /// A word is left, or there is a block.
    pub fn end(&self) -> Result<(), Error> {
        self.no_more_words()?;
        match self.statement.block() {
            None => Ok(()),
            Some(_) => Err(self.error_of(ErrorKind::TakesNoBlock(shown(self.keyword())))),
        }
    }

    /// The block, which must be there.
    ///
    /// # Errors
    /// A word is left, or the statement ends with `;`.
    pub fn block(&self) -> Result<Block<'d>, Error> {
        match self.statement.block() {
            Some(_) => self.optional_block(),
            None => {
                self.no_more_words()?;
                Err(self.error_of(ErrorKind::NeedsBlock(shown(self.keyword()))))
            }
        }
    }

    /// The block; an empty one if the statement ends with `;`.
    ///
    /// # Errors
    /// A word is left.
    pub fn optional_block(&self) -> Result<Block<'d>, Error> {
        self.no_more_words()?;
        let statements = self.statement.block().unwrap_or_default();
        Ok(Block::new(self.source, Some(self.statement), statements))
    }

    /// Lets `read` take the statements of the block (empty if the statement ends with `;`), and
    /// reports those that it left.
    ///
    /// # Errors
    /// Those of [`Entry::optional_block`], of `read`, and of [`Block::finish`].
    pub fn read_block<T>(
        &self,
        read: impl FnOnce(&mut Block<'d>) -> Result<T, Errors>,
    ) -> Result<T, Errors> {
        self.optional_block()?.read(read)
    }

    fn at(&self, span: Span) -> Location {
        Location::new(self.source, span)
    }

    fn error_of(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.location())
    }

    fn next_word(&self) -> Option<&'d Word> {
        self.statement.words().get(self.next)
    }

    /// The word before the next one; there is always the keyword.
    fn last_word(&self) -> &'d Word {
        &self.statement.words()[self.next - 1]
    }

    fn value<T>(
        &mut self,
        what: &str,
        form: Form,
        read: impl FnOnce(&str, Location) -> Result<T, ValueError>,
    ) -> Result<T, Error> {
        let Some(word) = self.next_word() else {
            return Err(self.missing(what, form.example));
        };
        // Also past a bad word, so that `rest` goes on behind it.
        self.next += 1;
        let location = self.at(word.span());
        read(word.text(), location.clone()).map_err(|reason| {
            let Form { what, example } = form;
            let kind = ErrorKind::BadValue { text: word.text().to_owned(), what, reason, example };
            Error::new(kind, location)
        })
    }

    fn missing(&self, what: &str, example: &str) -> Error {
        let kind = ErrorKind::MissingWord {
            statement: shown(self.keyword()),
            what: what.to_owned(),
            example: example.to_owned(),
        };
        Error::new(kind, self.at(self.last_word().span().behind()))
    }

    fn no_more_words(&self) -> Result<(), Error> {
        let Some(extra) = self.next_word() else {
            return Ok(());
        };
        let between = self.last_word().span().range().end..extra.span().range().start;
        let next_line = self.source.text().get(between).is_some_and(|gap| gap.contains('\n'));
        let kind = ErrorKind::ExtraWord { statement: shown(self.keyword()), next_line };
        Err(Error::new(kind, self.at(extra.span())))
    }
}
