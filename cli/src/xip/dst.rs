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
        // Linux leaves to zF, too, where the copies of a packet go.
        (Some("forward" | "several"), _) => ("XDA_METHOD/XDA_METHOD", true),
        // The packet was for an edge that leads somewhere, and must not go there.
        (Some("drop"), detail) => ("XDA_DROP/XDA_DROP", detail != Some("unreachable")),
        // A node that is newer than this program.
        _ => ("?/?", true),
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

    fn context() -> Context {
        let node = NodeArgs { node: None, run_dir: None };
        Context::new(node, PathBuf::new(), Names::new())
    }

    /// What is shown of an entry for an AD.
    fn shown(decision: &str, detail: Option<&str>, received: bool) -> Vec<String> {
        let ad = format!("ad-{}", "1".repeat(40));
        let entry = json!({
            "edges": [ad], "received": received, "edge": 0, "decision": decision, "detail": detail,
        });
        lines(&context(), &entry)
    }

    #[test]
    fn an_entry_has_four_edges_and_two_actions() {
        let ad = format!("ad-{}", "1".repeat(40));
        let nat = format!("nat-{}", "0".repeat(40));
        let expected = format!(
            "to\n0: {ad}\n1: {nat}\n2: {nat}\n3: {nat}\ninput, key_hash=0x0, chosen_edge=0\n\
             passthrough/sink_action=XDA_METHOD/XDA_METHOD\nflags []\n"
        );
        assert_eq!(shown("forward", Some("x"), true).join("\n"), expected);
    }

    #[test]
    fn each_kind_of_decision_has_the_actions_that_linux_has_for_it() {
        // The decisions are those of the node's `cache.rs`.
        for (decision, detail, chosen, actions) in [
            ("local", None, "0", "XDA_DIG/XDA_ERROR"),
            ("socket", Some("x"), "0", "XDA_ERROR/XDA_METHOD_AND_SELECT_EDGE"),
            ("forward", Some("x"), "0", "XDA_METHOD/XDA_METHOD"),
            ("several", None, "0", "XDA_METHOD/XDA_METHOD"),
            ("drop", Some("unreachable"), "none", "XDA_DROP/XDA_DROP"),
            ("drop", Some("filter-too-full"), "0", "XDA_DROP/XDA_DROP"),
            ("unheard-of", None, "0", "?/?"),
        ] {
            let shown = shown(decision, detail, false);
            assert_eq!(
                shown[5],
                format!("output, key_hash=0x0, chosen_edge={chosen}"),
                "{decision}"
            );
            assert_eq!(shown[6], format!("passthrough/sink_action={actions}"), "{decision}");
        }
    }
}
