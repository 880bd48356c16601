//! The ports that packets leave by: what has to be known of each to put a packet on its link, and how packets leave by a next hop.

use weft_base::{LinkAddress, Packet, PortId};
use weft_wire::{ETHERNET_HEADER_LEN, EtherType, EthernetRepr, MacAddr};

use super::DropReason;
use crate::XipPacket;
use crate::numbers::ETHERTYPE_XIP;
use crate::principal::NextHop;

/// How a port wants its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Behind an Ethernet header with this source address.
    Ethernet {
        /// The interface's own address.
        mac: [u8; 6],
    },
    /// As they are; the port knows what to put around them (UDP tunnels).
    Bare,
}

/// What the forwarder knows of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// How packets are put on the link.
    pub framing: Framing,
    /// The longest XIP packet that the link takes, in bytes.
    pub mtu: usize,
}

/// All ports that are open, ascending by their numbers.
#[derive(Debug, Default)]
pub(super) struct EgressTable {
    ports: Vec<(PortId, Egress)>,
}

impl EgressTable {
    pub(super) fn insert(&mut self, port: PortId, egress: Egress) {
        match self.place(port) {
            Ok(place) => self.ports[place].1 = egress,
            Err(place) => self.ports.insert(place, (port, egress)),
        }
    }

    pub(super) fn remove(&mut self, port: PortId) {
        if let Ok(place) = self.place(port) {
            self.ports.remove(place);
        }
    }

    /// How many ports there are.
    pub(super) fn count(&self) -> usize {
        self.ports.len()
    }

    fn get(&self, port: PortId) -> Option<&Egress> {
        self.place(port).ok().map(|place| &self.ports[place].1)
    }

    /// The longest XIP packet that can leave by the port, in bytes; 0 if there is none.
    pub(super) fn mtu(&self, port: PortId) -> usize {
        self.get(port).map_or(0, |egress| egress.mtu)
    }

    /// Where the port is, or where it would have to be.
    fn place(&self, port: PortId) -> Result<usize, usize> {
        self.ports.binary_search_by_key(&port, |(port, _)| *port)
    }

    /// How packets leave by a next hop, as long as the ports stay as they are.
    pub(super) fn departure(&self, hop: NextHop) -> Departure {
        let gone = Departure {
            hop,
            header: [0; ETHERNET_HEADER_LEN],
            is_framed: false,
            longest: 0,
            refusal: DropReason::PortGone,
        };
        let Some(egress) = self.get(hop.port) else { return gone };
        let bare = Departure { longest: egress.mtu, refusal: DropReason::TooBig, ..gone };
        match (egress.framing, hop.link) {
            (Framing::Bare, _) => bare,
            (Framing::Ethernet { mac }, LinkAddress::Mac(to)) => {
                let header = EthernetRepr {
                    destination: MacAddr(to),
                    source: MacAddr(mac),
                    ethertype: EtherType(ETHERTYPE_XIP),
                };
                let mut framed = Departure { is_framed: true, ..bare };
                header.emit(&mut framed.header).expect("the array is as long as this header");
                framed
            }
            // A principal named a neighbour that cannot be on this kind of link.
            (Framing::Ethernet { .. }, _) => gone,
        }
    }
}

/// How packets leave by a next hop: all that its port and its address on the link come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    hop: NextHop,
    /// The link header, if there is one.
    header: [u8; ETHERNET_HEADER_LEN],
    is_framed: bool,
    /// The longest packet that can leave, in bytes. No packet is empty.
    longest: usize,
    /// Why longer ones cannot.
    refusal: DropReason,
}

impl Departure {
    /// Where packets go.
    #[inline]
    pub(super) fn hop(&self) -> &NextHop {
        &self.hop
    }

    /// Takes one off the hop limit of an XIP packet, if it came in on a port, and puts the link header in front. Nothing is
    /// changed if it cannot leave.
    #[inline]
    pub(super) fn send(&self, packet: &mut Packet) -> Result<(), DropReason> {
        let received = packet.meta.port != PortId::NONE;
        self.admit(&mut XipPacket::checked_before(packet.bytes_mut()), received)?;
        self.put_on_link(packet);
        Ok(())
    }

    /// The first half of [`Departure::send`]: takes one off the hop limit.
    #[inline(always)]
    pub(super) fn admit(
        &self,
        packet: &mut XipPacket<&mut [u8]>,
        received: bool,
    ) -> Result<(), DropReason> {
        let hop_limit = packet.hop_limit();
        if hop_limit == 0 {
            return Err(DropReason::HopLimit);
        }
        if packet.inner().len() > self.longest {
            return Err(self.refusal);
        }
        packet.set_hop_limit(hop_limit - u8::from(received));
        Ok(())
    }

    /// The second half of [`Departure::send`]: says to whom the packet goes, and puts the link header in front.
    #[inline(always)]
    pub(super) fn put_on_link(&self, packet: &mut Packet) {
        packet.meta.link = self.hop.link;
        if self.is_framed {
            packet.prepend(&self.header);
        }
    }
}
