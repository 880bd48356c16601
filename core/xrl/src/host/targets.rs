//! The components elsewhere that members call.
//!
//! Calls to one target are sent in the order in which they were made, even if the first one's method
//! still has to be resolved. A target whose connection ends fails the calls that were sent and not
//! answered; those that were not sent are resolved anew.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use weft_base::{Buffer, ChannelId, Instant, Token};
use weft_runtime::{Action, ChannelAddress};

use super::{Caller, Now, members};
use crate::component::{Call, Encoded, Method, Reply};
use crate::frame::{Credential, Frame, Key, LONGEST_ARGUMENTS, PROTOCOL, fits};
use crate::outgoing::{Outgoing, Ready};
use crate::signature::{Signature, Signatures};
use crate::{ErrorCode, XrlError};

/// The most calls that wait for one target.
const MOST_WAITING: usize = 1 << 16;
/// How many calls the host takes at a time from one connection.
pub(super) const WINDOW: u32 = 1024;

/// A method as a key of tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum MethodKey {
    Known(&'static str, weft_xif::Version, u16),
    Path(String),
}

#[derive(Default)]
pub(super) struct Targets {
    all: BTreeMap<String, Target>,
    channels: BTreeMap<ChannelId, String>,
    connecting: BTreeMap<Token, String>,
    last_token: u32,
    /// Where everything is reached, if this process is on another machine than its node.
    gateway: Option<ChannelAddress>,
    /// Methods that have to be resolved: the target, the method and its path.
    wanted: Vec<(String, MethodKey, String)>,
}

#[derive(Default)]
struct Target {
    waiting: VecDeque<Waiting>,
    routes: BTreeMap<MethodKey, Route>,
    link: Link,
    /// The instance that answers, once it is resolved.
    instance: String,
    /// Whether it wants arguments as text.
    text: bool,
    /// What is to be bound when it is connected.
    binds: Vec<(u16, Key)>,
    last_slot: u16,
    outgoing: Outgoing<Sent>,
}

#[derive(Default)]
enum Link {
    #[default]
    None,
    /// The ticket to show, and the connection that is being made.
    Connecting(Key, Token),
    Up(ChannelId),
}

#[derive(Clone, Copy)]
enum Route {
    /// The Finder is asked for it, or will be.
    Wanted,
    Bound(u16),
}

struct Waiting {
    caller: Caller,
    key: MethodKey,
    method: Method,
    arguments: Encoded,
    deadline: Instant,
}

/// A call that was sent.
#[derive(Debug)]
struct Sent {
    caller: Caller,
    reply: ReplyForm,
}

/// What the caller wants its reply as.
#[derive(Debug)]
enum ReplyForm {
    AsItIs,
    /// It called in text.
    Text,
    /// The target answers in text, the caller wants arguments.
    FromText(Signature),
}

pub(super) type Over = Vec<(Caller, XrlError)>;

impl Targets {
    /// Of a process that reaches everything through this gateway, if there is one.
    pub(super) fn through(gateway: Option<ChannelAddress>) -> Self {
        Self { gateway, ..Self::default() }
    }

    /// Takes a call; returns calls that failed at once.
    pub(super) fn call(&mut self, caller: Caller, call: Call, now: &mut Now<'_>) -> Over {
        let Call { target: name, method, arguments, timeout, .. } = call;
        let key = match &method {
            Method::Known(one, number) => MethodKey::Known(one.name, one.version, *number),
            Method::Path(path) => MethodKey::Path(path.clone()),
        };
        if !self.all.contains_key(&*name) {
            self.all.insert(name.to_string(), Target::default());
        }
        let Some(target) = self.all.get_mut(&*name) else { return Vec::new() };
        if target.waiting.len() + target.outgoing.waiting() >= MOST_WAITING {
            let note = format!("{MOST_WAITING} calls wait for {name}");
            return vec![(caller, XrlError::new(ErrorCode::SendFailedTransient, note))];
        }
        if !target.routes.contains_key(&key) {
            target.routes.insert(key.clone(), Route::Wanted);
            let path = match &method {
                Method::Known(interface, number) => interface.path_of(*number),
                Method::Path(path) => path.clone(),
            };
            self.wanted.push((name.into_owned(), key.clone(), path));
        }
        let deadline = now.time + timeout;
        target.waiting.push_back(Waiting { caller, key, method, arguments, deadline });
        target.pump(now)
    }

    /// What has to be resolved, once.
    pub(super) fn take_wanted(&mut self) -> Vec<(String, MethodKey, String)> {
        std::mem::take(&mut self.wanted)
    }

    /// Something has to be resolved later, since the Finder is away.
    pub(super) fn want_again(&mut self, target: String, key: MethodKey, path: String) {
        self.wanted.push((target, key, path));
    }

    /// The Finder has resolved a method.
    pub(super) fn resolved(
        &mut self,
        name: &str,
        key: MethodKey,
        answer: Resolution,
        now: &mut Now<'_>,
    ) -> Over {
        let Some(target) = self.all.get_mut(name) else { return Vec::new() };
        let Some((text, address)) = parse_address(&answer.address) else {
            let note = format!("{name} is at `{}`, which is no address", answer.address);
            return target.fail_method(&key, &XrlError::new(ErrorCode::InternalError, note));
        };
        target.last_slot = target.last_slot.wrapping_add(1);
        let slot = target.last_slot;
        target.routes.insert(key, Route::Bound(slot));
        target.text = text;
        target.instance = answer.instance;
        match target.link {
            Link::Up(channel) => {
                now.send(channel, Frame::Bind { slot, key: answer.key }.emit());
            }
            Link::Connecting(..) => target.binds.push((slot, answer.key)),
            Link::None => {
                target.binds.push((slot, answer.key));
                self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
                // The lowest tokens are the host's own.
                let token = Token(self.last_token + 16);
                target.link = Link::Connecting(answer.ticket, token);
                self.connecting.insert(token, name.to_owned());
                // A path of the other machine means nothing here.
                let address = self.gateway.clone().unwrap_or(address);
                now.out.push(Action::Connect { token: members::own_token(token), address });
            }
        }
        target.pump(now)
    }

    /// The Finder did not resolve a method.
    pub(super) fn unresolved(&mut self, name: &str, key: &MethodKey, error: &XrlError) -> Over {
        self.all.get_mut(name).map_or(Vec::new(), |target| target.fail_method(key, error))
    }

    /// A connection is there; returns calls that failed, or `None` if nobody wants it any more.
    pub(super) fn connected(
        &mut self,
        token: Token,
        channel: ChannelId,
        now: &mut Now<'_>,
    ) -> Option<Over> {
        let name = self.connecting.remove(&token)?;
        let target = self.all.get_mut(&name)?;
        let ticket = target.link.ticket_of(token)?;
        if self.gateway.is_some() {
            now.send(channel, Frame::Via { target: target.instance.clone() }.emit());
        }
        let credential = Credential::Ticket(ticket);
        let hello = Frame::Hello { version: PROTOCOL, window: WINDOW, credential };
        now.send(channel, hello.emit());
        for (slot, key) in target.binds.drain(..) {
            now.send(channel, Frame::Bind { slot, key }.emit());
        }
        target.link = Link::Up(channel);
        self.channels.insert(channel, name);
        // What waited may be too long, or have no form as text.
        Some(target.pump(now))
    }

    /// A connection could not be made.
    pub(super) fn failed(&mut self, token: Token, error: &str) -> Over {
        let Some(name) = self.connecting.remove(&token) else { return Vec::new() };
        // Meanwhile it was forgotten, perhaps, and found again elsewhere.
        let its = |target: &Target| target.link.ticket_of(token).is_some();
        if !self.all.get(&name).is_some_and(its) {
            return Vec::new();
        }
        let Some(mut target) = self.all.remove(&name) else { return Vec::new() };
        let error = XrlError::new(ErrorCode::SendFailed, format!("{name}: {error}"));
        target.waiting.drain(..).map(|waiting| (waiting.caller, error.clone())).collect()
    }

    /// A connection is gone.
    pub(super) fn closed(&mut self, channel: ChannelId) -> Over {
        let Some(name) = self.channels.remove(&channel) else { return Vec::new() };
        self.lose(&name)
    }

    /// Forgets what is known of an instance; returns the connection to close.
    pub(super) fn forget(&mut self, instance: &str) -> (Over, Vec<ChannelId>) {
        let known = self.all.iter().filter(|(_, target)| target.instance == instance);
        let names: Vec<String> = known.map(|(name, _)| name.clone()).collect();
        let (mut over, mut channels) = (Vec::new(), Vec::new());
        for name in names {
            if let Some(Target { link: Link::Up(channel), .. }) = self.all.get(&name) {
                self.channels.remove(channel);
                channels.push(*channel);
            }
            over.extend(self.lose(&name));
        }
        (over, channels)
    }

    /// A target's connection is lost: what was sent fails, the rest is resolved anew.
    fn lose(&mut self, name: &str) -> Over {
        let Some(mut target) = self.all.remove(name) else { return Vec::new() };
        let (sent, unsent) = target.outgoing.abandon();
        let note = format!("{name} is gone; whether it carried the call out is not known");
        let error = XrlError::new(ErrorCode::SendFailed, note);
        let mut over: Over = sent.into_iter().map(|sent| (sent.caller, error.clone())).collect();
        // What the window held back had its form changed already, perhaps; it was not sent.
        let note = format!("{name} is gone before it took the call");
        let error = XrlError::new(ErrorCode::SendFailedTransient, note);
        over.extend(unsent.into_iter().map(|call| (call.owner.caller, error.clone())));
        if !target.waiting.is_empty() {
            let mut anew = Target::default();
            for waiting in target.waiting {
                if !anew.routes.contains_key(&waiting.key) {
                    anew.routes.insert(waiting.key.clone(), Route::Wanted);
                    let path = match &waiting.method {
                        Method::Known(interface, number) => interface.path_of(*number),
                        Method::Path(path) => path.clone(),
                    };
                    self.wanted.push((name.to_owned(), waiting.key.clone(), path));
                }
                anew.waiting.push_back(waiting);
            }
            self.all.insert(name.to_owned(), anew);
        }
        over
    }

    pub(super) fn set_congested(&mut self, channel: ChannelId, congested: bool, now: &mut Now<'_>) {
        if let Some(target) = self.channels.get(&channel).and_then(|name| self.all.get_mut(name)) {
            target.outgoing.set_congested(congested);
            target.outgoing.flush(now.time, |message| {
                now.out.push(Action::Send { channel, message });
            });
        }
    }

    /// A frame came from a target.
    pub(super) fn frame(
        &mut self,
        channel: ChannelId,
        frame: Frame,
        arguments: Encoded,
        now: &mut Now<'_>,
    ) -> Option<(Caller, Result<Reply, XrlError>)> {
        let target = self.all.get_mut(self.channels.get(&channel)?)?;
        let over = match frame {
            Frame::Welcome { window, .. } => {
                target.outgoing.set_window(window);
                None
            }
            Frame::Reply { id, text } => {
                let sent = target.outgoing.answered(id)?;
                Some((sent.caller, sent.reply.of(arguments, text)))
            }
            Frame::Failed { id, error } => {
                let sent = target.outgoing.answered(id)?;
                Some((sent.caller, Err(error)))
            }
            _ => None,
        };
        target.outgoing.flush(now.time, |message| now.out.push(Action::Send { channel, message }));
        over
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let deadline = |target: &Target| {
            let waiting = target.waiting.iter().map(|waiting| waiting.deadline);
            waiting.chain(target.outgoing.deadline()).min()
        };
        self.all.values().filter_map(deadline).min()
    }

    pub(super) fn expire(&mut self, now: Instant) -> Over {
        let late = || XrlError::new(ErrorCode::ReplyTimedOut, "no reply came in time");
        let unsent = |name: &str| {
            let note = format!("{name} could not be reached in time");
            XrlError::new(ErrorCode::NoFinder, note)
        };
        let mut over = Vec::new();
        for (name, target) in &mut self.all {
            let mut expired = Vec::new();
            target.outgoing.expire(now, &mut expired);
            over.extend(expired.into_iter().map(|sent| (sent.caller, late())));
            for waiting in take_if(&mut target.waiting, |waiting| waiting.deadline <= now) {
                over.push((waiting.caller, unsent(name)));
            }
        }
        over
    }
}

impl Link {
    /// The ticket for this connection, if it is the one that is being made.
    fn ticket_of(&self, token: Token) -> Option<Key> {
        match self {
            Self::Connecting(ticket, own) if *own == token => Some(*ticket),
            Self::None | Self::Connecting(..) | Self::Up(_) => None,
        }
    }
}

impl Target {
    /// Sends what waits, as far as its methods are known.
    fn pump(&mut self, now: &mut Now<'_>) -> Over {
        let mut over = Vec::new();
        let Link::Up(channel) = self.link else { return over };
        while let Some(waiting) = self.waiting.front() {
            let Some(Route::Bound(slot)) = self.routes.get(&waiting.key).copied() else { break };
            let Some(waiting) = self.waiting.pop_front() else { break };
            match waiting.ready(slot, self.text) {
                Ok(ready) => self.outgoing.push(ready),
                Err(failed) => over.push(failed),
            }
        }
        self.outgoing.flush(now.time, |message| now.out.push(Action::Send { channel, message }));
        over
    }

    /// A method is not there: fails the calls that wait for it.
    fn fail_method(&mut self, key: &MethodKey, error: &XrlError) -> Over {
        self.routes.remove(key);
        let failed = take_if(&mut self.waiting, |waiting| waiting.key == *key);
        failed.into_iter().map(|waiting| (waiting.caller, error.clone())).collect()
    }
}

/// Takes the calls for which something holds; the others stay in order.
fn take_if(waiting: &mut VecDeque<Waiting>, holds: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
    if !waiting.iter().any(&holds) {
        return Vec::new();
    }
    let (taken, kept) = std::mem::take(waiting).into_iter().partition(holds);
    *waiting = kept;
    let taken: VecDeque<_> = taken;
    taken.into()
}

impl Waiting {
    /// The call as it is sent, its arguments in the form that the target wants.
    fn ready(self, slot: u16, text: bool) -> Result<Ready<Sent>, (Caller, XrlError)> {
        let Self { caller, method, arguments, deadline, .. } = self;
        let Encoded { args, handles } = arguments;
        let (args, handles, text, reply) = match method {
            Method::Path(_) => (args, handles, true, ReplyForm::Text),
            Method::Known(..) if !text => (args, handles, false, ReplyForm::AsItIs),
            Method::Known(interface, number) => {
                let signature = Signatures::default().of(interface, number);
                let converted = signature
                    .ok_or_else(|| XrlError::new(ErrorCode::InternalError, "no such method"))
                    .and_then(|signature| {
                        let args = signature.arguments_to_text(Encoded { args, handles })?;
                        Ok((args, Vec::new(), true, ReplyForm::FromText(signature)))
                    });
                converted.map_err(|error| (caller, error))?
            }
        };
        fits(&args, LONGEST_ARGUMENTS).map_err(|error| (caller, error))?;
        Ok(Ready { slot, args, handles, text, deadline, owner: Sent { caller, reply } })
    }
}

impl ReplyForm {
    fn of(self, arguments: Encoded, text: bool) -> Result<Reply, XrlError> {
        let as_text = |args: &Buffer| String::from_utf8_lossy(args.bytes()).into_owned();
        match (self, text) {
            (Self::AsItIs, false) => Ok(Reply::Arguments(arguments)),
            (Self::Text, true) => Ok(Reply::Text(as_text(&arguments.args))),
            (Self::FromText(signature), true) => {
                signature.returns_from_text(arguments.args.bytes()).map(Reply::Arguments)
            }
            _ => Err(XrlError::new(ErrorCode::InternalError, "the reply has the wrong form")),
        }
    }
}

/// What the Finder says of a method.
pub(super) struct Resolution {
    pub(super) instance: String,
    pub(super) address: String,
    pub(super) ticket: Key,
    pub(super) key: Key,
}

/// An address as it is registered, and whether arguments go there as text.
fn parse_address(text: &str) -> Option<(bool, ChannelAddress)> {
    let (as_text, text) = match text.strip_prefix("text+") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let address = match text.split_once(':')? {
        ("unix", path) => ChannelAddress::Stream(PathBuf::from(path)),
        ("tcp", address) => ChannelAddress::Tcp(address.parse().ok()?),
        // Who is accepted there, this process was told with its own key.
        ("tls", address) => ChannelAddress::Tls { address: address.parse().ok()?, peer: None },
        _ => return None,
    };
    Some((as_text, address))
}

/// The text of an address that can be registered.
pub(super) fn address_text(address: &ChannelAddress) -> Option<String> {
    match address {
        ChannelAddress::Stream(path) => Some(format!("unix:{}", path.display())),
        ChannelAddress::Tcp(address) => Some(format!("tcp:{address}")),
        ChannelAddress::Tls { address, .. } => Some(format!("tls:{address}")),
        ChannelAddress::Packets(_) | ChannelAddress::Flow(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::Action;

    use super::*;

    /// The Finder says where the target is; the token of the connection that is begun.
    fn found(targets: &mut Targets, out: &mut Vec<Action>) -> Token {
        let mut now = Now { time: Instant::ZERO, out };
        for (target, key, _) in targets.take_wanted() {
            let address = "unix:/run/probe".to_owned();
            let resolution =
                Resolution { instance: target.clone(), address, ticket: [1; 16], key: [2; 16] };
            assert!(targets.resolved(&target, key, resolution, &mut now).is_empty());
        }
        let Some(Action::Connect { mut token, .. }) = out.pop() else { panic!("nobody connects") };
        members::take_owner(&mut token).1
    }

    #[test]
    fn a_connection_that_is_not_wanted_any_more_fails_nothing() {
        let (mut targets, mut out) = (Targets::default(), Vec::new());
        let xrl = "finder://probe/probe/1.0/zero".parse().unwrap();
        let caller = Caller { member: 0, token: 7 };
        let mut now = Now { time: Instant::ZERO, out: &mut out };
        assert!(targets.call(caller, Call::from_text(7, &xrl), &mut now).is_empty());
        let first = found(&mut targets, &mut out);
        // The target is another process now, and is resolved anew.
        assert!(targets.forget("probe").0.is_empty());
        let second = found(&mut targets, &mut out);
        assert!(targets.failed(first, "it is not there").is_empty());
        let mut now = Now { time: Instant::ZERO, out: &mut out };
        let over = targets.connected(second, ChannelId(1), &mut now);
        assert!(over.is_some_and(|over| over.is_empty()));
        let sent = out.iter().filter(|action| matches!(action, Action::Send { .. }));
        assert_eq!(sent.count(), 3, "hello, bind and the call");
    }
}
