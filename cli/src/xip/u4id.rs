//! `xip u4id`: the ends of tunnels over UDP.

use std::net::Ipv4Addr;

use serde_json::Value;
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

use super::context::{Context, exists, rows};
use super::lines::block;
use super::read::{exactly, identifier, number};
use super::{Command, Failure, Printed};

pub(super) const COMMANDS: &[Command] = &[("add", add), ("del", delete), ("show", show)];

pub(super) const USAGE: &str = "\
Usage: xip u4id add UDP_ID [-tunnel]
       xip u4id del UDP_ID
       xip u4id show
where UDP_ID is 40 hexadecimal digits, or an IPv4 address and a port";

/// Reads an end: its identifier, or its address and port.
fn end(words: &[&str]) -> Result<Xid, Failure> {
    let [address, port] = match *words {
        [id] => return identifier(XidType::U4ID, id),
        _ => exactly(words)?,
    };
    let usage = |text: &str| Failure::Usage(text.to_owned(), "");
    let address: Ipv4Addr = address.parse().map_err(|_| usage("Invalid IPv4 address"))?;
    let port = number(port).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or_else(|| usage("Port must be in range 0 - 65535"))?;
    let mut id = [0; ID_LEN];
    id[..4].copy_from_slice(&address.octets());
    id[4..6].copy_from_slice(&port.to_be_bytes());
    Ok(Xid::new(XidType::U4ID, id))
}

/// Takes the options off the end: whether tunnels begin there.
fn options<'a, 'b>(mut words: &'b [&'a str]) -> Result<(&'b [&'a str], bool), Failure> {
    let mut is_tunnel = false;
    while let [front @ .., option] = words
        && !front.is_empty()
        && option.starts_with('-')
    {
        if "-disable_checksum".starts_with(option) {
            let text = "weft always sends UDP checksums: leave out -disable_checksum";
            return Err(Failure::Wrong(text.to_owned()));
        }
        if is_tunnel || !"-tunnel".starts_with(option) {
            return Err(Failure::Usage("Incorrect parameters".to_owned(), ""));
        }
        (words, is_tunnel) = (front, true);
    }
    Ok((words, is_tunnel))
}

/// What the principal shows of an end.
fn find(context: &Context, end: &Xid) -> Result<Option<Value>, Failure> {
    let shown = context.principal("u4id")?;
    Ok(rows(&shown, "locals").find(|row| row["xid"] == end.to_string()).cloned())
}

fn add(context: &Context, words: &[&str]) -> Printed {
    let (words, is_tunnel) = options(words)?;
    let end = end(words)?;
    if find(context, &end)?.is_some() {
        return Err(exists(&format!("{end} is an end of tunnels already")));
    }
    let role = if is_tunnel { "tunnel" } else { "local" };
    context.change(&format!("set u4id {role} {end}"))
}

/// An end may have been stated in both roles, of which the tool knows nothing.
fn delete(context: &Context, words: &[&str]) -> Printed {
    let end = end(words)?;
    let is_tunnel = |row: &Value| row["tunnel"] == true;
    if find(context, &end)?.as_ref().is_some_and(is_tunnel) {
        context.change(&format!("delete u4id tunnel {end}"))?;
        if find(context, &end)?.is_none() {
            return Ok(Vec::new());
        }
    }
    context.change(&format!("delete u4id local {end}"))
}

fn show(context: &Context, words: &[&str]) -> Printed {
    exactly::<0>(words)?;
    let shown = context.principal("u4id")?;
    Ok(rows(&shown, "locals").flat_map(|row| lines(&context.text(&row["xid"]), row)).collect())
}

fn lines(xid: &str, row: &Value) -> Vec<String> {
    let socket = row["address"].as_str().unwrap_or_default();
    let tunnel = if row["tunnel"] == true { "yes (checksumming enabled)" } else { "no" };
    let more = [format!(" using IP socket: {socket}"), format!(" tunnel socket: {tunnel}")];
    block(format!("to {xid}"), more, " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_is_an_identifier_or_an_address_and_a_port() {
        let expected = format!("u4id-0a00000135d5{}", "0".repeat(28));
        assert_eq!(end(&["10.0.0.1", "13781"]).unwrap().to_string(), expected);
        assert_eq!(end(&["10.0.0.1", "0x35d5"]).unwrap().to_string(), expected);
        assert_eq!(end(&[&expected["u4id-".len()..]]).unwrap().to_string(), expected);
        for wrong in [&[][..], &["10.0.0.1"], &["10.0.0.1", "65536"], &["10.0.0", "1"]] {
            assert!(end(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn options_stand_at_the_end_and_may_be_short() {
        assert_eq!(options(&["a", "1"]), Ok((&["a", "1"][..], false)));
        assert_eq!(options(&["a", "1", "-t"]), Ok((&["a", "1"][..], true)));
        let refused = options(&["a", "1", "-tunnel", "-disable_checksum"]).unwrap_err();
        assert!(matches!(refused, Failure::Wrong(text) if text.contains("always")));
        assert!(options(&["a", "-t", "-t"]).is_err());
        assert!(options(&["a", "-x"]).is_err());
    }

    #[test]
    fn an_end_is_printed_as_the_tool_does() {
        let row = json!({ "address": "10.0.0.1:13781", "tunnel": true });
        let expected = "to u4id-x\n using IP socket: 10.0.0.1:13781\n \
                        tunnel socket: yes (checksumming enabled)\n flags []\n";
        assert_eq!(lines("u4id-x", &row).join("\n"), expected);
        let row = json!({ "address": "10.0.0.1:13781", "tunnel": false });
        assert_eq!(lines("u4id-x", &row)[2], " tunnel socket: no");
    }
}
