//! The loop of the launcher: signals, the manager's requests, the ends of children, and deadlines.
//!
//! One thread, no privileges needed to wait. Nothing here decides anything: that is the supervisor's.
//!
//! Reference: poll(2), waitid(2), pidfd_open(2).

mod log;
mod manager;
mod notify;
mod order;
mod places;
mod remove;
mod signals;
mod usage;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, kill_process_group, set_child_subreaper, waitpid};
use rustix::time::{ClockId, clock_gettime};
use weft_base::Instant;
use weft_runtime::{Component, Level};

use crate::cgroup::ControlGroups;
use crate::channel;
use crate::config::{Config, LauncherError};
use crate::inherit::thread_count;
use crate::listeners::Listeners;
use crate::missing::Missing;
use crate::name::Name;
use crate::powers::Powers;
use crate::profile::Profile;
use crate::protocol::Exit;
use crate::spawn::Running;
use crate::supervisor::{Input, Output, Settings, Supervisor, manager_name};
use crate::sys::{self, Ended, How};
use crate::uids::{BLOCK, BLOCKS, Uids, hash};

use log::Log;
use manager::Link;
pub use notify::Notify;
use order::Order;
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
    supervisor: Supervisor<OwnedFd>,
    /// The processes that run, by process id.
    running: BTreeMap<i32, (Name, Running)>,
    /// The channel to the manager.
    link: Option<Link>,
    signals: Signals,
    /// Why it is over, when it is.
    over: Option<Result<(), LauncherError>>,
    /// When it began.
    since: Instant,
    notify: Notify,
    log: Log,
}

/// What starting a process takes.
struct Base {
    config: Config,
    powers: Powers,
    /// Goes before the users: as long as they are taken no other node has a group of this name, which it would find gone.
    groups: ControlGroups,
    uids: Option<Uids>,
    listeners: Listeners,
    /// Last, so that the run directory is free only when its sockets are gone.
    _lock: std::fs::File,
}

impl Launcher {
    fn new(config: Config) -> Result<Self, LauncherError> {
        let setup = LauncherError::Setup;
        if thread_count() != Some(1) {
            let why = "the launcher must run in a process with one thread, and /proc be mounted";
            return Err(setup(why.to_owned()));
        }
        let mut log = Log::new(config.level);
        let (base, missing) = Base::set_up(config).map_err(setup)?;
        for missing in &missing {
            log.report(Level::Warning, &format!("isolation is missing: {missing}"));
        }
        let signals = Signals::watch()
            .map_err(|error| setup(format!("cannot watch for signals: {error}")))?;
        // Whatever children leave behind comes to the launcher, which reaps it.
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| setup(format!("cannot adopt children of children: {errno}")))?;
        Powers::shed(Profile::Fea.capabilities())
            .map_err(|errno| setup(format!("cannot give up capabilities: {errno}")))?;
        let supervisor = Supervisor::new(Settings::of(&base.config, missing));
        let running = BTreeMap::new();
        let (since, notify) = (now(), Notify::new(now()));
        Ok(Self { base, supervisor, running, link: None, signals, over: None, since, notify, log })
    }

    fn run(mut self) -> Result<(), LauncherError> {
        loop {
            self.reap();
            self.tell(Input::Tick);
            let told = self.notify.tick(now());
            self.notified(told);
            if let Some(over) = self.over {
                return over;
            }
            self.wait().map_err(|errno| LauncherError::Wait(errno.into()))?;
            match self.signals.take() {
                Some(Arrived::End) => self.tell(Input::End),
                Some(Arrived::Child) | None => {}
            }
            self.serve_manager();
        }
    }

    /// Gives the supervisor an input, and does what it wants until it wants nothing more.
    fn tell(&mut self, input: Input<OwnedFd>) {
        let mut inputs = VecDeque::from([input]);
        let mut wants = Vec::new();
        while let Some(input) = inputs.pop_front() {
            self.supervisor.handle(now(), input, &mut wants);
            for want in wants.drain(..) {
                inputs.extend(self.carry_out(want));
            }
        }
    }

    /// Does what the supervisor wants; returns what came of it.
    fn carry_out(&mut self, want: Output) -> Option<Input<OwnedFd>> {
        match want {
            Output::StartManager => return Some(self.start_manager()),
            Output::Start(spec) => {
                let order = Order {
                    instance: &spec.instance,
                    class: &spec.class,
                    arguments: spec.arguments.iter().map(Into::into).collect(),
                    limits: spec.limits,
                    listeners: &spec.listeners,
                    secret: Some(&spec.secret),
                    channel: None,
                };
                return Some(self.start(&order));
            }
            Output::Signal { pid, number } => self.signal(pid, number),
            Output::Tell(mut message) => {
                self.complete(&mut message);
                // Nobody is told what happens while there is no manager.
                if let (Some(link), Ok(bytes)) = (&mut self.link, message.encode()) {
                    link.tell(bytes);
                }
            }
            Output::Forget(name) => self.base.forget(&name),
            Output::Notify(notice) => self.notified(Notify::tell(&notice)),
            Output::Report(level, line) => self.log.report(level, &line),
            Output::Over(result) => self.over = Some(result),
        }
        None
    }

    fn notified(&mut self, result: Result<(), String>) {
        if let Err(error) = result {
            self.log.report(Level::Debug, &error);
        }
    }

    fn start(&mut self, order: &Order<'_>) -> Input<OwnedFd> {
        let kept = self.supervisor.kept_for(order.instance);
        let started = self.base.start(order, kept);
        let instance = order.instance.clone();
        let uid = self.base.uid_of(&instance);
        let result = started.map(|process| {
            let pid = process.pid.as_raw_pid();
            self.running.insert(pid, (instance.clone(), process));
            pid
        });
        Input::Started { instance, uid, result }
    }

    fn start_manager(&mut self) -> Input<OwnedFd> {
        let name = manager_name();
        let (ours, theirs) = match channel::pair() {
            Ok(pair) => pair,
            Err(error) => {
                let result = Err(error.to_string());
                return Input::Started { instance: name, uid: None, result };
            }
        };
        let listeners = self.base.config.manager_listeners.clone();
        let started = self.start(&Order {
            instance: &name,
            class: &name,
            arguments: self.base.config.manager_arguments.clone(),
            limits: crate::protocol::Limits::default(),
            listeners: &listeners,
            secret: None,
            channel: Some(theirs.as_fd()),
        });
        self.link =
            matches!(started, Input::Started { result: Ok(_), .. }).then(|| Link::new(ours));
        started
    }

    fn signal(&mut self, pid: i32, number: i32) {
        let Some((name, process)) = self.running.get(&pid) else { return };
        if let Err(error) = sys::send_signal(process.pidfd.as_fd(), number) {
            let line = format!("{name} (process {pid}) gets no signal {number}: {error}");
            self.log.report(Level::Warning, &line);
        }
    }

    /// Waits until something happens or is due.
    fn wait(&self) -> rustix::io::Result<()> {
        let mut fds: Vec<_> =
            self.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if let Some(link) = &self.link {
            fds.push(PollFd::from_borrowed_fd(link.socket.as_fd(), link.interest()));
        }
        let due = [self.supervisor.deadline(), self.notify.deadline()];
        let timeout = due.into_iter().flatten().min().map(|due| {
            // Rounded up, so that it is due when the time is over.
            let left = due.since(now()) + Duration::from_micros(1);
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

    /// Reads what the manager wants, and writes what it should know.
    fn serve_manager(&mut self) {
        for _ in 0..REQUESTS_PER_TURN {
            let Some(link) = self.link.as_mut().filter(|link| link.takes_requests()) else {
                break;
            };
            match channel::receive(link.socket.as_fd()) {
                Ok(Some(channel::Received { bytes, descriptors, truncated })) => {
                    self.tell(Input::Request { bytes, descriptors, truncated });
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Ok(None) | Err(_) => {
                    self.link = None;
                    self.tell(Input::Lost);
                }
            }
        }
        if let Some(link) = &mut self.link {
            self.log.tell(link);
            link.flush();
        }
    }

    /// Takes note of every child that ended.
    fn reap(&mut self) {
        while let Some(ended) = sys::peek_ended() {
            // Whatever it left in its group goes with it; its id is still its own.
            let _ = kill_process_group(ended.pid, rustix::process::Signal::KILL);
            let reaped = waitpid(Some(ended.pid), WaitOptions::NOHANG);
            let line = format!("process {} ended", ended.pid.as_raw_pid());
            self.log.report(Level::Debug, &line);
            self.ended(ended);
            if reaped.is_err() {
                return;
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        let pid = ended.pid.as_raw_pid();
        let Some((name, _)) = self.running.remove(&pid) else { return };
        let exit = self.base.exit(&name, ended);
        self.base.groups.remove(&name);
        if name == manager_name() {
            self.link = None;
        }
        self.tell(Input::Ended { pid, exit });
    }
}

impl Base {
    /// Also says what isolation is missing.
    fn set_up(config: Config) -> Result<(Self, Vec<String>), String> {
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
        let listeners = Listeners::default();
        Ok((Self { config, powers, uids, groups, listeners, _lock: lock }, missing))
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

    fn uid_of(&mut self, instance: &Name) -> Option<u32> {
        Some(self.user_of(instance).ok()??.0)
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

/// The time of the machine's monotonic clock.
fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// What the launcher calls itself.
fn name() -> Name {
    "launcher".parse().unwrap_or_else(|_| unreachable!("it is a name"))
}
