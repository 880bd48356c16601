//! The gateways of a table's routes, each kept once however many routes lead over it.
//!
//! A route then takes the four bytes of a number, and so does a route or none. Several gateways of one route are a
//! *group*, which has a number, too, and is shared by all routes with the same gateways. So has a route without any,
//! which leads nowhere.

use std::collections::HashMap;
use std::num::NonZero;
use std::slice;
use std::sync::Arc;

use foldhash::fast::FixedState;
use slab::Slab;

use crate::Xid;
use crate::principal::{Answer, Branch, GatewaySet};
use crate::words::{WordError, WordReader};

/// The most gateways of one route.
pub const MAX_GATEWAYS: usize = 16;

/// Stands for a gateway, or a group of them, as long as a route leads over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayNumber(NonZero<u32>);

/// What tells the number of a group from that of a gateway.
const GROUP: u32 = 1 << 31;

/// The number of no gateway at all.
const NOWHERE: GatewayNumber = GatewayNumber(NonZero::<u32>::MAX);

/// All gateways of a table.
#[derive(Clone, Debug, Default)]
pub struct Gateways {
    gateways: Vec<Gateway>,
    numbers: HashMap<Xid, GatewayNumber, FixedState>,
    /// Places in `gateways` that no route refers to.
    free: Vec<GatewayNumber>,
    groups: Slab<Group>,
    group_numbers: HashMap<Arc<[Xid]>, GatewayNumber, FixedState>,
}

#[derive(Clone, Copy, Debug)]
struct Gateway {
    xid: Xid,
    routes: u32,
}

#[derive(Clone, Debug)]
struct Group {
    xids: Arc<[Xid]>,
    set: GatewaySet,
    routes: u32,
}

impl Gateways {
    /// Counts one more route over these, which are in order, each once; without any it leads nowhere.
    pub fn add(&mut self, via: &[Xid]) -> GatewayNumber {
        match via {
            [] => NOWHERE,
            [xid] => self.add_one(*xid),
            xids => self.add_group(xids),
        }
    }

    fn add_one(&mut self, xid: Xid) -> GatewayNumber {
        let number = self.numbers.get(&xid).copied().unwrap_or_else(|| self.enter(xid));
        self.gateways[number.place()].routes += 1;
        number
    }

    fn add_group(&mut self, xids: &[Xid]) -> GatewayNumber {
        let number = self.group_numbers.get(xids).copied().unwrap_or_else(|| {
            let xids: Arc<[Xid]> = xids.into();
            let set = GatewaySet::of(&xids);
            let place = self.groups.insert(Group { xids: xids.clone(), set, routes: 0 });
            let number = GatewayNumber::of_group(place);
            self.group_numbers.insert(xids, number);
            number
        });
        self.groups[number.place()].routes += 1;
        number
    }

    /// Enters a gateway that no route leads over yet.
    fn enter(&mut self, xid: Xid) -> GatewayNumber {
        let gateway = Gateway { xid, routes: 0 };
        let number = match self.free.pop() {
            Some(number) => {
                self.gateways[number.place()] = gateway;
                number
            }
            None => {
                self.gateways.push(gateway);
                GatewayNumber::of_gateway(self.gateways.len())
            }
        };
        self.numbers.insert(xid, number);
        number
    }

    /// The gateways of this number, in order.
    #[must_use]
    #[inline]
    pub fn get(&self, number: GatewayNumber) -> &[Xid] {
        match number.is_group() {
            _ if number == NOWHERE => &[],
            false => slice::from_ref(&self.gateways[number.place()].xid),
            true => &self.groups[number.place()].xids,
        }
    }

    /// What a principal answers about an XID whose route leads over these.
    #[inline]
    pub fn answer(&self, number: GatewayNumber, branches: &mut Vec<Branch>) -> Answer {
        if !number.is_group() {
            return Answer::Redirect(self.gateways[number.place()].xid);
        }
        if number == NOWHERE {
            return Answer::Unknown;
        }
        let group = &self.groups[number.place()];
        branches.extend(group.xids.iter().copied().map(Branch::To));
        Answer::AnyOf(group.set)
    }

    /// What is left of these gateways without some of them, in order; `None` if one of those is not there.
    #[must_use]
    pub fn without(&self, number: GatewayNumber, some: &[Xid]) -> Option<Vec<Xid>> {
        let all = self.get(number);
        let left = || all.iter().filter(|xid| !some.contains(xid)).copied().collect();
        some.iter().all(|xid| all.contains(xid)).then(left)
    }

    /// Counts one route less; the number means nothing after the last one.
    pub fn release(&mut self, number: GatewayNumber) {
        if number == NOWHERE {
            return;
        }
        if number.is_group() {
            let group = &mut self.groups[number.place()];
            group.routes -= 1;
            if group.routes == 0 {
                let gone = self.groups.remove(number.place());
                self.group_numbers.remove(&gone.xids);
            }
            return;
        }
        let gateway = &mut self.gateways[number.place()];
        gateway.routes -= 1;
        if gateway.routes == 0 {
            self.numbers.remove(&gateway.xid);
            self.free.push(number);
        }
    }
}

impl GatewayNumber {
    /// The number of the gateway at this place, counted from 1.
    fn of_gateway(place: usize) -> Self {
        let number = u32::try_from(place).ok().filter(|number| number & GROUP == 0);
        let number = number.and_then(NonZero::new);
        Self(number.expect("there is a gateway, and 2 billion do not fit into memory"))
    }

    /// The number of the group at this place, counted from 0.
    fn of_group(place: usize) -> Self {
        let number = u32::try_from(place).ok().filter(|number| number & GROUP == 0);
        let number = number.and_then(|number| NonZero::new(number | GROUP)).map(Self);
        let number = number.filter(|number| *number != NOWHERE);
        number.expect("2 billion groups do not fit into memory")
    }

    #[inline]
    fn is_group(self) -> bool {
        self.0.get() & GROUP != 0
    }

    /// Where it is in its list.
    #[inline]
    fn place(self) -> usize {
        match self.is_group() {
            false => self.0.get() as usize - 1,
            true => (self.0.get() ^ GROUP) as usize,
        }
    }
}

/// Gateways as [`Gateways`] takes them: in order, each once.
#[must_use]
pub fn in_order(via: impl IntoIterator<Item = Xid>) -> Vec<Xid> {
    let mut all: Vec<Xid> = via.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Reads the rest of a statement as the gateways of a route: `XID…`. `of` is whose route it is, if that is an XID.
///
/// # Errors
/// Says which word is wrong.
pub fn read_gateways(reader: &mut WordReader, of: Option<Xid>) -> Result<Vec<Xid>, WordError> {
    let mut via = Vec::new();
    while via.is_empty() || !reader.is_at_end() {
        let xid: Xid = reader.value("the XID of a gateway")?;
        if xid.kind.is_nat() {
            let text = format!("{xid} is no gateway: type nat only ends addresses");
            return Err(reader.error(text));
        }
        if of == Some(xid) {
            return Err(reader.error(format!("a route from {xid} to itself leads nowhere")));
        }
        if via.contains(&xid) {
            return Err(reader.error(format!("the gateway {xid} is there twice")));
        }
        if via.len() == MAX_GATEWAYS {
            let text = format!("a route has {MAX_GATEWAYS} gateways at most");
            return Err(reader.error(text));
        }
        via.push(xid);
    }
    Ok(in_order(via))
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
        let first = gateways.add(&[host(1)]);
        assert_eq!(gateways.add(&[host(1)]), first);
        assert_ne!(gateways.add(&[host(2)]), first);
        gateways.release(first);
        assert_eq!(gateways.get(first), [host(1)]);
        gateways.release(first);
        assert_eq!(gateways.numbers.len(), 1);
    }

    #[test]
    fn a_group_is_kept_once_and_beside_its_gateways() {
        let mut gateways = Gateways::default();
        let both = [host(1), host(2)];
        let one = gateways.add(&both[..1]);
        let group = gateways.add(&both);
        assert_eq!(gateways.add(&both), group);
        assert_ne!(gateways.add(&[host(2), host(3)]), group);
        assert_eq!((gateways.get(one), gateways.get(group)), (&both[..1], &both[..]));
        let mut branches = Vec::new();
        assert_eq!(gateways.answer(one, &mut branches), Answer::Redirect(host(1)));
        assert_eq!(branches, []);
        assert_eq!(gateways.answer(group, &mut branches), Answer::AnyOf(GatewaySet::of(&both)));
        assert_eq!(branches, both.map(Branch::To));
        assert_eq!(gateways.without(group, &[host(1)]), Some(vec![host(2)]));
        assert_eq!(gateways.without(group, &[host(3)]), None);
        gateways.release(group);
        assert_eq!(gateways.get(group), both);
        gateways.release(group);
        assert_eq!((gateways.groups.len(), gateways.group_numbers.len()), (1, 1));
        assert_eq!(gateways.get(one), [host(1)]);
    }

    #[test]
    fn a_route_without_gateways_leads_nowhere() {
        let mut gateways = Gateways::default();
        let nowhere = gateways.add(&[]);
        assert_eq!(gateways.get(nowhere), []);
        assert_eq!(gateways.answer(nowhere, &mut Vec::new()), Answer::Unknown);
        assert_eq!(gateways.without(nowhere, &[host(1)]), None);
        gateways.release(nowhere);
        assert_eq!(gateways.add(&[]), nowhere);
    }

    #[test]
    fn places_are_used_again() {
        let mut gateways = Gateways::default();
        for id in 0..100 {
            for via in [&[host(id)][..], &[host(id), host(id + 1)]] {
                let number = gateways.add(via);
                assert_eq!(gateways.get(number), via);
                gateways.release(number);
            }
        }
        assert_eq!((gateways.gateways.len(), gateways.groups.vacant_key()), (1, 0));
    }

    #[test]
    fn gateways_are_read_to_the_end_of_the_statement() {
        let read = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            read_gateways(&mut WordReader::new(&words), Some(host(9)))
        };
        let (one, two) = (host(1), host(2));
        assert_eq!(read(&format!("{two} {one}")), Ok(vec![one, two]));
        assert_eq!(read(&one.to_string()), Ok(vec![one]));
        let most: Vec<_> = (10..10 + MAX_GATEWAYS as u8).map(|id| host(id).to_string()).collect();
        assert_eq!(read(&most.join(" ")).map(|via| via.len()), Ok(MAX_GATEWAYS));
        for (line, word) in [
            (format!("{one} fast"), 1),
            (format!("{one} {two} {one}"), 2),
            (format!("{one} {}", host(9)), 1),
            (format!("{one} nat-{}", "00".repeat(20)), 1),
            (format!("{} {one}", most.join(" ")), MAX_GATEWAYS),
        ] {
            assert_eq!(read(&line).unwrap_err().word, Some(word), "{line}");
        }
        assert_eq!(read_gateways(&mut WordReader::new(&[]), None).unwrap_err().word, None);
    }
}
