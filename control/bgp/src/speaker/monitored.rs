//! What those hear who monitor peers: of sessions, and of the paths that peers have announced on them.
//!
//! Reference: RFC 7854 §4.6, §4.9, §4.10 and §5 (what is told of a peer, before policy).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use weft_routing::ip::Version;
use weft_routing::{Candidate, OriginId, Prefix};

use super::peer::Peer;
use super::up::Up;
use crate::bmp::Subject;
use crate::incoming::{Announcer, Taken, family, version};
use crate::routes::attribute_sets::AttributesId;
use crate::routes::{Path, Routes, Swept};
use crate::wire::{
    Attributes, Context, Family, MAX_EXTENDED_MESSAGE, MAX_MESSAGE, Update, UpdateEncoder,
    end_of_rib, withdraw,
};

/// Paths that are looked at in one step, and one destination's more.
const MOST_PATHS: usize = if cfg!(test) { 8 } else { 1024 };

/// A peer with which there is a session.
pub(super) struct Monitored {
    subject: Subject,
    /// Its Peer Up message.
    pub(super) introduction: Rc<[u8]>,
    /// Families of which it sends everything again: what it has not sent again yet still counts.
    refreshing: BTreeSet<Version>,
    /// Families of which it has begun to, or that were disabled: what goes by itself was announced in this session.
    renewed: BTreeSet<Version>,
}

/// All of them.
pub(super) type Sessions = BTreeMap<OriginId, Monitored>;

impl Up {
    /// The peer at this address, as messages say whom they are about.
    pub(super) fn subject(&self, address: IpAddr, routes: &Routes) -> Subject {
        let Announcer { origin, context, remote_as, .. } = self.announcer;
        let identifier = routes.source(origin).router_id;
        Subject { address, system: remote_as, identifier, context }
    }
}

impl Peer {
    /// Its session, if there is one.
    pub(super) fn monitored(&self, routes: &Routes) -> Option<Monitored> {
        let up = self.up.as_ref()?;
        Some(Monitored {
            subject: up.subject(self.address, routes),
            introduction: Rc::clone(&up.introduction),
            refreshing: up.refreshing.clone(),
            renewed: up.renewed.clone(),
        })
    }
}

impl Monitored {
    /// Whether a path of the peer counts, that may be from before it began anew.
    fn counts(&self, version: Version, one: &Candidate<Path>, routes: &Routes) -> bool {
        self.refreshing.contains(&version) || !routes.table.is_stale(version, one)
    }

    /// That this was everything.
    pub(super) fn end(&self, out: &mut Vec<u8>) {
        let families = self.subject.context.families.iter();
        for family in families.filter(|family| version(*family).is_some()) {
            self.subject.could_send(&end_of_rib(family), out);
        }
    }

    /// What is there of paths, and which of them are not there.
    fn as_they_are(&self, origin: OriginId, paths: &[Swept], routes: &Routes, out: &mut Vec<u8>) {
        type Alike = BTreeMap<(Version, Option<AttributesId>), Vec<(u32, Prefix)>>;
        let mut alike = Alike::new();
        for Swept { version, prefix, path, .. } in paths {
            // Of a session in which paths had other identifiers.
            if *path != 0 && !self.subject.context.add_path_receive.contains(family(*version)) {
                continue;
            }
            let is_it = |one: &&Candidate<Path>| (one.origin, one.path) == (origin, *path);
            let number = routes.table.number(*version, prefix);
            let found =
                number.and_then(|number| routes.table.candidates(*version, number).find(is_it));
            let found = found.filter(|one| self.counts(*version, one, routes));
            let received = found.map(|one| one.route.received);
            alike.entry((*version, received)).or_default().push((*path, *prefix));
        }
        for ((version, received), prefixes) in alike {
            match received {
                Some(received) => {
                    let attributes = routes.sets.get(received).unpack();
                    announce(&attributes, version, &self.subject, &prefixes, out);
                }
                None => {
                    let context = sending(&self.subject.context, MAX_MESSAGE);
                    let mut messages = Vec::new();
                    withdraw(family(version), &context, prefixes, &mut messages);
                    self.subject.could_send(&messages, out);
                }
            }
        }
    }
}

impl Peer {
    /// It has sent an UPDATE, of which this has come: those who monitor it hear that as it came, or, if it is not what counts, what
    /// counts.
    pub(super) fn has_sent(&self, body: &[u8], taken: &Taken, routes: &Routes, out: &mut Vec<u8>) {
        let Some(session) = self.monitored(routes) else { return };
        let is_empty = taken.announced == 0 && taken.withdrawn == 0 && taken.end_of_rib.is_none();
        let is_right = taken.faults.is_empty() && taken.misplaced.is_empty();
        if is_right && taken.disabled.is_none() && !has_others(body, &session.subject.context) {
            if !is_empty {
                session.subject.has_sent(body, out);
            }
            return;
        }
        let Ok(update) = Update::new_checked(body, &session.subject.context) else { return };
        let come = update.reach().map(|reach| (reach.family, reach.nlri));
        let mut paths = Vec::new();
        for (family, nlri) in update.withdrawn().chain(come) {
            let Some(version) = version(family) else { continue };
            let origin = self.origin;
            let all = nlri.iter();
            paths.extend(all.map(|(path, prefix)| Swept { origin, version, prefix, path }));
        }
        session.as_they_are(self.origin, &paths, routes, out);
    }
}

/// Whether an UPDATE has routes of IPv4 in its own fields that were not agreed on, or are not taken any more: they mean nothing.
fn has_others(body: &[u8], context: &Context) -> bool {
    if context.families.contains(Family::IPV4_UNICAST) {
        return false;
    }
    let length = |at: usize| {
        let bytes = body.get(at..)?.first_chunk::<2>()?;
        Some(usize::from(u16::from_be_bytes(*bytes)))
    };
    let withdrawn = length(0).unwrap_or(0);
    let attributes = length(2 + withdrawn).unwrap_or(0);
    withdrawn > 0 || body.len() > 4 + attributes
}

/// Paths have gone that their peers have not withdrawn.
pub(super) fn have_gone(all: &[Swept], sessions: &Sessions, routes: &Routes, out: &mut Vec<u8>) {
    let mut by_origin: BTreeMap<OriginId, Vec<Swept>> = BTreeMap::new();
    for one in all {
        let session = sessions.get(&one.origin);
        // What was announced in an earlier session nobody has been told of in this one.
        if session.is_some_and(|session| session.renewed.contains(&one.version)) {
            by_origin.entry(one.origin).or_default().push(*one);
        }
    }
    for (origin, paths) in by_origin {
        sessions[&origin].as_they_are(origin, &paths, routes, out);
    }
}

/// Tells of the paths that peers with sessions have announced to the destinations from this number on, some of them. Returns where
/// to go on.
pub(super) fn walk(
    sessions: &Sessions,
    version: Version,
    from: u32,
    routes: &Routes,
    out: &mut Vec<u8>,
) -> Option<u32> {
    let mut alike: BTreeMap<(OriginId, AttributesId), Vec<(u32, Prefix)>> = BTreeMap::new();
    let end = routes.table.end_of_numbers(version);
    let (mut number, mut looked) = (from, 0);
    while number < end && looked < MOST_PATHS {
        // A destination without paths takes its time, too.
        looked += 1;
        for one in routes.table.candidates(version, number) {
            looked += 1;
            let Some(session) = sessions.get(&one.origin) else { continue };
            let is_exchanged = session.subject.context.families.contains(family(version));
            if is_exchanged && session.counts(version, one, routes) {
                let prefix = routes.table.news(version, number).prefix;
                let key = (one.origin, one.route.received);
                alike.entry(key).or_default().push((one.path, prefix));
            }
        }
        number += 1;
    }
    for ((origin, received), prefixes) in alike {
        let attributes = routes.sets.get(received).unpack();
        announce(&attributes, version, &sessions[&origin].subject, &prefixes, out);
    }
    (number < end).then_some(number)
}

/// How such a peer would send what it has announced.
fn sending(context: &Context, send_limit: u16) -> Context {
    Context { add_path_send: context.add_path_receive, send_limit, ..*context }
}

/// Messages with paths that are alike; none if there is no message that could have them.
fn announce(
    attributes: &Attributes,
    version: Version,
    subject: &Subject,
    prefixes: &[(u32, Prefix)],
    out: &mut Vec<u8>,
) {
    let encoder =
        |limit| UpdateEncoder::new(attributes, family(version), &sending(&subject.context, limit));
    let encoder = encoder(MAX_MESSAGE).or_else(|_| encoder(MAX_EXTENDED_MESSAGE));
    if let Ok(encoder) = encoder {
        let mut messages = Vec::new();
        encoder.all(prefixes.iter().copied(), &mut messages);
        subject.could_send(&messages, out);
    }
}
