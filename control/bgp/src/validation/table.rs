//! What the RPKI says, by prefixes.

use ipnet::IpNet;
use weft_routing::ip::split;
use weft_routing::{Prefix, PrefixTable};

use super::Validity;
use crate::rpki::Payload;

/// Who may announce a prefix, and prefixes of which length at most within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Allowed {
    system: u32,
    max_length: u8,
}

/// All payloads.
#[derive(Debug, Default)]
pub(crate) struct Validation {
    /// Of IPv4 and of IPv6.
    tables: [PrefixTable<Vec<Allowed>>; 2],
    len: usize,
}

/// The table, the prefix in it, and who may announce it.
fn place(payload: &Payload) -> (usize, Prefix, Allowed) {
    let (version, prefix) = split(payload.net);
    // No prefix of IP has more bits than fit.
    let max_length = payload.max_length.min(u8::MAX.into()) as u8;
    (usize::from(version.is_ipv6()), prefix, Allowed { system: payload.system, max_length })
}

impl Validation {
    /// How many payloads there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A payload is there, or not any more. Returns whether that is new.
    pub(crate) fn set(&mut self, payload: &Payload, is_there: bool) -> bool {
        let (table, prefix, allowed) = place(payload);
        let table = &mut self.tables[table];
        let mut all = table.get_mut(&prefix).map(std::mem::take).unwrap_or_default();
        let place = all.binary_search(&allowed);
        match (place, is_there) {
            (Err(place), true) => all.insert(place, allowed),
            (Ok(place), false) => drop(all.remove(place)),
            _ => {}
        }
        if all.is_empty() {
            table.remove(&prefix);
        } else {
            table.insert(prefix, all);
        }
        let is_new = place.is_ok() != is_there;
        match is_there {
            true if is_new => self.len += 1,
            false if is_new => self.len -= 1,
            _ => {}
        }
        is_new
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

    /// The prefixes of which another one says something else.
    pub(crate) fn differences(&self, other: &Self) -> Vec<IpNet> {
        let mut all = Vec::new();
        for (version, (own, others)) in weft_routing::ip::Version::both(false)
            .into_iter()
            .zip(self.tables.iter().zip(&other.tables))
        {
            let is_other = own.iter().filter(|(prefix, one)| others.get(prefix) != Some(*one));
            let is_new = others.iter().filter(|(prefix, _)| own.get(prefix).is_none());
            all.extend(is_other.chain(is_new).map(|(prefix, _)| version.net(&prefix)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
            others in prop::collection::vec((any_payload(), any::<bool>()), 0..40),
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
            let (mut other, mut other_model) = (Validation::default(), BTreeSet::new());
            for (payload, is_there) in others {
                other.set(&payload, is_there);
                match is_there {
                    true => other_model.insert(key(&payload)),
                    false => other_model.remove(&key(&payload)),
                };
            }
            let different: BTreeSet<_> = model.symmetric_difference(&other_model).map(|one| one.0).collect();
            prop_assert_eq!(all.differences(&other).into_iter().collect::<BTreeSet<_>>(), different);
        }
    }
}
