//! The node's configuration: what runs, what operators edit, and how a commit reaches the components.
//!
//! [`weft_commit::Configuration`] decides; here stands what it needs of the world: components are asked
//! and told by XRL, started when their statement comes and ended when it goes, and the disk is asked.
//! When the node starts, the file that it was started with is committed like any change.

use std::collections::{BTreeMap, VecDeque};

use weft_base::{Instant, Token, WallTime};
use weft_commit::{
    Action, BlockChange, Configuration, Done, Event, HistorySettings, Parts, Reason, Refusal, Want,
    Who,
};
use weft_config::{Errors, LoadMode, Schema, Tree};
use weft_launcher::protocol::{Command, SIGKILL};
use weft_runtime::{Component, Level};
use weft_xrl::{Call, Called, Output, XrlError, configurable, finder};

use crate::instances::{Asked, Run};
use crate::log::{LOG, LogLevels};
use crate::operators::{self, OPERATORS};
use crate::programs::{CONFIG, PROGRAM, Program};
use crate::refusals::{SOURCE, kept, log_of, operators_of, programs_of};
use crate::schemas::Schemas;
use crate::{Class, Manager, Settings, lacks, report};

/// How many revisions are kept.
const KEEP: usize = 50;
/// How long a component has to end when its statement is gone, in milliseconds.
const GRACE: u32 = 2_000;
/// The token of requests of the manager itself.
const OWN: Token = Token(0);

pub(crate) struct Commits {
    machine: Configuration,
    /// What may be configured.
    pub(crate) schemas: Schemas,
    /// What the node was started with.
    boot: Tree,
    state: State,
    /// The time of day at some time of the monotonic clock.
    epoch: (Instant, WallTime),
    /// Operators who wait for an answer.
    waiting: BTreeMap<Token, Called>,
    last_token: u32,
    /// The statement of each class that has one, as its component has it or is given it.
    parts: BTreeMap<String, Tree>,
    /// Programs of others that run.
    programs: Vec<Class>,
    /// Who may call besides root.
    operators: finder::SetOperators,
    /// How much processes write.
    log: LogLevels,
    /// Components that are making a change.
    changing: BTreeMap<String, Changing>,
    /// The session that edited when the manager before this one ended, until it is known whether it
    /// still is there.
    absent: Option<u64>,
}

/// How far the start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Neither the history nor what runs is known, or only one of them.
    Waiting {
        history: bool,
        processes: Option<Found>,
    },
    /// The file that the node was started with is being committed.
    Booting,
    Running,
}

/// What the launcher had when the manager began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: the node starts.
    Nothing,
    /// Processes of a manager before this one.
    Processes,
}

/// A change that a component is making.
struct Changing {
    step: u64,
    old: Option<Tree>,
}

impl Commits {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Errors> {
        let schema = Schema::parse("schema", &settings.schema)?;
        let boot = Tree::parse(&settings.source, &settings.text)?;
        schema.check(&boot, None)?;
        let boot = kept(&schema, &boot);
        programs_of(&boot, &settings.classes)?;
        operators_of(&boot)?;
        log_of(&boot)?;
        let parts = parts_of(&settings.classes);
        let history = HistorySettings { directory: settings.history.clone(), keep: KEEP };
        Ok(Self {
            machine: Configuration::new(schema.clone(), parts.clone(), history),
            schemas: Schemas::new(schema, parts),
            boot,
            state: State::Waiting { history: false, processes: None },
            epoch: (Instant::ZERO, settings.wall),
            waiting: BTreeMap::new(),
            last_token: OWN.0,
            parts: BTreeMap::new(),
            programs: Vec::new(),
            operators: operators::nobody(),
            log: LogLevels::default(),
            changing: BTreeMap::new(),
            absent: None,
        })
    }

    pub(crate) fn machine(&self) -> &Configuration {
        &self.machine
    }

    /// The number of the revision that runs.
    fn revision(&self) -> Option<u64> {
        self.machine.transaction().revision().map(|revision| revision.number)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    /// The session of which it is not known whether it still is there; asked once.
    pub(crate) fn take_absent(&mut self) -> Option<u64> {
        self.absent.take()
    }

    /// Whether it is known what runs.
    pub(crate) fn runs(&self) -> bool {
        self.state == State::Running
    }

    /// The statement of a class.
    pub(crate) fn part(&self, class: &str) -> Option<&Tree> {
        self.parts.get(class)
    }

    /// Programs of others that run.
    pub(crate) fn programs(&self) -> &[Class] {
        &self.programs
    }

    /// Who may call besides root and the user that runs the node.
    pub(crate) fn log(&self) -> &LogLevels {
        &self.log
    }

    pub(crate) fn operators(&self) -> &finder::SetOperators {
        &self.operators
    }

    fn wall(&self, now: Instant) -> WallTime {
        let (then, wall) = self.epoch;
        let passed = u64::try_from(now.since(then).as_nanos()).unwrap_or(u64::MAX);
        WallTime::from_unix_nanos(wall.as_unix_nanos().saturating_add(passed))
    }
}

impl Manager {
    /// Begins to read the history.
    pub(crate) fn start_configuration(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.commits.epoch.0 = now;
        let wall = self.commits.wall(now);
        self.tell_configuration(now, Event::Start { wall }, out);
    }

    /// The launcher has told what runs.
    pub(crate) fn processes_known(&mut self, now: Instant, found: Found, out: &mut Vec<Output>) {
        if let State::Waiting { processes, .. } = &mut self.commits.state {
            *processes = Some(found);
        }
        self.boot(now, out);
    }

    /// When both history and processes are known: goes on with what runs, or commits the file.
    fn boot(&mut self, now: Instant, out: &mut Vec<Output>) {
        let State::Waiting { history: true, processes: Some(found) } = self.commits.state else {
            return;
        };
        if found == Found::Processes {
            self.commits.state = State::Running;
            self.take_parts();
            self.begin(now, out);
            return;
        }
        self.commits.state = State::Booting;
        if let Some(lock) = self.commits.machine.transaction().lock().cloned() {
            // Who edited when the node ran before does not any more.
            self.request(now, OWN, lock.who, Action::Unlock, out);
        }
        let file = self.commits.boot.clone();
        let comment = format!("started from {}", self.settings.source);
        for action in [
            Action::Lock,
            Action::Load(file, LoadMode::Override),
            Action::Commit { comment, confirm_within: None },
        ] {
            self.request(now, OWN, own(), action, out);
        }
    }

    fn booted(&mut self, now: Instant, result: Result<Done, Refusal>, out: &mut Vec<Output>) {
        match result {
            Ok(Done::Committed(_)) | Err(Refusal::NothingToCommit) => {
                self.commits.state = State::Running;
                if result.is_err() {
                    // Of a new revision it is said where that comes into effect.
                    self.say_what_lacks(out);
                }
                self.take_parts();
                self.request(now, OWN, own(), Action::Unlock, out);
                self.begin(now, out);
            }
            Ok(_) => {}
            Err(refusal) => {
                report(out, Level::Error, format!("the node cannot start: {refusal}"));
                out.push(Output::World(weft_runtime::Action::Exit { status: 1 }));
            }
        }
    }

    /// Cuts what runs into the statements of the classes.
    fn take_parts(&mut self) {
        // What still is as in the file is best shown there.
        let running = self.commits.machine.transaction().running();
        let running = if *running == self.commits.boot { &self.commits.boot } else { running };
        for class in &self.settings.classes {
            let Some(statement) = class.statement else { continue };
            let part = self.commits.schemas.parts.of(running, statement);
            match part.is_empty() {
                true => self.commits.parts.remove(&*class.name),
                false => self.commits.parts.insert(class.name.to_string(), part),
            };
        }
        // It was checked when it was committed.
        let programs = programs_of(running, &self.settings.classes).unwrap_or_default();
        for Program { class } in programs {
            let config = config_of(running, &class.name);
            self.commits.parts.extend(config.map(|part| (class.name.to_string(), part)));
            self.commits.programs.push(class);
        }
        self.commits.operators = operators_of(running).unwrap_or_else(|_| operators::nobody());
        self.commits.log = log_of(running).unwrap_or_default();
    }

    /// An operator's request.
    pub(crate) fn operator_asks(
        &mut self,
        now: Instant,
        called: Called,
        action: Action,
        out: &mut Vec<Output>,
    ) {
        self.commits.last_token = (self.commits.last_token + 1).max(1);
        let token = Token(self.commits.last_token);
        let who = who(&called);
        self.commits.waiting.insert(token, called);
        self.request(now, token, who, action, out);
    }

    /// A caller has gone: nobody else shall wait for its edits.
    pub(crate) fn operator_left(&mut self, now: Instant, session: u64, out: &mut Vec<Output>) {
        let lock = self.commits.machine.transaction().lock();
        if let Some(lock) = lock.filter(|lock| lock.who.session == session) {
            let who = lock.who.clone();
            self.request(now, OWN, who, Action::Unlock, out);
        }
    }

    fn request(
        &mut self,
        now: Instant,
        token: Token,
        who: Who,
        action: Action,
        out: &mut Vec<Output>,
    ) {
        let wall = self.commits.wall(now);
        self.tell_configuration(now, Event::Request { token, who, wall, action }, out);
    }

    /// Gives the machine an event, and does what it wants until it wants nothing more.
    pub(crate) fn tell_configuration(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        let mut events = VecDeque::from([event]);
        let mut wants = Vec::new();
        let revision = self.commits.revision();
        while let Some(event) = events.pop_front() {
            self.commits.machine.handle(now, event, &mut wants);
            for want in wants.drain(..) {
                events.extend(self.want(now, want, out));
            }
        }
        if self.commits.revision() != revision {
            self.try_schemas_again(now, out);
            // At the start the last revision of before is not what will run.
            if self.commits.state == State::Running {
                self.say_what_lacks(out);
            }
        }
    }

    /// Writes to the log which statements of what runs have no effect.
    fn say_what_lacks(&self, out: &mut Vec<Output>) {
        let running = self.commits.machine.transaction().running();
        for sentence in lacks(running, &self.settings.classes) {
            report(out, Level::Warning, sentence);
        }
    }

    /// Does what the machine wants; returns the answer if there is one already.
    fn want(&mut self, now: Instant, want: Want, out: &mut Vec<Output>) -> Option<Event> {
        match want {
            Want::Ready => {
                if let State::Waiting { history, .. } = &mut self.commits.state {
                    *history = true;
                }
                let lock = self.commits.machine.transaction().lock();
                self.commits.absent = lock.map(|lock| lock.who.session);
                self.boot(now, out);
                None
            }
            Want::Check { step, change } => self.check(step, &change, out),
            Want::Apply { step, change } => self.apply(now, step, &change, out),
            Want::Renew { name, running } => {
                self.renew(&name, running, out);
                None
            }
            Want::Disk { token, request } => {
                out.push(Output::World(weft_runtime::Action::Disk { token, request }));
                None
            }
            Want::Reply { token: OWN, result } => {
                if self.commits.state == State::Booting {
                    self.booted(now, result, out);
                }
                None
            }
            Want::Reply { token, result } => {
                if let Some(called) = self.commits.waiting.remove(&token) {
                    out.push(self.answer_operator(&called, result));
                }
                None
            }
            Want::Notice(sentence) => {
                report(out, Level::Info, sentence);
                None
            }
            Want::Failed(sentence) => {
                report(out, Level::Error, format!("the configuration's history: {sentence}"));
                None
            }
        }
    }

    /// Asks a component whether it would take a change.
    fn check(&mut self, step: u64, change: &BlockChange, out: &mut Vec<Output>) -> Option<Event> {
        if let Err(reason) = self.check_own(change) {
            return Some(Event::Answer { step, result: Err(reason) });
        }
        let class = self.class_of(&change.name);
        let registered = |name: &String| self.instances.get(name).is_some_and(|one| one.registered);
        let (Some(name), false) = (class.filter(registered), change.new.is_empty()) else {
            // What does not run, or is to go, has nothing against it.
            return Some(Event::Answer { step, result: Ok(()) });
        };
        out.push(self.calls.check(step, name, change.new.clone()).into());
        None
    }

    /// What the manager itself has against a change.
    fn check_own(&self, change: &BlockChange) -> Result<(), Reason> {
        match change.name.as_str() {
            "node" if self.commits.state == State::Running => {
                return Err("the node's name cannot change while it runs".into());
            }
            PROGRAM => drop(programs_of(&change.new, &self.settings.classes)?),
            OPERATORS => drop(operators_of(&change.new)?),
            LOG => drop(log_of(&change.new)?),
            _ => {}
        }
        Ok(())
    }

    /// Lets a component make a change.
    fn apply(
        &mut self,
        now: Instant,
        step: u64,
        change: &BlockChange,
        out: &mut Vec<Output>,
    ) -> Option<Event> {
        let done = Some(Event::Answer { step, result: Ok(()) });
        if change.name == PROGRAM && self.commits.state == State::Running {
            self.apply_programs(now, &change.new, out);
            return done;
        }
        if change.name == OPERATORS && self.commits.state == State::Running {
            // They were checked before.
            self.commits.operators =
                operators_of(&change.new).unwrap_or_else(|_| operators::nobody());
            self.say_who_may_call(out);
            return done;
        }
        if change.name == LOG && self.commits.state == State::Running {
            self.commits.log = log_of(&change.new).unwrap_or_default();
            self.say_log_levels(out);
            return done;
        }
        let Some(name) = self.class_of(&change.name) else { return done };
        if self.commits.state != State::Running {
            return done;
        }
        let empty = change.new.is_empty();
        let old = match empty {
            true => self.commits.parts.remove(&name),
            false => self.commits.parts.insert(name.clone(), change.new.clone()),
        };
        if empty && !self.always_runs(&name) {
            self.end(&name, out);
            return done;
        }
        match self.instances.get(&name).map(|one| one.registered) {
            Some(true) => {
                self.commits.changing.insert(name.clone(), Changing { step, old });
                self.configure(&name, out);
                None
            }
            // It is given the new configuration when it is back.
            Some(false) => done,
            None => {
                self.commits.changing.insert(name.clone(), Changing { step, old });
                let secret = self.secrets.secret();
                self.instances.add(&name, &name, secret, Run::Due(now));
                self.say_who_there_is(out);
                self.start_due(now, out);
                None
            }
        }
    }

    /// A component has taken its configuration, or not, or has died meanwhile.
    pub(crate) fn changed(
        &mut self,
        now: Instant,
        name: &str,
        result: Result<(), Reason>,
        out: &mut Vec<Output>,
    ) {
        let Some(Changing { step, old }) = self.commits.changing.remove(name) else { return };
        if result.is_err() {
            match old {
                Some(old) => drop(self.commits.parts.insert(name.to_owned(), old)),
                None => {
                    self.commits.parts.remove(name);
                    if !self.always_runs(name) {
                        self.end(name, out);
                    }
                }
            }
        }
        self.tell_configuration(now, Event::Answer { step, result }, out);
    }

    /// Starts a component again whose state is not known, with what runs.
    fn renew(&mut self, word: &str, running: Tree, out: &mut Vec<Output>) {
        let Some(name) = self.class_of(word) else { return };
        // What it may still answer is about something else.
        self.commits.changing.remove(&name);
        self.calls.expect_nothing(&name);
        if running.is_empty() {
            self.commits.parts.remove(&name);
            if !self.always_runs(&name) {
                return self.end(&name, out);
            }
        } else {
            self.commits.parts.insert(name.clone(), running);
        }
        // One that has ended is started again anyway.
        let runs = self.instances.get(&name).is_some_and(|one| matches!(one.run, Run::Up { .. }));
        if let (true, Ok(instance)) = (runs, name.parse()) {
            report(
                out,
                Level::Warning,
                format!("{name} is started again: it may not have what runs"),
            );
            self.ask(Command::Signal { instance, number: SIGKILL }, out);
        }
    }

    /// Ends a component that is not wanted any more.
    pub(crate) fn end(&mut self, name: &str, out: &mut Vec<Output>) {
        if !self.instances.end(name) {
            return;
        }
        // First, so that whoever hears that it is gone hears that it will not come back.
        self.say_who_there_is(out);
        if let Ok(instance) = name.parse() {
            let id = self.ask(Command::Stop { instance, grace_ms: GRACE }, out);
            self.instances.asked(id, Asked::Stop, name);
        }
    }

    /// Whether a component runs without a statement of its own.
    fn always_runs(&self, name: &str) -> bool {
        self.settings.classes.iter().any(|class| class.always && class.name == name)
    }

    /// The class whose statement begins with a word.
    fn class_of(&self, statement: &str) -> Option<String> {
        let mut classes = self.settings.classes.iter();
        classes.find(|class| class.statement == Some(statement)).map(|class| class.name.to_string())
    }

    /// Starts, ends and configures programs of others. Nobody waits for them: one that refuses its
    /// configuration is shown as such, and does not keep the node from what was committed.
    fn apply_programs(&mut self, now: Instant, new: &Tree, out: &mut Vec<Output>) {
        // It was checked before.
        let tree = new;
        let new = programs_of(tree, &self.settings.classes).unwrap_or_default();
        let classes = new.iter().map(|program| program.class.clone()).collect();
        let old = std::mem::replace(&mut self.commits.programs, classes);
        for class in old {
            if new.iter().all(|program| !program.class.runs_as(&class)) {
                self.commits.parts.remove(&*class.name);
                self.forget_schema(now, &class.name, out);
                self.end(&class.name, out);
            }
        }
        for Program { class } in new {
            let name = class.name;
            let before = match config_of(tree, &name) {
                Some(part) => self.commits.parts.insert(name.to_string(), part),
                None => self.commits.parts.remove(&*name),
            };
            if !self.instances.contains(&name) {
                let secret = self.secrets.secret();
                self.instances.add(&name, &name, secret, Run::Due(now));
            } else if before.as_ref() != self.commits.part(&name)
                && self.instances.get(&name).is_some_and(|one| one.registered)
            {
                self.configure(&name, out);
            }
        }
        self.say_who_there_is(out);
        self.start_due(now, out);
    }

    /// The call that gives a component its statement.
    pub(crate) fn configure_call(&self, token: u64, name: &str) -> Option<Call> {
        let nothing = || self.always_runs(name).then(String::new);
        let text = self.commits.part(name).map(Tree::body).or_else(nothing)?;
        let request = configurable::Configure { source: SOURCE.to_owned(), line: 1, text };
        Some(Call::new(token, name.to_owned(), request))
    }
}

/// Which statements there are, and what components are given of them.
fn parts_of(classes: &[Class]) -> Parts {
    let order = classes.iter().filter_map(|class| class.statement);
    let order: Vec<_> = order.chain([PROGRAM, OPERATORS, LOG]).map(str::to_owned).collect();
    let reads = classes.iter().filter_map(|class| Some((class.statement?, class.reads)));
    reads.fold(Parts::from(order), |parts, (statement, reads)| parts.with(statement, reads))
}

/// The manager as one who edits.
fn own() -> Who {
    Who { session: 0, user: "weft".to_owned(), uid: 0 }
}

fn who(called: &Called) -> Who {
    let user = match called.uid {
        Some(0) => "root".to_owned(),
        Some(uid) => format!("uid {uid}"),
        // On another machine.
        None => called.caller.to_string(),
    };
    let uid = called.uid.unwrap_or(u32::MAX);
    Who { session: called.session, user, uid }
}

/// What a program of others is given, if there is anything.
fn config_of(tree: &Tree, program: &str) -> Option<Tree> {
    let config = tree.inside(&[PROGRAM, program]).part(CONFIG);
    (!config.is_empty()).then_some(config)
}

/// Why a request failed, for the caller.
pub(crate) fn refused(refusal: &Refusal) -> XrlError {
    match refusal {
        Refusal::Mistakes(_) => XrlError::bad_args(refusal.to_string()),
        _ => XrlError::failed(refusal.to_string()),
    }
}
