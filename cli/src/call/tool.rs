//! Makes calls one after the other and prints what they return.

use std::collections::VecDeque;
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::{Action, Component, Event, Level};
use weft_xrl::{Call, Input, Output, Reply, XrlError};

use super::Line;

/// The calls that are still to be made; see the module's text.
pub(super) struct Tool {
    lines: VecDeque<Line>,
    timeout: Duration,
    keep_going: bool,
    /// Whether one failed.
    failed: bool,
    begun: bool,
}

impl Tool {
    pub(super) fn new(lines: Vec<Line>, timeout: Duration, keep_going: bool) -> Self {
        Self { lines: lines.into(), timeout, keep_going, failed: false, begun: false }
    }

    /// Makes the next call, or ends.
    fn next(&mut self, out: &mut Vec<Output>) {
        match self.lines.front() {
            Some(line) => out.push(Call::from_text(0, &line.xrl).within(self.timeout).into()),
            None => self.end(out),
        }
    }

    fn end(&self, out: &mut Vec<Output>) {
        out.push(Output::World(Action::Exit { status: u8::from(self.failed) }));
    }

    fn replied(&mut self, result: Result<Reply, XrlError>, out: &mut Vec<Output>) {
        let Some(line) = self.lines.pop_front() else { return };
        match result {
            // A call that returns nothing prints nothing.
            Ok(Reply::Text(text)) if text.is_empty() => {}
            Ok(Reply::Text(text)) => out.push(Output::World(Action::Print { line: text })),
            Ok(Reply::Arguments(_)) => self.error(&line, "the reply is no text", out),
            Err(error) => self.error(&line, &error.to_string(), out),
        }
        match self.failed && !self.keep_going {
            true => self.end(out),
            false => self.next(out),
        }
    }

    fn error(&mut self, line: &Line, error: &str, out: &mut Vec<Output>) {
        self.failed = true;
        let line = format!("{} ({}): {error}", line.place, line.xrl.path());
        out.push(Output::World(Action::Report { level: Level::Error, line }));
    }
}

impl Component for Tool {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            // The first call waits for the Finder, if that is not there yet.
            Input::World(Event::Start) if !std::mem::replace(&mut self.begun, true) => {
                self.next(out);
            }
            Input::Replied { result, .. } => self.replied(result, out),
            Input::NotRegistered(why) => {
                let line = why;
                out.push(Output::World(Action::Report { level: Level::Error, line }));
                self.failed = true;
                self.end(out);
            }
            Input::World(Event::Stop) => {
                self.failed = true;
                self.end(out);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
