//! `weft policy test`: what policies would do to a route, and why.
//!
//! With `--config` the policies are those of a file, and the route is described on the command line. Otherwise a running node
//! is asked (`bgp/1.1/explain`): what its policies would do to the routes that its peers have announced.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::Value;
use weft_bgp::interface::Explain;
use weft_config::{Errors, Tree};
use weft_policy::{Explanation, Policies, Program, TextRoute, names};

use crate::args::NodeArgs;

use crate::output::{Outcome, json_lines, print_lines};
use crate::registry;
use crate::show::Asker;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// What policies would do to a route, and why
    #[command(after_help = "Examples:\n  \
        weft policy test from-peers 192.0.2.0/24 --peer 198.51.100.2\n  \
        weft policy test to-peers 192.0.2.0/24 --peer 198.51.100.2 --export --json\n  \
        weft policy test from-peers --config node.conf --route 'prefix 192.0.2.0/24; as-path 65001;'\n  \
        weft policy test from-peers --protocol bgp --config node.conf --route 'prefix 192.0.2.0/24; med 7;' --json")]
    Test(TestArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// The policies, which are asked in this order, with commas between
    policies: String,
    /// The address or prefix of which the running node knows routes
    #[arg(required_unless_present = "config")]
    prefix: Option<String>,
    /// Of which peer, or to which one with --export [default: of all]
    #[arg(long, conflicts_with = "config", value_name = "ADDRESS")]
    peer: Option<IpAddr>,
    /// What the peer would be told, instead of what would be taken of it
    #[arg(long, requires = "peer")]
    export: bool,
    /// The policies are those of this file; no node need run
    #[arg(long, requires = "route", conflicts_with_all = ["prefix", "node", "run_dir"], value_name = "FILE")]
    config: Option<PathBuf>,
    /// The route: its variables as statements
    #[arg(long, requires = "config", value_name = "TEXT")]
    route: Option<String>,
    /// Of which protocol the route is
    #[arg(long, requires = "config", default_value = weft_bgp::STATEMENT, value_name = "NAME")]
    protocol: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(command: &PolicyCommand) -> Outcome {
    let PolicyCommand::Test(args) = command;
    let (json, lines) = match (&args.config, &args.route, &args.prefix) {
        (Some(config), Some(route), _) => {
            let explanation = offline(config, &args.policies, &args.protocol, route)?;
            (explanation.json(), vec![explanation.to_string()])
        }
        (_, _, prefix) => {
            let all = running(args, prefix.as_deref().unwrap_or_default())?;
            let lines = all.as_array().into_iter().flatten().map(told).collect();
            (all, lines)
        }
    };
    print_lines(match args.json {
        true => json_lines(&json),
        false => lines.iter().flat_map(|text| text.lines()).map(str::to_owned).collect(),
    })?;
    Ok(0)
}

/// What the policies of a file do to a route that is described.
fn offline(
    config: &Path,
    policies: &str,
    protocol: &str,
    route: &str,
) -> Result<Explanation, String> {
    let all = registry::variables();
    let variables = *all.get(protocol).ok_or_else(|| {
        let names: Vec<_> = all.keys().copied().collect();
        format!("`{protocol}` asks no policies: say {}", names.join(" or "))
    })?;
    let loaded = crate::node::include::read(config)?;
    let source = config.display().to_string();
    let tree = match loaded.parts {
        Some(tree) => tree,
        None => Tree::parse(&source, &loaded.text).map_err(|errors| errors.to_string())?,
    };
    let part = tree.part(weft_policy::STATEMENT);
    let original = |errors: Errors| part.original(errors).to_string();
    let read = Policies::parse(&source, &part.body()).map_err(original)?;
    let policies: Vec<_> = policies.split(',').collect();
    let chain = names("command line", &policies).map_err(|errors| errors.to_string())?;
    let program = Program::new(&read, variables, &chain).map_err(original)?;
    let route = TextRoute::parse("route", route, variables).map_err(|errors| errors.to_string())?;
    Ok(program.explain(&route).1)
}

/// What policies of the running node do to the routes that it knows.
fn running(args: &TestArgs, prefix: &str) -> Result<Value, String> {
    let (from, to) = match args.export {
        true => (None, args.peer),
        false => (args.peer, None),
    };
    let policies = args.policies.replace(',', " ");
    let request = Explain { policies, prefix: prefix.to_owned(), from, to };
    let reply = Asker::new(&args.node)?.ask("bgp", request)?;
    let all: Value = serde_json::from_str(&reply.json)
        .map_err(|error| format!("bgp: what it says is no JSON: {error}"))?;
    match all.as_array().is_some_and(|all| all.is_empty()) {
        true => Err(format!("there is no route to {prefix}: `weft show bgp routes` lists them")),
        false => Ok(all),
    }
}

/// One of them for people.
fn told(one: &Value) -> String {
    let text = |name: &str| one[name].as_str().map(str::to_owned);
    // Nobody has announced a network of the router's own.
    let from = text("from").or_else(|| text("protocol")).unwrap_or_default();
    let mut head = format!("{} from {from}", text("prefix").unwrap_or_default());
    if let Some(to) = text("to") {
        head = format!("{head} to {to}");
    }
    let note = text("note").map_or_else(String::new, |note| format!("but {note}\n"));
    format!("{head}\n{}{note}", text("text").unwrap_or_default())
}
