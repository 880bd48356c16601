//! Neighbours that fall silent: who is asked whether it is there, how often, and when it counts as gone.
//!
//! A learned place that gave no sign of life for the time of `neighbour-expiry` is *probed* each second. weft
//! answers a probe at once. Linux XIA does not know probes; what it answers is an announcement, to it alone
//! suffices, but only with the probability own HIDs : all addresses that it knows. So a node that has never
//! answered a probe is sent announcements, too, and so many more that it will hardly ever have been silent by chance.
//!
//! Anybody can invent such neighbours, by the thousand and with a frame for many. So they are asked from budgets of
//! their own, in an order by chance, and are gone when they should have been asked often enough, whether there was a
//! budget for it or not. And a node is waited for no longer than it has been there, but for [`STRANGER_TRIES`] at least.
//!
//! What only others say of a neighbour is no sign of life. A place that is gone is remembered, so that their lists,
//! which in Linux XIA forget nothing, do not bring it back; it comes back when it speaks itself.
//!
//! Nothing is stored for a question: its nonce is computed from who is asked and the time, with a secret.

use std::time::Duration;

use weft_base::{Instant, Random};
use weft_keys::SharedSecret;
use weft_wire::MacAddr;
use weft_xip::Xid;
use weft_xip::principal::Output;

use crate::Hid;
use crate::activity::Activity;
use crate::discovery::ANNOUNCEMENT_PERIOD;
use crate::interfaces::Asked;
use crate::nwp::{NONCE_LEN, NwpRepr, Question, QuestionRepr};
use crate::proof::{CHALLENGES, Policy};

/// How long a neighbour may be silent before it is probed, unless `neighbour-expiry` says otherwise.
pub const DEFAULT_EXPIRY: Duration = Duration::from_secs(15);

/// Between two probes of one place; up to a quarter longer for who has not answered any.
pub(crate) const PROBE_PERIOD: Duration = Duration::from_secs(1);
/// Probes without an answer after which a node that has answered probes before is gone.
pub(crate) const TRIES: u32 = 3;
/// The same for other nodes, for each address that they may know: all are missed with probability e^-10.
const TRIES_PER_ADDRESS: u32 = 10;
/// The same, on links with very many addresses.
const MOST_TRIES: u32 = 1000;
/// The same, for nodes that have not been there for longer.
const STRANGER_TRIES: u32 = 120;

/// A nonce is good for once to twice this time.
const NONCE_LIFE: Duration = Duration::from_secs(8);

/// What asking after neighbours needs.
#[derive(Debug)]
pub(crate) struct Watch {
    random: Random,
    /// `None`: neighbours do not expire.
    pub(crate) expiry: Option<Duration>,
    secret: SharedSecret,
}

impl Watch {
    pub(crate) fn new(mut random: Random) -> Self {
        let mut secret = [0; SharedSecret::LEN];
        random.fill(&mut secret);
        Self { random, expiry: Some(DEFAULT_EXPIRY), secret: SharedSecret::from_bytes(secret) }
    }

    /// A time up to a quarter longer than `span`: who has heard the same does not ask at the same time.
    fn about(&mut self, span: Duration) -> Duration {
        let quarter = u64::try_from(span.as_nanos() / 4).unwrap_or(u64::MAX);
        span + Duration::from_nanos(self.random.below(quarter))
    }

    /// The nonce of what is asked now of the node at `mac` on an interface.
    pub(crate) fn nonce(&self, now: Instant, interface: &str, mac: MacAddr) -> [u8; NONCE_LEN] {
        self.nonce_of(now.as_nanos() / NONCE_LIFE.as_nanos() as u64, interface, mac)
    }

    fn nonce_of(&self, period: u64, interface: &str, mac: MacAddr) -> [u8; NONCE_LEN] {
        let tag =
            self.secret.tag(&[&period.to_be_bytes(), &mac.0[..], interface.as_bytes()].concat());
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&tag[..NONCE_LEN]);
        nonce
    }

    /// Whether a nonce is of a question that was asked there lately.
    pub(crate) fn knows(
        &self,
        now: Instant,
        interface: &str,
        mac: MacAddr,
        nonce: [u8; NONCE_LEN],
    ) -> bool {
        let period = now.as_nanos() / NONCE_LIFE.as_nanos() as u64;
        [period, period.saturating_sub(1)]
            .iter()
            .any(|p| self.nonce_of(*p, interface, mac) == nonce)
    }
}

/// How often a node that does not know probes is asked, by how many addresses it may know and for how long it has been
/// there.
fn plain_tries(known: usize, acquaintance: Duration) -> u32 {
    let periods = acquaintance.as_nanos() / PROBE_PERIOD.as_nanos();
    let most = u32::try_from(periods).unwrap_or(u32::MAX).clamp(STRANGER_TRIES, MOST_TRIES);
    u32::try_from(known).unwrap_or(u32::MAX).saturating_mul(TRIES_PER_ADDRESS).min(most)
}

impl Hid {
    /// Has a learned place looked after in time, unless it is already: soon, if only others spoke of it.
    pub(crate) fn watch(&mut self, now: Instant, name: &str, (hid, mac): (Xid, MacAddr)) {
        let Some(expiry) = self.watch.expiry else { return };
        let required = self.needs_proof(name);
        let places = self.neighbours.places_mut(name);
        if places.life(hid, mac).is_none_or(|life| life.is_scheduled()) {
            return;
        }
        let sign = places.last_sign(hid, mac, required);
        let due = match sign {
            Some(sign) => (sign + self.watch.about(expiry)).max(now),
            None => now + self.watch.about(PROBE_PERIOD),
        };
        self.neighbours.places_mut(name).schedule(hid, mac, Some(due));
    }

    /// Has all learned places looked after, or none, as the statements say now.
    pub(crate) fn watch_again(&mut self, now: Instant) {
        let learned = self.neighbours.iter().filter(|place| place.origin.learned.is_some());
        let learned: Vec<_> =
            learned.map(|place| (place.interface.to_owned(), place.hid, place.mac)).collect();
        for (name, hid, mac) in learned {
            self.neighbours.places_mut(&name).schedule(hid, mac, None);
            self.watch(now, &name, (hid, mac));
        }
    }

    /// Looks after the places that are due.
    pub(crate) fn look_after(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.neighbours.next_due().is_none_or(|due| due > now) {
            return;
        }
        for name in self.neighbours.interfaces() {
            while let Some(place) = self.neighbours.places_mut(&name).take_due(now) {
                self.look_after_place(now, &name, place, out);
            }
        }
    }

    fn look_after_place(
        &mut self,
        now: Instant,
        name: &str,
        (hid, mac): (Xid, MacAddr),
        out: &mut Vec<Output>,
    ) {
        let Some(expiry) = self.watch.expiry else { return };
        let required = self.needs_proof(name);
        let places = self.neighbours.places_mut(name);
        let sign = places.last_sign(hid, mac, required);
        if let Some(sign) = sign {
            places.notice(hid, mac, sign);
        }
        if sign.is_some_and(|sign| now.since(sign) < expiry) {
            return self.watch(now, name, (hid, mac));
        }
        let next = if !self.can_ask(name, mac) {
            // Nobody could answer; that says nothing about neighbours.
            now + expiry
        } else if self.has_been_asked(name, (hid, mac)) {
            self.counters.add(Activity::Expired, 1);
            return self.remove_gone(now, name, hid, mac);
        } else {
            now + self.probe(now, name, (hid, mac), out)
        };
        self.neighbours.places_mut(name).schedule(hid, mac, Some(next));
    }

    /// Whether a place has been asked often enough to count as gone.
    fn has_been_asked(&mut self, name: &str, (hid, mac): (Xid, MacAddr)) -> bool {
        let places = self.neighbours.places_mut(name);
        let known = places.ever() + self.locals.len();
        let Some(life) = places.life(hid, mac) else { return true };
        if places.is_weft(mac) && life.asked >= TRIES {
            return true;
        }
        // Who knows probes and has answered one is always asked, even if others take the budget.
        life.asked_as() != Asked::Known
            && life.due_questions >= plain_tries(known, life.acquaintance())
    }

    /// Whether a neighbour can be asked: NWP is spoken, and a node that knows announcements alone can be sent one.
    fn can_ask(&mut self, name: &str, mac: MacAddr) -> bool {
        let open = self.interfaces.get(name).is_some_and(|one| one.nwp.port().is_some());
        open && (self.neighbours.places_mut(name).is_weft(mac) || !self.locals.is_empty())
    }

    /// A place is gone.
    pub(crate) fn remove_gone(&mut self, now: Instant, name: &str, hid: Xid, mac: MacAddr) {
        self.neighbours.expire(name, hid, mac, now);
        self.announcer.table_has_room();
        self.refresh(hid);
    }

    /// Asks whether a HID is at a place, if the interface's budget allows it now; returns when to ask again.
    fn probe(
        &mut self,
        now: Instant,
        name: &str,
        (hid, mac): (Xid, MacAddr),
        out: &mut Vec<Output>,
    ) -> Duration {
        let places = self.neighbours.places_mut(name);
        let is_weft = places.is_weft(mac);
        let told_lately = places.told(mac).is_some_and(|told| now.since(told) < PROBE_PERIOD);
        let Some(life) = places.life_mut(hid, mac) else { return PROBE_PERIOD };
        life.due_questions += 1;
        let (whom, questions) = (life.asked_as(), is_weft || life.asked < TRIES);
        // An announcement is for all places at a hardware address.
        let announces = !is_weft && !told_lately;
        let allowed = !(questions || announces) || self.may_ask(now, name, whom);
        if allowed {
            if let Some(life) = self.neighbours.places_mut(name).life_mut(hid, mac) {
                life.asked += 1;
                life.asked_at = Some(now);
            }
            if announces {
                self.neighbours.places_mut(name).tell(mac, now);
                self.send_announcement(name, mac, Activity::AnnouncementsToSilent, out);
            }
            if questions {
                self.send_question(now, name, (hid, mac), out);
            }
        }
        match whom {
            Asked::Known if allowed => PROBE_PERIOD,
            Asked::Known => self.watch.about(PROBE_PERIOD / 2),
            // Who came first does not come first each time.
            _ => self.watch.about(PROBE_PERIOD),
        }
    }

    /// Sends a silent neighbour a probe, or a challenge: a proof is an answer, too.
    fn send_question(
        &mut self,
        now: Instant,
        name: &str,
        (hid, mac): (Xid, MacAddr),
        out: &mut Vec<Output>,
    ) {
        let policy = self.policy(name);
        let Some(life) = self.neighbours.places_mut(name).life_mut(hid, mac) else { return };
        let is_challenge = match policy {
            Policy::Off => false,
            Policy::Preferred => life.proven.is_none() && life.challenged < CHALLENGES,
            Policy::Required => true,
        };
        life.challenged += u32::from(is_challenge);
        let question = self.question(now, name, mac, vec![hid]);
        let (question, activity) = match is_challenge {
            true => (NwpRepr::Challenge(question), Activity::ChallengesSent),
            false => (NwpRepr::Probe(question), Activity::ProbesSent),
        };
        self.send(name, mac, &[question], activity, out);
    }

    /// Takes one question from an interface's budget.
    pub(crate) fn may_ask(&mut self, now: Instant, name: &str, whom: Asked) -> bool {
        self.interfaces.get_mut(name).is_some_and(|one| one.budgets.ask(now, whom))
    }

    /// Takes one answer from an interface's budget.
    pub(crate) fn may_answer(&mut self, now: Instant, name: &str) -> bool {
        let Some(interface) = self.interfaces.get_mut(name) else { return false };
        let allowed = interface.budgets.answer(now);
        if !allowed {
            self.counters.add(Activity::OverBudget, 1);
        }
        allowed
    }

    /// A question about HIDs for the node at `mac`.
    pub(crate) fn question(
        &self,
        now: Instant,
        name: &str,
        mac: MacAddr,
        hids: Vec<Xid>,
    ) -> QuestionRepr {
        let hardware_address =
            self.interfaces.get(name).map_or(MacAddr::UNSPECIFIED, |one| one.mac);
        QuestionRepr { hardware_address, nonce: self.watch.nonce(now, name, mac), hids }
    }

    /// Answers for those HIDs that are this node; tells everybody, too, if that was not done lately: others will
    /// want to know soon.
    pub(crate) fn on_probe(
        &mut self,
        now: Instant,
        name: &str,
        probe: &Question,
        out: &mut Vec<Output>,
    ) {
        self.counters.add(Activity::ProbesReceived, 1);
        let hids = probe.hids().map(|hid| self.own_kind(hid));
        let hids: Vec<_> = hids.filter(|hid| self.locals.contains(hid)).collect();
        let Some(own) = self.interfaces.get(name) else { return };
        let (hardware_address, spoke) = (own.mac, own.spoke);
        if hids.is_empty() || !self.may_answer(now, name) {
            return;
        }
        let answer = QuestionRepr { hardware_address, nonce: probe.nonce(), hids };
        let to = probe.hardware_address();
        self.send(name, to, &[NwpRepr::Here(answer)], Activity::AnswersSent, out);
        if spoke.is_none_or(|spoke| now.since(spoke) >= ANNOUNCEMENT_PERIOD) {
            self.announce(now, name, out);
        }
    }

    /// Learns what a node says of itself that was asked.
    pub(crate) fn on_here(
        &mut self,
        now: Instant,
        name: &str,
        here: &Question,
        out: &mut Vec<Output>,
    ) {
        self.counters.add(Activity::AnswersReceived, 1);
        let mac = here.hardware_address();
        if !self.watch.knows(now, name, mac, here.nonce()) {
            return self.counters.add(Activity::BadNonce, 1);
        }
        for hid in here.hids() {
            let hid = self.own_kind(hid);
            self.hear_of(now, name, (hid, mac), true, out);
            self.neighbours.places_mut(name).answered(hid, mac);
        }
        self.neighbours.places_mut(name).spoke_weft(mac);
    }
}
