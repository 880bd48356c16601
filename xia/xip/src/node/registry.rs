//! Which principals and routing protocols can be instantiated, by name. Filled by whoever builds the program; XIP itself
//! knows none.

use std::collections::BTreeMap;

use weft_base::Random;
use weft_keys::PrivateKey;

use crate::offload::Engine;
use crate::principal::Principal;
use crate::protocol::Protocol;

/// Makes an instance of a principal, with randomness of its own.
pub type Factory = fn(Random) -> Box<dyn Principal>;

/// Makes an instance of a routing protocol, with the key of the node, if it has one, and randomness of its
/// own.
pub type ProtocolFactory = fn(Option<PrivateKey>, Random) -> Box<dyn Protocol>;

/// Makes what writes the decisions of one node into the tables of an engine in the kernel.
pub type EngineFactory = fn() -> Box<dyn Engine>;

/// The principals and routing protocols that a node can instantiate.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    factories: BTreeMap<&'static str, Factory>,
    statements: BTreeMap<&'static str, &'static str>,
    protocols: BTreeMap<&'static str, ProtocolFactory>,
    engine: Option<EngineFactory>,
}

impl Registry {
    /// A registry without principals.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a principal under the name that configurations and commands use.
    #[must_use]
    pub fn with(mut self, name: &'static str, factory: Factory) -> Self {
        self.factories.insert(name, factory);
        self
    }

    /// Adds a principal that brings its `statements`, in the language of schemas
    /// ([`weft_config::Schema`]).
    #[must_use]
    pub fn with_statements(
        mut self,
        name: &'static str,
        statements: &'static str,
        factory: Factory,
    ) -> Self {
        self.statements.insert(name, statements);
        self.with(name, factory)
    }

    /// Names and statements of the principals that bring them, sorted.
    pub fn statements(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.statements.iter().map(|(name, statements)| (*name, *statements))
    }

    /// Adds a routing protocol under the name that configurations and commands use.
    #[must_use]
    pub fn with_protocol(mut self, name: &'static str, factory: ProtocolFactory) -> Self {
        self.protocols.insert(name, factory);
        self
    }

    /// Adds the engine in the kernel that nodes can use beside their own.
    #[must_use]
    pub fn with_engine(mut self, factory: EngineFactory) -> Self {
        self.engine = Some(factory);
        self
    }

    pub(super) fn make_engine(&self) -> Option<Box<dyn Engine>> {
        self.engine.map(|factory| factory())
    }

    /// Makes an instance of the principal called `name`.
    ///
    /// # Errors
    /// There is none; the sentence lists those that there are.
    pub fn make(&self, name: &str, random: &Random) -> Result<Box<dyn Principal>, String> {
        match self.factories.get(name) {
            Some(factory) => Ok(factory(random.fork(name))),
            None => {
                let known: Vec<_> = self.names().collect();
                Err(format!("there is no principal `{name}`; known are: {}", known.join(", ")))
            }
        }
    }

    /// The names of all principals, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.factories.keys().copied()
    }

    /// Makes an instance of the routing protocol called `name`, if there is one, and says it by its own
    /// copy of the name.
    pub(super) fn make_protocol(
        &self,
        name: &str,
        key: Option<&PrivateKey>,
        random: &Random,
    ) -> Result<(&'static str, Box<dyn Protocol>), String> {
        match self.protocols.get_key_value(name) {
            Some((name, factory)) => Ok((*name, factory(key.cloned(), random.fork(name)))),
            None => {
                let known: Vec<_> = self.protocols().collect();
                Err(format!("there is no protocol `{name}`; known are: {}", known.join(", ")))
            }
        }
    }

    /// The names of all routing protocols, sorted.
    pub fn protocols(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.protocols.keys().copied()
    }
}
