//! `weft doctor`: what this machine can and cannot do for weft, and how to mend it.
//!
//! Each check is a function that looks at one thing and gives a `Check`; the files are the subjects.
//! What can only be found out by doing it (interfaces, queueing disciplines) is done by a child
//! process in namespaces of its own, which end with it (`trial`). Nothing is left behind and nothing
//! is changed.

mod capabilities;
mod check;
mod ebpf;
mod isolation;
mod machine;
mod network;
mod nodes;
mod report;
mod sockets;
mod tools;
mod trial;

use crate::output::{Outcome, json_lines, print_lines};
use check::Section;
use trial::Trials;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Say of every check what it is needed for
    #[arg(short, long)]
    verbose: bool,
    /// Try what a lab needs in namespaces that end with this process; print what came of it
    #[arg(long, hide = true, conflicts_with_all = ["json", "verbose"])]
    trial: bool,
}

/// Examines the machine. The exit status is 0 if everything is there that `weft demo` requires.
pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    if args.trial {
        return print_lines([trial::attempt_all().to_string()]).map(|()| 0);
    }
    let sections = examine();
    print_lines(match args.json {
        true => json_lines(&report::json(&sections)),
        false => report::text(&sections, args.verbose),
    })?;
    Ok(if report::is_ready(&sections) { 0 } else { 1 })
}

/// All checks, by subject.
fn examine() -> Vec<Section> {
    let trials = Trials::run();
    vec![
        Section { title: "machine", checks: machine::checks() },
        Section { title: "privileges", checks: capabilities::checks(&trials) },
        Section { title: "isolation", checks: isolation::checks() },
        Section { title: "network", checks: network::checks(&trials) },
        Section { title: "ebpf", checks: ebpf::checks() },
        Section { title: "socket buffers", checks: sockets::checks() },
        Section { title: "tools", checks: tools::checks(trials.is_root) },
        Section { title: "nodes", checks: nodes::checks() },
    ]
}
