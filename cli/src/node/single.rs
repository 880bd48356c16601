//! `weft run --single`: the stack in one process, which tells the service manager what the launcher tells of
//! a node of several: that it is ready, that it works, and that it ends.
//!
//! Reference: sd_notify(3).

use weft_base::{CounterGroup, Instant};
use weft_launcher::{Notice, Notify};
use weft_runtime::{Action, Component, Event, Level};
use weft_xip::node::Node;

/// The stack, and what watches over it.
pub(super) struct Single {
    node: Node,
    /// It begins with the first event, which tells the time.
    notify: Option<Notify>,
    was_ready: bool,
}

impl Single {
    pub(super) fn new(node: Node) -> Self {
        Self { node, notify: None, was_ready: false }
    }

    fn tell(&mut self, now: Instant, is_end: bool) -> Result<(), String> {
        self.notify.get_or_insert_with(|| Notify::new(now)).tick(now)?;
        if self.node.is_ready() && !std::mem::replace(&mut self.was_ready, true) {
            Notify::tell(&Notice::Ready)?;
            Notify::tell(&Notice::Status("one process runs, for debugging".to_owned()))?;
        }
        if is_end { Notify::tell(&Notice::Stopping) } else { Ok(()) }
    }
}

impl Component for Single {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let is_end = matches!(event, Event::Stop);
        self.node.handle(now, event, out);
        if let Err(line) = self.tell(now, is_end) {
            out.push(Action::Report { level: Level::Debug, line });
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let watchdog = self.notify.as_ref().and_then(Notify::deadline);
        self.node.deadline().into_iter().chain(watchdog).min()
    }

    fn has_background_work(&self) -> bool {
        self.node.has_background_work()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        self.node.counters()
    }
}
