//! Where the kernel's engine is attached.
//!
//! What is detached may have been attached by an earlier life of this process, and who detaches may be away: it is asked
//! for until it is done, because nobody would tell an engine of changes that stays.

use std::time::Duration;

use weft_base::{Instant, PortId, Token};
use weft_port::PortInfo;
use weft_runtime::{Action, EngineReply, EngineRequest, Level, Slot, XdpMode};

use super::{KernelEngine, Node, State};
use crate::node::{PacketIo, report};

/// An interface of the node.
pub(super) struct Port {
    pub(super) interface: String,
    info: PortInfo,
    /// By which sockets it gives and takes packets.
    pub(super) io: PacketIo,
    pub(super) attachment: Attachment,
    /// Where it is attached, it was told of another address or MTU, and has not answered yet.
    renewal: Option<Token>,
}

pub(super) enum Attachment {
    /// Not asked for.
    None,
    Asked(Token),
    /// And why it is not where it would be best.
    At(Slot, XdpMode, Option<String>),
    Failed(String),
}

/// What comes of asking for the engine to be gone.
pub(super) enum Clearing {
    /// For the first time, or again.
    Asked(Token, bool),
    /// It could not be done, and is asked for again at this time.
    Again(Instant),
}

impl Clearing {
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Asked(..) => None,
            Self::Again(due) => Some(*due),
        }
    }
}

/// When it is asked again for what could not be done: the FEA may be starting.
const AGAIN: Duration = Duration::from_secs(1);

impl Node {
    /// There is an interface.
    pub(in crate::node) fn engine_port_up(
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
    pub(in crate::node) fn engine_port_changed(
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
            Attachment::None => {}
        }
    }

    /// An interface is gone.
    pub(in crate::node) fn engine_port_down(&mut self, port: PortId, out: &mut Vec<Action>) {
        self.detach_engine(port, out);
        self.kernel.ports.remove(&port);
        // No packet shall be sent there from now on.
        self.forwarder.offload_hops();
    }

    pub(super) fn attach_engine(&mut self, port: PortId, out: &mut Vec<Action>) {
        let KernelEngine { wanted, engine, state, .. } = &self.kernel;
        if wanted.is_none() && engine.is_none() || matches!(state, State::Failed(_)) {
            return self.clear_engine(port, out);
        }
        // Until it is told what the cache holds it would pass everything on.
        if matches!(state, State::Filling(_)) {
            return;
        }
        if let Some(token) = self.ask_to_attach(port, out)
            && let Some(place) = self.kernel.ports.get_mut(&port)
        {
            place.attachment = Attachment::Asked(token);
            // What was to be gone is wanted.
            self.kernel.clearing.remove(&place.interface);
        }
    }

    /// Tries again where it could not be attached.
    pub(super) fn attach_where_it_failed(&mut self, out: &mut Vec<Action>) {
        let has_failed = |port: &Port| matches!(port.attachment, Attachment::Failed(_));
        let ports = self.kernel.ports.iter().filter(|(_, port)| has_failed(port));
        for port in ports.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.attach_engine(port, out);
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

    /// Asks for the engine to be gone from a port, whoever has attached it.
    pub(super) fn clear_engine(&mut self, port: PortId, out: &mut Vec<Action>) {
        if let Some(place) = self.kernel.ports.get_mut(&port) {
            place.attachment = Attachment::None;
            let interface = place.interface.clone();
            self.clear_interface(interface, out);
        }
    }

    fn clear_interface(&mut self, interface: String, out: &mut Vec<Action>) {
        let Some(engine) = self.registry.make_engine() else { return };
        let token = self.next_token();
        let engine = engine.name().to_owned();
        let request = EngineRequest::Detach { engine, interface: interface.clone() };
        out.push(Action::Engine { token, request });
        let before = self.kernel.clearing.remove(&interface);
        let is_again = matches!(before, Some(Clearing::Again(_) | Clearing::Asked(_, true)));
        self.kernel.clearing.insert(interface, Clearing::Asked(token, is_again));
    }

    /// Asks again for what could not be done.
    pub(in crate::node) fn tick_engine(&mut self, now: Instant, out: &mut Vec<Action>) {
        let is_due = |clearing: &Clearing| clearing.due().is_some_and(|due| due <= now);
        let due = self.kernel.clearing.iter().filter(|(_, clearing)| is_due(clearing));
        for interface in due.map(|(interface, _)| interface.clone()).collect::<Vec<_>>() {
            self.clear_interface(interface, out);
        }
    }

    pub(super) fn detach_engine(&mut self, port: PortId, out: &mut Vec<Action>) {
        let Some(place) = self.kernel.ports.get_mut(&port) else { return };
        place.renewal = None;
        if let Attachment::Asked(_) | Attachment::At(..) = place.attachment {
            self.clear_engine(port, out);
        }
    }

    /// What came of asking for the engine to be at an interface, or to be gone from one.
    pub(super) fn engine_placed(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<EngineReply, String>,
        out: &mut Vec<Action>,
    ) {
        let found = self.kernel.clearing.iter().find_map(|(interface, clearing)| match clearing {
            Clearing::Asked(at, is_again) if *at == token => Some((interface.clone(), *is_again)),
            _ => None,
        });
        let Some((interface, is_again)) = found else {
            return self.engine_attached(token, result, out);
        };
        match result {
            Ok(_) => drop(self.kernel.clearing.remove(&interface)),
            Err(_) if is_again => {
                self.kernel.clearing.insert(interface, Clearing::Again(now + AGAIN));
            }
            Err(error) => {
                let line = format!(
                    "interface {interface}: the kernel's engine may still be there, and cannot be detached: {error}"
                );
                report(out, Level::Warning, line);
                self.kernel.clearing.insert(interface, Clearing::Again(now + AGAIN));
            }
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
            Attachment::Asked(at) => at == token,
            _ => port.renewal == Some(token),
        };
        let Some((id, port)) = ports.find(asked) else { return };
        let (id, interface) = (*id, &port.interface);
        let is_renewal = port.renewal.take_if(|asked| *asked == token).is_some();
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
}
