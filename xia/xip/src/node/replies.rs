//! Replies to commands on their way: a long one leaves in portions, because a channel whose reader is
//! slower than the node drops what is beyond its queue, and a reply without its end is of no use. Who asks on
//! without reading is refused, and of that only a number is kept: no reader can fill the node's memory.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use weft_base::{ChannelId, Packet};
use weft_runtime::Action;

use crate::channel;

/// Messages sent at a time on one channel; its queue holds several times as many.
const PORTION: usize = 64;
/// With so many messages waiting, commands are refused on a channel that keeps up, too: they come faster than
/// the replies leave.
const MOST_WAITING: usize = 4096;
/// What a refused command is told.
const READ_FIRST: &str = "read the earlier answers first";

/// What still has to be sent, by channel.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: BTreeMap<ChannelId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Packet>,
    /// How many refusals follow them.
    refused: u64,
    congested: bool,
}

impl Replies {
    /// Sends a reply behind those that wait on the same channel.
    pub(super) fn send(&mut self, channel: ChannelId, value: &Value, out: &mut Vec<Action>) {
        self.queue(channel, channel::emit_reply(&value.to_string()), out);
    }

    /// Says why a command failed, behind the replies that wait on the same channel.
    pub(super) fn fail(&mut self, channel: ChannelId, error: &str, out: &mut Vec<Action>) {
        self.queue(channel, [channel::emit_failed(error)], out);
    }

    fn queue(
        &mut self,
        channel: ChannelId,
        messages: impl IntoIterator<Item = Packet>,
        out: &mut Vec<Action>,
    ) {
        let waiting = self.waiting.entry(channel).or_default();
        let is_first = !waiting.has_something();
        waiting.messages.extend(messages);
        if is_first {
            self.go_on_with(channel, out);
        }
    }

    /// Refuses a command if the channel does not take what it was told before, or `is_asking` says that
    /// something is still to come that it would not take.
    pub(super) fn refuses(&mut self, channel: ChannelId, is_asking: bool) -> bool {
        let Some(waiting) = self.waiting.get_mut(&channel) else { return false };
        let is_behind = waiting.congested && (is_asking || waiting.has_something())
            || waiting.refused > 0
            || waiting.messages.len() >= MOST_WAITING;
        waiting.refused += u64::from(is_behind);
        is_behind
    }

    /// Sends the next portion of what waits.
    pub(super) fn go_on(&mut self, out: &mut Vec<Action>) {
        let next = self.waiting.iter().find(|(_, waiting)| waiting.can_go_on());
        if let Some(channel) = next.map(|(channel, _)| *channel) {
            self.go_on_with(channel, out);
        }
    }

    /// Whether [`Replies::go_on`] has something to do.
    pub(super) fn can_go_on(&self) -> bool {
        self.waiting.values().any(Waiting::can_go_on)
    }

    fn go_on_with(&mut self, channel: ChannelId, out: &mut Vec<Action>) {
        let Some(waiting) = self.waiting.get_mut(&channel) else { return };
        if !waiting.congested {
            let messages = waiting.next_portion();
            out.extend(messages.map(|message| Action::Send { channel, message: message.into() }));
        }
        if !waiting.has_something() && !waiting.congested {
            self.waiting.remove(&channel);
        }
    }

    /// The other side of a channel does not keep up, or does again.
    pub(super) fn set_congested(&mut self, channel: ChannelId, congested: bool) {
        if congested {
            self.waiting.entry(channel).or_default().congested = true;
        } else if let Some(waiting) = self.waiting.get_mut(&channel) {
            waiting.congested = false;
            if !waiting.has_something() {
                self.waiting.remove(&channel);
            }
        }
    }

    /// How many messages are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.messages.len()).sum()
    }

    /// A channel is gone.
    pub(super) fn forget(&mut self, channel: ChannelId) {
        self.waiting.remove(&channel);
    }
}

impl Waiting {
    fn can_go_on(&self) -> bool {
        !self.congested && self.has_something()
    }

    fn has_something(&self) -> bool {
        !self.messages.is_empty() || self.refused > 0
    }

    /// Takes out what is sent next: what waits, and then refusals.
    fn next_portion(&mut self) -> impl Iterator<Item = Packet> {
        let portion = self.messages.len().min(PORTION);
        let refusals = self.refused.min((PORTION - portion) as u64);
        self.refused -= refusals;
        let refusals = (0..refusals).map(|_| channel::emit_failed(READ_FIRST));
        self.messages.drain(..portion).chain(refusals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Response;

    const SLOW: ChannelId = ChannelId(1);
    const FAST: ChannelId = ChannelId(2);

    /// The text that `sent` carries on a channel, and whether its end is there.
    fn text(sent: &[Action], of: ChannelId) -> (String, bool) {
        let (mut bytes, mut is_whole) = (Vec::new(), false);
        for action in sent {
            let Action::Send { channel, message } = action else { panic!("{action:?}") };
            if *channel == of {
                let Ok(Response::Reply { last, part }) =
                    Response::parse(message.buffer.duplicate().into())
                else {
                    panic!("not a reply")
                };
                bytes.extend(part);
                is_whole = last;
            }
        }
        (String::from_utf8(bytes).unwrap(), is_whole)
    }

    #[test]
    fn a_long_reply_waits_for_a_slow_reader_and_lets_others_pass() {
        let (mut replies, mut sent) = (Replies::default(), Vec::new());
        let long = Value::String("x".repeat(1400 * 3 * PORTION));
        replies.send(SLOW, &long, &mut sent);
        assert_eq!(sent.len(), PORTION);
        replies.set_congested(SLOW, true);
        assert!(!replies.can_go_on());
        replies.send(FAST, &Value::Bool(true), &mut sent);
        assert_eq!(text(&sent, FAST), ("true".to_owned(), true));
        // A second reply on the same channel must not overtake the first.
        replies.send(SLOW, &Value::Bool(false), &mut sent);
        assert_eq!(sent.len(), PORTION + 1);
        replies.set_congested(SLOW, false);
        while replies.can_go_on() {
            replies.go_on(&mut sent);
        }
        assert_eq!(text(&sent, SLOW), (format!("{long}false"), true));
        assert!(replies.waiting.is_empty());
    }

    #[test]
    fn whoever_asks_faster_than_replies_leave_is_refused_until_they_have_left() {
        let (mut replies, mut sent) = (Replies::default(), Vec::new());
        assert!(!replies.refuses(FAST, false));
        let long = Value::String("x".repeat(1400 * (MOST_WAITING + PORTION)));
        replies.send(FAST, &long, &mut sent);
        assert!(replies.refuses(FAST, false) && !replies.refuses(SLOW, false));
        while replies.can_go_on() {
            replies.go_on(&mut sent);
        }
        assert_eq!(sent.len(), MOST_WAITING + PORTION + 1 + 1, "with its end, and the refusal");
        assert!(!replies.refuses(FAST, false) && replies.waiting.is_empty());
    }

    #[test]
    fn nothing_is_kept_of_a_channel_that_is_gone() {
        let (mut replies, mut sent) = (Replies::default(), Vec::new());
        replies.send(SLOW, &Value::String("x".repeat(1400 * 2 * PORTION)), &mut sent);
        replies.forget(SLOW);
        assert!(!replies.can_go_on() && replies.waiting.is_empty());
    }
}
