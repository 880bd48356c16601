//! Operators' commands to a running node: one line of words in, JSON text out.
//!
//! ```text
//! show [node|principals|counters|trace]
//! principal add NAME            principal remove NAME
//! set PRINCIPAL words…          delete PRINCIPAL words…
//! interface add NAME            interface remove NAME
//! trace 1                       trace one packet in 1 (all); trace off
//! ```

use serde_json::{Value, json};
use weft_base::{ChannelId, Instant};
use weft_config::Command;
use weft_runtime::Action;

use super::Node;
use crate::channel;

impl Node {
    /// Carries out a command that came on `channel` and answers it there.
    pub(super) fn command(
        &mut self,
        now: Instant,
        channel: ChannelId,
        text: &str,
        out: &mut Vec<Action>,
    ) {
        match self.run_command(now, channel, text, out) {
            Ok(value) => {
                let text = value.to_string();
                let parts = channel::emit_reply(&text);
                out.extend(parts.map(|message| Action::Send { channel, message }));
            }
            Err(error) => {
                out.push(Action::Send { channel, message: channel::emit_failed(&error) });
            }
        }
    }

    fn run_command(
        &mut self,
        now: Instant,
        channel: ChannelId,
        text: &str,
        out: &mut Vec<Action>,
    ) -> Result<Value, String> {
        let command = Command::parse(text).map_err(|errors| errors.to_string())?;
        let words: Vec<&str> = command.statement().words().iter().map(|word| word.text()).collect();
        if words[0] != "show" {
            self.check_operator(channel)?;
        }
        match words.as_slice() {
            ["show"] => self.show("node"),
            ["show", what] => self.show(what),
            ["principal", "add", name] => {
                self.add_principal(now, name, out)?;
                Ok(done())
            }
            ["principal", "remove", name] => {
                self.remove_principal(name, out)?;
                Ok(done())
            }
            [verb @ ("set" | "delete"), name, words @ ..] if !words.is_empty() => {
                let change = self.change_principal(now, name, words, *verb == "delete", out);
                change.map(|()| done()).map_err(|error| format!("{name}: {error}"))
            }
            ["interface", "add", name] => {
                self.add_interface(name)?;
                self.tick(now, out);
                Ok(done())
            }
            ["interface", "remove", name] => {
                self.remove_interface(now, name, out)?;
                Ok(done())
            }
            ["trace", "off"] => {
                self.forwarder.tracer().start(0);
                Ok(done())
            }
            ["trace", number] => {
                let one_in: u64 =
                    number.parse().map_err(|_| format!("`{number}` is not a number of packets"))?;
                self.forwarder.tracer().start(one_in);
                Ok(done())
            }
            _ => Err(format!(
                "unknown command `{text}`; there are: show [node|principals|counters|trace], \
                 principal add|remove NAME, set|delete PRINCIPAL WORDS, \
                 interface add|remove NAME, trace NUMBER|off"
            )),
        }
    }

    /// Refuses whoever may not change the node.
    fn check_operator(&self, channel: ChannelId) -> Result<(), String> {
        let user = self.peers.get(&channel).map(|peer| peer.uid);
        if user == Some(0) || user == Some(self.settings.operator) {
            return Ok(());
        }
        Err(format!(
            "only root and the user that runs the node (uid {}) may change it",
            self.settings.operator
        ))
    }
}

fn done() -> Value {
    json!({ "done": true })
}
