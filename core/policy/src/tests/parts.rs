//! Lists and expressions agree with what they are said to mean, however they are stored.

use std::borrow::Cow;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

use crate::number::NumberSet;
use crate::prefixes::PrefixSet;
use crate::{
    AsPath, AsPathPattern, CommunityKind, CommunityPattern, Hop, Lengths, NumberRange, PrefixRange,
};

fn prefix() -> impl Strategy<Value = IpNet> {
    // Few bits differ, so that many are inside of others.
    let v4 = (0u32..16, 0u8..=32).prop_map(|(bits, length)| {
        IpNet::from(Ipv4Net::new((bits << 28).into(), length.min(5)).unwrap().trunc())
    });
    let deep = (0u32..4, 30u8..=32)
        .prop_map(|(bits, length)| IpNet::from(Ipv4Net::new(bits.into(), length).unwrap().trunc()));
    let v6 = (0u128..8, 0u8..=3, prop::bool::ANY).prop_map(|(bits, length, is_deep)| {
        let (bits, length) = if is_deep { (bits, 125 + length) } else { (bits << 125, length) };
        IpNet::from(Ipv6Net::new(bits.into(), length).unwrap().trunc())
    });
    prop_oneof![4 => v4, 1 => deep, 2 => v6]
}

pub(super) fn prefix_range() -> impl Strategy<Value = PrefixRange> {
    (prefix(), 0u8..7, 0u8..=128, 0u8..=128).prop_map(|(prefix, kind, a, b)| {
        let (own, most) = (prefix.prefix_len(), prefix.max_prefix_len());
        let (a, b) = (a.clamp(own, most), b.clamp(own, most));
        let lengths = match kind {
            0 => Lengths::Exact,
            1 => Lengths::Longer { or_own: false },
            2 => Lengths::Longer { or_own: true },
            3 => Lengths::Shorter { or_own: false },
            4 => Lengths::Shorter { or_own: true },
            5 => Lengths::Upto(a),
            _ => Lengths::Range(a.min(b), a.max(b)),
        };
        PrefixRange { prefix, lengths }
    })
}

/// An expression as a tree, and what it means by trying everything.
#[derive(Clone, Debug)]
enum Expression {
    Number(u32),
    Any,
    Class(bool, Vec<(u32, u32)>),
    Sequence(Vec<Expression>),
    Choice(Vec<Expression>),
    Repeat(Box<Expression>, usize, Option<usize>),
}

impl Expression {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Any => ".".to_owned(),
            Self::Class(is_not, ranges) => {
                let ranges = ranges.iter().map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>();
                format!("[{}{}]", if *is_not { "^" } else { "" }, ranges.join(" "))
            }
            Self::Sequence(all) => all.iter().map(|one| format!("{} ", one.text())).collect(),
            Self::Choice(all) => {
                format!("({})", all.iter().map(Self::text).collect::<Vec<_>>().join("|"))
            }
            Self::Repeat(one, least, most) => {
                let times = match (least, most) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (least, None) => format!("{{{least},}}"),
                    (least, Some(most)) if least == most => format!("{{{least}}}"),
                    (least, Some(most)) => format!("{{{least},{most}}}"),
                };
                format!("({}){times}", one.text())
            }
        }
    }

    /// Where it may end if it begins here.
    fn ends(&self, path: &[Hop], at: usize) -> Vec<usize> {
        let step = |fits: &dyn Fn(u32) -> bool| match path.get(at) {
            Some(Hop::As(number)) if fits(*number) => vec![at + 1],
            Some(Hop::Set(all)) if all.iter().any(|number| fits(*number)) => vec![at + 1],
            _ => Vec::new(),
        };
        let mut ends = match self {
            Self::Number(number) => step(&|one| one == *number),
            // An empty set is a step, too.
            Self::Any => {
                if at < path.len() {
                    vec![at + 1]
                } else {
                    Vec::new()
                }
            }
            Self::Class(is_not, ranges) => {
                step(&|one| ranges.iter().any(|(a, b)| (*a..=*b).contains(&one)) != *is_not)
            }
            Self::Sequence(all) => all.iter().fold(vec![at], |ends, one| {
                ends.into_iter().flat_map(|end| one.ends(path, end)).collect()
            }),
            Self::Choice(all) => all.iter().flat_map(|one| one.ends(path, at)).collect(),
            Self::Repeat(one, least, most) => {
                let mut all = if *least == 0 { vec![at] } else { Vec::new() };
                let mut here = vec![at];
                for count in 1..=most.unwrap_or(path.len() + least) {
                    here = here.into_iter().flat_map(|end| one.ends(path, end)).collect();
                    here.sort_unstable();
                    here.dedup();
                    if count >= *least {
                        all.extend(&here);
                    }
                }
                all
            }
        };
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    fn matches(&self, path: &[Hop], from_start: bool, to_end: bool) -> bool {
        let starts = if from_start { 0..=0 } else { 0..=path.len() };
        starts
            .into_iter()
            .any(|start| self.ends(path, start).into_iter().any(|end| !to_end || end == path.len()))
    }
}

fn expression() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        4 => (1u32..5).prop_map(Expression::Number),
        1 => Just(Expression::Any),
        1 => (prop::bool::ANY, prop::collection::vec((1u32..5, 0u32..3), 0..3)).prop_map(|(is_not, ranges)| {
            Expression::Class(is_not, ranges.into_iter().map(|(a, more)| (a, a + more)).collect())
        }),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Expression::Sequence),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expression::Choice),
            (inner, 0usize..3, prop::option::of(0usize..3)).prop_map(|(one, least, more)| {
                Expression::Repeat(Box::new(one), least, more.map(|more| least + more))
            }),
        ]
    })
}

fn path() -> impl Strategy<Value = Vec<Hop>> {
    let hop = prop_oneof![
        6 => (1u32..6).prop_map(Hop::As),
        1 => prop::collection::vec(1u32..6, 1..3).prop_map(|all| Hop::Set(all.into())),
    ];
    prop::collection::vec(hop, 0..7)
}

fn kind() -> impl Strategy<Value = CommunityKind> {
    prop::sample::select(vec![
        CommunityKind::Standard,
        CommunityKind::Extended,
        CommunityKind::Large,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_set_of_prefixes_is_all_of_its_entries(
        entries in prop::collection::vec(prefix_range(), 0..12), asked in prop::collection::vec(prefix(), 1..20),
    ) {
        let set = PrefixSet::new(entries.clone());
        for prefix in asked {
            let expected = entries.iter().any(|entry| entry.matches(&prefix));
            prop_assert_eq!(set.contains(&prefix), expected, "{}", prefix);
            let inside = entries.iter().filter(|entry| !matches!(entry.lengths, Lengths::Shorter { .. }));
            let address = prefix.addr();
            let expected = inside.clone().any(|entry| entry.prefix.contains(&address));
            prop_assert_eq!(set.covers(address), expected, "{}", address);
        }
    }

    #[test]
    fn ranges_of_prefixes_are_read_as_they_are_shown(range in prefix_range()) {
        let text = range.to_string();
        let words: Vec<_> = text.split(' ').collect();
        prop_assert_eq!(PrefixRange::parse(&words), Ok(range));
    }

    #[test]
    fn a_set_of_numbers_is_all_of_its_ranges(
        ranges in prop::collection::vec((0u64..40, 0u64..6), 0..8), asked in 0u64..50,
    ) {
        let ranges: Vec<_> =
            ranges.into_iter().map(|(least, more)| NumberRange { least, greatest: least + more }).collect();
        let expected = ranges.iter().any(|range| (range.least..=range.greatest).contains(&asked));
        prop_assert_eq!(NumberSet::new(ranges.clone()).contains(asked), expected);
        for range in ranges {
            prop_assert_eq!(range.to_string().parse(), Ok(range));
        }
    }

    #[test]
    fn an_expression_matches_what_trying_everything_finds(
        tree in expression(), path in path(), prepended in prop::collection::vec(1u32..6, 0..3),
        from_start: bool, to_end: bool,
    ) {
        let text = format!(
            "{}{}{}", if from_start { "^" } else { "" }, tree.text(), if to_end { " $" } else { "" }
        );
        let pattern: AsPathPattern = text.parse().unwrap();
        let whole: Vec<_> = prepended.iter().copied().map(Hop::As).chain(path.iter().cloned()).collect();
        let expected = tree.matches(&whole, from_start, to_end);
        let path = AsPath { prepended, hops: Cow::Owned(path) };
        prop_assert_eq!(pattern.matches(&path), expected, "{}", text);
    }

    #[test]
    fn any_text_is_an_expression_or_is_told_why_not(text in "[0-9 .*+?(){},|^$_\\[\\]-]{0,30}") {
        if let Ok(pattern) = text.parse::<AsPathPattern>() {
            let _ = pattern.matches(&AsPath::default());
        }
    }

    #[test]
    fn paths_are_read_as_they_are_shown(hops in path()) {
        let path = AsPath { prepended: Vec::new(), hops: Cow::Owned(hops) };
        prop_assert_eq!(path.to_string().parse::<AsPath<'static>>(), Ok(path));
    }

    #[test]
    fn communities_are_read_as_they_are_shown(kind in kind(), random: u128, is_named: bool) {
        let community = match kind {
            CommunityKind::Standard if is_named => 0xFFFF_0000 | random & 0xFFFF,
            CommunityKind::Standard => random & 0xFFFF_FFFF,
            // Types and subtypes with names now and then.
            CommunityKind::Extended if is_named => random & 0x0303_FFFF_FFFF_FFFF,
            CommunityKind::Extended => random & u128::from(u64::MAX),
            CommunityKind::Large => random & (u128::MAX >> 32),
        };
        let text = kind.shown(community).to_string();
        prop_assert_eq!(kind.parse(&text), Ok(community), "{}", text);
    }

    #[test]
    fn patterns_of_communities_are_read_as_they_are_shown(
        kind in kind(), parts in prop::collection::vec((0u16..2000, 0u16..2000, 0u8..3), 3),
    ) {
        let part = |(a, b, kind): &(u16, u16, u8)| match kind {
            0 => a.to_string(),
            1 => format!("{}-{}", a.min(b), a.max(b)),
            _ => "*".to_owned(),
        };
        let text = match kind {
            CommunityKind::Standard => format!("{}:{}", part(&parts[0]), part(&parts[1])),
            CommunityKind::Extended => format!("rt:{}:{}", parts[0].0, part(&parts[1])),
            CommunityKind::Large => parts.iter().map(part).collect::<Vec<_>>().join(":"),
        };
        let pattern = CommunityPattern::parse(kind, &text).unwrap();
        let again = CommunityPattern::parse(kind, &pattern.to_string()).unwrap();
        prop_assert_eq!(again.to_string(), pattern.to_string());
        prop_assert_eq!(again.only(), pattern.only());
        // What is in every range of the text matches.
        let least = |one: &(u16, u16, u8)| u128::from(if one.2 == 0 { one.0 } else { one.0.min(one.1) });
        let community = match kind {
            CommunityKind::Standard => least(&parts[0]) << 16 | least(&parts[1]),
            CommunityKind::Extended => 2 << 48 | u128::from(parts[0].0) << 32 | least(&parts[1]),
            CommunityKind::Large => least(&parts[0]) << 64 | least(&parts[1]) << 32 | least(&parts[2]),
        };
        prop_assert!(pattern.matches(community));
    }

    #[test]
    fn any_word_is_a_community_or_is_told_why_not(kind in kind(), text in "[a-z0-9:*.x-]{0,24}") {
        if let Ok(pattern) = CommunityPattern::parse(kind, &text) {
            let again = CommunityPattern::parse(kind, &pattern.to_string());
            prop_assert_eq!(again.map(|one| one.to_string()), Ok(pattern.to_string()));
        }
    }
}
