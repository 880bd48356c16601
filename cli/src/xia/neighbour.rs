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
    let yes = |value: &Value| if *value == true { "yes" } else { "no" }.to_owned();
    let row = |place: &Value| {
        let age = place["age_ms"].as_u64().map(|age| duration(age / 1000));
        vec![
            text(&place["xid"]),
            text(&place["link"]),
            text(&place["interface"]),
            text(&place["state"]),
            age.unwrap_or_else(|| "-".to_owned()),
            text(&place["origin"]),
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
