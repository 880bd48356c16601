//! The machine's network interfaces, and where its IP leads: watched and changed over rtnetlink, by `weft_netlink`.

use std::collections::VecDeque;
use std::net::IpAddr;

use weft_base::Token;
use weft_netlink::{Configurator, InterfaceRequest, IpChange, IpMonitor, Monitor};

use super::poller::{Interest, Poller, Source};
use crate::Event;

/// What of it this process uses.
#[derive(Default)]
pub(super) struct Interfaces {
    monitor: Option<Monitor>,
    configurator: Option<Configurator>,
    ip: Option<IpMonitor>,
}

impl Interfaces {
    /// Begins to watch. Says what is in the way, in a sentence.
    pub(super) fn watch(&mut self, poller: &Poller) -> Result<(), String> {
        if self.monitor.is_none() {
            let monitor = Monitor::open()
                .and_then(|monitor| {
                    poller.add(monitor.fd(), Source::Interfaces, Interest::Read)?;
                    Ok(monitor)
                })
                .map_err(|error| format!("the interfaces cannot be watched: {error}"))?;
            self.monitor = Some(monitor);
        }
        Ok(())
    }

    /// Reads what has changed. Says why watching has ended, if it has.
    pub(super) fn changed(
        &mut self,
        poller: &Poller,
        events: &mut VecDeque<Event>,
    ) -> Result<(), String> {
        let Some(monitor) = &mut self.monitor else { return Ok(()) };
        let mut changes = Vec::new();
        let result = monitor.read(&mut changes);
        events.extend(changes.into_iter().map(|change| Event::Interface { change }));
        let Err(error) = result else { return Ok(()) };
        poller.remove(monitor.fd());
        self.monitor = None;
        Err(format!("the interfaces are watched no longer: {error}"))
    }

    /// Asks for a change; answers now if that fails.
    pub(super) fn configure(
        &mut self,
        token: Token,
        request: &InterfaceRequest,
        poller: &Poller,
    ) -> Option<Event> {
        let asked = self.configurator(poller).and_then(|asker| asker.send(token.0, request));
        asked.err().map(|error| Event::InterfaceConfigured { token, result: Err(error) })
    }

    /// Reads the kernel's answers.
    pub(super) fn configured(&mut self, poller: &Poller, events: &mut VecDeque<Event>) {
        let Some(configurator) = &mut self.configurator else { return };
        let mut answers = Vec::new();
        if configurator.read(&mut answers).is_err() {
            // What was asked is answered as lost; the next request opens another socket.
            configurator.give_up(&mut answers);
            poller.remove(configurator.fd());
            self.configurator = None;
        }
        events.extend(
            answers.into_iter().map(|(number, result)| Event::InterfaceConfigured {
                token: Token(number),
                result,
            }),
        );
    }

    /// Begins to watch IP, or tells again what is known.
    pub(super) fn watch_ip(&mut self, poller: &Poller) -> Option<Event> {
        if let Some(monitor) = &self.ip {
            let mut changes = Vec::new();
            monitor.tell_again(&mut changes);
            return Some(Event::Ip { changes });
        }
        let monitor = IpMonitor::open().and_then(|monitor| {
            poller.add(monitor.fd(), Source::Ip, Interest::Read)?;
            Ok(monitor)
        });
        match monitor {
            Ok(monitor) => {
                self.ip = Some(monitor);
                None
            }
            Err(error) => {
                Some(no_tables(&format!("the kernel's tables of IP cannot be watched: {error}")))
            }
        }
    }

    /// Reads how IP has changed.
    pub(super) fn ip_changed(&mut self, poller: &Poller, events: &mut VecDeque<Event>) {
        let Some(monitor) = &mut self.ip else { return };
        let mut changes = Vec::new();
        let result = monitor.read(&mut changes);
        if !changes.is_empty() {
            events.push_back(Event::Ip { changes });
        }
        if let Err(error) = result {
            poller.remove(monitor.fd());
            self.ip = None;
            let error = format!("the kernel's tables of IP are watched no longer: {error}");
            events.push_back(no_tables(&error));
        }
    }

    /// Has the kernel look for a neighbour.
    pub(super) fn find_neighbour(&self, interface: u32, ip: IpAddr) {
        if let Some(monitor) = &self.ip {
            // What cannot be sent is asked for again by whoever needs it, as what is not answered.
            drop(monitor.find_neighbour(interface, ip));
        }
    }

    fn configurator(&mut self, poller: &Poller) -> Result<&mut Configurator, String> {
        if self.configurator.is_none() {
            let configurator = Configurator::open()
                .and_then(|configurator| {
                    poller.add(configurator.fd(), Source::Configuration, Interest::Read)?;
                    Ok(configurator)
                })
                .map_err(|error| format!("the kernel cannot be asked for changes: {error}"))?;
            self.configurator = Some(configurator);
        }
        self.configurator.as_mut().ok_or_else(|| "it was opened just now".to_owned())
    }
}

/// Nothing is known of IP, and nothing will be.
fn no_tables(error: &str) -> Event {
    let none = |is_ipv6| IpChange::NoTable { is_ipv6, error: error.to_owned() };
    Event::Ip { changes: vec![IpChange::Again, none(false), none(true), IpChange::Complete] }
}
