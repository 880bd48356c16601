//! Capabilities: what a speaker says it can do, in its OPEN.
//!
//! ```text
//!  0 code
//!  1 length of the value
//!  2 value
//! ```
//!
//! Reference: RFC 5492; RFC 4760 §8, RFC 2918 §2, RFC 8950 §4, RFC 8654 §3, RFC 9234 §4.1, RFC 4724 §3, RFC 8538
//! §2 (bit N), RFC 6793 §3, RFC 7911 §4, RFC 7313 §3.2, RFC 9494 §4.2, draft-walton-bgp-hostname-capability.

use std::fmt;

use super::error::MessageError;
use super::family::Family;
use crate::numbers::capability as code;

/// In the flags of graceful restart: the speaker has restarted.
const RESTARTED: u8 = 0x80;
/// In the flags of graceful restart: NOTIFICATIONs end sessions gracefully (RFC 8538).
const NOTIFICATION: u8 = 0x40;
/// In the flags of a family: forwarding went on.
const FORWARDING: u8 = 0x80;
/// Bits of the time of graceful restart.
const TIME_MASK: u16 = 0x0FFF;

/// One thing that a speaker can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Routes of this family.
    Multiprotocol(Family),
    /// Sends routes again when asked.
    RouteRefresh,
    /// Takes next hops of other families.
    ExtendedNextHop(Vec<ExtendedNextHop>),
    /// Takes messages of up to 65,535 bytes.
    ExtendedMessage,
    /// What it is to the other.
    Role(Role),
    /// Keeps routes while the other restarts.
    GracefulRestart(GracefulRestart),
    /// Its autonomous system, in four octets.
    FourOctetAs(u32),
    /// Several routes for a prefix.
    AddPath(Vec<(Family, AddPath)>),
    /// Says where sending again begins and ends.
    EnhancedRefresh,
    /// Keeps routes for long while the other is away.
    LongLived(Vec<LongLived>),
    /// Its name.
    Fqdn {
        /// Name of the host, UTF-8 as a rule.
        host: Vec<u8>,
        /// Its domain, UTF-8 as a rule.
        domain: Vec<u8>,
    },
    /// Something that is not known here, or not understood as it is.
    Other {
        /// Its code.
        code: u8,
        /// Its value.
        value: Vec<u8>,
    },
}

/// Routes of a family whose next hop may be of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedNextHop {
    /// Number of the routes' address family.
    pub afi: u16,
    /// What the routes are for, in two octets here.
    pub safi: u16,
    /// Number of the next hop's address family.
    pub next_hop_afi: u16,
}

/// What a speaker is to the one it speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It provides transit.
    Provider,
    /// A route server.
    RouteServer,
    /// A client of a route server.
    RouteServerClient,
    /// It is provided with transit.
    Customer,
    /// A peer: each passes on its own routes and those of its customers.
    Peer,
    /// A number without meaning.
    Unassigned(u8),
}

impl Role {
    /// What the number in the capability stands for.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Provider,
            1 => Self::RouteServer,
            2 => Self::RouteServerClient,
            3 => Self::Customer,
            4 => Self::Peer,
            other => Self::Unassigned(other),
        }
    }

    /// Its number in the capability.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Provider => 0,
            Self::RouteServer => 1,
            Self::RouteServerClient => 2,
            Self::Customer => 3,
            Self::Peer => 4,
            Self::Unassigned(other) => other,
        }
    }

    /// Whether two speakers with these roles may speak (RFC 9234 §4.2, table 2).
    #[must_use]
    pub const fn fits(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Provider, Self::Customer)
                | (Self::Customer, Self::Provider)
                | (Self::RouteServer, Self::RouteServerClient)
                | (Self::RouteServerClient, Self::RouteServer)
                | (Self::Peer, Self::Peer)
        )
    }
}

/// `route-server-client`, as it is configured.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Provider => "provider",
            Self::RouteServer => "route-server",
            Self::RouteServerClient => "route-server-client",
            Self::Customer => "customer",
            Self::Peer => "peer",
            Self::Unassigned(code) => return write!(f, "role {code}"),
        })
    }
}

/// How a speaker restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GracefulRestart {
    /// It has just restarted (bit R).
    pub restarted: bool,
    /// Ends by NOTIFICATION or silence are graceful, too (bit N).
    pub notification: bool,
    /// In how many seconds it will be back, up to 4095.
    pub time: u16,
    /// Families it keeps forwarding for, and whether it has done so (bit F).
    pub families: Vec<(Family, bool)>,
}

/// Directions of ADD-PATH, as its sender sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPath {
    /// It takes several routes.
    Receive,
    /// It sends several routes.
    Send,
    /// Both.
    Both,
}

impl AddPath {
    /// Whether the speaker takes several routes for a prefix.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::Receive | Self::Both)
    }

    /// Whether the speaker sends several routes for a prefix.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(self, Self::Send | Self::Both)
    }
}

/// `both`, as it is configured.
impl fmt::Display for AddPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Receive => "receive",
            Self::Send => "send",
            Self::Both => "both",
        })
    }
}

/// How long routes of a family may be kept when their speaker is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongLived {
    /// The family.
    pub family: Family,
    /// Forwarding went on (bit F).
    pub forwarding: bool,
    /// For how many seconds, 24 bits.
    pub stale_time: u32,
}

impl Capability {
    /// Its code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Multiprotocol(_) => code::MULTIPROTOCOL,
            Self::RouteRefresh => code::ROUTE_REFRESH,
            Self::ExtendedNextHop(_) => code::EXTENDED_NEXT_HOP,
            Self::ExtendedMessage => code::EXTENDED_MESSAGE,
            Self::Role(_) => code::ROLE,
            Self::GracefulRestart(_) => code::GRACEFUL_RESTART,
            Self::FourOctetAs(_) => code::FOUR_OCTET_AS,
            Self::AddPath(_) => code::ADD_PATH,
            Self::EnhancedRefresh => code::ENHANCED_ROUTE_REFRESH,
            Self::LongLived(_) => code::LONG_LIVED,
            Self::Fqdn { .. } => code::FQDN,
            Self::Other { code, .. } => *code,
        }
    }

    /// Reads capabilities that stand one behind the other, and adds them to `all`.
    ///
    /// # Errors
    /// One does not end where it says, or has a length that its code does not allow.
    pub(crate) fn parse_all(mut bytes: &[u8], all: &mut Vec<Self>) -> Result<(), MessageError> {
        while let [code, length, rest @ ..] = bytes {
            let (value, rest) =
                rest.split_at_checked(usize::from(*length)).ok_or(MessageError::Open)?;
            all.push(Self::parse(*code, value).ok_or(MessageError::Open)?);
            bytes = rest;
        }
        if bytes.is_empty() { Ok(()) } else { Err(MessageError::Open) }
    }

    /// None if the length is wrong.
    fn parse(code: u8, value: &[u8]) -> Option<Self> {
        Some(match (code, value) {
            (code::MULTIPROTOCOL, [high, low, _, safi]) => {
                Self::Multiprotocol(family(*high, *low, *safi))
            }
            (code::ROUTE_REFRESH, []) => Self::RouteRefresh,
            (code::EXTENDED_NEXT_HOP, tuples) => {
                let tuple = |[a, b, c, d, e, f]: &[u8; 6]| ExtendedNextHop {
                    afi: u16::from_be_bytes([*a, *b]),
                    safi: u16::from_be_bytes([*c, *d]),
                    next_hop_afi: u16::from_be_bytes([*e, *f]),
                };
                Self::ExtendedNextHop(each(tuples)?.iter().map(tuple).collect())
            }
            (code::EXTENDED_MESSAGE, []) => Self::ExtendedMessage,
            (code::ROLE, [role]) => Self::Role(Role::from_code(*role)),
            (code::GRACEFUL_RESTART, [high, low, tuples @ ..]) => {
                let tuple = |[a, b, safi, flags]: &[u8; 4]| {
                    (family(*a, *b, *safi), flags & FORWARDING != 0)
                };
                Self::GracefulRestart(GracefulRestart {
                    restarted: high & RESTARTED != 0,
                    notification: high & NOTIFICATION != 0,
                    time: u16::from_be_bytes([*high, *low]) & TIME_MASK,
                    families: each(tuples)?.iter().map(tuple).collect(),
                })
            }
            (code::FOUR_OCTET_AS, [a, b, c, d]) => {
                Self::FourOctetAs(u32::from_be_bytes([*a, *b, *c, *d]))
            }
            (code::ADD_PATH, tuples) => return Self::parse_add_path(tuples),
            (code::ENHANCED_ROUTE_REFRESH, []) => Self::EnhancedRefresh,
            (code::LONG_LIVED, tuples) => {
                let tuple = |[a, b, safi, flags, high, middle, low]: &[u8; 7]| LongLived {
                    family: family(*a, *b, *safi),
                    forwarding: flags & FORWARDING != 0,
                    stale_time: u32::from_be_bytes([0, *high, *middle, *low]),
                };
                Self::LongLived(each(tuples)?.iter().map(tuple).collect())
            }
            (code::FQDN, value) => return Some(Self::parse_fqdn(value)),
            (
                code::MULTIPROTOCOL
                | code::ROUTE_REFRESH
                | code::EXTENDED_MESSAGE
                | code::ROLE
                | code::GRACEFUL_RESTART
                | code::FOUR_OCTET_AS
                | code::ENHANCED_ROUTE_REFRESH,
                _,
            ) => return None,
            (code, value) => Self::Other { code, value: value.to_vec() },
        })
    }

    /// RFC 7911 §4: with a direction that does not exist the capability is treated as not understood.
    fn parse_add_path(value: &[u8]) -> Option<Self> {
        let tuple = |[a, b, safi, direction]: &[u8; 4]| {
            let direction = match direction {
                1 => AddPath::Receive,
                2 => AddPath::Send,
                3 => AddPath::Both,
                _ => return None,
            };
            Some((family(*a, *b, *safi), direction))
        };
        let understood: Option<Vec<_>> = each(value)?.iter().map(tuple).collect();
        let as_is = || Self::Other { code: code::ADD_PATH, value: value.to_vec() };
        Some(understood.map_or_else(as_is, Self::AddPath))
    }

    /// It is for people alone, so it is never a reason to refuse a peer.
    fn parse_fqdn(value: &[u8]) -> Self {
        let text = |bytes: &mut &[u8]| {
            let (length, rest) = bytes.split_first()?;
            let (text, rest) = rest.split_at_checked(usize::from(*length))?;
            *bytes = rest;
            Some(text.to_vec())
        };
        let mut rest = value;
        match (text(&mut rest), text(&mut rest)) {
            (Some(host), Some(domain)) if rest.is_empty() => Self::Fqdn { host, domain },
            _ => Self::Other { code: code::FQDN, value: value.to_vec() },
        }
    }

    /// Writes it with code and length. What a value cannot hold for its length is left out.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.code(), 0]);
        match self {
            Self::Multiprotocol(family) => {
                let [high, low, safi] = family.bytes();
                out.extend_from_slice(&[high, low, 0, safi]);
            }
            Self::RouteRefresh | Self::ExtendedMessage | Self::EnhancedRefresh => {}
            Self::ExtendedNextHop(tuples) => {
                for tuple in tuples.iter().take(usize::from(u8::MAX) / 6) {
                    let numbers = [tuple.afi, tuple.safi, tuple.next_hop_afi];
                    out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
                }
            }
            Self::Role(role) => out.push(role.code()),
            Self::GracefulRestart(restart) => restart.emit(out),
            Self::FourOctetAs(number) => out.extend_from_slice(&number.to_be_bytes()),
            Self::AddPath(tuples) => {
                for (family, direction) in tuples.iter().take(usize::from(u8::MAX) / 4) {
                    out.extend_from_slice(&family.bytes());
                    out.push(u8::from(direction.receives()) | u8::from(direction.sends()) << 1);
                }
            }
            Self::LongLived(tuples) => {
                for tuple in tuples.iter().take(usize::from(u8::MAX) / 7) {
                    out.extend_from_slice(&tuple.family.bytes());
                    out.push(if tuple.forwarding { FORWARDING } else { 0 });
                    out.extend_from_slice(&tuple.stale_time.to_be_bytes()[1..]);
                }
            }
            Self::Fqdn { host, domain } => {
                let mut room = usize::from(u8::MAX) - 2;
                for text in [host, domain] {
                    let text = &text[..text.len().min(room)];
                    room -= text.len();
                    // At most 253, as was just seen to.
                    out.push(text.len() as u8);
                    out.extend_from_slice(text);
                }
            }
            Self::Other { value, .. } => out.extend(value.iter().take(usize::from(u8::MAX))),
        }
        // Each arm writes at most 255 bytes.
        out[start + 1] = (out.len() - start - 2) as u8;
    }
}

impl GracefulRestart {
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.restarted) << 7 | u8::from(self.notification) << 6;
        let time = self.time.min(TIME_MASK) | u16::from(flags) << 8;
        out.extend_from_slice(&time.to_be_bytes());
        for (family, forwarding) in self.families.iter().take((usize::from(u8::MAX) - 2) / 4) {
            out.extend_from_slice(&family.bytes());
            out.push(if *forwarding { FORWARDING } else { 0 });
        }
    }
}

fn family(high: u8, low: u8, safi: u8) -> Family {
    Family { afi: u16::from_be_bytes([high, low]), safi }
}

/// The value as tuples of equal length; none if it has a remainder.
fn each<const N: usize>(value: &[u8]) -> Option<&[[u8; N]]> {
    let (tuples, rest) = value.as_chunks();
    rest.is_empty().then_some(tuples)
}
