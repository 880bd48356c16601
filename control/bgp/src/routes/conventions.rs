//! Attributes by which autonomous systems tell each other what a route is for: whether it may only go to customers,
//! whether its way will soon be closed, whether it lives only because there may be no other, and whether its packets are to be
//! dropped; and what a system says to itself alone.
//!
//! Reference: RFC 9234 §5 (ONLY_TO_CUSTOMER); RFC 8326 §4 (graceful shutdown); RFC 9494 §3.2 (LLGR_STALE); RFC 7999 (BLACKHOLE); RFC 7311 §3.1 (AIGP
//! is not for other systems unless both sides want it, which cannot be said here); RFC 8669 §5 and §6 (nor is a Prefix-SID); RFC 4271 §5.1.5 (LOCAL_PREF); RFC 4456
//! §8 (where a route was reflected); RFC 4360 §6 (extended communities that
//! are not transitive); RFC 8097 §2 (what others say of the validity of an origin).

use crate::numbers::community::{GRACEFUL_SHUTDOWN, NO_ADVERTISE, NO_EXPORT};
use crate::wire::{Attributes, Role};

/// In the type of an extended community: it does not leave the system (RFC 4360 §2).
const NOT_TRANSITIVE: u64 = 1 << 62;
/// The type of one that says whether an origin is valid (RFC 8097 §2).
const ORIGIN_VALIDATION: u64 = 0x4300;

/// Whether a route from an external peer to whom this router is `role` has leaked and may not be used; marked by [`take`] or
/// not.
pub(crate) fn is_leak(role: Option<Role>, remote_as: u32, attributes: &Attributes) -> bool {
    let marked = attributes.rare().only_to_customer;
    match role {
        Some(Role::Provider | Role::RouteServer) => marked.is_some(),
        Some(Role::Peer) => marked.is_some_and(|number| number != remote_as),
        _ => false,
    }
}

/// A route from an external peer to whom this router is `role`: it is marked if it may only go to customers, and what a system
/// says to itself is not believed.
pub(crate) fn take(role: Option<Role>, remote_as: u32, attributes: &mut Attributes) {
    keep(attributes, |community| community >> 48 != ORIGIN_VALIDATION);
    if attributes.rare().aigp.is_some() || attributes.rare().prefix_sid.is_some() {
        attributes.change_rare(|rare| (rare.aigp, rare.prefix_sid) = (None, None));
    }
    if attributes.has_community(GRACEFUL_SHUTDOWN) {
        attributes.local_pref = Some(0);
    }
    let marked = attributes.rare().only_to_customer;
    let is_from_above = matches!(role, Some(Role::Customer | Role::RouteServerClient | Role::Peer));
    if is_from_above && marked.is_none() {
        attributes.change_rare(|rare| rare.only_to_customer = Some(remote_as));
    }
}

/// A route for an external peer to whom this router is `role`. False if it may not be told.
pub(crate) fn tell(role: Option<Role>, local_as: u32, attributes: &mut Attributes) -> bool {
    let is_marked = attributes.rare().only_to_customer.is_some();
    let is_upward = matches!(role, Some(Role::Customer | Role::RouteServerClient | Role::Peer));
    let is_downward = matches!(role, Some(Role::Provider | Role::RouteServer | Role::Peer));
    if is_downward && !is_marked {
        attributes.change_rare(|rare| rare.only_to_customer = Some(local_as));
    }
    !(is_upward && is_marked)
}

/// Packets for a route are dropped here: other systems do not hear of it (RFC 7999 §3.2).
pub(crate) fn keep_blackhole(attributes: &mut Attributes) {
    if !attributes.has_community(NO_ADVERTISE) {
        add_community(attributes, NO_EXPORT);
    }
}

/// A route leaves this system: what it says to itself stays here.
pub(crate) fn leave(attributes: &mut Attributes) {
    attributes.local_pref = None;
    keep(attributes, |community| community & NOT_TRANSITIVE == 0);
    attributes.change_rare(|rare| {
        rare.originator_id = None;
        rare.cluster_list = Box::default();
        rare.aigp = None;
        rare.prefix_sid = None;
    });
}

/// Where a route was reflected: identifiers of routers and clusters of this system.
pub(crate) fn forget_reflection(attributes: &mut Attributes) {
    if attributes.rare().originator_id.is_some() || !attributes.rare().cluster_list.is_empty() {
        attributes.change_rare(|rare| {
            (rare.originator_id, rare.cluster_list) = (None, Box::default());
        });
    }
}

fn keep(attributes: &mut Attributes, stays: impl Fn(u64) -> bool) {
    let all = &attributes.extended_communities;
    if !all.iter().all(|one| stays(*one)) {
        attributes.extended_communities = all.iter().copied().filter(|one| stays(*one)).collect();
    }
}

/// Marks a route with this community, if it is not.
pub(crate) fn add_community(attributes: &mut Attributes, community: u32) {
    if !attributes.has_community(community) {
        let all = attributes.communities.iter().copied().chain([community]);
        attributes.communities = all.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: u32 = 65001;
    const LOCAL: u32 = 65000;

    fn marked(number: Option<u32>) -> Attributes {
        let mut attributes = Attributes::default();
        attributes.change_rare(|rare| rare.only_to_customer = number);
        attributes
    }

    /// RFC 9234 §5, the rules for what comes in.
    #[test]
    fn what_comes_from_above_or_beside_is_marked_and_leaks_are_found() {
        use Role::{Customer, Peer, Provider, RouteServer, RouteServerClient};
        for (role, before, passes, after) in [
            (Provider, None, true, None),
            (Provider, Some(7), false, Some(7)),
            (RouteServer, None, true, None),
            (RouteServer, Some(REMOTE), false, Some(REMOTE)),
            (Peer, None, true, Some(REMOTE)),
            (Peer, Some(REMOTE), true, Some(REMOTE)),
            (Peer, Some(7), false, Some(7)),
            (Customer, None, true, Some(REMOTE)),
            (Customer, Some(7), true, Some(7)),
            (RouteServerClient, None, true, Some(REMOTE)),
        ] {
            let mut attributes = marked(before);
            let leaks = |attributes: &Attributes| is_leak(Some(role), REMOTE, attributes);
            assert_eq!(leaks(&attributes), !passes, "{role:?} {before:?}");
            take(Some(role), REMOTE, &mut attributes);
            // It may be asked again of what is marked.
            assert_eq!(leaks(&attributes), !passes, "{role:?} {before:?}");
            assert_eq!(attributes.rare().only_to_customer, after, "{role:?} {before:?}");
        }
        let mut attributes = marked(None);
        take(None, REMOTE, &mut attributes);
        assert!(!is_leak(None, REMOTE, &attributes));
        assert_eq!(attributes, marked(None));
    }

    /// RFC 9234 §5, the rules for what goes out.
    #[test]
    fn what_is_marked_goes_to_customers_alone() {
        use Role::{Customer, Peer, Provider, RouteServer, RouteServerClient};
        for (role, before, passes, after) in [
            (Provider, None, true, Some(LOCAL)),
            (Provider, Some(7), true, Some(7)),
            (RouteServer, None, true, Some(LOCAL)),
            (Peer, None, true, Some(LOCAL)),
            (Peer, Some(7), false, Some(7)),
            (Customer, None, true, None),
            (Customer, Some(7), false, Some(7)),
            (RouteServerClient, Some(7), false, Some(7)),
        ] {
            let mut attributes = marked(before);
            assert_eq!(tell(Some(role), LOCAL, &mut attributes), passes, "{role:?} {before:?}");
            assert_eq!(attributes.rare().only_to_customer, after, "{role:?} {before:?}");
        }
    }

    /// Link bandwidth of 4 and a valid origin stay in a system, a route target does not.
    #[test]
    fn what_a_system_says_to_itself_is_neither_believed_nor_told() {
        let (bandwidth, valid, target) =
            (0x4004_fde8_0000_0000, 0x4300_0000_0000_0000, 0x0002_fde8_0000_0004);
        let said = || {
            let mut attributes = marked(None);
            attributes.extended_communities = [bandwidth, valid, target].into();
            attributes.change_rare(|rare| {
                rare.aigp = Some(0);
                rare.prefix_sid = Some([1, 0, 7, 0, 0, 0, 0, 0, 0, 9].into());
            });
            attributes
        };
        let rare = |of: &Attributes| (of.rare().aigp, of.rare().prefix_sid.clone());
        let mut heard = said();
        take(None, REMOTE, &mut heard);
        assert_eq!(
            (&*heard.extended_communities, rare(&heard)),
            (&[bandwidth, target][..], (None, None))
        );
        let mut told = said();
        leave(&mut told);
        assert_eq!((&*told.extended_communities, rare(&told)), (&[target][..], (None, None)));
    }

    #[test]
    fn a_way_that_will_be_closed_is_the_last_that_is_used() {
        let mut attributes = Attributes::default();
        add_community(&mut attributes, GRACEFUL_SHUTDOWN);
        add_community(&mut attributes, GRACEFUL_SHUTDOWN);
        assert_eq!(&*attributes.communities, [GRACEFUL_SHUTDOWN]);
        take(None, REMOTE, &mut attributes);
        assert_eq!(attributes.local_pref, Some(0));
    }
}
