//! A cursor over the statements of one block, which knows what was asked for.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::entry::Entry;
use crate::error::{Error, ErrorKind, Errors, MAX_ERRORS, gather};
use crate::source::{Location, Source, Span};
use crate::statement::Statement;
use crate::suggest::suggest;
use crate::value::{Form, FromWord, Located, ReadWord, ToWord};

/// The statements of a block being read. The consumer takes those it knows by their first word, in
/// any order; [`Block::finish`] reports the others.
///
/// A *leaf* is a statement of the form `name value;`.
#[derive(Debug)]
pub struct Block<'d> {
    source: &'d Arc<Source>,
    /// The statement whose block this is; `None` for the whole text.
    owner: Option<&'d Statement>,
    /// The statements not yet taken.
    left: Vec<&'d Statement>,
    /// Every first word that was asked for.
    asked: Vec<String>,
}

impl<'d> Block<'d> {
    pub(crate) fn new(
        source: &'d Arc<Source>,
        owner: Option<&'d Statement>,
        statements: &'d [Statement],
    ) -> Self {
        Self { source, owner, left: statements.iter().collect(), asked: Vec::new() }
    }

    /// Lets `read` take the statements, then reports those that it left.
    ///
    /// # Errors
    /// Those of `read` and of [`Block::finish`].
    pub fn read<T>(
        mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Errors>,
    ) -> Result<T, Errors> {
        let value = read(&mut self)?;
        self.finish()?;
        Ok(value)
    }

    /// The value of the leaf `name`, if there is one.
    ///
    /// # Errors
    /// The leaf is given twice, has not exactly one value, or the value is malformed.
    pub fn leaf<T: ReadWord>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let Some(mut entry) = self.one(name)? else {
            return Ok(None);
        };
        let value = entry.argument(T::FORM.what)?;
        entry.end()?;
        Ok(Some(value))
    }

    /// The value of the leaf `name`, which must be there.
    ///
    /// # Errors
    /// Those of [`Block::leaf`]; the leaf is missing.
    pub fn required<T: ReadWord>(&mut self, name: &str) -> Result<T, Error> {
        self.leaf(name)?.ok_or_else(|| self.missing(name, T::FORM.example))
    }

    /// The value of the leaf `name`, if there is one, which must lie in a range.
    ///
    /// # Errors
    /// Those of [`Block::leaf`]; the value is out of range.
    pub fn leaf_in<T>(&mut self, name: &str, range: RangeInclusive<T>) -> Result<Option<T>, Error>
    where
        T: FromWord + ToWord + PartialOrd,
    {
        let Some(found) = self.leaf::<Located<T>>(name)? else {
            return Ok(None);
        };
        if range.contains(&found.value) {
            return Ok(Some(found.value));
        }
        let kind = ErrorKind::OutOfRange {
            text: found.value.to_word(),
            min: range.start().to_word(),
            max: range.end().to_word(),
        };
        Err(Error::new(kind, found.location))
    }

    /// The value of the leaf `name`, which must be there and lie in a range.
    ///
    /// # Errors
    /// Those of [`Block::leaf_in`]; the leaf is missing.
    pub fn required_in<T>(&mut self, name: &str, range: RangeInclusive<T>) -> Result<T, Error>
    where
        T: FromWord + ToWord + PartialOrd,
    {
        let example = range.start().to_word();
        self.leaf_in(name, range)?.ok_or_else(|| self.missing(name, &example))
    }

    /// The value of the leaf `name`, if there is one, of a type that does not implement
    /// [`FromWord`]; `form` and the message of the error complete the sentence.
    ///
    /// # Errors
    /// Those of [`Block::leaf`].
    pub fn leaf_with<T, E: Display>(
        &mut self,
        name: &str,
        form: Form,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Error> {
        let Some(mut entry) = self.one(name)? else {
            return Ok(None);
        };
        let value = entry.argument_with(form, parse)?;
        entry.end()?;
        Ok(Some(value))
    }

    /// The value of the leaf `name`, which must be there, as [`Block::leaf_with`] reads it.
    ///
    /// # Errors
    /// Those of [`Block::leaf`]; the leaf is missing.
    pub fn required_with<T, E: Display>(
        &mut self,
        name: &str,
        form: Form,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Error> {
        self.leaf_with(name, form, parse)?.ok_or_else(|| self.missing(name, form.example))
    }

    /// The values of all statements `name value value …;`, in order. Each needs at least one.
    ///
    /// # Errors
    /// All values that are malformed, statements without value or with a block.
    pub fn list<T: ReadWord>(&mut self, name: &str) -> Result<Vec<T>, Errors> {
        let read = |mut entry: Entry<'d>| -> Result<Vec<T>, Errors> {
            let mut values = vec![entry.argument(T::FORM.what)];
            values.extend(std::iter::from_fn(|| entry.optional().transpose()));
            let values = gather(values.into_iter().map(|value| value.map_err(Errors::from)))?;
            entry.end()?;
            Ok(values)
        };
        let lists = gather(self.many(name).into_iter().map(read))?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// Whether the statement `name;` is there.
    ///
    /// # Errors
    /// It is given twice, or has a value or a block.
    pub fn flag(&mut self, name: &str) -> Result<bool, Error> {
        let entry = self.one(name)?;
        entry.as_ref().map_or(Ok(()), Entry::end)?;
        Ok(entry.is_some())
    }

    /// The statement that begins with `name`, if there is one.
    ///
    /// # Errors
    /// There are several.
    pub fn one(&mut self, name: &str) -> Result<Option<Entry<'d>>, Error> {
        let mut all = self.many(name).into_iter();
        let first = all.next();
        match (&first, all.next()) {
            (Some(first), Some(second)) => Err(second.duplicate_of(first)),
            _ => Ok(first),
        }
    }

    /// The statement that begins with `name`, which must be there.
    ///
    /// # Errors
    /// There are several, or there is none.
    pub fn required_one(&mut self, name: &str) -> Result<Entry<'d>, Error> {
        self.one(name)?.ok_or_else(|| {
            let owner = self.owner_word().to_owned();
            self.error_of(ErrorKind::MissingBlock { owner, name: name.to_owned() })
        })
    }

    /// All statements that begin with `name`, in order.
    pub fn many(&mut self, name: &str) -> Vec<Entry<'d>> {
        self.many_of(&[name])
    }

    /// All statements that begin with one of `names`, in the order of the text.
    pub fn many_of(&mut self, names: &[&str]) -> Vec<Entry<'d>> {
        for name in names {
            if !self.asked.iter().any(|asked| asked == name) {
                self.asked.push((*name).to_owned());
            }
        }
        let taken = self.left.extract_if(.., |statement| names.contains(&statement.keyword()));
        taken.map(|statement| Entry::new(self.source, statement)).collect()
    }

    /// All statements that are left, in order: for a consumer whose words only another part knows.
    pub fn all(&mut self) -> Vec<Entry<'d>> {
        self.left.drain(..).map(|statement| Entry::new(self.source, statement)).collect()
    }

    /// Adds the statements of `outer` that are left there, but those whose first word a statement of this block has,
    /// too: what is said inside counts before what is said around it.
    ///
    /// ```
    /// use weft_config::Document;
    ///
    /// let document = Document::parse("t", "all { colour red; size 1; one { size 2; } }")?;
    /// let mut all = document.block().required_one("all")?.block()?;
    /// let mut one = all.required_one("one")?.block()?;
    /// one.inherit(all);
    /// assert_eq!(one.required::<u32>("size")?, 2);
    /// assert_eq!(one.required::<String>("colour")?, "red");
    /// # Ok::<(), weft_config::Errors>(())
    /// ```
    pub fn inherit(&mut self, outer: Self) {
        let own: Vec<_> = self.left.iter().map(|statement| statement.keyword()).collect();
        let news = outer.left.into_iter().filter(|statement| !own.contains(&statement.keyword()));
        self.left.extend(news.collect::<Vec<_>>());
    }

    /// Reports the statements that were not taken.
    ///
    /// # Errors
    /// One error for each of them, with the most similar word that was asked for.
    pub fn finish(self) -> Result<(), Errors> {
        let (shown, counted) = self.left.split_at(self.left.len().min(MAX_ERRORS));
        let errors = Errors::check(shown.iter().map(|statement| self.unknown(statement)));
        errors.map_err(|mut errors| {
            errors.count_only(counted.len());
            errors
        })
    }

    /// Where the block begins: at the first word of the statement that it belongs to.
    pub fn location(&self) -> Location {
        self.at(self.owner.map_or(Span::default(), |owner| owner.words()[0].span()))
    }

    /// A mistake that the consumer found in this block, shown at the word it belongs to.
    pub fn error(&self, sentence: impl Into<String>) -> Error {
        self.location().error(sentence)
    }

    /// Begins anew to note what is asked for.
    pub(crate) fn forget_asked(&mut self) {
        self.asked.clear();
    }

    fn at(&self, span: Span) -> Location {
        Location::new(self.source, span)
    }

    fn error_of(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.location())
    }

    fn owner_word(&self) -> &'d str {
        self.owner.map_or("", Statement::keyword)
    }

    fn missing(&self, name: &str, example: &str) -> Error {
        self.error_of(ErrorKind::MissingStatement {
            owner: self.owner_word().to_owned(),
            name: name.to_owned(),
            example: example.to_owned(),
        })
    }

    fn unknown(&self, statement: &Statement) -> Error {
        let word = statement.keyword();
        let suggestion = suggest(word, self.asked.iter().map(String::as_str));
        let kind = ErrorKind::UnknownStatement {
            word: word.to_owned(),
            suggestion: suggestion.map(str::to_owned),
            accepted: self.asked.clone(),
        };
        Error::new(kind, self.at(statement.words()[0].span()))
    }
}

#[cfg(test)]
mod tests;
