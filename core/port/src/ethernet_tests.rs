//! Ethernet ports over virtual cables between network namespaces.

use rustix::event::PollFlags;

use super::*;
use crate::testing::{Namespace, privileged, receive_some, send_all, wait};

const XIP: u16 = 0xc0de;
/// A local experimental EtherType (IEEE 802, clause 9.2.4).
const OTHER: u16 = 0x88b5;

/// Two namespaces with a cable between interfaces `west` and `east`.
struct Cable {
    left: Namespace,
    right: Namespace,
}

impl Cable {
    fn new() -> Self {
        let (left, right) = (Namespace::new(), Namespace::new());
        left.silence();
        right.silence();
        left.connect("west", &right, "east");
        Self { left, right }
    }

    /// Ports for `ethertype` at both ends.
    fn ports(&self, ethertype: u16) -> (EthernetPort, EthernetPort) {
        let a = open(&self.left, "west", ethertype, &Options::default()).unwrap();
        let b = open(&self.right, "east", ethertype, &Options::default()).unwrap();
        (a, b)
    }
}

fn open(
    namespace: &Namespace,
    interface: &str,
    ethertype: u16,
    options: &Options,
) -> Result<EthernetPort, OpenError> {
    let spec = PortSpec::Ethernet { interface: interface.to_owned(), ethertype };
    namespace.run(|| EthernetPort::open(&spec, options))
}

fn frame(to: [u8; 6], from: [u8; 6], ethertype: u16, payload: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(14 + payload.len());
    packet.extend(&to);
    packet.extend(&from);
    packet.extend(&ethertype.to_be_bytes());
    packet.extend(payload);
    packet
}

/// A frame from one port to the other.
fn between(from: &EthernetPort, to: &EthernetPort, payload: &[u8]) -> Packet {
    frame(to.info.mac, from.info.mac, XIP, payload)
}

/// What the lost port says.
fn lost(port: &mut EthernetPort) -> Lost {
    wait(port, PollFlags::IN);
    port.receive(&mut Vec::new(), 64).unwrap_err()
}

#[test]
fn only_frames_of_the_ethertype_arrive_with_their_source() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, mut b) = cable.ports(XIP);
    let (mut other_a, mut other_b) = cable.ports(OTHER);
    assert_eq!((a.info.mtu, a.info.local), (1500, None));
    let (mac_a, mac_b) = (a.info.mac, b.info.mac);
    send_all([frame(mac_b, mac_a, OTHER, b"other")], &mut other_a);
    send_all([between(&a, &b, b"ours"), frame([0xff; 6], mac_a, XIP, b"to all")], &mut a);
    let received = receive_some(&mut b, 2);
    assert_eq!(received[0].bytes(), between(&a, &b, b"ours").bytes());
    assert_eq!(&received[1].bytes()[14..], b"to all");
    assert_eq!(received[0].meta.link, LinkAddress::Mac(mac_a));
    assert_eq!(&receive_some(&mut other_b, 1)[0].bytes()[14..], b"other");
    // The virtual cable is synchronous: whatever else had come would be here.
    let mut more = Vec::new();
    b.receive(&mut more, 64).unwrap();
    a.receive(&mut more, 64).unwrap();
    assert_eq!(more, [], "nothing of the other EtherType, and nothing of one's own");
}

#[test]
fn frames_for_another_host_are_counted_and_dropped() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, mut b) = cable.ports(XIP);
    let stranger = frame([2, 9, 9, 9, 9, 9], a.info.mac, XIP, b"not yours");
    send_all([stranger, between(&a, &b, b"yours")], &mut a);
    assert_eq!(&receive_some(&mut b, 1)[0].bytes()[14..], b"yours");
    assert_eq!(b.statistics().drops.get(PortDrop::OtherHost), 1);
    assert_eq!(b.statistics().received.packets, 1);
}

#[test]
fn several_batches_arrive_whole_and_in_order() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, mut b) = cable.ports(XIP);
    let frames: Vec<Packet> =
        (0..300_u16).map(|number| between(&a, &b, &[number.to_be_bytes(); 50].concat())).collect();
    send_all(frames.iter().map(Packet::duplicate), &mut a);
    let received = receive_some(&mut b, 300);
    let bytes = |packet: &Packet| packet.bytes().to_vec();
    assert!(received.iter().map(bytes).eq(frames.iter().map(bytes)));
    assert_eq!(a.statistics().sent, b.statistics().received);
}

#[test]
fn jumbo_frames_arrive_whole_and_longer_ones_are_counted() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    cable.left.ip("link set west mtu 9000");
    cable.right.ip("link set east mtu 9000");
    let (mut a, mut b) = cable.ports(XIP);
    assert_eq!(a.info.mtu, 9000);
    let payload: Vec<u8> = (0..9000_u32).map(|number| number as u8).collect();
    send_all([between(&a, &b, &[0; 9001]), between(&a, &b, &payload)], &mut a);
    assert_eq!(&receive_some(&mut b, 1)[0].bytes()[14..], payload);
    assert_eq!(a.statistics().drops.get(PortDrop::TransmitTooLong), 1);
}

#[test]
fn what_the_kernel_drops_for_lack_of_room_is_counted() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let small = Options { receive_buffer: 4096, ..Options::default() };
    let mut a = open(&cable.left, "west", XIP, &small).unwrap();
    let mut b = open(&cable.right, "east", XIP, &small).unwrap();
    let frame = between(&a, &b, &[0; 1000]);
    send_all((0..200).map(|_| frame.duplicate()), &mut a);
    let mut received = Vec::new();
    while {
        b.receive(&mut received, 64).unwrap();
        !received.is_empty()
    } {
        received.clear();
    }
    let statistics = b.statistics();
    let dropped = statistics.drops.get(PortDrop::ReceiveQueueFull);
    assert!(dropped > 0);
    assert_eq!(dropped + statistics.received.packets, 200);
}

#[test]
fn frames_pass_without_the_queueing_discipline() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (_, mut b) = cable.ports(XIP);
    let bypass = Options { qdisc_bypass: true, ..Options::default() };
    let mut a = open(&cable.left, "west", XIP, &bypass).unwrap();
    send_all([between(&a, &b, b"straight")], &mut a);
    assert_eq!(&receive_some(&mut b, 1)[0].bytes()[14..], b"straight");
}

#[test]
fn a_deleted_interface_is_a_lost_port_at_both_ends() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, mut b) = cable.ports(XIP);
    cable.left.ip("link del west");
    assert_eq!(lost(&mut a), Lost::Deleted { name: "west".to_owned() });
    assert_eq!(lost(&mut b), Lost::Deleted { name: "east".to_owned() });
    let mut queue = VecDeque::from([between(&a, &b, b"too late")]);
    assert_eq!(a.transmit(&mut queue), Err(Lost::Deleted { name: "west".to_owned() }));
    assert_eq!(queue.len(), 1);
}

#[test]
fn an_interface_that_was_replaced_by_another_is_a_lost_port() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, _) = cable.ports(XIP);
    cable.left.ip("link del west");
    cable.left.connect("west", &cable.right, "east");
    assert_eq!(lost(&mut a), Lost::Deleted { name: "west".to_owned() });
}

#[test]
fn an_interface_that_is_set_down_is_a_lost_port() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, b) = cable.ports(XIP);
    cable.left.ip("link set west down");
    assert_eq!(lost(&mut a), Lost::Down { name: "west".to_owned() });
    let mut queue = VecDeque::from([between(&a, &b, b"too late")]);
    assert_eq!(a.transmit(&mut queue), Err(Lost::Down { name: "west".to_owned() }));
}

/// Runs `work` on a thread without capabilities, where the kernel refuses what only root may.
fn unprivileged<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Capabilities belong to a thread; this one gives its own away.
            let mut sets = rustix::thread::capabilities(None).unwrap();
            sets.effective = rustix::thread::CapabilitySet::empty();
            rustix::thread::set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_socket_that_was_opened_elsewhere_makes_a_port_without_privileges() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let (mut a, _) = cable.ports(XIP);
    let spec = PortSpec::Ethernet { interface: "east".to_owned(), ethertype: XIP };
    let options = Options { promiscuous: true, ..Options::default() };
    let opened = cable.right.run(|| EthernetPort::open_descriptor(&spec, &options));
    let (socket, info) = opened.unwrap();
    let frame = frame([2, 9, 9, 9, 9, 9], a.info.mac, XIP, b"for another");
    unprivileged(|| {
        let mut b = EthernetPort::adopt(&spec, socket, info, &options).unwrap();
        send_all([frame], &mut a);
        let received = receive_some(&mut b, 1);
        assert_eq!(&received[0].bytes()[14..], b"for another");
        send_all([between(&b, &a, b"answer")], &mut b);
        assert_eq!(&receive_some(&mut a, 1)[0].bytes()[14..], b"answer");
        assert_eq!(b.statistics().drops.total(), 0);
        cable.right.ip("link set east down");
        assert_eq!(lost(&mut b), Lost::Down { name: "east".to_owned() });
    });
}

#[test]
fn a_socket_of_another_kind_or_place_is_not_adopted() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    let opened = |interface: &str, ethertype| {
        let spec = PortSpec::Ethernet { interface: interface.to_owned(), ethertype };
        cable.left.run(|| EthernetPort::open_descriptor(&spec, &Options::default())).unwrap()
    };
    let spec = PortSpec::Ethernet { interface: "west".to_owned(), ethertype: XIP };
    let error = |socket: OwnedFd, info| {
        let adopted = EthernetPort::adopt(&spec, socket, info, &Options::default());
        adopted.err().unwrap().to_string()
    };
    let (_, info) = opened("west", XIP);
    assert!(error(opened("west", OTHER).0, info).contains("bound to EtherType 0x88b5"));
    assert!(error(opened("lo", XIP).0, info).contains("another address"));
    assert!(error(packet_socket::open().unwrap(), info).contains("bound to EtherType 0x0000"));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(error(file.into(), info).contains("no socket"));
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(error(udp.into(), info).contains("another kind"));
    let (gone, _) = opened("west", XIP);
    cable.left.ip("link del west");
    assert!(error(gone, info).contains("no interface"));
}

#[test]
fn opening_errors_say_what_is_in_the_way() {
    if !privileged() {
        return;
    }
    let cable = Cable::new();
    cable.left.ip("link set west down");
    cable.left.ip("tuntap add dev tun0 mode tun");
    let error =
        |name: &str| open(&cable.left, name, XIP, &Options::default()).err().unwrap().to_string();
    assert!(error("nothing").contains("no interface `nothing`"));
    assert!(error("west").contains("`ip link set west up`"));
    assert!(error("tun0").contains("no Ethernet frames"));
    assert!(error("sixteen-letters!").contains("1 to 15 bytes"));
}

#[test]
fn without_privileges_the_error_names_the_capability_and_the_doctor() {
    if !privileged() {
        return;
    }
    let spec = PortSpec::Ethernet { interface: "lo".to_owned(), ethertype: XIP };
    let error =
        unprivileged(|| EthernetPort::open(&spec, &Options::default()).err().unwrap().to_string());
    assert!(error.contains("CAP_NET_RAW") && error.contains("weft doctor"), "{error}");
}

#[test]
fn promiscuous_ports_take_all_and_outgoing_ones_what_leaves_too() {
    if !privileged() {
        return;
    }
    const ALL: u16 = libc::ETH_P_ALL as u16;
    let cable = Cable::new();
    let (mut a, mut b) = cable.ports(XIP);
    let bridge = Options { promiscuous: true, ..Options::default() };
    let mut bridge = open(&cable.right, "east", ALL, &bridge).unwrap();
    let capture = Options { promiscuous: true, outgoing: true, ..Options::default() };
    let mut capture = open(&cable.right, "east", ALL, &capture).unwrap();
    let foreign = [0x02, 0, 0, 0, 0, 0x77];
    send_all([frame(foreign, a.info.mac, XIP, b"for another")], &mut a);
    send_all([between(&b, &a, b"leaving")], &mut b);
    assert_eq!(&receive_some(&mut bridge, 1)[0].bytes()[14..], b"for another");
    let seen = receive_some(&mut capture, 2);
    assert_eq!(&seen[0].bytes()[14..], b"for another");
    assert_eq!(&seen[1].bytes()[14..], b"leaving");
    let mut more = Vec::new();
    bridge.receive(&mut more, 64).unwrap();
    assert!(more.is_empty(), "what this host sends does not come back");
}
