//! `xip dst`: the routing cache.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2; the actions are those of `include/net/xia_route.h` of
//! AltraMayor/XIA-for-Linux. A decision of weft is one thing to do, where an entry of Linux has one for each of both
//! cases, that the XID is the sink and that it is not; so what weft never does in a case is an error here.

use serde_json::Value;
use weft_xip::Xid;
use weft_xip::numbers::MAX_FAN_OUT;

use super::context::Context;
use super::lines::block;
use super::read::exactly;
use super::{Command, Printed};

pub(super) const COMMANDS: &[Command] = &[("show", show), ("flush", flush)];

pub(super) const USAGE: &str = "\
Usage: xip dst show
       xip dst flush";

fn flush(context: &Context, words: &[&str]) -> Printed {
    exactly::<0>(words)?;
    context.change("dst flush")
}

fn show(context: &Context, words: &[&str]) -> Printed {
    exactly::<0>(words)?;
    let shown = context.show("all-dst")?;
    let entries = shown["decisions"].as_array().into_iter().flatten();
    Ok(entries.flat_map(|entry| lines(context, entry)).collect())
}

fn lines(context: &Context, entry: &Value) -> Vec<String> {
    let none = Xid::NAT.display(&context.names).to_string();
    let edge = |index: usize| match &entry["edges"][index] {
        Value::Null => format!("{index}: {none}"),
        xid => format!("{index}: {}", context.text(xid)),
    };
    let (actions, is_chosen) = match (entry["decision"].as_str(), entry["detail"].as_str()) {
        (Some("local"), _) => ("XDA_DIG/XDA_ERROR", true),
        (Some("socket"), _) => ("XDA_ERROR/XDA_METHOD_AND_SELECT_EDGE", true),
        (Some("forward"), _) => ("XDA_METHOD/XDA_METHOD", true),
        // The packet was for an edge that leads somewhere, and must not go there.
        (_, detail) => ("XDA_DROP/XDA_DROP", detail != Some("unreachable")),
    };
    let direction = if entry["received"] == true { "input" } else { "output" };
    let chosen = if is_chosen { entry["edge"].to_string() } else { "none".to_owned() };
    // The hash of weft's cache is keyed with a secret, so it is not shown.
    let summary = format!("{direction}, key_hash=0x0, chosen_edge={chosen}");
    let more =
        (0..MAX_FAN_OUT).map(edge).chain([summary, format!("passthrough/sink_action={actions}")]);
    block("to".to_owned(), more, "")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;
    use weft_xip::Names;

    use super::*;
    use crate::args::NodeArgs;

    #[test]
    fn an_entry_has_four_edges_and_two_actions() {
        let node = NodeArgs { node: None, run_dir: None };
        let context = Context::new(node, PathBuf::new(), Names::new());
        let ad = format!("ad-{}", "1".repeat(40));
        let mut entry = json!({
            "edges": [ad], "received": true, "edge": 0, "decision": "forward", "detail": "x",
        });
        let nat = format!("nat-{}", "0".repeat(40));
        let expected = format!(
            "to\n0: {ad}\n1: {nat}\n2: {nat}\n3: {nat}\ninput, key_hash=0x0, chosen_edge=0\n\
             passthrough/sink_action=XDA_METHOD/XDA_METHOD\nflags []\n"
        );
        assert_eq!(lines(&context, &entry).join("\n"), expected);
        (entry["decision"], entry["detail"]) = (json!("drop"), json!("unreachable"));
        entry["received"] = json!(false);
        let shown = lines(&context, &entry);
        assert_eq!(shown[5], "output, key_hash=0x0, chosen_edge=none");
        assert_eq!(shown[6], "passthrough/sink_action=XDA_DROP/XDA_DROP");
    }
}
