//! The list of programs that somebody has asked for.

use std::collections::{BTreeMap, VecDeque};

use weft_runtime::{FoundProgram, HookKind};
use weft_xrl::{Called, Output, fea};

use super::steps::Step;
use super::{Key, Own};

/// The program that brings the frames of an AF_XDP port to its socket.
const STEERING: &str = "steer";

/// An interface that is asked for.
pub(super) struct Place {
    pub(super) index: u32,
    pub(super) name: String,
    /// The packet engine whose program is at its XDP.
    pub(super) engine: Option<String>,
}

/// A list in the making.
pub(super) struct Listing {
    called: Called,
    /// The interfaces that are still to be asked for.
    left: VecDeque<Place>,
    reply: fea::ListProgramsReply,
}

impl Listing {
    pub(super) fn new(called: Called, interfaces: VecDeque<Place>) -> Self {
        let reply = fea::ListProgramsReply { programs: Vec::new(), counters: Vec::new() };
        Self { called, left: interfaces, reply }
    }

    /// One for each interface.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.left.iter().map(|place| Step::List(place.index)).collect()
    }

    /// What the next interface has; nothing if it has gone meanwhile.
    pub(super) fn add(
        &mut self,
        attached: &BTreeMap<Key, Own>,
        found: Vec<FoundProgram>,
        counters: Vec<(u32, Vec<(&'static str, u64)>)>,
    ) {
        let Some(Place { index, name: interface, engine }) = self.left.pop_front() else { return };
        let its = || attached.iter().filter(|(key, _)| key.interface == index);
        for one in found {
            let own = its().find(|(_, own)| own.id == one.id);
            let engine = engine.as_deref().filter(|_| matches!(one.hook, HookKind::Xdp(_)));
            let owner = match (own, engine) {
                (Some((_, own)), _) => own.owner.name(),
                _ if one.steers => "port",
                (None, Some(_)) => "engine",
                (None, None) => "other",
            };
            self.reply.programs.push(fea::Program {
                interface: interface.clone(),
                hook: one.hook.to_string(),
                id: one.id,
                name: one.name.unwrap_or_default(),
                owner: owner.to_owned(),
                program: match own {
                    Some((key, _)) => key.program,
                    None if one.steers => STEERING,
                    None => engine.unwrap_or_default(),
                }
                .to_owned(),
                parameters: own.map(|(_, own)| own.program.parameters()).unwrap_or_default(),
            });
        }
        for (attachment, counters) in counters {
            let Some((_, own)) = its().find(|(_, own)| own.attachment == attachment) else {
                continue;
            };
            let counter = |(name, value): (&str, u64)| fea::ProgramCounter {
                id: own.id,
                name: name.to_owned(),
                value,
            };
            self.reply.counters.extend(counters.into_iter().map(counter));
        }
    }

    pub(super) fn answer(self) -> Output {
        self.called.answer(Ok(self.reply))
    }
}
