//! What configurations may say: the statements that a component understands, described by a text that
//! the component brings.
//!
//! The text is in the configuration language itself. Whoever keeps the configuration needs nothing but
//! these texts to check, complete, edit and mask it; the components may be other processes.
//!
//! ```text
//! version 1;
//! container xia {
//!     help "XIA on this node";
//!     leaf echo switch { default on; help "answer pings"; }
//!     leaf redirects number { range 1 16; default 8; help "longest chain of redirects"; }
//!     leaf identity path { secret; help "file of a private key"; }
//!     leaf-list interface interface { help "carries XIP"; }
//!     list principal {
//!         key name one-of hid zf;
//!         case hid { words local { usage "hid-…"; help "this node has this identity"; } }
//!         case zf { any; }
//!     }
//! }
//! ```
//!
//! | statement | describes |
//! |---|---|
//! | `container NAME { … }` | `NAME { … }`, once |
//! | `list NAME { key NAME TYPE; … }` | `NAME KEY… { … }`, once for each key |
//! | `leaf NAME TYPE` | `NAME VALUE;`, once |
//! | `leaf-list NAME TYPE` | `NAME VALUE;`, any number of them; `NAME VALUE VALUE;` means two |
//! | `flag NAME` | `NAME;` |
//! | `words NAME` | `NAME` with any words, which only the component can check |
//! | `any;` | statements of any form in this block, which only the component can check |
//!
//! `help TEXT` stands in any of them; `mandatory` in containers, leaves and flags; `default`, `range`,
//! `known-as WORD…` too, for what others call it, so that who writes that is told its name; `example`, `form` and `secret` where there is a value; `at-most N` in lists; `alone VALUE…`
//! in leaf-lists, for values that cannot stand beside others, and replace them when they are set; `usage TEXT` in `words`;
//! `case KEY { … }` in a list for what is accepted only below that key.

mod check;
mod complete;
mod describe;
mod edit;
mod hide;
mod mask;
mod merge;
mod path;
mod read;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Errors};
use crate::source::Location;
use crate::statement::Word;
use crate::suggest::suggest;
use crate::tree::Node;

pub use complete::{Candidate, Completion};
pub use merge::LoadMode;
use value::Value;

/// Descriptions of everything that a configuration may say.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    top: Arc<Members>,
}

/// What a block may hold.
#[derive(Debug, Clone, Default)]
struct Members {
    kinds: Vec<Arc<Kind>>,
    /// Whether other statements are accepted, too.
    any: bool,
    /// Whether there is a secret in it, at any depth.
    has_secret: bool,
}

/// A kind of statement, known by its first word.
#[derive(Debug, Clone)]
struct Kind {
    name: String,
    help: String,
    mandatory: bool,
    secret: bool,
    shape: Shape,
    /// What others call it, so that who writes that is told its name.
    known_as: Vec<String>,
    /// Where its description stands.
    location: Location,
}

#[derive(Debug, Clone)]
enum Shape {
    Flag,
    Leaf { value: Value, default: Option<String> },
    LeafList { value: Value, at_most: Option<usize>, alone: Vec<String> },
    Container(Arc<Members>),
    List(List),
    Words { usage: String },
}

#[derive(Debug, Clone)]
struct List {
    /// At least one.
    keys: Vec<Key>,
    /// What any entry may hold.
    members: Arc<Members>,
    /// What the entries with these first keys may hold, the common members included.
    cases: Vec<Case>,
    at_most: Option<usize>,
}

impl List {
    /// The number of words in front of an entry's block.
    fn head(&self) -> usize {
        1 + self.keys.len()
    }
}

/// What entries with a certain first key may hold.
#[derive(Debug, Clone)]
struct Case {
    key: String,
    help: String,
    members: Arc<Members>,
}

#[derive(Debug, Clone)]
struct Key {
    name: String,
    help: String,
    value: Value,
}

impl Schema {
    /// Reads the description that a component brings. `source_name` is what messages call it.
    ///
    /// # Errors
    /// All mistakes with their places.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, Errors> {
        read::schema(source_name, text)
    }

    /// A schema that accepts every statement.
    #[must_use]
    pub fn any() -> Self {
        Self { top: Arc::new(Members { any: true, ..Members::default() }) }
    }

    /// Several descriptions as one.
    ///
    /// # Errors
    /// Two describe statements of the same name.
    pub fn union<'s>(schemas: impl IntoIterator<Item = &'s Self>) -> Result<Self, Errors> {
        let mut all = Members::default();
        for schema in schemas {
            all.any |= schema.top.any;
            all.has_secret |= schema.top.has_secret;
            for kind in &schema.top.kinds {
                if let Some(first) = all.find(&kind.name) {
                    let error =
                        Error::new(ErrorKind::Duplicate(kind.name.clone()), kind.location.clone());
                    return Err(error.related("first given here", first.location.clone()).into());
                }
                all.kinds.push(Arc::clone(kind));
            }
        }
        Ok(Self { top: Arc::new(all) })
    }

    /// The first words of the statements that it describes, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.top.kinds.iter().map(|kind| kind.name.as_str())
    }
}

impl Members {
    fn find(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == name).map(|kind| &**kind)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| kind.name.as_str())
    }

    /// The name that was meant by one that is unknown.
    fn suggest(&self, word: &str) -> Option<&str> {
        let is_it = |kind: &&Arc<Kind>| kind.known_as.iter().any(|other| other == word);
        let meant = self.kinds.iter().find(is_it).map(|kind| kind.name.as_str());
        meant.or_else(|| suggest(word, self.names()))
    }

    /// How many of the first words of a statement tell it from the others of its block.
    fn identity<'n>(&self, node: &'n Node) -> &'n [Word] {
        let words = node.words();
        let count = match self.find(node.keyword()).map(|kind| &kind.shape) {
            Some(Shape::Flag | Shape::Leaf { .. } | Shape::Container(_)) => 1,
            Some(Shape::List(list)) => list.head(),
            Some(Shape::LeafList { .. } | Shape::Words { .. }) | None => words.len(),
        };
        &words[..count.min(words.len())]
    }
}

impl Kind {
    /// What the block of a statement may hold; `None` if it has none, or one that is not described.
    fn inside(&self, words: &[Word]) -> Option<&Arc<Members>> {
        match &self.shape {
            Shape::Container(members) => Some(members),
            Shape::List(list) => Some(list.inside(words.get(1).map(Word::text))),
            Shape::Flag | Shape::Leaf { .. } | Shape::LeafList { .. } | Shape::Words { .. } => None,
        }
    }

    fn has_secret(&self) -> bool {
        self.secret
            || match &self.shape {
                Shape::Container(members) => members.has_secret,
                Shape::List(list) => list.all_members().any(|members| members.has_secret),
                _ => false,
            }
    }

    /// What is written behind the name, in short.
    fn hint(&self) -> String {
        match &self.shape {
            Shape::Flag => String::new(),
            Shape::Leaf { value, .. } => value.hint(),
            Shape::LeafList { value, .. } => format!("{} …", value.hint()),
            Shape::Container(_) => "{ … }".to_owned(),
            Shape::List(list) => {
                let keys = list.keys.iter().map(|key| key.name.to_uppercase());
                keys.chain(["{ … }".to_owned()]).collect::<Vec<_>>().join(" ")
            }
            Shape::Words { usage } => usage.clone(),
        }
    }
}

impl List {
    fn inside(&self, first_key: Option<&str>) -> &Arc<Members> {
        let case = self.cases.iter().find(|case| Some(case.key.as_str()) == first_key);
        case.map_or(&self.members, |case| &case.members)
    }

    fn all_members(&self) -> impl Iterator<Item = &Arc<Members>> {
        std::iter::once(&self.members).chain(self.cases.iter().map(|case| &case.members))
    }
}
