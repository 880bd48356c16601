//! What the configuration says of monitoring stations.
//!
//! ```text
//! bmp {
//!     name border-1;
//!     station near { address 192.0.2.10; port 5000; }
//! }
//! ```

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use weft_config::{Block, Document, Errors, Located, Name, gather};
use weft_protocol::Remote;

/// The statement.
pub const STATEMENT: &str = "bmp";

/// What may be configured.
pub const SCHEMA: &str = r#"
container bmp {
    help "stations that are told what peers of BGP say (RFC 7854)";
    leaf name text { default weft; help "the name of this router, as stations are told it"; }
    list station {
        help "a program that gathers what routers tell, such as pmbmpd, OpenBMP or GoBMP";
        key name name { help "a name for it"; }
        leaf address address { mandatory; help "its address"; }
        leaf port number { mandatory; range 1 65535; help "its port of TCP"; }
        leaf local-address address { help "this router's address of the connection"; }
        leaf md5-key text { secret; help "the key by which both sides sign what they send (RFC 2385)"; }
        leaf connect-retry duration { range 1s 720s; default 30s; help "when to connect again after the first failure; twice as long after each further one, up to 720s"; }
    }
}
"#;

/// How many stations there may be: each has a reader at BGP, of which a process has 16.
pub(crate) const MOST_STATIONS: usize = 16;
/// RFC 7854 §3.2.
const CONNECT_RETRY: Duration = Duration::from_secs(30);
const RETRY: RangeInclusive<Duration> = Duration::from_secs(1)..=LONGEST_RETRY;
/// RFC 7854 §3.2.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(720);
/// The longest name, in bytes: it is told in one piece.
const LONGEST_NAME: usize = 255;
const NAME: &str = "weft";

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The name of this router.
    pub(crate) name: String,
    /// By their names.
    pub(crate) stations: BTreeMap<String, StationConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self { name: NAME.to_owned(), stations: BTreeMap::new() }
    }
}

/// What is said of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StationConfig {
    pub(crate) remote: Remote,
    pub(crate) connect_retry: Duration,
}

/// Reads the statement.
///
/// # Errors
/// Every mistake with its place.
pub(crate) fn read(source: &str, text: &str) -> Result<Config, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let entry = block.one(STATEMENT)?;
    block.finish()?;
    let Some(entry) = entry else { return Ok(Config::default()) };
    entry.read_block(|block| {
        let name: Option<Located<String>> = block.leaf("name")?;
        if let Some(long) = name.as_ref().filter(|name| name.value.len() > LONGEST_NAME) {
            let sentence = format!("stations can be told a name of up to {LONGEST_NAME} bytes");
            return Err(long.error(sentence).into());
        }
        let mut stations = BTreeMap::new();
        let entries = block.many("station");
        if let Some(one) = entries.get(MOST_STATIONS) {
            let sentence = format!("there can be {MOST_STATIONS} stations: leave others out");
            return Err(one.error(sentence).into());
        }
        gather(entries.into_iter().map(|mut entry| {
            let name: Located<Name> = entry.argument("a name")?;
            let station = entry.read_block(station)?;
            match stations.insert(name.value.to_string(), station) {
                None => Ok(()),
                Some(_) => {
                    let name = &name.value;
                    let sentence =
                        format!("the station {name} was described before: put both together");
                    Err(entry.error_at(1, sentence).into())
                }
            }
        }))?;
        let name = name.map_or_else(|| NAME.to_owned(), |name| name.value);
        Ok(Config { name, stations })
    })
}

fn station(block: &mut Block<'_>) -> Result<StationConfig, Errors> {
    let remote = Remote::read(block, None)?;
    let connect_retry = block.leaf_in("connect-retry", RETRY)?.unwrap_or(CONNECT_RETRY);
    Ok(StationConfig { remote, connect_retry })
}

#[cfg(test)]
mod tests {
    use weft_config::{LoadMode, Schema, Tree};

    use super::*;

    const TEXT: &str = "bmp { name border; station near { address 192.0.2.10; port 5000; } \
                        station far { address 2001:db8::1; port 11019; local-address 2001:db8::2; \
                        md5-key hush; connect-retry 5s; } }";

    #[test]
    fn a_station_is_what_is_said_of_it() {
        assert_eq!(read("t", "").unwrap(), Config::default());
        let config = read("t", TEXT).unwrap();
        let near = StationConfig {
            remote: Remote {
                address: "192.0.2.10:5000".parse().unwrap(),
                local_address: None,
                key: None,
            },
            connect_retry: Duration::from_secs(30),
        };
        assert_eq!((&*config.name, &config.stations["near"]), ("border", &near));
        let far = &config.stations["far"];
        assert_eq!((far.remote.address.port(), far.connect_retry.as_secs()), (11019, 5));
        assert!(far.remote.key.is_some() && !format!("{far:?}").contains("hush"));
    }

    #[test]
    fn the_schema_accepts_what_is_read() {
        let schema = Schema::parse("s", &format!("version 1; {SCHEMA}")).unwrap();
        let tree = Tree::parse("t", &format!("version 1; {TEXT}")).unwrap();
        let loaded = schema.load(&Tree::empty(), &tree, LoadMode::Override).unwrap();
        let text: String = loaded.part(STATEMENT).statements().map(ToString::to_string).collect();
        assert_eq!(read("t", &text).unwrap(), read("t", TEXT).unwrap());
    }

    #[test]
    fn mistakes_have_a_place_and_a_way_out() {
        let many: String = (0..=MOST_STATIONS)
            .map(|n| format!("station s{n} {{ address 192.0.2.{n}; port 1; }} "))
            .collect();
        for (text, part) in [
            ("station one { port 1; }", "address"),
            ("station one { address 192.0.2.1; }", "port"),
            ("station one { address 192.0.2.1; port 0; }", "port"),
            ("station one { address 192.0.2.1; port 1; local-address ::1; }", "version of IP"),
            ("station one { address 192.0.2.1; port 1; connect-retry 1h; }", "connect-retry"),
            (
                "station one { address ::1; port 1; } station one { address ::2; port 1; }",
                "put both",
            ),
            (&format!("name {};", "n".repeat(256)), "255 bytes"),
            (&many, "leave others out"),
        ] {
            let error = read("t", &format!("bmp {{ {text} }}")).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
