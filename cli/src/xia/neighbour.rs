//! `weft xia neighbour`: the hosts that a node reaches without another one in between.
//!
//! Reference: Machado et al., "Linux XIA", §3 (HIDs). What is shown is what the principals `hid` and `hid2` know;
//! what is added is a statement of theirs, which discovery never displaces.

use std::path::Path;

use serde_json::Value;
use weft_xia_tools::Ask;
use weft_xip::Xid;

use super::ask::{AskArgs, nothing};
use super::route::principal_of_xid;
use crate::show::table::{Align, duration, lines};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct NeighbourArgs {
    #[command(subcommand)]
    what: Option<NeighbourCommand>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, clap::Subcommand)]
enum NeighbourCommand {
    /// Add a place where a host is always reached
    #[command(after_help = "Example:\n  \
        weft xia neighbour add hid-<40 hex digits> link 02:00:00:00:00:01 interface eth0")]
    Add(PlaceArgs),
    /// Delete a place of a host, or all that are known of it
    #[command(alias = "del")]
    #[command(
        after_help = "A neighbour that lives and was learned comes back when it speaks again.\n\n\
        Examples:\n  weft xia neighbour delete hid-<40 hex digits>\n  \
        weft xia neighbour delete hid-<40 hex digits> link 02:00:00:00:00:01 interface eth0"
    )]
    Delete(PlaceArgs),
}

#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// The host
    host: Xid,
    /// Where it is: `link`, its Ethernet address, `interface`, and the interface's name
    #[arg(num_args = 0.., value_names = ["link", "MAC", "interface", "NAME"])]
    place: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
}

impl PlaceArgs {
    fn process(&self, socket: &Path, verb: &str) -> Result<Ask, String> {
        let principal = principal_of_xid(&self.host)?;
        let words = [vec![self.host.to_string()], self.place.clone()].concat().join(" ");
        let command = format!("{verb} {principal} neighbour {words}");
        Ok(self.ask.ask(socket, &command, nothing))
    }
}

impl NeighbourArgs {
    pub(super) fn process(&self, socket: &Path) -> Result<Ask, String> {
        match &self.what {
            None => Ok(self.ask.ask(socket, "show neighbours", neighbours)),
            Some(NeighbourCommand::Add(args)) => args.process(socket, "set"),
            Some(NeighbourCommand::Delete(args)) => args.process(socket, "delete"),
        }
    }

    pub(super) fn ask(&self) -> &AskArgs {
        match &self.what {
            None => &self.ask,
            Some(NeighbourCommand::Add(args) | NeighbourCommand::Delete(args)) => &args.ask,
        }
    }
}

fn neighbours(shown: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dash = || "-".to_owned();
    let or_dash = |value: &Value| value.as_str().map_or_else(dash, str::to_owned);
    // A neighbour of the kernel's IP may have an address that is no XID; a station has none as long as its interface is
    // not up.
    let name = |place: &Value| {
        let names = [&place["xid"], &place["ip"]].into_iter();
        names.flat_map(Value::as_str).next().map_or_else(dash, str::to_owned)
    };
    // Of neighbours that the kernel's IP has found nobody says that.
    let yes = |value: &Value| {
        value.as_bool().map_or("-", |yes| if yes { "yes" } else { "no" }).to_owned()
    };
    let row = |place: &Value| {
        let age = place["age_ms"].as_u64().map(|age| duration(age / 1000));
        vec![
            name(place),
            text(&place["link"]),
            text(&place["interface"]),
            or_dash(&place["state"]),
            age.unwrap_or_else(dash),
            or_dash(&place["origin"]),
            yes(&place["proven"]),
            yes(&place["used"]),
        ]
    };
    let rows: Vec<_> = shown["neighbours"].as_array().into_iter().flatten().map(row).collect();
    let columns = [
        ("neighbour", Align::Left),
        ("link", Align::Left),
        ("interface", Align::Left),
        ("state", Align::Left),
        ("age", Align::Right),
        ("origin", Align::Left),
        ("proven", Align::Left),
        ("used", Align::Left),
    ];
    lines(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn neighbours_of_all_principals_are_shown() {
        let shown = json!({ "neighbours": [
            { "xid": "hid-1", "link": "02:00:00:00:00:01", "interface": "eth0", "state": "reachable",
              "age_ms": 3000, "origin": "learned", "proven": true, "used": false },
            { "xid": "x4id-1", "ip": "192.0.2.1", "link": "02:00:00:00:00:02", "interface": "eth0",
              "age_ms": null, "origin": "kernel" },
            { "xid": null, "ip": "fe80::1", "link": "02:00:00:00:00:02", "interface": "eth0",
              "age_ms": null, "origin": "kernel" },
            { "xid": "ether-1", "link": "02:00:00:00:00:03", "interface": "eth0", "age_ms": null,
              "origin": "configured", "used": true },
            { "xid": null, "link": "02:00:00:00:00:03", "interface": "eth1", "age_ms": null,
              "origin": "configured", "used": false },
        ]});
        let expected = [
            "NEIGHBOUR  LINK               INTERFACE  STATE      AGE  ORIGIN      PROVEN  USED",
            "hid-1      02:00:00:00:00:01  eth0       reachable   3s  learned     yes     no",
            "x4id-1     02:00:00:00:00:02  eth0       -            -  kernel      -       -",
            "fe80::1    02:00:00:00:00:02  eth0       -            -  kernel      -       -",
            "ether-1    02:00:00:00:00:03  eth0       -            -  configured  -       yes",
            "-          02:00:00:00:00:03  eth1       -            -  configured  -       no",
        ];
        assert_eq!(neighbours(&shown), expected);
    }
}
