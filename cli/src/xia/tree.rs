//! `weft xia tree`: the XID that leads packets to several hosts.
//!
//! Reference: Machado et al., "Linux XIA", §5.3 (multicast by filters); RFC 2328 §16.1 (shortest paths).

use std::path::Path;

use serde_json::Value;
use weft_xia_tools::Ask;
use weft_xip::Xid;

use super::ask::AskArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct TreeArgs {
    /// Print the XID alone
    #[arg(long, conflicts_with = "json")]
    xid: bool,
    /// The HIDs of the hosts that are to be reached
    #[arg(required = true, value_name = "HID")]
    hosts: Vec<Xid>,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl TreeArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        let hosts: Vec<_> = self.hosts.iter().map(ToString::to_string).collect();
        let plain = if self.xid { xid } else { lines };
        self.ask.ask(socket, &format!("show tree {}", hosts.join(" ")), plain)
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn xid(tree: &Value) -> Vec<String> {
    vec![text(&tree["xid"])]
}

/// The XID, what it costs, and the links.
fn lines(tree: &Value) -> Vec<String> {
    let percent = tree["false_positives_per_million"].as_f64().unwrap_or_default() / 1e4;
    let cost = format!(
        "{} one bits; {percent:.2} % of all other links are in it by mistake",
        text(&tree["bits"])
    );
    let links = tree["links"].as_array().into_iter().flatten();
    let links = links.map(|link| format!("{} -> {}", text(&link["from"]), text(&link["to"])));
    [text(&tree["xid"]), cost].into_iter().chain(links).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_xid_comes_first_and_alone_if_wanted() {
        let tree = json!({
            "xid": "zf-1", "bits": 14, "tag": 0, "false_positives_per_million": 5129.0,
            "links": [{ "from": "hid-1", "to": "hid-2" }, { "from": "hid-2", "to": "hid-3" }],
        });
        let expected = [
            "zf-1",
            "14 one bits; 0.51 % of all other links are in it by mistake",
            "hid-1 -> hid-2",
            "hid-2 -> hid-3",
        ];
        assert_eq!(lines(&tree), expected);
        assert_eq!(xid(&tree), ["zf-1"]);
    }
}
