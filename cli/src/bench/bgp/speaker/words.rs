//! What a speaker is told and what it reports: lines of words, a word and its numbers.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::bgp::session::Time;

/// What a speaker is told, in the order in which it does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Order {
    /// Encode a table of so many routes. [`Report::Ready`]
    Table(usize),
    /// Open the session, again and again until it is open. [`Report::Up`]
    Connect,
    /// Close the connection without a word. [`Report::Closed`]
    Close,
    /// Send the table. [`Report::Sent`]
    Send,
    /// Say that all routes were announced (End-of-RIB), behind what is being sent.
    End,
    /// Say when the peer has told of so many routes, now or later. [`Report::Reached`]
    Await(usize),
    /// Announce a probe, behind what is being sent. [`Report::Announced`]
    Announce(usize),
    /// Withdraw a probe. [`Report::Withdrawn`]
    Withdraw(usize),
    /// Say how many routes there are. [`Report::Count`]
    Count,
    /// Read nothing from the session until [`Order::Resume`].
    Pause,
    /// Read again.
    Resume,
}

/// What a speaker reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Report {
    /// The table has so many bytes, in so many messages.
    Ready { bytes: usize, messages: usize },
    /// The session is open since then.
    Up(Time),
    /// The connection is closed since then.
    Closed(Time),
    /// The table was sent: just before the first byte, and when the last one was handed to the kernel.
    Sent { first: Time, last: Time },
    /// The peer has told of so many routes since then.
    Reached { count: usize, time: Time },
    /// A probe was announced just after then.
    Announced { probe: usize, time: Time },
    /// A probe was withdrawn just after then.
    Withdrawn { probe: usize, time: Time },
    /// The peer has told of a probe.
    Came { probe: usize, time: Time },
    /// The peer has taken a probe back.
    Went { probe: usize, time: Time },
    /// So many routes are there, of which the last came or went then; probes excepted.
    Count { count: usize, last: Time },
    /// The session has ended, and why.
    Lost(String),
}

impl Display for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(count) => write!(f, "table {count}"),
            Self::Connect => f.write_str("connect"),
            Self::Close => f.write_str("close"),
            Self::Send => f.write_str("send"),
            Self::End => f.write_str("end"),
            Self::Await(count) => write!(f, "await {count}"),
            Self::Announce(probe) => write!(f, "announce {probe}"),
            Self::Withdraw(probe) => write!(f, "withdraw {probe}"),
            Self::Count => f.write_str("count"),
            Self::Pause => f.write_str("pause"),
            Self::Resume => f.write_str("resume"),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { bytes, messages } => write!(f, "ready {bytes} {messages}"),
            Self::Up(time) => write!(f, "up {time}"),
            Self::Closed(time) => write!(f, "closed {time}"),
            Self::Sent { first, last } => write!(f, "sent {first} {last}"),
            Self::Reached { count, time } => write!(f, "reached {count} {time}"),
            Self::Announced { probe, time } => write!(f, "announced {probe} {time}"),
            Self::Withdrawn { probe, time } => write!(f, "withdrawn {probe} {time}"),
            Self::Came { probe, time } => write!(f, "came {probe} {time}"),
            Self::Went { probe, time } => write!(f, "went {probe} {time}"),
            Self::Count { count, last } => write!(f, "count {count} {last}"),
            Self::Lost(why) => write!(f, "lost {why}"),
        }
    }
}

/// The numbers behind the first word; none if one is not a number.
fn numbers(words: &str) -> Vec<u64> {
    words.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Ok(match (word, &numbers(rest)[..]) {
            ("table", [count]) => Self::Table(*count as usize),
            ("connect", []) => Self::Connect,
            ("close", []) => Self::Close,
            ("send", []) => Self::Send,
            ("end", []) => Self::End,
            ("await", [count]) => Self::Await(*count as usize),
            ("announce", [probe]) => Self::Announce(*probe as usize),
            ("withdraw", [probe]) => Self::Withdraw(*probe as usize),
            ("count", []) => Self::Count,
            ("pause", []) => Self::Pause,
            ("resume", []) => Self::Resume,
            _ => return Err(format!("`{line}` is no order to a speaker")),
        })
    }
}

impl FromStr for Report {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Ok(match (word, &numbers(rest)[..]) {
            ("lost", _) => Self::Lost(rest.to_owned()),
            ("ready", [bytes, messages]) => {
                Self::Ready { bytes: *bytes as usize, messages: *messages as usize }
            }
            ("up", [time]) => Self::Up(Time(*time)),
            ("closed", [time]) => Self::Closed(Time(*time)),
            ("sent", [first, last]) => Self::Sent { first: Time(*first), last: Time(*last) },
            ("reached", [count, time]) => {
                Self::Reached { count: *count as usize, time: Time(*time) }
            }
            ("announced", [probe, time]) => {
                Self::Announced { probe: *probe as usize, time: Time(*time) }
            }
            ("withdrawn", [probe, time]) => {
                Self::Withdrawn { probe: *probe as usize, time: Time(*time) }
            }
            ("came", [probe, time]) => Self::Came { probe: *probe as usize, time: Time(*time) },
            ("went", [probe, time]) => Self::Went { probe: *probe as usize, time: Time(*time) },
            ("count", [count, last]) => Self::Count { count: *count as usize, last: Time(*last) },
            _ => return Err(format!("`{line}` is no report of a speaker")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        for order in [
            Order::Table(7),
            Order::Connect,
            Order::Close,
            Order::Send,
            Order::End,
            Order::Await(0),
            Order::Announce(1),
            Order::Withdraw(2),
            Order::Count,
            Order::Pause,
            Order::Resume,
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        let time = Time(u64::MAX);
        for report in [
            Report::Ready { bytes: 1, messages: 2 },
            Report::Up(time),
            Report::Closed(time),
            Report::Sent { first: Time(1), last: time },
            Report::Reached { count: 3, time },
            Report::Announced { probe: 4, time },
            Report::Withdrawn { probe: 4, time },
            Report::Came { probe: 5, time },
            Report::Went { probe: 5, time },
            Report::Count { count: 6, last: time },
            Report::Lost("the peer says: cease".to_owned()),
        ] {
            assert_eq!(report.to_string().parse(), Ok(report));
        }
        assert!("await".parse::<Order>().is_err() && "await x".parse::<Order>().is_err());
        assert!("up".parse::<Report>().is_err());
    }
}
