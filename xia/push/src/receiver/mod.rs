//! The receiving side: any number of objects from any number of senders, onto disk.
//!
//! A receiver never answers. It takes whatever datagrams come, in any order, from any round on, and
//! keeps what is of use on disk; in memory are only lists of what is there (`blocks`), the writes
//! under way and one block being decoded. An object is known by its sender *and* its id: nobody can
//! spoil what somebody else sends without forging the source of datagrams, and if that happens the
//! SHA-256 over the whole file finds it out before the file gets its name.
//!
//! What others can make it do has limits ([`Limits`]), and every datagram that is not used is counted
//! with its reason ([`DropReason`]).

mod bitmap;
mod blocks;
mod config;
mod events;
mod piped;
mod ranges;
mod reception;
mod resume;
mod store;
mod unfinished;
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use weft_base::{Counters, Instant, Packet, Token};
use weft_runtime::{Component, DiskError, DiskReply, DiskRequest, Level};

pub use self::config::{Destination, FullDisk, Limits, ReceiverConfig};
pub use self::events::{DropReason, ReceiveReport, ReceiverInput, ReceiverOutput};
use self::piped::{Ending, Piped};
use self::reception::{Outcome, Reception};
use self::unfinished::Unfinished;
use self::world::{Job, Shared, World};
use crate::host::{HostInput, HostOutput};
use crate::object::{ObjectId, ObjectKind, SenderKey};
use crate::wire::{Announce, Datagram, Symbol};

/// Finished objects remembered, so that the rest of their carousel is ignored.
const MAX_ENDED: usize = 1024;
/// Silence after which a finished object is forgotten: if it comes again, somebody means it.
const ENDED_FOR: Duration = Duration::from_secs(60);

type Key = (SenderKey, ObjectId);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    /// The directory is being made and listed.
    Preparing,
    Running,
    /// Saving the states of all objects.
    Stopping,
    Ended,
}

/// Receives objects; see the [module](self).
pub struct Receiver {
    stage: Stage,
    shared: Shared,
    objects: BTreeMap<u64, Reception>,
    serials: BTreeMap<Key, u64>,
    next_serial: u64,
    /// Objects that were received or given up, and when they were last heard.
    ended: BTreeMap<Key, Instant>,
    unfinished: Unfinished,
    /// The stream on standard output, if that is the destination.
    piped: Option<Piped>,
    /// Whose slice was last.
    last_worked: u64,
    received: u64,
    failed: u64,
}

impl Receiver {
    /// A receiver with these options.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Self {
        let directory = match &config.destination {
            Destination::Directory(directory) => directory.clone(),
            Destination::Stdout => PathBuf::new(),
        };
        Self {
            stage: Stage::New,
            shared: Shared::new(config, directory),
            objects: BTreeMap::new(),
            serials: BTreeMap::new(),
            next_serial: 1,
            ended: BTreeMap::new(),
            unfinished: Unfinished::default(),
            piped: None,
            last_worked: 0,
            received: 0,
            failed: 0,
        }
    }

    /// Datagrams that were of no use, by reason.
    #[must_use]
    pub fn drops(&self) -> &Counters<DropReason> {
        &self.shared.drops
    }

    /// Bytes of content and lists held in memory now, those on their way to the disk included; for
    /// tests and monitoring.
    #[must_use]
    pub fn memory(&self) -> usize {
        let objects: usize = self.objects.values().map(Reception::memory).sum();
        self.shared.backlog + objects + self.piped.as_ref().map_or(0, Piped::memory)
    }

    fn start(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        if self.stage != Stage::New {
            return;
        }
        self.stage = Stage::Preparing;
        let path = self.shared.directory.clone();
        let to_stdout = self.shared.config.destination == Destination::Stdout;
        let mut world = World { now, shared: &mut self.shared, out };
        if to_stdout {
            self.piped = Some(Piped::new(&mut world));
            self.stage = Stage::Running;
            return;
        }
        world.ask(0, 0, Job::Directory, DiskRequest::MakeDirectory { path: path.clone() });
        world.ask(0, 0, Job::Directory, DiskRequest::List { path });
    }

    fn on_directory(
        &mut self,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<ReceiverOutput>,
    ) {
        if self.stage != Stage::Preparing {
            return;
        }
        match result {
            Ok(DiskReply::Names(names)) => self.on_listed(&names, out),
            Ok(_) => {}
            Err(error) => {
                let text = format!("nothing can be received: {}", error.text);
                let name = self.shared.directory.display().to_string();
                out.push(ReceiverOutput::Failed { sender: None, object: None, name, text });
                self.finish(out);
            }
        }
    }

    fn on_listed(&mut self, names: &[String], out: &mut Vec<ReceiverOutput>) {
        self.stage = Stage::Running;
        let stems = names
            .iter()
            .filter(|name| name.starts_with(reception::STEM))
            .filter_map(|name| Some(name.strip_suffix(".part")?.to_owned()));
        self.unfinished = Unfinished::of_earlier_runs(stems);
        let count = self.unfinished.len();
        if count > 0 {
            let line = format!("{count} unfinished objects of earlier runs wait for their senders");
            out.push(ReceiverOutput::Host(HostOutput::Report { level: Level::Info, line }));
        }
    }

    fn on_datagram(
        &mut self,
        now: Instant,
        packet: Packet,
        from: SenderKey,
        out: &mut Vec<ReceiverOutput>,
    ) {
        if self.stage != Stage::Running {
            return;
        }
        let mut world = World { now, shared: &mut self.shared, out };
        let datagram = match Datagram::parse(packet.bytes()) {
            Ok(Datagram::Announce(announce)) if is_forged(&announce) => {
                return world.drop(DropReason::Forged);
            }
            Ok(datagram) => datagram,
            Err(_) => return world.drop(DropReason::Malformed),
        };
        if let Some(piped) = &mut self.piped {
            piped.on_datagram(&mut world, &datagram, from);
            return self.end_piped(now, out);
        }
        let (object, kind) = match &datagram {
            Datagram::Symbol(Symbol { object, kind, .. })
            | Datagram::Announce(Announce { object, kind, .. }) => (*object, *kind),
        };
        let serial = match self.serials.get(&(from, object)) {
            Some(serial) => *serial,
            None => match self.begin(now, (from, object), kind, out) {
                Ok(serial) => serial,
                Err(reason) => {
                    return World { now, shared: &mut self.shared, out }.drop(reason);
                }
            },
        };
        if self.objects.get(&serial).is_some_and(Reception::is_opening) {
            self.with(now, serial, out, |reception, world| reception.keep(world, packet));
        } else {
            self.with(now, serial, out, |reception, world| reception.on_datagram(world, datagram));
        }
    }

    /// Begins with an object that is not being received.
    fn begin(
        &mut self,
        now: Instant,
        key: Key,
        kind: ObjectKind,
        out: &mut Vec<ReceiverOutput>,
    ) -> Result<u64, DropReason> {
        self.check_new(now, key)?;
        let (sender, object) = key;
        let stem = reception::stem(sender, object);
        let resume = self.unfinished.is_waiting(&stem);
        if !resume {
            self.make_room(now, out)?;
        }
        self.unfinished.begin(stem);
        let serial = self.next_serial;
        self.next_serial += 1;
        let mut world = World { now, shared: &mut self.shared, out };
        let reception = Reception::new(&mut world, serial, sender, object, kind, resume);
        self.objects.insert(serial, reception);
        self.serials.insert(key, serial);
        Ok(serial)
    }

    /// Removes the unfinished objects that wait longest, until another one may begin.
    fn make_room(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) -> Result<(), DropReason> {
        let most = self.shared.config.limits.unfinished;
        while self.unfinished.len() >= most {
            let stem = self.unfinished.take_oldest().ok_or(DropReason::Objects)?;
            let mut world = World { now, shared: &mut self.shared, out };
            reception::remove_files(&mut world, &stem);
            let line = format!("{stem}: removed, the oldest of {most} unfinished objects");
            world.report(Level::Warning, line);
        }
        Ok(())
    }

    /// Whether an object may begin.
    fn check_new(&mut self, now: Instant, key: Key) -> Result<(), DropReason> {
        if let Some(heard) = self.ended.get_mut(&key) {
            if now.since(*heard) < ENDED_FOR {
                *heard = now;
                return Err(DropReason::Ended);
            }
            self.ended.remove(&key);
        }
        if self.shared.is_blocked(now) {
            return Err(DropReason::DiskFull);
        }
        let limits = &self.shared.config.limits;
        let of_sender = self.serials.keys().filter(|(sender, _)| *sender == key.0).count();
        if self.objects.len() >= limits.objects {
            Err(DropReason::Objects)
        } else if of_sender >= limits.objects_per_sender {
            Err(DropReason::SenderObjects)
        } else {
            Ok(())
        }
    }

    /// Calls into one object and draws the consequences.
    fn with(
        &mut self,
        now: Instant,
        serial: u64,
        out: &mut Vec<ReceiverOutput>,
        call: impl FnOnce(&mut Reception, &mut World<'_>),
    ) {
        let Some(reception) = self.objects.get_mut(&serial) else { return };
        let before = reception.index_memory();
        call(reception, &mut World { now, shared: &mut self.shared, out });
        self.shared.index = self.shared.index + reception.index_memory() - before;
        if let Some(outcome) = reception.take_outcome() {
            self.end(now, serial, outcome, out);
        }
        self.schedule(now, out);
    }

    fn end(&mut self, now: Instant, serial: u64, outcome: Outcome, out: &mut Vec<ReceiverOutput>) {
        let Some(reception) = self.objects.remove(&serial) else { return };
        let (sender, object) = (reception.sender, reception.object);
        self.serials.remove(&(sender, object));
        let stem = reception::stem(sender, object);
        self.unfinished.end(stem, !reception.is_discarded());
        match outcome {
            Outcome::Forgotten => return self.finish_if_done(out),
            Outcome::Received(report) => {
                self.received += 1;
                out.push(ReceiverOutput::Received(*report));
            }
            Outcome::Failed(text) => {
                self.failed += 1;
                let (name, sender, object) = (reception.name(), Some(sender), Some(object));
                out.push(ReceiverOutput::Failed { sender, object, name, text });
            }
        }
        self.remember((sender, object), now);
        let enough = self.shared.config.count.is_some_and(|count| self.received >= count);
        if enough || self.shared.gave_up {
            self.stop_once(now, out);
        }
        self.finish_if_done(out);
    }

    fn remember(&mut self, key: Key, now: Instant) {
        if self.ended.len() >= MAX_ENDED
            && let Some(oldest) = self.ended.iter().min_by_key(|(_, heard)| **heard)
        {
            let oldest = *oldest.0;
            self.ended.remove(&oldest);
        }
        self.ended.insert(key, now);
    }

    /// Gives the turns of which there is only one at a time: decoding, and taking a name.
    fn schedule(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        let may_decode = !self.shared.is_blocked(now)
            && self.shared.backlog < self.shared.config.limits.backlog_bytes;
        if self.shared.decoding.is_none() && may_decode {
            let mut waiting = self.objects.values_mut().filter(|object| object.wants_to_decode());
            if let Some(reception) = waiting.next() {
                reception.begin_decode(&mut World { now, shared: &mut self.shared, out });
            }
        }
        if self.shared.placing.is_none()
            && let Some(reception) = self.objects.values_mut().find(|object| object.wants_place())
        {
            reception.begin_placing(&mut World { now, shared: &mut self.shared, out });
        }
    }

    fn on_disk(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<DiskReply, DiskError>,
        out: &mut Vec<ReceiverOutput>,
    ) {
        let Some(purpose) = self.shared.take(token) else { return };
        match purpose.job {
            Job::Directory => self.on_directory(result, out),
            Job::Unattended => self.finish_if_done(out),
            Job::OpenOutput | Job::WriteOutput => {
                if let Some(piped) = &mut self.piped {
                    piped.on_disk(&mut World { now, shared: &mut self.shared, out }, result);
                }
                self.end_piped(now, out);
            }
            job if self.objects.contains_key(&purpose.serial) => {
                self.with(now, purpose.serial, out, |reception, world| {
                    reception.on_disk(world, purpose.epoch, job, result);
                });
            }
            _ => {
                if let Ok(DiskReply::Opened { file, .. }) = result {
                    let mut world = World { now, shared: &mut self.shared, out };
                    world.tell(DiskRequest::Close { file });
                }
            }
        }
    }

    /// The end of the stream on standard output is the end of the receiver.
    fn end_piped(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        let Some(piped) = &mut self.piped else { return };
        match piped.take_ending() {
            None => return self.finish_if_done(out),
            Some(Ending::Received(report)) => {
                self.received += 1;
                out.push(ReceiverOutput::Received(*report));
            }
            Some(Ending::Failed(text)) => {
                self.failed += 1;
                let (sender, object) = piped.stream().unzip();
                out.push(ReceiverOutput::Failed { sender, object, name: piped.name(), text });
            }
        }
        self.stop_once(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        if let Some(piped) = &mut self.piped {
            piped.tick(&mut World { now, shared: &mut self.shared, out });
            return self.end_piped(now, out);
        }
        let idle = self.shared.config.idle;
        let due: Vec<u64> = self
            .objects
            .iter()
            .filter(|(_, reception)| reception.deadline(idle).is_some_and(|due| due <= now))
            .map(|(serial, _)| *serial)
            .collect();
        for serial in due {
            self.with(now, serial, out, |reception, world| reception.tick(world));
        }
        self.schedule(now, out);
    }

    /// One slice for one object, the next in turn.
    fn work(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        if let Some(piped) = &mut self.piped {
            piped.work(&mut World { now, shared: &mut self.shared, out });
            return self.end_piped(now, out);
        }
        let working =
            |(serial, reception): (&u64, &Reception)| reception.has_work().then_some(*serial);
        let next = self
            .objects
            .range(self.last_worked + 1..)
            .find_map(working)
            .or_else(|| self.objects.iter().find_map(working));
        if let Some(serial) = next {
            self.last_worked = serial;
            self.with(now, serial, out, |reception, world| reception.work(world));
        }
    }

    fn stop(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        match self.stage {
            Stage::Stopping => self.finish(out),
            Stage::Ended => {}
            Stage::New | Stage::Preparing | Stage::Running => self.stop_once(now, out),
        }
    }

    /// Begins to stop, if it has not begun before.
    fn stop_once(&mut self, now: Instant, out: &mut Vec<ReceiverOutput>) {
        if matches!(self.stage, Stage::Stopping | Stage::Ended) {
            return;
        }
        self.stage = Stage::Stopping;
        let serials: Vec<u64> = self.objects.keys().copied().collect();
        for serial in serials {
            self.with(now, serial, out, |reception, world| reception.park(world));
        }
        self.finish_if_done(out);
    }

    fn finish_if_done(&mut self, out: &mut Vec<ReceiverOutput>) {
        // Requests nobody waits for, such as removing a file, are waited for here.
        let idle = self.objects.is_empty() && self.shared.requests.pending().next().is_none();
        if self.stage == Stage::Stopping && idle {
            self.finish(out);
        }
    }

    fn finish(&mut self, out: &mut Vec<ReceiverOutput>) {
        if self.stage != Stage::Ended {
            self.stage = Stage::Ended;
            self.objects.clear();
            self.serials.clear();
            self.report_drops(out);
            out.push(ReceiverOutput::Done { received: self.received, failed: self.failed });
        }
    }

    /// Says how many datagrams were of no use, to everybody if a limit was the reason for some.
    fn report_drops(&self, out: &mut Vec<ReceiverOutput>) {
        let counts: Vec<String> =
            self.shared.drops.nonzero().map(|(name, count)| format!("{name} {count}")).collect();
        if !counts.is_empty() {
            let level = if self.shared.told.is_empty() { Level::Debug } else { Level::Info };
            let line = format!("datagrams that were of no use: {}", counts.join(", "));
            out.push(ReceiverOutput::Host(HostOutput::Report { level, line }));
        }
    }
}

/// Whether an announce of a file does not match its id.
fn is_forged(announce: &Announce) -> bool {
    match (announce.kind, &announce.total) {
        (ObjectKind::File, Some(total)) => announce.description.file_id(total) != announce.object,
        (ObjectKind::File, None) => true,
        (ObjectKind::Stream, _) => false,
    }
}

impl Component for Receiver {
    type Input = ReceiverInput;
    type Output = ReceiverOutput;

    fn handle(&mut self, now: Instant, input: ReceiverInput, out: &mut Vec<ReceiverOutput>) {
        match input {
            ReceiverInput::Start => self.start(now, out),
            ReceiverInput::Datagram { packet, from } => self.on_datagram(now, packet, from, out),
            ReceiverInput::Host(HostInput::Disk { token, result }) => {
                self.on_disk(now, token, result, out)
            }
            ReceiverInput::Host(HostInput::Tick) => self.tick(now, out),
            ReceiverInput::Host(HostInput::Slice) => self.work(now, out),
            ReceiverInput::Host(HostInput::Stop) => self.stop(now, out),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let idle = self.shared.config.idle;
        let objects = self.objects.values().filter_map(|reception| reception.deadline(idle)).min();
        // While another object decodes it would only be told to wait again.
        let waits =
            self.shared.decoding.is_none() && self.objects.values().any(Reception::wants_to_decode);
        let retry = self.shared.retry_at().filter(|_| waits);
        let piped = self.piped.as_ref().and_then(|piped| piped.deadline(&self.shared));
        let running = self.stage == Stage::Running;
        [objects, retry, piped.filter(|_| running)].into_iter().flatten().min()
    }

    fn has_background_work(&self) -> bool {
        self.objects.values().any(Reception::has_work)
            || self.piped.as_ref().is_some_and(Piped::has_work)
    }
}
