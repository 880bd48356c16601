//! `weft xia dst` and `weft xia anchors`: the routing cache of a node.

use std::path::Path;

use serde_json::Value;
use weft_xia_tools::Ask;

use super::ask::AskArgs;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DstArgs {
    #[command(subcommand)]
    what: Option<DstCommand>,
    /// Show all decisions, not only the hundred that are used most
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, clap::Subcommand)]
enum DstCommand {
    /// Forget all decisions
    #[command(after_help = "Example:\n  weft xia dst flush")]
    Flush(AskArgs),
    /// Work out every decision again, and show those that are wrong; there are none
    #[command(after_help = "Example:\n  weft xia dst check --node r1")]
    Check(AskArgs),
    /// Let the cache use so much memory from now on, such as 64MiB; `off` is none
    #[command(after_help = "Examples:\n  weft xia dst limit 64MiB\n  weft xia dst limit off")]
    Limit {
        /// How much
        size: String,
        #[command(flatten)]
        ask: AskArgs,
    },
}

impl DstArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        let show = if self.all { "show all-dst" } else { "show dst" };
        match &self.what {
            None => self.ask.ask(socket, show, decisions),
            Some(DstCommand::Flush(ask)) => ask.ask(socket, "dst flush", one_line),
            Some(DstCommand::Check(ask)) => ask.ask(socket, "dst check", checked),
            Some(DstCommand::Limit { size, ask }) => {
                ask.ask(socket, &format!("dst limit {size}"), one_line)
            }
        }
    }

    pub(super) fn ask(&self) -> &AskArgs {
        match &self.what {
            None => &self.ask,
            Some(
                DstCommand::Flush(ask) | DstCommand::Check(ask) | DstCommand::Limit { ask, .. },
            ) => ask,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnchorsArgs {
    /// Show all, not only the hundred on which most decisions rest
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl AnchorsArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        let show = if self.all { "show all-anchors" } else { "show anchors" };
        self.ask.ask(socket, show, anchors)
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// What was decided, and more of it if there is more.
fn outcome(value: &Value, name: &str) -> String {
    match value["detail"].as_str() {
        Some(detail) => format!("{} {detail}", text(&value[name])),
        None => text(&value[name]),
    }
}

fn decision_line(entry: &Value) -> String {
    let edges: Vec<_> = items(&entry["edges"]).map(text).collect();
    let from = if entry["received"] == true { "in" } else { "out" };
    format!(
        "{:>10} {from:<3} edge {} {} <- {}",
        text(&entry["hits"]),
        text(&entry["edge"]),
        outcome(entry, "decision"),
        edges.join(", ")
    )
}

fn decisions(dst: &Value) -> Vec<String> {
    let mut lines = vec![format!(
        "{} decisions on {} XIDs, {} next hops; {} of {} bytes",
        text(&dst["entries"]),
        text(&dst["anchors"]),
        text(&dst["next_hops"]),
        text(&dst["bytes"]),
        text(&dst["limit"]),
    )];
    let counters = dst["counters"].as_object().into_iter().flatten();
    let counters: Vec<_> = counters.map(|(name, count)| format!("{name} {count}")).collect();
    lines.push(counters.join(", "));
    lines
        .extend(items(&dst["shares"]).map(|share| {
            format!("from {}: {} bytes", text(&share["from"]), text(&share["bytes"]))
        }));
    lines.extend(items(&dst["decisions"]).map(decision_line));
    lines
}

fn anchors(shown: &Value) -> Vec<String> {
    let line = |anchor: &Value| {
        format!(
            "{:>10} {}: {}",
            text(&anchor["decisions"]),
            text(&anchor["xid"]),
            outcome(anchor, "answer")
        )
    };
    let first = format!("decisions rest on {} XIDs", text(&shown["anchors"]));
    std::iter::once(first).chain(items(&shown["shown"]).map(line)).collect()
}

fn checked(found: &Value) -> Vec<String> {
    let wrong = items(&found["wrong"]).map(decision_line);
    let first = format!(
        "{} decisions checked, {} wrong",
        text(&found["checked"]),
        items(&found["wrong"]).count()
    );
    std::iter::once(first).chain(wrong).collect()
}

fn one_line(value: &Value) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name}: {}", text(value))).collect()
}
