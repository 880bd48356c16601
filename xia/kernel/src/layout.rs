//! The bytes in the maps, as `bpf/xip.bpf.c` has them.

use weft_base::Reason;
use weft_ebpf::{Slot, mac_word};
use weft_xip::Xid;
use weft_xip::forward::{DropReason, SlowPathLimit};
use weft_xip::numbers::MAX_FAN_OUT;
use weft_xip::offload::{Edges, Offloaded};
use weft_xip::xid::XID_LEN;

/// Bytes of an element of `hops`.
pub(crate) const HOP_LEN: usize = 8;

/// Reasons that the program can tell apart.
pub(crate) const DROP_REASONS: u16 = 32;
const _: () = assert!(DropReason::ALL.len() <= DROP_REASONS as usize);

const THROUGH: u8 = 1;
const FORWARD: u8 = 2;
const DROP: u8 = 3;
const PASS: u8 = 4;
const REPORT: u8 = 5;

/// `union entry` of a decision about an edge, 0 to 3.
pub(crate) fn entry(edge: u8, decision: Offloaded) -> u32 {
    let (decision, hop) = match decision {
        Offloaded::Through => (THROUGH, 0),
        // There are no others: `OffloadRoom`.
        Offloaded::Forward(hop) => u16::try_from(hop).map_or((PASS, 0), |hop| (FORWARD, hop)),
        Offloaded::Drop(reason) => (DROP, reason.index() as u16 & (DROP_REASONS - 1)),
        Offloaded::Pass => (PASS, 0),
        Offloaded::Report => (REPORT, 0),
    };
    let [a, b] = hop.to_ne_bytes();
    u32::from_ne_bytes([decision, edge, a, b])
}

/// The key of a sequence of one to four edges: the XIDs that they lead to, as in packets.
pub(crate) fn key(edges: &[Xid]) -> Vec<u64> {
    let words = |xid: &Xid| {
        let bytes = xid.to_bytes();
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        [word(0), word(8), word(16)]
    };
    edges.iter().flat_map(words).collect()
}

/// The edges whose key this is; `None` if it is none.
pub(crate) fn edges(key: &[u64]) -> Option<Edges> {
    let (xids, []) = key.as_chunks::<3>() else { return None };
    let xid = |words: &[u64; 3]| {
        let mut bytes = [0; XID_LEN];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_ne_bytes();
        }
        Xid::from_bytes(&bytes)
    };
    (1..=MAX_FAN_OUT).contains(&xids.len()).then(|| xids.iter().map(xid).collect())
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
