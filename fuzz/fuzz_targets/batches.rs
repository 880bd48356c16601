//! Batches: packets of any bytes fare together as they do one after the other.
//!
//! Input: packets, each behind its length (a byte). They are routed twice, the second time with what the cache has learned.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_base::{Instant, Packet, PortId, Random};
use weft_xia_ad::Ad;
use weft_xia_xdp::Xdp;
use weft_xip::forward::{Egress, Forwarder, Framing, Limits, Verdicts};
use weft_xip::principal::{Principal, SocketId};
use weft_xip::{Xid, XidType};

const PORT: PortId = PortId(1);
/// More than three groups of a batch.
const MOST: usize = 80;

fuzz_target!(|input: &[u8]| {
    let mut packets = packets(input);
    let (mut alone, mut together) = (forwarder(), forwarder());
    for _ in 0..2 {
        let (mut expected, mut verdicts) = (Verdicts::new(), Verdicts::new());
        for packet in &packets {
            alone.route(Instant::ZERO, packet.duplicate(), &mut expected);
        }
        let mut batch: Vec<_> = packets.iter().map(Packet::duplicate).collect();
        together.route_batch(Instant::ZERO, &mut batch, &mut verdicts);
        assert_eq!(verdicts, expected);
        let told = |of: &Forwarder| {
            let drops: Vec<_> = of.drops().nonzero().collect();
            (drops, of.activity().nonzero().collect::<Vec<_>>())
        };
        assert_eq!(told(&together), told(&alone));
        assert_eq!(together.audit_cache(), []);
        packets.reverse();
    }
});

fn packets(input: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut rest = input;
    while let Some((len, behind)) = rest.split_first()
        && packets.len() < MOST
    {
        let (bytes, behind) = behind.split_at(behind.len().min((*len).into()));
        let mut packet = Packet::from_slice(bytes);
        packet.meta.port = if len % 8 == 7 { PortId::NONE } else { PORT };
        packets.push(packet);
        rest = behind;
    }
    packets
}

/// A router with routes to domains 0 to 3, named by their first byte, two of which are it itself, and a socket.
fn forwarder() -> Forwarder {
    let mut forwarder = Forwarder::new(Limits::default(), Random::from_seed(1));
    forwarder.add_port(PORT, Egress { framing: Framing::Ethernet { mac: [2; 6] }, mtu: 150 });
    let mut domains = Ad::new(Random::from_seed(1));
    let name = |kind: XidType, first: u8| {
        let mut id = [0; 20];
        id[0] = first;
        Xid::new(kind, id)
    };
    let ad = |first| name(XidType::AD, first);
    let statements = [
        format!("local {}", ad(0)),
        format!("local {}", ad(1)),
        format!("route {} via {}", ad(2), ad(0)),
        format!("route {} via {}", ad(3), ad(4)),
    ];
    for statement in statements {
        let words: Vec<_> = statement.split(' ').collect();
        domains.set(Instant::ZERO, &words, &mut Vec::new()).expect("it is one");
    }
    let mut sockets = Xdp::new(Random::from_seed(1));
    sockets.bind(name(XidType::XDP, 0), SocketId(1)).expect("it is free");
    for principal in [Box::new(domains) as Box<dyn Principal>, Box::new(sockets)] {
        forwarder.add_principal(principal);
    }
    forwarder
}
