//! Malformed UPDATEs, and what RFC 7606 wants done about each: one table, by which the decoder is tested and whole sessions are.
//!
//! Each row breaks a message that is right, so that what it leads to can come of nothing else. The networks in them are
//! [`NLRI`] and [`PREFIX6`].
//!
//! Reference: RFC 7606 §3 to §7; RFC 4271 §6.3; RFC 6793 §6 (AS4_PATH, AS4_AGGREGATOR); RFC 7311 §3 (AIGP); RFC 7607 (AS 0);
//! RFC 8092 §6 (large communities); RFC 8669 §6 (Prefix-SID); RFC 9234 §5 (OTC); RFC 9774 (sets).

use super::attributes::Rule;
use super::context::{Context, Neighbour};
use super::family::{Families, Family};
use super::stream::{MessageType, begin, end};

pub(crate) const ORIGIN: &[u8] = &[0x40, 1, 1, 0];
/// The path through AS 65001.
pub(crate) const AS_PATH: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9];
/// The same of a speaker that knows two octets.
pub(crate) const AS_PATH2: &[u8] = &[0x40, 2, 4, 2, 1, 0xFD, 0xE9];
pub(crate) const NEXT_HOP: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
/// 198.51.100.0/24.
pub(crate) const NLRI: &[u8] = &[24, 198, 51, 100];
/// 2001:db8::/32.
pub(crate) const PREFIX6: &[u8] = &[32, 0x20, 1, 0x0D, 0xB8];
/// A next hop of IPv6.
pub(crate) const GLOBAL: [u8; 16] = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// ORIGIN with a value that it must not have: its routes are taken for withdrawn.
const BAD_ORIGIN: &[u8] = &[0x40, 1, 1, 9];
/// ATOMIC_AGGREGATE with a length that it must not have: it is discarded.
const BAD_AGGREGATE: &[u8] = &[0x40, 6, 1, 0];

/// The peer that sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// In AS 65001, which is another one, with routes of IPv4 and IPv6.
    External,
    /// In the same system.
    Internal,
    /// In AS 65001, and knows two octets.
    TwoOctets,
    /// In AS 65001, with routes of IPv4 alone.
    Ipv4,
}

impl Sender {
    /// What was agreed on with it.
    pub(crate) fn context(self) -> Context {
        let both = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
        let plain = Context::new(match self {
            Self::Internal => Neighbour::Internal,
            _ => Neighbour::External,
        });
        match self {
            Self::Ipv4 => plain,
            _ => Context { families: both, four_octet_as: self != Self::TwoOctets, ..plain },
        }
    }

    /// The path of its routes.
    pub(crate) const fn path(self) -> &'static [u8] {
        match self {
            Self::TwoOctets => AS_PATH2,
            _ => AS_PATH,
        }
    }
}

/// What RFC 7606 wants done about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// It counts as if this had come, the body of a message with which nothing is wrong.
    Discard(Vec<u8>),
    /// The network of this family in it is withdrawn.
    Withdraw(Family),
    /// All routes of IPv6 are forgotten, and no more are taken; whether the network of IPv4 in it is withdrawn, too.
    Disable { withdraw: bool },
    /// The session ends with an UPDATE Message Error (code 3) of this subcode, and these data.
    Reset { subcode: u8, data: Vec<u8> },
}

/// A malformed UPDATE.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What is wrong with it.
    pub(crate) name: &'static str,
    /// Who sends it.
    pub(crate) sender: Sender,
    /// The body of the message.
    pub(crate) body: Vec<u8>,
    /// The attribute that is wrong, and why, if it is only one, and the message is looked at so far.
    pub(crate) fault: Option<(u8, Rule)>,
    /// What is to be done.
    pub(crate) demand: Demand,
}

/// The body of an UPDATE with these attributes and prefixes.
pub(crate) fn body(attributes: &[&[u8]], nlri: &[u8]) -> Vec<u8> {
    let attributes = attributes.concat();
    let mut body = vec![0, 0];
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    body.extend(nlri);
    body
}

/// The whole message with this body.
pub(crate) fn message(body: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let start = begin(MessageType::Update, &mut message);
    message.extend(body);
    end(start, &mut message);
    message
}

/// The body of an UPDATE with the mandatory attributes and `attribute`, which replaces one of the same code.
pub(crate) fn body_with(attribute: &[u8]) -> Vec<u8> {
    body_of(Sender::External, attribute)
}

/// The same of this sender.
fn body_of(sender: Sender, attribute: &[u8]) -> Vec<u8> {
    let mandatory = [ORIGIN, sender.path(), NEXT_HOP].into_iter();
    let mut all: Vec<_> = mandatory.filter(|one| one[1] != attribute[1]).collect();
    all.push(attribute);
    body(&all, NLRI)
}

/// The body of an UPDATE with which nothing is wrong.
pub(crate) fn good(sender: Sender) -> Vec<u8> {
    body(&[ORIGIN, sender.path(), NEXT_HOP], NLRI)
}

/// MP_REACH_NLRI for prefixes of IPv6 unicast with the next hop `next_hop`.
pub(crate) fn mp_reach(next_hop: &[u8], prefixes: &[u8]) -> Vec<u8> {
    let mut value = vec![0, 2, 1, next_hop.len() as u8];
    value.extend(next_hop);
    value.push(0);
    value.extend(prefixes);
    let mut attribute = vec![0x80, 14, value.len() as u8];
    attribute.extend(value);
    attribute
}

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    let withdrawn = WITHDRAWN.iter().chain(FLAGS).map(|(name, sender, rule, attribute)| Row {
        name,
        sender: *sender,
        body: body_of(*sender, attribute),
        fault: Some((attribute[1], *rule)),
        demand: Demand::Withdraw(Family::IPV4_UNICAST),
    });
    let discarded = DISCARDED.iter().map(|(name, sender, rule, attribute)| Row {
        name,
        sender: *sender,
        body: body_of(*sender, attribute),
        fault: Some((attribute[1], *rule)),
        demand: Demand::Discard(good(*sender)),
    });
    withdrawn.chain(discarded).chain(lists()).chain(whole()).chain(unreadable()).collect()
}

/// An attribute beside, or in place of, the mandatory ones: what is wrong with it, who sends it, how the decoder calls that.
type Single = (&'static str, Sender, Rule, &'static [u8]);

/// Attributes whose routes are taken for withdrawn.
const WITHDRAWN: &[Single] = &[
    ("ORIGIN without meaning", Sender::External, Rule::Value, &[0x40, 1, 1, 3]),
    ("ORIGIN too short", Sender::External, Rule::Length, &[0x40, 1, 0]),
    ("ORIGIN too long", Sender::External, Rule::Length, &[0x40, 1, 2, 0, 0]),
    ("AS_PATH, no such segment", Sender::External, Rule::Segment, &[0x40, 2, 6, 5, 1, 0, 0, 0, 1]),
    ("AS_PATH, overrun", Sender::External, Rule::Segment, &[0x40, 2, 6, 2, 2, 0, 0, 0, 1]),
    ("AS_PATH, underrun", Sender::External, Rule::Segment, &[0x40, 2, 7, 2, 1, 0, 0, 0, 1, 2]),
    ("AS_PATH, segment without numbers", Sender::External, Rule::Segment, &[0x40, 2, 2, 2, 0]),
    ("AS_PATH through AS 0", Sender::External, Rule::Zero, &[0x40, 2, 6, 2, 1, 0, 0, 0, 0]),
    (
        "AS_PATH with a set",
        Sender::External,
        Rule::Set,
        &[0x40, 2, 12, 2, 1, 0, 0, 0xFD, 0xE9, 1, 1, 0, 0, 0, 2],
    ),
    (
        "AS_PATH with a confederation",
        Sender::External,
        Rule::Confederation,
        &[0x40, 2, 6, 3, 1, 0, 0, 0, 1],
    ),
    (
        "AS_PATH of four octets where two were agreed on",
        Sender::TwoOctets,
        Rule::Segment,
        &[0x40, 2, 6, 2, 1, 0, 1, 0, 0xE9],
    ),
    ("NEXT_HOP too short", Sender::External, Rule::Length, &[0x40, 3, 3, 1, 2, 3]),
    ("NEXT_HOP too long", Sender::External, Rule::Length, &[0x40, 3, 5, 1, 2, 3, 4, 5]),
    ("NEXT_HOP is no host: zero", Sender::External, Rule::Value, &[0x40, 3, 4, 0, 0, 0, 0]),
    ("NEXT_HOP is no host: a group", Sender::External, Rule::Value, &[0x40, 3, 4, 224, 0, 0, 5]),
    ("MED too short", Sender::External, Rule::Length, &[0x80, 4, 3, 0, 0, 1]),
    ("LOCAL_PREF too long", Sender::Internal, Rule::Length, &[0x40, 5, 5, 0, 0, 0, 0, 1]),
    ("COMMUNITIES, none", Sender::External, Rule::Length, &[0xC0, 8, 0]),
    ("COMMUNITIES, one and a part", Sender::External, Rule::Length, &[0xC0, 8, 5, 0, 1, 0, 2, 0]),
    ("ORIGINATOR_ID too short", Sender::Internal, Rule::Length, &[0x80, 9, 3, 192, 0, 2]),
    ("CLUSTER_LIST, none", Sender::Internal, Rule::Length, &[0x80, 10, 0]),
    (
        "CLUSTER_LIST, one and a part",
        Sender::Internal,
        Rule::Length,
        &[0x80, 10, 6, 0, 0, 0, 1, 0, 0],
    ),
    ("EXTENDED COMMUNITIES, none", Sender::External, Rule::Length, &[0xC0, 16, 0]),
    ("EXTENDED COMMUNITIES, a part", Sender::External, Rule::Length, &[0xC0, 16, 4, 0, 2, 0, 0]),
    ("LARGE_COMMUNITY, none", Sender::External, Rule::Length, &[0xC0, 32, 0]),
    ("LARGE_COMMUNITY, a part", Sender::External, Rule::Length, &[0xC0, 32, 4, 0, 0, 0, 1]),
    ("ONLY_TO_CUSTOMER too short", Sender::External, Rule::Length, &[0xC0, 35, 2, 0, 7]),
];

/// Attributes with flags that they must not have (RFC 7606 §3 c); their values are right.
const FLAGS: &[Single] = &[
    ("flags of ORIGIN", Sender::Internal, Rule::Flags, &[0x80, 1, 1, 0]),
    ("flags of AS_PATH", Sender::Internal, Rule::Flags, &[0xC0, 2, 0]),
    ("flags of NEXT_HOP", Sender::Internal, Rule::Flags, &[0xC0, 3, 4, 192, 0, 2, 1]),
    ("flags of MED", Sender::Internal, Rule::Flags, &[0x40, 4, 4, 0, 0, 0, 1]),
    ("flags of LOCAL_PREF", Sender::Internal, Rule::Flags, &[0x80, 5, 4, 0, 0, 0, 1]),
    ("flags of ATOMIC_AGGREGATE", Sender::Internal, Rule::Flags, &[0x80, 6, 0]),
    ("flags of AGGREGATOR", Sender::Internal, Rule::Flags, &[0x80, 7, 8, 0, 1, 0, 0, 192, 0, 2, 9]),
    ("flags of COMMUNITIES", Sender::Internal, Rule::Flags, &[0x40, 8, 4, 0, 0, 0, 1]),
    ("flags of ORIGINATOR_ID", Sender::Internal, Rule::Flags, &[0xC0, 9, 4, 0, 0, 0, 1]),
    ("flags of CLUSTER_LIST", Sender::Internal, Rule::Flags, &[0xC0, 10, 4, 0, 0, 0, 1]),
    (
        "flags of EXTENDED COMMUNITIES",
        Sender::Internal,
        Rule::Flags,
        &[0x80, 16, 8, 0, 0, 0, 0, 0, 0, 0, 1],
    ),
    ("flags of AS4_PATH", Sender::Internal, Rule::Flags, &[0x80, 17, 0]),
    ("flags of AS4_AGGREGATOR", Sender::Internal, Rule::Flags, &[0x80, 18, 0]),
    ("flags of AIGP", Sender::Internal, Rule::Flags, &[0xC0, 26, 0]),
    ("flags of LARGE_COMMUNITY", Sender::Internal, Rule::Flags, &[0x80, 32, 0]),
    ("flags of ONLY_TO_CUSTOMER", Sender::Internal, Rule::Flags, &[0x80, 35, 4, 0, 0, 0, 1]),
    ("flags of PREFIX_SID", Sender::Internal, Rule::Flags, &[0x80, 40, 0]),
];

/// Attributes that are taken away.
const DISCARDED: &[Single] = &[
    ("LOCAL_PREF from outside", Sender::External, Rule::External, &[0x40, 5, 4, 0, 0, 0, 200]),
    ("LOCAL_PREF from outside, too short", Sender::External, Rule::External, &[0x40, 5, 1, 0]),
    ("ATOMIC_AGGREGATE too long", Sender::External, Rule::Length, BAD_AGGREGATE),
    (
        "AGGREGATOR of two octets where four were agreed on",
        Sender::External,
        Rule::Length,
        &[0xC0, 7, 6, 0, 1, 192, 0, 2, 9],
    ),
    (
        "AGGREGATOR of four octets where two were agreed on",
        Sender::TwoOctets,
        Rule::Length,
        &[0xC0, 7, 8, 0, 1, 0, 0, 192, 0, 2, 9],
    ),
    ("AGGREGATOR in AS 0", Sender::External, Rule::Zero, &[0xC0, 7, 8, 0, 0, 0, 0, 192, 0, 2, 9]),
    ("ORIGINATOR_ID from outside", Sender::External, Rule::External, &[0x80, 9, 4, 192, 0, 2, 9]),
    ("CLUSTER_LIST from outside", Sender::External, Rule::External, &[0x80, 10, 4, 0, 0, 0, 1]),
    (
        "AS4_PATH where four octets were agreed on",
        Sender::External,
        Rule::FourOctetSpeaker,
        &[0xC0, 17, 6, 2, 1, 0, 1, 0x11, 0x70],
    ),
    ("AS4_PATH, segment without numbers", Sender::TwoOctets, Rule::Segment, &[0xC0, 17, 2, 2, 0]),
    ("AS4_PATH through AS 0", Sender::TwoOctets, Rule::Zero, &[0xC0, 17, 6, 2, 1, 0, 0, 0, 0]),
    (
        "AS4_AGGREGATOR where four octets were agreed on",
        Sender::External,
        Rule::FourOctetSpeaker,
        &[0xC0, 18, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 9],
    ),
    (
        "AS4_AGGREGATOR too short",
        Sender::TwoOctets,
        Rule::Length,
        &[0xC0, 18, 7, 0, 1, 0x11, 0x70, 192, 0, 2],
    ),
    ("AIGP, nothing in it", Sender::External, Rule::Content, &[0x80, 26, 0]),
    ("AIGP, a length too short", Sender::External, Rule::Content, &[0x80, 26, 3, 1, 0, 2]),
    ("AIGP, a length too long", Sender::External, Rule::Content, &[0x80, 26, 4, 1, 0, 5, 0]),
    (
        "AIGP, a metric too short",
        Sender::External,
        Rule::Content,
        &[0x80, 26, 10, 1, 0, 10, 0, 0, 0, 0, 0, 1, 0],
    ),
    (
        "AIGP, a metric that cannot grow",
        Sender::External,
        Rule::Content,
        &[0x80, 26, 11, 1, 0, 11, 255, 255, 255, 255, 255, 255, 255, 255],
    ),
    ("PREFIX_SID, nothing in it", Sender::External, Rule::Content, &[0xC0, 40, 0]),
    ("PREFIX_SID, a length too long", Sender::External, Rule::Content, &[0xC0, 40, 3, 1, 0, 7]),
    ("PREFIX_SID, a label too short", Sender::External, Rule::Content, &[0xC0, 40, 4, 1, 0, 1, 0]),
    (
        "an attribute for the second time",
        Sender::External,
        Rule::Duplicate,
        &[
            // One that is unknown, twice.
            0x80, 99, 1, 7, 0x80, 99, 1, 7,
        ],
    ),
];

/// Lists of prefixes in attributes, MP_REACH_NLRI and MP_UNREACH_NLRI.
fn lists() -> Vec<Row> {
    let disable = Demand::Disable { withdraw: false };
    let one = |name, attributes: &[&[u8]], nlri, fault: (u8, Rule), demand: &Demand| Row {
        name,
        sender: Sender::External,
        body: body(attributes, nlri),
        fault: Some(fault),
        demand: demand.clone(),
    };
    let of_six = |name, reach: &[u8], rule, demand| {
        one(name, &[reach, ORIGIN, AS_PATH], &[], (14, rule), demand)
    };
    let reset = |data: &[u8]| Demand::Reset { subcode: 9, data: data.into() };
    let withdraw = Demand::Withdraw(Family::IPV6_UNICAST);
    let mut flagged = mp_reach(&GLOBAL, PREFIX6);
    flagged[0] = 0xC0;
    let (cut, short): (&[u8], &[u8]) = (&[0x80, 14, 3, 0, 2, 1], &[0x80, 14, 2, 0, 2]);
    let (broken, gone): (&[u8], &[u8]) = (&[0x80, 15, 5, 0, 2, 1, 32, 0x20], &[0x80, 15, 2, 0, 2]);
    let good = mp_reach(&GLOBAL, PREFIX6);
    let bad_hop = mp_reach(&GLOBAL[..15], PREFIX6);
    vec![
        of_six("MP_REACH_NLRI, next hop too short", &bad_hop, Rule::NextHop, &disable),
        of_six("MP_REACH_NLRI, no next hop", &mp_reach(&[], PREFIX6), Rule::NextHop, &disable),
        of_six("MP_REACH_NLRI, 129 bits", &mp_reach(&GLOBAL, &[129; 18]), Rule::Prefixes, &disable),
        of_six(
            "MP_REACH_NLRI, a part",
            &mp_reach(&GLOBAL, &PREFIX6[..4]),
            Rule::Prefixes,
            &disable,
        ),
        of_six(
            "MP_REACH_NLRI, next hop is no host",
            &mp_reach(&[0; 16], PREFIX6),
            Rule::Value,
            &withdraw,
        ),
        of_six("flags of MP_REACH_NLRI", &flagged, Rule::Flags, &withdraw),
        one(
            "MP_REACH_NLRI ends behind its family",
            &[cut, ORIGIN, AS_PATH, NEXT_HOP],
            NLRI,
            (14, Rule::NextHop),
            &disable,
        ),
        one(
            "MP_REACH_NLRI without a family",
            &[short, ORIGIN, AS_PATH, NEXT_HOP],
            NLRI,
            (14, Rule::Length),
            &reset(short),
        ),
        one("MP_UNREACH_NLRI, a part", &[broken], &[], (15, Rule::Prefixes), &disable),
        one("MP_UNREACH_NLRI without a family", &[gone], &[], (15, Rule::Length), &reset(gone)),
        Row {
            sender: Sender::Ipv4,
            ..one(
                "MP_REACH_NLRI of a family that was not agreed on",
                &[&good, ORIGIN, AS_PATH, NEXT_HOP],
                NLRI,
                (14, Rule::Family),
                &Demand::Discard(body(&[ORIGIN, AS_PATH, NEXT_HOP], NLRI)),
            )
        },
    ]
}

/// A message in which more than one attribute is wrong, or something else.
fn row(name: &'static str, body: Vec<u8>, demand: Demand) -> Row {
    Row { name, sender: Sender::External, body, fault: None, demand }
}

/// One that ends the session.
fn reset(name: &'static str, body: Vec<u8>, subcode: u8, data: &[u8]) -> Row {
    row(name, body, Demand::Reset { subcode, data: data.into() })
}

/// Attributes that are missing, longer than all of them, there twice, or wrong in several ways.
fn whole() -> Vec<Row> {
    let withdraw = |name, attributes: &[&[u8]]| {
        row(name, body(attributes, NLRI), Demand::Withdraw(Family::IPV4_UNICAST))
    };
    let good_six = mp_reach(&GLOBAL, PREFIX6);
    let bad_six = mp_reach(&GLOBAL[..15], PREFIX6);
    let unreach: &[u8] = &[0x80, 15, 3, 0, 2, 1];
    let unknown: &[u8] = &[0x40, 99, 1, 0];
    let all: [&[u8]; 3] = [ORIGIN, AS_PATH, NEXT_HOP];
    let overrun = |attribute| {
        withdraw("an attribute longer than all of them", &[ORIGIN, AS_PATH, NEXT_HOP, attribute])
    };
    vec![
        // RFC 7606 §3 (d).
        withdraw("without ORIGIN", &[AS_PATH, NEXT_HOP]),
        withdraw("without AS_PATH", &[ORIGIN, NEXT_HOP]),
        withdraw("without NEXT_HOP", &[ORIGIN, AS_PATH]),
        row(
            "MP_REACH_NLRI without ORIGIN",
            body(&[&good_six, AS_PATH], &[]),
            Demand::Withdraw(Family::IPV6_UNICAST),
        ),
        // §4.
        overrun(&[0xC0]),
        overrun(&[0xC0, 8]),
        overrun(&[0xC0, 8, 4, 0, 0]),
        overrun(&[0xD0, 8, 1]),
        overrun(&[0xD0, 8, 0, 9, 1]),
        // §3 (g).
        reset("MP_REACH_NLRI twice", body(&[&good_six, &good_six, ORIGIN, AS_PATH], &[]), 1, &[]),
        reset("MP_UNREACH_NLRI twice", body(&[unreach, unreach, ORIGIN, AS_PATH], &[]), 1, &[]),
        row(
            "ORIGIN for the second time",
            body(&[ORIGIN, AS_PATH, NEXT_HOP, &[0x40, 1, 1, 2]], NLRI),
            Demand::Discard(body(&all, NLRI)),
        ),
        // §3 (h): the strongest action.
        withdraw(
            "a fault to discard for, and one to withdraw for",
            &[BAD_ORIGIN, AS_PATH, NEXT_HOP, BAD_AGGREGATE],
        ),
        reset(
            "well-known and unknown",
            body(&[BAD_ORIGIN, AS_PATH, NEXT_HOP, unknown], NLRI),
            2,
            unknown,
        ),
        row(
            "MP_REACH_NLRI that cannot be read, and ORIGIN without meaning",
            body(&[&bad_six, BAD_ORIGIN, AS_PATH, NEXT_HOP], NLRI),
            Demand::Disable { withdraw: true },
        ),
    ]
}

/// Messages of which nobody knows what routes are in them.
fn unreadable() -> Vec<Row> {
    let (long, part): (&[u8], &[u8]) = (&[33, 1, 2, 3, 4, 5], &[24, 198, 51]);
    let all: [&[u8]; 3] = [ORIGIN, AS_PATH, NEXT_HOP];
    let withdrawn = |nlri: &[u8]| [&[0, nlri.len() as u8][..], nlri, &[0, 0]].concat();
    vec![
        // RFC 7606 §5.2.
        reset("ORIGIN without meaning, and no prefixes", body(&[BAD_ORIGIN], &[]), 1, &[]),
        reset(
            "MP_REACH_NLRI without prefixes, and ORIGIN without meaning",
            body(&[&mp_reach(&GLOBAL, &[]), BAD_ORIGIN, AS_PATH], &[]),
            1,
            &[],
        ),
        reset(
            "prefixes lost behind what is too long",
            body(&[ORIGIN, AS_PATH, &[0xC0, 8, 99]], &[]),
            1,
            &[],
        ),
        row(
            "ATOMIC_AGGREGATE too long, and no prefixes",
            body(&[ORIGIN, BAD_AGGREGATE], &[]),
            Demand::Discard(body(&[ORIGIN], &[])),
        ),
        // §5.3.
        reset("a prefix of 33 bits", body(&all, long), 10, &[]),
        reset("a part of a prefix", body(&all, part), 10, &[]),
        reset("a withdrawn prefix of 33 bits", withdrawn(long), 10, &[]),
        reset("a part of a withdrawn prefix", withdrawn(part), 10, &[]),
        // RFC 4271 §6.3: lengths that do not fit the message.
        reset("withdrawn prefixes longer than the message", vec![0, 9, 0, 0], 1, &[]),
        reset("attributes longer than the message", vec![0, 0, 0, 1], 1, &[]),
    ]
}
