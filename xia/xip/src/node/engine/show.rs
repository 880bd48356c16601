//! What is shown of the engines.

use serde_json::{Value, json};
use weft_base::{ChannelId, Token};
use weft_runtime::Action;

use super::ports::Attachment;
use super::{KernelEngine, Node, PORTABLE, State};
use crate::node::show::counts;
use crate::offload::Tally;

/// What shows what the kernel's engine has counted.
#[derive(Clone, Copy, Debug)]
pub(in crate::node) enum Shown {
    Forwarding,
    Counters,
}

impl Node {
    /// Shows on `channel` what the kernel's engine has counted, and what goes with it, as soon as that is known.
    pub(in crate::node) fn answer_counted(
        &mut self,
        channel: ChannelId,
        shown: Shown,
        out: &mut Vec<Action>,
    ) {
        match self.kernel.tables() {
            Some(token) => {
                self.kernel.asked.push_back((channel, shown));
                out.push(Action::CountTables { token });
            }
            None => {
                let value = self.show_counted(shown, &[]);
                self.replies.send(channel, &value, out);
            }
        }
    }

    pub(in crate::node) fn engine_counted(
        &mut self,
        token: Token,
        sums: &[Vec<u64>],
        out: &mut Vec<Action>,
    ) {
        let KernelEngine { engine, tallied, .. } = &mut self.kernel;
        if let Some(sums) = engine.as_ref().and_then(|engine| sums.get(engine.counters().0)) {
            tallied.told(token, sums);
        }
        let Some((channel, shown)) = self.kernel.asked.pop_front() else { return };
        let value = self.show_counted(shown, sums);
        self.replies.send(channel, &value, out);
    }

    fn show_counted(&self, shown: Shown, sums: &[Vec<u64>]) -> Value {
        match shown {
            Shown::Forwarding => self.show_forwarding(sums),
            Shown::Counters => self.show_counters(),
        }
    }

    /// What the kernel's engine has done with packets that the forwarder has not seen, as far as it has told.
    pub(in crate::node) fn tally(&self) -> Tally {
        let engine = self.kernel.engine.as_ref();
        engine.map(|engine| engine.tally(self.kernel.tallied.sums())).unwrap_or_default()
    }

    /// Which engine forwards where, and what the kernel's has counted.
    pub(in crate::node) fn show_forwarding(&self, sums: &[Vec<u64>]) -> Value {
        let (state, trouble) = match &self.kernel.state {
            State::Off => ("off", None),
            State::Opening(_) | State::Adopting(_) | State::Filling(_) => ("opening", None),
            State::On(_) => ("on", None),
            State::Failed(error) => ("failed", Some(error)),
        };
        let ports = self.kernel.ports.values().map(|port| {
            let (engine, trouble) = match &port.attachment {
                Attachment::At(_, mode, fallback) => (mode.name(), fallback.as_ref()),
                Attachment::Failed(error) => (PORTABLE, Some(error)),
                Attachment::None | Attachment::Asked(_) => (PORTABLE, trouble),
            };
            let mut named = self.interfaces.iter().filter(|one| one.name == port.interface);
            let instead = named.find_map(|one| one.why_packet_sockets());
            json!({
                "interface": port.interface,
                "engine": engine,
                "trouble": trouble,
                "packet-io": port.io.name(),
                "packet-io-trouble": instead,
            })
        });
        let counters = self.kernel.engine.as_ref().and_then(|engine| {
            let (table, names) = engine.counters();
            let sums = sums.get(table)?;
            let counters =
                names.iter().zip(sums).map(|((name, _), sum)| ((*name).to_owned(), json!(sum)));
            Some(Value::Object(counters.collect()))
        });
        let size = self.forwarder.cache_size();
        // By the number of edges.
        let room = self.kernel.tables().and(self.kernel.engine.as_ref());
        let room = room.map(|engine| engine.room().decisions);
        json!({
            "wanted": self.kernel.word(),
            "scheduling": self.show_share(),
            "kernel": state,
            "trouble": trouble,
            "decisions": size.offloaded,
            "room": room,
            "without-room": size.without_room,
            "interfaces": ports.collect::<Vec<_>>(),
            "counters": counters,
            "portable": counts(self.forwarder.cache_activity()),
        })
    }
}
