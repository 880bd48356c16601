//! The processes that the manager asked for, and its requests.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use tracing::{debug, info, warn};

use super::order::Order;
use super::{Base, Launcher, manager};
use crate::channel::Received;
use crate::listeners::check_path;
use crate::name::Name;
use crate::profile::Profile;
use crate::protocol::{
    self, Command, Exit, Instance, LONGEST, Listing, Message, Outcome, Request, Spec, State, id_of,
};
use crate::spawn::Running;
use crate::sys;

/// How many instances a node has at most.
const MOST: usize = 200;
/// Room in a message for what is not an instance, in bytes.
const ENVELOPE: usize = 256;

#[derive(Default)]
pub(super) struct Instances {
    all: BTreeMap<Name, Item>,
}

struct Item {
    spec: Spec,
    uid: Option<u32>,
    phase: Phase,
}

enum Phase {
    Running { process: Running, since: u64, stopping: Option<Stopping> },
    Ended { pid: i32, exit: Exit },
    Failed { error: String },
}

/// An instance was asked to end.
struct Stopping {
    /// When it is killed; `None` if that has been done.
    deadline: Option<Instant>,
}

impl Launcher {
    /// Carries out what the manager wants, and replies.
    pub(super) fn request(&mut self, received: Received) {
        let decoded = match received.truncated {
            true => Err(protocol::ProtocolError::TooLong(received.bytes.len())),
            false => Request::decode(&received.bytes),
        };
        let (id, result) = match decoded {
            Ok(request) => {
                let id = request.id;
                let right = received.descriptors.len() == request.descriptors();
                match (right, request.command) {
                    (false, _) => {
                        (id, Err("another number of descriptors came with it".to_owned()))
                    }
                    // A reply comes before the events that the request causes.
                    (true, Command::Start(spec)) => return self.start(id, spec),
                    (true, command) => (id, self.carry_out(command, received.descriptors)),
                }
            }
            Err(error) => (id_of(&received.bytes).unwrap_or(0), Err(error.to_string())),
        };
        self.reply(id, result);
    }

    fn reply(&mut self, id: u64, result: Result<Outcome, String>) {
        let outcome = result.unwrap_or_else(|error| {
            // Not louder: a hostile manager could fill the log.
            debug!("a request of the manager was refused: {error}");
            Outcome::Refused { error }
        });
        self.manager.tell(Message::Reply { id, outcome });
    }

    fn carry_out(
        &mut self,
        command: Command,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Outcome, String> {
        let store = &mut self.base.store;
        match command {
            Command::Start(_) => Err("a start is answered before it is made".to_owned()),
            Command::Signal { instance, number } if instance == manager::name() => {
                self.manager.signal(number)
            }
            Command::Signal { instance, number } => self.instances.signal(&instance, number),
            Command::Stop { instance, grace_ms } => self.stop(&instance, grace_ms),
            Command::List { after } => return Ok(Outcome::Listing(self.list(after.as_ref()))),
            Command::Keep { name } => match descriptors.into_iter().next() {
                Some(descriptor) => store.keep(name, descriptor),
                None => Err("no descriptor came with it".to_owned()),
            },
            Command::Give { name, instance } => store.give(&name, instance),
            Command::Drop { name } => store.drop(&name),
        }
        .map(|()| Outcome::Done {})
    }

    fn start(&mut self, id: u64, spec: Spec) {
        if let Err(error) = self.check(&spec) {
            return self.reply(id, Err(error));
        }
        self.reply(id, Ok(Outcome::Done {}));
        let instance = spec.instance.clone();
        let result = self.base.start(&Order {
            instance: &spec.instance,
            class: &spec.class,
            arguments: spec.arguments.iter().map(Into::into).collect(),
            limits: spec.limits,
            listeners: &spec.listeners,
            secret: Some(&spec.secret),
            channel: None,
        });
        let uid = self.base.uid_of(&instance);
        let (phase, message) = match result {
            Ok(process) => {
                let pid = process.pid.as_raw_pid();
                info!("{instance} ({}) runs as process {pid}", spec.class);
                let running = Phase::Running { process, since: now_nanos(), stopping: None };
                (running, Message::Started { instance: instance.clone(), pid, uid })
            }
            Err(error) => {
                warn!("{instance}: {error}");
                let failed = Phase::Failed { error: error.clone() };
                (failed, Message::Failed { instance: instance.clone(), error })
            }
        };
        self.instances.all.insert(instance, Item { spec, uid, phase });
        self.manager.tell(message);
    }

    /// Whether an instance may be started so.
    fn check(&self, spec: &Spec) -> Result<(), String> {
        let Spec { instance, class, arguments, .. } = spec;
        let profile = Profile::of_class(class);
        if self.ending.is_some() {
            return Err("the node is ending".to_owned());
        }
        if profile == Profile::Manager || *instance == manager::name() {
            return Err("the launcher alone starts a manager".to_owned());
        }
        if !profile.takes_arguments() && !arguments.is_empty() {
            return Err(format!("the class {class} has privileges and takes no arguments"));
        }
        let all = &self.instances.all;
        let runs = |item: &&Item| matches!(item.phase, Phase::Running { .. });
        if all.get(instance).filter(runs).is_some() {
            return Err(format!("{instance} runs already"));
        }
        let is_second = |(name, item): (&Name, &Item)| {
            name != instance && Profile::of_class(&item.spec.class) == Profile::Fea
        };
        if profile == Profile::Fea && all.iter().any(is_second) {
            return Err(format!("there is an instance of the class {class} already"));
        }
        if all.len() >= MOST && !all.contains_key(instance) {
            return Err(format!("a node has at most {MOST} instances"));
        }
        for listener in &spec.listeners {
            check_path(&listener.path, &self.base.config.run_directory)?;
            if let Some(group) = &listener.group
                && !self.base.config.groups.contains_key(group)
            {
                return Err(format!(
                    "the launcher was not told of a group `{}`",
                    group.escape_debug()
                ));
            }
        }
        Ok(())
    }

    fn stop(&mut self, instance: &Name, grace_ms: u32) -> Result<(), String> {
        let item = self.instances.all.get_mut(instance).ok_or_else(|| unknown(instance))?;
        let Phase::Running { process, stopping, .. } = &mut item.phase else {
            self.instances.all.remove(instance);
            self.base.forget(instance);
            return Ok(());
        };
        sys::send_signal(process.pidfd.as_fd(), libc::SIGTERM).map_err(|e| e.to_string())?;
        let grace = Duration::from_millis(grace_ms.into());
        *stopping = Some(Stopping { deadline: Some(Instant::now() + grace) });
        Ok(())
    }

    fn list(&self, after: Option<&Name>) -> Listing {
        let mut listing = Listing::default();
        if after.is_none() {
            listing.kept = self.base.store.list();
            listing.missing = self.base.missing.clone();
        }
        let size = |value: &Instance| serde_json::to_vec(value).map_or(LONGEST, |json| json.len());
        let mut room = LONGEST - ENVELOPE;
        room = room.saturating_sub(serde_json::to_vec(&listing).map_or(0, |json| json.len()));
        let behind = |name: &Name| after.is_none_or(|after| name > after);
        for (_, item) in self.instances.all.iter().filter(|(name, _)| behind(name)) {
            let instance = item.tell();
            let needed = size(&instance) + 1;
            if needed > room {
                listing.more = true;
                break;
            }
            room -= needed;
            listing.instances.push(instance);
        }
        listing
    }
}

impl Base {
    fn uid_of(&mut self, instance: &Name) -> Option<u32> {
        self.uids.as_mut()?.of(instance).ok()
    }
}

impl Item {
    fn tell(&self) -> Instance {
        let state = match &self.phase {
            Phase::Running { process, since, stopping } => State::Running {
                pid: process.pid.as_raw_pid(),
                since: *since,
                stopping: stopping.is_some(),
            },
            Phase::Ended { pid, exit } => State::Ended { pid: *pid, exit: exit.clone() },
            Phase::Failed { error } => State::Failed { error: error.clone() },
        };
        Instance { spec: self.spec.clone(), uid: self.uid, state }
    }

    fn process(&self) -> Option<&Running> {
        match &self.phase {
            Phase::Running { process, .. } => Some(process),
            Phase::Ended { .. } | Phase::Failed { .. } => None,
        }
    }
}

impl Instances {
    pub(super) fn of_pid(&self, pid: Pid) -> Option<Name> {
        let has = |item: &Item| item.process().is_some_and(|process| process.pid == pid);
        self.all.iter().find(|(_, item)| has(item)).map(|(name, _)| name.clone())
    }

    /// Notes that an instance ended, and forgets it if it was asked to; returns whether it was.
    pub(super) fn ended(&mut self, name: &Name, pid: i32, exit: Exit) -> bool {
        let Some(item) = self.all.get_mut(name) else { return false };
        let asked = matches!(item.phase, Phase::Running { stopping: Some(_), .. });
        match asked {
            true => drop(self.all.remove(name)),
            false => item.phase = Phase::Ended { pid, exit },
        }
        asked
    }

    pub(super) fn any_runs(&self) -> bool {
        self.all.values().any(|item| item.process().is_some())
    }

    /// When the next instance has to be killed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let deadline = |item: &Item| match &item.phase {
            Phase::Running { stopping: Some(stopping), .. } => stopping.deadline,
            _ => None,
        };
        self.all.values().filter_map(deadline).min()
    }

    /// Kills what was asked to end and did not in its time.
    pub(super) fn kill_overdue(&mut self, now: Instant) {
        for item in self.all.values_mut() {
            if let Phase::Running { process, stopping: Some(stopping), .. } = &mut item.phase
                && stopping.deadline.is_some_and(|deadline| now >= deadline)
            {
                stopping.deadline = None;
                let _ = sys::send_signal(process.pidfd.as_fd(), libc::SIGKILL);
            }
        }
    }

    /// Asks all to end.
    pub(super) fn stop_all(&mut self) {
        for item in self.all.values_mut() {
            if let Phase::Running { process, stopping, .. } = &mut item.phase {
                let _ = sys::send_signal(process.pidfd.as_fd(), libc::SIGTERM);
                stopping.get_or_insert(Stopping { deadline: None });
            }
        }
    }

    pub(super) fn kill_all(&self) {
        for process in self.all.values().filter_map(Item::process) {
            let _ = sys::send_signal(process.pidfd.as_fd(), libc::SIGKILL);
        }
    }

    fn signal(&self, instance: &Name, number: i32) -> Result<(), String> {
        let item = self.all.get(instance).ok_or_else(|| unknown(instance))?;
        let process = item.process().ok_or_else(|| format!("{instance} does not run now"))?;
        sys::send_signal(process.pidfd.as_fd(), number).map_err(|error| error.to_string())
    }
}

fn unknown(instance: &Name) -> String {
    format!("there is no instance called `{instance}`")
}

/// Nanoseconds of the monotonic clock.
fn now_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
