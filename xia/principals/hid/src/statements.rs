//! The statements of HID, read from words.

use std::ops::RangeInclusive;
use std::time::Duration;

use weft_config::FromWord;
use weft_wire::MacAddr;
use weft_xip::table::route::RouteStatement;
use weft_xip::words::{WordError, WordReader};
use weft_xip::{Xid, XidType};

use crate::proof::Policy;

/// A statement that was read; what it does depends on whether it is set or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `local XID`
    Local(Xid),
    /// `neighbour XID link MAC interface NAME`
    Neighbour { hid: Xid, mac: MacAddr, interface: String },
    /// `neighbour XID`, to delete all places of a neighbour
    AllOf(Xid),
    /// `route XID via XID…`, `route XID unreachable` or `route default via XID…`
    Route(RouteStatement),
    /// `nwp on|off [interface]`
    Nwp { on: bool, interface: Option<String> },
    /// `proof off|preferred|required [interface]`
    Proof { policy: Policy, interface: Option<String> },
    /// `neighbour-limit NUMBER`
    Limit(usize),
    /// `neighbour-expiry DURATION|off`
    Expiry(Option<Duration>),
}

/// Most learned neighbours that can be asked for.
const LARGEST_LIMIT: usize = 1 << 20;
/// The times of silence that can be asked for.
const EXPIRIES: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);

impl Statement {
    /// Reads a statement; [`Statement::AllOf`] only if it is to be deleted.
    pub(crate) fn read(words: &[&str], kind: XidType, delete: bool) -> Result<Self, WordError> {
        let mut reader = WordReader::new(words);
        let what = "`local`, `neighbour`, `route`, `nwp`, `proof`, `neighbour-limit` or \
                    `neighbour-expiry`";
        let statement = match reader.word(what)? {
            "local" => Self::Local(reader.xid_of(kind)?),
            "neighbour" | "neighbor" => {
                let hid = reader.xid_of(kind)?;
                if delete && reader.clone().end().is_ok() {
                    Self::AllOf(hid)
                } else {
                    Self::neighbour(hid, &mut reader)?
                }
            }
            "route" => Self::Route(RouteStatement::read(&mut reader, kind, delete)?),
            "nwp" => Self::nwp(&mut reader)?,
            "proof" => Self::proof(&mut reader)?,
            "neighbour-limit" | "neighbor-limit" => Self::Limit(limit(&mut reader)?),
            "neighbour-expiry" | "neighbor-expiry" => Self::Expiry(expiry(&mut reader)?),
            word => {
                return Err(reader.error(format!(
                    "`{word}` is not a statement of hid; write `local hid-…`, \
                     `neighbour hid-… link MAC interface NAME`, `route hid-… via XID…`, \
                     `route hid-… unreachable`, `route default via XID…`, \
                     `nwp on|off [interface]`, `proof off|preferred|required [interface]`, \
                     `neighbour-limit NUMBER` or \
                     `neighbour-expiry DURATION|off`"
                )));
            }
        };
        reader.end()?;
        Ok(statement)
    }

    fn neighbour(hid: Xid, reader: &mut WordReader) -> Result<Self, WordError> {
        reader.expect("link")?;
        let mac: MacAddr = reader.value("an Ethernet address such as 02:00:00:00:00:01")?;
        if !is_station(mac) {
            return Err(reader.error(format!("{mac} is not the address of one station")));
        }
        reader.expect("interface")?;
        let interface = reader.word("the interface's name")?.to_owned();
        Ok(Self::Neighbour { hid, mac, interface })
    }

    fn nwp(reader: &mut WordReader) -> Result<Self, WordError> {
        let on = match reader.word("`on` or `off`")? {
            "on" => true,
            "off" => false,
            _ => return Err(reader.error("expected `on` or `off`")),
        };
        Ok(Self::Nwp { on, interface: interface(reader)? })
    }

    fn proof(reader: &mut WordReader) -> Result<Self, WordError> {
        let policy = match reader.word("`off`, `preferred` or `required`")? {
            "off" => Policy::Off,
            "preferred" => Policy::Preferred,
            "required" => Policy::Required,
            _ => return Err(reader.error("expected `off`, `preferred` or `required`")),
        };
        Ok(Self::Proof { policy, interface: interface(reader)? })
    }
}

/// The name of an interface, if there is one.
fn interface(reader: &mut WordReader) -> Result<Option<String>, WordError> {
    let rest = reader.clone().end().is_err();
    rest.then(|| reader.word("the interface's name").map(str::to_owned)).transpose()
}

fn limit(reader: &mut WordReader) -> Result<usize, WordError> {
    let limit: usize = reader.value("a number of neighbours")?;
    if limit > LARGEST_LIMIT {
        return Err(reader.error(format!("the limit must not exceed {LARGEST_LIMIT}")));
    }
    Ok(limit)
}

fn expiry(reader: &mut WordReader) -> Result<Option<Duration>, WordError> {
    let word = reader.word("a duration such as 15s, or `off`")?;
    if word == "off" {
        return Ok(None);
    }
    let expiry = Duration::from_word(word).map_err(|error| {
        reader.error(format!("`{word}` is no duration, and not `off`: {error}"))
    })?;
    if !EXPIRIES.contains(&expiry) {
        return Err(reader.error("neighbours expire after 1s to 1d of silence"));
    }
    Ok(Some(expiry))
}

/// Whether packets can be sent to one station at this address: it is neither zero nor a group.
pub(crate) fn is_station(mac: MacAddr) -> bool {
    mac != MacAddr::UNSPECIFIED && !mac.is_multicast()
}

#[cfg(test)]
mod tests {
    use weft_xip::table::route::Way;

    use super::*;

    const HID: &str = "hid-0101010101010101010101010101010101010101";

    const ROUTER: &str = "hid-0202020202020202020202020202020202020202";

    fn read(line: &str, delete: bool) -> Result<Statement, WordError> {
        Statement::read(&line.split(' ').collect::<Vec<_>>(), XidType::HID, delete)
    }

    #[test]
    fn statements_are_read() {
        let hid = Xid::new(XidType::HID, [1; 20]);
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let neighbour = Statement::Neighbour { hid, mac, interface: "eth0".into() };
        let set = |line: &str| read(line, false).unwrap();
        assert_eq!(set(&format!("local {HID}")), Statement::Local(hid));
        for word in ["neighbour", "neighbor"] {
            let line = format!("{word} {HID} link 02:00:00:00:00:01 interface eth0");
            assert_eq!(set(&line), neighbour);
            assert_eq!(read(&line, true), Ok(neighbour.clone()));
        }
        assert_eq!(read(&format!("neighbour {HID}"), true), Ok(Statement::AllOf(hid)));
        let route_to = |way| Statement::Route(RouteStatement { destination: Some(hid), way });
        let route_over = |via: &[u8]| {
            let via = via.iter().map(|id| Xid::new(XidType::HID, [*id; 20]));
            route_to(Way::Via(via.collect()))
        };
        let route = format!("route {HID} via {ROUTER}");
        assert_eq!(set(&route), route_over(&[2]));
        assert_eq!(read(&route, true), Ok(route_over(&[2])));
        let both = format!("{route} hid-{}", "00".repeat(20));
        assert_eq!(set(&both), route_over(&[0, 2]));
        assert_eq!(read(&format!("route {HID}"), true), Ok(route_to(Way::Any)));
        assert_eq!(set(&format!("route {HID} unreachable")), route_to(Way::Unreachable));
        assert_eq!(set("nwp on"), Statement::Nwp { on: true, interface: None });
        assert_eq!(
            set("nwp off eth0"),
            Statement::Nwp { on: false, interface: Some("eth0".into()) }
        );
        let policy = Policy::Required;
        assert_eq!(set("proof required"), Statement::Proof { policy, interface: None });
        let (policy, interface) = (Policy::Off, Some("eth0".into()));
        assert_eq!(set("proof off eth0"), Statement::Proof { policy, interface });
        assert_eq!(set("neighbour-limit 7"), Statement::Limit(7));
        assert_eq!(set("neighbour-expiry 20s"), Statement::Expiry(Some(Duration::from_secs(20))));
        assert_eq!(set("neighbor-expiry off"), Statement::Expiry(None));
    }

    #[test]
    fn an_error_points_at_the_word() {
        let cases = [
            ("redirect x".to_owned(), Some(0)),
            ("route x".to_owned(), Some(1)),
            (format!("route {HID}"), None),
            (format!("route {HID} via {HID}"), Some(3)),
            (format!("route {HID} via nat-{}", "00".repeat(20)), Some(3)),
            (format!("route {HID} via {ROUTER} now"), Some(4)),
            ("local ad-0101010101010101010101010101010101010101".to_owned(), Some(1)),
            (format!("local {HID} now"), Some(2)),
            (format!("neighbour {HID}"), None),
            (format!("neighbour {HID} at 02:00:00:00:00:01"), Some(2)),
            (format!("neighbour {HID} link 02:00"), Some(3)),
            (format!("neighbour {HID} link ff:ff:ff:ff:ff:ff interface eth0"), Some(3)),
            (format!("neighbour {HID} link 00:00:00:00:00:00 interface eth0"), Some(3)),
            (format!("neighbour {HID} link 02:00:00:00:00:01 on eth0"), Some(4)),
            (format!("neighbour {HID} link 02:00:00:00:00:01 interface"), None),
            (format!("neighbour {HID} link 02:00:00:00:00:01 interface eth0 x"), Some(6)),
            ("proof maybe".to_owned(), Some(1)),
            ("proof off eth0 eth1".to_owned(), Some(3)),
            ("nwp maybe".to_owned(), Some(1)),
            ("nwp".to_owned(), None),
            ("nwp on eth0 eth1".to_owned(), Some(3)),
            ("neighbour-limit -1".to_owned(), Some(1)),
            ("neighbour-limit 99999999".to_owned(), Some(1)),
            ("neighbour-expiry 20".to_owned(), Some(1)),
            ("neighbour-expiry 10ms".to_owned(), Some(1)),
            ("neighbour-expiry never".to_owned(), Some(1)),
        ];
        for (line, word) in cases {
            assert_eq!(read(&line, false).unwrap_err().word, word, "{line}");
        }
        assert!(Statement::read(&[], XidType::HID, false).is_err());
    }
}
