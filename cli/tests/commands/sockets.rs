//! Datagram sockets of XIA in a Rust program, against a running node whose stack is killed meanwhile.

use std::time::Duration;

use weft_xia_sockets::{SocketError, XdpSocket};
use weft_xip::XidType;
use weft_xip::channel::BindRequest;

use crate::processes::Node;

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn datagrams_go_from_program_to_program_and_a_socket_is_bound_again_when_its_node_is_back() {
    let node = Node::start();
    let path = node.run_directory().join("xia.sock");
    let mut sockets =
        [1, 2].map(|_| XdpSocket::bind(&path, BindRequest::Any(XidType::XDP)).unwrap());
    let [here, there] = &mut sockets;
    let to = *there.address();
    for socket in [&mut *here, &mut *there] {
        socket.set_timeout(Some(PATIENCE));
    }
    here.send_to(b"first", &to).unwrap();
    assert_eq!(there.recv_from().unwrap(), (b"first".to_vec(), Some(*here.address())));

    let killed = node.call(&["finder://manager/manager/1.0/signal?instance:txt=xia&number:u32=9"]);
    assert_eq!(killed.status, Some(0), "{killed:?}");
    for socket in [&mut *here, &mut *there] {
        let address = *socket.address();
        assert!(matches!(socket.recv_from(), Err(SocketError::Closed)));
        socket.reattach(PATIENCE).unwrap();
        assert_eq!(*socket.address(), address);
    }
    here.send_to(b"second", &to).unwrap();
    assert_eq!(there.recv_from().unwrap(), (b"second".to_vec(), Some(*here.address())));
}

#[test]
fn without_a_node_the_error_says_what_to_do() {
    let error = XdpSocket::bind("/nowhere/xia.sock".as_ref(), BindRequest::Any(XidType::XDP));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("nobody listens at `/nowhere/xia.sock`"), "{error}");
    assert!(error.contains("weft run"), "{error}");
}
