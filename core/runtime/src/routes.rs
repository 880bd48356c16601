//! What a process can do with the routes of this machine's IP.
//!
//! Reference: Handley et al. (XORP), §3 (one process has the forwarding engine); rtnetlink(7).
//!
//! Changes are carried out before anything else happens to the process, so whoever has many makes them in pieces: it
//! takes the kernel some microseconds for each.

use weft_netlink::{Deletions, KernelRoute, RouteChange, RouteSpace, RoutesTold};

/// What to do with the routes of a space.
#[derive(Debug)]
pub enum RouteRequest {
    /// Make changes, in order; answered by [`RouteReply::Changed`].
    Change {
        /// Whose routes they are.
        space: RouteSpace,
        /// Those that are refused keep the others from nothing.
        changes: Vec<RouteChange>,
    },
    /// Tell which routes there are; answered by one [`RouteReply::Told`] after the other until that is all.
    Dump {
        /// Whose.
        space: RouteSpace,
    },
    /// Tell what others delete of these routes from now on; answered by [`RouteReply::Deleted`] each time, and by an error if
    /// it ends. Nobody else deletes anything in the simulator.
    Watch {
        /// The number of the protocol that the routes have, in any table.
        protocol: u8,
    },
}

/// What came of a [`RouteRequest`].
#[derive(Debug)]
pub enum RouteReply {
    /// Changes were made.
    Changed {
        /// Those that were not: their places in the request, in order, and why, in one sentence.
        refused: Vec<(usize, String)>,
    },
    /// Routes are there.
    Told {
        /// Some of them, or none yet.
        routes: Vec<KernelRoute>,
        /// Whether there may be more.
        told: RoutesTold,
    },
    /// Others have deleted routes.
    Deleted(Deletions),
}
