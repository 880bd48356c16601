//! Nodes for the tests of this module.

use std::collections::BTreeMap;

use serde_json::Value;
use weft_base::{Instant, Random};
use weft_runtime::{Component, Event};

use super::{Node, Registry, Scope, Settings};
use crate::principal::{Answer, BindError, Branch, Input, Output, Principal, SocketId};
use crate::protocol::Protocol;
use crate::table::XidTable;
use crate::words::WordError;
use crate::{Xid, XidType};

pub(super) const NOW: Instant = Instant::ZERO;

/// A node that runs, without interfaces, principals and protocols.
pub(super) fn node(registry: Registry) -> Node {
    let settings = Settings {
        name: "n".to_owned(),
        socket: "n".into(),
        limits: Default::default(),
        echo: false,
        packet_io: Default::default(),
        scope: Scope::default(),
        operator: 0,
        key: None,
    };
    let mut node = Node::new(settings, registry, Random::from_seed(1));
    node.handle(NOW, Event::Start, &mut Vec::new());
    node
}

/// A principal that is its table.
pub(super) struct Domains(XidTable<()>);

impl Domains {
    pub(super) fn new() -> Self {
        Self(XidTable::new(XidType::AD, &mut Random::from_seed(1)))
    }
}

impl Principal for Domains {
    fn kind(&self) -> XidType {
        XidType::AD
    }

    fn lookup(&self, _: &Xid, _: &mut Vec<Branch>) -> Answer {
        Answer::Unknown
    }

    fn handle(&mut self, _: Instant, _: Input, _: &mut Vec<Output>) {}

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        self.0.set(words)
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        self.0.delete(words)
    }

    fn show(&self) -> Value {
        self.0.show()
    }
}

/// A principal that is sockets.
#[derive(Default)]
pub(super) struct Sinks(BTreeMap<Xid, SocketId>);

impl Principal for Sinks {
    fn kind(&self) -> XidType {
        XidType::XDP
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        self.0.get(xid).map_or(Answer::Unknown, |socket| Answer::Deliver(*socket))
    }

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("there are no statements"))
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("there are no statements"))
    }

    fn show(&self) -> Value {
        Value::Null
    }

    fn bind(&mut self, xid: Xid, socket: SocketId) -> Result<(), BindError> {
        self.0.insert(xid, socket);
        Ok(())
    }

    fn unbind(&mut self, xid: &Xid) {
        self.0.remove(xid);
    }
}

/// A protocol that does nothing, and in which nothing can be deleted.
pub(super) struct Silent;

impl Protocol for Silent {
    fn handle(&mut self, _: Instant, _: Input, _: &mut Vec<Output>) {}

    fn set_locals(&mut self, _: Instant, _: &[Xid], _: &mut Vec<Output>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn set(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Ok(())
    }

    fn delete(&mut self, _: Instant, _: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(WordError::new("that cannot be"))
    }

    fn show(&self) -> Value {
        Value::Null
    }
}
