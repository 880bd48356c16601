//! Operators' commands to a running node: one line of words in, JSON text out.
//!
//! ```text
//! show [node|principals|routes|neighbours|counters|ports|forwarding|dst|anchors|trace]
//! show tree HID…
//! principal add NAME            principal remove NAME
//! protocol add NAME             protocol remove NAME
//! set PRINCIPAL words…          delete PRINCIPAL words…
//! interface add NAME            interface remove NAME
//! dst flush|check               dst limit SIZE|off
//! trace 1                       trace one packet in 1 (all); trace off
//! ```

use serde_json::{Value, json};
use weft_base::{ChannelId, Instant, Token};
use weft_config::{Command, FromWord, InterfaceName};
use weft_runtime::{Action, DriverCounts, Peer};

use super::Node;
use super::engine::{self, Shown};
use crate::channel;

/// The token of what the driver counts; answers come in the order of the questions.
const COUNTS: Token = Token(0);

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
            Ok(Some(value)) => self.replies.send(channel, &value, out),
            // It comes when the driver has answered.
            Ok(None) => {}
            Err(error) => {
                out.push(Action::Send { channel, message: channel::emit_failed(&error).into() });
            }
        }
    }

    fn run_command(
        &mut self,
        now: Instant,
        channel: ChannelId,
        text: &str,
        out: &mut Vec<Action>,
    ) -> Result<Option<Value>, String> {
        let command = Command::parse(text).map_err(|errors| errors.to_string())?;
        let words: Vec<&str> = command.statement().words().iter().map(|word| word.text()).collect();
        if words[0] != "show" {
            self.check_operator(channel)?;
        }
        if let ["show", "ports"] = words.as_slice() {
            self.asked_for_counts.push_back(channel);
            out.push(Action::Count { token: COUNTS });
            return Ok(None);
        }
        let counted = match words.as_slice() {
            ["show", "forwarding"] => Some(Shown::Forwarding),
            ["show", "counters"] => Some(Shown::Counters),
            _ => None,
        };
        if let Some(shown) = counted {
            self.answer_counted(channel, shown, out);
            return Ok(None);
        }
        self.operate(now, text, out).map(Some)
    }

    /// Carries out a command of somebody who may: every command but `show ports`, which is answered
    /// later. `show forwarding` has no counters here.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the command, or why it cannot be carried out.
    pub fn operate(
        &mut self,
        now: Instant,
        text: &str,
        out: &mut Vec<Action>,
    ) -> Result<Value, String> {
        let done = self.carry_out_command(now, text, out);
        self.tell_engine(out);
        done
    }

    fn carry_out_command(
        &mut self,
        now: Instant,
        text: &str,
        out: &mut Vec<Action>,
    ) -> Result<Value, String> {
        let command = Command::parse(text).map_err(|errors| errors.to_string())?;
        let words: Vec<&str> = command.statement().words().iter().map(|word| word.text()).collect();
        match words.as_slice() {
            ["show"] => self.show(now, "node"),
            ["show", "tree", hosts @ ..] => self.show_tree(hosts),
            ["show", what] => self.show(now, what),
            ["principal", "add", name] => {
                self.add_principal(now, name, out)?;
                Ok(done())
            }
            ["principal", "remove", name] => {
                self.remove_principal(now, name, out)?;
                Ok(done())
            }
            ["protocol", "add", name] => {
                self.add_protocol(now, name, out)?;
                Ok(done())
            }
            ["protocol", "remove", name] => {
                self.remove_protocol(now, name, out)?;
                Ok(done())
            }
            [verb @ ("set" | "delete"), name, words @ ..] if !words.is_empty() => {
                let change = self.change_principal(now, name, words, *verb == "delete", out);
                change.map(|()| done()).map_err(|error| format!("{name}: {error}"))
            }
            ["interface", "add", name] => {
                InterfaceName::from_word(name)
                    .map_err(|error| format!("`{name}` is no name of an interface: {error}"))?;
                self.add_interface(name)?;
                self.tick(now, out);
                Ok(done())
            }
            ["interface", "remove", name] => {
                self.remove_interface(now, name, out)?;
                Ok(done())
            }
            ["dst", words @ ..] => self.change_cache(words),
            ["engine", word] => {
                self.set_engine(engine::mode(word)?, out);
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
                "unknown command `{text}`; there are: show [node|principals|routes|neighbours|counters|ports|\
                 forwarding|dst|anchors|trace], show tree HIDS, \
                 principal add|remove NAME, protocol add|remove NAME, \
                 set|delete PRINCIPAL|PROTOCOL WORDS, \
                 interface add|remove NAME, dst flush|check|limit, engine MODE, trace NUMBER|off"
            )),
        }
    }

    /// Answers whoever has waited longest for what the ports have counted.
    pub(super) fn answer_ports(&mut self, counts: &DriverCounts, out: &mut Vec<Action>) {
        if let Some(channel) = self.asked_for_counts.pop_front() {
            let value = self.show_ports(counts);
            self.replies.send(channel, &value, out);
        }
    }

    /// Refuses whoever may not change the node.
    fn check_operator(&self, channel: ChannelId) -> Result<(), String> {
        let user = self.peers.get(&channel).and_then(Peer::uid);
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
