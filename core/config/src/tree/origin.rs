//! Where the words of a tree's canonical text were written: mistakes that somebody finds who was given
//! that text, such as a component, are shown in the operator's file.
//!
//! A position in the canonical text leads to a statement and a word of it; the node that was printed there
//! knows its source. Notes of mistakes have the form that compilers and [`Errors`] give them:
//!
//! ```text
//! SOURCE:LINE:COLUMN: what is wrong
//!   LINE | the line
//!        |     ^^^^
//! ```

use std::sync::Arc;

use crate::document::Document;
use crate::error::{Errors, MAX_ERRORS};
use crate::source::{Location, Source, Span, is_unsafe_to_show};
use crate::statement::Statement;

use super::Tree;
use super::node::Node;

/// The most characters of one sentence of a note that are shown.
const LONGEST: usize = 1000;

impl Tree {
    /// The statements in the block of the first statement that has exactly these words; nothing if there
    /// is none.
    #[must_use]
    pub fn inside(&self, words: &[&str]) -> Self {
        let has =
            |node: &&Node| node.words.iter().map(|word| word.text()).eq(words.iter().copied());
        let block = self.statements().find(has).and_then(|node| node.block.as_deref());
        let mut tree = Self::empty();
        let nodes = block.map(|block| block.nodes.clone()).unwrap_or_default();
        Arc::make_mut(&mut tree.root).nodes.extend(nodes);
        tree
    }

    /// The same mistakes, which a reader of [`Tree::body`] or of [`Tree::text`] has found, where its words
    /// were written.
    #[must_use]
    pub fn original(&self, errors: Errors) -> Errors {
        let (text, body) = (self.text(), self.body());
        let whole = errors.iter().all(|error| error.location().source().text() == text);
        let origins = match whole {
            true => Origins {
                nodes: self.root.nodes.iter().map(|node| &**node).collect(),
                ..Origins::new(self, &text)
            },
            false => Origins::new(self, &body),
        };
        errors.moved(|location| origins.place(location.span().range().start))
    }

    /// A component's note about [`Tree::body`], which it was given under the name `source`: its mistakes
    /// where their words were written, the first one with `by` in front of the sentence, which says
    /// who found it. What has no position is shown at the first statement.
    ///
    /// ```
    /// use weft_config::Tree;
    /// let tree = Tree::parse("node.conf", "version 1;\n\nxia { echo off; interface west; }").unwrap();
    /// assert_eq!(tree.body(), "xia {\n    echo off;\n    interface west;\n}\n");
    /// let note = "given:3:15: no interface `west`\n  3 |     interface west;\n    |               ^^^^";
    /// assert_eq!(
    ///     tree.noted("given", note, "xia refuses this: ").to_string(),
    ///     "node.conf:3:27: xia refuses this: no interface `west`\n  \
    ///        3 | xia { echo off; interface west; }\n    \
    ///          |                           ^^^^"
    /// );
    /// ```
    #[must_use]
    pub fn noted(&self, source: &str, note: &str, by: &str) -> Errors {
        let text = self.body();
        let origins = Origins::new(self, &text);
        let mut notes = read(source, note).into_iter();
        let first = notes.next().unwrap_or_default();
        let place = |note: &Note| match note.position {
            Some(position) => origins.place(offset(&text, position)),
            None => origins.first(),
        };
        let mut errors =
            Errors::from(place(&first).error(format!("{by}{}", clean(&first.sentence))));
        notes.for_each(|note| errors.push(place(&note).error(clean(&note.sentence))));
        errors
    }
}

/// A tree beside the text that was printed of it.
struct Origins<'t> {
    nodes: Vec<&'t Node>,
    printed: Vec<Statement>,
}

impl<'t> Origins<'t> {
    fn new(tree: &'t Tree, text: &str) -> Self {
        let parsed = Document::parse("", text).map(Document::into_parts);
        // What was printed can be read back unless it is too long; then everything is at the first one.
        let printed = parsed.map(|(_, statements, _)| statements).unwrap_or_default();
        Self { nodes: tree.statements().collect(), printed }
    }

    fn first(&self) -> Location {
        let nowhere = || Location::new(&Source::new("configuration", ""), Span::default());
        self.nodes.first().map_or_else(nowhere, |node| node.location())
    }

    /// Where the word at a byte of the text was written.
    fn place(&self, at: usize) -> Location {
        place(&self.printed, &self.nodes, at).unwrap_or_else(|| self.first())
    }
}

fn place(printed: &[Statement], nodes: &[&Node], at: usize) -> Option<Location> {
    let begins = |statement: &Statement| statement.span().range().start <= at;
    let index = printed.iter().rposition(begins).unwrap_or(0);
    let (statement, node) = (printed.get(index)?, *nodes.get(index)?);
    let end = statement.words().last().map_or(at, |word| word.span().range().end);
    if at > end {
        let inner: Vec<&Node> = node.block().into_iter().flatten().collect();
        let block = statement.block().unwrap_or_default();
        return match block.first() {
            Some(first) if first.span().range().start <= at => place(block, &inner, at),
            _ => Some(node.location()),
        };
    }
    let words = statement.words();
    let index = words.iter().rposition(|word| word.span().range().start <= at).unwrap_or(0);
    let written = node.words().get(index)?.span();
    let range = words[index].span().range();
    // Right behind a word another one is missing.
    let span = match at.saturating_sub(range.start) {
        _ if at >= range.end => written.behind(),
        // The same characters in the same form: the position in the word is the same, too.
        shift if range.len() == written.range().len() => {
            Span::new(written.range().start + shift, written.range().end)
        }
        _ => written,
    };
    Some(Location::new(&node.source, span))
}

/// One mistake of a note.
#[derive(Debug, Default, PartialEq, Eq)]
struct Note {
    /// Line and column, counted from 1.
    position: Option<(usize, usize)>,
    sentence: String,
}

/// The mistakes that a note tells, without the lines that it shows.
fn read(source: &str, note: &str) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for line in note.lines() {
        let room = notes.len() < MAX_ERRORS;
        match (position(source, line), notes.last_mut()) {
            (Some((position, sentence)), _) if room => {
                notes.push(Note { position: Some(position), sentence: sentence.to_owned() });
            }
            (None, Some(last)) if last.position.is_some() && is_excerpt(line) => {}
            (_, Some(last)) => {
                last.sentence.push(' ');
                last.sentence.push_str(line.trim());
            }
            (_, None) => notes.push(Note { position: None, sentence: line.to_owned() }),
        }
    }
    notes
}

/// `SOURCE:LINE:COLUMN: ` at the beginning of a line, and what follows it.
fn position<'n>(source: &str, line: &'n str) -> Option<((usize, usize), &'n str)> {
    let (number, rest) = line.strip_prefix(source)?.strip_prefix(':')?.split_once(':')?;
    let (column, sentence) = rest.split_once(": ")?;
    Some(((number.parse().ok()?, column.parse().ok()?), sentence))
}

/// Whether it is a line that shows a line of the text, or carets below one.
fn is_excerpt(line: &str) -> bool {
    let Some((number, _)) = line.split_once('|') else { return false };
    line.starts_with("  ") && number.trim().bytes().all(|byte| byte.is_ascii_digit())
}

/// The byte at a line and a column of characters, both counted from 1.
fn offset(text: &str, (line, column): (usize, usize)) -> usize {
    let mut begins = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let Some(begin) = begins.nth(line.saturating_sub(1)) else { return text.len() };
    let line = text[begin..].lines().next().unwrap_or_default();
    let within = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    begin + within
}

/// A sentence of somebody else, without what moves a terminal's cursor, and not endless.
fn clean(sentence: &str) -> String {
    let safe = |c| if is_unsafe_to_show(c) { char::REPLACEMENT_CHARACTER } else { c };
    sentence.chars().take(LONGEST).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;
    use proptest::prelude::*;

    const FILE: &str = "version 1; node r1;\n# The stack.\nxia {\n  interface \"west\"   east;\n\
                        \n  principal hid { local  hid-02; }\n}\n";

    fn xia() -> Tree {
        Tree::parse("node.conf", FILE).unwrap().part("xia")
    }

    /// The word of the file that is shown for one of the canonical text.
    fn shown(word: &str) -> String {
        let tree = xia();
        let at = tree.body().find(word).unwrap();
        let body = tree.body();
        let location = Origins::new(&tree, &body).place(at);
        FILE[location.span().range()].to_owned()
    }

    #[test]
    fn each_word_is_shown_where_it_was_written() {
        for word in ["xia", "interface", "east", "principal", "hid {", "local", "hid-02"] {
            assert_eq!(shown(word), word.trim_end_matches(" {"), "{}", xia().body());
        }
        // Quotes that it does not need are gone in the text.
        assert_eq!(shown("west"), "\"west\"");
        // Inside of a word.
        assert_eq!(shown("02;"), "02");
        // Braces and ends.
        assert_eq!(shown("}\n}"), "local");
        assert_eq!(shown(";\n    principal"), "");
    }

    #[test]
    fn mistakes_of_a_reader_are_shown_where_they_were_written() {
        let tree = xia();
        let document = Document::parse("given", &tree.body()).unwrap();
        let read = |block: &mut Block<'_>| {
            block.required_one("xia")?.read_block(|block| {
                block.list::<String>("interface")?;
                block.many("principle");
                Ok(())
            })
        };
        let errors = tree.original(document.block().read(read).unwrap_err());
        let whole = Document::parse("given", &tree.text()).unwrap();
        assert_eq!(tree.original(whole.read(1, read).unwrap_err()), errors);
        assert_eq!(
            errors.to_string(),
            "node.conf:6:3: unknown statement `principal`: did you mean `principle`?\n  \
             6 |   principal hid { local  hid-02; }\n    |   ^^^^^^^^^"
        );
    }

    #[test]
    fn a_note_may_tell_of_several_mistakes() {
        let note = "given:2:1: one\n  2 | # …\n    | ^\ngiven:5:15: two\n  and more\n… and 3 more";
        let errors = xia().noted("given", note, "xia: ");
        let lines: Vec<String> = errors.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], "node.conf:3:1: xia: one");
        assert_eq!(lines[3], "node.conf:6:26: two and more … and 3 more");
        assert_eq!(lines.len(), 6, "{errors}");
    }

    #[test]
    fn a_note_without_position_is_shown_at_the_statement() {
        let text = xia().noted("given", "not\u{1b}[2J today", "xia refuses this: ").to_string();
        assert!(
            text.starts_with("node.conf:3:1: xia refuses this: not\u{fffd}[2J today\n"),
            "{text}"
        );
        let text = Tree::empty().noted("given", "", "x: ").to_string();
        assert!(text.starts_with("configuration:1:1: x: "), "{text}");
        // Positions in a text that the manager does not know lead nowhere.
        let text = xia().noted("given", "other:1:1: x", "").to_string();
        assert!(text.starts_with("node.conf:3:1: other:1:1: x"), "{text}");
    }

    #[test]
    fn what_stands_inside_of_a_statement_is_a_tree() {
        let tree = Tree::parse("t", "version 1; program a { config { x; } } program b;").unwrap();
        assert_eq!(tree.inside(&["program", "a"]).body(), "config {\n    x;\n}\n");
        assert!(tree.inside(&["program", "b"]).is_empty());
        assert!(tree.inside(&["program"]).is_empty());
    }

    proptest! {
        #[test]
        fn any_position_is_somewhere(
            text in "(x [a-z\"# ]{0,4};|y \\{|\\}|\n){0,12}",
            at in 0usize..200,
            note in "(given:[0-9]{1,20}:[0-9]{1,3}: |[a-z|]|\n  |\u{1b}){0,8}",
        ) {
            if let Ok(tree) = Tree::parse_part("t", &text) {
                let body = tree.body();
                let location = Origins::new(&tree, &body).place(at);
                prop_assert!(location.excerpt().lines().count() == 2);
                let errors = tree.noted("given", &note, "by");
                prop_assert!(errors.count() >= 1);
            }
        }

        #[test]
        fn a_canonical_text_is_its_own_origin(at in 0usize..120) {
            let body = xia().body();
            let tree = Tree::parse_part("t", &body).unwrap();
            let printed = Document::parse("t", &body).unwrap();
            let words = |statement: &Statement| statement.words().to_vec();
            // At each word the place is the word itself.
            for statement in printed.statements() {
                for word in words(statement) {
                    let location = Origins::new(&tree, &body).place(word.span().range().start);
                    prop_assert_eq!(location.span(), word.span());
                }
            }
            let _ = Origins::new(&tree, &body).place(at);
        }
    }
}
