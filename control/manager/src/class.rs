//! The classes of components that a node can be made of.

use std::borrow::Cow;

use weft_commit::Parts;
use weft_config::Tree;
use weft_launcher::protocol::Limits;

use crate::programs::PROGRAM;

/// What a program that attaches by flows is to the launcher.
const APPLICATION: &str = "application";

/// What the manager knows of a class. The binary, which knows all architectures, tells it.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name, which is also that of its one instance.
    pub name: Cow<'static, str>,
    /// The statement of the configuration that is for it; without one it always runs.
    pub statement: Option<&'static str>,
    /// Further statements that it reads: they are given to it together with its own, and a change of theirs is one of its
    /// own.
    pub reads: &'static [&'static str],
    /// Statements of others without which it runs, but can do nothing.
    pub needs: &'static [&'static str],
    /// Whether it runs even if its statement is not there.
    pub always: bool,
    /// What it may call, as the Finder reads it.
    pub access: Cow<'static, str>,
    /// Sockets for applications, by file name in the run directory.
    pub sockets: &'static [Socket],
    /// What it may use.
    pub limits: Limits,
    /// Arguments that the node was started with; of a program, its path and its arguments.
    pub arguments: Vec<String>,
    /// Whether it is a program of others, which the configuration names, and of which kind.
    pub program: Option<ProgramKind>,
}

/// The kinds of programs of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// It may be handed packet ports.
    Plain,
    /// It may attach to stacks by flows, and is handed nothing.
    Application,
}

impl ProgramKind {
    /// The class that it is to the launcher.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Plain => PROGRAM,
            Self::Application => APPLICATION,
        }
    }

    /// The kind that is this class to the launcher.
    #[must_use]
    pub fn of_class(class: &str) -> Option<Self> {
        [Self::Plain, Self::Application].into_iter().find(|kind| kind.class() == class)
    }
}

/// A socket for applications.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// The name of the file.
    pub name: &'static str,
    /// Whether it keeps the borders of messages.
    pub packets: bool,
}

impl Class {
    /// Whether a process of the other class need not be started anew to be one of this. Rights that
    /// changed need no new process.
    pub(crate) fn runs_as(&self, other: &Self) -> bool {
        self.name == other.name
            && self.arguments == other.arguments
            && self.program == other.program
    }

    /// What it is given of a configuration; nothing if its own statement is not there.
    #[must_use]
    pub fn part(&self, configuration: &Tree) -> Tree {
        let Some(own) = self.statement else { return Tree::empty() };
        Parts::from(vec![own.to_owned()]).with(own, self.reads).of(configuration, own)
    }

    /// A class without statement, rights and sockets.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name: name.into(),
            statement: None,
            reads: &[],
            needs: &[],
            always: false,
            access: "".into(),
            sockets: &[],
            limits: Limits::default(),
            arguments: Vec::new(),
            program: None,
        }
    }
}

/// What a configuration lacks so that its statements have an effect, in a sentence each. It is no mistake: statements may
/// come one after the other.
#[must_use]
pub fn lacks(configuration: &Tree, classes: &[Class]) -> Vec<String> {
    let is_there = |statement: &str| !configuration.part(statement).is_empty();
    let mut sentences = Vec::new();
    for class in classes {
        let Some(own) = class.statement.filter(|own| is_there(own)) else { continue };
        for need in class.needs.iter().filter(|need| !is_there(need)) {
            // As the handbook calls it.
            let name = need.to_uppercase();
            sentences.push(format!("`{own}` needs the {name}: add `{need};`"));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_effect_without_another_statement_is_told() {
        let of = |statement: &'static str, needs: &'static [&'static str]| Class {
            statement: Some(statement),
            needs,
            ..Class::new(statement)
        };
        let classes = [of("rib", &[]), of("static", &["rib"]), of("bgp", &["rib"])];
        let told = |text: &str| lacks(&Tree::parse_part("node.conf", text).unwrap(), &classes);
        assert_eq!(told("static;"), ["`static` needs the RIB: add `rib;`"]);
        assert_eq!(told("bgp { as 1; } static;").len(), 2);
        assert_eq!(told("rib; static;"), [""; 0]);
        assert_eq!(told("rib { } bgp { as 1; }"), [""; 0]);
        assert_eq!(told("node r1;"), [""; 0]);
    }
}
