//! The command line: every command, option and help text.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::away::AwayArgs;
use crate::bench::{BenchArgs, BgpEndArgs, SourceArgs};
use crate::bgp::BgpCommand;
use crate::call::CallArgs;
use crate::configure::ConfigureArgs;
use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
use crate::generate::{CompletionArgs, ManArgs};
use crate::glass::GlassArgs;
use crate::lab::LabCommand;
use crate::metrics::MetricsArgs;
use crate::node::component::ComponentArgs;
use crate::policy::PolicyCommand;
use crate::profile::ProfileCommand;
use crate::show::ShowCommand;
use crate::xia::XiaCommand;
use crate::xip::XipArgs;

/// One router and host stack for several Internet architectures.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Examples:\n  weft doctor                  # what this machine can do\n  \
        weft run node.conf\n  weft show processes\n  weft configure --node r1\n  \
        weft lab run examples/push.lab --scenario three-node"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What a process of a node is started with, behind the program's name.
pub(crate) const COMPONENT: &str = "component";

/// `weft component`, for `weft run`: one process of a node. A command line of its own, so that a process that has to be
/// there at once does not begin with all that people can ask for.
#[derive(Debug, Parser)]
#[command(name = "weft component", version)]
pub(crate) struct ComponentLine {
    #[command(flatten)]
    pub(crate) args: ComponentArgs,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "a process has one")]
pub(crate) enum Command {
    /// Run a node in the foreground
    #[command(after_help = "Examples:\n  weft run node.conf\n  weft run --check node.conf")]
    Run(RunArgs),
    /// The state of a running node: processes, components, interfaces, counters
    #[command(
        subcommand,
        after_help = "Examples:\n  weft show processes\n  weft show routes\n  weft show bgp peers\n  \
        weft show log --follow\n  weft show counters --node r1 --json"
    )]
    Show(ShowCommand),
    /// Serve what a running node counts, for Prometheus
    #[command(after_help = "Examples:\n  weft metrics\n  \
        weft metrics --node r1 --listen 127.0.0.1:9465")]
    Metrics(MetricsArgs),
    /// Serve what a running node's routing knows, for everybody to read: HTTP and JSON
    #[command(after_help = "Examples:\n  weft looking-glass\n  \
        weft looking-glass --node r1 --listen 192.0.2.1:8179")]
    LookingGlass(GlassArgs),
    /// Call components of a running node: XRLs, as text in and text out
    #[command(after_help = "Examples:\n  weft call finder://manager/manager/1.0/processes\n  \
        weft call 'finder://xia/xia/1.0/show?what:txt=counters'\n  \
        weft call --list xia\n  weft call --node r1 --file calls.txt --keep-going")]
    Call(CallArgs),
    /// Edit the configuration of a running node: candidate, compare, commit, rollback
    #[command(after_help = "Examples:\n  weft configure\n  \
        weft configure -c 'set xia interface eth1' -c 'show | compare' -c 'commit confirmed 5min'\n  \
        weft configure --node r1 < changes")]
    Configure(ConfigureArgs),
    /// Run a routing protocol here for a node on another machine
    #[command(after_help = "Examples:\n  weft away rip --access\n  \
        weft away rip rip.conf --node 192.0.2.1:6500 --node-key 84ec0b24b8054f9237f7e321459fac1fd42f4a12 \
        --key far.key")]
    Away(AwayArgs),
    /// Policies: which routes pass, and how they are changed
    #[command(
        subcommand,
        after_help = "Examples:\n  weft policy test from-peers 192.0.2.0/24 --peer 198.51.100.2\n  \
        weft policy test from-peers --config node.conf --route 'prefix 192.0.2.0/24; as-path 65001;'"
    )]
    Policy(PolicyCommand),
    /// Profile points: record when routes pass places of their way, for `weft show profile`
    #[command(
        subcommand,
        after_help = "Examples:\n  weft profile on && weft show profile\n  weft profile off"
    )]
    Profile(ProfileCommand),
    /// Measure weft beside a peer
    #[command(after_help = "Examples:\n  weft bench --list\n  \
        weft bench xip-engine --quick --json result.json --plot result.svg")]
    Bench(BenchArgs),
    /// The other process of `weft bench flow`, which starts it
    #[command(hide = true)]
    BenchFlowSource(SourceArgs),
    /// A process beside the router of the benchmarks of BGP, which start it
    #[command(hide = true)]
    BenchBgpEnd(BgpEndArgs),
    /// Say what this machine can and cannot do for weft, and how to mend it
    #[command(after_help = "Examples:\n  weft doctor\n  weft doctor --json")]
    Doctor(DoctorArgs),
    /// Push a file to four receivers across IP-only networks, in a lab on this machine
    #[command(
        after_help = "Examples:\n  weft demo\n  weft demo --file film.mp4\n  weft demo --sim"
    )]
    Demo(DemoArgs),
    /// Write the completion script of a shell to standard output
    #[command(after_help = "Examples:\n  weft completion bash > /etc/bash_completion.d/weft\n  \
        weft completion fish > ~/.config/fish/completions/weft.fish")]
    Completion(CompletionArgs),
    /// Write a manual page for every command
    #[command(after_help = "Example:\n  weft man /usr/local/share/man/man1")]
    Man(ManArgs),
    /// Networks of nodes on this machine or in the simulator
    #[command(
        subcommand,
        after_help = "Examples:\n  weft lab run examples/push.lab --scenario three-node\n  \
        weft lab up examples/push.lab && weft lab exec client1 -- weft xia addr\n  weft lab down"
    )]
    Lab(LabCommand),
    /// Commands of BGP: tables in files
    #[command(
        subcommand,
        after_help = "Examples:\n  weft bgp clear 192.0.2.2 --soft in\n  weft bgp dump table.mrt && weft bgp table table.mrt\n  \
        weft bgp sample 10000 --form bird > routes"
    )]
    Bgp(BgpCommand),
    /// Commands of XIA: addresses, keys, applications, live changes
    #[command(
        subcommand,
        after_help = "Examples:\n  weft xia id new r1.key\n  weft xia addr\n  weft xia ping hid-<40 hex digits>\n  \
        weft xia show counters --json"
    )]
    Xia(XiaCommand),
    /// The commands of `xip`, the tool of Linux XIA, for scripts that were written for it
    #[command(
        after_help = "Objects: ad, dst, hid, lpm, u4id, xdp, zf; `weft xip OBJECT help` lists the commands \
        of one.\nOptions: -batch FILE, -force, --ppal-map FILE, -Version.\n\nExamples:\n  \
        weft xip ad addroute <40 hex digits> gw hid-<40 hex digits>\n  \
        weft xip lpm show routes\n  weft xip --node r1 -batch routes.xip"
    )]
    Xip(XipArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The node file
    pub(crate) file: PathBuf,
    /// The node's run directory [default: /run/weft/NAME, or $XDG_RUNTIME_DIR/weft/NAME]
    #[arg(long, env = RUN_DIR)]
    pub(crate) run_dir: Option<PathBuf>,
    /// The key whose hash is the node's HID, unless the node file names one
    #[arg(long, value_name = "KEY")]
    pub(crate) identity: Option<PathBuf>,
    /// Check the node file and do nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Run everything in one process, for debugging: without isolation, XRLs and restarts
    #[arg(long)]
    pub(crate) single: bool,
    /// Report details for debugging
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Which node a command talks to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeArgs {
    /// The node, by name [default: the only one that runs on this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// The node's run directory [env: WEFT_RUN_DIR, unless --node is given]
    // Not by clap's `env`, to which a value of the environment is as good as one that was given: --node would be refused
    // beside it.
    #[arg(long, conflicts_with = "node")]
    pub(crate) run_dir: Option<PathBuf>,
}

/// The variable of the environment that names a node's run directory.
const RUN_DIR: &str = "WEFT_RUN_DIR";

impl NodeArgs {
    /// The run directory that was given, or that of the environment if no node was named.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.directory_or(std::env::var_os(RUN_DIR))
    }

    fn directory_or(&self, of_environment: Option<OsString>) -> Option<PathBuf> {
        let of_environment = || of_environment.filter(|_| self.node.is_none()).map(PathBuf::from);
        self.run_dir.clone().or_else(of_environment)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Visits every command that users see, with the words that lead to it.
    fn visit(command: &clap::Command, path: &str, see: &mut impl FnMut(&clap::Command, &str)) {
        see(command, path);
        for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
            visit(child, &format!("{path} {}", child.get_name()), see);
        }
    }

    fn visit_all(mut see: impl FnMut(&clap::Command, &str)) {
        visit(&Args::command(), "weft", &mut see);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
        ComponentLine::command().debug_assert();
    }

    #[test]
    fn what_was_given_wins_over_the_environment() {
        let directory = |node: Option<&str>, run_dir: Option<&str>| {
            let args = NodeArgs { node: node.map(str::to_owned), run_dir: run_dir.map(Into::into) };
            args.directory_or(Some("/run/environment".into()))
        };
        assert_eq!(directory(None, None), Some("/run/environment".into()));
        assert_eq!(directory(None, Some("/run/given")), Some("/run/given".into()));
        assert_eq!(directory(Some("r1"), None), None);
    }

    #[test]
    fn every_command_has_one_line_of_description() {
        visit_all(|command, path| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.contains('\n'), "{path}: {about:?}");
        });
    }

    #[test]
    fn every_option_is_described() {
        visit_all(|command, path| {
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                assert!(argument.get_help().is_some(), "{path}: {}", argument.get_id());
            }
        });
    }

    #[test]
    fn every_command_shows_how_it_is_used() {
        visit_all(|command, path| {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help
                .split_once("Example:\n")
                .or_else(|| help.split_once("Examples:\n"))
                .unwrap_or_else(|| panic!("{path} has no examples: {help:?}"));
            for line in examples.lines() {
                let is_of_it = line.starts_with("  ") && line.contains(path);
                assert!(is_of_it, "{path}: this is no example of it: {line:?}");
            }
        });
    }
}
