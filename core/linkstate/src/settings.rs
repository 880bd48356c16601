//! What can be set, with the values that hold if nothing is said.

use std::time::Duration;

use crate::wire::{MAX_LSA_LEN, OVERHEAD};

/// How the engine behaves. All nodes of a network work together whatever each of them sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often a neighbour is told that this node is alive; up to a quarter less, by chance.
    pub hello: Duration,
    /// How long a neighbour believes so without hearing again; more than twice `hello`.
    pub hold: Duration,
    /// The first wait for an acknowledgement; doubled each time, up to eight times as long.
    pub retransmit: Duration,
    /// How long acknowledgements may wait for others to go with.
    pub acknowledge: Duration,
    /// After advertisements were sent to a neighbour, the pause before it is sent more: what comes
    /// meanwhile goes together. The first of several is not held up.
    pub pacing: Duration,
    /// How long others keep what this node advertises without hearing again. It is refreshed after half
    /// of this, or up to a quarter of that earlier, by chance.
    pub lifetime: Duration,
    /// The longest message that the carrier takes, in bytes.
    pub message_size: usize,
    /// Advertisements under way to a neighbour at once, without acknowledgement.
    pub window: usize,
    /// Advertisements that are kept, of all nodes.
    pub database: usize,
    /// Signatures of each neighbour's messages that are verified in a second, and at once after a
    /// pause of a second.
    pub verifications: u32,
    /// Ways to one destination that are used beside each other if they cost the same.
    pub next_hops: usize,
    /// Pauses between advertisements of this node.
    pub origination: Pauses,
    /// Delays of the computation of routes.
    pub spf: SpfDelays,
}

/// Pauses that double while the same happens again and again, and start anew after a quiet time of
/// twice the longest.
///
/// IS-IS and OSPF implementations have the like for the generation of advertisements, where RFC 2328 has
/// the constant `MinLSInterval` of 5 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// Before the first.
    pub first: Duration,
    /// Between the first and the second.
    pub second: Duration,
    /// The longest.
    pub longest: Duration,
}

/// The parameters of RFC 8405 §3, by their names there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpfDelays {
    /// `INITIAL_SPF_DELAY`: after the first change in a while.
    pub initial: Duration,
    /// `SHORT_SPF_DELAY`: while what belongs to one event is still being learned.
    pub short: Duration,
    /// `LONG_SPF_DELAY`: while the network does not come to rest.
    pub long: Duration,
    /// `TIME_TO_LEARN_INTERVAL`: how long it takes at most to learn of one event.
    pub learn: Duration,
    /// `HOLDDOWN_INTERVAL`: without a change for so long, the network is at rest.
    pub holddown: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(1),
            hold: Duration::from_secs(4),
            retransmit: Duration::from_millis(250),
            acknowledge: Duration::from_millis(10),
            pacing: Duration::from_millis(5),
            lifetime: Duration::from_secs(3600),
            message_size: 1400,
            window: 64,
            database: 16_384,
            verifications: 2000,
            next_hops: 8,
            origination: Pauses {
                first: Duration::ZERO,
                second: Duration::from_millis(100),
                longest: Duration::from_secs(2),
            },
            // RFC 8405 §3 proposes 50 ms, 200 ms, 5 s, 500 ms and 10 s. Computing costs less today: a
            // network of 1,000 nodes some milliseconds.
            spf: SpfDelays {
                initial: Duration::from_millis(10),
                short: Duration::from_millis(50),
                long: Duration::from_millis(500),
                learn: Duration::from_millis(500),
                holddown: Duration::from_secs(3),
            },
        }
    }
}

/// Why settings cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A neighbour would be lost by one hello that is late.
    #[error("the hold time must be more than twice the hello interval, and at most 18 hours")]
    Hold,
    /// Below a millisecond, or no time at all.
    #[error("{0} must be at least a millisecond")]
    TooShort(&'static str),
    /// The lifetime travels in 16 bits.
    #[error("the lifetime must be 60 to 65535 seconds")]
    Lifetime,
    /// An advertisement would not fit a message.
    #[error("a message must have room for {} bytes", MAX_LSA_LEN + OVERHEAD)]
    MessageSize,
    /// Nothing would work.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
}

impl Settings {
    /// Checks that these settings can be used.
    ///
    /// # Errors
    /// The first that cannot, and what would be right.
    pub fn check(&self) -> Result<(), SettingsError> {
        let millisecond = Duration::from_millis(1);
        let times = [
            (self.hello, "the hello interval"),
            (self.retransmit, "the first wait for an acknowledgement"),
            (self.origination.second, "the second pause between advertisements"),
            (self.spf.short, "the short delay"),
            (self.spf.holddown, "the hold-down time"),
        ];
        if let Some((_, what)) = times.into_iter().find(|(time, _)| *time < millisecond) {
            return Err(SettingsError::TooShort(what));
        }
        if self.hold <= 2 * self.hello || self.hold > Duration::from_secs(18 * 3600) {
            return Err(SettingsError::Hold);
        }
        if !(60..=u64::from(u16::MAX)).contains(&self.lifetime.as_secs()) {
            return Err(SettingsError::Lifetime);
        }
        if self.message_size < MAX_LSA_LEN + OVERHEAD {
            return Err(SettingsError::MessageSize);
        }
        let numbers = [
            (self.window, "the window"),
            (self.database, "the size of the database"),
            (self.next_hops, "the number of next hops"),
            (self.verifications as usize, "the number of verifications"),
        ];
        match numbers.into_iter().find(|(number, _)| *number == 0) {
            Some((_, what)) => Err(SettingsError::Zero(what)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_if_nothing_is_said_can_be_used() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn each_mistake_is_found() {
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err()
        };
        assert_eq!(with(|s| s.hold = 2 * s.hello), SettingsError::Hold);
        let short = SettingsError::TooShort("the hello interval");
        assert_eq!(with(|s| s.hello = Duration::ZERO), short);
        assert_eq!(with(|s| s.lifetime = Duration::from_secs(1)), SettingsError::Lifetime);
        assert_eq!(with(|s| s.message_size = 1000), SettingsError::MessageSize);
        assert_eq!(with(|s| s.next_hops = 0), SettingsError::Zero("the number of next hops"));
    }
}
