//! Tables that change while packets come: the routing cache never holds what they would not give.
//!
//! Input: operations of three bytes each, what to do and with which names. After each the cache is audited: every
//! decision is worked out again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_base::{Instant, LinkAddress, Packet, PortId, Random};
use weft_port::PortInfo;
use weft_xia_ad::Ad;
use weft_xia_hid::Hid;
use weft_xia_lpm::Lpm;
use weft_xia_xdp::Xdp;
use weft_xip::forward::{Egress, Forwarder, Framing, Limits, Verdicts};
use weft_xip::offload::OffloadRoom;
use weft_xip::principal::{Input, Principal, SocketId};
use weft_xip::{Address, Edge, Row, Xid, XidType, XipRepr};

const PORT: PortId = PortId(1);
/// Small enough that entries are evicted.
const CACHE: usize = 8_000;
const KINDS: [XidType; 4] = [XidType::AD, XidType::HID, XidType::LPM, XidType::XDP];

fuzz_target!(|input: &[u8]| {
    let mut forwarder = forwarder();
    for operation in input.as_chunks::<3>().0.iter().take(200) {
        carry_out(&mut forwarder, *operation);
        let wrong = forwarder.audit_cache();
        assert!(wrong.is_empty(), "after {operation:?}: {wrong:?}");
        let size = forwarder.cache_size();
        assert!(size.bytes + size.spare <= size.limit, "{size:?}");
    }
});

fn forwarder() -> Forwarder {
    let limits = Limits { cache: CACHE, redirects: 3, ..Limits::default() };
    let mut forwarder = Forwarder::new(limits, Random::from_seed(1));
    forwarder.add_port(PORT, Egress { framing: Framing::Ethernet { mac: [2; 6] }, mtu: 1500 });
    for kind in KINDS {
        forwarder.add_principal(principal(kind));
    }
    forwarder.set_offloading(Some(OffloadRoom { decisions: [3; 4], hops: 2 }));
    forwarder
}

fn principal(kind: XidType) -> Box<dyn Principal> {
    match kind {
        XidType::AD => Box::new(Ad::new(Random::from_seed(1))),
        XidType::HID => {
            let mut hid = Hid::new(Random::from_seed(1));
            let info = PortInfo { mac: [2; 6], mtu: 1500, local: None };
            let up = Input::InterfaceUp { name: "a".to_owned(), port: PORT, info };
            hid.handle(Instant::ZERO, up, &mut Vec::new());
            Box::new(hid)
        }
        XidType::LPM => Box::new(Lpm::new(Random::from_seed(1))),
        _ => Box::new(Xdp::new(Random::from_seed(1))),
    }
}

/// One of a few names, of which some are prefixes of others' bits.
fn name(byte: u8) -> Xid {
    let mut id = [0; 20];
    id[0] = byte >> 2 & 0x7;
    id[19] = byte >> 5;
    Xid::new(KINDS[usize::from(byte & 3)], id)
}

fn carry_out(forwarder: &mut Forwarder, [what, first, second]: [u8; 3]) {
    let (xid, other) = (name(first), name(second));
    match what % 8 {
        0 | 1 => route(forwarder, &[xid, other][..usize::from(what % 8) + 1]),
        2 => route(forwarder, &[xid, other, name(what)]),
        3 => {
            let gateways = [other, name(second.rotate_left(3)), name(what), name(!second)];
            let some = &gateways[..1 + usize::from(what >> 3 & 3)];
            match what >> 5 & 1 {
                0 => state(forwarder, true, &route_statement(xid, some)),
                _ => learn(forwarder, xid, some),
            }
        }
        4 => match what >> 5 & 1 {
            0 => state(forwarder, false, &route_statement(xid, &[])),
            _ => learn(forwarder, xid, &[]),
        },
        5 => state(forwarder, what & 8 == 0, &statement(xid, second)),
        6 => match forwarder.remove_principal(xid.kind) {
            Some(_) => {}
            None => drop(forwarder.add_principal(principal(xid.kind))),
        },
        _ => {
            forwarder.drain_offloads(usize::MAX, &mut Vec::new());
            if let Some(mut sockets) = forwarder.principal_mut(XidType::XDP) {
                let xdp = Xid::new(XidType::XDP, xid.id);
                if sockets.bind(xdp, SocketId(second.into())).is_err() {
                    sockets.unbind(&xdp);
                }
            }
        }
    }
}

/// What a routing protocol has found of a name and the one beside it, at once.
fn learn(forwarder: &mut Forwarder, xid: Xid, via: &[Xid]) {
    let Some(mut principal) = forwarder.principal_mut(xid.kind) else { return };
    let mut beside = xid;
    beside.id[19] ^= 1;
    principal.learn_all(&[(xid, via), (beside, via)]);
}

/// A route of a name, or, without gateways, whatever route it has; with its principal.
fn route_statement(xid: Xid, via: &[Xid]) -> (XidType, String) {
    let mut line = format!("route {xid}");
    for (index, via) in via.iter().enumerate() {
        line += &format!("{}{via}", if index == 0 { " via " } else { " " });
    }
    (xid.kind, line)
}

/// What can be stated about a name, with its principal.
fn statement(xid: Xid, byte: u8) -> (XidType, String) {
    let line = match xid.kind {
        XidType::HID if byte & 1 == 0 => {
            format!("neighbour {xid} link 02:00:00:00:01:{byte:02x} interface a")
        }
        XidType::LPM => format!("local {}.0.0.0/{}", xid.id[0], byte % 33),
        _ => format!("local {xid}"),
    };
    (xid.kind, line)
}

fn state(forwarder: &mut Forwarder, set: bool, (kind, line): &(XidType, String)) {
    let Some(mut principal) = forwarder.principal_mut(*kind) else { return };
    let words: Vec<_> = line.split(' ').collect();
    // What is there already, or is not, is refused.
    let _ = match set {
        true => principal.set(Instant::ZERO, &words, &mut Vec::new()),
        false => principal.delete(Instant::ZERO, &words, &mut Vec::new()),
    };
}

/// Routes a packet whose entry node has edges to these names, twice.
fn route(forwarder: &mut Forwarder, targets: &[Xid]) {
    let mut rows: Vec<_> =
        targets.iter().map(|xid| Row { xid: *xid, edges: [Edge::EMPTY; 4] }).collect();
    let last = rows.len() - 1;
    for (edge, target) in rows[last].edges.iter_mut().zip(0..targets.len() as u8) {
        *edge = Edge::to(target);
    }
    let Ok(address) = Address::from_rows(&rows) else { return };
    let header = XipRepr::new(address, None, 0);
    let mut bytes = vec![0; header.buffer_len()];
    header.emit(&mut bytes).expect("it has room");
    for _ in 0..2 {
        let mut packet = Packet::from_slice(&bytes);
        packet.meta.port = PORT;
        packet.meta.link = LinkAddress::None;
        forwarder.route(Instant::ZERO, packet, &mut Verdicts::new());
    }
}
