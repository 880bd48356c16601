//! How the node is, in a line, for whoever supervises it: systemd, by way of the launcher.

use weft_launcher::protocol::{Command, STATUS};
use weft_runtime::Level;
use weft_xrl::Output;

use crate::{Manager, report};

/// What was last said.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Status {
    ready: bool,
    text: String,
}

impl Manager {
    /// Says how the node is, if that has changed.
    pub(crate) fn say_status(&mut self, out: &mut Vec<Output>) {
        if !self.commits.runs() {
            return;
        }
        let status = self.status();
        if status == self.status {
            return;
        }
        if status.ready && !std::mem::replace(&mut self.was_ready, true) {
            let node = &self.settings.node;
            report(out, Level::Info, format!("node {node}: {}", status.text));
        }
        self.ask(Command::Status { ready: status.ready, text: status.text.clone() }, out);
        self.status = status;
    }

    fn status(&self) -> Status {
        let states = || self.instances.iter().map(|(name, one)| (name, self.state(name, one)));
        let others: Vec<_> = states()
            .filter(|(_, state)| *state != "running")
            .map(|(name, state)| format!("{name} is {state}"))
            .collect();
        // A program that refuses its configuration keeps nobody from the rest.
        let ready = states().all(|(_, state)| ["running", "refused"].contains(&state));
        let mut text = match others.is_empty() {
            true => format!("{} processes run", states().count()),
            false => others.join(", "),
        };
        text.truncate(text.floor_char_boundary(STATUS));
        Status { ready, text }
    }
}
