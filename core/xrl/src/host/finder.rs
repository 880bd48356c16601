//! The connection with the Finder.
//!
//! It is made again whenever it ends, and everything registered again: the Finder may have been
//! restarted, and knows nothing then. Components that are watched and were known before are given some
//! time to register again before they count as dead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::{ChannelId, Instant, Message, Token};
use weft_runtime::{Action, ChannelAddress, Level};

use super::members::Member;
use super::targets::{MethodKey, Resolution, WINDOW, address_text};
use super::{Caller, Host, Identity, Now, gateway, members};
use crate::codec::{Arguments, Decoder};
use crate::component::{Call, Encoded, Input, Method, Reply};
use crate::finder as interface;
use crate::finder_client as client;
use crate::frame::{Credential, FIRST_ARGUMENTS, Frame, Key, PROTOCOL, fits};
use crate::interface::{Calls, Interface, Request};
use crate::monitor;
use crate::outgoing::{Outgoing, Ready};
use crate::signature::{Signature, find_method};
use crate::{DEFAULT_TIMEOUT, ErrorCode, XrlError};

pub(super) const TOKEN: Token = Token(1);

/// First and longest time between attempts to reach the Finder.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(320));
/// How long components may take to register again after the Finder came back.
const GRACE: Duration = Duration::from_secs(3);
/// When a refused registration is tried again.
const REGISTER_AGAIN: Duration = Duration::from_millis(500);

/// The interfaces of the Finder.
const INTERFACES: [&Interface; 2] = [&interface::INTERFACE, &monitor::INTERFACE];

/// What this process calls a method of the Finder on its connection.
fn slot_of(known: &'static Interface, method: u16) -> u16 {
    match std::ptr::eq(known, &raw const monitor::INTERFACE) {
        // An interface has at most 4,096 methods.
        true => interface::INTERFACE.methods.len() as u16 + method,
        false => method,
    }
}

#[derive(Default)]
pub(super) struct Finder {
    link: Link,
    /// How long to wait before the next attempt.
    patience: Duration,
    outgoing: Outgoing<Asked>,
    /// What the Finder calls our methods.
    names: BTreeMap<u16, u16>,
    watches: BTreeSet<(usize, Option<String>)>,
    /// Who is there, of the classes that are watched.
    alive: BTreeMap<(String, String), Option<u32>>,
    /// Who was there before the Finder came back, and until when it may be silent.
    unconfirmed: BTreeMap<(String, String), Option<u32>>,
    confirm_by: Option<Instant>,
    register_again: Option<Instant>,
    /// What was last reported, so that it is not said again and again.
    said: String,
}

#[derive(Default)]
enum Link {
    #[default]
    Off,
    Waiting(Instant),
    Connecting,
    Up(ChannelId),
}

/// A call to the Finder.
#[derive(Debug)]
enum Asked {
    Register(usize),
    Resolve {
        target: String,
        key: MethodKey,
        path: String,
    },
    Watch,
    /// A member's own call.
    Direct {
        caller: Caller,
        signature: Option<Signature>,
    },
}

impl Finder {
    pub(super) fn connect(&mut self, address: ChannelAddress, now: &mut Now<'_>) {
        self.link = Link::Connecting;
        now.out.push(Action::Connect { token: members::own_token(TOKEN), address });
    }

    /// Whether it is time to connect.
    pub(super) fn is_due(&self, time: Instant) -> bool {
        matches!(self.link, Link::Waiting(until) if until <= time)
    }

    /// The Finder cannot be reached.
    pub(super) fn failed(&mut self, now: &mut Now<'_>, error: &str) {
        self.patience = (self.patience * 2).clamp(RETRY.0, RETRY.1);
        self.link = Link::Waiting(now.time + self.patience);
        self.say(now, Level::Debug, format!("the Finder cannot be reached: {error}"));
    }

    fn say(&mut self, now: &mut Now<'_>, level: Level, line: String) {
        if self.said != line {
            now.report(level, line.clone());
            self.said = line;
        }
    }

    pub(super) fn set_congested(&mut self, congested: bool, now: &mut Now<'_>) {
        self.outgoing.set_congested(congested);
        self.flush(now);
    }

    fn flush(&mut self, now: &mut Now<'_>) {
        if let Link::Up(channel) = self.link {
            let send = |message| now.out.push(Action::Send { channel, message });
            self.outgoing.flush(now.time, send);
        }
    }

    fn ask<R: Request>(&mut self, request: R, asked: Asked, time: Instant) {
        let Encoded { args, handles } = Encoded::new(request);
        let deadline = time + DEFAULT_TIMEOUT;
        let slot = R::METHOD;
        self.outgoing.push(Ready { slot, args, handles, text: false, deadline, owner: asked });
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let retry = match self.link {
            Link::Waiting(until) => Some(until),
            _ => None,
        };
        let times = [retry, self.confirm_by, self.register_again, self.outgoing.deadline()];
        times.into_iter().flatten().min()
    }
}

impl Host {
    pub(super) fn finder_connected(&mut self, channel: ChannelId, now: &mut Now<'_>) {
        let finder = &mut self.finder;
        finder.link = Link::Up(channel);
        finder.said.clear();
        finder.names.clear();
        let credential = match self.settings.credential {
            Identity::Secret(secret) => Credential::Secret(secret),
            Identity::User | Identity::Later => Credential::None,
        };
        if super::gateway(&self.settings).is_some() {
            now.send(channel, Frame::Via { target: crate::FINDER.to_owned() }.emit());
        }
        let hello = Frame::Hello { version: PROTOCOL, window: WINDOW, credential };
        now.send(channel, hello.emit());
        for known in INTERFACES {
            for method in 0..known.methods.len() as u16 {
                let (slot, path) = (slot_of(known, method), known.path_of(method));
                now.send(channel, Frame::Name { slot, path }.emit());
            }
        }
        finder.unconfirmed.append(&mut finder.alive);
        let watches: BTreeSet<_> = finder.watches.iter().map(|(_, class)| class.clone()).collect();
        for class in watches {
            finder.ask(interface::Watch { class }, Asked::Watch, now.time);
        }
        for index in 0..self.members.len() {
            self.register(index, now);
        }
        self.resolve_waiting(now);
        self.finder.flush(now);
    }

    /// Registers a member; a tool, which has no class, is not known to the Finder, and nobody is beyond a gateway,
    /// through which nobody could call back.
    fn register(&mut self, index: usize, now: &mut Now<'_>) {
        let Some((_, member)) = self.members.iter().nth(index) else { return };
        if member.class.is_empty() || gateway(&self.settings).is_some() {
            return;
        }
        let address = self.settings.listen.as_ref().and_then(address_text);
        let request = interface::Register {
            class: member.class.clone(),
            instance: member.instance.to_string(),
            sole: member.sole,
            address: address.unwrap_or_default(),
            interfaces: member.interfaces.iter().map(|one| one.text.to_owned()).collect(),
        };
        self.finder.ask(request, Asked::Register(index), now.time);
    }

    /// Asks the Finder for what has to be resolved.
    pub(super) fn resolve_waiting(&mut self, now: &mut Now<'_>) {
        if !matches!(self.finder.link, Link::Up(_)) {
            return;
        }
        for (target, key, path) in self.targets.take_wanted() {
            let request = interface::Resolve { target: target.clone(), method: path.clone() };
            self.finder.ask(request, Asked::Resolve { target, key, path }, now.time);
        }
        self.finder.flush(now);
    }

    pub(super) fn watch(&mut self, member: usize, class: Option<String>, now: &mut Now<'_>) {
        let asked = self.finder.watches.iter().any(|(_, other)| *other == class);
        self.finder.watches.insert((member, class.clone()));
        if asked {
            let alive = self.finder.alive.keys();
            for (of, instance) in alive.filter(|(of, _)| class.as_ref().is_none_or(|one| one == of))
            {
                let born = Input::Born { class: of.clone(), instance: instance.clone() };
                self.inputs.push_back((member, born));
            }
        } else if matches!(self.finder.link, Link::Up(_)) {
            self.finder.ask(interface::Watch { class }, Asked::Watch, now.time);
            self.finder.flush(now);
        }
    }

    /// A member calls the Finder itself.
    pub(super) fn call_finder(
        &mut self,
        caller: Caller,
        call: Call,
        now: &mut Now<'_>,
    ) -> Result<(), XrlError> {
        let Call { method, arguments, timeout, .. } = call;
        let (slot, arguments, signature) = match method {
            Method::Known(known, number) => (slot_of(known, number), arguments, None),
            Method::Path(path) => {
                let (known, number) = find_method(&INTERFACES, &path)?;
                let signature = self.signatures.of(known, number);
                let signature = signature.ok_or_else(|| {
                    XrlError::new(ErrorCode::InternalError, "the Finder's interface is broken")
                })?;
                let arguments = signature.arguments_from_text(arguments.args.bytes())?;
                (slot_of(known, number), arguments, Some(signature))
            }
        };
        let Encoded { args, handles } = arguments;
        fits(&args, FIRST_ARGUMENTS)?;
        let owner = Asked::Direct { caller, signature };
        let deadline = now.time + timeout;
        self.finder.outgoing.push(Ready { slot, args, handles, text: false, deadline, owner });
        self.finder.flush(now);
        Ok(())
    }

    pub(super) fn finder_closed(&mut self, now: &mut Now<'_>) {
        let (sent, unsent) = self.finder.outgoing.abandon();
        self.finder.outgoing = Outgoing::default();
        for asked in sent.into_iter().chain(unsent.into_iter().map(|call| call.owner)) {
            match asked {
                Asked::Resolve { target, key, path } => self.targets.want_again(target, key, path),
                Asked::Direct { caller, .. } => {
                    let note = "the Finder is gone; whether it carried the call out is not known";
                    self.replied(caller, Err(XrlError::new(ErrorCode::NoFinder, note)), now);
                }
                // They are made again when it is back.
                Asked::Register(_) | Asked::Watch => {}
            }
        }
        self.finder.failed(now, "the connection was closed");
    }

    /// Gives up what took too long, and those who did not come back.
    pub(super) fn finder_expire(&mut self, now: &mut Now<'_>) {
        let mut expired = Vec::new();
        self.finder.outgoing.expire(now.time, &mut expired);
        let late = XrlError::new(ErrorCode::NoFinder, "the Finder did not answer in time");
        for asked in expired {
            self.asked(asked, Err(late.clone()), now);
        }
        if self.finder.register_again.is_some_and(|time| time <= now.time) {
            self.finder.register_again = None;
            if matches!(self.finder.link, Link::Up(_)) {
                (0..self.members.len()).for_each(|index| self.register(index, now));
                self.finder.flush(now);
            }
        }
        if self.finder.confirm_by.is_some_and(|time| time <= now.time) {
            self.finder.confirm_by = None;
            for (class, instance) in std::mem::take(&mut self.finder.unconfirmed).into_keys() {
                self.tell_watchers(&class, || Input::Died {
                    class: class.clone(),
                    instance: instance.clone(),
                });
            }
        }
    }

    pub(super) fn finder_messages(&mut self, messages: Vec<Message>, now: &mut Now<'_>) {
        let Link::Up(channel) = self.finder.link else { return };
        for Message { mut buffer, handles } in messages {
            let frame = match Frame::parse(&mut buffer) {
                Ok(frame) => frame,
                Err(error) => {
                    now.report(Level::Error, format!("the Finder sent something else: {error}"));
                    self.channels.remove(&channel);
                    now.out.push(Action::Close { channel });
                    self.finder_closed(now);
                    return;
                }
            };
            self.finder_frame(channel, frame, Encoded { args: buffer, handles }, now);
        }
        self.finder.flush(now);
    }

    fn finder_frame(
        &mut self,
        channel: ChannelId,
        frame: Frame,
        arguments: Encoded,
        now: &mut Now<'_>,
    ) {
        match frame {
            Frame::Welcome { window, .. } => {
                self.finder.patience = Duration::ZERO;
                self.finder.outgoing.set_window(window);
                // Before, it was perhaps only its socket that was there.
                if !self.finder.unconfirmed.is_empty() {
                    self.finder.confirm_by = Some(now.time + GRACE);
                }
                self.served.forget_absent();
                let is_beyond = gateway(&self.settings).is_some();
                let is_tool = |member: &Member| is_beyond || member.class.is_empty();
                let tools = self.members.iter().filter(|(_, member)| is_tool(member));
                self.inputs.extend(tools.map(|(index, _)| (index, Input::Registered)));
            }
            Frame::Reply { id, .. } => {
                if let Some(asked) = self.finder.outgoing.answered(id) {
                    self.asked(asked, Ok(arguments), now);
                }
            }
            Frame::Failed { id, error } => {
                if let Some(asked) = self.finder.outgoing.answered(id) {
                    self.asked(asked, Err(error), now);
                }
            }
            // The manager will have said soon who may do what.
            Frame::Goodbye(error) if error.code == ErrorCode::SendFailedTransient => {}
            Frame::Goodbye(error) => {
                let line = format!("the Finder refuses this process: {error}");
                self.finder.say(now, Level::Error, line);
                (0..self.members.len()).for_each(|index| {
                    self.inputs.push_back((index, Input::NotRegistered(error.note.clone())));
                });
            }
            Frame::Name { slot, path } => {
                if let Ok((_, number)) = find_method(&[&client::INTERFACE], &path) {
                    self.finder.names.insert(slot, number);
                }
            }
            Frame::Call { slot, id, .. } => {
                let result = self.finder_calls(slot, arguments, now);
                let answer = match result {
                    Ok(()) => Frame::Reply { id, text: false },
                    Err(error) => Frame::Failed { id, error },
                };
                now.send(channel, answer.emit());
            }
            Frame::Hello { .. } | Frame::Bind { .. } | Frame::Via { .. } => {}
        }
    }

    /// What the Finder asks of this process.
    fn finder_calls(
        &mut self,
        slot: u16,
        arguments: Encoded,
        now: &mut Now<'_>,
    ) -> Result<(), XrlError> {
        let method = self.finder.names.get(&slot).copied().unwrap_or(u16::MAX);
        let mut from = Decoder::new(arguments.args.bytes(), arguments.handles);
        match client::Call::decode(method, &mut from)? {
            client::Call::Grant(grant) => {
                let members = &self.members;
                let member = members.find(&grant.instance).ok_or_else(|| {
                    let note = format!("there is no component {} here", grant.instance);
                    XrlError::new(ErrorCode::ResolveFailed, note)
                })?;
                let interfaces = members.interfaces(member);
                self.served.grant(grant, member, &interfaces, &mut self.signatures)?;
            }
            client::Call::Revoke(revoke) => {
                let (session, removed) = (revoke.session, revoke.removed == Some(true));
                let channels = self.served.revoke(session);
                let has_none = channels.is_empty();
                for channel in channels {
                    self.caller_left(channel);
                    self.channels.remove(&channel);
                    now.out.push(Action::Close { channel });
                }
                // Where it has called nobody, a member may know it from the process before, or from a connection that has
                // ended already. That it will not come back is the last that is said of it.
                if has_none || removed {
                    let left = |member| (member, Input::Left { session, removed });
                    self.inputs.extend((0..self.members.len()).map(left));
                }
            }
            client::Call::Forget(forget) => {
                let (over, channels) = self.targets.forget(&forget.instance);
                for channel in channels {
                    self.channels.remove(&channel);
                    now.out.push(Action::Close { channel });
                }
                self.settle(over, now);
                self.resolve_waiting(now);
            }
            client::Call::Birth(birth) => self.born(birth.class, birth.instance, birth.process),
            client::Call::Death(death) => self.died(death.class, death.instance),
        }
        Ok(())
    }

    fn born(&mut self, class: String, instance: String, process: Option<u32>) {
        let one = (class.clone(), instance.clone());
        let before = self.finder.unconfirmed.remove(&one);
        let was_there = self.finder.alive.insert(one, process).is_some();
        // A process that came while there was no Finder does not know what its predecessor knew.
        if before.is_some_and(|before| before != process) {
            self.tell_of_death(&class, &instance);
        }
        if !was_there && before != Some(process) {
            self.tell_watchers(&class, || Input::Born {
                class: class.clone(),
                instance: instance.clone(),
            });
        }
    }

    fn died(&mut self, class: String, instance: String) {
        if self.finder.alive.remove(&(class.clone(), instance.clone())).is_some() {
            self.tell_of_death(&class, &instance);
        }
    }

    fn tell_of_death(&mut self, class: &str, instance: &str) {
        let (of, name) = (class.to_owned(), instance.to_owned());
        self.tell_watchers(class, || Input::Died { class: of.clone(), instance: name.clone() });
    }

    fn tell_watchers(&mut self, class: &str, input: impl Fn() -> Input) {
        let watching = |one: &Option<String>| one.as_ref().is_none_or(|watched| watched == class);
        let members: BTreeSet<usize> = self
            .finder
            .watches
            .iter()
            .filter(|(_, one)| watching(one))
            .map(|(member, _)| *member)
            .collect();
        self.inputs.extend(members.into_iter().map(|member| (member, input())));
    }

    /// The Finder has answered.
    fn asked(&mut self, asked: Asked, result: Result<Encoded, XrlError>, now: &mut Now<'_>) {
        match asked {
            Asked::Register(index) => match result {
                Ok(_) => self.inputs.push_back((index, Input::Registered)),
                Err(error) => {
                    let name = self.members.instance(index);
                    let line = format!("the Finder does not register {name}: {error}");
                    self.finder.say(now, Level::Warning, line);
                    self.inputs.push_back((index, Input::NotRegistered(error.note)));
                    self.finder.register_again = Some(now.time + REGISTER_AGAIN);
                }
            },
            Asked::Resolve { target, key, .. } => {
                let over = match result.and_then(resolution) {
                    Ok(answer) => self.targets.resolved(&target, key, answer, now),
                    Err(error) => self.targets.unresolved(&target, &key, &error),
                };
                self.settle(over, now);
            }
            Asked::Watch => {}
            Asked::Direct { caller, signature } => {
                let reply = result.and_then(|encoded| match signature {
                    Some(signature) => {
                        let text = signature.returns_to_text(encoded)?;
                        Ok(Reply::Text(String::from_utf8_lossy(text.bytes()).into_owned()))
                    }
                    None => Ok(Reply::Arguments(encoded)),
                });
                self.replied(caller, reply, now);
            }
        }
    }
}

fn resolution(encoded: Encoded) -> Result<Resolution, XrlError> {
    let mut from = Decoder::new(encoded.args.bytes(), encoded.handles);
    let reply = interface::ResolveReply::decode(&mut from)?;
    let key = |bytes: Vec<u8>| {
        Key::try_from(bytes)
            .map_err(|_| XrlError::new(ErrorCode::InternalError, "the Finder's key is no key"))
    };
    Ok(Resolution {
        instance: reply.instance,
        address: reply.address,
        ticket: key(reply.ticket.0)?,
        key: key(reply.key.0)?,
    })
}
