//! The manager: it decides which processes a node has, has them started by the launcher, and gives them
//! their configuration.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §3 and §4: the router
//! manager holds the configuration and starts, configures and stops all other processes.
//!
//! * `commit`: the node's configuration: what runs, and how a change reaches the components;
//! * `edit`: what operators ask of it;
//! * `programs`: programs of others that the configuration names;
//! * `schemas`: what may be configured, as these programs say it;
//! * `operators`: who may call besides root, as the configuration says;
//! * `refusals`: what components have against their configuration, at the places of the operator;
//! * `log`: how much processes write, as the configuration says;
//! * `instances`: the processes, what each of them is doing, and when it is started again;
//! * `processes`: what is told of them;
//! * `status`: how the node is, for whoever supervises it;
//! * `launcher`: what is said to the launcher, and what it says;
//! * `calls`: what the manager asks of components and they of it.
//!
//! The life of a process: the launcher starts it → it registers with the Finder → the manager hears of
//! its birth and gives it its configuration → it runs. When it dies the launcher tells, and it is
//! started again, at once the first time and later each time. When the manager dies everything goes
//! on; the next one asks the launcher what runs and adopts it.

mod calls;
mod class;
mod commit;
mod edit;
mod instances;
mod launcher;
mod log;
mod operators;
mod processes;
mod programs;
mod refusals;
mod schemas;
mod status;

use std::collections::BTreeMap;
use std::path::PathBuf;

use weft_base::{ChannelId, CounterGroup, Instant, WallTime};
use weft_commit::Event as Change;
use weft_config::Errors;
use weft_runtime::{Action, Component, Event, Level};
use weft_xrl::{Input, Interface, Output, Secrets};

pub use class::{Class, ProgramKind, Socket, lacks};
use commit::Commits;
use instances::Instances;
pub use launcher::CALLS;
pub use log::{LogLevels, read_log};
pub use operators::read_operators;
pub use programs::{Program, read_programs};
pub use refusals::check_statements;

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod interface {
    //! The manager's interface.
    include!(concat!(env!("OUT_DIR"), "/manager.rs"));
}

/// The name of the manager itself.
const MANAGER: &str = "manager";
/// The name of the channel to the launcher.
const LAUNCHER: &str = "launcher";

/// What the manager is started with.
#[derive(Debug)]
pub struct Settings {
    /// The node's name.
    pub node: String,
    /// The node's run directory, where the processes' sockets are.
    pub run_directory: PathBuf,
    /// The classes of components, in the order in which they are started.
    pub classes: Vec<Class>,
    /// Random bytes from the kernel, from which the processes' secrets are made.
    pub seed: [u8; 32],
    /// What may be configured.
    pub schema: String,
    /// The directory of the revisions of the configuration.
    pub history: PathBuf,
    /// The name of the file that the node was started with.
    pub source: String,
    /// Its text.
    pub text: String,
    /// The time of day.
    pub wall: WallTime,
    /// How much processes write to their logs when they are started.
    pub level: Level,
}

/// The manager; see the crate's text.
pub struct Manager {
    settings: Settings,
    commits: Commits,
    instances: Instances,
    secrets: Secrets,
    launcher: Option<ChannelId>,
    last_request: u64,
    /// What isolation is missing here, as the launcher says.
    missing: Vec<String>,
    /// Whether the Finder knows us.
    registered: bool,
    calls: calls::Calls,
    /// How much components were told to write, if it is not what they were started with.
    log_levels: BTreeMap<String, Level>,
    status: status::Status,
    /// Whether every process of the start served once.
    was_ready: bool,
}

/// The manager's interfaces.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&interface::INTERFACE]
}

impl Manager {
    /// A manager for a node.
    ///
    /// # Errors
    /// Mistakes in the configuration, each with its place; those inside a component's statement are
    /// found later, by the component.
    pub fn new(settings: Settings) -> Result<Self, Errors> {
        Ok(Self {
            commits: Commits::new(&settings)?,
            secrets: Secrets::new(settings.seed),
            instances: Instances::default(),
            launcher: None,
            last_request: 0,
            missing: Vec::new(),
            registered: false,
            calls: calls::Calls::default(),
            log_levels: BTreeMap::new(),
            status: status::Status::default(),
            was_ready: false,
            settings,
        })
    }

    fn world(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        match event {
            Event::Inherited { name, channel } if name == LAUNCHER => {
                self.launcher = Some(channel);
                self.ask_what_runs(None, out);
            }
            Event::Messages { channel, messages } if Some(channel) == self.launcher => {
                for message in messages {
                    self.launcher_says(now, message.bytes(), out);
                }
            }
            Event::Closed { channel } if Some(channel) == self.launcher => {
                report(out, Level::Error, "the launcher is gone".to_owned());
                out.push(Output::World(Action::Exit { status: 1 }));
            }
            Event::Start => self.start_configuration(now, out),
            Event::Disk { token, result } => {
                self.tell_configuration(now, Change::Disk { token, result }, out);
            }
            Event::Tick => {
                self.start_due(now, out);
                self.tell_configuration(now, Change::Tick, out);
            }
            Event::Stop => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
    }
}

impl Component for Manager {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::World(event) => self.world(now, event, out),
            Input::Registered => {
                self.registered = true;
                self.say_who_there_is(out);
                self.say_who_may_call(out);
                self.find_operator(out);
                out.push(Output::Watch { class: None });
                // It may be another Finder.
                self.forget_log_level(weft_xrl::FINDER);
                self.say_log_levels(out);
            }
            Input::NotRegistered(_) => {}
            Input::Born { instance, .. } => self.born(&instance, out),
            Input::Died { instance, .. } => self.instances.unregistered(&instance),
            Input::Called(called) => self.called(now, called, out),
            Input::Left { session, .. } => self.operator_left(now, session, out),
            Input::Replied { token, result } => self.replied(now, token, result, out),
        }
        self.say_status(out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.instances.deadline().into_iter().chain(self.commits.deadline()).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        vec![self.restarts()]
    }
}

fn report(out: &mut Vec<Output>, level: Level, line: String) {
    out.push(Output::World(Action::Report { level, line }));
}
