//! The neighbours: which HID is reached at which hardware address on which interface.
//!
//! A place is *configured* by a statement, *learned* from NWP, or both. What is learned is bounded:
//! by a limit for the whole table and one for each HID on an interface, so that a hostile neighbour
//! can fill the table but not the memory.

use std::collections::BTreeMap;

use weft_base::Instant;
use weft_wire::MacAddr;
use weft_xip::Xid;

use crate::interfaces::Asked;
use crate::nwp::NeighbourRepr;
use crate::places::{Life, Origin, Places};

/// Most hardware addresses that are learned for one HID on one interface.
pub(crate) const ADDRESSES_PER_HID: usize = 16;

/// What came of an attempt to learn a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    New,
    Known,
    /// Others speak of it, but it was found to be gone.
    Gone,
    TableFull,
    TooManyAddresses,
}

/// All places, by interface.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    interfaces: BTreeMap<String, Places>,
    /// Places that are learned and not configured.
    learned: usize,
}

impl Neighbours {
    /// Enters what a neighbour said of itself `now`, or others of it if that is `None`, unless the table has
    /// `limit` learned places already.
    pub(crate) fn learn(
        &mut self,
        interface: &str,
        (hid, mac): (Xid, MacAddr),
        now: Option<Instant>,
        limit: usize,
    ) -> Learned {
        let learned = self.learned;
        let places = self.places_mut(interface);
        let known = places.get(hid, mac);
        if known.is_none_or(|origin| origin.learned.is_none()) {
            if now.is_none() && places.is_gone(hid, mac) {
                return Learned::Gone;
            }
            if known.is_none() && places.of_hid(hid).count() >= ADDRESSES_PER_HID {
                return Learned::TooManyAddresses;
            }
            if known.is_none() && learned >= limit {
                return Learned::TableFull;
            }
            let configured = known.is_some();
            places.insert(hid, mac, Origin { configured, learned: Some(Life::default()) });
        }
        if let Some(now) = now {
            places.named(hid, mac, now);
        }
        if known.is_some() {
            return Learned::Known;
        }
        self.learned += 1;
        Learned::New
    }

    /// Enters what the operator said.
    pub(crate) fn configure(&mut self, interface: &str, hid: Xid, mac: MacAddr) {
        let places = self.places_mut(interface);
        let origin = places.get(hid, mac).unwrap_or_default();
        places.insert(hid, mac, Origin { configured: true, ..origin });
        self.learned -= usize::from(origin.learned.is_some() && !origin.configured);
    }

    /// Removes one place, however it became known; false if there is none.
    pub(crate) fn remove(&mut self, interface: &str, hid: Xid, mac: MacAddr) -> bool {
        let Some(places) = self.interfaces.get_mut(interface) else { return false };
        let removed = places.remove(hid, mac);
        self.learned -= usize::from(removed.is_some_and(|origin| !origin.configured));
        removed.is_some()
    }

    /// Removes all places of a HID; false if there is none.
    pub(crate) fn remove_hid(&mut self, hid: Xid) -> bool {
        let all: Vec<_> = self.iter().filter(|place| place.hid == hid).collect();
        let all: Vec<_> = all.iter().map(|p| (p.interface.to_owned(), p.mac)).collect();
        all.iter().fold(false, |any, (interface, mac)| self.remove(interface, hid, *mac) || any)
    }

    /// Forgets what was learned of a place, which is gone: others are not believed that it is there.
    pub(crate) fn expire(&mut self, interface: &str, hid: Xid, mac: MacAddr, now: Instant) {
        let places = self.places_mut(interface);
        let was = places.life(hid, mac).map_or(Asked::Unheard, |life| life.asked_as());
        places.bury(hid, mac, (was, now));
        self.unlearn(interface, hid, mac);
    }

    fn unlearn(&mut self, interface: &str, hid: Xid, mac: MacAddr) -> bool {
        let removed = self.places_mut(interface).unlearn(hid, mac);
        self.learned -= usize::from(removed);
        removed
    }

    /// Makes room for a place that is proven, if there is none: places that are not give way, those that were easily
    /// invented before others, and then those whose nodes named them last long ago. Returns their HIDs.
    pub(crate) fn make_room(
        &mut self,
        interface: &str,
        (hid, mac): (Xid, MacAddr),
        limit: usize,
    ) -> Vec<Xid> {
        let mut displaced = Vec::new();
        let places = self.places_mut(interface);
        if places.get(hid, mac).is_some() {
            return displaced;
        }
        if places.of_hid(hid).count() >= ADDRESSES_PER_HID {
            let own = |place: &Place| place.hid == hid && place.interface == interface;
            let Some(own) = self.displace(own) else { return displaced };
            displaced.push(own);
        }
        if self.learned >= limit {
            displaced.extend(self.displace(|_| true));
        }
        displaced
    }

    /// Forgets a place that is neither configured nor proven, of those that are meant; returns its HID.
    fn displace(&mut self, which: impl Fn(&Place) -> bool) -> Option<Xid> {
        let claimed = |place: &Place| {
            let life = place.origin.learned.filter(|_| !place.origin.configured)?;
            life.proven.is_none().then(|| (life.asked_as(), life.named()))
        };
        let all = self.iter().filter(which);
        let oldest = all.filter_map(|place| Some((claimed(&place)?, place)));
        let (_, place) = oldest.min_by_key(|(claimed, _)| *claimed)?;
        let (interface, hid, mac) = (place.interface.to_owned(), place.hid, place.mac);
        self.unlearn(&interface, hid, mac);
        Some(hid)
    }

    /// Forgets what was learned on an interface; returns the HIDs that lost a place.
    pub(crate) fn forget_learned(&mut self, interface: &str) -> Vec<Xid> {
        let mut lost = self.forget_where(interface, |_| true);
        if let Some(places) = self.interfaces.get_mut(interface) {
            places.forget_gone();
        }
        lost.dedup();
        lost
    }

    /// Forgets what was learned on an interface and not proven; returns which places.
    pub(crate) fn forget_unproven(&mut self, interface: &str) -> Vec<(Xid, MacAddr)> {
        let Some(places) = self.interfaces.get(interface) else { return Vec::new() };
        let claimed = |origin: Origin| origin.learned.is_some_and(|life| life.proven.is_none());
        let all = places.iter().filter(|(_, _, origin)| claimed(*origin));
        let all: Vec<_> = all.map(|(hid, mac, _)| (hid, mac)).collect();
        for (hid, mac) in &all {
            self.unlearn(interface, *hid, *mac);
        }
        all
    }

    /// Forgets what was learned of a HID, everywhere.
    pub(crate) fn forget_hid(&mut self, hid: Xid) {
        let interfaces: Vec<_> = self.interfaces.keys().cloned().collect();
        for interface in interfaces {
            self.forget_where(&interface, |one| one == hid);
        }
    }

    /// Forgets what was learned on an interface of some HIDs; returns those that lost a place, once for each.
    fn forget_where(&mut self, interface: &str, which: impl Fn(Xid) -> bool) -> Vec<Xid> {
        let Some(places) = self.interfaces.get(interface) else { return Vec::new() };
        let learned =
            places.iter().filter(|(hid, _, origin)| origin.learned.is_some() && which(*hid));
        let learned: Vec<_> = learned.map(|(hid, mac, _)| (hid, mac)).collect();
        let mut lost = learned;
        lost.retain(|(hid, mac)| self.unlearn(interface, *hid, *mac));
        lost.into_iter().map(|(hid, _)| hid).collect()
    }

    /// Whether the operator configured a place for this HID.
    pub(crate) fn is_configured(&self, hid: Xid) -> bool {
        self.iter().any(|place| place.hid == hid && place.origin.configured)
    }

    /// Whether the operator configured a place for this HID on an interface that is `up`.
    pub(crate) fn is_configured_where(&self, hid: Xid, up: impl Fn(&str) -> bool) -> bool {
        let mut there = self.interfaces.iter().filter(|(interface, _)| up(interface));
        there.any(|(_, places)| places.of_hid(hid).any(|(_, origin)| origin.configured))
    }

    /// Where to send packets for `hid`, of all places on interfaces that are `up`: configured
    /// before learned, proven before claimed, then by name of the interface, then by hardware address in byte order.
    pub(crate) fn best(&self, hid: Xid, up: impl Fn(&str) -> bool) -> Option<(&str, MacAddr)> {
        self.interfaces
            .iter()
            .filter(|(interface, _)| up(interface))
            .flat_map(|(interface, places)| places.of_hid(hid).map(move |p| (interface, p)))
            .min_by_key(|(interface, (mac, origin))| {
                (!origin.configured, !origin.is_proven(), *interface, *mac)
            })
            .map(|(interface, (mac, _))| (interface.as_str(), mac))
    }

    /// Number of places on an interface.
    pub(crate) fn count(&self, interface: &str) -> usize {
        self.interfaces.get(interface).map_or(0, Places::len)
    }

    /// The HIDs that have a place on an interface.
    pub(crate) fn hids(&self, interface: &str) -> Vec<Xid> {
        let places = self.interfaces.get(interface).into_iter().flat_map(Places::iter);
        let mut hids: Vec<_> = places.map(|(hid, ..)| hid).collect();
        hids.dedup();
        hids
    }

    /// What a neighbour list says of an interface: each HID with its addresses, in order.
    pub(crate) fn list(&self, interface: &str) -> Vec<NeighbourRepr> {
        let mut list: Vec<NeighbourRepr> = Vec::new();
        for (hid, mac, _) in self.interfaces.get(interface).into_iter().flat_map(Places::iter) {
            match list.last_mut() {
                // More addresses than a message can count are left out; only a configuration
                // can have so many.
                Some(last) if last.hid == hid => {
                    if last.addresses.len() < ADDRESSES_PER_HID {
                        last.addresses.push(mac);
                    }
                }
                _ => list.push(NeighbourRepr { hid, addresses: vec![mac] }),
            }
        }
        list
    }

    /// All places, by interface, then HID, then address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Place<'_>> {
        self.interfaces.iter().flat_map(|(interface, places)| {
            places.iter().map(move |(hid, mac, origin)| Place { hid, interface, mac, origin })
        })
    }

    /// When a place gave its last sign of life; see [`Places::last_sign`].
    pub(crate) fn last_sign(&self, place: &Place, required: bool) -> Option<Instant> {
        self.interfaces.get(place.interface)?.last_sign(place.hid, place.mac, required)
    }

    /// When the first place of all is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.interfaces.values().filter_map(Places::next_due).min()
    }

    /// The places on an interface.
    pub(crate) fn places_mut(&mut self, interface: &str) -> &mut Places {
        if !self.interfaces.contains_key(interface) {
            self.interfaces.insert(interface.to_owned(), Places::default());
        }
        self.interfaces.get_mut(interface).expect("inserted just above if it was not there")
    }

    /// The interfaces that have had a place.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        self.interfaces.keys().cloned().collect()
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) hid: Xid,
    pub(crate) interface: &'a str,
    pub(crate) mac: MacAddr,
    pub(crate) origin: Origin,
}

#[cfg(test)]
mod tests {
    use weft_xip::XidType;

    use super::*;

    fn hid(id: u8) -> Xid {
        Xid::new(XidType::HID, [id; 20])
    }

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    const ALL: usize = 1000;
    const NOW: Option<Instant> = Some(Instant::ZERO);

    #[test]
    fn configured_comes_before_learned_then_interface_then_address() {
        let mut table = Neighbours::default();
        table.learn("eth1", (hid(1), mac(1)), NOW, ALL);
        table.learn("eth0", (hid(1), mac(9)), NOW, ALL);
        table.learn("eth0", (hid(1), mac(8)), NOW, ALL);
        assert_eq!(table.best(hid(1), |_| true), Some(("eth0", mac(8))));
        assert_eq!(table.best(hid(1), |name| name == "eth1"), Some(("eth1", mac(1))));
        table.configure("eth1", hid(1), mac(5));
        assert_eq!(table.best(hid(1), |_| true), Some(("eth1", mac(5))));
        assert_eq!(table.best(hid(1), |_| false), None);
        assert_eq!(table.best(hid(2), |_| true), None);
    }

    #[test]
    fn what_is_learned_is_bounded_and_what_is_configured_is_not() {
        let mut table = Neighbours::default();
        assert_eq!(table.learn("eth0", (hid(1), mac(1)), NOW, 2), Learned::New);
        assert_eq!(table.learn("eth0", (hid(1), mac(1)), NOW, 2), Learned::Known);
        assert_eq!(table.learn("eth0", (hid(2), mac(1)), NOW, 2), Learned::New);
        assert_eq!(table.learn("eth0", (hid(3), mac(1)), NOW, 2), Learned::TableFull);
        table.configure("eth0", hid(2), mac(1));
        assert_eq!(
            table.learn("eth0", (hid(3), mac(1)), NOW, 2),
            Learned::New,
            "configured is not counted"
        );
        assert!(table.remove("eth0", hid(1), mac(1)));
        assert!(!table.remove("eth0", hid(1), mac(1)));
        assert_eq!(table.learn("eth0", (hid(4), mac(1)), NOW, 2), Learned::New);
    }

    #[test]
    fn one_hid_cannot_take_the_whole_table() {
        let mut table = Neighbours::default();
        for last in 0..ADDRESSES_PER_HID as u8 {
            assert_eq!(table.learn("eth0", (hid(1), mac(last)), NOW, ALL), Learned::New);
        }
        assert_eq!(table.learn("eth0", (hid(1), mac(99)), NOW, ALL), Learned::TooManyAddresses);
        assert_eq!(table.learn("eth0", (hid(2), mac(99)), NOW, ALL), Learned::New);
    }

    #[test]
    fn forgetting_keeps_what_is_configured_and_frees_the_rest() {
        let mut table = Neighbours::default();
        table.learn("eth0", (hid(1), mac(1)), NOW, 3);
        table.learn("eth0", (hid(1), mac(2)), NOW, 3);
        table.configure("eth0", hid(2), mac(3));
        table.learn("eth1", (hid(1), mac(4)), NOW, 3);
        assert_eq!(table.forget_learned("eth0"), [hid(1)]);
        assert_eq!(table.hids("eth0"), [hid(2)]);
        assert_eq!(table.forget_learned("eth0"), []);
        table.forget_hid(hid(1));
        assert_eq!(table.count("eth1"), 0);
        assert_eq!(
            table.learn("eth0", (hid(5), mac(1)), NOW, 1),
            Learned::New,
            "all room is free again"
        );
    }

    #[test]
    fn a_list_has_each_hid_once_with_sorted_addresses() {
        let mut table = Neighbours::default();
        table.learn("eth0", (hid(2), mac(2)), NOW, ALL);
        table.learn("eth0", (hid(1), mac(3)), NOW, ALL);
        table.learn("eth0", (hid(2), mac(1)), NOW, ALL);
        table.learn("eth1", (hid(3), mac(1)), NOW, ALL);
        let list = table.list("eth0");
        assert_eq!(
            list,
            [
                NeighbourRepr { hid: hid(1), addresses: vec![mac(3)] },
                NeighbourRepr { hid: hid(2), addresses: vec![mac(1), mac(2)] },
            ]
        );
        assert_eq!(table.list("eth9"), []);
    }

    #[test]
    fn a_hid_is_removed_from_all_interfaces() {
        let mut table = Neighbours::default();
        table.learn("eth0", (hid(1), mac(1)), NOW, ALL);
        table.configure("eth1", hid(1), mac(2));
        table.configure("eth1", hid(2), mac(2));
        assert!(table.is_configured(hid(1)));
        assert!(table.remove_hid(hid(1)));
        assert!(!table.remove_hid(hid(1)));
        assert!(!table.is_configured(hid(1)));
        assert_eq!(table.iter().count(), 1);
    }
}
