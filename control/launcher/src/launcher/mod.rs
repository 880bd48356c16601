//! The loop of the launcher: signals, the manager's requests, the ends of children, and deadlines.
//!
//! One thread, no privileges needed to wait. Nothing here decides what runs: that is the manager's. The
//! launcher decides what may run, and keeps the manager alive.
//!
//! Reference: poll(2), waitid(2), pidfd_open(2).

mod instances;
mod manager;
mod order;
mod places;
mod signals;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, kill_process_group, set_child_subreaper, waitpid};
use tracing::{debug, error, info, warn};

use crate::cgroup::ControlGroups;
use crate::channel;
use crate::config::{Config, LauncherError};
use crate::inherit::thread_count;
use crate::listeners::Listeners;
use crate::missing::Missing;
use crate::name::Name;
use crate::powers::Powers;
use crate::profile::Profile;
use crate::protocol::{Exit, Message};
use crate::store::Store;
use crate::sys::{self, Ended, How};
use crate::uids::{BLOCK, BLOCKS, Uids, hash};

use instances::Instances;
use manager::Manager;
use signals::{Arrived, Signals};

/// How many requests are handled before signals are looked at again.
const REQUESTS_PER_TURN: usize = 32;

/// Runs a node: starts its manager, serves it until a signal comes, and ends everything.
///
/// The calling process must have one thread, and do nothing else: `SIGTERM`, `SIGINT`, `SIGHUP` and
/// `SIGCHLD` are the launcher's, and every child of the process, adopted ones included. It gives up all
/// capabilities but those that starting and ending processes takes, and those of the FEA.
///
/// # Errors
/// The node cannot be set up (the run directory, the uids), or its manager does not stay alive. No
/// process of the node is left in either case.
pub fn run(config: Config) -> Result<(), LauncherError> {
    Launcher::new(config)?.run()
}

/// What users and control groups there are for the processes of a node, and what is missing of them.
pub(crate) fn survey() -> [(String, Vec<Missing>); 2] {
    let powers = Powers::find(Config::UID_BASE, BLOCK * BLOCKS);
    let users = if powers.users { "one for each process" } else { "the same for all processes" };
    let groups = ControlGroups::survey();
    let found = groups.found();
    [(users.to_owned(), powers.missing()), (found, groups.missing().to_vec())]
}

struct Launcher {
    base: Base,
    instances: Instances,
    manager: Manager,
    signals: Signals,
    ending: Option<Ending>,
}

/// What starting a process takes.
struct Base {
    config: Config,
    powers: Powers,
    uids: Option<Uids>,
    groups: ControlGroups,
    listeners: Listeners,
    store: Store,
    /// What isolation is missing, a sentence each.
    missing: Vec<String>,
    /// Last, so that the run directory is free only when its sockets are gone.
    _lock: std::fs::File,
}

/// The node is ending.
struct Ending {
    /// When what still runs is killed.
    deadline: Instant,
    /// Whether it is the manager's turn.
    only_manager: bool,
    error: Option<LauncherError>,
}

impl Launcher {
    fn new(config: Config) -> Result<Self, LauncherError> {
        let setup = LauncherError::Setup;
        if thread_count() != Some(1) {
            let why = "the launcher must run in a process with one thread, and /proc be mounted";
            return Err(setup(why.to_owned()));
        }
        let base = Base::set_up(config).map_err(setup)?;
        for missing in &base.missing {
            warn!("isolation is missing: {missing}");
        }
        let signals = Signals::watch()
            .map_err(|error| setup(format!("cannot watch for signals: {error}")))?;
        // Whatever children leave behind comes to the launcher, which reaps it.
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| setup(format!("cannot adopt children of children: {errno}")))?;
        Powers::shed(Profile::Fea.capabilities())
            .map_err(|errno| setup(format!("cannot give up capabilities: {errno}")))?;
        let (instances, manager) = (Instances::default(), Manager::default());
        Ok(Self { base, instances, manager, signals, ending: None })
    }

    fn run(mut self) -> Result<(), LauncherError> {
        loop {
            self.reap();
            self.act_on_time(Instant::now());
            if self.is_over() {
                let error = self.ending.take().and_then(|ending| ending.error);
                return error.map_or(Ok(()), Err);
            }
            self.wait().map_err(|errno| LauncherError::Wait(errno.into()))?;
            match self.signals.take() {
                Some(Arrived::End) => self.end(None),
                Some(Arrived::Child) | None => {}
            }
            self.serve_manager();
        }
    }

    /// Waits until something happens or is due.
    fn wait(&self) -> rustix::io::Result<()> {
        let mut fds: Vec<_> =
            self.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if let Some(link) = &self.manager.link {
            fds.push(PollFd::from_borrowed_fd(link.socket.as_fd(), link.interest()));
        }
        let due = [self.manager.start_at, self.instances.deadline(), self.deadline()];
        let timeout = due.into_iter().flatten().min().map(|due| {
            // Rounded up, so that it is due when the time is over.
            let left = due.saturating_duration_since(Instant::now()) + Duration::from_micros(1);
            Timespec {
                tv_sec: left.as_secs().min(3_600).cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.ending.as_ref().map(|ending| ending.deadline)
    }

    /// Does what is due.
    fn act_on_time(&mut self, now: Instant) {
        self.instances.kill_overdue(now);
        if self.ending.is_some() {
            return self.go_on_ending(now);
        }
        if self.manager.is_due(now)
            && let Err(error) = self.manager.start(&mut self.base, now)
        {
            error!("{error}");
            self.manager_died(error, now);
        }
    }

    /// Reads what the manager wants, and writes what it should know.
    fn serve_manager(&mut self) {
        for _ in 0..REQUESTS_PER_TURN {
            let Some(link) = self.manager.link.as_mut().filter(|link| link.takes_requests()) else {
                break;
            };
            match channel::receive(link.socket.as_fd()) {
                Ok(Some(received)) => self.request(received),
                Err(rustix::io::Errno::AGAIN) => break,
                // A manager that cannot be spoken to is as good as dead.
                Ok(None) | Err(_) => {
                    self.manager.link = None;
                    self.manager.kill();
                }
            }
        }
        if let Some(link) = &mut self.manager.link {
            link.flush();
        }
    }

    /// Takes note of every child that ended.
    fn reap(&mut self) {
        while let Some(ended) = sys::peek_ended() {
            // Whatever it left in its group goes with it; its id is still its own.
            let _ = kill_process_group(ended.pid, rustix::process::Signal::KILL);
            let reaped = waitpid(Some(ended.pid), WaitOptions::NOHANG);
            debug!(pid = ended.pid.as_raw_pid(), "a process ended");
            if self.manager.process.as_ref().is_some_and(|process| process.pid == ended.pid) {
                self.manager_ended(ended);
            } else if let Some(name) = self.instances.of_pid(ended.pid) {
                self.instance_ended(&name, ended);
            }
            if reaped.is_err() {
                return;
            }
        }
    }

    fn manager_ended(&mut self, ended: Ended) {
        let exit = self.base.exit(&manager::name(), ended);
        self.base.groups.remove(&manager::name());
        warn!("the manager (process {}) {exit}", ended.pid);
        self.manager.process = None;
        self.manager.link = None;
        self.manager_died(exit.to_string(), Instant::now());
    }

    fn manager_died(&mut self, how: String, now: Instant) {
        if self.ending.is_some() {
            return;
        }
        let limit = self.base.config.manager_failures;
        if let Err(error) = self.manager.died(how, limit, now) {
            error!("{error}");
            self.end(Some(error));
        }
    }

    fn instance_ended(&mut self, name: &Name, ended: Ended) {
        let exit = self.base.exit(name, ended);
        self.base.groups.remove(name);
        let pid = ended.pid.as_raw_pid();
        let asked = self.instances.ended(name, pid, exit.clone());
        match asked {
            true => info!("{name} (process {pid}) {exit}"),
            false => warn!("{name} (process {pid}) {exit}"),
        }
        if asked {
            self.base.forget(name);
        }
        self.manager.tell(Message::Exited { instance: name.clone(), pid, exit });
    }

    /// Begins to end the node; if it is ending already, ends it now.
    fn end(&mut self, error: Option<LauncherError>) {
        let now = Instant::now();
        if let Some(ending) = &mut self.ending {
            ending.deadline = now;
            return;
        }
        info!("the node ends");
        self.manager.tell(Message::Stopping {});
        self.instances.stop_all();
        let deadline = now + self.base.config.grace;
        self.ending = Some(Ending { deadline, only_manager: false, error });
    }

    fn go_on_ending(&mut self, now: Instant) {
        let Some(ending) = &mut self.ending else { return };
        if !ending.only_manager && !self.instances.any_runs() {
            ending.only_manager = true;
            ending.deadline = now + self.base.config.grace;
            self.manager.ask_to_end();
        }
        if now >= ending.deadline {
            self.instances.kill_all();
            if ending.only_manager {
                self.manager.kill();
            }
            // They end as soon as the kernel comes to it, and this is not to be asked all the time.
            ending.deadline = now + Duration::from_secs(1);
        }
    }

    fn is_over(&self) -> bool {
        self.ending.is_some() && !self.instances.any_runs() && self.manager.process.is_none()
    }
}

impl Base {
    fn set_up(config: Config) -> Result<Self, String> {
        // What it makes is readable for all and writable for itself, unless it says otherwise.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let lock = places::claim(&config.run_directory)?;
        let powers = Powers::find(config.uid_base, BLOCK * BLOCKS);
        let uids = match powers.users {
            true => Some(Uids::claim(config.uid_base, &config.lock_directory, &config.node)?),
            false => None,
        };
        places::clear_state(&config.run_directory)?;
        if let Some(uids) = &uids {
            for directory in &config.manager_directories {
                places::give(directory, uids.manager(), uids.group())?;
            }
        }
        let number = match &uids {
            Some(uids) => format!("weft-{}", uids.number()),
            // The same when a node runs in this directory again, which then removes what was left.
            None => format!("weft-run-{:08x}", hash(&config.run_directory.to_string_lossy())),
        };
        let groups = ControlGroups::set_up(&number);
        let mut missing = powers.missing();
        missing.extend(crate::isolate::missing());
        missing.extend_from_slice(groups.missing());
        let missing = missing.iter().map(ToString::to_string).collect();
        let (listeners, store) = (Listeners::default(), Store::default());
        Ok(Self { config, powers, uids, groups, listeners, store, missing, _lock: lock })
    }

    /// How a process ended, and why as far as that can be known.
    fn exit(&self, name: &Name, ended: Ended) -> Exit {
        let mut exit = Exit::default();
        match ended.how {
            How::Exited => exit.status = Some(ended.value),
            How::Killed | How::Dumped => exit.signal = Some(ended.value),
        }
        exit.core = ended.how == How::Dumped;
        exit.cause = match exit.signal {
            Some(libc::SIGSYS) => Some(
                "it made a system call that no process of a node has a use for, and that its seccomp \
                 filter answers with the end; the kernel's log names the call (`dmesg`, type=1326)"
                    .to_owned(),
            ),
            Some(libc::SIGKILL) if self.groups.memory_kills(name) > 0 => {
                Some("it needed more memory than its limit".to_owned())
            }
            _ => None,
        };
        exit
    }

    /// Gives up what an instance had.
    fn forget(&mut self, name: &Name) {
        self.listeners.close(name);
        places::remove_state(&self.config.run_directory, name);
        if let Some(uids) = &mut self.uids {
            uids.release(name);
        }
    }
}
