//! `weft show log`: `monitor/1.0/log` of each component.
//!
//! Records of several components are put in order of their times when all have answered. With `--follow` each is
//! asked again as soon as it has answered, and answers when there is something new; components that are
//! started meanwhile are told by the Finder.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::json;
use weft_base::{Instant, WallTime};
use weft_runtime::{Action, Component, Event, Level, real};
use weft_xrl::{Call, ErrorCode, FINDER, Input, Output, XrlError, finder, monitor};

use super::{PATIENCE, ViewArgs, monotonic};
use crate::call::{self, Reach};
use crate::output::Outcome;

/// How long a component may be silent before it is asked again.
const SILENCE: Duration = Duration::from_secs(3_600);
/// The token of the question who is there.
const TARGETS: u64 = 0;

#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// The component, by its instance or class [default: all]
    component: Option<String>,
    /// Go on with what is reported from now on, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Show only what is at least as serious: error, warning, info or debug
    #[arg(short, long, default_value = "debug")]
    level: Level,
    #[command(flatten)]
    view: ViewArgs,
}

pub(super) fn run(args: &LogArgs) -> Outcome {
    let reach = Reach::here(&args.view.node)?;
    let reader = Reader {
        only: args.component.clone(),
        follow: args.follow,
        level: args.level,
        json: args.view.json,
        epoch: epoch(),
        asked: BTreeMap::new(),
        last: BTreeMap::new(),
        token: TARGETS,
        entries: Vec::new(),
        failed: false,
    };
    Ok(real::run(call::caller("log", Box::new(reader), &reach), reach.options()))
}

/// The time of day, in nanoseconds since 1970, when the monotonic clock began.
fn epoch() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since_1970.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    nanos.saturating_sub(monotonic())
}

/// Asks components and prints; see the module's text.
struct Reader {
    only: Option<String>,
    follow: bool,
    level: Level,
    json: bool,
    epoch: u64,
    /// Whom each call asks.
    asked: BTreeMap<u64, String>,
    /// The number of the last record of each.
    last: BTreeMap<String, u64>,
    token: u64,
    /// Records that wait for those of others.
    entries: Vec<(String, monitor::Entry)>,
    failed: bool,
}

impl Reader {
    fn start(&mut self, out: &mut Vec<Output>) {
        match self.only.clone() {
            Some(name) => self.ask(name, out),
            None => {
                out.push(Call::new(TARGETS, FINDER, finder::Targets).within(PATIENCE).into());
            }
        }
        if self.follow {
            out.push(Output::Watch { class: None });
        }
    }

    fn ask(&mut self, component: String, out: &mut Vec<Output>) {
        self.token += 1;
        let after = self.last.get(&component).copied();
        // Before it waits, what there is already is shown with that of others.
        let wait = self.follow && after.is_some();
        let request =
            monitor::Log { after, level: Some(self.level.to_string()), wait: wait.then_some(true) };
        let patience = if wait { SILENCE } else { PATIENCE };
        out.push(Call::new(self.token, component.clone(), request).within(patience).into());
        self.asked.insert(self.token, component);
    }

    fn targets(&mut self, result: Result<weft_xrl::Reply, XrlError>, out: &mut Vec<Output>) {
        match result.and_then(|reply| reply.read::<finder::Targets>()) {
            Ok(reply) => {
                let names = reply.targets.into_iter().map(|target| target.instance);
                for name in names.chain([FINDER.to_owned()]) {
                    self.ask(name, out);
                }
            }
            Err(error) => self.fail(error.to_string(), out),
        }
    }

    fn replied(
        &mut self,
        component: String,
        result: Result<weft_xrl::Reply, XrlError>,
        out: &mut Vec<Output>,
    ) {
        match result.and_then(|reply| reply.read::<monitor::Log>()) {
            Ok(reply) => {
                let last = reply.entries.last().map(|entry| entry.number);
                let known = self.last.get(&component).copied().unwrap_or(0);
                self.last.insert(component.clone(), last.unwrap_or(known));
                self.entries.extend(reply.entries.into_iter().map(|one| (component.clone(), one)));
                if self.follow {
                    self.ask(component, out);
                }
            }
            // It died and will be born again, or it has no log: a program of others.
            Err(error) if self.follow && is_gone(&error) => self.gone(component, out),
            Err(error) if self.only.is_none() && is_gone(&error) => {}
            // It had nothing to say for a long time.
            Err(error) if self.follow && error.code == ErrorCode::ReplyTimedOut => {
                self.ask(component, out);
            }
            Err(error) => self.fail(format!("{component}: {error}"), out),
        }
    }

    /// A component ends; the numbers of the next one's records begin at 1.
    fn gone(&mut self, component: String, out: &mut Vec<Output>) {
        self.last.remove(&component);
        // The Finder tells no birth of itself; the question waits until it is back.
        if component == FINDER {
            self.last.insert(component.clone(), 0);
            self.ask(component, out);
        }
    }

    fn born(&mut self, instance: String, out: &mut Vec<Output>) {
        let wanted = self.only.as_ref().is_none_or(|only| *only == instance);
        let known = self.asked.values().any(|asked| *asked == instance);
        if wanted && !known && !self.asked.is_empty() {
            self.last.insert(instance.clone(), 0);
            self.ask(instance, out);
        }
    }

    fn fail(&mut self, line: String, out: &mut Vec<Output>) {
        self.failed = true;
        out.push(Output::World(Action::Report { level: Level::Error, line }));
    }

    /// Prints what is complete; ends if nobody is asked any more.
    fn go_on(&mut self, out: &mut Vec<Output>) {
        let first_round = self.asked.values().any(|name| !self.last.contains_key(name));
        if !first_round {
            let mut entries = std::mem::take(&mut self.entries);
            entries.sort_by_key(|(_, entry)| entry.time);
            for (component, entry) in entries {
                let line = self.line(&component, &entry);
                out.push(Output::World(Action::Print { line }));
            }
        }
        if self.asked.is_empty() || self.failed {
            out.push(Output::World(Action::Exit { status: u8::from(self.failed) }));
        }
    }

    fn line(&self, component: &str, entry: &monitor::Entry) -> String {
        let time = WallTime::from_unix_nanos(self.epoch.saturating_add(entry.time)).to_string();
        match self.json {
            true => json!({
                "time": time, "component": component, "level": entry.level,
                "number": entry.number, "text": entry.text,
            })
            .to_string(),
            false => format!("{time}  {:<7}  {component}: {}", entry.level, entry.text),
        }
    }
}

/// Whether somebody is not there, or does not know the question.
fn is_gone(error: &XrlError) -> bool {
    matches!(
        error.code,
        ErrorCode::ResolveFailed
            | ErrorCode::NoSuchMethod
            | ErrorCode::SendFailed
            | ErrorCode::SendFailedTransient
            | ErrorCode::NoFinder
    )
}

impl Component for Reader {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::World(Event::Start) => return self.start(out),
            Input::Replied { token: TARGETS, result } => self.targets(result, out),
            Input::Replied { token, result } => {
                if let Some(component) = self.asked.remove(&token) {
                    self.replied(component, result, out);
                }
            }
            Input::Born { instance, .. } => return self.born(instance, out),
            Input::NotRegistered(why) => self.fail(why, out),
            Input::World(Event::Stop) => self.asked.clear(),
            _ => return,
        }
        self.go_on(out);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
