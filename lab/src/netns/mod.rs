//! The engine for real packets: one network namespace per node.
//!
//! Reference: network_namespaces(7), veth(4), ip-netns(8).

mod engine;
mod environment;
mod ip;
mod links;
mod manage;
mod namespace;
mod network;
mod process;
mod settings;
mod state;
mod teardown;
mod watch;

use std::time::Duration;

use crate::LabError;
use crate::engine::Engine;
use crate::file::Scenario;
use crate::outcome::{Observer, Outcome, Progress, nanos};
use crate::output::{LOGS, Output};
use crate::plan::Plan;
use crate::rootless::is_root;
use crate::run::Options;
use crate::scenario;
use engine::Netns;
use network::Network;
use teardown::Removed;

pub use manage::{LabStatus, NodeStatus, ProcessStatus};
pub(crate) use manage::{Target, ask_nodes, capture_targets, down, exec, lab_working_in, labs};
pub(crate) use state::STATE_VARIABLE;
pub(crate) use watch::{Watch, wait_readable};

/// Builds the lab, starts its nodes, runs the scenario and takes the lab down.
pub(crate) fn run(
    plan: &Plan<'_>,
    scenario: &Scenario,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Outcome, LabError> {
    let mut engine = build(plan, Some(scenario), options, observer)?;
    engine.begin();
    let (steps, result) = scenario::run(plan, scenario, &mut engine, observer);
    let time = engine.now();
    let result = result.and(engine.finish_capture());
    let processes = engine.outcomes();
    let output = engine.output().to_owned();
    observer.see(time, Progress::TakingDown);
    let (removed, interruption) = engine.take_down();
    // A signal that ended the scenario says more than one that came while it was taken down.
    let error = match (result.and(interruption), removed) {
        (Ok(()), Ok(())) => None,
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Some(error.to_string()),
        (Err(error), Err(left)) => Some(format!("{error}; and not all was removed: {left}")),
    };
    Ok(Outcome {
        lab: plan.lab.name().to_owned(),
        engine: "netns",
        scenario: scenario.name.value.as_str().to_owned(),
        seed: plan.lab.seed,
        error,
        steps,
        processes,
        time_ns: nanos(time),
        trace_hash: None,
        output,
    })
}

/// Fails without the privilege to make and to enter namespaces.
fn require_root() -> Result<(), LabError> {
    if is_root() {
        return Ok(());
    }
    Err(LabError::NotPermitted(
        "network namespaces need root: use sudo; `weft lab run` also works in a user namespace, and \
         with `--engine sim`"
            .into(),
    ))
}

/// Builds the lab, starts its nodes, and leaves it there. Returns the name by which it is found.
pub(crate) fn up(
    plan: &Plan<'_>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<String, LabError> {
    let engine = build(plan, None, options, observer)?;
    let name = engine.name();
    engine.stay().map(|()| name)
}

/// Builds the lab and starts its nodes.
fn build<'p>(
    plan: &'p Plan<'p>,
    scenario: Option<&Scenario>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Netns<'p>, LabError> {
    require_root()?;
    for Removed { name, result } in teardown::remove_stale()? {
        match result {
            Ok(()) => observer.see(Duration::ZERO, Progress::RemovedStale(&name)),
            // It does not stand in the way of this lab.
            Err(error) => observer.see(
                Duration::ZERO,
                Progress::Warning(&format!("what is left of lab {name} stays: {error}")),
            ),
        }
    }
    let (nodes, links) = (plan.lab.nodes.len(), plan.lab.links.len());
    observer.see(Duration::ZERO, Progress::Building { nodes, links });
    let output = Output::make(&options.output_of(plan.lab), plan)?;
    // Before the first namespace: a signal from here on takes the lab down.
    let mut watch = Watch::new(&output.path().join(LOGS))?;
    let network = Network::build(plan, scenario, output.path());
    watch.check()?;
    let network = network?;
    let name = network.state().full_name();
    let mut engine = Netns::new(plan, network, output, watch);
    if let Some(path) = &options.capture {
        engine.start_capture(path)?;
    }
    engine.join_links()?;
    scenario::start_nodes(plan, &mut engine)?;
    observer.see(Duration::ZERO, Progress::Up { name: &name });
    Ok(engine)
}
