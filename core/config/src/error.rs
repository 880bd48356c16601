//! Mistakes in a text: what, where, and how to mend it.

use std::fmt;

use crate::source::{Location, shown};
use crate::suggest::list;
use crate::value::ValueError;

/// How many mistakes are reported in full; the others are counted.
pub const MAX_ERRORS: usize = 20;

/// One mistake with its place. `Display` shows position, sentence, and the line with a caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    location: Location,
    related: Option<(&'static str, Location)>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, location: Location) -> Self {
        Self(Box::new(Inner { kind, location, related: None }))
    }

    /// Adds a second place that explains the first, such as the earlier of two duplicates.
    #[must_use]
    pub fn related(mut self, label: &'static str, location: Location) -> Self {
        self.0.related = Some((label, location));
        self
    }

    /// The same mistake shown at other places.
    pub(crate) fn moved(mut self, to: impl Fn(&Location) -> Location) -> Self {
        self.0.location = to(&self.0.location);
        self.0.related = self.0.related.map(|(label, location)| (label, to(&location)));
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where it is wrong.
    pub fn location(&self) -> &Location {
        &self.0.location
    }
}

impl Location {
    /// A mistake that the consumer found at this place. `sentence` is one lower-case sentence that
    /// says what is wrong and how to mend it.
    pub fn error(&self, sentence: impl Into<String>) -> Error {
        Error::new(ErrorKind::Meaning(sentence.into()), self.clone())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, location, related } = &*self.0;
        write!(f, "{location}: {kind}\n{}", location.excerpt())?;
        match related {
            Some((label, location)) => write!(f, "\n{location}: {label}\n{}", location.excerpt()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// One or more mistakes, in the order of their discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors {
    first: Error,
    others: Vec<Error>,
    unkept: usize,
}

impl Errors {
    /// The mistakes kept, at least one and at most [`MAX_ERRORS`].
    pub fn iter(&self) -> impl Iterator<Item = &Error> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// All mistakes, those no longer kept included.
    pub fn count(&self) -> usize {
        1 + self.others.len() + self.unkept
    }

    /// Adds one more mistake.
    pub fn push(&mut self, error: Error) {
        if 1 + self.others.len() < MAX_ERRORS {
            self.others.push(error);
        } else {
            self.unkept += 1;
        }
    }

    /// Adds all mistakes of `more`.
    pub fn append(&mut self, more: Errors) {
        self.push(more.first);
        more.others.into_iter().for_each(|error| self.push(error));
        self.unkept += more.unkept;
    }

    /// The same mistakes shown at other places.
    pub(crate) fn moved(self, to: impl Fn(&Location) -> Location) -> Self {
        let others = self.others.into_iter().map(|error| error.moved(&to)).collect();
        Self { first: self.first.moved(&to), others, unkept: self.unkept }
    }

    /// Counts mistakes that are not kept.
    pub(crate) fn count_only(&mut self, more: usize) {
        self.unkept += more;
    }

    /// `Err` when there is any mistake in the sequence.
    pub(crate) fn check(mistakes: impl IntoIterator<Item = Error>) -> Result<(), Errors> {
        gather(mistakes.into_iter().map(|error| Err::<(), _>(error.into()))).map(drop)
    }
}

impl From<Error> for Errors {
    fn from(first: Error) -> Self {
        Self { first, others: Vec::new(), unkept: 0 }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others.iter().try_for_each(|error| write!(f, "\n{error}"))?;
        match self.unkept {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Errors {}

/// All the values, or the mistakes of all that failed. Lets a consumer read every statement of a
/// kind before it gives up.
pub fn gather<T>(results: impl IntoIterator<Item = Result<T, Errors>>) -> Result<Vec<T>, Errors> {
    let mut values = Vec::new();
    let mut errors: Option<Errors> = None;
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(more), Some(errors)) => errors.append(more),
            (Err(more), None) => errors = Some(more),
        }
    }
    errors.map_or(Ok(values), Err)
}

/// What is wrong. `Display` is one sentence that also says how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is longer than [`crate::MAX_SIZE`].
    #[error("the text has {size} bytes, but at most {limit} are read: split or shorten it")]
    TooLarge {
        /// Its length in bytes.
        size: usize,
        /// The longest accepted length.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("the byte 0x{0:02x} is not UTF-8 text: save the file in the encoding UTF-8")]
    NotUtf8(u8),
    /// A character that only a quoted word may contain.
    #[error("the character `{0}` needs quotes: write the word as {1}")]
    NeedsQuotes(char, String),
    /// A space that is no ASCII space, or a control character, outside quotes.
    #[error("the invisible character U+{:04X} stands in the text: replace it with a space", u32::from(*.0))]
    Invisible(char),
    /// A string without its closing quote.
    #[error(
        "the string is not closed on its line: add `\"` at its end, and write a line break in it as `\\n`"
    )]
    UnclosedString,
    /// A control character inside a string.
    #[error("the string contains a control character: write it as `{}`", .0.escape_unicode())]
    ControlInString(char),
    /// A backslash followed by something unknown.
    #[error(
        "`\\{0}` is no escape: use `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` or a character number such as `\\u{{e9}}`"
    )]
    UnknownEscape(String),
    /// A string and a word, or two strings, without space between.
    #[error("a space is missing before this word: add it, or put all of it into one string")]
    MissingSpace,
    /// A comment without its end.
    #[error("the comment is not closed: add `*/` at its end")]
    UnclosedComment,
    /// The end of a comment without its beginning.
    #[error("`*/` closes no comment here: put a space before its `/*`, or remove it")]
    StrayCommentEnd,
    /// A `;` with nothing before it.
    #[error("nothing stands before this `;`: remove it (a block ends with `}}` alone)")]
    EmptyStatement,
    /// A `{` with nothing before it.
    #[error("nothing stands before this `{{`: a block needs a name, as in `name {{ … }}`")]
    NamelessBlock,
    /// A `}` too many.
    #[error("this `}}` closes no block: remove it, or add the `{{` that is missing before it")]
    StrayClose,
    /// A `}` too few.
    #[error("the text ends inside a block: add `}}`")]
    UnclosedBlock,
    /// A statement without `;`.
    #[error("the statement is not ended: add `;`")]
    MissingSemicolon,
    /// Blocks nested deeper than [`crate::MAX_DEPTH`].
    #[error("blocks are nested deeper than {limit}: make the nesting flatter")]
    TooDeep {
        /// The greatest accepted depth.
        limit: usize,
    },
    /// No `version` statement at the beginning.
    #[error("the first statement must be the version of the format: begin with `version {0};`")]
    NoVersion(u32),
    /// A version that the reader does not know.
    #[error("version {found} of the format is unknown here: use `version {known};`")]
    OtherVersion {
        /// The version stated.
        found: u32,
        /// The version that the reader knows.
        known: u32,
    },
    /// A command without a word.
    #[error("the command is empty: write one statement")]
    EmptyCommand,
    /// A command of several statements.
    #[error("a command is one statement: give this one as a command of its own")]
    SecondStatement,
    /// A statement that the reader did not ask for.
    #[error("unknown statement `{}`: {}", shown(.word), advice(.suggestion.as_deref(), .accepted))]
    UnknownStatement {
        /// Its first word.
        word: String,
        /// The most similar word that would be accepted.
        suggestion: Option<String>,
        /// All words that would be accepted.
        accepted: Vec<String>,
    },
    /// A statement given twice where one is accepted; the words that are the same.
    #[error("`{}` is given twice: remove one of the two", shown(.0))]
    Duplicate(String),
    /// A required statement is not there.
    #[error("{} lacks the statement `{name}`: add for example `{name} {example};`", whose(.owner))]
    MissingStatement {
        /// The first word of the block's own statement; empty for the whole text.
        owner: String,
        /// The missing statement.
        name: String,
        /// A value that it accepts.
        example: String,
    },
    /// A required block is not there.
    #[error("{} lacks the block `{name}`: add `{name} {{ … }}`", whose(.owner))]
    MissingBlock {
        /// The first word of the block's own statement; empty for the whole text.
        owner: String,
        /// The missing statement.
        name: String,
    },
    /// A statement ends before a word that it needs.
    #[error("`{statement}` needs {what} here: write for example `{example}`")]
    MissingWord {
        /// The first word of the statement.
        statement: String,
        /// What is missing.
        what: String,
        /// An accepted word.
        example: String,
    },
    /// A word at which the statement should have ended.
    #[error("`{}` takes nothing more here: {}", shown(.statement), if *.next_line { "add `;` at the end of the line before" } else { "remove this word" })]
    ExtraWord {
        /// The first word of the statement.
        statement: String,
        /// The word stands on a later line than the one before: a `;` was forgotten.
        next_line: bool,
    },
    /// A fixed word was expected.
    #[error("`{}` is unexpected here: write `{expected}`", shown(.found))]
    ExpectedWord {
        /// The word found.
        found: String,
        /// The word that belongs here.
        expected: String,
    },
    /// A statement ended with `;` that needs a block.
    #[error("`{0}` needs a block: write `{{ … }}` instead of `;`")]
    NeedsBlock(String),
    /// A statement with a block that takes none.
    #[error("`{0}` takes no block: end it with `;`")]
    TakesNoBlock(String),
    /// A word that is no value of the wanted type.
    #[error("`{}` is not {what}: {reason}{}", shown(.text), example_after(.reason, .example))]
    BadValue {
        /// The word.
        text: String,
        /// What it should be.
        what: &'static str,
        /// Why it is not.
        reason: ValueError,
        /// An accepted value.
        example: &'static str,
    },
    /// A value outside of the range that this statement accepts.
    #[error("`{}` is out of range: it must be {min} to {max}", shown(.text))]
    OutOfRange {
        /// The word.
        text: String,
        /// The least accepted value.
        min: String,
        /// The greatest accepted value.
        max: String,
    },
    /// The consumer's own sentence.
    #[error("{0}")]
    Meaning(String),
}

fn whose(word: &str) -> String {
    if word.is_empty() { "the text".to_owned() } else { format!("`{}`", shown(word)) }
}

fn example_after(reason: &ValueError, example: &str) -> String {
    if reason.names_a_word() { String::new() } else { format!("; write for example `{example}`") }
}

fn advice(suggestion: Option<&str>, accepted: &[String]) -> String {
    match (suggestion, accepted) {
        (Some(word), _) => format!("did you mean `{word}`?"),
        (None, []) => "nothing is accepted here, remove it".to_owned(),
        (None, accepted) => format!("accepted here: {}", list(accepted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Source, Span};

    fn error(sentence: &str) -> Error {
        Location::new(&Source::new("t", "abc"), Span::new(0, 1)).error(sentence)
    }

    #[test]
    fn only_the_first_errors_are_kept_and_the_others_counted() {
        let many = (0..MAX_ERRORS + 5).map(|n| error(&n.to_string()));
        let errors = Errors::check(many).unwrap_err();
        assert_eq!(errors.iter().count(), MAX_ERRORS);
        assert_eq!(errors.count(), MAX_ERRORS + 5);
        assert!(errors.to_string().ends_with("\n… and 5 more"));
    }

    #[test]
    fn appending_keeps_the_count_of_both() {
        let some = |n: usize| Errors::check((0..n).map(|_| error("x"))).unwrap_err();
        let mut errors = some(15);
        errors.append(some(30));
        assert_eq!((errors.count(), errors.iter().count()), (45, MAX_ERRORS));
    }

    #[test]
    fn gather_reports_the_mistakes_of_all() {
        let ok: Result<Vec<u8>, _> = gather([Ok(1), Ok(2)]);
        assert_eq!(ok.unwrap(), [1, 2]);
        let results = [Ok(1), Err(error("one").into()), Err(error("two").into())];
        let errors = gather(results).unwrap_err();
        assert_eq!(errors.count(), 2);
    }

    #[test]
    fn second_place_is_shown_below_the_first() {
        let second = Location::new(&Source::new("u", "xyz"), Span::new(1, 2));
        let text = error("is wrong").related("because of this", second).to_string();
        assert_eq!(
            text,
            "t:1:1: is wrong\n  1 | abc\n    | ^\nu:1:2: because of this\n  1 | xyz\n    |  ^"
        );
    }
}
