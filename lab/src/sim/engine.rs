//! Scenarios in virtual time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_base::{Instant, Reason};
use weft_runtime::LinkConfig;
use weft_runtime::sim::{Line, NodeCount, ProcessId, Spawn, Status, World};

use super::build::{Built, DIRECTORY, run_dir};
use crate::LabError;
use crate::engine::{Ended, Engine, Waited};
use crate::file::NodeKind;
use crate::host::SimNode;
use crate::lines::PartialLine;
use crate::outcome::ProcessOutcome;
use crate::output::LOGS;
use crate::plan::Plan;

/// How many nodes are named that have dropped packets for the same reason.
const NAMED_NODES: usize = 3;

/// The signal that stands for the end of a killed process.
const SIGKILL: i32 = 9;

/// A lab in the simulator, with its processes.
pub(super) struct Sim<'p> {
    plan: &'p Plan<'p>,
    built: Built,
    processes: BTreeMap<String, Started>,
    models: Vec<LinkConfig>,
    begin: Instant,
}

/// The last process of a name, and those that had the name before.
struct Started {
    node: usize,
    id: ProcessId,
    earlier: Vec<ProcessId>,
}

impl<'p> Sim<'p> {
    /// A lab that is built and in which no process runs yet.
    pub(super) fn new(plan: &'p Plan<'p>, built: Built) -> Self {
        let models = plan.lab.links.iter().map(|link| link.properties.model.clone()).collect();
        Self { plan, built, processes: BTreeMap::new(), models, begin: Instant::ZERO }
    }

    /// Lets time begin anew.
    pub(super) fn begin(&mut self) {
        self.begin = self.world().now();
    }

    pub(super) fn world(&self) -> &World {
        &self.built.world
    }

    /// What came of the processes by now.
    pub(super) fn outcomes(&self) -> Vec<ProcessOutcome> {
        let outcome = |(name, started): (&String, &Started)| ProcessOutcome {
            name: name.clone(),
            node: self.plan.node_name(started.node).to_owned(),
            status: match self.world().status(started.id) {
                Status::Exited(status) => Some(status),
                Status::Running | Status::Killed => None,
            },
            stdout: PathBuf::from(LOGS).join(format!("{name}.stdout")),
        };
        self.processes.iter().map(outcome).collect()
    }

    /// What all processes of a name have written to standard output and to standard error, one behind the
    /// other.
    pub(super) fn logs(&self) -> impl Iterator<Item = (&str, [String; 2])> {
        let reported = |id: ProcessId| lines(self.world(), id, |line| line.level.is_some());
        self.processes.iter().map(move |(name, started)| {
            let ids = || started.earlier.iter().chain([&started.id]).copied();
            let written = ids().map(|id| self.written(id)).collect();
            (name.as_str(), [written, ids().map(reported).collect()])
        })
    }

    /// What a process has written to standard output.
    fn written(&self, id: ProcessId) -> String {
        let printed = lines(self.world(), id, |line| line.level.is_none());
        printed + &String::from_utf8_lossy(&self.world().output(id))
    }

    /// How many packets were dropped for this reason, and where; `None` if none was.
    fn dropped(&self, reason: NodeCount) -> Option<String> {
        let count = |node: &usize| self.world().node_counters(self.built.nodes[*node]).get(reason);
        let nodes = || (0..self.built.nodes.len()).filter(|node| count(node) > 0);
        let total: u64 = nodes().map(|node| count(&node)).sum();
        let names = nodes().take(NAMED_NODES).map(|node| self.plan.node_name(node));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = if nodes().count() > NAMED_NODES { ", …" } else { "" };
        (total > 0).then(|| format!("{total} {} at {names}{more}", reason.name()))
    }

    fn id(&self, process: &str) -> Result<ProcessId, LabError> {
        let found = self.processes.get(process).map(|started| started.id);
        found.ok_or_else(|| LabError::Usage(format!("no process `{process}` was started")))
    }

    fn spawn(
        &mut self,
        name: &str,
        node: usize,
        make: impl FnOnce(&SimNode<'_>, weft_base::Random) -> Result<Spawn, String>,
    ) -> Result<(), LabError> {
        let node_name = self.plan.node_name(node);
        let sim_node = SimNode {
            name: node_name,
            run_dir: &run_dir(node_name),
            directory: Path::new(DIRECTORY),
        };
        let random = self.world().random(&format!("process/{name}"));
        let mut spawn = make(&sim_node, random)
            .map_err(LabError::system(format!("start {name} on node {node_name}")))?
            .in_directory(DIRECTORY);
        spawn.name = name.to_owned();
        let id = self.built.world.spawn(self.built.nodes[node], spawn);
        let mut earlier = Vec::new();
        if let Some(before) = self.processes.remove(name) {
            earlier = before.earlier;
            earlier.push(before.id);
        }
        self.processes.insert(name.to_owned(), Started { node, id, earlier });
        Ok(())
    }

    /// Lets everything happen that is due now.
    fn settle(&mut self) -> Result<(), LabError> {
        let now = self.world().now();
        self.built.world.run_until(now).map_err(runaway)
    }

    /// Runs until `is_done` finds something, nothing happens any more, or the time is up.
    fn run_until<T>(
        &mut self,
        timeout: Duration,
        mut is_done: impl FnMut(&World) -> Option<T>,
    ) -> Result<Option<T>, LabError> {
        self.settle()?;
        let until = self.world().now() + timeout;
        let mut done = None;
        self.built
            .world
            .run_while(|world| {
                done = is_done(world);
                done.is_none() && world.now() < until
            })
            .map_err(runaway)?;
        Ok(done.or_else(|| is_done(self.world())))
    }
}

fn runaway(error: weft_runtime::sim::WorldError) -> LabError {
    LabError::system("go on with the simulation")(error)
}

fn lines(world: &World, id: ProcessId, wanted: impl Fn(&Line) -> bool) -> String {
    let lines = world.lines(id).iter().filter(|line| wanted(line));
    lines.map(|line| format!("{}\n", line.text)).collect()
}

fn ended(world: &World, id: ProcessId) -> Option<Ended> {
    match world.status(id) {
        Status::Running => None,
        Status::Exited(status) => Some(Ended::Exited(status)),
        Status::Killed => Some(Ended::Killed(SIGKILL)),
    }
}

impl Engine for Sim<'_> {
    fn now(&self) -> Duration {
        self.world().now().since(self.begin)
    }

    fn start(&mut self, process: &str, node: usize, words: &[String]) -> Result<(), LabError> {
        let host = self.plan.host;
        // The first word is the host program, as was checked before.
        let words = words.get(1..).unwrap_or_default();
        self.spawn(process, node, |sim_node, random| {
            Ok(Spawn::new(process, host.command_process(sim_node, words, random)?))
        })
    }

    fn start_node(&mut self, node: usize) -> Result<(), LabError> {
        let (plan, NodeKind::Weft(_)) = (self.plan, &self.plan.lab.nodes[node].kind) else {
            return Ok(());
        };
        let config = plan.config(node).unwrap_or_default();
        let identity = plan.identity(node);
        self.spawn(plan.node_name(node), node, |sim_node, random| {
            plan.host.node_process(sim_node, config, identity, random)
        })
    }

    fn wait_output(
        &mut self,
        process: &str,
        text: &str,
        timeout: Duration,
    ) -> Result<Waited, LabError> {
        let id = self.id(process)?;
        let (mut seen, mut read, mut partial) = (0, 0, PartialLine::default());
        let result = self.run_until(timeout, |world| {
            let lines = world.lines(id);
            let in_lines = lines[seen..].iter().any(|line| line.text.contains(text));
            seen = lines.len();
            let written = world.output_from(id, read);
            read += written.len() as u64;
            if in_lines || !written.is_empty() && partial.extend(&written, text) {
                Some(Waited::Found)
            } else {
                ended(world, id).map(Waited::Ended)
            }
        })?;
        Ok(result.unwrap_or(Waited::TimedOut))
    }

    fn wait_exit(&mut self, process: &str, timeout: Duration) -> Result<Option<Ended>, LabError> {
        let id = self.id(process)?;
        self.run_until(timeout, |world| ended(world, id))
    }

    fn wait_until(&mut self, time: Duration) -> Result<(), LabError> {
        let until = self.begin + time;
        self.built.world.run_until(until).map_err(runaway)
    }

    fn ended(&mut self, process: &str) -> Option<Ended> {
        let id = self.id(process).ok()?;
        // A runaway shows again in the next step that waits.
        let _ = self.settle();
        ended(self.world(), id)
    }

    fn runs(&mut self, process: &str) -> bool {
        self.id(process).is_ok() && self.ended(process).is_none()
    }

    fn stop(&mut self, process: &str) {
        if let Ok(id) = self.id(process)
            && ended(self.world(), id).is_none()
        {
            self.built.world.stop(id);
        }
    }

    fn kill(&mut self, process: &str) {
        if let Ok(id) = self.id(process) {
            self.built.world.kill(id);
        }
    }

    fn set_cut(&mut self, link: usize, cut: bool) -> Result<(), LabError> {
        let (id, _) = self.built.links[link];
        if cut {
            self.built.world.cut(id)
        } else {
            self.built.world.mend(id)
        }
        Ok(())
    }

    fn set_loss(&mut self, link: usize, loss: u32) -> Result<(), LabError> {
        self.models[link].loss = loss;
        let (_, ends) = self.built.links[link];
        for end in ends {
            self.built.world.set_link(end, self.models[link].clone());
        }
        Ok(())
    }

    fn delete_interface(&mut self, link: usize, side: usize) -> Result<(), LabError> {
        let (_, ends) = self.built.links[link];
        self.built.world.delete_interface(ends[side]);
        Ok(())
    }

    fn difference(&mut self, files: &[PathBuf]) -> Result<Option<String>, LabError> {
        self.settle()?;
        let Some((first, others)) = files.split_first() else { return Ok(None) };
        let read = |path: &PathBuf| self.world().read_file(&Path::new(DIRECTORY).join(path));
        let wanted = match read(first) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Some(error.to_string())),
        };
        Ok(others.iter().find_map(|other| match read(other) {
            Ok(bytes) if bytes == wanted => None,
            Ok(bytes) => {
                let differs = wanted.iter().zip(&bytes).position(|(a, b)| a != b);
                let offset = differs.unwrap_or(wanted.len().min(bytes.len()));
                let (first, other) = (first.display(), other.display());
                Some(format!("the files {first} and {other} differ from byte {offset} on"))
            }
            Err(error) => Some(error.to_string()),
        }))
    }

    fn stdout(&mut self, process: &str) -> Result<String, LabError> {
        Ok(self.written(self.id(process)?))
    }

    fn drops(&self) -> String {
        let is_drop = |reason: &&NodeCount| reason.help().contains("drop: ");
        let reasons = NodeCount::ALL.iter().filter(is_drop);
        reasons.filter_map(|reason| self.dropped(*reason)).collect::<Vec<_>>().join("; ")
    }

    fn last_words(&mut self, process: &str) -> String {
        let Ok(id) = self.id(process) else { return String::new() };
        let lines = self.world().lines(id);
        let last = lines.iter().skip(lines.len().saturating_sub(3));
        last.map(|line| line.text.as_str()).collect::<Vec<_>>().join(" / ")
    }
}
