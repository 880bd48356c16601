//! What this router's autonomous system is called: by itself, and in a confederation by others.
//!
//! A confederation is a system that is divided into members, each with a number of its own that only the others know; to
//! everybody else it is one system.
//!
//! Reference: RFC 5065 §2 and §4 (numbers, and what paths become); RFC 6811 §2 (where a route begins).

use crate::wire::{AsPath, Neighbour, SegmentKind};

/// The numbers of this router's autonomous system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Home {
    /// Its own; in a confederation, that of this member.
    pub(crate) number: u32,
    /// That of the confederation, if it is in one.
    pub(crate) confederation: Option<u32>,
}

impl Home {
    /// A system that is not divided.
    #[cfg(test)]
    pub(crate) fn alone(number: u32) -> Self {
        Self { number, confederation: None }
    }

    /// The number by which other systems know it.
    #[inline]
    pub(crate) fn outside(self) -> u32 {
        self.confederation.unwrap_or(self.number)
    }

    /// The number by which such a neighbour knows it.
    pub(crate) fn seen_by(self, neighbour: Neighbour) -> u32 {
        match neighbour {
            Neighbour::External => self.outside(),
            Neighbour::Internal | Neighbour::Confederation => self.number,
        }
    }

    /// Whether a path has come through here before (RFC 4271 §9.1.2; RFC 5065 §4: numbers of members are those of nobody
    /// else, unless they stand outside the confederation).
    pub(crate) fn has_seen(self, path: &AsPath) -> bool {
        path.segments().any(|segment| {
            let number = if segment.kind.is_confederation() { self.number } else { self.outside() };
            segment.numbers.contains(&number)
        })
    }

    /// A path as such a neighbour hears it (RFC 4271 §5.1.2, RFC 5065 §4.1).
    pub(crate) fn path_for(self, neighbour: Neighbour, path: &AsPath) -> AsPath {
        match neighbour {
            Neighbour::Internal => path.clone(),
            Neighbour::Confederation => path.prepend_confederation(self.number),
            Neighbour::External if path.has_confederation() => {
                path.without_confederation().prepend(self.outside(), 1)
            }
            Neighbour::External => path.prepend(self.outside(), 1),
        }
    }

    /// The system where a path begins; none if it ends in a set, whose systems have no order. What has not left this system, or
    /// its confederation, begins here.
    pub(crate) fn origin(self, path: &AsPath) -> Option<u32> {
        match path.segments().last() {
            None => Some(self.outside()),
            Some(last) => match last.kind {
                SegmentKind::Sequence => last.numbers.last().copied(),
                SegmentKind::ConfedSequence | SegmentKind::ConfedSet => Some(self.outside()),
                SegmentKind::Set => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: Home = Home { number: 65001, confederation: Some(100) };

    /// RFC 5065 §4.1 a) to c), for what comes from outside, and for what comes from another member.
    #[test]
    fn each_neighbour_hears_the_path_as_it_knows_this_system() {
        let outside = AsPath::from_sequence(&[7, 8]);
        let inside = outside.prepend_confederation(65002);
        let told = |neighbour, path: &AsPath| MEMBER.path_for(neighbour, path).to_string();
        for (neighbour, of_outside, of_inside, of_own) in [
            (Neighbour::Internal, "7 8", "(65002) 7 8", ""),
            (Neighbour::Confederation, "(65001) 7 8", "(65001 65002) 7 8", "(65001)"),
            (Neighbour::External, "100 7 8", "100 7 8", "100"),
        ] {
            assert_eq!(told(neighbour, &outside), of_outside);
            assert_eq!(told(neighbour, &inside), of_inside);
            assert_eq!(told(neighbour, &AsPath::default()), of_own);
        }
        assert_eq!(MEMBER.seen_by(Neighbour::External), 100);
        assert_eq!(MEMBER.seen_by(Neighbour::Confederation), 65001);
        assert_eq!(
            Home::alone(65001).path_for(Neighbour::External, &outside).to_string(),
            "65001 7 8"
        );
    }

    #[test]
    fn a_path_is_a_loop_by_the_number_that_is_meant_there() {
        let path = |inside: &[u32], outside: &[u32]| {
            let path = AsPath::from_sequence(outside);
            inside.iter().rev().fold(path, |path, number| path.prepend_confederation(*number))
        };
        assert!(!MEMBER.has_seen(&path(&[65002], &[7, 8])));
        assert!(MEMBER.has_seen(&path(&[65002, 65001], &[7, 8])));
        assert!(MEMBER.has_seen(&path(&[65002], &[7, 100])));
        // Somebody else has this number, and another confederation a member 100.
        assert!(!MEMBER.has_seen(&path(&[100], &[65001])));
        assert!(Home::alone(65001).has_seen(&path(&[], &[7, 65001])));
    }

    #[test]
    fn what_has_not_left_the_confederation_begins_in_it() {
        assert_eq!(MEMBER.origin(&AsPath::default()), Some(100));
        assert_eq!(MEMBER.origin(&AsPath::default().prepend_confederation(65002)), Some(100));
        assert_eq!(MEMBER.origin(&AsPath::from_sequence(&[7, 8])), Some(8));
        assert_eq!(Home::alone(65001).origin(&AsPath::default()), Some(65001));
    }
}
