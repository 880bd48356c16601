//! A link and the neighbour on it: greetings, sessions, loss.
//!
//! Reference: RFC 5303 (three-way handshake); RFC 2328 §10.3. There are fewer states than OSPF has: a
//! neighbour is *greeted* until a session is up, then *loading* until it has told all it knows, then
//! *usable*. Only usable neighbours are advertised: a node that was just started gets packets when it
//! knows where to send them.

use std::collections::BTreeSet;
use std::time::Duration;

use weft_base::{Bucket, Instant};

use super::{LinkState, millis};
use crate::activity::Activity;
use crate::authority::Authority;
use crate::event::{Loss, Output};
use crate::flood::Flood;
use crate::ids::{LinkId, Metric, NodeId};
use crate::session::{Accepted, Peer, Sessions};
use crate::wire::{Body, FLAG_COMPLETE, Message, MessageRepr, TAG_LEN};

/// What stands in front of a greeting's bytes when its proof is made.
const PURPOSE: &[u8] = b"weft link-state greeting";

/// Greetings are verified ten a second at most, so many at once.
const GREETINGS: u32 = 10;
const GREETING_INTERVAL: Duration = Duration::from_millis(100);

/// A link and what is known of the neighbour on it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) metric: Metric,
    expected: Option<NodeId>,
    pub(super) sessions: Sessions,
    /// When to tell it again that we are here.
    next_hello: Instant,
    greetings: Bucket,
    pub(super) verifications: Bucket,
    pub(super) flood: Flood,
    /// Which of the neighbour's summaries have come.
    pub(super) summaries: BTreeSet<u16>,
    /// The neighbour has told all it knows.
    full: bool,
    /// The neighbour was told that we have.
    pub(super) told_complete: bool,
    /// The neighbour was silent and got more time; see [`Link::is_silent`].
    spared: bool,
    /// Since when there is no session, or this one.
    pub(super) since: Instant,
}

impl Link {
    pub(super) fn new(
        now: Instant,
        id: LinkId,
        metric: Metric,
        expected: Option<NodeId>,
        session: u64,
    ) -> Self {
        Self {
            id,
            metric,
            expected,
            sessions: Sessions::new(session),
            next_hello: now,
            greetings: Bucket::default(),
            verifications: Bucket::default(),
            flood: Flood::default(),
            summaries: BTreeSet::new(),
            full: false,
            told_complete: false,
            spared: false,
            since: now,
        }
    }

    /// The neighbour with whom a session is up.
    pub(super) fn neighbour(&self) -> Option<NodeId> {
        self.sessions.current.as_ref().map(|peer| peer.node)
    }

    /// The neighbour over whom packets may go.
    pub(super) fn usable(&self) -> Option<NodeId> {
        self.neighbour().filter(|_| self.full)
    }

    /// Whether nothing was heard of the neighbour for as long as it wants to be believed in.
    ///
    /// A node that notices late was held up, and what the neighbour has said meanwhile may still wait to be
    /// read: it gets a quarter of that time more, once.
    fn is_silent(&mut self, now: Instant) -> bool {
        if self.neighbour().is_none() || now < self.sessions.until {
            return false;
        }
        let is_late = now.since(self.sessions.until) >= self.sessions.hold() / 8;
        let spare = is_late && !std::mem::replace(&mut self.spared, true);
        if spare {
            self.sessions.until = now + self.sessions.hold() / 4;
        }
        !spare
    }

    pub(super) fn deadline(&self, window: usize) -> Option<Instant> {
        let session = self.sessions.current.as_ref().map(|_| self.sessions.until);
        let flood = session.and_then(|_| self.flood.deadline(window));
        session.into_iter().chain(flood).chain([self.next_hello]).min()
    }
}

impl<A: Authority> LinkState<A> {
    /// Takes a message.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        id: LinkId,
        bytes: &[u8],
        out: &mut Vec<Output>,
    ) {
        self.counters.add(Activity::MessagesReceived, 1);
        // While it is being dealt with, `links` holds the others: those whom its news are for.
        let Some(mut link) = self.links.remove(&id) else {
            return self.counters.add(Activity::UnknownLink, 1);
        };
        match Message::new_checked(bytes) {
            Err(_) => self.counters.add(Activity::Malformed, 1),
            Ok(message) if message.sender == self.node => {
                self.counters.add(Activity::OwnMessage, 1);
            }
            Ok(message) if link.expected.is_some_and(|node| node != message.sender) => {
                self.counters.add(Activity::Stranger, 1);
            }
            Ok(message) => match message.body {
                Body::Greeting { heard, hold } => {
                    self.greeted(now, &mut link, &message, heard, hold, out);
                }
                _ => self.in_session(now, &mut link, &message, out),
            },
        }
        self.links.insert(id, link);
    }

    /// Takes a greeting; see [`crate::session`].
    fn greeted(
        &mut self,
        now: Instant,
        link: &mut Link,
        message: &Message,
        heard: u64,
        hold: u32,
        out: &mut Vec<Output>,
    ) {
        let (node, session) = (message.sender, message.session);
        // Nobody with a key of his own takes the place of a neighbour that speaks.
        if link.neighbour().is_some_and(|neighbour| neighbour != node) {
            return self.counters.add(Activity::Stranger, 1);
        }
        if session == 0 || link.sessions.is_retired(session) {
            return self.counters.add(Activity::Replayed, 1);
        }
        if !link.greetings.take(now, GREETING_INTERVAL, GREETINGS) {
            return self.counters.add(Activity::TooManyGreetings, 1);
        }
        if !self.authority.verify(node, &[PURPOSE, message.sealed].concat(), message.seal) {
            return self.counters.add(Activity::BadProof, 1);
        }
        if link.sessions.is_current(node, session) {
            // Our side is up and it does not know yet.
            return self.hello(link, out);
        }
        link.sessions.heard = session;
        if heard != link.sessions.own {
            return self.greet(link, out);
        }
        let tentative = link.sessions.tentative.as_ref();
        if tentative.is_none_or(|peer| (peer.node, peer.session) != (node, session)) {
            let context = Sessions::context((self.node, link.sessions.own), (node, session));
            let Some(secret) = self.authority.agree(message.seal, &context) else {
                return self.counters.add(Activity::BadProof, 1);
            };
            let hold = Duration::from_millis(u64::from(hold));
            link.sessions.tentative = Some(Peer::new(node, session, secret, hold));
            self.greet(link, out);
        }
        self.hello(link, out);
    }

    /// Takes a message that has a tag.
    fn in_session(
        &mut self,
        now: Instant,
        link: &mut Link,
        message: &Message,
        out: &mut Vec<Output>,
    ) {
        let before = link.usable();
        match link.sessions.accept(message) {
            Accepted::No => return self.counters.add(Activity::BadTag, 1),
            Accepted::Yes => {}
            Accepted::Promoted => {
                self.lost(now, link, before, Loss::Restarted, out);
                self.begin(now, link, out);
            }
        }
        if let Body::Hello { hold } = message.body {
            if hold == 0 {
                return self.lose(now, link, Loss::Farewell, out);
            }
            if let Some(peer) = &mut link.sessions.current {
                peer.hold = Duration::from_millis(u64::from(hold));
            }
        }
        link.sessions.until = now + link.sessions.hold();
        link.spared = false;
        match message.body {
            Body::Greeting { .. } | Body::Hello { .. } => {}
            Body::Summary { index, count, headers } => {
                self.summarized(link, index, count, &headers);
            }
            Body::Update(lsas) => self.updated(now, link, &lsas),
            Body::Ack(headers) => self.acknowledged(link, &headers),
        }
        if message.flags & FLAG_COMPLETE != 0 && !link.full {
            link.full = true;
            self.counters.add(Activity::NeighboursUp, 1);
            out.push(Output::NeighbourUp { link: link.id, node: message.sender });
            self.relinked(now, link);
        }
    }

    /// Loses the neighbours that have been silent for too long.
    pub(super) fn lose_silent(&mut self, now: Instant, out: &mut Vec<Output>) {
        let links = self.links.values_mut();
        let silent: Vec<_> =
            links.filter_map(|link| link.is_silent(now).then_some(link.id)).collect();
        for id in silent {
            if let Some(mut link) = self.links.remove(&id) {
                // It may hear us though we do not hear it.
                self.farewell(&mut link, out);
                self.lose(now, &mut link, Loss::Silent, out);
                self.links.insert(id, link);
            }
        }
    }

    /// Gives up the session on a link, which is not among `links`, and greets anew.
    pub(super) fn lose(
        &mut self,
        now: Instant,
        link: &mut Link,
        reason: Loss,
        out: &mut Vec<Output>,
    ) {
        let usable = link.usable();
        let session = self.session_number();
        let fresh = Link::new(now, link.id, link.metric, link.expected, session);
        let (greetings, verifications) = (link.greetings, link.verifications);
        *link = Link { greetings, verifications, ..fresh };
        self.lost(now, link, usable, reason, out);
    }

    /// Tells of a neighbour that was usable.
    fn lost(
        &mut self,
        now: Instant,
        link: &mut Link,
        usable: Option<NodeId>,
        reason: Loss,
        out: &mut Vec<Output>,
    ) {
        link.full = false;
        if let Some(node) = usable {
            self.counters.add(Activity::NeighboursDown, 1);
            out.push(Output::NeighbourDown { link: link.id, node, reason });
            self.relinked(now, link);
        }
    }

    /// A link that is just not among `links` has become usable, or is no longer.
    fn relinked(&mut self, now: Instant, link: &mut Link) {
        let place = Link::new(now, link.id, link.metric, link.expected, 1);
        self.links.insert(link.id, std::mem::replace(link, place));
        self.links_changed(now);
        if let Some(back) = self.links.remove(&link.id) {
            *link = back;
        }
    }

    /// Tells the neighbour that we are here, if it is time to.
    pub(super) fn greet_in_time(&mut self, now: Instant, link: &mut Link, out: &mut Vec<Output>) {
        if link.next_hello > now {
            return;
        }
        let quarter = (self.settings.hello / 4).as_nanos() as u64;
        let jitter = Duration::from_nanos(self.random.below(quarter));
        link.next_hello = now + (self.settings.hello - jitter);
        if link.neighbour().is_none() {
            self.greet(link, out);
        }
        self.hello(link, out);
    }

    /// Sends a greeting.
    fn greet(&mut self, link: &mut Link, out: &mut Vec<Output>) {
        let repr = MessageRepr::greeting(link.sessions.heard, millis(self.settings.hold));
        let repr = repr.from(self.node, link.sessions.own, link.sessions.count(), 0);
        // A proof has 128 bytes at most.
        let message = repr.emit(self.authority.proof_len() as u8, |bytes| {
            self.authority.prove(&[PURPOSE, bytes].concat())
        });
        self.counters.add(Activity::MessagesSent, 1);
        out.push(Output::Send { link: link.id, message });
    }

    /// Sends a hello in the session that is up, and in the one that may be.
    pub(super) fn hello(&mut self, link: &mut Link, out: &mut Vec<Output>) {
        let repr = MessageRepr::hello(millis(self.settings.hold));
        self.send(link, &repr, out);
        let counter = link.sessions.count();
        if let Some(peer) = &link.sessions.tentative {
            let repr = repr.from(self.node, link.sessions.own, counter, 0);
            let message = repr.emit(TAG_LEN as u8, |bytes| peer.tag(bytes));
            self.counters.add(Activity::MessagesSent, 1);
            out.push(Output::Send { link: link.id, message });
        }
    }

    /// Tells the neighbour that we do not believe in it any more, or go.
    pub(super) fn farewell(&mut self, link: &mut Link, out: &mut Vec<Output>) {
        self.send(link, &MessageRepr::hello(0), out);
    }

    /// Sends a message in the session that is up, if one is.
    pub(super) fn send(&mut self, link: &mut Link, repr: &MessageRepr, out: &mut Vec<Output>) {
        let flags = if link.flood.is_complete() { FLAG_COMPLETE } else { 0 };
        let counter = link.sessions.count();
        let Some(peer) = &link.sessions.current else { return };
        let repr = repr.clone().from(self.node, link.sessions.own, counter, flags);
        let message = repr.emit(TAG_LEN as u8, |bytes| peer.tag(bytes));
        self.counters.add(Activity::MessagesSent, 1);
        out.push(Output::Send { link: link.id, message });
    }
}
