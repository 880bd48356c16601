//! `weft completion` and `weft man`: what is generated from the command tree, so that it cannot say anything
//! else than `--help`.
//!
//! Reference: bash(1) "Programmable Completion", zshcompsys(1), fish-completions(7); man-pages(7).

use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::output::{Outcome, print_lines};

/// The name of the program.
const NAME: &str = "weft";

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionArgs {
    /// The shell: bash, zsh or fish
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Where the pages go; made if it is not there
    directory: PathBuf,
}

/// `weft completion`: the script for a shell on standard output.
pub(crate) fn completion(args: &CompletionArgs) -> Outcome {
    let shell: Shell = args.shell.parse()?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), NAME, &mut script);
    print_lines([String::from_utf8_lossy(&script).trim_end()])?;
    Ok(0)
}

/// `weft man`: a page for each command.
pub(crate) fn man(args: &ManArgs) -> Outcome {
    let directory = &args.directory;
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(visible(), directory))
        .map_err(|error| format!("cannot write man pages to {}: {error}", directory.display()))?;
    Ok(0)
}

/// The commands that users see.
fn visible() -> clap::Command {
    without_hidden(&Args::command())
}

/// A command without those below it that are hidden: clap has no way to take a command out again.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let children: Vec<_> = command
        .get_subcommands()
        .filter(|child| !child.is_hide_set())
        .map(without_hidden)
        .collect();
    // clap takes static names only; a few dozen short words are leaked, once in a process that ends then.
    let name: &'static str = command.get_name().to_owned().leak();
    let mut bare = clap::Command::new(name)
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(children)
        .subcommand_required(command.is_subcommand_required_set());
    if let Some(about) = command.get_about() {
        bare = bare.about(about.clone());
    }
    if let Some(text) = command.get_after_help() {
        bare = bare.after_help(text.clone());
    }
    bare
}
