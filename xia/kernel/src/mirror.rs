//! From what the portable engine's cache says to what is in the maps.

use weft_base::{LinkAddress, PortId};
use weft_ebpf::{MapShape, MapWrite, Slot};
use weft_xip::offload::{Edges, Engine, Offload, OffloadRoom, Tally};

use crate::layout::{edges, entry, hop_word, key, limit_words};
use crate::{COUNTED, COUNTERS, HOPS, LIMITS, NAME, TableSizes, counters, shapes};

/// Knows what to write. What was written in the order of the changes holds for the next packet.
///
/// Decisions are written in place: a packet meets the old one or the new one. The same holds for
/// neighbours, so that one that moves takes all decisions with it by one write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mirror {
    sizes: TableSizes,
}

impl Mirror {
    /// For tables of these sizes.
    #[must_use]
    pub const fn new(sizes: TableSizes) -> Self {
        Self { sizes }
    }
}

impl Engine for Mirror {
    fn name(&self) -> &'static str {
        NAME
    }

    fn set_memory(&mut self, bytes: usize) {
        self.sizes = TableSizes::of_memory(bytes);
    }

    fn most(&self) -> Vec<u32> {
        self.sizes.decisions.to_vec()
    }

    fn tables(&self) -> Vec<MapShape> {
        shapes(&self.sizes)
    }

    fn room(&self) -> OffloadRoom {
        let decisions = self.sizes.decisions.map(|most| most as usize);
        OffloadRoom { decisions, hops: self.sizes.hops.into() }
    }

    fn write(
        &mut self,
        change: &Offload,
        slot: &dyn Fn(PortId) -> Option<Slot>,
        out: &mut Vec<(usize, MapWrite)>,
    ) {
        match change {
            Offload::Hop { id, hop } => {
                // A neighbour that frames of this engine cannot reach is none: packets to it are passed on.
                let place = hop.and_then(|hop| match hop.link {
                    LinkAddress::Mac(mac) => Some(hop_word(mac, slot(hop.port)?)),
                    _ => None,
                });
                let word = place.unwrap_or_default();
                out.push((HOPS, MapWrite::Store { index: *id, word }));
            }
            Offload::Set { edges, edge, decision } => {
                let (key, value) = (key(edges), entry(*edge, *decision));
                out.push((edges.len() - 1, MapWrite::Set { key, value }));
            }
            Offload::Remove { edges } => {
                out.push((edges.len() - 1, MapWrite::Remove { key: key(edges) }));
            }
            Offload::Limit(limit) => {
                let words = (0..).zip(limit_words(*limit));
                out.extend(words.map(|(index, word)| (LIMITS, MapWrite::Store { index, word })));
            }
            // First the neighbours, which are fast to forget: without them nothing is sent.
            Offload::Clear => {
                out.extend((0..=HOPS).rev().map(|table| (table, MapWrite::Clear)));
            }
        }
    }

    fn edges(&self, table: usize, key: &[u64]) -> Option<Edges> {
        edges(key).filter(|edges| edges.len() == table + 1)
    }

    fn counters(&self) -> (usize, &'static [(&'static str, &'static str)]) {
        (COUNTED, &COUNTERS)
    }

    fn tally(&self, sums: &[u64]) -> Tally {
        counters::tally(sums)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use weft_xip::Xid;
    use weft_xip::forward::SlowPathLimit;
    use weft_xip::offload::Offloaded;
    use weft_xip::principal::NextHop;

    use super::*;

    fn written(change: &Offload) -> Vec<(usize, MapWrite)> {
        let slot = |port: PortId| (port == PortId(3)).then_some(Slot(NonZeroU16::MIN));
        let mut out = Vec::new();
        Mirror::default().write(change, &slot, &mut out);
        out
    }

    #[test]
    fn a_neighbour_is_one_word_and_none_where_frames_do_not_get() {
        let hop =
            |port, link| Offload::Hop { id: 7, hop: Some(NextHop { port: PortId(port), link }) };
        let mac = LinkAddress::Mac([1, 2, 3, 4, 5, 6]);
        let word = u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 1, 0]);
        let store = |word| vec![(HOPS, MapWrite::Store { index: 7, word })];
        assert_eq!(written(&hop(3, mac)), store(word));
        assert_eq!(written(&hop(4, mac)), store(0), "no port of the engine");
        assert_eq!(written(&hop(3, LinkAddress::None)), store(0), "no Ethernet");
        assert_eq!(written(&Offload::Hop { id: 7, hop: None }), store(0));
    }

    #[test]
    fn decisions_go_to_the_table_of_their_number_of_edges() {
        let edges: weft_xip::offload::Edges = [Xid::NAT; 3].into_iter().collect();
        let decision = Offloaded::Forward(9);
        let set = written(&Offload::Set { edges: edges.clone(), edge: 2, decision });
        let [(2, MapWrite::Set { key, value })] = &set[..] else { panic!("{set:?}") };
        assert_eq!(key.len(), 9);
        let [a, b] = 9_u16.to_ne_bytes();
        assert_eq!(value.to_ne_bytes(), [2, 2, a, b]);
        assert_eq!(Mirror::default().edges(2, key), Some(edges.clone()));
        assert_eq!(
            (Mirror::default().edges(1, key), Mirror::default().edges(2, &key[1..])),
            (None, None)
        );
        let removed = written(&Offload::Remove { edges });
        assert_eq!(removed, [(2, MapWrite::Remove { key: key.clone() })]);
        let limit = SlowPathLimit { per_second: 1000, burst: 11 };
        let words = |limit| -> Vec<_> {
            let words = written(&Offload::Limit(limit)).into_iter();
            words
                .map(|(table, write)| match write {
                    MapWrite::Store { index, word } => (table, index, word),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        let expected = [(LIMITS, 0, 1_000_000), (LIMITS, 1, 10_000_000), (LIMITS, 2, 6_000_000)];
        assert_eq!(words(Some(limit)), expected);
        assert_eq!(words(None), [(LIMITS, 0, 0), (LIMITS, 1, 0), (LIMITS, 2, 0)]);
        let cleared: Vec<_> =
            written(&Offload::Clear).into_iter().map(|(table, _)| table).collect();
        assert_eq!(cleared, [4, 3, 2, 1, 0]);
    }
}
