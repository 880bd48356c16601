//! Where something stands: the text and its name, spans in it, and the excerpt with a caret.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A range of bytes of a source text. Statements built by the program have the empty span at 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Texts are at most [`crate::MAX_SIZE`] long, so offsets fit; anything else saturates.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: offset(start), end: offset(end) }
    }

    /// The byte offsets.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the beginning of this span to the end of `last`.
    pub(crate) fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }

    /// The empty span right behind this one, where something is missing.
    pub(crate) fn behind(self) -> Self {
        Self { start: self.end, end: self.end }
    }
}

/// A text together with the name by which messages call it, usually the path of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), text: text.to_owned() })
    }

    /// The name that messages show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte offset at which the line of `offset` begins.
    fn line_start(&self, offset: usize) -> usize {
        self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// `offset` moved into the text and onto the beginning of a character.
    fn clamp(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }
}

/// A place in a source text. Keeps the text alive, so it can be shown at any later time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    source: Arc<Source>,
    span: Span,
}

/// How much of a line is shown before and behind the place, in characters.
const SHOWN_BEFORE: usize = 60;
const SHOWN_BEHIND: usize = 80;

impl Location {
    pub(crate) fn new(source: &Arc<Source>, span: Span) -> Self {
        Self { source: Arc::clone(source), span }
    }

    /// The name of the source text.
    pub fn source_name(&self) -> &str {
        self.source.name()
    }

    /// The text it is in.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The bytes of the source text.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        1 + self.source.text[..self.start()].matches('\n').count()
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> usize {
        let start = self.start();
        1 + self.source.text[self.source.line_start(start)..start].chars().count()
    }

    fn start(&self) -> usize {
        self.source.clamp(self.span.range().start)
    }

    /// The line, cut to a readable length, and below it carets that mark the place.
    pub fn excerpt(&self) -> String {
        let text = self.source.text.as_str();
        let start = self.start();
        let end = self.source.clamp(self.span.range().end).max(start);
        let line_end = text[start..].find(['\n', '\r']).map_or(text.len(), |at| start + at);

        let (before, before_cut) = last_chars(&text[self.source.line_start(start)..start]);
        let behind: String = text[start..line_end].chars().take(SHOWN_BEHIND).collect();
        let marked = text[start..end.min(line_end)].chars().take(SHOWN_BEHIND).count().max(1);
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };

        let number = self.line().to_string();
        let indent = before.chars().count() + usize::from(before_cut);
        format!(
            "  {number} | {}{}{}{}\n  {:width$} | {:indent$}{}",
            cut(before_cut),
            printable(&before),
            printable(&behind),
            cut(start + behind.len() < line_end),
            "",
            "",
            "^".repeat(marked),
            width = number.len(),
        )
    }
}

/// `name:line:column`, as compilers and editors write it.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source.name, self.line(), self.column())
    }
}

/// The last characters of the part of a line, and whether some before them were left out.
fn last_chars(text: &str) -> (String, bool) {
    let from = text.char_indices().rev().nth(SHOWN_BEFORE - 1).map_or(0, |(at, _)| at);
    (text[from..].to_owned(), from > 0)
}

/// One column per character, and nothing that moves the cursor or the writing direction of a
/// terminal.
fn printable(text: &str) -> String {
    let replace = |c| match c {
        '\t' => ' ',
        c if is_unsafe_to_show(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(replace).collect()
}

/// Control characters and those that reorder the text around them.
pub(crate) fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A word as messages show it: escaped, and not longer than a line.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == LONGEST {
            out.push('…');
            break;
        }
        if is_unsafe_to_show(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str, start: usize, end: usize) -> Location {
        Location::new(&Source::new("t", text), Span::new(start, end))
    }

    #[test]
    fn line_and_column_count_characters_from_one() {
        let location = at("one\n  ärger here", 9, 11);
        assert_eq!((location.line(), location.column()), (2, 5));
        assert_eq!(location.to_string(), "t:2:5");
    }

    #[test]
    fn excerpt_marks_the_span_on_its_line() {
        assert_eq!(at("a;\n\tbc de;\n", 4, 6).excerpt(), "  2 |  bc de;\n    |  ^^");
    }

    #[test]
    fn excerpt_of_an_empty_span_shows_one_caret() {
        assert_eq!(at("ab", 2, 2).excerpt(), "  1 | ab\n    |   ^");
    }

    #[test]
    fn excerpt_of_a_span_over_lines_ends_with_its_first_line() {
        assert_eq!(at("a {\r\n}", 0, 6).excerpt(), "  1 | a {\n    | ^^^");
    }

    #[test]
    fn excerpt_of_a_long_line_is_cut_on_both_sides() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let excerpt = at(&text, 500, 504).excerpt();
        let lines: Vec<_> = excerpt.lines().collect();
        assert!(lines[0].chars().count() < 160, "{excerpt}");
        let caret = lines[1].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[0].chars().nth(caret), Some('H'));
    }

    #[test]
    fn excerpt_carries_no_terminal_controls() {
        assert!(!at("\u{1b}[2J x", 5, 6).excerpt().contains('\u{1b}'));
        assert_eq!(shown("\u{1b}[2J"), "\\u{1b}[2J");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_can_be_shown(text in ".{0,40}\n?.{0,200}", a in 0usize..300, b in 0usize..300) {
            let location = at(&text, a, b);
            prop_assert!(location.line() >= 1 && location.column() >= 1);
            prop_assert_eq!(location.excerpt().lines().count(), 2);
        }
    }
}
