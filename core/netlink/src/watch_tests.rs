//! Watching, with messages that are made up.

use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::AddressAttribute;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType};
use proptest::prelude::*;

use super::*;

/// `NLMSG_DONE` for a request.
fn done(sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes[..4].copy_from_slice(&20_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&3_u16.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

/// `NLMSG_ERROR` for a request.
fn refusal(sequence: u32, errno: i32) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[..4].copy_from_slice(&36_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&2_u16.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16..20].copy_from_slice(&(-errno).to_ne_bytes());
    bytes
}

fn emit(message: RouteNetlinkMessage, sequence: u32, flags: u16) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    (header.sequence_number, header.flags) = (sequence, flags);
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn link_message(index: u32, name: &str, up: bool) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.link_layer_type = LinkLayerType::Ether;
    link.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
    link.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Mtu(1500),
        LinkAttribute::Address(vec![2, 0, 0, 0, 0, index as u8]),
    ];
    link
}

fn link(index: u32, name: &str, up: bool, sequence: u32) -> Vec<u8> {
    emit(RouteNetlinkMessage::NewLink(link_message(index, name, up)), sequence, 0)
}

fn gone(index: u32, family: AddressFamily) -> Vec<u8> {
    let mut link = link_message(index, "eth0", true);
    link.header.interface_family = family;
    emit(RouteNetlinkMessage::DelLink(link), 0, 0)
}

fn address(index: u32, last: u8, sequence: u32) -> Vec<u8> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = 24;
    message.header.index = index;
    message.attributes = vec![AddressAttribute::Local([192, 0, 2, last].into())];
    emit(RouteNetlinkMessage::NewAddress(message), sequence, 0)
}

/// Gives the watch a datagram; says what it told and whether it asked something.
fn give(watch: &mut Watch, datagram: &[u8]) -> (Vec<String>, bool) {
    let mut changes = Vec::new();
    let asked = watch.handle(datagram, &mut changes).is_some();
    (changes.iter().map(show).collect(), asked)
}

fn show(change: &InterfaceChange) -> String {
    let text = |interface: &Interface| {
        let addresses: Vec<_> = interface.addresses.iter().map(ToString::to_string).collect();
        let up = if interface.up { "up" } else { "down" };
        format!("{} {up} {}", interface.name, addresses.join(" ")).trim().to_owned()
    };
    match change {
        InterfaceChange::Added(now) => format!("+ {}", text(now)),
        InterfaceChange::Changed(now) => format!("= {}", text(now)),
        InterfaceChange::Removed { name, .. } => format!("- {name}"),
        InterfaceChange::Complete => "complete".to_owned(),
    }
}

/// A watch that knows `eth0` with one address.
fn synchronised() -> Watch {
    let mut watch = Watch::default();
    assert!(watch.resynchronise().is_some());
    assert_eq!(give(&mut watch, &link(1, "eth0", true, 1)), (vec![], false));
    assert_eq!(give(&mut watch, &done(1)), (vec![], true));
    assert_eq!(give(&mut watch, &address(1, 1, 2)), (vec![], false));
    let told = ["+ eth0 up 192.0.2.1/24".to_owned(), "complete".to_owned()];
    assert_eq!(give(&mut watch, &done(2)), (told.to_vec(), false));
    watch
}

#[test]
fn a_change_is_told_once_and_what_is_the_same_is_not() {
    let mut watch = synchronised();
    assert_eq!(give(&mut watch, &link(1, "eth0", true, 0)).0, [""; 0]);
    assert_eq!(give(&mut watch, &link(1, "eth0", false, 0)).0, ["= eth0 down 192.0.2.1/24"]);
    let both = [link(2, "eth1", true, 0), address(2, 2, 0)].concat();
    assert_eq!(give(&mut watch, &both).0, ["+ eth1 up", "= eth1 up 192.0.2.2/24"]);
    assert_eq!(give(&mut watch, &gone(1, AddressFamily::Bridge)).0, [""; 0]);
    assert_eq!(give(&mut watch, &gone(1, AddressFamily::Unspec)).0, ["- eth0"]);
    assert_eq!(give(&mut watch, &gone(1, AddressFamily::Unspec)).0, [""; 0]);
}

#[test]
fn after_a_loss_only_the_differences_are_told() {
    let mut watch = synchronised();
    assert!(watch.resynchronise().is_some());
    // While the kernel answers, nothing is told; what it says by itself counts.
    assert_eq!(give(&mut watch, &link(2, "eth1", true, 0)).0, [""; 0]);
    assert_eq!(give(&mut watch, &link(3, "eth2", true, 3)).0, [""; 0]);
    assert!(watch.resynchronise().is_none(), "one question at a time");
    assert_eq!(give(&mut watch, &done(3)), (vec![], true));
    assert_eq!(give(&mut watch, &link(3, "eth2", true, 4)).0, [""; 0]);
    assert_eq!(give(&mut watch, &done(4)), (vec![], true));
    assert_eq!(give(&mut watch, &done(5)).0, ["- eth0", "+ eth2 up"]);
}

#[test]
fn an_answer_that_does_not_fit_together_is_asked_for_again_but_not_for_ever() {
    let mut watch = Watch::default();
    watch.resynchronise();
    let mut asked = 0;
    for sequence in 1.. {
        let message = RouteNetlinkMessage::NewLink(link_message(1, "eth0", true));
        let (told, asks) =
            give(&mut watch, &[emit(message, sequence, 0x10), done(sequence)].concat());
        if !asks {
            assert_eq!(told, ["+ eth0 up", "complete"]);
            break;
        }
        asked += 1;
    }
    assert_eq!(asked, crate::inquiry::ATTEMPTS);
    // A refusal counts as an answer, too.
    let mut watch = Watch::default();
    watch.resynchronise();
    assert_eq!(give(&mut watch, &refusal(1, 16)), (vec![], true));
    assert_eq!(give(&mut watch, &refusal(1, 16)), (vec![], false), "of an earlier question");
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(datagrams in prop::collection::vec(
        prop::collection::vec(prop_oneof![0_u8..20, any::<u8>()], 0..80), 0..6
    )) {
        let mut watch = synchronised();
        for datagram in &datagrams {
            let _ = give(&mut watch, datagram);
        }
    }

    #[test]
    fn damaged_messages_are_harmless(
        place in 0_usize..200,
        octet in any::<u8>(),
        length in 0_usize..200,
    ) {
        let whole = [link(1, "eth0", false, 0), address(1, 2, 0), refusal(0, 1)].concat();
        let mut damaged = whole.clone();
        let place = place % damaged.len();
        damaged[place] = octet;
        damaged.truncate(length.max(place));
        let _ = give(&mut synchronised(), &damaged);
        let _ = give(&mut synchronised(), &whole[..length.min(whole.len())]);
    }
}
