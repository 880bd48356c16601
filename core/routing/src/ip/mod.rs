//! Routes of both versions of IP, for packets to one receiver and for multicast, side by side.
//!
//! Reference: Handley et al. (XORP), §5 (the stages of IPv4 and of IPv6 are the same code); RFC 4760 §6 (routes for
//! multicast lead to sources: they say on which way packets from there have to come). Each has a table of its own; origins
//! have the same number in all. Destinations are told as a version and a string of bits.

mod pages;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use pages::{Asked, Page, PageError};

use crate::{
    BitString, Candidate, Candidates, Decide, Hears, OriginId, Prefix, ReaderId, RouteTable,
    TOGETHER, Turns,
};

/// Blocks of IPv4 to which no packets from elsewhere may be sent: this network, loopback, multicast and what is reserved
/// behind it (RFC 1122 §3.2.1.3, RFC 1112 §4).
const HIDDEN_V4: [Ipv4Net; 3] = [
    Ipv4Net::new_assert(Ipv4Addr::new(0, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 3),
];
/// Those of IPv6: no address at all, loopback, links, multicast (RFC 4291 §2.5.2, §2.5.3, §2.5.6 and §2.7).
const HIDDEN_V6: [Ipv6Net; 4] = [
    Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128),
    Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128),
    Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    Ipv6Net::new_assert(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
];

/// Whether packets from elsewhere may be sent to a network, so that a protocol may tell it: it is none of multicast, none
/// that stays on a host or on a link, and none that is reserved. One that has such a block within it and more, as the
/// default route and its halves have, is a destination.
#[must_use]
pub fn is_destination(net: &IpNet) -> bool {
    match net {
        IpNet::V4(net) => !HIDDEN_V4.iter().any(|hidden| hidden.contains(net)),
        IpNet::V6(net) => !HIDDEN_V6.iter().any(|hidden| hidden.contains(net)),
    }
}

/// A version of IP, and what routes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// IPv4, for checks of the way on which multicast comes.
    V4Multicast,
    /// IPv6, for the same.
    V6Multicast,
}

impl Version {
    /// All.
    pub const ALL: [Self; 4] = [Self::V4, Self::V6, Self::V4Multicast, Self::V6Multicast];

    /// Those by which packets are forwarded, or those for multicast: of IPv4 first.
    #[must_use]
    pub fn both(multicast: bool) -> [Self; 2] {
        [Self::V4, Self::V6].map(|version| version.with(multicast))
    }

    /// That of an address, as packets are forwarded to it.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The same version of IP, for packets to one receiver or for multicast.
    #[must_use]
    pub fn with(self, multicast: bool) -> Self {
        match (self.is_ipv6(), multicast) {
            (false, false) => Self::V4,
            (true, false) => Self::V6,
            (false, true) => Self::V4Multicast,
            (true, true) => Self::V6Multicast,
        }
    }

    /// The one behind it in [`Version::ALL`].
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::ALL.into_iter().find(|other| *other > self)
    }

    /// Whether addresses are those of IPv6.
    #[must_use]
    pub fn is_ipv6(self) -> bool {
        matches!(self, Self::V6 | Self::V6Multicast)
    }

    /// Whether routes are for multicast.
    #[must_use]
    pub fn is_multicast(self) -> bool {
        matches!(self, Self::V4Multicast | Self::V6Multicast)
    }

    /// What people call it: `ipv4`, or `ipv4 multicast`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
            Self::V4Multicast => "ipv4 multicast",
            Self::V6Multicast => "ipv6 multicast",
        }
    }

    /// The network that a string of bits names; bits beyond those of an address are left out.
    #[must_use]
    pub fn net(self, prefix: &Prefix) -> IpNet {
        match self.is_ipv6() {
            false => Ipv4Net::from_prefix(prefix).into(),
            true => Ipv6Net::from_prefix(prefix).into(),
        }
    }

    /// The first and the last address of the network that a string of bits names.
    #[must_use]
    pub fn addresses(self, prefix: &Prefix) -> RangeInclusive<IpAddr> {
        self.address(prefix.first())..=self.address(prefix.last())
    }

    fn address(self, bits: [u8; 24]) -> IpAddr {
        match self.is_ipv6() {
            false => {
                let [a, b, c, d, ..] = bits;
                Ipv4Addr::new(a, b, c, d).into()
            }
            true => {
                let (octets, _) = bits.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
                Ipv6Addr::from(*octets).into()
            }
        }
    }
}

/// The version of a network, and its bits; those behind its length do not count.
#[must_use]
pub fn split(net: IpNet) -> (Version, Prefix) {
    match net {
        IpNet::V4(net) => (Version::V4, net.prefix()),
        IpNet::V6(net) => (Version::V6, net.prefix()),
    }
}

/// The same of a route for packets to one receiver, or for multicast.
#[must_use]
pub fn split_for(net: IpNet, multicast: bool) -> (Version, Prefix) {
    let (version, prefix) = split(net);
    (version.with(multicast), prefix)
}

/// What a reader hears: a destination, and what is best now, if anything.
#[derive(Clone, Copy, Debug)]
pub struct News<R> {
    /// The destination's number, by which readers keep what they have said of it.
    pub number: u32,
    /// Its bits.
    pub prefix: Prefix,
    /// The best route to it.
    pub best: Option<Candidate<R>>,
}

/// The routes of all versions.
#[derive(Debug)]
pub struct IpRoutes<R> {
    v4: RouteTable<Ipv4Net, R>,
    v6: RouteTable<Ipv6Net, R>,
    v4_multicast: RouteTable<Ipv4Net, R>,
    v6_multicast: RouteTable<Ipv6Net, R>,
    /// Of which version background work is done.
    turns: Turns,
}

/// Something that is the same for the table of each version.
macro_rules! with {
    ($self:ident, $version:expr, $table:ident => $body:expr) => {
        with!(of $self, $version, $table => $body, [&])
    };
    (mut $self:ident, $version:expr, $table:ident => $body:expr) => {
        with!(of $self, $version, $table => $body, [&mut])
    };
    (of $self:ident, $version:expr, $table:ident => $body:expr, [$($way:tt)+]) => {
        match $version {
            Version::V4 => {
                let $table = $($way)+ $self.v4;
                $body
            }
            Version::V6 => {
                let $table = $($way)+ $self.v6;
                $body
            }
            Version::V4Multicast => {
                let $table = $($way)+ $self.v4_multicast;
                $body
            }
            Version::V6Multicast => {
                let $table = $($way)+ $self.v6_multicast;
                $body
            }
        }
    };
}
pub(crate) use with;

impl<R: Copy + PartialEq> IpRoutes<R> {
    /// No routes.
    #[must_use]
    pub fn new() -> Self {
        let (v4, v6) = (RouteTable::new(), RouteTable::new());
        let (v4_multicast, v6_multicast) = (RouteTable::new(), RouteTable::new());
        Self { v4, v6, v4_multicast, v6_multicast, turns: Turns::default() }
    }

    /// As [`RouteTable::add_origin`].
    pub fn add_origin(&mut self) -> OriginId {
        // They have it in common.
        let [origin, ..] =
            Version::ALL.map(|version| with!(mut self, version, table => table.add_origin()));
        origin
    }

    /// As [`RouteTable::routes_of`].
    #[must_use]
    pub fn routes_of(&self, version: Version, origin: OriginId) -> usize {
        with!(self, version, table => table.routes_of(origin))
    }

    /// As [`RouteTable::fresh_routes_of`].
    #[must_use]
    pub fn fresh_routes_of(&self, version: Version, origin: OriginId) -> usize {
        with!(self, version, table => table.fresh_routes_of(origin))
    }

    /// As [`RouteTable::is_stale`].
    #[must_use]
    pub fn is_stale(&self, version: Version, candidate: &Candidate<R>) -> bool {
        with!(self, version, table => table.is_stale(candidate))
    }

    /// How many destinations have a route.
    #[must_use]
    pub fn len(&self, version: Version) -> usize {
        with!(self, version, table => table.len())
    }

    /// The number of exactly this destination.
    #[must_use]
    pub fn number(&self, version: Version, prefix: &Prefix) -> Option<u32> {
        with!(self, version, table => table.index().table().get(prefix).copied())
    }

    /// The network of the destination with this number.
    #[must_use]
    pub fn net(&self, version: Version, number: u32) -> IpNet {
        with!(self, version, table => table.destination(number).into())
    }

    /// As [`RouteTable::best`].
    #[must_use]
    pub fn best(&self, version: Version, number: u32) -> Option<&Candidate<R>> {
        with!(self, version, table => table.best(number))
    }

    /// As [`RouteTable::candidates`].
    #[must_use]
    pub fn candidates(&self, version: Version, number: u32) -> Candidates<'_, R> {
        with!(self, version, table => table.candidates(number))
    }

    /// As [`RouteTable::set`].
    pub fn set(
        &mut self,
        (version, prefix): (Version, &Prefix),
        origin: OriginId,
        path: u32,
        route: R,
        decide: &impl Decide<R>,
    ) -> Option<R> {
        with!(mut self, version, table => {
            table.set(BitString::from_prefix(prefix), origin, path, route, decide)
        })
    }

    /// As [`RouteTable::change`].
    pub fn change(
        &mut self,
        (version, number): (Version, u32),
        origin: OriginId,
        path: u32,
        route: R,
        decide: &impl Decide<R>,
    ) -> Option<R> {
        with!(mut self, version, table => table.change(number, origin, path, route, decide))
    }

    /// As [`RouteTable::decide`].
    pub fn decide(&mut self, version: Version, number: u32, decide: &impl Decide<R>) {
        with!(mut self, version, table => table.decide(number, decide));
    }

    /// As [`RouteTable::end_of_numbers`].
    #[must_use]
    pub fn end_of_numbers(&self, version: Version) -> u32 {
        with!(self, version, table => table.end_of_numbers())
    }

    /// As [`RouteTable::withdraw`].
    pub fn withdraw(
        &mut self,
        (version, prefix): (Version, &Prefix),
        origin: OriginId,
        path: u32,
        decide: &impl Decide<R>,
    ) -> Option<R> {
        with!(mut self, version, table => {
            table.withdraw(&BitString::from_prefix(prefix), origin, path, decide)
        })
    }

    /// As [`RouteTable::renew`].
    pub fn renew(&mut self, version: Version, origin: OriginId) {
        with!(mut self, version, table => table.renew(origin));
    }

    /// As [`RouteTable::sweep`].
    pub fn sweep(&mut self, version: Version, origin: OriginId) {
        with!(mut self, version, table => table.sweep(origin));
    }

    /// As [`RouteTable::decide_again`], for all versions.
    pub fn decide_again(&mut self) {
        for version in Version::ALL {
            with!(mut self, version, table => table.decide_again());
        }
    }

    /// Whether there is background work.
    #[must_use]
    pub fn has_work(&self) -> bool {
        Version::ALL.iter().any(|version| self.has_work_of(*version))
    }

    fn has_work_of(&self, version: Version) -> bool {
        with!(self, version, table => table.has_work())
    }

    /// As [`RouteTable::is_untidy`].
    #[must_use]
    pub fn is_untidy(&self) -> bool {
        let is_untidy = |version| with!(self, version, table => table.is_untidy());
        Version::ALL.into_iter().any(is_untidy)
    }

    /// As [`RouteTable::tidy`].
    pub fn tidy(&mut self) {
        for version in Version::ALL {
            with!(mut self, version, table => table.tidy());
        }
    }

    /// As [`RouteTable::approach`], of destinations of one version; those behind the first [`TOGETHER`] are left out.
    pub fn approach(&self, version: Version, prefixes: impl IntoIterator<Item = Prefix>) {
        let (mut all, mut count) = ([Prefix::default(); TOGETHER], 0);
        for (place, prefix) in all.iter_mut().zip(prefixes) {
            *place = prefix;
            count += 1;
        }
        with!(self, version, table => {
            let destinations = all.each_ref().map(BitString::from_prefix);
            table.approach(&destinations[..count]);
        });
    }

    /// As [`RouteTable::work`], of one version after the other: none waits until another has nothing left to do.
    pub fn work(
        &mut self,
        most: usize,
        decide: &impl Decide<R>,
        mut gone: impl FnMut((Version, Prefix), &Candidate<R>),
    ) {
        let mut turns = self.turns;
        let next = turns.next(&Version::ALL, |version| self.has_work_of(*version));
        self.turns = turns;
        let Some(version) = next else { return };
        with!(mut self, version, table => {
            table.work(most, decide, |net, one| gone((version, net.prefix()), one));
        });
    }

    /// As [`RouteTable::open_reader`].
    pub fn open_reader(&mut self, version: Version, hears: Hears) -> ReaderId {
        with!(mut self, version, table => table.open_reader(hears))
    }

    /// As [`RouteTable::tell_again`].
    pub fn tell_again(&mut self, version: Version, reader: ReaderId, hears: Hears) {
        with!(mut self, version, table => table.tell_again(reader, hears));
    }

    /// As [`RouteTable::fork_reader`].
    ///
    /// # Panics
    /// There is no such reader.
    pub fn fork_reader(&mut self, version: Version, reader: ReaderId) -> ReaderId {
        with!(mut self, version, table => table.fork_reader(reader))
    }

    /// As [`RouteTable::close_reader`].
    pub fn close_reader(&mut self, version: Version, reader: ReaderId) {
        with!(mut self, version, table => table.close_reader(reader));
    }

    /// As [`RouteTable::have_read_the_same`].
    #[must_use]
    pub fn have_read_the_same(&self, version: Version, one: ReaderId, other: ReaderId) -> bool {
        with!(self, version, table => table.have_read_the_same(one, other))
    }

    /// As [`RouteTable::is_behind`].
    #[must_use]
    pub fn is_behind(&self, version: Version, reader: ReaderId) -> bool {
        with!(self, version, table => table.is_behind(reader))
    }

    /// The next destination of which this reader must hear.
    pub fn next(&mut self, version: Version, reader: ReaderId) -> Option<News<R>> {
        let number = with!(mut self, version, table => table.next(reader))?;
        Some(self.news(version, number))
    }

    /// As [`RouteTable::next_new`].
    pub fn next_new(&mut self, version: Version, reader: ReaderId) -> Option<News<R>> {
        let number = with!(mut self, version, table => table.next_new(reader))?;
        Some(self.news(version, number))
    }

    /// As [`RouteTable::new_waiting`].
    #[must_use]
    pub fn new_waiting(&self, version: Version, reader: ReaderId) -> usize {
        with!(self, version, table => table.new_waiting(reader))
    }

    /// What there is to hear of the destination with this number.
    #[must_use]
    pub fn news(&self, version: Version, number: u32) -> News<R> {
        with!(self, version, table => {
            let prefix = table.destination(number).prefix();
            News { number, prefix, best: table.best(number).copied() }
        })
    }

    /// What there is to hear of all destinations to which there is a route.
    pub fn all_news(&self, version: Version) -> impl Iterator<Item = News<R>> + '_ {
        let all = (0..self.end_of_numbers(version)).map(move |number| self.news(version, number));
        all.filter(|news| news.best.is_some())
    }

    /// As [`RouteTable::noted`].
    #[must_use]
    pub fn noted(&self, version: Version) -> u64 {
        with!(self, version, table => table.noted())
    }

    /// How many changes wait for the slowest readers.
    #[must_use]
    pub fn waiting(&self) -> usize {
        Version::ALL.map(|version| with!(self, version, table => table.waiting())).iter().sum()
    }
}

impl<R: Copy + PartialEq> Default for IpRoutes<R> {
    fn default() -> Self {
        Self::new()
    }
}
