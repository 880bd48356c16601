//! What the RPKI says, by prefixes.

use ipnet::IpNet;
use weft_routing::ip::{Version, split};
use weft_routing::{Prefix, PrefixTable};

use super::Validity;
use crate::rpki::Payload;

/// Who may announce a prefix, and prefixes of which length at most within it. In the order of `rpki/1.0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Allowed {
    max_length: u8,
    system: u32,
}

/// Who may announce one prefix: at least one, and as a rule one.
#[derive(Debug, Default)]
struct Permits {
    first: Allowed,
    others: Box<[Allowed]>,
}

impl Permits {
    fn iter(&self) -> impl Iterator<Item = &Allowed> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Of these, which are in order; none of none.
    fn of(all: &[Allowed]) -> Option<Self> {
        let (first, others) = all.split_first()?;
        Some(Self { first: *first, others: others.into() })
    }
}

/// A payload as it stands here: in the table of its version of IP, at its prefix. In the order of `rpki/1.0`.
type Place = (usize, Prefix, Allowed);

/// All payloads.
#[derive(Debug, Default)]
pub(crate) struct Validation {
    /// Of IPv4 and of IPv6.
    tables: [PrefixTable<Permits>; 2],
    len: usize,
}

/// A page is not in order, or not behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("payloads are not in order")]
pub(crate) struct Disordered;

fn place(payload: &Payload) -> Place {
    let (version, prefix) = split(payload.net);
    // No prefix of IP has more bits than fit.
    let max_length = payload.max_length.min(u8::MAX.into()) as u8;
    (usize::from(version.is_ipv6()), prefix, Allowed { max_length, system: payload.system })
}

/// The prefix of a place.
fn net((version, prefix, _): &Place) -> IpNet {
    Version::both(false)[*version].net(prefix)
}

impl Validation {
    /// How many payloads there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A payload is there, or not any more. Returns whether that is new.
    pub(crate) fn set(&mut self, payload: &Payload, is_there: bool) -> bool {
        self.set_place(&place(payload), is_there)
    }

    fn set_place(&mut self, (table, prefix, allowed): &Place, is_there: bool) -> bool {
        let table = &mut self.tables[*table];
        let before =
            table.get(prefix).map_or(Vec::new(), |permits| permits.iter().copied().collect());
        let was_there = before.contains(allowed);
        if was_there == is_there {
            return false;
        }
        let mut all = before;
        match is_there {
            true => all.push(*allowed),
            false => all.retain(|one| one != allowed),
        }
        all.sort_unstable();
        match Permits::of(&all) {
            Some(permits) => drop(table.insert(*prefix, permits)),
            None => drop(table.remove(prefix)),
        }
        self.len = if is_there { self.len + 1 } else { self.len - 1 };
        true
    }

    /// A page of all payloads that there are: these come behind that one, and nothing is between them, nor behind the last page.
    /// Returns the prefixes of which something else is said now.
    ///
    /// # Errors
    /// They are not in order: nothing is changed.
    pub(crate) fn take_page(
        &mut self,
        behind: Option<&Payload>,
        page: &[Payload],
        is_last: bool,
    ) -> Result<Vec<IpNet>, Disordered> {
        let behind = behind.map(place);
        let page: Vec<_> = page.iter().map(place).collect();
        if !behind.iter().chain(&page).is_sorted_by(|one, next| one < next) {
            return Err(Disordered);
        }
        let end = page.last().or(behind.as_ref()).filter(|_| !is_last).copied();
        let gone = self.behind(behind).take_while(|one| end.is_none_or(|end| *one <= end));
        let gone: Vec<_> = gone.filter(|one| page.binary_search(one).is_err()).collect();
        let mut changed: Vec<_> = gone.iter().map(net).collect();
        for one in &gone {
            self.set_place(one, false);
        }
        changed.extend(page.iter().filter(|one| self.set_place(one, true)).map(net));
        Ok(changed)
    }

    /// What is there behind a place, or all, in order.
    fn behind(&self, place: Option<Place>) -> impl Iterator<Item = Place> {
        let tables = self.tables.iter().enumerate();
        let all =
            tables.skip(place.map_or(0, |(table, ..)| table)).flat_map(move |(number, table)| {
                let at = place.filter(|(of, ..)| *of == number).map(|(_, prefix, _)| prefix);
                let here = at.and_then(|prefix| Some((prefix, table.get(&prefix)?)));
                let mut cursor =
                    at.map_or_else(|| table.cursor(), |prefix| table.cursor_behind(prefix));
                let rest = std::iter::from_fn(move || cursor.next(table));
                let permits = here.into_iter().chain(rest);
                permits.flat_map(move |(prefix, permits)| {
                    permits.iter().map(move |one| (number, prefix, *one))
                })
            });
        all.filter(move |one| place.is_none_or(|place| *one > place))
    }

    /// Whether a system may announce a prefix; with none it may not be told which system it is.
    pub(crate) fn validity(&self, net: &IpNet, system: Option<u32>) -> Validity {
        let (version, mut name) = split(*net);
        let table = &self.tables[usize::from(version.is_ipv6())];
        let mut validity = Validity::NotFound;
        while let Some((length, all)) = table.longest(&name) {
            // RFC 6483 §4: 0 is nobody's number, so that nobody may announce it.
            let is_right = |one: &Allowed| {
                one.system != 0 && Some(one.system) == system && net.prefix_len() <= one.max_length
            };
            if all.iter().any(is_right) {
                return Validity::Valid;
            }
            validity = Validity::Invalid;
            let Some(shorter) = length.checked_sub(1) else { break };
            name = name.truncate(shorter);
        }
        validity
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn payload(net: &str, max_length: u32, system: u32) -> Payload {
        Payload { net: net.parse().unwrap(), max_length, system }
    }

    fn of(payloads: &[Payload]) -> Validation {
        let mut all = Validation::default();
        payloads.iter().for_each(|one| assert!(all.set(one, true)));
        all
    }

    /// RFC 6811 §2.1, and RFC 6483 §4 for the system 0.
    #[test]
    fn origins_are_valid_or_not_as_the_rfc_says() {
        let all = of(&[
            payload("10.0.0.0/8", 16, 65001),
            payload("10.1.0.0/16", 24, 65002),
            payload("10.1.0.0/16", 16, 65003),
            payload("192.0.2.0/24", 24, 0),
            payload("2001:db8::/32", 48, 65001),
        ]);
        assert_eq!(all.len(), 5);
        for (net, system, word) in [
            ("11.0.0.0/8", Some(65001), "not-found"),
            ("0.0.0.0/0", Some(65001), "not-found"),
            ("10.0.0.0/7", Some(65001), "not-found"),
            ("10.0.0.0/8", Some(65001), "valid"),
            ("10.2.0.0/16", Some(65001), "valid"),
            ("10.2.0.0/17", Some(65001), "invalid"),
            ("10.0.0.0/8", Some(65002), "invalid"),
            ("10.0.0.0/8", None, "invalid"),
            // Whatever one payload says, another one may allow it.
            ("10.1.0.0/16", Some(65001), "valid"),
            ("10.1.0.0/16", Some(65002), "valid"),
            ("10.1.0.0/16", Some(65003), "valid"),
            ("10.1.2.0/24", Some(65002), "valid"),
            ("10.1.2.0/24", Some(65003), "invalid"),
            ("192.0.2.0/24", Some(0), "invalid"),
            ("192.0.2.0/24", Some(65001), "invalid"),
            ("2001:db8:1::/48", Some(65001), "valid"),
            ("2001:db8:1::/49", Some(65001), "invalid"),
            ("2001:db9::/32", Some(65001), "not-found"),
        ] {
            let found = all.validity(&net.parse().unwrap(), system);
            assert_eq!(found.word(), word, "{net} of {system:?}");
        }
    }

    fn any_payload() -> impl Strategy<Value = Payload> {
        (0..4_u8, 0..4_u8, 1..3_u32, 0..3_u32).prop_map(|(bits, length, system, more)| {
            let length = 2 * length;
            let net = IpNet::new([bits << 6, 0, 0, 0].into(), length).unwrap().trunc();
            Payload { net, max_length: u32::from(length) + more, system }
        })
    }

    proptest! {
        /// Beside a list of all payloads that is read from the beginning to the end.
        #[test]
        fn it_is_as_if_all_payloads_were_asked(
            steps in prop::collection::vec((any_payload(), any::<bool>()), 0..40),
            others in prop::collection::vec(any_payload(), 0..40),
            size in 1..6_usize,
        ) {
            let (mut all, mut model) = (Validation::default(), BTreeSet::new());
            let key = |one: &Payload| (one.net, one.max_length, one.system);
            for (payload, is_there) in steps {
                let is_new = match is_there {
                    true => model.insert(key(&payload)),
                    false => model.remove(&key(&payload)),
                };
                prop_assert_eq!(all.set(&payload, is_there), is_new);
                prop_assert_eq!(all.len(), model.len());
            }
            for bits in 0..8_u8 {
                for length in 0..9 {
                    let net = IpNet::new([bits << 5, 0, 0, 0].into(), length).unwrap().trunc();
                    for system in 0..4 {
                        let covering = model.iter().filter(|(of, ..)| of.contains(&net));
                        let is_right = |(_, longest, of): &&(IpNet, u32, u32)| {
                            *of == system && u32::from(length) <= *longest
                        };
                        let expected = match covering.clone().next() {
                            None => Validity::NotFound,
                            Some(_) if covering.clone().any(|one| is_right(&one)) => Validity::Valid,
                            Some(_) => Validity::Invalid,
                        };
                        prop_assert_eq!(all.validity(&net, Some(system)), expected);
                    }
                }
            }
            // All of another set, in pages.
            let others: Vec<_> = others.into_iter().map(|one| (place(&one), one)).collect::<BTreeMap<_, _>>().into_values().collect();
            prop_assert!(others.is_sorted_by_key(key), "the order is that of prefixes, lengths and systems");
            let keys: BTreeSet<_> = others.iter().map(key).collect();
            let (mut changed, mut behind) = (BTreeSet::new(), None);
            let pages: Vec<_> = others.chunks(size).collect();
            for (number, page) in pages.iter().enumerate() {
                let is_last = number + 1 == pages.len();
                changed.extend(all.take_page(behind.as_ref(), page, is_last).unwrap());
                behind = page.last().cloned();
            }
            if pages.is_empty() {
                changed.extend(all.take_page(None, &[], true).unwrap());
            }
            let different = model.symmetric_difference(&keys).map(|one| one.0);
            prop_assert_eq!(changed, different.collect::<BTreeSet<_>>());
            prop_assert_eq!(all.len(), keys.len());
            let there: BTreeSet<_> = all.behind(None).map(|one| (net(&one), u32::from(one.2.max_length), one.2.system)).collect();
            prop_assert_eq!(there, keys);
        }
    }
    #[test]
    fn pages_that_are_not_in_order_change_nothing() {
        let (one, two) = (payload("10.0.0.0/8", 8, 1), payload("10.0.0.0/8", 9, 1));
        let mut all = of(&[payload("11.0.0.0/8", 8, 1)]);
        for (behind, page) in [
            (None, vec![two.clone(), one.clone()]),
            (Some(&two), vec![one.clone()]),
            (None, vec![one.clone(), one.clone()]),
        ] {
            assert_eq!(all.take_page(behind, &page, true), Err(Disordered));
        }
        assert_eq!(all.len(), 1);
        assert_eq!(all.take_page(Some(&one), &[], false), Ok(Vec::new()), "a page may be empty");
    }
}
