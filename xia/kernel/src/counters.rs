//! What the program counts.

/// The name and the meaning of all counters, in the order of `bpf/xip.bpf.c`.
pub const COUNTERS: [(&str, &str); 13] = [
    ("forwarded", "packets sent to a neighbour"),
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
