//! The ways over IP: which header carries XIP, and the type of XIDs that names its ends.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;

use weft_base::LinkAddress;
use weft_port::PortSpec;
use weft_xip::XidType;

/// The protocol number of XIP over IP unless another is configured: one of two that anybody may use for
/// experiments (RFC 3692, RFC 4727).
pub const USUAL_PROTOCOL: NonZero<u8> = NonZero::new(253).unwrap();
/// The other one.
pub const OTHER_PROTOCOL: NonZero<u8> = NonZero::new(254).unwrap();

/// A way over IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In UDP over IPv4.
    U4id,
    /// In UDP over IPv6.
    U6id,
    /// Directly in IPv4.
    I4id,
    /// Directly in IPv6.
    I6id,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::U4id, Self::U6id, Self::I4id, Self::I6id];

    /// The way that XIDs of this type name.
    #[must_use]
    pub fn of(kind: XidType) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.kind() == kind)
    }

    /// The type of its XIDs.
    #[must_use]
    pub const fn kind(self) -> XidType {
        match self {
            Self::U4id => XidType::U4ID,
            Self::U6id => XidType::U6ID,
            Self::I4id => XidType::I4ID,
            Self::I6id => XidType::I6ID,
        }
    }

    /// Whether it goes by UDP.
    #[must_use]
    pub const fn is_udp(self) -> bool {
        matches!(self, Self::U4id | Self::U6id)
    }

    /// Whether it goes over IPv4.
    #[must_use]
    pub const fn is_ipv4(self) -> bool {
        matches!(self, Self::U4id | Self::I4id)
    }

    /// How an end is written.
    pub(crate) const fn form(self) -> &'static str {
        match self {
            Self::U4id => "IPV4:PORT",
            Self::U6id => "[IPV6]:PORT",
            Self::I4id => "IPV4",
            Self::I6id => "IPV6",
        }
    }

    /// What an end looks like in text.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::U4id => "192.0.2.1:13781",
            Self::U6id => "[2001:db8::1]:13781",
            Self::I4id => "192.0.2.1",
            Self::I6id => "2001:db8::1",
        }
    }

    /// Reads an end; the port is 0 where there is none. `None` if the text is of another form.
    #[must_use]
    pub fn read(self, word: &str) -> Option<SocketAddr> {
        let address = if self.is_udp() {
            word.parse().ok()?
        } else {
            SocketAddr::new(word.parse::<IpAddr>().ok()?, 0)
        };
        (address.is_ipv4() == self.is_ipv4()).then_some(address)
    }

    /// Writes an end as it is read.
    pub(crate) fn text(self, address: SocketAddr) -> String {
        if self.is_udp() { address.to_string() } else { address.ip().to_string() }
    }

    /// The port that receives at an end of this node.
    pub(crate) fn port(self, local: SocketAddr, protocol: NonZero<u8>) -> PortSpec {
        if self.is_udp() {
            PortSpec::Udp { local }
        } else {
            PortSpec::Ip { local: local.ip(), protocol }
        }
    }

    /// Where that port sends what goes to another end.
    pub(crate) fn link(self, there: SocketAddr) -> LinkAddress {
        if self.is_udp() { LinkAddress::Udp(there) } else { LinkAddress::Ip(there.ip()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_its_own_example_alone() {
        for way in Way::ALL {
            assert_eq!(Way::of(way.kind()), Some(way));
            for other in Way::ALL {
                let read = way.read(other.example());
                assert_eq!(read.is_some(), way == other, "{way:?} {}", other.example());
                if let Some(address) = read {
                    assert_eq!(way.text(address), other.example());
                }
            }
        }
        assert_eq!(Way::of(XidType::HID), None);
    }

    #[test]
    fn udp_ports_have_no_protocol_and_ip_ports_no_port() {
        let port = |way: Way| {
            let local = way.read(way.example()).unwrap();
            way.port(local, USUAL_PROTOCOL).to_string()
        };
        assert_eq!(
            Way::ALL.map(port),
            [
                "udp:192.0.2.1:13781",
                "udp:[2001:db8::1]:13781",
                "ip:192.0.2.1:253",
                "ip:[2001:db8::1]:253"
            ]
        );
    }
}
