//! Whether a configuration says what a schema accepts.
//!
//! What a tree shares with one that is known to be good is not checked again, so that the check of a
//! small change takes a time that the change determines and not the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::value::Value;
use super::{Kind, List, Members, Schema, Shape};
use crate::error::{Error, ErrorKind, Errors};
use crate::source::{Location, Source, Span, shown};
use crate::statement::Word;
use crate::tree::{Level, Node, Tree, is_version};

/// What stands in messages instead of a secret.
pub(super) const HIDDEN: &str = "********";

/// How much must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// A whole configuration: what is mandatory must be there.
    Whole,
    /// A piece that is about to be put into one.
    Piece,
}

impl Schema {
    /// Checks a configuration. What it shares with `good`, which passed this check before, is known to
    /// be good.
    ///
    /// # Errors
    /// Every mistake with its place. Lines are shown without the secrets in them.
    pub fn check(&self, tree: &Tree, good: Option<&Tree>) -> Result<(), Errors> {
        let result = self.check_extent(tree, good, Extent::Whole);
        result.map_err(|errors| self.hide_secrets(errors, tree))
    }

    pub(super) fn check_extent(
        &self,
        tree: &Tree,
        good: Option<&Tree>,
        extent: Extent,
    ) -> Result<(), Errors> {
        let mut checker = Checker { extent, errors: None };
        let nowhere = || Location::new(&Source::new("configuration", ""), Span::default());
        let begin = tree.root.nodes.first().map_or_else(nowhere, |node| node.location());
        let place = Place { name: "", location: begin };
        checker.level(&self.top, &tree.root, good.map(|good| &*good.root), &place);
        checker.errors.map_or(Ok(()), Err)
    }
}

/// The statement that a block belongs to.
struct Place<'t> {
    /// Its first word; empty for the whole configuration.
    name: &'t str,
    location: Location,
}

/// What there is of a leaf-list some of whose values stand alone, each with its statement and its place there.
#[derive(Default)]
struct Lonely<'t> {
    /// The first value that stands alone.
    alone: Option<(&'t Node, usize)>,
    /// The first of the others.
    other: Option<(&'t Node, usize)>,
}

impl<'t> Lonely<'t> {
    fn see(&mut self, alone: &[String], node: &'t Node, index: usize) {
        let is_alone = alone.iter().any(|value| value == node.words()[index].text());
        let place =
            if is_alone && self.alone.is_none() { &mut self.alone } else { &mut self.other };
        place.get_or_insert((node, index));
    }
}

struct Checker {
    extent: Extent,
    errors: Option<Errors>,
}

impl Checker {
    fn report(&mut self, kind: ErrorKind, location: Location) {
        self.add(Error::new(kind, location));
    }

    fn add(&mut self, error: Error) {
        match &mut self.errors {
            Some(errors) => errors.push(error),
            None => self.errors = Some(error.into()),
        }
    }

    fn level(&mut self, members: &Members, level: &Level, good: Option<&Level>, place: &Place<'_>) {
        if good.is_some_and(|good| std::ptr::eq(good, level)) {
            return;
        }
        let good = good.map_or(&[][..], |good| &good.nodes);
        let shared = |(one, two): &(&Arc<Node>, &Arc<Node>)| Arc::ptr_eq(one, two);
        let first = level.nodes.iter().zip(good).take_while(shared).count();
        let last = level.nodes[first..].iter().rev().zip(good[first..].iter().rev());
        let last = last.take_while(shared).count();
        let changed = &level.nodes[first..level.nodes.len() - last];
        let before = &good[first..good.len() - last];
        for (index, node) in changed.iter().enumerate() {
            self.node(members, node, before.get(index).map(|node| &**node), place);
        }
        self.uniqueness(members, level);
        self.presence(members, level, place);
    }

    fn node(&mut self, members: &Members, node: &Node, good: Option<&Node>, place: &Place<'_>) {
        if place.name.is_empty() && is_version(node) {
            return;
        }
        let Some(kind) = members.find(node.keyword()) else {
            if !members.any {
                self.unknown(members, node);
            }
            return;
        };
        self.words(kind, node);
        self.block(kind, node, good);
    }

    fn unknown(&mut self, members: &Members, node: &Node) {
        let word = node.keyword();
        let kind = ErrorKind::UnknownStatement {
            word: word.to_owned(),
            suggestion: members.suggest(word).map(str::to_owned),
            accepted: members.names().map(str::to_owned).collect(),
        };
        self.report(kind, node.location());
    }

    fn words(&mut self, kind: &Kind, node: &Node) {
        match &kind.shape {
            Shape::Flag | Shape::Container(_) => self.no_more(node, 1),
            Shape::Leaf { value, .. } => {
                self.word(kind, node, 1, value, value.what());
                self.no_more(node, 2);
            }
            Shape::LeafList { value, .. } => {
                let count = node.words().len().max(2);
                (1..count).for_each(|index| self.word(kind, node, index, value, value.what()));
            }
            Shape::List(list) => {
                for (index, key) in list.keys.iter().enumerate() {
                    let what = format!("the {}", key.name);
                    self.word(kind, node, 1 + index, &key.value, &what);
                }
                self.no_more(node, list.head());
            }
            Shape::Words { .. } => {
                (1..node.words().len()).for_each(|index| self.mask(kind, node, index));
            }
        }
    }

    /// Refuses the mask in place of a secret: whoever loads what was shown would have it as a secret that everybody knows.
    fn mask(&mut self, kind: &Kind, node: &Node, index: usize) {
        if kind.secret && node.words().get(index).is_some_and(|word| word.text() == HIDDEN) {
            let text = format!(
                "`{HIDDEN}` is the mask that stands for a secret: write the secret of `{}` itself",
                kind.name
            );
            self.report(ErrorKind::Meaning(text), node.location_of(index));
        }
    }

    /// Checks one word against its type.
    fn word(&mut self, kind: &Kind, node: &Node, index: usize, value: &Value, what: &str) {
        let Some(word) = node.words().get(index) else {
            let missing = ErrorKind::MissingWord {
                statement: shown(node.keyword()),
                what: what.to_owned(),
                example: value.example().to_owned(),
            };
            // Reported once, for the first that is missing.
            if index == node.words().len() {
                self.report(missing, node.location_behind());
            }
            return;
        };
        match value.check(word.text()) {
            Ok(()) => self.mask(kind, node, index),
            Err(_) if kind.secret => {
                let text = format!("the secret value of `{}` is not {}", kind.name, value.what());
                self.report(ErrorKind::Meaning(text), node.location_of(index));
            }
            Err(mistake) => self.report(mistake, node.location_of(index)),
        }
    }

    fn no_more(&mut self, node: &Node, count: usize) {
        let Some(extra) = node.words().get(count) else { return };
        let last = node.words()[count - 1].span().range().end;
        let gap = node.source.text().get(last..extra.span().range().start);
        let next_line = gap.is_some_and(|gap| gap.contains('\n'));
        let kind = ErrorKind::ExtraWord { statement: shown(node.keyword()), next_line };
        self.report(kind, node.location_of(count));
    }

    fn block(&mut self, kind: &Kind, node: &Node, good: Option<&Node>) {
        let place = Place { name: node.keyword(), location: node.location() };
        match (kind.inside(node.words()), node.block.as_deref()) {
            (Some(members), block) => {
                let same = good.filter(|good| good.words() == node.words());
                let good = same.and_then(|good| good.block.as_deref());
                let nothing = Level::default();
                self.level(members, block.unwrap_or(&nothing), good, &place);
            }
            (None, Some(_)) => {
                self.report(ErrorKind::TakesNoBlock(shown(node.keyword())), node.location());
            }
            (None, None) => {}
        }
    }

    /// What may be there once is there once, and lists are not longer than allowed.
    fn uniqueness(&mut self, members: &Members, level: &Level) {
        let mut seen: BTreeMap<&[Word], &Node> = BTreeMap::new();
        let mut values: BTreeMap<[&str; 2], Location> = BTreeMap::new();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lonely: BTreeMap<&str, Lonely<'_>> = BTreeMap::new();
        for node in &level.nodes {
            let Some(kind) = members.find(node.keyword()) else { continue };
            match &kind.shape {
                Shape::Words { .. } => {}
                Shape::Flag | Shape::Leaf { .. } | Shape::Container(_) => {
                    self.once(kind, &mut seen, members.identity(node), node);
                }
                Shape::List(List { at_most, .. }) => {
                    self.once(kind, &mut seen, members.identity(node), node);
                    self.count(&mut counts, kind, *at_most, node.location());
                }
                Shape::LeafList { at_most, alone, .. } => {
                    for (index, value) in node.words().iter().enumerate().skip(1) {
                        let location = node.location_of(index);
                        let key = [kind.name.as_str(), value.text()];
                        if let Some(first) = values.insert(key, location.clone()) {
                            let text = if kind.secret { &kind.name } else { value.text() };
                            self.twice(text.to_owned(), location.clone(), first);
                        }
                        self.count(&mut counts, kind, *at_most, location);
                        if !alone.is_empty() {
                            lonely.entry(&kind.name).or_default().see(alone, node, index);
                        }
                    }
                }
            }
        }
        lonely.into_values().for_each(|lonely| self.stands_alone(&lonely));
    }

    fn stands_alone(&mut self, lonely: &Lonely<'_>) {
        if let (Some((node, index)), Some((beside, other))) = (lonely.alone, lonely.other) {
            let value = node.words()[index].text();
            let text = format!(
                "`{value}` stands alone: delete it to use what is beside it, or delete that"
            );
            let error = Error::new(ErrorKind::Meaning(text), node.location_of(index));
            self.add(error.related("this is beside it", beside.location_of(other)));
        }
    }

    fn once<'t>(
        &mut self,
        kind: &Kind,
        seen: &mut BTreeMap<&'t [Word], &'t Node>,
        identity: &'t [Word],
        node: &'t Node,
    ) {
        if let Some(first) = seen.insert(identity, node) {
            let words: Vec<_> = identity.iter().map(Word::text).collect();
            let text = if kind.secret { kind.name.clone() } else { words.join(" ") };
            self.twice(text, node.location(), first.location());
        }
    }

    fn twice(&mut self, text: String, second: Location, first: Location) {
        let error = Error::new(ErrorKind::Duplicate(text), second);
        self.add(error.related("first given here", first));
    }

    fn count<'t>(
        &mut self,
        counts: &mut BTreeMap<&'t str, usize>,
        kind: &'t Kind,
        at_most: Option<usize>,
        location: Location,
    ) {
        // How many a piece will be one of is not known yet.
        let Some(at_most) = at_most.filter(|_| self.extent == Extent::Whole) else { return };
        let count = counts.entry(&kind.name).or_default();
        *count += 1;
        if *count == at_most + 1 {
            let text = format!("there may be at most {at_most} of `{}`: remove some", kind.name);
            self.report(ErrorKind::Meaning(text), location);
        }
    }

    fn presence(&mut self, members: &Members, level: &Level, place: &Place<'_>) {
        if self.extent == Extent::Piece {
            return;
        }
        for kind in members.kinds.iter().filter(|kind| kind.mandatory) {
            if level.nodes.iter().any(|node| node.keyword() == kind.name) {
                continue;
            }
            let (owner, name) = (place.name.to_owned(), kind.name.clone());
            let missing = match &kind.shape {
                Shape::Leaf { value, .. } => {
                    let example = if kind.secret { HIDDEN } else { value.example() };
                    ErrorKind::MissingStatement { owner, name, example: example.to_owned() }
                }
                _ => ErrorKind::MissingBlock { owner, name },
            };
            self.report(missing, place.location.clone());
        }
    }
}
