//! What the configuration says of the RIB.
//!
//! ```text
//! rib {
//!     table 254;
//!     protocol rip { distance 100; }
//!     grace 120s;
//! }
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use weft_config::{Document, Errors, Name, gather};

use crate::arbiter::NEVER;

/// The statement.
pub const STATEMENT: &str = "rib";

/// What may be configured.
pub const SCHEMA: &str = r#"
container rib {
    help "the routing information base: decides between the routes of all protocols";
    leaf table number { range 1 4294967295; default 254; help "the kernel's table that gets the routes; 254 is the main one"; }
    leaf grace duration { default 120s; help "how long the routes of a protocol that is gone serve on"; }
    list protocol {
        help "a protocol that tells routes";
        key protocol name { help "its name, such as bgp, or connected"; }
        leaf distance number { range 0 255; help "how little it is trusted, in place of its own word; routes with 255 are not used"; }
    }
}
"#;

/// The kernel's main table (rtnetlink(7), `RT_TABLE_MAIN`).
const MAIN: u32 = 254;
/// How long the routes of a protocol that is gone serve on.
const GRACE: Duration = Duration::from_secs(120);

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) table: u32,
    pub(crate) grace: Duration,
    /// By protocol, in place of what the protocol says itself.
    pub(crate) distances: BTreeMap<String, u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self { table: MAIN, grace: GRACE, distances: BTreeMap::new() }
    }
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
        let distances = gather(block.many("protocol").into_iter().map(|mut entry| {
            let protocol: Name = entry.argument("the protocol")?;
            let distance = entry.read_block(|block| Ok(block.leaf_in("distance", 0..=NEVER)?))?;
            Ok::<_, Errors>(distance.map(|distance| (protocol.to_string(), distance)))
        }))?;
        Ok(Config {
            table: block.leaf_in("table", 1..=u32::MAX)?.unwrap_or(MAIN),
            grace: block.leaf("grace")?.unwrap_or(GRACE),
            distances: distances.into_iter().flatten().collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let config = read(
            "",
            "rib { table 100; protocol rip { distance 90; } protocol bgp { distance 255; } }",
        )
        .unwrap();
        assert_eq!((config.table, config.grace), (100, GRACE));
        let distances = [("bgp".to_owned(), 255), ("rip".to_owned(), 90)];
        assert_eq!(config.distances, BTreeMap::from(distances));
        assert_eq!(read("", "").unwrap(), Config::default());
    }

    #[test]
    fn a_mistake_has_its_place() {
        let text = "rib { protocol rip { distance 256; } }";
        let error = read("node", text).unwrap_err().to_string();
        assert!(error.starts_with("node:1:31: "), "{error}");
    }
}
