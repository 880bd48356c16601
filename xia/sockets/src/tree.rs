//! Multicast, as far as applications have to do with it: the filter of a tree.
//!
//! Reference: Machado et al., "Linux XIA", §5.3 and §6.1.
//!
//! There are no groups to join. A *sender* sends to an address that leads through a zFilter, the union of
//! the identifiers of the tree's links, and ends in a sink; for example entry → zFilter → XDP. A *receiver*
//! is bound to that sink, the same on every machine, and its node lets packets in by a link that is its
//! own (the statement `local` of the principal zf, which operators set). The network copies packets where
//! links part.

use weft_xip::{Xid, XidType};

/// Why links make no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// None are given.
    #[error("a tree has at least one link")]
    Empty,
    /// One is no link identifier.
    #[error("{0} is no link: links, and trees of links, are of type zf")]
    NotALink(Xid),
    /// One has no bits, and would be in every tree.
    #[error("{0} has no bits set: every filter would hold this link")]
    NoBits(Xid),
}

/// The zFilter of the tree with these links, each of which may be a tree itself: the union of their bits.
///
/// ```
/// use weft_xia_sockets::tree;
/// use weft_xip::{Address, Xid, XidType};
///
/// let [east, here] = [1, 128].map(|byte| Xid::new(XidType::ZF, [byte; 20]));
/// let group = Xid::new(XidType::XDP, [7; 20]);
/// let everybody = Address::scoping(&[tree(&[east, here])?, group])?;
/// assert!(everybody.to_string().starts_with("zf-8181"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// There is no link, or something is none.
pub fn tree(links: &[Xid]) -> Result<Xid, TreeError> {
    let mut union = Xid::new(XidType::ZF, Default::default());
    for link in links {
        if link.kind != XidType::ZF {
            return Err(TreeError::NotALink(*link));
        }
        if link.id.iter().all(|byte| *byte == 0) {
            return Err(TreeError::NoBits(*link));
        }
        union.id.iter_mut().zip(link.id).for_each(|(byte, other)| *byte |= other);
    }
    if links.is_empty() { Err(TreeError::Empty) } else { Ok(union) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_make_a_tree() {
        let host = Xid::new(XidType::HID, [1; 20]);
        assert_eq!(tree(&[host]), Err(TreeError::NotALink(host)));
        let nothing = Xid::new(XidType::ZF, [0; 20]);
        assert_eq!(tree(&[nothing]), Err(TreeError::NoBits(nothing)));
        assert_eq!(tree(&[]), Err(TreeError::Empty));
    }

    #[test]
    fn a_tree_of_trees_is_the_tree_of_all_their_links() {
        let [a, b, c] = [1, 2, 4].map(|byte| Xid::new(XidType::ZF, [byte; 20]));
        assert_eq!(tree(&[tree(&[a, b]).unwrap(), c]), tree(&[a, b, c]));
        assert_eq!(tree(&[a]), Ok(a));
    }
}
