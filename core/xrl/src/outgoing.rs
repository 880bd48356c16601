//! The calls that one connection has made: those that wait to be sent and those that wait for a reply.
//!
//! The other side says how many calls it takes at a time; more wait here, in order, and so does
//! everything while the channel is congested. A long call waits until the other side knows who this is.
//! When a call's time is over it is given up; a reply that comes later is nobody's.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weft_base::{Buffer, Handle, Instant, Message};

use crate::frame::{FIRST_ARGUMENTS, FIRST_WINDOW, Frame};

/// A call that can be sent.
#[derive(Debug)]
pub struct Ready<T> {
    /// The number of the method on this connection.
    pub slot: u16,
    /// The arguments.
    pub args: Buffer,
    /// What comes with them.
    pub handles: Vec<Handle>,
    /// Whether they are text.
    pub text: bool,
    /// When it is given up.
    pub deadline: Instant,
    /// Whose it is.
    pub owner: T,
}

/// The calls of one connection; see the module's text.
#[derive(Debug)]
pub struct Outgoing<T> {
    waiting: VecDeque<Ready<T>>,
    pending: BTreeMap<u32, (Instant, T)>,
    window: u32,
    /// Whether the other side has said so, and takes long frames.
    welcome: bool,
    next_id: u32,
    congested: bool,
    /// No call is given up before.
    earliest: Option<Instant>,
}

impl<T> Default for Outgoing<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            pending: BTreeMap::new(),
            window: FIRST_WINDOW,
            welcome: false,
            next_id: 0,
            congested: false,
            earliest: None,
        }
    }
}

impl<T> Outgoing<T> {
    /// The other side takes so many calls at a time.
    pub fn set_window(&mut self, window: u32) {
        self.window = window.max(1);
        self.welcome = true;
    }

    /// The channel takes no more, or takes messages again.
    pub fn set_congested(&mut self, congested: bool) {
        self.congested = congested;
    }

    /// How many calls wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a call.
    pub fn push(&mut self, call: Ready<T>) {
        self.earliest = Some(self.earliest.map_or(call.deadline, |old| old.min(call.deadline)));
        self.waiting.push_back(call);
    }

    /// Hands out the messages that can be sent now.
    pub fn flush(&mut self, now: Instant, mut send: impl FnMut(Message)) {
        while !self.congested && (self.pending.len() as u64) < u64::from(self.window) {
            let welcome = self.welcome;
            let may_go = |call: &mut Ready<T>| welcome || call.args.len() <= FIRST_ARGUMENTS;
            let Some(call) = self.waiting.pop_front_if(may_go) else { return };
            let id = self.free_id();
            let timeout = milliseconds(call.deadline.since(now));
            self.pending.insert(id, (call.deadline, call.owner));
            let frame = Frame::Call { slot: call.slot, id, timeout, text: call.text };
            send(frame.emit_with(call.args, call.handles));
        }
    }

    fn free_id(&mut self) -> u32 {
        // There are at most `window` pending calls, far less than numbers.
        while self.pending.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// A reply came: whose call it was, if it was not given up.
    pub fn answered(&mut self, id: u32) -> Option<T> {
        self.pending.remove(&id).map(|(_, owner)| owner)
    }

    /// When [`Outgoing::expire`] must be called at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.earliest
    }

    /// Gives up the calls whose time is over.
    pub fn expire(&mut self, now: Instant, expired: &mut Vec<T>) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        // Deadlines of one owner mostly grow with their order, so that this goes over all calls about
        // once per timeout; there are at most a window of them, and what waits.
        let over = self.pending.extract_if(.., |_, (deadline, _)| *deadline <= now);
        expired.extend(over.map(|(_, (_, owner))| owner));
        if self.waiting.iter().any(|call| call.deadline <= now) {
            let waiting = std::mem::take(&mut self.waiting);
            for call in waiting {
                if call.deadline <= now {
                    expired.push(call.owner);
                } else {
                    self.waiting.push_back(call);
                }
            }
        }
        let pending = self.pending.values().map(|(deadline, _)| *deadline);
        self.earliest = pending.chain(self.waiting.iter().map(|call| call.deadline)).min();
    }

    /// The connection is gone: whose calls were sent and not answered, and what was not sent.
    pub fn abandon(&mut self) -> (Vec<T>, VecDeque<Ready<T>>) {
        self.earliest = None;
        let sent = std::mem::take(&mut self.pending);
        (sent.into_values().map(|(_, owner)| owner).collect(), std::mem::take(&mut self.waiting))
    }
}

/// A timeout as it stands in a frame: never 0, which is none.
fn milliseconds(left: Duration) -> u32 {
    u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1)
}
