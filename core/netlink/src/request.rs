//! What can be asked of the kernel about interfaces.
//!
//! Reference: RFC 3549 §3.1, rtnetlink(7), ip-link(8).

use std::fmt;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{InterfaceAddress, message};

/// The longest name of an interface, in bytes (`IFNAMSIZ` without its final zero).
const LONGEST_NAME: usize = 15;

/// A change of interfaces. They are named by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceRequest {
    /// Set an interface up or down.
    SetUp {
        /// Which.
        interface: String,
        /// Up or down.
        up: bool,
    },
    /// Set the largest packet that it carries.
    SetMtu {
        /// Which.
        interface: String,
        /// In bytes, without the header of the link.
        mtu: u32,
    },
    /// Make it a member of a bridge or VRF, or of none.
    SetMaster {
        /// Which.
        interface: String,
        /// Of what.
        master: Option<String>,
    },
    /// Give it an address. If it has the address already, nothing changes.
    AddAddress {
        /// Which.
        interface: String,
        /// The address and the length of its prefix.
        address: InterfaceAddress,
    },
    /// Take an address away.
    DeleteAddress {
        /// Which.
        interface: String,
        /// The address and the length of its prefix.
        address: InterfaceAddress,
    },
    /// Make an interface, which is down.
    Create {
        /// Its name, which nobody has.
        interface: String,
        /// What it is.
        kind: NewInterface,
    },
    /// Delete a virtual interface.
    Delete {
        /// Which.
        interface: String,
    },
}

/// What interfaces can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewInterface {
    /// One end of a virtual cable.
    Veth {
        /// The name of the other end.
        peer: String,
    },
    /// One that swallows everything.
    Dummy,
    /// A bridge.
    Bridge,
    /// The frames of one VLAN on another interface (IEEE 802.1Q).
    Vlan {
        /// The other interface.
        lower: String,
        /// The VLAN, 1 to 4094.
        id: u16,
    },
}

impl fmt::Display for InterfaceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetUp { interface, up } => {
                write!(f, "setting `{interface}` {}", if *up { "up" } else { "down" })
            }
            Self::SetMtu { interface, mtu } => {
                write!(f, "setting the MTU of `{interface}` to {mtu}")
            }
            Self::SetMaster { interface, master: Some(master) } => {
                write!(f, "making `{interface}` a member of `{master}`")
            }
            Self::SetMaster { interface, master: None } => {
                write!(f, "making `{interface}` a member of nothing")
            }
            Self::AddAddress { interface, address } => {
                write!(f, "giving `{interface}` the address {address}")
            }
            Self::DeleteAddress { interface, address } => {
                write!(f, "taking the address {address} from `{interface}`")
            }
            Self::Create { interface, .. } => write!(f, "making the interface `{interface}`"),
            Self::Delete { interface } => write!(f, "deleting the interface `{interface}`"),
        }
    }
}

impl InterfaceRequest {
    /// The kernel's message for it. `index` finds the index of an interface by name.
    ///
    /// # Errors
    /// A sentence about what the kernel cannot be asked.
    pub(crate) fn emit(
        &self,
        sequence: u32,
        mut index: impl FnMut(&str) -> Result<u32, String>,
    ) -> Result<Vec<u8>, String> {
        let mut flags = NLM_F_ACK;
        let message = match self {
            Self::SetUp { interface, up } => {
                let mut link = by_name(interface)?;
                link.header.change_mask = LinkFlags::Up;
                link.header.flags = if *up { LinkFlags::Up } else { LinkFlags::empty() };
                RouteNetlinkMessage::SetLink(link)
            }
            Self::SetMtu { interface, mtu } => {
                let mut link = by_name(interface)?;
                link.attributes.push(LinkAttribute::Mtu(*mtu));
                RouteNetlinkMessage::SetLink(link)
            }
            Self::SetMaster { interface, master } => {
                let mut link = by_name(interface)?;
                let master = master.as_deref().map_or(Ok(0), &mut index)?;
                link.attributes.push(LinkAttribute::Controller(master));
                RouteNetlinkMessage::SetLink(link)
            }
            Self::AddAddress { interface, address } => {
                flags |= NLM_F_CREATE | NLM_F_REPLACE;
                RouteNetlinkMessage::NewAddress(emit_address(index(interface)?, address)?)
            }
            Self::DeleteAddress { interface, address } => {
                RouteNetlinkMessage::DelAddress(emit_address(index(interface)?, address)?)
            }
            Self::Create { interface, kind } => {
                flags |= NLM_F_CREATE | NLM_F_EXCL;
                let mut link = by_name(interface)?;
                kind.describe(&mut link, index)?;
                RouteNetlinkMessage::NewLink(link)
            }
            Self::Delete { interface } => RouteNetlinkMessage::DelLink(by_name(interface)?),
        };
        Ok(message::request(message, flags, sequence))
    }
}

impl NewInterface {
    /// Adds what the kernel has to know of it.
    fn describe(
        &self,
        link: &mut LinkMessage,
        mut index: impl FnMut(&str) -> Result<u32, String>,
    ) -> Result<(), String> {
        let (kind, data) = match self {
            Self::Dummy => (InfoKind::Dummy, None),
            Self::Bridge => (InfoKind::Bridge, None),
            Self::Veth { peer } => {
                (InfoKind::Veth, Some(InfoData::Veth(InfoVeth::Peer(by_name(peer)?))))
            }
            Self::Vlan { lower, id } => {
                if !(1..=4094).contains(id) {
                    return Err(format!("{id} is no VLAN: 1 to 4094 are"));
                }
                link.attributes.push(LinkAttribute::Link(index(lower)?));
                (InfoKind::Vlan, Some(InfoData::Vlan(vec![InfoVlan::Id(*id)])))
            }
        };
        let mut info = vec![LinkInfo::Kind(kind)];
        info.extend(data.map(LinkInfo::Data));
        link.attributes.push(LinkAttribute::LinkInfo(info));
        Ok(())
    }
}

/// A message about the interface called `name`.
fn by_name(name: &str) -> Result<LinkMessage, String> {
    let bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if !(1..=LONGEST_NAME).contains(&name.len()) || name.contains(bad) {
        return Err(format!(
            "`{name}` cannot be the name of an interface: 1 to 15 bytes are allowed, and no colon, \
             slash or space"
        ));
    }
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    Ok(link)
}

fn emit_address(index: u32, address: &InterfaceAddress) -> Result<AddressMessage, String> {
    let InterfaceAddress { ip, prefix_length } = *address;
    let (family, longest) = match ip {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    if prefix_length > longest {
        return Err(format!("{address} is no address with a prefix: {longest} is the longest"));
    }
    let mut message = AddressMessage::default();
    message.header.family = family;
    message.header.prefix_len = prefix_length;
    message.header.index = index;
    // For IPv4 the kernel wants both; they differ on point-to-point links only.
    message.attributes.push(AddressAttribute::Local(ip));
    message.attributes.push(AddressAttribute::Address(ip));
    Ok(message)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
    use proptest::prelude::*;

    use super::*;

    /// The message that the kernel would read.
    fn read_back(request: &InterfaceRequest) -> RouteNetlinkMessage {
        let bytes = request.emit(9, |name| Ok(name.len() as u32)).unwrap();
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).unwrap();
        assert_eq!(message.header.sequence_number, 9);
        assert_eq!(message.header.flags & NLM_F_ACK, NLM_F_ACK);
        assert_eq!(message.header.length as usize, bytes.len());
        let NetlinkPayload::InnerMessage(message) = message.payload else { panic!("{message:?}") };
        message
    }

    #[test]
    fn a_vlan_names_the_interface_below_and_its_number() {
        let kind = NewInterface::Vlan { lower: "eth0".to_owned(), id: 7 };
        let create = InterfaceRequest::Create { interface: "eth0.7".to_owned(), kind };
        let RouteNetlinkMessage::NewLink(link) = read_back(&create) else { panic!() };
        let vlan = vec![
            LinkInfo::Kind(InfoKind::Vlan),
            LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(7)])),
        ];
        let expected = [
            LinkAttribute::IfName("eth0.7".to_owned()),
            LinkAttribute::Link(4),
            LinkAttribute::LinkInfo(vlan),
        ];
        assert_eq!(link.attributes, expected);
    }

    proptest! {
        #[test]
        fn every_address_is_written_as_the_kernel_reads_it(
            ip in any::<IpAddr>(),
            prefix_length in 0_u8..=140,
        ) {
            let address = InterfaceAddress { ip, prefix_length };
            let request = InterfaceRequest::AddAddress { interface: "eth0".to_owned(), address };
            let longest = if ip.is_ipv4() { 32 } else { 128 };
            if prefix_length > longest {
                prop_assert!(request.emit(1, |_| Ok(1)).is_err());
            } else {
                let RouteNetlinkMessage::NewAddress(message) = read_back(&request) else { panic!() };
                prop_assert_eq!(message.header.prefix_len, prefix_length);
                prop_assert_eq!(message.header.index, 4);
                prop_assert!(message.attributes.contains(&AddressAttribute::Local(ip)));
            }
        }

        #[test]
        fn any_name_is_written_or_refused(interface in "\\PC{0,20}", up in any::<bool>()) {
            let request = InterfaceRequest::SetUp { interface: interface.clone(), up };
            if request.emit(1, |_| Ok(1)).is_ok() {
                let RouteNetlinkMessage::SetLink(link) = read_back(&request) else { panic!() };
                prop_assert_eq!(link.attributes, [LinkAttribute::IfName(interface)]);
            }
        }
    }
}
