//! The next hops that entries of the cache lead to, each once.
//!
//! Many destinations lie behind few neighbours. An entry holds a number, and the hop behind the number is
//! close to the processor because every other packet needs it.

use std::collections::HashMap;

use slab::Slab;
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
    hops: Slab<Hop>,
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
        Self { hops: Slab::new(), numbers: HashMap::with_hasher(hash) }
    }

    #[inline]
    pub(super) fn get(&self, id: HopId) -> &Departure {
        &self.hops[id.0 as usize].departure
    }

    /// The number of a hop, with one more use; and whether it is the first.
    pub(super) fn take(&mut self, hop: NextHop, egress: &EgressTable) -> (HopId, bool) {
        let hops = &mut self.hops;
        let new = || Hop { departure: egress.departure(hop), uses: 0 };
        let id = *self.numbers.entry(hop).or_insert_with(|| HopId(hops.insert(new()) as u32));
        let uses = &mut self.hops[id.0 as usize].uses;
        *uses += 1;
        (id, *uses == 1)
    }

    /// The ports are others now.
    pub(super) fn ports_changed(&mut self, egress: &EgressTable) {
        for (_, hop) in &mut self.hops {
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
            self.hops.remove(id.0 as usize);
        }
        is_last
    }

    /// All of them, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, NextHop)> + '_ {
        self.hops.iter().map(|(id, hop)| (id as u32, *hop.departure.hop()))
    }

    /// The bytes in use.
    pub(super) fn bytes(&self) -> usize {
        // A place in the slab, and one in the map, of which an eighth is empty.
        self.hops.len() * (size_of::<Hop>() + size_of::<NextHop>() + 32)
    }

    pub(super) fn len(&self) -> usize {
        self.hops.len()
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
    }
}
