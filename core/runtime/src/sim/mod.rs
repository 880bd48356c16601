//! The simulated driver: any number of processes on modelled nodes and links, in virtual time.
//!
//! A [`World`] is built of nodes with interfaces, links between them ([`LinkModel`](crate::LinkModel)
//! in each direction) and processes on the nodes. The processes are the very same that the real driver
//! runs. What is modelled around them:
//!
//! * **Links**: Ethernet frames over cables and hubs that can be cut and mended. (`transmitter`,
//!   `network`)
//! * **Nodes**: interfaces, a network card's address filter, and IPv4 and UDP as far as a kernel does
//!   them for its processes and for others: sockets, routes, forwarding. A node without a process is
//!   a plain router or host. (`node`, `ip`, `routes`, `sockets`)
//! * **Interfaces** are watched and changed by processes; none can be made. (`interfaces`)
//! * **Routes** of the main table of IPv4 are changed and read by processes. (`kernel_routes`)
//! * **Ports**: Ethernet and UDP; TUN and TAP are refused. (`ports`) What stands for descriptors of
//!   ports that one process opens for another. (`handles`)
//! * **Channels** between processes of one node. (`channels`)
//! * **Connections of TCP** between nodes, as their processes see them. (`streams`, `paths`)
//! * **Processes that start others** and keep listening sockets for them. (`family`, `inheritance`)
//! * **A disk** for the whole world. (`disk`)
//!
//! Computation takes no virtual time: a process handles everything that comes at one time at that
//! time. Receive buffers therefore never overflow; what limits a run is links and quotas.
//!
//! The course of a world depends on nothing but how it is built, how it is driven, and its seed.
//! [`World::trace_hash`] is the proof: it covers every byte that any node received from a link or on a connection.
//!
//! ```
//! use weft_base::Instant;
//! use weft_runtime::LinkConfig;
//! use weft_runtime::sim::{InterfaceConfig, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig { seed: 7, ..WorldConfig::default() });
//! let (a, b) = (world.add_node("a")?, world.add_node("b")?);
//! let a_eth0 = world.add_interface(a, InterfaceConfig::new("eth0"))?;
//! let b_eth0 = world.add_interface(b, InterfaceConfig::new("eth0"))?;
//! world.connect((a_eth0, LinkConfig::default()), (b_eth0, LinkConfig::default()))?;
//! // Here processes are spawned with `world.spawn(a, Spawn::new("name", process))`.
//! world.run_until(Instant::from_nanos(1_000_000_000))?;
//! # Ok::<(), weft_runtime::sim::WorldError>(())
//! ```

mod agenda;
mod build;
mod channels;
mod disk;
mod error;
mod family;
mod groups;
mod handles;
mod hash;
mod ids;
mod inheritance;
mod interfaces;
mod ip;
mod ip_watchers;
mod kernel_routes;
mod lifecycle;
mod network;
mod node;
mod paths;
mod ports;
mod process;
mod routes;
mod sockets;
mod streams;
#[cfg(test)]
mod tests;
mod transmitter;
mod world;

pub use build::InterfaceConfig;
pub use channels::{ChannelConfig, ChannelCount};
pub use error::WorldError;
pub use family::{Child, Parent, ParentAction, ParentEvent};
pub use ids::{InterfaceId, LinkId, NodeId, ProcessId};
pub use network::{Direction, Sighting};
pub use node::NodeCount;
pub use process::{Line, Spawn, Status};
pub use world::{Ended, World, WorldConfig};
