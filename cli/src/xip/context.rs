//! What commands of `weft xip` need: the node's stack, asked by XRL when it is needed first, and settings.

use std::cell::{OnceCell, RefCell, RefMut};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weft_xia_component::interface::{Change, Show};
use weft_xip::{Names, Xid, XidType};
use weft_xrl::Request;

use super::Failure;
use crate::args::NodeArgs;
use crate::call::{Client, Reach};

/// How long the stack may take to answer: its tables may be large.
const PATIENCE: Duration = Duration::from_secs(60);
const STACK: &str = "xia";

/// What is in a principal's tables, and how.
pub(super) type Present = HashMap<String, &'static str>;

/// The node, and the tool's settings.
pub(super) struct Context {
    node: NodeArgs,
    client: OnceCell<Client>,
    present: RefCell<HashMap<XidType, Present>>,
    /// Where the keys of hosts are.
    pub(super) keys: PathBuf,
    /// The principals' names.
    pub(super) names: Names,
}

impl Context {
    pub(super) fn new(node: NodeArgs, keys: PathBuf, names: Names) -> Self {
        let present = RefCell::default();
        Self { node, client: OnceCell::new(), present, keys, names }
    }

    /// What is in a principal's tables: read from what it shows when it is asked for first, then kept up by whoever
    /// changes it, so that a batch does not fetch a table for each of its rows.
    pub(super) fn present(
        &self,
        kind: XidType,
        read: fn(&Value) -> Present,
    ) -> Result<RefMut<'_, Present>, Failure> {
        let known = self.present.borrow().contains_key(&kind);
        if !known {
            let read = read(&self.principal(&kind.to_string())?);
            self.present.borrow_mut().insert(kind, read);
        }
        Ok(RefMut::map(self.present.borrow_mut(), |all| all.entry(kind).or_default()))
    }

    /// What the stack shows of `what`.
    pub(super) fn show(&self, what: &str) -> Result<Value, Failure> {
        let reply = self.call(Show { what: Some(what.to_owned()) })?;
        let wrong = |error| Failure::Refused(format!("what the node shows is no JSON: {error}"));
        serde_json::from_str(&reply.json).map_err(wrong)
    }

    /// What a principal shows.
    pub(super) fn principal(&self, name: &str) -> Result<Value, Failure> {
        match self.show("principals")?.get_mut(name) {
            Some(shown) => Ok(shown.take()),
            None => Err(Failure::Refused(format!(
                "the node has no principal `{name}`; `weft xia principal add {name}` adds it"
            ))),
        }
    }

    /// Refuses a device that is not among the interfaces of the node.
    pub(super) fn expect_device(&self, device: &str) -> Result<(), Failure> {
        let node = self.show("node")?;
        if rows(&node, "interfaces").any(|interface| interface["name"] == device) {
            return Ok(());
        }
        let text = format!("Cannot find device '{device}': the node has no such interface");
        Err(Failure::Wrong(text))
    }

    /// Something was deleted from a principal's tables.
    pub(super) fn forget(&self, kind: XidType, word: &str) {
        if let Some(present) = self.present.borrow_mut().get_mut(&kind) {
            present.remove(word);
        }
    }

    /// Has the stack carry out a command of `weft xia`.
    pub(super) fn change(&self, words: &str) -> Result<Vec<String>, Failure> {
        self.call(Change { words: words.to_owned() })?;
        Ok(Vec::new())
    }

    /// How an XID of the stack is printed, with the names that the tool was given.
    pub(super) fn text(&self, xid: &Value) -> String {
        let text = xid.as_str().unwrap_or_default();
        let named = |xid: Xid| xid.display(&self.names).to_string();
        text.parse().map_or_else(|_| text.to_owned(), named)
    }

    fn call<R: Request>(&self, request: R) -> Result<R::Reply, Failure> {
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let reach = Reach::here(&self.node).map_err(Failure::Wrong)?;
                let client = Client::new(&reach).map_err(Failure::Wrong)?;
                self.client.get_or_init(|| client)
            }
        };
        client.call(STACK, request, PATIENCE).map_err(|error| Failure::Refused(error.note))
    }
}

/// The rows of a table that the stack shows.
pub(super) fn rows<'a>(shown: &'a Value, table: &str) -> impl Iterator<Item = &'a Value> {
    shown[table].as_array().into_iter().flatten()
}

/// Refuses what is there already: the tool never replaces.
pub(super) fn exists(what: &str) -> Failure {
    Failure::Refused(format!("File exists: {what}; delete it first"))
}
