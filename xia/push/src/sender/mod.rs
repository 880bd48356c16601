//! The sending side: a carousel of encoding symbols.
//!
//! A file goes out in rounds: all source symbols once, then fresh repair symbols of every block,
//! round after round. Before anything is sent the file is hashed (background slices, more than a
//! gigabyte per second with SHA instructions). That costs a moment at the start and buys three
//! things: the object id is derived from the content, so that a restarted sender continues its object
//! and announces cannot be forged; the first announce already carries the digest, so that a receiver
//! can verify while it receives; and a file that changes while it is sent is noticed, because the
//! source round hashes it again.
//!
//! A live stream cannot be hashed first: its id is random, its announces say "not yet known" until
//! its end, and each block is sent once, repair symbols right behind the source symbols.
//!
//! At any time there are two blocks in memory: the one being sent and the one being prepared.

mod batch;
mod carousel;
mod config;
mod events;
mod file;
mod pump;
mod stream;

use std::time::Duration;

use weft_base::{FileId, Instant, Random, Token};
use weft_runtime::{Component, DiskError, DiskReply, DiskRequest, Level, OpenMode};

use self::batch::Batch;
use self::carousel::Carousel;
pub use self::config::{ConfigError, Limit, MAX_SENT_BLOCK_SYMBOLS, SenderConfig};
pub use self::events::{SendSummary, SenderInput, SenderOutput};
use self::file::FileFeed;
use self::stream::StreamFeed;
use crate::digest::HashPass;
use crate::disk::Requests;
use crate::host::{HostInput, HostOutput};
use crate::object::{Description, MAX_OBJECT_BYTES, ObjectId, ObjectKind, Total};
use crate::pacing::Pacer;

/// Datagrams sent in one call when there is no rate to keep.
const UNPACED_BATCH: usize = 64;
/// Announces after the last symbol, and the time between them. They are the only ones that tell the
/// length of a stream or bring an empty file.
const LAST_ANNOUNCES: u32 = 10;
const LAST_ANNOUNCE_EVERY: Duration = Duration::from_millis(50);
/// Announces before the first symbol.
const FIRST_ANNOUNCES: u32 = 3;
/// Time between two progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Where symbols come from.
enum Feed {
    File(Box<FileFeed>),
    Stream(Box<StreamFeed>),
}

enum Stage {
    New,
    Opening,
    /// A file is being hashed.
    Hashing {
        file: FileId,
        length: u64,
        pass: Box<HashPass>,
    },
    Sending(Feed),
    /// Only announces are left.
    Closing {
        left: u32,
    },
    Ended,
}

/// What a disk request was for.
enum Purpose {
    Open,
    Hash,
    Block,
    Close,
}

/// The object on its way out.
struct Object {
    id: ObjectId,
    kind: ObjectKind,
    description: Description,
    total: Option<Total>,
    round: u32,
}

/// Pushes one file or stream; see the [module](self).
pub struct Sender {
    config: SenderConfig,
    random: Random,
    requests: Requests<Purpose>,
    stage: Stage,
    object: Option<Object>,
    file: Option<FileId>,
    batch: Option<Batch>,
    pacer: Pacer,
    congested: bool,
    /// When the next announce is due, and how many go without waiting.
    announce_at: Instant,
    announce_now: u32,
    /// No symbol goes before: the pause between rounds.
    round_begins: Instant,
    summary: SendSummary,
    began: Option<Instant>,
    progress_at: Instant,
    progress_bytes: u64,
}

impl Sender {
    /// A sender with these options. `random` chooses where repair symbols begin, and the id of a
    /// stream; senders that may run at the same time or one after the other need different seeds.
    ///
    /// # Errors
    /// If the options cannot be used.
    pub fn new(config: SenderConfig, random: Random) -> Result<Self, ConfigError> {
        config.check()?;
        let summary = SendSummary {
            name: config.object_name(),
            object: None,
            total: None,
            rounds: 0,
            source_symbols: 0,
            repair_symbols: 0,
            announces: 0,
            datagram_bytes: 0,
            elapsed: Duration::ZERO,
        };
        Ok(Self {
            pacer: Pacer::new(config.rate),
            config,
            random,
            requests: Requests::new(),
            stage: Stage::New,
            object: None,
            file: None,
            batch: None,
            congested: false,
            announce_at: Instant::ZERO,
            announce_now: 0,
            round_begins: Instant::ZERO,
            summary,
            began: None,
            progress_at: Instant::ZERO,
            progress_bytes: 0,
        })
    }

    /// The object being pushed; `None` until it is known.
    #[must_use]
    pub fn object(&self) -> Option<ObjectId> {
        self.summary.object
    }

    /// The round it is in; zero is the source round.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.summary.rounds
    }

    /// Bytes of file content held in memory now, for tests and monitoring.
    #[must_use]
    pub fn memory(&self) -> usize {
        let feed = match &self.stage {
            Stage::Hashing { pass, .. } => pass.memory(),
            Stage::Sending(Feed::File(feed)) => feed.memory(),
            Stage::Sending(Feed::Stream(feed)) => feed.memory(),
            _ => 0,
        };
        feed + self.batch.as_ref().map_or(0, Batch::memory)
    }

    fn ask(&mut self, purpose: Purpose, request: DiskRequest, out: &mut Vec<SenderOutput>) {
        let token = self.requests.ask(purpose);
        out.push(SenderOutput::Host(HostOutput::Disk { token, request }));
    }

    fn open(&mut self, out: &mut Vec<SenderOutput>) {
        let path = self.config.path.clone();
        self.stage = Stage::Opening;
        self.ask(Purpose::Open, DiskRequest::Open { path, mode: OpenMode::Read }, out);
    }

    fn on_disk(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<SenderOutput>,
    ) {
        let Some(purpose) = self.requests.take(token) else { return };
        let reply = match (result, &purpose) {
            (Ok(reply), _) => reply,
            (Err(_), Purpose::Close) => return,
            (Err(error), _) => return self.fail(error.text, out),
        };
        match (purpose, reply) {
            (Purpose::Open, DiskReply::Opened { file, len }) => self.on_open(now, file, len, out),
            (Purpose::Hash, DiskReply::Data { bytes, .. }) => self.on_hash_data(bytes, out),
            (Purpose::Block, DiskReply::Data { bytes, end }) => {
                self.on_block_data(now, bytes, end, out);
            }
            _ => {}
        }
    }

    fn on_open(
        &mut self,
        now: Instant,
        file: FileId,
        len: Option<u64>,
        out: &mut Vec<SenderOutput>,
    ) {
        if !matches!(self.stage, Stage::Opening) {
            self.ask(Purpose::Close, DiskRequest::Close { file }, out);
            return;
        }
        self.file = Some(file);
        match len {
            Some(length) if length > MAX_OBJECT_BYTES => {
                let name = &self.summary.name;
                let text = format!("{name} has {length} bytes, but an object has at most 2^48");
                self.fail(text, out);
            }
            Some(length) => {
                self.stage = Stage::Hashing { file, length, pass: Box::new(HashPass::new()) };
                self.hash(now, out);
            }
            None => self.begin_stream(now, file, out),
        }
    }

    fn on_hash_data(&mut self, bytes: Vec<u8>, out: &mut Vec<SenderOutput>) {
        if let Stage::Hashing { pass, .. } = &mut self.stage
            && !pass.read(bytes)
        {
            self.fail(self.changed(), out);
        }
    }

    /// Reads on, and begins to send when all is hashed.
    fn hash(&mut self, now: Instant, out: &mut Vec<SenderOutput>) {
        let Stage::Hashing { file, length, pass } = &mut self.stage else { return };
        let (file, length) = (*file, *length);
        if let Some(sha256) = pass.digest(length) {
            return self.begin_file(now, file, Total { length, sha256 }, out);
        }
        let (done, read) = (pass.hashed(), pass.next_read(length, Some(length)));
        if let Some((offset, len)) = read {
            self.ask(Purpose::Hash, DiskRequest::Read { file, offset, len }, out);
        }
        self.progress(now, done, Some(length), |_| "hashing".to_owned(), out);
    }

    fn description(&self, symbol_size: u16) -> Description {
        let symbols = self.config.block_size / u32::from(self.config.symbol_size);
        let block_size = symbols * u32::from(symbol_size);
        Description { name: self.summary.name.clone(), symbol_size, block_size }
    }

    fn begin_file(
        &mut self,
        now: Instant,
        file: FileId,
        total: Total,
        out: &mut Vec<SenderOutput>,
    ) {
        // A file smaller than a symbol is one small symbol, not one padded to full size.
        let smallest = u16::try_from(total.length.max(1)).unwrap_or(u16::MAX);
        let description = self.description(self.config.symbol_size.min(smallest));
        let (limit, percent) = (self.config.limit, self.config.round_percent);
        let base = self.repair_base();
        let carousel = Carousel::new(description.clone(), total.length, limit, percent, base);
        let feed = FileFeed::new(file, description.symbol_size, total, carousel);
        let object = Object {
            id: description.file_id(&total),
            kind: ObjectKind::File,
            description,
            total: Some(total),
            round: 0,
        };
        self.begin(now, object, Feed::File(Box::new(feed)), out);
    }

    fn begin_stream(&mut self, now: Instant, file: FileId, out: &mut Vec<SenderOutput>) {
        let description = self.description(self.config.symbol_size);
        let mut id = [0; 16];
        self.random.fill(&mut id);
        let feed = StreamFeed::new(
            file,
            description.symbol_size,
            description.block_size,
            self.config.stream_percent,
            self.config.flush_after,
            self.repair_base(),
        );
        let object = Object {
            id: ObjectId(id),
            kind: ObjectKind::Stream,
            description,
            total: None,
            round: 0,
        };
        self.begin(now, object, Feed::Stream(Box::new(feed)), out);
    }

    fn repair_base(&mut self) -> u32 {
        self.random.below(u64::from(crate::object::ESI_END)) as u32
    }

    fn begin(&mut self, now: Instant, object: Object, feed: Feed, out: &mut Vec<SenderOutput>) {
        let size = object.total.map_or("a live stream".to_owned(), |total| {
            format!("{} bytes, sha256 {}", total.length, total.sha256)
        });
        let line = format!("pushing {}: {size}, object {}", object.description.name, object.id);
        out.push(SenderOutput::Host(HostOutput::Report { level: Level::Info, line }));
        self.summary.object = Some(object.id);
        self.summary.total = object.total;
        self.object = Some(object);
        self.stage = Stage::Sending(feed);
        self.began = Some(now);
        self.pacer.restart(now);
        self.announce_at = now;
        self.announce_now = FIRST_ANNOUNCES;
        (self.progress_at, self.progress_bytes) = (now, 0);
    }

    fn on_block_data(
        &mut self,
        now: Instant,
        bytes: Vec<u8>,
        end: bool,
        out: &mut Vec<SenderOutput>,
    ) {
        let problem = match &mut self.stage {
            Stage::Sending(Feed::File(feed)) => feed.on_data(bytes).err().map(|_| self.changed()),
            Stage::Sending(Feed::Stream(feed)) => (!feed.on_data(now, &bytes, end))
                .then(|| "the stream is longer than the 2^48 bytes of an object".to_owned()),
            _ => None,
        };
        if let Some(text) = problem {
            self.fail(text, out);
        }
    }

    /// Asks for what the feed wants to read, and notices its end.
    fn feed(&mut self, now: Instant, out: &mut Vec<SenderOutput>) {
        let Stage::Sending(feed) = &mut self.stage else { return };
        let (read, ended, total) = match feed {
            Feed::File(feed) => (feed.next_read(), feed.is_at_end(), None),
            Feed::Stream(feed) => {
                let read = feed.next_read(now);
                let total = feed.total();
                (read, total.is_some(), total)
            }
        };
        if let Some(request) = read {
            self.ask(Purpose::Block, request, out);
        }
        let is_empty = self.summary.total.is_some_and(|total| total.length == 0);
        let goes_on = is_empty && self.config.limit == Limit::UntilStopped;
        if ended && self.batch.is_none() && !goes_on {
            self.close(now, total);
        }
    }

    /// Only announces are left to be sent.
    fn close(&mut self, now: Instant, total: Option<Total>) {
        if let (Some(object), Some(total)) = (&mut self.object, total) {
            object.total = Some(total);
            self.summary.total = Some(total);
        }
        self.stage = Stage::Closing { left: LAST_ANNOUNCES };
        self.announce_at = now;
        self.announce_now = 0;
    }

    /// One slice of background work.
    fn work(&mut self, out: &mut Vec<SenderOutput>) {
        let changed = match &mut self.stage {
            Stage::Hashing { pass, .. } => {
                pass.work();
                false
            }
            Stage::Sending(Feed::File(feed)) => feed.work().is_err(),
            Stage::Sending(Feed::Stream(feed)) => {
                feed.work();
                false
            }
            _ => false,
        };
        if changed {
            self.fail(self.changed(), out);
        }
    }

    fn stop(&mut self, now: Instant, out: &mut Vec<SenderOutput>) {
        match &mut self.stage {
            Stage::Sending(Feed::Stream(feed)) if feed.total().is_none() && !feed.is_ended() => {
                feed.end();
            }
            Stage::Ended => {}
            _ => self.finish(now, out),
        }
    }

    fn finish(&mut self, now: Instant, out: &mut Vec<SenderOutput>) {
        self.summary.elapsed = self.began.map_or(Duration::ZERO, |began| now.since(began));
        self.end(out);
        out.push(SenderOutput::Done(self.summary.clone()));
    }

    fn changed(&self) -> String {
        format!("{} changed while it was being sent: push it again", self.summary.name)
    }

    fn fail(&mut self, text: String, out: &mut Vec<SenderOutput>) {
        self.end(out);
        out.push(SenderOutput::Failed(text));
    }

    fn end(&mut self, out: &mut Vec<SenderOutput>) {
        self.stage = Stage::Ended;
        self.batch = None;
        if let Some(file) = self.file.take() {
            self.ask(Purpose::Close, DiskRequest::Close { file }, out);
        }
    }

    /// Whether a symbol could be sent if the pacer allowed it.
    fn has_symbols(&self) -> bool {
        let ready = match &self.stage {
            Stage::Sending(Feed::File(feed)) => feed.is_ready(),
            Stage::Sending(Feed::Stream(feed)) => feed.is_ready(),
            _ => return false,
        };
        ready || self.batch.is_some()
    }
}

impl Component for Sender {
    type Input = SenderInput;
    type Output = SenderOutput;

    fn handle(&mut self, now: Instant, input: SenderInput, out: &mut Vec<SenderOutput>) {
        match input {
            SenderInput::Start => {
                if matches!(self.stage, Stage::New) {
                    self.progress_at = now;
                    self.open(out);
                }
            }
            SenderInput::Host(HostInput::Disk { token, result }) => {
                self.on_disk(now, token, result, out)
            }
            SenderInput::Host(HostInput::Tick) => {}
            SenderInput::Host(HostInput::Slice) => self.work(out),
            SenderInput::Congested => self.congested = true,
            SenderInput::Drained => {
                self.congested = false;
                self.pacer.restart(now);
            }
            SenderInput::Host(HostInput::Stop) => self.stop(now, out),
        }
        self.hash(now, out);
        self.feed(now, out);
        self.pump(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let flush = match &self.stage {
            Stage::Sending(Feed::Stream(feed)) => feed.deadline(),
            Stage::Sending(Feed::File(_)) | Stage::Closing { .. } => None,
            _ => return None,
        };
        if self.congested {
            return flush;
        }
        let paced = |time: Instant| self.pacer.deadline().map_or(time, |due| due.max(time));
        let announce = Some(paced(self.announce_at));
        let symbol = self.has_symbols().then(|| paced(self.round_begins));
        [flush, announce, symbol].into_iter().flatten().min()
    }

    fn has_background_work(&self) -> bool {
        match &self.stage {
            Stage::Hashing { pass, .. } => pass.has_work(),
            Stage::Sending(Feed::File(feed)) => feed.has_work(),
            Stage::Sending(Feed::Stream(feed)) => feed.has_work(),
            _ => false,
        }
    }
}
