//! A socket for components: the application's side of the channel to the node.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_base::{ChannelId, Instant, Packet, Token};
use weft_runtime::{Action, ChannelAddress, Event};
use weft_xip::Address;
use weft_xip::channel::{self, BindRequest, Response};
use weft_xip::numbers::DEFAULT_HOP_LIMIT;

/// Pause between attempts to re-attach to a node that went away.
const RETRY: Duration = Duration::from_millis(500);

/// What happened to a [`Client`].
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// It is attached to the node and bound to this address (`None` if it asked for none).
    Ready(Option<Address>),
    /// The node cannot be reached or refuses the bind: the client is of no use.
    Failed(String),
    /// The node went away; the client attaches again when it is back, and says [`Self::Ready`].
    Detached,
    /// A datagram came in.
    Datagram {
        /// Where from; `None` if the sender did not say.
        source: Option<Address>,
        /// Its payload.
        payload: Packet,
    },
    /// A datagram could not leave the node, or somebody says that it was dropped on its way, for this reason.
    Rejected(String),
    /// The reply to a command.
    Reply(String),
    /// A command failed, for this reason.
    CommandFailed(String),
    /// The node does not keep up: stop sending until [`Self::Drained`].
    Congested,
    /// The node takes datagrams again.
    Drained,
}

#[derive(Debug)]
enum State {
    Connecting,
    Binding(ChannelId),
    Ready(ChannelId),
    /// Attach again at this time.
    Waiting(Instant),
    Failed,
}

/// The application's side of one socket; see [`ClientEvent`] for what comes of it.
#[derive(Debug)]
pub struct Client {
    token: Token,
    path: PathBuf,
    bind: Option<BindRequest>,
    hop_limit: u8,
    state: State,
    /// Was attached once: a lost node is waited for rather than an error.
    attached: bool,
    reply: Vec<u8>,
}

impl Client {
    /// A client of the node whose socket is at `path`, to be bound as `bind` says. `token` marks its
    /// connection among the process's requests.
    #[must_use]
    pub fn new(token: Token, path: &Path, bind: Option<BindRequest>) -> Self {
        Self {
            token,
            path: path.to_owned(),
            bind,
            hop_limit: DEFAULT_HOP_LIMIT,
            state: State::Connecting,
            attached: false,
            reply: Vec::new(),
        }
    }

    /// Sets how far datagrams may go, in hops.
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// Asks for the connection; to be called once, at the start.
    pub fn start(&mut self, out: &mut Vec<Action>) {
        self.state = State::Connecting;
        let address = ChannelAddress::Flow(self.path.clone());
        out.push(Action::Connect { token: self.token, address });
    }

    /// When [`Event::Tick`] must come at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Waiting(at) => Some(at),
            _ => None,
        }
    }

    /// Whether datagrams can be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }

    /// Takes an event of the process. Events that are not the client's are returned.
    pub fn handle(
        &mut self,
        now: Instant,
        event: Event,
        events: &mut Vec<ClientEvent>,
        out: &mut Vec<Action>,
    ) -> Option<Event> {
        match event {
            Event::Connected { token, channel } if token == self.token => {
                self.connected(channel, events, out);
            }
            Event::ChannelFailed { token, error } if token == self.token => {
                self.connection_failed(now, error, events);
            }
            Event::Messages { channel, messages } if self.has(channel) => {
                for message in messages {
                    self.message(channel, message.buffer.into(), events);
                }
            }
            Event::Closed { channel } if self.has(channel) => {
                self.state = State::Waiting(now + RETRY);
                self.reply.clear();
                events.push(ClientEvent::Detached);
            }
            Event::Congested { channel } if self.has(channel) => {
                events.push(ClientEvent::Congested);
            }
            Event::Drained { channel } if self.has(channel) => events.push(ClientEvent::Drained),
            Event::Tick => {
                if self.deadline().is_some_and(|at| at <= now) {
                    self.start(out);
                }
                return Some(Event::Tick);
            }
            other => return Some(other),
        }
        None
    }

    /// Sends a datagram; false, and nothing happens, if the client is not ready.
    pub fn send(&self, destination: &Address, mut payload: Packet, out: &mut Vec<Action>) -> bool {
        let State::Ready(channel) = self.state else { return false };
        channel::emit_send(self.hop_limit, destination, &mut payload);
        out.push(Action::Send { channel, message: payload.into() });
        true
    }

    /// Sends a command of the node; false, and nothing happens, if the client is not ready.
    pub fn command(&self, text: &str, out: &mut Vec<Action>) -> bool {
        let State::Ready(channel) = self.state else { return false };
        out.push(Action::Send { channel, message: channel::emit_command(text).into() });
        true
    }

    fn has(&self, channel: ChannelId) -> bool {
        matches!(self.state, State::Binding(own) | State::Ready(own) if own == channel)
    }

    fn connected(
        &mut self,
        channel: ChannelId,
        events: &mut Vec<ClientEvent>,
        out: &mut Vec<Action>,
    ) {
        match &self.bind {
            Some(request) => {
                out.push(Action::Send { channel, message: request.emit().into() });
                self.state = State::Binding(channel);
            }
            None => {
                self.state = State::Ready(channel);
                self.attached = true;
                events.push(ClientEvent::Ready(None));
            }
        }
    }

    fn connection_failed(&mut self, now: Instant, error: String, events: &mut Vec<ClientEvent>) {
        if self.attached {
            self.state = State::Waiting(now + RETRY);
        } else {
            self.fail(error, events);
        }
    }

    fn fail(&mut self, error: String, events: &mut Vec<ClientEvent>) {
        self.state = State::Failed;
        events.push(ClientEvent::Failed(error));
    }

    fn message(&mut self, channel: ChannelId, message: Packet, events: &mut Vec<ClientEvent>) {
        match Response::parse(message) {
            Ok(Response::Bound(address)) => {
                self.state = State::Ready(channel);
                self.attached = true;
                // After a restart of the node others must find us where they did before.
                self.bind = Some(BindRequest::Address(address));
                events.push(ClientEvent::Ready(Some(address)));
            }
            Ok(Response::Failed(error)) if matches!(self.state, State::Binding(_)) => {
                self.fail(error, events);
            }
            Ok(Response::Failed(error)) => events.push(ClientEvent::CommandFailed(error)),
            Ok(Response::Datagram { source, payload }) => {
                events.push(ClientEvent::Datagram { source, payload });
            }
            Ok(Response::Rejected(reason)) => events.push(ClientEvent::Rejected(reason)),
            Ok(Response::Reply { last, part }) => {
                self.reply.extend(part);
                if last {
                    let reply = std::mem::take(&mut self.reply);
                    events.push(ClientEvent::Reply(String::from_utf8_lossy(&reply).into_owned()));
                }
            }
            Err(error) => self.fail(format!("the node sent nonsense: {error}"), events),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_xip::{Xid, XidType};

    const TOKEN: Token = Token(3);
    const CHANNEL: ChannelId = ChannelId(8);

    fn client() -> Client {
        Client::new(TOKEN, Path::new("/run/x"), Some(BindRequest::Any(XidType::XDP)))
    }

    fn address() -> Address {
        Address::simple(Xid::new(XidType::XDP, [4; 20])).unwrap()
    }

    /// Gives events to the client; returns what it tells and what it asks for.
    fn feed(client: &mut Client, now: u64, events: Vec<Event>) -> (Vec<ClientEvent>, Vec<Action>) {
        let (mut told, mut out) = (Vec::new(), Vec::new());
        for event in events {
            client.handle(Instant::from_nanos(now), event, &mut told, &mut out);
        }
        (told, out)
    }

    fn bound() -> Event {
        Event::Messages { channel: CHANNEL, messages: vec![channel::emit_bound(&address()).into()] }
    }

    #[test]
    fn attaches_binds_and_is_ready() {
        let mut client = client();
        client.start(&mut Vec::new());
        let connected = Event::Connected { token: TOKEN, channel: CHANNEL };
        let (told, out) = feed(&mut client, 0, vec![connected, bound()]);
        assert_eq!(told, [ClientEvent::Ready(Some(address()))]);
        assert!(matches!(out.as_slice(), [Action::Send { channel: CHANNEL, .. }]));
        assert!(client.is_ready());
    }

    #[test]
    fn a_node_that_was_never_there_is_an_error_and_one_that_left_is_waited_for() {
        let mut client = client();
        client.start(&mut Vec::new());
        let refused = || Event::ChannelFailed { token: TOKEN, error: "no node".to_owned() };
        assert_eq!(
            feed(&mut client, 0, vec![refused()]).0,
            [ClientEvent::Failed("no node".to_owned())]
        );
        client.start(&mut Vec::new());
        let connected = || Event::Connected { token: TOKEN, channel: CHANNEL };
        feed(&mut client, 0, vec![connected(), bound()]);
        let (told, _) = feed(&mut client, 0, vec![Event::Closed { channel: CHANNEL }]);
        assert_eq!(told, [ClientEvent::Detached]);
        let at = client.deadline().unwrap().as_nanos();
        let (_, out) = feed(&mut client, at, vec![Event::Tick, refused()]);
        assert!(matches!(out.as_slice(), [Action::Connect { token: TOKEN, .. }]));
        let at = client.deadline().unwrap().as_nanos();
        let (told, _) = feed(&mut client, at, vec![Event::Tick, connected(), bound()]);
        assert_eq!(told, [ClientEvent::Ready(Some(address()))]);
    }

    #[test]
    fn events_of_others_are_returned() {
        let other = Event::Closed { channel: ChannelId(99) };
        let mut told = Vec::new();
        assert!(client().handle(Instant::ZERO, other, &mut told, &mut Vec::new()).is_some());
        assert_eq!(told, []);
    }
}
