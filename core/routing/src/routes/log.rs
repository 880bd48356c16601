//! Which destinations have changed, in order of urgency and time.
//!
//! Reference: Handley et al. (XORP), §5.1.1: one queue of changes with n readers instead of n queues.
//!
//! The queue has lanes: a route that was just told does not wait behind a million that go because a peering went down.
//! Every destination stands in one lane at most, so nothing that is said of it can overtake something else.

use std::collections::VecDeque;

/// How urgent it is that readers hear of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// A route was told, and one is best: packets may wait for it.
    New,
    /// A route was taken back, and none is left.
    Gone,
    /// The background walk has found it.
    Background,
}

impl Urgency {
    pub(super) const ALL: [Self; 3] = [Self::New, Self::Gone, Self::Background];
}

/// What is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The best route, and others perhaps.
    Best,
    /// Others than the best.
    Others,
}

/// How far somebody has come: the next place in each lane.
pub(super) type Places = [u64; Urgency::ALL.len()];

/// Where the log tells of a destination's last change: the lane, and below it the low bits of the place. The log is
/// never so long that they are ambiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(u32);

/// How many bits of a mark are the place's.
const PLACE_BITS: u32 = 30;
const PLACE: u32 = (1 << PLACE_BITS) - 1;

impl Mark {
    fn new(urgency: Urgency, place: u64) -> Self {
        Self((urgency as u32) << PLACE_BITS | place as u32 & PLACE)
    }

    fn urgency(self) -> Urgency {
        match self.0 >> PLACE_BITS {
            0 => Urgency::New,
            1 => Urgency::Gone,
            _ => Urgency::Background,
        }
    }
}

/// What readers find in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) number: u32,
    pub(super) scope: Scope,
    /// The mark that the destination has if this counts.
    pub(super) mark: Mark,
}

/// The bit of an entry that says that the best route is the same.
const OTHERS: u32 = 1 << 31;

/// Numbers of destinations, in lanes. An entry counts if it is the one that the mark of its destination names; others
/// are older changes of destinations that changed again.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    lanes: [Lane; Urgency::ALL.len()],
}

#[derive(Clone, Debug, Default)]
struct Lane {
    /// Numbers, and [`OTHERS`].
    entries: VecDeque<u32>,
    /// The place of the first entry.
    begin: u64,
}

impl Lane {
    /// The place behind the last.
    fn end(&self) -> u64 {
        self.begin + self.entries.len() as u64
    }

    fn at(&self, place: u64) -> Option<(u32, Scope)> {
        // The difference is below the number of entries, or there is nothing.
        let behind = place.checked_sub(self.begin)?;
        self.entries.get(usize::try_from(behind).ok()?).copied().map(split)
    }
}

fn split(entry: u32) -> (u32, Scope) {
    (entry & !OTHERS, if entry & OTHERS > 0 { Scope::Others } else { Scope::Best })
}

impl Log {
    fn lane(&self, urgency: Urgency) -> &Lane {
        &self.lanes[urgency as usize]
    }

    fn lane_mut(&mut self, urgency: Urgency) -> &mut Lane {
        &mut self.lanes[urgency as usize]
    }

    /// The places behind the last entries.
    pub(super) fn ends(&self) -> Places {
        self.lanes.each_ref().map(Lane::end)
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.entries.len()).sum()
    }

    /// How many entries stand at these places and behind.
    pub(super) fn behind(&self, places: &Places) -> usize {
        let lanes = self.lanes.iter().zip(places);
        // There are no more than entries in the log.
        lanes.map(|(lane, place)| (lane.end() - place) as usize).sum()
    }

    /// How many entries of a lane stand at its place and behind.
    pub(super) fn behind_in(&self, urgency: Urgency, places: &Places) -> usize {
        (self.lane(urgency).end() - places[urgency as usize]) as usize
    }

    /// The entry at a place that is not before the first; none behind the last.
    pub(super) fn at(&self, urgency: Urgency, place: u64) -> Option<Entry> {
        let (number, scope) = self.lane(urgency).at(place)?;
        Some(Entry { number, scope, mark: Mark::new(urgency, place) })
    }

    /// In which lane the entry of this mark stands, if it is the destination's with this number and not before the place
    /// of `from` in its lane, and what it says.
    pub(super) fn find(&self, mark: Mark, number: u32, from: &Places) -> Option<(Urgency, Scope)> {
        let urgency = mark.urgency();
        let lane = self.lane(urgency);
        let place = lane.begin + u64::from(mark.0.wrapping_sub(lane.begin as u32) & PLACE);
        let (entry, scope) = lane.at(place)?;
        (entry == number && place >= from[urgency as usize]).then_some((urgency, scope))
    }

    /// Appends. Numbers have 31 bits.
    pub(super) fn push(&mut self, urgency: Urgency, number: u32, scope: Scope) -> Mark {
        let lane = self.lane_mut(urgency);
        lane.entries.push_back(if scope == Scope::Others { number | OTHERS } else { number });
        Mark::new(urgency, lane.end() - 1)
    }

    /// Takes the first entry of a lane away if it stands before this place.
    pub(super) fn pop_before(&mut self, urgency: Urgency, place: u64) -> Option<(u32, Mark)> {
        let lane = self.lane_mut(urgency);
        if lane.begin >= place {
            return None;
        }
        let (number, _) = split(lane.entries.pop_front()?);
        lane.begin += 1;
        Some((number, Mark::new(urgency, lane.begin - 1)))
    }

    /// Keeps only the entries of a lane for which this is true; it is told the place of each, its number, its mark, and
    /// the place and mark that it would have. The first place stays.
    pub(super) fn retain(
        &mut self,
        urgency: Urgency,
        mut keep: impl FnMut(u64, u32, Mark, (u64, Mark)) -> bool,
    ) {
        let lane = self.lane_mut(urgency);
        let (mut old, mut new) = (lane.begin, lane.begin);
        lane.entries.retain(|entry| {
            let mark = |place| Mark::new(urgency, place);
            let kept = keep(old, split(*entry).0, mark(old), (new, mark(new)));
            old += 1;
            new += u64::from(kept);
            kept
        });
    }

    /// Gives back memory that is not needed any more.
    pub(super) fn shrink(&mut self) {
        for lane in &mut self.lanes {
            if lane.entries.capacity() > 4 * lane.entries.len() + 4096 {
                lane.entries.shrink_to(2 * lane.entries.len());
            }
        }
    }
}
