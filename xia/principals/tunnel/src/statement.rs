//! The statements, read from words.

use std::net::SocketAddr;
use std::num::NonZero;

use weft_xip::Xid;
use weft_xip::words::{WordError, WordReader};

use crate::name;
use crate::way::{OTHER_PROTOCOL, USUAL_PROTOCOL, Way};

/// What an end is for. It can be both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `local`: it receives.
    Local,
    /// `tunnel`: it receives, and all tunnels of this node begin here.
    Tunnel,
}

/// A statement that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `local ADDRESS` or `tunnel ADDRESS`
    End(Role, SocketAddr),
    /// `protocol NUMBER`
    Protocol(NonZero<u8>),
}

impl Statement {
    /// Reads a statement of the principal that goes this way.
    pub(crate) fn read(way: Way, words: &[&str]) -> Result<Self, WordError> {
        let mut reader = WordReader::new(words);
        let statement = match reader.word("`local` or `tunnel`")? {
            "local" => Self::End(Role::Local, address(way, &mut reader)?),
            "tunnel" => Self::End(Role::Tunnel, address(way, &mut reader)?),
            "protocol" if !way.is_udp() => Self::Protocol(protocol(&mut reader)?),
            word => {
                let (kind, form) = (way.kind(), way.form());
                let more = if way.is_udp() { "" } else { " or `protocol NUMBER`" };
                return Err(reader.error(format!(
                    "`{word}` is not a statement of {kind}; write `local {form}`, `tunnel {form}`{more}"
                )));
            }
        };
        reader.end()?;
        Ok(statement)
    }
}

fn address(way: Way, reader: &mut WordReader) -> Result<SocketAddr, WordError> {
    let (kind, example) = (way.kind(), way.example());
    let word = reader.word(&format!("an address such as {example}"))?;
    let address = if let Ok(xid) = word.parse::<Xid>() {
        if xid.kind != kind {
            return Err(reader.error(format!("{xid} is not of type {kind}")));
        }
        name::from_xid(&xid)
    } else if let Some(address) = way.read(word) {
        name::check(way, address).map(|()| address)
    } else {
        return Err(reader.error(format!(
            "`{word}` is neither an address such as {example} nor an XID of type {kind}"
        )));
    };
    address.map_err(|error| reader.error(error.to_string()))
}

fn protocol(reader: &mut WordReader) -> Result<NonZero<u8>, WordError> {
    let number = reader.value("a protocol number")?;
    if [USUAL_PROTOCOL, OTHER_PROTOCOL].contains(&number) {
        return Ok(number);
    }
    Err(reader.error(format!(
        "XIP has no protocol number of its own; {USUAL_PROTOCOL} and {OTHER_PROTOCOL} are free for \
         experiments, all others may belong to somebody"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(way: Way, line: &str) -> Result<Statement, WordError> {
        Statement::read(way, &line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn both_forms_of_an_address_are_read() {
        for way in Way::ALL {
            let address = way.read(way.example()).unwrap();
            let local = read(way, &format!("local {}", way.example()));
            assert_eq!(local, Ok(Statement::End(Role::Local, address)));
            let xid = name::to_xid(way, address).unwrap();
            let tunnel = read(way, &format!("tunnel {xid}"));
            assert_eq!(tunnel, Ok(Statement::End(Role::Tunnel, address)));
        }
    }

    #[test]
    fn only_free_protocol_numbers_are_taken_and_none_with_udp() {
        for way in [Way::I4id, Way::I6id] {
            assert_eq!(read(way, "protocol 254"), Ok(Statement::Protocol(OTHER_PROTOCOL)));
            for number in ["0", "6", "256", "x"] {
                assert_eq!(read(way, &format!("protocol {number}")).unwrap_err().word, Some(1));
            }
        }
        assert_eq!(read(Way::U4id, "protocol 253").unwrap_err().word, Some(0));
    }

    #[test]
    fn an_error_points_at_the_word() {
        let cases = [
            ("route 10.0.0.1:1", Some(0)),
            ("local", None),
            ("local 10.0.0.1", Some(1)),
            ("local 10.0.0.1:0", Some(1)),
            ("local 0.0.0.0:13781", Some(1)),
            ("tunnel 224.0.0.1:13781", Some(1)),
            ("tunnel [::1]:13781", Some(1)),
            ("local hid-0a63000335d50000000000000000000000000000", Some(1)),
            ("local i4id-0a63000300000000000000000000000000000000", Some(1)),
            ("local u4id-0a63000335d50000000000000000000000000001", Some(1)),
            ("local 10.0.0.1:1 no-checksum", Some(2)),
        ];
        for (line, word) in cases {
            assert_eq!(read(Way::U4id, line).unwrap_err().word, word, "{line}");
        }
        assert!(Statement::read(Way::U4id, &[]).is_err());
    }
}
