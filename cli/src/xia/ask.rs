//! Commands to a running node: one question, one answer.

use std::path::Path;

use serde_json::Value;
use weft_xia_tools::Ask;
use weft_xia_tools::ask::Format;

use crate::args::NodeArgs;
use crate::output::{json_lines, plain_lines};

#[derive(Debug, clap::Args)]
pub(crate) struct AskArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

impl AskArgs {
    /// The process that gives `command` to the node and prints the answer, for people by `plain`.
    pub(super) fn ask(&self, socket: &Path, command: &str, plain: Format) -> Ask {
        Ask::new(socket, command, if self.json { json_lines } else { plain })
    }

    /// `weft xia addr`.
    pub(super) fn addresses(&self, socket: &Path) -> Ask {
        self.ask(socket, "show node", address_lines)
    }
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
    /// What to show: node, principals, routes, neighbours, counters, ports, forwarding, dst, anchors, trace,
    /// or a protocol such as link-state
    #[arg(default_value = "node")]
    what: String,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl ShowArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        self.ask.ask(socket, &format!("show {}", self.what), plain_lines)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct PrincipalArgs {
    /// What to do
    #[arg(value_parser = ["add", "remove"])]
    verb: String,
    /// The principal's name, such as zf
    name: String,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl PrincipalArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        self.ask.ask(socket, &format!("principal {} {}", self.verb, self.name), nothing)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct InterfaceArgs {
    /// What to do
    #[arg(value_parser = ["add", "remove"])]
    verb: String,
    /// The interface's name, such as eth1; one that is not there yet is used as soon as it is
    name: String,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl InterfaceArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        self.ask.ask(socket, &format!("interface {} {}", self.verb, self.name), nothing)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    /// Record what happens to one packet in this many, the same packets on every node; 0: to none.
    /// Without a number, show what was recorded
    one_in: Option<u64>,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl TraceArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        match self.one_in {
            None => self.ask.ask(socket, "show trace", trace_lines),
            Some(one_in) => self.ask.ask(socket, &format!("trace {one_in}"), nothing),
        }
    }
}

/// One packet after the other, a line for each step.
fn trace_lines(visits: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for visit in visits.as_array().into_iter().flatten() {
        let field = |name: &str| visit[name].as_str().unwrap_or("?").to_owned();
        lines.push(format!("packet {} from {}", field("packet"), field("from")));
        let steps = visit["steps"].as_array().into_iter().flatten();
        lines.extend(steps.map(|step| {
            let fields = step.as_object().into_iter().flatten().filter(|(name, _)| *name != "step");
            let texts = fields.filter_map(|(_, value)| match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            });
            let name = step["step"].as_str().unwrap_or("?");
            format!("  {name:<12} {}", texts.collect::<Vec<_>>().join(" "))
        }));
    }
    lines
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// The principal's name, such as hid
    principal: String,
    /// The words of the statement
    #[arg(required = true, num_args = 1..)]
    words: Vec<String>,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

impl ChangeArgs {
    pub(super) fn process(&self, socket: &Path, verb: &str) -> Ask {
        let words = self.words.join(" ");
        self.ask.ask(socket, &format!("{verb} {} {words}", self.principal), nothing)
    }
}

/// A change that went well says nothing.
pub(super) fn nothing(_: &Value) -> Vec<String> {
    Vec::new()
}
