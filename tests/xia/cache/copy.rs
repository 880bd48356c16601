//! An engine elsewhere, as it would be if it did what it is told and nothing else.

use std::collections::BTreeMap;

use weft_xip::Xid;
use weft_xip::forward::{Decision, SlowPathLimit};
use weft_xip::offload::{Edges, Offload, OffloadRoom, Offloaded};
use weft_xip::principal::NextHop;

/// Small enough to be full now and then.
const ROOM: OffloadRoom = OffloadRoom { decisions: [5, 6, 6, 5], hops: 3 };

#[derive(Debug, Default)]
pub(super) struct Copy {
    hops: BTreeMap<u32, NextHop>,
    limit: Option<SlowPathLimit>,
    decisions: BTreeMap<Vec<Xid>, (u8, Offloaded)>,
    /// Decisions that were told, over all.
    pub(super) told: u64,
}

impl Copy {
    pub(super) fn room() -> OffloadRoom {
        ROOM
    }

    /// Does what it is told. The edges of a decision for which there is no place, although there is room: `is_crowded`
    /// says that there is none for new ones now.
    pub(super) fn apply(&mut self, change: Offload, is_crowded: bool) -> Option<Edges> {
        match change {
            Offload::Clear => {
                self.hops.clear();
                self.decisions.clear();
            }
            Offload::Limit(limit) => self.limit = limit,
            Offload::Hop { id, hop } => {
                assert!((id as usize) < ROOM.hops);
                match hop {
                    Some(hop) => self.hops.insert(id, hop),
                    None => self.hops.remove(&id),
                };
            }
            Offload::Set { edges, .. } if is_crowded && !self.has(&edges) => return Some(edges),
            Offload::Set { edges, edge, decision } => {
                self.told += 1;
                self.decisions.insert(edges.to_vec(), (edge, decision));
            }
            Offload::Remove { edges } => drop(self.decisions.remove(&edges[..])),
        }
        for edges in 1..=ROOM.decisions.len() {
            let count = self.decisions.keys().filter(|xids| xids.len() == edges).count();
            assert!(count <= ROOM.decisions[edges - 1], "{count} decisions about {edges} edges");
        }
        None
    }

    /// Whether it knows a neighbour.
    pub(super) fn knows(&self, hop: &NextHop) -> bool {
        self.hops.values().any(|known| known == hop)
    }

    pub(super) fn len(&self) -> usize {
        self.decisions.len()
    }

    pub(super) fn has(&self, edges: &[Xid]) -> bool {
        self.decisions.contains_key(edges)
    }

    /// What it would do: the edges, the decision and the edge that it is about; no decision if it would pass packets
    /// on.
    pub(super) fn decisions(&self) -> impl Iterator<Item = (&[Xid], Option<Decision>, u8)> {
        self.decisions.iter().map(|(edges, (edge, decision))| {
            let decision = match decision {
                Offloaded::Through => Decision::Through,
                Offloaded::Forward(hop) => {
                    let known = self.hops.get(hop);
                    Decision::Forward(*known.unwrap_or_else(|| panic!("there is no hop {hop}")))
                }
                Offloaded::Drop(reason) => Decision::Drop(*reason),
                // For which reason is no matter there.
                Offloaded::Report => Decision::Drop(weft_xip::forward::DropReason::Unreachable),
                Offloaded::Pass => return (&edges[..], None, *edge),
            };
            (&edges[..], Some(decision), *edge)
        })
    }
}
