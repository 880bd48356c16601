//! Who has asked how addresses are reached, and what they were told.
//!
//! Reference: Handley et al. (XORP), §5.2.1: interest registration. The answer holds for a block of addresses; when it
//! no longer does, whoever was told is told that, once, and asks again.
//!
//! The RIB itself asks for the gateways of its routes and is told by the return value. Of clients each block is
//! stored once for each of them.

use std::collections::{BTreeMap, BTreeSet};

use weft_routing::Prefix;

use crate::hops::SetId;
use crate::leads::Answer;

/// Who has asked: the session of a client's connection.
pub(crate) type Session = u64;

/// A gateway of routes.
#[derive(Debug)]
struct Gateway {
    answer: Answer,
    /// Of which sets.
    sets: BTreeSet<SetId>,
}

/// Everything that was told of one version of IP.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// By their addresses in bits.
    gateways: BTreeMap<Prefix, Gateway>,
    /// What clients were told, by the first address of the block; blocks of one client do not overlap.
    told: BTreeMap<Session, BTreeMap<Prefix, Answer>>,
}

impl Reach {
    /// A set has this gateway. `ask` is called if it is not known how it is reached.
    pub(crate) fn need(&mut self, gateway: Prefix, set: SetId, ask: impl FnOnce() -> Answer) {
        let gateway = self.gateways.entry(gateway);
        let gateway = gateway.or_insert_with(|| Gateway { answer: ask(), sets: BTreeSet::new() });
        gateway.sets.insert(set);
    }

    /// How a gateway that is needed is reached.
    pub(crate) fn answer(&self, gateway: &Prefix) -> Option<&Answer> {
        self.gateways.get(gateway).map(|gateway| &gateway.answer)
    }

    /// A set does not have this gateway any more.
    pub(crate) fn forget(&mut self, gateway: &Prefix, set: SetId) {
        if let Some(known) = self.gateways.get_mut(gateway) {
            known.sets.remove(&set);
            if known.sets.is_empty() {
                self.gateways.remove(gateway);
            }
        }
    }

    /// The routes to `net` have changed: finds out by `ask` which gateways are reached in another way, and adds their
    /// sets to `moved`.
    pub(crate) fn changed(
        &mut self,
        net: &Prefix,
        ask: impl Fn(&Prefix) -> Answer,
        moved: &mut BTreeSet<SetId>,
    ) {
        let within = self.gateways.range_mut(*net..);
        for (address, gateway) in within.take_while(|(address, _)| net.contains(address)) {
            let answer = ask(address);
            if answer.way != gateway.answer.way {
                moved.extend(&gateway.sets);
            }
            gateway.answer = answer;
        }
    }

    /// A client was told this, in place of what it was told of parts of the block.
    pub(crate) fn tell(&mut self, session: Session, answer: Answer) {
        let told = self.told.entry(session).or_default();
        overlapping(told, &answer.block).iter().for_each(|block| drop(told.remove(block)));
        told.insert(answer.block, answer);
    }

    /// A client needs not hear of this block any more.
    pub(crate) fn silence(&mut self, session: Session, block: &Prefix) {
        if let Some(told) = self.told.get_mut(&session) {
            told.remove(block);
        }
    }

    /// A client is gone.
    pub(crate) fn left(&mut self, session: Session) {
        self.told.remove(&session);
    }

    /// The routes to `net` have changed: takes what clients were told and holds no longer, and calls `invalid` for it.
    pub(crate) fn invalidate(
        &mut self,
        net: &Prefix,
        ask: impl Fn(&Prefix) -> Answer,
        mut invalid: impl FnMut(Session, Prefix),
    ) {
        for (session, told) in &mut self.told {
            for block in overlapping(told, net) {
                if told.get(&block).is_some_and(|answer| *answer != ask(&block)) {
                    told.remove(&block);
                    invalid(*session, block);
                }
            }
        }
    }
}

/// Of blocks that do not overlap, those that lie within the net, and the one that it lies within.
fn overlapping(told: &BTreeMap<Prefix, Answer>, net: &Prefix) -> BTreeSet<Prefix> {
    let around = told.range(..=*net).next_back();
    let around = around.filter(|(block, _)| block.contains(net)).map(|(block, _)| *block);
    let within = told.range(*net..).map(|(block, _)| *block);
    within.take_while(|block| net.contains(block)).chain(around).collect()
}
