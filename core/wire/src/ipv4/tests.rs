use super::*;
use crate::test_support::{check_no_space, check_truncation, ipv4};
use proptest::prelude::*;

/// The header of the worked checksum example in Wikipedia, "Internet checksum" (a UDP packet of 115
/// bytes from 192.168.0.1 to 192.168.0.199 with checksum b861).
const WORKED: [u8; 20] = [
    0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01,
    0xc0, 0xa8, 0x00, 0xc7,
];

fn worked_packet() -> [u8; 115] {
    let mut packet = [0; 115];
    packet[..20].copy_from_slice(&WORKED);
    packet
}

fn worked_repr() -> Ipv4Repr {
    Ipv4Repr {
        source: Ipv4Addr::new(192, 168, 0, 1),
        destination: Ipv4Addr::new(192, 168, 0, 199),
        protocol: IpProtocol::UDP,
        ttl: 64,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        payload_len: 95,
    }
}

fn repr() -> impl Strategy<Value = Ipv4Repr> {
    let addresses = (ipv4(), ipv4());
    (addresses, any::<(u8, u8, u8, u16, bool)>(), 0usize..200).prop_map(
        |((source, destination), rest, payload_len)| Ipv4Repr {
            source,
            destination,
            protocol: IpProtocol(rest.0),
            ttl: rest.1,
            traffic_class: rest.2,
            identification: rest.3,
            dont_fragment: rest.4,
            payload_len,
        },
    )
}

fn emitted(repr: &Ipv4Repr) -> Vec<u8> {
    let mut bytes = vec![0x5a; IPV4_HEADER_LEN + repr.payload_len];
    repr.emit(&mut bytes).unwrap();
    bytes
}

#[test]
fn worked_example_is_read_and_written() {
    let bytes = worked_packet();
    let packet = Ipv4Packet::new_checked(&bytes[..]).unwrap();
    assert_eq!(packet.checksum(), 0xb861);
    assert_eq!(Ipv4Repr::parse(&packet), Ok(worked_repr()));
    let mut copy = [0; IPV4_HEADER_LEN];
    worked_repr().emit(&mut copy).unwrap();
    assert_eq!(copy, WORKED);
}

#[test]
fn padding_is_not_payload() {
    let mut bytes = emitted(&Ipv4Repr { payload_len: 3, ..worked_repr() });
    bytes.resize(46, 0);
    let packet = Ipv4Packet::new_checked(&bytes[..]).unwrap();
    assert_eq!(packet.payload(), [0x5a; 3]);
    assert_eq!(packet.into_payload(), [0x5a; 3]);
}

#[test]
fn options_are_skipped() {
    let mut bytes = worked_packet();
    bytes[0] = 0x47; // Two words of options: router alert (RFC 2113), no-operation, end of list.
    bytes[20..28].copy_from_slice(&[0x94, 4, 0, 0, 1, 1, 1, 0]);
    let mut packet = Ipv4Packet::new_checked(&mut bytes[..]).unwrap();
    assert!(!packet.verify_checksum());
    packet.fill_checksum();
    assert!(packet.verify_checksum());
    assert_eq!(packet.options(), [0x94, 4, 0, 0, 1, 1, 1, 0]);
    assert_eq!(packet.payload().len(), 115 - 28);
    assert_eq!(Ipv4Repr::parse(&packet).unwrap().payload_len, 115 - 28);
    let theirs = etherparse::Ipv4HeaderSlice::from_slice(&bytes).unwrap();
    assert_eq!(theirs.header_checksum(), theirs.to_header().calc_header_checksum());
}

#[test]
fn fragments_are_recognised() {
    for (flags, offset, more) in [(0x2000u16, 0, true), (0x00b9, 185 * 8, false), (0x2001, 8, true)]
    {
        let mut bytes = worked_packet();
        bytes[6..8].copy_from_slice(&flags.to_be_bytes());
        let mut packet = Ipv4Packet::new_checked(&mut bytes[..]).unwrap();
        packet.fill_checksum();
        assert!(packet.is_fragment());
        assert_eq!((packet.fragment_offset(), packet.more_fragments()), (offset, more));
        assert_eq!(Ipv4Repr::parse(&packet), Err(WireError::Fragment { header: HEADER }));
    }
}

#[test]
fn contradictory_lengths_and_versions_are_refused() {
    for (offset, value, name) in
        [(0, 0x65, "version"), (0, 0x44, "header length"), (3, 19, "total length")]
    {
        let mut bytes = worked_packet();
        bytes[offset] = value;
        let result = Ipv4Packet::new_checked(bytes);
        assert!(matches!(result, Err(WireError::Field { field, .. }) if field == name));
    }
    let mut bytes = worked_packet();
    bytes[3] = 116;
    assert_eq!(
        Ipv4Packet::new_checked(bytes),
        Err(WireError::Truncated { header: HEADER, needed: 116, available: 115 })
    );
}

#[test]
fn the_last_hop_is_not_forwarded() {
    for ttl in [0, 1] {
        let mut bytes = emitted(&Ipv4Repr { ttl, ..worked_repr() });
        let before = bytes.clone();
        let mut packet = Ipv4Packet::new_checked(&mut bytes[..]).unwrap();
        assert_eq!(packet.decrement_ttl(), Err(WireError::HopLimitExceeded { header: HEADER }));
        assert_eq!(bytes, before);
    }
}

#[test]
fn a_payload_beyond_the_length_field_is_refused() {
    let mut buffer = [0; IPV4_HEADER_LEN];
    let longest = Ipv4Repr { payload_len: Ipv4Repr::MAX_PAYLOAD_LEN, ..worked_repr() };
    assert_eq!(longest.emit(&mut buffer), Ok(()));
    for payload_len in [Ipv4Repr::MAX_PAYLOAD_LEN + 1, usize::MAX] {
        let result = Ipv4Repr { payload_len, ..worked_repr() }.emit(&mut buffer);
        assert!(matches!(result, Err(WireError::PayloadTooLong { limit: 65515, .. })));
    }
}

#[test]
fn setters_change_what_they_name() {
    let mut bytes = worked_packet();
    let mut packet = Ipv4Packet::new_checked(&mut bytes[..]).unwrap();
    packet.set_ttl(9);
    packet.set_traffic_class(0xb9);
    packet.set_source(Ipv4Addr::new(10, 0, 0, 1));
    packet.set_destination(Ipv4Addr::new(10, 0, 0, 2));
    packet.payload_mut()[94] = 7;
    packet.fill_checksum();
    let repr = Ipv4Repr::parse(&packet).unwrap();
    let expected = Ipv4Repr {
        ttl: 9,
        traffic_class: 0xb9,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        ..worked_repr()
    };
    assert_eq!(repr, expected);
    assert_eq!(bytes[114], 7);
}

proptest! {
    #[test]
    fn parse_of_emit_is_the_value(repr in repr()) {
        let bytes = emitted(&repr);
        let packet = Ipv4Packet::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(Ipv4Repr::parse(&packet), Ok(repr));
        check_truncation(&bytes, |bytes| Ipv4Packet::new_checked(bytes).map(drop));
        check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer));
    }

    // The canonical form: no options, the reserved flag clear.
    #[test]
    fn emit_of_parse_is_the_bytes(mut bytes in prop::collection::vec(any::<u8>(), 20..80)) {
        bytes[0] = 0x45;
        let total_len = u16::try_from(bytes.len()).unwrap();
        bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
        bytes[6] &= 0x40;
        bytes[7] = 0;
        Ipv4Packet::new_checked(&mut bytes[..]).unwrap().fill_checksum();
        let repr = Ipv4Repr::parse(&Ipv4Packet::new_checked(&bytes[..]).unwrap()).unwrap();
        let mut copy = bytes.clone();
        copy[..IPV4_HEADER_LEN].fill(0);
        repr.emit(&mut copy).unwrap();
        prop_assert_eq!(copy, bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..128), valid_start: bool) {
        // Half of the cases get past the version and length checks.
        if valid_start && bytes.len() >= 4 {
            bytes[0] = 0x40 | bytes[0] & 0x0f;
            bytes[2] = 0;
        }
        if let Ok(mut packet) = Ipv4Packet::new_checked(&mut bytes[..]) {
            let _ = Ipv4Repr::parse(&packet);
            let _ = packet.decrement_ttl();
            packet.fill_checksum();
            prop_assert!(packet.verify_checksum());
            prop_assert_eq!(
                IPV4_HEADER_LEN + packet.options().len() + packet.payload().len(),
                packet.total_len()
            );
        }
    }

    #[test]
    fn a_damaged_header_is_refused(repr in repr(), bit in 0usize..160) {
        let mut bytes = emitted(&repr);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        let result = Ipv4Packet::new_checked(&bytes[..]).and_then(|packet| Ipv4Repr::parse(&packet));
        prop_assert!(result.is_err());
    }

    #[test]
    fn decrementing_equals_writing_one_hop_less(repr in repr(), hops in 2u8..) {
        let mut bytes = emitted(&Ipv4Repr { ttl: hops, ..repr });
        Ipv4Packet::new_checked(&mut bytes[..]).unwrap().decrement_ttl().unwrap();
        prop_assert_eq!(bytes, emitted(&Ipv4Repr { ttl: hops - 1, ..repr }));
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_over_a_hop(repr in repr(), hops in 2u8.., error in 1u16..0xffff) {
        let mut bytes = emitted(&Ipv4Repr { ttl: hops, ..repr });
        let right = u16::from_be_bytes([bytes[10], bytes[11]]);
        bytes[10..12].copy_from_slice(&checksum::combine(&[right, error]).to_be_bytes());
        let mut packet = Ipv4Packet::new_checked(&mut bytes[..]).unwrap();
        packet.decrement_ttl().unwrap();
        prop_assert!(!packet.verify_checksum());
    }

    #[test]
    fn etherparse_reads_and_writes_the_same(repr in repr()) {
        let bytes = emitted(&repr);
        let theirs = etherparse::Ipv4HeaderSlice::from_slice(&bytes).unwrap();
        prop_assert_eq!(theirs.source_addr(), repr.source);
        prop_assert_eq!(theirs.destination_addr(), repr.destination);
        prop_assert_eq!(theirs.protocol().0, repr.protocol.0);
        prop_assert_eq!(theirs.ttl(), repr.ttl);
        prop_assert_eq!(theirs.dcp().value() << 2 | theirs.ecn().value(), repr.traffic_class);
        prop_assert_eq!(theirs.identification(), repr.identification);
        prop_assert_eq!(theirs.dont_fragment(), repr.dont_fragment);
        prop_assert!(!theirs.is_fragmenting_payload());
        prop_assert_eq!(theirs.header_checksum(), theirs.to_header().calc_header_checksum());
        prop_assert_eq!(&theirs.to_header().to_bytes()[..], &bytes[..IPV4_HEADER_LEN]);
    }
}
