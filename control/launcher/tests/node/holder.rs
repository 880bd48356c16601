//! Hostile holders: what a process can do with each kind of descriptor that it was given, beyond using
//! it. What cannot be stopped is a test, too, so that the table in the handbook stays true.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{AddressFamily, SocketType, socket};
use weft_base::Packet;
use weft_launcher::protocol::{Command as Order, Spec};
use weft_port::testing::{Namespace, privileged, receive_some, send_all};
use weft_port::{Options, PortSpec};

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

/// A `sockaddr_in6` on the loopback interface.
fn ipv6_address(port: u16) -> String {
    let mut bytes = vec![0; 28];
    bytes[0..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    bytes[23] = 1;
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
fn a_packet_socket_sends_on_no_interface_but_its_own() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    for (name, peer) in [("own", "there"), ("other", "elsewhere")] {
        namespace.ip(&format!("link add name {name} type veth peer name {peer}"));
        namespace.ip(&format!("link set dev {name} up"));
        namespace.ip(&format!("link set dev {peer} up"));
        namespace.wait_for_carrier(name);
    }
    let spec =
        |interface: &str| PortSpec::Ethernet { interface: interface.to_owned(), ethertype: 0xc0de };
    let open = |interface: &str| weft_port::open(&spec(interface), &Options::default()).unwrap();
    let (socket, index, mut other, mut elsewhere) = namespace.run(|| {
        let opened = weft_port::open_descriptors(&spec("own"), &Options::default()).unwrap();
        let socket = opened.0.into_iter().next().unwrap();
        let index = rustix::net::netdevice::name_to_index(&socket, "other").unwrap();
        (socket, index, open("other"), open("elsewhere"))
    });
    // To everybody, from somebody.
    let frame = format!("{}{}c0de{}", "ff".repeat(6), "02".repeat(6), "00".repeat(46));
    for class in ["agent", "program", "finder"] {
        let mut node = Node::start();
        let spec = Spec { class: name(class), ..node.agent("one") };
        node.start_instance(spec);
        let talk = node.talk("one");
        talk.give("held", socket.as_fd());
        let there = link_address(0xc0de, index);
        let longer = format!("{there}{}", "00".repeat(8));
        let send =
            |len: usize| format!("call {} $held @{frame} 60 0 @{longer} {len}", libc::SYS_sendto);
        refused(
            &talk,
            &[
                format!("sendmsg held {there}"),
                format!("sendmmsg held {there}"),
                send(20),
                send(28),
            ],
        );
        // The only length that is let through is too short for the kernel.
        assert_eq!(talk.ask(&send(16)), format!("error {}", libc::EINVAL));
        // On its own interface, as it is meant to.
        assert_eq!(talk.ask(&format!("call {} $held @{frame} 60", libc::SYS_write)), "ok 60");
        let connected = talk.ask(&format!("call {} $held @{there} 20", libc::SYS_connect));
        assert_eq!(connected, format!("error {}", libc::EOPNOTSUPP));
    }
    // What comes first there is what was sent there: none of the others did.
    let mut last = Packet::from_slice(&[0xff; 6]);
    last.extend(&[2, 2, 2, 2, 2, 2, 0xc0, 0xde, 7]);
    last.extend(&[0; 45]);
    send_all([last.duplicate()], &mut *other);
    assert_eq!(receive_some(&mut *elsewhere, 1)[0].bytes(), last.bytes());
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
            format!("sendmsg held {there}"),
            format!("sendmmsg held {there}"),
            format!("call {} $held 5", libc::SYS_listen),
            option(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP),
            option(libc::IPPROTO_IP, libc::IP_TRANSPARENT),
            option(libc::IPPROTO_IP, libc::IP_OPTIONS),
            option(libc::SOL_SOCKET, libc::SO_REUSEPORT),
            option(libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
        ],
    );
    // Open: to whom it sends is its own affair.
    let send = format!("call {} $held @00 1 0 @{there} 16", libc::SYS_sendto);
    assert_eq!(talk.ask(&send), "ok 1");
    assert_eq!(talk.ask(&format!("call {} $held @{there} 16", libc::SYS_connect)), "ok 0");
}

#[test]
fn a_raw_socket_writes_no_headers_of_its_own() {
    if !privileged() {
        return;
    }
    let (_node, talk) = agent();
    let spec: PortSpec = "ip:127.0.0.1:253".parse().unwrap();
    let (sockets, _) = weft_port::open_descriptors(&spec, &Options::default()).unwrap();
    let there = ip_address(0);
    talk.give("held", sockets[0].as_fd());
    refused(
        &talk,
        &[
            option(libc::IPPROTO_IP, libc::IP_HDRINCL),
            option(libc::IPPROTO_IP, libc::IP_OPTIONS),
            option(libc::IPPROTO_IP, libc::IP_TRANSPARENT),
            option(libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
            option(libc::SOL_SOCKET, libc::SO_MARK),
            format!("call {} $held @{} 16", libc::SYS_bind, ip_address(0)),
            format!("sendmsg held {there}"),
            format!("sendmmsg held {there}"),
        ],
    );
    // Open: to whom it sends is its own affair.
    let send = format!("call {} $held @00 1 0 @{there} 16", libc::SYS_sendto);
    assert_eq!(talk.ask(&send), "ok 1");
}

#[test]
fn ports_of_ipv6_name_no_address_and_are_connected() {
    if !privileged() {
        return;
    }
    let (_node, talk) = agent();
    let other = std::net::UdpSocket::bind("[::1]:0").unwrap();
    let there = ipv6_address(other.local_addr().unwrap().port());
    for (spec, there) in [("udp:[::1]:0", there), ("ip:[::1]:253", ipv6_address(0))] {
        let spec: PortSpec = spec.parse().unwrap();
        let (sockets, _) = weft_port::open_descriptors(&spec, &Options::default()).unwrap();
        for socket in &sockets {
            talk.give("held", socket.as_fd());
            refused(
                &talk,
                &[
                    format!("call {} $held @00 1 0 @{there} 28", libc::SYS_sendto),
                    format!("sendmsg held {there}"),
                    format!("sendmmsg held {there}"),
                    format!("call {} $held @{} 28", libc::SYS_bind, ipv6_address(0)),
                    option(libc::IPPROTO_IPV6, libc::IPV6_HDRINCL),
                    option(libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
                    option(libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP),
                    option(libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
                    option(libc::SOL_SOCKET, libc::SO_REUSEADDR),
                    option(libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
                    option(libc::SOL_SOCKET, libc::SO_DETACH_FILTER),
                ],
            );
            // Open: to whom it sends is its own affair.
            let connect = format!("call {} $held @{there} 28", libc::SYS_connect);
            assert_eq!(talk.ask(&connect), "ok 0");
            assert_eq!(talk.ask(&format!("call {} $held @00 1", libc::SYS_write)), "ok 1");
        }
    }
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
            // Of which Landlock knows nothing.
            format!("call {} $held @00 1 {} @{there} 16", libc::SYS_sendto, libc::MSG_FASTOPEN),
            option(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
        ],
    );
}

/// What nobody but the FEA says of a connection, or of a socket that accepts some: by whom it is signed, from how far
/// it comes, over which interface, and that it is another kind of socket.
fn options_of_tcp() -> Vec<String> {
    vec![
        option(libc::IPPROTO_TCP, libc::TCP_MD5SIG),
        option(libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT),
        option(libc::IPPROTO_TCP, libc::TCP_REPAIR),
        option(libc::IPPROTO_TCP, libc::TCP_ULP),
        option(libc::IPPROTO_TCP, libc::TCP_CONGESTION),
        option(libc::IPPROTO_IP, libc::IP_MINTTL),
        option(libc::IPPROTO_IP, libc::IP_OPTIONS),
        option(libc::IPPROTO_IP, libc::IP_TRANSPARENT),
        option(libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT),
        option(libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
        option(libc::IPPROTO_IPV6, libc::IPV6_ADDRFORM),
        option(libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
        option(libc::SOL_SOCKET, libc::SO_REUSEPORT),
        option(libc::SOL_SOCKET, libc::SO_MARK),
        option(libc::SOL_SOCKET, libc::SO_LINGER),
        option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
    ]
}

#[test]
fn a_connection_is_not_another_one_and_keeps_what_the_fea_has_said_of_it() {
    if !privileged() {
        return;
    }
    type Address = fn(u16) -> String;
    for (address, encode) in
        [("127.0.0.1:0", ip_address as Address), ("[::1]:0", ipv6_address as Address)]
    {
        let (_node, talk) = agent();
        let listener = std::net::TcpListener::bind(address).unwrap();
        let other = std::net::TcpListener::bind(address).unwrap();
        let elsewhere = encode(other.local_addr().unwrap().port());
        let len = elsewhere.len() / 2;
        let held = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        talk.give("held", held.as_fd());
        let calls = [
            options_of_tcp(),
            vec![
                format!("call {} $held @{} {len}", libc::SYS_bind, encode(0)),
                format!("call {} $held 5", libc::SYS_listen),
                format!(
                    "call {} $held @00 1 {} @{elsewhere} {len}",
                    libc::SYS_sendto,
                    libc::MSG_FASTOPEN
                ),
                "sendmsg held ".to_owned(),
                "sendmmsg held ".to_owned(),
            ],
        ]
        .concat();
        refused(&talk, &calls);
        // As it is meant to.
        assert_eq!(talk.ask(&format!("call {} $held @{} 2", libc::SYS_write, hex(b"hi"))), "ok 2");
        let mut hi = [0; 2];
        std::io::Read::read_exact(&mut peer, &mut hi).unwrap();
        assert_eq!(&hi, b"hi");
        // Open: ending it, and with what time to live it sends. It is no way to somewhere else then, either.
        assert_eq!(talk.ask(&option(libc::IPPROTO_TCP, libc::TCP_NODELAY)), "ok 0");
        assert_eq!(talk.ask(&format!("call {} $held 2", libc::SYS_shutdown)), "ok 0");
        refused(&talk, &calls);
        let nowhere = "00".repeat(16);
        assert_eq!(talk.ask(&format!("call {} $held @{nowhere} 16", libc::SYS_connect)), "ok 0");
        refused(&talk, &calls);
        let said = talk.ask(&format!("call {} $held @{elsewhere} {len}", libc::SYS_connect));
        // Landlock's answer.
        assert_eq!(said, format!("error {}", libc::EACCES));
    }
}

#[test]
fn a_listening_tcp_socket_stays_where_it_is() {
    if !privileged() {
        return;
    }
    let (_node, talk) = agent();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let there = ip_address(other.local_addr().unwrap().port());
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    talk.give("held", held.as_fd());
    let calls = [
        format!("call {} $held @{} 16", libc::SYS_bind, ip_address(0)),
        format!("call {} $held 4096", libc::SYS_listen),
        format!("call {} $held @00 1 {} @{there} 16", libc::SYS_sendto, libc::MSG_FASTOPEN),
    ];
    let calls = [options_of_tcp(), calls.to_vec()].concat();
    refused(&talk, &calls);
    // Open: it can be shut down. It is no way to somewhere else then, either.
    assert_eq!(talk.ask(&format!("call {} $held 2", libc::SYS_shutdown)), "ok 0");
    refused(&talk, &calls);
    let said = talk.ask(&format!("call {} $held @{there} 16", libc::SYS_connect));
    assert_eq!(said, format!("error {}", libc::EACCES));
}

#[test]
fn descriptors_are_not_passed_on() {
    if !privileged() {
        return;
    }
    for (class, answer) in
        [("agent", EPERM), ("finder", EPERM), ("program", EPERM), ("fea", "ok 1")]
    {
        let mut node = Node::start();
        node.start_instance(Spec { class: name(class), ..node.agent("one") });
        let talk = node.talk("one");
        let (held, other) = std::os::unix::net::UnixStream::pair().unwrap();
        talk.give("held", held.as_fd());
        assert_eq!(talk.ask("sendmsg held "), answer, "{class}");
        assert_eq!(talk.ask("sendmmsg held "), EPERM, "{class}");
        drop(other);
    }
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

#[test]
fn the_fea_has_no_more_of_bpf_than_attaching_takes() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    node.start_instance(Spec { class: name("fea"), ..node.agent("fea") });
    let talk = node.talk("fea");
    // Maps are made and programs loaded; whether this one is good is the kernel's affair.
    let said = talk.ask("map 1 0");
    assert!(said.starts_with("ok "), "{said}");
    // Pinning, attaching without links, getting others by number, tracing, types, iterators and the rest.
    let commands = [6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 22, 23, 29, 30, 31, 32, 33, 35];
    let call = |command| format!("call {} {command} @{} 64", libc::SYS_bpf, "00".repeat(64));
    refused(&talk, &commands.map(call));
}

#[test]
fn an_application_sends_descriptors_and_never_gets_one() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    node.start_instance(Spec { class: name("application"), ..node.agent("one") });
    let talk = node.talk("one");
    // What it could misuse does not reach it, whoever sends it.
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let packet = socket(AddressFamily::PACKET, SocketType::RAW, None).unwrap();
    for held in [udp.as_fd(), packet.as_fd()] {
        assert_eq!(talk.offer("held", held), "nothing came");
    }
    let descriptors = talk.ask("descriptors");
    let sockets = descriptors.split(' ').filter(|target| target.starts_with("socket:")).count();
    // Its listening socket and this connection, and the standard streams of the test perhaps.
    assert!(sockets <= 4, "{descriptors}");
    // Nor does it get one from itself.
    assert_eq!(talk.ask("pair held other"), "held");
    assert_eq!(talk.ask("sendmsg held "), "ok 1");
    let zeros = "00".repeat(64);
    refused(
        &talk,
        &[
            "sendmmsg held ".to_owned(),
            format!("call {} $other @{zeros} 0", libc::SYS_recvmsg),
            format!("call {} $other @{zeros} 1 0 0", libc::SYS_recvmmsg),
            format!("call {} {} 0 0", libc::SYS_pidfd_getfd, 0),
            format!("call {} 8 @{zeros}", libc::SYS_io_uring_setup),
            format!("call {} $held @{} 16", libc::SYS_bind, ip_address(0)),
            format!("call {} $held 5", libc::SYS_listen),
            option(libc::SOL_SOCKET, libc::SO_PASSCRED),
            option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
            option(libc::IPPROTO_TCP, libc::TCP_NODELAY),
        ],
    );
    // How long connecting may wait is its own affair.
    let waiting = option(libc::SOL_SOCKET, libc::SO_SNDTIMEO);
    assert_eq!(talk.ask(&waiting), "ok 0");
    if cfg!(target_arch = "x86_64") {
        let x32 = 0x4000_0000;
        // The numbers of recvmsg, recvmmsg and sendmmsg there.
        for number in [519, 537, 538] {
            refused(&talk, &[format!("call {} $other @{zeros} 0", number | x32)]);
        }
    }
}

#[test]
fn an_application_is_started_with_nothing_that_was_kept() {
    if !privileged() {
        return;
    }
    let mut node = Node::start();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    node.ask_with(Order::Keep { name: name("port"), instance: None }, &[socket.as_fd()]);
    node.order(Order::Give { name: name("port"), instance: name("one") });
    let application = Spec { class: name("application"), ..node.agent("one") };
    let said = node.refused(Order::Start(application));
    assert!(said.contains("without descriptors that are kept"), "{said}");
}
