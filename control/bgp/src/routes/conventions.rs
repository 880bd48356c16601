//! Attributes by which autonomous systems tell each other what a route is for: whether it may only go to customers,
//! whether its way will soon be closed, and whether it lives only because there may be no other.
//!
//! Reference: RFC 9234 §5 (ONLY_TO_CUSTOMER); RFC 8326 §4 (graceful shutdown); RFC 9494 §3.2 (LLGR_STALE).

use crate::numbers::community::GRACEFUL_SHUTDOWN;
use crate::wire::{Attributes, Role};

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

/// A route from an external peer to whom this router is `role`: it is marked if it may only go to customers.
pub(crate) fn take(role: Option<Role>, remote_as: u32, attributes: &mut Attributes) {
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
