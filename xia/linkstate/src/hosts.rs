//! Who may say what: hosts are named by their keys.

use weft_keys::{PrivateKey, SharedSecret};
use weft_linkstate::{Authority, Destination, Keys, NodeId};
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// Length of an XID as the name of a destination: its type, then its identifier.
const NAME_LEN: usize = 4 + ID_LEN;

/// Nodes that are the hosts of their keys.
#[derive(Debug)]
pub(crate) struct Hosts(Keys);

impl Hosts {
    pub(crate) fn new(key: PrivateKey) -> Self {
        Self(Keys::new(key))
    }
}

impl Authority for Hosts {
    fn node(&self) -> NodeId {
        self.0.node()
    }

    fn proof_len(&self) -> usize {
        self.0.proof_len()
    }

    fn prove(&self, message: &[u8]) -> Vec<u8> {
        self.0.prove(message)
    }

    fn verify(&self, node: NodeId, message: &[u8], proof: &[u8]) -> bool {
        self.0.verify(node, message, proof)
    }

    /// A host is advertised by nobody but itself.
    fn allows(&self, node: NodeId, destination: &Destination) -> bool {
        xid(destination).is_some_and(|xid| !names_host(&xid) || xid.id == node.0)
    }

    fn agree(&self, proof: &[u8], context: &[u8]) -> Option<SharedSecret> {
        self.0.agree(proof, context)
    }
}

/// The principals whose XIDs are the hash of a host's key: both versions of HID.
pub(crate) const VERSIONS: [XidType; 2] = [XidType::HID, XidType::HID2];

/// Whether an XID is the hash of a host's key.
pub(crate) fn names_host(xid: &Xid) -> bool {
    VERSIONS.contains(&xid.kind)
}

/// The host that a node is.
pub(crate) fn host(node: NodeId) -> Xid {
    Xid::new(XidType::HID, node.0)
}

/// The node that a host is.
pub(crate) fn node(host: Xid) -> NodeId {
    NodeId(host.id)
}

/// An XID as a destination.
pub(crate) fn destination(xid: Xid) -> Destination {
    let name = [&xid.kind.0.to_be_bytes()[..], &xid.id].concat();
    Destination::new(&name).expect("24 bytes are allowed")
}

/// A destination as an XID, if it is one.
pub(crate) fn xid(destination: &Destination) -> Option<Xid> {
    let name: &[u8; NAME_LEN] = destination.bytes().try_into().ok()?;
    let (kind, id) = name.split_first_chunk()?;
    Some(Xid::new(XidType(u32::from_be_bytes(*kind)), id.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_advertised_by_itself_alone() {
        let hosts = Hosts::new(PrivateKey::from_seed([1; 32]));
        let own = hosts.node();
        let allows = |xid| hosts.allows(own, &destination(xid));
        assert!(allows(host(own)));
        assert!(!allows(Xid::new(XidType::HID, [7; 20])));
        assert!(allows(Xid::new(XidType::HID2, own.0)), "the second version has the same name");
        assert!(!allows(Xid::new(XidType::HID2, [7; 20])));
        assert!(allows(Xid::new(XidType::AD, [7; 20])) && allows(Xid::new(XidType::XDP, [7; 20])));
        let other = Destination::new(b"no XID").unwrap();
        assert!(!hosts.allows(own, &other));
    }

    #[test]
    fn xids_are_destinations_and_back() {
        let name = Xid::new(XidType(0x0102_0304), [9; 20]);
        assert_eq!(destination(name).bytes()[..5], [1, 2, 3, 4, 9]);
        assert_eq!(xid(&destination(name)), Some(name));
        assert_eq!(xid(&Destination::new(&[1; 23]).unwrap()), None);
        assert_eq!(node(host(NodeId([3; 20]))), NodeId([3; 20]));
    }
}
