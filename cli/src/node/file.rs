//! Node files: what one node is made of.
//!
//! ```text
//! version 1;
//! node r1;
//! xia {
//!     interface eth0;
//!     identity /etc/weft/r1.key;      # its key hash becomes a local HID
//!     principal hid;
//!     principal xdp;
//! }
//! program census {
//!     execute /usr/lib/census.py;     # a component of others; see weft_manager::read_programs
//! }
//! ```

use std::path::Path;

use weft_base::{Instant, Random};
use weft_config::{Document, Errors, Located, Name, Schema, Tree};
use weft_keys::file::load_private;
use weft_keys::{KeyHash, PrivateKey};
use weft_manager::{Class, read_log, read_operators, read_programs};
use weft_xip::node::{Node, config};
use weft_xip::{Xid, XidType};

use crate::registry::{classes, principals, schema};

/// The version of the configuration language that this program reads.
const VERSION: u32 = 1;

/// Why a node without any component is a mistake.
const NOTHING: &str =
    "the node has nothing to run: add `xia { … }`, `rib;`, or another component's statement";

/// Why a node file cannot be used: one or more mistakes, each with its place.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NodeFileError(Errors);

impl From<Errors> for NodeFileError {
    fn from(errors: Errors) -> Self {
        Self(errors)
    }
}

impl NodeFileError {
    /// The same mistakes in the files from which the text was put together.
    pub(super) fn original(self, tree: &Tree) -> Self {
        Self(tree.original(self.0))
    }
}

/// A node file whose syntax is right.
pub(crate) struct NodeFile {
    document: Document,
    pub(super) name: String,
}

/// Reads the text of a node file.
pub(crate) fn parse(source: &str, text: &str) -> Result<NodeFile, NodeFileError> {
    let document = Document::parse(source, text)?;
    let mut block = document.versioned(VERSION).map_err(Errors::from)?;
    let name: Name = block.required("node").map_err(Errors::from)?;
    let name = name.as_str().to_owned();
    drop(block);
    Ok(NodeFile { document, name })
}

impl NodeFile {
    /// The XIA stack that the file describes, with its sockets in `directory`; none if it is a node of other components.
    ///
    /// `identity` is the key to use unless the file names one.
    pub(crate) fn node(
        &self,
        directory: &Path,
        identity: Option<&PrivateKey>,
        random: Random,
    ) -> Result<Option<Node>, NodeFileError> {
        let is_optional = self.names_others();
        let operator = rustix::process::geteuid().as_raw();
        let mut settings = super::xia_settings(&self.name, directory, operator);
        Ok(self.document.read(VERSION, |block| {
            block.required::<Name>("node")?;
            read_programs(block, &classes())?;
            read_operators(block)?;
            read_log(block)?;
            // Their components read them.
            for statement in statements_of_others() {
                block.one(statement)?;
            }
            let xia = match is_optional {
                true => block.one("xia")?,
                // A node without anything is a mistake.
                false => match block.one("xia")? {
                    Some(xia) => Some(xia),
                    None => return Err(block.error(NOTHING).into()),
                },
            };
            let Some(xia) = xia else { return Ok(None) };
            xia.read_block(|block| {
                let path = block.leaf::<Located<String>>("identity")?;
                settings.key = match &path {
                    Some(path) => Some(
                        load_identity(Path::new(&path.value))
                            .map_err(|sentence| path.location.error(sentence))?,
                    ),
                    None => identity.cloned(),
                };
                let hash = settings.key.as_ref().map(|key| key.public_key().hash());
                let mut node = config::read_node(block, settings, &principals(), random)?;
                match (path, hash) {
                    (Some(path), Some(hash)) => {
                        set_identity(&mut node, hash)
                            .map_err(|sentence| path.location.error(sentence))?;
                    }
                    // Without the principal hid there is nothing that an identity could be for.
                    (None, Some(hash)) => drop(set_identity(&mut node, hash)),
                    (_, None) => {}
                }
                Ok(Some(node))
            })
        })?)
    }
}

impl NodeFile {
    /// Checks what the manager will check: that everything is described by some component.
    pub(crate) fn check(&self) -> Result<(), NodeFileError> {
        Ok(Schema::parse("schema", &schema())?.check(&self.tree()?, None)?)
    }

    /// Asks the components whether they would take their statements.
    pub(super) fn check_components(&self) -> Result<(), NodeFileError> {
        let schema = Schema::parse("schema", &schema())?;
        Ok(super::check::components(&self.name, &self.tree()?, &schema)?)
    }

    /// What is missing so that all statements have an effect, in a sentence each.
    pub(super) fn lacks(&self) -> Result<Vec<String>, NodeFileError> {
        Ok(weft_manager::lacks(&self.tree()?, &classes()))
    }

    fn tree(&self) -> Result<Tree, NodeFileError> {
        Ok(Tree::from_document(self.document.clone())?)
    }

    /// Whether the file names programs of others, or components besides the XIA stack.
    pub(super) fn names_others(&self) -> bool {
        let mut block = self.document.block();
        let mut statements = statements_of_others().into_iter().chain(["program"]);
        statements.any(|statement| !block.many(statement).is_empty())
    }

    /// Whether it describes an XIA stack.
    pub(crate) fn has_stack(&self) -> bool {
        !self.document.block().many("xia").is_empty()
    }

    /// The names of the programs of others.
    pub(crate) fn programs(&self) -> Vec<String> {
        let mut block = self.document.block();
        let programs = read_programs(&mut block, &classes()).unwrap_or_default();
        programs.iter().map(|program| program.name().to_owned()).collect()
    }

    /// The key that the file names, or else `given`.
    ///
    /// # Errors
    /// The key cannot be read.
    pub(crate) fn identity(&self, given: Option<PrivateKey>) -> Result<Option<PrivateKey>, String> {
        let mut block = self.document.block();
        let key = block.one("xia").ok().flatten().and_then(|entry| {
            let mut block = entry.optional_block().ok()?;
            block.leaf::<String>("identity").ok().flatten()
        });
        match key {
            Some(path) => load_identity(Path::new(&path)).map(Some),
            None => Ok(given),
        }
    }
}

/// The statements of components besides the XIA stack, and those that they read.
fn statements_of_others() -> Vec<&'static str> {
    let of = |class: Class| class.statement.into_iter().chain(class.reads.iter().copied());
    let statements = classes().into_iter().flat_map(of);
    statements.filter(|statement| *statement != weft_xia_component::STATEMENT).collect()
}

/// The XIA stack of the node that a file's text describes, for embedding in other programs: tests and labs.
///
/// # Errors
/// Every mistake with its place.
pub fn read_node_file(
    source: &str,
    text: &str,
    directory: &Path,
    random: Random,
) -> Result<Node, NodeFileError> {
    let file = parse(source, text)?;
    match file.node(directory, None, random)? {
        Some(node) => Ok(node),
        None => {
            let block = file.document.block();
            Err(Errors::from(block.error("there is no XIA stack: add the block `xia`")).into())
        }
    }
}

pub(super) fn load_identity(path: &Path) -> Result<PrivateKey, String> {
    load_private(path).map_err(|error| error.to_string())
}

/// Makes the key hash a local HID of the node.
fn set_identity(node: &mut Node, hash: KeyHash) -> Result<(), String> {
    let xid = Xid::new(XidType::HID, *hash.as_bytes()).to_string();
    let mut out = Vec::new();
    node.change_principal(Instant::ZERO, "hid", &["local", &xid], false, &mut out)
        .map_err(|error| format!("the identity needs the principal hid: {error}"))
}
