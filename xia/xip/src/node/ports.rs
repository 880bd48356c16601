//! What becomes of the ports that a node has asked for: those of its interfaces, and those of its parts.

use weft_base::{Instant, PortId, Token};
use weft_port::PortInfo;
use weft_runtime::{Action, InterfaceChange, Level};
use weft_wire::MacAddr;

use super::interfaces::{News, Renewal, Told};
use super::{Node, Owner, report};
use crate::forward::{Egress, Framing};
use crate::principal::Input;

#[cfg(test)]
pub(super) mod tests;

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
            let (name, io, told) = (interface.name.clone(), interface.io(), interface.take_told());
            report(out, Level::Info, format!("interface {name} is up"));
            if let Some(why) = interface.why_packet_sockets() {
                let text =
                    format!("interface {name}: packet sockets take the place of AF_XDP: {why}");
                report(out, Level::Warning, text);
            }
            self.engine_port_up(port, &name, info, io, out);
            self.interface_up(now, &name, port, info, out);
            if let Some(told) = told {
                self.interface_is(now, &name, told, out);
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
            let news = interface.failed(now, &error);
            if news == News::OtherWay {
                return self.tick(now, out);
            }
            if news == News::Trouble {
                report(out, Level::Error, format!("interface {}: {error}", interface.name));
            }
            if let Some(port) = interface.take_replaced() {
                self.interface_down(now, port, out);
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
                self.engine_port_down(port, out);
                self.interface_down(now, port, out);
            }
            None => {}
        }
    }

    /// The machine's interfaces are different. A port whose interface is gone is lost, so nothing is to be done then.
    pub(super) fn interface_told(
        &mut self,
        now: Instant,
        change: &InterfaceChange,
        out: &mut Vec<Action>,
    ) {
        if let InterfaceChange::Added(told) | InterfaceChange::Changed(told) = change {
            let mtu = usize::try_from(told.mtu).unwrap_or(usize::MAX);
            self.interface_is(now, &told.name, (told.mac.unwrap_or_default(), mtu), out);
        }
    }

    /// An interface has this address and MTU. Whatever rests on others follows at once.
    fn interface_is(&mut self, now: Instant, name: &str, told: Told, out: &mut Vec<Action>) {
        let mut interfaces = self.interfaces.iter_mut();
        let Some(interface) = interfaces.find(|interface| interface.name == name) else { return };
        let Some(renewal) = interface.is_now(now, told) else { return };
        let (mac, mtu) = (MacAddr(told.0), told.1);
        let line = format!("interface {name} has the MAC address {mac} and the MTU {mtu} now");
        report(out, Level::Info, line);
        match renewal {
            Renewal::GoesOn(port, info) => {
                self.engine_port_changed(port, info, out);
                self.interface_up(now, name, port, info, out);
            }
            Renewal::Replace(port) => {
                self.close_interface(port, out);
                self.tick(now, out);
            }
        }
    }

    /// Has all interfaces give and take packets as the settings say, by other ports where that needs it.
    pub(super) fn set_packet_io(&mut self, now: Instant, out: &mut Vec<Action>) {
        let io = self.settings.packet_io;
        let ports = self.interfaces.iter_mut().filter_map(|interface| interface.set_io(now, io));
        let ports: Vec<_> = ports.collect();
        ports.into_iter().for_each(|port| self.close_interface(port, out));
        self.tick(now, out);
    }

    /// Packets are sent there, as is known of the port now.
    fn interface_up(
        &mut self,
        now: Instant,
        name: &str,
        port: PortId,
        info: PortInfo,
        out: &mut Vec<Action>,
    ) {
        let framing = Framing::Ethernet { mac: info.mac };
        self.forwarder.add_port(port, Egress { framing, mtu: info.mtu });
        for part in self.parts() {
            let name = name.to_owned();
            self.tell(now, part, Input::InterfaceUp { name, port, info }, out);
        }
        self.tell_locals(now, out);
    }

    /// Closes the port of an interface.
    pub(super) fn close_interface(&mut self, port: PortId, out: &mut Vec<Action>) {
        self.owners.remove(&port);
        self.forwarder.remove_port(port);
        out.push(Action::ClosePort { port });
        self.engine_port_down(port, out);
    }

    /// Nothing is sent there any more.
    pub(super) fn interface_down(&mut self, now: Instant, port: PortId, out: &mut Vec<Action>) {
        for part in self.parts() {
            self.tell(now, part, Input::InterfaceDown { port }, out);
        }
        self.tell_locals(now, out);
    }
}
