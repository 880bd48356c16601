//! The kernel's engine beside the node's own: opened, attached to interfaces, told what the routing cache holds.
//!
//! Reference: Machado et al., "Linux XIA", §4.2 (a stack in the kernel).
//!
//! The portable engine is always there. What the kernel's cannot do it passes on, so it may come and go between
//! two packets: an interface where it cannot be attached forwards by the portable engine alone, and the node says
//! so. What an earlier life of this process had left in the kernel goes on forwarding until this node has
//! cleared it, or has had it detached, which is before the node says that it is ready.

mod ports;
mod show;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use weft_base::{ChannelId, Instant, PortId, Token};
use weft_runtime::{Action, EngineMode, EngineReply, EngineRequest, Handle, Level};

use super::tallied::Tallied;
use super::{Node, report};
use crate::offload::{Engine, Offload};
use ports::{Attachment, Clearing, Port};
pub(super) use show::Shown;

/// Decisions that the engine is told at once of those that it shall have because they were used: a millisecond, or two.
const AT_ONCE: usize = 4096;

/// What the node knows of the kernel's engine.
#[derive(Default)]
pub(super) struct KernelEngine {
    /// Where it shall run; `None` if only the portable engine is wanted.
    wanted: Option<EngineMode>,
    engine: Option<Box<dyn Engine>>,
    state: State,
    ports: BTreeMap<PortId, Port>,
    /// Interfaces from which it is to be gone.
    clearing: BTreeMap<String, Clearing>,
    /// Who waits for what it has counted, longest first, and what that is shown with.
    asked: VecDeque<(ChannelId, Shown)>,
    /// What it has counted since this node uses it.
    tallied: Tallied,
    /// Kept for their memory.
    offloads: Vec<Offload>,
}

#[derive(Default)]
enum State {
    #[default]
    Off,
    Opening(Token),
    Adopting(Token),
    /// It is told what the cache holds, and then attached. The token stands for its tables.
    Filling(Token),
    /// The token stands for its tables.
    On(Token),
    /// Why it cannot be used.
    Failed(String),
}

/// The word for the portable engine alone.
const PORTABLE: &str = "portable";

/// The mode that a word of a configuration or command means; `None` is the portable engine alone.
///
/// # Errors
/// A sentence that lists the words.
pub(super) fn mode(word: &str) -> Result<Option<EngineMode>, String> {
    if word == PORTABLE {
        return Ok(None);
    }
    let found = EngineMode::ALL.into_iter().find(|mode| mode.name() == word);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = EngineMode::ALL.iter().map(|mode| mode.name()).collect();
        let word = word.escape_debug();
        format!("`{word}` is no engine: say {PORTABLE}, {}", names.join(", "))
    })
}

impl KernelEngine {
    /// Whether an answer to this channel waits for what the kernel has counted.
    pub(super) fn is_asked_by(&self, channel: ChannelId) -> bool {
        self.asked.iter().any(|(asking, _)| *asking == channel)
    }

    /// Whether something was asked for and nothing has come yet.
    pub(super) fn is_opening(&self) -> bool {
        let waits = |port: &Port| matches!(port.attachment, Attachment::Asked(_));
        matches!(self.state, State::Opening(_) | State::Adopting(_) | State::Filling(_))
            || !self.clearing.is_empty()
            || self.ports.values().any(waits)
    }

    /// When something is to be asked for again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.clearing.values().filter_map(Clearing::due).min()
    }

    /// Its word in configurations.
    pub(super) fn word(&self) -> &'static str {
        self.wanted.map_or(PORTABLE, EngineMode::name)
    }

    fn tables(&self) -> Option<Token> {
        match self.state {
            State::Filling(token) | State::On(token) => Some(token),
            _ => None,
        }
    }
}

impl Node {
    /// Uses the kernel's engine, too, or no more. Before the node has started, this is what it starts with.
    pub(super) fn set_engine(&mut self, wanted: Option<EngineMode>, out: &mut Vec<Action>) {
        if self.kernel.wanted == wanted && !matches!(self.kernel.state, State::Failed(_)) {
            // Whatever was in the way may be gone.
            return self.attach_where_it_failed(out);
        }
        self.stop_engine(out);
        self.kernel.wanted = wanted;
        if self.started {
            self.open_engine(out);
        }
    }

    /// Asks for the engine that is wanted.
    pub(super) fn open_engine(&mut self, out: &mut Vec<Action>) {
        if self.kernel.wanted.is_none() {
            return;
        }
        let Some(mut engine) = self.registry.make_engine() else {
            let error = "this program has no engine for the kernel".to_owned();
            self.kernel.state = State::Failed(error);
            return;
        };
        engine.set_memory(self.forwarder.cache_size().limit);
        let token = self.next_token();
        let (name, most) = (engine.name().to_owned(), engine.most());
        let request = EngineRequest::Open { engine: name, most };
        out.push(Action::Engine { token, request });
        self.kernel.engine = Some(engine);
        self.kernel.state = State::Opening(token);
    }

    /// Gives the engine back. Packets go the portable engine's way from now on.
    pub(super) fn stop_engine(&mut self, out: &mut Vec<Action>) {
        self.forwarder.set_offloading(None);
        let attached: Vec<_> = self.kernel.ports.keys().copied().collect();
        for port in attached {
            self.detach_engine(port, out);
        }
        self.kernel.state = State::Off;
    }

    /// Gives the engine back and asks for it anew, if it is wanted: it shall be another one.
    pub(super) fn restart_engine(&mut self, out: &mut Vec<Action>) {
        if self.kernel.wanted.is_some() && self.started {
            self.stop_engine(out);
            self.open_engine(out);
        }
    }

    /// What came of a request for the engine.
    pub(super) fn engine_answered(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<EngineReply, String>,
        out: &mut Vec<Action>,
    ) {
        match (&self.kernel.state, result) {
            (State::Opening(asked), result) if *asked == token => match result {
                Ok(EngineReply::Opened { tables, .. }) => self.adopt_tables(tables, out),
                Ok(_) => self.engine_failed("what was opened is no engine".to_owned(), out),
                Err(error) => self.engine_failed(error, out),
            },
            (_, result) => self.engine_placed(now, token, result, out),
        }
    }

    fn adopt_tables(&mut self, handles: Vec<Handle>, out: &mut Vec<Action>) {
        let Some(engine) = &self.kernel.engine else { return };
        let shapes = engine.tables();
        if shapes.len() != handles.len() {
            let error = "the engine that was opened has other tables".to_owned();
            return self.engine_failed(error, out);
        }
        let tables = shapes.into_iter().zip(handles).collect();
        let token = self.next_token();
        self.kernel.state = State::Adopting(token);
        out.push(Action::AdoptTables { token, tables });
    }

    pub(super) fn tables_adopted(
        &mut self,
        token: Token,
        result: Result<(), String>,
        out: &mut Vec<Action>,
    ) {
        match (&self.kernel.state, result) {
            (State::Adopting(asked), Ok(())) if *asked == token => {
                self.kernel.state = State::Filling(token);
                // What it has counted for an earlier life of this process is not this one's.
                self.kernel.tallied.begin(token);
                out.push(Action::CountTables { token });
                self.forwarder.set_offloading(self.kernel.engine.as_ref().map(|one| one.room()));
                // What is there from before is removed before anything is added.
                self.tell_engine(out);
            }
            (State::Adopting(asked), Err(error)) if *asked == token => {
                self.engine_failed(error, out);
            }
            _ => {}
        }
    }

    /// The tables cannot be written any more.
    pub(super) fn tables_failed(&mut self, token: Token, error: String, out: &mut Vec<Action>) {
        if self.kernel.tables() == Some(token) {
            self.engine_failed(error, out);
        }
    }

    /// There was no place for decisions that the engine was told: it does not have them.
    pub(super) fn tables_full(&mut self, token: Token, keys: &[(usize, Vec<u64>)]) {
        if self.kernel.tables() != Some(token) {
            return;
        }
        let Some(engine) = &self.kernel.engine else { return };
        for (table, key) in keys {
            if let Some(edges) = engine.edges(*table, key) {
                self.forwarder.offload_refused(&edges);
            }
        }
    }

    fn engine_failed(&mut self, error: String, out: &mut Vec<Action>) {
        let text =
            format!("the kernel's engine cannot be used, the portable one forwards: {error}");
        report(out, Level::Warning, text);
        self.stop_engine(out);
        // Also what an earlier life of this process has left attached.
        let ports: Vec<_> = self.kernel.ports.keys().copied().collect();
        ports.into_iter().for_each(|port| self.clear_engine(port, out));
        self.kernel.state = State::Failed(error);
    }

    /// Tells the engine what has changed. After everything that may change a decision, before anybody hears
    /// that it has changed.
    pub(super) fn tell_engine(&mut self, out: &mut Vec<Action>) {
        let Some(token) = self.kernel.tables() else { return };
        let KernelEngine { engine: Some(engine), ports, offloads, .. } = &mut self.kernel else {
            return;
        };
        self.forwarder.drain_offloads(AT_ONCE, offloads);
        if offloads.is_empty() {
            return self.engine_filled(out);
        }
        let slot = |port: PortId| match ports.get(&port)?.attachment {
            Attachment::At(slot, ..) => Some(slot),
            _ => None,
        };
        let mut writes = Vec::new();
        for change in offloads.drain(..) {
            engine.write(&change, &slot, &mut writes);
        }
        out.push(Action::WriteTables { token, writes });
        self.engine_filled(out);
    }

    /// Whether the engine is to be told more than it was told at once.
    pub(super) fn has_more_for_engine(&self) -> bool {
        self.kernel.tables().is_some() && self.forwarder.has_offloads()
    }

    /// If the engine has been told all that the cache held, no packet finds less there than here: it can be attached.
    fn engine_filled(&mut self, out: &mut Vec<Action>) {
        let State::Filling(token) = self.kernel.state else { return };
        if self.forwarder.has_offloads() {
            return;
        }
        self.kernel.state = State::On(token);
        let ports: Vec<_> = self.kernel.ports.keys().copied().collect();
        ports.into_iter().for_each(|port| self.attach_engine(port, out));
    }
}
