//! The real driver as a whole: scripted processes on real sockets, files and signals.

mod channels;
mod children;
mod connections;
mod disk;
mod encrypted;
mod flows;
mod interfaces;
mod peers;
mod ports;
mod routes;
mod streams;
mod turns;

use std::time::Duration;

use weft_base::Instant;

use super::{Options, run};
use crate::{Action, Component, Event};

/// One call of a script.
struct Turn<'a> {
    now: Instant,
    event: Event,
    out: &'a mut Vec<Action>,
    deadline: &'a mut Option<Instant>,
    background: &'a mut bool,
}

impl Turn<'_> {
    fn exit(&mut self, status: u8) {
        self.out.push(Action::Exit { status });
    }
}

/// A process that does what a closure says. A script that hangs fails after a minute.
struct Script<F> {
    script: F,
    deadline: Option<Instant>,
    background: bool,
    give_up: Option<Instant>,
}

impl<F: FnMut(&mut Turn<'_>)> Component for Script<F> {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let give_up = *self.give_up.get_or_insert(now + Duration::from_secs(60));
        assert!(now < give_up, "the script hangs at {event:?}");
        let Self { script, deadline, background, .. } = self;
        script(&mut Turn { now, event, out, deadline, background });
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.give_up).min()
    }

    fn has_background_work(&self) -> bool {
        self.background
    }
}

/// Options for scripts that share the test's process.
fn options() -> Options {
    Options { signals: false, ..Options::default() }
}

/// Runs a script on this thread.
fn run_script(script: impl FnMut(&mut Turn<'_>) + 'static) -> u8 {
    run_script_with(options(), script)
}

fn run_script_with(options: Options, script: impl FnMut(&mut Turn<'_>) + 'static) -> u8 {
    let script = Script { script, deadline: None, background: false, give_up: None };
    run(Box::new(script), options)
}
