//! Checked views of the headers that every architecture meets: Ethernet, 802.1Q, ARP, IPv4, IPv6, UDP, ICMPv6.
//!
//! Each header has two forms:
//!
//! * a **view** such as [`Ipv4Packet`] over any buffer. `new_checked` checks every length once;
//!   after that no accessor can fail. Over a mutable buffer it has the setters that a forwarder
//!   needs.
//! * an owned **value** such as [`Ipv4Repr`], read with `parse` and written with `emit`. `parse`
//!   also checks checksums and what the specification forbids.
//!
//! `emit` writes to the front of a `&mut [u8]`. To prepend a header to a packet, take room from its
//! headroom and write there:
//!
//! ```
//! use weft_wire::{EtherType, EthernetFrame, EthernetRepr, Ipv4Packet, MacAddr, UdpIpv4Repr};
//!
//! // A packet buffer with headroom; the payload already stands at its end.
//! let mut buffer = *b"..........................................payload";
//! let packet = &mut buffer[14..];
//! let headers = UdpIpv4Repr {
//!     source: "192.0.2.1:4000".parse()?,
//!     destination: "198.51.100.7:4001".parse()?,
//!     ttl: 64,
//!     traffic_class: 0,
//!     dont_fragment: true,
//!     payload_len: 7,
//! };
//! headers.emit(packet)?;
//! EthernetRepr {
//!     destination: "02:00:00:00:00:02".parse()?,
//!     source: "02:00:00:00:00:01".parse()?,
//!     ethertype: EtherType::IPV4,
//! }
//! .emit(&mut buffer)?;
//!
//! // A router takes one hop off and passes the packet on; the receiver reads it.
//! let mut frame = EthernetFrame::new_checked(&mut buffer[..])?;
//! Ipv4Packet::new_checked(frame.payload_mut())?.decrement_ttl()?;
//! let (received, payload) = UdpIpv4Repr::parse(frame.payload())?;
//! assert_eq!((received.ttl, payload), (63, &b"payload"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here allocates, does I/O or panics on any input.

#![cfg_attr(not(test), no_std)]

mod arp;
mod bytes;
pub mod checksum;
mod error;
mod ethernet;
mod icmpv6;
mod ipv4;
mod ipv6;
mod mac;
mod numbers;
#[cfg(test)]
mod test_support;
mod udp;
mod udp_ipv4;
mod vlan;

pub use arp::{ARP_LEN, ArpOperation, ArpPacket, ArpRepr};
pub use checksum::PseudoHeader;
pub use error::WireError;
pub use ethernet::{ETHERNET_HEADER_LEN, EthernetFrame, EthernetRepr};
pub use icmpv6::{
    ICMPV6_HEADER_LEN, Icmpv6Message, Icmpv6Repr, Icmpv6Type, NeighborAdvertisement,
    NeighborSolicitation, solicited_node,
};
pub use ipv4::{IPV4_HEADER_LEN, Ipv4Packet, Ipv4Repr};
pub use ipv6::{IPV6_HEADER_LEN, Ipv6Packet, Ipv6Repr};
pub use mac::{MacAddr, MacAddrParseError};
pub use numbers::{EtherType, IpProtocol};
pub use udp::{UDP_HEADER_LEN, UdpDatagram, UdpRepr};
pub use udp_ipv4::UdpIpv4Repr;
pub use vlan::{VLAN_TAG_LEN, VlanId, VlanRepr, VlanTag};
