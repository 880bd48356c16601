//! The versions of HID.
//!
//! Reference: Machado et al., "Linux XIA", §4.1 imagines a second version of HID, with a discovery of neighbours that
//! is better and not compatible, which moves into a network beside the first and then replaces it. It needs nothing
//! but a number of its own, as any principal.

use weft_xip::XidType;
use weft_xip::numbers::{ETHERTYPE_NWP, ETHERTYPE_NWP2};

use crate::proof::Policy;

/// What differs between versions of HID.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) kind: XidType,
    /// Of the frames of neighbour discovery.
    pub(crate) ethertype: u16,
    /// What is believed of announcers unless `proof` says otherwise.
    pub(crate) proof: Policy,
    /// What its counters are called.
    pub(crate) counters: &'static str,
    /// The identity is made of the node's key by the principal itself.
    pub(crate) names_itself: bool,
}

/// That of Linux XIA.
pub(crate) const FIRST: Version = Version {
    kind: XidType::HID,
    ethertype: ETHERTYPE_NWP,
    proof: Policy::Preferred,
    counters: "neighbour-discovery",
    names_itself: false,
};

/// That which believes nothing without proof.
pub(crate) const SECOND: Version = Version {
    kind: XidType::HID2,
    ethertype: ETHERTYPE_NWP2,
    proof: Policy::Required,
    counters: "neighbour-discovery-2",
    names_itself: true,
};
