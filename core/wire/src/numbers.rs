//! Numbers that name what a header carries.
//!
//! Reference: IANA, "IEEE 802 Numbers" (EtherTypes) and "Assigned Internet Protocol Numbers".
//!
//! Any number survives: a type that this module does not name is a valid value. Each architecture
//! names its own EtherType in its own crate.

use core::fmt;

/// The protocol of an Ethernet payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// Internet Protocol version 4.
    pub const IPV4: Self = Self(0x0800);
    /// Address Resolution Protocol.
    pub const ARP: Self = Self(0x0806);
    /// IEEE 802.1Q customer VLAN tag; the real type follows the tag.
    pub const VLAN: Self = Self(0x8100);
    /// Internet Protocol version 6.
    pub const IPV6: Self = Self(0x86dd);
    /// The smallest EtherType. Smaller values are lengths of IEEE 802.3 frames (IEEE 802.3 §3.2.6).
    pub const MIN: Self = Self(0x0600);
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtherType({self})")
    }
}

/// The protocol of an IPv4 payload, or the next header of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// Internet Control Message Protocol for IPv4.
    pub const ICMP: Self = Self(1);
    /// Transmission Control Protocol.
    pub const TCP: Self = Self(6);
    /// User Datagram Protocol.
    pub const UDP: Self = Self(17);
    /// Internet Control Message Protocol for IPv6.
    pub const ICMPV6: Self = Self(58);
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
