//! Connections of callers, what each of them may call, and the calls that are not answered yet.
//!
//! Reference: Handley et al. (XORP), §7: a receiver rejects what does not carry the random key that
//! the Finder put into the resolved name. Beyond the paper a key is good for one caller only: it is
//! taken on connections of the session, or at least the process, that the Finder gave it to.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use weft_base::{ChannelId, Message, Token};
use weft_runtime::{Action, Level, Peer};

use super::monitor::CallCount;
use super::targets::WINDOW;
use super::{Host, Now};
use crate::component::{CallId, Called, Encoded, Input, Reply};
use crate::finder_client::Grant;
use crate::frame::{
    Credential, Frame, Key, LONGEST_ARGUMENTS, PROTOCOL, fits, remote_operator, same,
};
use crate::interface::Interface;
use crate::limits::Limits;
use crate::signature::{Signature, Signatures, find_method};
use crate::slab::Slab;
use crate::{ErrorCode, XrlError};

pub(super) const LISTENER: Token = Token(2);

/// Tickets of one session that were not used; older ones are void.
const MOST_TICKETS: usize = 8;
/// Methods that one connection may bind.
const MOST_SLOTS: usize = 4096;
/// Connections of one caller that may send long calls, each of which takes memory until it is there.
const LONG_OF_CALLER: usize = 4;

#[derive(Default)]
pub(super) struct Served {
    connections: BTreeMap<ChannelId, Connection>,
    sessions: BTreeMap<u64, Session>,
    open: Slab<Open>,
}

struct Connection {
    peer: Peer,
    /// Whether the caller is on another machine, and the peer only its gateway.
    remote: bool,
    /// Who it is, once it has shown its ticket.
    session: Option<u64>,
    caller: Rc<str>,
    slots: Vec<Option<Rc<Right>>>,
    /// Whether it may send long calls.
    long: bool,
    /// How many of its calls are not answered.
    open: u32,
}

/// A caller, as long as it is connected to the Finder.
struct Session {
    caller: Rc<str>,
    pid: u32,
    uid: u32,
    tickets: Vec<Key>,
    rights: Vec<(Key, Rc<Right>)>,
}

/// One caller's right to call one method.
struct Right {
    member: usize,
    interface: &'static Interface,
    method: u16,
    signature: Signature,
    limits: Limits,
}

/// A call that is not answered.
struct Open {
    channel: ChannelId,
    id: u32,
    /// Of calls in text.
    signature: Option<Signature>,
}

impl Served {
    pub(super) fn accepted(&mut self, channel: ChannelId, peer: Peer) {
        let connection = Connection {
            peer,
            remote: false,
            session: None,
            caller: "?".into(),
            slots: Vec::new(),
            long: false,
            open: 0,
        };
        self.connections.insert(channel, connection);
    }

    /// A connection is gone: whose it was, and which members it could call.
    fn closed(&mut self, channel: ChannelId) -> Option<(u64, BTreeSet<usize>)> {
        let connection = self.connections.remove(&channel)?;
        let members = connection.slots.iter().flatten().map(|right| right.member).collect();
        Some((connection.session?, members))
    }

    /// The Finder lets somebody call a method.
    pub(super) fn grant(
        &mut self,
        grant: Grant,
        member: usize,
        interfaces: &[&'static Interface],
        signatures: &mut Signatures,
    ) -> Result<(), XrlError> {
        let (interface, method) = find_method(interfaces, &grant.method)?;
        let broken = || XrlError::new(ErrorCode::InternalError, "the interface cannot be read");
        let signature = signatures.of(interface, method).ok_or_else(broken)?;
        let limits = Limits::parse(&grant.limits, signature.method(), &signature.interface)
            .map_err(XrlError::bad_args)?;
        let key = |bytes: &[u8]| {
            Key::try_from(bytes).map_err(|_| XrlError::bad_args("a key or ticket is no key"))
        };
        let (key, ticket) = (key(&grant.key.0)?, key(&grant.ticket.0)?);
        let session = self.sessions.entry(grant.session).or_insert_with(|| Session {
            caller: grant.caller.into(),
            pid: grant.pid,
            uid: grant.uid,
            tickets: Vec::new(),
            rights: Vec::new(),
        });
        if session.tickets.len() == MOST_TICKETS {
            session.tickets.remove(0);
        }
        session.tickets.push(ticket);
        let right = Rc::new(Right { member, interface, method, signature, limits });
        // A newer key for the same method replaces the older one, which stays bound where it is.
        session.rights.retain(|(_, old)| {
            (old.member, old.interface.name, old.method) != (member, interface.name, method)
        });
        session.rights.push((key, right));
        Ok(())
    }

    /// A caller is gone; returns the connections to close.
    pub(super) fn revoke(&mut self, session: u64) -> Vec<ChannelId> {
        self.sessions.remove(&session);
        let of = |(channel, connection): (&ChannelId, &Connection)| {
            (connection.session == Some(session)).then_some(*channel)
        };
        self.connections.iter().filter_map(of).collect()
    }

    /// There is a new Finder, which knows nothing of the sessions of the one before: those who are not
    /// connected will be given new ones.
    pub(super) fn forget_absent(&mut self) {
        let connections = &self.connections;
        self.sessions.retain(|number, _| {
            connections.values().any(|connection| connection.session == Some(*number))
        });
    }

    /// Takes in who shows a ticket.
    fn hello(
        &mut self,
        channel: ChannelId,
        version: u16,
        credential: Credential,
    ) -> Result<Frame, XrlError> {
        let refuse = |note: &str| Err(XrlError::new(ErrorCode::ResolveFailed, note));
        if version != PROTOCOL {
            let note = format!("this process speaks version {PROTOCOL}, not {version}");
            return Err(XrlError::new(ErrorCode::SendFailed, note));
        }
        let Some(connection) = self.connections.get_mut(&channel) else {
            return refuse("the connection is gone");
        };
        if connection.session.is_some() {
            return refuse("there was a hello already");
        }
        let (ticket, remote) = match credential {
            Credential::Ticket(ticket) => (ticket, None),
            Credential::TicketFor(ticket, key) => (ticket, Some(remote_operator(&key))),
            _ => return refuse("a ticket is needed; have the method resolved by the Finder"),
        };
        for (number, session) in &mut self.sessions {
            let Some(index) = session.tickets.iter().position(|one| same(one, &ticket)) else {
                continue;
            };
            let other = remote.as_ref().is_some_and(|name| *name != *session.caller);
            if other || !session.is_of(&connection.peer) {
                return refuse("the ticket was given to another process");
            }
            session.tickets.remove(index);
            connection.remote = remote.is_some();
            connection.session = Some(*number);
            connection.caller = Rc::clone(&session.caller);
            let name = session.caller.to_string();
            let long = self.connections.values().filter(|one| one.long && *one.caller == *name);
            let long = long.count() < LONG_OF_CALLER;
            if let Some(connection) = self.connections.get_mut(&channel) {
                connection.long = long;
            }
            return Ok(Frame::Welcome { version: PROTOCOL, window: WINDOW, name });
        }
        refuse("the ticket is void or was used before; have the method resolved again")
    }

    /// Whether somebody who was taken in may send long calls.
    fn takes_long(&self, channel: ChannelId) -> bool {
        self.connections.get(&channel).is_some_and(|connection| connection.long)
    }

    fn bind(&mut self, channel: ChannelId, slot: u16, key: &Key) {
        let Some(connection) = self.connections.get_mut(&channel) else { return };
        let slot = usize::from(slot);
        if slot >= MOST_SLOTS || connection.session.is_none() {
            return;
        }
        let (peer, caller) = (&connection.peer, &connection.caller);
        // Behind the process of a gateway are several callers.
        let may_use = |(number, session): &(&u64, &Session)| {
            connection.session == Some(**number)
                || matches!(peer, Peer::Process { .. })
                    && session.is_of(peer)
                    && session.caller == *caller
        };
        let right = self
            .sessions
            .iter()
            .filter(may_use)
            .flat_map(|(_, session)| &session.rights)
            .find(|(one, _)| same(one, key))
            .map(|(_, right)| Rc::clone(right));
        if connection.slots.len() <= slot {
            connection.slots.resize(slot + 1, None);
        }
        connection.slots[slot] = right;
    }

    /// Checks a call and gives it a name.
    fn call(
        &mut self,
        channel: ChannelId,
        slot: u16,
        id: u32,
        arguments: Encoded,
        text: bool,
    ) -> Result<(usize, Called), XrlError> {
        let gone = || XrlError::new(ErrorCode::ResolveFailed, "the connection is gone");
        let connection = self.connections.get_mut(&channel).ok_or_else(gone)?;
        let right = connection.slots.get(usize::from(slot)).and_then(Option::as_ref);
        let right = right.ok_or_else(|| {
            let note = "this key is not one that the Finder gave to this caller";
            XrlError::new(ErrorCode::ResolveFailed, note)
        })?;
        if connection.open >= WINDOW {
            let note = format!("{WINDOW} calls of this caller are not answered yet");
            return Err(XrlError::new(ErrorCode::SendFailedTransient, note));
        }
        let arguments = match text {
            true => right.signature.arguments_from_text(arguments.args.bytes())?,
            false => arguments,
        };
        let (method, interface) = (right.signature.method(), &right.signature.interface);
        right
            .limits
            .check(arguments.args.bytes(), method, interface)
            .map_err(XrlError::bad_args)?;
        connection.open += 1;
        let signature = text.then(|| right.signature.clone());
        let id = CallId(self.open.insert(Open { channel, id, signature }));
        let caller = Rc::clone(&connection.caller);
        let uid = connection.peer.uid().filter(|_| !connection.remote);
        let pid = connection.peer.pid().filter(|_| !connection.remote);
        let session = connection.session.unwrap_or(0);
        let (interface, method) = (right.interface, right.method);
        Ok((right.member, Called { id, caller, session, uid, pid, interface, method, arguments }))
    }

    /// Answers a call, if the caller is still there.
    pub(super) fn answer(
        &mut self,
        id: CallId,
        result: Result<Encoded, XrlError>,
        now: &mut Now<'_>,
    ) {
        let Some(Open { channel, id, signature }) = self.open.remove(id.0) else { return };
        let Some(connection) = self.connections.get_mut(&channel) else { return };
        connection.open -= 1;
        let result = match (result, &signature) {
            (Ok(encoded), Some(signature)) => {
                signature.returns_to_text(encoded).map(|args| Encoded { args, handles: Vec::new() })
            }
            (result, _) => result,
        };
        let message = match result {
            Ok(Encoded { args, handles }) => match fits(&args, LONGEST_ARGUMENTS) {
                Ok(()) => Frame::Reply { id, text: signature.is_some() }.emit_with(args, handles),
                Err(error) => Frame::Failed { id, error }.emit(),
            },
            Err(error) => Frame::Failed { id, error }.emit(),
        };
        now.send(channel, message);
    }
}

impl Session {
    /// Whether somebody is the process that the Finder means. Over a network that is for the channel to say.
    fn is_of(&self, peer: &Peer) -> bool {
        match peer {
            Peer::Process { pid, uid, .. } => *pid == self.pid && *uid == self.uid,
            Peer::Address(_) | Peer::Key { .. } => true,
        }
    }
}

impl Host {
    pub(super) fn served_messages(
        &mut self,
        channel: ChannelId,
        messages: Vec<Message>,
        now: &mut Now<'_>,
    ) {
        for Message { mut buffer, handles } in messages {
            let done = match Frame::parse(&mut buffer) {
                Ok(Frame::Call { slot, id, text, .. }) => {
                    let arguments = Encoded { args: buffer, handles };
                    match self.served.call(channel, slot, id, arguments, text) {
                        Ok((member, called)) => {
                            self.inputs.push_back((member, Input::Called(called)));
                        }
                        Err(error) => {
                            self.monitor.calls.add(CallCount::Refused, 1);
                            now.send(channel, Frame::Failed { id, error }.emit());
                        }
                    }
                    Ok(())
                }
                Ok(Frame::Bind { slot, key }) => {
                    self.served.bind(channel, slot, &key);
                    Ok(())
                }
                Ok(Frame::Hello { version, credential, .. }) => {
                    self.served.hello(channel, version, credential).map(|welcome| {
                        if self.served.takes_long(channel) {
                            now.out.push(Action::TakeLong { channel });
                        }
                        now.send(channel, welcome.emit());
                    })
                }
                Ok(_) => Err(XrlError::new(ErrorCode::InternalError, "only callers connect here")),
                Err(error) => Err(XrlError::new(ErrorCode::InternalError, error.to_string())),
            };
            if let Err(error) = done {
                now.report(Level::Warning, format!("a connection is refused: {error}"));
                now.send(channel, Frame::Goodbye(error).emit());
                now.out.push(Action::Close { channel });
                self.channels.remove(&channel);
                self.caller_left(channel);
                return;
            }
        }
    }

    /// A caller's connection has ended: the members that it could call are told.
    pub(super) fn caller_left(&mut self, channel: ChannelId) {
        if let Some((session, members)) = self.served.closed(channel) {
            let left = |member| (member, Input::Left { session, removed: false });
            self.inputs.extend(members.into_iter().map(left));
        }
    }

    pub(super) fn target_messages(
        &mut self,
        channel: ChannelId,
        messages: Vec<Message>,
        now: &mut Now<'_>,
    ) {
        for Message { mut buffer, handles } in messages {
            let reply: Option<(_, Result<Reply, _>)> = match Frame::parse(&mut buffer) {
                Ok(frame) => {
                    let arguments = Encoded { args: buffer, handles };
                    self.targets.frame(channel, frame, arguments, now)
                }
                Err(error) => {
                    now.report(Level::Error, format!("a component sent something else: {error}"));
                    now.out.push(Action::Close { channel });
                    self.channels.remove(&channel);
                    let over = self.targets.closed(channel);
                    self.settle(over, now);
                    self.resolve_waiting(now);
                    return;
                }
            };
            if let Some((caller, result)) = reply {
                self.replied(caller, result, now);
            }
        }
    }
}
