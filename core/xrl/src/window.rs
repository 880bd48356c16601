//! How many calls with changes are under way to somebody who answers when more can be taken.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (a slow reader must not fill memory: what it has not heard stays in the table),
//! §8.2 (how long a route takes while others go the same way).
//!
//! A few calls with many changes each keep the other side busy; the rest waits where it came from, and a destination that
//! changes again meanwhile takes no more room. What is new does not wait for an answer to these: it goes beside them, in
//! calls of its own.

/// Calls under way with whatever is to be told.
const CALLS: usize = 3;
/// Calls under way beside them.
const NEW_CALLS: usize = 8;
/// If more waits that is new it is a flood, which others need not wait for.
const FLOOD: usize = 256;

/// How a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// With whatever is to be told next, when those before it are taken.
    All,
    /// Beside them, with nothing but what is new.
    New,
}

/// The calls under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// By their lanes.
    calls: [usize; 2],
}

impl Window {
    /// How many changes a call may have. What is urgent waits for those that are under way, so they are no more than needed
    /// to make the cost of a call small.
    pub const CHANGES: usize = 512;

    /// Whether a call with whatever is to be told may go.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.calls[Lane::All as usize] < CALLS
    }

    /// Whether a call may go beside them, with changes that are new, of which so many wait.
    #[must_use]
    pub fn is_open_for_new(&self, waiting: usize) -> bool {
        (1..=FLOOD).contains(&waiting) && self.calls[Lane::New as usize] < NEW_CALLS
    }

    /// A call goes.
    pub fn called(&mut self, lane: Lane) {
        self.calls[lane as usize] += 1;
    }

    /// A call was answered.
    ///
    /// # Panics
    /// None is under way, where there are assertions.
    pub fn answered(&mut self, lane: Lane) {
        let calls = &mut self.calls[lane as usize];
        debug_assert!(*calls > 0, "an answer to no call");
        *calls = calls.saturating_sub(1);
    }

    /// Whether all were answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls == [0, 0]
    }
}
