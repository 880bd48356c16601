//! Packet ports: AF_PACKET, TUN/TAP, UDP and in-memory.

mod spec;

pub use spec::{PortInfo, PortSpec};
