//! What can go wrong when a world is built or run.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_base::Instant;

/// Why a world could not be built as asked, or could not run on.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// Two nodes of one name.
    #[error("there is a node {0} already; give this one another name")]
    NodeExists(String),
    /// Two interfaces of one name on a node.
    #[error("node {node} has an interface {interface} already; give this one another name")]
    InterfaceExists {
        /// The node.
        node: String,
        /// The interface's name.
        interface: String,
    },
    /// An interface that hangs on a link, or was deleted, was to be connected.
    #[error("interface {interface} of node {node} {reason}; connect a new interface instead")]
    NotConnectable {
        /// The node.
        node: String,
        /// The interface's name.
        interface: String,
        /// Why not.
        reason: &'static str,
    },
    /// A prefix longer than an address.
    #[error("the prefix length {0} is more than the 32 bits of an IPv4 address")]
    PrefixLength(u8),
    /// A route via a gateway that no interface of the node reaches.
    #[error(
        "node {node} has no interface in a network with the gateway {gateway}; give the interface an address in that network first"
    )]
    GatewayUnreachable {
        /// The node.
        node: String,
        /// The gateway.
        gateway: Ipv4Addr,
    },
    /// A real file could not be imported.
    #[error("cannot read {path} to import it: {error}")]
    Import {
        /// The real file.
        path: PathBuf,
        /// What the operating system says.
        error: std::io::Error,
    },
    /// The world does not come to an end, or not to the next point in time.
    #[error(
        "the simulation made {steps} steps {scope} and was stopped at {time}; most of them were made by {busiest}, {share} of them: look there for a loop"
    )]
    Runaway {
        /// Steps made.
        steps: u64,
        /// Whether all steps were counted or those of one instant.
        scope: &'static str,
        /// The virtual time.
        time: Instant,
        /// Node and name of the process that took most of the steps, or the network.
        busiest: String,
        /// How many steps it took.
        share: u64,
    },
}
