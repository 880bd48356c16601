//! The statements of U4ID, read from words.

use std::net::SocketAddrV4;

use weft_xip::Xid;
use weft_xip::words::{WordError, WordReader};

use crate::name;

/// What an endpoint is for. It can be both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `local`: it receives.
    Local,
    /// `tunnel`: it receives, and all tunnels of this node begin here.
    Tunnel,
}

/// Reads `local|tunnel IPV4:PORT|u4id-…`.
pub(crate) fn read(words: &[&str]) -> Result<(Role, SocketAddrV4), WordError> {
    let mut reader = WordReader::new(words);
    let role = match reader.word("`local` or `tunnel`")? {
        "local" => Role::Local,
        "tunnel" => Role::Tunnel,
        word => {
            return Err(reader.error(format!(
                "`{word}` is not a statement of u4id; write `local IPV4:PORT` or \
                 `tunnel IPV4:PORT`"
            )));
        }
    };
    let address = address(&mut reader)?;
    reader.end()?;
    Ok((role, address))
}

fn address(reader: &mut WordReader) -> Result<SocketAddrV4, WordError> {
    let word = reader.word("an address such as 192.0.2.1:13781")?;
    let address = if let Ok(xid) = word.parse::<Xid>() {
        name::from_xid(&xid)
    } else if let Ok(address) = word.parse::<SocketAddrV4>() {
        name::check(address).map(|()| address)
    } else {
        return Err(reader.error(format!(
            "`{word}` is neither an IPv4 address with a port, such as 192.0.2.1:13781, \
             nor a u4id XID"
        )));
    };
    address.map_err(|error| reader.error(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<(Role, SocketAddrV4), WordError> {
        read(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn both_forms_of_an_address_are_read() {
        let address = "10.99.0.3:13781".parse().unwrap();
        assert_eq!(read_line("local 10.99.0.3:13781"), Ok((Role::Local, address)));
        let line = "tunnel u4id-0a63000335d50000000000000000000000000000";
        assert_eq!(read_line(line), Ok((Role::Tunnel, address)));
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
            ("local u4id-0a63000335d50000000000000000000000000001", Some(1)),
            ("local 10.0.0.1:1 no-checksum", Some(2)),
        ];
        for (line, word) in cases {
            assert_eq!(read_line(line).unwrap_err().word, word, "{line}");
        }
        assert!(read(&[]).is_err());
    }
}
