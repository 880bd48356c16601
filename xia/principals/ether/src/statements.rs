//! The statements of Ether, read from words.

use weft_wire::MacAddr;
use weft_xip::words::{WordError, WordReader};

use crate::name::is_station;

/// Its statements, for checking and completing configurations.
pub const STATEMENTS: &str = r#"
    help "stations on links, each by an interface and an Ethernet address";
    words interface { usage "NAME"; help "this interface is a local XID"; }
    words neighbour { usage "MAC interface NAME"; help "a station on its link"; }
    words neighbor { usage "MAC interface NAME"; help "a station on its link"; }
"#;

/// A statement that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `interface NAME`
    Interface(String),
    /// `neighbour MAC interface NAME`
    Neighbour { mac: MacAddr, interface: String },
}

impl Statement {
    /// Reads a statement.
    pub(crate) fn read(words: &[&str]) -> Result<Self, WordError> {
        let mut reader = WordReader::new(words);
        let statement = match reader.word("`interface` or `neighbour`")? {
            "interface" => Self::Interface(name(&mut reader)?),
            "neighbour" | "neighbor" => {
                let mac: MacAddr = reader.value("an Ethernet address such as 02:00:00:00:00:01")?;
                if !is_station(mac) {
                    return Err(reader.error(format!("{mac} is not the address of one station")));
                }
                reader.expect("interface")?;
                Self::Neighbour { mac, interface: name(&mut reader)? }
            }
            word => {
                return Err(reader.error(format!(
                    "`{word}` is not a statement of ether; write `interface NAME` or \
                     `neighbour MAC interface NAME`"
                )));
            }
        };
        reader.end()?;
        Ok(statement)
    }
}

fn name(reader: &mut WordReader) -> Result<String, WordError> {
    reader.word("the interface's name").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Statement, WordError> {
        Statement::read(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn statements_are_read() {
        assert_eq!(read("interface eth0"), Ok(Statement::Interface("eth0".to_owned())));
        let (mac, interface) = (MacAddr([2, 0, 0, 0, 0, 1]), "eth0".to_owned());
        let neighbour = Statement::Neighbour { mac, interface };
        for word in ["neighbour", "neighbor"] {
            let line = format!("{word} 02:00:00:00:00:01 interface eth0");
            assert_eq!(read(&line), Ok(neighbour.clone()));
        }
    }

    #[test]
    fn an_error_points_at_the_word() {
        let cases = [
            ("route x", Some(0)),
            ("interface", None),
            ("interface eth0 eth1", Some(2)),
            ("neighbour", None),
            ("neighbour 02:00", Some(1)),
            ("neighbour 00:00:00:00:00:00 interface eth0", Some(1)),
            ("neighbour ff:ff:ff:ff:ff:ff interface eth0", Some(1)),
            ("neighbour 01:00:5e:00:00:01 interface eth0", Some(1)),
            ("neighbour 02:00:00:00:00:01", None),
            ("neighbour 02:00:00:00:00:01 on eth0", Some(2)),
            ("neighbour 02:00:00:00:00:01 interface", None),
            ("neighbour 02:00:00:00:00:01 interface eth0 x", Some(4)),
        ];
        for (line, word) in cases {
            assert_eq!(read(line).unwrap_err().word, word, "{line}");
        }
        assert!(Statement::read(&[]).is_err());
    }
}
