//! How push and receive are run: their work is done by a component of `weft_xia_push`, behind a
//! datagram socket that must be there before it begins.

use weft_base::Instant;
use weft_runtime::{Action, Component, Event};
use weft_xia_push::host::HostInput;
use weft_xia_sockets::{Client, ClientEvent};

/// A sender or receiver and its socket.
pub(crate) struct Worker<C> {
    pub(crate) client: Client,
    pub(crate) component: C,
    /// Whether the component has begun.
    pub(crate) started: bool,
}

impl<C: Component<Input: From<HostInput>>> Worker<C> {
    pub(crate) fn new(client: Client, component: C) -> Self {
        Self { client, component, started: false }
    }

    /// Hands an event to the one that it is for. What the socket has to say comes back, what the
    /// component asks for is added to `outputs`.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        event: Event,
        outputs: &mut Vec<C::Output>,
        out: &mut Vec<Action>,
    ) -> Vec<ClientEvent> {
        let mut events = Vec::new();
        match self.client.handle(now, event, &mut events, out) {
            Some(Event::Start) => self.client.start(out),
            Some(Event::Stop) if !self.started => out.push(Action::Exit { status: 1 }),
            Some(event) if self.started => {
                if let Some(input) = HostInput::from_event(event) {
                    self.component.handle(now, input.into(), outputs);
                }
            }
            _ => {}
        }
        events
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let component = self.started.then(|| self.component.deadline()).flatten();
        [component, self.client.deadline()].into_iter().flatten().min()
    }

    pub(crate) fn has_background_work(&self) -> bool {
        self.started && self.component.has_background_work()
    }
}
