//! Communities of the three kinds, and patterns of them.
//!
//! ```text
//! 65000:100            65000:*            65000:100-199        no-export
//! rt:65000:100         soo:192.0.2.1:*    rt:4200000000:7      0x4300000000000001
//! 65000:1:2            65000:*:1-9
//! ```
//!
//! Reference: RFC 1997 and RFC 7999, 8326, 9494 (well-known ones); RFC 4360 §3 and RFC 5668 (extended ones: an autonomous
//! system of two octets, an address, or an autonomous system of four octets, then a number); RFC 8092 §5 (the text form of
//! large ones).

use std::fmt;
use std::net::Ipv4Addr;

use crate::number::NumberRange;

/// Which communities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommunityKind {
    /// Those of RFC 1997: 32 bits.
    Standard,
    /// Those of RFC 4360: 64 bits.
    Extended,
    /// Those of RFC 8092: 96 bits.
    Large,
}

/// Communities with names, and their numbers.
const WELL_KNOWN: &[(&str, u128)] = &[
    ("graceful-shutdown", 0xFFFF_0000),
    ("llgr-stale", 0xFFFF_0006),
    ("no-llgr", 0xFFFF_0007),
    ("blackhole", 0xFFFF_029A),
    ("no-export", 0xFFFF_FF01),
    ("no-advertise", 0xFFFF_FF02),
    ("no-export-subconfed", 0xFFFF_FF03),
    ("no-peer", 0xFFFF_FF04),
];

/// Subtypes of extended communities with names (RFC 4360 §4 and §5).
const SUBTYPES: &[(&str, u8)] = &[("rt", 2), ("soo", 3)];

/// Types of extended communities whose parts are told apart, the transitive ones.
const TWO_OCTETS: u8 = 0;
const ADDRESS: u8 = 1;
const FOUR_OCTETS: u8 = 2;

/// Why a word is no community.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommunityError {
    /// Of the usual kind.
    #[error(
        "write two numbers up to 65535 with `:` between, or a name such as `no-export`; in a pattern `*` stands \
         for any number and `1-9` for a range: `65000:100`"
    )]
    Standard,
    /// An extended one.
    #[error(
        "write `rt:` or `soo:`, an autonomous system or an address, and a number, or all 64 bits as `0x…`; in a \
         pattern `*` stands for any last number: `rt:65000:100`"
    )]
    Extended,
    /// A large one.
    #[error(
        "write three numbers with `:` between; in a pattern `*` stands for any number and `1-9` for a range: \
         `65000:1:2`"
    )]
    Large,
}

/// Some bits of a community, which must be in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Where its bits begin, counted from the lowest.
    shift: u8,
    /// How many it has.
    width: u8,
    range: NumberRange,
}

impl Part {
    fn most(width: u8) -> u64 {
        u64::MAX >> (64 - width)
    }

    /// Reads a number, a range or `*`.
    fn parse(text: &str, shift: u8, width: u8) -> Option<Self> {
        let most = Self::most(width);
        let range = match text {
            "*" => NumberRange { least: 0, greatest: most },
            text => text.parse().ok()?,
        };
        (range.greatest <= most).then_some(Self { shift, width, range })
    }

    fn exactly(number: u64, shift: u8, width: u8) -> Self {
        Self { shift, width, range: NumberRange { least: number, greatest: number } }
    }

    fn of(self, community: u128) -> u64 {
        (community >> self.shift) as u64 & Self::most(self.width)
    }

    fn matches(self, community: u128) -> bool {
        (self.range.least..=self.range.greatest).contains(&self.of(community))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = NumberRange { least: 0, greatest: Self::most(self.width) };
        if self.range == all { f.write_str("*") } else { write!(f, "{}", self.range) }
    }
}

/// Which communities are meant: one, or those whose parts are in ranges.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommunityPattern {
    kind: CommunityKind,
    parts: Vec<Part>,
}

impl CommunityPattern {
    /// Reads the word of a community or of a pattern.
    ///
    /// # Errors
    /// What must be written.
    pub fn parse(kind: CommunityKind, text: &str) -> Result<Self, CommunityError> {
        let (parts, error) = match kind {
            CommunityKind::Standard => (standard(text), CommunityError::Standard),
            CommunityKind::Extended => (extended(text), CommunityError::Extended),
            CommunityKind::Large => {
                (numbers(text, &[(64, 32), (32, 32), (0, 32)]), CommunityError::Large)
            }
        };
        parts.map(|parts| Self { kind, parts }).ok_or(error)
    }

    /// The one community that is meant; none if there are others.
    #[must_use]
    pub fn only(&self) -> Option<u128> {
        self.parts.iter().try_fold(0, |all, part| {
            let NumberRange { least, greatest } = part.range;
            (least == greatest).then_some(all | u128::from(least) << part.shift)
        })
    }

    /// Whether a community is meant.
    #[must_use]
    pub fn matches(&self, community: u128) -> bool {
        self.parts.iter().all(|part| part.matches(community))
    }
}

/// Numbers with `:` between, each of so many bits from a place on.
fn numbers(text: &str, places: &[(u8, u8)]) -> Option<Vec<Part>> {
    let words: Vec<_> = text.split(':').collect();
    if words.len() != places.len() {
        return None;
    }
    let parts = words.into_iter().zip(places);
    parts.map(|(word, (shift, width))| Part::parse(word, *shift, *width)).collect()
}

fn standard(text: &str) -> Option<Vec<Part>> {
    if let Some((_, number)) = WELL_KNOWN.iter().find(|(name, _)| *name == text) {
        let number = *number as u64;
        return Some(vec![
            Part::exactly(number >> 16, 16, 16),
            Part::exactly(number & 0xFFFF, 0, 16),
        ]);
    }
    numbers(text, &[(16, 16), (0, 16)])
}

fn extended(text: &str) -> Option<Vec<Part>> {
    if let Some(digits) = text.strip_prefix("0x") {
        let is_whole = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_whole)?;
        return Some(vec![Part::exactly(number, 0, 64)]);
    }
    let mut words = text.split(':');
    let (name, administrator, number) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let (_, subtype) = SUBTYPES.iter().find(|(known, _)| *known == name)?;
    let (kind, administrator, is_long) = match administrator.parse::<Ipv4Addr>() {
        Ok(address) => (ADDRESS, u32::from(address), true),
        Err(_) => {
            let range: NumberRange = administrator.parse().ok()?;
            let system =
                u32::try_from(range.least).ok().filter(|_| range.least == range.greatest)?;
            let is_long = system > u32::from(u16::MAX);
            (if is_long { FOUR_OCTETS } else { TWO_OCTETS }, system, is_long)
        }
    };
    let head = Part::exactly(u64::from(kind) << 8 | u64::from(*subtype), 48, 16);
    let (own, width) = if is_long { (32, 16) } else { (16, 32) };
    let administrator = Part::exactly(administrator.into(), width, own);
    Some(vec![head, administrator, Part::parse(number, 0, width)?])
}

impl fmt::Display for CommunityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.only()) {
            (kind, Some(community)) => write!(f, "{}", kind.shown(community)),
            (CommunityKind::Extended, None) => {
                // Only the last part may be a range.
                let least = self
                    .parts
                    .iter()
                    .fold(0, |all, part| all | u128::from(part.range.least) << part.shift);
                let text = self.kind.shown(least).to_string();
                let head = text.rsplit_once(':').map_or(&*text, |(head, _)| head);
                write!(f, "{head}:{}", self.parts[self.parts.len() - 1])
            }
            (_, None) => {
                for (place, part) in self.parts.iter().enumerate() {
                    write!(f, "{}{part}", if place > 0 { ":" } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

impl CommunityKind {
    /// A community of this kind as people write it.
    #[must_use]
    pub fn shown(self, community: u128) -> impl fmt::Display {
        Shown { kind: self, community }
    }

    /// The community that a word names.
    ///
    /// # Errors
    /// What must be written.
    pub fn parse(self, text: &str) -> Result<u128, CommunityError> {
        let error = match self {
            Self::Standard => CommunityError::Standard,
            Self::Extended => CommunityError::Extended,
            Self::Large => CommunityError::Large,
        };
        CommunityPattern::parse(self, text)?.only().ok_or(error)
    }
}

struct Shown {
    kind: CommunityKind,
    community: u128,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.community;
        let bits = |shift: u8, width: u8| (whole >> shift) as u64 & Part::most(width);
        match self.kind {
            CommunityKind::Standard => {
                match WELL_KNOWN.iter().find(|(_, number)| *number == whole) {
                    Some((name, _)) => f.write_str(name),
                    None => write!(f, "{}:{}", bits(16, 16), bits(0, 16)),
                }
            }
            CommunityKind::Large => {
                write!(f, "{}:{}:{}", bits(64, 32), bits(32, 32), bits(0, 32))
            }
            CommunityKind::Extended => {
                let subtype = SUBTYPES.iter().find(|(_, number)| u64::from(*number) == bits(48, 8));
                match (bits(56, 8) as u8, subtype) {
                    (TWO_OCTETS, Some((name, _))) => {
                        write!(f, "{name}:{}:{}", bits(32, 16), bits(0, 32))
                    }
                    (ADDRESS, Some((name, _))) => {
                        write!(f, "{name}:{}:{}", Ipv4Addr::from(bits(16, 32) as u32), bits(0, 16))
                    }
                    // A short number in the long form would be read as the short form.
                    (FOUR_OCTETS, Some((name, _))) if bits(16, 32) > u64::from(u16::MAX) => {
                        write!(f, "{name}:{}:{}", bits(16, 32), bits(0, 16))
                    }
                    _ => write!(f, "0x{:016x}", bits(0, 64)),
                }
            }
        }
    }
}

/// A set of communities of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommunitySet {
    /// As they were written.
    pub(crate) entries: Vec<CommunityPattern>,
    /// Those that are one community each, in order.
    exact: Vec<u128>,
    /// The others.
    patterns: Vec<CommunityPattern>,
}

impl CommunitySet {
    pub(crate) fn new(entries: Vec<CommunityPattern>) -> Self {
        let mut exact: Vec<_> = entries.iter().filter_map(CommunityPattern::only).collect();
        exact.sort_unstable();
        let patterns = entries.iter().filter(|one| one.only().is_none()).cloned().collect();
        Self { entries, exact, patterns }
    }

    /// Whether a community is in it.
    pub(crate) fn contains(&self, community: u128) -> bool {
        self.exact.binary_search(&community).is_ok()
            || self.patterns.iter().any(|pattern| pattern.matches(community))
    }
}
