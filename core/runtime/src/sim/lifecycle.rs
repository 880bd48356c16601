//! The life of processes in the world: start, calls, what they ask for, end.

use std::path::Path;
use std::time::Duration;

use weft_base::{PortId, Token};

use super::agenda::Due;
use super::disk::OpenFiles;
use super::family::ParentEvent;
use super::ids::{NodeId, ProcessId};
use super::process::{Body, Line, Slot, Spawn, Status, Waiting};
use super::world::World;
use crate::{
    Action, ChannelAddress, DiskRequest, EngineReply, EngineRequest, Event, Level, ProgramReply,
    ProgramRequest, Tuned, Tuning,
};

/// # Processes
impl World {
    /// Starts a process on a node.
    pub fn spawn(&mut self, node: NodeId, spawn: Spawn) -> ProcessId {
        let slot = Slot::new(node, spawn.name, spawn.body);
        self.start(slot, &spawn.directory, spawn.input)
    }

    pub(super) fn start(&mut self, mut slot: Slot, directory: &Path, input: Vec<u8>) -> ProcessId {
        let id = ProcessId::at(self.processes.len());
        slot.files = OpenFiles::new(directory, input);
        // If a file is in the way the process gets the error when it uses the directory.
        let _ = self.disk.make_directory(slot.files.directory());
        self.processes.push(slot);
        self.running += 1;
        self.post(id, Waiting::Event(Event::Start));
        id
    }

    /// Asks a process to end, and kills it if it does not within `WorldConfig::stop_grace`.
    pub fn stop(&mut self, process: ProcessId) {
        self.clock.schedule(self.now() + self.config.stop_grace, Due::Grace(process));
        self.post(process, Waiting::Event(Event::Stop));
    }

    /// Ends a process at once, as SIGKILL does: its ports, channels and files close. Nothing
    /// happens if it has ended before.
    pub fn kill(&mut self, process: ProcessId) {
        self.end(process, Status::Killed);
    }

    /// How a process is doing.
    #[must_use]
    pub fn status(&self, process: ProcessId) -> Status {
        self.processes[process.index()].status
    }

    /// How many processes run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// All processes that were ever started, in order.
    pub fn processes(&self) -> impl Iterator<Item = ProcessId> + use<> {
        (0..self.processes.len()).map(ProcessId::at)
    }

    /// The name and node of a process as `name on node`.
    #[must_use]
    pub fn process_name(&self, process: ProcessId) -> String {
        let slot = &self.processes[process.index()];
        format!("{} on {}", slot.name, self.node_name(slot.node))
    }

    /// What a process and its children have printed and reported, in order. What a child says stands
    /// with its parent alone.
    #[must_use]
    pub fn lines(&self, process: ProcessId) -> &[Line] {
        &self.processes[process.index()].lines
    }

    /// The bytes that a process wrote to standard output as a file.
    #[must_use]
    pub fn output(&self, process: ProcessId) -> Vec<u8> {
        self.output_from(process, 0)
    }

    /// The same from the byte `offset` on.
    #[must_use]
    pub fn output_from(&self, process: ProcessId, offset: u64) -> Vec<u8> {
        self.disk.written_output(&self.processes[process.index()].files, offset)
    }

    /// Puts something in the inbox of a process, if it runs.
    pub(super) fn post(&mut self, process: ProcessId, waiting: Waiting) {
        let slot = &mut self.processes[process.index()];
        if slot.body.is_none() {
            return;
        }
        slot.inbox.push_back(waiting);
        if !slot.ready {
            slot.ready = true;
            self.ready.push_back(process);
        }
    }

    /// Gives a process what is in its inbox by now; what comes in meanwhile waits for its turn.
    pub(super) fn run_process(&mut self, process: ProcessId) {
        let slot = &mut self.processes[process.index()];
        slot.ready = false;
        for _ in 0..slot.inbox.len() {
            let slot = &mut self.processes[process.index()];
            let Some(waiting) = slot.inbox.pop_front() else { break };
            let event = match waiting {
                Waiting::Event(event) => Some(event),
                Waiting::Family(event) => {
                    self.call_parent(process, event);
                    None
                }
                Waiting::Packets(port) => self.take_packets(process, port),
                Waiting::Tick => {
                    let due = slot.deadline().is_some_and(|at| at <= self.clock.now());
                    due.then_some(Event::Tick)
                }
            };
            if let Some(event) = event {
                self.call(process, event);
            }
        }
        self.look_ahead(process);
    }

    pub(super) fn run_slice(&mut self, process: ProcessId) {
        let slot = &mut self.processes[process.index()];
        slot.in_background = false;
        if !slot.body.as_ref().is_some_and(Body::has_background_work) {
            return;
        }
        self.call(process, Event::Slice);
        let slot = &mut self.processes[process.index()];
        let more = slot.body.as_ref().is_some_and(Body::has_background_work);
        if more && self.config.slice_cost > Duration::ZERO {
            slot.in_background = true;
            self.clock.schedule(self.clock.now() + self.config.slice_cost, Due::Slice(process));
        }
        self.look_ahead(process);
    }

    /// Lets a process handle an event and does what it asks for.
    fn call(&mut self, id: ProcessId, event: Event) {
        let now = self.clock.now();
        let slot = &mut self.processes[id.index()];
        let process = match &mut slot.body {
            Some(Body::Process(process)) => process,
            Some(Body::Parent(_)) => return self.call_parent(id, ParentEvent::World(event)),
            None => return,
        };
        let mut actions = std::mem::take(&mut self.actions);
        process.handle(now, event, &mut actions);
        slot.note_call(now);
        for action in actions.drain(..) {
            self.perform(id, action);
        }
        self.actions = actions;
    }

    /// Asks a process what it wants next: to be called at a time, or for background work.
    fn look_ahead(&mut self, id: ProcessId) {
        let now = self.clock.now();
        let slot = &mut self.processes[id.index()];
        let Some(process) = &slot.body else { return };
        if let Some(deadline) = process.deadline() {
            let at = deadline.max(now);
            if slot.timer.is_none_or(|timer| timer > at) {
                slot.timer = Some(at);
                self.clock.schedule(at, Due::Deadline(id));
            }
        }
        if !slot.in_background && process.has_background_work() {
            slot.in_background = true;
            self.background.push_back(id);
        }
    }

    pub(super) fn perform(&mut self, id: ProcessId, action: Action) {
        if self.processes[id.index()].body.is_none() {
            return; // What comes after an exit is not done.
        }
        match action {
            Action::OpenPort { token, spec } => self.open_port(id, token, &spec),
            Action::OpenHandles { token, spec } => self.open_handles(id, token, &spec),
            Action::AdoptPort { token, spec, handles, info } => {
                self.adopt_port(id, token, &spec, &handles, info);
            }
            Action::ClosePort { port } => self.close_port(id, port),
            Action::Transmit { port, packet } => self.send_packet(id, port, packet),
            Action::WatchInterfaces => self.watch_interfaces(id),
            Action::WatchIp => self.watch_ip(id),
            // Every neighbour is known.
            Action::FindNeighbour { .. } => {}
            Action::ConfigureInterface { token, request } => {
                let result = self.configure_interface(id, &request);
                self.post(id, Waiting::Event(Event::InterfaceConfigured { token, result }));
            }
            Action::Routes { token, request } => {
                if let Some(result) = self.routes_asked(id, request).transpose() {
                    self.post(id, Waiting::Event(Event::RoutesAnswered { token, result }));
                }
            }
            Action::Tune { token, tuning, .. } => {
                let mut tuned = Tuned::default();
                if tuning != Tuning::default() {
                    let note = "a simulated machine takes packets without NAPI and GRO";
                    tuned.refused.push(note.to_owned());
                }
                self.post(id, Waiting::Event(Event::Tuned { token, tuned }));
            }
            Action::Schedule { token, .. } => {
                let result = Err("a simulated machine has no processors to share".to_owned());
                self.post(id, Waiting::Event(Event::Scheduled { token, result }));
            }
            Action::Program { token, request } => {
                let result = no_programs(&request);
                self.post(id, Waiting::Event(Event::ProgramAnswered { token, result }));
            }
            Action::Engine { token, request } => {
                let result = match request {
                    // None is there.
                    EngineRequest::Detach { .. } => Ok(EngineReply::Done { release: Vec::new() }),
                    _ => Err("a simulated machine has no packet engines".to_owned()),
                };
                self.post(id, Waiting::Event(Event::EngineAnswered { token, result }));
            }
            Action::AdoptTables { token, .. } => {
                let result = Err("a simulated machine has no packet engines".to_owned());
                self.post(id, Waiting::Event(Event::TablesAdopted { token, result }));
            }
            Action::CountTables { token } => {
                self.post(id, Waiting::Event(Event::TablesCounted { token, sums: Vec::new() }));
            }
            // Nobody has been given tables.
            Action::WriteTables { .. } => {}
            Action::Listen { token, address } => self.listen(id, token, &address),
            Action::OpenListener { token, address } => {
                let address = ChannelAddress::Tls { address, peer: None };
                self.refuse_encryption(id, token, "listen at", &address);
            }
            Action::AdoptListener { token, address, .. } => {
                self.refuse_encryption(id, token, "listen at", &address);
            }
            Action::Stream { token, request } => self.stream(id, token, request),
            Action::CloseListener { token } => self.stop_listening(id, token),
            // Nothing asks for them.
            Action::SetKeys { .. } => {}
            Action::Connect { token, address } => self.connect_channel(id, token, &address),
            Action::Send { channel, message } => self.send_message(id, channel, message),
            Action::TakeLong { channel } => self.take_long(id, channel),
            Action::Close { channel } => self.close_channel(id, channel),
            Action::Disk { token, request } => self.use_disk(id, token, request),
            Action::Count { token } => {
                let counts = self.processes[id.index()].counts();
                self.post(id, Waiting::Event(Event::Counted { token, counts }));
            }
            Action::Print { line } => self.note_line(id, None, line),
            Action::Report { level, line } => self.note_line(id, Some(level), line),
            // For terminals only; what is reported is kept whatever its level.
            Action::Progress { .. } | Action::LogLevel { .. } => {}
            Action::Exit { status } => self.end(id, Status::Exited(status)),
        }
    }

    fn note_line(&mut self, id: ProcessId, level: Option<Level>, text: String) {
        let time = self.clock.now();
        let mut speaker = id;
        while let Some(parent) = self.processes[speaker.index()].parent {
            speaker = parent;
        }
        self.processes[speaker.index()].lines.push(Line { time, level, text });
    }

    fn use_disk(&mut self, id: ProcessId, token: Token, request: DiskRequest) {
        let slot = &mut self.processes[id.index()];
        let result = self.disk.handle(&mut slot.files, request);
        let answer = Event::Disk { token, result };
        if self.config.disk_latency.is_zero() {
            self.post(id, Waiting::Event(answer));
        } else {
            slot.disk_answers.push_back(answer);
            self.clock.schedule(self.clock.now() + self.config.disk_latency, Due::Disk(id));
        }
    }

    /// Ends a process, however it comes.
    fn end(&mut self, id: ProcessId, status: Status) {
        let slot = &mut self.processes[id.index()];
        if slot.body.take().is_none() {
            return;
        }
        slot.status = status;
        slot.inbox.clear();
        slot.disk_answers.clear();
        self.disk.close_all(&mut slot.files);
        self.running -= 1;
        let ports = u32::try_from(slot.ports.len()).expect("ports are numbered in 32 bits");
        for port in 1..=ports {
            self.close_port(id, PortId(port));
        }
        self.close_channels(id);
        self.forget_watcher(id);
        self.settle_family(id, status);
    }
}

/// A modelled machine has no kernel that runs programs, and none is attached.
fn no_programs(request: &ProgramRequest) -> Result<ProgramReply, String> {
    match request {
        ProgramRequest::List { .. } => {
            Ok(ProgramReply::Listed { found: Vec::new(), counters: Vec::new() })
        }
        _ => Err("a simulated machine runs no eBPF programs: for loss in the simulator, say `loss` of the \
                  link in the lab file"
            .to_owned()),
    }
}
