use super::*;
use crate::test_support::{check_no_space, check_truncation, ipv6, mac};
use crate::{Ipv6Repr, MacAddr};
use proptest::prelude::*;

const ANY: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

fn unicast() -> impl Strategy<Value = Ipv6Addr> {
    ipv6().prop_filter("unicast", |address| !address.is_multicast())
}

fn solicitation() -> impl Strategy<Value = NeighborSolicitation> {
    (unicast(), prop::option::of(mac())).prop_map(|(target, source_link_address)| {
        NeighborSolicitation { target, source_link_address }
    })
}

fn advertisement() -> impl Strategy<Value = NeighborAdvertisement> {
    (any::<[bool; 3]>(), unicast(), prop::option::of(mac())).prop_map(
        |([router, solicited, overrides], target, target_link_address)| NeighborAdvertisement {
            router,
            solicited,
            overrides,
            target,
            target_link_address,
        },
    )
}

/// A message of every kind, and the address pair it travels between.
fn check_each_kind(
    data: &[u8],
    numbers: (u16, u16, u32),
    neighbors: (NeighborSolicitation, NeighborAdvertisement),
    check: impl Fn(Icmpv6Repr<'_>),
) {
    let (identifier, sequence, mtu) = numbers;
    check(Icmpv6Repr::PacketTooBig { mtu, invoking: data });
    check(Icmpv6Repr::EchoRequest { identifier, sequence, data });
    check(Icmpv6Repr::EchoReply { identifier, sequence, data });
    check(Icmpv6Repr::NeighborSolicitation(neighbors.0));
    check(Icmpv6Repr::NeighborAdvertisement(neighbors.1));
    check(Icmpv6Repr::Other { message_type: Icmpv6Type(3), code: 1, body: data });
}

fn emitted(repr: &Icmpv6Repr<'_>, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let mut bytes = vec![0x5a; repr.buffer_len()];
    repr.emit(&mut bytes, source, destination).unwrap();
    bytes
}

fn parse(
    bytes: &[u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Result<Icmpv6Repr<'_>, WireError> {
    Icmpv6Repr::parse(&Icmpv6Message::new_checked(bytes)?, source, destination)
}

/// Reads `body` as a message of this kind with a right checksum.
fn parse_body(message_type: Icmpv6Type, code: u8, body: &[u8]) -> Result<(), WireError> {
    let bytes = emitted(&Icmpv6Repr::Other { message_type, code, body }, ANY, ANY);
    parse(&bytes, ANY, ANY).map(drop)
}

/// A solicitation for fe80::1 with these options behind it.
fn solicitation_with(options: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    body.extend(options);
    body
}

fn ip(source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8) -> Ipv6Repr {
    Ipv6Repr {
        source,
        destination,
        next_header: IpProtocol::ICMPV6,
        hop_limit,
        traffic_class: 0,
        flow_label: 0,
        payload_len: 32,
    }
}

// Worked by hand from RFC 4443 §2.3 between ::1 and ::1: pseudo header 0001+0001+000a+003a = 0046,
// message 8000+1234+0001+6869 = fa9e, sum fae4, complement 051b.
#[test]
fn worked_echo_request() {
    let repr = Icmpv6Repr::EchoRequest { identifier: 0x1234, sequence: 1, data: b"hi" };
    let bytes = emitted(&repr, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    assert_eq!(bytes, [128, 0, 0x05, 0x1b, 0x12, 0x34, 0, 1, b'h', b'i']);
}

// Field order: RFC 4861 §4.4 and §4.6.1.
#[test]
fn advertisement_has_the_bytes_of_rfc_4861() {
    let repr = Icmpv6Repr::NeighborAdvertisement(NeighborAdvertisement {
        router: false,
        solicited: true,
        overrides: true,
        target: "fe80::1".parse().unwrap(),
        target_link_address: Some(MacAddr([2, 0, 0, 0, 0, 1])),
    });
    let bytes = emitted(&repr, "fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
    assert_eq!(bytes[..2], [136, 0]);
    assert_eq!(bytes[4..8], [0x60, 0, 0, 0]);
    assert_eq!(bytes[8..24], "fe80::1".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(bytes[24..], [2, 1, 2, 0, 0, 0, 0, 1]);
}

// RFC 4291 §2.7.1: 4037::01:800:200e:8c6c has the solicited-node address ff02::1:ff0e:8c6c.
#[test]
fn solicited_node_address_of_rfc_4291() {
    let address = "4037::1:800:200e:8c6c".parse().unwrap();
    assert_eq!(solicited_node(address), "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().unwrap());
}

#[test]
fn unknown_options_are_skipped_and_the_first_known_one_counts() {
    let mut options = vec![14, 2]; // Nonce (RFC 3971) of two units.
    options.extend([0xaa; 14]);
    options.extend([1, 1, 2, 0, 0, 0, 0, 1]);
    options.extend([1, 1, 2, 0, 0, 0, 0, 2]);
    let body = solicitation_with(&options);
    let message_type = Icmpv6Type::NEIGHBOR_SOLICITATION;
    let bytes = emitted(&Icmpv6Repr::Other { message_type, code: 0, body: &body }, ANY, ANY);
    let Ok(Icmpv6Repr::NeighborSolicitation(repr)) = parse(&bytes, ANY, ANY) else {
        panic!("not read as a solicitation");
    };
    assert_eq!(repr.source_link_address, Some(MacAddr([2, 0, 0, 0, 0, 1])));
}

#[test]
fn malformed_options_are_refused() {
    let check = |options: &[u8]| {
        parse_body(Icmpv6Type::NEIGHBOR_SOLICITATION, 0, &solicitation_with(options))
    };
    assert_eq!(check(&[]), Ok(()));
    let zero_length = [14, 0, 0, 0, 0, 0, 0, 0];
    assert!(matches!(check(&zero_length), Err(WireError::Field { field: "option length", .. })));
    let beyond_the_end = [14, 2, 0, 0, 0, 0, 0, 0];
    assert!(matches!(check(&beyond_the_end), Err(WireError::Truncated { needed: 16, .. })));
    let half_an_option = [1, 1, 0, 0];
    assert!(matches!(check(&half_an_option), Err(WireError::Truncated { needed: 8, .. })));
    let no_ethernet_address = [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(matches!(check(&no_ethernet_address), Err(WireError::Field { value: 2, .. })));
}

#[test]
fn code_and_target_of_neighbor_messages_are_checked() {
    for message_type in [Icmpv6Type::NEIGHBOR_SOLICITATION, Icmpv6Type::NEIGHBOR_ADVERTISEMENT] {
        let mut body = solicitation_with(&[]);
        assert_eq!(parse_body(message_type, 0, &body), Ok(()));
        let code = parse_body(message_type, 1, &body);
        assert!(matches!(code, Err(WireError::Field { field: "code", .. })));
        body[4] = 0xff;
        let target = parse_body(message_type, 0, &body);
        assert!(matches!(target, Err(WireError::Field { field: "target address", .. })));
    }
}

// RFC 4861 §7.1.1.
#[test]
fn solicitations_from_other_links_and_contradictory_probes_are_refused() {
    let target = "fe80::1".parse().unwrap();
    let sender = "fe80::2".parse().unwrap();
    let probe = NeighborSolicitation { target, source_link_address: None };
    let full = NeighborSolicitation { source_link_address: Some(MacAddr([2; 6])), ..probe };
    assert_eq!(full.check_ip_header(&ip(sender, target, 255)), Ok(()));
    assert!(full.check_ip_header(&ip(sender, target, 254)).is_err());
    assert_eq!(probe.check_ip_header(&ip(ANY, solicited_node(target), 255)), Ok(()));
    assert!(full.check_ip_header(&ip(ANY, solicited_node(target), 255)).is_err());
    assert!(probe.check_ip_header(&ip(ANY, target, 255)).is_err());
    assert!(probe.check_ip_header(&ip(ANY, "ff02::1".parse().unwrap(), 255)).is_err());
}

// RFC 4861 §7.1.2.
#[test]
fn advertisements_from_other_links_and_answers_to_groups_are_refused() {
    let target = "fe80::1".parse().unwrap();
    let all_nodes = "ff02::1".parse().unwrap();
    let answer = NeighborAdvertisement {
        router: false,
        solicited: true,
        overrides: true,
        target,
        target_link_address: None,
    };
    let announcement = NeighborAdvertisement { solicited: false, ..answer };
    assert_eq!(answer.check_ip_header(&ip(target, "fe80::2".parse().unwrap(), 255)), Ok(()));
    assert_eq!(announcement.check_ip_header(&ip(target, all_nodes, 255)), Ok(()));
    assert!(answer.check_ip_header(&ip(target, all_nodes, 255)).is_err());
    assert!(announcement.check_ip_header(&ip(target, all_nodes, 64)).is_err());
}

#[test]
fn errors_are_told_from_informational_messages() {
    assert!(Icmpv6Type::PACKET_TOO_BIG.is_error());
    assert!(!Icmpv6Type::ECHO_REQUEST.is_error());
}

proptest! {
    #[test]
    fn parse_of_emit_is_the_value(
        data in prop::collection::vec(any::<u8>(), 0..40),
        numbers: (u16, u16, u32),
        neighbors in (solicitation(), advertisement()),
        (source, destination) in (ipv6(), ipv6()),
    ) {
        check_each_kind(&data, numbers, neighbors, |repr| {
            let bytes = emitted(&repr, source, destination);
            assert_eq!(parse(&bytes, source, destination), Ok(repr));
            check_truncation(&bytes[..ICMPV6_HEADER_LEN], |bytes| {
                Icmpv6Message::new_checked(bytes).map(drop)
            });
            check_no_space(repr.buffer_len(), |buffer| repr.emit(buffer, source, destination));
        });
    }

    // The checksum finds some truncations; this finds the others: each cut message gets a right one.
    #[test]
    fn truncated_bodies_are_refused(
        neighbors in (solicitation(), advertisement()),
        numbers: (u16, u16, u32),
    ) {
        check_each_kind(&[], numbers, neighbors, |repr| {
            let bytes = emitted(&repr, ANY, ANY);
            let body = &bytes[ICMPV6_HEADER_LEN..];
            let (message_type, code) = repr.type_and_code();
            for length in 0..body.len() {
                // A neighbour message may end after its target: then it has no option.
                let whole_without_option = length == 20;
                assert_eq!(
                    parse_body(message_type, code, &body[..length]).is_ok(),
                    whole_without_option,
                    "{repr:?} cut to {length}"
                );
            }
        });
    }

    // The canonical form of neighbour messages has no reserved bits and no unknown options.
    #[test]
    fn emit_of_parse_is_the_bytes(
        message_type in prop_oneof![Just(2u8), Just(128), Just(129), 0u8..135, 137u8..],
        body in prop::collection::vec(any::<u8>(), 0..40),
        (source, destination) in (ipv6(), ipv6()),
    ) {
        let mut bytes = vec![message_type, 0, 0, 0];
        bytes.extend(&body);
        Icmpv6Message::new_checked(&mut bytes[..]).unwrap().fill_checksum(source, destination);
        if let Ok(repr) = parse(&bytes, source, destination) {
            prop_assert_eq!(emitted(&repr, source, destination), bytes);
        } else {
            prop_assert!(body.len() < 4);
        }
    }

    #[test]
    fn any_body_is_read_or_refused(message_type: u8, code in 0u8..2, body: Vec<u8>) {
        for message_type in [message_type, 2, 128, 129, 135, 136] {
            let _ = parse_body(Icmpv6Type(message_type), code, &body);
        }
    }

    #[test]
    fn any_options_are_read_or_refused(options: Vec<u8>) {
        let body = solicitation_with(&options);
        let _ = parse_body(Icmpv6Type::NEIGHBOR_SOLICITATION, 0, &body);
        let _ = parse_body(Icmpv6Type::NEIGHBOR_ADVERTISEMENT, 0, &body);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = parse(&bytes, ANY, ANY);
    }

    #[test]
    fn damage_is_found(
        data in prop::collection::vec(any::<u8>(), 0..40),
        (source, destination) in (ipv6(), ipv6()),
        bit: prop::sample::Index,
    ) {
        let repr = Icmpv6Repr::EchoRequest { identifier: 1, sequence: 2, data: &data };
        let mut bytes = emitted(&repr, source, destination);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        prop_assert_eq!(
            parse(&bytes, source, destination),
            Err(WireError::Checksum { header: HEADER })
        );
    }

    #[test]
    fn etherparse_computes_the_same_checksum(
        data in prop::collection::vec(any::<u8>(), 0..40),
        numbers: (u16, u16, u32),
        neighbors in (solicitation(), advertisement()),
        (source, destination) in (ipv6(), ipv6()),
    ) {
        check_each_kind(&data, numbers, neighbors, |repr| {
            let bytes = emitted(&repr, source, destination);
            if bytes.len() < 8 {
                return; // etherparse reads no message without the four bytes after the checksum.
            }
            let theirs = etherparse::Icmpv6Slice::from_slice(&bytes).unwrap();
            assert!(theirs.is_checksum_valid(source.octets(), destination.octets()));
            assert_eq!(theirs.type_u8(), repr.type_and_code().0.0);
            if let (Icmpv6Repr::EchoRequest { identifier, sequence, data }, theirs) = (repr, &theirs) {
                let expected = etherparse::IcmpEchoHeader { id: identifier, seq: sequence };
                assert_eq!(theirs.icmp_type(), etherparse::Icmpv6Type::EchoRequest(expected));
                assert_eq!(theirs.payload(), data);
            }
        });
    }
}
