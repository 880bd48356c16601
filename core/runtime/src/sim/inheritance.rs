//! Listening sockets that outlive the processes that accept at them: a parent listens for its children.
//!
//! The address and the connections that wait there belong to the parent; its child accepts as long as it
//! lives. That is how the real launcher keeps sockets while it starts a process anew.

use std::collections::VecDeque;

use weft_base::Token;

use super::channels::{Listener, Place};
use super::ids::{NodeId, ProcessId};
use super::world::World;
use crate::ChannelAddress;
use crate::address::ChannelKind;

impl Listener {
    pub(super) fn new(owner: ProcessId, kind: ChannelKind) -> Self {
        Self { owner, kind, heir: None, server: None, waiting: VecDeque::new() }
    }
}

impl World {
    /// Lets a child listen at addresses of its parent, which are bound if they are not; all of them or
    /// none.
    pub(super) fn bequeath(
        &mut self,
        parent: ProcessId,
        child: ProcessId,
        addresses: &[ChannelAddress],
    ) -> Result<(), String> {
        for address in addresses {
            let found = self.channels.listeners.get(&self.place(parent, address));
            if found.is_some_and(|listener| listener.owner != parent) {
                return Err(format!("cannot listen at {address}: somebody listens there already"));
            }
        }
        for address in addresses {
            let (place, kind) = (self.place(parent, address), ChannelKind::of(address));
            let listeners = &mut self.channels.listeners;
            let listener = listeners.entry(place).or_insert_with(|| Listener::new(parent, kind));
            if listener.kind.socket_type() != kind.socket_type() {
                listener.kind = kind;
            }
            listener.heir = Some(child);
        }
        Ok(())
    }

    /// Lets a process accept at an address that is bound already, if that was kept for it; `false` if
    /// it is not bound.
    pub(super) fn take_over(
        &mut self,
        process: ProcessId,
        token: Token,
        address: &ChannelAddress,
        key: &(NodeId, Place),
    ) -> Result<bool, String> {
        let kind = ChannelKind::of(address);
        let Some(listener) = self.channels.listeners.get_mut(key) else { return Ok(false) };
        if listener.heir != Some(process) || listener.server.is_some() {
            let (owner, _) = listener.server.unwrap_or((listener.owner, token));
            let owner = self.process_name(owner);
            return Err(format!(
                "cannot listen at {address}: {owner} listens there already; stop it or choose \
                 another"
            ));
        }
        if listener.kind.socket_type() != kind.socket_type() {
            return Err(format!(
                "cannot listen at {address}: the inherited socket is {}, and {} is asked for",
                listener.kind.name(),
                kind.name()
            ));
        }
        listener.kind = kind;
        listener.server = Some((process, token));
        for (end, peer) in std::mem::take(&mut listener.waiting) {
            match self.channels.kind(end) == Some(kind) {
                true => self.accept((process, token), end, peer),
                // Another kind of channel that has the same kind of socket.
                false => self.close_end(end),
            }
        }
        Ok(true)
    }

    /// Closes a listening socket of a parent, and refuses who waits there.
    pub(super) fn release(&mut self, parent: ProcessId, address: &ChannelAddress) {
        let place = self.place(parent, address);
        if self.channels.listeners.get(&place).is_some_and(|listener| listener.owner == parent) {
            self.close_listener(&place);
        }
    }

    /// A process has ended: closes its listening sockets, and leaves those of others alone.
    pub(super) fn close_listeners(&mut self, process: ProcessId) {
        let mut own = Vec::new();
        for (place, listener) in &mut self.channels.listeners {
            if listener.owner == process {
                own.push(place.clone());
            } else if listener.heir == Some(process) {
                (listener.heir, listener.server) = (None, None);
            }
        }
        own.iter().for_each(|place| self.close_listener(place));
    }

    pub(super) fn close_listener(&mut self, place: &(NodeId, Place)) {
        let Some(listener) = self.channels.listeners.remove(place) else { return };
        listener.waiting.into_iter().for_each(|(end, _)| self.close_end(end));
    }
}
