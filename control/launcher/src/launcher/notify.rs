//! What the launcher tells the service manager that started it, if one did.
//!
//! Reference: sd_notify(3), sd_watchdog_enabled(3).

use std::time::Duration;

use sd_notify::NotifyState;
use weft_base::Instant;

use crate::supervisor::Notice;

/// What tells the service manager, and when it wants to hear again. Where there is none, nothing is done.
#[derive(Debug)]
pub struct Notify {
    /// How often the service manager wants to hear that the launcher still works.
    every: Option<Duration>,
    next: Instant,
}

impl Notify {
    /// Finds out whether there is a service manager that wants to hear regularly.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        // Twice as often as is asked for, as sd_watchdog_enabled(3) says.
        Self { every: sd_notify::watchdog_enabled().map(|time| time / 2), next: now }
    }

    /// Tells how the node is.
    ///
    /// # Errors
    /// It cannot be told, in a sentence.
    pub fn tell(notice: &Notice) -> Result<(), String> {
        say(&match notice {
            Notice::Ready => NotifyState::Ready,
            Notice::Status(text) => NotifyState::Status(text),
            Notice::Stopping => NotifyState::Stopping,
        })
    }

    /// Says that the launcher works, when it is time.
    ///
    /// # Errors
    /// As [`Notify::tell`].
    pub fn tick(&mut self, now: Instant) -> Result<(), String> {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return Ok(()) };
        self.next = now + every;
        say(&NotifyState::Watchdog)
    }

    /// When [`Notify::tick`] is due at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.every.map(|_| self.next)
    }
}

fn say(state: &NotifyState<'_>) -> Result<(), String> {
    // Without a service manager this does nothing.
    sd_notify::notify(std::slice::from_ref(state))
        .map_err(|error| format!("the service manager cannot be told: {error}"))
}
