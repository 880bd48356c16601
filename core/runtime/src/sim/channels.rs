//! Message channels between processes of a node.
//!
//! Listeners are known by node and path. A message takes [`ChannelConfig::latency`]; what is on its
//! way stands in a queue of the receiving end. When that reaches
//! [`ChannelConfig::congested_at`] the sender is told so, and once more when it has drained to half.
//! What is sent beyond [`ChannelConfig::limit`] is dropped and counted, and so are empty messages and
//! those longer than [`LONGEST_MESSAGE`], as the real driver does. A process that dies closes its
//! channels; what it sent before still arrives, then [`Event::Closed`]. Unlike on a real file system,
//! the directory of a listener's path need not exist.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_base::{ChannelId, Counters, Instant, Meta, Packet, Token};

use super::agenda::Due;
use super::ids::{EndId, NodeId, ProcessId};
use super::process::Waiting;
use super::world::World;
use crate::{Event, Peer};

/// The longest message that a channel takes, in bytes.
const LONGEST_MESSAGE: usize = weft_port::datagrams::LONGEST;

/// How channels behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// How long a message, a connection and a close take.
    pub latency: Duration,
    /// At how many messages on their way the sender learns of congestion.
    pub congested_at: usize,
    /// How many messages may be on their way; further ones are dropped.
    pub limit: usize,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self { latency: Duration::from_micros(10), congested_at: 256, limit: 4096 }
    }
}

weft_base::reasons! {
    /// What the channels of a world count.
    /// `sent = delivered + unsuitable + overflow + closed +` messages on their way.
    pub enum ChannelCount {
        Sent = "sent", "messages sent";
        Delivered = "delivered", "messages given to their receiver";
        Unsuitable = "unsuitable", "dropped: empty, or longer than a channel takes";
        Overflow = "overflow", "dropped: the sender ignored the congestion";
        Closed = "closed", "dropped: the receiver closed the channel, or it never was open";
    }
}

/// Something on its way to an end of a channel.
#[derive(Debug)]
enum Item {
    Accepted { token: Token, peer: Peer },
    Connected { token: Token },
    Message(Packet),
    Closed,
}

/// One end of a channel.
#[derive(Debug)]
struct End {
    process: ProcessId,
    channel: ChannelId,
    /// The other end, unless it is closed.
    peer: Option<EndId>,
    incoming: VecDeque<(Instant, Item)>,
    /// Messages in `incoming`.
    messages: usize,
    /// Whether the sender was told to wait.
    congested: bool,
}

/// All channels and listeners of a world.
#[derive(Debug)]
pub(super) struct Channels {
    config: ChannelConfig,
    listeners: BTreeMap<(NodeId, PathBuf), (ProcessId, Token)>,
    /// Closed ends leave their place empty.
    ends: Vec<Option<End>>,
    pub(super) counters: Counters<ChannelCount>,
}

impl Channels {
    pub(super) fn new(config: ChannelConfig) -> Self {
        Self { config, listeners: BTreeMap::new(), ends: Vec::new(), counters: Counters::new() }
    }

    fn end(&mut self, id: EndId) -> Option<&mut End> {
        self.ends.get_mut(id.index())?.as_mut()
    }

    /// Adds both ends of a channel; each is a process and what it calls the channel.
    fn add(&mut self, a: (ProcessId, ChannelId), b: (ProcessId, ChannelId)) -> (EndId, EndId) {
        let first = self.ends.len();
        let (a_id, b_id) = (EndId::at(first), EndId::at(first + 1));
        for ((process, channel), peer) in [(a, b_id), (b, a_id)] {
            self.ends.push(Some(End {
                process,
                channel,
                peer: Some(peer),
                incoming: VecDeque::new(),
                messages: 0,
                congested: false,
            }));
        }
        (a_id, b_id)
    }

    /// Closes an end and returns the other, if that is open.
    fn remove(&mut self, id: EndId) -> Option<EndId> {
        let end = self.ends.get_mut(id.index())?.take()?;
        self.counters.add(ChannelCount::Closed, end.messages as u64);
        self.end(end.peer?)?.peer = None;
        end.peer
    }
}

impl World {
    pub(super) fn listen(&mut self, process: ProcessId, token: Token, path: &Path) {
        let slot = &self.processes[process.index()];
        let key = (slot.node, slot.files.resolve(path));
        let event = if let Some((owner, _)) = self.channels.listeners.get(&key) {
            let owner = self.process_name(*owner);
            let error = format!(
                "cannot listen at {}: {owner} listens there already; stop it or use another path",
                path.display()
            );
            Event::ChannelFailed { token, error }
        } else {
            self.channels.listeners.insert(key, (process, token));
            Event::Listening { token }
        };
        self.post(process, Waiting::Event(event));
    }

    pub(super) fn connect_channel(&mut self, process: ProcessId, token: Token, path: &Path) {
        let slot = &self.processes[process.index()];
        let key = (slot.node, slot.files.resolve(path));
        let Some((listener, listener_token)) = self.channels.listeners.get(&key).copied() else {
            let error = format!(
                "cannot connect to {}: nobody listens there; is the stack running on this node?",
                path.display()
            );
            self.post(process, Waiting::Event(Event::ChannelFailed { token, error }));
            return;
        };
        let mine = (process, self.next_channel(process));
        let theirs = (listener, self.next_channel(listener));
        let (mine_id, theirs_id) = self.channels.add(mine, theirs);
        self.processes[process.index()].channels.insert(mine.1, mine_id);
        self.processes[listener.index()].channels.insert(theirs.1, theirs_id);
        let pid = process.index() as u32 + 1;
        let peer = Peer { pid, uid: 0, gid: 0 };
        self.dispatch(theirs_id, Item::Accepted { token: listener_token, peer });
        self.dispatch(mine_id, Item::Connected { token });
    }

    fn next_channel(&mut self, process: ProcessId) -> ChannelId {
        let slot = &mut self.processes[process.index()];
        slot.last_channel += 1;
        ChannelId(slot.last_channel)
    }

    pub(super) fn send_message(
        &mut self,
        process: ProcessId,
        channel: ChannelId,
        mut message: Packet,
    ) {
        self.channels.counters.add(ChannelCount::Sent, 1);
        if message.is_empty() || message.len() > LONGEST_MESSAGE {
            self.channels.counters.add(ChannelCount::Unsuitable, 1);
            return;
        }
        let own = self.processes[process.index()].channels.get(&channel).copied();
        let peer = own.and_then(|own| self.channels.end(own)?.peer);
        let (limit, congested_at) = (self.channels.config.limit, self.channels.config.congested_at);
        let Some((peer, end)) = peer.and_then(|id| Some((id, self.channels.end(id)?))) else {
            self.channels.counters.add(ChannelCount::Closed, 1);
            return;
        };
        if end.messages >= limit {
            self.channels.counters.add(ChannelCount::Overflow, 1);
            return;
        }
        end.messages += 1;
        let newly_congested = end.messages >= congested_at && !end.congested;
        end.congested |= newly_congested;
        message.meta = Meta::default();
        self.dispatch(peer, Item::Message(message));
        if newly_congested {
            self.post(process, Waiting::Event(Event::Congested { channel }));
        }
    }

    /// Sends something on its way to an end.
    fn dispatch(&mut self, to: EndId, item: Item) {
        let at = self.clock.now() + self.channels.config.latency;
        if let Some(end) = self.channels.end(to) {
            if end.incoming.back().is_none_or(|(last, _)| *last != at) {
                self.clock.schedule(at, Due::Channel(to));
            }
            end.incoming.push_back((at, item));
        }
    }

    /// Gives an end what has come to it by now.
    pub(super) fn channel_arrival(&mut self, id: EndId) {
        let now = self.clock.now();
        let Some(end) = self.channels.end(id) else { return };
        let (process, channel) = (end.process, end.channel);
        let mut messages = Vec::new();
        let mut events = Vec::new();
        while let Some((_, item)) = end.incoming.pop_front_if(|(at, _)| *at <= now) {
            if let Item::Message(message) = item {
                messages.push(message);
                continue;
            }
            flush(channel, &mut messages, &mut events);
            events.push(match item {
                Item::Accepted { token, peer } => Event::Accepted { token, channel, peer },
                Item::Connected { token } => Event::Connected { token, channel },
                Item::Message(_) | Item::Closed => Event::Closed { channel },
            });
        }
        flush(channel, &mut messages, &mut events);
        self.settle_channel(id, &events);
        for event in events {
            if matches!(event, Event::Closed { .. }) {
                self.processes[process.index()].channels.remove(&channel);
                self.channels.remove(id);
            }
            self.post(process, Waiting::Event(event));
        }
    }

    /// Counts what was delivered and tells the sender when the end has drained.
    fn settle_channel(&mut self, id: EndId, events: &[Event]) {
        let delivered = events.iter().map(|event| match event {
            Event::Messages { messages, .. } => messages.len(),
            _ => 0,
        });
        let delivered = delivered.sum::<usize>();
        self.channels.counters.add(ChannelCount::Delivered, delivered as u64);
        let drained_at = self.channels.config.congested_at / 2;
        let Some(end) = self.channels.end(id) else { return };
        end.messages -= delivered;
        if !end.congested || end.messages > drained_at {
            return;
        }
        end.congested = false;
        let peer = end.peer;
        if let Some(sender) = peer.and_then(|peer| self.channels.end(peer)) {
            let (process, channel) = (sender.process, sender.channel);
            self.post(process, Waiting::Event(Event::Drained { channel }));
        }
    }

    pub(super) fn close_channel(&mut self, process: ProcessId, channel: ChannelId) {
        if let Some(end) = self.processes[process.index()].channels.remove(&channel)
            && let Some(peer) = self.channels.remove(end)
        {
            self.dispatch(peer, Item::Closed);
        }
    }

    /// Takes away the listeners and channels of a process that has ended.
    pub(super) fn close_channels(&mut self, process: ProcessId) {
        self.channels.listeners.retain(|_, (owner, _)| *owner != process);
        let channels: Vec<_> = self.processes[process.index()].channels.keys().copied().collect();
        for channel in channels {
            self.close_channel(process, channel);
        }
    }
}

/// Turns collected messages into one event.
fn flush(channel: ChannelId, messages: &mut Vec<Packet>, events: &mut Vec<Event>) {
    if !messages.is_empty() {
        events.push(Event::Messages { channel, messages: std::mem::take(messages) });
    }
}
