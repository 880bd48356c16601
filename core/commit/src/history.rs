//! The revisions on disk: what was committed stays there, whatever happens to the power.
//!
//! A revision is written to a file of its own under another name, made durable, renamed to its place,
//! and the directory is made durable; only then is it there, and only then are the oldest ones
//! removed. A crash leaves all revisions that were there before, and the new one whole or not at all.
//! A file that is not whole is noticed by its digest and passed over.
//!
//! Reference: rename(2), fsync(2); Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014, for
//! what may be lost without which of these steps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use weft_base::Token;
use weft_config::MAX_SIZE;
use weft_runtime::{DiskError, DiskErrorKind, DiskReply, DiskRequest};

use crate::file::{Progress, ReadFile, UNFINISHED, WriteFile};
use crate::kept::{CANDIDATE, Kept, KeptFile};
use crate::revision::{Revision, file_name, number_of};
use crate::sealed::MAX_HEAD;

/// The most that is read of what is being edited, in bytes. A candidate may be longer than what can be
/// committed.
const MAX_KEPT: usize = 4 * MAX_SIZE;

/// Where revisions are kept, and how many.
#[derive(Debug, Clone)]
pub struct HistorySettings {
    /// The directory, which belongs to the history alone. Revisions hold secrets: the directory has to be
    /// made, or the process's umask to be set, so that nobody else can read it.
    pub directory: PathBuf,
    /// The most revisions that are kept; at least 2.
    pub keep: usize,
}

/// What the history is told.
#[derive(Debug)]
pub(crate) enum HistoryInput {
    /// Read what is there. The first input.
    Start,
    /// Keep a configuration as the next revision.
    Store {
        /// What is to be known about it; the history gives it its number.
        revision: Revision,
        /// Its text.
        text: Arc<str>,
    },
    /// The newest revision need not be confirmed any more.
    Confirm {
        /// Its text, once more.
        text: Arc<str>,
    },
    /// Keep what is being edited; nothing is any more.
    Keep(Option<Vec<u8>>),
    /// Read the text of a revision.
    Load {
        /// Which.
        number: u64,
    },
    /// An answer of the disk.
    Disk {
        /// The token of the request.
        token: Token,
        /// What came of it.
        result: Result<DiskReply, DiskError>,
    },
}

/// What the history says and asks. What it is told is done, and answered, in order.
#[derive(Debug)]
pub(crate) enum HistoryOutput {
    /// Something to be done by the disk.
    Disk {
        /// Comes back in the answer.
        token: Token,
        /// What.
        request: DiskRequest,
    },
    /// The answer to [`HistoryInput::Start`].
    Ready(Result<Found, String>),
    /// The answer to [`HistoryInput::Keep`].
    Kept(Result<(), String>),
    /// The answer to [`HistoryInput::Store`] and [`HistoryInput::Confirm`]: the revision is durable.
    Stored(Result<Revision, String>),
    /// The answer to [`HistoryInput::Load`].
    Loaded(Result<(Revision, String), String>),
    /// Something that the operator should know, in one sentence.
    Notice(String),
}

/// What there was on disk.
#[derive(Debug)]
pub(crate) struct Found {
    /// The newest revision that can be read, if there is any.
    pub(crate) newest: Option<(Revision, String)>,
    /// What was being edited.
    pub(crate) kept: Option<Kept>,
}

/// The revisions on disk.
#[derive(Debug)]
pub(crate) struct History {
    settings: HistorySettings,
    /// Those that can be read, by number.
    revisions: BTreeMap<u64, Revision>,
    /// The numbers of all files that are there, readable or not.
    files: BTreeSet<u64>,
    /// Whether there is a file of what is being edited.
    has_candidate: bool,
    waiting: VecDeque<HistoryInput>,
    job: Option<Job>,
    last_token: u32,
}

/// What is being done.
#[derive(Debug)]
enum Job {
    MakeDirectory,
    /// What a crash left unfinished goes away.
    RemoveUnfinished,
    List,
    Scan(Scan),
    Write(Revision, WriteFile),
    Load(u64, ReadFile),
    /// What was being edited is read, when all else has been.
    Candidate(Option<(Revision, String)>, ReadFile),
    /// The revision is read that the edits are of, since it is not the newest.
    Base(Option<(Revision, String)>, KeptFile, ReadFile),
    Keep(WriteFile),
    /// Nothing is being edited.
    Forget,
    /// Revisions that are too old go away.
    Prune(u64),
}

/// Reading what is known of each revision, the newest first; of the newest that is whole, all of it.
#[derive(Debug)]
struct Scan {
    left: Vec<u64>,
    newest: Option<(Revision, String)>,
    number: u64,
    read: ReadFile,
}

impl History {
    /// A history that knows nothing yet.
    pub(crate) fn new(mut settings: HistorySettings) -> Self {
        settings.keep = settings.keep.max(2);
        Self {
            settings,
            revisions: BTreeMap::new(),
            files: BTreeSet::new(),
            has_candidate: false,
            waiting: VecDeque::new(),
            job: None,
            last_token: 0,
        }
    }

    /// What is known of the revisions, oldest first.
    pub(crate) fn revisions(&self) -> impl DoubleEndedIterator<Item = &Revision> {
        self.revisions.values()
    }

    /// Takes an input and pushes what is to be done.
    pub(crate) fn handle(&mut self, input: HistoryInput, out: &mut Vec<HistoryOutput>) {
        match input {
            // Any other answer is one that nobody waits for.
            HistoryInput::Disk { token, result } if token.0 == self.last_token => {
                if let Some(job) = self.job.take() {
                    self.answered(job, result, out);
                }
            }
            HistoryInput::Disk { .. } => {}
            other => self.waiting.push_back(other),
        }
        while self.job.is_none() {
            let Some(input) = self.waiting.pop_front() else { break };
            self.begin(input, out);
        }
    }

    fn begin(&mut self, input: HistoryInput, out: &mut Vec<HistoryOutput>) {
        match input {
            HistoryInput::Start => {
                let path = self.settings.directory.clone();
                self.ask(Job::MakeDirectory, DiskRequest::MakeDirectory { path }, out);
            }
            HistoryInput::Store { mut revision, text } => {
                revision.number = self.files.last().map_or(1, |last| last + 1);
                self.write(revision, &text, false, out);
            }
            HistoryInput::Confirm { text } => match self.revisions.values().next_back().cloned() {
                Some(mut revision) => {
                    revision.unconfirmed = None;
                    self.write(revision, &text, true, out);
                }
                None => out.push(HistoryOutput::Stored(Err("there is no revision".to_owned()))),
            },
            HistoryInput::Keep(Some(bytes)) => {
                let directory = &self.settings.directory;
                let (write, request) = WriteFile::begin(directory, CANDIDATE, true, bytes);
                self.has_candidate = true;
                self.ask(Job::Keep(write), request, out);
            }
            HistoryInput::Keep(None) if self.has_candidate => {
                self.has_candidate = false;
                let path = self.settings.directory.join(CANDIDATE);
                self.ask(Job::Forget, DiskRequest::Remove { path }, out);
            }
            HistoryInput::Keep(None) => out.push(HistoryOutput::Kept(Ok(()))),
            HistoryInput::Load { number } if self.revisions.contains_key(&number) => {
                let (read, request) = self.read(number, true);
                self.ask(Job::Load(number, read), request, out);
            }
            HistoryInput::Load { number } => {
                let text = format!("there is no revision {number}");
                out.push(HistoryOutput::Loaded(Err(text)));
            }
            HistoryInput::Disk { .. } => {}
        }
    }

    fn ask(&mut self, job: Job, request: DiskRequest, out: &mut Vec<HistoryOutput>) {
        self.last_token = self.last_token.wrapping_add(1);
        self.job = Some(job);
        out.push(HistoryOutput::Disk { token: Token(self.last_token), request });
    }

    fn answered(
        &mut self,
        job: Job,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<HistoryOutput>,
    ) {
        match job {
            Job::MakeDirectory => self.directory_made(result, out),
            // It matters to nobody whether there was one.
            Job::RemoveUnfinished => {
                let path = self.settings.directory.clone();
                self.ask(Job::List, DiskRequest::List { path }, out);
            }
            Job::List => self.listed(result, out),
            Job::Scan(scan) => self.scanned(scan, result, out),
            Job::Write(revision, mut write) => match write.answered(result) {
                Progress::Ask(request) => self.ask(Job::Write(revision, write), request, out),
                Progress::Done(done) => self.written(revision, done, out),
            },
            Job::Load(number, mut read) => match read.answered(result) {
                Progress::Ask(request) => self.ask(Job::Load(number, read), request, out),
                Progress::Done(done) => {
                    out.push(HistoryOutput::Loaded(decoded(number, done)));
                }
            },
            Job::Candidate(newest, mut read) => match read.answered(result) {
                Progress::Ask(request) => self.ask(Job::Candidate(newest, read), request, out),
                Progress::Done(done) => {
                    let file = done.and_then(|bytes| KeptFile::decode(&bytes));
                    self.candidate_read(newest, file, out);
                }
            },
            Job::Base(newest, file, mut read) => match read.answered(result) {
                Progress::Ask(request) => self.ask(Job::Base(newest, file, read), request, out),
                Progress::Done(done) => {
                    let base = decoded(file.of().unwrap_or_default(), done);
                    let kept = base.and_then(|(_, text)| file.restore(&text));
                    ready(newest, kept, out);
                }
            },
            Job::Keep(mut write) => match write.answered(result) {
                Progress::Ask(request) => self.ask(Job::Keep(write), request, out),
                Progress::Done(done) => out.push(HistoryOutput::Kept(done)),
            },
            Job::Forget => {
                let result = match result {
                    Err(error) if error.kind != DiskErrorKind::NotFound => Err(error.text),
                    _ => Ok(()),
                };
                out.push(HistoryOutput::Kept(result));
            }
            Job::Prune(number) => {
                self.pruned(number, result, out);
            }
        }
    }

    fn directory_made(
        &mut self,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<HistoryOutput>,
    ) {
        match result {
            Ok(_) => {
                let path = self.settings.directory.join(UNFINISHED);
                self.ask(Job::RemoveUnfinished, DiskRequest::Remove { path }, out);
            }
            Err(error) => out.push(HistoryOutput::Ready(Err(error.text))),
        }
    }

    fn listed(&mut self, result: Result<DiskReply, DiskError>, out: &mut Vec<HistoryOutput>) {
        match result {
            Ok(DiskReply::Names(names)) => {
                self.has_candidate = names.iter().any(|name| name == CANDIDATE);
                self.files = names.iter().filter_map(|name| number_of(name)).collect();
                let left = self.files.iter().copied().collect();
                self.scan(left, None, out);
            }
            Ok(_) => {
                let text = "the disk did not list the directory of the history".to_owned();
                out.push(HistoryOutput::Ready(Err(text)));
            }
            Err(error) => out.push(HistoryOutput::Ready(Err(error.text))),
        }
    }

    fn scan(
        &mut self,
        mut left: Vec<u64>,
        newest: Option<(Revision, String)>,
        out: &mut Vec<HistoryOutput>,
    ) {
        let Some(number) = left.pop() else {
            return self.scan_candidate(newest, out);
        };
        let (read, request) = self.read(number, newest.is_none());
        self.ask(Job::Scan(Scan { left, newest, number, read }), request, out);
    }

    fn scan_candidate(&mut self, newest: Option<(Revision, String)>, out: &mut Vec<HistoryOutput>) {
        if !self.has_candidate {
            return out.push(HistoryOutput::Ready(Ok(Found { newest, kept: None })));
        }
        let path = self.settings.directory.join(CANDIDATE);
        let (read, request) = ReadFile::begin(path, MAX_KEPT);
        self.ask(Job::Candidate(newest, read), request, out);
    }

    /// The edits are known, but perhaps not what they are of.
    fn candidate_read(
        &mut self,
        newest: Option<(Revision, String)>,
        file: Result<KeptFile, String>,
        out: &mut Vec<HistoryOutput>,
    ) {
        let file = match file {
            Ok(file) => file,
            Err(reason) => return ready(newest, Err(reason), out),
        };
        let newest_text = |number| match &newest {
            Some((revision, text)) if revision.number == number => Some(text.as_str()),
            _ => None,
        };
        match file.of().map(|number| (number, newest_text(number))) {
            Some((number, None)) => {
                let (read, request) = self.read(number, true);
                self.ask(Job::Base(newest, file, read), request, out);
            }
            base => {
                let text = base.and_then(|(_, text)| text).unwrap_or_default();
                let kept = file.restore(text);
                ready(newest, kept, out);
            }
        }
    }

    fn scanned(
        &mut self,
        mut scan: Scan,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<HistoryOutput>,
    ) {
        let done = match scan.read.answered(result) {
            Progress::Ask(request) => return self.ask(Job::Scan(scan), request, out),
            Progress::Done(done) => done,
        };
        let Scan { left, mut newest, number, .. } = scan;
        let found = match newest {
            None => decoded(number, done).map(|(revision, text)| {
                newest = Some((revision.clone(), text));
                revision
            }),
            Some(_) => head(number, done),
        };
        match found {
            Ok(revision) => {
                self.revisions.insert(number, revision);
            }
            Err(reason) => {
                out.push(HistoryOutput::Notice(format!("revision {number} is lost: {reason}")));
            }
        }
        self.scan(left, newest, out);
    }

    fn read(&self, number: u64, whole: bool) -> (ReadFile, DiskRequest) {
        let path = self.settings.directory.join(file_name(number));
        // One byte more than may be there shows that there is more.
        ReadFile::begin(path, if whole { MAX_SIZE + MAX_HEAD + 1 } else { MAX_HEAD })
    }

    fn write(
        &mut self,
        revision: Revision,
        text: &str,
        replaces: bool,
        out: &mut Vec<HistoryOutput>,
    ) {
        let (directory, name) = (&self.settings.directory, revision.file_name());
        let (write, request) = WriteFile::begin(directory, &name, replaces, revision.encode(text));
        self.ask(Job::Write(revision, write), request, out);
    }

    fn written(
        &mut self,
        revision: Revision,
        done: Result<(), String>,
        out: &mut Vec<HistoryOutput>,
    ) {
        match done {
            Ok(()) => {
                self.files.insert(revision.number);
                self.revisions.insert(revision.number, revision.clone());
                out.push(HistoryOutput::Stored(Ok(revision)));
                self.prune(0, out);
            }
            Err(reason) => out.push(HistoryOutput::Stored(Err(reason))),
        }
    }

    /// Removes the oldest revision above `after` of those that are too many.
    fn prune(&mut self, after: u64, out: &mut Vec<HistoryOutput>) {
        let newest = self.revisions.values().next_back();
        let needed =
            newest.and_then(|newest| newest.unconfirmed).map(|unconfirmed| unconfirmed.back_to);
        let excess = self.files.len().saturating_sub(self.settings.keep);
        let oldest = self.files.iter().take(excess);
        let mut oldest = oldest.filter(|number| **number > after && Some(**number) != needed);
        if let Some(&number) = oldest.next() {
            let path = self.settings.directory.join(file_name(number));
            self.ask(Job::Prune(number), DiskRequest::Remove { path }, out);
        }
    }

    fn pruned(
        &mut self,
        number: u64,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<HistoryOutput>,
    ) {
        match result {
            Err(error) if error.kind != DiskErrorKind::NotFound => {
                let text = format!("an old revision stays: {}", error.text);
                out.push(HistoryOutput::Notice(text));
                return self.prune(number, out);
            }
            _ => {}
        }
        self.files.remove(&number);
        self.revisions.remove(&number);
        self.prune(0, out);
    }
}

/// All is known that was on disk.
fn ready(
    newest: Option<(Revision, String)>,
    kept: Result<Kept, String>,
    out: &mut Vec<HistoryOutput>,
) {
    let kept = kept.map_err(|reason| {
        let text = format!("edits that were not committed are gone: {reason}");
        out.push(HistoryOutput::Notice(text));
    });
    out.push(HistoryOutput::Ready(Ok(Found { newest, kept: kept.ok() })));
}

/// The revision and the text that a file holds.
fn decoded(number: u64, read: Result<Vec<u8>, String>) -> Result<(Revision, String), String> {
    let (revision, text) = Revision::decode(&read?).map_err(|damage| damage.to_string())?;
    if revision.number != number {
        return Err(format!("its file holds revision {}", revision.number));
    }
    Ok((revision, text))
}

fn head(number: u64, read: Result<Vec<u8>, String>) -> Result<Revision, String> {
    let revision = Revision::decode_head(&read?).map_err(|damage| damage.to_string())?;
    if revision.number != number {
        return Err(format!("its file holds revision {}", revision.number));
    }
    Ok(revision)
}
