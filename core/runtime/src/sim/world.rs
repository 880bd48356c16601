//! The world: its clock and the loop that runs it.
//!
//! One step is one entry of the agenda, one process with something in its inbox, or one background
//! slice, in this order of preference. So everything that is due at one time reaches the inboxes
//! before any process runs, and packets that come to one port at one time come in one event.
//! Background slices are for when nothing else is due at that time.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_base::{Counters, Instant, Random};

use super::agenda::{Clock, Due};
use super::channels::{ChannelConfig, ChannelCount, Channels};
use super::disk::Disk;
use super::error::WorldError;
use super::handles::Handles;
use super::ids::{NodeId, ProcessId};
use super::interfaces::Watchers;
use super::ip_watchers::IpWatchers;
use super::network::{Network, Sighting};
use super::node::NodeCount;
use super::process::{Slot, Waiting};
use super::streams::Streams;
use crate::{Action, DiskError};

/// The properties of a world as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldConfig {
    /// What all randomness of the world follows from.
    pub seed: u64,
    /// How channels between processes behave.
    pub channels: ChannelConfig,
    /// How long the disk takes for a request.
    pub disk_latency: Duration,
    /// How much virtual time a background slice costs its process. With zero, a process does all its
    /// background work at one point in time.
    pub slice_cost: Duration,
    /// How long a process may take to exit after [`World::stop`] before it is killed.
    pub stop_grace: Duration,
    /// After how many steps without progress in time the world counts as a runaway.
    pub max_steps_per_instant: u64,
    /// After how many steps in all it does.
    pub max_steps: u64,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            channels: ChannelConfig::default(),
            disk_latency: Duration::ZERO,
            slice_cost: Duration::ZERO,
            stop_grace: Duration::from_secs(10),
            max_steps_per_instant: 10_000_000,
            max_steps: u64::MAX,
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The condition no longer held.
    Condition,
    /// Nothing is ever going to happen any more.
    Idle,
}

/// A network of nodes with processes in virtual time.
///
/// Two worlds that are built and driven alike with the same seed take the same course, on any
/// machine and in any build; [`World::trace_hash`] tells.
pub struct World {
    pub(super) config: WorldConfig,
    pub(super) random: Random,
    pub(super) clock: Clock,
    pub(super) network: Network,
    pub(super) node_names: BTreeMap<String, NodeId>,
    pub(super) processes: Vec<Slot>,
    pub(super) channels: Channels,
    pub(super) handles: Handles,
    pub(super) streams: Streams,
    pub(super) watchers: Watchers,
    pub(super) ip_watchers: IpWatchers,
    pub(super) disk: Disk,
    pub(super) running: usize,
    /// Processes with something in their inbox.
    pub(super) ready: VecDeque<ProcessId>,
    /// Processes that wait for a background slice.
    pub(super) background: VecDeque<ProcessId>,
    /// Reused for the outputs of processes.
    pub(super) actions: Vec<Action>,
    steps: u64,
    steps_now: u64,
}

impl World {
    /// An empty world at time zero.
    #[must_use]
    pub fn new(config: WorldConfig) -> Self {
        Self {
            random: Random::from_seed(config.seed),
            clock: Clock::new(),
            network: Network::new(),
            node_names: BTreeMap::new(),
            processes: Vec::new(),
            channels: Channels::new(config.channels.clone()),
            handles: Handles::default(),
            streams: Streams::default(),
            watchers: Watchers::default(),
            ip_watchers: IpWatchers::default(),
            disk: Disk::new(),
            running: 0,
            ready: VecDeque::new(),
            background: VecDeque::new(),
            actions: Vec::new(),
            steps: 0,
            steps_now: 0,
            config,
        }
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// How many steps the world has made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A generator for something in this world, such as a process, that `label` names.
    #[must_use]
    pub fn random(&self, label: &str) -> Random {
        self.random.fork(label)
    }

    /// A number that stands for every packet that a node received from a link so far, and for what came to it on
    /// connections of TCP: when, which node, and all its bytes.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.network.trace.value()
    }

    /// Calls `observer` for every frame that passes an interface, in place of an earlier observer.
    pub fn on_packet(&mut self, observer: impl FnMut(&Sighting<'_>) + 'static) {
        self.network.observer = Some(Box::new(observer));
    }
}

/// # Running
impl World {
    /// Makes one step. Returns false if nothing is ever going to happen any more.
    ///
    /// # Errors
    /// [`WorldError::Runaway`] if the world has used up its steps.
    pub fn step(&mut self) -> Result<bool, WorldError> {
        self.check_bounds()?;
        if let Some((at, due)) = self.clock.pop_due() {
            self.happen(at, due);
        } else if let Some(process) = self.ready.pop_front() {
            self.run_process(process);
        } else if let Some(process) = self.background.pop_front() {
            self.run_slice(process);
        } else if let Some(at) = self.clock.next_at() {
            self.clock.advance(at);
            self.steps_now = 0;
        } else {
            return Ok(false);
        }
        self.steps += 1;
        self.steps_now += 1;
        Ok(true)
    }

    /// Runs everything that happens up to and at `until`, and moves the clock there.
    ///
    /// # Errors
    /// [`WorldError::Runaway`].
    pub fn run_until(&mut self, until: Instant) -> Result<(), WorldError> {
        while self.next_step_at().is_some_and(|at| at <= until) {
            self.step()?;
        }
        if self.now() < until {
            self.clock.advance(until);
            self.steps_now = 0;
        }
        Ok(())
    }

    /// Runs as long as `condition` holds and something happens. The condition is asked before each
    /// step, so it should be cheap; [`World::running`] is.
    ///
    /// # Errors
    /// [`WorldError::Runaway`].
    pub fn run_while(
        &mut self,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<Ended, WorldError> {
        while condition(self) {
            if !self.step()? {
                return Ok(Ended::Idle);
            }
        }
        Ok(Ended::Condition)
    }

    /// At what time the next step happens.
    fn next_step_at(&self) -> Option<Instant> {
        if self.ready.is_empty() && self.background.is_empty() {
            self.clock.next_at().map(|at| at.max(self.now()))
        } else {
            Some(self.now())
        }
    }

    fn check_bounds(&self) -> Result<(), WorldError> {
        let (steps, scope) = if self.steps_now >= self.config.max_steps_per_instant {
            (self.steps_now, "without any progress in time")
        } else if self.steps >= self.config.max_steps {
            (self.steps, "in all")
        } else {
            return Ok(());
        };
        let here = self.steps_now >= self.config.max_steps_per_instant;
        let calls = |slot: &Slot| match here {
            true if slot.calls_at == self.now() => slot.calls_now,
            true => 0,
            false => slot.calls,
        };
        let busiest = self.processes.iter().max_by_key(|slot| calls(slot));
        let (busiest, share) = match busiest {
            Some(slot) if calls(slot) > steps / 4 => (
                format!("process {} on node {}", slot.name, self.node_name(slot.node)),
                calls(slot),
            ),
            _ => ("the network between the processes".to_owned(), steps),
        };
        Err(WorldError::Runaway { steps, scope, time: self.now(), busiest, share })
    }

    fn happen(&mut self, at: Instant, due: Due) {
        match due {
            Due::Arrival(interface) => {
                self.network.arrive(&mut self.clock, interface, at);
                self.hand_over();
            }
            Due::Deadline(process) => self.deadline(process, at),
            Due::Slice(process) => self.background.push_back(process),
            Due::Grace(process) => self.kill(process),
            Due::Channel(end) => self.channel_arrival(end),
            Due::Stream(number) => self.stream_due(number),
            Due::Lent(number) => self.give_up_handle(number),
            Due::Disk(process) => {
                if let Some(answer) = self.processes[process.index()].disk_answers.pop_front() {
                    self.post(process, Waiting::Event(answer));
                }
            }
        }
    }

    fn deadline(&mut self, process: ProcessId, at: Instant) {
        let slot = &mut self.processes[process.index()];
        if slot.timer != Some(at) {
            return; // An earlier entry has taken its place.
        }
        slot.timer = None;
        self.post(process, Waiting::Tick);
    }
}

/// # Files and channels, seen from outside
impl World {
    /// Puts a file with this content at `path`, making its directories and replacing what is there.
    /// Processes cannot write to it if it is read-only.
    ///
    /// # Errors
    /// If a directory or a file is in the way.
    pub fn import(&mut self, path: &Path, bytes: &[u8], read_only: bool) -> Result<(), DiskError> {
        self.disk.import(path, bytes, read_only)
    }

    /// Shows the real file `real` at `path`, read-only. It is read where processes read it, and must
    /// not change while the world runs.
    ///
    /// # Errors
    /// [`WorldError::Import`].
    pub fn import_file(&mut self, path: &Path, real: &Path) -> Result<(), WorldError> {
        self.disk.import_file(path, real)
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn read_file(&self, path: &Path) -> Result<Vec<u8>, DiskError> {
        self.disk.content(path)
    }

    /// The paths of all files below a directory, in order.
    #[must_use]
    pub fn files_below(&self, directory: &Path) -> Vec<PathBuf> {
        self.disk.files_below(directory)
    }

    /// Sets how many bytes the files below `directory` may occupy, in whole pages of 4 KiB; `None`
    /// takes the quota away. A write that would exceed it fails as on a full disk, and changes
    /// nothing.
    pub fn set_quota(&mut self, directory: &Path, bytes: Option<u64>) {
        self.disk.set_quota(directory, bytes);
    }

    /// How many bytes of memory the complete pages of all files take; equal pages are kept once.
    #[must_use]
    pub fn disk_memory(&self) -> usize {
        self.disk.memory()
    }

    /// What the channels have counted.
    #[must_use]
    pub fn channel_counters(&self) -> &Counters<ChannelCount> {
        &self.channels.counters
    }

    /// How many packets wait at the ports of processes on a node. Zero between points in time.
    #[must_use]
    pub fn waiting_packets(&self, node: NodeId) -> usize {
        let slots = self.processes.iter().filter(|slot| slot.node == node);
        slots.flat_map(|slot| &slot.ports).map(|port| port.waiting.len()).sum()
    }

    /// The sum of one count over all nodes.
    #[must_use]
    pub fn total(&self, count: NodeCount) -> u64 {
        self.network.nodes.iter().map(|node| node.counters.get(count)).sum()
    }
}
