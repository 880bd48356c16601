//! Network interfaces: which there are, and making them what the configuration says.
//!
//! Reference: Handley et al. (XORP), §3: the FEA knows and configures interfaces for everybody else.
//! The kernel's part is `weft_netlink`'s.
//!
//! A configuration is carried out step by step, and taken back if the kernel refuses a step. It is for
//! interfaces that appear later, too. Changes that others make afterwards are left alone.

mod plan;
mod statement;
mod told;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_base::Token;
use weft_config::Errors;
use weft_runtime::{Action, Interface, InterfaceChange, InterfaceRequest, Level, Tuning};
use weft_xrl::{CallId, Encoded, Output, XrlError};

use crate::programs::{Key, Wanted};
use plan::{Present, Step, plan};
use statement::Statement;
pub(crate) use statement::direction;
pub use statement::{SCHEMA, STATEMENT};

#[derive(Default)]
pub(crate) struct Interfaces {
    present: Present,
    /// Whether the kernel has told of all.
    complete: bool,
    /// Interfaces that were deleted, of which the kernel has yet to tell.
    deleted: BTreeSet<u32>,
    /// What is configured.
    configured: Statement,
    waiting: VecDeque<Job>,
    running: Option<Running>,
    /// Programs that are to be attached, and nothing else, until somebody takes the wish.
    programs: Option<Wanted>,
    last_token: u32,
}

enum Job {
    Configure { new: Statement, called: CallId },
    Appeared { name: String },
}

struct Running {
    steps: VecDeque<Step>,
    /// Whether the kernel has yet to answer the first step.
    asked: bool,
    purpose: Purpose,
}

enum Purpose {
    /// Who asked, and what was configured before.
    Configure {
        called: CallId,
        old: Statement,
    },
    /// After a refusal.
    TakeBack {
        called: CallId,
        error: String,
    },
    Appeared {
        name: String,
    },
}

impl Interfaces {
    /// The interfaces in order of their numbers; `None` while the kernel has not told of all.
    pub(crate) fn all(&self) -> Option<impl Iterator<Item = &Interface>> {
        self.complete.then(|| self.present.values())
    }

    /// What the configuration names and is not there.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &str> {
        let there = |name: &str| self.present.values().any(|one| one.name == name);
        self.configured.keys().map(String::as_str).filter(move |name| !there(name))
    }

    /// Whether a configuration could be taken.
    ///
    /// # Errors
    /// Mistakes with their places.
    pub(crate) fn check(source: &str, text: &str) -> Result<(), Errors> {
        statement::read(source, text).map(drop)
    }

    /// Takes a configuration; the caller is answered when it is carried out.
    ///
    /// # Errors
    /// Mistakes with their places; nothing changes then.
    pub(crate) fn configure(
        &mut self,
        source: &str,
        text: &str,
        called: CallId,
        out: &mut Vec<Output>,
    ) -> Result<(), Errors> {
        let new = statement::read(source, text)?;
        self.waiting.push_back(Job::Configure { new, called });
        self.go_on(out);
        Ok(())
    }

    /// The kernel tells of an interface.
    pub(crate) fn changed(&mut self, change: InterfaceChange, out: &mut Vec<Output>) {
        match change {
            InterfaceChange::Added(now) | InterfaceChange::Changed(now) => {
                if self.deleted.contains(&now.index) {
                    return;
                }
                let name = now.name.clone();
                let old = self.present.insert(now.index, now);
                let appeared = old.is_none_or(|old| old.name != name);
                if appeared && self.complete && self.configured.contains_key(&name) {
                    self.waiting.push_back(Job::Appeared { name });
                }
            }
            InterfaceChange::Removed { index, .. } => {
                self.deleted.remove(&index);
                self.present.remove(&index);
            }
            InterfaceChange::Complete => self.complete = true,
        }
        self.go_on(out);
    }

    /// The kernel has carried out a request, or refuses it.
    pub(crate) fn answered(
        &mut self,
        token: Token,
        result: Result<(), String>,
        out: &mut Vec<Output>,
    ) {
        let current = token == Token(self.last_token);
        let Some(running) = self.running.as_mut().filter(|running| current && running.asked) else {
            return;
        };
        running.asked = false;
        let Some(Step::Ask(request)) = running.steps.pop_front() else { return };
        match result {
            Ok(()) => self.done(&request),
            Err(error) => self.refused(error, out),
        }
        self.go_on(out);
    }

    /// Notes at once what the kernel will tell.
    fn done(&mut self, request: &InterfaceRequest) {
        if let InterfaceRequest::Delete { interface } = request
            && let Some(index) = self.index_of(interface)
        {
            self.present.remove(&index);
            self.deleted.insert(index);
        }
    }

    /// Which programs are to be at interfaces from now on, if that is to be seen to; see
    /// [`Interfaces::programs_attached`].
    pub(crate) fn take_programs(&mut self) -> Option<Wanted> {
        self.programs.take()
    }

    /// The programs are attached, or could not be.
    pub(crate) fn programs_attached(&mut self, result: Result<(), String>, out: &mut Vec<Output>) {
        let Some(running) = self.running.as_mut().filter(|running| running.asked) else { return };
        running.asked = false;
        running.steps.pop_front();
        if let Err(error) = result {
            self.refused(error, out);
        }
        self.go_on(out);
    }

    /// The programs that are configured for interfaces that are there.
    fn wanted_programs(&self) -> Wanted {
        let of = |one: &Interface| {
            let (direction, program) = self.configured.get(&one.name)?.program?;
            let key = Key { interface: one.index, direction, program: program.name() };
            Some((key, (one.name.clone(), program)))
        };
        self.present.values().filter_map(of).collect::<BTreeMap<_, _>>()
    }

    /// How packets are to be taken from the interfaces that are there, as far as that is configured.
    pub(crate) fn tunings(&self) -> impl Iterator<Item = (&Interface, &Tuning)> {
        self.present.values().filter_map(|one| {
            let tuning = &self.configured.get(&one.name)?.tuning;
            (*tuning != Tuning::default()).then_some((one, tuning))
        })
    }

    /// The number and the name of an interface.
    pub(crate) fn named(&self, name: &str) -> Option<&Interface> {
        self.present.values().find(|one| one.name == name)
    }

    fn index_of(&self, name: &str) -> Option<u32> {
        self.named(name).map(|one| one.index)
    }

    fn refused(&mut self, error: String, out: &mut Vec<Output>) {
        let Some(running) = self.running.take() else { return };
        match running.purpose {
            Purpose::Configure { called, old } => {
                let new = std::mem::replace(&mut self.configured, old);
                let mut steps = plan(&new, &self.configured, &self.present);
                steps.push(Step::Programs);
                let steps = steps.into();
                let purpose = Purpose::TakeBack { called, error };
                self.running = Some(Running { steps, asked: false, purpose });
            }
            // The rest may be possible.
            Purpose::TakeBack { .. } => self.running = Some(running),
            Purpose::Appeared { ref name } => {
                let line = format!("the configuration of `{name}`, which has appeared: {error}");
                out.push(Output::World(Action::Report { level: Level::Warning, line }));
                self.running = Some(running);
            }
        }
    }

    /// Takes the next step, as long as nothing has to be waited for.
    fn go_on(&mut self, out: &mut Vec<Output>) {
        if !self.complete {
            return;
        }
        loop {
            let Some(running) = &mut self.running else {
                match self.waiting.pop_front() {
                    Some(job) => self.begin(job),
                    None => return,
                }
                continue;
            };
            match running.steps.front() {
                Some(Step::Ask(_) | Step::Programs) if running.asked => return,
                Some(Step::Programs) => {
                    running.asked = true;
                    self.programs = Some(self.wanted_programs());
                    return;
                }
                Some(Step::Ask(request)) => {
                    let request = request.clone();
                    running.asked = true;
                    self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
                    let token = Token(self.last_token);
                    out.push(Output::World(Action::ConfigureInterface { token, request }));
                    return;
                }
                Some(Step::Appear(name)) => {
                    if !self.present.values().any(|one| one.name == *name) {
                        return;
                    }
                    running.steps.pop_front();
                }
                None => {
                    if let Some(running) = self.running.take() {
                        finish(running.purpose, out);
                    }
                }
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let (mut steps, purpose) = match job {
            Job::Configure { new, called } => {
                let old = std::mem::replace(&mut self.configured, new);
                let steps = plan(&old, &self.configured, &self.present);
                (steps, Purpose::Configure { called, old })
            }
            Job::Appeared { name } => {
                let own = self.configured.get_key_value(&name);
                let own: Statement =
                    own.map(|(key, one)| (key.clone(), one.clone())).into_iter().collect();
                (plan(&Statement::new(), &own, &self.present), Purpose::Appeared { name })
            }
        };
        steps.push(Step::Programs);
        self.running = Some(Running { steps: steps.into(), asked: false, purpose });
    }
}

fn finish(purpose: Purpose, out: &mut Vec<Output>) {
    match purpose {
        Purpose::Configure { called, .. } => {
            out.push(Output::Answer { id: called, result: Ok(Encoded::default()) });
        }
        Purpose::TakeBack { called, error } => {
            out.push(Output::Answer { id: called, result: Err(XrlError::failed(error)) });
        }
        Purpose::Appeared { .. } => {}
    }
}
