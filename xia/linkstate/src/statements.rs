//! The statements of link-state routing, read from words.

use std::time::Duration;

use weft_config::FromWord;
use weft_linkstate::{MAX_METRIC, Metric};
use weft_xip::Xid;
use weft_xip::table::gateways::MAX_GATEWAYS;
use weft_xip::words::{WordError, WordReader};

/// A statement that was read; what it does depends on whether it is set or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `hello DURATION`
    Hello(Duration),
    /// `hold DURATION`
    Hold(Duration),
    /// `interface NAME metric N`
    Metric { interface: String, metric: Metric },
    /// `interface NAME off`
    Off(String),
    /// `advertise XID`
    Advertise(Xid),
    /// `neighbour-limit N`
    Limit(usize),
    /// `paths N`
    Paths(usize),
}

/// The shortest time between two hellos: with less, computing signatures is all that nodes do.
const SHORTEST_HELLO: Duration = Duration::from_millis(10);
/// Most neighbours on an interface that can be asked for.
const LARGEST_LIMIT: usize = 4096;

impl Statement {
    pub(crate) fn read(words: &[&str]) -> Result<Self, WordError> {
        let mut reader = WordReader::new(words);
        let what = "`hello`, `hold`, `interface`, `advertise`, `neighbour-limit` or `paths`";
        let statement = match reader.word(what)? {
            "hello" => {
                let hello = duration(&mut reader)?;
                if hello < SHORTEST_HELLO {
                    return Err(reader.error("hellos must be at least 10ms apart"));
                }
                Self::Hello(hello)
            }
            "hold" => Self::Hold(duration(&mut reader)?),
            "interface" => Self::interface(&mut reader)?,
            "advertise" => Self::Advertise(reader.value("an XID such as ad-<40 hex digits>")?),
            "neighbour-limit" | "neighbor-limit" => {
                let limit: usize = reader.value("a number of neighbours")?;
                if !(1..=LARGEST_LIMIT).contains(&limit) {
                    return Err(reader.error(format!("the limit must be 1 to {LARGEST_LIMIT}")));
                }
                Self::Limit(limit)
            }
            "paths" => {
                let paths: usize = reader.value("a number of ways")?;
                if !(1..=MAX_GATEWAYS).contains(&paths) {
                    return Err(reader.error(format!("there can be 1 to {MAX_GATEWAYS} ways")));
                }
                Self::Paths(paths)
            }
            word => {
                return Err(reader.error(format!(
                    "`{word}` is not a statement of link-state; write `hello DURATION`, \
                     `hold DURATION`, `interface NAME metric N`, `interface NAME off`, \
                     `advertise XID`, `neighbour-limit N` or `paths N`"
                )));
            }
        };
        reader.end()?;
        Ok(statement)
    }

    fn interface(reader: &mut WordReader) -> Result<Self, WordError> {
        let interface = reader.word("the interface's name")?.to_owned();
        match reader.word("`metric` or `off`")? {
            "off" => Ok(Self::Off(interface)),
            "metric" => {
                let metric: Metric = reader.value("a metric")?;
                if !(1..=MAX_METRIC).contains(&metric) {
                    return Err(reader.error(format!("a metric is 1 to {MAX_METRIC}")));
                }
                Ok(Self::Metric { interface, metric })
            }
            _ => Err(reader.error("expected `metric` or `off`")),
        }
    }
}

fn duration(reader: &mut WordReader) -> Result<Duration, WordError> {
    let word = reader.word("a duration such as 500ms")?;
    Duration::from_word(word)
        .map_err(|error| reader.error(format!("`{word}` is not a duration: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_xip::XidType;

    fn read(line: &str) -> Result<Statement, WordError> {
        Statement::read(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn statements_are_read() {
        let domain = Xid::new(XidType::AD, [1; 20]);
        let second = Duration::from_secs(1);
        assert_eq!(read("hello 1s"), Ok(Statement::Hello(second)));
        assert_eq!(read("hold 1000ms"), Ok(Statement::Hold(second)));
        let interface = "eth0".to_owned();
        assert_eq!(
            read("interface eth0 metric 5"),
            Ok(Statement::Metric { interface: interface.clone(), metric: 5 })
        );
        assert_eq!(read("interface eth0 off"), Ok(Statement::Off(interface)));
        assert_eq!(read(&format!("advertise {domain}")), Ok(Statement::Advertise(domain)));
        for word in ["neighbour-limit", "neighbor-limit"] {
            assert_eq!(read(&format!("{word} 7")), Ok(Statement::Limit(7)));
        }
        assert_eq!(read("paths 1"), Ok(Statement::Paths(1)));
    }

    #[test]
    fn an_error_points_at_the_word() {
        let cases = [
            ("route", Some(0)),
            ("hello", None),
            ("hello 1ms", Some(1)),
            ("hello soon", Some(1)),
            ("hello 1s now", Some(2)),
            ("hold 3", Some(1)),
            ("interface", None),
            ("interface eth0", None),
            ("interface eth0 on", Some(2)),
            ("interface eth0 metric 0", Some(3)),
            ("interface eth0 metric 16777216", Some(3)),
            ("advertise ad-12", Some(1)),
            ("neighbour-limit 0", Some(1)),
            ("paths 0", Some(1)),
            ("paths 17", Some(1)),
        ];
        for (line, word) in cases {
            assert_eq!(read(line).unwrap_err().word, word, "{line}");
        }
    }
}
