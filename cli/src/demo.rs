//! `weft demo`: one file to four receivers, across IP-only networks and with loss.
//!
//! Reference: Machado et al., "Linux XIA", §6.1 and Figure 4. Runs the scenarios of
//! `examples/push.lab`, which is part of this program, and prints what each receiver got.

mod progress;

use std::path::{Path, PathBuf};

use serde_json::Value;
use weft_lab::{EngineKind, Options, Outcome as LabOutcome, Variables};

use self::progress::Show;
use crate::lab::{WeftHost, become_root, push};
use crate::output::{Outcome, print_lines};

const SCENARIOS: [(&str, &str); 2] = [
    ("three-node", "address of three nodes: tunnel, multicast tree, sockets"),
    ("single-filter", "address of one zFilter: the rest is redirects in the network"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The file to push [default: this program]
    #[arg(long)]
    file: Option<PathBuf>,
    /// Datagrams per second in bits, such as 200Mbit/s
    #[arg(long)]
    rate: Option<String>,
    /// Run in the simulator instead of network namespaces
    #[arg(long)]
    sim: bool,
}

/// Runs the demo; the status is 0 only if every receiver has the exact file both times.
pub(crate) fn run(args: &DemoArgs) -> Outcome {
    let engine = if args.sim { EngineKind::Sim } else { EngineKind::Netns };
    become_root(engine)?;
    let host = WeftHost::new()?;
    for (scenario, title) in SCENARIOS {
        let lab = push::lab(variables(args)?)?;
        let options = Options {
            engine,
            scenario: Some(scenario.to_owned()),
            output: Some(Path::new("lab-out").join(format!("push-{scenario}"))),
            capture: None,
        };
        let mut show = Show::new(options.output.as_deref().filter(|_| !args.sim));
        let outcome =
            weft_lab::run(&lab, &options, &host, &mut show).map_err(|error| error.to_string())?;
        drop(show);
        print_lines(table(title, &outcome))?;
        if let Some(error) = &outcome.error {
            return Err(format!("the scenario {scenario} failed: {error}"));
        }
    }
    Ok(0)
}

fn variables(args: &DemoArgs) -> Result<Variables, String> {
    let mut variables = Variables::new();
    if let Some(file) = &args.file {
        let path = file
            .canonicalize()
            .map_err(|error| format!("the file {} cannot be pushed: {error}", file.display()))?;
        variables.insert("FILE".to_owned(), path.display().to_string());
    }
    if let Some(rate) = &args.rate {
        variables.insert("RATE".to_owned(), rate.clone());
    }
    Ok(variables)
}

/// A heading, and one line for each receiver: what it got, what that took.
fn table(title: &str, outcome: &LabOutcome) -> Vec<String> {
    let columns = format!(
        "{:<10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9}  SHA-256",
        "receiver", "bytes", "received", "used", "needed", "seconds", "Mbit/s"
    );
    let sent = push::sent_digest(outcome);
    let mut lines = vec![String::new(), title.to_owned(), columns];
    for process in push::receivers(outcome) {
        lines.push(match push::received(outcome, process) {
            Some(report) => row(&process.node, &report, sent.as_deref()),
            None => format!("{:<10} received nothing", process.node),
        });
    }
    lines
}

fn row(node: &str, report: &Value, sent: Option<&str>) -> String {
    let number = |name: &str| report[name].as_u64().unwrap_or(0);
    let seconds = report["seconds"].as_f64().unwrap_or(0.0);
    let rate = push::goodput(report);
    let sha256 = report["sha256"].as_str();
    let verdict = if sent.is_some() && sha256 == sent { "equal" } else { "NOT EQUAL" };
    format!(
        "{node:<10} {:>12} {:>9} {:>9} {:>9} {seconds:>9.3} {rate:>9.1}  {verdict}",
        number("bytes"),
        number("symbols_received"),
        number("symbols_used"),
        number("symbols_needed"),
    )
}
