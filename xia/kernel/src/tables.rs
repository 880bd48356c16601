//! The maps that all ports of a stack share.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use weft_ebpf::{Map, MapKind, MapShape, ProgramError};
use weft_xip::numbers::MAX_FAN_OUT;

use crate::counters::COUNTERS;
use crate::layout::{ENTRY_LEN, HOP_LEN, PORT_LEN, key_len};

/// The most elements of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Decisions, by the number of edges. The memory of all of them is taken at once: some 110, 130, 160
    /// and 180 bytes each.
    pub decisions: [u32; MAX_FAN_OUT],
    /// Neighbours.
    pub hops: u32,
    /// Ports that packets leave by.
    pub ports: u32,
}

impl Default for TableSizes {
    fn default() -> Self {
        Self { decisions: [1 << 16, 1 << 15, 1 << 14, 1 << 14], hops: 4096, ports: 256 }
    }
}

/// The maps; see `bpf/xip.bpf.c`.
#[derive(Debug)]
pub struct Tables {
    pub(crate) decisions: [Map; MAX_FAN_OUT],
    pub(crate) hops: Map,
    pub(crate) ports: Map,
    pub(crate) egress: Map,
    pub(crate) counters: Map,
}

const DECISIONS: [&str; MAX_FAN_OUT] = ["dst1", "dst2", "dst3", "dst4"];

impl Tables {
    /// Makes empty tables.
    ///
    /// # Errors
    /// [`ProgramError::NotPermitted`] without `CAP_BPF`; [`ProgramError::Refused`] if there is not enough
    /// memory.
    pub fn create(sizes: &TableSizes) -> Result<Self, ProgramError> {
        Self::from_maps(sizes, Map::create)
            .map_err(|error| ProgramError::from_call("make the maps of xip", &error))
    }

    /// The tables that these descriptors, in the order of [`Tables::descriptors`], stand for.
    ///
    /// # Errors
    /// If there are too few, or one is something else.
    pub fn of_descriptors(sizes: &TableSizes, descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        Self::from_maps(sizes, |_, shape| {
            let next = descriptors.next();
            let next = next.ok_or_else(|| io::Error::other("a table of xip is missing"))?;
            Map::of_descriptor(next, shape)
        })
    }

    fn from_maps(
        sizes: &TableSizes,
        mut map: impl FnMut(&str, MapShape) -> io::Result<Map>,
    ) -> io::Result<Self> {
        let mut decisions = |edges: usize| {
            let key = key_len(edges + 1) as u32;
            let shape = MapShape::hash(key, ENTRY_LEN as u32, sizes.decisions[edges]);
            map(DECISIONS[edges], shape)
        };
        let decisions = [decisions(0)?, decisions(1)?, decisions(2)?, decisions(3)?];
        let mut numbered = |name: &str, kind, value: usize, elements| {
            map(name, MapShape::numbered(kind, value as u32, elements))
        };
        Ok(Self {
            decisions,
            hops: numbered("hops", MapKind::Array, HOP_LEN, sizes.hops)?,
            ports: numbered("ports", MapKind::Array, PORT_LEN, sizes.ports)?,
            egress: numbered("egress", MapKind::Devices, 4, sizes.ports)?,
            counters: numbered("counters", MapKind::PerProcessor, 8, COUNTERS.len() as u32)?,
        })
    }

    /// Their descriptors, for whoever shall use them, too.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let numbered = [&self.hops, &self.ports, &self.egress, &self.counters];
        self.decisions.iter().chain(numbered).map(Map::descriptor)
    }

    /// The maps by the names that the program knows.
    pub(crate) fn named(&self) -> Vec<(&'static str, &Map)> {
        let numbered = [
            ("hops", &self.hops),
            ("ports", &self.ports),
            ("egress", &self.egress),
            ("counters", &self.counters),
        ];
        DECISIONS.into_iter().zip(&self.decisions).chain(numbered).collect()
    }

    /// What was counted on all ports, in the order of [`COUNTERS`].
    ///
    /// # Errors
    /// What the kernel says.
    pub fn counters(&self) -> io::Result<Vec<u64>> {
        (0..COUNTERS.len() as u32).map(|index| self.counters.sum(index)).collect()
    }
}
