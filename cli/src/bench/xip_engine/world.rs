//! The router that is measured: principals, ports and a full table of domains.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;

use foldhash::fast::FixedState;
use weft_base::{Instant, PortId, Random};
use weft_port::PortInfo;
use weft_xia_ad::Ad;
use weft_xia_hid::Hid;
use weft_xia_xdp::Xdp;
use weft_xia_zf::{DEFAULT_LINK_BITS, ZFilter, link_identifier};
use weft_xip::forward::{Egress, Forwarder, Framing, Limits, Verdicts};
use weft_xip::principal::{Input, Principal, SocketId};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use super::BATCH;
use super::cases::Cache;
use super::traffic::{Form, Traffic};
use super::zipf::Zipf;

/// Neighbours, each behind a port of its own, as in Machado et al., "Linux XIA", §6.3.1.
pub(in crate::bench) const NEIGHBOURS: usize = 4;
/// The port that packets come in on, which leads to no neighbour.
pub(in crate::bench) const IN: PortId = PortId(1000);
const MTU: usize = 1500;
/// Room for a decision for every domain, whatever its form.
pub(super) const CACHE: usize = 1 << 30;

/// A look-up table and nothing around it.
pub(super) type BareTable = HashMap<Xid, u32, FixedState>;

/// Everything that has a name.
pub(in crate::bench) struct Names {
    /// Domains that are redirected to a neighbour, the most frequent destination first.
    pub(in crate::bench) domains: Vec<Xid>,
    /// For each domain its neighbour.
    pub(in crate::bench) gateways: Vec<Xid>,
    /// Domains that nobody knows, the same in all packets.
    pub(in crate::bench) unknown: [Xid; 3],
    /// A domain that is redirected to the first of `domains`.
    pub(in crate::bench) alias: Xid,
    /// The router's own domain.
    pub(in crate::bench) local_domain: Xid,
    /// The router itself.
    pub(in crate::bench) local_host: Xid,
    /// A socket on the router.
    pub(in crate::bench) socket: Xid,
    /// The hosts that it can send to.
    pub(in crate::bench) neighbours: Vec<Xid>,
    /// For each neighbour the identifier of the link to it.
    pub(in crate::bench) links: Vec<Xid>,
}

/// The names that routers know, the same names in a bare table, and routers.
pub(super) struct World {
    pub(super) names: Names,
    /// A router for each kind of case: its cache has the decisions of those cases and no others.
    routers: HashMap<(Form, Cache), Forwarder>,
    pub(super) bare: BareTable,
    /// Bytes of memory for each domain, in the principal's table and in the bare one.
    pub(super) bytes_per_entry: (f64, f64),
}

/// Any name.
pub(in crate::bench) fn name(kind: XidType, random: &mut Random) -> Xid {
    let mut id = [0; 20];
    random.fill(&mut id);
    Xid::new(kind, id)
}

impl Names {
    /// These domains, each behind one of [`NEIGHBOURS`] neighbours. All other names, and which neighbour it is,
    /// follow from `random`.
    pub(in crate::bench) fn new(domains: Vec<Xid>, random: &mut Random) -> Self {
        Self::behind(NEIGHBOURS, domains, random)
    }

    /// The same with so many neighbours.
    pub(in crate::bench) fn behind(count: usize, domains: Vec<Xid>, random: &mut Random) -> Self {
        let mut name = |kind| name(kind, random);
        let neighbours: Vec<_> = (0..count).map(|_| name(XidType::HID)).collect();
        let link = |number| link_identifier(&format!("port{number}"), DEFAULT_LINK_BITS);
        Self {
            unknown: std::array::from_fn(|_| name(XidType::AD)),
            alias: name(XidType::AD),
            local_domain: name(XidType::AD),
            local_host: name(XidType::HID),
            socket: name(XidType::XDP),
            links: (0..count).map(link).collect(),
            gateways: domains
                .iter()
                .map(|_| neighbours[random.below(count as u64) as usize])
                .collect(),
            neighbours,
            domains,
        }
    }

    /// The number of the port, from 0, that each domain is behind: that of its neighbour.
    pub(in crate::bench) fn ports(&self) -> Vec<usize> {
        let number = |gateway| self.neighbours.iter().position(|host| host == gateway);
        self.gateways.iter().map(|gateway| number(gateway).unwrap_or_default()).collect()
    }

    /// What has a name besides the domains that are redirected to neighbours.
    pub(super) fn others(&self) -> Vec<Xid> {
        let own = [self.alias, self.local_domain, self.local_host, self.socket];
        own.into_iter().chain(self.neighbours.iter().copied()).collect()
    }
}

impl World {
    /// Fills all tables, with this many domains and with names that follow from `random`.
    pub(super) fn with_domains(count: usize, random: &mut Random) -> Result<Self, WordError> {
        let names = (0..count).map(|_| name(XidType::AD, random)).collect();
        let names = Names::new(names, random);
        let (ad, of_ad) = weighed(|| domains(&names));
        let (bare, of_bare) = weighed(|| bare_table(&names));
        drop(ad?);
        let per_entry = |bytes: f64| bytes / count as f64;
        let bytes_per_entry = (per_entry(of_ad), per_entry(of_bare));
        Ok(Self { names, routers: HashMap::new(), bare, bytes_per_entry })
    }

    /// The names, and the router for packets of a form, its cache in the state that a case wants.
    pub(super) fn router(
        &mut self,
        form: Form,
        cache: Cache,
    ) -> Result<(&Names, &mut Forwarder), WordError> {
        let entry = match self.routers.entry((form, cache)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut router = router(&self.names)?;
                match cache {
                    Cache::Warm => warm(&mut router, form, &self.names),
                    Cache::Missing => {}
                    Cache::Off => router.set_cache_limit(0),
                }
                entry.insert(router)
            }
        };
        if cache == Cache::Missing {
            entry.flush_cache();
        }
        Ok((&self.names, entry))
    }
}

/// Sends a packet of a form to every domain.
pub(super) fn warm(router: &mut Forwarder, form: Form, names: &Names) {
    let one = Zipf::new(1, 0.0);
    let mut traffic = Traffic::new(form, names, &one, 0);
    let (mut batch, mut verdicts) = (Vec::with_capacity(BATCH), Verdicts::new());
    for domain in 0..names.domains.len() {
        batch.push(traffic.packet_to(domain));
        if batch.len() == BATCH {
            router.route_batch(Instant::ZERO, &mut batch, &mut verdicts);
            verdicts.clear();
        }
    }
    router.route_batch(Instant::ZERO, &mut batch, &mut verdicts);
}

/// The principal AD with all routes, as a routing protocol would have found them.
fn domains(names: &Names) -> Result<Ad, WordError> {
    let mut ad = Ad::new(Random::from_seed(1));
    for (domain, gateway) in names.domains.iter().zip(&names.gateways) {
        ad.learn(*domain, &[*gateway]);
    }
    set(&mut ad, &format!("local {}", names.local_domain))?;
    set(&mut ad, &format!("route {} via {}", names.alias, names.domains[0]))?;
    Ok(ad)
}

/// All that the principals know, as keys.
fn bare_table(names: &Names) -> BareTable {
    names.domains.iter().copied().chain(names.others()).zip(0..).collect()
}

/// A router that knows all these names, its cache empty.
pub(in crate::bench) fn router(names: &Names) -> Result<Forwarder, WordError> {
    router_with(names, limits())
}

/// The same with other limits.
pub(in crate::bench) fn router_with(names: &Names, limits: Limits) -> Result<Forwarder, WordError> {
    let ad = domains(names)?;
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    let (mut hid, mut zf, mut xdp) =
        (Hid::new(Random::from_seed(1)), ZFilter::new(), Xdp::new(Random::from_seed(1)));
    set(&mut hid, &format!("local {}", names.local_host))?;
    for (number, neighbour) in (1u8..).zip(&names.neighbours) {
        let (port, mac) = (PortId(number.into()), [2, 0, 0, 0, 0, number]);
        let info = PortInfo { mac, mtu: MTU, local: None };
        let name = format!("port{number}");
        hid.handle(Instant::ZERO, Input::InterfaceUp { name, port, info }, &mut Vec::new());
        let link = format!("02:00:00:00:01:{number:02x}");
        set(&mut hid, &format!("neighbour {neighbour} link {link} interface port{number}"))?;
        forwarder.add_port(port, Egress { framing: Framing::Ethernet { mac }, mtu: MTU });
    }
    for (link, neighbour) in names.links.iter().zip(&names.neighbours) {
        set(&mut zf, &format!("route {link} via {neighbour}"))?;
    }
    xdp.bind(names.socket, SocketId(1)).map_err(|error| WordError::new(error.to_string()))?;
    let principals: [Box<dyn Principal>; 4] =
        [Box::new(ad), Box::new(hid), Box::new(zf), Box::new(xdp)];
    for principal in principals {
        forwarder.add_principal(principal);
    }
    Ok(forwarder)
}

fn limits() -> Limits {
    Limits { cache: CACHE, ..Limits::default() }
}

/// Carries out one statement of a principal's configuration.
fn set(principal: &mut dyn Principal, statement: &str) -> Result<(), WordError> {
    let words: Vec<_> = statement.split(' ').collect();
    principal.set(Instant::ZERO, &words, &mut Vec::new())
}

/// What `make` makes, and by how many bytes it lets the process grow.
fn weighed<T>(make: impl FnOnce() -> T) -> (T, f64) {
    let before = resident_bytes();
    let made = make();
    (made, resident_bytes() - before)
}

/// The process's memory that is in use; zero where the kernel does not tell.
fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
