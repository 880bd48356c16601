//! OPEN: who a speaker is and what it can do.
//!
//! ```text
//!  0 version = 4
//!  1 autonomous system (2), AS_TRANS if it needs four octets
//!  3 hold time in seconds (2)
//!  5 identifier (4)
//!  9 length of the parameters; parameters: type, length, value
//!
//!  or, if they are longer than 255 bytes (RFC 9072):
//!  9 255
//! 10 255
//! 11 length of the parameters (2); parameters: type, length (2), value
//! ```
//!
//! Reference: RFC 4271 §4.2, §6.2; RFC 5492; RFC 6286; RFC 6793 §4.1; RFC 7607; RFC 9072.

use std::net::Ipv4Addr;

use super::capability::Capability;
use super::error::MessageError;
use super::family::Family;
use super::stream::{self, MAX_BODY, MessageType};
use crate::numbers::{AS_TRANS, VERSION, parameter};

/// An OPEN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The autonomous system, as its own field has it.
    pub as_field: u16,
    /// The hold time in seconds: 0, or 3 at least.
    pub hold_time: u16,
    /// The identifier, never zero.
    pub identifier: Ipv4Addr,
    /// What the speaker can do, in the order in which it said so.
    pub capabilities: Vec<Capability>,
}

impl Open {
    /// The OPEN of a speaker in the autonomous system `number`, of which [`Capability::FourOctetAs`] is the first
    /// capability.
    #[must_use]
    pub fn new(number: u32, hold_time: u16, identifier: Ipv4Addr) -> Self {
        let as_field = u16::try_from(number).unwrap_or(AS_TRANS);
        let capabilities = vec![Capability::FourOctetAs(number)];
        Self { as_field, hold_time, identifier, capabilities }
    }

    /// The autonomous system: of the capability if there is one, else of the field.
    #[must_use]
    pub fn autonomous_system(&self) -> u32 {
        self.four_octet_as().unwrap_or(u32::from(self.as_field))
    }

    /// The number that the capability for four octets states.
    #[must_use]
    pub fn four_octet_as(&self) -> Option<u32> {
        self.capabilities.iter().find_map(|capability| match capability {
            Capability::FourOctetAs(number) => Some(*number),
            _ => None,
        })
    }

    /// The families it speaks: those it names, or IPv4 unicast if it names none.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let named: Vec<_> = self
            .capabilities
            .iter()
            .filter_map(|capability| match capability {
                Capability::Multiprotocol(family) => Some(*family),
                _ => None,
            })
            .collect();
        if named.is_empty() { vec![Family::IPV4_UNICAST] } else { named }
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// One of the things that an OPEN can say is impossible, whoever says it.
    pub fn parse(body: &[u8]) -> Result<Self, MessageError> {
        let Some((fixed, parameters)) = body.split_first_chunk::<10>() else {
            return Err(MessageError::Open);
        };
        let [version, as_high, as_low, hold_high, hold_low, a, b, c, d, length] = *fixed;
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let mut capabilities = Vec::new();
        parse_parameters(length, parameters, &mut capabilities)?;
        let open = Self {
            as_field: u16::from_be_bytes([as_high, as_low]),
            hold_time: u16::from_be_bytes([hold_high, hold_low]),
            identifier: Ipv4Addr::new(a, b, c, d),
            capabilities,
        };
        if open.autonomous_system() == 0 || open.as_field == 0 {
            return Err(MessageError::PeerAs(0));
        }
        if matches!(open.hold_time, 1 | 2) {
            return Err(MessageError::HoldTime(open.hold_time));
        }
        if open.identifier.is_unspecified() {
            return Err(MessageError::Identifier);
        }
        Ok(open)
    }

    /// The whole message: each capability in a parameter of its own, which is what every speaker reads.
    /// Capabilities for which a message has no space are left out.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut values = Vec::new();
        let mut room = MAX_BODY - 13;
        for capability in &self.capabilities {
            let mut value = Vec::new();
            capability.emit(&mut value);
            if let Some(rest) = room.checked_sub(value.len() + 3) {
                room = rest;
                values.push(value);
            }
        }
        let mut out = Vec::new();
        let start = stream::begin(MessageType::Open, &mut out);
        out.push(VERSION);
        out.extend_from_slice(&self.as_field.to_be_bytes());
        out.extend_from_slice(&self.hold_time.to_be_bytes());
        out.extend_from_slice(&self.identifier.octets());
        emit_parameters(&values, &mut out);
        stream::end(start, &mut out);
        out
    }
}

fn emit_parameters(values: &[Vec<u8>], out: &mut Vec<u8>) {
    let short: usize = values.iter().map(|value| value.len() + 2).sum();
    // A capability and its header may have 257 bytes, for which a short parameter has no length.
    let fits = values.iter().all(|value| value.len() <= usize::from(u8::MAX));
    if let (Ok(length), true) = (u8::try_from(short), fits) {
        // 255 with a first type of 255 means something else; the type here is 2.
        out.push(length);
        for value in values {
            out.extend_from_slice(&[parameter::CAPABILITIES, value.len() as u8]);
            out.extend_from_slice(value);
        }
        return;
    }
    // `emit` has left out what is too much for two octets.
    let length = (short + values.len()) as u16;
    out.extend_from_slice(&[u8::MAX, parameter::EXTENDED_LENGTH]);
    out.extend_from_slice(&length.to_be_bytes());
    for value in values {
        out.push(parameter::CAPABILITIES);
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value);
    }
}

/// Reads the parameters, which `length` says are so long.
fn parse_parameters(
    length: u8,
    bytes: &[u8],
    capabilities: &mut Vec<Capability>,
) -> Result<(), MessageError> {
    let malformed = || MessageError::Open;
    let (whole, is_extended) = match bytes {
        // RFC 9072 §2: the first length means nothing then, except that 0 says that there are none.
        [parameter::EXTENDED_LENGTH, high, low, rest @ ..] if length > 0 => {
            (rest.get(..usize::from(u16::from_be_bytes([*high, *low]))), true)
        }
        _ => (bytes.get(..usize::from(length)), false),
    };
    let whole = whole.ok_or_else(malformed)?;
    let marker = if is_extended { 3 } else { 0 };
    if marker + whole.len() != bytes.len() {
        return Err(malformed());
    }
    let mut rest = whole;
    while let Some((kind, behind)) = rest.split_first() {
        let (length, behind) = if is_extended {
            let (length, behind) = behind.split_first_chunk().ok_or_else(malformed)?;
            (usize::from(u16::from_be_bytes(*length)), behind)
        } else {
            let (length, behind) = behind.split_first().ok_or_else(malformed)?;
            (usize::from(*length), behind)
        };
        let (value, behind) = behind.split_at_checked(length).ok_or_else(malformed)?;
        if *kind != parameter::CAPABILITIES {
            return Err(MessageError::Parameter(*kind));
        }
        Capability::parse_all(value, capabilities)?;
        rest = behind;
    }
    Ok(())
}
