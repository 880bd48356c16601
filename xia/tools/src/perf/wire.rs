//! The datagrams of a measurement.
//!
//! ```text
//!  0        4     5      6      8           16            24
//! +--------+-----+------+------+-----------+-------------+ - - - - - -
//! | "WXPF" | ver | kind | 0    | session   | sequence    | …
//! +--------+-----+------+------+-----------+-------------+ - - - - - -
//!  kind 1  probe       sequence: its number from 0; then filling
//!       2  echo wanted the same, and the server sends it back as
//!       3  echo        the very bytes but the kind
//!       4  question    what arrived? sequence: the question's number; then filling, as long as a report
//!       5  report      sequence: of the question; then received, duplicates, reordered, too late, bytes,
//!                      nanoseconds from the first to the last that arrived
//! ```
//!
//! Version 1. Numbers are in big-endian order and of 64 bits. A session is a number that the client draws at
//! random, so that nobody who does not see its datagrams can forge their echoes. A report is not longer than
//! its question, and an echo not than what it answers, so that a server multiplies nothing.

use weft_base::Packet;

use super::arrivals::Summary;

/// Bytes in front of every datagram.
pub const HEADER_LEN: usize = 24;
/// Bytes of a report, and the least of a question.
pub const REPORT_LEN: usize = HEADER_LEN + 6 * 8;
/// Sequence numbers end before this.
pub const SEQUENCE_END: u64 = 1 << 63;

const MAGIC: [u8; 4] = *b"WXPF";
const VERSION: u8 = 1;

mod kind {
    pub(super) const PROBE: u8 = 1;
    pub(super) const ECHO_WANTED: u8 = 2;
    pub(super) const ECHO: u8 = 3;
    pub(super) const QUESTION: u8 = 4;
    pub(super) const REPORT: u8 = 5;
}

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To be counted, and sent back if `echo`.
    Probe {
        /// Whether to send it back.
        echo: bool,
    },
    /// A probe that was sent back.
    Echo,
    /// What arrived?
    Question,
    /// This did.
    Report(Summary),
}

/// A datagram of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Which measurement it belongs to.
    pub session: u64,
    /// Its number, less than [`SEQUENCE_END`].
    pub sequence: u64,
    /// What it is.
    pub kind: Kind,
}

impl Datagram {
    /// The payload: filled with zeros up to `size` bytes, and never shorter than what it says.
    #[must_use]
    pub fn emit(&self, size: usize) -> Packet {
        let kind = match self.kind {
            Kind::Probe { echo: false } => kind::PROBE,
            Kind::Probe { echo: true } => kind::ECHO_WANTED,
            Kind::Echo => kind::ECHO,
            Kind::Question => kind::QUESTION,
            Kind::Report(_) => kind::REPORT,
        };
        let mut packet = Packet::with_capacity(size.max(REPORT_LEN));
        packet.extend(&MAGIC);
        packet.extend(&[VERSION, kind, 0, 0]);
        packet.extend(&self.session.to_be_bytes());
        packet.extend(&self.sequence.to_be_bytes());
        if let Kind::Report(summary) = self.kind {
            for number in fields(&summary) {
                packet.extend(&number.to_be_bytes());
            }
        }
        let filling = size.saturating_sub(packet.len());
        packet.push_back(filling).fill(0);
        packet
    }

    /// Reads a payload; `None` if it is none of a measurement, or says what makes no sense.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let ([version, kind, _, _], rest) = rest.split_first_chunk::<4>()?;
        if *magic != MAGIC || *version != VERSION {
            return None;
        }
        let (session, rest) = number(rest)?;
        let (sequence, rest) = number(rest)?;
        let kind = match *kind {
            kind::PROBE => Kind::Probe { echo: false },
            kind::ECHO_WANTED => Kind::Probe { echo: true },
            kind::ECHO => Kind::Echo,
            kind::QUESTION if bytes.len() >= REPORT_LEN => Kind::Question,
            kind::REPORT => Kind::Report(summary(rest)?),
            _ => return None,
        };
        (sequence < SEQUENCE_END).then_some(Self { session, sequence, kind })
    }
}

/// Makes the echo of a probe, whose payload this is.
pub fn echo(mut probe: Packet) -> Packet {
    if let Some(byte) = probe.bytes_mut().get_mut(5) {
        *byte = kind::ECHO;
    }
    probe
}

fn fields(summary: &Summary) -> [u64; 6] {
    let Summary { received, duplicates, reordered, too_late, bytes, span_nanos } = *summary;
    [received, duplicates, reordered, too_late, bytes, span_nanos]
}

fn summary(mut rest: &[u8]) -> Option<Summary> {
    let mut next = || {
        let (field, behind) = number(rest)?;
        rest = behind;
        Some(field)
    };
    Some(Summary {
        received: next()?,
        duplicates: next()?,
        reordered: next()?,
        too_late: next()?,
        bytes: next()?,
        span_nanos: next()?,
    })
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        let summary = any::<[u64; 6]>().prop_map(|fields| {
            let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
            Kind::Report(summary(&bytes).unwrap())
        });
        prop_oneof![
            any::<bool>().prop_map(|echo| Kind::Probe { echo }),
            Just(Kind::Echo),
            Just(Kind::Question),
            summary,
        ]
    }

    proptest! {
        #[test]
        fn datagrams_are_read_back(
            session: u64, sequence in 0..SEQUENCE_END, kind in kinds(), size in REPORT_LEN..2000
        ) {
            let datagram = Datagram { session, sequence, kind };
            let packet = datagram.emit(size);
            prop_assert_eq!(packet.len(), size);
            prop_assert_eq!(Datagram::parse(packet.bytes()), Some(datagram));
            // What is cut is nothing, or the same where only filling is cut.
            for len in 0..size {
                let cut = Datagram::parse(&packet.bytes()[..len]);
                prop_assert!(cut.is_none() || (len >= HEADER_LEN && cut == Some(datagram)));
                prop_assert!(len >= REPORT_LEN || cut.is_none() || !matches!(kind, Kind::Report(_) | Kind::Question));
            }
        }

        #[test]
        fn an_echo_is_the_probe_with_another_kind(session: u64, sequence in 0..SEQUENCE_END, size in HEADER_LEN..2000) {
            let probe = Datagram { session, sequence, kind: Kind::Probe { echo: true } };
            let echoed = echo(probe.emit(size));
            prop_assert_eq!(Datagram::parse(echoed.bytes()), Some(Datagram { kind: Kind::Echo, ..probe }));
            prop_assert_eq!(echoed.len(), size);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Datagram::parse(&bytes);
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_text() {
        let probe = Datagram { session: 0x0102, sequence: 3, kind: Kind::Probe { echo: false } };
        let expected = b"WXPF\x01\x01\0\0\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03\0\0";
        assert_eq!(probe.emit(26).bytes(), expected);
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        let good = Datagram { session: 1, sequence: 2, kind: Kind::Echo }.emit(40);
        for (at, byte) in [(0, b'X'), (4, 2), (5, 0), (5, 6), (16, 0x80)] {
            let mut bad = good.bytes().to_vec();
            bad[at] = byte;
            assert_eq!(Datagram::parse(&bad), None, "byte {at}");
        }
    }
}
