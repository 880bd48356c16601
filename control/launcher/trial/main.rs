//! What the tests of the launcher run in the place of the binary `weft`: a launcher, a manager that relays
//! what a test wants, and an agent that does what it is told.

#![allow(clippy::unwrap_used, reason = "a test's process fails by panicking")]

mod agent;
mod manager;
mod raw;
mod relay;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use weft_launcher::protocol::{ListenerKind, ListenerSpec};
use weft_launcher::{Config, Sandbox, inherited, isolate};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["launcher", run_directory] => launcher(run_directory.into()),
        ["component", class, "--instance", _, tail @ ..] => component(class, tail),
        _ => {
            eprintln!("not for use by hand: {arguments:?}");
            ExitCode::from(64)
        }
    }
}

/// A node whose manager can be spoken to at `manager.sock`.
fn launcher(run_directory: PathBuf) -> ExitCode {
    let name = run_directory.file_name().unwrap().to_str().unwrap();
    let mut config = Config::new(name, run_directory.clone(), std::env::current_exe().unwrap());
    config.grace = Duration::from_secs(30);
    config.manager_failures = 3;
    config.manager_directories = vec![run_directory.with_extension("conf")];
    config.manager_listeners = vec![ListenerSpec {
        path: run_directory.join("manager.sock").to_str().unwrap().to_owned(),
        kind: ListenerKind::Seqpacket,
        mode: 0o600,
        group: None,
    }];
    if let Ok(arguments) = std::env::var("TRIAL_MANAGER") {
        config.manager_arguments = arguments.split_whitespace().map(Into::into).collect();
    }
    match weft_launcher::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn component(class: &str, tail: &[&str]) -> ExitCode {
    if let ["status", number] = tail {
        return ExitCode::from(number.parse::<u8>().unwrap());
    }
    let inherited = inherited().unwrap();
    let sandbox = Sandbox::from_environment().unwrap().unwrap();
    let missing = isolate::enter(&sandbox).unwrap();
    match class {
        "manager" => manager::run(inherited),
        _ => agent::run(inherited, &sandbox, &missing),
    }
}
