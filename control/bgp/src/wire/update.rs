//! UPDATE: routes that come and go.
//!
//! ```text
//!  0 length of the withdrawn prefixes (2); withdrawn prefixes
//!    length of the attributes (2); attributes
//!    prefixes that have these attributes
//!
//!  MP_REACH_NLRI                         MP_UNREACH_NLRI
//!  0 AFI (2), SAFI                       0 AFI (2), SAFI
//!  3 length of the next hop; next hop    3 withdrawn prefixes
//!    reserved; prefixes
//! ```
//!
//! [`Update::new_checked`] finds the lists of prefixes and checks all of them, since a fault in an attribute can
//! make withdrawals of them. [`Update::judge`] reads the attributes and says what is to be done with the message.
//!
//! Reference: RFC 4271 §4.3, §6.3; RFC 4760 §3 to §7; RFC 2545 §3 and RFC 8950 §3 (next hops); RFC 4724 §2 (end of
//! RIB); RFC 7606.

use std::net::Ipv6Addr;

use super::attributes::{Action, Attributes, Fault, NextHop, Raw, RawAttributes, Rule};
use super::context::Context;
use super::error::MessageError;
use super::family::Family;
use super::nlri::Nlri;
use crate::numbers::attribute as code;

/// An UPDATE whose prefixes can be read.
#[derive(Clone, Debug)]
pub struct Update<'a> {
    withdrawn: Nlri<'a>,
    attributes: &'a [u8],
    nlri: Nlri<'a>,
    reach: Option<Reach<'a>>,
    unreach: Option<(Family, Nlri<'a>)>,
    /// IPv4 unicast was agreed on: the lists without a family count.
    has_classic: bool,
    /// There is a list of prefixes that come, although it may be of a family that was not agreed on, or not
    /// readable.
    claims_reach: bool,
    /// There is an attribute other than MP_UNREACH_NLRI.
    has_others: bool,
    faults: Vec<Fault>,
    /// The first list with a family that cannot be read.
    broken: Option<&'a [u8]>,
}

/// Prefixes of a family that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach<'a> {
    /// Their family.
    pub family: Family,
    /// Where packets are to be sent; none if [`Attributes::next_hop`] says it.
    pub next_hop: Option<NextHop>,
    /// The prefixes.
    pub nlri: Nlri<'a>,
}

/// What is to be done with an UPDATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nothing is wrong: use it.
    Use,
    /// Use it; what was wrong is not among the attributes any more.
    DiscardAttributes,
    /// Withdraw all prefixes, those that come included.
    TreatAsWithdraw,
    /// Forget all routes of the family and take no more of them until the session ends.
    DisableFamily {
        /// The family.
        family: Family,
        /// Whether prefixes of other families that come are to be withdrawn, too.
        withdraw: bool,
        /// What to tell the peer if the session is ended instead, which is allowed (RFC 4760 §7).
        error: MessageError,
    },
    /// End the session.
    ResetSession(MessageError),
}

/// An UPDATE's attributes and what to do with it.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The attributes that can be used.
    pub attributes: Attributes,
    /// All that was wrong.
    pub faults: Vec<Fault>,
    /// What is to be done.
    pub disposition: Disposition,
}

impl<'a> Update<'a> {
    /// Finds and checks the lists of prefixes in the `body` of a message.
    ///
    /// # Errors
    /// They cannot be found or read, so that the session has to end.
    pub fn new_checked(body: &'a [u8], context: &Context) -> Result<Self, MessageError> {
        let (withdrawn, rest) = sized(body).ok_or(MessageError::AttributeList)?;
        let (attributes, nlri) = sized(rest).ok_or(MessageError::AttributeList)?;
        let ids = context.add_path_receive.contains(Family::IPV4_UNICAST);
        let classic = |bytes| Nlri::new_checked(bytes, Family::IPV4_UNICAST, ids);
        let mut update = Self {
            withdrawn: classic(withdrawn).map_err(|_| MessageError::NetworkField)?,
            attributes,
            nlri: classic(nlri).map_err(|_| MessageError::NetworkField)?,
            reach: None,
            unreach: None,
            has_classic: context.families.contains(Family::IPV4_UNICAST),
            claims_reach: !nlri.is_empty(),
            has_others: false,
            faults: Vec::new(),
            broken: None,
        };
        update.find_lists(context)?;
        Ok(update)
    }

    fn find_lists(&mut self, context: &Context) -> Result<(), MessageError> {
        let (mut has_reach, mut has_unreach) = (false, false);
        for raw in RawAttributes(self.attributes) {
            let Ok(raw) = raw else {
                // `Attributes::parse` says so, too.
                self.has_others = true;
                break;
            };
            let (seen, result) = match raw.code {
                code::MP_REACH_NLRI => (&mut has_reach, self.read_reach(&raw, context)),
                code::MP_UNREACH_NLRI => (&mut has_unreach, self.read_unreach(&raw, context)),
                _ => {
                    self.has_others = true;
                    continue;
                }
            };
            // RFC 7606 §3 (g).
            if std::mem::replace(seen, true) {
                return Err(MessageError::AttributeList);
            }
            if let Err((rule, action)) = result {
                self.faults.push(Fault { attribute: raw.code, rule, action });
                if action > Action::TreatAsWithdraw {
                    self.broken.get_or_insert(raw.whole);
                }
            }
        }
        self.has_others |= has_reach;
        Ok(())
    }

    fn read_reach(&mut self, raw: &Raw<'a>, context: &Context) -> Result<(), (Rule, Action)> {
        // What cannot be read may hold prefixes.
        let before = std::mem::replace(&mut self.claims_reach, true);
        let (family, rest) = family(raw.value).ok_or((Rule::Length, Action::ResetSession))?;
        if !context.families.contains(family) {
            return Err((Rule::Family, Action::DiscardAttribute));
        }
        // RFC 7606 §7.11: where the prefixes begin is not certain if this is wrong.
        let disable = |rule| (rule, Action::DisableFamily(family));
        let (length, rest) = rest.split_first().ok_or(disable(Rule::NextHop))?;
        let parts = rest.split_at_checked(usize::from(*length)).ok_or(disable(Rule::NextHop))?;
        let next_hop = next_hop(parts.0, family, context).ok_or(disable(Rule::NextHop))?;
        // The octet in front of the prefixes is reserved.
        let (_, prefixes) = parts.1.split_first().ok_or(disable(Rule::Length))?;
        let ids = context.add_path_receive.contains(family);
        let nlri = Nlri::new_checked(prefixes, family, ids).map_err(|_| disable(Rule::Prefixes))?;
        self.reach = Some(Reach { family, next_hop: Some(next_hop), nlri });
        self.claims_reach = before || !nlri.is_empty();
        if !next_hop.is_host() && !nlri.is_empty() {
            return Err((Rule::Value, Action::TreatAsWithdraw));
        }
        Ok(())
    }

    fn read_unreach(&mut self, raw: &Raw<'a>, context: &Context) -> Result<(), (Rule, Action)> {
        let (family, prefixes) = family(raw.value).ok_or((Rule::Length, Action::ResetSession))?;
        if !context.families.contains(family) {
            return Err((Rule::Family, Action::DiscardAttribute));
        }
        let ids = context.add_path_receive.contains(family);
        let nlri = Nlri::new_checked(prefixes, family, ids)
            .map_err(|_| (Rule::Prefixes, Action::DisableFamily(family)))?;
        self.unreach = Some((family, nlri));
        Ok(())
    }

    /// The prefixes that go, a list for each family. Families that were not agreed on are left out.
    pub fn withdrawn(&self) -> impl Iterator<Item = (Family, Nlri<'a>)> {
        let classic = (Family::IPV4_UNICAST, self.withdrawn);
        let classic = Some(classic).filter(|(_, nlri)| self.has_classic && !nlri.is_empty());
        classic.into_iter().chain(self.unreach.filter(|(_, nlri)| !nlri.is_empty()))
    }

    /// The prefixes that come, a list for each family. Families that were not agreed on are left out.
    pub fn reach(&self) -> impl Iterator<Item = Reach<'a>> {
        let classic = Reach { family: Family::IPV4_UNICAST, next_hop: None, nlri: self.nlri };
        let classic = Some(classic).filter(|reach| self.has_classic && !reach.nlri.is_empty());
        classic.into_iter().chain(self.reach.filter(|reach| !reach.nlri.is_empty()))
    }

    /// All attributes as they came, lists of prefixes included. Messages with the same bytes have the same
    /// attributes, as long as there is no list in them ([`Update::is_plain`]).
    #[must_use]
    pub const fn attributes(&self) -> &'a [u8] {
        self.attributes
    }

    /// Whether its attributes hold no list of prefixes.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.reach.is_none() && self.unreach.is_none() && self.faults.is_empty()
    }

    /// The family of which the peer has sent all routes that it had: RFC 4724 §2 makes that an UPDATE with nothing
    /// in it, or with nothing but an empty MP_UNREACH_NLRI.
    #[must_use]
    pub fn end_of_rib(&self) -> Option<Family> {
        if self.has_others || !self.withdrawn.is_empty() || !self.nlri.is_empty() {
            return None;
        }
        match self.unreach {
            Some((family, nlri)) => nlri.is_empty().then_some(family),
            None => {
                (self.attributes.is_empty() && self.has_classic).then_some(Family::IPV4_UNICAST)
            }
        }
    }

    /// Reads the attributes, and says what is to be done with the message.
    #[must_use]
    pub fn judge(&self, context: &Context) -> Judgement {
        let mut parsed = Attributes::parse(self.attributes, context);
        parsed.faults.extend_from_slice(&self.faults);
        let has_nlri = self.has_classic && !self.nlri.is_empty();
        if has_nlri || self.reach().next().is_some() {
            // RFC 7606 §3 (d). LOCAL_PREF is required inside an autonomous system, but not mandatory.
            let next_hop = has_nlri.then_some(code::NEXT_HOP);
            for mandatory in [code::ORIGIN, code::AS_PATH].into_iter().chain(next_hop) {
                if !parsed.has(mandatory) {
                    parsed.fault(mandatory, Rule::Missing, Action::TreatAsWithdraw);
                }
            }
        }
        let unrecognized = parsed.unrecognized.take();
        let disposition = self.dispose(&parsed.faults, unrecognized);
        Judgement { attributes: parsed.attributes, faults: parsed.faults, disposition }
    }

    /// RFC 7606 §3 (h): of several actions the strongest is taken.
    fn dispose(&self, faults: &[Fault], unrecognized: Option<Vec<u8>>) -> Disposition {
        let Some(worst) = faults.iter().max_by_key(|fault| fault.action) else {
            return Disposition::Use;
        };
        // §5.2: without prefixes that come nobody knows whether all prefixes were found.
        let is_uncertain = self.has_others && !self.claims_reach;
        let has_other_family = faults.iter().any(|fault| {
            matches!(fault.action, Action::DisableFamily(_)) && fault.action != worst.action
        });
        let broken = || MessageError::Multiprotocol(self.broken.unwrap_or_default().to_vec());
        match worst.action {
            Action::ResetSession => Disposition::ResetSession(match unrecognized {
                Some(attribute) => MessageError::UnknownWellKnown(attribute),
                None => broken(),
            }),
            Action::DiscardAttribute => Disposition::DiscardAttributes,
            _ if is_uncertain => {
                Disposition::ResetSession(MessageError::Attribute(worst.attribute))
            }
            Action::TreatAsWithdraw => Disposition::TreatAsWithdraw,
            // Two families at once: there is hardly anything left of the message.
            Action::DisableFamily(_) if has_other_family => Disposition::ResetSession(broken()),
            Action::DisableFamily(family) => Disposition::DisableFamily {
                family,
                withdraw: faults.iter().any(|fault| fault.action == Action::TreatAsWithdraw),
                error: broken(),
            },
        }
    }
}

/// Cuts off a part that stands behind its length.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Cuts off AFI and SAFI.
fn family(value: &[u8]) -> Option<(Family, &[u8])> {
    let ([high, low, safi], rest) = value.split_first_chunk()?;
    Some((Family { afi: u16::from_be_bytes([*high, *low]), safi: *safi }, rest))
}

/// None if its length does not fit the family.
fn next_hop(bytes: &[u8], family: Family, context: &Context) -> Option<NextHop> {
    let takes_ipv6 = family.is_ipv6() || context.extended_next_hop.contains(family);
    match bytes.len() {
        4 if !family.is_ipv6() => {
            let ip: [u8; 4] = bytes.try_into().ok()?;
            Some(NextHop::V4(ip.into()))
        }
        16 if takes_ipv6 => {
            let global: [u8; 16] = bytes.try_into().ok()?;
            Some(NextHop::V6 { global: global.into(), link_local: None })
        }
        32 if takes_ipv6 => {
            let ([global, link_local], _) = bytes.as_chunks::<16>() else { return None };
            let link_local = Some(Ipv6Addr::from(*link_local));
            Some(NextHop::V6 { global: Ipv6Addr::from(*global), link_local })
        }
        _ => None,
    }
}
