//! A configuration with components that hold what they were told, on a disk that may lose power.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weft_base::{Instant, Token, WallTime};
use weft_commit::{Action, Configuration, Done, Event, HistorySettings, Refusal, Want, Who};
use weft_config::{Schema, Tree};
use weft_runtime::Component;

use crate::disk::Disk;

const SCHEMA: &str = "version 1; \
    container fea { leaf mtu number { range 1 9000; } list interface { key name name; flag up; } } \
    container rib { leaf limit number; leaf key text { secret; } } \
    container bgp { leaf as number { mandatory; } words peer; }";

/// Who edits unless a test says otherwise.
pub(crate) const ALICE: u64 = 1;
pub(crate) const ROOT: u64 = 2;

/// Where the history is.
pub(crate) const DIRECTORY: &str = "/state/history";
/// How many revisions are kept.
pub(crate) const KEEP: usize = 4;

/// The configuration and its world.
pub(crate) struct Node {
    pub(crate) configuration: Configuration,
    pub(crate) disk: Disk,
    pub(crate) now: Instant,
    /// What the time of day is ahead of the other clock, in nanoseconds.
    pub(crate) day: u64,
    /// What each component has been told.
    pub(crate) components: BTreeMap<String, Tree>,
    /// Components that refuse to check.
    pub(crate) objecting: Vec<String>,
    /// Components that refuse the next change.
    pub(crate) refusing: Vec<String>,
    /// Components that never answer.
    pub(crate) silent: Vec<String>,
    /// Components that had to be started again.
    pub(crate) renewed: Vec<String>,
    /// The power goes off before this request to the disk, by number.
    pub(crate) power_off_at: Option<usize>,
    pub(crate) is_off: bool,
    pub(crate) notices: Vec<String>,
    pub(crate) failed: Option<String>,
    pub(crate) is_ready: bool,
    /// What is asked for as soon as the configuration is ready, as a manager does that starts a node.
    pub(crate) asked_first: Vec<Action>,
    /// Replies that nobody has looked at yet.
    pub(crate) replies: VecDeque<Result<Done, Refusal>>,
}

/// What is to be configured.
pub(crate) fn schema() -> Schema {
    Schema::parse("schema", SCHEMA).unwrap()
}

fn order() -> Vec<String> {
    ["fea", "rib", "bgp"].map(str::to_owned).into()
}

pub(crate) fn who(session: u64) -> Who {
    match session {
        ROOT => Who { session, user: "root".to_owned(), uid: 0 },
        _ => Who { session, user: "alice".to_owned(), uid: 1000 },
    }
}

pub(crate) fn edit(command: &str) -> Action {
    Action::Edit(command.to_owned())
}

pub(crate) fn commit() -> Action {
    Action::Commit { comment: "why".to_owned(), confirm_within: None }
}

pub(crate) fn commit_confirmed(seconds: u64) -> Action {
    let confirm_within = Some(Duration::from_secs(seconds));
    Action::Commit { comment: String::new(), confirm_within }
}

impl Node {
    /// A node that starts with what is on a disk; its components hold what runs.
    pub(crate) fn start(disk: Disk, now: Instant, day: u64) -> Self {
        let mut node = Self::off(disk, now, day, None);
        node.boot();
        node
    }

    /// A node that is not yet started.
    pub(crate) fn off(disk: Disk, now: Instant, day: u64, power_off_at: Option<usize>) -> Self {
        let settings = HistorySettings { directory: DIRECTORY.into(), keep: KEEP };
        Self {
            configuration: Configuration::new(schema(), order().into(), settings),
            disk,
            now,
            day,
            components: BTreeMap::new(),
            objecting: Vec::new(),
            refusing: Vec::new(),
            silent: Vec::new(),
            renewed: Vec::new(),
            power_off_at,
            is_off: false,
            notices: Vec::new(),
            failed: None,
            is_ready: false,
            asked_first: Vec::new(),
            replies: VecDeque::new(),
        }
    }

    pub(crate) fn boot(&mut self) {
        let wall = self.wall();
        self.tell(Event::Start { wall });
    }

    pub(crate) fn wall(&self) -> WallTime {
        WallTime::from_unix_nanos(self.day + self.now.as_nanos())
    }

    /// Lets an event happen, and all that follows from it.
    pub(crate) fn tell(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        let mut out = Vec::new();
        while let Some(event) = events.pop_front() {
            self.configuration.handle(self.now, event, &mut out);
            for want in out.drain(..) {
                if self.is_off {
                    return;
                }
                if matches!(want, Want::Ready) {
                    events.extend(self.first_requests());
                }
                events.extend(self.carry_out(want));
            }
        }
    }

    fn first_requests(&mut self) -> Vec<Event> {
        let wall = self.wall();
        let who = || Who { session: 0, user: "weft".to_owned(), uid: 0 };
        let request = |action| Event::Request { token: Token(0), who: who(), wall, action };
        self.asked_first.drain(..).map(request).collect()
    }

    fn carry_out(&mut self, want: Want) -> Option<Event> {
        match want {
            Want::Ready => {
                self.is_ready = true;
                let running = self.configuration.transaction().running();
                let blocks =
                    running.names().into_iter().map(|name| (name.to_owned(), running.part(name)));
                self.components = blocks.collect();
            }
            Want::Check { step, change } => {
                let result = self.opinion(&self.objecting, &change.name)?.map_err(Into::into);
                return Some(Event::Answer { step, result });
            }
            Want::Apply { step, change } => {
                let result = self.opinion(&self.refusing, &change.name)?;
                if result.is_ok() {
                    let held = self.components.remove(&change.name).unwrap_or_default();
                    assert_eq!(held, change.old, "the component is told what it holds");
                    if !change.new.is_empty() {
                        self.components.insert(change.name, change.new);
                    }
                }
                return Some(Event::Answer { step, result: result.map_err(Into::into) });
            }
            Want::Renew { name, running } => {
                assert_eq!(running, self.configuration.transaction().running().part(&name));
                self.renewed.push(name.clone());
                self.components.remove(&name);
                if !running.is_empty() {
                    self.components.insert(name, running);
                }
            }
            Want::Disk { token, request } => {
                if self.power_off_at == Some(self.disk.requests) {
                    self.is_off = true;
                    return None;
                }
                let result = self.disk.carry_out(request);
                return Some(Event::Disk { token, result });
            }
            Want::Reply { result, .. } => self.replies.push_back(result),
            Want::Notice(text) => self.notices.push(text),
            Want::Failed(text) => self.failed = Some(text),
        }
        None
    }

    fn opinion(&self, against: &[String], name: &str) -> Option<Result<(), String>> {
        if self.silent.iter().any(|silent| silent == name) {
            return None;
        }
        let objects = against.iter().any(|other| other == name);
        Some(if objects { Err("I will not".to_owned()) } else { Ok(()) })
    }

    /// Lets somebody ask for something; the answer, if it has come.
    pub(crate) fn ask_as(&mut self, session: u64, action: Action) -> Option<Result<Done, Refusal>> {
        let wall = self.wall();
        self.tell(Event::Request { token: Token(7), who: who(session), wall, action });
        self.replies.pop_front()
    }

    pub(crate) fn ask(&mut self, action: Action) -> Result<Done, Refusal> {
        self.ask_as(ALICE, action).expect("it is answered")
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.configuration.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.tell(Event::Tick);
        }
        self.now = end;
    }

    /// Lets the time pass that silent components are given while everything falls back.
    pub(crate) fn fall_back(&mut self) {
        for _ in 0..10 {
            let until = self.configuration.transaction().unconfirmed_until();
            if until.is_none_or(|until| self.wall() < until) {
                return;
            }
            self.wait(Duration::from_secs(31));
        }
    }

    pub(crate) fn running(&self) -> String {
        self.configuration.transaction().running().to_string()
    }

    pub(crate) fn candidate(&self) -> String {
        self.configuration.transaction().candidate().to_string()
    }

    /// Whether every component holds what runs.
    pub(crate) fn assert_components_hold_what_runs(&self) {
        let running = self.configuration.transaction().running();
        let names: Vec<_> = self.components.keys().map(String::as_str).collect();
        let mut expected = running.names();
        expected.sort_unstable();
        assert_eq!(names, expected);
        for (name, held) in &self.components {
            assert_eq!(*held, running.part(name));
        }
    }
}
