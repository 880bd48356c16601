//! `weft configure`: editing the configuration of a running node.
//!
//! Reference: the operator's shell of XORP (xorpsh, see Handley et al., §3) and of Junos, whose commands
//! these are: the candidate is edited, compared and committed.
//!
//! Commands come from `-c`, from standard input, or from a person at a terminal, whom `terminal` helps
//! with completion and history.

mod command;
mod save;
mod session;
mod terminal;

use std::io::{BufRead, IsTerminal};

use crate::call::{CallableArgs, Reach};
use crate::output::{Outcome, print_lines};
use session::{Next, Session};

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigureArgs {
    /// A command; may be given several times. Without any they are read from standard input
    #[arg(short, long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// Take the lock from whoever has it, whose edits are lost; for root
    #[arg(long)]
    steal: bool,
    #[command(flatten)]
    node: CallableArgs,
}

pub(crate) fn run(args: &ConfigureArgs) -> Outcome {
    let session = Session::begin(&Reach::find(&args.node)?, args.steal)?;
    if !args.commands.is_empty() {
        return script(&session, args.commands.iter().map(|line| Ok(line.clone())));
    }
    if std::io::stdin().is_terminal() {
        terminal::run(session)?;
        return Ok(0);
    }
    let lines = std::io::stdin().lock().lines();
    script(&session, lines.map(|line| line.map_err(|error| format!("standard input: {error}"))))
}

/// Carries out commands until one fails.
fn script(session: &Session, lines: impl Iterator<Item = Result<String, String>>) -> Outcome {
    for (number, line) in (1..).zip(lines) {
        let line = line?;
        let done = session.command(&line);
        match done.map_err(|error| format!("command {number}, `{}`: {error}", line.trim()))? {
            Next::Said(text) => print_lines(text.lines())?,
            Next::End => break,
        }
    }
    session.end()?;
    Ok(0)
}
