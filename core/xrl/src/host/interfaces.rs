//! The machine's network interfaces, for every member that watches them.
//!
//! The driver tells a process once which interfaces there are; a member that asks later is told by the host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_runtime::{Event, Interface, InterfaceChange};

use crate::component::Input;

#[derive(Default)]
pub(super) struct Interfaces {
    watching: BTreeSet<usize>,
    known: BTreeMap<u32, Interface>,
    complete: bool,
}

impl Interfaces {
    /// A member begins to watch; whether the driver is to be asked.
    pub(super) fn watch(&mut self, member: usize, inputs: &mut VecDeque<(usize, Input)>) -> bool {
        let is_first = self.watching.is_empty();
        if self.watching.insert(member) && !is_first {
            let known = self.known.values().cloned().map(InterfaceChange::Added);
            let changes = known.chain(self.complete.then_some(InterfaceChange::Complete));
            inputs.extend(changes.map(|change| (member, told(change))));
        }
        is_first
    }

    /// The driver tells of a change.
    pub(super) fn changed(
        &mut self,
        change: &InterfaceChange,
        inputs: &mut VecDeque<(usize, Input)>,
    ) {
        match change {
            InterfaceChange::Added(now) | InterfaceChange::Changed(now) => {
                self.known.insert(now.index, now.clone());
            }
            InterfaceChange::Removed { index, .. } => drop(self.known.remove(index)),
            InterfaceChange::Complete => self.complete = true,
        }
        inputs.extend(self.watching.iter().map(|member| (*member, told(change.clone()))));
    }
}

fn told(change: InterfaceChange) -> Input {
    Input::World(Event::Interface { change })
}
