//! Connections of TCP to peers that speak protocols of others, such as BGP, made for other processes, and sockets
//! that listen for such connections.
//!
//! Reference: Handley et al. (XORP), §7: all network access goes through the FEA.
//!
//! A connection is its caller's from the answer on, and goes on when the FEA dies. Of a socket that listens a duplicate
//! stays here, because its keys take a system call that its holder may not make; it is closed with the caller's
//! connection to the FEA at the latest.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::num::NonZeroU8;
use std::time::Duration;

use weft_base::Token;
use weft_runtime::{
    Action, NETWORK_CONTROL, PeerKey, PeerTtl, StreamEvent, StreamKey, StreamListenerSpec,
    StreamOptions, StreamRequest, StreamSpec,
};
use weft_xrl::{Called, Encoded, Output, XrlError, fea};

/// The most connections that are being made, and the most sockets that listen, of one caller. It must be able to make
/// other calls, too, of which it may not make more than 1,024 at a time.
const MOST: usize = 768;

#[derive(Default)]
pub(crate) struct Streams {
    /// Calls that are not answered yet. Those of one token are answered in order.
    waiting: BTreeMap<Token, VecDeque<Called>>,
    /// What callers call the connections that are being made, and their sockets, by their sessions.
    making: BTreeMap<(u64, u32), Token>,
    listeners: BTreeMap<(u64, u32), Token>,
}

/// What a caller wants.
pub(crate) enum Wish {
    Open { number: u32, spec: StreamSpec },
    Cancel { number: u32 },
    Listen { number: u32, spec: StreamListenerSpec },
    SetKeys { number: u32, keys: Vec<PeerKey> },
    Close { number: u32 },
}

/// What was opened for somebody, or could not be.
pub(crate) enum Opened {
    Stream,
    Listener,
    Failed,
}

impl Streams {
    /// Does what a caller wants, under a token that nothing else has.
    pub(crate) fn carry_out(
        &mut self,
        token: Token,
        called: Called,
        wish: Wish,
        out: &mut Vec<Output>,
    ) {
        let session = called.session;
        let of_caller = |numbers: &BTreeMap<(u64, u32), Token>| {
            numbers.range((session, 0)..=(session, u32::MAX)).count()
        };
        match wish {
            Wish::Open { number, spec } => {
                if of_caller(&self.making) >= MOST {
                    return out
                        .push(called.fail(too_many("connections of this caller are being made")));
                }
                self.making.insert((session, number), token);
                self.ask(token, called, StreamRequest::OpenHandle(spec), out);
            }
            Wish::Listen { number, spec } => {
                self.close((session, number), out);
                if of_caller(&self.listeners) >= MOST {
                    return out.push(called.fail(too_many("sockets of this caller listen")));
                }
                self.listeners.insert((session, number), token);
                self.ask(token, called, StreamRequest::OpenListenerHandle(spec), out);
            }
            Wish::SetKeys { number, keys } => match self.listeners.get(&(session, number)) {
                Some(token) => self.ask(*token, called, StreamRequest::SetKeys(keys), out),
                None => out.push(called.answer(Ok(fea::SetStreamKeysReply { known: false }))),
            },
            Wish::Cancel { number } => {
                if let Some(token) = self.making.get(&(session, number)) {
                    out.push(stream(*token, StreamRequest::Cancel));
                }
                out.push(Output::Answer { id: called.id, result: Ok(Encoded::default()) });
            }
            Wish::Close { number } => {
                self.close((session, number), out);
                out.push(Output::Answer { id: called.id, result: Ok(Encoded::default()) });
            }
        }
    }

    fn ask(&mut self, token: Token, called: Called, request: StreamRequest, out: &mut Vec<Output>) {
        self.waiting.entry(token).or_default().push_back(called);
        out.push(stream(token, request));
    }

    fn close(&mut self, key: (u64, u32), out: &mut Vec<Output>) {
        if let Some(token) = self.listeners.remove(&key) {
            out.push(Output::World(Action::CloseListener { token }));
        }
    }

    /// The driver has answered; what was opened.
    pub(crate) fn answered(
        &mut self,
        token: Token,
        event: StreamEvent,
        out: &mut Vec<Output>,
    ) -> Option<Opened> {
        let waiting = self.waiting.get_mut(&token)?;
        // Nobody waits for it if the caller has left. What was opened is closed then.
        let called = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&token);
        }
        self.making.retain(|_, making| *making != token);
        let (answer, opened) = match event {
            StreamEvent::HandleOpened { handle, local, peer } => {
                let (local, peer) = (local.to_string(), peer.to_string());
                let reply = fea::OpenStreamReply { stream: handle, local, peer };
                (called.answer(Ok(reply)), Some(Opened::Stream))
            }
            StreamEvent::ListenerOpened { handle, local } => {
                let local = local.to_string();
                let reply = fea::OpenStreamListenerReply { listener: handle, local };
                (called.answer(Ok(reply)), Some(Opened::Listener))
            }
            StreamEvent::KeysSet { result: Ok(()) } => {
                (called.answer(Ok(fea::SetStreamKeysReply { known: true })), None)
            }
            StreamEvent::KeysSet { result: Err(error) } => {
                (called.fail(XrlError::failed(error)), None)
            }
            StreamEvent::Failed { error } => {
                self.listeners.retain(|_, listener| *listener != token);
                (called.fail(XrlError::failed(error)), Some(Opened::Failed))
            }
            StreamEvent::Opened { .. }
            | StreamEvent::Listening { .. }
            | StreamEvent::Accepted { .. } => return None,
        };
        out.push(answer);
        opened
    }

    /// A caller is gone.
    pub(crate) fn left(&mut self, session: u64, out: &mut Vec<Output>) {
        let of_caller = (session, 0)..=(session, u32::MAX);
        for (_, token) in self.making.extract_if(of_caller.clone(), |_, _| true) {
            out.push(stream(token, StreamRequest::Cancel));
        }
        for (_, token) in self.listeners.extract_if(of_caller, |_, _| true) {
            out.push(Output::World(Action::CloseListener { token }));
        }
        self.waiting.retain(|_, waiting| waiting.iter().all(|called| called.session != session));
    }
}

fn stream(token: Token, request: StreamRequest) -> Output {
    Output::World(Action::Stream { token, request })
}

fn too_many(what: &str) -> XrlError {
    XrlError::failed(format!("{MOST} {what}, and more are not allowed: wait, or close some"))
}

/// Reads a request for a connection.
///
/// # Errors
/// Its arguments are no connection.
pub(crate) fn open(request: fea::OpenStream) -> Result<Wish, XrlError> {
    let scope = request.scope;
    let peer = address(request.peer, request.port, scope)?;
    let local_port = request.local_port.unwrap_or_default();
    let local = match request.local {
        Some(local) => Some(address(local, local_port, scope)?),
        None if local_port != 0 => {
            let any = if peer.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
            Some(address(any, local_port, None)?)
        }
        None => None,
    };
    let key = request.key.map(|key| StreamKey::new(key.0)).transpose();
    let key = key.map_err(XrlError::bad_args)?;
    let options = options(
        request.interface,
        request.ttl,
        request.least_ttl,
        request.traffic_class,
        request.user_timeout,
    )?;
    let spec = StreamSpec { peer, local, key, options };
    spec.check().map_err(XrlError::bad_args)?;
    Ok(Wish::Open { number: request.number, spec })
}

/// Reads a request for a socket that listens.
///
/// # Errors
/// Its arguments are none.
pub(crate) fn listen(request: fea::OpenStreamListener) -> Result<Wish, XrlError> {
    let local = address(request.local, request.port, request.scope)?;
    let options = options(
        request.interface,
        request.ttl,
        request.least_ttl,
        request.traffic_class,
        request.user_timeout,
    )?;
    let least_ttl = |fea::StreamTtl { network, least }: fea::StreamTtl| {
        let (network, prefix_length) = (network.addr(), network.prefix_len());
        Ok(PeerTtl { network, prefix_length, least: hops("least time to live", least)? })
    };
    let least_ttls = request
        .least_ttls
        .unwrap_or_default()
        .into_iter()
        .map(least_ttl)
        .collect::<Result<_, XrlError>>()?;
    let spec = StreamListenerSpec { local, keys: keys(request.keys)?, least_ttls, options };
    spec.check().map_err(XrlError::bad_args)?;
    Ok(Wish::Listen { number: request.number, spec })
}

/// Reads a request for other keys.
///
/// # Errors
/// One of them is none.
pub(crate) fn set_keys(request: fea::SetStreamKeys) -> Result<Wish, XrlError> {
    Ok(Wish::SetKeys { number: request.number, keys: keys(request.keys)? })
}

fn keys(keys: Vec<fea::StreamKey>) -> Result<Vec<PeerKey>, XrlError> {
    let read = |fea::StreamKey { network, key }: fea::StreamKey| {
        let key = StreamKey::new(key.0).map_err(XrlError::bad_args)?;
        let (network, prefix_length) = (network.addr(), network.prefix_len());
        Ok(PeerKey { network, prefix_length, key })
    };
    keys.into_iter().map(read).collect()
}

fn options(
    interface: Option<String>,
    ttl: Option<u32>,
    least_ttl: Option<u32>,
    traffic_class: Option<u32>,
    user_timeout: Option<u32>,
) -> Result<StreamOptions, XrlError> {
    let class = traffic_class.unwrap_or(NETWORK_CONTROL.into());
    let wrong = |_| XrlError::bad_args(format!("the traffic class {class} is more than 255"));
    Ok(StreamOptions {
        interface,
        ttl: ttl.map(|ttl| hops("time to live", ttl)).transpose()?,
        least_ttl: least_ttl.map(|ttl| hops("least time to live", ttl)).transpose()?,
        traffic_class: u8::try_from(class).map_err(wrong)?,
        user_timeout: user_timeout.map(|millis| Duration::from_millis(millis.into())),
    })
}

fn hops(what: &str, ttl: u32) -> Result<NonZeroU8, XrlError> {
    let wrong = || XrlError::bad_args(format!("the {what} {ttl} is not one of 1 to 255"));
    u8::try_from(ttl).ok().and_then(NonZeroU8::new).ok_or_else(wrong)
}

/// An address, on the link of this number if it is one of a link.
fn address(ip: IpAddr, port: u32, scope: Option<u32>) -> Result<SocketAddr, XrlError> {
    let wrong = |_| XrlError::bad_args(format!("{port} is no port of TCP: these are 0 to 65535"));
    let port = u16::try_from(port).map_err(wrong)?;
    Ok(match ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => {
            SocketAddrV6::new(ip, port, 0, scope.unwrap_or_default()).into()
        }
        ip => SocketAddr::new(ip, port),
    })
}

#[cfg(test)]
mod tests {
    use weft_xrl::{Binary, IpNet};

    use super::*;

    fn request(peer: &str) -> fea::OpenStream {
        fea::OpenStream {
            number: 1,
            peer: peer.parse().unwrap(),
            port: 179,
            local: None,
            local_port: None,
            scope: None,
            interface: None,
            ttl: None,
            least_ttl: None,
            traffic_class: None,
            user_timeout: None,
            key: None,
        }
    }

    fn spec(request: fea::OpenStream) -> Result<StreamSpec, String> {
        match open(request) {
            Ok(Wish::Open { spec, .. }) => Ok(spec),
            Ok(_) => panic!("it is a connection"),
            Err(error) => Err(error.note),
        }
    }

    #[test]
    fn arguments_say_which_connection() {
        let plain = spec(request("192.0.2.1")).unwrap();
        assert_eq!(plain.peer.to_string(), "192.0.2.1:179");
        assert_eq!((plain.local, plain.key, plain.options), (None, None, StreamOptions::default()));
        let all = fea::OpenStream {
            local: Some("fe80::2".parse().unwrap()),
            local_port: Some(1790),
            scope: Some(7),
            interface: Some("eth0".to_owned()),
            ttl: Some(255),
            least_ttl: Some(254),
            traffic_class: Some(0),
            user_timeout: Some(1500),
            key: Some(Binary(b"key".to_vec())),
            ..request("fe80::1")
        };
        let all = spec(all).unwrap();
        assert_eq!(all.peer.to_string(), "[fe80::1%7]:179");
        assert_eq!(all.local.unwrap().to_string(), "[fe80::2%7]:1790");
        assert_eq!(all.key.unwrap().bytes(), b"key");
        assert_eq!(all.options.ttl.unwrap().get(), 255);
        assert_eq!(all.options.least_ttl.unwrap().get(), 254);
        assert_eq!(all.options.traffic_class, 0);
        assert_eq!(all.options.user_timeout, Some(Duration::from_millis(1500)));
        let port = fea::OpenStream { local_port: Some(1), ..request("2001:db8::1") };
        assert_eq!(spec(port).unwrap().local.unwrap().to_string(), "[::]:1");
    }

    #[test]
    fn what_is_no_connection_is_refused_with_a_reason() {
        for (wrong, part) in [
            (fea::OpenStream { port: 65536, ..request("192.0.2.1") }, "no port of TCP"),
            (fea::OpenStream { port: 0, ..request("192.0.2.1") }, "no address of a peer"),
            (fea::OpenStream { ttl: Some(0), ..request("192.0.2.1") }, "not one of 1 to 255"),
            (
                fea::OpenStream { least_ttl: Some(256), ..request("192.0.2.1") },
                "least time to live",
            ),
            (fea::OpenStream { traffic_class: Some(256), ..request("192.0.2.1") }, "traffic class"),
            (request("fe80::1"), "of which interface"),
            (
                fea::OpenStream { key: Some(Binary(vec![0; 81])), ..request("192.0.2.1") },
                "1 to 80 bytes",
            ),
        ] {
            let error = spec(wrong).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let network: IpNet = "2001:db8::/32".parse().unwrap();
        let wrong = fea::OpenStreamListener {
            number: 1,
            local: "0.0.0.0".parse().unwrap(),
            port: 179,
            keys: vec![fea::StreamKey { network, key: Binary(vec![1]) }],
            scope: None,
            interface: None,
            ttl: None,
            least_ttl: None,
            traffic_class: None,
            user_timeout: None,
            least_ttls: None,
        };
        let error = listen(wrong).err().unwrap().note;
        assert!(error.contains("a socket of IPv4 cannot have a key"), "{error}");
    }

    #[test]
    fn how_far_peers_may_be_away_is_read_and_checked() {
        let listener = |network: &str, least| fea::OpenStreamListener {
            number: 1,
            local: "0.0.0.0".parse().unwrap(),
            port: 179,
            keys: Vec::new(),
            scope: None,
            interface: None,
            ttl: None,
            least_ttl: None,
            traffic_class: None,
            user_timeout: None,
            least_ttls: Some(vec![fea::StreamTtl { network: network.parse().unwrap(), least }]),
        };
        let Ok(Wish::Listen { spec, .. }) = listen(listener("192.0.2.0/24", 255)) else { panic!() };
        let least = NonZeroU8::MAX;
        let network = "192.0.2.0".parse().unwrap();
        assert_eq!(spec.least_ttls, [PeerTtl { network, prefix_length: 24, least }]);
        for (wrong, part) in [
            (listener("192.0.2.0/24", 0), "the least time to live 0 is not one of 1 to 255"),
            (listener("2001:db8::/32", 255), "a socket of IPv4 cannot check"),
        ] {
            let error = listen(wrong).err().unwrap().note;
            assert!(error.contains(part), "{error}");
        }
    }
}
