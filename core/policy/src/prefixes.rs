//! Prefixes with ranges of lengths, and sets of them.
//!
//! | written | prefixes that are meant |
//! |---|---|
//! | `192.0.2.0/24`, `… exact` | this one |
//! | `… longer` | those inside it |
//! | `… orlonger` | this one and those inside it |
//! | `… upto 28` | this one and those inside it, up to this length |
//! | `… range 26-28` | those inside it with such a length |
//! | `… shorter` | those that it is inside of |
//! | `… orshorter` | this one and those that it is inside of |
//!
//! Reference: the operators of XORP's policies (`exact longer orlonger shorter orshorter`), and `upto` and
//! `prefix-length-range` of Junos.
//!
//! A set is asked in a time that grows with the logarithm of its size: what prefixes of the same address and length
//! accept is one set of lengths, and it is looked up once for each length that there is (129 at most).

use std::fmt;

use ipnet::IpNet;

use crate::number::NumberRange;

/// Which lengths are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Its own.
    Exact,
    /// Greater ones, and perhaps its own.
    Longer {
        /// Whether its own is meant, too.
        or_own: bool,
    },
    /// Its own, and greater ones up to this.
    Upto(u8),
    /// Those between.
    Range(u8, u8),
    /// Lower ones, and perhaps its own.
    Shorter {
        /// Whether its own is meant, too.
        or_own: bool,
    },
}

/// Prefixes that are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRange {
    /// The prefix, without bits behind its length.
    pub prefix: IpNet,
    /// Which lengths.
    pub lengths: Lengths,
}

/// Why words are no prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixRangeError {
    /// The first word.
    #[error("write an address and a length with `/` between: `192.0.2.0/24`")]
    Prefix,
    /// The address has bits behind the length.
    #[error("it has bits behind its length: write `{0}`")]
    Bits(IpNet),
    /// The second word.
    #[error(
        "write `exact`, `longer`, `orlonger`, `shorter`, `orshorter`, `upto 28` or `range 26-28` behind a prefix"
    )]
    Word,
    /// The length.
    #[error("lengths are from that of the prefix to {0}")]
    Length(u8),
}

impl PrefixRange {
    /// Reads the words; says at which something is wrong.
    ///
    /// # Errors
    /// The place of the word among them, and what must be written.
    pub fn parse(words: &[&str]) -> Result<Self, (usize, PrefixRangeError)> {
        let first = words.first().copied().unwrap_or_default();
        let prefix: IpNet = first.parse().map_err(|_| (0, PrefixRangeError::Prefix))?;
        if prefix != prefix.trunc() {
            return Err((0, PrefixRangeError::Bits(prefix.trunc())));
        }
        let most = prefix.max_prefix_len();
        let number = |range: NumberRange| match u8::try_from(range.least)
            .ok()
            .zip(u8::try_from(range.greatest).ok())
        {
            Some((least, greatest)) if least >= prefix.prefix_len() && greatest <= most => {
                Ok((least, greatest))
            }
            _ => Err((2, PrefixRangeError::Length(most))),
        };
        let lengths = match words.get(1..).unwrap_or_default() {
            [] | ["exact"] => Lengths::Exact,
            ["longer"] => Lengths::Longer { or_own: false },
            ["orlonger"] => Lengths::Longer { or_own: true },
            ["shorter"] => Lengths::Shorter { or_own: false },
            ["orshorter"] => Lengths::Shorter { or_own: true },
            [word @ ("upto" | "range"), length] => {
                let range = length.parse().map_err(|_| (2, PrefixRangeError::Length(most)))?;
                let (least, greatest) = number(range)?;
                match (*word, least == greatest) {
                    ("upto", true) => Lengths::Upto(greatest),
                    ("upto", false) => return Err((2, PrefixRangeError::Length(most))),
                    _ => Lengths::Range(least, greatest),
                }
            }
            _ => return Err((1, PrefixRangeError::Word)),
        };
        Ok(Self { prefix, lengths })
    }

    /// Whether a prefix is meant.
    #[must_use]
    pub fn matches(&self, prefix: &IpNet) -> bool {
        let length = prefix.prefix_len();
        match self.lengths {
            Lengths::Shorter { or_own } => {
                prefix.contains(&self.prefix) && (or_own || length < self.prefix.prefix_len())
            }
            _ => {
                let (least, greatest) = self.accepted();
                self.prefix.contains(prefix) && (least..=greatest).contains(&length)
            }
        }
    }

    /// The lengths of prefixes inside it that are meant.
    fn accepted(&self) -> (u8, u8) {
        let (own, most) = (self.prefix.prefix_len(), self.prefix.max_prefix_len());
        match self.lengths {
            Lengths::Exact | Lengths::Shorter { .. } => (own, own),
            Lengths::Longer { or_own } => (own + u8::from(!or_own), most),
            Lengths::Upto(greatest) => (own, greatest),
            Lengths::Range(least, greatest) => (least, greatest),
        }
    }
}

impl fmt::Display for PrefixRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.prefix)?;
        match self.lengths {
            Lengths::Exact => Ok(()),
            Lengths::Longer { or_own: true } => f.write_str(" orlonger"),
            Lengths::Longer { or_own: false } => f.write_str(" longer"),
            Lengths::Shorter { or_own: true } => f.write_str(" orshorter"),
            Lengths::Shorter { or_own: false } => f.write_str(" shorter"),
            Lengths::Upto(greatest) => write!(f, " upto {greatest}"),
            Lengths::Range(least, greatest) if least == greatest => write!(f, " range {least}"),
            Lengths::Range(least, greatest) => write!(f, " range {least}-{greatest}"),
        }
    }
}

/// A set of lengths from 0 to 128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LengthSet([u64; 3]);

impl LengthSet {
    fn add(&mut self, least: u8, greatest: u8) {
        for length in least..=greatest {
            self.0[usize::from(length) / 64] |= 1 << (length % 64);
        }
    }

    fn contains(&self, length: u8) -> bool {
        self.0[usize::from(length) / 64] & 1 << (length % 64) != 0
    }
}

/// A prefix in the order of the index: its bits, from the highest on, and its length.
type Key = (u128, u8);

fn key(prefix: &IpNet) -> Key {
    match prefix {
        IpNet::V4(prefix) => (u128::from(u32::from(prefix.network())) << 96, prefix.prefix_len()),
        IpNet::V6(prefix) => (u128::from(prefix.network()), prefix.prefix_len()),
    }
}

/// The first bits of an address.
fn first_bits(bits: u128, length: u8) -> u128 {
    if length == 0 { 0 } else { bits & u128::MAX << (128 - length) }
}

/// Those of one version of IP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Index {
    /// Which lengths of prefixes inside are accepted, in order.
    inside: Vec<(Key, LengthSet)>,
    /// The lengths of these.
    lengths: Vec<u8>,
    /// Those inside of which others must be, in order; and whether they are accepted themselves.
    outside: Vec<(Key, bool)>,
}

impl Index {
    fn new<'a>(entries: impl Iterator<Item = &'a PrefixRange>) -> Self {
        let mut index = Self::default();
        let mut entries: Vec<_> = entries.map(|entry| (key(&entry.prefix), entry)).collect();
        entries.sort_by_key(|(key, _)| *key);
        for (key, entry) in entries {
            if let Lengths::Shorter { or_own } = entry.lengths {
                match index.outside.last_mut() {
                    Some((last, own)) if *last == key => *own |= or_own,
                    _ => index.outside.push((key, or_own)),
                }
                continue;
            }
            if index.inside.last().is_none_or(|(last, _)| *last != key) {
                index.inside.push((key, LengthSet::default()));
            }
            if let Some((_, lengths)) = index.inside.last_mut() {
                let (least, greatest) = entry.accepted();
                lengths.add(least, greatest);
            }
        }
        index.lengths = index.inside.iter().map(|((_, length), _)| *length).collect();
        index.lengths.sort_unstable();
        index.lengths.dedup();
        index
    }

    fn contains(&self, (bits, length): Key) -> bool {
        let accepts = |own: &u8| {
            let key = (first_bits(bits, *own), *own);
            let place = self.inside.binary_search_by_key(&key, |(key, _)| *key);
            place.is_ok_and(|place| self.inside[place].1.contains(length))
        };
        self.lengths.iter().take_while(|own| **own <= length).any(accepts)
            || self.is_outside((bits, length))
    }

    /// Whether one that others must be outside of is inside of this prefix.
    fn is_outside(&self, (bits, length): Key) -> bool {
        let from = self.outside.partition_point(|(key, _)| *key < (bits, length));
        // The prefix itself comes first, then those inside of it.
        let mut rest = self.outside[from..].iter();
        match rest.next() {
            Some((key, true)) if *key == (bits, length) => true,
            Some((key, false)) if *key == (bits, length) => {
                rest.next().is_some_and(|((inner, _), _)| first_bits(*inner, length) == bits)
            }
            Some(((inner, _), _)) => first_bits(*inner, length) == bits,
            None => false,
        }
    }

    /// Whether an address is inside of one of them.
    fn covers(&self, bits: u128) -> bool {
        self.lengths.iter().any(|own| {
            let key = (first_bits(bits, *own), *own);
            self.inside.binary_search_by_key(&key, |(key, _)| *key).is_ok()
        })
    }
}

/// A set of prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixSet {
    /// As they were written.
    pub(crate) entries: Vec<PrefixRange>,
    v4: Index,
    v6: Index,
}

impl PrefixSet {
    pub(crate) fn new(entries: Vec<PrefixRange>) -> Self {
        let of = |is_v4: bool| {
            entries.iter().filter(move |entry| matches!(entry.prefix, IpNet::V4(_)) == is_v4)
        };
        let (v4, v6) = (Index::new(of(true)), Index::new(of(false)));
        Self { entries, v4, v6 }
    }

    fn index(&self, prefix: &IpNet) -> &Index {
        if matches!(prefix, IpNet::V4(_)) { &self.v4 } else { &self.v6 }
    }

    /// Whether a prefix is in it.
    pub(crate) fn contains(&self, prefix: &IpNet) -> bool {
        self.index(prefix).contains(key(prefix))
    }

    /// Whether an address is in one of its prefixes, whatever lengths are meant.
    pub(crate) fn covers(&self, address: std::net::IpAddr) -> bool {
        let host = IpNet::from(address);
        self.index(&host).covers(key(&host).0)
    }
}
