//! How many messages of each type there were.
//!
//! Reference: RFC 4271 §4.1 (types).

use super::stream::{MessageType, peek};

/// How many messages of each type there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageCounts([u64; MessageType::ALL.len()]);

impl MessageCounts {
    /// There is one more.
    pub(crate) fn add(&mut self, kind: MessageType) {
        // Codes begin at 1.
        self.0[usize::from(kind.code()) - 1] += 1;
    }

    /// There are those that stand in `bytes`, one behind the other, as this process has made them.
    pub(crate) fn add_all(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((kind, behind)) = peek(rest) {
            self.add(kind);
            rest = behind;
        }
    }

    /// How many of a type there were.
    pub(crate) fn of(&self, kind: MessageType) -> u64 {
        self.0[usize::from(kind.code()) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Family, RefreshKind, RouteRefresh, end_of_rib, keepalive};
    use super::*;

    #[test]
    fn messages_that_are_sent_together_are_counted_one_by_one() {
        let mut counts = MessageCounts::default();
        let (family, kind) = (Family::IPV4_UNICAST, RefreshKind::Request);
        let refresh = RouteRefresh { family, kind }.emit();
        let all = [end_of_rib(family), keepalive(), end_of_rib(family), refresh].concat();
        counts.add_all(&all);
        counts.add(MessageType::Open);
        assert_eq!(MessageType::ALL.map(|kind| counts.of(kind)), [1, 2, 0, 1, 1]);
        // What is no message ends it.
        counts.add_all(&all[..30]);
        counts.add_all(&[0; 30]);
        assert_eq!(MessageType::ALL.map(|kind| counts.of(kind)), [1, 3, 0, 1, 1]);
    }
}
