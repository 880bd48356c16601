//! What the configuration says of a session besides what is exchanged: how connections are protected, roles, limits.
//!
//! Reference: RFC 2385 (keys), RFC 5082 (time to live), RFC 9234 §4 (roles), RFC 4486 §4 and RFC 4271 §6.7 (limits on
//! prefixes), RFC 8950 (next hops of IPv6), RFC 8326 (graceful shutdown), RFC 9003 (texts of a shutdown), RFC 7999 §3.3 (both
//! sides have to agree on blackholes).

use std::num::NonZeroU8;
use std::time::Duration;

use weft_config::{Block, Errors, Keyword};
use weft_protocol::md5_key;
use weft_runtime::{StreamKey, StreamOptions};

use crate::fsm::Transport;
use crate::wire::{MAX_SHUTDOWN_TEXT, Neighbour, Role};

/// RFC 4271 §10.
const CONNECT_RETRY: Duration = Duration::from_secs(120);
/// As long as a peer that has connected may take for its OPEN (RFC 4271 §8.2.2 suggests 4 minutes).
const MOST_DELAY: Duration = Duration::from_secs(240);
/// Longer than anybody waits for routes.
const MOST_INTERVAL: Duration = Duration::from_secs(600);
/// With which packets are sent whose receiver checks how far they have come (RFC 5082 §3).
const FULL_TTL: u8 = 255;

/// A role that can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named(Role);

impl Keyword for Named {
    const WHAT: &'static str = "a role";
    const ALL: &'static [(&'static str, Self)] = &[
        ("provider", Self(Role::Provider)),
        ("route-server", Self(Role::RouteServer)),
        ("route-server-client", Self(Role::RouteServerClient)),
        ("customer", Self(Role::Customer)),
        ("peer", Self(Role::Peer)),
    ];
}

/// What is done with a peer that announces more prefixes than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The operator is told.
    Warn,
    /// The session ends.
    End,
}

impl Keyword for Excess {
    const WHAT: &'static str = "what is done beyond the limit";
    const ALL: &'static [(&'static str, Self)] = &[("end", Self::End), ("warn", Self::Warn)];
}

/// How many prefixes of each family a peer may announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixLimit {
    pub(crate) most: usize,
    pub(crate) excess: Excess,
    /// When the session begins again; none if an operator has to say so.
    pub(crate) restart_after: Option<Duration>,
}

/// What is said of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionConfig {
    /// The key by which both sides sign what they send.
    pub(crate) key: Option<StreamKey>,
    /// At how many hops at most the peer is, which is checked.
    pub(crate) ttl_security: Option<u8>,
    /// At how many hops the peer may be, as packets of connections that are opened here can go no farther.
    pub(crate) multihop: Option<NonZeroU8>,
    /// What this router is to the peer.
    pub(crate) role: Option<Role>,
    pub(crate) role_strict: bool,
    /// The paths of its routes have to begin with its system, as those of a route server do not (RFC 7947 §2.2.2.1).
    pub(crate) enforce_first_as: bool,
    /// Routes are taken whose paths have sets (RFC 9774).
    pub(crate) accept_as_sets: bool,
    pub(crate) connect_retry: Duration,
    /// For how long the peer may send its OPEN first.
    pub(crate) delay_open: Duration,
    /// Between two times that the peer is told of changes (RFC 4271 §9.2.1.1).
    pub(crate) advertisement_interval: Duration,
    /// Routes of IPv4 may have next hops of IPv6.
    pub(crate) extended_next_hop: bool,
    pub(crate) prefix_limit: Option<PrefixLimit>,
    /// Packets for its routes that say so are dropped (RFC 7999).
    pub(crate) blackhole: bool,
    /// Its routes are told as those of a way that will soon be closed.
    pub(crate) graceful_shutdown: bool,
    /// There is no session, and the peer's operator is told this.
    pub(crate) shutdown: Option<String>,
    pub(crate) description: Option<String>,
}

impl SessionConfig {
    pub(super) fn read(block: &mut Block<'_>, neighbour: Neighbour) -> Result<Self, Errors> {
        let ttl_security = block.leaf_in("ttl-security", 1..=FULL_TTL - 1)?;
        let role = role(block, neighbour)?;
        let is_of_server = role == Some(Role::RouteServerClient);
        Ok(Self {
            key: md5_key(block)?,
            ttl_security,
            multihop: block.leaf_in("multihop", 1..=FULL_TTL)?.and_then(NonZeroU8::new),
            role,
            role_strict: block.leaf("role-strict")?.unwrap_or(false),
            enforce_first_as: block.leaf("enforce-first-as")?.unwrap_or(!is_of_server),
            accept_as_sets: block.leaf("accept-as-sets")?.unwrap_or(false),
            connect_retry: block.leaf("connect-retry")?.unwrap_or(CONNECT_RETRY),
            delay_open: at_most(block, "delay-open", MOST_DELAY)?,
            advertisement_interval: at_most(block, "advertisement-interval", MOST_INTERVAL)?,
            extended_next_hop: block.leaf("extended-next-hop")?.unwrap_or(false),
            prefix_limit: prefix_limit(block)?,
            blackhole: block.leaf("blackhole")?.unwrap_or(false),
            graceful_shutdown: block.leaf("graceful-shutdown")?.unwrap_or(false),
            shutdown: shutdown(block)?,
            description: block.leaf("description")?,
        })
    }

    /// The same without what can change while routes are exchanged.
    pub(super) fn hard(&self) -> Self {
        Self {
            connect_retry: Duration::ZERO,
            delay_open: Duration::ZERO,
            advertisement_interval: Duration::ZERO,
            prefix_limit: None,
            graceful_shutdown: false,
            shutdown: None,
            description: None,
            ..self.clone()
        }
    }

    /// Whether the peer, if it is in another system, has to be on a link of this router.
    pub(crate) fn is_direct(&self) -> bool {
        self.multihop.is_none() && self.ttl_security.is_none_or(|hops| hops == 1)
    }

    /// How connections are protected, as the session knows it.
    pub(crate) fn transport(&self) -> Transport {
        let md5_key = self.key.as_ref().map(|key| key.bytes().to_vec());
        Transport { md5_key, ttl_security_hops: self.ttl_security }
    }

    /// What connections that are opened to the peer are to be like. Those to a neighbour go no farther than to the next
    /// router, unless `multihop` says so.
    pub(crate) fn options(&self, neighbour: Neighbour) -> StreamOptions {
        let direct = NonZeroU8::new(1).filter(|_| neighbour != Neighbour::Internal);
        match self.ttl_security {
            Some(hops) => StreamOptions {
                ttl: NonZeroU8::new(FULL_TTL),
                least_ttl: least_ttl(hops),
                ..StreamOptions::default()
            },
            None => StreamOptions { ttl: self.multihop.or(direct), ..StreamOptions::default() },
        }
    }
}

/// A time of at most this length; none if nothing is said.
fn at_most(block: &mut Block<'_>, name: &str, most: Duration) -> Result<Duration, Errors> {
    Ok(block.leaf_in(name, Duration::ZERO..=most)?.unwrap_or(Duration::ZERO))
}

/// The least time to live of packets that have come from so many hops away.
pub(crate) fn least_ttl(hops: u8) -> Option<NonZeroU8> {
    NonZeroU8::new(FULL_TTL - hops + 1)
}

/// What sockets that listen are to be like for peers of these limits on hops: what comes is checked if all have one,
/// for all peers of a version of IP share a socket. The second value says whether it is.
pub(crate) fn listener(hops: impl Iterator<Item = Option<u8>>) -> (StreamOptions, bool) {
    let mut all = hops.peekable();
    let some = all.peek().is_some();
    let (mut farthest, mut has_any, mut has_none) = (0, false, false);
    for hops in all {
        farthest = farthest.max(hops.unwrap_or(0));
        (has_any, has_none) = (has_any || hops.is_some(), has_none || hops.is_none());
    }
    let checks = some && !has_none;
    let options = StreamOptions {
        ttl: NonZeroU8::new(FULL_TTL).filter(|_| has_any),
        least_ttl: if checks { least_ttl(farthest) } else { None },
        ..StreamOptions::default()
    };
    (options, checks)
}

/// A role, which has a meaning between autonomous systems only (RFC 9234 §4).
fn role(block: &mut Block<'_>, neighbour: Neighbour) -> Result<Option<Role>, Errors> {
    let Some(mut entry) = block.one("local-role")? else { return Ok(None) };
    let Named(role) = entry.argument("a role")?;
    entry.end()?;
    if neighbour != Neighbour::External {
        let sentence = "a peer in this autonomous system, or this confederation, has no role: leave this out, or mend `as`";
        return Err(entry.error_at(0, sentence).into());
    }
    Ok(Some(role))
}

fn prefix_limit(block: &mut Block<'_>) -> Result<Option<PrefixLimit>, Errors> {
    let Some(entry) = block.one("prefix-limit")? else { return Ok(None) };
    entry
        .read_block(|block| {
            Ok(PrefixLimit {
                most: block.required_in("most", 1..=usize::MAX)?,
                excess: block.leaf("action")?.unwrap_or(Excess::End),
                restart_after: block.leaf("restart-after")?,
            })
        })
        .map(Some)
}

/// Whether there is no session, and what its operator is told.
fn shutdown(block: &mut Block<'_>) -> Result<Option<String>, Errors> {
    let Some(mut entry) = block.one("shutdown")? else { return Ok(None) };
    let text: Option<String> = entry.optional()?;
    entry.end()?;
    let text = text.unwrap_or_default();
    if text.len() > MAX_SHUTDOWN_TEXT {
        let sentence = format!("a peer can be told no more than {MAX_SHUTDOWN_TEXT} bytes");
        return Err(entry.error_at(1, sentence).into());
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::super::{PeerConfig, read};
    use super::*;

    fn peer(number: u32, words: &str) -> Result<PeerConfig, String> {
        let text = format!(
            "bgp {{ as 1; router-id 192.0.2.1; peer 192.0.2.2 {{ as {number}; {words} }} }}"
        );
        let config = read("t", &text).map_err(|errors| errors.to_string())?.unwrap();
        Ok(config.peers.into_values().next().unwrap())
    }

    #[test]
    fn what_is_said_of_a_session_is_read() {
        let text = "md5-key hush; ttl-security 1; local-role customer; role-strict on; connect-retry 5s; \
                    delay-open 2s; advertisement-interval 30s; extended-next-hop on; blackhole on; prefix-limit { most 10; action warn; restart-after 300s; } \
                    shutdown \"back at 20:00\"; description \"the other one\";";
        let session = peer(2, text).unwrap().session;
        assert_eq!(session.key.as_ref().unwrap().bytes(), b"hush");
        assert_eq!((session.role, session.role_strict), (Some(Role::Customer), true));
        assert_eq!(session.connect_retry, Duration::from_secs(5));
        let times = [session.delay_open, session.advertisement_interval];
        assert_eq!(times, [2, 30].map(Duration::from_secs));
        let restart_after = Some(Duration::from_secs(300));
        let limit = PrefixLimit { most: 10, excess: Excess::Warn, restart_after };
        assert_eq!(session.prefix_limit, Some(limit));
        assert_eq!(session.shutdown.as_deref(), Some("back at 20:00"));
        assert!(!format!("{session:?}").contains("hush"), "keys are not shown");
        let options = session.options(Neighbour::External);
        assert_eq!([options.ttl, options.least_ttl].map(|ttl| ttl.unwrap().get()), [255, 255]);
        assert!(session.enforce_first_as && session.blackhole);
        assert!(!peer(2, "").unwrap().session.blackhole, "not unless it was agreed on");
        let of_server = |words: &str| peer(2, words).unwrap().session.enforce_first_as;
        assert!(
            !of_server("local-role route-server-client;") && !of_server("enforce-first-as off;")
        );
        assert!(of_server("local-role route-server-client; enforce-first-as on;"));
        let session = peer(2, "shutdown;").unwrap().session;
        assert_eq!(session.shutdown.as_deref(), Some(""));
    }

    #[test]
    fn connections_to_a_neighbour_go_no_farther() {
        let ttl = |number, words| {
            let session = peer(number, words).unwrap().session;
            let neighbour = if number == 1 { Neighbour::Internal } else { Neighbour::External };
            session.options(neighbour).ttl.map(NonZeroU8::get)
        };
        assert_eq!((ttl(2, ""), ttl(1, ""), ttl(2, "multihop 4;")), (Some(1), None, Some(4)));
    }

    #[test]
    fn a_socket_that_listens_checks_hops_if_all_peers_have_a_limit() {
        let checks = |hops: &[Option<u8>]| {
            let (options, checks) = listener(hops.iter().copied());
            assert_eq!(options.least_ttl.is_some(), checks);
            (options.ttl.map(NonZeroU8::get), options.least_ttl.map(NonZeroU8::get))
        };
        assert_eq!(checks(&[Some(1), Some(3)]), (Some(255), Some(253)));
        assert_eq!(checks(&[Some(1), None]), (Some(255), None));
        assert_eq!(checks(&[None]), (None, None));
        assert_eq!(checks(&[]), (None, None));
    }

    #[test]
    fn mistakes_in_sessions_have_places() {
        let long = format!("shutdown {};", "x".repeat(256));
        let key = format!("md5-key {};", "x".repeat(81));
        for (number, words, part) in [
            (1, "local-role peer;", "has no role"),
            (2, "ttl-security 255;", "254"),
            (2, "prefix-limit { }", "most"),
            (2, "advertisement-interval 601s;", "601s"),
            (2, "delay-open 5min;", "5min"),
            (2, &long, "255 bytes"),
            (2, &key, "80 bytes"),
        ] {
            let error = peer(number, words).unwrap_err();
            assert!(error.contains(part) && error.contains("t:1:"), "{error}");
            let (sentence, _) = error.split_once('\n').unwrap();
            assert!(!sentence.contains("xxx"), "{sentence}");
        }
    }
}
