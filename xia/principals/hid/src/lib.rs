//! HID, hosts: neighbours on Ethernet links, found by NWP or configured.
//!
//! Reference: Machado et al., "Linux XIA", §3 (HIDs) and §4; behaviour as in
//! AltraMayor/XIA-for-Linux, `net/xia/ppal_hid`, of which NWP is the only specification.
//!
//! A HID identifier is the hash of a host's public key. A packet for a neighbour is sent to its
//! hardware address; packets for any other host need a redirect, stated or found by a routing protocol.
//!
//! | XID | answer |
//! |---|---|
//! | `local XID` | this node: go on behind it; an error as a sink, a host receives no data itself |
//! | a configured neighbour | send to its hardware address on its interface |
//! | `route XID via XID`, or a routing protocol's redirect | look the gateway up instead |
//! | `route XID unreachable` | unknown, the next edge is tried |
//! | a learned neighbour | send to its hardware address on its interface |
//! | anything else | look a gateway of `route default via XID…` up instead; without that unknown |
//!
//! A neighbour with several places is reached at the first of them: configured ones before learned
//! ones, then by name of the interface, then by hardware address in byte order.
//!
//! # The way of a packet
//! [`Principal::lookup`](weft_xip::principal::Principal::lookup) is one probe of a hash table of
//! finished answers, which `refresh` keeps up to date.
//!
//! # Neighbour discovery
//! Messages are in [`nwp`]. The node asks for a port of EtherType 0xC0DF on each interface that has
//! a hardware address, and then:
//! * announces its HIDs at once when the port is open, again 50 ms later, and when the set of its HIDs
//!   changes;
//! * every 5 seconds ([`ANNOUNCEMENT_PERIOD`]) announces them on each interface with the
//!   probability own HIDs : all HIDs known there, so that one node of a link speaks on average;
//! * on an announcement learns its HIDs, and with the same probability answers with a list of all
//!   neighbours on that interface, the announcer included;
//! * on a list learns all of it;
//! * asks newcomers to prove that they have the key of their HID: `proof`;
//! * withdraws HIDs that it has no more, when it ends, and where NWP is switched off;
//! * asks a neighbour that falls silent whether it is there, and forgets it if it does not answer: `expiry`.
//!
//! HIDs of this node that others announce are refused, counted and reported.
//!
//! # Statements
//! ```text
//! local hid-…                                 this node has this identity
//! neighbour hid-… link MAC interface NAME     always reached there (also spelt `neighbor`)
//! route hid-… via XID…                        a host that is no neighbour: look that XID up instead
//! route hid-… unreachable                     it leads nowhere, whatever neighbours say
//! route default via XID…                      all hosts that nothing is known of: look that XID up instead
//! nwp on|off [NAME]                           neighbour discovery, everywhere or on one interface
//! proof off|preferred|required [NAME]         what announcers must prove, preferred if not set
//! neighbour-limit NUMBER                      learned neighbours at most, 4096 if not set
//! neighbour-expiry DURATION|off               how long a neighbour may be silent, 15s if not set
//! ```
//! `neighbour hid-…` alone deletes all places of a neighbour, learned ones included.
//!
//! # Differences from Linux XIA
//! * Linux XIA first announces five seconds after the start; here at once.
//! * A newcomer's broadcast is answered with an announcement to it alone. Lists do not name their
//!   sender, so in Linux XIA the newcomer must wait for the others' next announcements. So is that of
//!   a known neighbour that speaks twice within half a period: it has been started again. Nobody is told so more
//!   often than once a second; who asks before is told then.
//! * Announcements that do not fit one frame are split; Linux XIA leaves HIDs out.
//! * Hardware addresses that are zero, a group's or this node's own are refused.
//! * What is learned is bounded, and forgotten where NWP is switched off.
//! * Neighbours that are silent and do not answer are forgotten.
//! * Nodes tell their neighbours when they end, and prove it.
//! * Announcers are asked to prove their HIDs. Where that is not required, and for a host that has proven nothing,
//!   anyone on the link can attract its packets, as in Linux XIA. A configured neighbour cannot be displaced.
//!
//! # Versions
//! There is a second version, [`Hid::second`], which differs by its numbers and by requiring proof.
//!
//! ```
//! use weft_base::{Instant, Random};
//! use weft_xia_hid::Hid;
//! use weft_xip::principal::{Answer, Principal};
//! use weft_xip::{Xid, XidType};
//!
//! let mut hid = Hid::new(Random::from_seed(1));
//! let here = Xid::new(XidType::HID, [1; 20]);
//! hid.set(Instant::ZERO, &["local", &here.to_string()], &mut Vec::new())?;
//! assert_eq!(hid.lookup(&here, &mut Vec::new()), Answer::Through);
//! # Ok::<(), weft_xip::words::WordError>(())
//! ```

mod activity;
mod discovery;
mod expiry;
mod hid;
mod interfaces;
mod neighbours;
pub mod nwp;
mod places;
mod proof;
mod show;
mod statements;
#[cfg(test)]
mod tests;
mod version;

pub use activity::Activity;
pub use discovery::ANNOUNCEMENT_PERIOD;
pub use expiry::DEFAULT_EXPIRY;
pub use hid::{DEFAULT_NEIGHBOUR_LIMIT, Hid};
