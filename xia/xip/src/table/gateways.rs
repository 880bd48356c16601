//! The gateways of a table's routes, each kept once however many routes lead over it.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::Xid;

/// Stands for a gateway as long as a route leads over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GatewayNumber(u32);

/// All gateways.
#[derive(Clone, Debug, Default)]
pub(super) struct Gateways {
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
    pub(super) fn add(&mut self, xid: Xid) -> GatewayNumber {
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
                let number = u32::try_from(self.gateways.len())
                    .expect("4 billion gateways do not fit into memory");
                self.gateways.push(gateway);
                GatewayNumber(number)
            }
        };
        self.numbers.insert(xid, number);
        number
    }

    /// The gateway of this number.
    pub(super) fn get(&self, number: GatewayNumber) -> Xid {
        self.gateways[number.index()].xid
    }

    /// Counts one route less; the number means nothing after the last one.
    pub(super) fn release(&mut self, number: GatewayNumber) {
        let gateway = &mut self.gateways[number.index()];
        gateway.routes -= 1;
        if gateway.routes == 0 {
            self.numbers.remove(&gateway.xid);
            self.free.push(number);
        }
    }
}

impl GatewayNumber {
    fn index(self) -> usize {
        self.0 as usize
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
