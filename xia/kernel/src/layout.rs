//! The bytes in the maps, as `bpf/xip.bpf.c` has them.

use weft_ebpf::{Slot, mac_word};
use weft_xip::Xid;
use weft_xip::forward::SlowPathLimit;
use weft_xip::offload::Offloaded;
use weft_xip::xid::XID_LEN;

/// Bytes of `struct entry`.
pub(crate) const ENTRY_LEN: usize = 8;
/// Bytes of an element of `hops`.
pub(crate) const HOP_LEN: usize = 8;

const THROUGH: u8 = 1;
const FORWARD: u8 = 2;
const DROP: u8 = 3;
const PASS: u8 = 4;
const REPORT: u8 = 5;

/// `struct entry` of a decision about an edge, 0 to 3.
pub(crate) fn entry(edge: u8, decision: Offloaded) -> [u8; ENTRY_LEN] {
    let (decision, argument) = match decision {
        Offloaded::Through => (THROUGH, 0),
        Offloaded::Forward(hop) => (FORWARD, hop),
        Offloaded::Drop => (DROP, 0),
        Offloaded::Pass => (PASS, 0),
        Offloaded::Report => (REPORT, 0),
    };
    let [a, b, c, d] = argument.to_ne_bytes();
    [decision, edge, 0, 0, a, b, c, d]
}

/// The key of a sequence of one to four edges: the XIDs that they lead to, as in packets.
pub(crate) fn key(edges: &[Xid]) -> Vec<u8> {
    edges.iter().flat_map(Xid::to_bytes).collect()
}

/// Bytes of the key of a sequence of this many edges.
pub(crate) const fn key_len(edges: usize) -> usize {
    edges * XID_LEN
}

/// The elements of `limits`: nanoseconds between two packets, zero if there is no limit; how far ahead of their time
/// packets may come; and how far the first one after a time of saving.
pub(crate) fn limit_words(limit: Option<SlowPathLimit>) -> [u64; 3] {
    let Some(limit) = limit else { return [0; 3] };
    let interval = (1_000_000_000 / u64::from(limit.per_second.max(1))).max(1);
    let of = |packets: u32| interval.saturating_mul(u64::from(packets.saturating_sub(1)));
    let burst = of(limit.burst);
    [interval, burst, burst.saturating_sub(of(limit.together()))]
}

/// An element of `hops`.
pub(crate) fn hop_word(mac: [u8; 6], slot: Slot) -> u64 {
    mac_word(mac) | u64::from(slot.0.get()) << 48
}
