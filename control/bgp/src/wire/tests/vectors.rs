//! Messages of other implementations. Those of BIRD 2.0.12 and FRR 8.4.4 were taken from sessions with them.

use super::*;

fn dual() -> Context {
    let families = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
    Context { families, ..Context::new(Neighbour::External) }
}

fn graceful(time: u16) -> Capability {
    let families = vec![(Family::IPV4_UNICAST, false), (Family::IPV6_UNICAST, false)];
    let restart = GracefulRestart { time, families, ..GracefulRestart::default() };
    Capability::GracefulRestart(restart)
}

fn add_path(direction: AddPath) -> Capability {
    let families = [Family::IPV4_UNICAST, Family::IPV6_UNICAST];
    Capability::AddPath(families.map(|family| (family, direction)).into())
}

#[test]
fn an_open_of_bird_is_read() {
    let open = bytes(
        "04fdea00090a000002 35 0233 010400010001 010400020001 0200 0600 090100
         400a 0078 00010100 00020100 41040000fdea 4508 00010103 00020103 4600 4700",
    );
    let open = Open::parse(&open).unwrap();
    assert_eq!((open.autonomous_system(), open.hold_time), (65002, 9));
    let expected = [
        Capability::Multiprotocol(Family::IPV4_UNICAST),
        Capability::Multiprotocol(Family::IPV6_UNICAST),
        Capability::RouteRefresh,
        Capability::ExtendedMessage,
        Capability::Role(Role::Provider),
        graceful(120),
        Capability::FourOctetAs(65002),
        add_path(AddPath::Both),
        Capability::EnhancedRefresh,
        Capability::LongLived(Vec::new()),
    ];
    assert_eq!(open.capabilities, expected);
}

#[test]
fn an_open_of_frr_is_read() {
    let open = bytes(
        "04fdea00090a000002 60 0206010400010001 0206010400020001 02028000 02020200 02024600
         020641040000fdea 02020600 0203090100 020a4508 00010103 00020103 0205 4903016600
         020c400a c078 00010100 00020100 0210470e 00010180000000 00020180000000",
    );
    let open = Open::parse(&open).unwrap();
    let long_lived = |family| LongLived { family, forwarding: true, stale_time: 0 };
    let restart = GracefulRestart {
        restarted: true,
        notification: true,
        time: 120,
        families: vec![(Family::IPV4_UNICAST, false), (Family::IPV6_UNICAST, false)],
    };
    let expected = [
        Capability::Multiprotocol(Family::IPV4_UNICAST),
        Capability::Multiprotocol(Family::IPV6_UNICAST),
        // Route refresh as Cisco had it before the RFC.
        Capability::Other { code: 128, value: Vec::new() },
        Capability::RouteRefresh,
        Capability::EnhancedRefresh,
        Capability::FourOctetAs(65002),
        Capability::ExtendedMessage,
        Capability::Role(Role::Provider),
        add_path(AddPath::Both),
        Capability::Fqdn { host: b"f".to_vec(), domain: Vec::new() },
        Capability::GracefulRestart(restart),
        Capability::LongLived([Family::IPV4_UNICAST, Family::IPV6_UNICAST].map(long_lived).into()),
    ];
    assert_eq!(open.capabilities, expected);
}

/// A route of ours that FRR gives back, with what it knows, what it does not know, and path identifiers.
#[test]
fn an_update_of_frr_is_read() {
    let body = bytes(
        "0000 0047 40010100 5002000e 0203 0000fdea 0000fde9 fa56ea00 4003047f000002 c00708fa56ea0009090909
         c00804fde90007 c010080002fde900000007 c023040000fdea e06303010203
         00000004 18 14000a 0000000d 18 140013",
    );
    let context = Context { add_path_receive: dual().families, ..dual() };
    let update = Update::new_checked(&body, &context).unwrap();
    let judgement = update.judge(&context);
    assert_eq!((judgement.disposition, judgement.faults), (Disposition::Use, vec![]));
    let attributes = judgement.attributes;
    assert_eq!(attributes.as_path.to_string(), "65002 65001 4200000000");
    assert_eq!(attributes.communities[..], [65001 << 16 | 7]);
    let rare = attributes.rare();
    assert_eq!(rare.aggregator.unwrap().autonomous_system, 4_200_000_000);
    assert_eq!(rare.only_to_customer, Some(65002));
    assert_eq!(rare.unknown[..], [UnknownAttribute { code: 99, value: [1, 2, 3].into() }]);
    let prefix = |third| Prefix::new(&[20, 0, third], 24).unwrap();
    let nlri = update.reach().next().unwrap().nlri;
    assert_eq!(nlri.iter().collect::<Vec<_>>(), [(4, prefix(10)), (13, prefix(19))]);
    assert!(update.is_plain());
}

/// Prefixes of IPv6, with their next hop behind all that FRR says of IPv4.
#[test]
fn an_update_of_frr_for_ipv6_is_read() {
    let body = bytes(
        "0000 0040 900e0020 0002 01 10 00000000000000000000ffff7f000002 00 00000000 30 20010db80030
         40010100 50020006 02010000fdea 80040400000000 c023040000fdea",
    );
    let context = Context { add_path_receive: dual().families, ..dual() };
    let update = Update::new_checked(&body, &context).unwrap();
    let judgement = update.judge(&context);
    assert_eq!((judgement.disposition, judgement.attributes.med), (Disposition::Use, Some(0)));
    let reach = update.reach().next().unwrap();
    let global = Ipv4Addr::new(127, 0, 0, 2).to_ipv6_mapped();
    assert_eq!(reach.next_hop, Some(NextHop::V6 { global, link_local: None }));
    let prefix = Prefix::new(&[0x20, 1, 0x0d, 0xb8, 0, 0x30], 48).unwrap();
    assert_eq!(reach.nlri.iter().collect::<Vec<_>>(), [(0, prefix)]);
}

/// Bytes from Holo's tests (holo-bgp/tests/packet/open.rs, OPEN3).
#[test]
fn an_open_of_another_implementation_is_read_and_written_alike() {
    let message = bytes(
        "ffffffffffffffffffffffffffffffff 003d 01 04 0001 00b4 01010101 20
         0206 0104 0001 0001  0206 0104 0002 0001  0206 4104 0001000e  0202 0200  0202 4600",
    );
    let open = Open::parse(&message[HEADER_LEN..]).unwrap();
    assert_eq!((open.as_field, open.hold_time, open.autonomous_system()), (1, 180, 65550));
    assert_eq!(open.identifier, Ipv4Addr::new(1, 1, 1, 1));
    assert_eq!(open.families(), [Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
    assert_eq!(open.capabilities[3..], [Capability::RouteRefresh, Capability::EnhancedRefresh]);
    assert_eq!(open.emit(), message);
}

/// Bytes from Holo's tests (holo-bgp/tests/packet/update.rs, UPDATE2).
#[test]
fn an_update_of_another_implementation_is_read() {
    let message = bytes(
        "ffffffffffffffffffffffffffffffff 0129 02 0008 180a0001 180a0002 0100
         900e0047 0002 01 20 30000000000000000000000000000001 fe800000000000004207bd19111c8411 00
         80 20010db8000100000000000000000001 80 20010db8000100000000000000000002
         900f0025 0002 01 80 20010db8000200000000000000000001 80 20010db8000200000000000000000002
         40010100 5002000e 0203 00000001 00000002 00000003 40030401010101 800404000001f4
         400504000001f4 400600 c00708 000003e8 02020202 d008000c 00000001 00000002 00000003
         80090401010101 900a0004 03030303 d0100008 0000000100000001
         d0190014 20010db8000000000000000000000001 00000001 d020000c 00000001 00000000 00000001
         20 0a00ff01 20 0a00ff02",
    );
    let families = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
    let context = Context { families, ..Context::new(Neighbour::Internal) };
    let update = Update::new_checked(&message[HEADER_LEN..], &context).unwrap();
    let judgement = update.judge(&context);
    assert_eq!((judgement.disposition, judgement.faults), (Disposition::Use, vec![]));
    let attributes = judgement.attributes;
    assert_eq!(attributes.as_path.to_string(), "1 2 3");
    assert_eq!((attributes.med, attributes.local_pref), (Some(500), Some(500)));
    assert_eq!(attributes.next_hop, Some(NextHop::V4(Ipv4Addr::new(1, 1, 1, 1))));
    assert!(attributes.atomic_aggregate);
    assert_eq!(attributes.communities[..], [1, 2, 3]);
    assert_eq!(attributes.extended_communities[..], [0x0000_0001_0000_0001]);
    let rare = attributes.rare();
    let aggregator = Aggregator { autonomous_system: 1000, identifier: Ipv4Addr::new(2, 2, 2, 2) };
    assert_eq!(rare.aggregator, Some(aggregator));
    assert_eq!(rare.cluster_list[..], [Ipv4Addr::new(3, 3, 3, 3)]);
    assert_eq!(rare.unknown[0].code, 25);
    let reach: Vec<_> = update.reach().collect();
    assert_eq!((reach[0].family, reach[0].next_hop), (Family::IPV4_UNICAST, None));
    let global: Ipv6Addr = "3000::1".parse().unwrap();
    let link_local = "fe80::4207:bd19:111c:8411".parse().ok();
    assert_eq!(reach[1].next_hop, Some(NextHop::V6 { global, link_local }));
    let first: Ipv6Addr = "2001:db8:1::1".parse().unwrap();
    assert_eq!(reach[1].nlri.iter().next(), Some((0, Prefix::from(first))));
    let withdrawn: Vec<_> =
        update.withdrawn().map(|(family, nlri)| (family, nlri.iter().count())).collect();
    assert_eq!(withdrawn, [(Family::IPV4_UNICAST, 2), (Family::IPV6_UNICAST, 2)]);
    assert!(!update.is_plain() && update.end_of_rib().is_none());
}
