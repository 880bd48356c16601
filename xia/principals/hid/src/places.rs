//! The places on one interface: which HID is at which hardware address, how that is known, and which place
//! is to be looked after when.
//!
//! Each message touches the places that it names, in logarithmic time, and nothing is scanned: a place that is due
//! is taken from the *agenda*, and put there again if it was heard of in the meantime. What is known of a hardware
//! address is kept once, in its *station*.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::Instant;
use weft_wire::MacAddr;
use weft_xip::Xid;

use crate::interfaces::{Asked, Signatures};
use crate::nwp::EPOCH_LEN;

/// Places that are remembered as gone. The oldest give way.
const MAX_GONE: usize = 1024;

/// Who gives signs of life for less than that has not spoken again: who starts says so twice.
const ACQUAINTANCE: Duration = Duration::from_secs(1);

/// How a place became known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) configured: bool,
    pub(crate) learned: Option<Life>,
}

/// What is known of a learned place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// When its node named it last itself; `None` if only others have.
    named: Option<Instant>,
    /// Its first sign of life, and the last that was noticed when it was looked after.
    met: Option<Instant>,
    seen: Option<Instant>,
    /// Questions that were due since it gave a sign of life, whether or not there was a budget for them.
    pub(crate) due_questions: u32,
    /// Questions that were asked since its node named it.
    pub(crate) asked: u32,
    /// When the last one was asked.
    pub(crate) asked_at: Option<Instant>,
    /// Whether it has ever answered one.
    answered: bool,
    /// When to look after it; it is in the agenda then.
    due: Option<Instant>,
    /// When somebody said, without proof, that it is gone. Only later signs of life count.
    doubted: Option<Instant>,
    /// Challenges that were sent.
    pub(crate) challenged: u32,
    pub(crate) proven: Option<Proven>,
}

/// A proof of a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proven {
    /// A withdrawal counts in this epoch of the node.
    pub(crate) epoch: [u8; EPOCH_LEN],
    /// When it was proven last.
    at: Instant,
}

impl Origin {
    /// Whether its node has proven that it has the key.
    pub(crate) fn is_proven(&self) -> bool {
        self.learned.is_some_and(|life| life.proven.is_some())
    }
}

impl Life {
    /// When its node named it last itself; `None` if only others have.
    pub(crate) fn named(&self) -> Option<Instant> {
        self.named
    }

    /// How long it has been known to be there: between its first and its last sign of life.
    pub(crate) fn acquaintance(&self) -> Duration {
        self.met.zip(self.seen).map_or(Duration::ZERO, |(met, seen)| seen.since(met))
    }

    /// From which budget it is asked.
    pub(crate) fn asked_as(&self) -> Asked {
        match self.answered {
            true => Asked::Known,
            false if self.acquaintance() >= ACQUAINTANCE => Asked::Plain,
            false => Asked::Unheard,
        }
    }

    /// Whether it is on the agenda.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.due.is_some()
    }
}

/// What is known of a hardware address that has a place.
#[derive(Clone, Copy, Debug, Default)]
struct Station {
    places: usize,
    /// When a message came from there last.
    heard: Option<Instant>,
    /// When it announced itself last. What was not named then may be there no more.
    announced: Option<Instant>,
    /// When this node announced itself last to it because a place there was silent.
    told: Option<Instant>,
    /// Whether it speaks weft's messages.
    is_weft: bool,
    /// If it has proven a HID: its own budget for signatures.
    proven: Option<Signatures>,
}

/// The places on one interface.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: BTreeMap<(Xid, MacAddr), Origin>,
    agenda: BTreeSet<(Instant, Xid, MacAddr)>,
    stations: BTreeMap<MacAddr, Station>,
    /// Places that gave no sign of life, how they were asked, and since when they are gone: what others say of them is
    /// not believed.
    gone: BTreeMap<(Xid, MacAddr), (Asked, Instant)>,
}

impl Places {
    /// Number of places.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many addresses a neighbour may know here: neighbours of Linux XIA forget none.
    pub(crate) fn ever(&self) -> usize {
        self.places.len() + self.gone.len()
    }

    /// All places, by HID, then address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Xid, MacAddr, Origin)> + '_ {
        self.places.iter().map(|((hid, mac), origin)| (*hid, *mac, *origin))
    }

    /// The places of one HID, by address.
    pub(crate) fn of_hid(&self, hid: Xid) -> impl Iterator<Item = (MacAddr, Origin)> + '_ {
        let all = (hid, MacAddr::UNSPECIFIED)..=(hid, MacAddr::BROADCAST);
        self.places.range(all).map(|((_, mac), origin)| (*mac, *origin))
    }

    pub(crate) fn get(&self, hid: Xid, mac: MacAddr) -> Option<Origin> {
        self.places.get(&(hid, mac)).copied()
    }

    pub(crate) fn life(&self, hid: Xid, mac: MacAddr) -> Option<Life> {
        self.get(hid, mac)?.learned
    }

    pub(crate) fn life_mut(&mut self, hid: Xid, mac: MacAddr) -> Option<&mut Life> {
        self.places.get_mut(&(hid, mac))?.learned.as_mut()
    }

    /// Enters a place, or changes how it became known.
    pub(crate) fn insert(&mut self, hid: Xid, mac: MacAddr, origin: Origin) {
        match self.places.insert((hid, mac), origin) {
            Some(before) => {
                let due = |origin: Origin| origin.learned.and_then(|life| life.due);
                if due(before) != due(origin) {
                    self.unschedule(hid, mac, before);
                }
            }
            None => self.stations.entry(mac).or_default().places += 1,
        }
    }

    /// The node of a learned place has named it.
    pub(crate) fn named(&mut self, hid: Xid, mac: MacAddr, now: Instant) {
        self.gone.remove(&(hid, mac));
        if let Some(life) = self.life_mut(hid, mac) {
            (life.named, life.doubted) = (Some(now), None);
            life.met.get_or_insert(now);
            (life.due_questions, life.asked) = (0, 0);
        }
    }

    /// Removes a place, however it became known.
    pub(crate) fn remove(&mut self, hid: Xid, mac: MacAddr) -> Option<Origin> {
        let origin = self.places.remove(&(hid, mac))?;
        self.unschedule(hid, mac, origin);
        if let Some(station) = self.stations.get_mut(&mac) {
            station.places -= 1;
            if station.places == 0 {
                self.stations.remove(&mac);
            }
        }
        Some(origin)
    }

    /// Forgets that a place was learned: it is removed unless it is configured. True if it is.
    pub(crate) fn unlearn(&mut self, hid: Xid, mac: MacAddr) -> bool {
        match self.get(hid, mac) {
            Some(origin) if origin.configured => {
                self.insert(hid, mac, Origin { learned: None, ..origin });
                false
            }
            Some(_) => self.remove(hid, mac).is_some(),
            None => false,
        }
    }

    /// Remembers that a place is gone. Those that were easily invented give way first.
    pub(crate) fn bury(&mut self, hid: Xid, mac: MacAddr, (was, now): (Asked, Instant)) {
        self.gone.insert((hid, mac), (was, now));
        if self.gone.len() > MAX_GONE {
            let oldest = self.gone.iter().min_by_key(|(_, gone)| **gone);
            if let Some(oldest) = oldest.map(|(place, _)| *place) {
                self.gone.remove(&oldest);
            }
        }
    }

    /// Whether a place is known to be gone.
    pub(crate) fn is_gone(&self, hid: Xid, mac: MacAddr) -> bool {
        self.gone.contains_key(&(hid, mac))
    }

    /// Forgets which places are gone.
    pub(crate) fn forget_gone(&mut self) {
        self.gone.clear();
    }

    /// A message came from a hardware address. Nothing happens if it has no place.
    pub(crate) fn heard(&mut self, mac: MacAddr, now: Instant) {
        if let Some(station) = self.stations.get_mut(&mac) {
            station.heard = Some(now);
        }
    }

    /// It was an announcement.
    pub(crate) fn announced(&mut self, mac: MacAddr, now: Instant) {
        if let Some(station) = self.stations.get_mut(&mac) {
            (station.heard, station.announced) = (Some(now), Some(now));
        }
    }

    /// It was one of weft's own.
    pub(crate) fn spoke_weft(&mut self, mac: MacAddr) {
        if let Some(station) = self.stations.get_mut(&mac) {
            station.is_weft = true;
        }
    }

    pub(crate) fn is_weft(&self, mac: MacAddr) -> bool {
        self.stations.get(&mac).is_some_and(|station| station.is_weft)
    }

    /// What a hardware address at which a HID was proven has left of its own budget for signatures.
    pub(crate) fn signatures(&mut self, mac: MacAddr) -> Option<&mut Signatures> {
        self.stations.get_mut(&mac)?.proven.as_mut()
    }

    /// A learned place was proven; whether it was not before. `None` if there is no such place.
    pub(crate) fn prove(
        &mut self,
        hid: Xid,
        mac: MacAddr,
        epoch: [u8; EPOCH_LEN],
        now: Instant,
    ) -> Option<bool> {
        let life = self.life_mut(hid, mac)?;
        (life.answered, life.doubted) = (true, None);
        (life.due_questions, life.asked) = (0, 0);
        let before = life.proven.replace(Proven { epoch, at: now });
        if let Some(station) = self.stations.get_mut(&mac) {
            station.is_weft = true;
            station.proven.get_or_insert_default();
        }
        Some(before.is_none())
    }

    /// Somebody says that a learned place is gone. False if that was said before.
    pub(crate) fn doubt(&mut self, hid: Xid, mac: MacAddr, now: Instant) -> bool {
        let Some(life) = self.life_mut(hid, mac) else { return false };
        if life.doubted.is_some() {
            return false;
        }
        (life.doubted, life.asked) = (Some(now), 0);
        true
    }

    /// A learned place has answered a question.
    pub(crate) fn answered(&mut self, hid: Xid, mac: MacAddr) {
        if let Some(life) = self.life_mut(hid, mac) {
            life.answered = true;
        }
    }

    /// Notices a learned place's last sign of life.
    pub(crate) fn notice(&mut self, hid: Xid, mac: MacAddr, sign: Instant) {
        let Some(life) = self.life_mut(hid, mac) else { return };
        if life.seen.is_none_or(|seen| seen < sign) {
            life.seen = Some(sign);
            life.met.get_or_insert(sign);
            life.due_questions = 0;
        }
    }

    /// When this node announced itself last to a hardware address because a place there was silent.
    pub(crate) fn told(&self, mac: MacAddr) -> Option<Instant> {
        self.stations.get(&mac)?.told
    }

    /// That is done.
    pub(crate) fn tell(&mut self, mac: MacAddr, now: Instant) {
        if let Some(station) = self.stations.get_mut(&mac) {
            station.told = Some(now);
        }
    }

    /// When a learned place gave its last sign of life, if it ever did and nobody doubted it since: its node named
    /// it, or said anything since without leaving it out of an announcement. Proofs are all that counts if
    /// they are `required`.
    pub(crate) fn last_sign(&self, hid: Xid, mac: MacAddr, required: bool) -> Option<Instant> {
        let life = self.life(hid, mac)?;
        let station = self.stations.get(&mac)?;
        let sign = match required {
            true => life.proven.map(|proven| proven.at),
            false if life.named >= station.announced => life.named.max(station.heard),
            false => life.named,
        };
        sign.filter(|sign| life.doubted.is_none_or(|doubted| *sign > doubted))
    }

    /// Puts a learned place on the agenda in place of when it was there, or takes it off.
    pub(crate) fn schedule(&mut self, hid: Xid, mac: MacAddr, due: Option<Instant>) {
        let Some(life) = self.life_mut(hid, mac) else { return };
        let before = std::mem::replace(&mut life.due, due);
        if let Some(before) = before {
            self.agenda.remove(&(before, hid, mac));
        }
        self.agenda.extend(due.map(|due| (due, hid, mac)));
    }

    fn unschedule(&mut self, hid: Xid, mac: MacAddr, origin: Origin) {
        if let Some(due) = origin.learned.and_then(|life| life.due) {
            self.agenda.remove(&(due, hid, mac));
        }
    }

    /// When the first place is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.agenda.first().map(|(due, ..)| *due)
    }

    /// Takes a place that is due from the agenda.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(Xid, MacAddr)> {
        if self.next_due()? > now {
            return None;
        }
        let (_, hid, mac) = self.agenda.pop_first()?;
        if let Some(life) = self.life_mut(hid, mac) {
            life.due = None;
        }
        Some((hid, mac))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_xip::XidType;

    use super::*;

    fn hid(id: u8) -> Xid {
        Xid::new(XidType::HID, [id; 20])
    }

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn at(seconds: u8) -> Instant {
        Instant::from_nanos(u64::from(seconds))
    }

    const LEARNED: Origin = Origin {
        configured: false,
        learned: Some(Life {
            named: None,
            met: None,
            seen: None,
            due_questions: 0,
            asked: 0,
            asked_at: None,
            answered: false,
            due: None,
            doubted: None,
            challenged: 0,
            proven: None,
        }),
    };

    #[test]
    fn what_a_station_says_is_a_sign_of_all_that_it_did_not_leave_out() {
        let mut places = Places::default();
        places.insert(hid(1), mac(1), LEARNED);
        places.insert(hid(2), mac(1), LEARNED);
        assert_eq!(places.last_sign(hid(1), mac(1), false), None, "others have named it");
        places.heard(mac(1), at(1));
        assert_eq!(places.last_sign(hid(1), mac(1), false), Some(at(1)));
        places.named(hid(1), mac(1), at(2));
        places.announced(mac(1), at(2));
        assert_eq!(places.last_sign(hid(1), mac(1), false), Some(at(2)));
        assert_eq!(places.last_sign(hid(2), mac(1), false), None, "it was left out");
        places.heard(mac(1), at(3));
        assert_eq!(places.last_sign(hid(1), mac(1), false), Some(at(3)));
        assert_eq!(places.last_sign(hid(2), mac(1), false), None);
    }

    #[test]
    fn what_is_doubted_needs_a_new_sign_and_where_proof_is_required_a_proof() {
        let mut places = Places::default();
        places.insert(hid(1), mac(1), LEARNED);
        places.named(hid(1), mac(1), at(1));
        assert!(places.doubt(hid(1), mac(1), at(2)) && !places.doubt(hid(1), mac(1), at(3)));
        assert_eq!(places.last_sign(hid(1), mac(1), false), None);
        places.heard(mac(1), at(4));
        assert_eq!(places.last_sign(hid(1), mac(1), false), Some(at(4)));
        assert_eq!(places.last_sign(hid(1), mac(1), true), None);
        assert_eq!(places.prove(hid(1), mac(1), [1; EPOCH_LEN], at(5)), Some(true));
        assert_eq!(places.prove(hid(1), mac(1), [1; EPOCH_LEN], at(6)), Some(false));
        assert_eq!(places.last_sign(hid(1), mac(1), true), Some(at(6)));
        assert!(places.doubt(hid(1), mac(1), at(7)));
        assert_eq!(places.prove(hid(2), mac(1), [1; EPOCH_LEN], at(8)), None);
    }

    #[test]
    fn the_oldest_of_what_is_gone_gives_way() {
        let mut places = Places::default();
        let wide = |n: usize| {
            let mut id = [0; 20];
            id[..8].copy_from_slice(&n.to_be_bytes());
            Xid::new(XidType::HID, id)
        };
        for n in 0..=MAX_GONE {
            let was = if n == 0 { Asked::Plain } else { Asked::Unheard };
            places.bury(wide(n), mac(1), (was, Instant::from_nanos(n as u64)));
        }
        assert!(places.is_gone(wide(0), mac(1)), "it has spoken");
        assert!(!places.is_gone(wide(1), mac(1)) && places.is_gone(wide(2), mac(1)));
        assert_eq!(places.ever(), MAX_GONE);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u8, bool),
        Named(u8, u8),
        Heard(u8),
        Remove(u8, u8),
        Unlearn(u8, u8),
        Schedule(u8, u8, Option<u8>),
        TakeDue(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (hid, mac, time) = (0u8..4, 0u8..3, 0u8..20);
        prop_oneof![
            (hid.clone(), mac.clone(), any::<bool>()).prop_map(|(h, m, c)| Step::Insert(h, m, c)),
            (hid.clone(), mac.clone()).prop_map(|(h, m)| Step::Named(h, m)),
            mac.clone().prop_map(Step::Heard),
            (hid.clone(), mac.clone()).prop_map(|(h, m)| Step::Remove(h, m)),
            (hid.clone(), mac.clone()).prop_map(|(h, m)| Step::Unlearn(h, m)),
            (hid, mac, prop::option::of(time.clone()))
                .prop_map(|(h, m, t)| Step::Schedule(h, m, t)),
            time.prop_map(Step::TakeDue),
        ]
    }

    proptest! {
        /// A list of places with their due times says the same.
        #[test]
        fn agenda_and_stations_are_always_those_of_the_places(steps in prop::collection::vec(step(), 0..80)) {
            let mut places = Places::default();
            let mut twin: BTreeMap<(Xid, MacAddr), (bool, bool, Option<Instant>)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(h, m, configured) => {
                        places.insert(hid(h), mac(m), Origin { configured, ..LEARNED });
                        places.schedule(hid(h), mac(m), None);
                        twin.insert((hid(h), mac(m)), (configured, true, None));
                    }
                    Step::Named(h, m) => places.named(hid(h), mac(m), at(1)),
                    Step::Heard(m) => places.heard(mac(m), at(1)),
                    Step::Remove(h, m) => {
                        prop_assert_eq!(
                            places.remove(hid(h), mac(m)).is_some(),
                            twin.remove(&(hid(h), mac(m))).is_some()
                        );
                    }
                    Step::Unlearn(h, m) => {
                        let place = (hid(h), mac(m));
                        let removed = twin.get(&place).is_some_and(|(configured, ..)| !configured);
                        prop_assert_eq!(places.unlearn(hid(h), mac(m)), removed);
                        if removed {
                            twin.remove(&place);
                        } else if let Some(kept) = twin.get_mut(&place) {
                            *kept = (true, false, None);
                        }
                    }
                    Step::Schedule(h, m, due) => {
                        places.schedule(hid(h), mac(m), due.map(at));
                        if let Some((_, true, there)) = twin.get_mut(&(hid(h), mac(m))) {
                            *there = due.map(at);
                        }
                    }
                    Step::TakeDue(now) => {
                        let first = twin.iter().filter_map(|(place, (_, _, due))| Some(((*due)?, *place)));
                        let first = first.min().filter(|(due, _)| *due <= at(now));
                        prop_assert_eq!(places.take_due(at(now)), first.map(|(_, place)| place));
                        if let Some((_, place)) = first {
                            twin.get_mut(&place).unwrap().2 = None;
                        }
                    }
                }
                let due = twin.values().filter_map(|(_, _, due)| *due).min();
                prop_assert_eq!(places.next_due(), due);
                prop_assert_eq!(places.len(), twin.len());
                let agenda = twin.values().filter(|(_, _, due)| due.is_some()).count();
                prop_assert_eq!(places.agenda.len(), agenda);
                let stations: BTreeSet<_> = twin.keys().map(|(_, mac)| *mac).collect();
                prop_assert_eq!(places.stations.keys().copied().collect::<BTreeSet<_>>(), stations);
            }
        }
    }
}
