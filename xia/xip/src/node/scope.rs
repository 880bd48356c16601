//! The node's own address: what stands in front of an application's sink, so that others can answer.

use crate::dag::Address;
use crate::forward::Forwarder;
use crate::node::ECHO_SINK;
use crate::{Xid, XidType};

/// How the node scopes the addresses of its applications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The XIDs to pass on the way to an application, outermost first; `None`: the first local HID
    /// if there is one.
    pub path: Option<Vec<Xid>>,
}

impl Scope {
    /// Checks that addresses of applications can be made.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut path = self.path.clone().unwrap_or_default();
        path.push(ECHO_SINK);
        Address::scoping(&path).map(drop).map_err(|error| {
            format!("no address of an application can begin with these XIDs: {error}")
        })
    }

    /// The address by which others reach `sink` on this node.
    pub(super) fn address_of(&self, sink: Xid, forwarder: &Forwarder) -> Result<Address, String> {
        let mut path = self.path(forwarder);
        path.push(sink);
        Address::scoping(&path)
            .map_err(|error| format!("no address can be made for {sink}: {error}"))
    }

    /// The XIDs in front of an application's sink.
    pub(super) fn path(&self, forwarder: &Forwarder) -> Vec<Xid> {
        self.path.clone().unwrap_or_else(|| {
            let host = forwarder.principal(XidType::HID).map(|hid| hid.locals());
            host.and_then(|hosts| hosts.first().copied()).into_iter().collect()
        })
    }
}
