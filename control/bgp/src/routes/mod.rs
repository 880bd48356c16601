//! The routes of BGP: what peers have announced, what of it is accepted, and what is best.
//!
//! Reference: RFC 4271 §3.2 (Adj-RIBs-In, Loc-RIB) and §9.1; Handley et al. (XORP), §5.1 and Figures 4 to 6.
//!
//! The way of a route through the paper's stages: what a peer announces is its `received` attributes (Peer In); what
//! policy makes of them is `accepted` (the filter bank); it is held back until the RIB has said how its next hop is
//! reached (next-hop resolver, [`next_hops`]); the best of all is found ([`decision`]), and readers hear of it at their
//! own pace (fanout queue). The table is that of `weft_routing`, whose text says what is different from the paper and
//! why.

pub(crate) mod attribute_sets;
pub(crate) mod decision;
pub(crate) mod export;
pub(crate) mod next_hops;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weft_base::KeyedHash;
use weft_routing::{
    BitString, Candidate, Destination, OriginId, Prefix, PrefixIndex, ReaderId, RouteTable, Told,
};

use crate::wire::Attributes;
use attribute_sets::{AttributeSets, AttributesId};
use decision::{Decision, Source};
use next_hops::NextHops;

/// Destinations that one slice of background work visits: some tenths of a millisecond.
const SLICE: usize = 4096;

/// What is known of one path to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// As the peer has announced it.
    pub(crate) received: AttributesId,
    /// As it is used here.
    pub(crate) accepted: AttributesId,
}

impl Path {
    /// Whether it may be used.
    pub(crate) fn is_accepted(&self) -> bool {
        self.accepted != AttributesId::NONE
    }
}

/// Which of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Afi {
    V4,
    V6,
}

impl Afi {
    pub(crate) const ALL: [Self; 2] = [Self::V4, Self::V6];
}

/// All routes.
pub(crate) struct Routes {
    pub(crate) sets: AttributeSets,
    pub(crate) next_hops: NextHops,
    /// By the numbers of origins, which are the same in both tables.
    sources: Vec<Source>,
    v4: RouteTable<Ipv4Net, Path>,
    v6: RouteTable<Ipv6Net, Path>,
}

/// Something that is to be done with the table of a family.
macro_rules! with_table {
    ($self:ident, $afi:expr, $table:ident => $body:expr) => {
        match $afi {
            Afi::V4 => {
                let $table = &mut $self.v4;
                $body
            }
            Afi::V6 => {
                let $table = &mut $self.v6;
                $body
            }
        }
    };
}

impl Routes {
    pub(crate) fn new(key: KeyedHash) -> Self {
        Self {
            sets: AttributeSets::new(key),
            next_hops: NextHops::default(),
            sources: Vec::new(),
            v4: RouteTable::new(),
            v6: RouteTable::new(),
        }
    }

    /// A new source of routes.
    pub(crate) fn add_source(&mut self, source: Source) -> OriginId {
        let origin = self.v4.add_origin();
        let same = self.v6.add_origin();
        // Both tables get and lose their origins together.
        debug_assert_eq!(origin, same);
        self.sources.push(source);
        origin
    }

    /// A source is another one now: its session was opened again.
    pub(crate) fn set_source(&mut self, origin: OriginId, source: Source) {
        let known = &mut self.sources[usize::from(origin.0)];
        if *known != source {
            *known = source;
            Afi::ALL.into_iter().for_each(|afi| self.decide_again(afi));
        }
    }

    pub(crate) fn source(&self, origin: OriginId) -> &Source {
        &self.sources[usize::from(origin.0)]
    }

    /// The number of a set of attributes, which has one use more. They name their next hop.
    pub(crate) fn intern(&mut self, attributes: Attributes) -> AttributesId {
        let next_hops = &mut self.next_hops;
        self.sets.intern(attributes, |attributes| {
            let next_hop = attributes.next_hop.as_ref();
            next_hops.take(next_hop.expect("whoever stores a route gives it a next hop"))
        })
    }

    /// A set of attributes has one use less.
    pub(crate) fn give(&mut self, id: AttributesId) {
        if let Some(next_hop) = self.sets.give(id) {
            self.next_hops.give(next_hop);
        }
    }

    /// A source announces a path to a prefix.
    pub(crate) fn announce(
        &mut self,
        afi: Afi,
        prefix: &Prefix,
        origin: OriginId,
        path: u32,
        route: Path,
    ) {
        self.sets.take(route.received);
        self.sets.take(route.accepted);
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        let told = with_table!(self, afi, table => {
            table.set(BitString::from_prefix(prefix), origin, path, route, &decision)
        });
        self.forget(told);
    }

    /// A source withdraws a path to a prefix; false if it has announced none.
    pub(crate) fn withdraw(
        &mut self,
        afi: Afi,
        prefix: &Prefix,
        origin: OriginId,
        path: u32,
    ) -> bool {
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        let told = with_table!(self, afi, table => {
            table.withdraw(&BitString::from_prefix(prefix), origin, path, &decision)
        });
        told.map(|told| self.forget(told)).is_ok()
    }

    fn forget(&mut self, told: Told<Path>) {
        if let Some(before) = told.before {
            self.give(before.received);
            self.give(before.accepted);
        }
    }

    /// The source announces everything anew; what it has announced serves until it has.
    pub(crate) fn renew(&mut self, afi: Afi, origin: OriginId) {
        with_table!(self, afi, table => table.renew(origin));
    }

    /// The source has announced everything anew, or will not: the rest goes, in the background.
    pub(crate) fn sweep(&mut self, afi: Afi, origin: OriginId) {
        with_table!(self, afi, table => table.sweep(origin));
    }

    /// What decisions depend on has changed.
    pub(crate) fn decide_again(&mut self, afi: Afi) {
        with_table!(self, afi, table => table.decide_again());
    }

    /// Whether there is background work.
    pub(crate) fn has_work(&self) -> bool {
        self.v4.has_work() || self.v6.has_work()
    }

    /// Does a slice of it.
    pub(crate) fn work(&mut self) {
        let (sources, sets, next_hops) = (&self.sources, &self.sets, &self.next_hops);
        let decision = Decision { sources, sets, next_hops };
        let mut gone = Vec::new();
        let afi = if self.v4.has_work() { Afi::V4 } else { Afi::V6 };
        with_table!(self, afi, table => {
            table.work(SLICE, &decision, |_, one: &Candidate<Path>| gone.push(one.route));
        });
        for path in gone {
            self.give(path.received);
            self.give(path.accepted);
        }
    }

    /// How many paths a source has announced.
    pub(crate) fn paths_of(&self, afi: Afi, origin: OriginId) -> usize {
        match afi {
            Afi::V4 => self.v4.routes_of(origin),
            Afi::V6 => self.v6.routes_of(origin),
        }
    }

    /// How many destinations have a route.
    pub(crate) fn len(&self, afi: Afi) -> usize {
        match afi {
            Afi::V4 => self.v4.len(),
            Afi::V6 => self.v6.len(),
        }
    }

    /// A new reader of a family's table, who hears of everything.
    pub(crate) fn open_reader(&mut self, afi: Afi) -> ReaderId {
        with_table!(self, afi, table => table.open_reader())
    }

    pub(crate) fn fork_reader(&mut self, afi: Afi, reader: ReaderId) -> ReaderId {
        with_table!(self, afi, table => table.fork_reader(reader))
    }

    pub(crate) fn close_reader(&mut self, afi: Afi, reader: ReaderId) {
        with_table!(self, afi, table => table.close_reader(reader));
    }

    /// Whether both readers will hear the same from now on.
    pub(crate) fn have_read_the_same(&self, afi: Afi, one: ReaderId, other: ReaderId) -> bool {
        match afi {
            Afi::V4 => self.v4.have_read_the_same(one, other),
            Afi::V6 => self.v6.have_read_the_same(one, other),
        }
    }

    /// Whether this reader has something to hear.
    pub(crate) fn is_behind(&self, afi: Afi, reader: ReaderId) -> bool {
        match afi {
            Afi::V4 => self.v4.is_behind(reader),
            Afi::V6 => self.v6.is_behind(reader),
        }
    }

    /// The next destination of which a reader must hear.
    pub(crate) fn next(&mut self, afi: Afi, reader: ReaderId) -> Option<News> {
        fn next<D: Destination<Index = PrefixIndex> + BitString>(
            table: &mut RouteTable<D, Path>,
            reader: ReaderId,
        ) -> Option<News> {
            let number = table.next(reader)?;
            let best = table.best(number).map(|best| (best.origin, best.route));
            Some(News { number, prefix: table.destination(number).prefix(), best })
        }
        with_table!(self, afi, table => next(table, reader))
    }

    /// How many changes wait for the slowest reader.
    pub(crate) fn waiting(&self, afi: Afi) -> usize {
        match afi {
            Afi::V4 => self.v4.waiting(),
            Afi::V6 => self.v6.waiting(),
        }
    }

    pub(crate) fn v4(&self) -> &RouteTable<Ipv4Net, Path> {
        &self.v4
    }

    pub(crate) fn v6(&self) -> &RouteTable<Ipv6Net, Path> {
        &self.v6
    }
}

/// What a reader hears: a destination, and what is best now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// The destination's number, by which readers can keep what they have said of it.
    pub(crate) number: u32,
    pub(crate) prefix: Prefix,
    pub(crate) best: Option<(OriginId, Path)>,
}

impl News {
    /// The destination as a network of IP.
    pub(crate) fn net(&self, afi: Afi) -> IpNet {
        match afi {
            Afi::V4 => Ipv4Net::from_prefix(&self.prefix).into(),
            Afi::V6 => Ipv6Net::from_prefix(&self.prefix).into(),
        }
    }
}
