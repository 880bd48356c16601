//! Numbers that BGP speakers agree on.
//!
//! Reference: the IANA registries "Border Gateway Protocol (BGP) Parameters", "Address Family Numbers",
//! "Subsequent Address Family Identifiers (SAFI) Parameters", "Capability Codes" and "Border Gateway Protocol
//! (BGP) Well-known Communities"; the RFC that defined a number is named beside it.

/// The version of the protocol (RFC 4271 §4.2).
pub const VERSION: u8 = 4;
/// The port on which speakers listen (RFC 4271 §8.2.1.1).
pub const PORT: u16 = 179;
/// Stands for numbers of autonomous systems that two octets cannot hold (RFC 6793 §9).
pub const AS_TRANS: u16 = 23456;

/// Address families.
pub mod afi {
    /// IP version 4.
    pub const IPV4: u16 = 1;
    /// IP version 6.
    pub const IPV6: u16 = 2;
}

/// What routes of an address family are for.
pub mod safi {
    /// Forwarding to one receiver (RFC 4760).
    pub const UNICAST: u8 = 1;
    /// Checks of the reverse path of multicast (RFC 4760).
    pub const MULTICAST: u8 = 2;
}

/// Types of messages.
pub mod message_type {
    /// OPEN (RFC 4271).
    pub const OPEN: u8 = 1;
    /// UPDATE (RFC 4271).
    pub const UPDATE: u8 = 2;
    /// NOTIFICATION (RFC 4271).
    pub const NOTIFICATION: u8 = 3;
    /// KEEPALIVE (RFC 4271).
    pub const KEEPALIVE: u8 = 4;
    /// ROUTE-REFRESH (RFC 2918).
    pub const ROUTE_REFRESH: u8 = 5;
}

/// Types of optional parameters of an OPEN.
pub mod parameter {
    /// Capabilities (RFC 5492).
    pub const CAPABILITIES: u8 = 2;
    /// Says that lengths of parameters have two octets (RFC 9072).
    pub const EXTENDED_LENGTH: u8 = 255;
}

/// Codes of capabilities.
pub mod capability {
    /// Multiprotocol extensions (RFC 2858, 4760).
    pub const MULTIPROTOCOL: u8 = 1;
    /// Route refresh (RFC 2918).
    pub const ROUTE_REFRESH: u8 = 2;
    /// Extended next hop encoding (RFC 8950).
    pub const EXTENDED_NEXT_HOP: u8 = 5;
    /// Extended messages (RFC 8654).
    pub const EXTENDED_MESSAGE: u8 = 6;
    /// BGP role (RFC 9234).
    pub const ROLE: u8 = 9;
    /// Graceful restart (RFC 4724).
    pub const GRACEFUL_RESTART: u8 = 64;
    /// Numbers of autonomous systems with four octets (RFC 6793).
    pub const FOUR_OCTET_AS: u8 = 65;
    /// ADD-PATH (RFC 7911).
    pub const ADD_PATH: u8 = 69;
    /// Enhanced route refresh (RFC 7313).
    pub const ENHANCED_ROUTE_REFRESH: u8 = 70;
    /// Long-lived graceful restart (RFC 9494).
    pub const LONG_LIVED: u8 = 71;
    /// Name of the host and its domain (draft-walton-bgp-hostname-capability).
    pub const FQDN: u8 = 73;
}

/// Flags of path attributes (RFC 4271 §4.3).
pub mod attribute_flag {
    /// Not every speaker knows it.
    pub const OPTIONAL: u8 = 0x80;
    /// Passed on to other autonomous systems.
    pub const TRANSITIVE: u8 = 0x40;
    /// Somebody on the way did not know it.
    pub const PARTIAL: u8 = 0x20;
    /// The length has two octets.
    pub const EXTENDED_LENGTH: u8 = 0x10;
}

/// Codes of path attributes.
pub mod attribute {
    /// ORIGIN (RFC 4271).
    pub const ORIGIN: u8 = 1;
    /// AS_PATH (RFC 4271).
    pub const AS_PATH: u8 = 2;
    /// NEXT_HOP (RFC 4271).
    pub const NEXT_HOP: u8 = 3;
    /// MULTI_EXIT_DISC (RFC 4271).
    pub const MED: u8 = 4;
    /// LOCAL_PREF (RFC 4271).
    pub const LOCAL_PREF: u8 = 5;
    /// ATOMIC_AGGREGATE (RFC 4271).
    pub const ATOMIC_AGGREGATE: u8 = 6;
    /// AGGREGATOR (RFC 4271).
    pub const AGGREGATOR: u8 = 7;
    /// COMMUNITIES (RFC 1997).
    pub const COMMUNITIES: u8 = 8;
    /// ORIGINATOR_ID (RFC 4456).
    pub const ORIGINATOR_ID: u8 = 9;
    /// CLUSTER_LIST (RFC 4456).
    pub const CLUSTER_LIST: u8 = 10;
    /// MP_REACH_NLRI (RFC 4760).
    pub const MP_REACH_NLRI: u8 = 14;
    /// MP_UNREACH_NLRI (RFC 4760).
    pub const MP_UNREACH_NLRI: u8 = 15;
    /// EXTENDED COMMUNITIES (RFC 4360).
    pub const EXTENDED_COMMUNITIES: u8 = 16;
    /// AS4_PATH (RFC 6793).
    pub const AS4_PATH: u8 = 17;
    /// AS4_AGGREGATOR (RFC 6793).
    pub const AS4_AGGREGATOR: u8 = 18;
    /// AIGP (RFC 7311).
    pub const AIGP: u8 = 26;
    /// LARGE_COMMUNITY (RFC 8092).
    pub const LARGE_COMMUNITIES: u8 = 32;
    /// Only to Customer (RFC 9234).
    pub const ONLY_TO_CUSTOMER: u8 = 35;
    /// BGP Prefix-SID (RFC 8669).
    pub const PREFIX_SID: u8 = 40;
}

/// Types of segments of an AS_PATH.
pub mod segment {
    /// A set of autonomous systems (RFC 4271).
    pub const SET: u8 = 1;
    /// An ordered list of autonomous systems (RFC 4271).
    pub const SEQUENCE: u8 = 2;
    /// An ordered list of members of a confederation (RFC 5065).
    pub const CONFED_SEQUENCE: u8 = 3;
    /// A set of members of a confederation (RFC 5065).
    pub const CONFED_SET: u8 = 4;
}

/// Error codes of a NOTIFICATION.
pub mod error_code {
    /// Message header error (RFC 4271).
    pub const HEADER: u8 = 1;
    /// OPEN message error (RFC 4271).
    pub const OPEN: u8 = 2;
    /// UPDATE message error (RFC 4271).
    pub const UPDATE: u8 = 3;
    /// Hold timer expired (RFC 4271).
    pub const HOLD_TIMER: u8 = 4;
    /// Finite state machine error (RFC 4271).
    pub const FSM: u8 = 5;
    /// Cease (RFC 4271).
    pub const CEASE: u8 = 6;
    /// ROUTE-REFRESH message error (RFC 7313).
    pub const ROUTE_REFRESH: u8 = 7;
    /// Send hold timer expired (RFC 9687).
    pub const SEND_HOLD_TIMER: u8 = 8;
}

/// Subcodes of [`error_code::HEADER`].
pub mod header_error {
    /// Connection not synchronized (RFC 4271).
    pub const NOT_SYNCHRONIZED: u8 = 1;
    /// Bad message length (RFC 4271).
    pub const BAD_LENGTH: u8 = 2;
    /// Bad message type (RFC 4271).
    pub const BAD_TYPE: u8 = 3;
}

/// Subcodes of [`error_code::OPEN`].
pub mod open_error {
    /// Unspecific (RFC 4271).
    pub const UNSPECIFIC: u8 = 0;
    /// Unsupported version number (RFC 4271).
    pub const VERSION: u8 = 1;
    /// Bad peer AS (RFC 4271).
    pub const BAD_PEER_AS: u8 = 2;
    /// Bad BGP identifier (RFC 4271).
    pub const BAD_IDENTIFIER: u8 = 3;
    /// Unsupported optional parameter (RFC 4271).
    pub const UNSUPPORTED_PARAMETER: u8 = 4;
    /// Unacceptable hold time (RFC 4271).
    pub const HOLD_TIME: u8 = 6;
    /// Unsupported capability (RFC 5492).
    pub const UNSUPPORTED_CAPABILITY: u8 = 7;
    /// Role mismatch (RFC 9234).
    pub const ROLE_MISMATCH: u8 = 11;
}

/// Subcodes of [`error_code::UPDATE`].
pub mod update_error {
    /// Malformed attribute list (RFC 4271).
    pub const MALFORMED_LIST: u8 = 1;
    /// Unrecognized well-known attribute (RFC 4271).
    pub const UNRECOGNIZED_WELL_KNOWN: u8 = 2;
    /// Missing well-known attribute (RFC 4271).
    pub const MISSING_WELL_KNOWN: u8 = 3;
    /// Attribute flags error (RFC 4271).
    pub const FLAGS: u8 = 4;
    /// Attribute length error (RFC 4271).
    pub const LENGTH: u8 = 5;
    /// Invalid ORIGIN attribute (RFC 4271).
    pub const ORIGIN: u8 = 6;
    /// Invalid NEXT_HOP attribute (RFC 4271).
    pub const NEXT_HOP: u8 = 8;
    /// Optional attribute error (RFC 4271).
    pub const OPTIONAL_ATTRIBUTE: u8 = 9;
    /// Invalid network field (RFC 4271).
    pub const NETWORK_FIELD: u8 = 10;
    /// Malformed AS_PATH (RFC 4271).
    pub const AS_PATH: u8 = 11;
}

/// Subcodes of [`error_code::FSM`] (RFC 6608).
pub mod fsm_error {
    /// Unexpected message in OpenSent.
    pub const OPEN_SENT: u8 = 1;
    /// Unexpected message in OpenConfirm.
    pub const OPEN_CONFIRM: u8 = 2;
    /// Unexpected message in Established.
    pub const ESTABLISHED: u8 = 3;
}

/// Subcodes of [`error_code::CEASE`].
pub mod cease {
    /// Maximum number of prefixes reached (RFC 4486).
    pub const MAX_PREFIXES: u8 = 1;
    /// Administrative shutdown (RFC 4486, 9003).
    pub const ADMIN_SHUTDOWN: u8 = 2;
    /// Peer de-configured (RFC 4486).
    pub const PEER_DECONFIGURED: u8 = 3;
    /// Administrative reset (RFC 4486, 9003).
    pub const ADMIN_RESET: u8 = 4;
    /// Connection rejected (RFC 4486).
    pub const CONNECTION_REJECTED: u8 = 5;
    /// Other configuration change (RFC 4486).
    pub const CONFIGURATION_CHANGE: u8 = 6;
    /// Connection collision resolution (RFC 4486).
    pub const COLLISION: u8 = 7;
    /// Out of resources (RFC 4486).
    pub const OUT_OF_RESOURCES: u8 = 8;
    /// Hard reset (RFC 8538).
    pub const HARD_RESET: u8 = 9;
    /// BFD down (RFC 9384).
    pub const BFD_DOWN: u8 = 10;
}

/// Subcodes of [`error_code::ROUTE_REFRESH`] (RFC 7313).
pub mod refresh_error {
    /// Invalid message length.
    pub const LENGTH: u8 = 1;
}

/// Subtypes of ROUTE-REFRESH (RFC 7313).
pub mod refresh {
    /// A request (RFC 2918).
    pub const REQUEST: u8 = 0;
    /// Beginning of a route refresh.
    pub const BEGIN: u8 = 1;
    /// End of a route refresh.
    pub const END: u8 = 2;
}

/// Well-known communities.
pub mod community {
    /// Planned shut down of a link (RFC 8326).
    pub const GRACEFUL_SHUTDOWN: u32 = 0xFFFF_0000;
    /// Kept for long after a restart (RFC 9494).
    pub const LLGR_STALE: u32 = 0xFFFF_0006;
    /// Not to be kept for long after a restart (RFC 9494).
    pub const NO_LLGR: u32 = 0xFFFF_0007;
    /// Traffic is to be dropped (RFC 7999).
    pub const BLACKHOLE: u32 = 0xFFFF_029A;
    /// Not to leave the confederation (RFC 1997).
    pub const NO_EXPORT: u32 = 0xFFFF_FF01;
    /// To nobody (RFC 1997).
    pub const NO_ADVERTISE: u32 = 0xFFFF_FF02;
    /// Not to leave the autonomous system (RFC 1997).
    pub const NO_EXPORT_SUBCONFED: u32 = 0xFFFF_FF03;
    /// Not to peers (RFC 3765).
    pub const NO_PEER: u32 = 0xFFFF_FF04;
}
