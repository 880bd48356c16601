//! How many routes of each source are accepted, counted as they come and go, so that nobody has to walk a table for it.

use weft_routing::OriginId;
use weft_routing::ip::Version;

use super::{Path, Routes};

/// By the numbers of sources, and by version of IP.
#[derive(Debug, Default)]
pub(super) struct AcceptedCounts(Vec<[usize; Version::ALL.len()]>);

impl AcceptedCounts {
    /// A path of a source has become another one, is new, or is gone.
    pub(super) fn changed(
        &mut self,
        version: Version,
        origin: OriginId,
        before: Option<Path>,
        now: Option<Path>,
    ) {
        let is_accepted = |path: Option<Path>| path.is_some_and(|path| path.is_accepted());
        let (was, is) = (is_accepted(before), is_accepted(now));
        if was == is {
            return;
        }
        let place = usize::from(origin.0);
        if place >= self.0.len() {
            self.0.resize(place + 1, [0; Version::ALL.len()]);
        }
        let count = &mut self.0[place][version as usize];
        // What goes has come before.
        *count = if is { *count + 1 } else { count.saturating_sub(1) };
    }
}

impl Routes {
    /// How many of the paths that a source has announced are accepted.
    pub(crate) fn accepted_of(&self, version: Version, origin: OriginId) -> usize {
        let counts = self.accepted.0.get(usize::from(origin.0));
        counts.map_or(0, |counts| counts[version as usize])
    }
}
