//! What stands before and behind everything that peers are told of a family.
//!
//! Reference: RFC 4724 §2 (the End-of-RIB, behind all that there is when a session begins); RFC 7313 §4 (the marks around what is
//! told again, of which none may come before that).

use crate::wire::{Family, RefreshKind, RouteRefresh, end_of_rib};

/// A telling of everything that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Telling {
    /// Marks stand around it; else an End-of-RIB behind it.
    is_marked: bool,
    /// The mark before it is still to come.
    is_to_begin: bool,
    /// Another one follows, with marks around it.
    is_asked_again: bool,
}

impl Telling {
    /// The one with which a session begins.
    pub(super) const FIRST: Self =
        Self { is_marked: false, is_to_begin: false, is_asked_again: false };

    /// Everything is to be told again, with marks around it or not, while this is under way, if something is.
    pub(super) fn again(before: Option<Self>, is_marked: bool) -> Self {
        match before {
            None => Self { is_marked, is_to_begin: is_marked, is_asked_again: false },
            // An End-of-RIB is waited for: it comes first.
            Some(before) if is_marked && !before.is_marked => {
                Self { is_asked_again: true, ..before }
            }
            // What is told again is told before the same end.
            Some(before) => before,
        }
    }

    /// Whether what is under way begins anew when this has been asked for.
    pub(super) fn is_for_now(&self) -> bool {
        !self.is_asked_again
    }

    /// What is to be said before anything else.
    pub(super) fn take_begin(&mut self, family: Family) -> Option<Vec<u8>> {
        let begin = || RouteRefresh { family, kind: RefreshKind::Begin }.emit();
        std::mem::take(&mut self.is_to_begin).then(begin)
    }

    /// Everything was told: what is said of that, and the telling that follows.
    pub(super) fn end(self, family: Family) -> (Vec<u8>, Option<Self>) {
        let end = match self.is_marked {
            true => RouteRefresh { family, kind: RefreshKind::End }.emit(),
            false => end_of_rib(family),
        };
        (end, self.is_asked_again.then(|| Self::again(None, true)))
    }
}
