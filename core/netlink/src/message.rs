//! The bytes of rtnetlink messages: reading what matters here, and leaving alone what does not.
//!
//! Kernels add attributes all the time, and change what is in them; so only the few that are needed are
//! looked at. Requests are written by `netlink-packet-route`.
//!
//! Reference: RFC 3549 §2.2, §3.1; linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/netlink.h.

use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NetlinkPayload, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;

use crate::InterfaceAddress;
use crate::ip_message::{self, Neighbour, RouteMessage, Rule};
use crate::programs::{Classifier, TCA_BPF_ID, TCA_BPF_NAME, XdpMode, XdpProgram};

/// Flag of an answer: what was told so far does not fit together, as something changed meanwhile
/// (`NLM_F_DUMP_INTR`).
const INTERRUPTED: u16 = 0x10;
/// Flag of an error: attributes follow (`NLM_F_ACK_TLVS`).
const HAS_ATTRIBUTES: u16 = 0x200;
/// Flag of an error: the request is not repeated in it (`NLM_F_CAPPED`).
const CAPPED: u16 = 0x100;
/// Attribute of an error: the kernel's words (`NLMSGERR_ATTR_MSG`).
const ERROR_TEXT: u16 = 1;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct tcmsg`.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
/// The kind of an attribute without its flags (`NLA_TYPE_MASK`).
const KIND_MASK: u16 = 0x3fff;

/// One message, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) sequence: u32,
    /// The dump that it belongs to is not consistent.
    pub(crate) interrupted: bool,
    pub(crate) body: Body,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Link(Link),
    LinkGone {
        index: u32,
    },
    /// An address that can be used, or (false) one that cannot, any more or yet.
    Address {
        index: u32,
        address: InterfaceAddress,
        usable: bool,
    },
    /// A classifier of traffic control.
    Classifier(Classifier),
    /// A route of IP.
    Route(RouteMessage),
    /// A rule of policy of IP, which is there, or came or went.
    Rule(Rule),
    /// A neighbour of IP.
    Neighbour(Neighbour),
    /// The end of a dump.
    Done,
    /// The answer to a request: zero or the number of an error, and the kernel's words about it.
    Answer {
        errno: i32,
        text: Option<String>,
    },
    /// The kernel had to drop messages.
    Overrun,
    Other,
}

/// An interface without its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) mtu: u32,
    pub(crate) up: bool,
    pub(crate) running: bool,
    pub(crate) master: Option<u32>,
    pub(crate) xdp: Vec<XdpProgram>,
}

/// A request for everything of a kind.
pub(crate) fn dump(message: RouteNetlinkMessage, sequence: u32) -> Vec<u8> {
    request(message, NLM_F_DUMP, sequence)
}

/// A request with these flags.
pub(crate) fn request(message: RouteNetlinkMessage, flags: u16, sequence: u32) -> Vec<u8> {
    let mut message = NetlinkMessage::from(message);
    message.header.flags = NLM_F_REQUEST | flags;
    message.header.sequence_number = sequence;
    debug_assert!(matches!(message.payload, NetlinkPayload::InnerMessage(_)));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// What stands in front of each message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
}

impl Header {
    /// The dump that the message belongs to is not consistent.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.flags & INTERRUPTED != 0
    }
}

/// Cuts a datagram into messages, up to the first that is malformed.
pub(crate) fn each(datagram: &[u8], mut take: impl FnMut(Header, &[u8])) {
    let mut rest = datagram;
    // Asked behind the last message, `new_checked` would format an error that nobody reads.
    while rest.len() >= HEADER
        && let Ok(message) = NetlinkBuffer::new_checked(rest)
    {
        let len = message.length() as usize;
        let header = Header {
            kind: message.message_type(),
            flags: message.flags(),
            sequence: message.sequence_number(),
        };
        take(header, message.payload());
        // Messages begin at multiples of four bytes.
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
}

/// Reads the messages of one datagram, up to the first that is malformed.
pub(crate) fn read(datagram: &[u8], mut take: impl FnMut(Message)) {
    each(datagram, |header, payload| {
        take(Message {
            sequence: header.sequence,
            interrupted: header.is_interrupted(),
            body: body(header.kind, header.flags, payload).unwrap_or(Body::Other),
        });
    });
}

pub(crate) fn body(kind: u16, flags: u16, payload: &[u8]) -> Option<Body> {
    Some(match kind {
        libc::RTM_NEWLINK => Body::Link(link(payload)?),
        libc::RTM_DELLINK => Body::LinkGone { index: link_index(payload)? },
        libc::RTM_NEWADDR => address(payload, true)?,
        libc::RTM_DELADDR => address(payload, false)?,
        libc::RTM_NEWTFILTER => Body::Classifier(classifier(payload)?),
        libc::RTM_NEWROUTE => Body::Route(ip_message::route(payload, flags, true)?),
        libc::RTM_DELROUTE => Body::Route(ip_message::route(payload, flags, false)?),
        libc::RTM_NEWRULE | libc::RTM_DELRULE => Body::Rule(ip_message::rule(payload)?),
        libc::RTM_NEWNEIGH => Body::Neighbour(ip_message::neighbour(payload, true)?),
        libc::RTM_DELNEIGH => Body::Neighbour(ip_message::neighbour(payload, false)?),
        netlink_packet_core::NLMSG_DONE => Body::Done,
        netlink_packet_core::NLMSG_ERROR => {
            let (errno, text) = answer(flags, payload)?;
            Body::Answer { errno, text }
        }
        netlink_packet_core::NLMSG_OVERRUN => Body::Overrun,
        _ => Body::Other,
    })
}

/// The index in a `struct ifinfomsg` of no particular family: bridges use the same messages to tell of
/// their members.
fn link_index(payload: &[u8]) -> Option<u32> {
    let family = i32::from(*payload.first()?);
    let index = number(payload.get(4..8)?)?;
    (family == libc::AF_UNSPEC && index > 0).then_some(index)
}

fn link(payload: &[u8]) -> Option<Link> {
    let index = link_index(payload)?;
    let hardware = u16::from_ne_bytes(payload.get(2..4)?.try_into().ok()?);
    let flags = number(payload.get(8..12)?)? as i32;
    let mut link = Link {
        index,
        name: String::new(),
        kind: match hardware {
            libc::ARPHRD_ETHER => "ethernet",
            libc::ARPHRD_LOOPBACK => "loopback",
            _ => "other",
        }
        .to_owned(),
        mac: None,
        mtu: 0,
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0,
        master: None,
        xdp: Vec::new(),
    };
    let has_mac = matches!(hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK);
    for (kind, value) in attributes(payload.get(HEADER..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_MTU => link.mtu = number(value)?,
            libc::IFLA_ADDRESS if has_mac => link.mac = value.try_into().ok(),
            libc::IFLA_MASTER => link.master = number(value).filter(|index| *index > 0),
            libc::IFLA_XDP => link.xdp = attributes(value).filter_map(xdp).collect(),
            libc::IFLA_LINKINFO => {
                let kinds = attributes(value).filter(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                for (_, value) in kinds {
                    link.kind = text(value);
                }
            }
            _ => {}
        }
    }
    (!link.name.is_empty()).then_some(link)
}

/// A `struct ifaddrmsg` and its attributes.
fn address(payload: &[u8], there: bool) -> Option<Body> {
    let [family, prefix_length, flags, _scope] = *payload.first_chunk::<4>()?;
    let index = number(payload.get(4..8)?)?;
    let (mut local, mut other) = (None, None);
    for (kind, value) in attributes(payload.get(8..)?) {
        match kind {
            libc::IFA_LOCAL => local = ip(family, value),
            libc::IFA_ADDRESS => other = ip(family, value),
            _ => {}
        }
    }
    // With a point-to-point link the other one is that of the other end.
    let ip = local.or(other)?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    if prefix_length > longest || index == 0 {
        return None;
    }
    let flags = u32::from(flags);
    let tentative = flags & libc::IFA_F_TENTATIVE != 0 && flags & libc::IFA_F_OPTIMISTIC == 0;
    let usable = there && !tentative && flags & libc::IFA_F_DADFAILED == 0;
    Some(Body::Address { index, address: InterfaceAddress { ip, prefix_length }, usable })
}

/// An attribute of `IFLA_XDP`, if it tells of a program.
fn xdp((kind, value): (u16, &[u8])) -> Option<XdpProgram> {
    let mode = match kind {
        IFLA_XDP_DRV_PROG_ID => XdpMode::Driver,
        IFLA_XDP_SKB_PROG_ID => XdpMode::Generic,
        IFLA_XDP_HW_PROG_ID => XdpMode::Hardware,
        _ => return None,
    };
    number(value).map(|program| XdpProgram { mode, program })
}

/// A `struct tcmsg` and its attributes; nothing where a priority is told that has no classifiers.
fn classifier(payload: &[u8]) -> Option<Classifier> {
    let handle = number(payload.get(8..12)?).filter(|handle| *handle != 0)?;
    let info = number(payload.get(16..20)?)?;
    let (mut kind, mut name, mut program) = (String::new(), None, None);
    for (attribute, value) in attributes(payload.get(TCMSG..)?) {
        match attribute {
            TCA_KIND => kind = text(value),
            // Each kind has numbers of its own; it comes first.
            TCA_OPTIONS if kind == "bpf" => {
                for (option, value) in attributes(value) {
                    match option {
                        TCA_BPF_NAME => name = Some(text(value)),
                        TCA_BPF_ID => program = number(value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let priority = u16::try_from(info >> 16).ok()?;
    (!kind.is_empty()).then_some(Classifier { kind, priority, handle, name, program })
}

/// A `struct nlmsgerr`: the number of an error, the request's header and perhaps the rest of it, and
/// perhaps attributes. Returns the number, and the kernel's words about it.
pub(crate) fn answer(flags: u16, payload: &[u8]) -> Option<(i32, Option<String>)> {
    let errno = (number(payload)? as i32).checked_neg()?;
    let request = payload.get(4..)?;
    let len = match flags & CAPPED {
        0 => number(request)? as usize,
        _ => HEADER,
    };
    let rest = request.get(len.max(HEADER).next_multiple_of(4)..).unwrap_or_default();
    let said = match flags & HAS_ATTRIBUTES {
        0 => None,
        _ => attributes(rest).find(|(kind, _)| *kind == ERROR_TEXT).map(|(_, value)| text(value)),
    };
    Some((errno, said))
}

/// Kind and value of each attribute, up to the first that is malformed.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).filter_map(move |attribute| {
        // The value borrows from the attribute, the attribute from the bytes.
        let bytes: &[u8] = attribute.into_inner();
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        Some((kind & KIND_MASK, bytes.get(4..length)?))
    })
}

pub(crate) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// A text with or without its final zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

pub(crate) fn ip(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        libc::AF_INET6 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}
