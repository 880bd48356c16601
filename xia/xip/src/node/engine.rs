//! The kernel's engine beside the node's own: opened, attached to interfaces, told what the routing cache holds.
//!
//! Reference: Machado et al., "Linux XIA", §4.2 (a stack in the kernel).
//!
//! The portable engine is always there. What the kernel's cannot do it passes on, so it may come and go between
//! two packets: an interface where it cannot be attached forwards by the portable engine alone, and the node says
//! so. What an earlier life of this process had left in the kernel goes on forwarding until this node has
//! cleared it, or has had it detached, which is before the node says that it is ready.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use weft_base::{ChannelId, PortId, Token};
use weft_port::PortInfo;
use weft_runtime::{Action, EngineMode, EngineReply, EngineRequest, Handle, Level, Slot, XdpMode};

use super::tallied::Tallied;
use super::{Node, PacketIo, report};
use crate::offload::{Engine, Offload, Tally};

/// What the node knows of the kernel's engine.
#[derive(Default)]
pub(super) struct KernelEngine {
    /// Where it shall run; `None` if only the portable engine is wanted.
    wanted: Option<EngineMode>,
    engine: Option<Box<dyn Engine>>,
    state: State,
    ports: BTreeMap<PortId, Port>,
    /// Who waits for what it has counted, longest first, and what that is shown with.
    asked: VecDeque<(ChannelId, Shown)>,
    /// What it has counted since this node uses it.
    tallied: Tallied,
    /// Kept for their memory.
    offloads: Vec<Offload>,
}

/// What shows what the kernel's engine has counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    Forwarding,
    Counters,
}

#[derive(Default)]
enum State {
    #[default]
    Off,
    Opening(Token),
    Adopting(Token),
    /// The token stands for its tables.
    On(Token),
    /// Why it cannot be used.
    Failed(String),
}

/// An interface of the node.
struct Port {
    interface: String,
    info: PortInfo,
    /// By which sockets it gives and takes packets.
    io: PacketIo,
    attachment: Attachment,
    /// Where it is attached, it was told of another address or MTU, and has not answered yet.
    renewal: Option<Token>,
}

enum Attachment {
    /// Not asked for.
    None,
    Asked(Token),
    /// What an earlier life of this process may have left there is to go, since nobody would tell it of changes.
    Clearing(Token),
    /// And why it is not where it would be best.
    At(Slot, XdpMode, Option<String>),
    Failed(String),
}

/// The word for the portable engine alone.
const PORTABLE: &str = "portable";

/// The mode that a word of a configuration or command means; `None` is the portable engine alone.
///
/// # Errors
/// A sentence that lists the words.
pub(super) fn mode(word: &str) -> Result<Option<EngineMode>, String> {
    if word == PORTABLE {
        return Ok(None);
    }
    let found = EngineMode::ALL.into_iter().find(|mode| mode.name() == word);
    found.map(Some).ok_or_else(|| {
        let names: Vec<_> = EngineMode::ALL.iter().map(|mode| mode.name()).collect();
        let word = word.escape_debug();
        format!("`{word}` is no engine: say {PORTABLE}, {}", names.join(", "))
    })
}

impl KernelEngine {
    /// Whether an answer to this channel waits for what the kernel has counted.
    pub(super) fn is_asked_by(&self, channel: ChannelId) -> bool {
        self.asked.iter().any(|(asking, _)| *asking == channel)
    }

    /// Whether something was asked for and nothing has come yet.
    pub(super) fn is_opening(&self) -> bool {
        let waits =
            |port: &Port| matches!(port.attachment, Attachment::Asked(_) | Attachment::Clearing(_));
        matches!(self.state, State::Opening(_) | State::Adopting(_))
            || self.ports.values().any(waits)
    }

    /// Its word in configurations.
    pub(super) fn word(&self) -> &'static str {
        self.wanted.map_or(PORTABLE, EngineMode::name)
    }

    fn tables(&self) -> Option<Token> {
        match self.state {
            State::On(token) => Some(token),
            _ => None,
        }
    }
}

impl Node {
    /// Uses the kernel's engine, too, or no more. Before the node has started, this is what it starts with.
    pub(super) fn set_engine(&mut self, wanted: Option<EngineMode>, out: &mut Vec<Action>) {
        if self.kernel.wanted == wanted && !matches!(self.kernel.state, State::Failed(_)) {
            return;
        }
        self.stop_engine(out);
        self.kernel.wanted = wanted;
        if self.started {
            self.open_engine(out);
        }
    }

    /// Asks for the engine that is wanted.
    pub(super) fn open_engine(&mut self, out: &mut Vec<Action>) {
        if self.kernel.wanted.is_none() {
            return;
        }
        let Some(engine) = self.registry.make_engine() else {
            let error = "this program has no engine for the kernel".to_owned();
            self.kernel.state = State::Failed(error);
            return;
        };
        let token = self.next_token();
        let request = EngineRequest::Open { engine: engine.name().to_owned() };
        out.push(Action::Engine { token, request });
        self.kernel.engine = Some(engine);
        self.kernel.state = State::Opening(token);
    }

    /// Gives the engine back. Packets go the portable engine's way from now on.
    pub(super) fn stop_engine(&mut self, out: &mut Vec<Action>) {
        self.forwarder.set_offloading(None);
        let attached: Vec<_> = self.kernel.ports.keys().copied().collect();
        for port in attached {
            self.detach_engine(port, out);
        }
        self.kernel.state = State::Off;
    }

    /// There is an interface.
    pub(super) fn engine_port_up(
        &mut self,
        port: PortId,
        interface: &str,
        info: PortInfo,
        io: PacketIo,
        out: &mut Vec<Action>,
    ) {
        let (interface, attachment) = (interface.to_owned(), Attachment::None);
        self.kernel.ports.insert(port, Port { interface, info, io, attachment, renewal: None });
        self.attach_engine(port, out);
    }

    /// An interface has another address or MTU. The engine takes note of it where it is; what it holds stays.
    pub(super) fn engine_port_changed(
        &mut self,
        port: PortId,
        info: PortInfo,
        out: &mut Vec<Action>,
    ) {
        let Some(place) = self.kernel.ports.get_mut(&port) else { return };
        place.info = info;
        match place.attachment {
            Attachment::At(..) => {
                let renewal = self.ask_to_attach(port, out);
                if let Some(place) = self.kernel.ports.get_mut(&port) {
                    place.renewal = renewal;
                }
            }
            Attachment::Asked(_) | Attachment::Failed(_) => self.attach_engine(port, out),
            Attachment::None | Attachment::Clearing(_) => {}
        }
    }

    /// An interface is gone.
    pub(super) fn engine_port_down(&mut self, port: PortId, out: &mut Vec<Action>) {
        self.detach_engine(port, out);
        self.kernel.ports.remove(&port);
        // No packet shall be sent there from now on.
        self.forwarder.offload_hops();
    }

    fn attach_engine(&mut self, port: PortId, out: &mut Vec<Action>) {
        if self.kernel.wanted.is_none() && self.kernel.engine.is_none() {
            return self.clear_engine(port, out);
        }
        if let Some(token) = self.ask_to_attach(port, out)
            && let Some(place) = self.kernel.ports.get_mut(&port)
        {
            place.attachment = Attachment::Asked(token);
        }
    }

    /// Asks for the engine to be attached, or, where it is, to take note of what is known of the port. Returns the
    /// token of the question; nothing if there is no engine.
    fn ask_to_attach(&mut self, port: PortId, out: &mut Vec<Action>) -> Option<Token> {
        self.kernel.tables()?;
        let token = self.next_token();
        let KernelEngine { wanted: Some(mode), engine: Some(engine), ports, .. } = &self.kernel
        else {
            return None;
        };
        let place = ports.get(&port)?;
        let request = EngineRequest::Attach {
            engine: engine.name().to_owned(),
            interface: place.interface.clone(),
            mac: place.info.mac,
            mtu: u32::try_from(place.info.mtu).unwrap_or(u32::MAX),
            mode: *mode,
        };
        out.push(Action::Engine { token, request });
        Some(token)
    }

    /// Asks for an engine to be gone that this life of the process has not used.
    fn clear_engine(&mut self, port: PortId, out: &mut Vec<Action>) {
        let Some(engine) = self.registry.make_engine() else { return };
        let token = self.next_token();
        let Some(place) = self.kernel.ports.get_mut(&port) else { return };
        place.attachment = Attachment::Clearing(token);
        let (engine, interface) = (engine.name().to_owned(), place.interface.clone());
        let request = EngineRequest::Detach { engine, interface };
        out.push(Action::Engine { token, request });
    }

    fn detach_engine(&mut self, port: PortId, out: &mut Vec<Action>) {
        // What comes of it is of no use to anybody.
        let token = self.next_token();
        let KernelEngine { engine: Some(engine), ports, .. } = &mut self.kernel else { return };
        let Some(place) = ports.get_mut(&port) else { return };
        place.renewal = None;
        if let Attachment::Asked(_) | Attachment::At(..) =
            std::mem::replace(&mut place.attachment, Attachment::None)
        {
            let (engine, interface) = (engine.name().to_owned(), place.interface.clone());
            let request = EngineRequest::Detach { engine, interface };
            out.push(Action::Engine { token, request });
        }
    }

    /// What came of a request for the engine.
    pub(super) fn engine_answered(
        &mut self,
        token: Token,
        result: Result<EngineReply, String>,
        out: &mut Vec<Action>,
    ) {
        match (&self.kernel.state, result) {
            (State::Opening(asked), result) if *asked == token => match result {
                Ok(EngineReply::Opened { tables, .. }) => self.adopt_tables(tables, out),
                Ok(_) => self.engine_failed("what was opened is no engine".to_owned(), out),
                Err(error) => self.engine_failed(error, out),
            },
            (_, result) => self.engine_attached(token, result, out),
        }
    }

    fn adopt_tables(&mut self, handles: Vec<Handle>, out: &mut Vec<Action>) {
        let Some(engine) = &self.kernel.engine else { return };
        let shapes = engine.tables();
        if shapes.len() != handles.len() {
            let error = "the engine that was opened has other tables".to_owned();
            return self.engine_failed(error, out);
        }
        let tables = shapes.into_iter().zip(handles).collect();
        let token = self.next_token();
        self.kernel.state = State::Adopting(token);
        out.push(Action::AdoptTables { token, tables });
    }

    pub(super) fn tables_adopted(
        &mut self,
        token: Token,
        result: Result<(), String>,
        out: &mut Vec<Action>,
    ) {
        match (&self.kernel.state, result) {
            (State::Adopting(asked), Ok(())) if *asked == token => {
                self.kernel.state = State::On(token);
                // What it has counted for an earlier life of this process is not this one's.
                self.kernel.tallied.begin(token);
                out.push(Action::CountTables { token });
                self.forwarder.set_offloading(self.kernel.engine.as_ref().map(|one| one.room()));
                // What is there from before is removed before anything is added.
                self.tell_engine(out);
                let ports: Vec<_> = self.kernel.ports.keys().copied().collect();
                ports.into_iter().for_each(|port| self.attach_engine(port, out));
            }
            (State::Adopting(asked), Err(error)) if *asked == token => {
                self.engine_failed(error, out);
            }
            _ => {}
        }
    }

    fn engine_attached(
        &mut self,
        token: Token,
        result: Result<EngineReply, String>,
        out: &mut Vec<Action>,
    ) {
        let mut ports = self.kernel.ports.iter_mut();
        let asked = |(_, port): &(&PortId, &mut Port)| match port.attachment {
            Attachment::Asked(at) | Attachment::Clearing(at) => at == token,
            _ => port.renewal == Some(token),
        };
        let Some((id, port)) = ports.find(asked) else { return };
        let (id, interface) = (*id, &port.interface);
        let is_renewal = port.renewal.take_if(|asked| *asked == token).is_some();
        if let Attachment::Clearing(_) = port.attachment {
            // An error means that nobody has an engine open.
            port.attachment = Attachment::None;
            return;
        }
        match result {
            Ok(EngineReply::Attached { slot, mode, fallback, .. }) => {
                if !is_renewal {
                    let why = fallback.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                    let mode = mode.name();
                    let text =
                        format!("interface {interface}: the kernel forwards, in {mode} mode{why}");
                    report(out, Level::Info, text);
                }
                port.attachment = Attachment::At(slot, mode, fallback);
                self.forwarder.offload_hops();
            }
            Ok(_) => port.attachment = Attachment::None,
            Err(error) => self.engine_not_attached(id, error, out),
        }
    }

    /// The engine is not where it was asked to be, or goes on there with what does not hold any more.
    fn engine_not_attached(&mut self, port: PortId, error: String, out: &mut Vec<Action>) {
        let is_there = |port: &Port| matches!(port.attachment, Attachment::At(..));
        if self.kernel.ports.get(&port).is_some_and(is_there) {
            self.detach_engine(port, out);
            self.forwarder.offload_hops();
        }
        let Some(port) = self.kernel.ports.get_mut(&port) else { return };
        let text = format!(
            "interface {}: the kernel's engine cannot be attached, the portable one forwards: {error}",
            port.interface
        );
        report(out, Level::Warning, text);
        port.attachment = Attachment::Failed(error);
    }

    /// The tables cannot be written any more.
    pub(super) fn tables_failed(&mut self, token: Token, error: String, out: &mut Vec<Action>) {
        if self.kernel.tables() == Some(token) {
            self.engine_failed(error, out);
        }
    }

    fn engine_failed(&mut self, error: String, out: &mut Vec<Action>) {
        let text =
            format!("the kernel's engine cannot be used, the portable one forwards: {error}");
        report(out, Level::Warning, text);
        self.stop_engine(out);
        self.kernel.state = State::Failed(error);
    }

    /// Tells the engine what has changed. After everything that may change a decision, before anybody hears
    /// that it has changed.
    pub(super) fn tell_engine(&mut self, out: &mut Vec<Action>) {
        let Some(token) = self.kernel.tables() else { return };
        let KernelEngine { engine: Some(engine), ports, offloads, .. } = &mut self.kernel else {
            return;
        };
        self.forwarder.drain_offloads(offloads);
        if offloads.is_empty() {
            return;
        }
        let slot = |port: PortId| match ports.get(&port)?.attachment {
            Attachment::At(slot, ..) => Some(slot),
            _ => None,
        };
        let mut writes = Vec::new();
        for change in offloads.drain(..) {
            engine.write(&change, &slot, &mut writes);
        }
        out.push(Action::WriteTables { token, writes });
    }

    /// Shows on `channel` what the kernel's engine has counted, and what goes with it, as soon as that is known.
    pub(super) fn answer_counted(
        &mut self,
        channel: ChannelId,
        shown: Shown,
        out: &mut Vec<Action>,
    ) {
        match self.kernel.tables() {
            Some(token) => {
                self.kernel.asked.push_back((channel, shown));
                out.push(Action::CountTables { token });
            }
            None => {
                let value = self.show_counted(shown, &[]);
                self.replies.send(channel, &value, out);
            }
        }
    }

    pub(super) fn engine_counted(
        &mut self,
        token: Token,
        sums: &[Vec<u64>],
        out: &mut Vec<Action>,
    ) {
        let KernelEngine { engine, tallied, .. } = &mut self.kernel;
        if let Some(sums) = engine.as_ref().and_then(|engine| sums.get(engine.counters().0)) {
            tallied.told(token, sums);
        }
        let Some((channel, shown)) = self.kernel.asked.pop_front() else { return };
        let value = self.show_counted(shown, sums);
        self.replies.send(channel, &value, out);
    }

    fn show_counted(&self, shown: Shown, sums: &[Vec<u64>]) -> Value {
        match shown {
            Shown::Forwarding => self.show_forwarding(sums),
            Shown::Counters => self.show_counters(),
        }
    }

    /// What the kernel's engine has done with packets that the forwarder has not seen, as far as it has told.
    pub(super) fn tally(&self) -> Tally {
        let engine = self.kernel.engine.as_ref();
        engine.map(|engine| engine.tally(self.kernel.tallied.sums())).unwrap_or_default()
    }

    /// Which engine forwards where, and what the kernel's has counted.
    pub(super) fn show_forwarding(&self, sums: &[Vec<u64>]) -> Value {
        let (state, trouble) = match &self.kernel.state {
            State::Off => ("off", None),
            State::Opening(_) | State::Adopting(_) => ("opening", None),
            State::On(_) => ("on", None),
            State::Failed(error) => ("failed", Some(error)),
        };
        let ports = self.kernel.ports.values().map(|port| {
            let (engine, trouble) = match &port.attachment {
                Attachment::At(_, mode, fallback) => (mode.name(), fallback.as_ref()),
                Attachment::Failed(error) => (PORTABLE, Some(error)),
                Attachment::None | Attachment::Asked(_) | Attachment::Clearing(_) => {
                    (PORTABLE, trouble)
                }
            };
            let mut named = self.interfaces.iter().filter(|one| one.name == port.interface);
            let instead = named.find_map(|one| one.why_packet_sockets());
            json!({
                "interface": port.interface,
                "engine": engine,
                "trouble": trouble,
                "packet-io": port.io.name(),
                "packet-io-trouble": instead,
            })
        });
        let counters = self.kernel.engine.as_ref().and_then(|engine| {
            let (table, names) = engine.counters();
            let sums = sums.get(table)?;
            let counters =
                names.iter().zip(sums).map(|((name, _), sum)| ((*name).to_owned(), json!(sum)));
            Some(Value::Object(counters.collect()))
        });
        json!({
            "wanted": self.kernel.word(),
            "scheduling": self.show_share(),
            "kernel": state,
            "trouble": trouble,
            "decisions": self.forwarder.cache_size().offloaded,
            "interfaces": ports.collect::<Vec<_>>(),
            "counters": counters,
            "portable": super::show::counts(self.forwarder.cache_activity()),
        })
    }
}
