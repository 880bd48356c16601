//! Symbols on their way to the disk.

use weft_runtime::{DiskError, DiskReply};

use super::{Reception, Stage};
use crate::receiver::blocks::{Phase, Repair};
use crate::receiver::events::DropReason;
use crate::receiver::store::{SourceWrite, Write, slot_size};
use crate::receiver::world::{Job, World};
use crate::wire::Symbol;

impl Reception {
    /// Stores a symbol that was admitted.
    pub(super) fn store_symbol(&mut self, world: &mut World<'_>, symbol: &Symbol<'_>) {
        let offset = symbol.block.offset;
        let symbols = symbol.block.symbols(symbol.payload.len() as u16);
        if symbol.esi < symbols {
            let Some(store) = &mut self.store else { return };
            let write = store.put_source(world.now, symbol.block, symbol.esi, symbol.payload);
            if let Some(partial) = self.blocks.get_mut(offset) {
                partial.held.set(symbol.esi, true);
            }
            self.write(world, write);
        } else if !self.store_repair(world, symbol) {
            return world.drop(DropReason::RepairSpace);
        }
        self.stats.received += 1;
        self.charge(world, symbol.payload.len() as u64);
        self.settle_block(world, offset);
    }

    fn store_repair(&mut self, world: &mut World<'_>, symbol: &Symbol<'_>) -> bool {
        let offset = symbol.block.offset;
        let size = slot_size(symbol.payload.len() as u16) as u64;
        let limit = world.shared.config.limits.repair_bytes / size;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let Some(slot) = self.take_slot(limit, offset) else { return false };
        let repair = Repair { esi: symbol.esi, slot };
        let Some(store) = &mut self.store else { return false };
        let write = store.put_repair(world.now, offset, repair, symbol.payload);
        self.blocks.add_repair(offset, repair);
        self.write(world, write);
        true
    }

    /// A slot for a repair symbol of the block at `offset`. When all are taken, blocks nearer to the
    /// start of the object go first, at the expense of those further away: so some block always gets
    /// all it needs, however few slots there are.
    fn take_slot(&mut self, limit: u32, offset: u64) -> Option<u32> {
        let store = self.store.as_mut()?;
        if let Some(slot) = store.take_slot(limit) {
            return Some(slot);
        }
        let victim = self.blocks.last_repaired().filter(|victim| *victim > offset)?;
        let freed = self.blocks.take_repairs(victim);
        store.free_slots(&freed);
        store.take_slot(limit)
    }

    /// Writes what is being gathered.
    pub(super) fn flush(&mut self, world: &mut World<'_>) {
        let Some(store) = &mut self.store else { return };
        for write in store.flush() {
            self.write(world, Some(write));
        }
    }

    pub(super) fn write(&mut self, world: &mut World<'_>, write: Option<Write>) {
        match write {
            None => {}
            Some(Write::Source(what, request)) => {
                if let Some(partial) = self.blocks.get_mut(what.block) {
                    partial.writes += 1;
                }
                self.ask(world, Job::Source(what), request);
            }
            Some(Write::Repairs(symbols, request)) => {
                self.ask(world, Job::Repairs(symbols), request);
            }
        }
    }

    pub(super) fn on_source_written(
        &mut self,
        world: &mut World<'_>,
        write: SourceWrite,
        result: Result<DiskReply, DiskError>,
    ) {
        let size = u64::from(self.symbol_size.unwrap_or(0));
        if let Some(partial) = self.blocks.get_mut(write.block) {
            partial.writes -= 1;
            if result.is_err() {
                partial.held.set_range(write.first, write.count, false);
            }
        }
        match result {
            Ok(_) => {
                world.on_write();
                self.unsaved += u64::from(write.count) * size;
            }
            Err(error) => {
                self.spoil_decode(write.block);
                if !self.on_lost(world, write.count, &error) {
                    return;
                }
            }
        }
        self.settle_block(world, write.block);
    }

    pub(super) fn on_repairs_written(
        &mut self,
        world: &mut World<'_>,
        symbols: &[(u64, Repair)],
        result: Result<DiskReply, DiskError>,
    ) {
        let size = u64::from(self.symbol_size.unwrap_or(0));
        let Err(error) = result else {
            world.on_write();
            self.unsaved += symbols.len() as u64 * size;
            return;
        };
        for (block, repair) in symbols {
            self.lose_repair(*block, *repair);
            self.spoil_decode(*block);
        }
        if self.on_lost(world, symbols.len() as u32, &error) {
            for (block, _) in symbols {
                self.requeue(*block);
            }
        }
    }

    /// Symbols could not be written; they count as lost on the way. False if that is the end of the
    /// object.
    fn on_lost(&mut self, world: &mut World<'_>, symbols: u32, error: &DiskError) -> bool {
        world.shared.drops.add(DropReason::WriteFailed, u64::from(symbols));
        self.stats.received = self.stats.received.saturating_sub(u64::from(symbols));
        // What is complete or being saved does without them.
        if world.on_write_error(error) && matches!(self.stage, Stage::Receiving) {
            self.give_up(world, format!("cannot be stored: {}", error.text));
            return false;
        }
        true
    }

    /// A repair symbol is not on disk after all.
    pub(super) fn lose_repair(&mut self, block: u64, lost: Repair) {
        let had = self.blocks.get(block).is_some_and(|partial| partial.repairs.contains(&lost));
        if had {
            self.blocks.remove_repair(block, lost);
            if let Some(store) = &mut self.store {
                store.free_slots(&[lost]);
            }
        }
    }

    /// A queued block lost symbols: it may have to go on collecting.
    pub(super) fn requeue(&mut self, offset: u64) {
        if let Some(partial) = self.blocks.get_mut(offset)
            && partial.phase == Phase::Queued
            && !partial.is_decodable()
        {
            partial.phase = Phase::Collecting;
            self.ready.retain(|other| *other != offset);
        }
    }

    /// All of a block is on disk.
    pub(super) fn complete_block(&mut self, world: &mut World<'_>, offset: u64) {
        let repairs = self.blocks.take_repairs(offset);
        if let Some(store) = &mut self.store {
            store.free_slots(&repairs);
        }
        if let Some(partial) = self.blocks.complete(offset) {
            let symbols = if partial.used == 0 { partial.held.len() } else { partial.used };
            self.stats.used += u64::from(symbols);
            self.stats.needed += u64::from(partial.held.len());
        }
        self.verify(world);
    }
}
