//! `xip ether`: interfaces that are local, and stations on their links.

use serde_json::Value;

use super::context::{Context, exists, rows};
use super::lines::block;
use super::read::{exactly, expect, hardware_address};
use super::{Command, Failure, Printed};

pub(super) const COMMANDS: &[Command] = &[
    ("addif", add_interface),
    ("delif", delete_interface),
    ("addneigh", add_neighbour),
    ("delneigh", delete_neighbour),
    ("show", show),
];

pub(super) const USAGE: &str = "\
Usage: xip ether { addif | delif } DEV
       xip ether { addneigh | delneigh } lladdr LLADDR dev DEV
       xip ether show { interfaces | neighs }";

fn add_interface(context: &Context, words: &[&str]) -> Printed {
    let [device] = exactly(words)?;
    context.expect_device(device)?;
    let shown = context.principal("ether")?;
    if rows(&shown, "interfaces").any(|interface| interface["name"] == device) {
        return Err(exists(&format!("{device} is local already")));
    }
    context.change(&format!("set ether interface {device}"))
}

fn delete_interface(context: &Context, words: &[&str]) -> Printed {
    let [device] = exactly(words)?;
    context.change(&format!("delete ether interface {device}"))
}

/// The address of a station, as the principal's statement has it, and its device.
fn station<'a>(words: &[&'a str]) -> Result<(String, &'a str), Failure> {
    let [lladdr, address, dev, device] = exactly(words)?;
    expect(lladdr, "lladdr")?;
    expect(dev, "dev")?;
    Ok((hardware_address(address)?.to_string(), device))
}

fn add_neighbour(context: &Context, words: &[&str]) -> Printed {
    let (link, device) = station(words)?;
    context.expect_device(device)?;
    let shown = context.principal("ether")?;
    let is_same = |one: &Value| one["link"] == link && one["interface"] == device;
    if rows(&shown, "neighbours").any(is_same) {
        return Err(exists(&format!("{link} is a neighbour on {device} already")));
    }
    context.change(&format!("set ether neighbour {link} interface {device}"))
}

fn delete_neighbour(context: &Context, words: &[&str]) -> Printed {
    let (link, device) = station(words)?;
    context.change(&format!("delete ether neighbour {link} interface {device}"))
}

/// What the words of `show` name, as the principal calls it.
fn table(words: &[&str]) -> Result<&'static str, Failure> {
    let [table] = exactly(words)?;
    if "interfaces".starts_with(table) {
        Ok("interfaces")
    } else if "neighs".starts_with(table) {
        Ok("neighbours")
    } else {
        let text =
            format!("Unknown routing table '{table}', it must be either 'interfaces', or 'neighs'");
        Err(Failure::Usage(text, ""))
    }
}

fn show(context: &Context, words: &[&str]) -> Printed {
    let table = table(words)?;
    let shown = context.principal("ether")?;
    Ok(xids(&shown, table).flat_map(|xid| entry(&context.text(xid))).collect())
}

/// The XIDs of a table. What is on an interface that is down or gone has none.
fn xids<'a>(shown: &'a Value, table: &str) -> impl Iterator<Item = &'a Value> {
    rows(shown, table).map(|row| &row["xid"]).filter(|xid| xid.is_string())
}

fn entry(xid: &str) -> Vec<String> {
    block(format!("to {xid}"), [], "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_station_has_its_words() {
        let words = ["lladdr", "2:0:0:0:0:1", "dev", "eth0"];
        assert_eq!(station(&words), Ok(("02:00:00:00:00:01".to_owned(), "eth0")));
        assert!(station(&["link", "2:0:0:0:0:1", "dev", "eth0"]).is_err());
        assert!(station(&["lladdr", "2:0:0:0:0:1", "interface", "eth0"]).is_err());
        assert!(station(&["lladdr", "2:0:0:0:0", "dev", "eth0"]).is_err());
        assert!(station(&words[..2]).is_err());
    }

    #[test]
    fn tables_may_be_short() {
        assert_eq!(table(&["i"]), Ok("interfaces"));
        assert_eq!(table(&["neigh"]), Ok("neighbours"));
        for wrong in [&[][..], &["routes"], &["neighs", "all"]] {
            assert!(matches!(table(wrong), Err(Failure::Usage(..))), "{wrong:?}");
        }
    }

    #[test]
    fn what_has_an_xid_is_printed_as_the_tool_does() {
        let shown = json!({ "neighbours": [
            { "xid": null, "link": "02:00:00:00:00:01", "interface": "eth1" },
            { "xid": "ether-1", "link": "02:00:00:00:00:02", "interface": "eth0" },
        ]});
        let lines: Vec<_> =
            xids(&shown, "neighbours").flat_map(|xid| entry(xid.as_str().unwrap())).collect();
        assert_eq!(lines.join("\n"), "to ether-1\nflags []\n");
    }
}
