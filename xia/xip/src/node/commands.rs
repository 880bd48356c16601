//! Operators' commands to a running node: one line of words in, JSON text out.
//!
//! ```text
//! show [node|principals|routes|neighbours|counters|ports|forwarding|dst|all-dst|anchors|all-anchors|trace]
//! show PROTOCOL
//! show tree HID…
//! principal add NAME            principal remove NAME
//! protocol add NAME             protocol remove NAME
//! set NAME words…               delete NAME words…      of a principal or a protocol
//! interface add NAME            interface remove NAME
//! dst flush|check               dst limit SIZE|off
//! engine MODE
//! trace 1                       trace one packet in 1 (all); trace off
//! ```

use serde_json::{Value, json};
use weft_base::{ChannelId, Instant, Token};
use weft_config::{Command, FromWord, InterfaceName};
use weft_runtime::{Action, DriverCounts, Peer};

use super::Node;
use super::engine::{self, Shown};

/// The token of what the driver counts; answers come in the order of the questions.
const COUNTS: Token = Token(0);

impl Node {
    /// Carries out a command that came on `channel` and answers it there, unless whoever is there does not
    /// read the answers.
    pub(super) fn command(
        &mut self,
        now: Instant,
        channel: ChannelId,
        text: &str,
        out: &mut Vec<Action>,
    ) {
        if self.refuses(channel) {
            return;
        }
        match self.run_command(now, channel, text, out) {
            Ok(Some(value)) => self.replies.send(channel, &value, out),
            // It comes when the driver has answered.
            Ok(None) => {}
            Err(error) => self.replies.fail(channel, &error, out),
        }
    }

    /// Refuses what came on a channel on which nobody takes the answers.
    pub(super) fn refuses(&mut self, channel: ChannelId) -> bool {
        let is_asking =
            self.asked_for_counts.contains(&channel) || self.kernel.is_asked_by(channel);
        self.replies.refuses(channel, is_asking)
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

    /// How many messages and answers to come are kept.
    #[cfg(test)]
    fn kept_answers(&self) -> usize {
        self.replies.kept() + self.asked_for_counts.len()
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

#[cfg(test)]
mod tests {
    use weft_base::Packet;
    use weft_runtime::{Component, Event};

    use super::*;
    use crate::channel::Response;
    use crate::node::Registry;
    use crate::node::testing::{self, NOW};

    const CHANNEL: ChannelId = ChannelId(1);

    /// What was answered: the texts of replies, and of failures with a mark in front.
    fn answers(sent: Vec<Action>) -> Vec<String> {
        let (mut answers, mut reply) = (Vec::new(), Vec::new());
        for action in sent {
            let Action::Send { channel: CHANNEL, message } = action else { continue };
            match Response::parse(message.buffer.into()).unwrap() {
                Response::Failed(text) => answers.push(format!("failed: {text}")),
                Response::Reply { last, part } => {
                    reply.extend(part);
                    if last {
                        answers.push(String::from_utf8(std::mem::take(&mut reply)).unwrap());
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        answers
    }

    fn ask(node: &mut Node, command: &str, times: usize, out: &mut Vec<Action>) {
        for _ in 0..times {
            node.command(NOW, CHANNEL, command, out);
        }
    }

    /// Lets the node send all that it can.
    fn drain(node: &mut Node, out: &mut Vec<Action>) {
        while node.has_background_work() {
            node.handle(NOW, Event::Slice, out);
        }
    }

    #[test]
    fn whoever_does_not_read_answers_cannot_fill_the_memory_with_them() {
        let (mut node, mut sent) = (testing::node(Registry::new()), Vec::new());
        node.handle(NOW, Event::Congested { channel: CHANNEL }, &mut sent);
        for command in ["show node", "show ports", "show counters", "nonsense"] {
            ask(&mut node, command, 10_000, &mut sent);
        }
        assert!(answers(sent).is_empty(), "there is no room for them");
        assert!(node.kept_answers() <= 1, "{} are kept", node.kept_answers());
        let mut sent = Vec::new();
        node.handle(NOW, Event::Drained { channel: CHANNEL }, &mut sent);
        drain(&mut node, &mut sent);
        let answers = answers(sent);
        assert_eq!(answers.len(), 40_000, "every question has its answer");
        assert!(answers[0].starts_with('{'), "{}", answers[0]);
        assert!(answers[1..].iter().all(|text| text == "failed: read the earlier answers first"));
    }

    #[test]
    fn questions_about_ports_count_as_answers_that_are_not_read() {
        let (mut node, mut sent) = (testing::node(Registry::new()), Vec::new());
        node.handle(NOW, Event::Congested { channel: CHANNEL }, &mut sent);
        ask(&mut node, "show ports", 10_000, &mut sent);
        let asked = sent.iter().filter(|action| matches!(action, Action::Count { .. })).count();
        assert_eq!((asked, node.kept_answers()), (1, 1));
    }

    #[test]
    fn a_failure_does_not_overtake_an_earlier_answer() {
        let (mut node, mut sent) = (testing::node(Registry::new()), Vec::new());
        let long = Value::String("x".repeat(1_000_000));
        node.replies.send(CHANNEL, &long, &mut sent);
        ask(&mut node, "show nonsense", 1, &mut sent);
        node.message(NOW, CHANNEL, Packet::from_slice(b"nonsense"), &mut sent);
        drain(&mut node, &mut sent);
        let answers = answers(sent);
        assert_eq!(answers[0], long.to_string());
        assert!(answers[1].starts_with("failed: there is no `nonsense`"), "{}", answers[1]);
        assert!(answers[2].starts_with("failed: "), "{}", answers[2]);
    }
}
