//! What may follow the words of an unfinished command, for `?` and Tab.

use std::collections::BTreeSet;

use super::edit::VERBS;
use super::value::Value;
use super::{Kind, List, Members, Schema, Shape};
use crate::lexer::{Lexer, Token};
use crate::source::Source;
use crate::statement::Word;
use crate::tree::{Level, Node, Tree, is_version};

/// The most words that are offered.
const MOST: usize = 200;

/// What may follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The byte of the line at which the unfinished word begins, which a candidate replaces.
    pub from: usize,
    /// What may stand there, in the order of the schema, then of the configuration.
    pub candidates: Vec<Candidate>,
    /// How many more there are.
    pub more: usize,
    /// Whether the command could be given as it is.
    pub is_whole: bool,
}

/// A word that may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The word as it has to be written, with quotes if it needs them; or what kind of word, such as
    /// `<duration>`.
    pub text: String,
    /// What it means.
    pub help: String,
    /// Whether `text` says what kind of word to write, and is none itself.
    pub is_hint: bool,
}

impl Completion {
    /// What all words on offer begin with; empty if there is none.
    pub fn common(&self) -> &str {
        let mut words = self.candidates.iter().filter(|candidate| !candidate.is_hint);
        let Some(first) = words.next() else { return "" };
        let length = words.fold(first.text.len(), |length, other| {
            let same = first.text.bytes().zip(other.text.bytes()).take_while(|(a, b)| a == b);
            same.count().min(length)
        });
        &first.text[..first.text.floor_char_boundary(length)]
    }
}

impl Schema {
    /// What may follow `line`, a command that is being written. The first word is a command that
    /// [`Schema::edit`] knows, or one of the caller's about what `tree` holds, such as `show`.
    pub fn complete(&self, tree: &Tree, line: &str) -> Completion {
        let Some((words, partial, from)) = unfinished(line) else { return Completion::default() };
        let mut offer =
            Offer { partial: &partial, seen: BTreeSet::new(), out: Completion::default() };
        offer.out.from = from;
        offer.out.is_whole = self.edit(tree, line).is_ok();
        match words.split_first() {
            None => VERBS.iter().for_each(|(verb, help)| offer.word(verb, help)),
            Some((verb, path)) => {
                let adds = verb.text() == "set";
                offer.path(&self.top, Some(&tree.root), path, adds);
                let links: &[(&str, &str)] = match verb.text() {
                    "rename" | "copy" => &[("to", "the other key")],
                    "insert" => {
                        &[("before", "the statement that follows"), ("after", "the one before")]
                    }
                    _ => &[],
                };
                if path.len() > 1 {
                    links.iter().for_each(|(word, help)| offer.word(word, help));
                }
            }
        }
        offer.out
    }
}

/// The finished words of a line, the unfinished one, and where that begins. `None` inside of a block.
fn unfinished(line: &str) -> Option<(Vec<Word>, String, usize)> {
    let source = Source::new("line", line);
    let mut lexer = Lexer::new(&source);
    let mut words = Vec::new();
    loop {
        match lexer.next() {
            Token::Word(word) => words.push(word),
            Token::End(_) => break,
            Token::Open(_) | Token::Close(_) | Token::Semicolon(_) => return None,
        }
    }
    let touches_end = |word: &&Word| word.span().range().end == line.len();
    match words.last().filter(touches_end).map(|word| (word.text().to_owned(), word.span())) {
        Some((partial, span)) => {
            words.pop();
            Some((words, partial, span.range().start))
        }
        None => Some((words, String::new(), line.len())),
    }
}

/// Candidates in the making.
struct Offer<'p> {
    partial: &'p str,
    seen: BTreeSet<String>,
    out: Completion,
}

impl Offer<'_> {
    fn word(&mut self, text: &str, help: &str) {
        if !text.starts_with(self.partial) || !self.seen.insert(text.to_owned()) {
            return;
        }
        if self.out.candidates.len() == MOST {
            self.out.more += 1;
            return;
        }
        let text = Word::from(text).to_string();
        self.out.candidates.push(Candidate { text, help: help.to_owned(), is_hint: false });
    }

    fn hint(&mut self, text: String, help: &str) {
        if !text.is_empty() {
            self.out.candidates.push(Candidate { text, help: help.to_owned(), is_hint: true });
        }
    }

    /// What may follow `path` in a block. What is there alone counts unless `adds`.
    fn path(&mut self, members: &Members, level: Option<&Level>, path: &[Word], adds: bool) {
        let Some(first) = path.first() else {
            return self.names(members, level, adds);
        };
        let Some(kind) = members.find(first.text()) else {
            return self.known_words(level, path, "");
        };
        match &kind.shape {
            Shape::Container(inside) => {
                let block = level.and_then(|level| block_of(level, &path[..1]));
                self.path(inside, block, &path[1..], adds);
            }
            Shape::List(list) if path.len() <= list.keys.len() => {
                self.key(list, kind, level, path, adds);
            }
            Shape::List(list) => {
                let head = &path[..=list.keys.len()];
                let block = level.and_then(|level| block_of(level, head));
                self.path(
                    list.inside(path.get(1).map(Word::text)),
                    block,
                    &path[head.len()..],
                    adds,
                );
            }
            Shape::Leaf { value, default } if path.len() == 1 && adds => {
                let help = default.as_ref().map(|default| format!(" (default {default})"));
                self.value(value, &format!("{}{}", kind.help, help.unwrap_or_default()));
            }
            Shape::LeafList { value, .. } if adds => self.value(value, &kind.help),
            Shape::Leaf { .. } | Shape::LeafList { .. } if kind.secret => {}
            Shape::Leaf { .. } | Shape::LeafList { .. } => {
                self.values_there(level, path, &kind.help)
            }
            Shape::Words { usage } => {
                if adds {
                    self.hint(usage.clone(), &kind.help);
                } else if !kind.secret {
                    self.known_words(level, path, &kind.help);
                }
            }
            Shape::Flag => {}
        }
    }

    fn names(&mut self, members: &Members, level: Option<&Level>, adds: bool) {
        let nodes = || level.into_iter().flat_map(|level| &level.nodes);
        for kind in &members.kinds {
            if adds || nodes().any(|node| node.keyword() == kind.name) {
                let help = match (kind.hint().as_str(), kind.help.as_str()) {
                    ("", help) => help.to_owned(),
                    (hint, "") => hint.to_owned(),
                    (hint, help) => format!("{hint}: {help}"),
                };
                self.word(&kind.name, &help);
            }
        }
        if members.any {
            nodes().filter(|node| !is_version(node)).for_each(|node| self.word(node.keyword(), ""));
        }
    }

    /// The key of a list entry that comes next.
    fn key(&mut self, list: &List, kind: &Kind, level: Option<&Level>, path: &[Word], adds: bool) {
        let key = &list.keys[path.len() - 1];
        let help = if key.help.is_empty() { &kind.help } else { &key.help };
        if path.len() == 1 && adds {
            list.cases.iter().for_each(|case| self.word(&case.key, &case.help));
        }
        if adds {
            self.value(&key.value, help);
        }
        self.known_words(level, path, help);
    }

    fn value(&mut self, value: &Value, help: &str) {
        let words = value.all();
        if words.is_empty() {
            return self.hint(value.hint(), help);
        }
        words.into_iter().for_each(|word| self.word(word, help));
    }

    /// The values of leaves that are there, whichever came before.
    fn values_there(&mut self, level: Option<&Level>, path: &[Word], help: &str) {
        let nodes = level.into_iter().flat_map(|level| &level.nodes);
        for node in nodes.filter(|node| node.keyword() == path[0].text()) {
            let values = node.words()[1..].iter().filter(|value| !path[1..].contains(value));
            values.for_each(|value| self.word(value.text(), help));
        }
    }

    /// The words that follow in statements that are there and begin with `path`.
    fn known_words(&mut self, level: Option<&Level>, path: &[Word], help: &str) {
        let nodes = level.into_iter().flat_map(|level| &level.nodes);
        for node in nodes.filter(|node| node.begins_with(path)) {
            if let Some(next) = node.words().get(path.len()) {
                self.word(next.text(), help);
            }
        }
    }
}

fn block_of<'l>(level: &'l Level, words: &[Word]) -> Option<&'l Level> {
    let node: &Node = level.nodes.iter().find(|node| node.words() == words)?;
    node.block.as_deref()
}
