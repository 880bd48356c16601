//! The datagram sockets of applications: which channel is bound to which address.

use std::collections::BTreeMap;

use weft_base::{ChannelId, Random};

use super::Scope;
use crate::channel::BindRequest;
use crate::dag::Address;
use crate::forward::Forwarder;
use crate::principal::SocketId;
use crate::{Xid, XidType};

/// Attempts to find a free random identifier before giving up; 160 random bits never collide.
const ATTEMPTS: usize = 3;

/// The socket of the node's own echo responder.
pub(super) const ECHO: SocketId = SocketId(0);

/// One bound channel.
struct Socket {
    channel: ChannelId,
    address: Address,
    sink: Xid,
}

/// All bound channels.
#[derive(Default)]
pub(super) struct Sockets {
    by_id: BTreeMap<SocketId, Socket>,
    by_channel: BTreeMap<ChannelId, SocketId>,
    last: u32,
}

impl Sockets {
    /// Binds `channel` as `request` says and returns the address; the error says what to do.
    pub(super) fn bind(
        &mut self,
        channel: ChannelId,
        request: BindRequest,
        scope: &Scope,
        forwarder: &mut Forwarder,
        random: &mut Random,
    ) -> Result<Address, String> {
        if self.by_channel.contains_key(&channel) {
            return Err("this channel is bound already; open another one".to_owned());
        }
        let id = self.unused_id();
        let (address, sink) = match request {
            BindRequest::Address(address) => {
                let sink = address.single_sink().map_err(|error| error.to_string())?;
                bind_sink(forwarder, sink, id)?;
                (address, sink)
            }
            BindRequest::Sink(sink) => (bind_scoped(forwarder, sink, id, scope)?, sink),
            BindRequest::Any(kind) => bind_any(forwarder, kind, id, scope, random)?,
        };
        self.by_id.insert(id, Socket { channel, address, sink });
        self.by_channel.insert(channel, id);
        Ok(address)
    }

    /// Forgets `channel`, if it is bound.
    pub(super) fn close(&mut self, channel: ChannelId, forwarder: &mut Forwarder) {
        let Some(id) = self.by_channel.remove(&channel) else { return };
        let Some(socket) = self.by_id.remove(&id) else { return };
        if let Some(mut principal) = forwarder.principal_mut(socket.sink.kind) {
            principal.unbind(&socket.sink);
        }
    }

    /// Binds all sockets of principal `kind` again, after it was replaced.
    pub(super) fn bind_again(&self, kind: XidType, forwarder: &mut Forwarder) {
        for (id, socket) in self.by_id.iter().filter(|(_, socket)| socket.sink.kind == kind) {
            // A principal that has just been made has no other sockets that could hold the XID.
            let _ = bind_sink(forwarder, socket.sink, *id);
        }
    }

    /// The channel of a socket.
    pub(super) fn channel(&self, id: SocketId) -> Option<ChannelId> {
        self.by_id.get(&id).map(|socket| socket.channel)
    }

    /// The address of a socket.
    pub(super) fn address_of(&self, id: SocketId) -> Option<&Address> {
        self.by_id.get(&id).map(|socket| &socket.address)
    }

    /// The address that a channel is bound to.
    pub(super) fn address(&self, channel: ChannelId) -> Option<&Address> {
        self.by_channel
            .get(&channel)
            .and_then(|id| self.by_id.get(id))
            .map(|socket| &socket.address)
    }

    /// The addresses of all sockets, oldest first.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.by_id.values().map(|socket| &socket.address)
    }

    fn unused_id(&mut self) -> SocketId {
        loop {
            self.last = self.last.wrapping_add(1);
            let id = SocketId(self.last);
            if id != ECHO && !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }
}

/// Tells the principal of `sink` that its packets go to socket `id`.
pub(super) fn bind_sink(forwarder: &mut Forwarder, sink: Xid, id: SocketId) -> Result<(), String> {
    let Some(mut principal) = forwarder.principal_mut(sink.kind) else {
        return Err(format!(
            "this node has no principal for {sink}; add it: weft xia principal add NAME"
        ));
    };
    principal.bind(sink, id).map_err(|error| format!("cannot bind {sink}: {error}"))
}

fn bind_scoped(
    forwarder: &mut Forwarder,
    sink: Xid,
    id: SocketId,
    scope: &Scope,
) -> Result<Address, String> {
    let address = scope.address_of(sink, forwarder)?;
    bind_sink(forwarder, sink, id)?;
    Ok(address)
}

fn bind_any(
    forwarder: &mut Forwarder,
    kind: XidType,
    id: SocketId,
    scope: &Scope,
    random: &mut Random,
) -> Result<(Address, Xid), String> {
    let mut outcome = Err(String::new());
    for _ in 0..ATTEMPTS {
        let mut name = [0; crate::xid::ID_LEN];
        random.fill(&mut name);
        let sink = Xid::new(kind, name);
        outcome = bind_scoped(forwarder, sink, id, scope).map(|address| (address, sink));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
