//! The names that `@NAME` may use: variables, aliases and nodes share one name space.

use std::collections::BTreeMap;

use weft_config::{Error, Located, Location, Name, suggest};

/// How many names a message lists.
const LISTED: usize = 8;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    /// A text that the file or the user gives; the index in the lab's variables.
    Variable(usize),
    /// A text that the host program makes; the index in the lab's aliases.
    Alias(usize),
    /// What the host program says a `weft` node is called in its architecture.
    Node(usize),
    /// A node of another kind, which has no such name.
    Nameless,
}

/// All names of a lab with their meanings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(BTreeMap<String, (Meaning, Location)>);

impl Names {
    /// Adds a name.
    pub(crate) fn add(&mut self, name: &Located<Name>, meaning: Meaning) -> Result<(), Error> {
        let key = name.value.as_str().to_owned();
        if let Some((_, first)) = self.0.get(&key) {
            let sentence = format!(
                "the name `{key}` is given twice: variables, aliases and nodes need different names"
            );
            return Err(name.error(sentence).related("first given here", first.clone()));
        }
        self.0.insert(key, (meaning, name.location.clone()));
        Ok(())
    }

    /// What `name` stands for.
    pub(crate) fn meaning(&self, name: &str) -> Option<Meaning> {
        self.0.get(name).map(|(meaning, _)| *meaning)
    }

    /// What to write instead of the unknown `name`.
    pub(crate) fn advice(&self, name: &str) -> String {
        if let Some(similar) = suggest(name, self.0.keys().map(String::as_str)) {
            return format!("did you mean `@{similar}`?");
        }
        if self.0.is_empty() {
            return "this lab defines no names, add for example `variable NAME default VALUE;`"
                .into();
        }
        let listed: Vec<_> = self.0.keys().take(LISTED).map(|name| format!("`@{name}`")).collect();
        let more = if self.0.len() > LISTED { ", …" } else { "" };
        format!("there are {}{more}", listed.join(", "))
    }
}
