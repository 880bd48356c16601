//! Connections of TCP that the FEA of a node makes in its own process, with no more rights than it has there.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use weft_port::stream::{PeerKey, StreamKey, StreamKeys};
use weft_port::testing::{Namespace, privileged};

use crate::processes::Node;

/// The bytes of the key in the text of a call.
const KEY: &str = "geheim";

fn key() -> PeerKey {
    let key = StreamKey::new(KEY).unwrap();
    PeerKey { network: [127, 0, 0, 1].into(), prefix_length: 32, key }
}

/// What a call asks for besides the address.
fn options() -> String {
    format!("interface:txt=lo&ttl:u32=255&least_ttl:u32=1&user_timeout:u32=5000&key:binary={KEY}")
}

#[test]
fn the_fea_connects_and_listens_with_all_options() {
    if !privileged() {
        return;
    }
    let namespace = Namespace::new();
    let node = namespace.run(|| {
        // Who is called below signs what it sends, and takes nothing else.
        let peer = TcpListener::bind("127.0.0.1:0").unwrap();
        StreamKeys::default().set(peer.as_fd(), &[key()]).unwrap();
        let port = peer.local_addr().unwrap().port();
        let node = Node::start();
        let open = |what: &str| node.call(&[&format!("finder://fea/fea/1.0/{what}")]);
        let done = open(&format!(
            "open_stream?number:u32=1&peer:ip=127.0.0.1&port:u32={port}&local:ip=127.0.0.1&{}",
            options()
        ));
        // The answer holds a descriptor, which no text can.
        done.expect_failure(&["a descriptor cannot be written as text"]);
        let (_, from) = peer.accept().unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.1");

        // Below 1,024, as routing protocols listen.
        let done = open(
            "open_stream_listener?number:u32=2&local:ip=127.0.0.1&port:u32=179&keys:list<stream_key>=&ttl:u32=255",
        );
        done.expect_failure(&["a descriptor cannot be written as text"]);
        // It was the caller's, who is gone; the FEA keeps it no longer either.
        let there: SocketAddr = "127.0.0.1:179".parse().unwrap();
        node.wait_until(|| TcpStream::connect(there).is_err());

        for (what, parts) in [
            ("open_stream?number:u32=1&peer:ip=127.0.0.1&port:u32=1", ["102 COMMAND_FAILED", "nobody listens"]),
            ("open_stream?number:u32=1&peer:ip=fe80::1&port:u32=179", ["101 BAD_ARGS", "of which interface"]),
            ("set_stream_keys?number:u32=7&keys:list<stream_key>=", ["known:bool=false", ""]),
        ] {
            let done = open(what);
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(parts.iter().all(|part| said.contains(part)), "{done:?}");
        }
        let done = open("watch_interfaces?begin:bool=true&at_most:u32=10&wait:u32=0");
        assert!(done.stdout.contains("complete:bool=true"), "{done:?}");
        assert!(done.stdout.contains("127.0.0.1/8"), "{done:?}");
        node
    });
    node.end();
}
