//! The gateways of a table's routes, each kept once however many routes lead over it.
//!
//! A route then takes the four bytes of a number, and so does a route or none.

use std::collections::HashMap;
use std::num::NonZero;

use foldhash::fast::FixedState;

use crate::Xid;

/// Stands for a gateway as long as a route leads over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayNumber(NonZero<u32>);

/// All gateways of a table.
#[derive(Clone, Debug, Default)]
pub struct Gateways {
    gateways: Vec<Gateway>,
    numbers: HashMap<Xid, GatewayNumber, FixedState>,
    /// Places in `gateways` that no route refers to.
    free: Vec<GatewayNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Gateway {
    xid: Xid,
    routes: u32,
}

impl Gateways {
    /// Counts one more route over `xid`.
    pub fn add(&mut self, xid: Xid) -> GatewayNumber {
        let number = self.numbers.get(&xid).copied().unwrap_or_else(|| self.enter(xid));
        self.gateways[number.index()].routes += 1;
        number
    }

    /// Enters a gateway that no route leads over yet.
    fn enter(&mut self, xid: Xid) -> GatewayNumber {
        let gateway = Gateway { xid, routes: 0 };
        let number = match self.free.pop() {
            Some(number) => {
                self.gateways[number.index()] = gateway;
                number
            }
            None => {
                self.gateways.push(gateway);
                GatewayNumber::of_place(self.gateways.len())
            }
        };
        self.numbers.insert(xid, number);
        number
    }

    /// The gateway of this number.
    #[must_use]
    pub fn get(&self, number: GatewayNumber) -> Xid {
        self.gateways[number.index()].xid
    }

    /// Counts one route less; the number means nothing after the last one.
    pub fn release(&mut self, number: GatewayNumber) {
        let gateway = &mut self.gateways[number.index()];
        gateway.routes -= 1;
        if gateway.routes == 0 {
            self.numbers.remove(&gateway.xid);
            self.free.push(number);
        }
    }
}

impl GatewayNumber {
    /// The number of the gateway at this place, counted from 1.
    fn of_place(place: usize) -> Self {
        let number = u32::try_from(place).ok().and_then(NonZero::new);
        Self(number.expect("there is a gateway, and 4 billion do not fit into memory"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::XidType;

    fn host(id: u8) -> Xid {
        Xid::new(XidType::HID, [id; 20])
    }

    #[test]
    fn a_gateway_is_kept_once_and_until_its_last_route_is_gone() {
        let mut gateways = Gateways::default();
        let first = gateways.add(host(1));
        assert_eq!(gateways.add(host(1)), first);
        assert_ne!(gateways.add(host(2)), first);
        gateways.release(first);
        assert_eq!(gateways.get(first), host(1));
        gateways.release(first);
        assert_eq!(gateways.numbers.len(), 1);
    }

    #[test]
    fn places_are_used_again() {
        let mut gateways = Gateways::default();
        for id in 0..100 {
            let number = gateways.add(host(id));
            assert_eq!(gateways.get(number), host(id));
            gateways.release(number);
        }
        assert_eq!(gateways.gateways.len(), 1);
    }
}
