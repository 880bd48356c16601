//! The open packet ports of a process.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};

use weft_base::{Handle, Instant, Packet, PortId, Token};
use weft_port::datagrams::BATCH;
use weft_port::{Lost, Port, PortInfo, PortSpec, PortStatistics};

use super::engines::Engines;
use super::outgoing::{Outgoing, Pushed};
use super::poller::{Interest, Poller, Source};
use super::steered::Beside;
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
    /// Goes with the port.
    _beside: Beside,
    name: String,
    outgoing: Outgoing<Packet>,
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
    pub(super) fn open(
        &mut self,
        token: Token,
        spec: &PortSpec,
        engines: &mut Engines,
        poller: &Poller,
    ) -> Event {
        match self.try_open(spec, engines, poller) {
            Ok((port, info)) => Event::PortOpened { token, port, info },
            Err(error) => Event::PortFailed { token, error },
        }
    }

    fn try_open(
        &mut self,
        spec: &PortSpec,
        engines: &mut Engines,
        poller: &Poller,
    ) -> Result<(PortId, PortInfo), String> {
        let port = weft_port::open(spec, &self.options).map_err(|error| error.to_string())?;
        let beside = engines.steer(spec, port.fd(), poller)?;
        self.insert(port, beside, spec.to_string(), poller)
    }

    /// Opens the descriptors of a port for somebody else.
    pub(super) fn open_handles(
        &self,
        token: Token,
        spec: &PortSpec,
        engines: &mut Engines,
        poller: &Poller,
    ) -> Event {
        match self.try_open_handles(spec, engines, poller) {
            Ok((handles, info)) => Event::HandlesOpened { token, handles, info },
            Err(error) => Event::PortFailed { token, error },
        }
    }

    fn try_open_handles(
        &self,
        spec: &PortSpec,
        engines: &mut Engines,
        poller: &Poller,
    ) -> Result<(Vec<Handle>, PortInfo), String> {
        let (mut descriptors, info) =
            weft_port::open_descriptors(spec, &self.options).map_err(|error| error.to_string())?;
        if let Some(socket) = descriptors.first() {
            let beside = engines.steer(spec, socket.as_fd(), poller)?;
            descriptors.extend(beside);
        }
        Ok((descriptors.into_iter().map(Handle::from).collect(), info))
    }

    /// Makes a port of descriptors that somebody else opened, and says what came of it.
    pub(super) fn adopt(
        &mut self,
        token: Token,
        spec: &PortSpec,
        handles: Vec<Handle>,
        info: PortInfo,
        poller: &Poller,
    ) -> Event {
        match self.try_adopt(spec, handles, info, poller) {
            Ok((port, info)) => Event::PortOpened { token, port, info },
            Err(error) => Event::PortFailed { token, error },
        }
    }

    fn try_adopt(
        &mut self,
        spec: &PortSpec,
        handles: Vec<Handle>,
        info: PortInfo,
        poller: &Poller,
    ) -> Result<(PortId, PortInfo), String> {
        let descriptor = |handle: Handle| {
            handle.into_descriptor().map_err(|handle| {
                format!("{handle:?} is no descriptor of this machine, so it cannot be {spec}")
            })
        };
        let mut descriptors =
            handles.into_iter().map(descriptor).collect::<Result<Vec<OwnedFd>, _>>()?;
        let beside = match spec {
            PortSpec::Xdp { .. } => {
                descriptors.split_off(descriptors.len().min(weft_port::XDP_DESCRIPTORS))
            }
            _ => Vec::new(),
        };
        let port = weft_port::adopt(spec, descriptors, info, &self.options)
            .map_err(|error| error.to_string())?;
        self.insert(port, beside, spec.to_string(), poller)
    }

    /// Uses an open port from now on, and closes what is beside it when it goes.
    pub(super) fn insert(
        &mut self,
        port: Box<dyn Port>,
        beside: Beside,
        name: String,
        poller: &Poller,
    ) -> Result<(PortId, PortInfo), String> {
        self.last += 1;
        let (id, info) = (PortId(self.last), *port.info());
        poller
            .add(port.fd(), Source::Port(id), Interest::Read)
            .and_then(|()| match port.second_fd() {
                Some(second) => poller.add(second, Source::Port(id), Interest::Read),
                None => Ok(()),
            })
            .map_err(|error| format!("waiting for packets on {name} failed: {error}"))?;
        let outgoing = Outgoing::new(self.queue_limit);
        self.open.insert(id, OpenPort { port, _beside: beside, name, outgoing, closing: false });
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

    /// What each open port has moved and dropped.
    pub(super) fn counts(&mut self) -> BTreeMap<PortId, PortStatistics> {
        let ports = self.open.iter_mut();
        ports.map(|(id, open)| (*id, open.port.statistics().clone())).collect()
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
            open.port.second_fd().into_iter().for_each(|second| poller.remove(second));
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

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Mutex};

    use weft_port::PortInfo;

    use super::*;

    /// What a test sees and decides of a port that it handed over.
    #[derive(Default)]
    struct Link {
        /// How many packets it takes before it is full.
        room: usize,
        sent: Vec<u8>,
        lost: bool,
    }

    struct FakePort {
        link: Arc<Mutex<Link>>,
        socket: UnixStream,
        statistics: PortStatistics,
    }

    impl FakePort {
        fn check(&self) -> Result<(), Lost> {
            if self.link.lock().unwrap().lost { Err(Lost::OtherEnd) } else { Ok(()) }
        }
    }

    impl Port for FakePort {
        fn info(&self) -> &PortInfo {
            &PortInfo { mac: [0; 6], mtu: 1500, local: None }
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.socket.as_fd()
        }

        fn receive(&mut self, batch: &mut Vec<Packet>, _: usize) -> Result<(), Lost> {
            batch.push(Packet::from_slice(b"last words"));
            self.check()
        }

        fn transmit(&mut self, queue: &mut VecDeque<Packet>) -> Result<(), Lost> {
            self.check()?;
            let mut link = self.link.lock().unwrap();
            let count = link.room.min(queue.len());
            link.room -= count;
            link.sent.extend(queue.drain(..count).map(|packet| packet.bytes()[0]));
            Ok(())
        }

        fn statistics(&mut self) -> &PortStatistics {
            &self.statistics
        }
    }

    /// The ports of a process, one of which is fake.
    struct Fixture {
        ports: Ports,
        poller: Poller,
        drops: Drops,
        id: PortId,
        link: Arc<Mutex<Link>>,
        _peer: UnixStream,
    }

    impl Fixture {
        fn new(queue_limit: usize) -> Self {
            let poller = Poller::new().unwrap();
            let mut ports = Ports::new(&Options { port_queue: queue_limit, ..Options::default() });
            let link = Arc::new(Mutex::new(Link::default()));
            let (socket, peer) = UnixStream::pair().unwrap();
            let statistics = PortStatistics::default();
            let port = Box::new(FakePort { link: Arc::clone(&link), socket, statistics });
            let (id, _) = ports.insert(port, Vec::new(), "fake".to_owned(), &poller).unwrap();
            Self { ports, poller, drops: Drops::new(), id, link, _peer: peer }
        }

        fn transmit(&mut self, byte: u8) {
            let packet = Packet::from_slice(&[byte]);
            let event = self.ports.transmit(self.id, packet, &self.poller, &mut self.drops);
            assert!(event.is_none());
        }

        fn flush(&mut self) -> VecDeque<Event> {
            let mut events = VecDeque::new();
            self.ports.flush(&self.poller, &mut events);
            events
        }

        /// Whether the poller says that the port takes packets: somebody asked it to.
        fn writable(&mut self) -> bool {
            let mut ready = Vec::new();
            self.poller.wait(Some(std::time::Duration::ZERO), &mut ready).unwrap();
            ready.iter().any(|ready| ready.writable)
        }

        fn sent(&self) -> Vec<u8> {
            self.link.lock().unwrap().sent.clone()
        }
    }

    #[test]
    fn packets_wait_in_order_for_a_port_that_is_full_and_those_beyond_the_limit_are_counted() {
        let mut fixture = Fixture::new(100);
        fixture.link.lock().unwrap().room = 10;
        (0..50).for_each(|byte| fixture.transmit(byte));
        assert!(fixture.sent().is_empty(), "packets leave at the end of the turn");
        assert!(fixture.flush().is_empty() && !fixture.ports.is_flushed());
        assert_eq!(fixture.sent(), (0..10).collect::<Vec<u8>>());
        assert!(fixture.writable());
        (50..120).for_each(|byte| fixture.transmit(byte));
        assert_eq!(fixture.drops.get(DriverDrop::PortQueueFull), 10);
        fixture.link.lock().unwrap().room = usize::MAX;
        assert!(fixture.ports.flush_one(fixture.id, &fixture.poller).is_none());
        assert_eq!(fixture.sent(), (0..110).collect::<Vec<u8>>());
        assert!(fixture.ports.is_flushed() && !fixture.writable());
    }

    #[test]
    fn a_whole_batch_leaves_before_the_end_of_the_turn() {
        let mut fixture = Fixture::new(100);
        fixture.link.lock().unwrap().room = usize::MAX;
        (0..70).for_each(|byte| fixture.transmit(byte));
        assert_eq!(fixture.sent().len(), BATCH);
    }

    #[test]
    fn a_closed_port_sends_what_waits_and_then_goes() {
        let mut fixture = Fixture::new(100);
        (0..3).for_each(|byte| fixture.transmit(byte));
        fixture.ports.close(fixture.id, &fixture.poller, &mut fixture.drops);
        fixture.transmit(3);
        assert_eq!(fixture.drops.get(DriverDrop::PortGone), 1);
        assert!(fixture.writable() && !fixture.ports.is_flushed());
        fixture.link.lock().unwrap().room = 5;
        assert!(fixture.ports.flush_one(fixture.id, &fixture.poller).is_none());
        assert_eq!(fixture.sent(), [0, 1, 2]);
        assert!(fixture.ports.open.is_empty() && !fixture.writable());
    }

    #[test]
    fn a_lost_port_is_told_once_after_its_last_packets() {
        let mut fixture = Fixture::new(100);
        fixture.link.lock().unwrap().lost = true;
        let mut events = VecDeque::new();
        for _ in 0..2 {
            let now = Instant::from_nanos(5);
            fixture.ports.receive(fixture.id, now, &fixture.poller, &mut events);
        }
        let [Event::Packets { packets, .. }, Event::PortLost { port, .. }] =
            events.make_contiguous()
        else {
            panic!("{events:?}")
        };
        assert_eq!((packets[0].meta.port, *port), (fixture.id, fixture.id));
        assert_eq!(packets[0].meta.time, Instant::from_nanos(5));
        fixture.transmit(1);
        assert_eq!(fixture.drops.get(DriverDrop::PortGone), 1);
    }

    #[test]
    fn a_port_that_is_lost_after_it_was_closed_is_nobodys_business() {
        let mut fixture = Fixture::new(100);
        fixture.transmit(0);
        fixture.ports.close(fixture.id, &fixture.poller, &mut fixture.drops);
        fixture.link.lock().unwrap().lost = true;
        assert!(fixture.flush().is_empty());
        assert!(fixture.ports.open.is_empty());
    }
}
