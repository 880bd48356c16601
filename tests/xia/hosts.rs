//! Two Linux XIA hosts and one of 2014, as captured: what applications send leaves as the same bytes,
//! and what came in is delivered.
//!
//! Source: `tests/vectors/xia/README.md`.

use weft_base::{ChannelId, LinkAddress, Packet, PortId};
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{Action, Event};
use weft_wire::{MacAddr, UdpIpv4Repr};
use weft_xip::channel::{BindRequest, Response, emit_send};
use weft_xip::{Address, XipPacket};

use crate::driven::{Driven, sent, transmitted};
use crate::read::{Frame, pcap};

const TWO_HOSTS: &[u8] = include_bytes!("../vectors/xia/xia-two-hosts.pcap");
const U4ID_2014: &[u8] = include_bytes!("../vectors/xia/xia-u4id-2014.pcap");

const LINK: PortId = PortId(1);
const TUNNEL: PortId = PortId(2);
const APPLICATION: ChannelId = ChannelId(7);

const HID_A: &str = "hid-3abc8eadef8bc3e2c95bfb5b2f233c97fc629d69";
const HID_B: &str = "hid-c5e995fe39f9e37fad9437c1b481a33e710d9571";
const MAC_A: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 0x0a]);
const MAC_B: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 0x0b]);

/// A node with one interface and one tunnel.
fn host(mac: MacAddr, xia: &str) -> Driven {
    let xia = format!("interface eth0; {xia}");
    Driven::new(&xia, |spec| match spec {
        PortSpec::Ethernet { ethertype: 0xc0de, .. } => {
            (LINK, PortInfo { mac: mac.0, mtu: 1500, local: None })
        }
        PortSpec::Udp { local } => {
            (TUNNEL, PortInfo { mac: [0; 6], mtu: 1472, local: Some(*local) })
        }
        other => panic!("the node asks for {other}"),
    })
}

fn host_a() -> Driven {
    let domain = "11".repeat(20);
    let filter = "00".repeat(19) + "11";
    let xia = format!(
        "principal hid {{ nwp off; local {HID_A}; neighbour {HID_B} link {MAC_B} interface eth0; }}
         principal ad {{ route ad-{domain} via {HID_B}; }}
         principal zf {{ route zf-{filter} via {HID_B}; }}
         principal u4id {{ tunnel 10.99.0.1:13781; }}
         principal xdp;"
    );
    host(MAC_A, &xia)
}

fn host_b() -> Driven {
    let domain = "11".repeat(20);
    let filter = "00".repeat(19) + "11";
    let xia = format!(
        "principal hid {{ nwp off; local {HID_B}; neighbour {HID_A} link {MAC_A} interface eth0; }}
         principal ad {{ local ad-{domain}; }}
         principal zf {{ local zf-{filter}; }}
         principal u4id {{ tunnel 10.99.0.2:13781; }}
         principal xdp;"
    );
    host(MAC_B, &xia)
}

/// What a frame carries.
enum Content<'a> {
    /// XIP on Ethernet.
    Xip(&'a [u8]),
    /// XIP in a UDP datagram, and that datagram's headers.
    Tunnel(UdpIpv4Repr, &'a [u8]),
}

/// `None` for neighbour discovery and ARP. The checksums of UDP are unfinished in one capture, so
/// they are left out.
fn content(frame: &Frame) -> Option<Content<'_>> {
    match frame.ethertype() {
        0xc0de => Some(Content::Xip(frame.payload())),
        0x0800 => {
            let mut without_checksum = frame.payload().to_vec();
            without_checksum[26..28].fill(0);
            let (headers, payload) = UdpIpv4Repr::parse(&without_checksum).unwrap();
            let len = payload.len();
            Some(Content::Tunnel(headers, &frame.payload()[28..28 + len]))
        }
        _ => None,
    }
}

/// Binds an application to an address and sends a datagram; what leaves.
fn send(host: &mut Driven, xip: &[u8]) -> Vec<(PortId, Packet)> {
    let view = XipPacket::new_checked(xip).unwrap();
    bind(host, view.source().unwrap());
    let mut message = Packet::from_slice(view.payload());
    emit_send(view.hop_limit(), &view.destination(), &mut message);
    let messages = vec![message.into()];
    let out = transmitted(host.handle(Event::Messages { channel: APPLICATION, messages }));
    host.handle(Event::Closed { channel: APPLICATION });
    out
}

fn bind(host: &mut Driven, address: Address) {
    host.accept(APPLICATION);
    let messages = vec![BindRequest::Address(address).emit().into()];
    let answer = sent(host.handle(Event::Messages { channel: APPLICATION, messages }));
    assert_eq!(answer, [Response::Bound(address)]);
}

#[test]
fn what_linux_xia_hosts_send_is_sent_byte_for_byte() {
    let (mut a, mut b) = (host_a(), host_b());
    let mut frames = 0;
    for frame in pcap(TWO_HOSTS) {
        let Some(content) = content(&frame) else { continue };
        let sender = if frame.bytes[6..12] == MAC_A.0 { &mut a } else { &mut b };
        match content {
            Content::Xip(xip) => {
                let out = send(sender, xip);
                let [(LINK, packet)] = out.as_slice() else { panic!("{out:?}") };
                assert_eq!(packet.bytes(), frame.bytes, "frame {}", frame.number);
            }
            Content::Tunnel(headers, xip) => {
                let out = send(sender, xip);
                let [(TUNNEL, packet)] = out.as_slice() else { panic!("{out:?}") };
                assert_eq!(packet.bytes(), xip, "frame {}", frame.number);
                let to = LinkAddress::Udp(headers.destination.into());
                assert_eq!(packet.meta.link, to, "frame {}", frame.number);
            }
        }
        frames += 1;
    }
    assert_eq!(frames, 10, "five requests and five replies");
}

#[test]
fn what_linux_xia_hosts_receive_is_delivered() {
    let (mut a, mut b) = (host_a(), host_b());
    for frame in pcap(TWO_HOSTS) {
        let Some(content) = content(&frame) else { continue };
        let receiver = if frame.bytes[..6] == MAC_A.0 { &mut a } else { &mut b };
        let (port, bytes, xip) = match content {
            Content::Xip(xip) => (LINK, &frame.bytes[..], xip),
            Content::Tunnel(_, xip) => (TUNNEL, xip, xip),
        };
        let view = XipPacket::new_checked(xip).unwrap();
        bind(receiver, Address::simple(view.destination().final_xid()).unwrap());
        let actions: Vec<Action> = receiver.receive(port, bytes);
        receiver.handle(Event::Closed { channel: APPLICATION });
        match sent(actions).as_slice() {
            [Response::Datagram { source, payload }] => {
                assert_eq!(*source, view.source(), "frame {}", frame.number);
                assert_eq!(payload.bytes(), view.payload(), "frame {}", frame.number);
            }
            other => panic!("frame {}: {other:?}", frame.number),
        }
    }
}

#[test]
fn a_datagram_of_2014_comes_out_of_its_tunnel_as_it_did_then() {
    let frames = pcap(U4ID_2014);
    let Some(Content::Tunnel(headers, xip)) = content(&frames[1]) else { panic!("no datagram") };
    // The capture is from one machine: the next hop has the address of the router.
    let mac = MacAddr([0x08, 0, 0x27, 0x16, 0x3b, 0x1f]);
    let next = "hid-0d3ae8ed035d21f247d86151a9d7e2d638dd2b72";
    let mut router = host(
        mac,
        &format!(
            "principal hid {{ nwp off; neighbour {next} link {mac} interface eth0; }}
             principal u4id {{ local {}; }}",
            headers.destination
        ),
    );
    let out = router.forward(TUNNEL, xip);
    let [(LINK, packet)] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(packet.bytes(), frames[2].bytes);
}
