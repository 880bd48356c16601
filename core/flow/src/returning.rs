//! Waiting for a stack to return.
//!
//! A stack that starts again makes its socket's path anew, which inotify(7) tells at once. What it
//! does not tell is that somebody listens there by now (listen(2) leaves no trace in a file system, and
//! follows bind(2) after a moment), nor anything of a directory that is itself away or not readable
//! for this user. Therefore each wait has an end, at first a short one.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// How long to wait at first, and at most, without being told anything.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(500);

/// Watches the directory of a socket.
pub(crate) struct Watch {
    notices: Option<OwnedFd>,
    pause: Duration,
}

impl Watch {
    /// Begins to watch. From now on nothing is missed.
    pub(crate) fn new(path: &Path) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let notices = watch(parent.unwrap_or(Path::new("."))).ok();
        Self { notices, pause: SHORTEST }
    }

    /// Waits until something has happened there, or for a moment, at most `left`.
    pub(crate) fn wait(&mut self, left: Duration) {
        let pause = self.pause.min(left);
        let timeout = Timespec::try_from(pause).ok();
        let told = match &self.notices {
            Some(notices) => {
                let mut fds = [PollFd::new(notices, PollFlags::IN)];
                let told = poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0);
                told && forget(notices)
            }
            None => {
                let _ = poll(&mut [], timeout.as_ref());
                false
            }
        };
        // What was told may be the path alone: whoever made it is about to listen.
        self.pause = if told { SHORTEST } else { (self.pause * 2).min(LONGEST) };
    }
}

fn watch(directory: &Path) -> Result<OwnedFd, Errno> {
    let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    // A path appears, by its own name or another's; or gets the mode that lets us in.
    let what = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
    inotify::add_watch(&notices, directory, what | WatchFlags::ONLYDIR)?;
    Ok(notices)
}

/// Takes what was told; says that there was something.
fn forget(notices: &OwnedFd) -> bool {
    let mut buffer = [0; 4096];
    while matches!(rustix::io::read(notices, &mut buffer), Ok(1..) | Err(Errno::INTR)) {}
    true
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_happens_ends_the_wait() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stack.sock");
        let mut watch = Watch::new(&path);
        watch.pause = Duration::from_secs(3600);
        std::fs::write(&path, "").unwrap();
        watch.wait(Duration::MAX);
        assert_eq!(watch.pause, SHORTEST);
    }

    #[test]
    fn a_directory_that_cannot_be_watched_is_looked_at_again_and_again() {
        let mut watch = Watch::new(Path::new("/nowhere/stack.sock"));
        assert!(watch.notices.is_none());
        let begin = Instant::now();
        watch.wait(Duration::MAX);
        watch.wait(Duration::ZERO);
        assert!(begin.elapsed() >= SHORTEST);
        assert_eq!(watch.pause, SHORTEST * 4);
    }
}
