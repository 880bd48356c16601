//! Sessions with a neighbour: how two nodes make sure that each hears the other, now.
//!
//! Each side draws a number for the link. A *greeting* carries the sender's number and the other's as
//! far as it was heard, and is signed. Who finds his own number in a greeting knows that the sender has
//! heard it just now, and derives the secret of the session from both keys and both numbers. From then
//! on messages carry a tag made with it. The first good tag shows that the other side has done the
//! same: the session is up. This is the three-way handshake of RFC 5303, with numbers that cannot be
//! guessed.
//!
//! While a session is up, another one begins only with the same node, which was started again. Another node has
//! to wait until this one has fallen silent or taken leave, so that a key of one's own is not enough to
//! take a neighbour's place. Whoever comes first, though, is the neighbour.
//!
//! Replayed greetings lead to nothing, since whoever replays them cannot make a tag; replayed messages
//! of the session are found by their counters (RFC 4303 §3.4.3, appendix A2); sessions that were given
//! up are remembered as long as this side keeps its number, and cannot come back.

use std::time::Duration;

use weft_base::Instant;
use weft_keys::SharedSecret;

use crate::ids::NodeId;
use crate::wire::Message;

/// Sessions of a neighbour that are remembered after they were given up. Each is one start of a neighbour
/// that this side noticed by nothing else.
const RETIRED: usize = 64;

/// Counters that may come out of order.
const WINDOW: u64 = 64;

/// Which counters of a session were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    highest: u64,
    /// Bit n: `highest - n` was seen.
    seen: u64,
}

impl Window {
    /// Whether this counter is new; it is not from then on.
    pub(crate) fn accept(&mut self, counter: u64) -> bool {
        if counter == 0 {
            return false;
        }
        if counter > self.highest {
            let ahead = counter - self.highest;
            self.seen = if ahead < WINDOW { self.seen << ahead | 1 } else { 1 };
            self.highest = counter;
            return true;
        }
        let behind = self.highest - counter;
        let is_new = behind < WINDOW && self.seen & 1 << behind == 0;
        if is_new {
            self.seen |= 1 << behind;
        }
        is_new
    }
}

/// The other side of a session.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) node: NodeId,
    /// Its number.
    pub(crate) session: u64,
    /// For how long it wants to be believed in.
    pub(crate) hold: Duration,
    secret: SharedSecret,
    window: Window,
}

impl Peer {
    pub(crate) fn new(node: NodeId, session: u64, secret: SharedSecret, hold: Duration) -> Self {
        Self { node, session, hold, secret, window: Window::default() }
    }

    /// Whether a message is of this session, and new.
    fn accepts(&mut self, message: &Message) -> bool {
        (message.sender, message.session) == (self.node, self.session)
            && message.seal.len() == crate::wire::TAG_LEN
            && self.secret.verify(message.sealed, message.seal)
            && self.window.accept(message.counter)
    }

    /// The tag of a message to it.
    pub(crate) fn tag(&self, bytes: &[u8]) -> Vec<u8> {
        self.secret.tag(bytes)[..crate::wire::TAG_LEN].to_vec()
    }
}

/// What came of a message with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is of the session.
    Yes,
    /// It is the first of a session, which is up now; the one before, if there was one, is over.
    Promoted,
    /// It is of no session, or not new.
    No,
}

/// All that is known of sessions on a link.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// This side's number.
    pub(crate) own: u64,
    /// Messages sent under it.
    sent: u64,
    /// The session that is up.
    pub(crate) current: Option<Peer>,
    /// One that will be up when a message with its tag comes.
    pub(crate) tentative: Option<Peer>,
    /// The number that the neighbour greeted with last, to be told that it was heard.
    pub(crate) heard: u64,
    retired: Vec<u64>,
    /// When the neighbour counts as gone, if nothing is heard of it.
    pub(crate) until: Instant,
}

impl Sessions {
    /// A link on which nothing was heard. `own` is a random number, not zero.
    pub(crate) fn new(own: u64) -> Self {
        Self {
            own,
            sent: 0,
            current: None,
            tentative: None,
            heard: 0,
            retired: Vec::new(),
            until: Instant::ZERO,
        }
    }

    /// The counter of the next message.
    pub(crate) fn count(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// Whether a greeting belongs to a session that is over.
    pub(crate) fn is_retired(&self, session: u64) -> bool {
        self.retired.contains(&session)
    }

    /// Whether a greeting is of the session that is up.
    pub(crate) fn is_current(&self, node: NodeId, session: u64) -> bool {
        self.current.as_ref().is_some_and(|peer| (peer.node, peer.session) == (node, session))
    }

    /// For how long the neighbour wants to be believed in.
    pub(crate) fn hold(&self) -> Duration {
        self.current.as_ref().map_or(Duration::ZERO, |peer| peer.hold)
    }

    /// Takes a message with a tag.
    pub(crate) fn accept(&mut self, message: &Message) -> Accepted {
        if self.current.as_mut().is_some_and(|peer| peer.accepts(message)) {
            return Accepted::Yes;
        }
        if !self.tentative.as_mut().is_some_and(|peer| peer.accepts(message)) {
            return Accepted::No;
        }
        let over = std::mem::replace(&mut self.current, self.tentative.take());
        if let Some(over) = over {
            if self.retired.len() == RETIRED {
                self.retired.remove(0);
            }
            self.retired.push(over.session);
        }
        Accepted::Promoted
    }

    /// What both sides hash into the secret of their session: the same on both.
    pub(crate) fn context(one: (NodeId, u64), other: (NodeId, u64)) -> Vec<u8> {
        let mut ends = [one, other];
        ends.sort_unstable();
        let mut context = b"weft link-state session".to_vec();
        for (node, session) in ends {
            context.extend_from_slice(&node.0);
            context.extend_from_slice(&session.to_be_bytes());
        }
        context
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{MessageRepr, TAG_LEN};

    fn message(peer: &Peer, counter: u64) -> Vec<u8> {
        let repr = MessageRepr::hello(1000).from(peer.node, peer.session, counter, 0);
        repr.emit(TAG_LEN as u8, |bytes| peer.tag(bytes))
    }

    fn peer(session: u64) -> Peer {
        let secret = SharedSecret::from_bytes([session as u8; 32]);
        Peer::new(NodeId([1; 20]), session, secret, Duration::from_secs(4))
    }

    #[test]
    fn counters_are_taken_once_and_may_be_a_little_late() {
        let mut window = Window::default();
        let taken: Vec<bool> =
            [0, 1, 1, 3, 2, 2, 100, 36, 37, 37, 99, 101].map(|n| window.accept(n)).to_vec();
        let expected =
            [false, true, false, true, true, false, true, false, true, false, true, true];
        assert_eq!(taken, expected);
        assert!(window.accept(u64::MAX) && !window.accept(u64::MAX));
    }

    #[test]
    fn a_session_is_up_by_its_first_tag_and_one_that_is_over_stays_over() {
        let mut sessions = Sessions::new(7);
        let accept = |sessions: &mut Sessions, from: &Peer, counter| {
            let bytes = message(from, counter);
            sessions.accept(&Message::new_checked(&bytes).unwrap())
        };
        assert_eq!(accept(&mut sessions, &peer(1), 1), Accepted::No);
        sessions.tentative = Some(peer(1));
        assert_eq!(accept(&mut sessions, &peer(2), 1), Accepted::No);
        assert_eq!(accept(&mut sessions, &peer(1), 1), Accepted::Promoted);
        assert_eq!(accept(&mut sessions, &peer(1), 1), Accepted::No, "a replay");
        assert_eq!(accept(&mut sessions, &peer(1), 2), Accepted::Yes);
        sessions.tentative = Some(peer(2));
        assert_eq!(accept(&mut sessions, &peer(1), 3), Accepted::Yes, "it is still up");
        assert_eq!(accept(&mut sessions, &peer(2), 1), Accepted::Promoted);
        assert_eq!(accept(&mut sessions, &peer(1), 4), Accepted::No);
        assert!(sessions.is_retired(1) && !sessions.is_retired(2));
    }

    #[test]
    fn both_sides_have_the_same_context() {
        let (one, other) = ((NodeId([1; 20]), 5), (NodeId([2; 20]), 4));
        assert_eq!(Sessions::context(one, other), Sessions::context(other, one));
        assert_ne!(Sessions::context(one, other), Sessions::context((one.0, 4), (other.0, 5)));
    }
}
