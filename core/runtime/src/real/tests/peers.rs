//! To whom connections of TCP come about: keys, times to live, links, and another implementation.

use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroU8;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use weft_port::testing::{Namespace, lacks, privileged};

use super::connections::{LISTENER, OPENED, Server, at, key, outcome, peer_key, stream, to};
use super::{Turn, run_script};
use crate::{
    Event, PeerTtl, StreamEvent, StreamListenerSpec, StreamOptions, StreamRequest, StreamSpec,
};

/// A connection that is not answered fails when it is tried again first.
fn impatient(spec: StreamSpec) -> StreamSpec {
    let user_timeout = Some(Duration::from_millis(1));
    StreamSpec { options: StreamOptions { user_timeout, ..spec.options }, ..spec }
}

#[test]
fn who_does_not_sign_by_the_key_gets_no_answer() {
    for (address, network, length) in [("127.0.0.1:0", "127.0.0.0", 8), ("[::1]:0", "::1", 128)] {
        let spec =
            StreamListenerSpec { keys: vec![peer_key(network, length, "right")], ..at(address) };
        let server = Server::start(spec, |turn| {
            if matches!(turn.event, Event::Stream { event: StreamEvent::Accepted { .. }, .. }) {
                turn.exit(0);
            }
        });
        let with = |text: &str| StreamSpec { key: Some(key(text)), ..to(server.address) };
        for wrong in [to(server.address), with("wrong")] {
            let error = outcome(impatient(wrong)).unwrap_err();
            assert!(error.contains("cannot connect to TCP"), "{error}");
        }
        assert_eq!(outcome(with("right")), Ok(()));
        assert_eq!(server.thread.join().unwrap(), 0);
    }
}

#[test]
fn keys_of_a_listener_come_change_and_go_while_it_listens() {
    let (tell, told) = mpsc::channel();
    // Asked for by a connection, of which there is one for each change.
    let mut changes = [
        vec![peer_key("127.0.0.1", 32, "first")],
        vec![peer_key("127.0.0.1", 32, "second")],
        vec![],
    ]
    .into_iter();
    let server = Server::start(at("127.0.0.1:0"), move |turn| match &turn.event {
        Event::Stream { token, event: StreamEvent::Accepted { .. } } => {
            assert_eq!(*token, LISTENER);
            match changes.next() {
                Some(keys) => turn.out.push(stream(LISTENER, StreamRequest::SetKeys(keys))),
                None => turn.exit(0),
            }
        }
        Event::Stream { event: StreamEvent::KeysSet { result }, .. } => {
            tell.send(result.clone()).unwrap();
        }
        _ => {}
    });
    let with = |text: Option<&str>| StreamSpec { key: text.map(key), ..to(server.address) };
    assert_eq!(outcome(with(None)), Ok(()));
    for (current, before) in
        [(Some("first"), None), (Some("second"), Some("first")), (None, Some("second"))]
    {
        assert_eq!(told.recv().unwrap(), Ok(()));
        // The kernel takes a signed segment from who has no key as wrong, too.
        assert!(outcome(impatient(with(before))).is_err());
        assert_eq!(outcome(with(current)), Ok(()));
    }
    assert_eq!(server.thread.join().unwrap(), 0);
}

#[test]
fn what_comes_from_farther_than_the_least_time_to_live_gets_no_answer() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let near = StreamOptions {
            ttl: NonZeroU8::new(255),
            least_ttl: NonZeroU8::new(255),
            ..StreamOptions::default()
        };
        let spec = StreamListenerSpec { options: near.clone(), ..at(address) };
        let server = Server::start(spec, |turn| {
            if matches!(turn.event, Event::Stream { event: StreamEvent::Accepted { .. }, .. }) {
                turn.exit(0);
            }
        });
        let with = |ttl| StreamSpec {
            options: StreamOptions { ttl: NonZeroU8::new(ttl), ..near.clone() },
            ..to(server.address)
        };
        assert!(outcome(impatient(with(254))).is_err());
        assert_eq!(outcome(with(255)), Ok(()));
        assert_eq!(server.thread.join().unwrap(), 0);
    }
}

#[test]
fn peers_may_be_as_far_away_as_their_network_says() {
    let least = |network: &str, prefix_length, least| PeerTtl {
        network: network.parse().unwrap(),
        prefix_length,
        least: NonZeroU8::new(least).unwrap(),
    };
    let near =
        vec![least("127.0.2.0", 24, 255), least("127.0.2.9", 32, 1), least("127.0.3.1", 32, 254)];
    let spec = StreamListenerSpec { least_ttls: near, ..at("127.0.0.1:0") };
    let (tell, told) = mpsc::channel();
    let server = Server::start(spec, move |turn| {
        if let Event::Stream { event: StreamEvent::Accepted { peer, .. }, .. } = &turn.event {
            let peer = peer.ip().to_string();
            if peer == "127.0.0.9" {
                turn.exit(0);
            }
            tell.send(peer).unwrap();
        }
    });
    let from = |local: &str, ttl| {
        let options = StreamOptions { ttl: NonZeroU8::new(ttl), ..StreamOptions::default() };
        let local = Some(SocketAddr::new(local.parse().unwrap(), 0));
        StreamSpec { local, options, ..to(server.address) }
    };
    for (local, ttl) in [("127.0.2.1", 254), ("127.0.2.255", 64), ("127.0.3.1", 253)] {
        assert!(outcome(impatient(from(local, ttl))).is_err(), "{local} {ttl}");
    }
    let fit = [("127.0.2.1", 255), ("127.0.2.9", 64), ("127.0.3.1", 254), ("127.0.0.9", 1)];
    for (local, ttl) in fit {
        assert_eq!(outcome(from(local, ttl)), Ok(()), "{local} {ttl}");
    }
    assert_eq!(server.thread.join().unwrap(), 0);
    assert_eq!(told.iter().collect::<Vec<_>>(), fit.map(|(local, _)| local));
}

#[test]
fn over_ipv6_a_network_says_it_too() {
    let one = |length, least| PeerTtl {
        network: Ipv6Addr::LOCALHOST.into(),
        prefix_length: length,
        least: NonZeroU8::new(least).unwrap(),
    };
    for (near, ttl, fits) in [
        (vec![one(128, 255)], 254, false),
        (vec![one(128, 255)], 255, true),
        (vec![one(127, 255)], 254, false),
        (vec![one(127, 255), one(128, 1)], 64, true),
        (vec![one(0, 65)], 64, false),
    ] {
        let spec = StreamListenerSpec { least_ttls: near, ..at("[::1]:0") };
        let server = Server::start(spec, |turn| {
            if matches!(turn.event, Event::Stream { event: StreamEvent::Accepted { .. }, .. }) {
                turn.exit(0);
            }
        });
        let with = |ttl| StreamSpec {
            options: StreamOptions { ttl: NonZeroU8::new(ttl), ..StreamOptions::default() },
            ..to(server.address)
        };
        assert_eq!(outcome(if fits { with(ttl) } else { impatient(with(ttl)) }).is_ok(), fits);
        if !fits {
            assert_eq!(outcome(with(255)), Ok(()));
        }
        assert_eq!(server.thread.join().unwrap(), 0);
    }
}

#[test]
fn addresses_of_a_link_lead_over_that_link() {
    if !privileged() {
        return;
    }
    let (here, there) = (Namespace::new(), Namespace::new());
    for (ours, theirs) in [("one", "uno"), ("two", "due")] {
        here.connect(ours, &there, theirs);
        for (namespace, interface, last) in [(&here, ours, 1), (&there, theirs, 2)] {
            namespace.add_address6(&format!("fe80::{last}/64"), interface);
        }
    }
    for (interface, theirs) in [("one", "uno"), ("two", "due")] {
        let server = there.run(|| {
            Server::start(at("[::]:0"), move |turn| {
                let Event::Stream { event: StreamEvent::Accepted { local, peer, .. }, .. } =
                    &turn.event
                else {
                    return;
                };
                let (SocketAddr::V6(local), SocketAddr::V6(peer)) = (local, peer) else {
                    panic!("{local} {peer}")
                };
                let index = rustix::net::netdevice::name_to_index(
                    std::net::UdpSocket::bind("[::1]:0").unwrap(),
                    theirs,
                );
                assert_eq!((local.scope_id(), peer.scope_id()), (index.unwrap(), index.unwrap()));
                assert_eq!(*peer.ip(), "fe80::1".parse::<Ipv6Addr>().unwrap());
                turn.exit(0);
            })
        });
        let mut spec = to(SocketAddr::new("fe80::2".parse().unwrap(), server.address.port()));
        spec.local = Some("[fe80::1]:0".parse().unwrap());
        spec.options.interface = Some(interface.to_owned());
        assert_eq!(here.run(|| outcome(spec)), Ok(()));
        assert_eq!(server.thread.join().unwrap(), 0);
    }
}

/// BIRD, which is ended at the end.
struct Bird(Child);

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bird {
    fn start(directory: &Path, config: &str) -> Self {
        let (file, socket) = (directory.join("bird.conf"), directory.join("bird.ctl"));
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new("bird");
        command.arg("-f").arg("-c").arg(&file).arg("-s").arg(&socket);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// The marker with which each message of BGP begins. Reference: RFC 4271 §4.1.
const MARKER: [u8; 16] = [0xff; 16];

/// Exits when BGP comes in.
fn until_bgp(turn: &mut Turn<'_>) {
    if let Event::Messages { messages, .. } = &turn.event {
        assert!(messages[0].bytes().starts_with(&MARKER));
        turn.exit(0);
    }
}

#[test]
fn bird_accepts_and_makes_connections_that_are_signed_by_the_same_key() {
    if !privileged() {
        return;
    }
    if Command::new("bird").arg("--version").output().is_err() {
        return lacks("bird");
    }
    let config = |passive: &str| {
        format!(
            "router id 192.0.2.2; protocol device {{ }}
             protocol bgp {{ local 127.0.0.2 as 65002; neighbor 127.0.0.1 as 65001; multihop;
                 password \"geheim\"; passive {passive}; connect retry time 1; connect delay time 1;
                 strict bind yes; ipv4 {{ import all; export all; }}; }}"
        )
    };
    let near = StreamOptions { user_timeout: None, ..StreamOptions::default() };
    // BIRD accepts, and begins to speak.
    let namespace = Namespace::new();
    let status = namespace.run(|| {
        let directory = tempfile::tempdir().unwrap();
        let _bird = Bird::start(directory.path(), &config("on"));
        let spec = StreamSpec {
            local: Some("127.0.0.1:0".parse().unwrap()),
            key: Some(key("geheim")),
            options: near.clone(),
            ..to("127.0.0.2:179".parse().unwrap())
        };
        run_script(move |turn| match &turn.event {
            // It is being started, and takes no connection until it has learned its own address.
            Event::Closed { .. } | Event::Stream { event: StreamEvent::Failed { .. }, .. } => {
                *turn.deadline = Some(turn.now + Duration::from_millis(50));
            }
            Event::Start | Event::Tick => {
                *turn.deadline = None;
                turn.out.push(stream(OPENED, StreamRequest::Open(spec.clone())));
            }
            _ => until_bgp(turn),
        })
    });
    assert_eq!(status, 0);
    // BIRD connects.
    let namespace = Namespace::new();
    let status = namespace.run(|| {
        let directory = tempfile::tempdir().unwrap();
        let spec = StreamListenerSpec {
            keys: vec![peer_key("127.0.0.2", 32, "geheim")],
            ..at("127.0.0.1:179")
        };
        let mut bird: Option<Bird> = None;
        run_script(move |turn| match &turn.event {
            Event::Start => turn.out.push(stream(LISTENER, StreamRequest::Listen(spec.clone()))),
            Event::Stream { event: StreamEvent::Listening { .. }, .. } => {
                bird = Some(Bird::start(directory.path(), &config("off")));
            }
            Event::Stream { event: StreamEvent::Accepted { peer, .. }, .. } => {
                assert_eq!(peer.ip().to_string(), "127.0.0.2");
            }
            Event::Stream { event: StreamEvent::Failed { error }, .. } => panic!("{error}"),
            _ => {
                assert!(bird.is_some());
                until_bgp(turn);
            }
        })
    });
    assert_eq!(status, 0);
}
