//! Connections of TCP to peers that speak protocols of others, which the FEA makes for members.
//!
//! The FEA connects, and opens the sockets that listen; members have the descriptors, and the driver makes channels of
//! them. The keys of a socket that listens are the FEA's to change, which has a duplicate of it. When that FEA is
//! gone the next one opens a new socket; connections that were accepted stay.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use weft_base::Token;
use weft_runtime::{
    Action, Event, PeerKey, PeerTtl, StreamEvent, StreamListenerSpec, StreamOptions, StreamRequest,
    StreamSpec,
};

use super::from_fea::{Asked, OWN, Wanted};
use super::{Host, Now, members};
use crate::component::{Call, Reply};
use crate::{Binary, IpNet, XrlError, fea};

/// How long the FEA may take to connect: longer than the system tries.
pub(super) const CONNECTING: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(super) struct Streams {
    /// The sockets that listen, by members and their tokens.
    listeners: BTreeMap<(usize, Token), Listener>,
    last: u32,
}

struct Listener {
    /// What it is to the FEA.
    number: u32,
    spec: StreamListenerSpec,
}

impl Streams {
    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Notes which keys a listener is to have; what it is to the FEA.
    fn set_keys(&mut self, key: (usize, Token), keys: &[PeerKey]) -> Result<u32, String> {
        let missing = || "there is no listener whose keys could be changed".to_owned();
        let Listener { number, spec } = self.listeners.get_mut(&key).ok_or_else(missing)?;
        let with_these = StreamListenerSpec { keys: keys.to_vec(), ..spec.clone() };
        with_these.check()?;
        *spec = with_these;
        Ok(*number)
    }
}

impl Host {
    /// Does something with connections for a member.
    pub(super) fn have_connected(
        &mut self,
        member: usize,
        token: Token,
        request: StreamRequest,
        now: &mut Now<'_>,
    ) {
        match request {
            StreamRequest::Open(spec) => {
                if let Err(error) = spec.check() {
                    return self.tell_stream(member, token, StreamEvent::Failed { error });
                }
                let number = self.streams.number();
                self.have_done(member, token, Wanted::Stream { number, spec }, now);
            }
            StreamRequest::Cancel => self.cancel_stream(member, token, now),
            StreamRequest::Listen(spec) => self.have_listening(member, token, spec, now),
            StreamRequest::SetKeys(keys) => match self.streams.set_keys((member, token), &keys) {
                Ok(number) => {
                    let wanted = Wanted::StreamKeys { number, keys };
                    self.have_done(member, token, wanted, now);
                }
                Err(error) => {
                    self.tell_stream(member, token, StreamEvent::KeysSet { result: Err(error) });
                }
            },
            request => {
                let mut action = Action::Stream { token, request };
                members::tag_token(member, &mut action);
                now.out.push(action);
            }
        }
    }

    fn have_listening(
        &mut self,
        member: usize,
        token: Token,
        spec: StreamListenerSpec,
        now: &mut Now<'_>,
    ) {
        if let Err(error) = spec.check() {
            return self.tell_stream(member, token, StreamEvent::Failed { error });
        }
        let number = self.streams.number();
        let listener = Listener { number, spec: spec.clone() };
        self.streams.listeners.insert((member, token), listener);
        self.have_done(member, token, Wanted::StreamListener { number, spec }, now);
    }

    fn cancel_stream(&mut self, member: usize, token: Token, now: &mut Now<'_>) {
        let Some(number) = self.from_fea.abandon_stream(member, token) else { return };
        let error = "connecting was given up, as was asked for".to_owned();
        self.tell_stream(member, token, StreamEvent::Failed { error });
        self.tell_fea(Wanted::StreamOver { number }, now);
    }

    /// A member closes what may be such a listener.
    pub(super) fn listener_closed(&mut self, member: usize, token: Token, now: &mut Now<'_>) {
        if let Some(Listener { number, .. }) = self.streams.listeners.remove(&(member, token)) {
            self.tell_fea(Wanted::StreamListenerOver { number }, now);
        }
    }

    /// Tells the FEA something to which there is no answer.
    fn tell_fea(&mut self, wanted: Wanted, now: &mut Now<'_>) {
        let asked = Asked { member: OWN, token: Token(0), wanted, deadline: now.time };
        self.ask_fea(asked, now);
    }

    pub(super) fn tell_stream(&mut self, member: usize, token: Token, event: StreamEvent) {
        let event = Event::Stream { token, event };
        self.inputs.push_back((member, crate::Input::World(event)));
    }

    /// The FEA has answered what concerns connections.
    pub(super) fn stream_answered(
        &mut self,
        asked: Asked,
        result: Result<Reply, XrlError>,
        now: &mut Now<'_>,
    ) {
        let (member, token) = (asked.member, asked.token);
        let done = match &asked.wanted {
            Wanted::Stream { .. } => result
                .and_then(|reply| reply.read::<fea::OpenStream>())
                .map(|fea::OpenStreamReply { stream, .. }| Some(StreamRequest::Adopt(stream))),
            Wanted::StreamListener { number, .. } => {
                let reply = result.and_then(|reply| reply.read::<fea::OpenStreamListener>());
                self.listener_opened((member, token), *number, reply)
            }
            Wanted::StreamKeys { number, .. } => {
                let known = result.and_then(|reply| reply.read::<fea::SetStreamKeys>());
                match known.map(|reply| reply.known) {
                    Ok(true) => {
                        let event = StreamEvent::KeysSet { result: Ok(()) };
                        self.tell_stream(member, token, event);
                    }
                    Ok(false) => self.listen_anew(member, token, *number, now),
                    Err(error) => return self.tell_failure(asked, error.note),
                }
                Ok(None)
            }
            Wanted::StreamAbandoned => {
                if let Ok(fea::OpenStreamReply { stream, .. }) =
                    result.and_then(|reply| reply.read::<fea::OpenStream>())
                {
                    // It is closed as soon as it is a channel.
                    let token = members::own_token(Token(0));
                    now.out.push(Action::Stream { token, request: StreamRequest::Adopt(stream) });
                }
                Ok(None)
            }
            _ => Ok(None),
        };
        match done {
            Ok(Some(request)) => {
                let mut action = Action::Stream { token, request };
                members::tag_token(member, &mut action);
                now.out.push(action);
            }
            Ok(None) => {}
            Err(error) => self.tell_failure(asked, error.note),
        }
    }

    /// The FEA has opened a socket that listens, or could not; what to do with it.
    fn listener_opened(
        &mut self,
        key: (usize, Token),
        number: u32,
        reply: Result<fea::OpenStreamListenerReply, XrlError>,
    ) -> Result<Option<StreamRequest>, XrlError> {
        let listeners = &mut self.streams.listeners;
        let current = listeners.get_mut(&key).filter(|listener| listener.number == number);
        match (reply, current) {
            (Ok(fea::OpenStreamListenerReply { listener, local }), Some(current)) => {
                // The next one is to listen at the same port.
                if let Ok(local) = local.parse() {
                    current.spec.local = local;
                }
                Ok(Some(StreamRequest::AdoptListener(listener)))
            }
            (Err(error), Some(_)) => {
                listeners.remove(&key);
                Err(error)
            }
            // It was closed meanwhile.
            (_, None) => Ok(None),
        }
    }

    /// Opens a listener anew whose keys nobody can change.
    fn listen_anew(&mut self, member: usize, token: Token, number: u32, now: &mut Now<'_>) {
        let listener = self.streams.listeners.get(&(member, token));
        let Some(listener) = listener.filter(|listener| listener.number == number) else { return };
        let spec = listener.spec.clone();
        let mut action = Action::CloseListener { token };
        members::tag_token(member, &mut action);
        now.out.push(action);
        self.have_listening(member, token, spec, now);
        self.tell_stream(member, token, StreamEvent::KeysSet { result: Ok(()) });
    }
}

/// How the FEA is asked to connect.
pub(super) fn open(number: u64, stream: u32, spec: &StreamSpec) -> Call {
    let StreamSpec { peer, local, key, options } = spec;
    let port = local.map(|local| local.port()).filter(|port| *port != 0);
    let of = asked(options);
    let scope = scope(*peer).or_else(|| local.and_then(scope));
    let request = fea::OpenStream {
        number: stream,
        peer: peer.ip(),
        port: peer.port().into(),
        local: local.map(|local| local.ip()),
        local_port: port.map(u32::from),
        scope,
        interface: options.interface.clone(),
        ttl: of.ttl,
        least_ttl: of.least_ttl,
        traffic_class: Some(options.traffic_class.into()),
        user_timeout: of.user_timeout,
        key: key.as_ref().map(|key| Binary(key.bytes().to_vec())),
    };
    Call::new(number, super::from_fea::FEA, request).within(CONNECTING)
}

/// How the FEA is asked to listen.
pub(super) fn listen(number: u64, listener: u32, spec: &StreamListenerSpec) -> Call {
    let StreamListenerSpec { local, keys, least_ttls, options } = spec;
    let of = asked(options);
    let request = fea::OpenStreamListener {
        number: listener,
        local: local.ip(),
        port: local.port().into(),
        keys: told(keys),
        scope: scope(*local),
        interface: options.interface.clone(),
        ttl: of.ttl,
        least_ttl: of.least_ttl,
        traffic_class: Some(options.traffic_class.into()),
        user_timeout: of.user_timeout,
        least_ttls: Some(least_ttls.iter().filter_map(least_ttl).collect()),
    };
    Call::new(number, super::from_fea::FEA, request)
}

/// From how far the peers in a network may come, which was checked, as the FEA is told it.
fn least_ttl(PeerTtl { network, prefix_length, least }: &PeerTtl) -> Option<fea::StreamTtl> {
    let network = IpNet::new(*network, *prefix_length).ok()?;
    Some(fea::StreamTtl { network, least: least.get().into() })
}

/// The keys of a listener, which were checked, as the FEA is told them.
pub(super) fn told(keys: &[PeerKey]) -> Vec<fea::StreamKey> {
    let told = |PeerKey { network, prefix_length, key }: &PeerKey| {
        let network = IpNet::new(*network, *prefix_length).ok()?;
        Some(fea::StreamKey { network, key: Binary(key.bytes().to_vec()) })
    };
    keys.iter().filter_map(told).collect()
}

struct Options {
    ttl: Option<u32>,
    least_ttl: Option<u32>,
    user_timeout: Option<u32>,
}

fn asked(options: &StreamOptions) -> Options {
    let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Options {
        ttl: options.ttl.map(|ttl| ttl.get().into()),
        least_ttl: options.least_ttl.map(|ttl| ttl.get().into()),
        user_timeout: options.user_timeout.map(millis),
    }
}

fn scope(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id()),
        _ => None,
    }
}
