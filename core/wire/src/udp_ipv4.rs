//! Whole UDP/IPv4 packets: both headers at once.
//!
//! Reference: RFC 768 and RFC 791, see [`crate::UdpRepr`] and [`crate::Ipv4Repr`].
//!
//! This is what tunnels over UDP and modelled IPv4 hosts need: room for 28 bytes before a payload
//! that already stands in the packet buffer, and one call to fill it.

use core::net::SocketAddrV4;

use crate::{
    IPV4_HEADER_LEN, IpProtocol, Ipv4Packet, Ipv4Repr, PseudoHeader, UDP_HEADER_LEN, UdpDatagram,
    UdpRepr, WireError,
};

const HEADER: &str = "udp/ipv4 packet";

/// The content of the headers of a UDP/IPv4 packet. No options, never a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpIpv4Repr {
    /// Address and port of the sender.
    pub source: SocketAddrV4,
    /// Address and port of the receiver.
    pub destination: SocketAddrV4,
    /// Time to live in hops.
    pub ttl: u8,
    /// DSCP (upper 6 bits) and ECN (lower 2 bits).
    pub traffic_class: u8,
    /// Whether routers must not fragment the packet. If they may, the sender has to choose an
    /// identification: use [`Ipv4Repr`] and [`UdpRepr`] then.
    pub dont_fragment: bool,
    /// Length of the payload in bytes.
    pub payload_len: usize,
}

impl UdpIpv4Repr {
    /// Length of both headers in bytes.
    pub const HEADER_LEN: usize = IPV4_HEADER_LEN + UDP_HEADER_LEN;
    /// The longest payload in bytes.
    pub const MAX_PAYLOAD_LEN: usize = Ipv4Repr::MAX_PAYLOAD_LEN - UDP_HEADER_LEN;

    /// Reads the packet in `bytes` and returns its payload as well. Options and padding are skipped.
    ///
    /// # Errors
    /// What [`Ipv4Packet::new_checked`], [`Ipv4Repr::parse`], [`UdpDatagram::new_checked`] and
    /// [`UdpRepr::parse`] refuse, and [`WireError::Field`] if the packet carries no UDP.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let packet = Ipv4Packet::new_checked(bytes)?;
        let ip = Ipv4Repr::parse(&packet)?;
        if ip.protocol != IpProtocol::UDP {
            return Err(WireError::Field {
                header: HEADER,
                field: "protocol",
                value: ip.protocol.0.into(),
                expected: "17 (udp)",
            });
        }
        let datagram = UdpDatagram::new_checked(packet.into_payload())?;
        let udp = UdpRepr::parse(&datagram, &pseudo_header(&ip))?;
        let repr = Self {
            source: SocketAddrV4::new(ip.source, udp.source_port),
            destination: SocketAddrV4::new(ip.destination, udp.destination_port),
            ttl: ip.ttl,
            traffic_class: ip.traffic_class,
            dont_fragment: ip.dont_fragment,
            payload_len: udp.payload_len,
        };
        Ok((repr, datagram.into_payload()))
    }

    /// Length of headers and payload in bytes.
    pub const fn buffer_len(&self) -> usize {
        Self::HEADER_LEN.saturating_add(self.payload_len)
    }

    /// Writes both headers to the first [`UdpIpv4Repr::HEADER_LEN`] bytes of `buffer`, before the
    /// payload that already stands behind them, with both checksums.
    ///
    /// # Errors
    /// [`WireError::NoSpace`] if the buffer is shorter than headers and payload;
    /// [`WireError::PayloadTooLong`] if the payload exceeds [`UdpIpv4Repr::MAX_PAYLOAD_LEN`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        if self.payload_len > Self::MAX_PAYLOAD_LEN {
            return Err(WireError::PayloadTooLong {
                header: HEADER,
                length: self.payload_len,
                limit: Self::MAX_PAYLOAD_LEN,
            });
        }
        if buffer.len() < self.buffer_len() {
            return Err(WireError::NoSpace {
                header: HEADER,
                needed: self.buffer_len(),
                available: buffer.len(),
            });
        }
        let ip = self.ip();
        ip.emit(buffer)?;
        let udp = UdpRepr {
            source_port: self.source.port(),
            destination_port: self.destination.port(),
            payload_len: self.payload_len,
        };
        udp.emit(&mut buffer[IPV4_HEADER_LEN..], &pseudo_header(&ip))
    }

    fn ip(&self) -> Ipv4Repr {
        Ipv4Repr {
            source: *self.source.ip(),
            destination: *self.destination.ip(),
            protocol: IpProtocol::UDP,
            ttl: self.ttl,
            traffic_class: self.traffic_class,
            identification: 0,
            dont_fragment: self.dont_fragment,
            payload_len: UDP_HEADER_LEN + self.payload_len,
        }
    }
}

fn pseudo_header(ip: &Ipv4Repr) -> PseudoHeader {
    PseudoHeader::V4 { source: ip.source, destination: ip.destination }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{check_no_space, check_truncation, ipv4};
    use proptest::prelude::*;

    fn socket() -> impl Strategy<Value = SocketAddrV4> {
        (ipv4(), any::<u16>()).prop_map(|(address, port)| SocketAddrV4::new(address, port))
    }

    fn packet() -> impl Strategy<Value = (UdpIpv4Repr, Vec<u8>)> {
        let payload = prop::collection::vec(any::<u8>(), 0..60);
        (socket(), socket(), any::<(u8, u8, bool)>(), payload).prop_map(
            |(source, destination, (ttl, traffic_class, dont_fragment), payload)| {
                let payload_len = payload.len();
                let repr = UdpIpv4Repr {
                    source,
                    destination,
                    ttl,
                    traffic_class,
                    dont_fragment,
                    payload_len,
                };
                (repr, payload)
            },
        )
    }

    fn emitted(repr: &UdpIpv4Repr, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; UdpIpv4Repr::HEADER_LEN];
        bytes.extend(payload);
        repr.emit(&mut bytes).unwrap();
        bytes
    }

    fn example() -> UdpIpv4Repr {
        UdpIpv4Repr {
            source: "192.0.2.1:1024".parse().unwrap(),
            destination: "192.0.2.2:53".parse().unwrap(),
            ttl: 64,
            traffic_class: 0,
            dont_fragment: true,
            payload_len: 2,
        }
    }

    #[test]
    fn other_protocols_are_refused() {
        let mut bytes = emitted(&example(), b"hi");
        bytes[9] = IpProtocol::TCP.0;
        Ipv4Packet::new_checked(&mut bytes[..]).unwrap().fill_checksum();
        let result = UdpIpv4Repr::parse(&bytes);
        assert!(matches!(result, Err(WireError::Field { field: "protocol", value: 6, .. })));
    }

    #[test]
    fn a_datagram_longer_than_its_packet_is_refused() {
        let mut bytes = emitted(&example(), b"hi");
        bytes[IPV4_HEADER_LEN + 5] += 1;
        bytes.push(0); // Padding after the packet must not be taken for payload.
        let result = UdpIpv4Repr::parse(&bytes);
        assert!(matches!(result, Err(WireError::Truncated { needed: 11, available: 10, .. })));
    }

    #[test]
    fn payloads_up_to_the_limit_of_ipv4_fit() {
        let mut buffer = vec![0; 65536];
        for (payload_len, fits) in [(65507, true), (65508, false), (usize::MAX, false)] {
            let result = UdpIpv4Repr { payload_len, ..example() }.emit(&mut buffer);
            assert_eq!(result.is_ok(), fits, "{payload_len}: {result:?}");
        }
    }

    #[test]
    fn a_forwarded_packet_differs_in_its_time_to_live_alone() {
        let mut bytes = emitted(&example(), b"hi");
        Ipv4Packet::new_checked(&mut bytes[..]).unwrap().decrement_ttl().unwrap();
        assert_eq!(bytes, emitted(&UdpIpv4Repr { ttl: 63, ..example() }, b"hi"));
    }

    proptest! {
        #[test]
        fn parse_of_emit_is_the_value((repr, payload) in packet()) {
            let bytes = emitted(&repr, &payload);
            prop_assert_eq!(UdpIpv4Repr::parse(&bytes), Ok((repr, &payload[..])));
            check_truncation(&bytes, |bytes| UdpIpv4Repr::parse(bytes).map(drop));
            check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = UdpIpv4Repr::parse(&bytes);
        }

        #[test]
        fn damaged_packets_never_panic((repr, payload) in packet(), bit: prop::sample::Index) {
            let mut bytes = emitted(&repr, &payload);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            let _ = UdpIpv4Repr::parse(&bytes);
        }

        #[test]
        fn etherparse_builds_the_same_packet((repr, payload) in packet()) {
            let mut theirs = Vec::new();
            let mut ip = etherparse::Ipv4Header::new(
                0,
                repr.ttl,
                etherparse::IpNumber::UDP,
                repr.source.ip().octets(),
                repr.destination.ip().octets(),
            ).unwrap();
            ip.dont_fragment = repr.dont_fragment;
            ip.dscp = etherparse::IpDscp::try_new(repr.traffic_class >> 2).unwrap();
            ip.ecn = etherparse::IpEcn::try_new(repr.traffic_class & 3).unwrap();
            etherparse::PacketBuilder::ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
                .udp(repr.source.port(), repr.destination.port())
                .write(&mut theirs, &payload)
                .unwrap();
            prop_assert_eq!(emitted(&repr, &payload), theirs);
        }
    }
}
