//! What the configuration says of graceful restart.
//!
//! Reference: RFC 4724 §4 (its timers), §3 (how many seconds can be told); RFC 8538 §4.

use std::time::Duration;

use weft_config::{Block, Errors, Keyword};

use crate::fsm::Settings;
use crate::wire::GracefulRestart;

/// In how long this router's process is back, as peers are told.
const RESTART_TIME: Duration = Duration::from_secs(120);
/// The longest that peers can be told: it has twelve bits.
const LONGEST: Duration = Duration::from_secs(0x0FFF);
/// How long routes of a peer that is back may take to be announced again. A full table takes less than a minute.
const STALE_TIME: Duration = Duration::from_secs(360);
/// How long peers may take to announce what they have after our restart.
const DEFERRAL_TIME: Duration = Duration::from_secs(120);

/// In which roles a speaker takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It asks peers to keep its routes, and keeps theirs.
    Both,
    /// It keeps theirs.
    Helper,
    Off,
}

impl Keyword for Mode {
    const WHAT: &'static str = "a role in graceful restart";
    const ALL: &'static [(&'static str, Self)] =
        &[("both", Self::Both), ("helper", Self::Helper), ("off", Self::Off)];
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Graceful {
    pub(crate) mode: Mode,
    pub(crate) restart_time: Duration,
    pub(crate) stale_time: Duration,
    pub(crate) deferral_time: Duration,
}

impl Default for Graceful {
    fn default() -> Self {
        Self {
            mode: Mode::Both,
            restart_time: RESTART_TIME,
            stale_time: STALE_TIME,
            deferral_time: DEFERRAL_TIME,
        }
    }
}

/// What this process says of itself at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// It has restarted, and has not heard everything again (bit R).
    pub(crate) has_restarted: bool,
    /// Packets are forwarded by what an earlier session or process has told (bit F).
    pub(crate) forwards: bool,
}

impl Graceful {
    /// Reads the block `graceful-restart`.
    pub(super) fn read(block: &mut Block<'_>) -> Result<Self, Errors> {
        let Some(entry) = block.one("graceful-restart")? else { return Ok(Self::default()) };
        entry.read_block(|block| {
            let restart_time = match block.one("restart-time")? {
                None => RESTART_TIME,
                Some(mut entry) => {
                    let time: Duration = entry.argument("the restart time")?;
                    entry.end()?;
                    if time > LONGEST || time.subsec_nanos() > 0 {
                        let sentence = "peers can be told of 0s to 4095s, in whole seconds";
                        return Err(entry.error_at(1, sentence).into());
                    }
                    time
                }
            };
            Ok(Self {
                mode: block.leaf("mode")?.unwrap_or(Mode::Both),
                restart_time,
                stale_time: block.leaf("stale-time")?.unwrap_or(STALE_TIME),
                deferral_time: block.leaf("deferral-time")?.unwrap_or(DEFERRAL_TIME),
            })
        })
    }

    /// What a peer is told in the OPEN; nothing if this speaker takes no part.
    pub(crate) fn capability(
        &self,
        mode: Option<Mode>,
        settings: &Settings,
        standing: Standing,
    ) -> Option<GracefulRestart> {
        let mode = mode.unwrap_or(self.mode);
        let families = settings.families.iter().map(|family| (family, standing.forwards));
        Some(GracefulRestart {
            restarted: standing.has_restarted && mode == Mode::Both,
            notification: true,
            // The configuration allows no more than fits.
            time: u16::try_from(self.restart_time.as_secs()).unwrap_or(u16::MAX),
            families: if mode == Mode::Both { families.collect() } else { Vec::new() },
        })
        .filter(|_| mode != Mode::Off)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn graceful(words: &str) -> Result<Graceful, String> {
        let text = format!(
            "bgp {{ as 1; router-id 192.0.2.1; graceful-restart {{ {words} }} peer 192.0.2.2 {{ as 2; graceful-restart helper; }} }}"
        );
        let config = read("t", &text).map_err(|errors| errors.to_string())?.unwrap();
        let peer = config.peers.values().next().unwrap();
        assert_eq!(peer.graceful, Some(Mode::Helper));
        Ok(config.graceful)
    }

    #[test]
    fn times_are_read_and_must_fit() {
        assert_eq!(graceful(""), Ok(Graceful::default()));
        let own = graceful("mode off; restart-time 4095s; stale-time 1s; deferral-time 2s;");
        let [one, two] = [1, 2].map(Duration::from_secs);
        let (mode, restart_time) = (Mode::Off, LONGEST);
        assert_eq!(own, Ok(Graceful { mode, restart_time, stale_time: one, deferral_time: two }));
        for wrong in ["restart-time 4096s;", "restart-time 1500ms;"] {
            let error = graceful(wrong).unwrap_err();
            assert!(error.contains("0s to 4095s") && error.contains("t:1:"), "{error}");
        }
        assert!(graceful("mode on;").unwrap_err().contains("helper"));
    }
}
