//! What the launcher decides, without system calls: a [`Component`] that two drivers carry out, the real
//! launcher with processes of the kernel, and the lab with simulated ones.
//!
//! Nothing here decides what runs: that is the manager's. The supervisor decides what may run, keeps the
//! manager alive, and ends everything when the node ends.

mod instances;
mod manager;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::{Component, Level};

use crate::config::{Config, LauncherError};
use crate::name::Name;
use crate::protocol::{Exit, Message, SIGKILL, Spec};
use instances::Instances;
use manager::Manager;
pub(crate) use manager::name as manager_name;
use store::Store;

/// The number of the signal that asks a process to end; signal(7).
pub(crate) const SIGTERM: i32 = 15;

/// What a supervisor is told at its start. Everything in it is trusted.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's run directory, in which sockets may be.
    pub run_directory: PathBuf,
    /// The groups that sockets may be given to.
    pub groups: BTreeSet<String>,
    /// How long processes have to end when the node ends.
    pub grace: Duration,
    /// So many times in a row the manager may die before it lived ten seconds.
    pub manager_failures: u32,
    /// What isolation is missing, a sentence each.
    pub missing: Vec<String>,
}

impl Settings {
    /// The settings of a launcher with this configuration.
    pub(crate) fn of(config: &Config, missing: Vec<String>) -> Self {
        Self {
            run_directory: config.run_directory.clone(),
            groups: config.groups.keys().cloned().collect(),
            grace: config.grace,
            manager_failures: config.manager_failures,
            missing,
        }
    }
}

/// What happens to a supervisor; `D` is a descriptor, or what stands for one.
#[derive(Debug)]
pub enum Input<D> {
    /// The manager asks for something.
    Request {
        /// A [`Request`](crate::protocol::Request), if the manager is honest.
        bytes: Vec<u8>,
        /// What came with it.
        descriptors: Vec<D>,
        /// Whether there was more than could be received.
        truncated: bool,
    },
    /// The channel to the manager is gone.
    Lost,
    /// What became of [`Output::Start`] and [`Output::StartManager`].
    Started {
        /// Which process.
        instance: Name,
        /// Its user, if that is not the launcher's own.
        uid: Option<u32>,
        /// Its process id, or why there is none, in one sentence.
        result: Result<i32, String>,
    },
    /// A process has ended.
    Ended {
        /// Its process id.
        pid: i32,
        /// How.
        exit: Exit,
    },
    /// The node is to end; if it is ending already, at once.
    End,
    /// Time has passed.
    Tick,
}

/// What a supervisor wants.
#[derive(Debug)]
pub enum Output {
    /// Start the manager, with a channel.
    StartManager,
    /// Start an instance, with what is [kept for it](Supervisor::kept_for).
    Start(Spec),
    /// Send a signal to a process that runs.
    Signal {
        /// Its process id.
        pid: i32,
        /// Which signal.
        number: i32,
    },
    /// Tell the manager, if it is there.
    Tell(Message),
    /// Give up what an instance had: its sockets, its folder, its user.
    Forget(Name),
    /// Tell whoever supervises the node, such as systemd.
    Notify(Notice),
    /// Write a line to the log.
    Report(Level, String),
    /// Nothing runs any more, and nothing will; the last output.
    Over(Result<(), LauncherError>),
}

/// How the node is, for whoever supervises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Every process of the start serves; said once.
    Ready,
    /// What the node is doing, in a line.
    Status(String),
    /// It ends.
    Stopping,
}

/// The processes of a node; see the module's text.
pub struct Supervisor<D> {
    settings: Settings,
    instances: Instances,
    manager: Manager,
    store: Store<D>,
    ending: Option<Ending>,
    /// Whether the manager has said that every process of the start serves.
    ready: bool,
}

/// The node is ending.
struct Ending {
    /// When what still runs is killed.
    deadline: Instant,
    /// Whether it is the manager's turn.
    only_manager: bool,
    /// Why, until it is over.
    why: Option<Result<(), LauncherError>>,
}

impl<D> Supervisor<D> {
    /// A supervisor of no processes yet; its first input, whichever, makes it start the manager.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let (instances, manager) = (Instances::default(), Manager::default());
        let store = Store::default();
        Self { settings, instances, manager, store, ending: None, ready: false }
    }

    /// The descriptors that an instance is to be started with, by name.
    pub fn kept_for<'a>(&'a self, instance: &'a Name) -> impl Iterator<Item = (&'a Name, &'a D)> {
        self.store.of(instance)
    }

    /// Does what is due.
    fn act_on_time(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.instances.kill_overdue(now, out);
        if self.ending.is_some() {
            self.go_on_ending(now, out);
        } else if self.manager.is_due(now) {
            self.manager.start(now);
            out.push(Output::StartManager);
        }
    }

    fn started(
        &mut self,
        now: Instant,
        instance: Name,
        uid: Option<u32>,
        result: Result<i32, String>,
        out: &mut Vec<Output>,
    ) {
        if instance != manager_name() {
            return self.instance_started(now, instance, uid, result, out);
        }
        match result {
            Ok(pid) => {
                self.manager.runs(pid, uid);
                report(out, Level::Info, format!("the manager runs as process {pid}"));
                if self.ending.is_some() {
                    out.push(Output::Signal { pid, number: SIGTERM });
                }
            }
            Err(error) => {
                report(out, Level::Error, error.clone());
                self.manager_died(now, error, out);
            }
        }
    }

    fn ended(&mut self, now: Instant, pid: i32, exit: Exit, out: &mut Vec<Output>) {
        if self.manager.pid() == Some(pid) {
            // At the end of the node it is told to.
            let level = if self.ending.is_some() { Level::Info } else { Level::Warning };
            report(out, level, format!("the manager (process {pid}) {exit}"));
            self.manager_died(now, exit.to_string(), out);
        } else if let Some(name) = self.instances.of_pid(pid) {
            self.instance_ended(name, pid, exit, out);
        }
    }

    fn manager_died(&mut self, now: Instant, how: String, out: &mut Vec<Output>) {
        let died = self.manager.died(how, self.settings.manager_failures, now);
        if let (Err(error), None) = (died, &self.ending) {
            report(out, Level::Error, error.to_string());
            self.end(now, Err(error), out);
        }
    }

    fn instance_ended(&mut self, name: Name, pid: i32, exit: Exit, out: &mut Vec<Output>) {
        let asked = self.instances.ended(&name, pid, exit.clone());
        let level = if asked { Level::Info } else { Level::Warning };
        report(out, level, format!("{name} (process {pid}) {exit}"));
        if asked {
            self.forget(name.clone(), out);
        }
        out.push(Output::Tell(Message::Exited { instance: name, pid, exit }));
    }

    /// An instance is taken away, and with it what is kept for it. Of one that died it stays for the next process.
    fn forget(&mut self, name: Name, out: &mut Vec<Output>) {
        self.store.forget(&name);
        out.push(Output::Forget(name));
    }

    /// Begins to end the node; if it is ending already, ends it now.
    fn end(&mut self, now: Instant, why: Result<(), LauncherError>, out: &mut Vec<Output>) {
        if let Some(ending) = &mut self.ending {
            ending.deadline = now;
            return;
        }
        report(out, Level::Info, "the node ends".to_owned());
        out.push(Output::Notify(Notice::Stopping));
        out.push(Output::Tell(Message::Stopping {}));
        self.instances.stop_all(out);
        let deadline = now + self.settings.grace;
        self.ending = Some(Ending { deadline, only_manager: false, why: Some(why) });
    }

    fn go_on_ending(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(ending) = &mut self.ending else { return };
        if !ending.only_manager && !self.instances.any_runs() {
            ending.only_manager = true;
            ending.deadline = now + self.settings.grace;
            self.manager.signal(SIGTERM, out);
        }
        if now >= ending.deadline {
            self.instances.kill_all(out);
            if ending.only_manager {
                self.manager.signal(SIGKILL, out);
            }
            // They end as soon as the kernel comes to it, and this is not to be asked all the time.
            ending.deadline = now + Duration::from_secs(1);
        }
        if !self.instances.any_runs() && self.manager.is_down() {
            out.extend(ending.why.take().map(Output::Over));
        }
    }
}

impl<D> Component for Supervisor<D> {
    type Input = Input<D>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<D>, out: &mut Vec<Output>) {
        match input {
            Input::Request { bytes, descriptors, truncated } => {
                self.request(now, &bytes, descriptors, truncated, out);
            }
            // One that has been asked to end does so after its connection, and has its time for that.
            Input::Lost if self.ending.as_ref().is_some_and(|ending| ending.only_manager) => {}
            // A manager that cannot be spoken to is as good as dead.
            Input::Lost => self.manager.signal(SIGKILL, out),
            Input::Started { instance, uid, result } => {
                self.started(now, instance, uid, result, out);
            }
            Input::Ended { pid, exit } => self.ended(now, pid, exit, out),
            Input::End => self.end(now, Ok(()), out),
            Input::Tick => {}
        }
        self.act_on_time(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let ending = self.ending.as_ref();
        let manager = self.manager.start_at().filter(|_| ending.is_none());
        let ends = ending.filter(|ending| ending.why.is_some()).map(|ending| ending.deadline);
        [manager, self.instances.deadline(), ends].into_iter().flatten().min()
    }
}

fn report(out: &mut Vec<Output>, level: Level, line: String) {
    out.push(Output::Report(level, line));
}
