//! The principal of the handbook's tutorial, "Your own principal in an afternoon": nearest.
//!
//! Reference: Maymounkov, Mazières, "Kademlia: A Peer-to-peer Information System Based on the XOR Metric",
//! IPTPS 2002, for the distance.
//!
//! Nodes have places among all identifiers, and an XID is a key that belongs to the node whose place is the
//! nearest. A node that knows a nearer one sends packets there; each hop comes nearer, so none comes back.
//!
//! | the nearest place is | answer |
//! |---|---|
//! | `local XID` | this node: go on behind it |
//! | `route XID via XID` | look the gateway up instead |
//! | none | unknown, the next edge is tried |

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weft_base::{Instant, Random};
use weft_xip::principal::{Answer, Branch, Output, Principal};
use weft_xip::words::{WordError, WordReader};
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// The type of its XIDs: a number that nobody else has taken.
pub const NEAREST: XidType = XidType(0x10ff);

/// Its statements, for checking and completing configurations.
pub const STATEMENTS: &str = r#"
    help "keys that belong to the nearest node";
    words local { usage "0x10ff-…"; help "the place of this node"; }
    words route { usage "0x10ff-… via XID"; help "the place of another node, and the way to it"; }
"#;

/// The places that this node knows; `None` is its own, otherwise the gateway to it.
#[derive(Debug, Default)]
pub struct Nearest {
    places: BTreeMap<Xid, Option<Xid>>,
}

/// An instance that knows no place, for the registry; it has no use for randomness.
#[must_use]
pub fn nearest(_: Random) -> Box<dyn Principal> {
    Box::<Nearest>::default()
}

/// How far apart two identifiers are: where they differ, the first bits weigh most.
fn distance(one: &Xid, other: &Xid) -> [u8; ID_LEN] {
    std::array::from_fn(|index| one.id[index] ^ other.id[index])
}

/// Reads `local XID` or `route XID via XID`; to delete a route its gateway need not be said.
fn read(words: &[&str], delete: bool) -> Result<(Xid, Option<Xid>), WordError> {
    let mut reader = WordReader::new(words);
    let is_route = match reader.word("`local` or `route`")? {
        "local" => false,
        "route" => true,
        word => return Err(reader.error(format!("`{word}` is not a statement of example"))),
    };
    let place = reader.xid_of(NEAREST)?;
    let mut gateway = None;
    if is_route && !(delete && reader.clone().end().is_ok()) {
        reader.expect("via")?;
        gateway = Some(reader.value("the XID of a gateway")?);
    }
    reader.end()?;
    Ok((place, gateway))
}

impl Principal for Nearest {
    fn kind(&self) -> XidType {
        NEAREST
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        // A node knows a few others, so looking at each costs little.
        match self.places.iter().min_by_key(|(place, _)| distance(place, xid)) {
            None => Answer::Unknown,
            Some((_, None)) => Answer::Through,
            Some((_, Some(gateway))) => Answer::Redirect(*gateway),
        }
    }

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let (place, gateway) = read(words, false)?;
        self.places.insert(place, gateway);
        Ok(())
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        let (place, _) = read(words, true)?;
        match self.places.remove(&place) {
            Some(_) => Ok(()),
            None => Err(WordError::at(1, format!("{place} is not known here")).absent()),
        }
    }

    fn show(&self) -> Value {
        let place = |(place, gateway): (&Xid, &Option<Xid>)| {
            let via = gateway.map(|gateway| gateway.to_string());
            json!({ "xid": place.to_string(), "via": via })
        };
        let places: Value = self.places.iter().map(place).collect();
        json!({ "places": places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> Xid {
        let mut id = [0; ID_LEN];
        id[0] = first;
        Xid::new(NEAREST, id)
    }

    fn set(nearest: &mut Nearest, line: &str) -> Result<(), WordError> {
        nearest.set(Instant::ZERO, &line.split(' ').collect::<Vec<_>>(), &mut Vec::new())
    }

    #[test]
    fn a_key_belongs_to_the_nearest_place() {
        let host = Xid::new(XidType::HID, [9; ID_LEN]);
        let mut nearest = Nearest::default();
        let ask = |nearest: &Nearest, first| nearest.lookup(&key(first), &mut Vec::new());
        assert_eq!(ask(&nearest, 0x41), Answer::Unknown);
        set(&mut nearest, &format!("local {}", key(0x40))).unwrap();
        set(&mut nearest, &format!("route {} via {host}", key(0x80))).unwrap();
        assert_eq!(ask(&nearest, 0x41), Answer::Through);
        assert_eq!(ask(&nearest, 0xff), Answer::Redirect(host));
        let words = ["route", &key(0x80).to_string()];
        nearest.delete(Instant::ZERO, &words, &mut Vec::new()).unwrap();
        assert_eq!(ask(&nearest, 0xff), Answer::Through);
        assert!(nearest.delete(Instant::ZERO, &words, &mut Vec::new()).is_err());
    }

    #[test]
    fn an_error_points_at_the_word_and_changes_nothing() {
        let mut nearest = Nearest::default();
        let own = key(1).to_string();
        for (line, word) in [
            ("neighbour x".to_owned(), Some(0)),
            ("local ad-12".to_owned(), Some(1)),
            (format!("local {own} now"), Some(2)),
            (format!("route {own}"), None),
            (format!("route {own} via here"), Some(3)),
        ] {
            assert_eq!(set(&mut nearest, &line).unwrap_err().word, word, "{line}");
        }
        assert_eq!(nearest.show(), json!({ "places": [] }));
    }
}
