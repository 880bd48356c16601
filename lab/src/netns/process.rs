//! Processes of a lab: started in a namespace, their output in log files, ended by process id.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::namespace::Namespace;
use crate::LabError;
use crate::engine::Ended;
use crate::lines::{PartialLine, last_lines};

/// What to start, and where.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) namespace: &'a Namespace,
    /// The program and its arguments.
    pub(crate) words: Vec<OsString>,
    pub(crate) directory: &'a Path,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// Log files are called so, with `.stdout` and `.stderr` behind.
    pub(crate) log: PathBuf,
}

/// A process that was started here. Dropping it ends it, unless it was left alone.
pub(crate) struct Running {
    child: Child,
    handle: OwnedFd,
    ended: Option<Ended>,
    is_left: bool,
    logs: [Log; 2],
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
            None => Self::Killed(status.signal().unwrap_or_default()),
        }
    }
}

/// One of the two log files of a process.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Where the output of this process begins; before it stands that of an earlier one.
    begin: u64,
}

impl Log {
    fn open(base: &Path, extension: &str) -> io::Result<(Self, File)> {
        let mut path = base.as_os_str().to_owned();
        path.push(extension);
        let path = PathBuf::from(path);
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let begin = file.metadata()?.len();
        Ok((Self { path, begin }, file))
    }

    /// The last bytes of what this process has written.
    fn end(&self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        let from = file.metadata()?.len().saturating_sub(LAST_BYTES).max(self.begin);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(LAST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// How much of the end of a log is looked at for messages.
const LAST_BYTES: u64 = 2000;

impl Running {
    /// Starts a process, in a process group of its own so that a Ctrl-C on the terminal does not
    /// reach it.
    pub(crate) fn start(start: Start<'_>) -> Result<Self, LabError> {
        let Some((program, arguments)) = start.words.split_first() else {
            return Err(LabError::Usage("a command needs a program".into()));
        };
        let open = |extension| {
            Log::open(&start.log, extension).map_err(LabError::disk("open", &start.log))
        };
        let ((stdout, stdout_file), (stderr, stderr_file)) = (open(".stdout")?, open(".stderr")?);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(start.directory).envs(start.environment);
        command.stdin(Stdio::null()).stdout(stdout_file).stderr(stderr_file).process_group(0);
        let child = start.namespace.inside(|| command.spawn())?;
        let child = child.map_err(|error| not_started(program, &error))?;
        Self::adopt(child, [stdout, stderr])
    }

    fn adopt(mut child: Child, logs: [Log; 2]) -> Result<Self, LabError> {
        match pidfd_open(pid(&child), PidfdFlags::empty()) {
            Ok(handle) => Ok(Self { child, handle, ended: None, is_left: false, logs }),
            Err(error) => {
                // Without a handle nobody would wait for it.
                let _ = child.kill();
                let _ = child.wait();
                Err(LabError::system("get a handle of a process")(error))
            }
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Readable when it has ended.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// How it has ended; `None` if it runs.
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some(status.into());
        }
        self.ended
    }

    /// Sends a signal to it and the processes it has started, if it runs.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // It may end at this very moment; its id stays reserved until `try_wait` sees that.
            let _ = kill_process_group(pid(&self.child), signal);
        }
    }

    /// Ends it at once and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        if self.ended.is_none()
            && let Ok(status) = self.child.wait()
        {
            self.ended = Some(status.into());
        }
    }

    /// Lets it run on when this value is dropped.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
    }

    /// Reads its output from the beginning.
    pub(crate) fn lines(&self) -> Lines {
        Lines(self.logs.iter().map(|log| Follower::new(&log.path, log.begin)).collect())
    }

    /// What it has written to standard output, at most `limit` bytes.
    pub(crate) fn stdout(&self, limit: u64) -> Result<String, LabError> {
        let [Log { path, begin }, _] = &self.logs;
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(*begin))?;
            let mut bytes = Vec::new();
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(LabError::disk("read", path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last lines that it wrote to standard error, or else to standard output.
    pub(crate) fn last_words(&self) -> String {
        let [stdout, stderr] = &self.logs;
        let said = |log: &Log| {
            let end = log.end().ok()?;
            Some(last_lines(&String::from_utf8_lossy(&end))).filter(|lines| !lines.is_empty())
        };
        said(stderr).or_else(|| said(stdout)).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_left {
            self.kill();
        }
    }
}

/// The process id as the system calls take it.
fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn not_started(program: &OsString, error: &io::Error) -> LabError {
    let program = program.to_string_lossy();
    let reason = match error.kind() {
        ErrorKind::NotFound => "there is no such program: install it, or write its path".to_owned(),
        _ => error.to_string(),
    };
    LabError::System { action: format!("start `{program}`"), reason }
}

/// The lines of a process's output, as far as they have been written.
pub(crate) struct Lines(Vec<Follower>);

impl Lines {
    /// Whether one of the lines that were not looked at before contains `text`.
    pub(crate) fn find(&mut self, text: &str) -> bool {
        self.0.iter_mut().any(|follower| follower.find(text))
    }
}

/// Reads a file while it grows.
struct Follower {
    file: Option<File>,
    partial: PartialLine,
}

impl Follower {
    fn new(path: &Path, begin: u64) -> Self {
        let mut file = File::open(path).ok();
        if let Some(file) = &mut file {
            // Seeking in a regular file cannot fail.
            let _ = file.seek(SeekFrom::Start(begin));
        }
        Self { file, partial: PartialLine::default() }
    }

    fn find(&mut self, text: &str) -> bool {
        let Some(file) = &mut self.file else { return false };
        let mut chunk = [0; 16 * 1024];
        while let Ok(length @ 1..) = file.read(&mut chunk) {
            if self.partial.extend(&chunk[..length], text) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn text_is_found_in_lines_that_come_in_pieces() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"earlier ready\n").unwrap();
        let mut lines = Lines(vec![Follower::new(file.path(), 14)]);
        assert!(!lines.find("ready"));
        file.write_all(b"now rea").unwrap();
        assert!(!lines.find("ready"));
        file.write_all(b"dy").unwrap();
        assert!(lines.find("ready"), "also before the line is ended");
        file.write_all(b"\nrea\ndy\n").unwrap();
        let mut later = Lines(vec![Follower::new(file.path(), 24)]);
        assert!(!later.find("ready"), "a text does not go over line ends");
    }

    #[test]
    fn last_lines_are_those_of_this_process() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"old\na\n\nb\nc\nd\n").unwrap();
        let last = |begin| {
            let log = Log { path: file.path().to_owned(), begin };
            last_lines(&String::from_utf8_lossy(&log.end().unwrap()))
        };
        assert_eq!(last(4), "b / c / d");
        assert_eq!(last(11), "d");
        assert_eq!(last(13), "");
    }
}
