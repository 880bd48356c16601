//! What the program counts.

use weft_base::Reason;
use weft_xip::forward::DropReason;
use weft_xip::offload::Tally;

use crate::layout::DROP_REASONS;

/// The name and the meaning of all counters, in the order of `bpf/xip.bpf.c`. Behind them stand those of packets that
/// were dropped by a decision, by reasons.
pub const COUNTERS: [(&str, &str); 13] = [
    (
        "forwarded",
        "packets handed to the port of a neighbour, where its driver counts those it loses",
    ),
    ("dropped", "packets dropped by a decision"),
    ("passed-others", "passed on: the frame is not to this port's address"),
    ("passed-malformed", "passed on: the header or the edges are malformed"),
    ("passed-miss", "passed on: there is no decision yet"),
    ("passed-sink", "passed on: the address ends at this node"),
    ("passed-hop-limit", "passed on: the hop limit is used up"),
    ("passed-too-big", "passed on: longer than the next link takes"),
    ("passed-no-hop", "passed on: the neighbour or its port is gone"),
    ("passed-reluctant", "passed on: the next link takes no packets from a driver's program"),
    (
        "passed-known",
        "passed on by a decision: to a socket of this node, or by a way that only it has",
    ),
    ("passed-drop", "passed on: dropped by a decision, and the source is to be told"),
    ("limited", "dropped: more than this port may pass on without a decision to do so"),
];

/// How many there are with those of the reasons.
pub(crate) const ALL: usize = COUNTERS.len() + DROP_REASONS as usize;
const FORWARDED: usize = 0;
const LIMITED: usize = COUNTERS.len() - 1;

/// What the counts mean in the counters of the portable engine. What was passed on it counts itself.
pub(crate) fn tally(sums: &[u64]) -> Tally {
    let at = |index: usize| sums.get(index).copied().unwrap_or_default();
    let by_reason = |reason: &DropReason| {
        let limited = if *reason == DropReason::SlowPathFull { at(LIMITED) } else { 0 };
        (*reason, at(COUNTERS.len() + reason.index()) + limited)
    };
    let drops = DropReason::ALL.iter().map(by_reason).filter(|(_, count)| *count > 0);
    Tally { forwarded: at(FORWARDED), drops: drops.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_that_was_not_passed_on_is_counted_once() {
        let mut sums = vec![1; COUNTERS.len()];
        sums[FORWARDED] = 5;
        sums.resize(ALL, 0);
        assert_eq!((COUNTERS[FORWARDED].0, COUNTERS[LIMITED].0), ("forwarded", "limited"));
        sums[COUNTERS.len() + DropReason::Unreachable.index()] = 3;
        let tally = tally(&sums);
        let drops = vec![(DropReason::Unreachable, 3), (DropReason::SlowPathFull, 1)];
        assert_eq!(tally, Tally { forwarded: 5, drops });
        assert_eq!(tally.received(), 9);
        assert_eq!(super::tally(&[]), Tally::default());
    }
}
