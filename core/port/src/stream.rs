//! Connections of TCP to peers that speak protocols of others, such as BGP: what is opened, and how.
//!
//! Here are the options of their sockets; whoever opens them binds, connects and listens. A connection that is
//! accepted has the options of the socket that listens, and of its keys the one for its peer.
//!
//! Reference: tcp(7), ip(7), ipv6(7), socket(7); RFC 2385 (keys), RFC 5082 (time to live), RFC 5482 (user timeout),
//! RFC 4594 §3.2 (traffic class).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt;

use crate::sys;

/// The longest key, in bytes: `TCP_MD5SIG_MAXKEYLEN` of linux/tcp.h.
pub const LONGEST_KEY: usize = sys::stream::LONGEST_KEY;
/// The traffic class of what keeps a network going (CS6), which routing protocols use. Reference: RFC 4594 §3.2.
pub const NETWORK_CONTROL: u8 = 0xc0;
/// The longest name of an interface, in bytes: `IFNAMSIZ` of linux/if.h without the end.
const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;
/// The most networks for whose peers a socket that listens can check times to live.
pub const MOST_LEAST_TTLS: usize = sys::filter::MOST_NETWORKS;

/// A connection to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// To where. A link-local address says by its scope or by [`StreamOptions::interface`] on which link.
    pub peer: SocketAddr,
    /// From where; port 0 lets the system choose. Without it the system chooses the address, too.
    pub local: Option<SocketAddr>,
    /// The key by which both sides sign every segment, if they do. Reference: RFC 2385.
    pub key: Option<StreamKey>,
    /// What else.
    pub options: StreamOptions,
}

/// A socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamListenerSpec {
    /// Where; port 0 lets the system choose. An address of IPv6 takes connections of IPv6 alone, the unspecified
    /// one, too: whoever wants both listens twice.
    pub local: SocketAddr,
    /// Keys of peers. The kernel leaves segments unanswered that are not signed by the key of their sender, and
    /// signed ones of who has none. Of several that hold a peer the one with the longest prefix counts.
    pub keys: Vec<PeerKey>,
    /// From how far peers may come, where that is less than [`StreamOptions::least_ttl`] allows: at most
    /// [`MOST_LEAST_TTLS`]. Of several that hold a peer the one with the longest prefix counts. What comes from farther is
    /// dropped unanswered, before a connection is there and on it.
    pub least_ttls: Vec<PeerTtl>,
    /// What else; connections that are accepted have it, too.
    pub options: StreamOptions,
}

/// The properties of a connection or of those that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// The interface by which alone it sends and receives.
    pub interface: Option<String>,
    /// The time to live (IPv6: hop limit) of what it sends; without it the system's. For RFC 5082 it is 255.
    pub ttl: Option<NonZeroU8>,
    /// What comes with less time to live is dropped unanswered. Reference: RFC 5082 §3, where it is 255 for a peer
    /// on the same link.
    pub least_ttl: Option<NonZeroU8>,
    /// The byte of the IP header with the differentiated services field (RFC 2474).
    pub traffic_class: u8,
    /// How long what was sent may stay unacknowledged before the connection counts as broken, in whole
    /// milliseconds; without it as long as the system retransmits. Reference: RFC 5482.
    pub user_timeout: Option<Duration>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            interface: None,
            ttl: None,
            least_ttl: None,
            traffic_class: NETWORK_CONTROL,
            user_timeout: None,
        }
    }
}

/// A key by which segments are signed (RFC 2385), which is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamKey(Vec<u8>);

impl StreamKey {
    /// A key of these bytes.
    ///
    /// # Errors
    /// A sentence: it is empty or longer than [`LONGEST_KEY`].
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, String> {
        let bytes = bytes.into();
        match bytes.len() {
            1..=LONGEST_KEY => Ok(Self(bytes)),
            len => Err(format!(
                "a key of TCP has 1 to {LONGEST_KEY} bytes, and this one has {len}: choose another"
            )),
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamKey(..)")
    }
}

/// The key of the peers in a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerKey {
    /// The address of the network, or of the one peer. What is beyond the prefix does not count.
    pub network: IpAddr,
    /// How many of its first bits the peers have: all 32 or 128 for one peer.
    pub prefix_length: u8,
    /// The key.
    pub key: StreamKey,
}

/// The time to live with which the peers in a network must send. Reference: RFC 5082 §3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTtl {
    /// The address of the network, or of the one peer. What is beyond the prefix does not count.
    pub network: IpAddr,
    /// How many of its first bits the peers have: all 32 or 128 for one peer.
    pub prefix_length: u8,
    /// What comes with less time to live (IPv6: hop limit) is dropped; 1 demands nothing.
    pub least: NonZeroU8,
}

impl StreamSpec {
    /// Checks what can be told without the system.
    ///
    /// # Errors
    /// A sentence about what does not fit together.
    pub fn check(&self) -> Result<(), String> {
        let Self { peer, local, options, .. } = self;
        if peer.port() == 0 || peer.ip().is_unspecified() {
            return Err(format!("{peer} is no address of a peer: give an address and a port"));
        }
        if local.is_some_and(|local| local.is_ipv4() != peer.is_ipv4()) {
            let local = local.map(|local| local.to_string()).unwrap_or_default();
            return Err(format!(
                "a connection to {peer} cannot begin at {local}: both must be IPv4 or both IPv6"
            ));
        }
        options.check()?;
        options.check_scope(*peer)
    }
}

impl StreamListenerSpec {
    /// Checks what can be told without the system.
    ///
    /// # Errors
    /// A sentence about what does not fit together.
    pub fn check(&self) -> Result<(), String> {
        check_keys(&self.keys, self.local.is_ipv4())?;
        check_least_ttls(&self.least_ttls, self.local.is_ipv4())?;
        self.options.check()?;
        self.options.check_scope(self.local)
    }

    /// The properties of a connection with this peer.
    #[must_use]
    pub fn options_for(&self, peer: IpAddr) -> StreamOptions {
        let holds = |one: &&PeerTtl| {
            first_of(one.network, one.prefix_length) == first_of(peer, one.prefix_length)
        };
        let closest = self.least_ttls.iter().filter(holds).max_by_key(|one| one.prefix_length);
        let least_ttl = self.options.least_ttl.max(closest.map(|one| one.least));
        StreamOptions { least_ttl, ..self.options.clone() }
    }
}

impl StreamOptions {
    fn check(&self) -> Result<(), String> {
        let Some(name) = &self.interface else { return Ok(()) };
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains(['\0', '/']) {
            let name = name.escape_debug();
            return Err(format!(
                "`{name}` is no name of an interface: these have 1 to {LONGEST_NAME} bytes"
            ));
        }
        Ok(())
    }

    /// A link-local address means something on one link alone.
    fn check_scope(&self, address: SocketAddr) -> Result<(), String> {
        match address {
            SocketAddr::V6(v6)
                if v6.ip().is_unicast_link_local()
                    && v6.scope_id() == 0
                    && self.interface.is_none() =>
            {
                Err(format!("{address} is an address of a link: say of which interface"))
            }
            _ => Ok(()),
        }
    }
}

fn check_keys(keys: &[PeerKey], is_ipv4: bool) -> Result<(), String> {
    let longest = if is_ipv4 { 32 } else { 128 };
    for PeerKey { network, prefix_length, .. } in keys {
        if network.is_ipv4() != is_ipv4 || *prefix_length > longest {
            return Err(format!(
                "a socket of {} cannot have a key for peers in {network}/{prefix_length}",
                if is_ipv4 { "IPv4" } else { "IPv6" }
            ));
        }
    }
    Ok(())
}

fn check_least_ttls(least_ttls: &[PeerTtl], is_ipv4: bool) -> Result<(), String> {
    if least_ttls.len() > MOST_LEAST_TTLS {
        return Err(format!(
            "a socket can check how far peers in {MOST_LEAST_TTLS} networks are away, not in {}",
            least_ttls.len()
        ));
    }
    let longest = if is_ipv4 { 32 } else { 128 };
    for PeerTtl { network, prefix_length, .. } in least_ttls {
        if network.is_ipv4() != is_ipv4 || *prefix_length > longest {
            return Err(format!(
                "a socket of {} cannot check how far peers in {network}/{prefix_length} are away",
                if is_ipv4 { "IPv4" } else { "IPv6" }
            ));
        }
    }
    Ok(())
}

/// Has a socket that is to listen check how far peers are away; see [`StreamListenerSpec::least_ttls`].
///
/// # Errors
/// A sentence about what does not fit together or the system refuses.
pub fn require_ttls(
    socket: BorrowedFd<'_>,
    is_ipv4: bool,
    least_ttls: &[PeerTtl],
) -> Result<(), String> {
    check_least_ttls(least_ttls, is_ipv4)?;
    if least_ttls.is_empty() {
        return Ok(());
    }
    let of = |one: &PeerTtl| {
        let (network, prefix_length) = first_of(one.network, one.prefix_length);
        (network, prefix_length, one.least.get())
    };
    let mut networks: Vec<_> = least_ttls.iter().map(of).collect();
    networks.sort_by_key(|(_, prefix_length, _)| std::cmp::Reverse(*prefix_length));
    done("the least times to live", sys::filter::require_ttls(socket, is_ipv4, &networks))
}

/// Gives a TCP socket, which is neither bound nor connected yet, its properties.
///
/// # Errors
/// A sentence about what the system refuses.
pub fn prepare(
    socket: BorrowedFd<'_>,
    is_ipv4: bool,
    options: &StreamOptions,
) -> Result<(), String> {
    let class = options.traffic_class;
    // Messages of routing protocols are few and must not wait for one another.
    done("TCP_NODELAY", sockopt::set_tcp_nodelay(socket, true))?;
    if is_ipv4 {
        done("its traffic class", sockopt::set_ip_tos(socket, class))?;
    } else {
        done("IPV6_V6ONLY", sockopt::set_ipv6_v6only(socket, true))?;
        done("its traffic class", sockopt::set_ipv6_tclass(socket, class.into()))?;
    }
    if let Some(interface) = &options.interface {
        let what = format!("the interface {}", interface.escape_debug());
        done(&what, sys::stream::bind_to_interface(socket, interface))?;
    }
    if let Some(ttl) = options.ttl {
        let result = match is_ipv4 {
            true => sockopt::set_ip_ttl(socket, ttl.get().into()),
            false => sockopt::set_ipv6_unicast_hops(socket, Some(ttl.get())),
        };
        done("its time to live", result)?;
    }
    if let Some(least) = options.least_ttl {
        done("the least time to live", sys::stream::set_least_ttl(socket, is_ipv4, least.get()))?;
    }
    if let Some(timeout) = options.user_timeout {
        let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        done("its user timeout", sockopt::set_tcp_user_timeout(socket, millis))?;
    }
    Ok(())
}

fn done<E: Into<io::Error>>(what: &str, result: Result<(), E>) -> Result<(), String> {
    result.map_err(|error| format!("{what} cannot be set: {}", error.into()))
}

/// The keys that a socket has.
#[derive(Debug, Default)]
pub struct StreamKeys(BTreeMap<(IpAddr, u8), StreamKey>);

impl StreamKeys {
    /// Gives a socket, which may listen already, these keys and no others. Connections that it has accepted
    /// keep theirs.
    ///
    /// # Errors
    /// A sentence about the first that is refused; those before it hold, and those behind it do not.
    pub fn set(&mut self, socket: BorrowedFd<'_>, wanted: &[PeerKey]) -> Result<(), String> {
        let is_ipv4 = sockopt::socket_domain(socket) == Ok(rustix::net::AddressFamily::INET);
        check_keys(wanted, is_ipv4)?;
        let wanted: BTreeMap<_, _> = wanted
            .iter()
            .map(|one| (first_of(one.network, one.prefix_length), one.key.clone()))
            .collect();
        let gone: Vec<_> = self.0.keys().filter(|one| !wanted.contains_key(one)).copied().collect();
        for (network, prefix_length) in gone {
            let result = sys::stream::set_key(socket, network, prefix_length, &[]);
            done(&format!("the removal of the key of {network}/{prefix_length}"), result)?;
            self.0.remove(&(network, prefix_length));
        }
        for ((network, prefix_length), key) in wanted {
            if self.0.get(&(network, prefix_length)) != Some(&key) {
                let result = sys::stream::set_key(socket, network, prefix_length, key.bytes());
                result.map_err(|error| key_error(network, prefix_length, &error))?;
                self.0.insert((network, prefix_length), key);
            }
        }
        Ok(())
    }

    /// Gives a socket that is to be connected to `peer` its key.
    ///
    /// # Errors
    /// A sentence.
    pub fn set_for(socket: BorrowedFd<'_>, peer: IpAddr, key: &StreamKey) -> Result<(), String> {
        let length = if peer.is_ipv4() { 32 } else { 128 };
        sys::stream::set_key(socket, peer, length, key.bytes())
            .map_err(|error| key_error(peer, length, &error))
    }
}

/// A network without what is beyond its prefix, as the kernel knows it.
fn first_of(network: IpAddr, prefix_length: u8) -> (IpAddr, u8) {
    let length = u32::from(prefix_length);
    let network = match network {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
    };
    (network, prefix_length)
}

fn key_error(network: IpAddr, prefix_length: u8, error: &io::Error) -> String {
    let what = format!("the key of {network}/{prefix_length} cannot be set");
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => {
            format!("{what}: this kernel signs no segments; boot one with CONFIG_TCP_MD5SIG")
        }
        _ => format!("{what}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;

    fn key(text: &str) -> StreamKey {
        StreamKey::new(text).unwrap()
    }

    fn of(network: &str, prefix_length: u8, text: &str) -> PeerKey {
        PeerKey { network: network.parse().unwrap(), prefix_length, key: key(text) }
    }

    fn spec(peer: &str) -> StreamSpec {
        StreamSpec {
            peer: peer.parse().unwrap(),
            local: None,
            key: None,
            options: StreamOptions::default(),
        }
    }

    #[test]
    fn keys_are_neither_empty_nor_too_long_nor_shown() {
        assert!(StreamKey::new(vec![0; LONGEST_KEY]).is_ok());
        for bytes in [Vec::new(), vec![0; LONGEST_KEY + 1]] {
            assert!(StreamKey::new(bytes).unwrap_err().contains("1 to 80 bytes"));
        }
        assert!(!format!("{:?}", of("192.0.2.1", 32, "geheim")).contains("geheim"));
    }

    #[test]
    fn what_does_not_fit_together_is_told_before_anything_is_opened() {
        let with = |change: &dyn Fn(&mut StreamSpec)| {
            let mut spec = spec("[fe80::1]:179");
            change(&mut spec);
            spec.check()
        };
        assert!(with(&|_| ()).unwrap_err().contains("say of which interface"));
        assert_eq!(with(&|spec| spec.options.interface = Some("eth0".into())), Ok(()));
        assert_eq!(with(&|spec| spec.peer = "[fe80::1%2]:179".parse().unwrap()), Ok(()));
        let other = Some("192.0.2.1:0".parse().unwrap());
        let error = with(&|spec| {
            spec.peer = "[2001:db8::1]:179".parse().unwrap();
            spec.local = other;
        });
        assert!(error.unwrap_err().contains("or both IPv6"));
        assert!(spec("0.0.0.0:179").check().unwrap_err().contains("no address of a peer"));
        for name in ["", "a-name-that-is-too-long", "a/b"] {
            let error = with(&|spec| spec.options.interface = Some(name.into()));
            assert!(error.unwrap_err().contains("no name of an interface"));
        }
        for (keys, fits) in [
            (vec![of("192.0.2.0", 24, "a")], true),
            (vec![of("192.0.2.0", 33, "a")], false),
            (vec![of("2001:db8::", 32, "a")], false),
        ] {
            let local = "0.0.0.0:179".parse().unwrap();
            let spec = StreamListenerSpec {
                local,
                keys,
                least_ttls: Vec::new(),
                options: StreamOptions::default(),
            };
            assert_eq!(spec.check().is_ok(), fits, "{spec:?}");
        }
    }

    fn ttl(network: &str, prefix_length: u8, least: u8) -> PeerTtl {
        let least = NonZeroU8::new(least).unwrap();
        PeerTtl { network: network.parse().unwrap(), prefix_length, least }
    }

    #[test]
    fn the_closest_network_says_how_far_a_peer_may_be_away() {
        let spec = |least_ttls, least_ttl| StreamListenerSpec {
            local: "0.0.0.0:179".parse().unwrap(),
            keys: Vec::new(),
            least_ttls,
            options: StreamOptions { least_ttl, ..StreamOptions::default() },
        };
        let networks =
            vec![ttl("192.0.2.9", 32, 1), ttl("192.0.2.99", 24, 255), ttl("0.0.0.0", 0, 9)];
        let listener = spec(networks, NonZeroU8::new(5));
        assert_eq!(listener.check(), Ok(()));
        for (peer, least) in [("192.0.2.9", 5), ("192.0.2.8", 255), ("198.51.100.1", 9)] {
            let options = listener.options_for(peer.parse().unwrap());
            assert_eq!(options.least_ttl.map(NonZeroU8::get), Some(least), "{peer}");
        }
        let nobody = spec(vec![ttl("192.0.2.9", 32, 255)], None);
        assert_eq!(nobody.options_for("192.0.2.8".parse().unwrap()).least_ttl, None);
        for (wrong, says) in [
            (vec![ttl("192.0.2.0", 33, 1)], "in 192.0.2.0/33"),
            (vec![ttl("2001:db8::", 32, 1)], "a socket of IPv4"),
            (vec![ttl("192.0.2.0", 24, 1); MOST_LEAST_TTLS + 1], "not in 293"),
        ] {
            let error = spec(wrong, None).check().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    /// The longest program that there can be.
    #[test]
    fn the_kernel_takes_as_many_networks_as_are_allowed() {
        use rustix::net::{AddressFamily, SocketType, socket};
        for (family, network, length) in
            [(AddressFamily::INET, "192.0.2.0", 31), (AddressFamily::INET6, "2001:db8::", 127)]
        {
            let socket = socket(family, SocketType::STREAM, None).unwrap();
            let all = vec![ttl(network, length, 255); MOST_LEAST_TTLS];
            require_ttls(socket.as_fd(), length == 31, &all).unwrap();
        }
    }

    #[test]
    fn the_options_reach_the_kernel() {
        use rustix::net::{AddressFamily, SocketType, socket};
        let options = StreamOptions {
            interface: Some("lo".to_owned()),
            ttl: NonZeroU8::new(255),
            least_ttl: NonZeroU8::new(254),
            user_timeout: Some(Duration::from_millis(1234)),
            ..StreamOptions::default()
        };
        for (family, is_ipv4) in [(AddressFamily::INET, true), (AddressFamily::INET6, false)] {
            let socket = socket(family, SocketType::STREAM, None).unwrap();
            prepare(socket.as_fd(), is_ipv4, &options).unwrap();
            assert_eq!(sys::stream::least_ttl(socket.as_fd(), is_ipv4).unwrap(), 254);
            assert_eq!(sockopt::tcp_user_timeout(&socket), Ok(1234));
            assert_eq!(sockopt::tcp_nodelay(&socket), Ok(true));
            assert_eq!(sockopt::socket_keepalive(&socket), Ok(false));
            if is_ipv4 {
                assert_eq!(sockopt::ip_tos(&socket), Ok(NETWORK_CONTROL));
                assert_eq!(sockopt::ip_ttl(&socket), Ok(255));
            } else {
                assert_eq!(sockopt::ipv6_tclass(&socket), Ok(NETWORK_CONTROL.into()));
                assert_eq!(sockopt::ipv6_unicast_hops(&socket), Ok(255));
                assert_eq!(sockopt::ipv6_v6only(&socket), Ok(true));
            }
            let other = StreamOptions { interface: Some("nowhere".into()), ..options.clone() };
            let error = prepare(socket.as_fd(), is_ipv4, &other).unwrap_err();
            assert!(error.contains("the interface nowhere cannot be set"), "{error}");
        }
    }

    #[test]
    fn keys_come_change_and_go() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut keys = StreamKeys::default();
        for wanted in [
            vec![of("192.0.2.77", 24, "a"), of("192.0.2.1", 32, "b")],
            vec![of("192.0.2.0", 24, "c")],
            vec![],
            vec![of("0.0.0.0", 0, "all")],
        ] {
            keys.set(listener.as_fd(), &wanted).unwrap();
            assert_eq!(keys.0.len(), wanted.len());
        }
        let wrong = keys.set(listener.as_fd(), &[of("2001:db8::", 32, "a")]);
        assert!(wrong.unwrap_err().contains("a socket of IPv4"));
    }
}
