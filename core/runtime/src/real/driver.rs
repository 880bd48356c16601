//! The loop: wait, handle, carry out, repeat.
//!
//! One turn serves every source that is ready once, with one batch each, and then gives the process
//! what its own actions caused (answers of the disk, failed opens). Events wait in a queue, so that
//! carrying out an action never calls the process. Packets and messages sent in a turn leave at its
//! end, or as soon as there is a whole batch; routes are changed at its end.
//!
//! Background work gets a slice whenever a turn found nothing else to do, and one slice every
//! [`TURNS_PER_SLICE`] turns otherwise.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use weft_base::Instant;

use super::channels::{self, Channels};
use super::disk::Disk;
use super::engines::Engines;
use super::interfaces::Interfaces;
use super::lines::Lines;
use super::poller::{Poller, Ready, Source};
use super::ports::Ports;
use super::programs::Programs;
use super::routes::Routes;
use super::signals::{Signal, Signals};
use super::terminal::{Progress, Terminal};
use super::tuning::Tuner;
use super::{DriverDrop, Drops, Options, clock};
use crate::{Action, DriverCounts, Event, Level, Process};

/// Under full load, background work gets one slice in so many turns.
const TURNS_PER_SLICE: u32 = 8;

pub(super) struct Driver {
    process: Box<dyn Process>,
    options: Options,
    poller: Poller,
    signals: Signals,
    ports: Ports,
    channels: Channels,
    interfaces: Interfaces,
    routes: Routes,
    tuner: Tuner,
    programs: Programs,
    engines: Engines,
    disk: Disk,
    terminal: Terminal,
    drops: Drops,
    /// What happened and was not told yet.
    events: VecDeque<Event>,
    /// Empty between two calls; kept for its memory.
    actions: Vec<Action>,
    turns_since_slice: u32,
    stop: Option<Stop>,
    output_was_broken: bool,
    exit: Option<u8>,
}

/// The process was asked to stop.
#[derive(Clone, Copy)]
struct Stop {
    signal: Signal,
    /// When it is ended anyway.
    deadline: Instant,
}

impl Driver {
    pub(super) fn new(process: Box<dyn Process>, mut options: Options) -> io::Result<Self> {
        let poller = Poller::new()?;
        let signals = if options.signals { Signals::watch(&poller)? } else { Signals::none() };
        let mut channels = Channels::new(&options);
        let mut events = VecDeque::from([Event::Start]);
        events.extend(channels.inherit(std::mem::take(&mut options.inherited), &poller)?);
        Ok(Self {
            process,
            poller,
            signals,
            ports: Ports::new(&options),
            channels,
            interfaces: Interfaces::default(),
            routes: Routes::default(),
            tuner: Tuner::default(),
            programs: Programs::default(),
            engines: Engines::new(std::mem::take(&mut options.engines)),
            disk: Disk::new()?,
            terminal: Terminal::new(options.level, Lines::new(options.name.as_deref())),
            drops: Drops::new(),
            events,
            actions: Vec::new(),
            turns_since_slice: 0,
            stop: None,
            output_was_broken: false,
            exit: None,
            options,
        })
    }

    /// Runs until the process exits; returns its status.
    pub(super) fn run(mut self) -> u8 {
        let mut ready = Vec::new();
        self.deliver();
        let status = loop {
            self.flush();
            if let Some(status) = self.exit {
                break status;
            }
            ready.clear();
            if let Err(error) = self.poller.wait(self.timeout(), &mut ready) {
                let line = format!("waiting for events failed: {error}");
                self.terminal.report(Level::Error, &line);
                break 1;
            }
            self.turn(&ready);
        };
        let signal = self.linger();
        let status = self.status(status, signal);
        self.report_statistics();
        self.terminal.finish();
        status
    }

    /// Serves what is ready, then the deadline, then background work.
    fn turn(&mut self, ready: &[Ready]) {
        let mut unfinished = self.channels.take_unfinished();
        let waits = !self.events.is_empty() || self.routes.has_answers();
        let mut idle = ready.is_empty() && !waits && unfinished.is_empty();
        for ready in ready {
            if let (Source::Channel(channel), true) = (ready.source, ready.readable) {
                unfinished.remove(&channel);
            }
            self.serve(*ready);
            self.deliver();
        }
        for channel in unfinished {
            let source = Source::Channel(channel);
            self.serve(Ready { source, readable: true, writable: false });
            self.deliver();
        }
        self.events.extend(self.routes.take_answers());
        self.deliver();
        let now = clock::now();
        self.events.extend(self.channels.expire(now, &self.poller, &mut self.drops));
        if self.process.deadline().is_some_and(|deadline| deadline <= now) {
            idle = false;
            self.tell(Event::Tick);
        }
        if self.stop.is_some_and(|stop| stop.deadline <= now) {
            self.end_anyway();
        }
        self.work_in_background(idle);
    }

    /// Takes what a source has: one batch at most.
    fn serve(&mut self, ready: Ready) {
        match ready.source {
            Source::Signal(number) => self.signalled(number),
            Source::Listener(number) => {
                self.channels.accept(number, &self.poller, &mut self.events, &mut self.drops);
            }
            Source::Port(port) => {
                if ready.readable {
                    self.ports.receive(port, clock::now(), &self.poller, &mut self.events);
                }
                if ready.writable {
                    self.events.extend(self.ports.flush_one(port, &self.poller));
                }
            }
            Source::Channel(channel) => {
                let Self { channels, poller, events, drops, .. } = self;
                if ready.readable || channels.is_handshaking(channel) {
                    channels.receive(channel, poller, events, drops);
                }
                if ready.writable {
                    events.extend(channels.flush_one(channel, poller, drops));
                }
            }
            Source::Room(channel) => {
                self.channels.room(channel, &self.poller, &mut self.events, &mut self.drops);
            }
            Source::Interfaces => {
                if let Err(error) = self.interfaces.changed(&self.poller, &mut self.events) {
                    self.terminal.report(Level::Error, &error);
                }
            }
            Source::Configuration => {
                self.interfaces.configured(&self.poller, &mut self.events);
            }
            Source::Ip => self.interfaces.ip_changed(&self.poller, &mut self.events),
            Source::Routes(number) => {
                self.routes.told(number, &self.poller, &mut self.events);
            }
            Source::DeletedRoutes => self.routes.deleted(&self.poller, &mut self.events),
            Source::Lease(number) => self.engines.lease_over(number, &self.poller),
            Source::Stream(file) => {
                self.terminal.make_way();
                self.disk.streams.ready(file, &self.poller, &mut self.events);
            }
        }
    }

    /// Tells the process the events that wait now. What these cause waits for the next call, so
    /// that a process that keeps itself busy does not keep others out.
    fn deliver(&mut self) {
        for _ in 0..self.events.len() {
            if let Some(event) = self.events.pop_front() {
                self.tell(event);
            }
        }
    }

    /// Tells the process one event and carries out its actions.
    fn tell(&mut self, event: Event) {
        if self.exit.is_some() {
            return;
        }
        let mut actions = std::mem::take(&mut self.actions);
        self.process.handle(clock::now(), event, &mut actions);
        for action in actions.drain(..) {
            // Nothing that follows an exit happens.
            if self.exit.is_none() {
                self.carry_out(action);
            }
        }
        self.actions = actions;
    }

    fn carry_out(&mut self, action: Action) {
        let Self {
            poller,
            ports,
            channels,
            interfaces,
            engines,
            disk,
            terminal,
            drops,
            events,
            ..
        } = self;
        match action {
            Action::OpenPort { token, spec } => {
                events.push_back(ports.open(token, &spec, engines, poller));
            }
            Action::OpenHandles { token, spec } => {
                events.push_back(ports.open_handles(token, &spec, engines, poller));
            }
            Action::AdoptPort { token, spec, handles, info } => {
                events.push_back(ports.adopt(token, &spec, handles, info, poller));
            }
            Action::ClosePort { port } => ports.close(port, poller, drops),
            Action::Transmit { port, packet } => {
                events.extend(ports.transmit(port, packet, poller, drops));
            }
            Action::WatchInterfaces => {
                if let Err(error) = interfaces.watch(poller) {
                    terminal.report(Level::Error, &error);
                }
            }
            Action::WatchIp => events.extend(interfaces.watch_ip(poller)),
            Action::FindNeighbour { interface, ip } => interfaces.find_neighbour(interface, ip),
            Action::ConfigureInterface { token, request } => {
                events.extend(interfaces.configure(token, &request, poller));
            }
            Action::Routes { token, request } => self.routes.ask(token, request),
            Action::Tune { token, interface, tuning } => {
                let tuned = self.tuner.tune(interface, &tuning);
                events.push_back(Event::Tuned { token, tuned });
            }
            Action::Schedule { token, process, scheduling } => {
                let process = process.unwrap_or_else(std::process::id);
                let result = self.tuner.schedule(process, &scheduling);
                events.push_back(Event::Scheduled { token, result });
            }
            Action::Program { token, request } => {
                let mut answer = self.programs.carry_out(token, request);
                engines.mark_steering(&mut answer);
                events.push_back(answer);
            }
            Action::Engine { token, request } => {
                events.push_back(engines.carry_out(token, request));
            }
            Action::AdoptTables { token, tables } => {
                let result = self.engines.adopt_tables(token, tables);
                events.push_back(Event::TablesAdopted { token, result });
            }
            Action::WriteTables { token, writes } => match self.engines.write(token, &writes) {
                Ok(keys) if keys.is_empty() => {}
                Ok(keys) => {
                    drops.add(DriverDrop::TableFull, keys.len() as u64);
                    events.push_back(Event::TablesFull { token, keys });
                }
                Err(error) => events.push_back(Event::TablesFailed { token, error }),
            },
            Action::CountTables { token } => {
                let sums = self.engines.counts(token);
                events.push_back(Event::TablesCounted { token, sums });
            }
            Action::Listen { token, address } => {
                events.push_back(channels.listen(token, &address, poller));
            }
            Action::OpenListener { token, address } => {
                events.push_back(channels::open_listener(token, address));
            }
            Action::AdoptListener { token, address, handle } => {
                events.push_back(channels.adopt_listener(token, &address, handle, poller));
            }
            Action::Stream { token, request } => {
                events.extend(channels.stream(token, request, poller));
            }
            Action::CloseListener { token } => channels.close_listener(token, poller),
            Action::SetKeys { keys } => events.extend(channels.set_keys(keys, poller, drops)),
            Action::Connect { token, address } => {
                events.extend(channels.connect(token, &address, poller, drops));
            }
            Action::Send { channel, message } => {
                events.extend(channels.send(channel, message, poller, drops));
            }
            Action::TakeLong { channel } => channels.take_long(channel),
            Action::Close { channel } => channels.close(channel, poller, drops),
            Action::Disk { token, request } => disk.carry_out(token, request, poller, events),
            Action::Count { token } => {
                let drops = drops.nonzero().collect();
                let tables = engines.all_counts();
                let counts = DriverCounts { ports: ports.counts(), tables, drops };
                events.push_back(Event::Counted { token, counts });
            }
            Action::Print { line } => {
                if !disk.streams.print(&line) {
                    drops.add(DriverDrop::OutputLost, 1);
                }
            }
            Action::Report { level, line } => terminal.report(level, &line),
            Action::LogLevel { level } => terminal.set_level(level),
            Action::Progress { label, done, total, note } => {
                terminal.progress(clock::now(), Progress { label, done, total, note });
            }
            Action::Exit { status } => self.exit = Some(status),
        }
    }

    /// The end of a turn: routes are changed, and what was sent and printed leaves.
    fn flush(&mut self) {
        let Self { poller, ports, channels, routes, disk, terminal, drops, events, .. } = self;
        routes.flush(poller);
        ports.flush(poller, events);
        channels.flush(poller, events, drops);
        if disk.streams.has_output() {
            terminal.make_way();
        }
        disk.streams.flush(poller, events);
        if disk.streams.output_is_broken() && !self.output_was_broken {
            // As `SIGPIPE` would: nobody wants the output any more.
            self.output_was_broken = true;
            self.events.push_back(Event::Stop);
        }
    }

    /// How long to wait for sources.
    fn timeout(&self) -> Option<Duration> {
        let more =
            !self.events.is_empty() || self.routes.has_answers() || self.channels.are_unfinished();
        if more || self.process.has_background_work() {
            return Some(Duration::ZERO);
        }
        let stop = self.stop.map(|stop| stop.deadline);
        let handshakes = self.channels.deadline();
        let next = self.process.deadline().into_iter().chain(stop).chain(handshakes).min()?;
        Some(next.since(clock::now()))
    }

    fn work_in_background(&mut self, idle: bool) {
        if !self.process.has_background_work() {
            self.turns_since_slice = 0;
            return;
        }
        self.turns_since_slice += 1;
        if idle || self.turns_since_slice >= TURNS_PER_SLICE {
            self.turns_since_slice = 0;
            self.tell(Event::Slice);
        }
    }

    /// The first signal asks, the second one ends.
    fn signalled(&mut self, number: u32) {
        let Some(signal) = self.signals.take(number) else { return };
        if self.stop.is_some() || signal.times > 1 {
            self.exit = Some(signal.status);
        } else {
            let deadline = clock::now() + self.options.grace;
            self.stop = Some(Stop { signal, deadline });
            self.events.push_back(Event::Stop);
        }
    }

    /// The grace period is over.
    fn end_anyway(&mut self) {
        if let (Some(stop), None) = (self.stop, self.exit) {
            let (name, grace) = (stop.signal.name, self.options.grace);
            let line = format!("the process did not end within {grace:?} of {name}: ended anyway");
            self.terminal.report(Level::Error, &line);
            self.exit = Some(stop.signal.status);
        }
    }

    /// After the exit: waits for what was sent and printed before it, or for a signal.
    ///
    /// Packets and messages are waited for during a grace period at most; so is the output of a
    /// process that was told to stop. Else output is waited for as long as there is a reader, who
    /// may be a person.
    fn linger(&mut self) -> Option<Signal> {
        self.channels.end();
        let deadline = clock::now() + self.options.grace;
        let mut ready = Vec::new();
        while !self.is_flushed() {
            let left = Some(deadline.since(clock::now())).filter(|left| !left.is_zero());
            let patient = self.stop.is_none() && self.disk.streams.has_output();
            ready.clear();
            if left.is_none() && !patient || self.poller.wait(left, &mut ready).is_err() {
                return None;
            }
            for ready in &ready {
                match ready.source {
                    Source::Signal(number) => {
                        if let Some(signal) = self.signals.take(number) {
                            return Some(signal);
                        }
                    }
                    _ => self.serve(*ready),
                }
            }
            self.events.clear();
        }
        None
    }

    /// The exit status: that of the process, unless output is lost that somebody may have wanted.
    fn status(&mut self, status: u8, signal: Option<Signal>) -> u8 {
        if status != 0 && self.disk.streams.output_error().is_some() {
            // The process has said so itself, or has failed for another reason.
            return status;
        }
        let Some(lost) = self.lost_output() else { return status };
        self.terminal.report(Level::Error, &lost);
        if status != 0 { status } else { signal.map_or(1, |signal| signal.status) }
    }

    /// What of the output is lost. A reader who has gone wants no more of it.
    fn lost_output(&self) -> Option<String> {
        let streams = &self.disk.streams;
        if let Some(error) = streams.output_error() {
            return Some(error.text.clone());
        }
        let lines = self.drops.get(DriverDrop::OutputLost);
        match (lines, streams.unwritten()) {
            _ if streams.output_is_broken() => None,
            (0, 0) => None,
            (0, bytes) => {
                Some(format!("standard output was not read: {bytes} bytes of output are lost"))
            }
            _ => Some(format!(
                "standard output was read too slowly: {lines} lines of output are lost"
            )),
        }
    }

    fn is_flushed(&self) -> bool {
        self.ports.is_flushed() && self.channels.is_flushed() && self.disk.streams.is_flushed()
    }

    /// What was moved and dropped, for debugging.
    fn report_statistics(&mut self) {
        if !self.terminal.shows(Level::Debug) {
            return;
        }
        for (name, port) in self.ports.statistics() {
            let (received, sent) = (port.received, port.sent);
            let mut line = format!(
                "{name}: received {} packets ({} bytes), sent {} packets ({} bytes)",
                received.packets, received.bytes, sent.packets, sent.bytes
            );
            for (reason, count) in port.drops.nonzero() {
                line += &format!(", {reason} {count}");
            }
            self.terminal.report(Level::Debug, &line);
        }
        for (reason, count) in self.drops.nonzero() {
            self.terminal.report(Level::Debug, &format!("dropped: {reason} {count}"));
        }
    }
}
