//! The processes that are connected.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::{ChannelId, Instant};
use weft_keys::KeyHash;
use weft_runtime::{Action, Peer};
use weft_xrl::frame::{Frame, remote_operator};
use weft_xrl::{
    Access, Encoded, Interface, Outgoing, Ready, Request, XrlError, finder, finder_client,
};

use crate::calls::Call;

/// How many calls the Finder takes at a time from one process.
pub(crate) const WINDOW: u32 = 4096;
/// How long a process may take to answer the Finder.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who somebody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The manager, who has started the Finder.
    Owner,
    /// A process that the node has started, by its instance.
    Process(String),
    /// A user who may call what this list says.
    Operator(u32, Access),
    /// Somebody on another machine who has this key, by the word of the gateway.
    Remote(KeyHash, Access),
}

impl Identity {
    /// Its name for logs, and for whom it calls.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Owner => "manager".to_owned(),
            Self::Process(instance) => instance.clone(),
            Self::Operator(uid, _) => format!("operator (uid {uid})"),
            Self::Remote(key, _) => remote_operator(key),
        }
    }
}

/// A process that is connected.
pub(crate) struct Client {
    pub(crate) peer: Peer,
    pub(crate) identity: Option<Identity>,
    /// Its number in keys that it is given.
    pub(crate) session: u64,
    /// Which methods of the Finder its slots name.
    pub(crate) slots: BTreeMap<u16, (&'static Interface, u16)>,
    pub(crate) outgoing: Outgoing<Asked>,
    /// The classes that it watches; `None` is all.
    pub(crate) watches: BTreeSet<Option<String>>,
    /// The connections of the processes that have rights for it.
    pub(crate) granted_by: BTreeSet<ChannelId>,
}

/// What the Finder asked of a process.
#[derive(Debug)]
pub(crate) enum Asked {
    /// To let somebody call it, who waits for this resolution.
    Grant { call: Call, reply: finder::ResolveReply },
    /// To take note of something.
    Notice,
}

#[derive(Default)]
pub(crate) struct Clients {
    all: BTreeMap<ChannelId, Client>,
}

impl Clients {
    pub(crate) fn accepted(&mut self, channel: ChannelId, peer: Peer) {
        let client = Client {
            peer,
            identity: None,
            session: 0,
            slots: BTreeMap::new(),
            outgoing: Outgoing::default(),
            watches: BTreeSet::new(),
            granted_by: BTreeSet::new(),
        };
        self.all.insert(channel, client);
    }

    pub(crate) fn get(&self, channel: ChannelId) -> Option<&Client> {
        self.all.get(&channel)
    }

    pub(crate) fn get_mut(&mut self, channel: ChannelId) -> Option<&mut Client> {
        self.all.get_mut(&channel)
    }

    pub(crate) fn remove(&mut self, channel: ChannelId) -> Option<Client> {
        self.all.remove(&channel)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChannelId, &Client)> {
        self.all.iter().map(|(channel, client)| (*channel, client))
    }

    /// The connections of those to whom something applies.
    pub(crate) fn which(&self, applies: impl Fn(&Client) -> bool) -> Vec<ChannelId> {
        self.iter().filter(|(_, one)| applies(one)).map(|(channel, _)| channel).collect()
    }

    pub(crate) fn congestion(
        &mut self,
        now: Instant,
        channel: ChannelId,
        congested: bool,
        out: &mut Vec<Action>,
    ) {
        if let Some(client) = self.all.get_mut(&channel) {
            client.outgoing.set_congested(congested);
            client.flush(now, channel, out);
        }
    }

    /// Asks something of a process.
    pub(crate) fn ask<R: Request>(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: R,
        asked: Asked,
        out: &mut Vec<Action>,
    ) {
        let Some(client) = self.all.get_mut(&channel) else { return };
        let Encoded { args, handles } = Encoded::new(request);
        let (slot, deadline) = (R::METHOD, now + PATIENCE);
        client.outgoing.push(Ready { slot, args, handles, text: false, deadline, owner: asked });
        client.flush(now, channel, out);
    }

    /// Tells everybody who watches a class.
    pub(crate) fn tell_watchers<R: Request>(
        &mut self,
        now: Instant,
        class: &str,
        request: impl Fn() -> R,
        out: &mut Vec<Action>,
    ) {
        let watching = |client: &Client| {
            let mut classes = client.watches.iter();
            classes.any(|one| one.as_deref().is_none_or(|one| one == class))
        };
        let channels: Vec<_> = self
            .iter()
            .filter(|(_, client)| watching(client))
            .map(|(channel, _)| channel)
            .collect();
        for channel in channels {
            self.ask(now, channel, request(), Asked::Notice, out);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.all.values().filter_map(|client| client.outgoing.deadline()).min()
    }

    /// What was asked too long ago.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Asked> {
        let mut expired = Vec::new();
        for client in self.all.values_mut() {
            client.outgoing.expire(now, &mut expired);
        }
        expired
    }
}

impl Client {
    pub(crate) fn flush(&mut self, now: Instant, channel: ChannelId, out: &mut Vec<Action>) {
        self.outgoing.flush(now, |message| out.push(Action::Send { channel, message }));
    }

    /// Who it is on this machine: process and user, zero and the highest number if it is elsewhere.
    pub(crate) fn process(&self) -> (u32, u32) {
        match self.peer {
            Peer::Process { pid, uid, .. } => (pid, uid),
            Peer::Address(_) | Peer::Key { .. } => (0, u32::MAX),
        }
    }
}

/// The names of the methods that the Finder calls, told once to each process.
pub(crate) fn introduce(channel: ChannelId, out: &mut Vec<Action>) {
    for method in 0..finder_client::INTERFACE.methods.len() as u16 {
        let path = finder_client::INTERFACE.path_of(method);
        let message = Frame::Name { slot: method, path }.emit();
        out.push(Action::Send { channel, message });
    }
}

/// Ends a connection because of an error.
pub(crate) fn refuse(channel: ChannelId, error: XrlError, out: &mut Vec<Action>) {
    out.push(Action::Send { channel, message: Frame::Goodbye(error).emit() });
    out.push(Action::Close { channel });
}
