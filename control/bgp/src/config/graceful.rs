//! What the configuration says of graceful restart.
//!
//! Reference: RFC 4724 §4 (its timers), §3 (how many seconds can be told); RFC 8538 §4; RFC 9494 §3.1 (the same of the long
//! one), §4.2 (what they tell can be reduced), §4.6 (neighbours that do not know it).

use std::time::Duration;

use weft_config::{Block, Entry, Errors, Keyword};
use weft_routing::ip::Version;

use super::Named;
use crate::fsm::Settings;
use crate::incoming::{family, version};
use crate::wire::{GracefulRestart, LongLived};

/// In how long this router's process is back, as peers are told.
const RESTART_TIME: Duration = Duration::from_secs(120);
/// The longest that peers can be told: it has twelve bits.
const LONGEST: Duration = Duration::from_secs(0x0FFF);
/// How long routes of a peer that is back may take to be announced again. A full table takes less than a minute.
const STALE_TIME: Duration = Duration::from_secs(360);
/// How long peers may take to announce what they have after our restart.
const DEFERRAL_TIME: Duration = Duration::from_secs(120);

/// For how long peers keep our routes behind that time, as they are told, if they do.
const LONG_LIVED_TIME: Duration = Duration::from_secs(24 * 3600);
/// The longest that peers can be told of the long one: it has 24 bits.
const LONGEST_LIVED: Duration = Duration::from_secs(0x00FF_FFFF);

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
    /// In which families routes are kept for a long time, of IPv4 and of IPv6.
    pub(crate) long_lived: [Option<LongTime>; Version::ALL.len()],
    /// Routers of this system that do not know it are told of such routes, too.
    pub(crate) long_lived_partial: bool,
}

/// How long routes of a family are kept when that of graceful restart is over (RFC 9494).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongTime {
    /// Ours by peers, as they are told; zero if they are not asked to.
    pub(crate) stale_time: Duration,
    /// Theirs by us at most.
    pub(crate) limit: Duration,
}

impl Default for Graceful {
    fn default() -> Self {
        Self {
            mode: Mode::Both,
            restart_time: RESTART_TIME,
            stale_time: STALE_TIME,
            deferral_time: DEFERRAL_TIME,
            long_lived: [None; Version::ALL.len()],
            long_lived_partial: false,
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
                Some(entry) => time(entry, "the restart time", LONGEST)?,
            };
            let mut long_lived = [None; Version::ALL.len()];
            for mut entry in block.many("long-lived") {
                let named: Named = entry.argument("the family")?;
                let read = LongTime::read(&entry)?;
                // Families that have a name have a table.
                let Some(version) = version(named.0) else { continue };
                if long_lived[version as usize].replace(read).is_some() {
                    let sentence = "this family was described before: put both together";
                    return Err(entry.error_at(1, sentence).into());
                }
            }
            Ok(Self {
                mode: block.leaf("mode")?.unwrap_or(Mode::Both),
                restart_time,
                stale_time: block.leaf("stale-time")?.unwrap_or(STALE_TIME),
                deferral_time: block.leaf("deferral-time")?.unwrap_or(DEFERRAL_TIME),
                long_lived,
                long_lived_partial: block.leaf("long-lived-partial")?.unwrap_or(false),
            })
        })
    }

    /// In which role this speaker is to a peer that is configured so.
    fn mode(&self, mode: Option<Mode>) -> Mode {
        mode.unwrap_or(self.mode)
    }

    /// Whether a peer that is configured so is told that routes may live long.
    pub(crate) fn is_long_lived(&self, mode: Option<Mode>) -> bool {
        self.mode(mode) != Mode::Off && self.long_lived.iter().any(Option::is_some)
    }

    /// What a peer is told of that in the OPEN; nothing if routes of no family do.
    pub(crate) fn long_lived(
        &self,
        mode: Option<Mode>,
        settings: &Settings,
        standing: Standing,
    ) -> Option<Vec<LongLived>> {
        let families = Version::ALL.into_iter().filter_map(|version| {
            let (time, family) = (self.long_lived[version as usize]?.stale_time, family(version));
            // The configuration allows no more than fits.
            let stale_time = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
            let is_told = stale_time > 0 && settings.families.contains(family);
            let forwarding = standing.forwards;
            is_told.then_some(LongLived { family, forwarding, stale_time })
        });
        let asks = self.mode(mode) == Mode::Both;
        self.is_long_lived(mode).then(|| families.filter(|_| asks).collect())
    }

    /// What a peer is told in the OPEN; nothing if this speaker takes no part.
    pub(crate) fn capability(
        &self,
        mode: Option<Mode>,
        settings: &Settings,
        standing: Standing,
    ) -> Option<GracefulRestart> {
        let mode = self.mode(mode);
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

impl LongTime {
    fn read(entry: &Entry<'_>) -> Result<Self, Errors> {
        entry.read_block(|block| {
            let stale_time = match block.one("stale-time")? {
                None => LONG_LIVED_TIME,
                Some(entry) => time(entry, "the stale time", LONGEST_LIVED)?,
            };
            let limit = block.leaf("limit")?.unwrap_or(LONGEST_LIVED);
            Ok(Self { stale_time, limit })
        })
    }
}

/// A time of which peers can be told.
fn time(mut entry: Entry<'_>, what: &str, longest: Duration) -> Result<Duration, Errors> {
    let time: Duration = entry.argument(what)?;
    entry.end()?;
    if time > longest || time.subsec_nanos() > 0 {
        let longest = longest.as_secs();
        let sentence = format!("peers can be told of 0s to {longest}s, in whole seconds");
        return Err(entry.error_at(1, sentence).into());
    }
    Ok(time)
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
        let (stale_time, deferral_time, before) = (one, two, Graceful::default());
        let expected = Graceful { mode, restart_time, stale_time, deferral_time, ..before };
        assert_eq!(own, Ok(expected));
        for wrong in ["restart-time 4096s;", "restart-time 1500ms;"] {
            let error = graceful(wrong).unwrap_err();
            assert!(error.contains("0s to 4095s") && error.contains("t:1:"), "{error}");
        }
        assert!(graceful("mode on;").unwrap_err().contains("helper"));
    }

    #[test]
    fn routes_live_long_in_families_that_are_named() {
        let one = graceful("long-lived ipv6-unicast; long-lived-partial on;").unwrap();
        let default = LongTime { stale_time: LONG_LIVED_TIME, limit: LONGEST_LIVED };
        assert_eq!(
            (one.long_lived, one.long_lived_partial),
            ([None, Some(default), None, None], true)
        );
        let words = "long-lived ipv4-unicast { stale-time 0s; limit 1h; } long-lived ipv6-unicast { stale-time 16777215s; }";
        let both = graceful(words).unwrap();
        let [Some(v4), Some(v6), None, None] = both.long_lived else { panic!("{both:?}") };
        assert_eq!((v4.stale_time, v4.limit), (Duration::ZERO, Duration::from_secs(3600)));
        assert_eq!((v6.stale_time, v6.limit), (LONGEST_LIVED, LONGEST_LIVED));
        for (wrong, says) in [
            ("long-lived ipv4-unicast { stale-time 16777216s; }", "0s to 16777215s"),
            ("long-lived ipv4-unicast { stale-time 1500ms; }", "whole seconds"),
            ("long-lived ipv4-unicast; long-lived ipv4-unicast;", "described before"),
            ("long-lived ipv4-vpn;", "ipv4-unicast"),
        ] {
            let error = graceful(wrong).unwrap_err();
            assert!(error.contains(says) && error.contains("t:1:"), "{error}");
        }
    }

    /// RFC 9494 §3.1: who only keeps others' routes lists no families, and who takes no part says nothing.
    #[test]
    fn peers_are_told_of_families_whose_routes_live_long() {
        use crate::fsm::PeerAs;
        use crate::wire::{Families, Family};
        let words = "long-lived ipv4-unicast { stale-time 10s; } long-lived ipv6-unicast { stale-time 0s; }";
        let own = graceful(words).unwrap();
        let families = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
        let router_id = std::net::Ipv4Addr::new(192, 0, 2, 1);
        let settings = Settings { families, ..Settings::new(1, router_id, PeerAs::Exactly(2)) };
        let standing = Standing { has_restarted: true, forwards: true };
        let told = LongLived { family: Family::IPV4_UNICAST, forwarding: true, stale_time: 10 };
        assert_eq!(own.long_lived(None, &settings, standing), Some(vec![told]));
        assert_eq!(own.long_lived(Some(Mode::Helper), &settings, standing), Some(Vec::new()));
        assert_eq!(own.long_lived(Some(Mode::Off), &settings, standing), None);
        assert_eq!(Graceful::default().long_lived(None, &settings, standing), None);
    }
}
