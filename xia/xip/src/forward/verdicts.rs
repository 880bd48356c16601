//! What is to be done with packets that were routed.
//!
//! A batch most often leaves as it came. So packets and what is to be done with them are two lists: the packets stay where they
//! are then, and it is their list that goes over.

use weft_base::{Packet, PortId};

use crate::principal::SocketId;

/// What is to be done with a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it; the link header is in place.
    Transmit {
        /// Out of which port.
        port: PortId,
        /// What, with the neighbour's address in its metadata.
        packet: Packet,
    },
    /// Give it to an application.
    Deliver {
        /// Which socket.
        socket: SocketId,
        /// The whole XIP packet, its last node at the sink.
        packet: Packet,
    },
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// By this port; its link header is in place.
    Port(PortId),
    Socket(SocketId),
}

impl Exit {
    #[inline]
    fn verdict(self, packet: Packet) -> Verdict {
        match self {
            Self::Port(port) => Verdict::Transmit { port, packet },
            Self::Socket(socket) => Verdict::Deliver { socket, packet },
        }
    }
}

impl Default for Exit {
    fn default() -> Self {
        Self::Port(PortId::NONE)
    }
}

/// What is to be done with packets, in the order in which it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Of each packet where it goes.
    exits: Vec<Exit>,
    packets: Vec<Packet>,
}

impl Verdicts {
    /// Nothing is to be done.
    #[must_use]
    pub const fn new() -> Self {
        Self { exits: Vec::new(), packets: Vec::new() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Takes all of them, in their order, and keeps the memory.
    pub fn drain(&mut self) -> impl Iterator<Item = Verdict> + '_ {
        let all = self.exits.drain(..).zip(self.packets.drain(..));
        all.map(|(exit, packet)| exit.verdict(packet))
    }

    /// Forgets all of them, with their packets, and keeps the memory.
    pub fn clear(&mut self) {
        self.exits.clear();
        Packet::drop_all(&mut self.packets);
    }

    /// A packet goes where this says.
    pub(super) fn push(&mut self, exit: Exit, packet: Packet) {
        self.exits.push(exit);
        self.packets.push(packet);
    }

    /// All of these packets go, each where its exit says, of which there are as many. Their list is empty then, and may have the
    /// memory of this one.
    pub(super) fn append(&mut self, exits: impl Iterator<Item = Exit>, packets: &mut Vec<Packet>) {
        if self.packets.is_empty() {
            std::mem::swap(&mut self.packets, packets);
        } else {
            self.packets.append(packets);
        }
        self.exits.extend(exits);
        debug_assert_eq!(self.exits.len(), self.packets.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u8) -> Packet {
        Packet::from_slice(&[number])
    }

    #[test]
    fn what_is_to_be_done_stays_in_its_order() {
        let mut verdicts = Verdicts::new();
        let mut first = vec![packet(1), packet(2)];
        let exits = [Exit::Port(PortId(1)), Exit::Socket(SocketId(2))];
        verdicts.append(exits.into_iter(), &mut first);
        verdicts.push(Exit::Port(PortId(3)), packet(3));
        let mut more = vec![packet(4)];
        verdicts.append([Exit::Port(PortId(4))].into_iter(), &mut more);
        assert_eq!((first.len(), more.len(), verdicts.len()), (0, 0, 4));
        let transmit =
            |number| Verdict::Transmit { port: PortId(number), packet: packet(number as u8) };
        let deliver = Verdict::Deliver { socket: SocketId(2), packet: packet(2) };
        let expected = [transmit(1), deliver, transmit(3), transmit(4)];
        assert!(verdicts.drain().eq(expected));
        assert!(verdicts.is_empty() && verdicts.exits.is_empty());
    }

    #[test]
    fn packets_that_leave_as_they_came_are_not_moved() {
        let (mut verdicts, mut packets) = (Verdicts::new(), vec![packet(1)]);
        let place = packets.as_ptr();
        verdicts.append([Exit::default()].into_iter(), &mut packets);
        assert_eq!(verdicts.packets.as_ptr(), place);
        verdicts.clear();
        assert_eq!(verdicts, Verdicts::new());
    }
}
