//! Scenarios in network namespaces.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weft_runtime::BILLION;

use super::environment::environment;
use super::links::{self, Kind};
use super::manage;
use super::namespace::Namespace;
use super::network::Network;
use super::process::{Running, Start};
use super::watch::Watch;
use crate::LabError;
use crate::capture::Capture;
use crate::engine::{Ended, Engine, Waited};
use crate::file::{NodeKind, Router};
use crate::joiner::config::Config;
use crate::outcome::ProcessOutcome;
use crate::output::{self, LOGS, Output};
use crate::plan::{PROGRAM, Plan};
use crate::router;
use crate::trace::LONGEST_ANSWER;

/// The process that joins user-space links. No name in a file has a point.
const JOINER: &str = "lab.links";
/// Where it finds what to do, in the lab's directory.
const LINKS_DIRECTORY: &str = ".links";
const JOINER_TIMEOUT: Duration = Duration::from_secs(30);

/// A lab in network namespaces, with its processes.
pub(crate) struct Netns<'p> {
    plan: &'p Plan<'p>,
    /// Before the processes: taking it down lets them end by themselves.
    network: Network<'p>,
    processes: BTreeMap<String, Started>,
    begin: Instant,
    /// The present loss of links, apart from cuts.
    loss: BTreeMap<usize, u32>,
    cut: BTreeMap<usize, bool>,
    capture: Option<Capture>,
    /// What the process works by that joins user-space links, and the file that tells it so.
    joined: Option<(Config, PathBuf)>,
    /// After all that may write there.
    output: Output,
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
            capture: None,
            joined: None,
            network,
        }
    }

    /// Begins to write all packets into a file.
    pub(crate) fn start_capture(&mut self, path: &Path) -> Result<(), LabError> {
        let targets = manage::targets(self.network.state(), &[])?;
        self.capture = Some(Capture::start(path, &targets)?);
        Ok(())
    }

    /// Ends the capture, if there is one.
    pub(crate) fn finish_capture(&mut self) -> Result<(), LabError> {
        self.capture.take().map_or(Ok(()), |capture| capture.finish().map(drop))
    }

    /// Starts the process that joins user-space links, if there are any.
    pub(crate) fn join_links(&mut self) -> Result<(), LabError> {
        let links: Vec<_> = self.network.user_space_links().collect();
        if links.is_empty() {
            return Ok(());
        }
        let directory = self.network.directory().path().join(LINKS_DIRECTORY);
        fs::create_dir_all(&directory).map_err(LabError::disk("make the directory", &directory))?;
        let path = directory.join("links.json");
        let joined = |link: &usize| links::joined(self.plan, *link);
        let config = Config { generation: 0, links: links.iter().map(joined).collect() };
        config.write(&path)?;
        let mut words = vec![self.plan.host.program().into()];
        words.extend(self.plan.host.link_arguments());
        words.push(path.clone().into());
        let namespace = self.network.link_namespace();
        self.spawn(JOINER, "", &namespace, words)?;
        self.expect_joined(&config)?;
        self.joined = Some((config, path));
        Ok(())
    }

    /// Waits until the joining process works by this configuration.
    fn expect_joined(&mut self, config: &Config) -> Result<(), LabError> {
        match self.wait_output(JOINER, &config.report(), JOINER_TIMEOUT)? {
            Waited::Found => Ok(()),
            Waited::Ended(ended) => Err(LabError::System {
                action: "join the user-space links".to_owned(),
                reason: format!("their process {ended}: {}", self.last_words(JOINER)),
            }),
            Waited::TimedOut => Err(LabError::System {
                action: "join the user-space links".to_owned(),
                reason: "their process does not answer".to_owned(),
            }),
        }
    }

    /// Lets time begin anew.
    pub(crate) fn begin(&mut self) {
        self.begin = Instant::now();
    }

    /// The name by which others find the lab.
    pub(crate) fn name(&self) -> String {
        self.network.state().full_name()
    }

    /// Where files and logs are.
    pub(crate) fn output(&self) -> &Path {
        self.output.path()
    }

    /// Takes the lab down and reports what went wrong, and whether the user has ended the lab
    /// meanwhile.
    pub(crate) fn take_down(self) -> (Result<(), LabError>, Result<(), LabError>) {
        let removed = self.network.take_down();
        drop(self.processes);
        (removed, self.watch.end())
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

    /// Waits until a process has written something or ended; it may return earlier.
    fn wait_for(&mut self, process: &str, deadline: Option<Instant>) -> Result<(), LabError> {
        let handle = self.processes.get(process).map(|started| started.running.handle());
        self.watch.wait(handle.as_slice(), deadline)
    }

    /// The program and arguments of a command; `weft` is the host program.
    fn resolve(&self, words: &[String]) -> Vec<OsString> {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        if let Some(first) = words.first_mut().filter(|first| *first == PROGRAM) {
            *first = self.plan.host.program().into();
        }
        words
    }

    fn spawn_on(
        &mut self,
        process: &str,
        node: usize,
        words: Vec<OsString>,
    ) -> Result<(), LabError> {
        let namespace = self.network.namespace(node).clone();
        self.spawn(process, self.plan.node_name(node), &namespace, words)
    }

    fn spawn(
        &mut self,
        process: &str,
        node: &str,
        namespace: &Namespace,
        words: Vec<OsString>,
    ) -> Result<(), LabError> {
        let start = Start {
            namespace,
            words,
            directory: self.output.path(),
            environment: environment(
                &self.network.directory().node(node),
                self.plan.host.program(),
            ),
            log: self.output.log(process),
        };
        let running = Running::start(start)?;
        let pid = running.id();
        self.processes.insert(process.to_owned(), Started { node: node.to_owned(), running });
        self.network.note_process(process, node, pid)
    }

    /// Writes the configuration of a weft node and what else it needs; its command.
    fn prepare_stack(&self, node: usize, config: &str) -> Result<Vec<OsString>, LabError> {
        let name = self.plan.node_name(node);
        let run_dir = self.network.directory().node(name);
        let host = self.plan.host;
        let path = self.network.directory().path().join(format!("{name}.conf"));
        // A node that is started again keeps what it had.
        if !run_dir.exists() {
            fs::create_dir(&run_dir).map_err(LabError::disk("make the directory", &run_dir))?;
            fs::write(&path, config).map_err(LabError::disk("write", &path))?;
            host.prepare(name, &run_dir, self.plan.identity(node))
                .map_err(LabError::system(format!("prepare node {name}")))?;
        }
        let mut words = vec![host.program().into()];
        words.extend(host.node_arguments(&path, &run_dir));
        Ok(words)
    }

    /// Writes what the process has to know that starts a router of others; its command.
    fn prepare_router(&self, node: usize, router: &Router) -> Result<Vec<OsString>, LabError> {
        let name = self.plan.node_name(node);
        let run_dir = self.network.directory().node(name);
        fs::create_dir_all(&run_dir).map_err(LabError::disk("make the directory", &run_dir))?;
        let config = self.output.path().join(output::router_config(name));
        let path = self.network.directory().router(name);
        router::Config::new(router, config, run_dir).write(&path)?;
        let host = self.plan.host;
        let mut words = vec![host.program().into()];
        words.extend(host.router_arguments());
        words.push(path.into());
        Ok(words)
    }

    fn apply_loss(&mut self, link: usize) -> Result<(), LabError> {
        let cut = self.cut.get(&link).copied().unwrap_or_default();
        let loss = self.loss.get(&link).copied().unwrap_or_default();
        match self.network.link_kind(link) {
            Kind::Kernel => {
                let loss = if cut { BILLION } else { loss };
                links::set_loss(self.plan, link, loss, self.network.ends(link))
            }
            Kind::UserSpace => self.change_joined(link, loss, cut),
        }
    }

    fn change_joined(&mut self, link: usize, loss: u32, cut: bool) -> Result<(), LabError> {
        let place = self.network.user_space_links().position(|other| other == link);
        let (Some(place), Some((mut config, path))) = (place, self.joined.take()) else {
            return Ok(());
        };
        (config.links[place].loss, config.links[place].cut) = (loss, cut);
        config.generation += 1;
        let result = config.write(&path).and_then(|()| self.expect_joined(&config));
        self.joined = Some((config, path));
        result
    }
}

impl Engine for Netns<'_> {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn start(&mut self, process: &str, node: usize, words: &[String]) -> Result<(), LabError> {
        self.watch.check()?;
        self.spawn_on(process, node, self.resolve(words))
    }

    fn start_node(&mut self, node: usize) -> Result<(), LabError> {
        self.watch.check()?;
        let words = match &self.plan.lab.nodes[node].kind {
            NodeKind::Weft(_) => {
                self.prepare_stack(node, self.plan.config(node).unwrap_or_default())?
            }
            NodeKind::Command { run, .. } => self.resolve(&self.plan.words(run)),
            NodeKind::Router(router) => self.prepare_router(node, router)?,
            NodeKind::Linux => return Ok(()),
        };
        self.spawn_on(self.plan.node_name(node), node, words)
    }

    fn wait_output(
        &mut self,
        process: &str,
        text: &str,
        timeout: Duration,
    ) -> Result<Waited, LabError> {
        let deadline = after(timeout);
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
            self.wait_for(process, deadline)?;
        }
    }

    fn wait_exit(&mut self, process: &str, timeout: Duration) -> Result<Option<Ended>, LabError> {
        let deadline = after(timeout);
        loop {
            if let Some(ended) = self.running(process)?.ended() {
                return Ok(Some(ended));
            }
            if is_over(deadline) {
                return Ok(None);
            }
            self.wait_for(process, deadline)?;
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

    fn runs(&mut self, process: &str) -> bool {
        self.processes.get_mut(process).is_some_and(|started| started.running.ended().is_none())
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

/// When the time is up; a time that cannot be represented never comes.
fn after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}
