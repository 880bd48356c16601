//! Link-state routing for any architecture: every node tells all others who its neighbours are and what
//! is reached on it, and each computes the shortest paths.
//!
//! Reference: RFC 2328 and RFC 5340 (OSPF), ISO/IEC 10589 (IS-IS), RFC 5303 (three-way handshake), RFC
//! 7987 (lifetimes), RFC 8405 (delay of computations). The messages are the crate's own: each
//! architecture carries them as it likes, and names what is reached as it likes ([`Destination`]).
//!
//! [`LinkState`] is a component: [`Input`]s and the time go in, [`Output`]s come out. It does no I/O; the
//! carrier says which links there are, brings messages, and puts routes where packets are forwarded.
//!
//! # The way of a change
//! 1. A neighbour on a link proves who it is (`session`), and tells all it knows; the link is
//!    *usable* then. Or it is lost: by the carrier's word, by silence, by farewell.
//! 2. The node issues an advertisement (LSA) with its usable neighbours and its destinations (`origin`):
//!    at once if it did not just do so, else after a pause that doubles.
//! 3. Each node that gets it checks its proof, keeps it if it is new (`database`), and tells all its
//!    other neighbours until they acknowledge it (`flood`).
//! 4. Each node computes shortest paths (`spf`), soon after the first of several changes, and later and
//!    later while they go on (`backoff`); then routes, of which only the changes come out (`routes`).
//!
//! # Who can do what
//! Advertisements are proven by the originator, so that nobody can speak for another; greetings by the
//! neighbour; everything else between neighbours has a tag made with a secret of their session
//! ([`Authority`]). Somebody on a link without a key can delay and drop messages, and make a node verify
//! ten greetings a second; a carrier of links that cost nothing to invent bounds those of all together
//! ([`wire::Message::is_greeting`]). A node with a key can lie about its own links and destinations only, and a
//! link counts only if both its ends say so. On a link it can be the neighbour where no neighbour speaks, and
//! keep others out by that; a session that is up it cannot end. Messages that are passed on unchanged between two
//! places make their nodes neighbours over that tunnel.
//!
//! What a neighbour can cost is bounded: verifications in a second, changes of one advertisement in a
//! second, advertisements in the database (those of nodes that nobody can reach go first), the length of
//! each, and what is under way to it unacknowledged.
//!
//! # Differences from OSPF and IS-IS
//! * Every link is a link between two nodes. A LAN of n nodes has n(n-1)/2 of them: there is no
//!   designated router.
//! * One area, one level.
//! * The age of an advertisement does not travel; see `database`.
//! * A database that is full loses advertisements, and counts them; there is no overload bit.
//!
//! ```
//! use weft_base::{Instant, Random};
//! use weft_keys::PrivateKey;
//! use weft_linkstate::{Input, Keys, LinkId, LinkState, Output, Settings};
//! use weft_runtime::Component;
//!
//! let mut nodes = [1, 2].map(|seed| {
//!     let keys = Keys::new(PrivateKey::from_seed([seed; 32]));
//!     let random = Random::from_seed(u64::from(seed));
//!     LinkState::new(keys, Settings::default(), random).unwrap()
//! });
//! // One cable: what one sends on its only link, the other receives.
//! let mut now = Instant::ZERO;
//! let mut out = [Vec::new(), Vec::new()];
//! for (node, out) in nodes.iter_mut().zip(&mut out) {
//!     let link = LinkId(1);
//!     node.handle(now, Input::LinkUp { link, metric: 10, neighbour: None }, out);
//! }
//! let mut up = 0;
//! while up < 2 {
//!     for from in 0..2 {
//!         for output in std::mem::take(&mut out[from]) {
//!             match output {
//!                 Output::Send { link, message } => {
//!                     let input = Input::Received { link, message };
//!                     nodes[1 - from].handle(now, input, &mut out[1 - from]);
//!                 }
//!                 Output::NeighbourUp { .. } => up += 1,
//!                 _ => {}
//!             }
//!         }
//!     }
//!     if out.iter().all(Vec::is_empty) {
//!         now = nodes.iter().filter_map(|node| node.deadline()).min().unwrap().max(now);
//!         nodes.iter_mut().zip(&mut out).for_each(|(node, out)| node.handle(now, Input::Tick, out));
//!     }
//! }
//! ```

#![forbid(unsafe_code)]

mod activity;
mod authority;
mod backoff;
mod database;
mod engine;
mod event;
mod flood;
mod ids;
mod origin;
mod routes;
mod session;
mod settings;
mod spf;
mod tree;
pub mod wire;

pub use activity::Activity;
pub use authority::{Authority, Keys};
pub use engine::{Advertised, LinkState, Neighbour, NeighbourState};
pub use event::{Input, Loss, Output};
pub use ids::{Destination, LinkId, LsaHeader, LsaId, MAX_METRIC, Metric, NodeId, Version};
pub use routes::Route;
pub use settings::{Pauses, Settings, SettingsError, SpfDelays};
pub use spf::NextHop;
