//! Commands to a running node: one question, one answer.

use serde_json::Value;
use weft_xia_tools::Ask;
use weft_xia_tools::ask::Format;

use super::apps::run;
use crate::args::NodeArgs;
use crate::node::find_socket;
use crate::output::{Outcome, json_lines, plain_lines};

#[derive(Debug, clap::Args)]
pub(crate) struct AskArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

impl AskArgs {
    /// Gives `command` to the node and prints the answer, for people by `plain`.
    fn ask(&self, command: &str, plain: Format) -> Outcome {
        let format = if self.json { json_lines } else { plain };
        run(Ask::new(&find_socket(&self.node)?, command, format))
    }
}

pub(crate) fn addr(args: &AskArgs) -> Outcome {
    args.ask("show node", address_lines)
}

/// The scope, then every XID that is this node.
fn address_lines(node: &Value) -> Vec<String> {
    let texts = |field: &str| -> Vec<String> {
        let items = node[field].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let scope = texts("scope");
    let scope = if scope.is_empty() { "none".to_owned() } else { scope.join(" then ") };
    let mut lines = vec![format!("applications are reached through: {scope}")];
    lines.extend(texts("locals").into_iter().map(|xid| format!("local {xid}")));
    lines.extend(texts("sockets").into_iter().map(|address| format!("bound {address}")));
    lines
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// What to show: node, principals, counters or trace
    #[arg(default_value = "node")]
    what: String,
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn show(args: &ShowArgs) -> Outcome {
    args.ask.ask(&format!("show {}", args.what), plain_lines)
}

#[derive(Debug, clap::Args)]
pub(crate) struct PrincipalArgs {
    /// What to do
    #[arg(value_parser = ["add", "remove"])]
    verb: String,
    /// The principal's name, such as zf
    name: String,
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn principal(args: &PrincipalArgs) -> Outcome {
    args.ask.ask(&format!("principal {} {}", args.verb, args.name), nothing)
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// The principal's name, such as hid
    principal: String,
    /// The words of the statement
    #[arg(required = true, num_args = 1..)]
    words: Vec<String>,
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn change(verb: &str, args: &ChangeArgs) -> Outcome {
    args.ask.ask(&format!("{verb} {} {}", args.principal, args.words.join(" ")), nothing)
}

/// A change that went well says nothing.
fn nothing(_: &Value) -> Vec<String> {
    Vec::new()
}
