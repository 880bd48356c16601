//! The autonomous systems that a route has come through.
//!
//! ```text
//!  0 type of the segment
//!  1 number of autonomous systems
//!  2 autonomous systems (2 or 4 each)
//! ```
//!
//! Reference: RFC 4271 §4.3, §5.1.2, §9.1.2.2; RFC 5065 §3, §5 (confederations); RFC 6793 §4.2.3 (merging).

use std::fmt;

use crate::numbers::{AS_TRANS, segment};

/// The most autonomous systems of a segment.
const MAX_COUNT: usize = u8::MAX as usize;

/// Types of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// In no order.
    Set,
    /// The last one passed first.
    Sequence,
    /// Members of the confederation, the last one passed first.
    ConfedSequence,
    /// Members of the confederation in no order.
    ConfedSet,
}

impl SegmentKind {
    const fn code(self) -> u8 {
        match self {
            Self::Set => segment::SET,
            Self::Sequence => segment::SEQUENCE,
            Self::ConfedSequence => segment::CONFED_SEQUENCE,
            Self::ConfedSet => segment::CONFED_SET,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            segment::SET => Self::Set,
            segment::SEQUENCE => Self::Sequence,
            segment::CONFED_SEQUENCE => Self::ConfedSequence,
            segment::CONFED_SET => Self::ConfedSet,
            _ => return None,
        })
    }

    /// Whether its numbers are those of members of a confederation.
    #[must_use]
    pub const fn is_confederation(self) -> bool {
        matches!(self, Self::ConfedSequence | Self::ConfedSet)
    }

    /// Whether its numbers are in no order.
    #[must_use]
    pub const fn is_set(self) -> bool {
        matches!(self, Self::Set | Self::ConfedSet)
    }
}

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Its type.
    pub kind: SegmentKind,
    /// Its autonomous systems, 1 to 255.
    pub numbers: &'a [u32],
}

impl Segment<'_> {
    /// What it counts for in comparisons of lengths (RFC 4271 §9.1.2.2, RFC 5065 §5.3).
    const fn length(&self) -> usize {
        match self.kind {
            SegmentKind::Set => 1,
            SegmentKind::Sequence => self.numbers.len(),
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => 0,
        }
    }
}

/// Why bytes are no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsPathError {
    /// A segment of unknown type, without numbers, or longer than the attribute.
    #[error("a segment of the path is malformed")]
    Segment,
    /// Number 0, which nobody has (RFC 7607).
    #[error("the path goes through AS 0")]
    Zero,
}

/// A path. Segments stand one behind the other, each behind a word with its type and count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AsPath(Box<[u32]>);

impl AsPath {
    /// A path through `numbers`, the last one passed first.
    #[must_use]
    pub fn from_sequence(numbers: &[u32]) -> Self {
        let mut builder = Builder::default();
        builder.push(SegmentKind::Sequence, numbers);
        builder.build()
    }

    /// A path of these segments. Those that have more numbers than fit are split, those without any left out.
    #[must_use]
    pub fn from_segments<'a>(segments: impl IntoIterator<Item = Segment<'a>>) -> Self {
        let mut builder = Builder::default();
        segments.into_iter().for_each(|segment| builder.push(segment.kind, segment.numbers));
        builder.build()
    }

    /// Reads the value of an attribute whose numbers have four octets or two.
    ///
    /// # Errors
    /// It is malformed.
    pub fn parse(value: &[u8], four_octets: bool) -> Result<Self, AsPathError> {
        let width = if four_octets { 4 } else { 2 };
        let mut words = Vec::with_capacity(value.len() / width + 1);
        let mut rest = value;
        while let Some((kind, behind)) = rest.split_first() {
            let (count, behind) = behind.split_first().ok_or(AsPathError::Segment)?;
            let kind = SegmentKind::from_code(*kind).ok_or(AsPathError::Segment)?;
            let length = usize::from(*count) * width;
            let (numbers, behind) = behind.split_at_checked(length).ok_or(AsPathError::Segment)?;
            if numbers.is_empty() {
                return Err(AsPathError::Segment);
            }
            words.push(header(kind, usize::from(*count)));
            let from = words.len();
            if four_octets {
                words.extend(numbers.as_chunks().0.iter().map(|n| u32::from_be_bytes(*n)));
            } else {
                let number = |n: &[u8; 2]| u32::from(u16::from_be_bytes(*n));
                words.extend(numbers.as_chunks().0.iter().map(number));
            }
            if words[from..].contains(&0) {
                return Err(AsPathError::Zero);
            }
            rest = behind;
        }
        Ok(Self(words.into()))
    }

    /// Writes the value of an attribute. Where numbers have two octets, [`AS_TRANS`] stands for those that
    /// need more.
    pub fn emit(&self, four_octets: bool, out: &mut Vec<u8>) {
        for segment in self.segments() {
            // A segment has at most 255 numbers.
            out.extend_from_slice(&[segment.kind.code(), segment.numbers.len() as u8]);
            for number in segment.numbers {
                if four_octets {
                    out.extend_from_slice(&number.to_be_bytes());
                } else {
                    let short = u16::try_from(*number).unwrap_or(AS_TRANS);
                    out.extend_from_slice(&short.to_be_bytes());
                }
            }
        }
    }

    /// How many bytes [`AsPath::emit`] writes.
    #[must_use]
    pub fn emit_len(&self, four_octets: bool) -> usize {
        let width = if four_octets { 4 } else { 2 };
        self.segments().map(|segment| 2 + segment.numbers.len() * width).sum()
    }

    /// Its words, to be stored.
    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }

    /// A path that was stored as these words.
    pub(crate) fn from_words(words: &[u32]) -> Self {
        Self(words.into())
    }

    /// Its parts, the last one passed first.
    #[must_use]
    pub const fn segments(&self) -> Segments<'_> {
        Segments(&self.0)
    }

    /// Whether the route comes from here.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The length that routes are compared by: a set counts as one, what is inside the confederation not at all.
    #[must_use]
    pub fn length(&self) -> usize {
        self.segments().length()
    }

    /// Whether it goes through `number`, in or outside the confederation.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.segments().any(|segment| segment.numbers.contains(&number))
    }

    /// The member of the confederation that it came from; none if that has not added its number (RFC 5065 §4.1).
    #[must_use]
    pub fn first_member(&self) -> Option<u32> {
        let first = self.segments().next().filter(|one| one.kind == SegmentKind::ConfedSequence)?;
        first.numbers.first().copied()
    }

    /// The neighbouring autonomous system that it came from; none if it begins with a set, or has not left the
    /// confederation.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.segments().first()
    }

    /// The autonomous system where it begins; none if it ends in a set, or has not left the confederation.
    #[must_use]
    pub fn origin(&self) -> Option<u32> {
        let last = self.segments().last()?;
        if last.kind == SegmentKind::Sequence { last.numbers.last().copied() } else { None }
    }

    /// Whether it has numbers without an order, which RFC 9774 forbids.
    #[must_use]
    pub fn has_sets(&self) -> bool {
        self.segments().any(|segment| segment.kind.is_set())
    }

    /// Whether it has numbers of members of a confederation.
    #[must_use]
    pub fn has_confederation(&self) -> bool {
        self.segments().any(|segment| segment.kind.is_confederation())
    }

    /// Whether one of its numbers does not fit two octets.
    #[must_use]
    pub fn needs_four_octets(&self) -> bool {
        self.segments().any(|segment| segment.numbers.iter().any(|n| u16::try_from(*n).is_err()))
    }

    /// The same with `number`, `times` times, in front of what is outside the confederation. What is inside of it stays before
    /// that (RFC 5065 §4.1 and §5).
    #[must_use]
    pub fn prepend(&self, number: u32, times: usize) -> Self {
        let is_inside = |segment: &Segment<'_>| segment.kind.is_confederation();
        let inside = self.segments().take_while(is_inside).count();
        self.insert(inside, SegmentKind::Sequence, number, times)
    }

    /// The same with a member of the confederation in front (RFC 5065 §4.1).
    #[must_use]
    pub fn prepend_confederation(&self, number: u32) -> Self {
        self.insert(0, SegmentKind::ConfedSequence, number, 1)
    }

    /// The same with numbers behind the first segments. A segment that would become too long gets another in front of it.
    fn insert(&self, behind: usize, kind: SegmentKind, number: u32, times: usize) -> Self {
        let mut segments = self.segments();
        let mut builder = Builder::default();
        segments
            .by_ref()
            .take(behind)
            .for_each(|segment| builder.push(segment.kind, segment.numbers));
        let first = segments.clone().next().filter(|segment| segment.kind == kind);
        let room = first.map_or(0, |segment| MAX_COUNT - segment.numbers.len()).min(times);
        builder.push(kind, &vec![number; times - room]);
        if let Some(first) = first {
            let mut joined = vec![number; room];
            joined.extend_from_slice(first.numbers);
            builder.push(kind, &joined);
            segments.next();
        }
        segments.for_each(|segment| builder.push(segment.kind, segment.numbers));
        builder.build()
    }

    /// The same without what is inside the confederation, for those outside of it.
    #[must_use]
    pub fn without_confederation(&self) -> Self {
        Self::from_segments(self.segments().filter(|segment| !segment.kind.is_confederation()))
    }

    /// The path that an AS_PATH of two octets and this AS4_PATH stand for: where the first is longer, its
    /// front was added by those who know no AS4_PATH. If it is shorter, the AS4_PATH means nothing.
    #[must_use]
    pub fn merge(&self, as4: &Self) -> Self {
        let Some(mut surplus) = self.length().checked_sub(as4.length()) else {
            return self.clone();
        };
        let mut builder = Builder::default();
        for segment in self.segments() {
            match segment.kind {
                // It leads, or stands behind something that was taken.
                SegmentKind::ConfedSequence | SegmentKind::ConfedSet => {
                    builder.push(segment.kind, segment.numbers);
                }
                _ if surplus == 0 => break,
                SegmentKind::Set => {
                    builder.push(segment.kind, segment.numbers);
                    surplus -= 1;
                }
                SegmentKind::Sequence => {
                    let count = surplus.min(segment.numbers.len());
                    builder.push(segment.kind, &segment.numbers[..count]);
                    surplus -= count;
                    if count < segment.numbers.len() {
                        break;
                    }
                }
            }
        }
        let mut rest = as4.segments();
        // What was one sequence before it was cut becomes one again.
        if let Some(first) = rest.clone().next()
            && first.kind == SegmentKind::Sequence
        {
            builder.extend_sequence(first.numbers);
            rest.next();
        }
        rest.for_each(|segment| builder.push(segment.kind, segment.numbers));
        builder.build()
    }
}

/// `65001 65002 {65003 65004}`; members of a confederation in `( )`, or `[ ]` if they have no order.
impl fmt::Display for AsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.segments().enumerate() {
            let (open, close) = match segment.kind {
                SegmentKind::Sequence => ("", ""),
                SegmentKind::Set => ("{", "}"),
                SegmentKind::ConfedSequence => ("(", ")"),
                SegmentKind::ConfedSet => ("[", "]"),
            };
            write!(f, "{}{open}", if index == 0 { "" } else { " " })?;
            for (index, number) in segment.numbers.iter().enumerate() {
                write!(f, "{}{number}", if index == 0 { "" } else { " " })?;
            }
            f.write_str(close)?;
        }
        Ok(())
    }
}

/// The parts of a path.
#[derive(Clone, Debug)]
pub struct Segments<'a>(&'a [u32]);

impl<'a> Segments<'a> {
    /// Those of a path that is stored as these words.
    pub(crate) const fn of(words: &'a [u32]) -> Self {
        Self(words)
    }

    /// As [`AsPath::length`].
    pub(crate) fn length(self) -> usize {
        self.map(|segment| segment.length()).sum()
    }

    /// As [`AsPath::first`].
    pub(crate) fn first(mut self) -> Option<u32> {
        let outside = self.find(|segment| !segment.kind.is_confederation())?;
        (outside.kind == SegmentKind::Sequence).then(|| outside.numbers[0])
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let (header, rest) = self.0.split_first()?;
        let kind = SegmentKind::from_code((header >> 8) as u8)?;
        let (numbers, rest) = rest.split_at_checked((header & 0xFF) as usize)?;
        self.0 = rest;
        Some(Segment { kind, numbers })
    }
}

/// The word in front of a segment.
const fn header(kind: SegmentKind, count: usize) -> u32 {
    (kind.code() as u32) << 8 | count as u32
}

/// Puts segments behind each other.
#[derive(Default)]
struct Builder {
    words: Vec<u32>,
    /// Where the last segment's header is.
    last: Option<usize>,
}

impl Builder {
    fn push(&mut self, kind: SegmentKind, numbers: &[u32]) {
        // A first part that is not full, so that prepending to it needs no new one.
        let (short, whole) = numbers.split_at(numbers.len() % MAX_COUNT);
        let parts = std::iter::once(short).filter(|part| !part.is_empty());
        for part in parts.chain(whole.chunks(MAX_COUNT)) {
            self.last = Some(self.words.len());
            self.words.push(header(kind, part.len()));
            self.words.extend_from_slice(part);
        }
    }

    /// Adds a sequence to the last segment if that is one and has room.
    fn extend_sequence(&mut self, numbers: &[u32]) {
        if let Some(last) = self.last {
            let count = self.words.len() - last - 1;
            let is_sequence = self.words[last] == header(SegmentKind::Sequence, count);
            if is_sequence && count + numbers.len() <= MAX_COUNT {
                self.words[last] = header(SegmentKind::Sequence, count + numbers.len());
                return self.words.extend_from_slice(numbers);
            }
        }
        self.push(SegmentKind::Sequence, numbers);
    }

    fn build(self) -> AsPath {
        AsPath(self.words.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(segments: &[(SegmentKind, &[u32])]) -> AsPath {
        AsPath::from_segments(
            segments.iter().map(|(kind, numbers)| Segment { kind: *kind, numbers }),
        )
    }

    use SegmentKind::{ConfedSequence, ConfedSet, Sequence, Set};

    #[test]
    fn a_set_counts_as_one_and_a_confederation_as_nothing() {
        let path = path(&[(ConfedSequence, &[65001]), (Sequence, &[1, 2]), (Set, &[3, 4, 5])]);
        assert_eq!(path.length(), 3);
        assert_eq!((path.first(), path.origin()), (Some(1), None));
        assert!(path.contains(65001) && path.contains(4) && !path.contains(6));
        assert!(path.has_sets() && path.has_confederation());
        assert_eq!(path.to_string(), "(65001) 1 2 {3 4 5}");
        assert_eq!(path.without_confederation().to_string(), "1 2 {3 4 5}");
        assert_eq!(AsPath::from_sequence(&[7, 8]).origin(), Some(8));
        assert_eq!((AsPath::default().first(), AsPath::default().origin()), (None, None));
    }

    #[test]
    fn a_full_segment_gets_another_in_front() {
        let full = AsPath::from_sequence(&[9; 254]);
        let longer = full.prepend(7, 3);
        assert_eq!(longer.length(), 257);
        let counts: Vec<_> = longer.segments().map(|segment| segment.numbers.len()).collect();
        assert_eq!(counts, [2, 255]);
        assert_eq!(longer.first(), Some(7));
        assert_eq!(AsPath::default().prepend(7, 2).to_string(), "7 7");
        let set = path(&[(Set, &[1, 2])]).prepend(7, 1);
        assert_eq!(set.to_string(), "7 {1 2}");
        let inside = AsPath::from_sequence(&[1]).prepend_confederation(65001);
        let inside = inside.prepend_confederation(65002);
        assert_eq!(inside.to_string(), "(65002 65001) 1");
        assert_eq!(inside.prepend(7, 2).to_string(), "(65002 65001) 7 7 1");
    }

    #[test]
    fn malformed_segments_are_refused() {
        for bytes in
            [&[2][..], &[2, 0], &[5, 1, 0, 0, 0, 1], &[2, 2, 0, 0, 0, 1], &[0, 1, 0, 0, 0, 1]]
        {
            assert_eq!(AsPath::parse(bytes, true), Err(AsPathError::Segment), "{bytes:?}");
        }
        assert_eq!(AsPath::parse(&[2, 1, 0, 0, 0, 0], true), Err(AsPathError::Zero));
        assert_eq!(AsPath::parse(&[2, 1, 0, 0], false), Err(AsPathError::Zero));
    }

    /// RFC 6793 §4.2.3 gives the rule; 70000 and 70001 are behind speakers that know two octets.
    #[test]
    fn as4_path_replaces_the_back_of_as_path() {
        let trans = u32::from(AS_TRANS);
        let old = AsPath::from_sequence(&[10, 20, trans, trans]);
        let merged = old.merge(&AsPath::from_sequence(&[70000, 70001]));
        assert_eq!(merged, AsPath::from_sequence(&[10, 20, 70000, 70001]));
        // Longer than the AS_PATH: somebody has taken a part away since.
        let long = AsPath::from_sequence(&[1, 2, 3, 4, 5]);
        assert_eq!(old.merge(&long), old);
        let confederation = path(&[(ConfedSequence, &[65001]), (Sequence, &[10, trans])]);
        let merged = confederation.merge(&AsPath::from_sequence(&[70000]));
        assert_eq!(merged.to_string(), "(65001) 10 70000");
        let sets = path(&[(Set, &[10, 11]), (ConfedSet, &[65001]), (Sequence, &[trans])]);
        assert_eq!(
            sets.merge(&AsPath::from_sequence(&[70000])).to_string(),
            "{10 11} [65001] 70000"
        );
    }

    #[test]
    fn two_octets_show_as_trans() {
        let mut bytes = Vec::new();
        AsPath::from_sequence(&[1, 70000]).emit(false, &mut bytes);
        assert_eq!(bytes, [2, 2, 0, 1, 0x5b, 0xa0]);
    }

    fn segments() -> impl Strategy<Value = Vec<(SegmentKind, Vec<u32>)>> {
        let kind = prop_oneof![Just(Set), Just(Sequence), Just(ConfedSequence), Just(ConfedSet)];
        prop::collection::vec((kind, prop::collection::vec(1u32.., 1..=255)), 0..5)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(segments in segments()) {
            let parts = segments.iter().map(|(kind, numbers)| Segment { kind: *kind, numbers });
            let path = AsPath::from_segments(parts);
            let mut bytes = Vec::new();
            path.emit(true, &mut bytes);
            prop_assert_eq!(bytes.len(), path.emit_len(true));
            prop_assert_eq!(AsPath::parse(&bytes, true).unwrap(), path.clone());
            let starts: Vec<usize> = path.segments().scan(0, |at, segment| {
                *at += 2 + 4 * segment.numbers.len();
                Some(*at)
            }).collect();
            for cut in (1..bytes.len()).filter(|cut| !starts.contains(cut)) {
                prop_assert!(AsPath::parse(&bytes[..cut], true).is_err());
            }
        }

        #[test]
        fn prepending_only_adds(segments in segments(), number in 1u32.., times in 0usize..600) {
            let parts = segments.iter().map(|(kind, numbers)| Segment { kind: *kind, numbers });
            let path = AsPath::from_segments(parts);
            let longer = path.prepend(number, times);
            prop_assert_eq!(longer.length(), path.length() + times);
            let flat = |path: &AsPath| path.segments().flat_map(|s| s.numbers.to_vec()).collect::<Vec<_>>();
            let is_inside = |s: &Segment<'_>| s.kind.is_confederation();
            let inside: usize = path.segments().take_while(is_inside).map(|s| s.numbers.len()).sum();
            let mut expected = flat(&path);
            expected.splice(inside..inside, std::iter::repeat_n(number, times));
            prop_assert_eq!(flat(&longer), expected);
            prop_assert!(longer.segments().all(|segment| segment.numbers.len() <= 255));
        }
    }
}
