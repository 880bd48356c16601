//! Who is whose neighbour, in which system, with which networks and policies.
//!
//! Preferences are such that there is one stable outcome: the shortest path, or, with a hierarchy of providers and
//! customers, a customer's route first and routes of providers to customers alone (Gao and Rexford, "Stable Internet Routing
//! without Global Coordination", 2001).

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;

use weft_base::Random;

pub(crate) const ROUTERS: usize = 10;
/// Networks that several routers have.
const SHARED: u64 = 3;

/// A link between two routers, with a session over it.
pub(crate) struct Link {
    pub(crate) ends: [usize; 2],
}

impl Link {
    pub(crate) fn other(&self, router: usize) -> usize {
        if self.ends[0] == router { self.ends[1] } else { self.ends[0] }
    }
}

pub(crate) struct Plan {
    /// The number of each router's system, as others know it; the lower one provides for the higher one.
    pub(crate) systems: [u32; ROUTERS],
    /// Its number as a member of that, where the system is a confederation of two.
    pub(crate) members: [Option<u32>; ROUTERS],
    pub(crate) links: Vec<Link>,
    /// The numbers of the shared networks that each router has.
    pub(crate) shared: Vec<BTreeSet<u64>>,
    /// Whether there are providers and customers.
    pub(crate) has_hierarchy: bool,
}

/// The network on the link where no other router is.
pub(crate) fn stub(router: usize) -> String {
    format!("192.168.{router}.0/24")
}

pub(crate) fn shared(number: u64) -> String {
    format!("172.16.{number}.0/24")
}

pub(crate) fn identifier(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 0, router as u8 + 1)
}

impl Plan {
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut pairs = BTreeSet::new();
        for router in 1..ROUTERS {
            pairs.insert([random.below(router as u64) as usize, router]);
        }
        for _ in 0..random.below(9) {
            let [one, other] = [(); 2].map(|()| random.below(ROUTERS as u64) as usize);
            if one != other {
                pairs.insert([one.min(other), one.max(other)]);
            }
        }
        let mut systems = std::array::from_fn(|router| 65000 + router as u32);
        let mut members = [None; ROUTERS];
        let mut taken = BTreeSet::new();
        for [one, other] in &pairs {
            // Some pairs of neighbours are one system.
            if random.below(8) == 0 && !taken.contains(one) && !taken.contains(other) {
                taken.extend([*one, *other]);
                systems[*other] = systems[*one];
                // And some of these are divided, of which there is one stable outcome as long as there are two parts.
                if (one + other) % 3 == 0 {
                    for end in [*one, *other] {
                        members[end] = Some(64000 + end as u32);
                    }
                }
            }
        }
        let shared =
            (0..ROUTERS).map(|_| (0..SHARED).filter(|_| random.below(5) == 0).collect()).collect();
        let links = pairs.into_iter().map(|ends| Link { ends }).collect();
        Self { systems, members, links, shared, has_hierarchy: random.below(2) == 0 }
    }

    /// A router's address on a link.
    pub(crate) fn address(&self, link: usize, router: usize) -> Ipv4Addr {
        let last = if self.links[link].ends[0] == router { 1 } else { 2 };
        Ipv4Addr::new(10, 0, link as u8, last)
    }

    /// The numbers of the links of a router.
    pub(crate) fn links_of(&self, router: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.links.len()).filter(move |link| self.links[*link].ends.contains(&router))
    }

    /// All networks.
    pub(crate) fn networks(&self) -> Vec<String> {
        (0..ROUTERS).map(stub).chain((0..SHARED).map(shared)).collect()
    }

    /// The configuration of a router's BGP.
    pub(crate) fn config(&self, router: usize) -> String {
        let mut text = String::new();
        text += "policy {
            policy-statement from-customer { then { community set 1:1; local-pref 200; accept; } }
            policy-statement from-provider { then { community clear; local-pref 100; accept; } }
            policy-statement upward {
                term own { from { peer-type absent; } then { accept; } }
                term customers { from { community has 1:1; } then { accept; } }
            }
        }";
        let (own, id) = (self.systems[router], identifier(router));
        let number = self.members[router].unwrap_or(own);
        let _ = write!(
            text,
            "bgp {{ as {number}; router-id {id}; network {};
                graceful-restart {{ restart-time 20s; stale-time 30s; deferral-time 20s; }} ",
            stub(router)
        );
        let others = (0..ROUTERS).filter(|other| *other != router && self.systems[*other] == own);
        let others: Vec<_> =
            others.filter_map(|other| Some(self.members[other]?.to_string())).collect();
        if !others.is_empty() {
            let _ = write!(text, "confederation {{ id {own}; members {}; }} ", others.join(" "));
        }
        for number in &self.shared[router] {
            let _ = write!(text, "network {} {{ always on; }} ", shared(*number));
        }
        for link in self.links_of(router) {
            let other = self.links[link].other(router);
            let (system, address) = (self.systems[other], self.address(link, other));
            let says = match (system == own, self.has_hierarchy) {
                (true, _) => "next-hop-self on;",
                (false, false) => "import all; export all;",
                (false, true) if system < own => "import from-provider; export upward;",
                (false, true) => "import from-customer; export all;",
            };
            let number = self.members[other].filter(|_| system == own).unwrap_or(system);
            let _ = write!(
                text,
                "peer {address} {{ as {number}; connect-retry 5s; hold-time 30s; {says} }} "
            );
        }
        text + "}"
    }
}
