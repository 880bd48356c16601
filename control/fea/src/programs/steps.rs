//! The steps of a job, and what is waited for.

use std::collections::VecDeque;

use weft_base::Token;
use weft_runtime::{Action, Attached, Handle, Level, Program, ProgramReply, ProgramRequest};
use weft_xrl::{Call, Output, Reply, XrlError, fea};

use super::store::{self, Kept, Part};
use super::{Key, Own, Owner, Programs, Purpose};
use crate::manager;

/// Who has descriptors kept.
const MANAGER: &str = "manager";

/// One step on the way.
#[derive(Debug)]
pub(super) enum Step {
    /// Attach a program, and have it kept.
    Attach { interface: String, key: Key, program: Program, owner: Owner },
    /// Take over a program.
    Adopt(Kept),
    /// Give a program other parameters.
    Set { key: Key, program: Program },
    /// Detach a program, and have it kept no more.
    Detach(Key),
    /// Have a program kept no more that is not attached.
    Release { key: Key, owner: Owner },
    /// Ask what an interface has.
    List(u32),
}

/// A job that is being done.
pub(super) struct Running {
    steps: VecDeque<Step>,
    waiting: Option<Waiting>,
    purpose: Purpose,
    /// What has gone wrong: the rest is clearing up.
    error: Option<String>,
}

enum Waiting {
    /// For the kernel's answer about a step that is not among the steps any more.
    Kernel(Token, Step),
    /// For the manager to keep what holds a program.
    Keep { call: u64, key: Key, rest: VecDeque<(String, Handle)> },
    /// For the manager to release it.
    Release { call: u64, rest: VecDeque<String> },
}

impl Running {
    pub(super) fn new(steps: Vec<Step>, purpose: Purpose) -> Self {
        Self { steps: steps.into(), waiting: None, purpose, error: None }
    }
}

impl Programs {
    /// Takes steps until something has to be waited for.
    pub(super) fn go_on(&mut self, out: &mut Vec<Output>) {
        loop {
            match &mut self.running {
                Some(running) if running.waiting.is_some() => return,
                Some(running) => match running.steps.pop_front() {
                    Some(step) => self.take(step, out),
                    None => self.finish(out),
                },
                None => {
                    if !self.begin(out) {
                        return;
                    }
                }
            }
        }
    }

    /// Begins a step.
    fn take(&mut self, mut step: Step, out: &mut Vec<Output>) {
        let request = match &mut step {
            Step::Attach { interface, key, program, .. } => ProgramRequest::Attach {
                interface: interface.clone(),
                direction: key.direction,
                program: *program,
            },
            Step::Adopt(kept) => ProgramRequest::Adopt {
                name: kept.key.program.to_owned(),
                interface: kept.key.interface,
                direction: kept.key.direction,
                link: kept.link.take(),
                state: std::mem::replace(&mut kept.map, Handle::from_number(0)),
            },
            Step::Set { key, program } => match self.attached.get(key) {
                Some(Own { attachment, .. }) => {
                    ProgramRequest::Set { attachment: *attachment, program: *program }
                }
                None => return,
            },
            Step::Detach(key) => match self.attached.get(key) {
                Some(Own { attachment, .. }) => ProgramRequest::Detach { attachment: *attachment },
                None => return,
            },
            Step::Release { key, owner } => {
                let names = Part::ALL.map(|part| store::name(key, *owner, part));
                return self.release(names.into(), out);
            }
            Step::List(interface) => ProgramRequest::List { interface: *interface },
        };
        self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
        let token = Token(self.last_token);
        out.push(Output::World(Action::Program { token, request }));
        self.wait(Waiting::Kernel(token, step));
    }

    fn wait(&mut self, waiting: Waiting) {
        if let Some(running) = &mut self.running {
            running.waiting = Some(waiting);
        }
    }

    /// The kernel has done what was asked, or refuses it.
    pub(crate) fn answered(
        &mut self,
        token: Token,
        result: Result<ProgramReply, String>,
        out: &mut Vec<Output>,
    ) {
        let Some(running) = &mut self.running else { return };
        let step = match running.waiting.take() {
            Some(Waiting::Kernel(asked, step)) if asked == token => step,
            other => {
                running.waiting = other;
                return;
            }
        };
        match (step, result) {
            (Step::Attach { key, owner, .. }, Ok(ProgramReply::Attached(attached))) => {
                let parts = self.note(key, owner, attached);
                self.keep(key, parts, out);
            }
            (Step::Adopt(Kept { key, owner, .. }), Ok(ProgramReply::Attached(attached))) => {
                let (Attached { program, id, .. }, Key { interface, direction, .. }) =
                    (&attached, key);
                let place = format!("at {direction} of the interface with the number {interface}");
                let line = format!("the program {program} {place} (id {id}) is taken over");
                report(Level::Info, line, out);
                self.note(key, owner, attached);
            }
            (Step::Adopt(Kept { key, owner, .. }), Err(error)) => {
                self.failed(error, Some(Step::Release { key, owner }), out);
            }
            (Step::Set { key, program }, Ok(_)) => {
                if let Some(own) = self.attached.get_mut(&key) {
                    own.program = program;
                }
            }
            (Step::Detach(key), result) => {
                let own = self.attached.remove(&key);
                let release = own.map(|own| Step::Release { key, owner: own.owner });
                match result {
                    Ok(_) => self.then(release),
                    Err(error) => self.failed(error, release, out),
                }
            }
            (Step::List(_), result) => {
                let (found, counters) = match result {
                    Ok(ProgramReply::Listed { found, counters }) => (found, counters),
                    Ok(_) => Default::default(),
                    // The interface has gone meanwhile.
                    Err(error) => {
                        report(Level::Debug, error, out);
                        Default::default()
                    }
                };
                if let Some(Running { purpose: Purpose::List(listing), .. }) = &mut self.running {
                    listing.add(&self.attached, found, counters);
                }
            }
            (_, Err(error)) => self.failed(error, None, out),
            (_, Ok(_)) => {}
        }
        self.go_on(out);
    }

    /// Notes a program that is attached; returns what holds it.
    fn note(&mut self, key: Key, owner: Owner, attached: Attached) -> VecDeque<(String, Handle)> {
        let Attached { attachment, id, program, link, state, .. } = attached;
        let own = Own { attachment, id, program, owner, linked: link.is_some() };
        self.attached.insert(key, own);
        let part = |part, handle| (store::name(&key, owner, part), handle);
        let link = link.map(|link| part(Part::Link, link));
        std::iter::once(part(Part::Map, state)).chain(link).collect()
    }

    /// Has the next of what holds a program kept, if there is more.
    fn keep(&mut self, key: Key, mut rest: VecDeque<(String, Handle)>, out: &mut Vec<Output>) {
        let Some((name, descriptor)) = rest.pop_front() else { return };
        self.last_call += 1;
        let call = self.last_call;
        out.push(Call::new(call, MANAGER, manager::Keep { name, descriptor }).into());
        self.wait(Waiting::Keep { call, key, rest });
    }

    fn release(&mut self, mut rest: VecDeque<String>, out: &mut Vec<Output>) {
        let Some(name) = rest.pop_front() else { return };
        self.last_call += 1;
        let call = self.last_call;
        out.push(Call::new(call, MANAGER, manager::Release { name }).into());
        self.wait(Waiting::Release { call, rest });
    }

    /// The manager has done what was asked, or could not.
    pub(crate) fn replied(
        &mut self,
        token: u64,
        result: Result<Reply, XrlError>,
        out: &mut Vec<Output>,
    ) {
        let Some(running) = &mut self.running else { return };
        match running.waiting.take() {
            Some(Waiting::Keep { call, key, rest }) if call == token => match result {
                Ok(_) => self.keep(key, rest, out),
                Err(error) => {
                    // Nobody would find it again: better none.
                    let error = format!("the program {} cannot be kept: {error}", key.program);
                    self.failed(error, Some(Step::Detach(key)), out);
                }
            },
            // What is not kept need not be released.
            Some(Waiting::Release { call, rest }) if call == token => self.release(rest, out),
            other => running.waiting = other,
        }
        self.go_on(out);
    }

    /// Puts a step in front of the others.
    fn then(&mut self, step: Option<Step>) {
        if let (Some(running), Some(step)) = (&mut self.running, step) {
            running.steps.push_front(step);
        }
    }

    /// Something went wrong: whoever asked is told when the one step that clears up is taken.
    fn failed(&mut self, error: String, clear: Option<Step>, out: &mut Vec<Output>) {
        let Some(running) = &mut self.running else { return };
        match running.purpose {
            // The others are independent of it.
            Purpose::Adopt | Purpose::Forget => report(Level::Warning, error, out),
            _ => {
                running.steps.clear();
                running.error.get_or_insert(error);
            }
        }
        self.then(clear);
    }

    /// Tells whoever asked.
    fn finish(&mut self, out: &mut Vec<Output>) {
        let Some(Running { purpose, error, .. }) = self.running.take() else { return };
        match (purpose, error) {
            (Purpose::Configure, error) => self.outcome = Some(error.map_or(Ok(()), Err)),
            (Purpose::Attach { called, .. } | Purpose::Detach(called), Some(error)) => {
                out.push(called.fail(XrlError::failed(error)));
            }
            (Purpose::Attach { called, key }, None) => {
                let id = self.attached.get(&key).map_or(0, |own| own.id);
                out.push(called.answer(Ok(fea::AttachProgramReply { id })));
            }
            (Purpose::Detach(called), None) => out.push(called.answer(Ok(()))),
            (Purpose::List(listing), _) => out.push(listing.answer()),
            (Purpose::Adopt | Purpose::Forget, _) => {}
        }
    }
}

fn report(level: Level, line: String, out: &mut Vec<Output>) {
    out.push(Output::World(Action::Report { level, line }));
}
