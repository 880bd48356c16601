//! Waiting for what the scenario needs: a line in a log, the end of a process, a time, a signal.
//!
//! While somebody watches, signals wait to be seen; otherwise they do what they always do. The handlers
//! stay where they are, since a process cannot know what was there before them (signal-hook's manual,
//! "Limitations").
//!
//! Reference: poll(2), inotify(7), pidfd_open(2), signal(7).

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::LabError;

/// The signals by which users end a lab.
const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];

/// Waits for events. While it lives, the signals that end programs are events, too.
pub(crate) struct Watch {
    signals: Vec<Signal>,
    attention: Option<Attention>,
    /// Readable when a file in the directory was written to.
    files: Option<OwnedFd>,
}

struct Signal {
    name: &'static str,
    receiver: UnixStream,
    handler: SigId,
}

impl Watch {
    /// Watches for signals and for writes to files in `directory`.
    pub(crate) fn new(directory: &Path) -> Result<Self, LabError> {
        let files = || -> io::Result<OwnedFd> {
            let files =
                inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            inotify::add_watch(&files, directory, inotify::WatchFlags::MODIFY)?;
            Ok(files)
        };
        let files = files().map_err(LabError::disk("watch", directory))?;
        Ok(Self { files: Some(files), ..Self::signals()? })
    }

    /// Watches for signals alone.
    pub(crate) fn signals() -> Result<Self, LabError> {
        let signals = SIGNALS.iter().map(|(number, name)| Signal::watch(*number, name));
        let signals = signals.collect::<io::Result<_>>();
        let watch = || -> io::Result<Self> {
            Ok(Self { signals: signals?, attention: Some(Attention::pay()?), files: None })
        };
        watch().map_err(LabError::system("watch for signals"))
    }

    /// Stops watching; fails if the user has ended the lab before. A signal that comes later has its
    /// default effect: none is lost in between.
    pub(crate) fn end(mut self) -> Result<(), LabError> {
        self.attention = None;
        self.check()
    }

    /// Fails if the user has ended the lab.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        for signal in &mut self.signals {
            if matches!(signal.receiver.read(&mut [0; 16]), Ok(1..)) {
                return Err(LabError::Interrupted(signal.name));
            }
        }
        Ok(())
    }

    /// Waits until a log was written to, one of `others` is readable, or `until` is reached; it may
    /// return earlier. Fails if the user has ended the lab.
    pub(crate) fn wait(
        &mut self,
        others: &[BorrowedFd<'_>],
        until: Option<Instant>,
    ) -> Result<(), LabError> {
        self.check()?;
        let signals = self.signals.iter().map(|signal| signal.receiver.as_fd());
        let all = signals.chain(self.files.as_ref().map(AsFd::as_fd)).chain(others.iter().copied());
        wait_readable(all, until).map_err(LabError::system("wait for events"))?;
        self.drain();
        self.check()
    }

    /// Takes the events of the files, so that only new ones wake the next time.
    fn drain(&self) {
        let Some(files) = &self.files else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(files, &mut buffer);
        while reader.next().is_ok() {}
    }
}

/// As long as one of these is there, signals do not have their default effect.
struct Attention;

/// What signals do in this process.
struct Signals {
    /// How many watch for them.
    watching: Mutex<usize>,
    /// Whether nobody does.
    has_default: Arc<AtomicBool>,
}

/// `None` if the handlers of signals could not be set.
static IN_PROCESS: OnceLock<Option<Signals>> = OnceLock::new();

impl Signals {
    /// Sets handlers that end the process if nobody watches.
    fn set_up() -> io::Result<Self> {
        let has_default = Arc::new(AtomicBool::new(false));
        for (number, _) in SIGNALS {
            flag::register_conditional_default(number, Arc::clone(&has_default))?;
        }
        Ok(Self { watching: Mutex::new(0), has_default })
    }

    fn watching(&self) -> MutexGuard<'_, usize> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attention {
    fn pay() -> io::Result<Self> {
        let signals = IN_PROCESS.get_or_init(|| Signals::set_up().ok());
        let signals = signals.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let mut watching = signals.watching();
        *watching += 1;
        signals.has_default.store(false, Ordering::SeqCst);
        Ok(Self)
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        let Some(Some(signals)) = IN_PROCESS.get() else { return };
        let mut watching = signals.watching();
        *watching -= 1;
        if *watching == 0 {
            signals.has_default.store(true, Ordering::SeqCst);
        }
    }
}

/// Waits until one of `fds` is readable or `until` is reached; it may return earlier.
pub(crate) fn wait_readable<'f>(
    fds: impl Iterator<Item = BorrowedFd<'f>>,
    until: Option<Instant>,
) -> io::Result<()> {
    let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(duration: Duration) -> Timespec {
    let tv_sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

impl Signal {
    fn watch(number: i32, name: &'static str) -> io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        Ok(Self { name, receiver, handler: low_level::pipe::register(number, sender)? })
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        low_level::unregister(self.handler);
    }
}
