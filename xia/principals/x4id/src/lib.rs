//! X4ID and X6ID: addresses of IP, forwarded by the kernel's table of IP and without tunnels.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 (the principal X4ID, "the tightest integration between TCP/IP and XIA
//! stacks"). X6ID is its counterpart for IPv6; nobody has described it.
//!
//! For networks in which routers have both stacks. A packet on its way to an X4ID goes where the kernel would send a
//! packet of IP to that address: the answer is an interface and the next router. It goes there as an XIP packet in an
//! Ethernet frame, to the Ethernet address that the kernel's table of neighbours (ARP, neighbour discovery of IPv6) has
//! for that router, which must speak XIA, too. So everything that fills the kernel's table (BGP, OSPF, DHCP, an
//! operator) routes XIA, and no router in between takes the edges of an address for a payload.
//!
//! | the kernel would | answer |
//! |---|---|
//! | deliver it here | this node: go on behind it; an error as a sink |
//! | send it to a neighbour whose Ethernet address it knows, out of an interface that carries XIP | to that neighbour |
//! | send it to a neighbour that it has to look for | unknown, the next edge is tried, and it is looked for |
//! | send it out of another interface, or have no way | unknown, the next edge is tried |
//! | malformed, or the address of no single host | refused: the packet is dropped, no fallback |
//!
//! # Following the kernel
//! The principal never asks about one address. It is told of every route and neighbour, and of each change (`Input::Ip`),
//! and keeps the routes in a [`weft_routing::PrefixTable`]. So a change makes the forwarder ask again about what begins
//! with the prefix of that route, or is sent to that neighbour, and about nothing else.
//!
//! The kernel looks for neighbours only if somebody needs them. So this has it look for each router when the first route
//! over it comes. A look-up that misses a host on the link notes it, and at the next [`Principal::deadline`] the node has
//! the kernel look, too: the first packet to it goes by another edge or is lost. Who does not answer is looked for again
//! after a second if packets still need it, and later if others wait to be looked for. A neighbour of which the kernel has heard nothing for a while is probed if it was used since it
//! was probed last. When it is gone, the kernel says so, and packets go by their next edge.
//!
//! There are no statements: what there is to say is said to the kernel (`ip route`, `ip neighbour`).
//!
//! # Limits
//! * The tables `local`, `main` and `default` count, as without rules of policy; routes for certain sources or types of
//!   service do not. Of a route with several ways the first that works is taken for all packets.
//! * A neighbour that does not speak XIA swallows the packets: IP cannot tell whether it does.
//!
//! [`Principal::deadline`]: weft_xip::principal::Principal::deadline

mod dual_stack;
mod name;
mod neighbours;
mod routes;
#[cfg(test)]
mod tests;

pub use dual_stack::DualStack;
pub use name::{NameError, Version, from_xid, to_xid};
