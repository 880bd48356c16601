//! Routes of the kernel's IP tables, of whoever sets many: what is said of them.
//!
//! Reference: RFC 3549 §3.2; rtnetlink(7); linux/rtnetlink.h (`struct rtmsg`, `struct rtnexthop`, `RTA_…`).
//!
//! The kernel knows a route of a table by its prefix and its metric. Whose it is tells the number of a protocol, which
//! says who has set it and nothing else. [`RouteWriter`] changes routes, many at once; [`RouteDump`] reads those of one
//! protocol in one table; [`DeletedRoutes`] hears what others delete. `batch` has the bytes of changes, `next_hops` those of what many routes share.

mod batch;
mod deletions;
mod dump;
mod next_hops;
#[cfg(test)]
mod tests;
mod writer;

use std::net::IpAddr;
use std::sync::Arc;

use crate::InterfaceAddress;

pub use batch::RouteBatch;
pub use deletions::{DeletedRoutes, Deletions};
#[cfg(any(test, feature = "testing"))]
pub(crate) use dump::Reader;
pub use dump::{RouteDump, RoutesTold};
pub use writer::RouteWriter;

/// The most ways of a route. The kernel would take more, up to the length of a message.
pub const MOST_WAYS: usize = 256;

/// The main table of the kernel (`RT_TABLE_MAIN`).
pub const MAIN_TABLE: u32 = libc::RT_TABLE_MAIN as u32;

/// Which routes somebody owns: those of one protocol in one table of one version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteSpace {
    /// Of IPv6 or of IPv4.
    pub is_ipv6: bool,
    /// The number of the table, such as [`MAIN_TABLE`]. One that is not there is made with its first route.
    pub table: u32,
    /// The number of the protocol (`rtm_protocol`), as in /etc/iproute2/rt_protos.
    pub protocol: u8,
}

/// A change of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChange {
    /// Where it leads: a prefix, whose bits beyond its length are zero.
    pub destination: InterfaceAddress,
    /// The metric: of several routes to one prefix the kernel takes that with the least. For IPv6, 0 stands for 1024
    /// in the kernel.
    pub metric: u32,
    /// What becomes of it.
    pub operation: RouteOperation,
}

/// What becomes of the route to a prefix with a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteOperation {
    /// It is set. The kernel refuses it (`EEXIST`) if there is one, whoever has set it.
    Add(Arc<RouteTarget>),
    /// It is set in the place of the one that there is, whoever has set it. To the one that there is it changes
    /// nothing, and for IPv4 not even listeners are told.
    Replace(Arc<RouteTarget>),
    /// It goes, if it is of the own protocol.
    Delete,
}

/// What happens to packets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteTarget {
    /// They go one of these ways, which are at least one; see [`RouteTarget::ways`].
    Ways(Vec<RouteWay>),
    /// They are dropped without a word.
    Blackhole,
    /// They are dropped, and their senders are told that the host is not reachable.
    Unreachable,
    /// They are dropped, and their senders are told that this is not allowed.
    Prohibit,
}

/// One way of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteWay {
    /// The next router; `None` if the destination itself is on the link. A route of IPv4 may have one of IPv6
    /// (RFC 8950).
    pub gateway: Option<IpAddr>,
    /// The index of the interface. The gateway is taken for a neighbour on it whatever the addresses say (`onlink`).
    /// 0 lets the kernel find it by the gateway, and refuse the route if it finds none.
    pub interface: u32,
    /// How many packets take this way compared with others of the route: 1 to 256.
    pub weight: u16,
}

/// A route that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRoute {
    /// Where it leads.
    pub destination: InterfaceAddress,
    /// Its metric.
    pub metric: u32,
    /// What happens to packets; `None` if that is nothing that [`RouteTarget`] can say.
    pub target: Option<Arc<RouteTarget>>,
}

impl RouteChange {
    /// Where it is to lead, unless it goes.
    #[must_use]
    pub fn target(&self) -> Option<&Arc<RouteTarget>> {
        match &self.operation {
            RouteOperation::Add(target) | RouteOperation::Replace(target) => Some(target),
            RouteOperation::Delete => None,
        }
    }
}

impl RouteTarget {
    /// Packets go one of these ways: in an order of its own, and each way once.
    #[must_use]
    pub fn ways(mut ways: Vec<RouteWay>) -> Self {
        ways.sort_unstable();
        ways.dedup_by_key(|way| (way.gateway, way.interface));
        Self::Ways(ways)
    }

    /// Whether a kernel that was told this has made that of it: it fills in interfaces that were left to it, and a
    /// single way has no weight.
    #[must_use]
    pub fn became(&self, there: &Self) -> bool {
        let (Self::Ways(told), Self::Ways(there)) = (self, there) else { return self == there };
        let one = told.len() == 1;
        let same = |(told, there): (&RouteWay, &RouteWay)| {
            told.gateway == there.gateway
                && (told.interface == 0 || told.interface == there.interface)
                && (one || told.weight == there.weight)
        };
        told.len() == there.len() && told.iter().zip(there).all(same)
    }
}
