//! What the manager asks of components and they of it.

use std::collections::BTreeMap;

use weft_base::Instant;
use weft_commit::Event;
use weft_config::Tree;
use weft_launcher::Name;
use weft_launcher::protocol::Command;
use weft_runtime::Level;
use weft_xrl::{
    Binary, Call, Called, ErrorCode, FINDER, GATEWAY, Output, Reply, XrlError, checked,
    configurable, finder, gateway,
};

use crate::instances::Configured;
use crate::interface;
use crate::refusals::SOURCE;
use crate::{Manager, ProgramKind, report};

/// What stands between a process and what it calls a descriptor, in the name of what is kept.
const KEPT: &str = "--";

/// Statements that are sent only once, in bytes.
const LONG: usize = 64 << 10;

/// What waits for an answer of somebody else.
#[derive(Default)]
pub(crate) struct Calls {
    last: u64,
    /// The call with the newest configuration that was sent, by the component. The answers to those
    /// before it do not count any more.
    configuring: BTreeMap<String, Configuring>,
    /// What each component found good last, if that was long: it need not be sent again.
    checked: BTreeMap<String, Checked>,
    /// Programs that were asked what they understand, by the token of the call.
    describing: BTreeMap<u64, String>,
    /// Questions of a commit that were sent, by the token of the call.
    checking: BTreeMap<u64, Checking>,
    /// The question whether an operator is still there: its token, and the operator's session.
    finding: Option<(u64, u64)>,
    /// Callers who wait for the launcher, by the number of the request.
    waiting: BTreeMap<u64, Called>,
}

/// A question of a commit.
struct Checking {
    step: u64,
    /// Who was asked.
    name: String,
    /// Whether it would take these statements.
    part: Tree,
    /// Whether they are long.
    is_long: bool,
}

/// A configuration that was sent.
struct Configuring {
    token: u64,
    /// It was only named: see [`checked`].
    named: bool,
}

/// Statements that were found good.
struct Checked {
    number: u64,
    part: Tree,
}

impl Calls {
    /// The question of a commit: would this component take these statements?
    pub(crate) fn check(&mut self, step: u64, name: String, part: Tree) -> Call {
        self.last += 1;
        let (number, text) = (Some(self.last), part.body());
        let is_long = text.len() >= LONG;
        self.checking.insert(self.last, Checking { step, name: name.clone(), part, is_long });
        let source = SOURCE.to_owned();
        Call::new(self.last, name, configurable::Check { source, line: 1, text, number })
    }

    /// A token for the question what a program understands.
    pub(crate) fn describe(&mut self, name: &str) -> u64 {
        self.last += 1;
        self.describing.insert(self.last, name.to_owned());
        self.last
    }

    /// A token for a call of which only the failure matters.
    pub(crate) fn unanswered(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Whose newest configuration this token is of.
    fn take_configuring(&mut self, token: u64) -> Option<(String, Configuring)> {
        let (name, _) = self.configuring.iter().find(|(_, newest)| newest.token == token)?;
        let name = name.clone();
        self.configuring.remove_entry(&name)
    }

    /// What a component answers to its configuration does not count any more.
    pub(crate) fn expect_nothing(&mut self, name: &str) {
        self.configuring.remove(name);
        self.checked.remove(name);
    }

    /// A caller waits for the launcher's answer to a request.
    pub(crate) fn wait(&mut self, id: u64, called: Called) {
        self.waiting.insert(id, called);
    }

    /// Who waits for the launcher's answer to a request.
    pub(crate) fn take(&mut self, id: u64) -> Option<Called> {
        self.waiting.remove(&id)
    }

    /// The launcher has done what was asked.
    pub(crate) fn done(&mut self, id: u64, out: &mut Vec<Output>) {
        if let Some(called) = self.waiting.remove(&id) {
            out.push(called.answer(Ok(())));
        }
    }

    /// The launcher has refused what a caller asked for; `false` if it was nobody's.
    pub(crate) fn failed(&mut self, id: u64, error: &str, out: &mut Vec<Output>) -> bool {
        let called = self.waiting.remove(&id);
        let found = called.is_some();
        out.extend(called.map(|called| called.fail(XrlError::failed(error))));
        found
    }
}

impl Manager {
    /// Tells the Finder which processes there are and what they may call.
    pub(crate) fn say_who_there_is(&mut self, out: &mut Vec<Output>) {
        if !self.registered {
            return;
        }
        let processes = self
            .wanted()
            .into_iter()
            .filter_map(|class| {
                let secret = self.instances.get(&class.name)?.secret;
                Some(finder::Process {
                    instance: class.name.clone().into_owned(),
                    class: class.name.into_owned(),
                    secret: Binary(secret.to_vec()),
                    access: class.access.into_owned(),
                })
            })
            .collect();
        self.calls.last += 1;
        let request = finder::SetProcesses { processes };
        out.push(Call::new(self.calls.last, FINDER, request).into());
    }

    /// Tells the Finder who may call besides root and the user that runs the node.
    pub(crate) fn say_who_may_call(&mut self, out: &mut Vec<Output>) {
        if !self.registered {
            return;
        }
        self.calls.last += 1;
        let operators = self.commits.operators().clone();
        out.push(Call::new(self.calls.last, FINDER, operators).into());
        self.say_whose_keys(out);
    }

    /// Tells the gateway, if there is one, whose keys to accept.
    fn say_whose_keys(&mut self, out: &mut Vec<Output>) {
        if !self.instances.get(GATEWAY).is_some_and(|gateway| gateway.registered) {
            return;
        }
        self.calls.last += 1;
        let remote = self.commits.operators().remote.iter().flatten();
        let keys = remote.map(|operator| operator.key.clone()).collect();
        out.push(Call::new(self.calls.last, GATEWAY, gateway::Accept { keys }).into());
    }

    /// Asks whether the operator is still there who edited when the manager before this one ended.
    pub(crate) fn find_operator(&mut self, out: &mut Vec<Output>) {
        let Some(session) = self.commits.take_absent() else { return };
        self.calls.last += 1;
        self.calls.finding = Some((self.calls.last, session));
        out.push(Call::new(self.calls.last, FINDER, finder::Session { session }).into());
    }

    /// A component is there: gives it its configuration.
    pub(crate) fn born(&mut self, name: &str, out: &mut Vec<Output>) {
        let Some(one) = self.instances.get_mut(name) else { return };
        one.registered = true;
        self.calls.checked.remove(name);
        self.forget_log_level(name);
        self.say_log_level(name, out);
        self.ask_for_schema(name, out);
        if name == GATEWAY {
            self.say_whose_keys(out);
        }
        self.configure(name, out);
    }

    /// Gives a component its statement, if it has one.
    pub(crate) fn configure(&mut self, name: &str, out: &mut Vec<Output>) {
        let token = self.calls.last + 1;
        let checked = self.calls.checked.remove(name);
        let same = checked
            .filter(|one| self.commits.part(name).is_some_and(|part| part.is_copy_of(&one.part)));
        let named = same.is_some();
        let call = match same {
            Some(Checked { number, .. }) => {
                Some(Call::new(token, name.to_owned(), checked::Take { number }))
            }
            None => self.configure_call(token, name),
        };
        let (Some(call), Some(one)) = (call, self.instances.get_mut(name)) else { return };
        one.configured = Configured::Asked;
        self.calls.last = token;
        self.calls.configuring.insert(name.to_owned(), Configuring { token, named });
        out.push(call.into());
    }

    pub(crate) fn replied(
        &mut self,
        now: Instant,
        token: u64,
        result: Result<Reply, XrlError>,
        out: &mut Vec<Output>,
    ) {
        if let Some((_, session)) = self.calls.finding.take_if(|(finding, _)| *finding == token) {
            let present = result.and_then(Reply::read::<finder::Session>);
            if !present.is_ok_and(|reply| reply.present) {
                self.operator_left(now, session, out);
            }
        } else if let Some((name, Configuring { named, .. })) = self.calls.take_configuring(token) {
            match result {
                // It does not have it any more, or never keeps any.
                Err(error) if named && error.code != ErrorCode::CommandFailed => {
                    self.configure(&name, out);
                }
                result => self.configured(now, &name, result, out),
            }
        } else if let Some(name) = self.calls.describing.remove(&token) {
            self.schema_told(now, &name, result, out);
        } else if let Some(checking) = self.calls.checking.remove(&token) {
            let Checking { step, name, part, is_long } = checking;
            let result = result.map(drop).map_err(|error| match error.code {
                ErrorCode::CommandFailed => self.reason(&name, &part, &error.note),
                _ => error.note.into(),
            });
            if is_long && result.is_ok() {
                self.calls.checked.insert(name, Checked { number: token, part });
            }
            self.tell_configuration(now, Event::Answer { step, result }, out);
        } else if let Err(error) = result {
            report(out, Level::Warning, format!("a call failed: {error}"));
        }
    }

    fn configured(
        &mut self,
        now: Instant,
        name: &str,
        result: Result<Reply, XrlError>,
        out: &mut Vec<Output>,
    ) {
        let refused = match &result {
            Err(error) if error.code == ErrorCode::CommandFailed => {
                let part = self.commits.part(name).cloned().unwrap_or_default();
                Some(self.reason(name, &part, &error.note))
            }
            _ => None,
        };
        let Some(one) = self.instances.get_mut(name) else { return };
        let result = match (result, refused) {
            (Ok(_), _) => {
                if one.configured != Configured::Yes {
                    report(out, Level::Info, format!("{name} runs"));
                }
                one.configured = Configured::Yes;
                one.trouble.clear();
                Ok(())
            }
            (Err(_), Some(reason)) => {
                one.configured = Configured::Refused;
                one.trouble = reason.to_string();
                let line = format!("{name} does not take its configuration:\n{reason}");
                report(out, Level::Error, line);
                Err(reason)
            }
            (Err(error), None) => {
                // It is gone, or stuck; when it is back it is configured again.
                one.configured = Configured::No;
                report(out, Level::Warning, format!("{name} was not configured: {error}"));
                Err(error.note.into())
            }
        };
        if result.is_ok() {
            self.ask_again_for_schema(name, out);
        }
        self.changed(now, name, result, out);
    }

    pub(crate) fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        match called.read::<interface::Call>() {
            Ok(interface::Call::Processes(_)) => self.ask_for_usage(called, out),
            Ok(interface::Call::Signal(request)) => self.signal(called, &request, out),
            Ok(interface::Call::Keep(request)) => self.keep(called, request, out),
            Ok(interface::Call::Release(request)) => self.release(called, &request, out),
            Ok(call) => self.edit(now, called, call, out),
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// Has the launcher keep a descriptor for a process.
    fn keep(&mut self, called: Called, request: interface::Keep, out: &mut Vec<Output>) {
        match self.kept_name(&called, &request.name) {
            Ok((name, instance)) => {
                let command = Command::Keep { name, instance: Some(instance) };
                let id = self.ask_with(command, vec![request.descriptor], out);
                self.calls.waiting.insert(id, called);
            }
            Err(error) => out.push(called.fail(error)),
        }
    }

    fn release(&mut self, called: Called, request: &interface::Release, out: &mut Vec<Output>) {
        match self.kept_name(&called, &request.name) {
            Ok((name, _)) => {
                let id = self.ask(Command::Drop { name }, out);
                self.calls.waiting.insert(id, called);
            }
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// What the launcher calls something that a process calls `name`, and the process. What one process
    /// has kept, no other one can name.
    fn kept_name(&self, called: &Called, name: &str) -> Result<(Name, Name), XrlError> {
        let caller = &*called.caller;
        if !self.instances.contains(caller) {
            let note = format!("descriptors are kept for processes of this node; {caller} is none");
            return Err(XrlError::failed(note));
        }
        let class = self.wanted().into_iter().find(|class| *class.name == *caller);
        if class.is_some_and(|class| class.program == Some(ProgramKind::Application)) {
            let note =
                format!("{caller} attaches by flows, and is therefore handed no descriptors");
            return Err(XrlError::failed(note));
        }
        // So the last separator is ours, whatever the caller's name is.
        let name: Name = name.parse().map_err(XrlError::bad_args)?;
        if name.as_str().contains(KEPT) {
            let note = format!("`{name}` has `{KEPT}` in it: leave one out");
            return Err(XrlError::bad_args(note));
        }
        let kept = format!("{caller}{KEPT}{name}").parse().map_err(XrlError::bad_args)?;
        Ok((kept, caller.parse().map_err(XrlError::bad_args)?))
    }

    fn signal(&mut self, called: Called, request: &interface::Signal, out: &mut Vec<Output>) {
        let number = i32::try_from(request.number).unwrap_or(0);
        match request.instance.parse() {
            Ok(instance) => {
                let id = self.ask(Command::Signal { instance, number }, out);
                self.calls.waiting.insert(id, called);
            }
            Err(error) => out.push(called.fail(XrlError::bad_args(error))),
        }
    }
}
