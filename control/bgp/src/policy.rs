//! Policies on routes of BGP: which pass, and what becomes of their attributes.
//!
//! Reference: Handley et al. (XORP), §8.1; RFC 8212 (without policy nothing is exchanged with external peers).
//!
//! The language is that of `weft_policy`; here are the variables that it has for BGP. What is asked on import are the
//! attributes as the peer has announced them; on export, those by which the route is used here, before this router's own
//! number is put in front of the path. What a policy sets on export stands in place of what BGP would say itself: a next
//! hop instead of this router, a MED instead of none.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use ipnet::IpNet;
use weft_policy::{
    Access, AsPath, CommunityKind, Explanation, Hop, Kind, Outcome, Program, Route, Side, Value,
    Variable,
};

use crate::validation::Validity;
use crate::wire::{Attributes, LargeCommunity, NextHop, Origin, SegmentKind};

/// Numbers of 32 bits.
const NUMBER: Kind = Kind::Number { most: u32::MAX as u64 };
/// Aligned by hand with [`Origin::code`].
const ORIGINS: Kind = Kind::Word(&["igp", "egp", "incomplete"]);
/// The first is that of peers in this system.
const TYPES: Kind = Kind::Word(&["internal", "external"]);

const PREFIX: usize = 0;
const NEXT_HOP: usize = 1;
const AS_PATH: usize = 2;
const ORIGIN: usize = 3;
const LOCAL_PREF: usize = 4;
const MED: usize = 5;
const COMMUNITY: usize = 6;
const EXTENDED: usize = 7;
const LARGE: usize = 8;
const FROM: [usize; 3] = [9, 10, 11];
const TO: [usize; 3] = [12, 13, 14];
const OWN_ADDRESS: usize = 15;
const OWN_AS: usize = 16;
const PEER_ADDRESS: usize = 17;
const PROTOCOL: usize = 18;
const METRIC: usize = 19;
const TAG: usize = 20;
const VALIDITY: usize = 21;

/// The variables of BGP's routes. Aligned by hand with the constants above.
pub static VARIABLES: &[Variable] = &[
    Variable::new("prefix", Kind::Prefix, "where the route leads"),
    Variable::new("next-hop", Kind::Address, "where packets are sent").with(Access::Write),
    Variable::new("as-path", Kind::AsPath, "the autonomous systems it came through")
        .with(Access::Write),
    Variable::new("origin", ORIGINS, "how it came to be known where it begins").with(Access::Write),
    Variable::new("local-pref", NUMBER, "how much this system prefers it").with(Access::Remove),
    Variable::new("med", NUMBER, "which entrance a neighbour prefers").with(Access::Remove),
    Variable::new("community", Kind::Communities(CommunityKind::Standard), "communities")
        .with(Access::Write),
    Variable::new(
        "extended-community",
        Kind::Communities(CommunityKind::Extended),
        "extended communities",
    )
    .with(Access::Write),
    Variable::new("large-community", Kind::Communities(CommunityKind::Large), "large communities")
        .with(Access::Write),
    Variable::new("neighbor", Kind::Address, "who announced it"),
    Variable::new("peer-as", NUMBER, "the system of who announced it"),
    Variable::new(
        "peer-type",
        TYPES,
        "whether who announced it is in this system, or its confederation",
    ),
    Variable::new("neighbor", Kind::Address, "who is told of it").on(Side::To),
    Variable::new("peer-as", NUMBER, "the system of who is told").on(Side::To),
    Variable::new(
        "peer-type",
        TYPES,
        "whether who is told is in this system, or its confederation",
    )
    .on(Side::To),
    Variable::new("self", Kind::Address, "this router's address of the session").on(Side::Then),
    Variable::new("local-as", NUMBER, "this router's system, as others know it").on(Side::Then),
    Variable::new("peer-address", Kind::Address, "the peer's address of the session")
        .on(Side::Then),
    Variable::new("protocol", Kind::Text, "the protocol of the route: ebgp, ibgp, or whose it was"),
    Variable::new("metric", NUMBER, "how far the network is, to that protocol"),
    Variable::new("tag", NUMBER, "a mark that goes with the route to other protocols; 0 without")
        .with(Access::Write),
    Variable::new(
        "origin-validation",
        Kind::Word(Validity::WORDS),
        "whether the system where it begins may announce it, as the RPKI says; on import",
    ),
];

/// Which routes pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    None,
    Policies(Rc<Program>),
}

impl Filter {
    /// The policies, if that is what it is.
    pub(crate) fn program(&self) -> Option<&Rc<Program>> {
        match self {
            Self::Policies(program) => Some(program),
            Self::All | Self::None => None,
        }
    }

    /// Whether what becomes of a route depends on more than its attributes and its source.
    pub(crate) fn asks_for_prefix(&self) -> bool {
        let asks = |program: &Program| program.reads(PREFIX) || program.reads(VALIDITY);
        matches!(self, Self::Policies(program) if asks(program))
    }

    /// Whether it depends on whether the system where it begins may announce it.
    pub(crate) fn asks_for_validity(&self) -> bool {
        matches!(self, Self::Policies(program) if program.reads(VALIDITY))
    }

    /// Whether it depends on which of several peers of the same kind is told.
    pub(crate) fn asks_for_peer(&self) -> bool {
        let variables = [TO[0], TO[1], PEER_ADDRESS];
        matches!(self, Self::Policies(program) if variables.iter().any(|one| program.reads(*one)))
    }

    /// What becomes of a route; none if it does not pass.
    pub(crate) fn run(&self, route: &RouteView<'_>) -> Option<Changes> {
        match self {
            Self::All => Some(Changes::default()),
            Self::None => None,
            Self::Policies(program) => {
                let Outcome { accepted, changes } = program.run(route);
                accepted.then(|| Changes(changes.into_iter().map(own).collect()))
            }
        }
    }

    /// The same, and why; nothing is said of what needs no policy.
    pub(crate) fn explain(&self, route: &RouteView<'_>) -> (Option<Changes>, Option<Explanation>) {
        let Self::Policies(program) = self else { return (self.run(route), None) };
        let (Outcome { accepted, changes }, why) = program.explain(route);
        let changes = accepted.then(|| Changes(changes.into_iter().map(own).collect()));
        (changes, Some(why))
    }
}

/// One side of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Party {
    pub(crate) address: IpAddr,
    pub(crate) system: u32,
    pub(crate) is_external: bool,
}

impl Party {
    fn read(&self, place: usize) -> Value<'static> {
        match place {
            0 => Value::Address(self.address),
            1 => Value::Number(self.system.into()),
            _ => Value::Word(usize::from(self.is_external)),
        }
    }
}

/// A route as policies see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteView<'a> {
    pub(crate) attributes: &'a Attributes,
    /// None where it does not matter.
    pub(crate) prefix: Option<IpNet>,
    /// Whose route it is.
    pub(crate) protocol: &'a str,
    /// Its metric in the RIB, while it is decided whether this router tells of it.
    pub(crate) metric: Option<u32>,
    /// Who announced it; nobody of a network of this router's own.
    pub(crate) from: Option<Party>,
    /// Who is told, if it is about that; where it does not matter who it is, none.
    pub(crate) to: Option<Party>,
    /// This router's address of the session, and its system.
    pub(crate) own: (IpAddr, u32),
    /// Whether the system where it begins may announce it; none where nobody asks.
    pub(crate) validity: Option<Validity>,
}

impl Route for RouteView<'_> {
    fn read(&self, variable: usize) -> Option<Value<'_>> {
        let attributes = self.attributes;
        let number = |number: u32| Value::Number(number.into());
        Some(match variable {
            PREFIX => Value::Prefix(self.prefix?),
            NEXT_HOP => Value::Address(attributes.next_hop.map(|hop| match hop {
                NextHop::V4(address) => IpAddr::V4(address),
                NextHop::V6 { global, .. } => IpAddr::V6(global),
            })?),
            AS_PATH => {
                Value::AsPath(AsPath { prepended: Vec::new(), hops: Cow::Owned(hops(attributes)) })
            }
            ORIGIN => Value::Word(attributes.origin.code().into()),
            LOCAL_PREF => number(attributes.local_pref?),
            MED => number(attributes.med?),
            COMMUNITY => Value::Communities(
                attributes.communities.iter().map(|one| u128::from(*one)).collect(),
            ),
            EXTENDED => Value::Communities(
                attributes.extended_communities.iter().map(|one| u128::from(*one)).collect(),
            ),
            LARGE => Value::Communities(
                attributes.large_communities.iter().map(|one| pack(*one)).collect(),
            ),
            OWN_ADDRESS => Value::Address(self.own.0),
            OWN_AS => number(self.own.1),
            PROTOCOL => Value::Text(Cow::Borrowed(self.protocol)),
            METRIC => number(self.metric?),
            TAG => number(attributes.rare().tag),
            VALIDITY => Value::Word(self.validity?.place()),
            PEER_ADDRESS => Value::Address(self.to.or(self.from)?.address),
            variable => {
                let from = FROM.iter().position(|one| *one == variable);
                let to = TO.iter().position(|one| *one == variable);
                match (from, to) {
                    (Some(place), _) => self.from?.read(place),
                    (None, Some(place)) => self.to?.read(place),
                    (None, None) => return None,
                }
            }
        })
    }
}

/// The path as others count it: what is inside a confederation does not belong to it (RFC 5065 §5.3).
fn hops(attributes: &Attributes) -> Vec<Hop> {
    let mut hops = Vec::new();
    for segment in attributes.as_path.segments() {
        match segment.kind {
            SegmentKind::Sequence => hops.extend(segment.numbers.iter().copied().map(Hop::As)),
            SegmentKind::Set => hops.push(Hop::Set(segment.numbers.into())),
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => {}
        }
    }
    hops
}

fn pack(community: LargeCommunity) -> u128 {
    let LargeCommunity { administrator, first, second } = community;
    u128::from(administrator) << 64 | u128::from(first) << 32 | u128::from(second)
}

fn unpack(community: u128) -> LargeCommunity {
    let part = |shift: u32| (community >> shift) as u32;
    LargeCommunity { administrator: part(64), first: part(32), second: part(0) }
}

/// What a policy has set: which attributes are other ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes(Vec<(usize, Option<Set>)>);

/// What something is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Set {
    Number(u64),
    Word(usize),
    Address(IpAddr),
    Prepend(Vec<u32>),
    Communities(Vec<u128>),
}

fn own((variable, value): (usize, Option<Value<'_>>)) -> (usize, Option<Set>) {
    let set = value.and_then(|value| match value {
        Value::Number(number) => Some(Set::Number(number)),
        Value::Word(word) => Some(Set::Word(word)),
        Value::Address(address) => Some(Set::Address(address)),
        Value::AsPath(path) => Some(Set::Prepend(path.prepended)),
        Value::Communities(all) => Some(Set::Communities(all.into_owned())),
        // No variable that can be set has such values.
        Value::Switch(_) | Value::Text(_) | Value::Prefix(_) => None,
    });
    (variable, set)
}

impl Changes {
    /// Whether nothing was set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the next hop was set.
    pub(crate) fn sets_next_hop(&self) -> bool {
        self.0.iter().any(|(variable, _)| *variable == NEXT_HOP)
    }

    /// Whether the MED was set.
    pub(crate) fn sets_med(&self) -> bool {
        self.0.iter().any(|(variable, _)| *variable == MED)
    }

    /// The attributes with what was set.
    pub(crate) fn apply(&self, attributes: &Attributes) -> Attributes {
        let mut new = attributes.clone();
        for (variable, set) in &self.0 {
            let number = match set {
                // No number that can be set is greater.
                Some(Set::Number(number)) => u32::try_from(*number).ok(),
                _ => None,
            };
            match (*variable, set) {
                (NEXT_HOP, Some(Set::Address(address))) => new.next_hop = Some(hop(*address, &new)),
                (AS_PATH, Some(Set::Prepend(numbers))) => {
                    for number in numbers.iter().rev() {
                        new.as_path = new.as_path.prepend(*number, 1);
                    }
                }
                (ORIGIN, Some(Set::Word(word))) => {
                    let all = [Origin::Igp, Origin::Egp, Origin::Incomplete];
                    new.origin = all[(*word).min(2)];
                }
                (LOCAL_PREF, _) => new.local_pref = number,
                (MED, _) => new.med = number,
                (TAG, _) => new.change_rare(|rare| rare.tag = number.unwrap_or(0)),
                (COMMUNITY, Some(Set::Communities(all))) => {
                    new.communities = all.iter().map(|one| *one as u32).collect();
                }
                (EXTENDED, Some(Set::Communities(all))) => {
                    new.extended_communities = all.iter().map(|one| *one as u64).collect();
                }
                (LARGE, Some(Set::Communities(all))) => {
                    new.large_communities = all.iter().map(|one| unpack(*one)).collect();
                }
                _ => {}
            }
        }
        new
    }
}

/// A next hop that was set; what was known of the same one stays known.
fn hop(address: IpAddr, attributes: &Attributes) -> NextHop {
    match (address, attributes.next_hop) {
        (IpAddr::V6(new), Some(old @ NextHop::V6 { global, .. })) if new == global => old,
        (IpAddr::V6(global), _) => NextHop::V6 { global, link_local: None },
        (IpAddr::V4(address), _) => NextHop::V4(address),
    }
}

#[cfg(test)]
mod tests {
    use weft_policy::{Policies, TextRoute, names};

    use super::*;

    /// The blocks of a page: what kind each is of, and what stands in it.
    fn blocks(page: &str) -> Vec<(&str, &str)> {
        let inside = page.split("```").skip(1).step_by(2);
        inside.filter_map(|block| block.split_once('\n')).collect()
    }

    #[test]
    fn examples_of_the_handbook_do_what_it_says() {
        let page = include_str!("../../../docs/src/policy.md");
        let (mut policies, mut asked, mut checked) = (None, None, 0);
        for (kind, text) in blocks(page) {
            if text.starts_with("policy {") {
                crate::config::read("policy.md", text).expect("it is right").expect("it has BGP");
                let end = text.find("\nbgp {").expect("BGP comes behind");
                policies = Some(Policies::parse("policy.md", &text[..end]).expect("it is right"));
            } else if kind == "sh" && text.contains("--route") {
                let words: Vec<_> = text.split(' ').collect();
                let route = text.split('\'').nth(1).expect("the route is in quotes");
                asked = Some((words[3].split(',').collect::<Vec<_>>(), route));
            } else if let (Some((chain, route)), Some(policies)) = (asked.take(), &policies) {
                let chain = names("policy.md", &chain).expect("they are names");
                let program = Program::new(policies, VARIABLES, &chain).expect("it is right");
                let route = TextRoute::parse("policy.md", route, VARIABLES).expect("it is right");
                assert_eq!(program.explain(&route).1.to_string(), text);
                checked += 1;
            }
        }
        assert_eq!(checked, 3);
    }

    #[test]
    fn every_variable_of_the_handbook_is_there() {
        let page = include_str!("../../../docs/src/policy.md");
        for variable in VARIABLES {
            assert!(page.contains(&format!("`{}`", variable.name)), "{}", variable.name);
        }
    }

    #[test]
    fn what_is_set_is_what_others_are_told() {
        let attributes = Attributes {
            as_path: crate::wire::AsPath::from_sequence(&[65001]),
            next_hop: Some(NextHop::V4([192, 0, 2, 1].into())),
            med: Some(7),
            ..Attributes::default()
        };
        let text = "policy { policy-statement p { then {
            as-path prepend peer-as 2; med 7; local-pref add 5; origin egp; next-hop self; tag 70000;
            community add 1:2; large-community add 1:2:3; extended-community add rt:1:2; accept;
        } } }";
        let policies = Policies::parse("t", text).unwrap();
        let names = names("t", &["p"]).unwrap();
        let filter = Filter::Policies(Rc::new(Program::new(&policies, VARIABLES, &names).unwrap()));
        let from = Party { address: [192, 0, 2, 1].into(), system: 65001, is_external: true };
        let own = (IpAddr::from([192, 0, 2, 9]), 65000);
        let view = RouteView {
            attributes: &attributes,
            prefix: None,
            protocol: "ebgp",
            metric: None,
            from: Some(from),
            to: None,
            own,
            validity: None,
        };
        let changes = filter.run(&view).unwrap();
        assert!(changes.sets_med() && changes.sets_next_hop());
        let mut expected = Attributes {
            as_path: crate::wire::AsPath::from_sequence(&[65001; 3]),
            next_hop: Some(NextHop::V4([192, 0, 2, 9].into())),
            origin: Origin::Egp,
            med: Some(7),
            local_pref: Some(5),
            communities: Box::new([0x0001_0002]),
            extended_communities: Box::new([0x0002_0001_0000_0002]),
            large_communities: Box::new([LargeCommunity { administrator: 1, first: 2, second: 3 }]),
            ..Attributes::default()
        };
        expected.change_rare(|rare| rare.tag = 70_000);
        assert_eq!(changes.apply(&attributes), expected);
        assert!(!filter.asks_for_prefix() && !filter.asks_for_peer());
    }
}
