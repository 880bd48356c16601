//! The tree: words and statements.

use std::sync::Arc;

use crate::print::is_bare;
use crate::source::{Source, Span};
use crate::value::ToWord;

/// One word of a statement, its quotes and escapes already removed.
///
/// Equality compares the text alone: position and quoting do not belong to the meaning.
#[derive(Debug, Clone)]
pub struct Word {
    text: Text,
    span: Span,
    quoted: bool,
    /// Whether it is read back without quotes; known once, asked for whenever it is printed.
    bare: bool,
}

/// Where the text of a word is.
#[derive(Debug, Clone)]
enum Text {
    Own(Box<str>),
    /// At the word's span. A long configuration has very many words, nearly all of them such.
    Source(Arc<Source>),
}

impl Word {
    pub(crate) fn new(text: String, span: Span, quoted: bool) -> Self {
        let bare = is_bare(&text);
        Self { text: Text::Own(text.into_boxed_str()), span, quoted, bare }
    }

    /// A word as it stands in a text without quotes. The span must be one of characters of the text.
    pub(crate) fn bare(source: &Arc<Source>, span: Span) -> Self {
        Self { text: Text::Source(Arc::clone(source)), span, quoted: false, bare: true }
    }

    /// Whether it can be written without quotes.
    pub(crate) fn is_bare(&self) -> bool {
        self.bare
    }

    /// The meaning: what stood between the quotes, or the bare word.
    #[inline]
    pub fn text(&self) -> &str {
        match &self.text {
            Text::Own(text) => text,
            Text::Source(source) => &source.text()[self.span.range()],
        }
    }

    /// Where it stands, quotes included.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether it was written in quotes.
    pub fn quoted(&self) -> bool {
        self.quoted
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Word {}

impl PartialOrd for Word {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By text.
impl Ord for Word {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text().cmp(other.text())
    }
}

impl<T: ToWord + ?Sized> From<&T> for Word {
    fn from(value: &T) -> Self {
        Self::new(value.to_word(), Span::default(), false)
    }
}

/// One or more words, and perhaps a block of statements.
///
/// Equality compares words and blocks, not positions. `Display` prints the canonical text.
///
/// ```
/// use weft_config::{Rate, Statement};
/// let rate: Rate = Rate::from_bits_per_second(2_000_000);
/// let link = Statement::new("link").word("eth0").child(Statement::new("rate").word(&rate));
/// assert_eq!(link.to_string(), "link eth0 {\n    rate 2Mbit/s;\n}\n");
/// ```
#[derive(Debug, Clone)]
pub struct Statement {
    /// Never empty.
    words: Vec<Word>,
    block: Option<Vec<Statement>>,
    span: Span,
}

impl Statement {
    /// `keyword;`
    pub fn new(keyword: &str) -> Self {
        Self::from_words(vec![Word::from(keyword)], None, Span::default())
    }

    /// `words` must not be empty.
    pub(crate) fn from_words(
        mut words: Vec<Word>,
        block: Option<Vec<Statement>>,
        span: Span,
    ) -> Self {
        debug_assert!(!words.is_empty(), "a statement has at least one word");
        // Most statements are short and many stay in memory.
        words.shrink_to_fit();
        Self { words, block, span }
    }

    /// Adds a word at the end.
    #[must_use]
    pub fn word<T: ToWord + ?Sized>(mut self, value: &T) -> Self {
        self.words.push(Word::from(value));
        self
    }

    /// Adds a statement at the end of the block, which is made if there is none.
    #[must_use]
    pub fn child(mut self, statement: Statement) -> Self {
        self.block.get_or_insert_default().push(statement);
        self
    }

    /// Adds statements at the end of the block, which is made (even if there are none to add).
    #[must_use]
    pub fn children(mut self, statements: impl IntoIterator<Item = Statement>) -> Self {
        self.block.get_or_insert_default().extend(statements);
        self
    }

    /// The first word.
    pub fn keyword(&self) -> &str {
        self.words[0].text()
    }

    /// All words; there is at least one.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The statements in braces; `None` if the statement ends with `;`.
    pub fn block(&self) -> Option<&[Statement]> {
        self.block.as_deref()
    }

    /// Its words, its block, and where it stands.
    pub(crate) fn into_parts(self) -> (Vec<Word>, Option<Vec<Statement>>, Span) {
        (self.words, self.block, self.span)
    }

    /// From its first word to its `;` or `}`.
    pub fn span(&self) -> Span {
        self.span
    }
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.block == other.block
    }
}

impl Eq for Statement {}
