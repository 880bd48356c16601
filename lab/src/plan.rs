//! A lab with everything filled in that only the host program knows.

use weft_base::Random;
use weft_config::{Errors, gather};

use crate::Lab;
use crate::file::{CommandLine, Meaning, Node, NodeKind, Scenario, Template};
use crate::host::Host;

/// The word that stands for the host program in commands.
pub(crate) const PROGRAM: &str = "weft";

/// What names stand for.
struct Values {
    variables: Vec<String>,
    aliases: Vec<String>,
    /// Empty for nodes of other kinds than `weft`.
    nodes: Vec<String>,
}

impl Values {
    fn get(&self, meaning: Meaning) -> &str {
        let value = match meaning {
            Meaning::Variable(index) => self.variables.get(index),
            Meaning::Alias(index) => self.aliases.get(index),
            Meaning::Node(index) => self.nodes.get(index),
            Meaning::Nameless => None,
        };
        value.map_or("", String::as_str)
    }
}

/// A lab that can be built.
pub(crate) struct Plan<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) host: &'a dyn Host,
    values: Values,
    /// The configuration files of `weft` nodes.
    configs: Vec<Option<String>>,
}

impl<'a> Plan<'a> {
    /// Asks the host program for all names and lets it check all configurations.
    pub(crate) fn new(lab: &'a Lab, host: &'a dyn Host) -> Result<Self, Errors> {
        let mut values = Values {
            variables: lab.variables.clone(),
            aliases: Vec::new(),
            nodes: identifiers(lab, host)?,
        };
        for alias in &lab.aliases {
            let words: Vec<_> =
                alias.words.iter().map(|word| word.expand(|name| values.get(name))).collect();
            let made = host.alias(&alias.kind.value, &words);
            values.aliases.push(made.map_err(|reason| Errors::from(alias.kind.error(reason)))?);
        }
        let configs = gather(lab.nodes.iter().map(|node| config(node, &values, host)))?;
        Ok(Self { lab, host, values, configs })
    }

    /// A word with its names replaced.
    pub(crate) fn expand(&self, word: &Template) -> String {
        word.expand(|name| self.values.get(name))
    }

    /// The words of a command with their names replaced.
    pub(crate) fn words(&self, command: &CommandLine) -> Vec<String> {
        command.words.iter().map(|word| self.expand(word)).collect()
    }

    /// The configuration file of a node, if it is of kind `weft`.
    pub(crate) fn config(&self, node: usize) -> Option<&str> {
        self.configs[node].as_deref()
    }

    /// The name of a node.
    pub(crate) fn node_name(&self, node: usize) -> &'a str {
        self.lab.nodes[node].name.value.as_str()
    }

    /// The name of an end of a link, as lab files write it.
    pub(crate) fn end_name(&self, link: usize, side: usize) -> String {
        let end = &self.lab.links[link].ends[side];
        format!("{}:{}", self.node_name(end.node), end.interface)
    }

    /// The scenario with this name; without a name the one called `default`, or the only one.
    pub(crate) fn scenario(&self, name: Option<&str>) -> Result<&'a Scenario, String> {
        let scenarios = &self.lab.scenarios;
        let wanted = name.unwrap_or("default");
        let found = scenarios.iter().find(|scenario| scenario.name.value.as_str() == wanted);
        match (found, scenarios.as_slice(), name) {
            (Some(found), _, _) => Ok(found),
            (None, [only], None) => Ok(only),
            (None, [], _) => {
                Err("this lab has no scenario: add `scenario default { … }`, or use `lab up`"
                    .into())
            }
            (None, _, _) => {
                let names: Vec<_> = self.lab.scenarios().collect();
                Err(format!(
                    "this lab has no scenario `{wanted}`: choose one of {}",
                    names.join(", ")
                ))
            }
        }
    }

    /// What the content of a random input file follows from.
    pub(crate) fn file_seed(&self, file: &str) -> Random {
        Random::from_seed(self.lab.seed).fork(&format!("file/{file}"))
    }

    /// What the identity of a node follows from.
    pub(crate) fn identity(&self, node: usize) -> Random {
        identity(self.lab, self.node_name(node))
    }
}

fn identity(lab: &Lab, node: &str) -> Random {
    Random::from_seed(lab.seed).fork(&format!("identity/{node}"))
}

fn identifiers(lab: &Lab, host: &dyn Host) -> Result<Vec<String>, Errors> {
    gather(lab.nodes.iter().map(|node| {
        if !node.is_weft() {
            return Ok(String::new());
        }
        let name = node.name.value.as_str();
        let made = host.identifier(name, identity(lab, name));
        made.map_err(|reason| node.name.error(reason).into())
    }))
}

/// The text of a node's configuration file, which the host program finds good.
fn config(node: &Node, values: &Values, host: &dyn Host) -> Result<Option<String>, Errors> {
    let NodeKind::Weft(statements) = &node.kind else { return Ok(None) };
    let name = node.name.value.as_str();
    let mut text = format!("version 1;\nnode {name};\n");
    for statement in statements {
        text.push_str(&statement.expand(&|meaning| values.get(meaning)).to_string());
    }
    match host.check(name, &text) {
        Ok(()) => Ok(Some(text)),
        Err(reason) => {
            let sentence = format!("the configuration of node `{name}` is wrong: {reason}");
            Err(node.name.error(sentence).into())
        }
    }
}
