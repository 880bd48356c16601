//! What a port has moved and what it has dropped, by reason.

use weft_base::Counters;

weft_base::reasons! {
    /// Why a port dropped a packet.
    pub enum PortDrop {
        OtherHost = "other-host", "the frame is addressed to another host on the link";
        ReceiveTooLong = "receive-too-long", "the packet is longer than a port can receive";
        ReceiveQueueFull = "receive-queue-full",
            "the kernel had no room for the packet because this process did not keep up";
        ReceiveError = "receive-error", "the socket reported an error instead of a packet";
        TransmitTooLong = "transmit-too-long", "the packet is longer than the link carries";
        TransmitQueueFull = "transmit-queue-full", "the queue of the interface is full";
        NoDestination = "no-destination", "the packet does not say who gets it";
        WrongFamily = "wrong-family",
            "the destination's address family is not the one of the socket";
        Unreachable = "unreachable", "there is no route to the destination";
        Refused = "refused", "nobody listens at the destination";
        TransmitError = "transmit-error", "the kernel refused the packet for another reason";
    }
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many packets.
    pub packets: u64,
    /// How many bytes they have, as the port counts them (with Ethernet header where there is one).
    pub bytes: u64,
}

impl Traffic {
    /// Counts one packet of `bytes`.
    pub fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// All that a port counts.
#[derive(Clone, Debug, Default)]
pub struct PortStatistics {
    /// What was handed up.
    pub received: Traffic,
    /// What the kernel took.
    pub sent: Traffic,
    /// What was dropped, by reason.
    pub drops: Counters<PortDrop>,
}

impl PortStatistics {
    /// Adds what another port has counted.
    pub(crate) fn include(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.drops.include(&other.drops);
    }
}
