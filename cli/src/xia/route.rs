//! `weft xia route`: where the principals of a node redirect XIDs to.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.1 (routing redirects). A route belongs to the principal of its
//! destination, so the destination says which principal is told: the type of an XID, or `lpm` for a prefix. Where it
//! cannot, as for `link NAME` of zFilter, the principal's name stands in front.

use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;
use weft_base::Random;
use weft_xia_tools::Ask;
use weft_xip::Xid;

use super::ask::{AskArgs, nothing};
use crate::registry::principals;
use crate::show::table::{Align, lines};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RouteArgs {
    #[command(subcommand)]
    what: Option<RouteCommand>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, clap::Subcommand)]
enum RouteCommand {
    /// Add a route, in place of an earlier one of the same destination
    #[command(
        after_help = "DEST is an XID or a prefix, or a principal's name and what its statement `route` \
        takes, such as `default`. With several gateways each destination has one of them.\n\n\
        Examples:\n  weft xia route add ad-<40 hex digits> via hid-<40 hex digits>\n  \
        weft xia route add ad-<40 hex digits> via hid-<40 hex digits> hid-<40 hex digits>\n  \
        weft xia route add 10.0.0.0/8 via hid-<40 hex digits>\n  \
        weft xia route add 10.9.0.0/16 unreachable\n  \
        weft xia route add hid default via hid-<40 hex digits>\n  \
        weft xia route add zf link to-east via hid-<40 hex digits>"
    )]
    Add(WordsArgs),
    /// Delete gateways of a route, or all of it if none is said
    #[command(alias = "del")]
    #[command(after_help = "Examples:\n  weft xia route delete ad-<40 hex digits>\n  \
        weft xia route delete 10.0.0.0/8 via hid-<40 hex digits>")]
    Delete(WordsArgs),
}

#[derive(Debug, clap::Args)]
struct WordsArgs {
    /// The destination, then `via` and the XIDs of which one is looked up instead, or `unreachable`
    #[arg(required = true, num_args = 1.., value_names = ["DEST", "via", "XID"])]
    words: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
}

impl RouteArgs {
    pub(super) fn process(&self, socket: &Path) -> Result<Ask, String> {
        let (verb, words) = match &self.what {
            None => return Ok(self.ask.ask(socket, "show routes", routes)),
            Some(RouteCommand::Add(args)) => ("set", &args.words),
            Some(RouteCommand::Delete(args)) => ("delete", &args.words),
        };
        let (principal, words) = principal_of(words)?;
        let command = format!("{verb} {principal} route {}", words.join(" "));
        Ok(self.ask().ask(socket, &command, nothing))
    }

    pub(super) fn ask(&self) -> &AskArgs {
        match &self.what {
            None => &self.ask,
            Some(RouteCommand::Add(args) | RouteCommand::Delete(args)) => &args.ask,
        }
    }
}

/// The principal that a route is of, and the words of its statement behind `route`.
fn principal_of(words: &[String]) -> Result<(String, &[String]), String> {
    let Some((first, rest)) = words.split_first() else {
        return Err("the destination of the route is missing".to_owned());
    };
    if let Ok(xid) = first.parse() {
        return Ok((principal_of_xid(&xid)?, words));
    }
    if first.contains('/') || first.parse::<IpAddr>().is_ok() {
        return Ok(("lpm".to_owned(), words));
    }
    if principals().names().any(|name| name == first) {
        return Ok((first.clone(), rest));
    }
    Err(format!(
        "`{first}` is no destination: write an XID such as ad-<40 hex digits>, a prefix such as 10.0.0.0/8, or a \
         principal's name and its destination, such as `zf link NAME`"
    ))
}

/// The name of the principal that answers for an XID.
///
/// # Errors
/// There is none in this program.
pub(super) fn principal_of_xid(xid: &Xid) -> Result<String, String> {
    let (all, random) = (principals(), Random::from_seed(0));
    let mut names = all.names();
    let is_of = |name: &&str| all.make(name, &random).is_ok_and(|one| one.kind() == xid.kind);
    let found = names.find(is_of).map(str::to_owned);
    found.ok_or_else(|| format!("{xid} is of a principal that weft does not have"))
}

/// Where a route leads: to an XID, or by the kernel's table of IP to a router and an interface, or nowhere.
fn via(route: &Value) -> String {
    let text = |name: &str| route[name].as_str();
    match (text("via"), text("gateway"), text("interface")) {
        (Some(via), ..) => via.to_owned(),
        (None, Some(gateway), Some(interface)) => format!("{gateway} interface {interface}"),
        (None, _, Some(interface)) => format!("interface {interface}"),
        (None, _, None) => "nowhere".to_owned(),
    }
}

fn routes(shown: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |route: &Value| {
        let names = ["xid", "ipv4", "prefix"].into_iter();
        let destination = names.map(|name| &route[name]).find(|value| value.is_string());
        let destination = destination.map(text).unwrap_or_default();
        vec![destination, via(route), text(&route["principal"]), text(&route["origin"])]
    };
    let rows: Vec<_> = shown["routes"].as_array().into_iter().flatten().map(row).collect();
    let titles = ["destination", "via", "principal", "origin"];
    lines(&titles.map(|title| (title, Align::Left)), &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(line: &str) -> Result<(String, String), String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        principal_of(&words).map(|(principal, words)| (principal, words.join(" ")))
    }

    #[test]
    fn the_destination_says_which_principal_is_told() {
        let id = "0123456789012345678901234567890123456789";
        for (line, principal, words) in [
            (format!("ad-{id} via hid-{id}"), "ad", format!("ad-{id} via hid-{id}")),
            (format!("hid2-{id}"), "hid2", format!("hid2-{id}")),
            (format!("lpm-{id}"), "lpm", format!("lpm-{id}")),
            ("10.0.0.0/8 via x".to_owned(), "lpm", "10.0.0.0/8 via x".to_owned()),
            ("0x0a/8".to_owned(), "lpm", "0x0a/8".to_owned()),
            ("2001:db8::1".to_owned(), "lpm", "2001:db8::1".to_owned()),
            ("zf link a via b".to_owned(), "zf", "link a via b".to_owned()),
            ("hid default via b".to_owned(), "hid", "default via b".to_owned()),
        ] {
            assert_eq!(read(&line), Ok((principal.to_owned(), words)), "{line}");
        }
        let error = read(&format!("serval-{id} via hid-{id}")).unwrap_err();
        assert!(error.contains("a principal that weft does not have"), "{error}");
        let error = read("nonsense").unwrap_err();
        assert!(error.contains("`nonsense` is no destination"), "{error}");
    }

    #[test]
    fn prefixes_are_shown_as_people_write_them() {
        let shown = json!({ "routes": [
            { "principal": "ad", "xid": "default", "via": "hid-1", "origin": "stated" },
            { "principal": "ad", "xid": "ad-1", "via": "hid-1", "origin": "learned" },
            { "principal": "ad", "xid": "ad-2", "via": null, "origin": "stated" },
            { "principal": "lpm", "prefix": "0x0a/8", "ipv4": "10.0.0.0/8", "via": "hid-1", "origin": "stated" },
            { "principal": "lpm", "prefix": "0x0102030405/40", "via": "hid-1", "origin": "stated" },
            { "principal": "x4id", "prefix": "0.0.0.0/0", "gateway": "192.0.2.1", "interface": "eth0", "origin": "kernel" },
            { "principal": "x4id", "prefix": "192.0.2.0/24", "gateway": null, "interface": "eth0", "origin": "kernel" },
            { "principal": "x6id", "prefix": "2001:db8::/32", "interface": null, "origin": "kernel" },
        ]});
        let expected = [
            "DESTINATION      VIA                       PRINCIPAL  ORIGIN",
            "default          hid-1                     ad         stated",
            "ad-1             hid-1                     ad         learned",
            "ad-2             nowhere                   ad         stated",
            "10.0.0.0/8       hid-1                     lpm        stated",
            "0x0102030405/40  hid-1                     lpm        stated",
            "0.0.0.0/0        192.0.2.1 interface eth0  x4id       kernel",
            "192.0.2.0/24     interface eth0            x4id       kernel",
            "2001:db8::/32    nowhere                   x6id       kernel",
        ];
        assert_eq!(routes(&shown), expected);
    }
}
