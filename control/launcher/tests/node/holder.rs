//! Hostile holders: what a process can do with each kind of descriptor that it was given, beyond using
//! it. What cannot be stopped is a test, too, so that the table in the handbook stays true.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{AddressFamily, SocketType, socket};
use weft_launcher::protocol::Command as Order;
use weft_port::testing::{Namespace, privileged};

use crate::node::{Node, Talk, name};

const EPERM: &str = "error 1";

/// A node with an agent, and a connection to it.
fn agent() -> (Node, Talk) {
    let mut node = Node::start();
    node.start_instance(node.agent("one"));
    let talk = node.talk("one");
    (node, talk)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A `sockaddr_ll` for an EtherType on an interface.
fn link_address(ether_type: u16, interface: u32) -> String {
    let mut bytes = vec![0; 20];
    bytes[0..2].copy_from_slice(&(libc::AF_PACKET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&ether_type.to_be_bytes());
    bytes[4..8].copy_from_slice(&interface.to_ne_bytes());
    hex(&bytes)
}

/// A `sockaddr_in` on the loopback interface.
fn ip_address(port: u16) -> String {
    let mut bytes = vec![0; 16];
    bytes[0..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    bytes[4..8].copy_from_slice(&[127, 0, 0, 1]);
    hex(&bytes)
}

fn option(level: i32, option: i32) -> String {
    format!("call {} $held {level} {option} @{} 16", libc::SYS_setsockopt, "00".repeat(16))
}

fn refused(talk: &Talk, calls: &[String]) {
    for call in calls {
        assert_eq!(talk.ask(call), EPERM, "{call}");
    }
}

#[test]
fn a_packet_socket_is_bound_to_its_interface_and_protocol() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add name a type veth peer name b");
    namespace.ip("link set dev a up");
    namespace.ip("link set dev b up");
    let (_node, talk) = agent();
    let socket = namespace.run(|| socket(AddressFamily::PACKET, SocketType::RAW, None).unwrap());
    talk.give("held", socket.as_fd());
    let (bind, send, ioctl) = (libc::SYS_bind, libc::SYS_sendto, libc::SYS_ioctl);
    refused(
        &talk,
        &[
            format!("call {bind} $held @{} 20", link_address(0x0003, 1)),
            format!("call {bind} $held @{} 20", link_address(0xc0de, 3)),
            format!("call {send} $held @00 1 0 @{} 20", link_address(0xc0de, 3)),
            // Promiscuous mode, fan-out, past the queueing discipline, rings.
            option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP),
            option(libc::SOL_PACKET, libc::PACKET_FANOUT),
            option(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS),
            option(libc::SOL_PACKET, libc::PACKET_RX_RING),
            option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
            option(libc::SOL_SOCKET, libc::SO_DETACH_FILTER),
            option(libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
            option(libc::SOL_SOCKET, libc::SO_MARK),
            // Taking the interface down, or another address for it.
            format!("call {ioctl} $held {} @{}", libc::SIOCSIFFLAGS, "00".repeat(40)),
            format!("call {ioctl} $held {} @{}", libc::SIOCSIFHWADDR, "00".repeat(40)),
        ],
    );
}

#[test]
fn open_a_packet_socket_sends_to_any_interface_of_its_namespace_by_sendmsg() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add name other type veth peer name end");
    namespace.ip("link set dev other up");
    namespace.ip("link set dev end up");
    namespace.wait_for_carrier("other");
    let (_node, talk) = agent();
    let (socket, index) = namespace.run(|| {
        let socket = socket(AddressFamily::PACKET, SocketType::DGRAM, None).unwrap();
        let index = rustix::net::netdevice::name_to_index(&socket, "other").unwrap();
        (socket, index)
    });
    talk.give("held", socket.as_fd());
    // The handbook says so, with the reason; when this fails, it can say better.
    assert_eq!(talk.ask(&format!("sendmsg held {}", link_address(0xc0de, index))), "ok 1");
    // Never into another namespace: there is no interface of this number there or here.
    let said = talk.ask(&format!("sendmsg held {}", link_address(0xc0de, 4_000_000)));
    assert_eq!(said, format!("error {}", libc::ENXIO));
}

#[test]
fn a_udp_socket_keeps_its_own_address() {
    if !privileged() {
        return;
    }
    let (_node, talk) = agent();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let there = ip_address(other.local_addr().unwrap().port());
    talk.give("held", OwnedFd::from(socket).as_fd());
    refused(
        &talk,
        &[
            format!("call {} $held @{} 16", libc::SYS_bind, ip_address(0)),
            format!("call {} $held @00 1 0 @{there} 16", libc::SYS_sendto),
            format!("call {} $held 5", libc::SYS_listen),
            option(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP),
            option(libc::IPPROTO_IP, libc::IP_TRANSPARENT),
            option(libc::IPPROTO_IP, libc::IP_OPTIONS),
            option(libc::SOL_SOCKET, libc::SO_REUSEPORT),
            option(libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
        ],
    );
    // Open: to whom it sends is its own affair.
    assert_eq!(talk.ask(&format!("sendmsg held {there}")), "ok 1");
    assert_eq!(talk.ask(&format!("call {} $held @{there} 16", libc::SYS_connect)), "ok 0");
}

#[test]
fn a_tcp_socket_cannot_be_connected_elsewhere() {
    if !privileged() {
        return;
    }
    let (_node, talk) = agent();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let there = ip_address(listener.local_addr().unwrap().port());
    let fresh = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    talk.give("held", fresh.as_fd());
    // Landlock's answer.
    let said = talk.ask(&format!("call {} $held @{there} 16", libc::SYS_connect));
    assert_eq!(said, format!("error {}", libc::EACCES));
    refused(
        &talk,
        &[
            format!("call {} $held @{} 16", libc::SYS_bind, ip_address(0)),
            format!("call {} $held 5", libc::SYS_listen),
        ],
    );
}

#[test]
fn a_listening_socket_cannot_be_moved_and_is_made_anew_if_it_was_shut_down() {
    if !privileged() {
        return;
    }
    let (mut node, talk) = agent();
    let own = talk.ask("listener");
    refused(
        &talk,
        &[
            format!("call {} {own} @0100 2", libc::SYS_bind),
            format!("call {} {own} 4096", libc::SYS_listen),
        ],
    );
    // The mode of the socket is not that of its path, which is not the process's to change.
    talk.ask(&format!("call {} {own} {}", libc::SYS_fchmod, 0o777));
    let mode = std::fs::metadata(node.path("one")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    // Open: it can be shut down.
    assert_eq!(talk.ask(&format!("call {} {own} 2", libc::SYS_shutdown)), "ok 0");
    talk.send("exit 0");
    node.exited("one");
    node.start_instance(node.agent("one"));
    assert!(!node.talk("one").ask("state").is_empty());
}

#[test]
fn sealed_memory_keeps_its_size_and_its_seals() {
    if !privileged() {
        return;
    }
    let (_node, talk) = agent();
    let memory = memfd_create("shared", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, 4096).unwrap();
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
    talk.give("held", memory.as_fd());
    refused(
        &talk,
        &[
            format!("call {} $held 0", libc::SYS_ftruncate),
            format!("call {} $held 8192", libc::SYS_ftruncate),
            format!("call {} $held {} {}", libc::SYS_fcntl, libc::F_ADD_SEALS, libc::F_SEAL_WRITE),
        ],
    );
}

#[test]
fn an_event_counter_is_nothing_but_a_counter() {
    if !privileged() {
        return;
    }
    let (node, talk) = agent();
    let flags = rustix::event::EventfdFlags::NONBLOCK;
    let counter = rustix::event::eventfd(0, flags).unwrap();
    talk.give("held", counter.as_fd());
    let one = hex(&1_u64.to_ne_bytes());
    assert_eq!(talk.ask(&format!("call {} $held @{one} 8", libc::SYS_write)), "ok 8");
    // Open: all holders share whether it waits.
    assert_eq!(talk.ask(&format!("call {} $held {} 0", libc::SYS_fcntl, libc::F_SETFL)), "ok 0");
    let launcher = node.launcher.id();
    refused(
        &talk,
        &[
            format!("call {} $held {} {launcher}", libc::SYS_fcntl, libc::F_SETOWN),
            // F_SETSIG
            format!("call {} $held 10 1", libc::SYS_fcntl),
            format!("call {} $held 1", libc::SYS_fchown),
        ],
    );
}

#[test]
fn a_map_of_the_kernel_is_written_and_nothing_is_loaded() {
    if !privileged() {
        return;
    }
    // The FEA makes it, and this test takes a copy, as whoever gets it by XRL does.
    let mut node = Node::start();
    let fea = weft_launcher::protocol::Spec { class: name("fea"), ..node.agent("fea") };
    let pid = node.start_instance(fea);
    let said = node.talk("fea").ask("map 1 0");
    let number = said.strip_prefix("ok ").unwrap().parse().unwrap();
    let process = crate::node::watch(pid);
    let flags = rustix::process::PidfdGetfdFlags::empty();
    let map = rustix::process::pidfd_getfd(&process, number, flags).unwrap();
    node.order(Order::Signal { instance: name("fea"), number: 9 });
    node.start_instance(node.agent("one"));
    let talk = node.talk("one");
    talk.give("held", map.as_fd());
    assert_eq!(talk.ask("update held"), "ok 0");
    // Loading, pinning, getting others by number, attaching, detaching.
    let mut calls = vec!["load 6".to_owned(), "map 1 0".to_owned()];
    for command in [6, 7, 8, 9, 13, 14, 19, 28, 29, 34] {
        calls.push(format!("call {} {command} @{} 64", libc::SYS_bpf, "00".repeat(64)));
    }
    refused(&talk, &calls);
}
