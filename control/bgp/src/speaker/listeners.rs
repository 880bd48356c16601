//! The sockets at which peers connect, one for each version of IP.
//!
//! Reference: RFC 4271 §8.2.1 (accepting connections); RFC 2385 (keys of peers); RFC 5082 §3 (what is checked before a
//! connection is accepted).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU8;
use std::time::Duration;

use ipnet::IpNet;
use weft_base::{Instant, Token};
use weft_runtime::{
    Action, Level, MOST_LEAST_TTLS, PeerKey, PeerTtl, StreamEvent, StreamListenerSpec,
    StreamRequest,
};
use weft_xrl::Output;

use crate::config::{Config, PORT, PeerConfig, least_ttl, listener};

/// What the sockets are to the driver: of IPv4 and of IPv6.
pub(super) const LISTENERS: [Token; 2] = [Token(1), Token(2)];
/// When a socket that could not be opened is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a connection that was opened by an old key may wait until it is accepted.
const STRAY: Duration = Duration::from_secs(1);

/// Both sockets.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    /// As they are, or are to be.
    specs: [Option<StreamListenerSpec>; 2],
    /// When one is opened again.
    again: [Option<Instant>; 2],
    /// Whose keys have changed.
    rekeyed: [Rekeyed; 2],
}

/// Those whose keys have changed while a socket was open: what it accepts of them may be signed by the key before.
#[derive(Debug, Default)]
struct Rekeyed {
    nets: Vec<IpNet>,
    /// Until when that may be; none while the socket does not have the new keys.
    until: Option<Instant>,
}

impl Rekeyed {
    /// The socket is given other keys.
    fn change(&mut self, had: &[PeerKey], wanted: &[PeerKey]) {
        let others = |these: &[PeerKey], those: &[PeerKey]| -> Vec<IpNet> {
            let others = these.iter().filter(|one| !those.contains(one));
            others.filter_map(|one| IpNet::new(one.network, one.prefix_length).ok()).collect()
        };
        self.nets.extend(others(had, wanted));
        self.nets.extend(others(wanted, had));
        self.until = None;
    }
}

impl Listeners {
    /// Opens, changes and closes them as the configuration wants it; none are open without one.
    pub(super) fn configure(&mut self, config: Option<&Config>, out: &mut Vec<Output>) {
        for (place, token) in LISTENERS.into_iter().enumerate() {
            let wanted = config.and_then(|config| spec(place == 0, config));
            if self.specs[place] == wanted {
                continue;
            }
            let had = std::mem::replace(&mut self.specs[place], wanted);
            let same = |one: &StreamListenerSpec| (one.options.clone(), one.least_ttls.clone());
            match (had, &self.specs[place]) {
                (Some(had), Some(wanted)) if same(&had) == same(wanted) => {
                    // Connections that are open keep their keys.
                    self.rekeyed[place].change(&had.keys, &wanted.keys);
                    let request = StreamRequest::SetKeys(wanted.keys.clone());
                    out.push(Output::World(Action::Stream { token, request }));
                }
                (had, _) => {
                    if had.is_some() {
                        out.push(Output::World(Action::CloseListener { token }));
                    }
                    self.open(place, out);
                }
            }
        }
    }

    fn open(&mut self, place: usize, out: &mut Vec<Output>) {
        self.again[place] = None;
        self.rekeyed[place] = Rekeyed::default();
        if let Some(spec) = &self.specs[place] {
            let (token, request) = (LISTENERS[place], StreamRequest::Listen(spec.clone()));
            out.push(Output::World(Action::Stream { token, request }));
        }
    }

    /// Whether it is checked that connections from this address have come over no more than so many hops.
    pub(super) fn checks_hops(&self, address: IpAddr, hops: u8) -> bool {
        let spec = self.specs[usize::from(address.is_ipv6())].as_ref();
        spec.is_some_and(|spec| spec.options_for(address).least_ttl >= least_ttl(hops))
    }

    /// Whether a connection from this address may have been opened by a key that does not hold any more.
    pub(super) fn may_have_old_key(&self, now: Instant, address: IpAddr) -> bool {
        let rekeyed = &self.rekeyed[usize::from(address.is_ipv6())];
        rekeyed.until.is_none_or(|until| now < until)
            && rekeyed.nets.iter().any(|net| net.contains(&address))
    }

    /// Something of a socket but a new connection.
    pub(super) fn event(
        &mut self,
        now: Instant,
        place: usize,
        event: &StreamEvent,
        out: &mut Vec<Output>,
    ) {
        let wrong = match event {
            StreamEvent::Listening { .. } => {
                self.again[place] = None;
                return;
            }
            StreamEvent::KeysSet { result: Ok(()) } => {
                self.rekeyed[place].until = Some(now + STRAY);
                return;
            }
            StreamEvent::KeysSet { result: Err(error) } => {
                // A socket of an FEA that is not there any more: another one can have them.
                out.push(Output::World(Action::CloseListener { token: LISTENERS[place] }));
                error
            }
            StreamEvent::Failed { error } => error,
            _ => return,
        };
        let line = format!("no connections are accepted, and will be tried again: {wrong}");
        out.push(Output::World(Action::Report { level: Level::Warning, line }));
        self.again[place] = Some(now + AGAIN);
    }

    /// When something is to be done at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.again.into_iter().flatten().min()
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        for place in 0..LISTENERS.len() {
            if self.again[place].is_some_and(|again| again <= now) {
                self.open(place, out);
            }
        }
    }
}

/// What a socket is to be like; none if no peer would connect there.
fn spec(is_v4: bool, config: &Config) -> Option<StreamListenerSpec> {
    let address: IpAddr =
        if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let named = config.peers.iter().map(|(address, peer)| (IpNet::from(*address), peer));
    let ranges = config.ranges.iter().map(|range| (range.net, &range.peer));
    let of_version = |(net, _): &(IpNet, &PeerConfig)| net.addr().is_ipv4() == is_v4;
    let peers: Vec<_> = named.chain(ranges).filter(of_version).collect();
    peers.first()?;
    let keys = peers.iter().filter_map(|(net, peer)| {
        let key = peer.session.key.clone()?;
        Some(PeerKey { network: net.addr(), prefix_length: net.prefix_len(), key })
    });
    let (options, _) = listener(peers.iter().map(|(_, peer)| peer.session.ttl_security));
    Some(StreamListenerSpec {
        local: SocketAddr::new(address, PORT),
        keys: keys.collect(),
        least_ttls: least_ttls(&peers, options.least_ttl),
        options,
    })
}

/// What is to be checked of peers beyond what is checked of all; of as many as a socket can check it of.
fn least_ttls(peers: &[(IpNet, &PeerConfig)], of_all: Option<NonZeroU8>) -> Vec<PeerTtl> {
    let least = |peer: &PeerConfig| peer.session.ttl_security.and_then(least_ttl);
    let is_near = |peer: &PeerConfig| least(peer) > of_all;
    // Ranges hold peers of which less is demanded.
    let is_range = |net: &IpNet| net.prefix_len() < net.max_prefix_len();
    let ranges: Vec<_> =
        peers.iter().filter(|(net, peer)| is_range(net) && is_near(peer)).collect();
    let is_inside =
        |net: &IpNet| ranges.iter().any(|(range, _)| range != net && range.contains(net));
    let differ = peers.iter().filter(|(net, peer)| is_near(peer) || is_inside(net));
    let told = differ.map(|(net, peer)| PeerTtl {
        network: net.addr(),
        prefix_length: net.prefix_len(),
        least: least(peer).unwrap_or(NonZeroU8::MIN),
    });
    let mut told: Vec<_> = told.collect();
    // If not all of them can be checked, nobody is refused for it that need not be near; connections of others are closed.
    told.sort_by_key(|one| one.least);
    told.truncate(MOST_LEAST_TTLS);
    told
}
