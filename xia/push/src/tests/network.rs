//! Senders and receivers on a network that loses, repeats and reorders, in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::{Instant, Packet, Random};
use weft_runtime::Component;

use super::disk::Disk;
use crate::host::{HostInput, HostOutput};
use crate::object::SenderKey;
use crate::receiver::{ReceiveReport, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput};
use crate::sender::{SendSummary, Sender, SenderConfig, SenderInput, SenderOutput};

/// How long the disk takes for a request.
const DISK_TIME: Duration = Duration::from_micros(20);

/// What a link does to datagrams.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    /// Lost, in percent.
    pub(super) loss: u64,
    /// Delivered twice, in percent.
    pub(super) duplicates: u64,
    /// Delayed by up to this, in percent a tenth of datagrams.
    pub(super) jitter: Duration,
}

pub(super) struct SendingHost {
    pub(super) sender: Sender,
    pub(super) disk: Disk,
    pub(super) key: SenderKey,
    disk_at: Option<Instant>,
    pub(super) done: Option<Result<SendSummary, String>>,
    pub(super) peak: usize,
}

pub(super) struct ReceivingHost {
    pub(super) receiver: Option<Receiver>,
    pub(super) config: ReceiverConfig,
    pub(super) disk: Disk,
    pub(super) link: Link,
    inbox: BTreeMap<(Instant, u64), (Packet, SenderKey)>,
    disk_at: Option<Instant>,
    pub(super) reports: Vec<ReceiveReport>,
    pub(super) failures: Vec<String>,
    pub(super) lines: Vec<String>,
    pub(super) done: bool,
    pub(super) peak: usize,
}

/// The whole world of a test.
pub(super) struct Network {
    pub(super) now: Instant,
    pub(super) random: Random,
    pub(super) senders: Vec<SendingHost>,
    pub(super) receivers: Vec<ReceivingHost>,
    sequence: u64,
    recorded: Option<Vec<(Instant, usize)>>,
}

impl Network {
    pub(super) fn new(seed: u64) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let random = Random::from_seed(seed);
        let (senders, receivers) = (Vec::new(), Vec::new());
        Self { now, random, senders, receivers, sequence: 0, recorded: None }
    }

    pub(super) fn add_sender(&mut self, key: &str, config: SenderConfig, disk: Disk) -> usize {
        let seed = self.random.number();
        let sender = Sender::new(config, Random::from_seed(seed)).unwrap();
        let key = SenderKey::new(key.as_bytes());
        let host = SendingHost { sender, disk, key, disk_at: None, done: None, peak: 0 };
        self.senders.push(host);
        let index = self.senders.len() - 1;
        self.tell_sender(index, SenderInput::Start);
        index
    }

    pub(super) fn add_receiver(&mut self, config: ReceiverConfig, disk: Disk, link: Link) -> usize {
        self.receivers.push(ReceivingHost {
            receiver: None,
            config,
            disk,
            link,
            inbox: BTreeMap::new(),
            disk_at: None,
            reports: Vec::new(),
            failures: Vec::new(),
            lines: Vec::new(),
            done: false,
            peak: 0,
        });
        let index = self.receivers.len() - 1;
        self.start_receiver(index);
        index
    }

    pub(super) fn start_receiver(&mut self, index: usize) {
        let host = &mut self.receivers[index];
        host.receiver = Some(Receiver::new(host.config.clone()));
        host.done = false;
        self.tell_receiver(index, ReceiverInput::Start);
    }

    /// The receiver dies at once; its disk stays as it is.
    pub(super) fn kill_receiver(&mut self, index: usize) {
        let host = &mut self.receivers[index];
        host.receiver = None;
        host.disk_at = None;
        host.disk.kill(&mut self.random);
    }

    pub(super) fn tell_sender(&mut self, index: usize, input: SenderInput) {
        let mut out = Vec::new();
        let host = &mut self.senders[index];
        host.sender.handle(self.now, input, &mut out);
        host.peak = host.peak.max(host.sender.memory());
        for output in out {
            match output {
                SenderOutput::Datagram(packet) => self.transmit(index, &packet),
                SenderOutput::Host(HostOutput::Disk { token, request }) => {
                    let host = &mut self.senders[index];
                    host.disk.request(token, request);
                    host.disk_at.get_or_insert(self.now + DISK_TIME);
                }
                SenderOutput::Done(summary) => self.senders[index].done = Some(Ok(summary)),
                SenderOutput::Failed(text) => self.senders[index].done = Some(Err(text)),
                SenderOutput::Host(HostOutput::Progress { .. })
                | SenderOutput::Host(HostOutput::Report { .. }) => {}
            }
        }
    }

    fn transmit(&mut self, sender: usize, packet: &Packet) {
        let from = self.senders[sender].key;
        if let Some(recorded) = &mut self.recorded {
            recorded.push((self.now, packet.len()));
        }
        for receiver in 0..self.receivers.len() {
            self.deliver(receiver, packet, from);
        }
    }

    /// Sends a datagram over the link to one receiver.
    pub(super) fn deliver(&mut self, receiver: usize, packet: &Packet, from: SenderKey) {
        let link = self.receivers[receiver].link;
        if self.random.chance(link.loss, 100) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(link.duplicates, 100));
        for _ in 0..copies {
            let late = self.random.chance(1, 10);
            let jitter =
                if late { self.random.below(link.jitter.as_nanos() as u64 + 1) } else { 0 };
            let at = self.now + Duration::from_micros(100) + Duration::from_nanos(jitter);
            self.sequence += 1;
            let entry = (packet.duplicate(), from);
            self.receivers[receiver].inbox.insert((at, self.sequence), entry);
        }
    }

    pub(super) fn tell_receiver(&mut self, index: usize, input: ReceiverInput) {
        let mut out = Vec::new();
        let host = &mut self.receivers[index];
        let Some(receiver) = &mut host.receiver else { return };
        receiver.handle(self.now, input, &mut out);
        host.peak = host.peak.max(receiver.memory());
        for output in out {
            match output {
                ReceiverOutput::Host(HostOutput::Disk { token, request }) => {
                    host.disk.request(token, request);
                    host.disk_at.get_or_insert(self.now + DISK_TIME);
                }
                ReceiverOutput::Received(report) => host.reports.push(report),
                ReceiverOutput::Failed { name, text, .. } => {
                    host.failures.push(format!("{name}: {text}"));
                }
                ReceiverOutput::Host(HostOutput::Report { line, .. }) => host.lines.push(line),
                ReceiverOutput::Done { .. } => host.done = true,
                ReceiverOutput::Host(HostOutput::Progress { .. }) => {}
            }
        }
    }

    /// Does what is due next; false if nothing is ever due again.
    pub(super) fn step(&mut self) -> bool {
        let Some(next) = self.next_time() else { return false };
        self.now = self.now.max(next);
        for index in 0..self.senders.len() {
            self.step_sender(index);
        }
        for index in 0..self.receivers.len() {
            self.step_receiver(index);
        }
        true
    }

    fn next_time(&self) -> Option<Instant> {
        let senders = self.senders.iter().flat_map(|host| {
            let work = host.sender.has_background_work().then_some(self.now);
            [host.disk_at.filter(|_| host.disk.is_busy()), host.sender.deadline(), work]
        });
        let receivers = self.receivers.iter().filter_map(|host| {
            let receiver = host.receiver.as_ref()?;
            let work = receiver.has_background_work().then_some(self.now);
            let inbox = host.inbox.first_key_value().map(|((at, _), _)| *at);
            Some([host.disk_at.filter(|_| host.disk.is_busy()), receiver.deadline(), work, inbox])
        });
        senders.chain(receivers.flatten()).flatten().min()
    }

    fn step_sender(&mut self, index: usize) {
        let host = &mut self.senders[index];
        if host.disk_at.is_some_and(|at| at <= self.now) && host.disk.is_busy() {
            let answer = host.disk.step();
            host.disk_at = host.disk.is_busy().then(|| self.now + DISK_TIME);
            if let Some((token, result)) = answer {
                self.tell_sender(index, HostInput::Disk { token, result }.into());
            }
        }
        if self.senders[index].sender.deadline().is_some_and(|due| due <= self.now) {
            self.tell_sender(index, HostInput::Tick.into());
        }
        if self.senders[index].sender.has_background_work() {
            self.tell_sender(index, HostInput::Slice.into());
        }
    }

    fn step_receiver(&mut self, index: usize) {
        let host = &mut self.receivers[index];
        if host.disk_at.is_some_and(|at| at <= self.now) {
            let answer = host.disk.step();
            host.disk_at = host.disk.is_busy().then(|| self.now + DISK_TIME);
            if let Some((token, result)) = answer {
                self.tell_receiver(index, HostInput::Disk { token, result }.into());
            }
        }
        while let Some(entry) = self.receivers[index].inbox.first_entry()
            && entry.key().0 <= self.now
        {
            let (packet, from) = entry.remove();
            self.tell_receiver(index, ReceiverInput::Datagram { packet, from });
        }
        let due = |receiver: &Receiver| receiver.deadline();
        let deadline = self.receivers[index].receiver.as_ref().and_then(due);
        if deadline.is_some_and(|due| due <= self.now) {
            self.tell_receiver(index, HostInput::Tick.into());
        }
        if self.receivers[index].receiver.as_ref().is_some_and(Component::has_background_work) {
            self.tell_receiver(index, HostInput::Slice.into());
        }
    }

    /// Runs until `done` or until `limit` of virtual time has passed; panics in the latter case.
    pub(super) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            assert!(self.step(), "nothing will ever happen again");
            assert!(self.now < end, "it takes too long: {:?}", self.status());
        }
    }

    /// Runs for a time.
    pub(super) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.next_time().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs for a time; when which sender sent how many bytes.
    pub(super) fn record_sending(&mut self, span: Duration) -> Vec<(Instant, usize)> {
        self.recorded = Some(Vec::new());
        self.run_for(span);
        self.recorded.take().unwrap_or_default()
    }

    /// Somebody writes to a sender's standard input.
    pub(super) fn write_stdin(&mut self, sender: usize, bytes: &[u8]) {
        let host = &mut self.senders[sender];
        host.disk.stdin.push_back(bytes.to_vec());
        host.disk_at = Some(self.now + DISK_TIME);
    }

    /// Runs until every receiver has received `count` objects.
    pub(super) fn run_until_received(&mut self, count: usize, limit: Duration) {
        self.run_until(limit, |network| {
            network.receivers.iter().all(|host| host.reports.len() >= count)
        });
    }

    fn status(&self) -> Vec<(usize, &[String], &[String])> {
        self.receivers
            .iter()
            .map(|host| (host.reports.len(), &host.failures[..], &host.lines[..]))
            .collect()
    }
}
