//! The classes of components that a node can be made of.

use weft_launcher::protocol::Limits;

/// What the manager knows of a class. The binary, which knows all architectures, tells it.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name, which is also that of its one instance.
    pub name: &'static str,
    /// The statement of the configuration that is for it; without one it always runs.
    pub statement: Option<&'static str>,
    /// What it may call, as the Finder reads it.
    pub access: &'static str,
    /// Sockets for applications, by file name in the run directory.
    pub sockets: &'static [Socket],
    /// What it may use.
    pub limits: Limits,
    /// Arguments that the node was started with.
    pub arguments: Vec<String>,
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
    /// A class without statement, rights and sockets.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            statement: None,
            access: "",
            sockets: &[],
            limits: Limits::default(),
            arguments: Vec::new(),
        }
    }
}
