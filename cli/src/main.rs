//! The `weft` binary; see [`weft::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    weft::run(std::env::args_os())
}
