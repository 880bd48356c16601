//! Reading path attributes, and judging what is wrong with them.
//!
//! Reference: RFC 7606 §3, §4, §7; the sections of attributes are named at their arms. Where that leaves a rule to
//! others: RFC 7607 (AS 0), RFC 9774 (AS_SET), RFC 5065 §5 (confederations), RFC 6793 §4.2.3 and §6 (AS4_PATH), RFC
//! 7311 §3.2 (AIGP), RFC 8669 §6 (Prefix-SID), RFC 9234 §5 (OTC).

use std::net::Ipv4Addr;

use super::super::as_path::{AsPath, AsPathError, SegmentKind};
use super::super::context::{Context, Neighbour};
use super::{
    Action, Aggregator, Attributes, Fault, LargeCommunity, NextHop, Origin, Rare, Rule,
    UnknownAttribute,
};
use crate::numbers::AS_TRANS;
use crate::numbers::attribute as code;
use crate::numbers::attribute_flag::{EXTENDED_LENGTH, OPTIONAL, PARTIAL, TRANSITIVE};

/// An attribute as it stands in a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    pub(crate) flags: u8,
    pub(crate) code: u8,
    pub(crate) value: &'a [u8],
    /// With flags, code and length.
    pub(crate) whole: &'a [u8],
}

/// The attributes of a block one after the other. At what is longer than the block it ends with an error, which
/// holds the code if there is one.
#[derive(Clone, Debug)]
pub(crate) struct RawAttributes<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for RawAttributes<'a> {
    type Item = Result<Raw<'a>, u8>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let block = std::mem::take(&mut self.0);
        let Some((&[flags, code], rest)) = block.split_first_chunk() else {
            return Some(Err(0));
        };
        let header = if flags & EXTENDED_LENGTH == 0 {
            rest.split_first().map(|(length, rest)| (usize::from(*length), rest))
        } else {
            let two = rest.split_first_chunk();
            two.map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))
        };
        let parts = header.and_then(|(length, rest)| rest.split_at_checked(length));
        let Some((value, behind)) = parts else { return Some(Err(code)) };
        self.0 = behind;
        let whole = &block[..block.len() - behind.len()];
        Some(Ok(Raw { flags, code, value, whole }))
    }
}

/// What was read from a block of attributes.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// Those that could be used.
    pub attributes: Attributes,
    /// What was wrong, in the order in which it was found.
    pub faults: Vec<Fault>,
    /// Which attributes there were, by code, faulty ones included.
    seen: [u128; 2],
    /// A well-known attribute that is not known.
    pub(crate) unrecognized: Option<Vec<u8>>,
}

impl Parsed {
    /// Whether the attribute was there, faulty or not.
    #[must_use]
    pub fn has(&self, code: u8) -> bool {
        self.seen[usize::from(code >> 7)] & 1 << (code & 127) != 0
    }

    pub(crate) fn fault(&mut self, attribute: u8, rule: Rule, action: Action) {
        self.faults.push(Fault { attribute, rule, action });
    }
}

/// Optional and Transitive of the attributes that are known here.
pub(crate) const fn expected_flags(code: u8) -> Option<u8> {
    Some(match code {
        code::ORIGIN
        | code::AS_PATH
        | code::NEXT_HOP
        | code::LOCAL_PREF
        | code::ATOMIC_AGGREGATE => TRANSITIVE,
        code::MED
        | code::ORIGINATOR_ID
        | code::CLUSTER_LIST
        | code::MP_REACH_NLRI
        | code::MP_UNREACH_NLRI
        | code::AIGP => OPTIONAL,
        code::AGGREGATOR
        | code::COMMUNITIES
        | code::EXTENDED_COMMUNITIES
        | code::AS4_PATH
        | code::AS4_AGGREGATOR
        | code::LARGE_COMMUNITIES
        | code::ONLY_TO_CUSTOMER
        | code::PREFIX_SID => OPTIONAL | TRANSITIVE,
        _ => return None,
    })
}

/// Whether an attribute that is known here has the flags that it should have.
fn is_flagged_right(raw: &Raw<'_>) -> bool {
    expected_flags(raw.code).is_none_or(|flags| raw.flags & (OPTIONAL | TRANSITIVE) == flags)
}

impl Attributes {
    /// Reads a block of attributes. Those with prefixes are passed over; [`Update::judge`](super::super::Update::judge)
    /// knows them, and whether something is missing.
    #[must_use]
    pub fn parse(block: &[u8], context: &Context) -> Parsed {
        let mut reader = Reader {
            parsed: Parsed::default(),
            rare: Rare::default(),
            context,
            as4: None,
            as4_aggregator: None,
            unknown: Vec::new(),
        };
        for raw in RawAttributes(block) {
            match raw {
                Ok(raw) => reader.take(&raw),
                // RFC 7606 §4: what is behind it is lost, and the routes with it.
                Err(code) => reader.parsed.fault(code, Rule::Overrun, Action::TreatAsWithdraw),
            }
        }
        reader.finish()
    }
}

/// Why an attribute is not used.
type Refusal = (Rule, Action);

const fn withdraw(rule: Rule) -> Refusal {
    (rule, Action::TreatAsWithdraw)
}

const fn discard(rule: Rule) -> Refusal {
    (rule, Action::DiscardAttribute)
}

struct Reader<'a> {
    parsed: Parsed,
    rare: Rare,
    context: &'a Context,
    as4: Option<AsPath>,
    as4_aggregator: Option<Aggregator>,
    unknown: Vec<UnknownAttribute>,
}

impl Reader<'_> {
    fn take(&mut self, raw: &Raw<'_>) {
        if self.parsed.has(raw.code) {
            // RFC 7606 §3 (g): the first one counts. A second list of prefixes is a matter of `Update`.
            return self.parsed.fault(raw.code, Rule::Duplicate, Action::DiscardAttribute);
        }
        self.parsed.seen[usize::from(raw.code >> 7)] |= 1 << (raw.code & 127);
        let result =
            if is_flagged_right(raw) { self.read(raw) } else { Err(withdraw(Rule::Flags)) };
        match result {
            Ok(()) => self.note_partial(raw),
            Err((rule, action)) => self.parsed.fault(raw.code, rule, action),
        }
    }

    /// RFC 4271 §5: an attribute that is known here and optional transitive keeps the flag that it came with.
    fn note_partial(&mut self, raw: &Raw<'_>) {
        let all = OPTIONAL | TRANSITIVE | PARTIAL;
        // These two are not passed on as they came.
        let is_merged = matches!(raw.code, code::AS4_PATH | code::AS4_AGGREGATOR);
        if expected_flags(raw.code).is_some() && !is_merged && raw.flags & all == all {
            self.rare.partial |= 1 << (raw.code & 63);
        }
    }

    fn is_external(&self) -> bool {
        self.context.neighbour == Neighbour::External
    }

    /// One arm for each row of the table of attributes.
    fn read(&mut self, raw: &Raw<'_>) -> Result<(), Refusal> {
        let value = raw.value;
        let attributes = &mut self.parsed.attributes;
        match raw.code {
            // §7.1
            code::ORIGIN => {
                let [origin] = fixed(value).ok_or(withdraw(Rule::Length))?;
                attributes.origin = Origin::from_code(origin).ok_or(withdraw(Rule::Value))?;
            }
            code::AS_PATH => self.read_as_path(value)?,
            // §7.3, and §3 (d) for an address that is none.
            code::NEXT_HOP => {
                let ip = fixed::<4>(value).ok_or(withdraw(Rule::Length))?;
                let next_hop = NextHop::V4(ip.into());
                if !next_hop.is_host() {
                    return Err(withdraw(Rule::Value));
                }
                attributes.next_hop = Some(next_hop);
            }
            // §7.4
            code::MED => attributes.med = Some(number(value).ok_or(withdraw(Rule::Length))?),
            // §7.5
            code::LOCAL_PREF => {
                let local_pref = self.internal(|| number(value))?;
                self.parsed.attributes.local_pref = Some(local_pref);
            }
            // §7.6
            code::ATOMIC_AGGREGATE if value.is_empty() => attributes.atomic_aggregate = true,
            code::ATOMIC_AGGREGATE => return Err(discard(Rule::Length)),
            code::AGGREGATOR => self.read_aggregator(value)?,
            // §7.8
            code::COMMUNITIES => {
                attributes.communities =
                    list(value)?.iter().map(|c| u32::from_be_bytes(*c)).collect();
            }
            // §7.9
            code::ORIGINATOR_ID => {
                let id = self.internal(|| fixed::<4>(value))?;
                self.rare.originator_id = Some(id.into());
            }
            // §7.10
            code::CLUSTER_LIST => {
                let clusters = self.internal(|| list::<4>(value).ok())?;
                self.rare.cluster_list = clusters.iter().map(|id| Ipv4Addr::from(*id)).collect();
            }
            // Lists of prefixes: see `Update`.
            code::MP_REACH_NLRI | code::MP_UNREACH_NLRI => {}
            // §7.14
            code::EXTENDED_COMMUNITIES => {
                let all = list(value)?.iter().map(|c| u64::from_be_bytes(*c)).collect();
                attributes.extended_communities = all;
            }
            code::AS4_PATH => self.read_as4_path(value)?,
            code::AS4_AGGREGATOR => self.read_as4_aggregator(value)?,
            code::AIGP => self.rare.aigp = aigp(value)?,
            // RFC 8092 §6
            code::LARGE_COMMUNITIES => attributes.large_communities = large_communities(value)?,
            // RFC 9234 §5
            code::ONLY_TO_CUSTOMER => {
                self.rare.only_to_customer = Some(number(value).ok_or(withdraw(Rule::Length))?);
            }
            code::PREFIX_SID if is_prefix_sid(value) => self.rare.prefix_sid = Some(value.into()),
            code::PREFIX_SID => return Err(discard(Rule::Content)),
            _ => self.read_unknown(raw)?,
        }
        Ok(())
    }

    /// What has no meaning outside this autonomous system: discarded if it comes from there, whatever it says.
    fn internal<T>(&self, read: impl FnOnce() -> Option<T>) -> Result<T, Refusal> {
        if self.is_external() {
            return Err(discard(Rule::External));
        }
        read().ok_or(withdraw(Rule::Length))
    }

    /// §7.2
    fn read_as_path(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let path =
            AsPath::parse(value, self.context.four_octet_as).map_err(|error| match error {
                AsPathError::Segment => withdraw(Rule::Segment),
                AsPathError::Zero => withdraw(Rule::Zero),
            })?;
        // RFC 5065 §5: one that is outside says nothing of what is inside, one of another member begins with that member.
        match self.context.neighbour {
            Neighbour::External if path.has_confederation() => {
                return Err(withdraw(Rule::Confederation));
            }
            Neighbour::Confederation if path.first_member().is_none() => {
                return Err(withdraw(Rule::Member));
            }
            _ => {}
        }
        if path.has_sets() && !self.context.accept_as_sets {
            return Err(withdraw(Rule::Set));
        }
        self.parsed.attributes.as_path = path;
        Ok(())
    }

    /// §7.7
    fn read_aggregator(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let (number, identifier) = if self.context.four_octet_as {
            let [a, b, c, d, identifier @ ..] = fixed::<8>(value).ok_or(discard(Rule::Length))?;
            (u32::from_be_bytes([a, b, c, d]), identifier)
        } else {
            let [a, b, identifier @ ..] = fixed::<6>(value).ok_or(discard(Rule::Length))?;
            (u32::from(u16::from_be_bytes([a, b])), identifier)
        };
        self.rare.aggregator = Some(aggregator(number, identifier)?);
        Ok(())
    }

    /// RFC 6793 §4.1, §6: only speakers that know two octets need it.
    fn require_two_octet_speaker(&self) -> Result<(), Refusal> {
        if self.context.four_octet_as { Err(discard(Rule::FourOctetSpeaker)) } else { Ok(()) }
    }

    fn read_as4_path(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.require_two_octet_speaker()?;
        let path = AsPath::parse(value, true).map_err(|error| match error {
            AsPathError::Segment => discard(Rule::Segment),
            AsPathError::Zero => discard(Rule::Zero),
        })?;
        if path.segments().any(|segment| segment.kind == SegmentKind::Set)
            && !self.context.accept_as_sets
        {
            return Err(withdraw(Rule::Set));
        }
        // RFC 6793 §6: segments of confederations are taken out, and the rest is used.
        self.as4 = Some(path.without_confederation());
        Ok(())
    }

    fn read_as4_aggregator(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.require_two_octet_speaker()?;
        let [a, b, c, d, identifier @ ..] = fixed::<8>(value).ok_or(discard(Rule::Length))?;
        self.as4_aggregator = Some(aggregator(u32::from_be_bytes([a, b, c, d]), identifier)?);
        Ok(())
    }

    /// RFC 4271 §5, §6.3: what every speaker should know ends the session, what may be passed on is kept, and the
    /// rest ignored.
    fn read_unknown(&mut self, raw: &Raw<'_>) -> Result<(), Refusal> {
        if raw.flags & OPTIONAL == 0 {
            self.parsed.unrecognized = Some(raw.whole.to_vec());
            return Err((Rule::Unrecognized, Action::ResetSession));
        }
        if raw.flags & TRANSITIVE != 0 {
            self.unknown.push(UnknownAttribute { code: raw.code, value: raw.value.into() });
        }
        Ok(())
    }

    fn finish(mut self) -> Parsed {
        self.merge();
        self.unknown.sort_by_key(|attribute| attribute.code);
        self.rare.unknown = self.unknown.into();
        self.parsed.attributes.set_rare(self.rare);
        self.parsed
    }

    /// RFC 6793 §4.2.3: what speakers that know two octets could not say was put beside it.
    fn merge(&mut self) {
        if let (Some(old), Some(new)) = (self.rare.aggregator, self.as4_aggregator) {
            if old.autonomous_system != u32::from(AS_TRANS) {
                // Somebody who knows two octets has aggregated since: both mean nothing now.
                return;
            }
            self.rare.aggregator = Some(new);
        }
        if let Some(as4) = &self.as4 {
            self.parsed.attributes.as_path = self.parsed.attributes.as_path.merge(as4);
        }
    }
}

/// The value if it has `N` bytes.
fn fixed<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

fn number(value: &[u8]) -> Option<u32> {
    fixed(value).map(u32::from_be_bytes)
}

/// The value as one or more items of `N` bytes; RFC 7606 treats any other length as a withdrawal.
fn list<const N: usize>(value: &[u8]) -> Result<&[[u8; N]], Refusal> {
    match value.as_chunks() {
        ([], _) => Err(withdraw(Rule::Length)),
        (items, []) => Ok(items),
        _ => Err(withdraw(Rule::Length)),
    }
}

fn large_communities(value: &[u8]) -> Result<Box<[LargeCommunity]>, Refusal> {
    let read = |[a, b, c, d, e, f, g, h, i, j, k, l]: &[u8; 12]| LargeCommunity {
        administrator: u32::from_be_bytes([*a, *b, *c, *d]),
        first: u32::from_be_bytes([*e, *f, *g, *h]),
        second: u32::from_be_bytes([*i, *j, *k, *l]),
    };
    Ok(list(value)?.iter().map(read).collect())
}

/// RFC 7607: number 0 makes it malformed.
fn aggregator(number: u32, identifier: [u8; 4]) -> Result<Aggregator, Refusal> {
    if number == 0 {
        return Err(discard(Rule::Zero));
    }
    Ok(Aggregator { autonomous_system: number, identifier: identifier.into() })
}

/// The metric of RFC 7311 §3: of the first type-length-value of type 1. None if there is none.
fn aigp(value: &[u8]) -> Result<Option<u64>, Refusal> {
    let malformed = discard(Rule::Content);
    let mut metric = None;
    if value.is_empty() {
        return Err(malformed);
    }
    for tlv in Tlvs::<3>(value) {
        let (kind, content) = tlv.ok_or(malformed)?;
        if kind == 1 {
            let content = u64::from_be_bytes(fixed(content).ok_or(malformed)?);
            metric.get_or_insert(content);
        }
    }
    // §3.2: a metric that cannot grow any more.
    if metric == Some(u64::MAX) { Err(malformed) } else { Ok(metric) }
}

/// Whether the content is well-formed as far as RFC 8669 §3 says it: the label index (type 1) has seven octets,
/// the originator's block (type 3) flags and ranges of six octets each.
fn is_prefix_sid(value: &[u8]) -> bool {
    !value.is_empty()
        && Tlvs::<0>(value).all(|tlv| match tlv {
            Some((1, content)) => content.len() == 7,
            Some((3, content)) => content.len() > 2 && (content.len() - 2) % 6 == 0,
            Some(_) => true,
            None => false,
        })
}

/// Types (1), lengths (2) and values, where the length counts `OVERHEAD` octets more than the value. Ends with
/// none where a length is wrong.
struct Tlvs<'a, const OVERHEAD: usize>(&'a [u8]);

impl<'a, const OVERHEAD: usize> Iterator for Tlvs<'a, OVERHEAD> {
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let all = std::mem::take(&mut self.0);
        let tlv = all.split_first_chunk().and_then(|([kind, high, low], rest)| {
            let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(OVERHEAD)?;
            let (value, behind) = rest.split_at_checked(length)?;
            Some((*kind, value, behind))
        });
        let Some((kind, value, behind)) = tlv else { return Some(None) };
        self.0 = behind;
        Some(Some((kind, value)))
    }
}
