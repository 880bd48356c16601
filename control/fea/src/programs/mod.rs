//! eBPF programs at interfaces: attached by name, kept so that they outlive this process, and listed with
//! those of others, which are left alone.
//!
//! What holds a program, the descriptors of its link and of its map, is kept by the launcher, which the
//! manager is asked for. The name under which that is done tells where the program hangs and whose it is
//! (`store`), so that the next FEA takes it over. A program is attached when both are kept; it is
//! detached before they are released: whenever this process dies, nothing is attached that nobody knows.
//!
//! Jobs are done one after the other, step by step (`steps`); each step waits for the kernel or the manager.

mod list;
mod steps;
mod store;

use std::collections::{BTreeMap, VecDeque};

use weft_runtime::{Action, Direction, Handle, Interface, Level, LossProbability, Program};
use weft_xrl::{Called, Output, XrlError, fea};

use crate::interfaces::direction;
use list::{Listing, Place};
use steps::{Running, Step};

/// A place for a program: there is one of each name at each hook of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The number of the interface.
    pub(crate) interface: u32,
    pub(crate) direction: Direction,
    /// The name of the program.
    pub(crate) program: &'static str,
}

/// What is configured: the interface's name and the program with its parameters.
pub(crate) type Wanted = BTreeMap<Key, (String, Program)>;

/// Who wants a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Configuration,
    Call,
}

impl Owner {
    fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Call => "call",
        }
    }
}

/// A program that we have attached.
#[derive(Debug)]
struct Own {
    /// The driver's number of it.
    attachment: u32,
    /// The kernel's number of it.
    id: u32,
    program: Program,
    owner: Owner,
    /// Whether it ends with what is kept; else it stays at the interface until it is detached.
    linked: bool,
}

#[derive(Default)]
pub(crate) struct Programs {
    attached: BTreeMap<Key, Own>,
    /// What an earlier FEA had kept, until it is adopted.
    kept: BTreeMap<String, Handle>,
    waiting: VecDeque<Job>,
    running: Option<Running>,
    /// What came of what is configured, until somebody takes it.
    outcome: Option<Result<(), String>>,
    last_token: u32,
    last_call: u64,
}

enum Job {
    Adopt,
    Configure(Wanted),
    Attach { called: Called, interface: String, key: Key, program: Program },
    Detach { called: Called, interface: String, key: Key },
    List(Listing),
    Forget { interface: u32 },
}

/// Who is told what came of a job.
enum Purpose {
    Adopt,
    Configure,
    Attach { called: Called, key: Key },
    Detach(Called),
    List(Listing),
    Forget,
}

impl Programs {
    /// Something of an earlier FEA was kept.
    pub(crate) fn kept(&mut self, name: String, handle: Handle) {
        self.kept.insert(name, handle);
    }

    /// Others can be called: what was kept is adopted.
    pub(crate) fn registered(&mut self, out: &mut Vec<Output>) {
        if !self.kept.is_empty() {
            self.waiting.push_front(Job::Adopt);
        }
        self.go_on(out);
    }

    /// Attaches what is configured, and detaches what was and is not any more.
    pub(crate) fn configure(&mut self, wanted: Wanted, out: &mut Vec<Output>) {
        self.waiting.push_back(Job::Configure(wanted));
        self.go_on(out);
    }

    /// What came of what is configured, when that is known.
    pub(crate) fn take_outcome(&mut self) -> Option<Result<(), String>> {
        self.outcome.take()
    }

    /// An interface is gone, and its programs with it.
    pub(crate) fn interface_gone(&mut self, interface: u32, out: &mut Vec<Output>) {
        if self.attached.keys().any(|key| key.interface == interface) {
            self.waiting.push_back(Job::Forget { interface });
            self.go_on(out);
        }
    }

    /// Somebody asks for a program; answered later.
    pub(crate) fn attach(
        &mut self,
        called: Called,
        interface: Option<&Interface>,
        request: &fea::AttachProgram,
        out: &mut Vec<Output>,
    ) {
        let read = program(request).and_then(|program| {
            let (key, name) =
                key(interface, &request.interface, &request.direction, program.name())?;
            Ok((key, name, program))
        });
        match read {
            Ok((key, interface, program)) => {
                self.waiting.push_back(Job::Attach { called, interface, key, program });
                self.go_on(out);
            }
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// Somebody wants a program no more; answered later.
    pub(crate) fn detach(
        &mut self,
        called: Called,
        interface: Option<&Interface>,
        request: &fea::DetachProgram,
        out: &mut Vec<Output>,
    ) {
        let read = known(&request.program)
            .and_then(|name| key(interface, &request.interface, &request.direction, name));
        match read {
            Ok((key, interface)) => {
                self.waiting.push_back(Job::Detach { called, interface, key });
                self.go_on(out);
            }
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// The name of a program that is attached to an interface.
    pub(crate) fn at(&self, interface: u32) -> Option<&'static str> {
        self.attached.keys().find(|key| key.interface == interface).map(|key| key.program)
    }

    /// Somebody asks what there is at these interfaces, at which these packet engines are.
    pub(crate) fn list<'i>(
        &mut self,
        called: Called,
        interfaces: impl Iterator<Item = &'i Interface>,
        engine_at: impl Fn(&str) -> Option<String>,
        out: &mut Vec<Output>,
    ) {
        let place = |one: &Interface| Place {
            index: one.index,
            name: one.name.clone(),
            engine: engine_at(&one.name),
        };
        let interfaces = interfaces.map(place).collect();
        self.waiting.push_back(Job::List(Listing::new(called, interfaces)));
        self.go_on(out);
    }

    /// This process ends: what would stay behind is detached. What is linked ends with what is kept, or is
    /// taken over by the next one.
    pub(crate) fn stop(&mut self, out: &mut Vec<Output>) {
        for own in self.attached.values().filter(|own| !own.linked) {
            let request = weft_runtime::ProgramRequest::Detach { attachment: own.attachment };
            let token = weft_base::Token(0);
            out.push(Output::World(Action::Program { token, request }));
        }
    }

    /// Begins the next job, if none runs. Returns `false` if there is none.
    fn begin(&mut self, out: &mut Vec<Output>) -> bool {
        let Some(job) = self.waiting.pop_front() else { return false };
        let (steps, purpose) = match job {
            Job::Adopt => (self.adoptions(out), Purpose::Adopt),
            Job::Configure(wanted) => match self.changes(wanted) {
                Ok(steps) => (steps, Purpose::Configure),
                Err(error) => {
                    self.outcome = Some(Err(error));
                    return true;
                }
            },
            Job::Attach { called, interface, key, program } => {
                if let Some(own) = self.attached.get(&key) {
                    out.push(called.fail(XrlError::failed(already(&interface, &key, own))));
                    return true;
                }
                let step = Step::Attach { interface, key, program, owner: Owner::Call };
                (vec![step], Purpose::Attach { called, key })
            }
            Job::Detach { called, interface, key } => match self.attached.get(&key) {
                Some(own) if own.owner == Owner::Call => {
                    (vec![Step::Detach(key)], Purpose::Detach(called))
                }
                found => {
                    let error = XrlError::failed(not_to_detach(&interface, &key, found));
                    out.push(called.fail(error));
                    return true;
                }
            },
            Job::List(listing) => (listing.steps(), Purpose::List(listing)),
            Job::Forget { interface } => {
                let its = self.attached.keys().filter(|key| key.interface == interface);
                (its.map(|key| Step::Detach(*key)).collect(), Purpose::Forget)
            }
        };
        self.running = Some(Running::new(steps, purpose));
        true
    }

    /// What has to be done so that what is configured is attached, and nothing else that was.
    ///
    /// # Errors
    /// A sentence about what is in the way.
    fn changes(&self, wanted: Wanted) -> Result<Vec<Step>, String> {
        let configured = |own: &Own| own.owner == Owner::Configuration;
        let unwanted = self.attached.iter().filter(|(key, _)| !wanted.contains_key(key));
        let unwanted = unwanted.filter(|(_, own)| configured(own));
        let mut steps: Vec<_> = unwanted.map(|(key, _)| Step::Detach(*key)).collect();
        for (key, (interface, program)) in wanted {
            match self.attached.get(&key) {
                Some(own) if !configured(own) => return Err(already(&interface, &key, own)),
                Some(own) if own.program == program => continue,
                Some(own) if own.program.can_become(&program) => {
                    steps.push(Step::Set { key, program });
                    continue;
                }
                Some(_) => steps.push(Step::Detach(key)),
                None => {}
            }
            steps.push(Step::Attach { interface, key, program, owner: Owner::Configuration });
        }
        Ok(steps)
    }

    /// What was kept, put together again.
    fn adoptions(&mut self, out: &mut Vec<Output>) -> Vec<Step> {
        let found = store::read(std::mem::take(&mut self.kept));
        for name in found.strange {
            let line =
                format!("what was kept as `{name}` is not of this version, and is left alone");
            out.push(Output::World(Action::Report { level: Level::Warning, line }));
        }
        let links = found.links.into_iter().map(|(key, owner)| Step::Release { key, owner });
        links.chain(found.whole.into_iter().map(Step::Adopt)).collect()
    }
}

/// Why a second one is not attached.
fn already(interface: &str, key: &Key, own: &Own) -> String {
    let Key { direction, program, .. } = key;
    let (id, has) = (own.id, &own.program);
    let by = match own.owner {
        Owner::Configuration => "the configuration has attached: change its statement",
        Owner::Call => "a call has attached: call detach_program first",
    };
    format!("`{interface}` has the program {program} at {direction} (id {id}, {has}), which {by}")
}

/// Why nothing is detached.
fn not_to_detach(interface: &str, key: &Key, found: Option<&Own>) -> String {
    let Key { direction, program, .. } = key;
    match found {
        Some(own) => format!(
            "the program {program} at {direction} of `{interface}` (id {}) belongs to the configuration: \
             remove its statement there",
            own.id
        ),
        None => format!(
            "weft has no program {program} at {direction} of `{interface}`; what others have attached is \
             left alone"
        ),
    }
}

/// The program that is asked for.
fn program(request: &fea::AttachProgram) -> Result<Program, XrlError> {
    known(&request.program)?;
    let missing = || XrlError::bad_args("the program loss needs its `rate`, in parts per billion");
    let rate = LossProbability::from_parts_per_billion(request.rate.ok_or_else(missing)?);
    let rate = rate.map_err(|error| XrlError::bad_args(error.to_string()))?;
    Ok(Program::loss(rate, request.seed.unwrap_or(0)))
}

/// The name of a program that is embedded.
fn known(name: &str) -> Result<&'static str, XrlError> {
    let found = weft_runtime::PROGRAMS.iter().find(|kind| kind.name == name);
    found.map(|kind| kind.name).ok_or_else(|| {
        let all: Vec<_> = weft_runtime::PROGRAMS.iter().map(|kind| kind.name).collect();
        let (name, all) = (name.escape_debug(), all.join(", "));
        XrlError::bad_args(format!("weft embeds no program `{name}`: there is {all}"))
    })
}

/// The place that is meant, and the name of its interface.
fn key(
    interface: Option<&Interface>,
    name: &str,
    at: &str,
    program: &'static str,
) -> Result<(Key, String), XrlError> {
    let direction = direction(at).map_err(|error| {
        XrlError::bad_args(format!("`{}` is no direction: {error}", at.escape_debug()))
    })?;
    let interface = interface.ok_or_else(|| {
        let name = name.escape_debug();
        XrlError::failed(format!(
            "there is no interface `{name}`: `weft show interfaces` lists them"
        ))
    })?;
    let key = Key { interface: interface.index, direction, program };
    Ok((key, interface.name.clone()))
}

#[cfg(test)]
mod tests;
