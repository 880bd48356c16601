//! One command to a node, and its answer: what `weft xia addr`, `show`, `principal …` do.

use std::path::Path;

use serde_json::Value;
use weft_base::{Instant, Token};
use weft_runtime::{Action, Component, Event, Level};
use weft_xia_sockets::{Client, ClientEvent};

/// Turns a reply into lines to print.
pub type Format = fn(&Value) -> Vec<String>;

/// An application that gives one command and prints the answer.
pub struct Ask {
    client: Client,
    command: String,
    format: Format,
}

impl Ask {
    /// Gives `command` to the node whose socket is at `node`; prints what `format` makes of the
    /// reply.
    #[must_use]
    pub fn new(node: &Path, command: &str, format: Format) -> Self {
        Self { client: Client::new(Token(1), node, None), command: command.to_owned(), format }
    }

    fn client_event(&mut self, event: ClientEvent, out: &mut Vec<Action>) {
        match event {
            ClientEvent::Ready(_) => {
                self.client.command(&self.command, out);
            }
            ClientEvent::Reply(text) => match serde_json::from_str(&text) {
                Ok(value) => {
                    let lines = (self.format)(&value);
                    out.extend(lines.into_iter().map(|line| Action::Print { line }));
                    out.push(Action::Exit { status: 0 });
                }
                Err(error) => fail(format!("the node's reply is no JSON: {error}"), out),
            },
            ClientEvent::Failed(error) | ClientEvent::CommandFailed(error) => fail(error, out),
            ClientEvent::Detached => fail("the node went away before it answered".to_owned(), out),
            ClientEvent::Datagram { .. }
            | ClientEvent::Rejected(_)
            | ClientEvent::Congested
            | ClientEvent::Drained => {}
        }
    }
}

fn fail(error: String, out: &mut Vec<Action>) {
    out.push(Action::Report { level: Level::Error, line: error });
    out.push(Action::Exit { status: 1 });
}

impl Component for Ask {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => return self.client.start(out),
            Event::Stop => return out.push(Action::Exit { status: 1 }),
            _ => {}
        }
        let mut events = Vec::new();
        self.client.handle(now, event, &mut events, out);
        for event in events {
            self.client_event(event, out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use weft_xip::channel;

    use super::*;
    use crate::testing::Harness;

    fn ask() -> Harness<Ask> {
        let format: Format = |value| vec![format!("name {}", value["name"])];
        Harness::attached(Ask::new(Path::new("x"), "show node", format))
    }

    #[test]
    fn prints_the_reply_of_several_parts() {
        let mut harness = ask();
        assert_eq!(harness.commands(), ["show node"]);
        let reply = format!("{{\"name\": \"r1\", \"filling\": \"{}\"}}", "x".repeat(3000));
        for part in channel::emit_reply(&reply) {
            harness.answer(part);
        }
        assert_eq!(harness.printed(), ["name \"r1\""]);
        assert_eq!(harness.exit_status(), Some(0));
    }

    #[test]
    fn a_refused_command_is_an_error() {
        let mut harness = ask();
        harness.answer(channel::emit_failed("no such thing"));
        assert_eq!(harness.reported(), ["no such thing"]);
        assert_eq!(harness.exit_status(), Some(1));
    }
}
