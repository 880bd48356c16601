//! United 4ID (uni4id): IPv4 addresses as the Click prototype of XIA writes them.
//!
//! Reference: behaviour as in AltraMayor/XIA-for-Linux, `net/xia/ppal_uni4id`; the form is that of the
//! 4ID of XIA-Project/xia-core.
//!
//! An identifier looks like an IPv4 header without options, of protocol 250 and with a hop limit of 250,
//! whose destination is the address and in which everything else is zero:
//!
//! ```text
//!  0                                               16          20
//! +-----------------------------------------------+-----------+
//! | 45 00 00 00 00 01 00 00 fa fa 00 00 00 00 00 00 | IPv4      |
//! +-----------------------------------------------+-----------+
//! ```
//!
//! Such an XID says that a host can be reached over IP, and leaves open how. Here the answer is always the
//! tunnel of U4ID to that address at the conventional UDP port, whether or not this node has U4ID.
//!
//! | XID | answer |
//! |---|---|
//! | well-formed | look up the U4ID of that address and port 13781 instead |
//! | anything else | refused: the packet is dropped, no fallback |
//!
//! There are no statements, and nothing to show. U4ID says whether the address is one that packets can be
//! sent to, and whether it is this node.
//!
//! ```
//! use weft_xia_uni4id::{Uni4id, to_xid};
//! use weft_xip::principal::{Answer, Principal};
//!
//! let xid = to_xid("192.0.2.1".parse()?);
//! assert_eq!(xid.to_string(), "uni4id-4500000000010000fafa000000000000c0000201");
//! let u4id = "u4id-c000020135d50000000000000000000000000000".parse()?;
//! assert_eq!(Uni4id.lookup(&xid, &mut Vec::new()), Answer::Redirect(u4id));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use weft_base::Instant;
use weft_xip::changes::Change;
use weft_xip::forward::DropReason;
use weft_xip::principal::{Answer, Branch, Output, Principal};
use weft_xip::words::WordError;
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

/// What stands in front of the address.
const FRONT: [u8; 16] = [0x45, 0, 0, 0, 0, 1, 0, 0, 0xfa, 0xfa, 0, 0, 0, 0, 0, 0];

/// The UDP port at which hosts receive XIP packets by convention (13781).
const CONVENTIONAL_PORT: u16 = 0x35d5;

/// The principal uni4id; see the crate's text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uni4id;

/// The XID of a host that has this address.
#[must_use]
pub fn to_xid(address: Ipv4Addr) -> Xid {
    let mut id = [0; ID_LEN];
    id[..FRONT.len()].copy_from_slice(&FRONT);
    id[FRONT.len()..].copy_from_slice(&address.octets());
    Xid::new(XidType::UNI4ID, id)
}

/// The address in an XID of this type; `None` if it has another form.
#[must_use]
pub fn from_xid(xid: &Xid) -> Option<Ipv4Addr> {
    let address = xid.id.strip_prefix(&FRONT)?.first_chunk::<4>()?;
    (xid.kind == XidType::UNI4ID).then(|| Ipv4Addr::from(*address))
}

/// The XID of the tunnel to an address: address, port, zeros.
fn tunnel(address: Ipv4Addr) -> Xid {
    let mut id = [0; ID_LEN];
    id[..4].copy_from_slice(&address.octets());
    id[4..6].copy_from_slice(&CONVENTIONAL_PORT.to_be_bytes());
    Xid::new(XidType::U4ID, id)
}

/// There is nothing to set and nothing to delete.
fn no_statements(words: &[&str]) -> WordError {
    let word = words.first().copied().unwrap_or_default();
    let text = format!("`{word}` is not a statement of uni4id, which has none");
    WordError { word: words.first().map(|_| 0), ..WordError::new(text) }
}

impl Principal for Uni4id {
    fn kind(&self) -> XidType {
        XidType::UNI4ID
    }

    fn lookup(&self, xid: &Xid, _: &mut Vec<Branch>) -> Answer {
        match from_xid(xid) {
            Some(address) => Answer::Redirect(tunnel(address)),
            None => Answer::Refuse(DropReason::MalformedXid),
        }
    }

    /// What is answered follows from the XID alone.
    fn drain_changes(&mut self, _: &mut Vec<Change>) {}

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(no_statements(words))
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        Err(no_statements(words))
    }

    fn show(&self) -> Value {
        json!({})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(xid: &Xid) -> Answer {
        Uni4id.lookup(xid, &mut Vec::new())
    }

    #[test]
    fn an_address_leads_to_its_tunnel_at_the_conventional_port() {
        let address = Ipv4Addr::new(10, 99, 0, 4);
        assert_eq!(from_xid(&to_xid(address)), Some(address));
        let expected = "u4id-0a63000435d50000000000000000000000000000".parse().unwrap();
        assert_eq!(ask(&to_xid(address)), Answer::Redirect(expected));
    }

    #[test]
    fn every_bit_in_front_of_the_address_counts() {
        let xid = to_xid(Ipv4Addr::new(10, 99, 0, 4));
        for bit in 0..8 * ID_LEN {
            let mut other = xid;
            other.id[bit / 8] ^= 1 << (bit % 8);
            let refused = ask(&other) == Answer::Refuse(DropReason::MalformedXid);
            assert_eq!(refused, bit < 8 * FRONT.len(), "bit {bit}");
        }
        assert_eq!(from_xid(&Xid::new(XidType::U4ID, xid.id)), None);
    }

    #[test]
    fn a_statement_is_refused_with_its_place() {
        let error = Uni4id.set(Instant::ZERO, &["local", "x"], &mut Vec::new()).unwrap_err();
        assert_eq!(error.word, Some(0));
        assert!(error.text.contains("which has none"), "{error}");
        assert_eq!(Uni4id.delete(Instant::ZERO, &[], &mut Vec::new()).unwrap_err().word, None);
        assert_eq!(Uni4id.show(), json!({}));
    }
}
