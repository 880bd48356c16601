//! What a port is, seen from a component: how to ask for one and what is known of an open one.

use std::fmt;
use std::net::SocketAddr;

/// A request for a packet port. The driver turns it into a socket (real) or into a tap on a modelled
/// interface (simulated).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PortSpec {
    /// Whole Ethernet frames of one EtherType on an interface: the kernel's demultiplexing keeps
    /// stacks that share a NIC apart. Frames carry their 14-byte header in both directions.
    Ethernet {
        /// The interface's name, such as `eth0`.
        interface: String,
        /// The EtherType to receive, such as 0xC0DE.
        ethertype: u16,
    },
    /// A TAP interface that is created if it does not exist: whole Ethernet frames.
    Tap {
        /// The interface's name.
        name: String,
    },
    /// A TUN interface that is created if it does not exist: bare IP packets.
    Tun {
        /// The interface's name.
        name: String,
    },
    /// Datagrams of a UDP socket; an IPv6 address takes IPv6 only. Packets are the payload;
    /// [`LinkAddress::Udp`](weft_base::LinkAddress) in the metadata is the other end.
    Udp {
        /// The address to bind. Port 0 lets the system choose; [`PortInfo::local`] tells.
        local: SocketAddr,
    },
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ethernet { interface, ethertype } => {
                write!(f, "{interface} (EtherType {ethertype:#06x})")
            }
            Self::Tap { name } => write!(f, "TAP {name}"),
            Self::Tun { name } => write!(f, "TUN {name}"),
            Self::Udp { local } => write!(f, "UDP {local}"),
        }
    }
}

/// What is known of an open port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// The Ethernet address of the interface; zero where there is none. For TAP: an address for
    /// this end of the wire, different from that of the kernel's end.
    pub mac: [u8; 6],
    /// The largest packet that may be sent, in bytes, without the Ethernet header. For UDP: the
    /// largest payload that fits the interface's MTU unfragmented.
    pub mtu: usize,
    /// The bound address of a UDP port.
    pub local: Option<SocketAddr>,
}
