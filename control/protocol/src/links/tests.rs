//! Links come and go with their interfaces, and a port with each.

use weft_xrl::{Binary, Calls, Decoder, Encoded, Method, Reply, XrlError, fea};

use super::*;
use crate::testing;

const NOW: Instant = Instant::ZERO;

fn interface(index: u32, name: &str, addresses: &[&str]) -> Interface {
    testing::interface(index, name, true, addresses)
}

/// The links of a protocol, and the calls that the FEA was asked and has not answered.
struct World {
    links: Links,
    calls: Vec<(u64, fea::Call)>,
}

impl World {
    fn new(group: &str) -> Self {
        let mut world = Self { links: Links::new(1, group.parse().unwrap()), calls: Vec::new() };
        world.hear(Input::Born { class: "fea".to_owned(), instance: "fea".to_owned() });
        world
    }

    /// What the links say beside their calls.
    fn take(&mut self, out: Vec<Output>) -> Vec<Output> {
        let mut others = Vec::new();
        for output in out {
            match output {
                Output::Call(call) => {
                    let Method::Known(_, method) = call.method else { panic!("by text") };
                    let Encoded { args, handles } = call.arguments;
                    let call_of =
                        fea::Call::decode(method, &mut Decoder::new(args.bytes(), handles));
                    self.calls.push((call.token, call_of.unwrap()));
                }
                other => others.push(other),
            }
        }
        others
    }

    fn hear(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        self.links.hear(NOW, input, &mut out);
        self.take(out)
    }

    fn want(&mut self, names: &[&str]) {
        let mut out = Vec::new();
        self.links.want(names.iter().map(ToString::to_string), &mut out);
        assert!(self.take(out).is_empty());
    }

    fn see(&mut self, interface: Interface) {
        let change = InterfaceChange::Changed(interface);
        assert!(self.hear(Input::World(Event::Interface { change })).is_empty());
    }

    /// What the FEA is asked and has not answered, in words.
    fn asked(&self) -> Vec<String> {
        let word = |call: &fea::Call| match call {
            fea::Call::OpenRelay(fea::OpenRelay { spec }) => format!("open {spec}"),
            fea::Call::CloseRelay(fea::CloseRelay { relay }) => format!("close {relay}"),
            fea::Call::ReceivePackets(one) => format!("receive {}", one.relay),
            fea::Call::SendPackets(one) => format!("send {}", one.relay),
            other => format!("{other:?}"),
        };
        self.calls.iter().map(|(_, call)| word(call)).collect()
    }

    /// Answers the oldest call.
    fn answer(&mut self, result: Result<Encoded, XrlError>) -> Vec<Output> {
        let (token, _) = self.calls.remove(0);
        self.hear(Input::Replied { token, result: result.map(Reply::Arguments) })
    }

    /// The names of the links that are there.
    fn there(&self) -> Vec<&str> {
        self.links.iter().map(|(_, link)| &*link.name).collect()
    }
}

fn opened(relay: u32, mtu: u32) -> Result<Encoded, XrlError> {
    let mac = weft_xrl::Mac([0; 6]);
    Ok(Encoded::new(fea::OpenRelayReply { relay, mac, mtu, local: None }))
}

const GROUP: &str = "224.0.0.9:520";
const OPEN: &str = "open group:eth0:224.0.0.9:520";

#[test]
fn a_link_is_there_while_its_interface_can_be_spoken_on() {
    let mut world = World::new(GROUP);
    world.see(interface(7, "eth0", &["10.0.0.1/24", "2001:db8::1/64"]));
    world.see(interface(8, "eth1", &["10.0.1.1/24"]));
    assert_eq!((world.there(), world.links.name(8)), (vec![], Some("eth1")), "nobody wants it");
    world.want(&["eth0", "eth2"]);
    assert_eq!((world.there(), world.asked()), (vec!["eth0"], vec![OPEN.to_owned()]));
    assert_eq!(world.links.take_news(), [LinkNews::There(7)]);
    world.answer(opened(3, 1472));
    assert_eq!(world.links.take_news(), [LinkNews::Opened(7)]);
    let addresses = vec!["10.0.0.1/24".parse().unwrap()];
    let link = Link { name: "eth0".to_owned(), addresses, mtu: Some(1472) };
    assert_eq!(world.links.get(7), Some(&link));

    // Another address of IPv4 is news, one of IPv6 is none; the port stays.
    world.see(interface(7, "eth0", &["10.0.0.1/24"]));
    assert_eq!(world.links.take_news(), []);
    world.see(interface(7, "eth0", &["10.0.0.1/24", "10.9.0.1/16"]));
    assert_eq!(world.links.take_news(), [LinkNews::There(7)]);
    assert_eq!(
        (world.links.get(7).unwrap().mtu, world.asked()),
        (Some(1472), vec!["receive 3".to_owned()])
    );

    // Each of these takes it away.
    let renamed = interface(7, "eth9", &["10.0.0.1/24"]);
    let still = Interface { running: false, ..interface(7, "eth0", &["10.0.0.1/24"]) };
    let without = interface(7, "eth0", &["2001:db8::1/64"]);
    for (number, other) in [renamed, still, without].into_iter().enumerate() {
        world.see(other);
        assert_eq!(world.links.take_news(), [LinkNews::Gone(7)]);
        assert!(world.there().is_empty());
        world.see(interface(7, "eth0", &["10.0.0.1/24"]));
        assert_eq!(world.links.take_news(), [LinkNews::There(7)]);
        let calls = world.asked();
        assert_eq!(calls[calls.len() - 2..], [format!("close {}", 3 + number), OPEN.to_owned()]);
        world.calls.drain(..calls.len() - 1);
        world.answer(opened(4 + number as u32, 1472));
        assert_eq!(world.links.take_news(), [LinkNews::Opened(7)]);
    }
    world.want(&["eth1"]);
    assert_eq!(world.links.take_news(), [LinkNews::Gone(7), LinkNews::There(8)]);
}

#[test]
fn of_version_6_it_is_spoken_from_link_local_addresses() {
    let mut world = World::new("[ff02::9]:521");
    world.want(&["eth0"]);
    world.see(interface(7, "eth0", &["10.0.0.1/24", "2001:db8::1/64"]));
    assert!(world.there().is_empty());
    world.see(interface(7, "eth0", &["2001:db8::1/64", "fe80::1/64"]));
    assert_eq!(world.asked(), ["open group:eth0:[ff02::9]:521"]);
    assert_eq!(world.links.get(7).unwrap().addresses.len(), 2);
}

#[test]
fn a_port_that_is_lost_is_said_and_opened_again() {
    let mut world = World::new(GROUP);
    world.want(&["eth0"]);
    world.see(interface(7, "eth0", &["10.0.0.1/24"]));
    world.answer(opened(3, 1472));
    world.links.take_news();
    let said = world.answer(Err(XrlError::failed("the socket is gone")));
    let [Output::World(Action::Report { line, .. })] = &said[..] else { panic!("{said:?}") };
    assert_eq!(line, "eth0: the socket is gone; it will be tried again");
    assert_eq!(world.links.take_news(), [LinkNews::Closed(7)]);
    assert_eq!(world.links.get(7).unwrap().mtu, None);
    let again = world.links.deadline().unwrap();
    let mut out = Vec::new();
    world.links.hear(again, Input::World(Event::Tick), &mut out);
    world.take(out);
    assert_eq!(world.asked(), [OPEN]);
    world.answer(opened(4, 1472));

    // What comes in is handed on with its link.
    let packet = fea::Packet { bytes: Binary(vec![1, 2]), peer: "10.0.0.2:520".to_owned() };
    let reply = fea::ReceivePacketsReply { packets: vec![packet], dropped: 0 };
    world.answer(Ok(Encoded::new(reply)));
    let from = "10.0.0.2:520".parse().unwrap();
    let bytes = vec![1, 2];
    let news = [LinkNews::Opened(7), LinkNews::Packet { link: 7, from, bytes }];
    assert_eq!(world.links.take_news(), news);
    // A FEA that is gone says nothing; the next one is asked for the same.
    let (class, instance) = ("fea".to_owned(), "fea".to_owned());
    world.hear(Input::Died { class: class.clone(), instance: instance.clone() });
    assert_eq!(world.links.take_news(), [LinkNews::Closed(7)]);
    world.calls.clear();
    world.hear(Input::Born { class, instance });
    assert_eq!(world.asked(), [OPEN]);
}
