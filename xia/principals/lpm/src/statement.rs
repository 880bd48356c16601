//! The statements of LPM, read from words.

use weft_routing::Prefix;
use weft_xip::table::route::Way;
use weft_xip::words::{WordError, WordReader};

use crate::text;

/// A statement that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `local PREFIX`
    Local(Prefix),
    /// `route PREFIX via XID…` or `route PREFIX unreachable`
    Route(Prefix, Way),
}

impl Statement {
    /// Reads a statement; [`Way::Any`] only if it is to be deleted.
    pub(crate) fn read(words: &[&str], delete: bool) -> Result<Self, WordError> {
        let mut reader = WordReader::new(words);
        let statement = match reader.word("`local` or `route`")? {
            "local" => Self::Local(prefix(&mut reader)?),
            "route" => {
                let prefix = prefix(&mut reader)?;
                Self::Route(prefix, Way::read(&mut reader, None, delete)?)
            }
            word => {
                return Err(reader.error(format!(
                    "`{word}` is not a statement of lpm; write `local PREFIX`, \
                     `route PREFIX via XID…` or `route PREFIX unreachable`, where PREFIX is as in 10.0.0.0/8"
                )));
            }
        };
        reader.end()?;
        Ok(statement)
    }
}

fn prefix(reader: &mut WordReader) -> Result<Prefix, WordError> {
    let word = reader.word("a prefix such as 10.0.0.0/8")?;
    text::read(word).map_err(|error| reader.error(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "hid-0101010101010101010101010101010101010101";

    fn read(line: &str, delete: bool) -> Result<Statement, WordError> {
        Statement::read(&line.split(' ').collect::<Vec<_>>(), delete)
    }

    #[test]
    fn statements_are_read() {
        let ten = Prefix::new(&[10], 8).unwrap();
        let host = HOST.parse().unwrap();
        assert_eq!(read("local 10.0.0.0/8", false), Ok(Statement::Local(ten)));
        let route = format!("route 0x0a/8 via {HOST}");
        let via = Way::Via(vec![host]);
        assert_eq!(read(&route, false), Ok(Statement::Route(ten, via.clone())));
        assert_eq!(read(&route, true), Ok(Statement::Route(ten, via)));
        assert_eq!(read("route 10.0.0.0/8", true), Ok(Statement::Route(ten, Way::Any)));
        let nowhere = read("route 10.0.0.0/8 unreachable", false);
        assert_eq!(nowhere, Ok(Statement::Route(ten, Way::Unreachable)));
    }

    #[test]
    fn an_error_points_at_the_word() {
        let cases = [
            ("neighbour x".to_owned(), Some(0)),
            ("local".to_owned(), None),
            ("local ten".to_owned(), Some(1)),
            ("local 10.0.0.0/8 now".to_owned(), Some(2)),
            ("route 10.0.0.1/8 via x".to_owned(), Some(1)),
            ("route 10.0.0.0/8".to_owned(), None),
            (format!("route 10.0.0.0/8 over {HOST}"), Some(2)),
            ("route 10.0.0.0/8 via hid".to_owned(), Some(3)),
            (format!("route 10.0.0.0/8 via nat-{}", "00".repeat(20)), Some(3)),
            (format!("route 10.0.0.0/8 via {HOST} fast"), Some(4)),
        ];
        for (line, word) in cases {
            assert_eq!(read(&line, false).unwrap_err().word, word, "{line}");
        }
        assert!(Statement::read(&[], false).is_err());
    }
}
