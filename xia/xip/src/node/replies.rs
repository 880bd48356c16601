//! Replies to commands on their way: a long one leaves in portions, because a channel whose reader is
//! slower than the node drops what is beyond its queue, and a reply without its end is of no use.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use weft_base::{ChannelId, Packet};
use weft_runtime::Action;

use crate::channel;

/// Messages sent at a time on one channel; its queue holds several times as many.
const PORTION: usize = 64;

/// What still has to be sent, by channel.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: BTreeMap<ChannelId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Packet>,
    congested: bool,
}

impl Replies {
    /// Sends a reply behind those that wait on the same channel.
    pub(super) fn send(&mut self, channel: ChannelId, value: &Value, out: &mut Vec<Action>) {
        let waiting = self.waiting.entry(channel).or_default();
        let is_first = waiting.messages.is_empty();
        waiting.messages.extend(channel::emit_reply(&value.to_string()));
        if is_first {
            self.go_on_with(channel, out);
        }
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
            let portion = waiting.messages.len().min(PORTION);
            let messages = waiting.messages.drain(..portion);
            out.extend(messages.map(|message| Action::Send { channel, message: message.into() }));
        }
        if waiting.messages.is_empty() && !waiting.congested {
            self.waiting.remove(&channel);
        }
    }

    /// The other side of a channel does not keep up, or does again.
    pub(super) fn set_congested(&mut self, channel: ChannelId, congested: bool) {
        if congested {
            self.waiting.entry(channel).or_default().congested = true;
        } else if let Some(waiting) = self.waiting.get_mut(&channel) {
            waiting.congested = false;
            if waiting.messages.is_empty() {
                self.waiting.remove(&channel);
            }
        }
    }

    /// A channel is gone.
    pub(super) fn forget(&mut self, channel: ChannelId) {
        self.waiting.remove(&channel);
    }
}

impl Waiting {
    fn can_go_on(&self) -> bool {
        !self.congested && !self.messages.is_empty()
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
    fn nothing_is_kept_of_a_channel_that_is_gone() {
        let (mut replies, mut sent) = (Replies::default(), Vec::new());
        replies.send(SLOW, &Value::String("x".repeat(1400 * 2 * PORTION)), &mut sent);
        replies.forget(SLOW);
        assert!(!replies.can_go_on() && replies.waiting.is_empty());
    }
}
