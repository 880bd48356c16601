//! Scenarios in network namespaces.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weft_runtime::BILLION;

use super::links;
use super::network::Network;
use super::process::{Running, Start};
use super::watch::Watch;
use crate::LabError;
use crate::engine::{Ended, Engine, Waited};
use crate::file::NodeKind;
use crate::outcome::ProcessOutcome;
use crate::output::{self, LOGS, Output};
use crate::plan::{PROGRAM, Plan};
use crate::trace::LONGEST_ANSWER;

/// By this variable commands find the stack of their node.
pub(crate) const RUN_DIR_VARIABLE: &str = "WEFT_RUN_DIR";

/// A lab in network namespaces, with its processes.
pub(crate) struct Netns<'p> {
    plan: &'p Plan<'p>,
    output: Output,
    /// Before the processes: taking it down lets them end by themselves.
    network: Network<'p>,
    processes: BTreeMap<String, Started>,
    begin: Instant,
    /// The present loss of links, apart from cuts.
    loss: BTreeMap<usize, u32>,
    cut: BTreeMap<usize, bool>,
    /// Last, so that no signal disturbs the end.
    watch: Watch,
}

struct Started {
    node: String,
    running: Running,
}

impl<'p> Netns<'p> {
    /// A lab whose network is built and in which no process runs yet.
    pub(crate) fn new(
        plan: &'p Plan<'p>,
        network: Network<'p>,
        output: Output,
        watch: Watch,
    ) -> Self {
        let loss = plan.lab.links.iter().map(|link| link.properties.model.loss).enumerate();
        Self {
            plan,
            output,
            watch,
            processes: BTreeMap::new(),
            begin: Instant::now(),
            loss: loss.collect(),
            cut: BTreeMap::new(),
            network,
        }
    }

    /// Lets time begin anew.
    pub(crate) fn begin(&mut self) {
        self.begin = Instant::now();
    }

    /// Where files and logs are.
    pub(crate) fn output(&self) -> &Path {
        self.output.path()
    }

    /// Takes the lab down and reports what went wrong.
    pub(crate) fn take_down(self) -> Result<(), LabError> {
        self.network.take_down()
    }

    /// Lets the lab stay, with its processes, when this value is dropped.
    pub(crate) fn stay(mut self) -> Result<(), LabError> {
        self.network.stay()?;
        for started in self.processes.values_mut() {
            started.running.leave();
        }
        Ok(())
    }

    /// What came of the processes by now.
    pub(crate) fn outcomes(&mut self) -> Vec<ProcessOutcome> {
        let outcome = |(name, started): (&String, &mut Started)| ProcessOutcome {
            name: name.clone(),
            node: started.node.clone(),
            status: match started.running.ended() {
                Some(Ended::Exited(status)) => Some(status),
                _ => None,
            },
            stdout: PathBuf::from(LOGS).join(format!("{name}.stdout")),
        };
        self.processes.iter_mut().map(outcome).collect()
    }

    fn running(&mut self, process: &str) -> Result<&mut Running, LabError> {
        let found = self.processes.get_mut(process).map(|started| &mut started.running);
        found.ok_or_else(|| LabError::Usage(format!("no process `{process}` was started")))
    }

    fn deadline(&self, timeout: Duration) -> Option<Instant> {
        // A time that cannot be represented never comes.
        Instant::now().checked_add(timeout)
    }

    /// The program and arguments of a command; `weft` is the host program.
    fn resolve(&self, words: &[String]) -> Vec<OsString> {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        if let Some(first) = words.first_mut().filter(|first| *first == PROGRAM) {
            *first = self.plan.host.program().into();
        }
        words
    }

    fn spawn(&mut self, process: &str, node: usize, words: Vec<OsString>) -> Result<(), LabError> {
        let name = self.plan.node_name(node);
        let start = Start {
            namespace: self.network.namespace(node),
            words,
            directory: self.output.path(),
            environment: vec![(RUN_DIR_VARIABLE, self.network.directory().node(name).into())],
            log: self.output.log(process),
        };
        let running = Running::start(start)?;
        let pid = running.id();
        self.processes.insert(process.to_owned(), Started { node: name.to_owned(), running });
        self.network.note_process(process, name, pid)
    }

    /// Writes the configuration of a weft node and what else it needs; its command.
    fn prepare_stack(&self, node: usize, config: &str) -> Result<Vec<OsString>, LabError> {
        let name = self.plan.node_name(node);
        let run_dir = self.network.directory().node(name);
        fs::create_dir_all(&run_dir).map_err(LabError::disk("make the directory", &run_dir))?;
        let path = self.network.directory().path().join(format!("{name}.conf"));
        fs::write(&path, config).map_err(LabError::disk("write", &path))?;
        let host = self.plan.host;
        host.prepare(name, &run_dir, self.plan.identity(node))
            .map_err(LabError::system(format!("prepare node {name}")))?;
        let mut words = vec![host.program().into()];
        words.extend(host.node_arguments(&path, &run_dir));
        Ok(words)
    }

    fn apply_loss(&mut self, link: usize) -> Result<(), LabError> {
        let cut = self.cut.get(&link).copied().unwrap_or_default();
        let loss = self.loss.get(&link).copied().unwrap_or_default();
        let loss = if cut { BILLION } else { loss };
        links::set_loss(self.plan, link, loss, self.network.ends(link))
    }
}

impl Engine for Netns<'_> {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn start(&mut self, process: &str, node: usize, words: &[String]) -> Result<(), LabError> {
        self.watch.check()?;
        self.spawn(process, node, self.resolve(words))
    }

    fn start_node(&mut self, node: usize) -> Result<(), LabError> {
        self.watch.check()?;
        let words = match &self.plan.lab.nodes[node].kind {
            NodeKind::Weft(_) => {
                self.prepare_stack(node, self.plan.config(node).unwrap_or_default())?
            }
            NodeKind::Command { run, .. } => self.resolve(&self.plan.words(run)),
            NodeKind::Linux => return Ok(()),
        };
        self.spawn(self.plan.node_name(node), node, words)
    }

    fn wait_output(
        &mut self,
        process: &str,
        text: &str,
        timeout: Duration,
    ) -> Result<Waited, LabError> {
        let deadline = self.deadline(timeout);
        let mut lines = self.running(process)?.lines();
        loop {
            // In this order: what a process wrote before its end is found.
            let ended = self.running(process)?.ended();
            if lines.find(text) {
                return Ok(Waited::Found);
            }
            if let Some(ended) = ended {
                return Ok(Waited::Ended(ended));
            }
            if is_over(deadline) {
                return Ok(Waited::TimedOut);
            }
            let handle = self.processes.get(process).map(|started| started.running.handle());
            let handles: Vec<BorrowedFd<'_>> = handle.into_iter().collect();
            self.watch.wait(&handles, deadline)?;
        }
    }

    fn wait_exit(&mut self, process: &str, timeout: Duration) -> Result<Option<Ended>, LabError> {
        let deadline = self.deadline(timeout);
        loop {
            if let Some(ended) = self.running(process)?.ended() {
                return Ok(Some(ended));
            }
            if is_over(deadline) {
                return Ok(None);
            }
            let handle = self.processes.get(process).map(|started| started.running.handle());
            let handles: Vec<BorrowedFd<'_>> = handle.into_iter().collect();
            self.watch.wait(&handles, deadline)?;
        }
    }

    fn wait_until(&mut self, time: Duration) -> Result<(), LabError> {
        let deadline = self.begin.checked_add(time);
        while !is_over(deadline) {
            self.watch.wait(&[], deadline)?;
        }
        Ok(())
    }

    fn ended(&mut self, process: &str) -> Option<Ended> {
        self.processes.get_mut(process)?.running.ended()
    }

    fn stop(&mut self, process: &str) {
        if let Some(started) = self.processes.get_mut(process) {
            started.running.signal(Signal::TERM);
        }
    }

    fn kill(&mut self, process: &str) {
        if let Some(started) = self.processes.get_mut(process) {
            started.running.kill();
        }
    }

    fn set_cut(&mut self, link: usize, cut: bool) -> Result<(), LabError> {
        self.cut.insert(link, cut);
        self.apply_loss(link)
    }

    fn set_loss(&mut self, link: usize, loss: u32) -> Result<(), LabError> {
        self.loss.insert(link, loss);
        self.apply_loss(link)
    }

    fn delete_interface(&mut self, link: usize, side: usize) -> Result<(), LabError> {
        self.network.delete_interface(link, side)
    }

    fn difference(&mut self, files: &[PathBuf]) -> Result<Option<String>, LabError> {
        Ok(output::difference(self.output.path(), files))
    }

    fn stdout(&mut self, process: &str) -> Result<String, LabError> {
        self.running(process)?.stdout(LONGEST_ANSWER)
    }

    fn last_words(&mut self, process: &str) -> String {
        self.processes.get(process).map_or(String::new(), |started| started.running.last_words())
    }
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}
