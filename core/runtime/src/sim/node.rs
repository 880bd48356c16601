//! Nodes, their interfaces, and the links between them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_base::{Counters, PortId};
use weft_wire::{EtherType, MacAddr};

use super::groups::GroupSocket;
use super::ids::{InterfaceId, LinkId, NodeId, ProcessId};
use super::routes::Routes;
use super::sockets::Sockets;
use super::transmitter::Transmitter;

weft_base::reasons! {
    /// What a node counts. Over all nodes of a world, what enters one side comes out on the other:
    ///
    /// * [`LinkCount::Delivered`](crate::LinkCount::Delivered) `= arrived + lost-in-flight +` the
    ///   frames on links
    /// * `arrived + repeated = received + arrived-down + nobody-there`
    /// * `received + copied = other-host + malformed + no-listener + to-ports + to-ip`
    /// * `to-ip + udp-sent = to-sockets + forwarded + udp-out +` the reasons for IP drops
    /// * `port-sent + forwarded + udp-out = sent +` the reasons for frame drops
    /// * `to-ports + to-sockets = handed-over + port-closed + waiting`
    pub enum NodeCount {
        Arrived = "arrived", "frames that this node sent and that came to the end of the link";
        Repeated = "repeated", "extra copies of them because a hub has several receivers";
        NobodyThere = "nobody-there", "frames that this node sent and whose link has no other end now";
        Received = "received", "frames that came to an interface that is up";
        ArrivedDown = "arrived-down", "frames that came to an interface that is down";
        Copied = "copied", "extra copies because several listeners want the same frame";
        OtherHost = "other-host", "frames for another station, seen by nobody";
        Malformed = "malformed", "frames shorter than an Ethernet header";
        NoListener = "no-listener", "frames whose EtherType nobody listens to";
        ToPorts = "to-ports", "frames given to Ethernet ports";
        ToIp = "to-ip", "frames given to the node's IPv4";

        PortSent = "port-sent", "frames sent by Ethernet ports";
        PortMalformed = "port-malformed", "frame drop: a port sent less than an Ethernet header";
        TooLong = "too-long", "frame drop: longer than the interface's MTU";
        InterfaceDown = "interface-down", "frame drop: the outgoing interface is down or deleted";
        NoLink = "no-link", "frame drop: nothing is connected to the outgoing interface";
        LinkCut = "link-cut", "frame drop: the link was cut";
        Sent = "sent", "frames given to links";
        LostInFlight = "lost-in-flight", "frames that were on a link when it was cut or deleted";

        UdpSent = "udp-sent", "datagrams sent by UDP ports";
        UdpOut = "udp-out", "datagrams that left through an interface";
        Forwarded = "forwarded", "IPv4 packets forwarded";
        ToSockets = "to-sockets", "datagrams given to UDP ports";
        BadHeader = "bad-header", "IP drop: not a valid IPv4 header, or a wrong header checksum";
        Fragment = "fragment", "IP drop: a fragment for this node, which reassembles nothing";
        NotForwarding = "not-forwarding", "IP drop: for another host, and forwarding is off";
        TtlExpired = "ttl-expired", "IP drop: the time to live ran out";
        NoRoute = "no-route", "IP drop: no route to the destination";
        NoNeighbour = "no-neighbour", "IP drop: the next hop is not on the link";
        PacketTooLong = "packet-too-long", "IP drop: longer than the MTU; nothing is fragmented";
        NotUdp = "not-udp", "IP drop: a protocol other than UDP for this node";
        BadUdp = "bad-udp", "IP drop: a malformed datagram or a wrong UDP checksum";
        NoSocket = "no-socket", "IP drop: no socket is bound to the destination";
        NoDestination = "no-destination", "IP drop: sent without an IPv4 destination";

        HandedOver = "handed-over", "packets that processes have taken from their ports";
        PortClosed = "port-closed", "packets for a port that closed before its process took them";
        Discarded = "discarded", "packets sent on ports that were not open";
    }
}

/// A machine: interfaces, IPv4 like a kernel's, and the processes that run on it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) interfaces: Vec<InterfaceId>,
    /// Whether it forwards IPv4 packets for others.
    pub(super) forwarding: bool,
    /// Its own addresses and on which interface they are.
    pub(super) addresses: BTreeMap<Ipv4Addr, InterfaceId>,
    pub(super) routes: Routes,
    pub(super) sockets: Sockets,
    pub(super) groups: Vec<GroupSocket>,
    pub(super) counters: Counters<NodeCount>,
}

impl Node {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            interfaces: Vec::new(),
            forwarding: false,
            addresses: BTreeMap::new(),
            routes: Routes::default(),
            sockets: Sockets::default(),
            groups: Vec::new(),
            counters: Counters::new(),
        }
    }

    pub(super) fn count(&mut self, reason: NodeCount) {
        self.counters.add(reason, 1);
    }
}

/// Whether an interface works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterfaceState {
    Up,
    Down,
    Deleted,
}

/// Somebody who wants frames of one EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tap {
    pub(super) ethertype: EtherType,
    pub(super) process: ProcessId,
    pub(super) port: PortId,
}

/// A network interface.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) node: NodeId,
    pub(super) name: String,
    pub(super) mac: MacAddr,
    /// The largest payload of a frame, in bytes.
    pub(super) mtu: usize,
    pub(super) state: InterfaceState,
    /// Addresses with prefix lengths, in the order in which they were given.
    pub(super) addresses: Vec<(Ipv4Addr, u8)>,
    pub(super) taps: Vec<Tap>,
    /// The link it hangs on, and its way out to it.
    pub(super) attachment: Option<(LinkId, Transmitter)>,
}

impl Interface {
    pub(super) fn is_up(&self) -> bool {
        self.state == InterfaceState::Up
    }

    pub(super) fn link(&self) -> Option<LinkId> {
        self.attachment.as_ref().map(|(link, _)| *link)
    }
}

/// A cable between two interfaces, or a hub between several: what one member sends, all the others
/// receive.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) members: Vec<InterfaceId>,
    pub(super) cut: bool,
    /// Who has which address here: stands for ARP, which is not modelled.
    pub(super) neighbours: BTreeMap<Ipv4Addr, InterfaceId>,
}
