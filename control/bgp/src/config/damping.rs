//! What the configuration says of route flap damping.
//!
//! Reference: RFC 2439 §4.2 (what can be said); RFC 7196 (the usual values, and a threshold of no less than 6000).

use std::time::Duration;

use weft_config::{Block, Errors};

use crate::damping::Penalty;
use crate::wire::Neighbour;

/// With more points than these a route is not used. RFC 7196: with fewer, routes are damped that only converge.
const SUPPRESS: u32 = 6000;
/// With fewer it is used again.
const REUSE: u32 = 750;
const HALF_LIFE: Duration = Duration::from_secs(15 * 60);
const MAX_SUPPRESS: Duration = Duration::from_secs(60 * 60);
/// The shortest and the longest half-life: those of others, too.
const HALF_LIVES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(45 * 60)];
/// The longest that a route that is still may be without use.
const LONGEST: Duration = Duration::from_secs(255 * 60);

/// How the routes of a peer are damped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damping {
    /// With more points a route is not used.
    pub(crate) suppress: u32,
    /// With fewer it is used again.
    pub(crate) reuse: u32,
    /// In which a route that does not change has half of its points.
    pub(crate) half_life: Duration,
    /// How long a route that does not change may be without use at most.
    pub(crate) max_suppress: Duration,
}

impl Default for Damping {
    fn default() -> Self {
        Self { suppress: SUPPRESS, reuse: REUSE, half_life: HALF_LIFE, max_suppress: MAX_SUPPRESS }
    }
}

impl Damping {
    /// Reads the block `damping`; none if it is not there.
    pub(super) fn read(block: &mut Block<'_>) -> Result<Option<Self>, Errors> {
        let Some(entry) = block.one("damping")? else { return Ok(None) };
        let damping = entry.read_block(|block| {
            let points = 1..=Penalty::MOST - 1;
            Ok(Self {
                suppress: block.leaf_in("suppress", points.clone())?.unwrap_or(SUPPRESS),
                reuse: block.leaf_in("reuse", points)?.unwrap_or(REUSE),
                half_life: time(block, "half-life", HALF_LIVES)?.unwrap_or(HALF_LIFE),
                max_suppress: time(block, "max-suppress", [HALF_LIVES[0], LONGEST])?
                    .unwrap_or(MAX_SUPPRESS),
            })
        })?;
        if damping.reuse >= damping.suppress {
            let sentence = format!(
                "a route is not used with more than {} points and used again with less than {}: the former must be the higher",
                damping.suppress, damping.reuse
            );
            return Err(entry.error(sentence).into());
        }
        Ok(Some(damping))
    }

    /// How routes of a peer are damped; `own` is what is said for all peers in other systems.
    pub(super) fn of_peer(
        block: &mut Block<'_>,
        own: Option<Self>,
        neighbour: Neighbour,
    ) -> Result<Option<Self>, Errors> {
        let Some(mut entry) = block.one("damping")? else {
            return Ok(own.filter(|_| neighbour == Neighbour::External));
        };
        let is_on: bool = entry.argument("on or off")?;
        entry.end()?;
        if is_on && neighbour != Neighbour::External {
            let sentence = "only routes of other systems are damped: leave this out, or mend `as`";
            return Err(entry.error_at(1, sentence).into());
        }
        Ok(is_on.then(|| own.unwrap_or_default()))
    }
}

fn time(
    block: &mut Block<'_>,
    name: &str,
    [least, most]: [Duration; 2],
) -> Result<Option<Duration>, Errors> {
    let Some(mut entry) = block.one(name)? else { return Ok(None) };
    let time: Duration = entry.argument("a time")?;
    entry.end()?;
    if time < least || time > most {
        let minutes = |time: Duration| time.as_secs() / 60;
        let sentence = format!("this is {}min to {}min", minutes(least), minutes(most));
        return Err(entry.error_at(1, sentence).into());
    }
    Ok(Some(time))
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    /// What counts for an external peer and an internal one that say this.
    fn damping(own: &str, of: [&str; 2]) -> Result<[Option<Damping>; 2], String> {
        let [external, internal] = of;
        let text = format!(
            "bgp {{ as 1; router-id 192.0.2.1; {own} peer 192.0.2.2 {{ as 2; {external} }} peer 192.0.2.3 {{ as 1; {internal} }} }}"
        );
        let config = read("t", &text).map_err(|errors| errors.to_string())?.unwrap();
        let mut peers = config.peers.into_values().map(|peer| peer.damping);
        Ok([(); 2].map(|()| peers.next().unwrap()))
    }

    #[test]
    fn routes_of_other_systems_are_damped_if_that_is_said() {
        let default = Some(Damping::default());
        assert_eq!(damping("", ["", ""]), Ok([None, None]));
        assert_eq!(damping("damping;", ["", ""]), Ok([default, None]));
        assert_eq!(damping("damping;", ["damping off;", ""]), Ok([None, None]));
        assert_eq!(damping("", ["damping on;", "damping off;"]), Ok([default, None]));
        let values = "damping { suppress 12000; reuse 1000; half-life 1min; max-suppress 2min; }";
        let [half_life, max_suppress] = [60, 120].map(Duration::from_secs);
        let other = Some(Damping { suppress: 12_000, reuse: 1000, half_life, max_suppress });
        assert_eq!(damping(values, ["damping on;", ""]), Ok([other, None]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (own, of, says) in [
            ("damping { suppress 750; }", "", "must be the higher"),
            ("damping { suppress 50000; }", "", "49999"),
            ("damping { half-life 30s; }", "", "1min to 45min"),
            ("damping { max-suppress 300min; }", "", "1min to 255min"),
            ("", "damping on;", "only routes of other systems"),
        ] {
            let error = damping(own, ["", of]).unwrap_err();
            assert!(error.contains(says) && error.contains("t:1:"), "{error}");
        }
    }
}
