//! Nodes: their files, where they run, and `weft run`.

mod directory;
mod file;

use weft_base::Random;
use weft_runtime::{Level, real};

pub(crate) use directory::find_socket;
pub use file::{NodeFileError, read_node_file};

use crate::args::RunArgs;
use crate::output::Outcome;

/// `weft run`: checks the node file, then runs the node until it is told to stop.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let text = std::fs::read_to_string(&args.file)
        .map_err(|error| format!("cannot read the node file {}: {error}", args.file.display()))?;
    let random = Random::from_seed(seed()?);
    let source = args.file.display().to_string();
    let file = file::parse(&source, &text).map_err(|error| error.to_string())?;
    let directory = match &args.run_dir {
        Some(directory) => directory.clone(),
        None => directory::of_node(&file.name),
    };
    let node = file.node(&directory, random).map_err(|error| error.to_string())?;
    if args.check {
        println!("{source}: no mistakes found");
        return Ok(0);
    }
    directory::create(&directory)?;
    let level = if args.verbose { Level::Debug } else { Level::Info };
    let options = real::Options { level, ..real::Options::default() };
    Ok(real::run(Box::new(node), options))
}

/// Fresh randomness from the operating system.
pub(crate) fn seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| format!("the operating system gives no randomness: {error}"))?;
    Ok(u64::from_ne_bytes(bytes))
}
