//! What becomes of the ports that a node has asked for: those of its interfaces, and those of its parts.

use weft_base::{Instant, PortId, Token};
use weft_port::PortInfo;
use weft_runtime::{Action, Level};

use super::interfaces::News;
use super::{Node, Owner, report};
use crate::forward::{Egress, Framing};
use crate::principal::Input;

impl Node {
    /// A port is open.
    pub(super) fn port_opened(
        &mut self,
        now: Instant,
        token: Token,
        port: PortId,
        info: PortInfo,
        out: &mut Vec<Action>,
    ) {
        if let Some((part, token)) = self.awaited.remove(&token) {
            self.owners.insert(port, Owner::Part(part));
            self.forwarder.add_port(port, Egress { framing: Framing::Bare, mtu: info.mtu });
            self.tell(now, part, Input::PortOpened { token, port, info }, out);
        } else if let Some(interface) = self.interfaces.iter_mut().find(|i| i.awaits(token)) {
            self.owners.insert(port, Owner::Interface);
            interface.opened(port, info);
            let framing = Framing::Ethernet { mac: info.mac };
            self.forwarder.add_port(port, Egress { framing, mtu: info.mtu });
            let (name, io) = (interface.name.clone(), interface.io());
            report(out, Level::Info, format!("interface {name} is up"));
            if let Some(why) = interface.why_packet_sockets() {
                let text =
                    format!("interface {name}: packet sockets take the place of AF_XDP: {why}");
                report(out, Level::Warning, text);
            }
            self.engine_port_up(port, &name, info, io, out);
            for part in self.parts() {
                let name = name.clone();
                self.tell(now, part, Input::InterfaceUp { name, port, info }, out);
            }
        } else {
            // Its part or interface was removed while the port was being opened.
            out.push(Action::ClosePort { port });
        }
    }

    /// A port could not be opened.
    pub(super) fn port_failed(
        &mut self,
        now: Instant,
        token: Token,
        error: String,
        out: &mut Vec<Action>,
    ) {
        if let Some((part, token)) = self.awaited.remove(&token) {
            self.tell(now, part, Input::PortFailed { token, error }, out);
        } else if let Some(interface) = self.interfaces.iter_mut().find(|i| i.awaits(token)) {
            match interface.failed(now, &error) {
                News::None => {}
                News::OtherWay => self.tick(now, out),
                News::Trouble => {
                    report(out, Level::Error, format!("interface {}: {error}", interface.name));
                }
            }
        }
    }

    /// A port is gone.
    pub(super) fn port_lost(
        &mut self,
        now: Instant,
        port: PortId,
        error: String,
        out: &mut Vec<Action>,
    ) {
        self.forwarder.remove_port(port);
        match self.owners.remove(&port) {
            Some(Owner::Part(part)) => {
                self.tell(now, part, Input::PortLost { port, error }, out);
            }
            Some(Owner::Interface) => {
                let mut interfaces = self.interfaces.iter_mut();
                if let Some(interface) = interfaces.find(|interface| interface.has(port))
                    && interface.lost(now, &error) == News::Trouble
                {
                    report(out, Level::Warning, format!("interface {}: {error}", interface.name));
                }
                self.interface_down(now, port, out);
            }
            None => {}
        }
    }

    /// Nothing is sent there any more.
    pub(super) fn interface_down(&mut self, now: Instant, port: PortId, out: &mut Vec<Action>) {
        self.engine_port_down(port, out);
        for part in self.parts() {
            self.tell(now, part, Input::InterfaceDown { port }, out);
        }
    }
}
