//! Operators on other machines, and what each of their connections leads to.
//!
//! A connection says first where it leads (`via`), then hello. The gateway writes its own word on who that is
//! into the hello, connects, and from then on passes messages on as they are. What it holds for a
//! connection is bounded until it leads somewhere; after that the windows of both sides bound what is on
//! its way.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use weft_base::{ChannelId, Counters, Message, Token};
use weft_keys::KeyHash;
use weft_runtime::{Action, ChannelAddress};
use weft_xrl::frame::{Credential, Frame};
use weft_xrl::{ErrorCode, FINDER, Output, XrlError, gateway};

use crate::{Activity, Settings};

/// How many connections who has one key may have: a quarter of those that the node's components take from
/// the gateway, so that no operator keeps the others out.
const MOST_OF_ONE: usize = 64;
/// What may wait until a connection leads somewhere: messages, and their bytes.
const MOST_WAITING: (usize, usize) = (1024, 1 << 20);
/// How many of them may send long messages, each of which takes memory until it is there.
const LONG_OF_ONE: usize = 4;
/// The longest name of an instance.
const LONGEST_NAME: usize = 64;
/// The tokens of connections begin here.
const FIRST_TOKEN: u32 = 16;

pub(crate) struct Guests {
    settings: Settings,
    /// By the channel to the operator.
    all: BTreeMap<ChannelId, Guest>,
    /// Whose a channel to a component is.
    inward: BTreeMap<ChannelId, ChannelId>,
    connecting: BTreeMap<Token, ChannelId>,
    last_token: u32,
}

/// A connection of an operator.
struct Guest {
    key: KeyHash,
    address: SocketAddr,
    target: String,
    way: Way,
    /// Whether it may send long messages.
    long: bool,
}

/// How far it leads.
enum Way {
    /// It has to say where.
    Fresh,
    /// It has to say hello.
    Named,
    /// The gateway connects; what comes meanwhile waits.
    Connecting {
        waiting: Vec<Message>,
        bytes: usize,
    },
    To(ChannelId),
}

impl Guests {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            all: BTreeMap::new(),
            inward: BTreeMap::new(),
            connecting: BTreeMap::new(),
            last_token: 0,
        }
    }

    /// Those who are connected.
    pub(crate) fn all(&self) -> Vec<gateway::Guest> {
        let told = |guest: &Guest| gateway::Guest {
            key: guest.key.to_string(),
            address: guest.address.to_string(),
            target: guest.target.clone(),
        };
        self.all.values().map(told).collect()
    }

    pub(crate) fn accepted(
        &mut self,
        channel: ChannelId,
        key: KeyHash,
        address: SocketAddr,
        counters: &mut Counters<Activity>,
        out: &mut Vec<Output>,
    ) {
        counters.add(Activity::Guests, 1);
        if self.all.values().filter(|guest| guest.key == key).count() >= MOST_OF_ONE {
            counters.add(Activity::TooMany, 1);
            let note = format!("the key {key} has {MOST_OF_ONE} connections already");
            return refuse(channel, XrlError::new(ErrorCode::SendFailedTransient, note), out);
        }
        self.all.insert(
            channel,
            Guest { key, address, target: String::new(), way: Way::Fresh, long: false },
        );
    }

    pub(crate) fn messages(
        &mut self,
        channel: ChannelId,
        messages: Vec<Message>,
        counters: &mut Counters<Activity>,
        out: &mut Vec<Output>,
    ) {
        if let Some(guest) = self.inward.get(&channel) {
            return messages.into_iter().for_each(|one| backward(*guest, one, counters, out));
        }
        for message in messages {
            if let Err(error) = self.forward(channel, message, counters, out) {
                counters.add(Activity::Nonsense, 1);
                self.closed(channel, out);
                return refuse(channel, error, out);
            }
        }
    }

    /// Takes a message of an operator.
    fn forward(
        &mut self,
        channel: ChannelId,
        mut message: Message,
        counters: &mut Counters<Activity>,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        let Some(guest) = self.all.get_mut(&channel) else { return Ok(()) };
        match &mut guest.way {
            Way::To(inward) => {
                counters.add(Activity::Forward, 1);
                out.push(Output::World(Action::Send { channel: *inward, message }));
            }
            Way::Connecting { waiting, bytes } => {
                *bytes += message.bytes().len();
                if waiting.len() >= MOST_WAITING.0 || *bytes > MOST_WAITING.1 {
                    let note = "too much was sent before the hello was answered";
                    return Err(XrlError::new(ErrorCode::SendFailedTransient, note));
                }
                waiting.push(message);
            }
            Way::Fresh => {
                guest.target = target(&mut message)?;
                guest.way = Way::Named;
            }
            Way::Named => {
                let hello = self.settings.hello(guest, &mut message)?;
                let address = ChannelAddress::Stream(self.settings.socket(&guest.target));
                guest.way = Way::Connecting { bytes: hello.bytes().len(), waiting: vec![hello] };
                self.last_token = (self.last_token + 1) & 0xff_ffff;
                let token = Token(FIRST_TOKEN + self.last_token);
                self.connecting.insert(token, channel);
                out.push(Output::World(Action::Connect { token, address }));
            }
        }
        Ok(())
    }

    /// A component is reached.
    pub(crate) fn connected(&mut self, token: Token, inward: ChannelId, out: &mut Vec<Output>) {
        let channel = self.connecting.remove(&token);
        let guest = channel.and_then(|channel| Some((channel, self.all.get_mut(&channel)?)));
        let Some((channel, guest)) = guest else {
            return out.push(Output::World(Action::Close { channel: inward }));
        };
        let Way::Connecting { waiting, .. } = std::mem::replace(&mut guest.way, Way::To(inward))
        else {
            return;
        };
        let key = guest.key;
        self.inward.insert(inward, channel);
        self.take_long(channel, key, out);
        let send = |message| Output::World(Action::Send { channel: inward, message });
        out.extend(waiting.into_iter().map(send));
    }

    /// Takes long messages of an operator whom a component will know, if it is not too many.
    fn take_long(&mut self, channel: ChannelId, key: KeyHash, out: &mut Vec<Output>) {
        let long = self.all.values().filter(|guest| guest.key == key && guest.long).count();
        let guest = self.all.get_mut(&channel);
        // The Finder takes no long messages of anybody.
        if let Some(guest) = guest.filter(|guest| long < LONG_OF_ONE && guest.target != FINDER) {
            guest.long = true;
            out.push(Output::World(Action::TakeLong { channel }));
        }
    }

    /// A component is not reached.
    pub(crate) fn unreachable(
        &mut self,
        token: Token,
        error: &str,
        counters: &mut Counters<Activity>,
        out: &mut Vec<Output>,
    ) {
        let Some(channel) = self.connecting.remove(&token) else { return };
        let Some(guest) = self.all.remove(&channel) else { return };
        counters.add(Activity::Unreachable, 1);
        let note = format!("{} cannot be reached through the gateway: {error}", guest.target);
        refuse(channel, XrlError::new(ErrorCode::SendFailedTransient, note), out);
    }

    /// One side of a connection is gone, and with it the other.
    pub(crate) fn closed(&mut self, channel: ChannelId, out: &mut Vec<Output>) {
        if let Some(guest) = self.inward.remove(&channel) {
            self.all.remove(&guest);
            out.push(Output::World(Action::Close { channel: guest }));
        } else if let Some(guest) = self.all.remove(&channel) {
            self.connecting.retain(|_, one| *one != channel);
            if let Way::To(inward) = guest.way {
                self.inward.remove(&inward);
                out.push(Output::World(Action::Close { channel: inward }));
            }
        }
    }
}

impl Settings {
    /// Where a component takes calls.
    fn socket(&self, target: &str) -> PathBuf {
        let mut path = self.sockets.clone().into_os_string();
        path.push(target);
        path.into()
    }

    /// What is said for an operator who says hello.
    fn hello(&self, guest: &Guest, message: &mut Message) -> Result<Message, XrlError> {
        let wrong = |note: &str| XrlError::new(ErrorCode::InternalError, note);
        let frame = Frame::parse(&mut message.buffer);
        let Ok(Frame::Hello { version, window, credential }) = frame else {
            return Err(wrong("a hello must follow"));
        };
        let credential = match (&*guest.target, credential) {
            (FINDER, Credential::None) => Credential::SecretFor(self.secret, guest.key),
            (FINDER, _) => return Err(wrong("the key is all that an operator shows")),
            (_, Credential::Ticket(ticket)) => Credential::TicketFor(ticket, guest.key),
            _ => return Err(wrong("a ticket is needed; have the method resolved by the Finder")),
        };
        Ok(Frame::Hello { version, window, credential }.emit())
    }
}

/// Where a connection is to lead.
fn target(message: &mut Message) -> Result<String, XrlError> {
    let wrong = |note: String| Err(XrlError::new(ErrorCode::InternalError, note));
    let Ok(Frame::Via { target }) = Frame::parse(&mut message.buffer) else {
        return wrong("the first message must say where the connection leads".to_owned());
    };
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if target.is_empty()
        || target.len() > LONGEST_NAME
        || target.starts_with('.')
        || !target.bytes().all(is_of_a_name)
    {
        return wrong(format!("`{}` is no name of a component", target.escape_debug()));
    }
    Ok(target)
}

/// Passes on what a component says.
fn backward(
    channel: ChannelId,
    mut message: Message,
    counters: &mut Counters<Activity>,
    out: &mut Vec<Output>,
) {
    if !message.handles.is_empty() {
        counters.add(Activity::Handles, 1);
        let Ok(Frame::Reply { id, .. }) = Frame::parse(&mut message.buffer) else { return };
        let note = "the reply holds a descriptor, which cannot leave the machine";
        message = Frame::Failed { id, error: XrlError::failed(note) }.emit();
    }
    counters.add(Activity::Backward, 1);
    out.push(Output::World(Action::Send { channel, message }));
}

fn refuse(channel: ChannelId, error: XrlError, out: &mut Vec<Output>) {
    let message = Frame::Goodbye(error).emit();
    out.push(Output::World(Action::Send { channel, message }));
    out.push(Output::World(Action::Close { channel }));
}

#[cfg(test)]
mod tests;
