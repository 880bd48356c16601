//! Packets relayed by XRL, for components that cannot take descriptors: programs in other languages, and
//! those of other machines.
//!
//! Reference: Handley et al. (XORP), §7: processes send and receive packets through the FEA.
//!
//! A relay belongs to the connection that opened it. Its owner fetches what came in, so whoever is slow
//! loses packets and delays nobody.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weft_base::{Instant, LinkAddress, Packet, PortId, Token};
use weft_port::PortInfo;
use weft_runtime::Action;
use weft_xrl::{Binary, Called, Encoded, Mac, Output, XrlError, fea};

/// The most relays of one connection.
const MOST: usize = 64;
/// The most packets that wait for their receiver.
const QUEUE: usize = 256;
/// The longest that an answer is kept back.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Relays {
    opening: BTreeMap<Token, Called>,
    open: BTreeMap<PortId, Relay>,
}

struct Relay {
    session: u64,
    queue: VecDeque<Packet>,
    dropped: u64,
    waiting: Option<Waiting>,
}

/// A receiver for whom there was nothing yet.
struct Waiting {
    called: Called,
    at_most: usize,
    until: Instant,
}

impl Relays {
    /// Whether the caller may have one more.
    ///
    /// # Errors
    /// It has too many.
    pub(crate) fn check_room(&self, called: &Called) -> Result<(), XrlError> {
        let open = self.open.values().map(|relay| relay.session);
        let sessions = open.chain(self.opening.values().map(|called| called.session));
        if sessions.filter(|session| *session == called.session).count() >= MOST {
            let note = format!("{MOST} relays of this caller are open: close one");
            return Err(XrlError::failed(note));
        }
        Ok(())
    }

    /// The caller has asked for a port, which is being opened.
    pub(crate) fn opening(&mut self, token: Token, called: Called) {
        self.opening.insert(token, called);
    }

    /// A port is open; the answer if it is a relay's.
    pub(crate) fn opened(&mut self, token: Token, port: PortId, info: &PortInfo) -> Option<Output> {
        let called = self.opening.remove(&token)?;
        let (session, queue) = (called.session, VecDeque::new());
        self.open.insert(port, Relay { session, queue, dropped: 0, waiting: None });
        Some(called.answer(Ok(fea::OpenRelayReply {
            relay: port.0,
            mac: Mac(info.mac),
            mtu: u32::try_from(info.mtu).unwrap_or(u32::MAX),
            local: info.local.map(|local| local.to_string()),
        })))
    }

    /// A port could not be opened; the answer if it is a relay's.
    pub(crate) fn failed(&mut self, token: Token, error: &str) -> Option<Output> {
        let called = self.opening.remove(&token)?;
        Some(called.fail(XrlError::failed(error)))
    }

    /// # Errors
    /// The relay is not the caller's, or a peer is no address; then nothing is sent.
    pub(crate) fn send(
        &self,
        called: &Called,
        request: fea::SendPackets,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        let port = PortId(request.relay);
        self.check_owner(called, request.relay)?;
        let packets = request.packets.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let transmit = |packet| Output::World(Action::Transmit { port, packet });
        out.extend(packets.into_iter().map(transmit));
        Ok(())
    }

    /// Answers with what there is, or later. A receiver that waits already is answered that there is
    /// nothing.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        called: Called,
        request: &fea::ReceivePackets,
        out: &mut Vec<Output>,
    ) {
        let Some(relay) = self.open.get_mut(&PortId(request.relay)) else { return };
        out.extend(relay.answer());
        let wait = Duration::from_millis(request.wait.into()).min(LONGEST_WAIT);
        let at_most = request.at_most.max(1) as usize;
        relay.waiting = Some(Waiting { called, at_most, until: now + wait });
        if !relay.queue.is_empty() || wait.is_zero() {
            out.extend(relay.answer());
        }
    }

    /// # Errors
    /// The relay is not the caller's.
    pub(crate) fn close(
        &mut self,
        called: &Called,
        relay: u32,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        let port = PortId(relay);
        self.check_owner(called, relay)?;
        if let Some(mut relay) = self.open.remove(&port) {
            out.extend(relay.answer());
            out.push(Output::World(Action::ClosePort { port }));
        }
        Ok(())
    }

    /// A caller is gone.
    pub(crate) fn left(&mut self, session: u64, out: &mut Vec<Output>) {
        let close = |port: &PortId| Output::World(Action::ClosePort { port: *port });
        let own: Vec<_> = self.open.iter().filter(|(_, relay)| relay.session == session).collect();
        out.extend(own.into_iter().map(|(port, _)| close(port)));
        self.open.retain(|_, relay| relay.session != session);
    }

    /// Packets came in.
    pub(crate) fn packets(&mut self, port: PortId, packets: Vec<Packet>, out: &mut Vec<Output>) {
        let Some(relay) = self.open.get_mut(&port) else { return };
        let room = QUEUE - relay.queue.len();
        relay.dropped += packets.len().saturating_sub(room) as u64;
        relay.queue.extend(packets.into_iter().take(room));
        out.extend(relay.answer());
    }

    /// A port is gone.
    pub(crate) fn lost(&mut self, port: PortId, error: &str, out: &mut Vec<Output>) {
        let Some(relay) = self.open.remove(&port) else { return };
        let failed = |waiting: Waiting| waiting.called.fail(XrlError::failed(error));
        out.extend(relay.waiting.map(failed));
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|relay| Some(relay.waiting.as_ref()?.until)).min()
    }

    /// Answers those who have waited long enough.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<Output>) {
        for relay in self.open.values_mut() {
            if relay.waiting.as_ref().is_some_and(|waiting| waiting.until <= now) {
                out.extend(relay.answer());
            }
        }
    }

    /// # Errors
    /// The relay is not the caller's.
    pub(crate) fn check_owner(&self, called: &Called, relay: u32) -> Result<(), XrlError> {
        match self.open.get(&PortId(relay)) {
            Some(relay) if relay.session == called.session => Ok(()),
            _ => Err(XrlError::failed(format!("there is no relay {relay} on this connection"))),
        }
    }
}

impl Relay {
    /// The answer to who waits, with what there is.
    fn answer(&mut self) -> Option<Output> {
        let Waiting { called, at_most, .. } = self.waiting.take()?;
        let packets = self.queue.drain(..at_most.min(self.queue.len()));
        let packets = packets.map(|packet| written(&packet)).collect();
        let reply = fea::ReceivePacketsReply { packets, dropped: self.dropped };
        Some(Output::Answer { id: called.id, result: Ok(Encoded::new(reply)) })
    }
}

fn read(packet: fea::Packet) -> Result<Packet, XrlError> {
    let mut read = Packet::from_slice(&packet.bytes.0);
    if !packet.peer.is_empty() {
        let udp = packet.peer.parse().map(LinkAddress::Udp);
        let link = udp.or_else(|_| packet.peer.parse().map(LinkAddress::Ip));
        read.meta.link = link.map_err(|_| {
            let note =
                format!("`{}` is no peer: give ADDRESS:PORT, ADDRESS or nothing", packet.peer);
            XrlError::bad_args(note)
        })?;
    }
    Ok(read)
}

fn written(packet: &Packet) -> fea::Packet {
    let peer = match packet.meta.link {
        LinkAddress::Udp(peer) => peer.to_string(),
        LinkAddress::Ip(peer) => peer.to_string(),
        LinkAddress::None | LinkAddress::Mac(_) => String::new(),
    };
    fea::Packet { bytes: Binary(packet.bytes().to_vec()), peer }
}
