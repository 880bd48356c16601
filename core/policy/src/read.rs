//! The statement `policy { … }` as a tree: sets, which mean the same to everybody, are read; policies stay words, which only
//! a protocol's variables give a meaning.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use weft_config::{Block, Document, Entry, Errors, Location, Name, Statement, gather};

use crate::as_path::AsPathPattern;
use crate::community::{CommunityKind, CommunityPattern, CommunitySet};
use crate::number::{NumberRange, NumberSet};
use crate::prefixes::{PrefixRange, PrefixSet};
use crate::{POLICY, STATEMENT};

/// A word and its place. Equality compares the text.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) location: Location,
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Word {}

/// A statement of a policy: its words, and its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// At least one.
    pub(crate) words: Vec<Word>,
    pub(crate) block: Option<Vec<Line>>,
}

impl Line {
    fn new(entry: &Entry<'_>) -> Self {
        Self::of(entry, entry.statement())
    }

    fn of(entry: &Entry<'_>, statement: &Statement) -> Self {
        let word = |word: &weft_config::Word| Word {
            text: word.text().to_owned(),
            location: entry.location_of(word.span()),
        };
        // The configuration language bounds the depth.
        let block = statement.block();
        Self {
            words: statement.words().iter().map(word).collect(),
            block: block.map(|inner| inner.iter().map(|one| Self::of(entry, one)).collect()),
        }
    }

    pub(crate) fn first(&self) -> &Word {
        &self.words[0]
    }

    fn statement(&self) -> Statement {
        let words = self.words[1..].iter();
        let whole = words.fold(Statement::new(&self.first().text), |all, one| all.word(&one.text));
        match &self.block {
            None => whole,
            Some(block) => whole.children(block.iter().map(Self::statement)),
        }
    }
}

/// The words, as they are written.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, word) in self.words.iter().enumerate() {
            let word = weft_config::Word::from(&word.text);
            write!(f, "{}{word}", if place > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// A term of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TermText {
    /// None of what stands in the policy itself.
    pub(crate) name: Option<Word>,
    pub(crate) place: Word,
    pub(crate) from: Vec<Line>,
    pub(crate) to: Vec<Line>,
    pub(crate) then: Vec<Line>,
}

/// A policy, of which it is not known yet what its words mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyText {
    pub(crate) name: Word,
    pub(crate) terms: Vec<TermText>,
}

/// A named list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Prefixes(Arc<PrefixSet>),
    Numbers(Arc<NumberSet>),
    Paths(Arc<Vec<AsPathPattern>>),
    Communities(CommunityKind, Arc<CommunitySet>),
}

/// What a list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListKind {
    Prefixes,
    Numbers,
    Paths,
    Communities(CommunityKind),
}

impl ListKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Prefixes,
        Self::Numbers,
        Self::Paths,
        Self::Communities(CommunityKind::Standard),
        Self::Communities(CommunityKind::Extended),
        Self::Communities(CommunityKind::Large),
    ];

    /// The first word of its statement.
    pub(crate) fn keyword(self) -> &'static str {
        match self {
            Self::Prefixes => "prefix-list",
            Self::Numbers => "as-list",
            Self::Paths => "as-path-list",
            Self::Communities(CommunityKind::Standard) => "community-list",
            Self::Communities(CommunityKind::Extended) => "extended-community-list",
            Self::Communities(CommunityKind::Large) => "large-community-list",
        }
    }

    /// Reads what stands in its block.
    fn read(self, lines: &[Line]) -> Result<List, Errors> {
        Ok(match self {
            Self::Prefixes => {
                let ranges = lines.iter().map(|line| Ok(prefix_range(&line.words)?));
                List::Prefixes(Arc::new(PrefixSet::new(gather(ranges)?)))
            }
            Self::Numbers => List::Numbers(Arc::new(NumberSet::new(words(lines, number_range)?))),
            Self::Paths => List::Paths(Arc::new(words(lines, pattern)?)),
            Self::Communities(kind) => {
                let all = words(lines, |word| community(kind, word))?;
                List::Communities(kind, Arc::new(CommunitySet::new(all)))
            }
        })
    }
}

/// All words of some lines as values.
fn words<T>(
    lines: &[Line],
    read: impl Fn(&Word) -> Result<T, weft_config::Error>,
) -> Result<Vec<T>, Errors> {
    gather(lines.iter().flat_map(|line| &line.words).map(|word| Ok(read(word)?)))
}

pub(crate) fn prefix_range(words: &[Word]) -> Result<PrefixRange, weft_config::Error> {
    let texts: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
    PrefixRange::parse(&texts)
        .map_err(|(place, error)| bad(&words[place.min(words.len() - 1)], &error))
}

pub(crate) fn number_range(word: &Word) -> Result<NumberRange, weft_config::Error> {
    word.text.parse().map_err(|error| bad(word, &error))
}

pub(crate) fn pattern(word: &Word) -> Result<AsPathPattern, weft_config::Error> {
    word.text.parse().map_err(|error| bad(word, &error))
}

pub(crate) fn community(
    kind: CommunityKind,
    word: &Word,
) -> Result<CommunityPattern, weft_config::Error> {
    CommunityPattern::parse(kind, &word.text).map_err(|error| bad(word, &error))
}

/// A word that is not what is wanted.
pub(crate) fn bad(word: &Word, why: &dyn fmt::Display) -> weft_config::Error {
    let shown: String = word.text.chars().take(60).collect();
    word.location.error(format!("`{}` is not understood here: {why}", shown.escape_debug()))
}

/// Everything that `policy { … }` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    pub(crate) lists: BTreeMap<(ListKind, String), List>,
    pub(crate) policies: BTreeMap<String, PolicyText>,
}

impl Policies {
    /// Reads the statement from a text of which it is the only one; nothing is said by a text without it.
    ///
    /// # Errors
    /// Every mistake with its place.
    pub fn parse(source: &str, text: &str) -> Result<Self, Errors> {
        let document = Document::parse(source, text)?;
        document.block().read(Self::take)
    }

    /// Takes the statement out of a block, if it is there.
    ///
    /// # Errors
    /// Every mistake with its place.
    pub fn take(block: &mut Block<'_>) -> Result<Self, Errors> {
        let Some(entry) = block.one(STATEMENT)? else { return Ok(Self::default()) };
        entry.read_block(|block| {
            let mut all = Self::default();
            let mut results = Vec::new();
            for kind in ListKind::ALL {
                let lists = block.many(kind.keyword()).into_iter();
                results.extend(lists.map(|entry| all.read_list(kind, entry)));
            }
            let policies = block.many(POLICY).into_iter();
            results.extend(policies.map(|entry| all.read_policy(entry)));
            gather(results).map(|_| all)
        })
    }

    fn read_list(&mut self, kind: ListKind, mut entry: Entry<'_>) -> Result<(), Errors> {
        let name: Name = entry.argument("the name of the list")?;
        let lines: Vec<_> = entry.optional_block()?.all().iter().map(Line::new).collect();
        if let Some(block) = lines.iter().find(|line| line.block.is_some()) {
            let sentence = "a list has no blocks inside: end what belongs into it with `;`";
            return Err(block.first().location.error(sentence).into());
        }
        let list = kind.read(&lines)?;
        if self.lists.insert((kind, name.as_str().to_owned()), list).is_some() {
            let sentence = format!("the list `{}` was described before", name.as_str());
            return Err(entry.error_at(1, sentence).into());
        }
        Ok(())
    }

    fn read_policy(&mut self, mut entry: Entry<'_>) -> Result<(), Errors> {
        let name: Name = entry.argument("the name of the policy")?;
        let text = name.as_str().to_owned();
        let word = Word {
            text: text.clone(),
            location: entry.location_of(entry.statement().words()[1].span()),
        };
        let mut terms = entry.read_block(|block| {
            let mut terms = gather(block.many("term").into_iter().map(read_term))?;
            let last = read_parts(block, None, word.clone())?;
            if !last.from.is_empty() || !last.to.is_empty() || !last.then.is_empty() {
                terms.push(last);
            }
            Ok(terms)
        })?;
        for place in 1..terms.len() {
            let (before, rest) = terms.split_at_mut(place);
            let is_same = |other: &TermText| other.name.is_some() && other.name == rest[0].name;
            if let (Some(first), Some(name)) =
                (before.iter().find(|one| is_same(one)), &rest[0].name)
            {
                let sentence = format!("the term `{}` was described before", name.text);
                let error = name.location.error(sentence);
                return Err(error.related("first given here", first.place.location.clone()).into());
            }
        }
        if let Some(first) = self.policies.get(&text) {
            let error = word.location.error(format!("the policy `{text}` was described before"));
            return Err(error.related("first given here", first.name.location.clone()).into());
        }
        self.policies.insert(text, PolicyText { name: word, terms });
        Ok(())
    }

    /// The names of all policies, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.policies.keys().map(String::as_str)
    }
}

fn read_term(mut entry: Entry<'_>) -> Result<TermText, Errors> {
    let _: Name = entry.argument("the name of the term")?;
    let word = &entry.statement().words()[1];
    let name = Word { text: word.text().to_owned(), location: entry.location_of(word.span()) };
    entry.read_block(|block| read_parts(block, Some(name.clone()), name))
}

fn read_parts(block: &mut Block<'_>, name: Option<Word>, place: Word) -> Result<TermText, Errors> {
    let mut part = |keyword: &str| -> Result<Vec<Line>, Errors> {
        let Some(entry) = block.one(keyword)? else { return Ok(Vec::new()) };
        Ok(entry.block()?.all().iter().map(Line::new).collect())
    };
    Ok(TermText { name, place, from: part("from")?, to: part("to")?, then: part("then")? })
}

/// The canonical text.
impl fmt::Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = self.lists.iter().map(|((kind, name), list)| list.statement(*kind, name));
        let policies = self.policies.values().map(PolicyText::statement);
        write!(f, "{}", Statement::new(STATEMENT).children(lists.chain(policies)))
    }
}

impl List {
    fn statement(&self, kind: ListKind, name: &str) -> Statement {
        fn lines<T: fmt::Display>(all: &[T]) -> Vec<Statement> {
            all.iter().map(|one| Statement::new(&one.to_string())).collect()
        }
        let children = match self {
            Self::Prefixes(set) => {
                set.entries.iter().map(|entry| words_of(&entry.to_string())).collect()
            }
            Self::Numbers(set) => lines(&set.entries),
            Self::Paths(all) => lines(all),
            Self::Communities(_, set) => lines(&set.entries),
        };
        Statement::new(kind.keyword()).word(name).children(children)
    }
}

/// A statement of words with spaces between.
fn words_of(text: &str) -> Statement {
    let mut words = text.split(' ');
    let first = Statement::new(words.next().unwrap_or_default());
    words.fold(first, |all, word| all.word(word))
}

impl PolicyText {
    fn statement(&self) -> Statement {
        let mut whole = Statement::new(POLICY).word(&self.name.text).children([]);
        for term in &self.terms {
            let parts = [("from", &term.from), ("to", &term.to), ("then", &term.then)];
            let parts = parts.into_iter().filter(|(_, lines)| !lines.is_empty());
            let parts = parts.map(|(keyword, lines)| {
                Statement::new(keyword).children(lines.iter().map(Line::statement))
            });
            whole = match &term.name {
                Some(name) => whole.child(Statement::new("term").word(&name.text).children(parts)),
                None => parts.fold(whole, Statement::child),
            };
        }
        whole
    }
}
