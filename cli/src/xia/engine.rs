//! `weft xia engine` and `weft show xia forwarding`: which engines forward on a node, and what they have counted.

use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;
use weft_xia_tools::Ask;

use super::ask::AskArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Let these engines forward from now on; without it, show which do
    engine: Option<EngineWord>,
    #[command(flatten)]
    pub(super) ask: AskArgs,
}

/// Which engines forward.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineWord {
    /// The portable one alone
    Portable,
    /// The kernel's, too, in the best mode that each interface has
    Auto,
    /// The kernel's, too, in the drivers of the interfaces
    Driver,
    /// The kernel's, too, in its network stack
    Generic,
}

impl EngineArgs {
    pub(super) fn process(&self, socket: &Path) -> Ask {
        match self.engine.and_then(|engine| engine.to_possible_value()) {
            None => shown(&self.ask, socket),
            Some(word) => {
                self.ask.ask(socket, &format!("engine {}", word.get_name()), |_| Vec::new())
            }
        }
    }
}

/// The process that shows which engine forwards where.
pub(super) fn shown(ask: &AskArgs, socket: &Path) -> Ask {
    ask.ask(socket, "show forwarding", forwarding)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Why something is not as it was wanted.
fn trouble(value: &Value) -> String {
    value["trouble"].as_str().map(|trouble| format!(": {trouble}")).unwrap_or_default()
}

/// By which sockets packets come and go, where that is not how it always is.
fn packet_io(interface: &Value) -> String {
    match interface["packet-io-trouble"].as_str() {
        Some(why) => format!("; packets by packet sockets: {why}"),
        None if interface["packet-io"] == "xdp" => "; packets by AF_XDP".to_owned(),
        None => String::new(),
    }
}

/// How the stack shares the processors, if that was to be different from usual.
fn scheduling(shown: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(processors) = shown["processors"].as_array() {
        let priority = shown["priority"].as_str().unwrap_or("another priority");
        let processors: Vec<_> = processors.iter().map(Value::to_string).collect();
        lines.push(format!("thread with {priority} on processors {}", processors.join(",")));
    }
    let refused = shown["refused"].as_array().into_iter().flatten();
    lines.extend(refused.map(|error| format!("thread as before: {}", text(error))));
    lines
}

fn forwarding(shown: &Value) -> Vec<String> {
    let mut lines = vec![format!(
        "engine {}; the kernel's is {}{}, with {} decisions",
        text(&shown["wanted"]),
        text(&shown["kernel"]),
        trouble(shown),
        shown["decisions"],
    )];
    let interfaces = shown["interfaces"].as_array().into_iter().flatten();
    lines.extend(interfaces.map(|one| {
        let (interface, engine) = (text(&one["interface"]), text(&one["engine"]));
        format!("{interface} {engine}{}{}", trouble(one), packet_io(one))
    }));
    lines.extend(scheduling(&shown["scheduling"]));
    for (engine, counters) in [("kernel", "counters"), ("portable", "portable")] {
        let counters = shown[counters].as_object().into_iter().flatten();
        lines.extend(
            counters.map(|(name, count)| format!("{:>12} {engine} {name}", count.to_string())),
        );
    }
    lines
}
