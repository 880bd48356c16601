//! The statements of zFilter, read from words.

use weft_xip::words::{WordError, WordReader};
use weft_xip::{Xid, XidType};

use crate::filter::{Bits, FILTER_BITS, MAX_LINK_BITS, MAX_TAGS, tagged_identifier};

/// A link as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    /// By its identifier.
    Identifier(Xid),
    /// By its name, from which the identifier is made.
    Name(String),
}

/// How identifiers are made from names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    /// One bits.
    pub(crate) bits: u32,
    /// Identifiers of each link.
    pub(crate) tags: u32,
}

impl Link {
    /// The identifiers, at least one.
    pub(crate) fn identifiers(&self, naming: Naming) -> impl Iterator<Item = Xid> {
        let (given, name) = match self {
            Self::Identifier(xid) => (Some(*xid), None),
            Self::Name(name) => (None, Some(name.as_str())),
        };
        let made = name.into_iter().flat_map(move |name| {
            let of = move |tag| tagged_identifier(name, naming.bits, tag, naming.tags);
            (0..naming.tags).map(of)
        });
        given.into_iter().chain(made)
    }
}

/// How statements begin.
const ALL: &str = "`local`, `route`, `bits`, `tags`, `fill-limit` or `adjacencies`";

/// A statement that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `local LINK`
    Local(Link),
    /// `route LINK via XID`
    Route(Link, Xid),
    /// `route LINK`, to delete all routes of a link
    AllRoutes(Link),
    /// `bits NUMBER`
    Bits(u32),
    /// `tags NUMBER`
    Tags(u32),
    /// `fill-limit NUMBER`
    FillLimit(u32),
    /// `adjacencies`
    Adjacencies,
}

impl Statement {
    /// Reads a statement; [`Statement::AllRoutes`] only if it is to be deleted.
    pub(crate) fn read(words: &[&str], delete: bool) -> Result<Self, WordError> {
        let mut reader = WordReader::new(words);
        let statement = match reader.word(ALL)? {
            "local" => Self::Local(link(&mut reader)?),
            "route" => {
                let link = link(&mut reader)?;
                if delete && reader.clone().end().is_ok() {
                    Self::AllRoutes(link)
                } else {
                    reader.expect("via")?;
                    Self::Route(link, gateway(&mut reader)?)
                }
            }
            "bits" => Self::Bits(number(&mut reader, "a number of one bits", MAX_LINK_BITS)?),
            "tags" => Self::Tags(number(&mut reader, "a number of tags", MAX_TAGS)?),
            "fill-limit" => Self::FillLimit(number(&mut reader, "a number of bits", FILTER_BITS)?),
            "adjacencies" => Self::Adjacencies,
            word => {
                return Err(reader.error(format!(
                    "`{word}` is not a statement of zf; write `local LINK`, `route LINK via XID` \
                     (LINK is zf-… or `link NAME`), `bits NUMBER`, `tags NUMBER`, `fill-limit NUMBER` or `adjacencies`"
                )));
            }
        };
        reader.end()?;
        Ok(statement)
    }
}

/// Reads `zf-…` or `link NAME`.
fn link(reader: &mut WordReader) -> Result<Link, WordError> {
    if reader.take("link") {
        return Ok(Link::Name(reader.word("the link's name")?.to_owned()));
    }
    let xid = reader.xid_of(XidType::ZF)?;
    if Bits::of(&xid).is_empty() {
        return Err(reader.error("a link identifier without one bits would match every packet"));
    }
    Ok(Link::Identifier(xid))
}

fn gateway(reader: &mut WordReader) -> Result<Xid, WordError> {
    let gateway: Xid = reader.value("the XID of a gateway")?;
    if gateway.kind == XidType::ZF || gateway.kind.is_nat() {
        return Err(reader.error(format!(
            "{gateway} is no gateway; name an XID of another type, such as a HID"
        )));
    }
    Ok(gateway)
}

fn number(reader: &mut WordReader, what: &str, most: u32) -> Result<u32, WordError> {
    let number: u32 = reader.value(what)?;
    if (1..=most).contains(&number) {
        Ok(number)
    } else {
        Err(reader.error(format!("{what} must be between 1 and {most}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "zf-0000000000000000000000000000000000000001";
    const HOST: &str = "hid-0101010101010101010101010101010101010101";

    fn read(line: &str, delete: bool) -> Result<Statement, WordError> {
        Statement::read(&line.split(' ').collect::<Vec<_>>(), delete)
    }

    #[test]
    fn statements_are_read() {
        let set = |line: &str| read(line, false).unwrap();
        let link = Link::Identifier(LINK.parse().unwrap());
        let west = Link::Name("west".into());
        let host = HOST.parse().unwrap();
        assert_eq!(set(&format!("local {LINK}")), Statement::Local(link.clone()));
        assert_eq!(set("local link west"), Statement::Local(west.clone()));
        assert_eq!(set(&format!("route {LINK} via {HOST}")), Statement::Route(link, host));
        assert_eq!(
            set(&format!("route link west via {HOST}")),
            Statement::Route(west.clone(), host)
        );
        assert_eq!(read("route link west", true), Ok(Statement::AllRoutes(west)));
        assert_eq!(set("bits 16"), Statement::Bits(16));
        assert_eq!(set("tags 8"), Statement::Tags(8));
        assert_eq!(set("fill-limit 160"), Statement::FillLimit(160));
        assert_eq!(set("adjacencies"), Statement::Adjacencies);
    }

    #[test]
    fn an_error_points_at_the_word() {
        let zero = LINK.replace('1', "0");
        let cases = [
            ("neighbour x".to_owned(), Some(0)),
            (format!("local {HOST}"), Some(1)),
            (format!("local {zero}"), Some(1)),
            (format!("route {zero} via {HOST}"), Some(1)),
            ("local link".to_owned(), None),
            ("local link a b".to_owned(), Some(3)),
            (format!("route {LINK}"), None),
            (format!("route {LINK} to {HOST}"), Some(2)),
            (format!("route {LINK} via {LINK}"), Some(3)),
            (format!("route {LINK} via nat-{}", "00".repeat(20)), Some(3)),
            (format!("route {LINK} via x"), Some(3)),
            (format!("route {LINK} via {HOST} {HOST}"), Some(4)),
            ("bits 0".to_owned(), Some(1)),
            ("bits 17".to_owned(), Some(1)),
            ("bits five".to_owned(), Some(1)),
            ("tags 9".to_owned(), Some(1)),
            ("fill-limit 161".to_owned(), Some(1)),
            ("fill-limit 0".to_owned(), Some(1)),
            ("adjacencies on".to_owned(), Some(1)),
        ];
        for (line, word) in cases {
            assert_eq!(read(&line, false).unwrap_err().word, word, "{line}");
        }
        assert!(Statement::read(&[], false).is_err());
    }
}
