//! Neighbour discovery: what is said when, and what is believed.
//!
//! Reference: AltraMayor/XIA-for-Linux, `net/xia/ppal_hid/nwp.c`. The rules are in the crate's text.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_base::{Instant, Packet, PortId, Random};
use weft_runtime::Level;
use weft_wire::{ETHERNET_HEADER_LEN, EtherType, EthernetFrame, EthernetRepr, MacAddr};
use weft_xip::Xid;
use weft_xip::principal::Output;

use crate::Hid;
use crate::activity::Activity;
use crate::neighbours::Learned;
use crate::nwp::{
    Announcement, NeighbourList, NwpMessage, NwpRepr, announcements, neighbour_lists,
};
use crate::statements::is_station;

/// How often nodes announce themselves, with a probability that falls with their number.
pub const ANNOUNCEMENT_PERIOD: Duration = Duration::from_secs(5);

/// When the announcement that opens a port is repeated. Who hears two so close together knows that the
/// node has been started again, even if it knew it before.
pub(crate) const REPEAT: Duration = Duration::from_millis(50);
/// A neighbour is told who we are at most so often.
const INTRODUCTION_PAUSE: Duration = Duration::from_secs(1);

/// When to speak, and what was complained about already.
#[derive(Debug)]
pub(crate) struct Announcer {
    random: Random,
    next: Option<Instant>,
    /// When to repeat the first announcement.
    repeat: Option<Instant>,
    /// When neighbours announced themselves last, and were told who we are.
    heard: BTreeMap<Station, Heard>,
    /// Who is to be told who we are when the pause is over. No more than have been heard.
    owed: BTreeMap<Station, Instant>,
    /// Local HIDs that another node claimed.
    claimed: BTreeSet<Xid>,
    complained_full: bool,
}

/// A hardware address and the interface on which it is: VLANs of one device have the same ones.
type Station = (String, MacAddr);

#[derive(Clone, Copy, Debug)]
struct Heard {
    announced: Instant,
    introduced: Option<Instant>,
}

impl Announcer {
    pub(crate) fn new(random: Random) -> Self {
        let (heard, owed, claimed) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { random, next: None, repeat: None, heard, owed, claimed, complained_full: false }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let owed = self.owed.values().copied();
        self.next.into_iter().chain(self.repeat).chain(owed).min()
    }

    /// Has the first announcement repeated soon.
    pub(crate) fn repeat_soon(&mut self, now: Instant) {
        self.repeat = Some(now + REPEAT);
    }

    /// Whether it is time to repeat the first announcement; true once.
    pub(crate) fn repeats(&mut self, now: Instant) -> bool {
        self.repeat.take_if(|at| *at <= now).is_some()
    }

    /// A neighbour has announced itself to all: whether it is to be told who we are. It is if it is new,
    /// or speaks again so soon that it has been started again. Where it was told a moment ago, it is told once more when
    /// the pause is over: it may have been started in between, and not have heard that.
    fn introduces(
        &mut self,
        now: Instant,
        (name, mac): (&str, MacAddr),
        is_new: bool,
        limit: usize,
    ) -> bool {
        let station = (name.to_owned(), mac);
        let last = self.heard.get(&station).copied();
        let soon = |at: Instant, pause| now.since(at) < pause;
        let again = last.is_some_and(|last| soon(last.announced, ANNOUNCEMENT_PERIOD / 2));
        let told = last.and_then(|last| last.introduced);
        let pauses = told.is_some_and(|at| soon(at, INTRODUCTION_PAUSE));
        let introduces = (is_new || again) && !pauses;
        // Whoever opens a port says so twice, and was told at the first time.
        let is_repetition = last
            .is_some_and(|last| told == Some(last.announced) && soon(last.announced, 2 * REPEAT));
        if let Some(told) = told.filter(|_| (is_new || again) && pauses && !is_repetition) {
            self.owed.entry(station.clone()).or_insert(told + INTRODUCTION_PAUSE);
        }
        if last.is_none() && self.heard.len() >= limit {
            // What was heard long ago says nothing any more.
            self.heard.retain(|_, heard| soon(heard.announced, ANNOUNCEMENT_PERIOD));
        }
        if last.is_some() || self.heard.len() < limit {
            let introduced = if introduces { Some(now) } else { told };
            self.heard.insert(station, Heard { announced: now, introduced });
        }
        introduces
    }

    /// Who is to be told now who we are.
    fn take_owed(&mut self, now: Instant) -> Vec<Station> {
        let due = self.owed.extract_if(.., |_, due| *due <= now);
        let due: Vec<_> = due.map(|(station, _)| station).collect();
        for station in &due {
            if let Some(heard) = self.heard.get_mut(station) {
                heard.introduced = Some(now);
            }
        }
        due
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| next <= now)
    }

    /// Sets the next time, or none while there is nothing to announce or nobody to hear it.
    pub(crate) fn schedule(&mut self, now: Instant, can_announce: bool) {
        self.repeat = self.repeat.filter(|_| can_announce);
        self.next = match self.next {
            _ if !can_announce => None,
            Some(next) if next > now => Some(next),
            // A node that was held up keeps the rhythm but does not catch up.
            Some(next) if next + ANNOUNCEMENT_PERIOD > now => Some(next + ANNOUNCEMENT_PERIOD),
            _ => Some(now + ANNOUNCEMENT_PERIOD),
        };
    }

    /// Decides whether this node speaks for itself and `others`: one of all does, on average.
    fn chance(&mut self, own_hids: usize, others: usize) -> bool {
        self.random.chance(own_hids as u64, (own_hids + others) as u64)
    }

    pub(crate) fn forget_claim(&mut self, hid: Xid) {
        self.claimed.remove(&hid);
    }

    pub(crate) fn table_has_room(&mut self) {
        self.complained_full = false;
    }
}

impl Hid {
    /// Announces this node to everybody on an interface.
    pub(crate) fn announce(&mut self, now: Instant, name: &str, out: &mut Vec<Output>) {
        if let Some(interface) = self.interfaces.get_mut(name) {
            interface.spoke = Some(now);
        }
        self.send_announcement(name, MacAddr::BROADCAST, Activity::AnnouncementsSent, out);
    }

    /// Announces this node wherever NWP is spoken.
    pub(crate) fn announce_everywhere(&mut self, now: Instant, out: &mut Vec<Output>) {
        for name in self.discovering() {
            self.announce(now, &name, out);
        }
    }

    /// The periodic announcement: on each interface with a probability of own HIDs to all HIDs.
    pub(crate) fn announce_by_chance(&mut self, now: Instant, out: &mut Vec<Output>) {
        for name in self.discovering() {
            if self.announcer.chance(self.locals.len(), self.neighbours.count(&name)) {
                self.announce(now, &name, out);
            }
        }
    }

    /// Tells those who we are who have asked for it a moment after they were told.
    pub(crate) fn introduce_late(&mut self, now: Instant, out: &mut Vec<Output>) {
        for (name, mac) in self.announcer.take_owed(now) {
            self.send_announcement(&name, mac, Activity::IntroductionsSent, out);
        }
    }

    /// The interfaces on which NWP is spoken now.
    pub(crate) fn discovering(&self) -> Vec<String> {
        let open = self.interfaces.iter().filter(|(_, interface)| interface.nwp.port().is_some());
        open.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn send_announcement(
        &mut self,
        name: &str,
        to: MacAddr,
        activity: Activity,
        out: &mut Vec<Output>,
    ) {
        let Some(interface) = self.interfaces.get(name) else { return };
        let hids: Vec<_> = self.locals.iter().copied().collect();
        let messages: Vec<_> = announcements(interface.mac, &hids, interface.mtu).collect();
        self.send(name, to, &messages, activity, out);
    }

    pub(crate) fn send(
        &mut self,
        name: &str,
        to: MacAddr,
        messages: &[NwpRepr],
        activity: Activity,
        out: &mut Vec<Output>,
    ) {
        let Some(interface) = self.interfaces.get(name) else { return };
        let Some(port) = interface.nwp.port() else { return };
        for message in messages {
            let packet = frame(message, (interface.mac, to), EtherType(self.version.ethertype));
            out.push(Output::Transmit { port, packet });
            self.counters.add(activity, 1);
        }
    }

    /// Takes frames that came in on an NWP port.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        port: PortId,
        packets: &[Packet],
        out: &mut Vec<Output>,
    ) {
        let mut all = self.interfaces.iter();
        let Some((name, interface)) = all.find(|(_, i)| i.nwp.port() == Some(port)) else {
            return;
        };
        let (name, own_mac) = (name.clone(), interface.mac);
        for packet in packets {
            self.receive_frame(now, (&name, own_mac), packet.bytes(), out);
        }
    }

    /// Takes a frame that came in on an interface with this name and address.
    fn receive_frame(
        &mut self,
        now: Instant,
        (name, own): (&str, MacAddr),
        bytes: &[u8],
        out: &mut Vec<Output>,
    ) {
        let frame = match EthernetFrame::new_checked(bytes) {
            Ok(frame) if frame.ethertype() == EtherType(self.version.ethertype) => frame,
            _ => return self.counters.add(Activity::Malformed, 1),
        };
        let to_all = frame.destination().is_broadcast();
        if frame.source() == own || !(to_all || frame.destination() == own) {
            return self.counters.add(Activity::OtherHost, 1);
        }
        let source = frame.source();
        let message = match NwpMessage::new_checked(frame.payload()) {
            Ok(message) => message,
            Err(_) => return self.counters.add(Activity::Malformed, 1),
        };
        let claimed = match &message {
            NwpMessage::Probe(question)
            | NwpMessage::Challenge(question)
            | NwpMessage::Here(question) => Some(question.hardware_address()),
            NwpMessage::Proof(sealed) | NwpMessage::Withdrawal(sealed) => {
                Some(sealed.hardware_address())
            }
            NwpMessage::Announcement(_) | NwpMessage::NeighbourList(_) => None,
        };
        if claimed.is_some_and(|claimed| claimed != source || !is_station(source)) {
            return self.counters.add(Activity::BadAddress, 1);
        }
        if !matches!(message, NwpMessage::Withdrawal(_)) {
            self.neighbours.places_mut(name).heard(source, now);
        }
        match message {
            NwpMessage::Announcement(message) => {
                self.counters.add(Activity::AnnouncementsReceived, 1);
                self.on_announcement(now, name, &message, to_all, out);
            }
            NwpMessage::NeighbourList(message) => {
                self.counters.add(Activity::ListsReceived, 1);
                self.on_neighbour_list(now, name, &message, out);
            }
            NwpMessage::Probe(message) => self.on_probe(now, name, &message, out),
            NwpMessage::Here(message) => self.on_here(now, name, &message, out),
            NwpMessage::Challenge(message) => self.on_challenge(now, name, &message, out),
            NwpMessage::Proof(message) => self.on_proof(now, name, &message, out),
            NwpMessage::Withdrawal(message) => self.on_withdrawal(now, name, &message),
        }
    }

    /// Learns the announcer's HIDs, tells a newcomer who we are, and perhaps who else is there.
    fn on_announcement(
        &mut self,
        now: Instant,
        name: &str,
        message: &Announcement,
        to_all: bool,
        out: &mut Vec<Output>,
    ) {
        let mac = message.hardware_address();
        if !is_station(mac) || self.is_own_mac(mac) {
            return self.counters.add(Activity::BadAddress, 1);
        }
        let mut is_new = false;
        for hid in message.hids() {
            let hid = self.own_kind(hid);
            is_new |= self.hear_of(now, name, (hid, mac), true, out);
        }
        self.neighbours.places_mut(name).announced(mac, now);
        let claimed = self.claimed_by(name, message.hids(), mac);
        is_new |= !claimed.is_empty() && self.needs_proof(name);
        if to_all && self.announcer.introduces(now, (name, mac), is_new, self.limit) {
            self.send_announcement(name, mac, Activity::IntroductionsSent, out);
        }
        self.challenge(now, name, (claimed, mac), out);
        if self.announcer.chance(self.locals.len(), self.neighbours.count(name)) {
            let mtu = self.interfaces.get(name).map_or(0, |interface| interface.mtu);
            let lists = neighbour_lists(self.neighbours.list(name), mtu);
            self.send(name, mac, &lists, Activity::ListsSent, out);
        }
    }

    fn on_neighbour_list(
        &mut self,
        now: Instant,
        name: &str,
        list: &NeighbourList,
        out: &mut Vec<Output>,
    ) {
        for entry in list.entries() {
            let hid = self.own_kind(entry.hid());
            for mac in entry.addresses() {
                let is_own = self.is_own_mac(mac);
                if is_own && self.locals.contains(&hid) {
                    // Lists hold the node that they are sent to, too.
                } else if is_own || !is_station(mac) {
                    self.counters.add(Activity::BadAddress, 1);
                } else {
                    self.hear_of(now, name, (hid, mac), false, out);
                }
            }
        }
    }

    /// Believes in a place of which the neighbour spoke `itself`, or others did, unless proof is required; true if
    /// it is new.
    pub(crate) fn hear_of(
        &mut self,
        now: Instant,
        name: &str,
        (hid, mac): (Xid, MacAddr),
        itself: bool,
        out: &mut Vec<Output>,
    ) -> bool {
        if self.needs_proof(name) && !self.locals.contains(&hid) {
            let is_proven = self.neighbours.places_mut(name).life(hid, mac).is_some();
            self.counters.add(Activity::Unproven, u64::from(!is_proven));
            return false;
        }
        self.enter(now, name, (hid, mac), itself, out)
    }

    /// Enters a place of which the neighbour spoke `itself`, or others did; true if it is new.
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        name: &str,
        (hid, mac): (Xid, MacAddr),
        itself: bool,
        out: &mut Vec<Output>,
    ) -> bool {
        if self.locals.contains(&hid) {
            self.counters.add(Activity::OwnHid, 1);
            self.complain_of_claim(name, hid, mac, out);
            return false;
        }
        let learned = self.neighbours.learn(name, (hid, mac), itself.then_some(now), self.limit);
        self.watch(now, name, (hid, mac));
        match learned {
            Learned::Known => false,
            Learned::New => {
                self.counters.add(Activity::Learned, 1);
                self.refresh(hid);
                true
            }
            Learned::Gone => {
                self.counters.add(Activity::Gone, 1);
                false
            }
            Learned::TooManyAddresses => {
                self.counters.add(Activity::TooManyAddresses, 1);
                false
            }
            Learned::TableFull => {
                self.counters.add(Activity::TableFull, 1);
                self.complain_of_full_table(out);
                false
            }
        }
    }

    fn complain_of_claim(&mut self, name: &str, hid: Xid, mac: MacAddr, out: &mut Vec<Output>) {
        if self.announcer.claimed.insert(hid) {
            let line = format!(
                "{hid} is this node, but {mac} on {name} announces it, too; \
                 two nodes with one key cannot be told apart, make a new key for one of them"
            );
            out.push(Output::Report { level: Level::Warning, line });
        }
    }

    fn complain_of_full_table(&mut self, out: &mut Vec<Output>) {
        if !std::mem::replace(&mut self.announcer.complained_full, true) {
            let line = format!(
                "the neighbour table is full with {} learned entries; \
                 if that many neighbours are real, raise `neighbour-limit`",
                self.limit
            );
            out.push(Output::Report { level: Level::Warning, line });
        }
    }

    fn is_own_mac(&self, mac: MacAddr) -> bool {
        self.interfaces.values().any(|interface| interface.mac == mac)
    }
}

/// A whole frame with one message.
fn frame(
    message: &NwpRepr,
    (source, destination): (MacAddr, MacAddr),
    ethertype: EtherType,
) -> Packet {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes).expect("messages are made with no more entries than can be counted");
    let mut packet = Packet::from_slice(&bytes);
    EthernetRepr { source, destination, ethertype }
        .emit(packet.push_front(ETHERNET_HEADER_LEN))
        .expect("the header gets the room it needs");
    packet
}
