//! Disk requests that wait for their answer.

use std::collections::BTreeMap;

use weft_base::Token;

/// What each outstanding request is for.
pub(crate) struct Requests<P> {
    next: u32,
    pending: BTreeMap<Token, P>,
}

impl<P> Requests<P> {
    pub(crate) fn new() -> Self {
        Self { next: 0, pending: BTreeMap::new() }
    }

    /// A token for a request made for `purpose`.
    pub(crate) fn ask(&mut self, purpose: P) -> Token {
        let token = Token(self.next);
        self.next = self.next.wrapping_add(1);
        self.pending.insert(token, purpose);
        token
    }

    /// What the request with this token was for, when its answer comes.
    pub(crate) fn take(&mut self, token: Token) -> Option<P> {
        self.pending.remove(&token)
    }

    /// What is outstanding, in no particular order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &P> {
        self.pending.values()
    }
}
