//! From what the portable engine's cache says to what is in the maps.

use std::io;
use std::num::NonZeroU16;
use std::sync::atomic::Ordering;

use weft_ebpf::{Map, Memory};
use weft_xip::Xid;

use crate::layout::{Decision, ENTRY_LEN, PORT_LEN, hop_word, mac_word, packets_of, push_key};
use crate::tables::Tables;

/// A neighbour, by its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u32);

/// A port that packets leave by, by its number in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub NonZeroU16);

/// Where a neighbour is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Out of which port.
    pub slot: Slot,
    /// Its MAC address.
    pub mac: [u8; 6],
}

/// What a mirror has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorStatistics {
    /// Decisions written.
    pub set: u64,
    /// Decisions removed.
    pub removed: u64,
    /// Decisions for which there was no room: the portable engine goes on taking them.
    pub refused: u64,
}

/// Writes into the tables. What it was told is done when a call returns: no packet that comes later is
/// treated by what was there before.
///
/// Decisions are written in place: a packet meets the old one or the new one. The same holds for
/// neighbours, so that one that moves takes all decisions with it by one write.
#[derive(Debug)]
pub struct Mirror {
    tables: Tables,
    hops: Memory,
    ports: Memory,
    statistics: MirrorStatistics,
    /// Kept to reuse their memory.
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Mirror {
    /// Writes into these tables, which may have something in them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(tables: Tables) -> io::Result<Self> {
        let (hops, ports) = (tables.hops.memory()?, tables.ports.memory()?);
        let statistics = MirrorStatistics::default();
        Ok(Self { tables, hops, ports, statistics, keys: Vec::new(), values: Vec::new() })
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What was done so far.
    #[must_use]
    pub fn statistics(&self) -> MirrorStatistics {
        self.statistics
    }

    /// Says what is known of a port: its MAC address, and the longest XIP packet that its link takes.
    ///
    /// # Errors
    /// If the tables have no room for the port.
    pub fn set_port(&mut self, slot: Slot, mac: [u8; 6], mtu: u32) -> io::Result<()> {
        let first = usize::from(slot.0.get()) * (PORT_LEN / 8);
        let words = self.ports.words().get(first..first + PORT_LEN / 8);
        let [of_mac, of_mtu] = words.ok_or_else(|| full("port"))? else { return Err(full("port")) };
        of_mac.store(mac_word(mac), Ordering::Relaxed);
        of_mtu.store(u64::from(mtu), Ordering::Relaxed);
        Ok(())
    }

    /// Says where a neighbour is; `None` if it was lost. Packets to a lost neighbour are passed on.
    ///
    /// # Errors
    /// If the tables have no room for the neighbour.
    pub fn set_hop(&mut self, hop: HopId, neighbour: Option<Neighbour>) -> io::Result<()> {
        let word = self.hops.words().get(hop.0 as usize).ok_or_else(|| full("neighbour"))?;
        let value = neighbour.map_or(0, |neighbour| hop_word(neighbour.mac, neighbour.slot));
        word.store(value, Ordering::Release);
        Ok(())
    }

    /// Writes decisions for sequences of edges, all of the same number, 1 to 4.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set<'a>(
        &mut self,
        edges: usize,
        decisions: impl IntoIterator<Item = (&'a [Xid], Decision)>,
    ) -> io::Result<()> {
        self.keys.clear();
        self.values.clear();
        for (xids, decision) in decisions {
            push_key(xids, &mut self.keys);
            self.values.extend_from_slice(&decision.entry());
        }
        let given = self.values.len() / ENTRY_LEN;
        let written = table(&self.tables, edges)?.set_many(&self.keys, &self.values)?;
        self.statistics.set += written as u64;
        self.statistics.refused += (given - written) as u64;
        Ok(())
    }

    /// Removes the decisions for sequences of edges, all of the same number; those that are not there are no
    /// error.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove<'a>(
        &mut self,
        edges: usize,
        sequences: impl IntoIterator<Item = &'a [Xid]>,
    ) -> io::Result<()> {
        self.keys.clear();
        sequences.into_iter().for_each(|xids| push_key(xids, &mut self.keys));
        self.statistics.removed += table(&self.tables, edges)?.remove_many(&self.keys)? as u64;
        Ok(())
    }

    /// Says which interface a port is: `interface` is its number in the network namespace of the calling
    /// thread.
    ///
    /// # Errors
    /// What the kernel says; if the tables have no room for the port.
    pub fn set_egress(&mut self, slot: Slot, interface: u32) -> io::Result<()> {
        let key = u32::from(slot.0.get()).to_ne_bytes();
        self.tables.egress.set(&key, &interface.to_ne_bytes())
    }

    /// Removes all decisions.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn clear(&mut self) -> io::Result<()> {
        for map in &self.tables.decisions {
            let keys = map.keys()?;
            self.statistics.removed += map.remove_many(&keys)? as u64;
        }
        Ok(())
    }

    /// How many packets a decision was applied to since it was written; `None` if there is none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn packets(&self, edges: &[Xid]) -> io::Result<Option<u64>> {
        let (mut key, mut entry) = (Vec::new(), [0; ENTRY_LEN]);
        push_key(edges, &mut key);
        let found = table(&self.tables, edges.len())?.get(&key, &mut entry)?;
        Ok(found.then(|| packets_of(&entry)))
    }
}

fn table(tables: &Tables, edges: usize) -> io::Result<&Map> {
    let table = edges.checked_sub(1).and_then(|index| tables.decisions.get(index));
    table.ok_or_else(|| io::Error::other(format!("no node of an address has {edges} edges")))
}

fn full(what: &str) -> io::Error {
    io::Error::other(format!("the kernel's tables of xip have no room for another {what}"))
}
