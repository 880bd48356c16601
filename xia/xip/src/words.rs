//! Reading the words of one statement: `route ad-… via hid-…`.
//!
//! The same words come from a configuration file and from a live command; the error says which word
//! is wrong, so that both callers can point at it.

use std::fmt;
use std::str::FromStr;

use crate::{Xid, XidType};

/// A statement that cannot be carried out: which word, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordError {
    /// The index of the offending word; `None` if it is the statement as a whole.
    pub word: Option<usize>,
    /// One sentence.
    pub text: String,
    /// The statement is in order, but what it would delete is not there.
    pub is_absent: bool,
}

impl WordError {
    /// An error about the statement as a whole.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { word: None, text: text.into(), is_absent: false }
    }

    /// An error about the word with this index.
    #[must_use]
    pub fn at(word: usize, text: impl Into<String>) -> Self {
        Self { word: Some(word), ..Self::new(text) }
    }

    /// This error, where it says that what is to be deleted is not there.
    #[must_use]
    pub fn absent(self) -> Self {
        Self { is_absent: true, ..self }
    }
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for WordError {}

/// Takes the words of a statement one after the other.
#[derive(Clone, Debug)]
pub struct WordReader<'a> {
    words: &'a [&'a str],
    next: usize,
}

impl<'a> WordReader<'a> {
    /// Begins with the first of `words`.
    #[must_use]
    pub fn new(words: &'a [&'a str]) -> Self {
        Self { words, next: 0 }
    }

    /// The next word, which is `what` to the user (say, "the gateway").
    ///
    /// # Errors
    /// There is none.
    pub fn word(&mut self, what: &str) -> Result<&'a str, WordError> {
        let word = self.words.get(self.next).ok_or_else(|| {
            WordError::new(format!("{what} is missing after `{}`", self.words.join(" ")))
        })?;
        self.next += 1;
        Ok(word)
    }

    /// The next word if it is `keyword`; otherwise nothing is taken.
    pub fn take(&mut self, keyword: &str) -> bool {
        let found = self.words.get(self.next) == Some(&keyword);
        self.next += usize::from(found);
        found
    }

    /// The next word, which must be `keyword`.
    ///
    /// # Errors
    /// It is another word or there is none.
    pub fn expect(&mut self, keyword: &str) -> Result<(), WordError> {
        if self.take(keyword) {
            return Ok(());
        }
        self.word(&format!("`{keyword}`"))?;
        Err(self.error(format!("expected `{keyword}`")))
    }

    /// The next word as a value of type `T`; `what` says what it is and looks like.
    ///
    /// # Errors
    /// It does not parse, or there is none.
    pub fn value<T: FromStr<Err: fmt::Display>>(&mut self, what: &str) -> Result<T, WordError> {
        let word = self.word(what)?;
        word.parse().map_err(|error| self.error(format!("`{word}` is not {what}: {error}")))
    }

    /// The next word as an XID of type `kind`.
    ///
    /// # Errors
    /// It is no XID or one of another type, or there is none.
    pub fn xid_of(&mut self, kind: XidType) -> Result<Xid, WordError> {
        // What is wrong is put into words only if something is: there may be very many.
        let read = self.words.get(self.next).and_then(|word| word.parse::<Xid>().ok());
        if let Some(xid) = read.filter(|xid| xid.kind == kind) {
            self.next += 1;
            return Ok(xid);
        }
        let xid = self.value::<Xid>(&format!("an XID such as {kind}-<40 hex digits>"))?;
        Err(self.error(format!("{xid} is not of type {kind}")))
    }

    /// Whether all words were taken.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.next == self.words.len()
    }

    /// Checks that all words were taken.
    ///
    /// # Errors
    /// Names the first that was not.
    pub fn end(&mut self) -> Result<(), WordError> {
        match self.words.get(self.next) {
            None => Ok(()),
            Some(word) => {
                self.next += 1;
                Err(self.error(format!("unexpected word `{word}`")))
            }
        }
    }

    /// An error about the word that was taken last.
    #[must_use]
    pub fn error(&self, text: impl Into<String>) -> WordError {
        WordError { word: self.next.checked_sub(1), ..WordError::new(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_words_in_order_and_points_at_the_wrong_one() {
        let words = ["route", "7", "by"];
        let mut reader = WordReader::new(&words);
        assert!(reader.take("route"));
        assert_eq!(reader.value::<u8>("a number"), Ok(7));
        let error = reader.expect("via").unwrap_err();
        assert_eq!((error.word, error.text.as_str()), (Some(2), "expected `via`"));
    }

    #[test]
    fn missing_and_surplus_words_are_errors() {
        let words = ["a", "b"];
        let mut reader = WordReader::new(&words);
        assert_eq!(reader.word("x"), Ok("a"));
        assert_eq!(reader.end().unwrap_err().text, "unexpected word `b`");
        assert_eq!(
            reader.word("the gateway").unwrap_err().text,
            "the gateway is missing after `a b`"
        );
    }
}
