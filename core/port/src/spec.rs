//! What a port is, seen from a component: how to ask for one and what is known of an open one.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::str::FromStr;

/// The longest name of an interface, in bytes (`IFNAMSIZ` without its final zero).
const LONGEST_NAME: usize = 15;

/// A request for a packet port. The driver turns it into a socket (real) or into a tap on a modelled
/// interface (simulated).
///
/// Its text form is read back as the same: `ethernet:eth0:0xc0de`, `xdp:eth0:0xc0de`, `tap:NAME`, `tun:NAME`,
/// `udp:192.0.2.1:4000`, `udp:[2001:db8::1]:4000`, `group:eth0:224.0.0.9:520`, `group:eth0:[ff02::9]:521`, `ip:192.0.2.1:253`, `ip:[2001:db8::1]:253`.
///
/// ```
/// use weft_port::PortSpec;
///
/// let spec: PortSpec = "ethernet:eth0:0xc0de".parse()?;
/// assert_eq!(spec, PortSpec::Ethernet { interface: "eth0".to_owned(), ethertype: 0xc0de });
/// assert_eq!(spec.to_string(), "ethernet:eth0:0xc0de");
/// # Ok::<(), weft_port::PortSpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PortSpec {
    /// Whole Ethernet frames of one EtherType on an interface: the kernel's demultiplexing keeps
    /// stacks that share a NIC apart. Frames carry their 14-byte header in both directions.
    Ethernet {
        /// The interface's name, such as `eth0`.
        interface: String,
        /// The EtherType to receive, such as 0xC0DE.
        ethertype: u16,
    },
    /// The same by an AF_XDP socket: faster, and past packet filters and queueing disciplines in both
    /// directions. An interface can have one.
    Xdp {
        /// The interface's name, such as `eth0`.
        interface: String,
        /// The EtherType to receive, such as 0xC0DE.
        ethertype: u16,
    },
    /// A TAP interface that is created if it does not exist: whole Ethernet frames.
    Tap {
        /// The interface's name.
        name: String,
    },
    /// A TUN interface that is created if it does not exist: bare IP packets.
    Tun {
        /// The interface's name.
        name: String,
    },
    /// Datagrams of a UDP socket; an IPv6 address takes IPv6 only. Packets are the payload;
    /// [`LinkAddress::Udp`](weft_base::LinkAddress) in the metadata is the other end.
    Udp {
        /// The address to bind. Port 0 lets the system choose; [`PortInfo::local`] tells.
        local: SocketAddr,
    },
    /// Datagrams of a UDP socket that belongs to a group on one link, as routing protocols have them: what comes over
    /// that interface to the group, or to this host, at the group's port. What is sent leaves by the interface, and
    /// what is sent to a group goes no further than the link: with the time to live 1 over IPv4. Over IPv6 all hop
    /// limits are 255, and what comes in with another one has come from further away and is dropped (RFC 5082).
    Group {
        /// The interface's name, such as `eth0`.
        interface: String,
        /// The group, and the port to bind.
        group: SocketAddr,
    },
    /// Packets of one protocol number directly over IP, by a raw socket. Packets are the payload;
    /// [`LinkAddress::Ip`](weft_base::LinkAddress) in the metadata is the other end.
    Ip {
        /// The address to bind.
        local: IpAddr,
        /// The number in the header of IP, such as 253 (RFC 3692).
        protocol: NonZero<u8>,
    },
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ethernet { interface, ethertype } => {
                write!(f, "ethernet:{interface}:{ethertype:#06x}")
            }
            Self::Xdp { interface, ethertype } => write!(f, "xdp:{interface}:{ethertype:#06x}"),
            Self::Tap { name } => write!(f, "tap:{name}"),
            Self::Tun { name } => write!(f, "tun:{name}"),
            Self::Udp { local } => write!(f, "udp:{local}"),
            Self::Group { interface, group } => write!(f, "group:{interface}:{group}"),
            Self::Ip { local, protocol } => {
                write!(f, "ip:{}", SocketAddr::new(*local, protocol.get().into()))
            }
        }
    }
}

/// A text that names no port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no port: {why}; write ethernet:INTERFACE:ETHERTYPE, xdp:INTERFACE:ETHERTYPE, \
     tap:NAME, tun:NAME, udp:ADDRESS:PORT, group:INTERFACE:ADDRESS:PORT or ip:ADDRESS:PROTOCOL, such as ethernet:eth0:0xc0de"
)]
pub struct PortSpecError {
    text: String,
    why: &'static str,
}

impl FromStr for PortSpec {
    type Err = PortSpecError;

    fn from_str(text: &str) -> Result<Self, PortSpecError> {
        parse(text).map_err(|why| PortSpecError { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<PortSpec, &'static str> {
    let (kind, rest) = text.split_once(':').ok_or("it has no colon")?;
    match kind {
        "ethernet" | "xdp" => {
            let (interface, ethertype) = rest.split_once(':').ok_or("the EtherType is missing")?;
            let (interface, ethertype) = (name(interface)?, number(ethertype)?);
            Ok(match kind {
                "xdp" => PortSpec::Xdp { interface, ethertype },
                _ => PortSpec::Ethernet { interface, ethertype },
            })
        }
        "tap" => Ok(PortSpec::Tap { name: name(rest)? }),
        "tun" => Ok(PortSpec::Tun { name: name(rest)? }),
        "udp" => {
            let local = rest.parse().map_err(|_| "it needs an IP address and a port")?;
            Ok(PortSpec::Udp { local })
        }
        "group" => {
            let wrong = "it needs an interface, and a group with a port that is not zero";
            let (interface, group) = rest.split_once(':').ok_or(wrong)?;
            let (interface, group) = (name(interface)?, group.parse().map_err(|_| wrong)?);
            if !is_group(group) {
                return Err(wrong);
            }
            Ok(PortSpec::Group { interface, group })
        }
        "ip" => ip(rest).ok_or("it needs an IP address and a protocol number from 1 to 255"),
        _ => Err("there is no such kind of port"),
    }
}

/// Whether it names a group and nothing else.
fn is_group(group: SocketAddr) -> bool {
    let plain = SocketAddr::new(group.ip(), group.port());
    group.ip().is_multicast() && group.port() != 0 && plain == group
}

/// An address and a protocol number.
fn ip(text: &str) -> Option<PortSpec> {
    let both: SocketAddr = text.parse().ok()?;
    let (local, protocol) = (both.ip(), NonZero::new(u8::try_from(both.port()).ok()?)?);
    // An address of IPv6 might name a link besides, of which a raw socket is not told.
    (SocketAddr::new(local, both.port()) == both).then_some(PortSpec::Ip { local, protocol })
}

/// A name that an interface can have (`dev_valid_name` of the Linux kernel).
fn name(text: &str) -> Result<String, &'static str> {
    let bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if (1..=LONGEST_NAME).contains(&text.len())
        && !text.contains(bad)
        && text != "."
        && text != ".."
    {
        Ok(text.to_owned())
    } else {
        Err("an interface's name has 1 to 15 bytes, and no colon, slash or space")
    }
}

/// An EtherType, with `0x` in front or decimal.
fn number(text: &str) -> Result<u16, &'static str> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u16::from_str_radix(digits, 16),
        _ if text.starts_with('+') => "".parse(),
        _ => text.parse(),
    };
    number.map_err(|_| "an EtherType is a number such as 0xc0de")
}

/// What is known of an open port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// The Ethernet address of the interface; zero where there is none. For TAP: an address for
    /// this end of the wire, different from that of the kernel's end.
    pub mac: [u8; 6],
    /// The largest packet that may be sent, in bytes, without the Ethernet header. For UDP: the
    /// largest payload that fits the interface's MTU unfragmented.
    pub mtu: usize,
    /// The bound address of a UDP port; of an IP port with the port number 0.
    pub local: Option<SocketAddr>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn specs() -> impl Strategy<Value = PortSpec> {
        let name = "[a-zA-Z0-9_.@-]{0,14}[a-z0-9]";
        prop_oneof![
            (name, any::<u16>())
                .prop_map(|(interface, ethertype)| PortSpec::Ethernet { interface, ethertype }),
            (name, any::<u16>())
                .prop_map(|(interface, ethertype)| PortSpec::Xdp { interface, ethertype }),
            name.prop_map(|name| PortSpec::Tap { name }),
            name.prop_map(|name| PortSpec::Tun { name }),
            (any::<std::net::IpAddr>(), any::<u16>())
                .prop_map(|(ip, port)| PortSpec::Udp { local: SocketAddr::new(ip, port) }),
            (name, any::<[u8; 15]>(), 1..=u16::MAX, any::<bool>()).prop_map(
                |(interface, rest, port, is_v4)| {
                    let mut octets = [0xff; 16];
                    octets[1..].copy_from_slice(&rest);
                    let v4 = IpAddr::from([0xe0 | rest[0] & 0xf, rest[1], rest[2], rest[3]]);
                    let ip = if is_v4 { v4 } else { IpAddr::from(octets) };
                    PortSpec::Group { interface, group: SocketAddr::new(ip, port) }
                }
            ),
            (any::<std::net::IpAddr>(), any::<NonZero<u8>>())
                .prop_map(|(local, protocol)| PortSpec::Ip { local, protocol }),
        ]
    }

    #[test]
    fn texts_that_name_no_port_say_why() {
        for (text, why) in [
            ("eth0", "no colon"),
            ("ethernet:eth0", "EtherType is missing"),
            ("ethernet:eth0:0x1c0de", "number such as"),
            ("ethernet:eth0:+5", "number such as"),
            ("ethernet:eth0:0x+5", "number such as"),
            ("ethernet::0xc0de", "1 to 15 bytes"),
            ("xdp:eth0", "EtherType is missing"),
            ("tun:sixteen-letters!", "1 to 15 bytes"),
            ("tap:a/b", "1 to 15 bytes"),
            ("tap:..", "1 to 15 bytes"),
            ("udp:192.0.2.1", "IP address and a port"),
            ("group:eth0:192.0.2.1:520", "a group with a port"),
            ("group:eth0:224.0.0.9:0", "a group with a port"),
            ("group:eth0:[ff02::9%2]:521", "a group with a port"),
            ("group:224.0.0.9:520", "a group with a port"),
            ("ip:192.0.2.1", "IP address and a protocol"),
            ("ip:192.0.2.1:0", "IP address and a protocol"),
            ("ip:192.0.2.1:256", "IP address and a protocol"),
            ("ip:[fe80::1%3]:253", "IP address and a protocol"),
            ("UDP:192.0.2.1:4", "no such kind"),
        ] {
            let error = text.parse::<PortSpec>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_a_spec_is_read_back_as_the_same(spec in specs()) {
            prop_assert_eq!(spec.to_string().parse::<PortSpec>(), Ok(spec));
        }

        #[test]
        fn any_text_is_a_spec_or_an_error(text in "\\PC{0,40}|(ethernet|xdp|tap|tun|udp|group|ip):\\PC{0,20}") {
            if let Ok(spec) = text.parse::<PortSpec>() {
                prop_assert_eq!(spec.to_string().parse::<PortSpec>(), Ok(spec));
            }
        }
    }
}
