//! Steps as messages of a session: routes that are alike share messages.
//!
//! Reference: RFC 4271 §5.1 (what is told to whom), §9.2.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use weft_bgp::wire::{Attributes, Context, Family, Neighbour, NextHop, UpdateEncoder, withdraw};
use weft_routing::Prefix;

use super::source::Step;

/// Steps that are taken at once: more share more messages, and take more memory.
const STEPS: usize = 4096;
/// What is said to routers of the same system by who prefers nothing (RFC 4271 §9.1.1 leaves it open; all say so).
const LOCAL_PREF: u32 = 100;

/// Steps of different prefixes, whose order is no matter.
#[derive(Default)]
pub(super) struct Batch {
    prefixes: HashSet<(Family, Prefix)>,
    /// Routes that are alike, in the order in which the first of each came.
    groups: Vec<(Family, Attributes, Vec<Prefix>)>,
    places: HashMap<(Family, Attributes), usize>,
    withdrawn: BTreeMap<Family, Vec<Prefix>>,
}

impl Batch {
    /// Takes the next steps, up to one that has to wait for these to be told, which is left in `next`.
    ///
    /// # Errors
    /// The steps end by one.
    pub(super) fn take(
        next: &mut Option<Step>,
        steps: &mut impl Iterator<Item = Result<Step, String>>,
    ) -> Result<Self, String> {
        let mut batch = Self::default();
        while batch.prefixes.len() < STEPS {
            let step = match next.take() {
                Some(step) => step,
                None => match steps.next().transpose()? {
                    Some(step) => step,
                    None => break,
                },
            };
            let (Step::Announce(family, prefix, _) | Step::Withdraw(family, prefix)) = step;
            if !batch.prefixes.insert((family, prefix)) {
                *next = Some(step);
                break;
            }
            match step {
                Step::Announce(_, _, attributes) => batch.announce(family, prefix, *attributes),
                Step::Withdraw(..) => batch.withdrawn.entry(family).or_default().push(prefix),
            }
        }
        Ok(batch)
    }

    fn announce(&mut self, family: Family, prefix: Prefix, attributes: Attributes) {
        let groups = &mut self.groups;
        let place = *self.places.entry((family, attributes)).or_insert_with_key(|(_, alike)| {
            groups.push((family, alike.clone(), Vec::new()));
            groups.len() - 1
        });
        self.groups[place].2.push(prefix);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }
}

/// Writes batches for one router.
pub(super) struct Teller {
    pub(super) context: Context,
    pub(super) autonomous_system: u32,
    /// The next hops of this end's, of either version of IP; without them those of the file stay.
    pub(super) next_hops: Option<Vec<IpAddr>>,
    /// How many routes were left out, and why.
    pub(super) left_out: BTreeMap<String, u64>,
}

impl Teller {
    /// The messages for a batch, and how many routes they announce.
    pub(super) fn tell(&mut self, batch: Batch) -> (Vec<u8>, u64) {
        let (mut bytes, mut announced) = (Vec::new(), 0);
        for (family, prefixes) in batch.withdrawn {
            if self.context.families.contains(family) {
                let all = prefixes.into_iter().map(|prefix| (0, prefix));
                withdraw(family, &self.context, all, &mut bytes);
            }
        }
        for (family, attributes, prefixes) in batch.groups {
            let count = prefixes.len() as u64;
            match self.encoder(family, attributes) {
                Ok(encoder) => {
                    encoder.all(prefixes.into_iter().map(|prefix| (0, prefix)), &mut bytes);
                    announced += count;
                }
                Err(why) => *self.left_out.entry(why).or_default() += count,
            }
        }
        (bytes, announced)
    }

    fn encoder(&self, family: Family, attributes: Attributes) -> Result<UpdateEncoder, String> {
        if !self.context.families.contains(family) {
            return Err(format!("the router takes no routes of {family} here"));
        }
        let attributes = self.changed(family, attributes)?;
        UpdateEncoder::new(&attributes, family, &self.context).map_err(|error| error.to_string())
    }

    /// What is told of a route of the file.
    fn changed(&self, family: Family, mut told: Attributes) -> Result<Attributes, String> {
        if let Some(own) = &self.next_hops {
            let own = own.iter().find(|own| own.is_ipv6() == family.is_ipv6());
            told.next_hop = Some(match own {
                Some(IpAddr::V4(own)) => NextHop::V4(*own),
                Some(IpAddr::V6(own)) => NextHop::V6 { global: *own, link_local: None },
                None => {
                    let why = "this end has no address for next hops: say one with --next-hop";
                    return Err(format!("{why} (of {family})"));
                }
            });
        }
        if self.context.neighbour == Neighbour::Internal {
            told.local_pref.get_or_insert(LOCAL_PREF);
            return Ok(told);
        }
        // What is for routers of one system alone.
        told.local_pref = None;
        told.change_rare(|rare| {
            rare.originator_id = None;
            rare.cluster_list = Box::default();
            rare.aigp = None;
        });
        told.as_path = told.as_path.without_confederation();
        if told.as_path.first() != Some(self.autonomous_system) {
            told.as_path = told.as_path.prepend(self.autonomous_system, 1);
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use weft_bgp::wire::{AsPath, Cutter, Families, Update};

    use super::*;

    fn announce(last: u8, path: &[u32]) -> Step {
        let attributes = Attributes {
            as_path: AsPath::from_sequence(path),
            next_hop: Some(NextHop::V4([192, 0, 2, 9].into())),
            local_pref: Some(7),
            ..Attributes::default()
        };
        Step::Announce(Family::IPV4_UNICAST, prefix(last), Box::new(attributes))
    }

    fn prefix(last: u8) -> Prefix {
        Prefix::new(&[10, last], 16).unwrap()
    }

    fn teller(neighbour: Neighbour) -> Teller {
        Teller {
            context: Context::new(neighbour),
            autonomous_system: 65_001,
            next_hops: Some(vec!["192.0.2.1".parse().unwrap()]),
            left_out: BTreeMap::new(),
        }
    }

    fn taken(next: &mut Option<Step>, steps: &[Step]) -> (Batch, usize) {
        let mut steps = steps.iter().cloned().map(Ok);
        let batch = Batch::take(next, &mut steps).unwrap();
        (batch, steps.len())
    }

    /// The messages: how many prefixes each has, and their attributes.
    fn read(bytes: &[u8], context: &Context) -> Vec<(usize, Attributes)> {
        let mut cutter = Cutter::new();
        cutter.push(bytes);
        let mut all = Vec::new();
        while let Some(message) = cutter.take().unwrap() {
            let update = Update::new_checked(message.body(), context).unwrap();
            let count = update.reach().map(|reach| reach.nlri.iter().count()).sum();
            all.push((count, update.judge(context).attributes));
        }
        all
    }

    #[test]
    fn routes_that_are_alike_share_a_message_and_what_is_changed_later_waits() {
        let mut next = None;
        let [a, b] = [&[65_001, 1][..], &[65_001, 2]];
        let all = [announce(1, a), announce(2, b), announce(3, a), announce(1, b)];
        let (batch, _) = taken(&mut next, &all);
        assert_eq!(next, Some(all[3].clone()));
        let mut teller = teller(Neighbour::External);
        let (bytes, announced) = teller.tell(batch);
        assert_eq!(announced, 3);
        let counts: Vec<_> =
            read(&bytes, &teller.context).iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [2, 1]);
        let (batch, _) = taken(&mut next, &[]);
        assert!(!batch.is_empty() && next.is_none());
        let (batch, _) = taken(&mut next, &[]);
        assert!(batch.is_empty());
    }

    #[test]
    fn a_batch_is_bounded() {
        let step = |number: u32| {
            let prefix = Prefix::new(&number.to_be_bytes(), 32).unwrap();
            Step::Withdraw(Family::IPV4_UNICAST, prefix)
        };
        let all: Vec<_> = (0..5000).map(step).collect();
        assert_eq!(taken(&mut None, &all).1, 5000 - STEPS);
    }

    #[test]
    fn another_system_is_told_what_it_may_be_told() {
        let told = |neighbour, path: &[u32]| {
            let (batch, _) = taken(&mut None, &[announce(1, path)]);
            let mut teller = teller(neighbour);
            let (bytes, _) = teller.tell(batch);
            let inside = Context::new(Neighbour::Internal);
            let (_, attributes) = read(&bytes, &inside).remove(0);
            (attributes.as_path.to_string(), attributes.local_pref, attributes.next_hop)
        };
        let own = Some(NextHop::V4([192, 0, 2, 1].into()));
        assert_eq!(told(Neighbour::External, &[65_001, 1]), ("65001 1".to_owned(), None, own));
        assert_eq!(told(Neighbour::External, &[1]), ("65001 1".to_owned(), None, own));
        assert_eq!(told(Neighbour::Internal, &[1]), ("1".to_owned(), Some(7), own));
    }

    #[test]
    fn what_cannot_be_told_is_counted() {
        let six = Prefix::new(&[0x20, 1, 0xd, 0xb8], 32).unwrap();
        let step = |family| Step::Announce(family, six, Box::default());
        let tell = |families: &[Family]| {
            let mut teller = teller(Neighbour::External);
            teller.context.families = Families::from_iter(families.iter().copied());
            let (batch, _) = taken(&mut None, &[step(Family::IPV6_UNICAST)]);
            assert_eq!(teller.tell(batch), (Vec::new(), 0));
            teller.left_out.into_iter().next().unwrap()
        };
        let (why, count) = tell(&[Family::IPV4_UNICAST]);
        assert_eq!((why.as_str(), count), ("the router takes no routes of ipv6 unicast here", 1));
        let (why, _) = tell(&[Family::IPV6_UNICAST]);
        assert!(why.contains("--next-hop"), "{why}");
    }
}
