//! What a session is to be like, and the OPEN that says so.
//!
//! Reference: RFC 4271 §8.1.1 (attributes of a session), §10 (times); RFC 9687 §3.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::numbers::afi;
use crate::wire::{
    AddPath, Capability, ExtendedNextHop, Families, Family, GracefulRestart, LongLived, Open, Role,
};

/// In which autonomous system a peer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAs {
    /// In this one.
    Exactly(u32),
    /// In any other than our own, and in no member of the own confederation.
    External,
    /// In any.
    Any,
}

impl PeerAs {
    /// Whether a peer of an own autonomous system `local` may be in `number`.
    pub(super) fn allows(self, number: u32, local: u32) -> bool {
        match self {
            Self::Exactly(expected) => number == expected,
            Self::External => number != local,
            Self::Any => true,
        }
    }
}

/// How connections to the peer are protected. Sessions do nothing with it but keep it for who opens connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// The key of TCP-MD5 (RFC 2385).
    pub md5_key: Option<Vec<u8>>,
    /// At how many hops at most the peer is (RFC 5082, GTSM); none if that is not checked.
    pub ttl_security_hops: Option<u8>,
}

/// What a session is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The own autonomous system, as this peer sees it.
    pub local_as: u32,
    /// The own identifier, not zero.
    pub identifier: Ipv4Addr,
    /// Where the peer may be.
    pub peer_as: PeerAs,
    /// The numbers of the members of the own confederation, of the own one, too; none if the system is not divided (RFC 5065).
    pub members: BTreeSet<u32>,
    /// Families whose routes are exchanged.
    pub families: Families,
    /// The hold time that is offered, in seconds: 0, or 3 at least.
    pub hold_time: u16,
    /// The shortest hold time that is taken, in seconds; with 0 the peer may switch it off.
    pub min_hold_time: u16,
    /// How often KEEPALIVEs are sent; a third of the hold time if it is none, and never less often than that.
    pub keepalive: Option<Duration>,
    /// When to connect again after a connection could not be opened.
    pub connect_retry: Duration,
    /// For how long the peer may send its OPEN first; none if ours is sent at once.
    pub delay_open: Option<Duration>,
    /// For how long nothing happens after the first error; twice as long after each further one.
    pub idle_hold: Duration,
    /// The most that comes to, and for how long a session has to be up so that former errors are forgotten.
    pub max_idle_hold: Duration,
    /// For how long the peer may take nothing; if none, the longer of eight minutes and twice the hold time.
    pub send_hold: Option<Duration>,
    /// The peer opens connections, we do not.
    pub is_passive: bool,
    /// Several routes for a prefix.
    pub add_path: Vec<(Family, AddPath)>,
    /// Families of IPv4 whose next hop may be of IPv6.
    pub extended_next_hop: Families,
    /// Messages of more than 4,096 bytes are taken, and sent if the peer takes them.
    pub extended_message: bool,
    /// What we are to the peer; of meaning for peers of other autonomous systems alone.
    pub role: Option<Role>,
    /// A peer that says no role is refused.
    pub is_role_strict: bool,
    /// What is said of graceful restart.
    pub graceful_restart: Option<GracefulRestart>,
    /// What is said of long-lived graceful restart, which needs the former, too: without families only that it is known.
    pub long_lived: Option<Vec<LongLived>>,
    /// Names of the host and its domain, to tell the peer.
    pub fqdn: Option<(String, String)>,
    /// Routes with an AS_SET are taken, which RFC 9774 forbids.
    pub accept_as_sets: bool,
    /// How connections are protected.
    pub transport: Transport,
}

impl Settings {
    /// Those that RFC 4271 suggests, for routes of IPv4.
    #[must_use]
    pub fn new(local_as: u32, identifier: Ipv4Addr, peer_as: PeerAs) -> Self {
        Self {
            local_as,
            identifier,
            peer_as,
            members: BTreeSet::new(),
            families: Families::from_iter([Family::IPV4_UNICAST]),
            hold_time: 90,
            min_hold_time: 0,
            keepalive: None,
            connect_retry: Duration::from_secs(120),
            delay_open: None,
            idle_hold: Duration::from_secs(1),
            max_idle_hold: Duration::from_secs(120),
            send_hold: None,
            is_passive: false,
            add_path: Vec::new(),
            extended_next_hop: Families::EMPTY,
            extended_message: true,
            role: None,
            is_role_strict: false,
            graceful_restart: None,
            long_lived: None,
            fqdn: None,
            accept_as_sets: false,
            transport: Transport::default(),
        }
    }

    /// The capabilities for the families, in their order.
    pub(super) fn multiprotocol(&self) -> impl Iterator<Item = Capability> {
        self.families.iter().map(Capability::Multiprotocol)
    }

    /// Whether the peer is, or can be, in another autonomous system, where roles mean something.
    fn can_be_external(&self) -> bool {
        let is_inside = |number| number == self.local_as || self.members.contains(&number);
        !matches!(self.peer_as, PeerAs::Exactly(number) if is_inside(number))
    }

    /// Our OPEN.
    #[must_use]
    pub fn open(&self) -> Open {
        let mut open = Open::new(self.local_as, self.hold_time, self.identifier);
        let all = &mut open.capabilities;
        all.extend(self.multiprotocol());
        all.extend([Capability::RouteRefresh, Capability::EnhancedRefresh]);
        let next_hops: Vec<_> = self
            .extended_next_hop
            .iter()
            .filter(|family| !family.is_ipv6())
            .map(|family| ExtendedNextHop {
                afi: family.afi,
                safi: u16::from(family.safi),
                next_hop_afi: afi::IPV6,
            })
            .collect();
        if !next_hops.is_empty() {
            all.push(Capability::ExtendedNextHop(next_hops));
        }
        if self.extended_message {
            all.push(Capability::ExtendedMessage);
        }
        all.extend(self.role.filter(|_| self.can_be_external()).map(Capability::Role));
        all.extend(self.graceful_restart.clone().map(Capability::GracefulRestart));
        if !self.add_path.is_empty() {
            all.push(Capability::AddPath(self.add_path.clone()));
        }
        // RFC 9494 §4.5: alone it would be ignored.
        if let Some(long_lived) =
            self.long_lived.as_ref().filter(|_| self.graceful_restart.is_some())
        {
            all.push(Capability::LongLived(long_lived.clone()));
        }
        if let Some((host, domain)) = &self.fqdn {
            all.push(Capability::Fqdn {
                host: host.as_bytes().into(),
                domain: domain.as_bytes().into(),
            });
        }
        open
    }

    /// How long the peer may take nothing, with this hold time; none if there is no limit.
    pub(super) fn send_hold(&self, hold_time: Duration) -> Option<Duration> {
        const LEAST: Duration = Duration::from_secs(8 * 60);
        if hold_time.is_zero() {
            return None;
        }
        Some(self.send_hold.unwrap_or(LEAST.max(hold_time * 2)))
    }
}
