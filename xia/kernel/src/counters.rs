//! What the program counts.

/// One counter of the program: its name, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its name in reports.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
}

const fn counted(name: &'static str, help: &'static str) -> Counted {
    Counted { name, help }
}

/// All counters, in the order of `bpf/xip.bpf.c`.
pub const COUNTERS: [Counted; 10] = [
    counted("forwarded", "packets sent to a neighbour"),
    counted("dropped", "packets dropped by a decision"),
    counted("passed-others", "passed on: the frame is not to this port's address"),
    counted("passed-malformed", "passed on: the header or the edges are malformed"),
    counted("passed-miss", "passed on: there is no decision yet"),
    counted("passed-sink", "passed on: the address ends at this node"),
    counted("passed-hop-limit", "passed on: the hop limit is used up"),
    counted("passed-too-big", "passed on: longer than the next link takes"),
    counted("passed-no-hop", "passed on: the neighbour or its port is gone"),
    counted("limited", "dropped: more than this port may pass on"),
];
