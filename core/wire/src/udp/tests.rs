use super::*;
use crate::test_support::{check_no_space, check_truncation, ipv4, ipv6};
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;

fn addresses() -> impl Strategy<Value = PseudoHeader> {
    prop_oneof![
        (ipv4(), ipv4()).prop_map(|(source, destination)| PseudoHeader::V4 { source, destination }),
        (ipv6(), ipv6()).prop_map(|(source, destination)| PseudoHeader::V6 { source, destination }),
    ]
}

fn datagram() -> impl Strategy<Value = (UdpRepr, Vec<u8>)> {
    (any::<u16>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..100)).prop_map(
        |(source_port, destination_port, payload)| {
            (UdpRepr { source_port, destination_port, payload_len: payload.len() }, payload)
        },
    )
}

fn emitted(repr: &UdpRepr, payload: &[u8], addresses: &PseudoHeader) -> Vec<u8> {
    let mut bytes = vec![0; UDP_HEADER_LEN];
    bytes.extend(payload);
    repr.emit(&mut bytes, addresses).unwrap();
    bytes
}

const V4: PseudoHeader = PseudoHeader::V4 {
    source: Ipv4Addr::new(192, 0, 2, 1),
    destination: Ipv4Addr::new(192, 0, 2, 2),
};
const V6: PseudoHeader =
    PseudoHeader::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::LOCALHOST };

// Worked by hand from RFC 768: pseudo header c000+0201+c000+0202+0011+000a = 1841e -> 841f, header
// 0400+0035+000a -> 0x043f, payload "hi" 6869; sum f0c7, complement 0f38.
#[test]
fn worked_example() {
    let repr = UdpRepr { source_port: 1024, destination_port: 53, payload_len: 2 };
    let bytes = emitted(&repr, b"hi", &V4);
    assert_eq!(bytes, [0x04, 0x00, 0x00, 0x35, 0x00, 0x0a, 0x0f, 0x38, b'h', b'i']);
}

#[test]
fn a_computed_zero_is_sent_as_all_ones() {
    let repr = UdpRepr { source_port: 1024, destination_port: 53, payload_len: 2 };
    for addresses in [V4, V6] {
        let zero = emitted(&repr, &[0, 0], &addresses);
        let checksum = u16::from_be_bytes([zero[6], zero[7]]);
        // A payload word equal to the checksum makes the whole sum ffff.
        let bytes = emitted(&repr, &checksum.to_be_bytes(), &addresses);
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        let datagram = UdpDatagram::new_checked(&bytes[..]).unwrap();
        assert!(datagram.verify_checksum(&addresses));
    }
}

#[test]
fn no_checksum_is_allowed_over_ipv4_only() {
    let bytes = [0, 7, 0, 7, 0, 9, 0, 0, 0xaa];
    let datagram = UdpDatagram::new_checked(&bytes[..]).unwrap();
    assert!(UdpRepr::parse(&datagram, &V4).is_ok());
    assert_eq!(UdpRepr::parse(&datagram, &V6), Err(WireError::Checksum { header: HEADER }));
}

#[test]
fn bytes_after_the_length_are_not_payload() {
    let bytes = [0, 7, 0, 7, 0, 9, 0, 0, 0xaa, 0xbb];
    let datagram = UdpDatagram::new_checked(&bytes[..]).unwrap();
    assert_eq!(datagram.payload(), [0xaa]);
    assert_eq!(datagram.into_payload(), [0xaa]);
}

#[test]
fn a_length_below_the_header_is_refused() {
    let result = UdpDatagram::new_checked([0, 7, 0, 7, 0, 7, 0, 0]);
    assert!(matches!(result, Err(WireError::Field { field: "length", value: 7, .. })));
}

#[test]
fn a_payload_beyond_the_length_field_is_refused() {
    let mut buffer = vec![0; 65536];
    for (payload_len, fits) in [(65527, true), (65528, false), (usize::MAX, false)] {
        let repr = UdpRepr { source_port: 1, destination_port: 2, payload_len };
        let result = repr.emit(&mut buffer, &V4);
        assert_eq!(result.is_ok(), fits, "{payload_len}: {result:?}");
    }
}

#[test]
fn setters_change_what_they_name() {
    let repr = UdpRepr { source_port: 1024, destination_port: 53, payload_len: 2 };
    let mut bytes = emitted(&repr, b"hi", &V6);
    let mut datagram = UdpDatagram::new_checked(&mut bytes[..]).unwrap();
    datagram.set_source_port(7);
    datagram.set_destination_port(9);
    datagram.payload_mut()[0] = b'H';
    assert!(!datagram.verify_checksum(&V6));
    datagram.fill_checksum(&V6);
    let expected = UdpRepr { source_port: 7, destination_port: 9, payload_len: 2 };
    assert_eq!(UdpRepr::parse(&datagram, &V6), Ok(expected));
    assert_eq!(datagram.payload(), b"Hi");
}

proptest! {
    #[test]
    fn parse_of_emit_is_the_value((repr, payload) in datagram(), addresses in addresses()) {
        let bytes = emitted(&repr, &payload, &addresses);
        let datagram = UdpDatagram::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(UdpRepr::parse(&datagram, &addresses), Ok(repr));
        prop_assert_eq!(datagram.payload(), &payload[..]);
        check_truncation(&bytes, |bytes| UdpDatagram::new_checked(bytes).map(drop));
        check_no_space(bytes.len(), |buffer| repr.emit(buffer, &addresses));
    }

    #[test]
    fn emit_of_parse_is_the_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 8..64),
        addresses in addresses(),
    ) {
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        UdpDatagram::new_checked(&mut bytes[..]).unwrap().fill_checksum(&addresses);
        let datagram = UdpDatagram::new_checked(&bytes[..]).unwrap();
        let repr = UdpRepr::parse(&datagram, &addresses).unwrap();
        prop_assert_eq!(emitted(&repr, datagram.payload(), &addresses), bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, addresses in addresses()) {
        let _ = UdpDatagram::new_checked(bytes).map(|d| UdpRepr::parse(&d, &addresses));
    }

    #[test]
    fn damage_is_found(
        (repr, payload) in datagram(),
        addresses in addresses(),
        bit: prop::sample::Index,
    ) {
        let mut bytes = emitted(&repr, &payload, &addresses);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        let result = UdpDatagram::new_checked(&bytes[..])
            .and_then(|datagram| UdpRepr::parse(&datagram, &addresses));
        // A damaged length changes which bytes are summed, and a checksum of a single one bit
        // becomes zero, which means "none" over IPv4: both can go unnoticed.
        let can_go_unnoticed = field::LENGTH.contains(&(bit / 8)) || bytes[6..8] == [0, 0];
        prop_assert!(result.is_err() || can_go_unnoticed);
    }

    #[test]
    fn etherparse_computes_the_same((repr, payload) in datagram(), addresses in addresses()) {
        let bytes = emitted(&repr, &payload, &addresses);
        let (theirs, rest) = etherparse::UdpHeader::from_slice(&bytes).unwrap();
        prop_assert_eq!(theirs.source_port, repr.source_port);
        prop_assert_eq!(theirs.destination_port, repr.destination_port);
        prop_assert_eq!(usize::from(theirs.length), bytes.len());
        let checksum = match addresses {
            PseudoHeader::V4 { source, destination } => {
                theirs.calc_checksum_ipv4_raw(source.octets(), destination.octets(), rest)
            }
            PseudoHeader::V6 { source, destination } => {
                theirs.calc_checksum_ipv6_raw(source.octets(), destination.octets(), rest)
            }
        };
        prop_assert_eq!(checksum.unwrap(), theirs.checksum);
    }
}
