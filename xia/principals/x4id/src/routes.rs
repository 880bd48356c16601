//! The kernel's routes, by prefixes, and which of them use which neighbour.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use weft_routing::{Prefix, PrefixTable};
use weft_runtime::{InterfaceAddress, IpWay};
use weft_xip::Xid;
use weft_xip::xid::ID_LEN;

use crate::name::Version;

/// A neighbour: the index of its interface, and its address.
pub(crate) type Hop = (u32, IpAddr);

/// The routes to destinations of one version of IP.
#[derive(Debug)]
pub(crate) struct Routes {
    version: Version,
    table: PrefixTable<IpWay>,
    /// The single addresses that are this machine: among many routes they are not looked for.
    locals: BTreeSet<Prefix>,
    /// The prefixes that lead over each router.
    over: BTreeMap<Hop, BTreeSet<Prefix>>,
    /// Routers that prefixes began to lead over since they were asked for.
    new_routers: BTreeSet<Hop>,
}

impl Routes {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            table: PrefixTable::new(),
            locals: BTreeSet::new(),
            over: BTreeMap::new(),
            new_routers: BTreeSet::new(),
        }
    }

    /// The prefix of a destination of the kernel; `None` if it is of the other version.
    pub(crate) fn prefix(&self, destination: &InterfaceAddress) -> Option<Prefix> {
        let whole = match destination.ip {
            IpAddr::V4(ip) => Prefix::from(ip),
            IpAddr::V6(ip) => Prefix::from(ip),
        };
        let fits = Version::of(destination.ip) == self.version;
        fits.then(|| whole.truncate(destination.prefix_length))
    }

    /// The way to an address, by its longest prefix.
    #[inline]
    pub(crate) fn way(&self, ip: IpAddr) -> Option<IpWay> {
        let name = match ip {
            IpAddr::V4(ip) => Prefix::from(ip),
            IpAddr::V6(ip) => Prefix::from(ip),
        };
        self.table.longest(&name).map(|(_, way)| *way)
    }

    /// Sets the way to a prefix, or that there is none; returns whether that is news.
    pub(crate) fn set(&mut self, prefix: Prefix, way: Option<IpWay>) -> bool {
        let before = match way {
            Some(way) => self.table.insert(prefix, way),
            None => self.table.remove(&prefix),
        };
        if before == way {
            return false;
        }
        if way == Some(IpWay::Local) && prefix.length() == 8 * self.version.length() as u8 {
            self.locals.insert(prefix);
        } else {
            self.locals.remove(&prefix);
        }
        if let Some(router) = before.and_then(router)
            && let Some(prefixes) = self.over.get_mut(&router)
        {
            prefixes.remove(&prefix);
            if prefixes.is_empty() {
                self.over.remove(&router);
                self.new_routers.remove(&router);
            }
        }
        if let Some(router) = way.and_then(router) {
            let prefixes = self.over.entry(router).or_insert_with(|| {
                self.new_routers.insert(router);
                BTreeSet::new()
            });
            prefixes.insert(prefix);
        }
        true
    }

    /// The routers that prefixes began to lead over since this was called last; all of them if `all`.
    pub(crate) fn take_routers(&mut self, all: bool) -> BTreeSet<Hop> {
        let new = std::mem::take(&mut self.new_routers);
        if all { self.over.keys().copied().collect() } else { new }
    }

    /// Whether some prefix leads over this router.
    pub(crate) fn has_router(&self, hop: &Hop) -> bool {
        self.over.contains_key(hop)
    }

    /// The prefixes that lead over a router.
    pub(crate) fn over(&self, hop: &Hop) -> impl Iterator<Item = &Prefix> {
        self.over.get(hop).into_iter().flatten()
    }

    /// All prefixes with their ways, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Prefix, &IpWay)> {
        self.table.iter()
    }

    /// The addresses of this machine, in order.
    pub(crate) fn locals(&self) -> impl Iterator<Item = IpAddr> {
        self.locals.iter().map(|prefix| self.address(prefix))
    }

    /// The XIDs from the first to the last that begin with a prefix.
    pub(crate) fn range(&self, prefix: &Prefix) -> (Xid, Xid) {
        (self.xid(&prefix.first()), self.xid(&prefix.last()))
    }

    fn xid<const N: usize>(&self, bytes: &[u8; N]) -> Xid {
        let mut id = [0; ID_LEN];
        id.copy_from_slice(&bytes[..ID_LEN]);
        Xid::new(self.version.kind(), id)
    }

    /// The address at which a prefix begins.
    pub(crate) fn address(&self, prefix: &Prefix) -> IpAddr {
        let bytes = prefix.first();
        match self.version {
            Version::V4 => IpAddr::from(*bytes.first_chunk::<4>().unwrap_or(&[0; 4])),
            Version::V6 => IpAddr::from(*bytes.first_chunk::<16>().unwrap_or(&[0; 16])),
        }
    }
}

/// The router that a way leads over, if it is not the destination that is the neighbour.
fn router(way: IpWay) -> Option<Hop> {
    match way {
        IpWay::Out { interface, gateway: Some(gateway) } => Some((interface, gateway)),
        _ => None,
    }
}
