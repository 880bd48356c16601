//! The processes that the manager asked for, and its requests.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::Level;

use super::{Notice, Output, SIGTERM, Supervisor, manager_name, report};
use crate::listeners::check_path;
use crate::name::Name;
use crate::profile::Profile;
use crate::protocol::{
    self, Command, Exit, Instance, LONGEST, Listing, Message, Outcome, Request, SIGKILL, Spec,
    State, Usage, id_of,
};

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
    /// The launcher is at it.
    Starting,
    Running {
        pid: i32,
        since: Instant,
        stopping: Option<Stopping>,
    },
    Ended {
        pid: i32,
        exit: Exit,
    },
    Failed {
        error: String,
    },
}

/// An instance was asked to end.
struct Stopping {
    /// When it is killed; `None` if that has been done.
    deadline: Option<Instant>,
}

impl<D> Supervisor<D> {
    /// Carries out what the manager wants, and replies.
    pub(super) fn request(
        &mut self,
        now: Instant,
        bytes: &[u8],
        descriptors: Vec<D>,
        truncated: bool,
        out: &mut Vec<Output>,
    ) {
        let decoded = match truncated {
            true => Err(protocol::ProtocolError::TooLong(bytes.len())),
            false => Request::decode(bytes),
        };
        let (id, result) = match decoded {
            Ok(request) => {
                let id = request.id;
                let right = descriptors.len() == request.descriptors();
                match (right, request.command) {
                    (false, _) => {
                        (id, Err("another number of descriptors came with it".to_owned()))
                    }
                    // A reply comes before the events that the request causes.
                    (true, Command::Start(spec)) => return self.start(id, spec, out),
                    (true, command) => (id, self.carry_out(now, command, descriptors, out)),
                }
            }
            Err(error) => (id_of(bytes).unwrap_or(0), Err(error.to_string())),
        };
        reply(id, result, out);
    }

    fn carry_out(
        &mut self,
        now: Instant,
        command: Command,
        descriptors: Vec<D>,
        out: &mut Vec<Output>,
    ) -> Result<Outcome, String> {
        let store = &mut self.store;
        match command {
            Command::Start(_) => Err("a start is answered before it is made".to_owned()),
            Command::Signal { instance, number } if instance == manager_name() => {
                self.manager.pid().ok_or("the manager does not run now")?;
                self.manager.signal(number, out);
                Ok(())
            }
            Command::Signal { instance, number } => self.instances.signal(&instance, number, out),
            Command::Stop { instance, grace_ms } => self.stop(now, &instance, grace_ms, out),
            Command::Status { ready, text } => {
                if ready && !std::mem::replace(&mut self.ready, true) {
                    out.push(Output::Notify(Notice::Ready));
                }
                out.push(Output::Notify(Notice::Status(text)));
                Ok(())
            }
            Command::Usage {} => return Ok(Outcome::Usage(self.processes())),
            Command::List { after } => return Ok(Outcome::Listing(self.list(after.as_ref()))),
            Command::Keep { name, instance } => match descriptors.into_iter().next() {
                Some(descriptor) => store.keep(name, descriptor, instance),
                None => Err("no descriptor came with it".to_owned()),
            },
            Command::Give { name, instance } => store.give(&name, instance),
            Command::Drop { name } => store.drop(&name),
        }
        .map(|()| Outcome::Done {})
    }

    fn start(&mut self, id: u64, spec: Spec, out: &mut Vec<Output>) {
        if let Err(error) = self.check(&spec) {
            return reply(id, Err(error), out);
        }
        reply(id, Ok(Outcome::Done {}), out);
        out.push(Output::Start(spec.clone()));
        let item = Item { uid: None, phase: Phase::Starting, spec };
        self.instances.all.insert(item.spec.instance.clone(), item);
    }

    pub(super) fn instance_started(
        &mut self,
        now: Instant,
        instance: Name,
        uid: Option<u32>,
        result: Result<i32, String>,
        out: &mut Vec<Output>,
    ) {
        let Some(item) = self.instances.all.get_mut(&instance) else { return };
        item.uid = uid;
        let message = match result {
            Ok(pid) => {
                let class = &item.spec.class;
                report(out, Level::Info, format!("{instance} ({class}) runs as process {pid}"));
                // The node began to end meanwhile.
                let stopping = self.ending.is_some().then_some(Stopping { deadline: None });
                out.extend(stopping.is_some().then_some(Output::Signal { pid, number: SIGKILL }));
                item.phase = Phase::Running { pid, since: now, stopping };
                Message::Started { instance, pid, uid }
            }
            Err(error) => {
                report(out, Level::Warning, format!("{instance}: {error}"));
                item.phase = Phase::Failed { error: error.clone() };
                Message::Failed { instance, error }
            }
        };
        out.push(Output::Tell(message));
    }

    /// Whether an instance may be started so.
    fn check(&self, spec: &Spec) -> Result<(), String> {
        let Spec { instance, class, arguments, .. } = spec;
        let profile = Profile::of_class(class);
        if self.ending.is_some() {
            return Err("the node is ending".to_owned());
        }
        if profile == Profile::Manager || *instance == manager_name() {
            return Err("the launcher alone starts a manager".to_owned());
        }
        if !profile.takes_arguments() && !arguments.is_empty() {
            return Err(format!("the class {class} has privileges and takes no arguments"));
        }
        if !profile.takes_descriptors() && self.kept_for(instance).next().is_some() {
            return Err(format!("the class {class} is started without descriptors that are kept"));
        }
        let all = &self.instances.all;
        let runs = |item: &&Item| item.runs();
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
            check_path(&listener.path, &self.settings.run_directory)?;
            if let Some(group) = &listener.group
                && !self.settings.groups.contains(group)
            {
                return Err(format!(
                    "the launcher was not told of a group `{}`",
                    group.escape_debug()
                ));
            }
        }
        Ok(())
    }

    fn stop(
        &mut self,
        now: Instant,
        instance: &Name,
        grace_ms: u32,
        out: &mut Vec<Output>,
    ) -> Result<(), String> {
        let item = self.instances.all.get_mut(instance).ok_or_else(|| unknown(instance))?;
        match &mut item.phase {
            Phase::Starting => Err(format!("{instance} is just being started")),
            Phase::Running { pid, stopping, .. } => {
                out.push(Output::Signal { pid: *pid, number: SIGTERM });
                let grace = Duration::from_millis(grace_ms.into());
                *stopping = Some(Stopping { deadline: Some(now + grace) });
                Ok(())
            }
            Phase::Ended { .. } | Phase::Failed { .. } => {
                self.instances.all.remove(instance);
                self.forget(instance.clone(), out);
                Ok(())
            }
        }
    }

    /// Every process but the launcher itself, in order of names. What they use is not known here: a driver
    /// with real processes puts it in.
    fn processes(&self) -> Vec<Usage> {
        let others = self.instances.running().map(|(name, uid, since, pid)| Usage {
            instance: name.clone(),
            pid,
            uid,
            since: since.as_nanos(),
            restarts: 0,
            memory: 0,
            processor: 0,
        });
        let mut all: Vec<_> = others.chain(self.manager.usage()).collect();
        all.sort_by(|a, b| a.instance.cmp(&b.instance));
        all
    }

    fn list(&self, after: Option<&Name>) -> Listing {
        let mut listing = Listing::default();
        if after.is_none() {
            listing.kept = self.store.list();
            listing.missing = self.settings.missing.clone();
        }
        let size = |value: &Instance| serde_json::to_vec(value).map_or(LONGEST, |json| json.len());
        let mut room = LONGEST - ENVELOPE;
        room = room.saturating_sub(serde_json::to_vec(&listing).map_or(0, |json| json.len()));
        let behind = |name: &Name| after.is_none_or(|after| name > after);
        for (_, item) in self.instances.all.iter().filter(|(name, _)| behind(name)) {
            let Some(instance) = item.tell() else { continue };
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

impl Item {
    fn tell(&self) -> Option<Instance> {
        let state = match &self.phase {
            Phase::Starting => return None,
            Phase::Running { pid, since, stopping } => {
                State::Running { pid: *pid, since: since.as_nanos(), stopping: stopping.is_some() }
            }
            Phase::Ended { pid, exit } => State::Ended { pid: *pid, exit: exit.clone() },
            Phase::Failed { error } => State::Failed { error: error.clone() },
        };
        Some(Instance { spec: self.spec.clone(), uid: self.uid, state })
    }

    fn pid(&self) -> Option<i32> {
        match &self.phase {
            Phase::Running { pid, .. } => Some(*pid),
            Phase::Starting | Phase::Ended { .. } | Phase::Failed { .. } => None,
        }
    }

    fn runs(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running { .. })
    }
}

impl Instances {
    pub(super) fn of_pid(&self, pid: i32) -> Option<Name> {
        let has = |item: &Item| item.pid() == Some(pid);
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

    /// Name, user, time of the start and process id of those that run.
    fn running(&self) -> impl Iterator<Item = (&Name, Option<u32>, Instant, i32)> {
        self.all.iter().filter_map(|(name, item)| match &item.phase {
            Phase::Running { pid, since, .. } => Some((name, item.uid, *since, *pid)),
            _ => None,
        })
    }

    pub(super) fn any_runs(&self) -> bool {
        self.all.values().any(Item::runs)
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
    pub(super) fn kill_overdue(&mut self, now: Instant, out: &mut Vec<Output>) {
        for item in self.all.values_mut() {
            if let Phase::Running { pid, stopping: Some(stopping), .. } = &mut item.phase
                && stopping.deadline.is_some_and(|deadline| now >= deadline)
            {
                stopping.deadline = None;
                out.push(Output::Signal { pid: *pid, number: SIGKILL });
            }
        }
    }

    /// Asks all to end.
    pub(super) fn stop_all(&mut self, out: &mut Vec<Output>) {
        for item in self.all.values_mut() {
            if let Phase::Running { pid, stopping, .. } = &mut item.phase {
                out.push(Output::Signal { pid: *pid, number: SIGTERM });
                stopping.get_or_insert(Stopping { deadline: None });
            }
        }
    }

    pub(super) fn kill_all(&self, out: &mut Vec<Output>) {
        let pids = self.all.values().filter_map(Item::pid);
        out.extend(pids.map(|pid| Output::Signal { pid, number: SIGKILL }));
    }

    fn signal(&self, instance: &Name, number: i32, out: &mut Vec<Output>) -> Result<(), String> {
        let item = self.all.get(instance).ok_or_else(|| unknown(instance))?;
        let pid = item.pid().ok_or_else(|| format!("{instance} does not run now"))?;
        out.push(Output::Signal { pid, number });
        Ok(())
    }
}

fn reply(id: u64, result: Result<Outcome, String>, out: &mut Vec<Output>) {
    let outcome = result.unwrap_or_else(|error| {
        // Not louder: a hostile manager could fill the log.
        report(out, Level::Debug, format!("a request of the manager was refused: {error}"));
        Outcome::Refused { error }
    });
    out.push(Output::Tell(Message::Reply { id, outcome }));
}

fn unknown(instance: &Name) -> String {
    format!("there is no instance called `{instance}`")
}
