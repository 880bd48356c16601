//! Writing UPDATEs: attributes once, and behind them as many prefixes as a message holds.
//!
//! Reference: RFC 4271 §4.3; RFC 4760 §3, §4; RFC 7606 §5.1 (lists with a family stand first); RFC 8654 §4.

use std::iter::Peekable;

use weft_routing::Prefix;

use super::attributes::{Attributes, NextHop, emit_block};
use super::context::{Context, MAX_MESSAGE};
use super::family::Family;
use super::nlri;
use super::stream::{self, MessageType};
use crate::numbers::attribute as code;
use crate::numbers::attribute_flag::{EXTENDED_LENGTH, OPTIONAL};

/// Why routes cannot be told to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// There is no next hop, or none that the peer takes for this family.
    #[error("there is no next hop that the peer takes for {0}; set one, or agree on RFC 8950")]
    NextHop(Family),
    /// The attributes and one prefix are longer than a message.
    #[error("the attributes take {length} octets, for which a message of {limit} has no space")]
    TooLong {
        /// Length of the attributes in bytes.
        length: usize,
        /// The longest message in bytes.
        limit: u16,
    },
}

/// How messages of a family to a peer are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    family: Family,
    has_path_ids: bool,
    /// The longest message in bytes.
    limit: usize,
    /// The most bytes that a prefix takes.
    entry: usize,
}

impl Layout {
    fn new(family: Family, context: &Context) -> Self {
        let has_path_ids = context.add_path_send.contains(family);
        let entry = if has_path_ids { 5 } else { 1 } + usize::from(family.address_bits() / 8);
        let limit = usize::from(context.send_limit.max(MAX_MESSAGE));
        Self { family, has_path_ids, limit, entry }
    }

    /// Writes prefixes until the message that began at `start`, and needs `behind` bytes more, is full. Prefixes
    /// that are longer than an address of the family are passed over.
    fn fill<I: Iterator<Item = (u32, Prefix)>>(
        &self,
        start: usize,
        behind: usize,
        prefixes: &mut Peekable<I>,
        out: &mut Vec<u8>,
    ) {
        let last = start + self.limit - behind - self.entry;
        let bits = self.family.address_bits();
        while out.len() <= last
            && let Some((path_id, prefix)) = prefixes.next()
        {
            if prefix.length() <= bits {
                nlri::emit(self.has_path_ids.then_some(path_id), &prefix, out);
            } else {
                debug_assert!(false, "{prefix:?} is no prefix of {}", self.family);
            }
        }
    }
}

/// Writes UPDATEs for routes that are alike.
#[derive(Clone, Debug)]
pub struct UpdateEncoder {
    layout: Layout,
    /// Attributes other than lists of prefixes.
    block: Vec<u8>,
    /// With a family: what stands in MP_REACH_NLRI in front of its prefixes.
    head: Option<Vec<u8>>,
}

impl UpdateEncoder {
    /// For routes of `family` with these attributes.
    ///
    /// # Errors
    /// They have no next hop that the peer takes, or are too long for a message.
    pub fn new(
        attributes: &Attributes,
        family: Family,
        context: &Context,
    ) -> Result<Self, EncodeError> {
        let layout = Layout::new(family, context);
        let head = match attributes.next_hop {
            Some(NextHop::V4(_)) if family == Family::IPV4_UNICAST => None,
            Some(next_hop) => {
                Some(reach_head(family, next_hop, context).ok_or(EncodeError::NextHop(family))?)
            }
            None => return Err(EncodeError::NextHop(family)),
        };
        let mut block = Vec::with_capacity(64);
        emit_block(attributes, context.four_octet_as, head.is_none(), &mut block);
        let length = block.len() + head.as_ref().map_or(0, Vec::len);
        // The header, and both lengths.
        if stream::HEADER_LEN + 4 + length + layout.entry > layout.limit {
            return Err(EncodeError::TooLong { length, limit: context.send_limit });
        }
        Ok(Self { layout, block, head })
    }

    /// Appends one message to `out`, with as many prefixes as it holds. False, and nothing happens, if there are
    /// no more. Path identifiers are left out where they were not agreed on.
    pub fn one<I: Iterator<Item = (u32, Prefix)>>(
        &self,
        prefixes: &mut Peekable<I>,
        out: &mut Vec<u8>,
    ) -> bool {
        if prefixes.peek().is_none() {
            return false;
        }
        let start = stream::begin(MessageType::Update, out);
        // Nothing is withdrawn; the length of the attributes follows.
        out.extend_from_slice(&[0; 4]);
        let attributes = out.len();
        if let Some(head) = &self.head {
            out.extend_from_slice(head);
            self.layout.fill(start, self.block.len(), prefixes, out);
            set_length(attributes + 2, attributes + 4, out);
            out.extend_from_slice(&self.block);
            set_length(attributes - 2, attributes, out);
        } else {
            out.extend_from_slice(&self.block);
            set_length(attributes - 2, attributes, out);
            self.layout.fill(start, 0, prefixes, out);
        }
        stream::end(start, out);
        true
    }

    /// Appends messages with all prefixes to `out`, and says how many messages they are.
    pub fn all(
        &self,
        prefixes: impl IntoIterator<Item = (u32, Prefix)>,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut prefixes = prefixes.into_iter().peekable();
        let mut count = 0;
        while self.one(&mut prefixes, out) {
            count += 1;
        }
        count
    }
}

/// Appends messages that withdraw all `prefixes` of a family to `out`, and says how many messages they are.
pub fn withdraw(
    family: Family,
    context: &Context,
    prefixes: impl IntoIterator<Item = (u32, Prefix)>,
    out: &mut Vec<u8>,
) -> usize {
    let layout = Layout::new(family, context);
    let mut prefixes = prefixes.into_iter().peekable();
    let mut count = 0;
    while prefixes.peek().is_some() {
        let start = stream::begin(MessageType::Update, out);
        if family == Family::IPV4_UNICAST {
            out.extend_from_slice(&[0; 2]);
            let list = out.len();
            // The length of the attributes follows.
            layout.fill(start, 2, &mut prefixes, out);
            set_length(list - 2, list, out);
            out.extend_from_slice(&[0; 2]);
        } else {
            out.extend_from_slice(&[0; 4]);
            let attributes = out.len();
            out.extend_from_slice(&unreach_head(family));
            layout.fill(start, 0, &mut prefixes, out);
            set_length(attributes + 2, attributes + 4, out);
            set_length(attributes - 2, attributes, out);
        }
        stream::end(start, out);
        count += 1;
    }
    count
}

/// A message that says: these were all routes of the family (RFC 4724 §2).
#[must_use]
pub fn end_of_rib(family: Family) -> Vec<u8> {
    let mut out = Vec::new();
    let start = stream::begin(MessageType::Update, &mut out);
    out.extend_from_slice(&[0; 4]);
    if family != Family::IPV4_UNICAST {
        let attributes = out.len();
        out.extend_from_slice(&unreach_head(family));
        set_length(attributes + 2, attributes + 4, &mut out);
        set_length(attributes - 2, attributes, &mut out);
    }
    stream::end(start, &mut out);
    out
}

/// MP_REACH_NLRI up to its prefixes; none if the next hop is not for this family.
fn reach_head(family: Family, next_hop: NextHop, context: &Context) -> Option<Vec<u8>> {
    let mut head = vec![OPTIONAL | EXTENDED_LENGTH, code::MP_REACH_NLRI, 0, 0];
    head.extend_from_slice(&family.bytes());
    match next_hop {
        NextHop::V4(_) if family.is_ipv6() => return None,
        NextHop::V4(ip) => {
            head.push(4);
            head.extend_from_slice(&ip.octets());
        }
        NextHop::V6 { .. } if !family.is_ipv6() && !context.extended_next_hop.contains(family) => {
            return None;
        }
        NextHop::V6 { global, link_local } => {
            head.push(if link_local.is_some() { 32 } else { 16 });
            head.extend_from_slice(&global.octets());
            head.extend(link_local.iter().flat_map(|ip| ip.octets()));
        }
    }
    // Reserved.
    head.push(0);
    Some(head)
}

/// MP_UNREACH_NLRI up to its prefixes.
fn unreach_head(family: Family) -> [u8; 7] {
    let [high, low, safi] = family.bytes();
    [OPTIONAL | EXTENDED_LENGTH, code::MP_UNREACH_NLRI, 0, 0, high, low, safi]
}

/// Writes to `at` the length of what stands from `from` to the end, which a message bounds.
fn set_length(at: usize, from: usize, out: &mut [u8]) {
    let length = (out.len() - from) as u16;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
}
