//! What processes say to the Finder.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::{ChannelId, Instant, Message};
use weft_runtime::{Action, Level};
use weft_xrl::frame::{Frame, SECRET_LEN, Secret};
use weft_xrl::{
    Access, Binary, Calls, Decoder, Encoded, ErrorCode, Interface, Signature, XrlError, finder,
    finder_client, monitor,
};

use crate::clients::{Asked, Client, Identity, refuse};
use crate::tables::{Process, Target};
use crate::{Activity, Finder};

/// A call that came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) channel: ChannelId,
    id: u32,
    /// The method.
    pub(crate) method: (&'static Interface, u16),
    /// Whether it is in text.
    text: bool,
}

/// How long processes that are no more may take to say goodbye, which is longer than the launcher lets them live.
const GOODBYE: Duration = Duration::from_secs(3);
/// The longest name of a class or an instance, in bytes.
const LONGEST_NAME: usize = 64;
/// How many classes a process watches at most.
const MOST_WATCHES: usize = 64;
/// How many calls of the Finder may wait for a process that begins to watch a class. A node has 200 processes, so that
/// the births of as many classes as can be watched are less.
const MOST_WAITING: usize = 1 << 14;
/// What the Finder can be asked.
const INTERFACES: [&Interface; 2] = [&finder::INTERFACE, &monitor::INTERFACE];
/// The method of a number that was not given a name.
const NONE: (&Interface, u16) = (&finder::INTERFACE, u16::MAX);

/// The method that a path names.
fn method_of(path: &str) -> Option<(&'static Interface, u16)> {
    let methods = |interface: &'static Interface| {
        // An interface has at most 4,096 methods.
        (0..interface.methods.len() as u16).map(move |number| (interface, number))
    };
    let mut all = INTERFACES.into_iter().flat_map(methods);
    all.find(|(interface, number)| interface.path_of(*number) == path)
}

impl Finder {
    /// Takes a message of a process.
    pub(crate) fn message(
        &mut self,
        now: Instant,
        channel: ChannelId,
        message: Message,
        out: &mut Vec<Action>,
    ) {
        let Some(client) = self.clients.get_mut(channel) else { return };
        let Message { mut buffer, handles } = message;
        let done = match (Frame::parse(&mut buffer), client.identity.is_some()) {
            (Err(error), _) => Err(XrlError::new(ErrorCode::InternalError, error.to_string())),
            (Ok(Frame::Hello { version, window, credential }), false) => {
                self.hello(channel, version, window, credential, out)
            }
            (Ok(_), false) => {
                Err(XrlError::new(ErrorCode::InternalError, "the first message must be a hello"))
            }
            (Ok(frame), true) => {
                self.frame(now, channel, frame, Encoded { args: buffer, handles }, out)
            }
        };
        if let Err(error) = done {
            if error.code != ErrorCode::SendFailedTransient {
                self.counters.add(Activity::Refused, 1);
                let line = format!("the Finder refuses a connection: {error}");
                out.push(Action::Report { level: Level::Warning, line });
            }
            refuse(channel, error, out);
            self.gone(now, channel, out);
        }
    }

    fn frame(
        &mut self,
        now: Instant,
        channel: ChannelId,
        frame: Frame,
        arguments: Encoded,
        out: &mut Vec<Action>,
    ) -> Result<(), XrlError> {
        let Some(client) = self.clients.get_mut(channel) else { return Ok(()) };
        match frame {
            Frame::Name { slot, path } => {
                if client.slots.len() < 256
                    && let Some(method) = method_of(&path)
                {
                    client.slots.insert(slot, method);
                }
            }
            Frame::Call { slot, id, text, .. } => {
                let method = client.slots.get(&slot).copied().unwrap_or(NONE);
                self.call(now, Call { channel, id, method, text }, arguments, out);
            }
            Frame::Reply { id, .. } => {
                if let Some(asked) = client.outgoing.answered(id) {
                    self.asked(asked, Ok(()), out);
                }
            }
            Frame::Failed { id, error } => {
                if let Some(asked) = client.outgoing.answered(id) {
                    self.asked(asked, Err(error), out);
                }
            }
            Frame::Hello { .. }
            | Frame::Welcome { .. }
            | Frame::Bind { .. }
            | Frame::Via { .. }
            | Frame::Goodbye(_) => {
                return Err(XrlError::new(ErrorCode::InternalError, "an unexpected frame"));
            }
        }
        if let Some(client) = self.clients.get_mut(channel) {
            client.flush(now, channel, out);
        }
        Ok(())
    }

    fn call(&mut self, now: Instant, call: Call, arguments: Encoded, out: &mut Vec<Action>) {
        let arguments = match call.text {
            true => self
                .signature(call)
                .and_then(|signature| signature.arguments_from_text(arguments.args.bytes())),
            false => Ok(arguments),
        };
        let done = arguments.and_then(|Encoded { args, handles }| {
            let mut from = Decoder::new(args.bytes(), handles);
            let (interface, number) = call.method;
            if interface.name == monitor::INTERFACE.name {
                let request = monitor::Call::decode(number, &mut from)?;
                return self.watched(call, request, out);
            }
            let request = finder::Call::decode(number, &mut from)?;
            self.carry_out(now, call, request, out)
        });
        self.counters.add(Activity::Calls, 1);
        match done {
            Ok(Some(encoded)) => self.answer(call, Ok(encoded), out),
            // The answer comes when the target has taken the key.
            Ok(None) => {}
            Err(error) => {
                self.counters.add(Activity::Failures, 1);
                self.answer(call, Err(error), out);
            }
        }
    }

    /// In which ranges the arguments of a call must be, by class and instance of the target.
    pub(crate) fn limits(
        &self,
        who: &Identity,
        target: [&str; 2],
        method: &str,
    ) -> Result<String, XrlError> {
        let access = match who {
            Identity::Owner => return Ok(String::new()),
            Identity::Operator(_, access) | Identity::Remote(_, access) => Some(access),
            Identity::Process(own) => {
                let process = self.tables.processes.as_ref().and_then(|all| all.get(own));
                process.map(|process| &process.access)
            }
        };
        let limits = access.and_then(|access| access.limits(target, method));
        limits.map(str::to_owned).ok_or_else(|| {
            let note = format!("{} may not call {method} of {}", who.name(), target[1]);
            XrlError::new(ErrorCode::ResolveFailed, note)
        })
    }

    fn signature(&mut self, call: Call) -> Result<Signature, XrlError> {
        let (interface, number) = call.method;
        self.signatures.of(interface, number).ok_or_else(|| {
            let note = "the method was not named on this connection";
            XrlError::new(ErrorCode::NoSuchMethod, note)
        })
    }

    pub(crate) fn answer(
        &mut self,
        call: Call,
        result: Result<Encoded, XrlError>,
        out: &mut Vec<Action>,
    ) {
        let Call { channel, id, text, .. } = call;
        let result = result.and_then(|encoded| match text {
            true => self.signature(call)?.returns_to_text(encoded).map(Encoded::from),
            false => Ok(encoded),
        });
        let message = match result {
            Ok(Encoded { args, handles }) => Frame::Reply { id, text }.emit_with(args, handles),
            Err(error) => Frame::Failed { id, error }.emit(),
        };
        out.push(Action::Send { channel, message });
    }

    fn carry_out(
        &mut self,
        now: Instant,
        call: Call,
        request: finder::Call,
        out: &mut Vec<Action>,
    ) -> Result<Option<Encoded>, XrlError> {
        let channel = call.channel;
        let reply = match request {
            finder::Call::Register(request) => {
                Encoded::new(self.register(now, channel, request, out)?)
            }
            finder::Call::Unregister(finder::Unregister { instance }) => {
                if !self.tables.of_channel(channel).contains(&instance) {
                    let note = format!("{instance} was not registered by this process");
                    return Err(XrlError::failed(note));
                }
                self.unregister(now, &instance, out);
                Encoded::default()
            }
            finder::Call::Resolve(request) => {
                self.resolve(now, call, request, out)?;
                return Ok(None);
            }
            finder::Call::Targets(_) => {
                Encoded::new(finder::TargetsReply { targets: self.targets() })
            }
            finder::Call::Interfaces(finder::Interfaces { target }) => {
                Encoded::new(self.interfaces(target)?)
            }
            finder::Call::Watch(finder::Watch { class }) => {
                return self.watch(now, channel, class, out);
            }
            finder::Call::Unwatch(finder::Unwatch { class }) => {
                if let Some(client) = self.clients.get_mut(channel) {
                    client.watches.remove(&class);
                }
                Encoded::default()
            }
            finder::Call::SetOperators(request) => {
                self.set_operators(now, channel, request, out)?;
                Encoded::default()
            }
            finder::Call::SetProcesses(finder::SetProcesses { processes }) => {
                self.set_processes(now, channel, processes, out)?;
                Encoded::default()
            }
            finder::Call::Session(finder::Session { session }) => {
                Encoded::new(self.session(channel, session)?)
            }
        };
        Ok(Some(reply))
    }

    pub(crate) fn identity(&self, channel: ChannelId) -> Result<Identity, XrlError> {
        let client = self.clients.get(channel);
        client
            .and_then(|client| client.identity.clone())
            .ok_or_else(|| XrlError::failed("the connection is gone"))
    }

    fn register(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: finder::Register,
        out: &mut Vec<Action>,
    ) -> Result<finder::RegisterReply, XrlError> {
        let finder::Register { class, instance, sole, address, interfaces } = request;
        match self.identity(channel)? {
            Identity::Process(own) => {
                let process = self.tables.processes.as_ref().and_then(|all| all.get(&own));
                if own != instance || process.is_none_or(|process| process.class != class) {
                    let note = format!("{own} may register itself only, not {instance} as {class}");
                    return Err(XrlError::failed(note));
                }
            }
            Identity::Operator(_, access) if access != Access::everything() => {
                let note =
                    format!("who may not call everything may not register {instance} either");
                return Err(XrlError::failed(note));
            }
            Identity::Remote(..) => {
                let note = format!("{instance} is not on this machine, so nobody could call it");
                return Err(XrlError::failed(note));
            }
            Identity::Owner | Identity::Operator(..) => {}
        }
        let is_name = |name: &str| {
            (1..=LONGEST_NAME).contains(&name.len())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        if !is_name(&class) || !is_name(&instance) || class == weft_xrl::FINDER {
            let note = format!("`{instance}` of the class `{class}` is no name of a component");
            return Err(XrlError::bad_args(note));
        }
        let target = Target::new(class.clone(), sole, address, channel, interfaces)?;
        let (generation, old) = self.tables.register(&instance, target)?;
        self.counters.add(Activity::Registrations, 1);
        if let Some(old) = old {
            self.dead(now, &instance, &old, out);
        }
        let process = self.process_of(channel);
        let birth = || {
            let (class, instance) = (class.clone(), instance.clone());
            finder_client::Birth { class, instance, process }
        };
        self.clients.tell_watchers(now, &class, birth, out);
        Ok(finder::RegisterReply { generation })
    }

    /// The number of the process at the other end, if it is on this machine.
    fn process_of(&self, channel: ChannelId) -> Option<u32> {
        self.clients.get(channel).and_then(|client| client.peer.pid())
    }

    pub(crate) fn unregister(&mut self, now: Instant, instance: &str, out: &mut Vec<Action>) {
        if let Some(target) = self.tables.unregister(instance) {
            self.dead(now, instance, &target, out);
        }
    }

    /// Tells everybody concerned that a component is gone.
    fn dead(&mut self, now: Instant, instance: &str, target: &Target, out: &mut Vec<Action>) {
        for channel in &target.known_to {
            let forget = finder_client::Forget { instance: instance.to_owned() };
            self.clients.ask(now, *channel, forget, Asked::Notice, out);
        }
        let class = target.class.clone();
        let death = || finder_client::Death { class: class.clone(), instance: instance.to_owned() };
        self.clients.tell_watchers(now, &target.class, death, out);
    }

    fn resolve(
        &mut self,
        now: Instant,
        call: Call,
        request: finder::Resolve,
        out: &mut Vec<Action>,
    ) -> Result<(), XrlError> {
        self.counters.add(Activity::Resolutions, 1);
        let finder::Resolve { target: name, method } = request;
        let identity = self.identity(call.channel)?;
        let unknown = |note: String| XrlError::new(ErrorCode::ResolveFailed, note);
        let known: Vec<_> = self.tables.iter().map(|(instance, _)| instance.clone()).collect();
        let (instance, target) = self.tables.find(&name).ok_or_else(|| {
            unknown(format!("there is no component `{name}`; there are: {}", known.join(", ")))
        })?;
        target.check_method(&instance, &method)?;
        let (class, address, server) =
            (target.class.clone(), target.address.clone(), target.channel);
        let limits = self.limits(&identity, [&class, &instance], &method)?;
        let (ticket, key) = (self.keys.key(), self.keys.key());
        let Some(client) = self.clients.get_mut(call.channel) else { return Ok(()) };
        client.granted_by.insert(server);
        let (pid, uid) = client.process();
        let grant = finder_client::Grant {
            instance: instance.clone(),
            caller: identity.name(),
            session: client.session,
            pid,
            uid,
            ticket: Binary(ticket.to_vec()),
            key: Binary(key.to_vec()),
            method,
            limits,
        };
        if let Some((_, target)) = self.tables.find(&instance) {
            target.known_to.insert(call.channel);
        }
        let (ticket, key) = (Binary(ticket.to_vec()), Binary(key.to_vec()));
        let reply = finder::ResolveReply { instance, address, ticket, key };
        let asked = Asked::Grant { call, reply };
        self.clients.ask(now, server, grant, asked, out);
        Ok(())
    }

    pub(crate) fn asked(
        &mut self,
        asked: Asked,
        result: Result<(), XrlError>,
        out: &mut Vec<Action>,
    ) {
        if let Asked::Grant { call, reply } = asked
            && self.clients.get_mut(call.channel).is_some()
        {
            self.answer(call, result.map(|()| Encoded::new(reply)), out);
        }
    }

    /// Gives up on processes that do not answer.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<Action>) {
        for asked in self.clients.expire(now) {
            let note = "the component does not take the key; is it stuck?";
            self.asked(asked, Err(XrlError::new(ErrorCode::ResolveFailed, note)), out);
        }
    }

    fn targets(&self) -> Vec<finder::Target> {
        let target = |(instance, target): (&String, &Target)| finder::Target {
            class: target.class.clone(),
            instance: instance.clone(),
            address: target.address.clone(),
        };
        self.tables.iter().map(target).collect()
    }

    fn interfaces(&mut self, name: Option<String>) -> Result<finder::InterfacesReply, XrlError> {
        let of = |class: &str, texts: &[String]| {
            let class = class.to_owned();
            let one =
                |text: &String| finder::Interface { class: class.clone(), text: text.clone() };
            texts.iter().map(one).collect::<Vec<_>>()
        };
        let own = INTERFACES.map(|interface| interface.text.to_owned());
        let interfaces = match name.as_deref() {
            Some(weft_xrl::FINDER) => of(weft_xrl::FINDER, &own),
            Some(name) => {
                let (_, target) = self.tables.find(name).ok_or_else(|| {
                    let note = format!("there is no component `{name}`");
                    XrlError::new(ErrorCode::ResolveFailed, note)
                })?;
                of(&target.class, &target.texts)
            }
            None => {
                let all = self.tables.iter().map(|(_, target)| of(&target.class, &target.texts));
                let mut all: Vec<_> = all.flatten().collect();
                all.extend(of(weft_xrl::FINDER, &own));
                let mut seen = std::collections::BTreeSet::new();
                all.retain(|one| seen.insert((one.class.clone(), one.text.clone())));
                all
            }
        };
        Ok(finder::InterfacesReply { interfaces })
    }

    /// Tells a process of births and deaths from now on. Returns no answer if its connection ended instead.
    fn watch(
        &mut self,
        now: Instant,
        channel: ChannelId,
        class: Option<String>,
        out: &mut Vec<Action>,
    ) -> Result<Option<Encoded>, XrlError> {
        if class.as_ref().is_some_and(|class| class.len() > LONGEST_NAME) {
            let note = format!("the name of a class has at most {LONGEST_NAME} bytes");
            return Err(XrlError::bad_args(note));
        }
        let Some(client) = self.clients.get_mut(channel) else { return Ok(None) };
        if client.watches.contains(&class) {
            return Ok(Some(Encoded::default()));
        }
        if client.watches.len() >= MOST_WATCHES {
            let note = format!("{MOST_WATCHES} classes are watched already: watch all, or fewer");
            return Err(XrlError::failed(note));
        }
        if client.outgoing.waiting() > MOST_WAITING {
            let who = client.identity.as_ref().map(Identity::name).unwrap_or_default();
            let note = format!("more than {MOST_WAITING} calls of the Finder were not answered");
            let line = format!("the Finder ends the connection of {who}: {note}");
            out.push(Action::Report { level: Level::Warning, line });
            refuse(channel, XrlError::new(ErrorCode::SendFailedTransient, note), out);
            self.gone(now, channel, out);
            return Ok(None);
        }
        client.watches.insert(class.clone());
        let births: Vec<_> = self
            .tables
            .iter()
            .filter(|(_, target)| class.as_ref().is_none_or(|class| *class == target.class))
            .map(|(instance, target)| finder_client::Birth {
                class: target.class.clone(),
                instance: instance.clone(),
                process: self.process_of(target.channel),
            })
            .collect();
        for birth in births {
            self.clients.ask(now, channel, birth, Asked::Notice, out);
        }
        Ok(Some(Encoded::default()))
    }

    fn set_processes(
        &mut self,
        now: Instant,
        channel: ChannelId,
        processes: Vec<finder::Process>,
        out: &mut Vec<Action>,
    ) -> Result<(), XrlError> {
        if self.identity(channel)? != Identity::Owner {
            return Err(XrlError::failed("only the manager says which processes there are"));
        }
        let mut new = BTreeMap::new();
        for finder::Process { instance, class, secret, access } in processes {
            let secret = Secret::try_from(secret.0).map_err(|_| {
                XrlError::bad_args(format!("the secret of {instance} has not {SECRET_LEN} bytes"))
            })?;
            let access = Access::parse(&access)
                .map_err(|note| XrlError::bad_args(format!("{instance}: {note}")))?;
            new.insert(instance, Process { class, secret, access });
        }
        let old = self.tables.processes.replace(new).unwrap_or_default();
        self.drop_changed(now, &old, out);
        Ok(())
    }

    /// Ends the connections of processes that may call something else now: they connect again and have everything
    /// resolved anew. Those that are no more are being ended, and may say goodbye to whom they know: theirs end later.
    fn drop_changed(
        &mut self,
        now: Instant,
        old: &BTreeMap<String, Process>,
        out: &mut Vec<Action>,
    ) {
        let processes = self.tables.processes.as_ref();
        let changed = |client: &Client| match &client.identity {
            Some(Identity::Process(instance)) => {
                let new = processes.and_then(|all| all.get(instance));
                new.is_some() && new != old.get(instance)
            }
            _ => false,
        };
        let channels = self.clients.which(changed);
        self.drop_clients(now, channels, out);
        self.goodbye = match self.removed().is_empty() {
            true => None,
            false => self.goodbye.or(Some(now + GOODBYE)),
        };
    }

    /// The connections of processes that are no more.
    fn removed(&self) -> Vec<ChannelId> {
        self.clients.which(|client| self.tables.is_removed(client.identity.as_ref()))
    }

    /// Ends the connections of processes that have had the time to say goodbye.
    pub(crate) fn end_goodbyes(&mut self, now: Instant, out: &mut Vec<Action>) {
        if self.goodbye.take_if(|goodbye| *goodbye <= now).is_some() {
            let channels = self.removed();
            self.drop_clients(now, channels, out);
        }
    }
}
