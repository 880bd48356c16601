//! Protocol data units (PDUs).
//!
//! ```text
//! 0 version
//! 1 type
//! 2 session identifier, or flags, or an error code (2)
//! 4 length of the whole PDU (4)
//! 8 body
//! ```
//!
//! Reference: RFC 8210 §5, RFC 6810 §5.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::error::{ErrorCode, PduError};
use crate::payload::Payload;

/// Length of the part that all PDUs begin with, in bytes.
pub const HEADER_LEN: usize = 8;
/// The longest PDU that is taken, in bytes: those with errors have whole other PDUs and text in them, and keys are long.
pub const LONGEST: usize = 65_536;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 6810.
    V0,
    /// RFC 8210.
    V1,
}

impl Version {
    fn code(self) -> u8 {
        match self {
            Self::V0 => 0,
            Self::V1 => 1,
        }
    }
}

/// `1`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code().fmt(f)
    }
}

/// When a router asks again. Reference: RFC 8210 §6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// After it was told everything.
    pub refresh: Duration,
    /// After it could not be told.
    pub retry: Duration,
    /// After how long without an answer what it was told counts no more.
    pub expire: Duration,
}

impl Default for Timing {
    /// What RFC 8210 §6 suggests; version 0 has no others.
    fn default() -> Self {
        let [refresh, retry, expire] = [3600, 600, 7200].map(Duration::from_secs);
        Self { refresh, retry, expire }
    }
}

impl Timing {
    const REFRESH: RangeInclusive<u32> = 1..=86_400;
    const RETRY: RangeInclusive<u32> = 1..=7200;
    const EXPIRE: RangeInclusive<u32> = 600..=172_800;

    /// Of seconds, which are brought within the bounds of RFC 8210 §6 if they are not; what counts no more does so after
    /// both other times.
    fn of([refresh, retry, expire]: [u32; 3]) -> Self {
        let within = |seconds: u32, bounds: RangeInclusive<u32>| {
            Duration::from_secs(seconds.clamp(*bounds.start(), *bounds.end()).into())
        };
        let (refresh, retry) = (within(refresh, Self::REFRESH), within(retry, Self::RETRY));
        let expire = within(expire, Self::EXPIRE).max(refresh).max(retry);
        Self { refresh, retry, expire }
    }

    fn seconds(self) -> [u32; 3] {
        // They are days at most.
        [self.refresh, self.retry, self.expire].map(|time| time.as_secs() as u32)
    }
}

/// A PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// There is something new in the cache.
    SerialNotify {
        /// Which of its lives it is in.
        session: u16,
        /// What it has come to.
        serial: u32,
    },
    /// The router asks what has changed.
    SerialQuery {
        /// In which life of the cache it was told.
        session: u16,
        /// Since when.
        serial: u32,
    },
    /// The router asks for everything.
    ResetQuery,
    /// Payloads follow.
    CacheResponse {
        /// Which of its lives the cache is in.
        session: u16,
    },
    /// A payload comes or goes.
    Payload {
        /// It comes.
        announced: bool,
        /// Which one.
        payload: Payload,
    },
    /// That was all.
    EndOfData {
        /// Which of its lives the cache is in.
        session: u16,
        /// What it has come to.
        serial: u32,
        /// When to ask again; those of [`Timing::default`] in version 0.
        timing: Timing,
    },
    /// The cache cannot say what has changed: the router is to ask for everything.
    CacheReset,
    /// A key for BGPsec, of which nothing is used here.
    RouterKey,
    /// Something is wrong, as a rule with a PDU of the other side.
    ErrorReport {
        /// What.
        code: ErrorCode,
        /// That PDU, or its beginning.
        pdu: &'a [u8],
        /// More for people.
        text: &'a [u8],
    },
}

mod kind {
    pub(super) const SERIAL_NOTIFY: u8 = 0;
    pub(super) const SERIAL_QUERY: u8 = 1;
    pub(super) const RESET_QUERY: u8 = 2;
    pub(super) const CACHE_RESPONSE: u8 = 3;
    pub(super) const IPV4_PREFIX: u8 = 4;
    pub(super) const IPV6_PREFIX: u8 = 6;
    pub(super) const END_OF_DATA: u8 = 7;
    pub(super) const CACHE_RESET: u8 = 8;
    pub(super) const ROUTER_KEY: u8 = 9;
    pub(super) const ERROR_REPORT: u8 = 10;
}

/// The flag of a payload that comes.
const ANNOUNCED: u8 = 1;

/// Which lengths a PDU of a type may have, if there is that type.
fn lengths(version: Version, kind: u8) -> Option<RangeInclusive<usize>> {
    Some(match (kind, version) {
        (kind::SERIAL_NOTIFY | kind::SERIAL_QUERY, _) => 12..=12,
        (kind::RESET_QUERY | kind::CACHE_RESPONSE | kind::CACHE_RESET, _) => 8..=8,
        (kind::IPV4_PREFIX, _) => 20..=20,
        (kind::IPV6_PREFIX, _) => 32..=32,
        (kind::END_OF_DATA, Version::V0) => 12..=12,
        (kind::END_OF_DATA, Version::V1) => 24..=24,
        // A subject key identifier and a system, and a key.
        (kind::ROUTER_KEY, Version::V1) => 32..=LONGEST,
        // Two lengths, of a PDU and a text.
        (kind::ERROR_REPORT, _) => 16..=LONGEST,
        _ => return None,
    })
}

/// What stands at the beginning of a PDU.
pub(super) struct Header {
    version: Version,
    kind: u8,
    pub(super) length: usize,
}

impl Header {
    pub(super) fn of(bytes: &[u8; HEADER_LEN]) -> Result<Self, PduError> {
        let [version, kind, _, _, length @ ..] = *bytes;
        let version = match version {
            0 => Version::V0,
            1 => Version::V1,
            other => return Err(PduError::Version(other)),
        };
        let length = u32::from_be_bytes(length);
        let lengths = lengths(version, kind).ok_or(PduError::Type { version, kind })?;
        let known = usize::try_from(length).ok().filter(|length| lengths.contains(length));
        let length = known.ok_or(PduError::Length { kind, length })?;
        Ok(Self { version, kind, length })
    }
}

/// The bytes of a field, at a place that its PDU has.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|place| bytes[at + place])
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

impl<'a> Pdu<'a> {
    /// Reads a PDU, of which these are all bytes.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn parse(bytes: &'a [u8]) -> Result<(Version, Self), PduError> {
        let short = PduError::Length { kind: 0, length: bytes.len() as u32 };
        let header = Header::of(bytes.first_chunk().ok_or(short)?)?;
        let Header { version, kind, length } = header;
        let wrong = PduError::Length { kind, length: length as u32 };
        if length != bytes.len() {
            return Err(wrong);
        }
        let session = u16::from_be_bytes(field(bytes, 2));
        let pdu = match kind {
            kind::SERIAL_NOTIFY => Self::SerialNotify { session, serial: number(bytes, 8) },
            kind::SERIAL_QUERY => Self::SerialQuery { session, serial: number(bytes, 8) },
            kind::RESET_QUERY => Self::ResetQuery,
            kind::CACHE_RESPONSE => Self::CacheResponse { session },
            kind::IPV4_PREFIX | kind::IPV6_PREFIX => payload(bytes, kind)?,
            kind::END_OF_DATA => {
                let serial = number(bytes, 8);
                let timing = match version {
                    Version::V0 => Timing::default(),
                    Version::V1 => Timing::of([12, 16, 20].map(|at| number(bytes, at))),
                };
                Self::EndOfData { session, serial, timing }
            }
            kind::CACHE_RESET => Self::CacheReset,
            kind::ROUTER_KEY => Self::RouterKey,
            // All others were refused with their lengths.
            _ => {
                let (pdu, rest) = counted(&bytes[HEADER_LEN..]).ok_or(wrong)?;
                let (text, rest) = counted(rest).ok_or(wrong)?;
                if !rest.is_empty() {
                    return Err(wrong);
                }
                Self::ErrorReport { code: ErrorCode::of(session), pdu, text }
            }
        };
        Ok((version, pdu))
    }

    /// Writes it. What an error report has of a PDU and of text is cut to what there is room for; keys are not written.
    pub fn emit(&self, version: Version, out: &mut Vec<u8>) {
        let begin = out.len();
        let mut header = |kind: u8, session: u16| {
            out.extend([version.code(), kind]);
            out.extend(session.to_be_bytes());
            out.extend([0; 4]);
        };
        match self {
            Self::SerialNotify { session, serial } => {
                header(kind::SERIAL_NOTIFY, *session);
                out.extend(serial.to_be_bytes());
            }
            Self::SerialQuery { session, serial } => {
                header(kind::SERIAL_QUERY, *session);
                out.extend(serial.to_be_bytes());
            }
            Self::ResetQuery => header(kind::RESET_QUERY, 0),
            Self::CacheResponse { session } => header(kind::CACHE_RESPONSE, *session),
            Self::Payload { announced, payload } => {
                let (net, max_length) = (payload.net(), payload.max_length());
                let flags = if *announced { ANNOUNCED } else { 0 };
                match net {
                    IpNet::V4(net) => {
                        header(kind::IPV4_PREFIX, 0);
                        out.extend([flags, net.prefix_len(), max_length, 0]);
                        out.extend(net.addr().octets());
                    }
                    IpNet::V6(net) => {
                        header(kind::IPV6_PREFIX, 0);
                        out.extend([flags, net.prefix_len(), max_length, 0]);
                        out.extend(net.addr().octets());
                    }
                }
                out.extend(payload.system().to_be_bytes());
            }
            Self::EndOfData { session, serial, timing } => {
                header(kind::END_OF_DATA, *session);
                out.extend(serial.to_be_bytes());
                if version == Version::V1 {
                    timing.seconds().iter().for_each(|time| out.extend(time.to_be_bytes()));
                }
            }
            Self::CacheReset => header(kind::CACHE_RESET, 0),
            Self::RouterKey => return,
            Self::ErrorReport { code, pdu, text } => {
                header(kind::ERROR_REPORT, code.code());
                for part in [pdu, text] {
                    // Both fit together.
                    let part = &part[..part.len().min((LONGEST - 16) / 2)];
                    out.extend((part.len() as u32).to_be_bytes());
                    out.extend(part);
                }
            }
        }
        let length = (out.len() - begin) as u32;
        out[begin + 4..begin + HEADER_LEN].copy_from_slice(&length.to_be_bytes());
    }
}

/// Whether a PDU says that it is an error report, whether it makes sense or not.
pub(crate) fn is_error_report(bytes: &[u8]) -> bool {
    bytes.get(1) == Some(&kind::ERROR_REPORT)
}

/// A payload, whose PDU has its length.
fn payload(bytes: &[u8], kind: u8) -> Result<Pdu<'_>, PduError> {
    let [flags, length, max_length, _] = field(bytes, HEADER_LEN);
    let wrong = |_| PduError::PrefixLength(length);
    let (net, system) = match kind {
        kind::IPV4_PREFIX => {
            let address = Ipv4Addr::from(field::<4>(bytes, 12));
            (IpNet::V4(Ipv4Net::new(address, length).map_err(wrong)?), number(bytes, 16))
        }
        _ => {
            let address = Ipv6Addr::from(field::<16>(bytes, 12));
            (IpNet::V6(Ipv6Net::new(address, length).map_err(wrong)?), number(bytes, 28))
        }
    };
    let payload = Payload::new(net, max_length.into(), system)?;
    Ok(Pdu::Payload { announced: flags & ANNOUNCED != 0, payload })
}

/// Bytes behind their number, and what comes behind them.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*count)).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rtr::cutter::Cutter;

    fn any_payload() -> impl Strategy<Value = Payload> {
        let v4 = (any::<u32>(), 0..=32_u8).prop_map(|(bits, length)| {
            IpNet::V4(Ipv4Net::new(bits.into(), length).unwrap()).trunc()
        });
        let v6 = (any::<u128>(), 0..=128_u8).prop_map(|(bits, length)| {
            IpNet::V6(Ipv6Net::new(bits.into(), length).unwrap()).trunc()
        });
        (prop_oneof![v4, v6], any::<u8>(), any::<u32>()).prop_map(|(net, more, system)| {
            let most = net.max_prefix_len();
            let max_length = net.prefix_len().saturating_add(more).min(most);
            Payload::new(net, max_length.into(), system).unwrap()
        })
    }

    fn any_pdu() -> impl Strategy<Value = Pdu<'static>> {
        let serial = || (any::<u16>(), any::<u32>());
        let times = (1..=86_400_u32, 1..=7200_u32, 600..=172_800_u32);
        let code = any::<u16>().prop_map(ErrorCode::of);
        prop_oneof![
            serial().prop_map(|(session, serial)| Pdu::SerialNotify { session, serial }),
            serial().prop_map(|(session, serial)| Pdu::SerialQuery { session, serial }),
            Just(Pdu::ResetQuery),
            any::<u16>().prop_map(|session| Pdu::CacheResponse { session }),
            (any::<bool>(), any_payload())
                .prop_map(|(announced, payload)| Pdu::Payload { announced, payload }),
            (serial(), times).prop_map(|((session, serial), (refresh, retry, expire))| {
                let timing = Timing::of([refresh, retry, expire]);
                Pdu::EndOfData { session, serial, timing }
            }),
            Just(Pdu::CacheReset),
            code.prop_map(|code| Pdu::ErrorReport { code, pdu: b"a PDU", text: b"" }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_wherever_the_stream_is_cut(
            pdus in prop::collection::vec(any_pdu(), 1..20),
            cut in 1..40_usize,
        ) {
            let mut bytes = Vec::new();
            pdus.iter().for_each(|pdu| pdu.emit(Version::V1, &mut bytes));
            let (mut cutter, mut left) = (Cutter::default(), pdus.iter());
            for part in bytes.chunks(cut) {
                cutter.push(part);
                while let Some(bytes) = cutter.take() {
                    prop_assert_eq!(Pdu::parse(bytes), Ok((Version::V1, left.next().unwrap().clone())));
                }
            }
            prop_assert_eq!((left.next(), cutter.waiting()), (None, 0));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut cutter = Cutter::default();
            cutter.push(&bytes);
            while let Some(bytes) = cutter.take() {
                if let Ok((version, pdu)) = Pdu::parse(bytes) {
                    let mut again = Vec::new();
                    pdu.emit(version, &mut again);
                    prop_assert!(pdu == Pdu::RouterKey || Pdu::parse(&again) == Ok((version, pdu)));
                }
            }
        }
    }

    /// Bytes of RFC 8210 §5 by hand, field by field.
    #[test]
    fn pdus_are_those_of_the_rfc() {
        let hex = |text: &str| -> Vec<u8> {
            let digits: Vec<_> = text.bytes().filter(|byte| *byte != b' ').collect();
            let pair =
                |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            digits.chunks(2).map(pair).collect()
        };
        let payload = |text: &str| text.parse::<Payload>().unwrap();
        let timing = Timing::of([3600, 600, 7200]);
        assert_eq!(timing, Timing::default());
        for (text, version, pdu) in [
            (
                "01 00 0007 0000000c 00000009",
                Version::V1,
                Pdu::SerialNotify { session: 7, serial: 9 },
            ),
            (
                "00 01 0007 0000000c 00000009",
                Version::V0,
                Pdu::SerialQuery { session: 7, serial: 9 },
            ),
            ("01 02 0000 00000008", Version::V1, Pdu::ResetQuery),
            ("00 03 0007 00000008", Version::V0, Pdu::CacheResponse { session: 7 }),
            (
                "01 04 0000 00000014 01 18 1a 00 c0000200 0000fde8",
                Version::V1,
                Pdu::Payload { announced: true, payload: payload("192.0.2.0/24-26 AS65000") },
            ),
            (
                "00 06 0000 00000020 00 20 30 00 20010db8000000000000000000000000 00000000",
                Version::V0,
                Pdu::Payload { announced: false, payload: payload("2001:db8::/32-48 AS0") },
            ),
            (
                "00 07 0007 0000000c 00000009",
                Version::V0,
                Pdu::EndOfData { session: 7, serial: 9, timing },
            ),
            (
                "01 07 0007 00000018 00000009 00000e10 00000258 00001c20",
                Version::V1,
                Pdu::EndOfData { session: 7, serial: 9, timing },
            ),
            ("01 08 0000 00000008", Version::V1, Pdu::CacheReset),
            (
                "01 0a 0004 00000015 00000002 0102 00000003 6f6c64",
                Version::V1,
                Pdu::ErrorReport {
                    code: ErrorCode::UnsupportedVersion,
                    pdu: &[1, 2],
                    text: b"old",
                },
            ),
        ] {
            let bytes = hex(text);
            assert_eq!(Pdu::parse(&bytes), Ok((version, pdu.clone())), "{text}");
            let mut written = Vec::new();
            pdu.emit(version, &mut written);
            assert_eq!(written, bytes, "{text}");
        }
        for (text, code) in [
            ("02 02 0000 00000008", ErrorCode::UnsupportedVersion),
            ("00 09 0000 00000020", ErrorCode::UnsupportedType),
            ("01 05 0000 00000008", ErrorCode::UnsupportedType),
            ("01 02 0000 0000000c 00000000", ErrorCode::CorruptData),
            ("01 02 0000 00000007", ErrorCode::CorruptData),
            ("01 04 0000 00000014 01 21 21 00 c0000200 0000fde8", ErrorCode::CorruptData),
            ("01 04 0000 00000014 01 18 17 00 c0000200 0000fde8", ErrorCode::CorruptData),
            ("01 04 0000 00000014 01 18 18 00 c0000201 0000fde8", ErrorCode::CorruptData),
            ("01 0a 0000 00000010 00000001 00000000", ErrorCode::CorruptData),
            ("01 0a 0000 00000011 00000000 00000000 00", ErrorCode::CorruptData),
        ] {
            let error = Pdu::parse(&hex(text)).unwrap_err();
            assert_eq!(error.code(), code, "{text}: {error}");
        }
        assert!(Pdu::parse(&[]).is_err());
    }

    #[test]
    fn times_out_of_bounds_are_brought_within_them() {
        let seconds = |times| Timing::of(times).seconds();
        assert_eq!(seconds([0, 0, 0]), [1, 1, 600]);
        assert_eq!(seconds([u32::MAX; 3]), [86_400, 7200, 172_800]);
        assert_eq!(
            seconds([3600, 600, 600]),
            [3600, 600, 3600],
            "it would expire before it is asked for"
        );
    }

    #[test]
    fn nobody_waits_for_more_than_a_pdu_can_have() {
        let mut cutter = Cutter::default();
        cutter.push(&[1, 10, 0, 0, 0, 1, 0, 1]);
        let bytes = cutter.take().expect("it is wrong already").to_vec();
        assert_eq!(Pdu::parse(&bytes).unwrap_err(), PduError::Length { kind: 10, length: 65_537 });
    }
}
