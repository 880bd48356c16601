//! The open packet ports of a process.

use std::collections::{BTreeMap, VecDeque};

use weft_base::{Instant, Packet, PortId, Token};
use weft_port::datagrams::BATCH;
use weft_port::{Lost, Port, PortSpec, PortStatistics};

use super::outgoing::{Outgoing, Pushed};
use super::poller::{Interest, Poller, Source};
use super::{DriverDrop, Drops, Options};
use crate::Event;

pub(super) struct Ports {
    open: BTreeMap<PortId, OpenPort>,
    last: u32,
    /// Ports with packets that were sent in this turn.
    unflushed: Vec<PortId>,
    options: weft_port::Options,
    queue_limit: usize,
}

struct OpenPort {
    port: Box<dyn Port>,
    name: String,
    outgoing: Outgoing,
    /// The process closed it; it goes when its queue is empty.
    closing: bool,
}

impl Ports {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            open: BTreeMap::new(),
            last: PortId::NONE.0,
            unflushed: Vec::new(),
            options: options.ports,
            queue_limit: options.port_queue,
        }
    }

    /// Opens a port and says what came of it.
    pub(super) fn open(&mut self, token: Token, spec: &PortSpec, poller: &Poller) -> Event {
        match self.try_open(spec, poller) {
            Ok((port, info)) => Event::PortOpened { token, port, info },
            Err(error) => Event::PortFailed { token, error },
        }
    }

    fn try_open(
        &mut self,
        spec: &PortSpec,
        poller: &Poller,
    ) -> Result<(PortId, weft_port::PortInfo), String> {
        let port = weft_port::open(spec, &self.options).map_err(|error| error.to_string())?;
        self.insert(port, spec.to_string(), poller)
    }

    /// Adopts an open port.
    pub(super) fn insert(
        &mut self,
        port: Box<dyn Port>,
        name: String,
        poller: &Poller,
    ) -> Result<(PortId, weft_port::PortInfo), String> {
        self.last += 1;
        let (id, info) = (PortId(self.last), *port.info());
        poller
            .add(port.fd(), Source::Port(id), Interest::Read)
            .map_err(|error| format!("waiting for packets on {name} failed: {error}"))?;
        let outgoing = Outgoing::new(self.queue_limit);
        self.open.insert(id, OpenPort { port, name, outgoing, closing: false });
        Ok((id, info))
    }

    /// Closes a port as soon as what was sent on it has left.
    pub(super) fn close(&mut self, id: PortId, poller: &Poller, drops: &mut Drops) {
        let Some(open) = self.usable(id) else { return drops.add(DriverDrop::PortGone, 1) };
        open.closing = true;
        // What is lost now would have been lost on the way, too.
        let _ = flush(id, open, poller);
        if open.outgoing.queue.is_empty() {
            self.remove(id, poller);
        }
    }

    /// Queues a packet to be sent at the end of the turn; returns what happened to the port.
    pub(super) fn transmit(
        &mut self,
        id: PortId,
        packet: Packet,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        let Some(open) = self.usable(id) else {
            drops.add(DriverDrop::PortGone, 1);
            return None;
        };
        match open.outgoing.push(packet) {
            Pushed::First => self.unflushed.push(id),
            Pushed::Queued => {}
            Pushed::Dropped => drops.add(DriverDrop::PortQueueFull, 1),
            Pushed::FullBatch => return self.flush_one(id, poller),
        }
        None
    }

    /// Receives one batch.
    pub(super) fn receive(
        &mut self,
        id: PortId,
        now: Instant,
        poller: &Poller,
        events: &mut VecDeque<Event>,
    ) {
        let Some(open) = self.usable(id) else { return };
        let mut packets = Vec::new();
        let result = open.port.receive(&mut packets, BATCH);
        for packet in &mut packets {
            packet.meta.port = id;
            packet.meta.time = now;
        }
        if !packets.is_empty() {
            events.push_back(Event::Packets { port: id, packets });
        }
        if let Err(lost) = result {
            events.push_back(self.lose(id, &lost, poller));
        }
    }

    /// Sends what was queued in this turn.
    pub(super) fn flush(&mut self, poller: &Poller, events: &mut VecDeque<Event>) {
        let mut unflushed = std::mem::take(&mut self.unflushed);
        for id in unflushed.drain(..) {
            if let Some(open) = self.open.get_mut(&id) {
                open.outgoing.unlist();
            }
            events.extend(self.flush_one(id, poller));
        }
        self.unflushed = unflushed;
    }

    /// Sends what waits for one port: its turn is over, or the kernel takes packets again.
    pub(super) fn flush_one(&mut self, id: PortId, poller: &Poller) -> Option<Event> {
        let open = self.open.get_mut(&id)?;
        let result = flush(id, open, poller);
        match result {
            _ if open.closing && (result.is_err() || open.outgoing.queue.is_empty()) => {
                self.remove(id, poller);
                None
            }
            Ok(()) => None,
            Err(lost) => Some(self.lose(id, &lost, poller)),
        }
    }

    /// Whether packets still wait somewhere.
    pub(super) fn is_flushed(&self) -> bool {
        self.open.values().all(|open| open.outgoing.queue.is_empty())
    }

    /// Names and counts of the open ports.
    pub(super) fn statistics(&mut self) -> impl Iterator<Item = (&str, &PortStatistics)> {
        self.open.values_mut().map(|open| (open.name.as_str(), open.port.statistics()))
    }

    /// A port that the process has not closed.
    fn usable(&mut self, id: PortId) -> Option<&mut OpenPort> {
        self.open.get_mut(&id).filter(|open| !open.closing)
    }

    fn lose(&mut self, id: PortId, lost: &Lost, poller: &Poller) -> Event {
        self.remove(id, poller);
        Event::PortLost { port: id, error: lost.to_string() }
    }

    fn remove(&mut self, id: PortId, poller: &Poller) {
        if let Some(open) = self.open.remove(&id) {
            poller.remove(open.port.fd());
        }
    }
}

/// Hands the queue to the kernel and waits for the port to be writable if something is left.
fn flush(id: PortId, open: &mut OpenPort, poller: &Poller) -> Result<(), Lost> {
    open.port.transmit(&mut open.outgoing.queue)?;
    let blocked = !open.outgoing.queue.is_empty();
    if blocked != open.outgoing.blocked || open.closing {
        let interest = match (open.closing, blocked) {
            (true, _) => Interest::Write,
            (false, true) => Interest::Both,
            (false, false) => Interest::Read,
        };
        // The descriptor was added when the port opened; changing it needs no memory.
        let _ = poller.modify(open.port.fd(), Source::Port(id), interest);
    }
    open.outgoing.blocked = blocked;
    Ok(())
}
