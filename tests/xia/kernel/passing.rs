//! What the kernel engine passes on reaches the AF_XDP socket of its port, whichever of the two was there first.

use std::time::Duration;

use weft_base::{Instant, Packet, PortId, Token};
use weft_port::testing::{Namespace, privileged, send_all};
use weft_port::{Options, Port, PortSpec};
use weft_runtime::{
    Action, Component, EngineMode, EngineReply, EngineRequest, Event, XdpMode, real,
};
use weft_xia_kernel::{NAME, TableSizes, engine};
use weft_xip::numbers::ETHERTYPE_XIP;

const TOKEN: Token = Token(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn interface() -> String {
    "west".to_owned()
}

/// A frame that is no XIP packet, with a number.
fn frame(number: u8) -> Packet {
    let mut packet = Packet::from_slice(&[0xff; 6]);
    packet.extend(&[2, 0, 0, 0, 0, 7]);
    packet.extend(&ETHERTYPE_XIP.to_be_bytes());
    packet.extend(&[number; 46]);
    packet
}

/// Changes what brings packets to its port, and expects a frame from the peer after each change.
struct Script {
    peer: Box<dyn Port>,
    number: u8,
    port: Option<PortId>,
    /// When to give up.
    until: Option<Instant>,
}

impl Script {
    fn send(&mut self) {
        self.number += 1;
        send_all([frame(self.number)], &mut *self.peer);
    }

    fn attach() -> Action {
        let (engine, interface, mac) = (NAME.to_owned(), interface(), [2, 0, 0, 0, 0, 1]);
        let mode = EngineMode::Generic;
        let request = EngineRequest::Attach { engine, interface, mac, mtu: 1500, mode };
        Action::Engine { token: TOKEN, request }
    }

    fn open() -> Action {
        let spec = PortSpec::Xdp { interface: interface(), ethertype: ETHERTYPE_XIP };
        Action::OpenPort { token: TOKEN, spec }
    }
}

impl Component for Script {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => {
                self.until = Some(now + PATIENCE);
                out.push(Self::open());
            }
            Event::PortOpened { port, .. } => {
                self.port = Some(port);
                self.send();
            }
            Event::EngineAnswered { result, .. } => match result.unwrap() {
                EngineReply::Opened { .. } => out.push(Self::attach()),
                EngineReply::Attached { .. } if self.port.is_none() => out.push(Self::open()),
                _ => self.send(),
            },
            Event::Packets { packets, .. } => {
                assert_eq!(packets.len(), 1);
                assert_eq!(packets[0].bytes(), frame(self.number).bytes());
                let engine = NAME.to_owned();
                match self.number {
                    // The port came first.
                    1 => {
                        let request = EngineRequest::Open { engine, most: Vec::new() };
                        out.push(Action::Engine { token: TOKEN, request });
                    }
                    // The port is alone again.
                    2 | 4 => {
                        let request = EngineRequest::Detach { engine, interface: interface() };
                        out.push(Action::Engine { token: TOKEN, request });
                    }
                    // The engine comes first.
                    3 => {
                        let port = self.port.take().unwrap();
                        out.extend([Action::ClosePort { port }, Self::attach()]);
                    }
                    _ => out.push(Action::Exit { status: 0 }),
                }
            }
            Event::Tick => assert!(self.until > Some(now), "frame {} does not come", self.number),
            Event::Slice => {}
            other => panic!("{other:?}"),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.until
    }
}

#[test]
fn a_port_of_af_xdp_gets_what_the_engine_passes_and_the_network_stack_gets_nothing() {
    if !privileged() {
        return;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    left.connect("west", &right, "east");
    let port = |namespace: &Namespace, interface: &str| {
        let spec = PortSpec::Ethernet { interface: interface.to_owned(), ethertype: ETHERTYPE_XIP };
        namespace.run(|| weft_port::open(&spec, &Options::default())).unwrap()
    };
    let (peer, mut recorder) = (port(&right, "east"), port(&left, "west"));
    let script = Script { peer, number: 0, port: None, until: None };
    let engines = vec![engine(&TableSizes::default())];
    let options = real::Options { signals: false, engines, ..real::Options::default() };
    assert_eq!(left.run(move || real::run(Box::new(script), options)), 0);
    let mut recorded = Vec::new();
    recorder.receive(&mut recorded, 64).unwrap();
    assert!(recorded.is_empty(), "the network stack has seen {recorded:?}");
}

/// Has an engine opened, attached and detached in another way each time.
struct Modes {
    /// How far it has come.
    step: usize,
}

impl Modes {
    fn ask(&mut self, out: &mut Vec<Action>) {
        let engine = NAME.to_owned();
        let detach = || EngineRequest::Detach { engine: NAME.to_owned(), interface: interface() };
        let attach = |mode| EngineRequest::Attach {
            engine: NAME.to_owned(),
            interface: interface(),
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
            mode,
        };
        let open = |most: &[u32]| EngineRequest::Open { engine, most: most.to_vec() };
        let request = match self.step {
            0 | 9 => detach(),
            1 => open(&[0]),
            2 => open(&[1 << 31; 4]),
            3 | 7 => open(&[100, 200]),
            4 | 6 => attach(EngineMode::Generic),
            5 => attach(EngineMode::Driver),
            8 => open(&[100, 300]),
            10 => attach(EngineMode::Generic),
            _ => return out.push(Action::Exit { status: 0 }),
        };
        out.push(Action::Engine { token: TOKEN, request });
    }

    fn check(&self, result: Result<EngineReply, String>) {
        match (self.step, result) {
            (0 | 9, Ok(EngineReply::Done { release })) => assert!(release.is_empty()),
            (1, Err(error)) => assert!(error.contains("no room"), "{error}"),
            (2, Err(error)) => assert!(error.contains("at most"), "{error}"),
            (3, Ok(EngineReply::Opened { keep, release, .. })) => {
                assert!(!keep.is_empty() && release.is_empty());
            }
            (7, Ok(EngineReply::Opened { keep, release, .. })) => {
                assert!(keep.is_empty() && release.is_empty(), "they are as large");
            }
            (8, Ok(EngineReply::Opened { keep, release, .. })) => {
                assert!(!keep.is_empty());
                assert!(release.iter().any(|name| name == "p1-link"), "{release:?}");
                assert!(release.iter().any(|name| name == "t0"), "{release:?}");
            }
            (4, Ok(EngineReply::Attached { mode, release, .. })) => {
                assert_eq!((mode, release.len()), (XdpMode::Generic, 0));
            }
            // What is there may not stay as it is, and is no longer kept.
            (5, Ok(EngineReply::Attached { mode, release, .. })) => {
                assert_eq!((mode, release.len()), (XdpMode::Driver, 3));
            }
            (6, Ok(EngineReply::Attached { mode, release, .. })) => {
                assert_eq!((mode, release.len()), (XdpMode::Generic, 3));
            }
            (10, Ok(EngineReply::Attached { mode, .. })) => assert_eq!(mode, XdpMode::Generic),
            (step, other) => panic!("step {step}: {other:?}"),
        }
    }
}

impl Component for Modes {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, _: Instant, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => self.ask(out),
            Event::EngineAnswered { result, .. } => {
                self.check(result);
                self.step += 1;
                self.ask(out);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn an_engine_is_made_anew_for_other_tables_and_moves_where_it_shall_run() {
    if !privileged() {
        return;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    left.connect("west", &right, "east");
    let engines = vec![engine(&TableSizes::default())];
    let options = real::Options { signals: false, engines, ..real::Options::default() };
    assert_eq!(left.run(move || real::run(Box::new(Modes { step: 0 }), options)), 0);
}
