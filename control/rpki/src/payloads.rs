//! What all caches say together, and how it changes.
//!
//! Reference: RFC 8210 §10 (caches of which some are preferred).
//!
//! Each payload is kept once, with the caches that have announced it. Some caches count, and a payload is there if one of them
//! has it. Whoever wants to keep a copy hears of changes by a log of the last ones.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crate::payload::Payload;

/// The most caches.
pub(crate) const MOST_CACHES: usize = 16;
/// Changes that are remembered.
const LOGGED: usize = 1 << 16;

/// The number of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CacheId(pub(crate) u8);

impl CacheId {
    fn bit(self) -> u16 {
        1 << self.0
    }
}

/// All payloads.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    /// Which caches have announced each, a bit for each cache.
    all: BTreeMap<Payload, u16>,
    /// Those that count.
    counting: u16,
    /// How many payloads are there, and how many each cache has announced.
    len: usize,
    of_caches: [usize; MOST_CACHES],
    /// How many changes there were.
    edition: u64,
    /// The last of them: what came (true) and went.
    log: VecDeque<(Payload, bool)>,
}

/// What has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) edition: u64,
    pub(crate) announced: Vec<Payload>,
    pub(crate) withdrawn: Vec<Payload>,
}

impl Payloads {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many changes there were.
    pub(crate) fn edition(&self) -> u64 {
        self.edition
    }

    /// Whether a cache has announced a payload.
    pub(crate) fn holds(&self, cache: CacheId, payload: &Payload) -> bool {
        self.all.get(payload).is_some_and(|caches| caches & cache.bit() != 0)
    }

    /// How many payloads a cache has announced.
    pub(crate) fn count_of(&self, cache: CacheId) -> usize {
        self.of_caches[usize::from(cache.0)]
    }

    /// Those that are there, behind one or all, in order.
    pub(crate) fn behind(&self, payload: Option<Payload>) -> impl Iterator<Item = &Payload> {
        let from = payload.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.all.range((from, Bound::Unbounded));
        all.filter(|(_, caches)| **caches & self.counting != 0).map(|(payload, _)| payload)
    }

    /// Which caches have announced a payload.
    pub(crate) fn caches_of(&self, payload: &Payload) -> impl Iterator<Item = CacheId> + use<> {
        let caches = self.all.get(payload).copied().unwrap_or_default();
        (0..MOST_CACHES as u8).map(CacheId).filter(move |cache| caches & cache.bit() != 0)
    }

    /// A cache announces a payload, or not any more.
    pub(crate) fn set(&mut self, cache: CacheId, payload: Payload, announced: bool) {
        let before = self.all.get(&payload).copied().unwrap_or_default();
        let now = if announced { before | cache.bit() } else { before & !cache.bit() };
        let of_cache = &mut self.of_caches[usize::from(cache.0)];
        match announced {
            _ if before == now => return,
            true => *of_cache += 1,
            false => *of_cache -= 1,
        }
        match now {
            0 => drop(self.all.remove(&payload)),
            now => drop(self.all.insert(payload, now)),
        }
        let is_there = |caches: u16| caches & self.counting != 0;
        let (was, is) = (is_there(before), is_there(now));
        if was != is {
            self.note(payload, is);
        }
    }

    /// A cache announces these and nothing else; they are in order.
    pub(crate) fn replace(&mut self, cache: CacheId, payloads: &[Payload]) {
        let own = self.all.iter().filter(|(_, caches)| **caches & cache.bit() != 0);
        let gone =
            own.map(|(payload, _)| *payload).filter(|one| payloads.binary_search(one).is_err());
        for payload in gone.collect::<Vec<_>>() {
            self.set(cache, payload, false);
        }
        for payload in payloads {
            self.set(cache, *payload, true);
        }
    }

    /// These caches count from now on.
    pub(crate) fn count(&mut self, caches: impl IntoIterator<Item = CacheId>) {
        let counting = caches.into_iter().fold(0, |all, cache| all | cache.bit());
        let before = std::mem::replace(&mut self.counting, counting);
        if before == counting {
            return;
        }
        let is_other = |caches: u16| (caches & before != 0) != (caches & counting != 0);
        let others = self.all.iter().filter(|(_, caches)| is_other(**caches));
        let others: Vec<_> =
            others.map(|(payload, caches)| (*payload, caches & counting != 0)).collect();
        for (payload, is) in others {
            self.note(payload, is);
        }
    }

    fn note(&mut self, payload: Payload, is_there: bool) {
        match is_there {
            true => self.len += 1,
            false => self.len -= 1,
        }
        self.edition += 1;
        if self.log.len() == LOGGED {
            self.log.pop_front();
        }
        self.log.push_back((payload, is_there));
    }

    /// What has changed after an edition, up to so many changes; none if that is not known any more, or was not yet.
    pub(crate) fn changes(&self, after: u64, at_most: usize) -> Option<News> {
        let missed = usize::try_from(self.edition.checked_sub(after)?).ok()?;
        let begin = self.log.len().checked_sub(missed)?;
        let some = self.log.range(begin..begin + missed.min(at_most));
        let edition = after + some.len() as u64;
        // Each as it is in the end, also where that is as it was: who has read pages meanwhile may have it otherwise.
        let net: BTreeMap<_, _> = some.copied().collect();
        let of =
            |is: bool| net.iter().filter(move |(_, one)| **one == is).map(|(payload, _)| *payload);
        Some(News { edition, announced: of(true).collect(), withdrawn: of(false).collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn payload(number: u32) -> Payload {
        let net = format!("10.0.{}.0/24", number % 256).parse().unwrap();
        Payload::new(net, 24 + number % 3, number).unwrap()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(u8, u32, bool),
        Replace(u8, BTreeSet<u32>),
        Count(BTreeSet<u8>),
        /// Whoever keeps a copy asks for so many changes.
        Ask(usize),
        /// Another one reads a page of so many.
        Page(usize),
    }

    /// Reads everything page by page, and then what has changed since the first page.
    #[derive(Default)]
    struct Reader {
        copy: BTreeSet<Payload>,
        edition: Option<u64>,
        last: Option<Payload>,
        has_all: bool,
    }

    impl Reader {
        fn read(&mut self, payloads: &Payloads, at_most: usize) {
            let edition = *self.edition.get_or_insert(payloads.edition());
            if self.has_all {
                let news = payloads.changes(edition, at_most).expect("it is in the log");
                self.edition = Some(news.edition);
                self.copy.retain(|one| !news.withdrawn.contains(one));
                self.copy.extend(news.announced);
                return;
            }
            let page: Vec<_> = payloads.behind(self.last).take(at_most).copied().collect();
            self.has_all = page.len() < at_most;
            self.last = page.last().copied().or(self.last);
            self.copy.extend(page);
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let (cache, number) = (0..3_u8, 0..20_u32);
        prop_oneof![
            4 => (cache.clone(), number.clone(), any::<bool>())
                .prop_map(|(cache, number, is)| Step::Set(cache, number, is)),
            1 => (cache.clone(), prop::collection::btree_set(number, 0..9))
                .prop_map(|(cache, numbers)| Step::Replace(cache, numbers)),
            1 => prop::collection::btree_set(cache, 0..3).prop_map(Step::Count),
            3 => (1..5_usize).prop_map(Step::Ask),
            3 => (1..4_usize).prop_map(Step::Page),
        ]
    }

    proptest! {
        /// Beside sets of numbers, and a copy that is kept by changes alone.
        #[test]
        fn what_is_told_is_what_is_there(steps in prop::collection::vec(step(), 0..60)) {
            let mut payloads = Payloads::default();
            let mut model = [const { BTreeSet::new() }; 3];
            let mut counting = BTreeSet::new();
            let (mut copy, mut edition) = (BTreeSet::new(), 0);
            let mut reader = Reader::default();
            for step in steps {
                match step {
                    Step::Set(cache, number, is) => {
                        payloads.set(CacheId(cache), payload(number), is);
                        match is {
                            true => model[usize::from(cache)].insert(number),
                            false => model[usize::from(cache)].remove(&number),
                        };
                    }
                    Step::Replace(cache, numbers) => {
                        let mut all: Vec<_> = numbers.iter().map(|one| payload(*one)).collect();
                        all.sort_unstable();
                        payloads.replace(CacheId(cache), &all);
                        model[usize::from(cache)] = numbers;
                    }
                    Step::Count(caches) => {
                        payloads.count(caches.iter().map(|cache| CacheId(*cache)));
                        counting = caches;
                    }
                    Step::Page(at_most) => reader.read(&payloads, at_most),
                    Step::Ask(at_most) => {
                        let news = payloads.changes(edition, at_most).expect("it is in the log");
                        prop_assert!(news.edition <= edition + at_most as u64);
                        edition = news.edition;
                        copy.extend(news.announced);
                        copy.retain(|one| !news.withdrawn.contains(one));
                    }
                }
                let there = counting.iter().flat_map(|cache| &model[usize::from(*cache)]);
                let there: BTreeSet<_> = there.map(|number| payload(*number)).collect();
                prop_assert_eq!(payloads.behind(None).copied().collect::<BTreeSet<_>>(), there.clone());
                prop_assert_eq!(payloads.len(), there.len());
                for (cache, own) in (0..).map(CacheId).zip(&model) {
                    prop_assert_eq!(payloads.count_of(cache), own.len());
                }
                if edition == payloads.edition() {
                    prop_assert_eq!(&copy, &there);
                }
            }
            while edition < payloads.edition() {
                let news = payloads.changes(edition, 3).unwrap();
                edition = news.edition;
                copy.extend(news.announced);
                copy.retain(|one| !news.withdrawn.contains(one));
            }
            prop_assert_eq!(&copy, &payloads.behind(None).copied().collect::<BTreeSet<_>>());
            for _ in 0..200 {
                reader.read(&payloads, 3);
            }
            prop_assert_eq!(reader.copy, copy);
        }
    }

    #[test]
    fn who_asks_too_late_is_told_so() {
        let mut payloads = Payloads::default();
        payloads.count([CacheId(0)]);
        for number in 0..=LOGGED as u32 {
            payloads.set(CacheId(0), payload(number), true);
        }
        assert_eq!(payloads.changes(0, 9), None, "one more than is remembered");
        assert_eq!(payloads.changes(1, 9).unwrap().announced.len(), 9);
        let edition = payloads.edition();
        let nothing = News { edition, ..News::default() };
        assert_eq!(payloads.changes(edition, 9), Some(nothing));
        assert_eq!(payloads.changes(edition + 1, 9), None, "that was in another life");
    }
}
