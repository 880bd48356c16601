//! Starting a child: everything that happens between fork and exec.
//!
//! The launcher prepares each value before the fork; in the child there are only system calls, in an order
//! that matters: what needs privileges comes first, and the last thing before exec makes sure that the
//! launcher still lives. A step that fails is told to the launcher by a pipe.
//!
//! Reference: credentials(7), capabilities(7), prctl(2), setrlimit(2), close_range(2), cgroups(7).

use std::ffi::OsString;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Gid, Mode, OFlags, Uid, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, chdir, getpid, getppid, getrlimit, pidfd_open,
    set_parent_process_death_signal, setpriority_process, setrlimit, setsid, umask,
};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::powers::Powers;
use crate::protocol::Limits;
use crate::sys;

/// What a child is to be.
pub(crate) struct Plan<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Descriptors that it inherits, by their number here, which is their number there.
    pub(crate) inherited: Vec<RawFd>,
    /// User and group; `None` keeps the launcher's.
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) capabilities: CapabilitySet,
    pub(crate) limits: Limits,
    /// Whether memory must be limited by the address space, because no control group does it.
    pub(crate) limit_address_space: bool,
    /// Files of control groups: whoever writes `0` to them is a member.
    pub(crate) groups: Vec<OwnedFd>,
    pub(crate) powers: Powers,
}

/// A running child.
pub(crate) struct Running {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Starts a child.
pub(crate) fn spawn(mut plan: Plan<'_>) -> Result<Running, String> {
    let shown = plan.binary.display().to_string();
    let cannot = |why: String| format!("cannot start {shown}: {why}");
    let program = open(plan.binary, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| cannot(errno.to_string()))?;
    let (report, write) = io::pipe().map_err(|error| cannot(error.to_string()))?;
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    // The path that the child's user need not be able to walk shows in lists of processes.
    command.arg0("weft").args(&plan.arguments);
    command.env_clear().envs(plan.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null());
    let setup = Setup::new(&mut plan, write);
    sys::before_exec(&mut command, move || setup.apply());
    let spawned = command.spawn();
    // With it goes this process's end of the pipe.
    drop(command);
    match spawned {
        Ok(child) => {
            let pid = Pid::from_child(&child);
            // The child is not reaped before the launcher does it, so the pid is still its.
            let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| cannot(e.to_string()))?;
            Ok(Running { pid, pidfd })
        }
        Err(error) => Err(cannot(explain(&error, report))),
    }
}

/// Why exec or a step before it failed.
fn explain(error: &io::Error, mut report: PipeReader) -> String {
    let mut step = [0];
    let failed = report.read(&mut step).unwrap_or(0);
    if failed == 1 {
        let step = STEPS.get(usize::from(step[0])).copied().unwrap_or("an unknown step");
        return format!("{step}: {error}");
    }
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "its own user may not execute it: allow it to all with `chmod a+rx`".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The steps between fork and exec, as an error names them.
const STEPS: &[&str] = &[
    "cannot enter its control group",
    "cannot set its limits",
    "cannot set its group",
    "cannot empty its capability bounding set",
    "cannot set its user",
    "cannot set its capabilities",
    "cannot forbid new privileges",
    "cannot end with the launcher",
    "cannot hand over its descriptors",
];

#[derive(Clone, Copy)]
enum Step {
    ControlGroup,
    Limits,
    Group,
    Bounding,
    User,
    Capabilities,
    NoNewPrivileges,
    DeathSignal,
    Descriptors,
}

/// All that the child needs, made before the fork.
struct Setup {
    report: PipeWriter,
    groups: Vec<OwnedFd>,
    inherited: Vec<RawFd>,
    limits: Vec<(Resource, Rlimit)>,
    nice: i32,
    user: Option<(Uid, Gid)>,
    powers: Powers,
    capabilities: CapabilitySet,
    launcher: Pid,
}

impl Setup {
    fn new(plan: &mut Plan<'_>, report: PipeWriter) -> Self {
        Self {
            report,
            groups: std::mem::take(&mut plan.groups),
            inherited: std::mem::take(&mut plan.inherited),
            limits: resource_limits(plan),
            nice: plan.limits.nice.unwrap_or(0),
            user: plan.user.map(|(uid, gid)| (Uid::from_raw(uid), Gid::from_raw(gid))),
            powers: plan.powers,
            capabilities: plan.capabilities,
            launcher: getpid(),
        }
    }

    /// Makes this child what it is to be. Called between fork and exec: nothing but system calls.
    fn apply(&self) -> io::Result<()> {
        self.steps().map_err(|(step, errno)| {
            let _ = rustix::io::write(&self.report, &[step as u8]);
            errno.into()
        })
    }

    fn steps(&self) -> Result<(), (Step, Errno)> {
        // A group and session of its own: keys pressed for the launcher do not reach it.
        let _ = setsid();
        sys::reset_signals();
        umask(Mode::from_raw_mode(0o077));
        let at = |step: Step| move |errno| (step, errno);
        chdir(c"/").map_err(at(Step::Descriptors))?;
        for group in &self.groups {
            rustix::io::write(group, b"0").map_err(at(Step::ControlGroup))?;
        }
        for (resource, limit) in &self.limits {
            setrlimit(*resource, *limit).map_err(at(Step::Limits))?;
        }
        // Without privileges this only fails to raise what is low already.
        let _ = setpriority_process(None, self.nice);
        self.change_user()?;
        let inheritable = self.capabilities;
        let sets = CapabilitySets { effective: inheritable, permitted: inheritable, inheritable };
        set_capabilities(None, sets).map_err(at(Step::Capabilities))?;
        clear_ambient_capability_set().map_err(at(Step::Capabilities))?;
        for capability in inheritable {
            configure_capability_in_ambient_set(capability, true)
                .map_err(at(Step::Capabilities))?;
        }
        set_no_new_privs(true).map_err(at(Step::NoNewPrivileges))?;
        self.pass_descriptors().map_err(at(Step::Descriptors))?;
        // Behind the change of user, which would clear it.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Step::DeathSignal))?;
        match getppid() == Some(self.launcher) {
            true => Ok(()),
            false => Err((Step::DeathSignal, Errno::SRCH)),
        }
    }

    fn change_user(&self) -> Result<(), (Step, Errno)> {
        let at = |step: Step| move |errno| (step, errno);
        if self.powers.groups {
            set_thread_groups(&[]).map_err(at(Step::Group))?;
        }
        if let Some((_, gid)) = self.user {
            set_thread_res_gid(gid, gid, gid).map_err(at(Step::Group))?;
        }
        if self.powers.bounding {
            self.drop_bounding().map_err(at(Step::Bounding))?;
        }
        if let Some((uid, _)) = self.user {
            let keep = !self.capabilities.is_empty();
            set_keep_capabilities(keep).map_err(at(Step::User))?;
            set_thread_res_uid(uid, uid, uid).map_err(at(Step::User))?;
        }
        Ok(())
    }

    /// Takes every capability that it does not keep out of the bounding set, and the magic out of uid 0,
    /// which in a user namespace with one uid is the child's.
    fn drop_bounding(&self) -> Result<(), Errno> {
        for bit in 0..64 {
            let capability = CapabilitySet::from_bits_retain(1 << bit);
            if self.capabilities.contains(capability) {
                continue;
            }
            match remove_capability_from_bounding_set(capability) {
                // Beyond the last one that this kernel knows.
                Err(Errno::INVAL) => break,
                result => result?,
            }
        }
        let bits = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
        set_capabilities_secure_bits(bits)
    }

    fn pass_descriptors(&self) -> Result<(), Errno> {
        let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        sys::close_all_on_exec().map_err(errno)?;
        self.inherited.iter().try_for_each(|fd| sys::keep_on_exec(*fd).map_err(errno))
    }
}

/// The limits of setrlimit(2), none of them above what the launcher itself may have.
fn resource_limits(plan: &Plan<'_>) -> Vec<(Resource, Rlimit)> {
    let mut wanted = vec![(Resource::Core, 0)];
    wanted.extend(plan.limits.descriptors.map(|n| (Resource::Nofile, u64::from(n))));
    if plan.user.is_some() {
        // The limit counts all processes of a user, so it says nothing where users are shared.
        wanted.extend(plan.limits.threads.map(|n| (Resource::Nproc, u64::from(n))));
    }
    if plan.limit_address_space {
        wanted.extend(plan.limits.memory.map(|bytes| (Resource::As, bytes)));
    }
    let limit = |(resource, value): (Resource, u64)| {
        let value = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        (resource, Rlimit { current: Some(value), maximum: Some(value) })
    };
    wanted.into_iter().map(limit).collect()
}
