//! Ranges of numbers, such as those of autonomous systems, and sets of them.

use std::fmt;
use std::str::FromStr;

/// The numbers from one to another, both included: `65001`, `64512-65534`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberRange {
    /// The least.
    pub least: u64,
    /// The greatest.
    pub greatest: u64,
}

/// What a word is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a number, or two with `-` between, the lower one first: `65001`, `64512-65534`")]
pub struct NumberError;

impl FromStr for NumberRange {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| NumberError),
            false => Err(NumberError),
        };
        let (least, greatest) = match text.split_once('-') {
            Some((least, greatest)) => (number(least)?, number(greatest)?),
            None => (number(text)?, number(text)?),
        };
        if least > greatest { Err(NumberError) } else { Ok(Self { least, greatest }) }
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least == self.greatest {
            true => write!(f, "{}", self.least),
            false => write!(f, "{}-{}", self.least, self.greatest),
        }
    }
}

/// A set of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NumberSet {
    /// As they were written.
    pub(crate) entries: Vec<NumberRange>,
    /// In order, without gaps or overlaps between neighbours.
    merged: Vec<NumberRange>,
}

impl NumberSet {
    pub(crate) fn new(entries: Vec<NumberRange>) -> Self {
        let mut sorted = entries.clone();
        sorted.sort_unstable();
        let mut merged: Vec<NumberRange> = Vec::new();
        for range in sorted {
            match merged.last_mut() {
                Some(last) if range.least <= last.greatest.saturating_add(1) => {
                    last.greatest = last.greatest.max(range.greatest);
                }
                _ => merged.push(range),
            }
        }
        Self { entries, merged }
    }

    /// Whether a number is in it.
    pub(crate) fn contains(&self, number: u64) -> bool {
        let behind = self.merged.partition_point(|range| range.least <= number);
        behind > 0 && self.merged[behind - 1].greatest >= number
    }
}
