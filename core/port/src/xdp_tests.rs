//! XDP ports over virtual cables between network namespaces: what they send, and what they say about what they
//! cannot. Receiving takes a program, so it is tested where that is loaded: in the runtime.

use rustix::event::{PollFd, PollFlags, poll};

use super::*;
use crate::testing::{Namespace, privileged, receive_some, send_all};
use crate::{adopt, open, open_descriptors};

const XIP: u16 = 0xc0de;

/// Two namespaces with a cable between interfaces `west` and `east`.
fn cable() -> (Namespace, Namespace) {
    let (left, right) = (Namespace::new(), Namespace::new());
    left.silence();
    right.silence();
    left.connect("west", &right, "east");
    (left, right)
}

fn xdp(interface: &str) -> PortSpec {
    PortSpec::Xdp { interface: interface.to_owned(), ethertype: XIP }
}

fn port(namespace: &Namespace, spec: &PortSpec) -> Result<Box<dyn Port>, OpenError> {
    namespace.run(|| open(spec, &Options::default()))
}

/// An XDP port, and a packet socket at the other end of its cable.
struct Ends {
    sender: Box<dyn Port>,
    receiver: Box<dyn Port>,
    _namespaces: (Namespace, Namespace),
}

fn ends() -> Ends {
    let (left, right) = cable();
    let there = PortSpec::Ethernet { interface: "east".to_owned(), ethertype: XIP };
    let (sender, receiver) = (port(&left, &xdp("west")), port(&right, &there));
    let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
    Ends { sender, receiver, _namespaces: (left, right) }
}

/// Waits until the port has something to say besides packets.
fn wait_for_loss(port: &dyn Port) {
    let minute = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(port.second_fd().unwrap(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&minute)), Ok(1), "nothing happened for a minute");
}

/// A frame that says which one it is.
fn frame(to: [u8; 6], from: [u8; 6], number: u32, len: usize) -> Packet {
    let mut packet = Packet::new();
    packet.extend(&to);
    packet.extend(&from);
    packet.extend(&XIP.to_be_bytes());
    packet.extend(&number.to_be_bytes());
    let missing = len - packet.len();
    packet.extend(&vec![number as u8; missing]);
    packet
}

#[test]
fn frames_of_all_lengths_leave_whole_and_in_order() {
    if !privileged() {
        return;
    }
    let Ends { mut sender, mut receiver, .. } = ends();
    let (from, to) = (sender.info().mac, receiver.info().mac);
    let len = |number: u32| 60 + (number as usize * 97) % (1514 - 60 + 1);
    // More than there are frames, in portions that the receiver has room for.
    let (mut sent, mut bytes) = (0, 0);
    while sent < 4 * SEND {
        let portion: Vec<_> =
            (sent..sent + 100).map(|number| frame(to, from, number, len(number))).collect();
        send_all(portion, &mut *sender);
        for packet in receive_some(&mut *receiver, 100) {
            assert_eq!(packet.bytes(), frame(to, from, sent, len(sent)).bytes());
            bytes += packet.len() as u64;
            sent += 1;
        }
    }
    let statistics = sender.statistics();
    assert_eq!(statistics.sent, crate::Traffic { packets: sent.into(), bytes });
    assert!(statistics.drops.iter().all(|(_, count)| count == 0));
}

#[test]
fn what_is_too_long_is_counted_and_the_others_leave() {
    if !privileged() {
        return;
    }
    let Ends { mut sender, mut receiver, .. } = ends();
    let (from, to) = (sender.info().mac, receiver.info().mac);
    let lens = [100, 1800, 200, 1600, 1514];
    send_all((0..).zip(lens).map(|(number, len)| frame(to, from, number, len)), &mut *sender);
    let received: Vec<_> = receive_some(&mut *receiver, 3).iter().map(|one| one.len()).collect();
    assert_eq!(received, [100, 200, 1514]);
    assert_eq!(sender.statistics().drops.get(PortDrop::TransmitTooLong), 2);
    assert_eq!(sender.statistics().sent.packets, 3);
}

#[test]
fn an_interface_has_one_and_it_is_free_when_that_is_closed() {
    if !privileged() {
        return;
    }
    let (left, _right) = cable();
    let first = port(&left, &xdp("west")).unwrap();
    let error = port(&left, &xdp("west")).err().unwrap();
    assert!(matches!(error, OpenError::Busy { .. }), "{error}");
    drop(first);
    // The kernel releases the queue a little later.
    loop {
        match port(&left, &xdp("west")) {
            Ok(_) => return,
            Err(OpenError::Busy { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn interfaces_that_it_cannot_use_are_refused_with_the_remedy() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add name long type veth peer name peer");
    namespace.ip("link set dev long mtu 9000");
    namespace.ip("link add name idle type veth peer name idler");
    namespace.ip("link set dev long up");
    for (interface, remedy) in [
        ("long", "ip link set long mtu 3822"),
        ("idle", "ip link set idle up"),
        ("nothing", "there is no interface `nothing`"),
    ] {
        let error = port(&namespace, &xdp(interface)).err().unwrap().to_string();
        assert!(error.contains(remedy), "{error}");
    }
}

#[test]
fn an_interface_that_is_set_down_or_deleted_is_lost() {
    if !privileged() {
        return;
    }
    let (left, _right) = cable();
    let mut sender = port(&left, &xdp("west")).unwrap();
    let mac = sender.info().mac;
    left.ip("link set dev west down");
    let mut queue = VecDeque::from([frame([2; 6], mac, 1, 60)]);
    let down = Err(Lost::Down { name: "west".to_owned() });
    assert_eq!(sender.transmit(&mut queue), down);
    // Who sends nothing is told, too.
    wait_for_loss(&*sender);
    assert_eq!(sender.receive(&mut Vec::new(), 64), down);
    drop(sender);
    left.ip("link set dev west up");
    left.wait_for_carrier("west");
    let mut sender = loop {
        match port(&left, &xdp("west")) {
            Err(OpenError::Busy { .. }) => std::thread::yield_now(),
            port => break port.unwrap(),
        }
    };
    left.ip("link del west");
    wait_for_loss(&*sender);
    let lost = sender.receive(&mut Vec::new(), 64);
    assert_eq!(lost, Err(Lost::Deleted { name: "west".to_owned() }));
}

#[test]
fn descriptors_of_something_else_are_no_port() {
    if !privileged() {
        return;
    }
    let (left, _right) = cable();
    let other = PortSpec::Ethernet { interface: "west".to_owned(), ethertype: XIP };
    let options = Options::default();
    let (spec, open) =
        (xdp("west"), |spec: &PortSpec| left.run(|| open_descriptors(spec, &options)).unwrap());
    let (sockets, info) = open(&other);
    let refused = |descriptors, what: &str| {
        let error = adopt(&spec, descriptors, info, &options).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(sockets, "there are 1 descriptors, not 3");
    let ours: [OwnedFd; 3] = open(&spec).0.try_into().unwrap();
    let copies = || ours.each_ref().map(|one| one.try_clone().unwrap());
    let [_, memory, beside] = copies();
    refused(vec![open(&other).0.remove(0), memory, beside], "it is no socket of AF_XDP");
    let [socket, _, beside] = copies();
    let file = std::fs::File::open("/dev/null").unwrap();
    refused(vec![socket, file.into(), beside], "the memory beside it is of another kind");
    let [socket, memory, _] = copies();
    let elsewhere = PortSpec::Ethernet { interface: "west".to_owned(), ethertype: 0x88b5 };
    let beside = open(&elsewhere).0.remove(0);
    refused(vec![socket, memory, beside], "it is bound to EtherType 0x88b5");
}
