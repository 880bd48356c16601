//! Interfaces, and the hardware addresses on them that are links of the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::{Bucket, Instant, Packet, PortId};
use weft_linkstate::LinkId;
use weft_port::{PortInfo, PortSpec};
use weft_wire::{ETHERNET_HEADER_LEN, EtherType, EthernetRepr, MacAddr};
use weft_xip::kept_port::KeptPort;
use weft_xip::numbers::ETHERTYPE_LINK_STATE;

/// What a beacon says.
pub(crate) const BEACON: [u8; 2] = [0, 1];
/// How often a beacon is sent.
pub(crate) const BEACON_PERIOD: Duration = Duration::from_secs(2);
/// After so long without a frame, a hardware address without a session is forgotten.
pub(crate) const FORGET: Duration = Duration::from_secs(30);

/// So long a hardware address keeps its link though there is no session, and the interface has no room for others:
/// long enough for the handshake of one that speaks.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// Greetings of a hardware address that are taken at once, and then one each interval: what the engine takes of a link.
const GREETINGS: u32 = 10;
const GREETING_INTERVAL: Duration = Duration::from_millis(100);
/// The same for an interface, whose hardware addresses may all be somebody's inventions: room for the handshakes of
/// 64 neighbours at once, which greet three times each.
const ALL_GREETINGS: u32 = 200;
const ALL_GREETINGS_INTERVAL: Duration = Duration::from_millis(5);

/// An interface that carries XIP packets.
#[derive(Debug)]
pub(crate) struct Interface {
    /// The port of its XIP packets.
    pub(crate) xip: PortId,
    pub(crate) mac: MacAddr,
    pub(crate) mtu: usize,
    /// The port of link-state routing; closed where that is off.
    pub(crate) port: KeptPort,
    greetings: Bucket,
}

impl Interface {
    pub(crate) fn new(name: &str, xip: PortId, info: &PortInfo) -> Self {
        let interface = name.to_owned();
        let spec = PortSpec::Ethernet { interface, ethertype: ETHERTYPE_LINK_STATE };
        let (mac, port) = (MacAddr(info.mac), KeptPort::new(spec));
        Self { xip, mac, mtu: info.mtu, port, greetings: Bucket::default() }
    }

    /// Loopback and links without hardware addresses have no neighbours.
    pub(crate) fn has_addresses(&self) -> bool {
        self.mac != MacAddr::UNSPECIFIED
    }
}

/// Where a link leads.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) interface: String,
    pub(crate) mac: MacAddr,
    /// When a frame came from there last.
    pub(crate) heard: Instant,
    greetings: Bucket,
}

impl Place {
    /// Whether a greeting from here may cost a verification. One place cannot use up what its interface has for all.
    pub(crate) fn admits_greeting(&mut self, now: Instant, interface: &mut Interface) -> bool {
        self.greetings.take(now, GREETING_INTERVAL, GREETINGS)
            && interface.greetings.take(now, ALL_GREETINGS_INTERVAL, ALL_GREETINGS)
    }
}

/// The links, by number and by place.
#[derive(Debug, Default)]
pub(crate) struct Links {
    places: BTreeMap<LinkId, Place>,
    numbers: BTreeMap<(String, MacAddr), LinkId>,
    last: u32,
}

/// What came of a frame of some hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Known(LinkId),
    New(LinkId),
    /// There are too many on that interface.
    TooMany,
}

impl Links {
    /// A frame came from there.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        interface: &str,
        mac: MacAddr,
        limit: usize,
    ) -> Heard {
        if let Some(link) = self.numbers.get(&(interface.to_owned(), mac)) {
            if let Some(place) = self.places.get_mut(link) {
                place.heard = now;
            }
            return Heard::Known(*link);
        }
        if self.on(interface).count() >= limit {
            return Heard::TooMany;
        }
        // Numbers are not used again: what is under way for an old link means nothing to a new one.
        self.last = self.last.wrapping_add(1);
        let link = LinkId(self.last);
        let interface = interface.to_owned();
        let place = Place { interface, mac, heard: now, greetings: Bucket::default() };
        self.numbers.insert((place.interface.clone(), mac), link);
        self.places.insert(link, place);
        Heard::New(link)
    }

    pub(crate) fn place(&self, link: LinkId) -> Option<&Place> {
        self.places.get(&link)
    }

    pub(crate) fn place_mut(&mut self, link: LinkId) -> Option<&mut Place> {
        self.places.get_mut(&link)
    }

    /// The links on an interface.
    pub(crate) fn on(&self, interface: &str) -> impl Iterator<Item = LinkId> {
        let all = self.places.iter();
        all.filter(move |(_, place)| place.interface == interface).map(|(link, _)| *link)
    }

    pub(crate) fn remove(&mut self, link: LinkId) {
        if let Some(place) = self.places.remove(&link) {
            self.numbers.remove(&(place.interface, place.mac));
        }
    }
}

/// A frame with this payload.
pub(crate) fn frame(payload: &[u8], source: MacAddr, destination: MacAddr) -> Packet {
    let mut packet = Packet::from_slice(payload);
    EthernetRepr { source, destination, ethertype: EtherType(ETHERTYPE_LINK_STATE) }
        .emit(packet.push_front(ETHERNET_HEADER_LEN))
        .expect("the header gets the room it needs");
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_links_up_to_the_limit_of_their_interface() {
        let mut links = Links::default();
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let [one, two] = [LinkId(1), LinkId(2)];
        assert_eq!(links.hear(at(0), "eth0", mac(1), 1), Heard::New(one));
        assert_eq!(links.hear(at(1), "eth0", mac(1), 1), Heard::Known(one));
        assert_eq!(links.hear(at(1), "eth0", mac(2), 1), Heard::TooMany);
        assert_eq!(links.hear(at(1), "eth1", mac(1), 1), Heard::New(two));
        assert_eq!(links.place(one).map(|place| place.heard), Some(at(1)));
        assert_eq!(links.on("eth0").collect::<Vec<_>>(), [one]);
        links.remove(one);
        assert_eq!(links.hear(at(2), "eth0", mac(2), 1), Heard::New(LinkId(3)));
    }
}
