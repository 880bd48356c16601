//! Numbers of XIP: well-known principals, EtherTypes, limits.
//!
//! Reference: AltraMayor/XIA-for-Linux, `include/net/xia*.h` (EtherTypes, limits, types);
//! AltraMayor/xiaconf, `etc-production/xia/principals` (names). The numbers are not registered
//! with IANA; these projects are the only registry there is.

use crate::xid::XidType;

/// EtherType of frames that carry an XIP packet.
pub const ETHERTYPE_XIP: u16 = 0xc0de;

/// EtherType of the neighbour discovery of the HID principal (NWP).
pub const ETHERTYPE_NWP: u16 = 0xc0df;

/// EtherType of the neighbour discovery of the second version of HID: weft's own.
pub const ETHERTYPE_NWP2: u16 = 0xc0e1;

/// EtherType of link-state routing between XIA nodes: weft's own, the next one after those of Linux XIA.
pub const ETHERTYPE_LINK_STATE: u16 = 0xc0e0;

/// The only version of XIP.
pub const XIP_VERSION: u8 = 1;

/// Most nodes (rows) that one address holds, not counting the entry node.
pub const MAX_NODES: usize = 9;

/// Most edges that leave one node.
pub const MAX_FAN_OUT: usize = 4;

/// Hop limit of packets that a host sends, unless the application chooses another.
pub const DEFAULT_HOP_LIMIT: u8 = 128;

/// Smallest MTU in bytes a link must offer to XIP; assumed where the MTU is unknown.
pub const MIN_MTU: usize = 1024;

/// Most characters of a principal's name.
pub const MAX_NAME_LEN: usize = 31;

/// The well-known principals. The comment says what the 20 bytes of the identifier are.
impl XidType {
    /// "Not a type": ends an address in a row array. Never a node.
    pub const NAT: XidType = XidType(0x00);
    /// Autonomous domain: hash of a public key.
    pub const AD: XidType = XidType(0x10);
    /// Host: hash of a public key.
    pub const HID: XidType = XidType(0x11);
    /// Content: hash of the content.
    pub const CID: XidType = XidType(0x12);
    /// Service (of the XIA prototype on Click): hash of a public key.
    pub const SID: XidType = XidType(0x13);
    /// An IPv4 address in the form of a fake IPv4 header ("united 4ID"), shared with the Click prototype.
    pub const UNI4ID: XidType = XidType(0x14);
    /// XIP directly over IPv4: IPv4 address, 16 zero bytes.
    pub const I4ID: XidType = XidType(0x15);
    /// XIP over UDP over IPv4: IPv4 address, UDP port, 14 zero bytes.
    pub const U4ID: XidType = XidType(0x16);
    /// Datagrams to applications: free socket name.
    pub const XDP: XidType = XidType(0x17);
    /// Serval service: hash of a public key.
    pub const SERVAL: XidType = XidType(0x18);
    /// Serval flow: local flow identifier.
    pub const FLOWID: XidType = XidType(0x19);
    /// Ethernet: interface index (4 bytes), MAC address, 10 zero bytes. The number is that of the
    /// kernel; the map file of xiaconf has an older one, 0x22.
    pub const ETHER: XidType = XidType(0x1a);
    /// XIP over UDP over IPv6: IPv6 address, UDP port, 2 zero bytes.
    pub const U6ID: XidType = XidType(0x1b);
    /// zFilter: 160-bit Bloom filter over link identifiers.
    pub const ZF: XidType = XidType(0x20);
    /// Longest prefix match: bit string, most significant bit first.
    pub const LPM: XidType = XidType(0x21);
    /// Host, in the second version of its principal: hash of a public key. A number of weft's own.
    pub const HID2: XidType = XidType(0x5746_0011);
    /// An IPv4 address that the kernel's table of IP leads to: IPv4 address, 16 zero bytes. A number of weft's own.
    pub const X4ID: XidType = XidType(0x5746_0004);
    /// An IPv6 address that the kernel's table of IP leads to: IPv6 address, 4 zero bytes. A number of weft's own.
    pub const X6ID: XidType = XidType(0x5746_0006);
    /// XIP directly over IPv6: IPv6 address, 4 zero bytes. A number of weft's own, because nobody has given one, and
    /// none of those from 0x1000 on, which people take for theirs.
    pub const I6ID: XidType = XidType(0x5746_0015);
}

/// Names of the well-known principals, ascending by number.
pub const WELL_KNOWN: [(&str, XidType); 19] = [
    ("nat", XidType::NAT),
    ("ad", XidType::AD),
    ("hid", XidType::HID),
    ("cid", XidType::CID),
    ("sid", XidType::SID),
    ("uni4id", XidType::UNI4ID),
    ("i4id", XidType::I4ID),
    ("u4id", XidType::U4ID),
    ("xdp", XidType::XDP),
    ("serval", XidType::SERVAL),
    ("flowid", XidType::FLOWID),
    ("ether", XidType::ETHER),
    ("u6id", XidType::U6ID),
    ("zf", XidType::ZF),
    ("lpm", XidType::LPM),
    ("x4id", XidType::X4ID),
    ("x6id", XidType::X6ID),
    ("hid2", XidType::HID2),
    ("i6id", XidType::I6ID),
];

/// Other names of well-known principals that are read but not printed: xiaconf writes `united4id`
/// where Wireshark's dissector writes `uni4id`.
const ALIASES: [(&str, XidType); 1] = [("united4id", XidType::UNI4ID)];

/// The name of a well-known principal.
pub fn well_known_name(kind: XidType) -> Option<&'static str> {
    WELL_KNOWN.iter().find(|(_, number)| *number == kind).map(|(name, _)| *name)
}

/// The number of a well-known principal; upper and lower case are the same.
pub fn well_known_type(name: &str) -> Option<XidType> {
    let mut known = WELL_KNOWN.iter().chain(&ALIASES);
    known.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_table_is_sorted_and_has_no_duplicates() {
        assert!(WELL_KNOWN.is_sorted_by(|a, b| a.1 < b.1));
        let mut names: Vec<_> = WELL_KNOWN.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WELL_KNOWN.len());
    }

    #[test]
    fn names_and_numbers_lead_to_each_other() {
        for (name, kind) in WELL_KNOWN {
            assert_eq!(well_known_name(kind), Some(name));
            assert_eq!(well_known_type(&name.to_ascii_uppercase()), Some(kind));
        }
        assert_eq!(well_known_type("united4id"), Some(XidType::UNI4ID));
        assert_eq!(well_known_name(XidType(0x99)), None);
        assert_eq!(well_known_type("foo"), None);
    }
}
