//! Packets that come back: what keeps a cycle of links in a zFilter from multiplying them.
//!
//! A filter may hold links that form a cycle, by mistake, by malice, or because of a false positive.
//! If nodes on it branch, every round makes more copies than the one before, and the hop limit ends
//! that far too late. LIPSIN remembers packets that may loop (Jokela et al., SIGCOMM 2009, §3.3.3);
//! here a node remembers those that it has branched lately, with their hop limits. A packet that
//! comes back has fewer hops left than before. One that is sent again, with the same content, does
//! not, because it came the same way.

use std::time::Duration;

use weft_base::Instant;

use super::trace::PacketId;

/// How long a packet is remembered: longer than it may travel.
const MEMORY: Duration = Duration::from_secs(10);
/// Packets remembered, a power of two. Newer ones take the places of older ones.
const PLACES: usize = 8192;

/// The packets that were branched lately.
#[derive(Debug, Default)]
pub(super) struct LoopMemory {
    /// Empty until the first packet branches; most nodes never see one.
    places: Vec<Option<Branched>>,
}

#[derive(Clone, Copy, Debug)]
struct Branched {
    packet: PacketId,
    hop_limit: u8,
    time: Instant,
}

impl LoopMemory {
    /// Whether a packet may branch: it has not done so before with more hops left.
    pub(super) fn admits(&mut self, now: Instant, packet: PacketId, hop_limit: u8) -> bool {
        if self.places.is_empty() {
            self.places = vec![None; PLACES];
        }
        let place = &mut self.places[packet.0 as usize % PLACES];
        let returned = place.is_some_and(|before| {
            before.packet == packet
                && before.hop_limit > hop_limit
                && now.since(before.time) < MEMORY
        });
        if !returned {
            *place = Some(Branched { packet, hop_limit, time: now });
        }
        !returned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: PacketId = PacketId(7);

    #[test]
    fn what_comes_back_with_fewer_hops_is_refused_and_what_is_sent_again_is_not() {
        let mut memory = LoopMemory::default();
        let now = Instant::ZERO;
        assert!(memory.admits(now, PACKET, 20));
        assert!(memory.admits(now, PACKET, 20));
        assert!(!memory.admits(now, PACKET, 18));
        assert!(!memory.admits(now, PACKET, 16));
        assert!(memory.admits(now, PacketId(8), 16));
        assert!(memory.admits(now, PACKET, 21));
    }

    #[test]
    fn a_packet_is_forgotten_with_time() {
        let mut memory = LoopMemory::default();
        assert!(memory.admits(Instant::ZERO, PACKET, 20));
        assert!(!memory.admits(Instant::ZERO + MEMORY / 2, PACKET, 10));
        // Being refused does not refresh the memory.
        assert!(memory.admits(Instant::ZERO + MEMORY, PACKET, 10));
    }
}
