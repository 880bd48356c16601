//! Changes to a configuration by command lines.
//!
//! ```text
//! set xia principal hid local hid-…       makes what is missing on the way
//! set xia { echo off; copies 8; }         a block is merged
//! delete xia interface eth1               a statement, with all that is in it
//! delete xia principal                    all that begin with these words
//! rename xia principal ad to hid          another key
//! copy link a to b                        the same with another key
//! insert link c before b                  another place among its siblings; also after
//! annotate xia "the uplink"               a comment above; "" removes it
//! ```
//!
//! Reference: Junos OS CLI User Guide, configuration mode commands of the same names.

use std::sync::Arc;

use super::check::Extent;
use super::path::{Found, Path, nest};
use super::{Members, Schema, Shape, merge};
use crate::error::{Error, ErrorKind, Errors};
use crate::parser;
use crate::source::{Location, Source};
use crate::statement::{Statement, Word};
use crate::suggest::{list, suggest};
use crate::tree::{Comments, Level, Node, Tree, VERSION_WORD, comment_text};

/// The first words of commands that change a configuration, with their help.
pub(super) const VERBS: &[(&str, &str)] = &[
    ("set", "add a statement, or give a leaf another value"),
    ("delete", "remove a statement with all that is in it"),
    ("rename", "give a list entry another key"),
    ("copy", "make a list entry like another one"),
    ("insert", "move a statement before or after another one"),
    ("annotate", "put a comment above a statement"),
];

impl Schema {
    /// The configuration that `tree` becomes by a command.
    ///
    /// # Errors
    /// The command is not understood, names what is not there or sets what the schema does not accept.
    pub fn edit(&self, tree: &Tree, command: &str) -> Result<Tree, Errors> {
        let source = Source::new("command", command);
        let (words, block, _) = parser::parse_command(&source)?.into_parts();
        let path = Path { source: &source, words: &words[1..] };
        let verb = words[0].text();
        let block = block.map(|statements| Arc::new(level_of(statements, &source)));
        if VERBS.iter().all(|(known, _)| *known != verb) {
            return Err(unknown_verb(verb, &Path { source: &source, words: &words }).into());
        }
        if path.words.is_empty() {
            let behind = Location::new(&source, words[0].span().behind());
            return Err(behind.error(format!("`{verb}` needs the words of a statement")).into());
        }
        if block.is_some() && verb != "set" {
            return Err(path.last().error(format!("`{verb}` takes no block")).into());
        }
        if path.words[0].text() == VERSION_WORD {
            return Err(path.at(0).error("the version of the language stays: leave it out").into());
        }
        let mut root = Level::clone(&tree.root);
        match verb {
            "set" => self.set(&mut root, path, block)?,
            "delete" => self.delete(&mut root, path)?,
            "rename" => self.rename(&mut root, path, false)?,
            "copy" => self.rename(&mut root, path, true)?,
            "insert" => self.insert(&mut root, path)?,
            _ => self.annotate(&mut root, path)?,
        }
        let tree = Tree { root: Arc::new(root) };
        tree.check_depth()?;
        Ok(tree)
    }

    fn set(
        &self,
        root: &mut Level,
        path: Path<'_>,
        block: Option<Arc<Level>>,
    ) -> Result<(), Errors> {
        let node = nest(&self.top, path.words, block, path.source);
        let piece = Level { nodes: vec![Arc::new(node)], tail: Vec::new() };
        let tree = Tree { root: Arc::new(piece) };
        let checked = self.check_extent(&tree, None, Extent::Piece);
        checked.map_err(|errors| self.hide_secrets(errors, &tree))?;
        merge::merge(&self.top, root, &tree.root, false)
    }

    fn delete(&self, root: &mut Level, path: Path<'_>) -> Result<(), Errors> {
        let Found { level, places, .. } = path.find(&self.top, root)?;
        for place in places.into_iter().rev() {
            level.nodes.remove(place);
        }
        path.tidy(&self.top, root);
        Ok(())
    }

    fn rename(&self, root: &mut Level, path: Path<'_>, keep: bool) -> Result<(), Errors> {
        let (path, _, key) = split(path, &["to"])?;
        let found = path.find(&self.top, root)?;
        let place = found.only(&path)?;
        let node = &found.level.nodes[place];
        let words = found.same_kind(node, key)?;
        if let Some(there) = found.level.nodes.iter().find(|node| node.begins_with(&words)) {
            let error = key.at(0).error("this name is taken: choose another one");
            return Err(error.related("it is here", there.location()).into());
        }
        let mut new = Node::clone(node);
        new.words = words;
        new.source = Arc::clone(key.source);
        check(found.members, &new)?;
        match keep {
            true => found.level.nodes.insert(place + 1, Arc::new(new)),
            false => found.level.nodes[place] = Arc::new(new),
        }
        Ok(())
    }

    fn insert(&self, root: &mut Level, path: Path<'_>) -> Result<(), Errors> {
        let (path, word, anchor) = split(path, &["before", "after"])?;
        let found = path.find(&self.top, root)?;
        let place = found.only(&path)?;
        let node = Arc::clone(&found.level.nodes[place]);
        let words = match anchor.words[0].text() == node.keyword() {
            true => anchor.words.to_vec(),
            false => [&node.words[..1], anchor.words].concat(),
        };
        let beside = |other: &Arc<Node>| other.begins_with(&words) && !Arc::ptr_eq(other, &node);
        if !found.level.nodes.iter().any(beside) {
            return Err(anchor.at(0).error("there is no such statement in the same block").into());
        }
        found.level.nodes.remove(place);
        let place = found.level.nodes.iter().position(|other| other.begins_with(&words));
        let place = place.unwrap_or_default() + usize::from(word == "after");
        found.level.nodes.insert(place, node);
        Ok(())
    }

    fn annotate(&self, root: &mut Level, path: Path<'_>) -> Result<(), Errors> {
        let Some((text, words)) = path.words.split_last().filter(|(_, words)| !words.is_empty())
        else {
            let text = "write the comment behind the statement, in quotes";
            return Err(path.last().error(text).into());
        };
        let path = Path { words, ..path };
        let found = path.find(&self.top, root)?;
        let place = found.only(&path)?;
        let lines = text.text().lines().filter(|line| !line.trim().is_empty());
        let above: Vec<_> = lines.map(|line| comment_text(&format!("# {}", line.trim()))).collect();
        let node = Arc::make_mut(&mut found.level.nodes[place]);
        let beside = node.beside().map(Into::into);
        let comments = Comments { above, beside };
        node.comments = (comments != Comments::default()).then(|| Box::new(comments));
        Ok(())
    }
}

impl Found<'_, '_> {
    /// The words of a statement like `node` with another key; its first word may be said again.
    fn same_kind(&self, node: &Node, key: Path<'_>) -> Result<Vec<Word>, Error> {
        let kind = self.members.find(node.keyword()).map(|kind| &kind.shape);
        let keys = match kind {
            Some(Shape::List(list)) => list.keys.len(),
            Some(Shape::LeafList { .. }) => 1,
            _ => return Err(key.at(0).error("only entries of lists have a key that can change")),
        };
        let again = key.words.len() == keys + 1 && key.words[0].text() == node.keyword();
        let key_words = if again { &key.words[1..] } else { key.words };
        Ok([&node.words[..1], key_words].concat())
    }
}

/// Checks a statement with its new key.
fn check(members: &Members, node: &Node) -> Result<(), Errors> {
    let level = Level { nodes: vec![Arc::new(node.clone())], tail: Vec::new() };
    let tree = Tree { root: Arc::new(level) };
    let schema = Schema { top: Arc::new(members.clone()) };
    let checked = schema.check_extent(&tree, None, Extent::Piece);
    checked.map_err(|errors| schema.hide_secrets(errors, &tree))
}

/// The words before and behind the last one of `between`.
fn split<'c>(path: Path<'c>, between: &[&str]) -> Result<(Path<'c>, &'c str, Path<'c>), Error> {
    let at = path.words.iter().rposition(|word| between.contains(&word.text()));
    let at = at.filter(|&at| at > 0 && at + 1 < path.words.len());
    let Some(at) = at else {
        let text = format!("write the statement, then {}, then another key", list(between));
        return Err(path.last().error(text));
    };
    let before = Path { words: &path.words[..at], ..path };
    let behind = Path { words: &path.words[at + 1..], ..path };
    Ok((before, path.words[at].text(), behind))
}

fn unknown_verb(verb: &str, path: &Path<'_>) -> Error {
    let names = VERBS.iter().map(|(name, _)| *name);
    let kind = ErrorKind::UnknownStatement {
        word: verb.to_owned(),
        suggestion: suggest(verb, names.clone()).map(str::to_owned),
        accepted: names.map(str::to_owned).collect(),
    };
    Error::new(kind, path.at(0))
}

/// The block of a command.
fn level_of(statements: Vec<Statement>, source: &Arc<Source>) -> Level {
    let node = |statement: Statement| {
        let (words, block, _) = statement.into_parts();
        let mut node = Node::new(words, source);
        node.block = block.map(|statements| Arc::new(level_of(statements, source)));
        Arc::new(node)
    };
    Level { nodes: statements.into_iter().map(node).collect(), tail: Vec::new() }
}
