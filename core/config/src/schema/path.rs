//! Finding statements by the words that lead to them: `xia principal hid local`.

use std::sync::Arc;

use super::{Kind, Members, Schema, Shape};
use crate::error::{Error, ErrorKind, Errors};
use crate::parser;
use crate::source::{Location, Source, shown};
use crate::statement::Word;
use crate::suggest::suggest;
use crate::tree::{Level, Node, Tree, is_version};

/// Statements that were found, and the block in which they stand.
pub(super) struct Found<'l, 'm> {
    pub(super) members: &'m Members,
    pub(super) level: &'l mut Level,
    /// At least one, ascending.
    pub(super) places: Vec<usize>,
}

impl Found<'_, '_> {
    /// The only one.
    pub(super) fn only(&self, path: &Path<'_>) -> Result<usize, Error> {
        match self.places.as_slice() {
            [place] => Ok(*place),
            several => {
                let text = format!("this means {} statements: name one of them", several.len());
                Err(path.last().error(text))
            }
        }
    }
}

/// Words that lead to a statement, as they stand in a command.
#[derive(Clone, Copy)]
pub(super) struct Path<'c> {
    pub(super) source: &'c Arc<Source>,
    pub(super) words: &'c [Word],
}

impl<'c> Path<'c> {
    pub(super) fn at(&self, index: usize) -> Location {
        let word = self.words.get(index).map(Word::span).unwrap_or_default();
        Location::new(self.source, word)
    }

    pub(super) fn last(&self) -> Location {
        self.at(self.words.len().saturating_sub(1))
    }

    fn rest(&self, from: usize) -> Self {
        Self { source: self.source, words: &self.words[from..] }
    }

    /// Finds the statements that the words mean: one, or all that begin with them.
    pub(super) fn find<'l, 'm>(
        self,
        members: &'m Members,
        level: &'l mut Level,
    ) -> Result<Found<'l, 'm>, Error> {
        let kind = members.find(self.words[0].text());
        let head = match kind.map(|kind| &kind.shape) {
            Some(Shape::Container(_)) => 1,
            Some(Shape::List(list)) => list.head(),
            Some(Shape::LeafList { .. }) => return self.values(members, level),
            Some(_) => self.words.len(),
            None if members.any => longest_block(level, self.words),
            None => return Err(self.unknown(members)),
        };
        if self.words.len() <= head {
            return self.here(members, level);
        }
        let place = level.nodes.iter().position(|node| node.words() == &self.words[..head]);
        let Some(place) = place else { return Err(self.missing(level, head)) };
        let inside = kind.and_then(|kind| kind.inside(self.words)).map_or(members, |inside| inside);
        let node = Arc::make_mut(&mut level.nodes[place]);
        self.rest(head).find(inside, node.block_mut())
    }

    /// After something that these words name was removed: gives the list entries around it that say nothing
    /// any more their one form, without a block.
    pub(super) fn tidy(self, members: &Members, level: &mut Level) {
        let Some(kind) = self.words.first().and_then(|word| members.find(word.text())) else {
            return;
        };
        let (head, is_list) = match &kind.shape {
            Shape::Container(_) => (1, false),
            Shape::List(list) => (list.head(), true),
            _ => return,
        };
        if self.words.len() <= head {
            return;
        }
        let place = level.nodes.iter().position(|node| node.words() == &self.words[..head]);
        let Some(node) = place.map(|place| Arc::make_mut(&mut level.nodes[place])) else { return };
        if let Some(inside) = kind.inside(self.words) {
            self.rest(head).tidy(inside, node.block_mut());
        }
        if is_list {
            node.drop_empty_block();
        }
    }

    /// The statement with exactly these words, or all that begin with them.
    fn here<'l, 'm>(
        self,
        members: &'m Members,
        level: &'l mut Level,
    ) -> Result<Found<'l, 'm>, Error> {
        let all = |test: &dyn Fn(&Node) -> bool| -> Vec<usize> {
            let nodes = level.nodes.iter().enumerate();
            nodes.filter(|(_, node)| !is_version(node) && test(node)).map(|(n, _)| n).collect()
        };
        let exact = all(&|node| node.words() == self.words);
        let places = match exact.is_empty() {
            true => all(&|node| node.begins_with(self.words)),
            false => exact,
        };
        if places.is_empty() {
            return Err(self.missing(level, self.words.len()));
        }
        Ok(Found { members, level, places })
    }

    /// Values of a leaf-list, each of which must be there.
    fn values<'l, 'm>(
        self,
        members: &'m Members,
        level: &'l mut Level,
    ) -> Result<Found<'l, 'm>, Error> {
        if self.words.len() == 1 {
            return self.here(members, level);
        }
        let mut places = Vec::new();
        for (index, value) in self.words.iter().enumerate().skip(1) {
            let is_it = |node: &Arc<Node>| {
                node.keyword() == self.words[0].text() && node.words().get(1) == Some(value)
            };
            match level.nodes.iter().position(is_it) {
                Some(place) => places.push(place),
                None => return Err(self.missing(level, index + 1)),
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(Found { members, level, places })
    }

    fn unknown(self, members: &Members) -> Error {
        let word = self.words[0].text();
        let kind = ErrorKind::UnknownStatement {
            word: word.to_owned(),
            suggestion: members.suggest(word).map(str::to_owned),
            accepted: members.names().map(str::to_owned).collect(),
        };
        Error::new(kind, self.at(0))
    }

    /// There is nothing with the first `count` words. The word that is wrong is the first one with
    /// which no statement agrees.
    fn missing(self, level: &Level, count: usize) -> Error {
        let agrees =
            |count: usize| level.nodes.iter().any(|node| node.begins_with(&self.words[..count]));
        let wrong = (0..count).take_while(|&index| agrees(index + 1)).count().min(count - 1);
        let same = level.nodes.iter().filter(|node| node.begins_with(&self.words[..wrong]));
        let there: Vec<&str> =
            same.filter_map(|node| node.words().get(wrong)).map(Word::text).collect();
        let word = self.words[wrong].text();
        let advice = match suggest(word, there.iter().copied()) {
            Some(word) => format!(": did you mean `{}`?", shown(word)),
            None => String::new(),
        };
        self.at(wrong).error(format!("there is no `{}` here to be found{advice}", shown(word)))
    }
}

/// How many of the words lead to a statement with a block, in a block that is not described.
fn longest_block(level: &Level, words: &[Word]) -> usize {
    let leads = |node: &&Arc<Node>| node.block.is_some() && words.starts_with(node.words());
    let blocks = level.nodes.iter().filter(leads);
    blocks.map(|node| node.words().len()).max().unwrap_or(words.len())
}

impl Schema {
    /// The text of the statements to which words lead, without secrets; of everything if there are no
    /// words.
    ///
    /// # Errors
    /// Nothing is there.
    pub fn show(&self, tree: &Tree, path: &str) -> Result<String, Errors> {
        let source = Source::new("command", path);
        if path.trim().is_empty() {
            return Ok(self.mask(tree).to_string());
        }
        let command = parser::parse_command(&source)?;
        let mut masked = Level::clone(&self.mask(tree).root);
        let path = Path { source: &source, words: command.words() };
        let found = path.find(&self.top, &mut masked)?;
        Ok(found.places.iter().map(|&place| found.level.nodes[place].to_string()).collect())
    }
}

/// A statement with its words put into the blocks that they lead to: `xia echo on` becomes
/// `xia { echo on; }`. Words too few or too many stay, for the check to report.
pub(super) fn nest(
    members: &Members,
    words: &[Word],
    block: Option<Arc<Level>>,
    source: &Arc<Source>,
) -> Node {
    let kind: Option<&Kind> = members.find(words[0].text());
    let head = match kind.map(|kind| &kind.shape) {
        Some(Shape::Container(_)) => 1,
        Some(Shape::List(list)) => list.head(),
        _ => words.len(),
    };
    let head = head.min(words.len());
    let mut node = Node::new(words[..head].to_vec(), source);
    node.block = match kind.and_then(|kind| kind.inside(words)) {
        Some(inside) if words.len() > head => {
            let inner = nest(inside, &words[head..], block, source);
            Some(Arc::new(Level { nodes: vec![Arc::new(inner)], tail: Vec::new() }))
        }
        _ => block,
    };
    node
}
