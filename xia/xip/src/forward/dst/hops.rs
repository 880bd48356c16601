//! The next hops that entries of the cache lead to, each once.
//!
//! Many destinations lie behind few neighbours. An entry holds a number, and the hop behind the number is
//! close to the processor because every other packet needs it.
//!
//! Another engine reads a decision, and then where the neighbour with its number is, while this one changes both. So a
//! number that has become free rests until others have, too ([`Hops::let_rest`]): what had read it before sends nothing
//! to a neighbour that it was not meant for.

use std::collections::{HashMap, VecDeque};

use weft_base::KeyedHash;

use crate::forward::egress::{Departure, EgressTable};
use crate::principal::NextHop;

/// The number of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HopId(u32);

impl HopId {
    pub(super) fn number(self) -> u32 {
        self.0
    }

    /// The one with this number.
    pub(super) fn of(number: u32) -> Self {
        Self(number)
    }
}

/// The next hops in use.
#[derive(Debug)]
pub(super) struct Hops {
    /// By their numbers; one without uses is none.
    hops: Vec<Hop>,
    /// Numbers that stand for nothing, those first that have done so for longest.
    free: VecDeque<u32>,
    /// How many of these are given to nobody.
    resting: usize,
    numbers: HashMap<NextHop, HopId, KeyedHash>,
}

/// How packets leave by a next hop, worked out once, and how many entries lead to it.
#[derive(Debug)]
struct Hop {
    departure: Departure,
    uses: u32,
}

impl Hops {
    pub(super) fn new(hash: KeyedHash) -> Self {
        let numbers = HashMap::with_hasher(hash);
        Self { hops: Vec::new(), free: VecDeque::new(), resting: 0, numbers }
    }

    /// Of the numbers that become free, so many rest.
    pub(super) fn let_rest(&mut self, most: usize) {
        self.resting = most;
    }

    #[inline]
    pub(super) fn get(&self, id: HopId) -> &Departure {
        &self.hops[id.0 as usize].departure
    }

    /// The number of a hop, with one more use; and whether it is the first.
    pub(super) fn take(&mut self, hop: NextHop, egress: &EgressTable) -> (HopId, bool) {
        let Self { hops, free, resting, numbers } = self;
        let new = || {
            let new = Hop { departure: egress.departure(hop), uses: 0 };
            let rested = if free.len() > *resting { free.pop_front() } else { None };
            let number = rested.unwrap_or(hops.len() as u32);
            match hops.get_mut(number as usize) {
                Some(place) => *place = new,
                None => hops.push(new),
            }
            HopId(number)
        };
        let id = *numbers.entry(hop).or_insert_with(new);
        let uses = &mut self.hops[id.0 as usize].uses;
        *uses += 1;
        (id, *uses == 1)
    }

    /// The ports are others now.
    pub(super) fn ports_changed(&mut self, egress: &EgressTable) {
        for hop in &mut self.hops {
            hop.departure = egress.departure(*hop.departure.hop());
        }
    }

    /// Ends a use of [`Hops::take`]; with the last one, for which this is true, the number becomes free.
    pub(super) fn release(&mut self, id: HopId) -> bool {
        let hop = &mut self.hops[id.0 as usize];
        hop.uses -= 1;
        let is_last = hop.uses == 0;
        if is_last {
            self.numbers.remove(hop.departure.hop());
            self.free.push_back(id.0);
        }
        is_last
    }

    /// All of them, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, NextHop)> + '_ {
        let used = (0..).zip(&self.hops).filter(|(_, hop)| hop.uses > 0);
        used.map(|(id, hop)| (id, *hop.departure.hop()))
    }

    /// The bytes in use.
    pub(super) fn bytes(&self) -> usize {
        // A place in the list, and one in the map, of which an eighth is empty.
        self.len() * (size_of::<Hop>() + size_of::<NextHop>() + 32)
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use weft_base::{LinkAddress, Packet, PortId, Random};

    use super::*;
    use crate::forward::{DropReason, Egress, Framing};
    use crate::{Address, Xid, XidType, XipRepr};

    #[test]
    fn packets_leave_as_the_ports_are_now() {
        let mut hops = Hops::new(KeyedHash::new(&mut Random::from_seed(1)));
        let mut egress = EgressTable::default();
        let hop = NextHop { port: PortId(1), link: LinkAddress::Mac([7; 6]) };
        let (id, _) = hops.take(hop, &egress);
        let mut bytes = vec![0; 100];
        let address = Address::scoping(&[Xid::new(XidType::HID, [9; 20])]).unwrap();
        let repr = XipRepr { hop_limit: 5, ..XipRepr::new(address, None, 0) };
        repr.emit(&mut bytes).unwrap();
        bytes.truncate(repr.buffer_len());
        let len = bytes.len();
        let leave = |hops: &Hops, from: PortId| {
            let mut packet = Packet::from_slice(&bytes);
            packet.meta.port = from;
            let sent = hops.get(id).send(&mut packet);
            assert!(sent.is_ok() || packet.bytes() == bytes);
            sent.map(|()| (packet.meta.link, packet.bytes().to_vec()))
        };
        assert_eq!(leave(&hops, PortId(2)), Err(DropReason::PortGone));
        let mut open = |hops: &mut Hops, framing, mtu| {
            egress.insert(PortId(1), Egress { framing, mtu });
            hops.ports_changed(&egress);
        };
        let with_limit = |limit: u8| {
            let mut bytes = bytes.clone();
            bytes[4] = limit;
            bytes
        };
        open(&mut hops, Framing::Ethernet { mac: [8; 6] }, len);
        let framed = [&[7; 6][..], &[8; 6], &[0xc0, 0xde], &with_limit(4)].concat();
        assert_eq!(leave(&hops, PortId(2)), Ok((hop.link, framed)));
        open(&mut hops, Framing::Ethernet { mac: [8; 6] }, len - 1);
        assert_eq!(leave(&hops, PortId(2)), Err(DropReason::TooBig));
        open(&mut hops, Framing::Bare, len);
        assert_eq!(leave(&hops, PortId(2)), Ok((hop.link, with_limit(4))));
        // It was made here.
        assert_eq!(leave(&hops, PortId::NONE), Ok((hop.link, with_limit(5))));
        egress.remove(PortId(1));
        hops.ports_changed(&egress);
        assert_eq!(leave(&hops, PortId(2)), Err(DropReason::PortGone));
    }

    #[test]
    fn a_hop_has_one_number_until_its_last_use_ends() {
        let hop = |port| NextHop { port: PortId(port), link: LinkAddress::Mac([port as u8; 6]) };
        let mut hops = Hops::new(KeyedHash::new(&mut Random::from_seed(1)));
        let none = EgressTable::default();
        let ((one, first), (two, _), (again, second)) =
            (hops.take(hop(1), &none), hops.take(hop(2), &none), hops.take(hop(1), &none));
        assert_eq!((one, hops.get(one).hop(), hops.get(two).hop()), (again, &hop(1), &hop(2)));
        assert_eq!((first, second), (true, false));
        assert!(!hops.release(one));
        assert_eq!(hops.len(), 2);
        assert!(hops.release(again) && hops.release(two));
        assert_eq!((hops.len(), hops.bytes()), (0, 0));
        assert_eq!(hops.all().count(), 0);
    }

    #[test]
    fn a_number_rests_before_it_stands_for_another_neighbour() {
        let hop = |port| NextHop { port: PortId(port), link: LinkAddress::None };
        let mut hops = Hops::new(KeyedHash::new(&mut Random::from_seed(1)));
        let none = EgressTable::default();
        hops.let_rest(2);
        let mut given = Vec::new();
        for port in 0..8 {
            let (id, is_first) = hops.take(hop(port), &none);
            assert!(is_first && hops.release(id));
            given.push(id.number());
        }
        assert_eq!(given, [0, 1, 2, 0, 1, 2, 0, 1]);
        // Those in use are left alone.
        let (kept, _) = hops.take(hop(9), &none);
        for port in 0..8 {
            let (id, _) = hops.take(hop(port), &none);
            assert!(id != kept && hops.release(id));
        }
        assert_eq!(hops.all().collect::<Vec<_>>(), [(kept.number(), hop(9))]);
        hops.let_rest(0);
        let numbers: Vec<_> = (0..4).map(|port| hops.take(hop(port), &none).0.number()).collect();
        assert!(numbers[..3].iter().all(|number| *number < 4) && numbers[3] == 4, "{numbers:?}");
    }
}
