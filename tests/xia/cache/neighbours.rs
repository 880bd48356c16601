//! Hosts on the router's links that speak NWP: the router learns of them, asks whether they are still there, and
//! forgets them in time, of its own accord.

use weft_base::{Instant, Packet, PortId, Random, Token};
use weft_keys::PrivateKey;
use weft_port::{PortInfo, PortSpec};
use weft_wire::{EthernetFrame, MacAddr};
use weft_xip::node::Registry;
use weft_xip::numbers::{ETHERTYPE_NWP, ETHERTYPE_NWP2};
use weft_xip::principal::{Input, Output, Principal};
use weft_xip::{Xid, XidType};

use super::world::{INTERFACES, MTU};

/// Where frames go: an interface of the router, and what they carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) interface: String,
    ethertype: u16,
}

impl Link {
    /// That of a port, if it carries NWP.
    pub(super) fn of(spec: &PortSpec) -> Option<Self> {
        let PortSpec::Ethernet { interface, ethertype } = spec else { return None };
        let link = Self { interface: interface.clone(), ethertype: *ethertype };
        [ETHERTYPE_NWP, ETHERTYPE_NWP2].contains(ethertype).then_some(link)
    }
}

/// A frame on its way.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) link: Link,
    /// The number of the host that has sent it; else it is the router.
    pub(super) sender: Option<usize>,
    pub(super) packet: Packet,
}

impl Frame {
    /// Whether it is for this hardware address.
    pub(super) fn is_for(&self, mac: [u8; 6]) -> bool {
        let frame = EthernetFrame::new_checked(self.packet.bytes()).unwrap();
        frame.destination().is_broadcast() || frame.destination() == MacAddr(mac)
    }
}

/// A host with one interface.
struct Host {
    link: Link,
    mac: [u8; 6],
    name: &'static str,
    key: Option<PrivateKey>,
    xid: Xid,
    principal: Box<dyn Principal>,
    /// It is not there, and nobody was told.
    is_silent: bool,
}

/// The hosts' ports have a number, too.
const PORT: PortId = PortId(1);

pub(super) struct Hosts(Vec<Host>);

impl Hosts {
    /// One without a key, as those of Linux XIA; one with a key; and one of the second version.
    pub(super) fn new(registry: &Registry, random: &Random) -> Self {
        let key = |seed| PrivateKey::from_seed([seed; 32]);
        let hash = |key: &PrivateKey| key.public_key().hash().to_bytes();
        let host = |number: u8, interface: usize, name, ethertype, xid, key| Host {
            link: Link { interface: INTERFACES[interface].0.to_owned(), ethertype },
            mac: [2, 0, 0, 0, 1, number],
            name,
            key,
            xid,
            principal: registry.make(name, &random.fork("hosts")).unwrap(),
            is_silent: false,
        };
        let plain = Xid::new(XidType::HID, [3; 20]);
        let keyed = Xid::new(XidType::HID, hash(&key(1)));
        let second = Xid::new(XidType::HID2, hash(&key(2)));
        Self(vec![
            host(0, 0, "hid", ETHERTYPE_NWP, plain, None),
            host(1, 1, "hid", ETHERTYPE_NWP, keyed, Some(key(1))),
            host(2, 0, "hid2", ETHERTYPE_NWP2, second, Some(key(2))),
        ])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The XIDs that they have, of a type.
    pub(super) fn xids(&self, kind: XidType) -> impl Iterator<Item = Xid> + '_ {
        self.0.iter().map(|host| host.xid).filter(move |xid| xid.kind == kind)
    }

    /// Whether one of them has this hardware address.
    pub(super) fn are_at(&self, mac: [u8; 6]) -> bool {
        self.0.iter().any(|host| host.mac == mac)
    }

    /// A host ends, and says so.
    pub(super) fn end(&mut self, at: usize) -> Vec<Frame> {
        let mut out = Vec::new();
        self.0[at].principal.stop(&mut out);
        self.frames(at, out)
    }

    /// A host begins anew, whether it has ended or was killed, and knows nothing; what it says.
    pub(super) fn begin(
        &mut self,
        at: usize,
        now: Instant,
        registry: &Registry,
        random: &Random,
    ) -> Vec<Frame> {
        let host = &mut self.0[at];
        let mut out = Vec::new();
        host.principal = registry.make(host.name, random).unwrap();
        if let Some(key) = &host.key {
            host.principal.take_key(key);
        }
        let local = host.xid.to_string();
        // The second version has named itself by its key.
        if !host.principal.locals().contains(&host.xid) {
            host.principal.set(now, &["local", &local], &mut out).unwrap();
        }
        let info = PortInfo { mac: host.mac, mtu: MTU, local: None };
        let name = host.link.interface.clone();
        let up = Input::InterfaceUp { name, port: PORT, info };
        host.principal.handle(now, up, &mut out);
        let asked = out.iter().find_map(|output| match output {
            Output::OpenPort { token, .. } => Some(*token),
            _ => None,
        });
        let token = asked.unwrap_or(Token(0));
        host.principal.handle(now, Input::PortOpened { token, port: PORT, info }, &mut out);
        self.frames(at, out)
    }

    /// A host is not there any more, without a word, or is there again.
    pub(super) fn switch(&mut self, at: usize) {
        self.0[at].is_silent = !self.0[at].is_silent;
    }

    /// Time has passed; what they say.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<Frame> {
        let due = |host: &Host| host.principal.deadline().is_some_and(|due| due <= now);
        let due: Vec<_> = (0..self.len()).filter(|at| due(&self.0[*at])).collect();
        due.into_iter().flat_map(|at| self.told(at, now, Input::Tick)).collect()
    }

    /// A frame comes to those that it is for; what they say.
    pub(super) fn hear(&mut self, now: Instant, frame: &Frame) -> Vec<Frame> {
        let hears = |at: usize, host: &Host| {
            host.link == frame.link && frame.sender != Some(at) && frame.is_for(host.mac)
        };
        let hears = |at: &usize| hears(*at, &self.0[*at]) && !self.0[*at].is_silent;
        let hearing: Vec<_> = (0..self.len()).filter(hears).collect();
        let packet = || Packet::from_slice(frame.packet.bytes());
        let input = || Input::Packets { port: PORT, packets: vec![packet()] };
        hearing.into_iter().flat_map(|at| self.told(at, now, input())).collect()
    }

    fn told(&mut self, at: usize, now: Instant, input: Input) -> Vec<Frame> {
        let mut out = Vec::new();
        self.0[at].principal.handle(now, input, &mut out);
        self.frames(at, out)
    }

    fn frames(&self, at: usize, out: Vec<Output>) -> Vec<Frame> {
        let host = &self.0[at];
        let frame = |packet| Frame { link: host.link.clone(), sender: Some(at), packet };
        let sent = out.into_iter().filter_map(|output| match output {
            Output::Transmit { packet, .. } if !host.is_silent => Some(frame(packet)),
            _ => None,
        });
        sent.collect()
    }
}
