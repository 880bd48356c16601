//! The statement of a route, read from words.
//!
//! ```text
//! route XID via XID…        look one of these up instead
//! route XID unreachable     it leads nowhere, whatever the default and routing protocols say
//! route default via XID…    all XIDs of the type that nothing else is known of
//! ```

use super::gateways::read_gateways;
use crate::words::{WordError, WordReader};
use crate::{Xid, XidType};

/// The word for all destinations that nothing else is known of.
pub const DEFAULT: &str = "default";

/// The word for what leads nowhere.
const UNREACHABLE: &str = "unreachable";

/// A route, as a statement says it behind `route`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteStatement {
    /// Of what; `None` is the default.
    pub destination: Option<Xid>,
    /// Where to.
    pub way: Way,
}

/// Where a route leads, as a statement says it behind the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To one of these: at least one, in order, each once.
    Via(Vec<Xid>),
    /// Nowhere: the next edge is tried.
    Unreachable,
    /// It is not said, which does for deleting it.
    Any,
}

impl RouteStatement {
    /// Reads the rest of a statement as a route of XIDs of type `kind`. [`Way::Any`] only if it is to be deleted.
    ///
    /// # Errors
    /// Says which word is wrong.
    pub fn read(reader: &mut WordReader, kind: XidType, delete: bool) -> Result<Self, WordError> {
        let is_default = reader.clone().word("an XID or `default`")? == DEFAULT;
        let destination = match is_default {
            true => reader.word(DEFAULT).map(|_| None)?,
            false => Some(reader.xid_of(kind)?),
        };
        let way = Way::read(reader, destination, delete)?;
        if is_default && way == Way::Unreachable {
            let text = "what nothing is known of is unreachable anyway; delete the default instead";
            return Err(reader.error(text));
        }
        Ok(Self { destination, way })
    }
}

impl Way {
    /// Reads the rest of a statement. `of` is whose route it is, if that is an XID; [`Way::Any`] only if it is to be
    /// deleted.
    ///
    /// # Errors
    /// Says which word is wrong.
    pub fn read(reader: &mut WordReader, of: Option<Xid>, delete: bool) -> Result<Self, WordError> {
        if delete && reader.is_at_end() {
            return Ok(Self::Any);
        }
        match reader.word("`via XID…` or `unreachable`")? {
            "via" => Ok(Self::Via(read_gateways(reader, of)?)),
            UNREACHABLE => {
                reader.clone().end()?;
                Ok(Self::Unreachable)
            }
            _ => Err(reader.error("expected `via XID…` or `unreachable`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AD: &str = "ad-0101010101010101010101010101010101010101";
    const HOST: &str = "hid-0202020202020202020202020202020202020202";

    fn read(line: &str, delete: bool) -> Result<RouteStatement, WordError> {
        let words: Vec<_> = line.split_whitespace().collect();
        RouteStatement::read(&mut WordReader::new(&words), XidType::AD, delete)
    }

    #[test]
    fn routes_are_read() {
        let (ad, host) = (AD.parse().unwrap(), HOST.parse().unwrap());
        let route = |destination, way| Ok(RouteStatement { destination, way });
        for delete in [false, true] {
            let via = read(&format!("{AD} via {HOST}"), delete);
            assert_eq!(via, route(Some(ad), Way::Via(vec![host])));
            let via = read(&format!("default via {HOST}"), delete);
            assert_eq!(via, route(None, Way::Via(vec![host])));
            let nowhere = read(&format!("{AD} unreachable"), delete);
            assert_eq!(nowhere, route(Some(ad), Way::Unreachable));
        }
        assert_eq!(read(AD, true), route(Some(ad), Way::Any));
        assert_eq!(read("default", true), route(None, Way::Any));
    }

    #[test]
    fn an_error_points_at_the_word() {
        for (line, word) in [
            (String::new(), None),
            (AD.to_owned(), None),
            ("default".to_owned(), None),
            ("anything".to_owned(), Some(0)),
            (HOST.to_owned(), Some(0)),
            (format!("{AD} over {HOST}"), Some(1)),
            (format!("{AD} via {AD}"), Some(2)),
            (format!("{AD} unreachable now"), Some(2)),
            ("default unreachable".to_owned(), Some(1)),
            ("default via default".to_owned(), Some(2)),
        ] {
            assert_eq!(read(&line, false).unwrap_err().word, word, "{line}");
        }
    }
}
