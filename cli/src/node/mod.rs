//! Nodes: their files, where they run, and `weft run`.

mod check;
pub(crate) mod component;
mod directory;
pub(crate) mod file;
pub(crate) mod include;
mod ports;
mod privileges;
mod processes;
mod program;
mod schema;
mod single;
mod users;

use std::path::Path;

use weft_base::Random;
use weft_runtime::{Level, real};
use weft_xip::forward::Limits;
use weft_xip::node::{PacketIo, Scope, Settings};

pub(crate) use directory::{
    XIA_SOCKET, base as base_directory, find_callable, find_socket, running as running_nodes,
};
pub use file::{NodeFileError, read_node_file};
pub(crate) use privileges::open_packet_socket;
pub(crate) use processes::{MANAGER, calls_sockets, finder_socket, history, manager_listeners};
pub use schema::node_schema;

use crate::args::RunArgs;
use crate::output::{Outcome, print_lines, say};

/// What the only process of a node is called in its log.
const XIA: &str = "xia";

/// `weft run`: checks the node file, then runs the node until it is told to stop.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let include::Loaded { text, parts } = include::read(&args.file)?;
    let told = |error: NodeFileError| match &parts {
        Some(tree) => error.original(tree).to_string(),
        None => error.to_string(),
    };
    let random = Random::from_seed(seed()?);
    let source = args.file.display().to_string();
    let file = file::parse(&source, &text).map_err(told)?;
    let directory = match &args.run_dir {
        Some(directory) => directory.clone(),
        None => directory::of_node(&file.name),
    };
    let identity = args.identity.as_deref().map(file::load_identity).transpose()?;
    let node = file.node(&directory, identity.as_ref(), random).map_err(told)?;
    file.check().map_err(told)?;
    if args.single && file.names_others() {
        return Err(format!(
            "{source} names programs or components besides the XIA stack, which are processes: run the \
             node without --single, or remove their statements"
        ));
    }
    if args.check {
        file.check_components().map_err(told)?;
        for sentence in file.lacks().map_err(told)? {
            say(&format!("{source}: warning: {sentence}"));
        }
        print_lines([format!("{source}: no mistakes found")])?;
        return Ok(0);
    }
    privileges::check(
        &file.name,
        &node.iter().flat_map(|node| node.interfaces()).collect::<Vec<_>>(),
    )?;
    directory::check_free(&directory, &file.name)?;
    ports::check(&file.name, node.iter().flat_map(|node| node.ports()))?;
    directory::make(&directory)?;
    if !args.single {
        return processes::run(&processes::Start {
            name: &file.name,
            directory: &directory,
            source: &source,
            text: &text,
            identity: file.identity(identity)?,
            verbose: args.verbose,
        });
    }
    // Without other components there is one.
    let Some(node) = node else { return Err(format!("{source} describes no XIA stack")) };
    say(&format!(
        "node {} runs in one process, for debugging: nothing is isolated from anything",
        file.name
    ));
    let level = if args.verbose { Level::Debug } else { Level::Info };
    let name = Some(XIA.to_owned());
    let engines = crate::registry::engines();
    let options = real::Options { level, name, engines, ..real::Options::default() };
    Ok(real::run(Box::new(single::Single::new(node)), options))
}

/// Fresh randomness from the operating system.
pub(crate) fn seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| format!("the operating system gives no randomness: {error}"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The settings of an XIA stack in the run directory of its node.
pub(crate) fn xia_settings(name: &str, directory: &Path, operator: u32) -> Settings {
    Settings {
        name: name.to_owned(),
        socket: directory.join(XIA_SOCKET),
        limits: Limits::default(),
        echo: true,
        packet_io: PacketIo::default(),
        scope: Scope::default(),
        operator,
        key: None,
    }
}
