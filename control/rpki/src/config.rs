//! What the configuration says of the RPKI.
//!
//! ```text
//! rpki {
//!     cache near { address 192.0.2.10; }
//!     cache far { address 2001:db8::10; port 3323; preference 2; }
//! }
//! ```

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use weft_config::{Block, Document, Errors, Located, Name, gather};
use weft_protocol::Remote;

use crate::payloads::MOST_CACHES;

/// The statement.
pub const STATEMENT: &str = "rpki";

/// What may be configured.
pub const SCHEMA: &str = r#"
container rpki {
    help "which system may announce which prefix, as caches of the RPKI say (RFC 8210); policies ask for it as origin-validation";
    list cache {
        help "a cache: a program that has validated what the RPKI says";
        key name name { help "a name for it"; }
        leaf address address { mandatory; help "its address"; }
        leaf port number { range 1 65535; default 323; help "its port of TCP"; }
        leaf preference number { range 1 255; default 1; help "of the caches that have told everything, those with the least count"; }
        leaf refresh duration { range 1s 24h; help "how often it is asked at least; as often as it says itself without it"; }
        leaf local-address address { help "this router's address of the session"; }
        leaf md5-key text { secret; help "the key by which both sides sign what they send (RFC 2385)"; }
    }
}
"#;

/// The port that is meant for it (RFC 8210 §13).
const PORT: u16 = 323;
const PREFERENCE: u8 = 1;
/// RFC 8210 §6: what a cache may say.
const REFRESH: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// What is said: the caches, by their names.
pub(crate) type Config = BTreeMap<String, CacheConfig>;

/// What is said of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    pub(crate) remote: Remote,
    pub(crate) preference: u8,
    /// How often it is asked at least; none if it is as it says itself.
    pub(crate) refresh: Option<Duration>,
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
    let Some(entry) = entry else { return Ok(Config::new()) };
    entry.read_block(|block| {
        let mut caches = Config::new();
        let entries = block.many("cache");
        if let Some(one) = entries.get(MOST_CACHES) {
            let sentence = format!("there can be {MOST_CACHES} caches: leave others out");
            return Err(one.error(sentence).into());
        }
        gather(entries.into_iter().map(|mut entry| {
            let name: Located<Name> = entry.argument("a name")?;
            let cache = entry.read_block(cache)?;
            match caches.insert(name.value.to_string(), cache) {
                None => Ok(()),
                Some(_) => {
                    let name = &name.value;
                    let sentence =
                        format!("the cache {name} was described before: put both together");
                    Err(entry.error_at(1, sentence).into())
                }
            }
        }))?;
        Ok(caches)
    })
}

fn cache(block: &mut Block<'_>) -> Result<CacheConfig, Errors> {
    Ok(CacheConfig {
        remote: Remote::read(block, Some(PORT))?,
        preference: block.leaf_in("preference", 1..=u8::MAX)?.unwrap_or(PREFERENCE),
        refresh: block.leaf_in("refresh", REFRESH)?,
    })
}

#[cfg(test)]
mod tests {
    use weft_runtime::StreamKey;

    use super::*;

    fn caches(text: &str) -> Result<Config, String> {
        read("t", &format!("rpki {{ {text} }}")).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_cache_is_what_is_said_of_it() {
        assert_eq!(read("t", "").unwrap(), Config::new());
        let text = "cache near { address 192.0.2.10; } \
                    cache far { address 2001:db8::1; port 3323; preference 2; local-address 2001:db8::2; \
                    md5-key hush; refresh 5min; }";
        let all = caches(text).unwrap();
        let near = CacheConfig {
            remote: Remote {
                address: "192.0.2.10:323".parse().unwrap(),
                local_address: None,
                key: None,
            },
            preference: 1,
            refresh: None,
        };
        assert_eq!(all["near"], near);
        let far = CacheConfig {
            remote: Remote {
                address: "[2001:db8::1]:3323".parse().unwrap(),
                local_address: Some("2001:db8::2".parse().unwrap()),
                key: Some(StreamKey::new("hush").unwrap()),
            },
            preference: 2,
            refresh: Some(Duration::from_secs(300)),
        };
        assert_eq!((&all["far"], all.len()), (&far, 2));
    }

    #[test]
    fn mistakes_have_a_place_and_a_way_out() {
        let many: String =
            (0..=MOST_CACHES).map(|n| format!("cache c{n} {{ address 192.0.2.{n}; }} ")).collect();
        for (text, part) in [
            ("cache one { }", "address"),
            ("cache one { address ten; }", "ten"),
            ("cache one { address 192.0.2.1; port 0; }", "port"),
            ("cache one { address 192.0.2.1; preference 256; }", "preference"),
            ("cache one { address 192.0.2.1; local-address ::1; }", "version of IP"),
            ("cache one { address 192.0.2.1; refresh 0s; }", "refresh"),
            ("cache one { address 192.0.2.1; md5-key \"\"; }", "1 to"),
            ("cache one { address ::1; } cache one { address ::2; }", "put both together"),
            ("cache one { address ::1; cash 1; }", "cash"),
            (&many, "leave others out"),
        ] {
            let error = caches(text).unwrap_err();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
