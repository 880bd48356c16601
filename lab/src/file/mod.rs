//! Lab files: the text, and the lab it describes, checked before anything is built.
//!
//! The statements and their meaning are documented in the manual, chapter "Lab files".

mod command;
mod input;
mod ipv6;
mod link;
mod names;
mod node;
mod router;
mod steps;
mod template;
#[cfg(test)]
mod tests;

use weft_config::{Block, Document, Errors, Located, Name, gather};

pub(crate) use command::CommandLine;
pub use input::Variables;
pub(crate) use input::{Alias, Content, InputFile};
pub(crate) use link::{End, Link, Properties, Route};
pub(crate) use names::Meaning;
pub(crate) use node::{Node, NodeKind};
pub(crate) use router::{Router, RouterKind, ZEBRA};
pub(crate) use steps::{Action, Scenario, Step};
pub(crate) use template::Template;

/// The version of the format.
const VERSION: u32 = 1;

/// A lab as its file describes it: nodes, links, and scenarios. What it refers to exists; what only
/// the host program can judge, such as the configuration of a node, is checked when it is run.
#[derive(Debug, Clone)]
pub struct Lab {
    pub(crate) name: Located<Name>,
    pub(crate) seed: u64,
    pub(crate) variables: Vec<String>,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) files: Vec<InputFile>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    pub(crate) routes: Vec<Route>,
    pub(crate) scenarios: Vec<Scenario>,
}

impl Lab {
    /// Reads a lab file that messages call `source_name`. `variables` are values for the variables of
    /// the lab, in place of those in the file.
    ///
    /// # Errors
    /// Every mistake that was found, with its place and how to mend it.
    pub fn parse(source_name: &str, text: &str, variables: &Variables) -> Result<Self, Errors> {
        Self::read(&Document::parse(source_name, text)?, variables)
    }

    /// [`Lab::parse`] for the bytes of a file.
    ///
    /// # Errors
    /// Those of [`Lab::parse`], and bytes that are not UTF-8.
    pub fn parse_bytes(
        source_name: &str,
        bytes: &[u8],
        variables: &Variables,
    ) -> Result<Self, Errors> {
        Self::read(&Document::parse_bytes(source_name, bytes)?, variables)
    }

    fn read(document: &Document, variables: &Variables) -> Result<Self, Errors> {
        document.read(VERSION, |block| {
            let mut entry = block.required_one("lab")?;
            let name = entry.argument("the name of the lab")?;
            entry.block()?.read(|block| read_lab(block, name, variables))
        })
    }

    /// The name of the lab.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.value.as_str()
    }

    /// What all randomness of the lab follows from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Takes another seed than that of the file.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// The names of its nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.value.as_str())
    }

    /// The names of its scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().map(|scenario| scenario.name.value.as_str())
    }
}

fn read_lab(block: &mut Block<'_>, name: Located<Name>, given: &Variables) -> Result<Lab, Errors> {
    let seed = block.leaf("seed")?.unwrap_or(0);
    let mut names = names::Names::default();
    let variables = input::read_variables(block, given, &mut names)?;
    let headers = node::read_headers(block, &mut names)?;
    let aliases = input::read_aliases(block, &mut names)?;
    let files = input::read_files(block, &names)?;
    let nodes = gather(headers.into_iter().map(|header| node::read_body(header, &names)))?;
    let index = link::NodeIndex::new(&nodes);
    let (links, ends) = link::read_links(block, &index)?;
    let routes = link::read_routes(block, &index, &links)?;
    let scope = steps::Scope { names: &names, nodes: &nodes, index: &index, ends: &ends };
    let scenarios = steps::read_scenarios(block, &scope)?;
    Ok(Lab { name, seed, variables, aliases, files, nodes, links, routes, scenarios })
}
