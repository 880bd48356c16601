//! Running a scenario, the same way in every engine.

use std::path::PathBuf;
use std::time::Duration;

use crate::LabError;
use crate::engine::{Ended, Engine, Waited};
use crate::file::{Action, Node, NodeKind, Scenario, Step};
use crate::lines::last_lines;
use crate::outcome::{Observer, Progress, StepOutcome, nanos};
use crate::plan::Plan;
use crate::router;
use crate::trace;

/// How long a node may take until it is ready.
const NODE_READY: Duration = Duration::from_secs(60);

/// How long `until` waits before it runs its command again.
const AGAIN: Duration = Duration::from_millis(20);

/// Starts the processes of all nodes and waits until all are ready.
pub(crate) fn start_nodes(plan: &Plan<'_>, engine: &mut dyn Engine) -> Result<(), LabError> {
    let is_started = |node: &Node| node.has_process() && !node.is_deferred;
    let nodes = || (0..plan.lab.nodes.len()).filter(|node| is_started(&plan.lab.nodes[*node]));
    nodes().try_for_each(|node| engine.start_node(node))?;
    nodes().try_for_each(|node| {
        wait_ready(plan, engine, node, NODE_READY).map_err(|failure| match failure {
            Failure::Step(reason) => {
                LabError::System { action: "start the nodes".to_owned(), reason }
            }
            Failure::Lab(error) => error,
        })
    })
}

/// Why a step failed: for a reason of its own, or for one that ends the lab.
enum Failure {
    Step(String),
    Lab(LabError),
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

fn fail<T>(reason: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Step(reason.into()))
}

/// Runs the steps in order until one fails. The outcomes are those of the steps that were begun.
pub(crate) fn run(
    plan: &Plan<'_>,
    scenario: &Scenario,
    engine: &mut dyn Engine,
    observer: &mut dyn Observer,
) -> (Vec<StepOutcome>, Result<(), LabError>) {
    let mut outcomes = Vec::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        let begin = engine.now();
        let (number, of) = (index + 1, scenario.steps.len());
        observer.see(begin, Progress::Step { number, of, text: &step.text });
        let result = act(plan, engine, observer, &step.action);
        outcomes.push(StepOutcome {
            step: step.text.clone(),
            place: step.location.to_string(),
            begin_ns: nanos(begin),
            end_ns: nanos(engine.now()),
            succeeded: result.is_ok(),
        });
        if let Err(failure) = result {
            return (outcomes, Err(failed(step, failure, &engine.drops())));
        }
    }
    (outcomes, Ok(()))
}

fn failed(step: &Step, failure: Failure, drops: &str) -> LabError {
    let mut reason = match failure {
        Failure::Lab(interrupted @ LabError::Interrupted(_)) => return interrupted,
        Failure::Lab(error) => error.to_string(),
        Failure::Step(reason) => reason,
    };
    if !drops.is_empty() {
        reason += &format!("; packets dropped by nodes so far: {drops}");
    }
    LabError::Step { place: step.location.to_string(), step: step.text.clone(), reason }
}

fn act(
    plan: &Plan<'_>,
    engine: &mut dyn Engine,
    observer: &mut dyn Observer,
    action: &Action,
) -> Result<(), Failure> {
    match action {
        Action::Run { node, command, process } => {
            engine.start(process, *node, &plan.words(command))?;
        }
        Action::Exec { node, command, process, status, timeout } => {
            engine.start(process, *node, &plan.words(command))?;
            expect_exit(engine, process, *status, *timeout)?;
        }
        Action::Until { node, command, process, text, is_there, timeout } => {
            let (words, text) = (plan.words(command), plan.expand(text));
            until(engine, process, *node, &words, (&text, *is_there), *timeout)?;
        }
        Action::WaitOutput { process, text, timeout } => {
            expect_text(engine, process, &plan.expand(text), *timeout)?;
        }
        Action::WaitExit { process, status, timeout } => {
            expect_exit(engine, process, *status, *timeout)?;
        }
        Action::Start { node, timeout } => start(plan, engine, *node, *timeout)?,
        Action::Stop { process, timeout } => stop(engine, process, *timeout)?,
        Action::Restart { node, timeout } => {
            let begin = engine.now();
            stop(engine, plan.node_name(*node), *timeout)?;
            let left = timeout.saturating_sub(engine.now().saturating_sub(begin));
            start(plan, engine, *node, left)?;
        }
        Action::Kill { process } => engine.kill(process),
        Action::Cut { link } => engine.set_cut(*link, true)?,
        Action::Restore { link } => engine.set_cut(*link, false)?,
        Action::Loss { link, loss } => engine.set_loss(*link, *loss)?,
        Action::DeleteInterface { link, side } => engine.delete_interface(*link, *side)?,
        Action::At(time) => engine.wait_until(*time)?,
        Action::After(time) => engine.wait_until(engine.now() + *time)?,
        Action::ExpectOutput { process, text } => {
            expect_text(engine, process, &plan.expand(text), Duration::ZERO)?;
        }
        Action::ExpectRunning { process } => {
            if !engine.runs(process) {
                let end = engine.ended(process);
                let end = end.map_or("was not started".to_owned(), |ended| ended.to_string());
                return fail(format!("{process} {end}{}", quoted(&engine.last_words(process))));
            }
        }
        Action::ExpectFilesEqual { files } => {
            let files: Vec<_> = files.iter().map(|file| PathBuf::from(plan.expand(file))).collect();
            if let Some(difference) = engine.difference(&files)? {
                return fail(difference);
            }
        }
        Action::Trace { one_in } => trace::start(plan, engine, *one_in)?,
        Action::ShowTrace => {
            let visits = trace::collect_longest(plan, engine)?;
            observer.see(engine.now(), Progress::Say(&trace::longest_life(&visits)));
        }
        Action::Say { text } => observer.see(engine.now(), Progress::Say(&plan.expand(text))),
    }
    Ok(())
}

fn start(
    plan: &Plan<'_>,
    engine: &mut dyn Engine,
    node: usize,
    timeout: Duration,
) -> Result<(), Failure> {
    let name = plan.node_name(node);
    if engine.runs(name) {
        return fail(format!("{name} still runs: `stop {name};` or `kill {name};` ends it"));
    }
    engine.start_node(node)?;
    wait_ready(plan, engine, node, timeout)
}

/// Waits until the process of a node can be used.
fn wait_ready(
    plan: &Plan<'_>,
    engine: &mut dyn Engine,
    node: usize,
    timeout: Duration,
) -> Result<(), Failure> {
    let text = match &plan.lab.nodes[node].kind {
        NodeKind::Weft(_) => plan.host.ready(plan.config(node).unwrap_or_default()).to_owned(),
        NodeKind::Command { ready: Some(ready), .. } => plan.expand(ready),
        NodeKind::Router(_) => router::READY.to_owned(),
        NodeKind::Command { ready: None, .. } | NodeKind::Linux => return Ok(()),
    };
    expect_text(engine, plan.node_name(node), &text, timeout)
}

fn stop(engine: &mut dyn Engine, process: &str, timeout: Duration) -> Result<(), Failure> {
    engine.stop(process);
    match engine.wait_exit(process, timeout)? {
        Some(_) => Ok(()),
        None => fail(format!("{process} did not end within {timeout:?}; `kill` ends it at once")),
    }
}

fn expect_text(
    engine: &mut dyn Engine,
    process: &str,
    text: &str,
    timeout: Duration,
) -> Result<(), Failure> {
    let end = match engine.wait_output(process, text, timeout)? {
        Waited::Found => return Ok(()),
        Waited::Ended(ended) => format!("{process} {ended} without writing \"{text}\""),
        Waited::TimedOut if timeout.is_zero() => format!("{process} has not written \"{text}\""),
        Waited::TimedOut => format!("{process} did not write \"{text}\" within {timeout:?}"),
    };
    fail(end + &quoted(&engine.last_words(process)))
}

/// Runs a command until its standard output has the text, or, after a success, has it no more.
fn until(
    engine: &mut dyn Engine,
    process: &str,
    node: usize,
    words: &[String],
    (text, is_there): (&str, bool),
    timeout: Duration,
) -> Result<(), Failure> {
    let begin = engine.now();
    let mut last = String::new();
    loop {
        engine.start(process, node, words)?;
        let left = timeout.saturating_sub(engine.now().saturating_sub(begin));
        match engine.wait_exit(process, left)? {
            None => engine.kill(process),
            Some(ended) => {
                let said = engine.stdout(process)?;
                if said.contains(text) == is_there && (is_there || ended == Ended::Exited(0)) {
                    return Ok(());
                }
                let said = Some(last_lines(&said)).filter(|said| !said.is_empty());
                let said = said.unwrap_or_else(|| engine.last_words(process));
                last = format!("; at last it {ended}{}", quoted(&said));
            }
        }
        if engine.now().saturating_sub(begin) >= timeout {
            let wanted = if is_there { "write" } else { "succeed without writing" };
            return fail(format!(
                "the command did not {wanted} \"{text}\" within {timeout:?}{last}"
            ));
        }
        engine.wait_until(engine.now() + AGAIN)?;
    }
}

fn expect_exit(
    engine: &mut dyn Engine,
    process: &str,
    status: u8,
    timeout: Duration,
) -> Result<(), Failure> {
    let end = match engine.wait_exit(process, timeout)? {
        Some(Ended::Exited(found)) if found == status => return Ok(()),
        Some(ended) => format!("{process} {ended}, expected was status {status}"),
        None => format!("{process} did not end within {timeout:?}"),
    };
    fail(end + &quoted(&engine.last_words(process)))
}

/// What a process said last, to follow a message.
fn quoted(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; it said: {last_words}") }
}
