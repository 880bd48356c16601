//! All peers, and for which of them something is to be done when.
//!
//! Reference: RFC 4271 §4.4 and §8.2.2 (the timers of a session).
//!
//! Each thing that happens ends with the question how long the process may wait, so that is known without asking every
//! peer: a server of a thousand of them has no more to do for a message than a router with two.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Deref;

use weft_base::Instant;

use super::peer::Peer;

/// All peers, by their addresses; whoever changes one does it here.
#[derive(Default)]
pub(super) struct Peers {
    all: BTreeMap<IpAddr, Peer>,
    /// When something is to be done for whom, the next first.
    deadlines: BTreeSet<(Instant, IpAddr)>,
}

impl Peers {
    /// One more.
    pub(super) fn insert(&mut self, peer: Peer) {
        let (address, deadline) = (peer.address, peer.deadline());
        let before = self.all.insert(address, peer);
        self.moved(address, before.and_then(|peer| peer.deadline()), deadline);
    }

    /// One less.
    pub(super) fn remove(&mut self, address: IpAddr) {
        if let Some(peer) = self.all.remove(&address) {
            self.moved(address, peer.deadline(), None);
        }
    }

    /// Does something with a peer; nothing if there is none with this address.
    pub(super) fn change<R>(
        &mut self,
        address: IpAddr,
        act: impl FnOnce(&mut Peer) -> R,
    ) -> Option<R> {
        let peer = self.all.get_mut(&address)?;
        let before = peer.deadline();
        let result = act(peer);
        let deadline = peer.deadline();
        self.moved(address, before, deadline);
        Some(result)
    }

    /// Does something with all of them.
    pub(super) fn change_all(&mut self, act: impl FnMut(&mut Peer)) {
        self.all.values_mut().for_each(act);
        let deadlines = self.all.values().filter_map(|peer| Some((peer.deadline()?, peer.address)));
        self.deadlines = deadlines.collect();
    }

    /// When something is to be done for one of them at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        debug_assert_eq!(
            self.deadlines.len(),
            self.all.values().filter_map(Peer::deadline).count(),
            "each peer has been changed here"
        );
        let first = self.deadlines.first().map(|(deadline, _)| *deadline);
        debug_assert_eq!(first, self.all.values().filter_map(Peer::deadline).min());
        first
    }

    /// For whom something is to be done by now.
    pub(super) fn due(&self, now: Instant) -> Vec<IpAddr> {
        let is_due = |(deadline, _): &&(Instant, IpAddr)| *deadline <= now;
        self.deadlines.iter().take_while(is_due).map(|(_, address)| *address).collect()
    }

    fn moved(&mut self, address: IpAddr, before: Option<Instant>, deadline: Option<Instant>) {
        if before == deadline {
            return;
        }
        if let Some(before) = before {
            self.deadlines.remove(&(before, address));
        }
        self.deadlines.extend(deadline.map(|deadline| (deadline, address)));
    }
}

impl Deref for Peers {
    type Target = BTreeMap<IpAddr, Peer>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}
