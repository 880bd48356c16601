//! What the launcher tells the service manager that started it, if one did.
//!
//! Reference: sd_notify(3), sd_watchdog_enabled(3).

use std::time::Duration;

use sd_notify::NotifyState;
use tracing::debug;
use weft_base::Instant;

use crate::supervisor::Notice;

/// See the module's text.
pub(super) struct Notify {
    /// How often the service manager wants to hear that the launcher still works.
    every: Option<Duration>,
    next: Instant,
}

impl Notify {
    pub(super) fn new(now: Instant) -> Self {
        // Twice as often as is asked for, as sd_watchdog_enabled(3) says.
        Self { every: sd_notify::watchdog_enabled().map(|time| time / 2), next: now }
    }

    /// Tells how the node is.
    pub(super) fn tell(notice: &Notice) {
        say(&match notice {
            Notice::Ready => NotifyState::Ready,
            Notice::Status(text) => NotifyState::Status(text),
            Notice::Stopping => NotifyState::Stopping,
        });
    }

    /// Says that the launcher works, when it is time.
    pub(super) fn tick(&mut self, now: Instant) {
        if let Some(every) = self.every.filter(|_| now >= self.next) {
            say(&NotifyState::Watchdog);
            self.next = now + every;
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.every.map(|_| self.next)
    }
}

fn say(state: &NotifyState<'_>) {
    // Without a service manager this does nothing.
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        debug!("the service manager cannot be told: {error}");
    }
}
