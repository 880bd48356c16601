//! ROUTE-REFRESH: routes are to be sent again, or are being sent again.
//!
//! ```text
//!  0 AFI (2)
//!  2 subtype: 0 request, 1 begin, 2 end
//!  3 SAFI
//! ```
//!
//! Reference: RFC 2918 (requests); RFC 7313 (begin and end). Filters (RFC 5291) are not supported, and so never
//! agreed on.

use super::error::MessageError;
use super::family::Family;
use super::stream::{self, MessageType};
use crate::numbers::refresh;

/// Length of the body in bytes.
const BODY_LEN: usize = 4;

/// What a ROUTE-REFRESH says of the routes of its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshKind {
    /// Send them again.
    Request,
    /// From here on all of them are sent again.
    Begin,
    /// All of them have been sent again; what was not is gone.
    End,
}

/// A ROUTE-REFRESH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRefresh {
    /// Whose routes.
    pub family: Family,
    /// What is said of them.
    pub kind: RefreshKind,
}

impl RouteRefresh {
    /// What a `body` says; none if it has a subtype that is not known, and is to be passed over. `is_enhanced`
    /// says that RFC 7313 was agreed on; without it every subtype is a request, as RFC 2918 reserves the field.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn parse(body: &[u8], is_enhanced: bool) -> Result<Option<Self>, MessageError> {
        let Ok([high, low, subtype, safi]) = <[u8; BODY_LEN]>::try_from(body) else {
            let length = stream::HEADER_LEN + body.len();
            return Err(if is_enhanced {
                let mut message = Vec::with_capacity(length);
                let start = stream::begin(MessageType::RouteRefresh, &mut message);
                message.extend_from_slice(body);
                stream::end(start, &mut message);
                MessageError::RefreshLength(message)
            } else {
                // The cutter gives at most 65,535 bytes.
                MessageError::Length(length as u16)
            });
        };
        let kind = match subtype {
            _ if !is_enhanced => RefreshKind::Request,
            refresh::REQUEST => RefreshKind::Request,
            refresh::BEGIN => RefreshKind::Begin,
            refresh::END => RefreshKind::End,
            _ => return Ok(None),
        };
        Ok(Some(Self { family: Family { afi: u16::from_be_bytes([high, low]), safi }, kind }))
    }

    /// The whole message.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let subtype = match self.kind {
            RefreshKind::Request => refresh::REQUEST,
            RefreshKind::Begin => refresh::BEGIN,
            RefreshKind::End => refresh::END,
        };
        let [high, low, safi] = self.family.bytes();
        let mut out = Vec::with_capacity(stream::HEADER_LEN + BODY_LEN);
        let start = stream::begin(MessageType::RouteRefresh, &mut out);
        out.extend_from_slice(&[high, low, subtype, safi]);
        stream::end(start, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for kind in [RefreshKind::Request, RefreshKind::Begin, RefreshKind::End] {
            let sent = RouteRefresh { family: Family::IPV6_UNICAST, kind };
            let message = sent.emit();
            assert_eq!(message.len(), 23);
            assert_eq!(RouteRefresh::parse(&message[19..], true), Ok(Some(sent)));
        }
    }

    #[test]
    fn without_rfc_7313_everything_is_a_request() {
        let request = RouteRefresh { family: Family::IPV4_UNICAST, kind: RefreshKind::Request };
        assert_eq!(RouteRefresh::parse(&[0, 1, 2, 1], false), Ok(Some(request)));
        assert_eq!(RouteRefresh::parse(&[0, 1, 7, 1], true), Ok(None));
    }

    #[test]
    fn a_wrong_length_has_an_answer_of_its_own_with_rfc_7313() {
        assert_eq!(RouteRefresh::parse(&[0, 1, 0], false), Err(MessageError::Length(22)));
        let error = RouteRefresh::parse(&[0, 1, 0, 1, 9], true).unwrap_err();
        let told = error.notification();
        assert_eq!((told.code, told.subcode, told.data.len()), (7, 1, 24));
    }
}
