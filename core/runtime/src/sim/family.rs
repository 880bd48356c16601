//! Processes that start others: a [`Parent`] is a process whose children the world starts and ends for it.
//!
//! What holds for them is what holds on a real machine for a small launcher and its children. A child is on
//! its parent's node and works in its directory, and what it reports comes out with what its parent
//! reports. It may have a channel to its parent, and sockets that its parent listens at: connections to
//! them wait while nobody accepts, and the sockets stay when the child ends. A parent is told when a child
//! has ended; when it ends itself, its children are killed.

use weft_base::{ChannelId, Token};

use super::ids::ProcessId;
use super::process::{Body, Slot, Status, Waiting};
use super::world::World;
use crate::{Action, ChannelAddress, Component, Event, Process};

/// A process that starts others.
pub trait Parent: Component<Input = ParentEvent, Output = ParentAction> {}

impl<T: Component<Input = ParentEvent, Output = ParentAction>> Parent for T {}

/// What a parent is told.
#[derive(Debug)]
pub enum ParentEvent {
    /// What every process is told.
    World(Event),
    /// A child runs.
    Spawned {
        /// The token of [`ParentAction::Spawn`].
        token: Token,
        /// The child.
        child: ProcessId,
        /// The channel to it, if it was to have one.
        channel: Option<ChannelId>,
    },
    /// A child could not be started.
    SpawnFailed {
        /// The token of [`ParentAction::Spawn`].
        token: Token,
        /// Why, in one sentence.
        error: String,
    },
    /// A child has ended.
    Ended {
        /// Which.
        child: ProcessId,
        /// How.
        status: Status,
    },
}

/// What a parent asks for.
pub enum ParentAction {
    /// What every process may ask for.
    World(Action),
    /// Start a child; answered by [`ParentEvent::Spawned`] or [`ParentEvent::SpawnFailed`].
    Spawn(Child),
    /// Ask a child to end.
    Stop(ProcessId),
    /// End a child at once.
    Kill(ProcessId),
    /// Listen no more at an address that a child was given.
    Release(ChannelAddress),
}

/// A child that is to be started.
pub struct Child {
    /// Comes back in the answer.
    pub token: Token,
    /// Its name in reports.
    pub name: String,
    /// The process itself.
    pub process: Box<dyn Process>,
    /// Where it may listen at sockets of its parent, which are made if they are not there.
    pub listeners: Vec<ChannelAddress>,
    /// What it calls its channel to its parent, if it is to have one; see [`Event::Inherited`].
    pub channel: Option<String>,
}

impl World {
    /// Lets a parent handle an event and does what it asks for.
    pub(super) fn call_parent(&mut self, id: ProcessId, event: ParentEvent) {
        let now = self.clock.now();
        let slot = &mut self.processes[id.index()];
        let Some(Body::Parent(parent)) = &mut slot.body else { return };
        let mut actions = Vec::new();
        parent.handle(now, event, &mut actions);
        slot.note_call(now);
        for action in actions {
            self.perform_for_parent(id, action);
        }
    }

    fn perform_for_parent(&mut self, parent: ProcessId, action: ParentAction) {
        if self.processes[parent.index()].body.is_none() {
            return; // What comes after an exit is not done.
        }
        match action {
            ParentAction::World(action) => self.perform(parent, action),
            ParentAction::Spawn(child) => {
                let token = child.token;
                let event = match self.spawn_child(parent, child) {
                    Ok((child, channel)) => ParentEvent::Spawned { token, child, channel },
                    Err(error) => ParentEvent::SpawnFailed { token, error },
                };
                self.post(parent, Waiting::Family(event));
            }
            ParentAction::Stop(child) if self.is_child(parent, child) => {
                self.post(child, Waiting::Event(Event::Stop));
            }
            ParentAction::Kill(child) if self.is_child(parent, child) => self.kill(child),
            ParentAction::Stop(_) | ParentAction::Kill(_) => {}
            ParentAction::Release(address) => self.release(parent, &address),
        }
    }

    fn is_child(&self, parent: ProcessId, child: ProcessId) -> bool {
        self.processes.get(child.index()).is_some_and(|slot| slot.parent == Some(parent))
    }

    fn spawn_child(
        &mut self,
        parent: ProcessId,
        child: Child,
    ) -> Result<(ProcessId, Option<ChannelId>), String> {
        let id = ProcessId::at(self.processes.len());
        self.bequeath(parent, id, &child.listeners)?;
        let slot = &self.processes[parent.index()];
        let (node, directory) = (slot.node, slot.files.directory().to_owned());
        let mut slot = Slot::new(node, child.name, Body::Process(child.process));
        slot.parent = Some(parent);
        self.start(slot, &directory, Vec::new());
        let channel = child.channel.map(|name| {
            let (ours, theirs) = self.pair(parent, id);
            self.post(id, Waiting::Event(Event::Inherited { name, channel: theirs }));
            ours
        });
        Ok((id, channel))
    }

    /// Tells the parent of a process that has ended, and kills its children.
    pub(super) fn settle_family(&mut self, id: ProcessId, status: Status) {
        if let Some(parent) = self.processes[id.index()].parent {
            self.post(parent, Waiting::Family(ParentEvent::Ended { child: id, status }));
        }
        // A parent without children is most of them.
        if self.processes[id.index()].is_parent {
            let children: Vec<_> =
                self.processes().filter(|child| self.is_child(id, *child)).collect();
            children.into_iter().for_each(|child| self.kill(child));
        }
    }
}
