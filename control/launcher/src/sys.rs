//! The calls that need `unsafe`: what happens between fork and exec, descriptors by number, and waiting
//! for any child.
//!
//! Reference: fork(2), close_range(2), waitid(2), pidfd_send_signal(2), signal-safety(7).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;

/// A child that ended and was not reaped yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) pid: Pid,
    /// Exit status, or the signal's number.
    pub(crate) value: i32,
    pub(crate) how: How,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Exited,
    Killed,
    /// Killed, with a core dump.
    Dumped,
}

/// A child that ended, which stays to be reaped. Children that the process inherited count.
pub(crate) fn peek_ended() -> Option<Ended> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is valid for a siginfo_t to be written to.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) };
    if result != 0 {
        return None;
    }
    // SAFETY: all bytes zero are a siginfo_t, and waitid wrote another or left it so.
    let info = unsafe { info.assume_init() };
    // SAFETY: waitid fills in the fields of a child's end; pid 0 says that none has ended.
    let (pid, value) = unsafe { (info.si_pid(), info.si_status()) };
    let how = match info.si_code {
        libc::CLD_EXITED => How::Exited,
        libc::CLD_DUMPED => How::Dumped,
        _ => How::Killed,
    };
    Some(Ended { pid: Pid::from_raw(pid)?, value, how })
}

/// Sends a signal by its number, which may be one of the real-time signals.
pub(crate) fn send_signal(pidfd: BorrowedFd<'_>, number: i32) -> io::Result<()> {
    let null = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the arguments are a descriptor, a number, no information and no flags.
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), number, null, 0_u32)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has `setup` called in the child of `command`, between fork and exec.
///
/// `setup` may only do what is safe in a signal handler: no allocation, no lock. All of it is system
/// calls, on memory that was made before.
pub(crate) fn before_exec(
    command: &mut Command,
    setup: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the launcher has one thread, so no lock is held by another one while it forks, and
    // `spawn::Setup::apply`, the only caller's closure, makes system calls only.
    unsafe {
        command.pre_exec(setup);
    }
}

/// Sets every signal to its default, as exec does with handlers and not with what is ignored.
pub(crate) fn reset_signals() {
    for number in 1..=64 {
        // SAFETY: the default action is no function of this program. What cannot be changed (SIGKILL,
        // SIGSTOP, those of the C library) is an error without effect.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Marks every descriptor from 3 on to be closed by exec.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: no descriptor is closed now, so nothing that somebody owns goes away.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets exec pass on the descriptor `fd`.
pub(crate) fn keep_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: the flags of a descriptor touch no memory.
    let result = unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes over descriptors that exec passed on: all of them or none.
///
/// The numbers must be different, and what this process was started with, so that nothing in it owns
/// them; `inherit` sees to both.
pub(crate) fn take_over(numbers: &[RawFd]) -> Result<Vec<OwnedFd>, (RawFd, io::Error)> {
    for &fd in numbers {
        // SAFETY: the flags of a descriptor touch no memory.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
            return Err((fd, io::Error::last_os_error()));
        }
    }
    // SAFETY: they are open, as was just seen, and nobody owns them.
    Ok(numbers.iter().map(|&fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect())
}

/// Removes a variable from the environment, before there is a second thread.
pub(crate) fn remove_variable(name: &str) {
    // SAFETY: `inherit` checks that this process has one thread, so nobody reads the environment now.
    unsafe { std::env::remove_var(name) };
}

/// The version of the kernel's Landlock; 0 if there is none.
pub(crate) fn landlock_version() -> i32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`
    const VERSION: u32 = 1;
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag and no attributes the call reads no memory and makes nothing.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, null, 0_usize, VERSION) };
    i32::try_from(version).unwrap_or(0).max(0)
}
