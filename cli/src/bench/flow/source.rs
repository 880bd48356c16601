//! The other process: sends as fast as it can, or sends back what it gets, until nobody wants it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::JoinHandle;

use super::ends::Carrier;
use crate::output::Outcome;

/// What the other process is to do; it is started by `weft bench flow` alone.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// Where to connect
    #[arg(long)]
    pub(super) socket: PathBuf,
    /// By what
    #[arg(long)]
    pub(super) carrier: Carrier,
    /// Bytes per message
    #[arg(long)]
    pub(super) size: usize,
    /// Send back what comes instead
    #[arg(long)]
    pub(super) echo: bool,
}

/// Carries that out.
pub(crate) fn run(args: &SourceArgs) -> Outcome {
    let mut end = args.carrier.connect(&args.socket)?;
    let mut message = vec![7; args.size];
    if args.echo {
        while let Some(len) = end.receive(&mut message) {
            if !end.send(&message[..len]) {
                break;
            }
        }
    } else {
        while end.send(&message) {}
    }
    Ok(0)
}

/// Where it runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Process,
    /// Where there is no weft to start: in tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    Thread,
}

/// It, while it runs. It ends when its connection does.
pub(super) enum Source {
    Process(Child),
    Thread(JoinHandle<Outcome>),
}

impl Place {
    pub(super) fn start(self, args: &SourceArgs) -> Result<Source, String> {
        match self {
            Self::Process => {
                let weft = std::env::current_exe().map_err(|e| format!("where is weft? {e}"))?;
                start(&weft, args).map(Source::Process)
            }
            Self::Thread => {
                let args = args.clone();
                Ok(Source::Thread(std::thread::spawn(move || run(&args))))
            }
        }
    }
}

fn start(weft: &Path, args: &SourceArgs) -> Result<Child, String> {
    let carrier = clap::ValueEnum::to_possible_value(&args.carrier);
    Command::new(weft)
        .arg("bench-flow-source")
        .arg("--socket")
        .arg(&args.socket)
        .args(["--carrier", carrier.as_ref().map_or("", |value| value.get_name())])
        .args(["--size", &args.size.to_string()])
        .args(args.echo.then_some("--echo"))
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", weft.display()))
}

impl Source {
    /// Waits for its end; the connection has to be closed.
    pub(super) fn finish(self) -> Result<(), String> {
        match self {
            Self::Process(mut child) => match child.wait() {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("the other process failed: {status}")),
                Err(error) => Err(format!("the other process is lost: {error}")),
            },
            Self::Thread(thread) => match thread.join() {
                Ok(outcome) => outcome.map(drop),
                Err(_) => Err("the other thread panicked".to_owned()),
            },
        }
    }
}
