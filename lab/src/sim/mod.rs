//! The engine for virtual time: the same lab files, thousands of nodes, one process.
//!
//! `linux` nodes are IPv4 and UDP forwarders; programs other than the host's own are refused.

mod build;
mod check;
mod engine;
mod launcher;

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use weft_runtime::sim::{Direction, World};

use crate::LabError;
use crate::capture::pcapng::{Way, Writer};
use crate::engine::Engine;
use crate::file::Scenario;
use crate::outcome::{Observer, Outcome, Progress, nanos};
use crate::output::Output;
use crate::plan::Plan;
use crate::run::Options;
use crate::scenario;
use build::Built;
use engine::Sim;
pub use launcher::{Maker, SimLauncher, Starting};

/// Builds the lab, starts its nodes and runs the scenario.
pub(crate) fn run(
    plan: &Plan<'_>,
    scenario: &Scenario,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Outcome, LabError> {
    check::check(plan, scenario)?;
    let (nodes, links) = (plan.lab.nodes.len(), plan.lab.links.len());
    observer.see(Duration::ZERO, Progress::Building { nodes, links });
    let output = Output::make_empty(&options.output_of(plan.lab))?;
    let mut built = build::build(plan)?;
    let capture = options.capture.as_deref().map(|path| capture(plan, &mut built, path));
    let capture = capture.transpose()?;
    let mut engine = Sim::new(plan, built);
    if let Err(error) = scenario::start_nodes(plan, &mut engine) {
        // Why a node did not start stands in what it has written; that reason comes first.
        let _ = keep(&engine, &output, capture.as_ref());
        return Err(error);
    }
    observer.see(Duration::ZERO, Progress::Up { name: plan.lab.name() });
    engine.begin();
    let (steps, result) = scenario::run(plan, scenario, &mut engine, observer);
    keep(&engine, &output, capture.as_ref())?;
    Ok(Outcome {
        lab: plan.lab.name().to_owned(),
        engine: "sim",
        scenario: scenario.name.value.as_str().to_owned(),
        seed: plan.lab.seed,
        error: result.err().map(|error| error.to_string()),
        steps,
        processes: engine.outcomes(),
        time_ns: nanos(engine.now()),
        trace_hash: Some(format!("{:016x}", engine.world().trace_hash())),
        output: output.path().to_owned(),
    })
}

/// Writes what is left of a run.
fn keep(engine: &Sim<'_>, output: &Output, capture: Option<&Capture>) -> Result<(), LabError> {
    write_logs(engine, output)?;
    capture.map_or(Ok(()), Capture::finish)
}

fn write_logs(engine: &Sim<'_>, output: &Output) -> Result<(), LabError> {
    for (process, texts) in engine.logs() {
        for (extension, text) in [".stdout", ".stderr"].iter().zip(texts) {
            let mut path = output.log(process).into_os_string();
            path.push(extension);
            fs::write(&path, text).map_err(LabError::disk("write", &path))?;
        }
    }
    Ok(())
}

/// A capture that the world writes as it goes.
struct Capture {
    writer: Rc<RefCell<Writer<BufWriter<File>>>>,
    /// The first failure; what comes after it is not written.
    failure: Rc<RefCell<Option<io::Error>>>,
    path: std::path::PathBuf,
}

impl Capture {
    fn finish(&self) -> Result<(), LabError> {
        let flushed = self.writer.borrow_mut().flush();
        let result = self.failure.borrow_mut().take().map_or(flushed, Err);
        result.map_err(LabError::disk("write", &self.path))
    }
}

fn capture(plan: &Plan<'_>, built: &mut Built, path: &Path) -> Result<Capture, LabError> {
    let file = File::create(path).map_err(LabError::disk("write", path))?;
    // The world numbers interfaces in the order in which the links were made.
    let names: Vec<String> = (0..plan.lab.links.len())
        .flat_map(|link| [plan.end_name(link, 0), plan.end_name(link, 1)])
        .collect();
    let writer = Writer::new(BufWriter::new(file), names.iter().map(String::as_str));
    let writer = Rc::new(RefCell::new(writer.map_err(LabError::disk("write", path))?));
    let failure = Rc::new(RefCell::new(None));
    watch(&mut built.world, Rc::clone(&writer), Rc::clone(&failure));
    Ok(Capture { writer, failure, path: path.to_owned() })
}

fn watch(
    world: &mut World,
    writer: Rc<RefCell<Writer<BufWriter<File>>>>,
    failure: Rc<RefCell<Option<io::Error>>>,
) {
    world.on_packet(move |sighting| {
        if failure.borrow().is_some() {
            return;
        }
        let way = match sighting.direction {
            Direction::Received => Way::In,
            Direction::Sent => Way::Out,
        };
        // A world has fewer than 2^32 interfaces.
        let interface = sighting.interface.index() as u32;
        let time = sighting.time.as_nanos();
        let written = writer.borrow_mut().packet(interface, time, Some(way), sighting.bytes);
        *failure.borrow_mut() = written.err();
    });
}
