//! Packet ports: where packets enter and leave a process.
//!
//! [`open`] turns a [`PortSpec`] into a [`Port`]:
//!
//! * an Ethernet port (`AF_PACKET`): whole frames of one EtherType on one interface;
//! * an XDP port (`AF_XDP`): the same, faster, and past the kernel's network stack;
//! * a TUN or TAP port: a network interface of the kernel whose other end is this process;
//! * a UDP port: datagrams of an IPv4 or IPv6 socket, for tunnels;
//! * an IP port: packets of one protocol number, by a raw socket.
//!
//! [`memory::pair`] makes two ports that are connected to each other, for tests and examples.
//! Ports move batches of [`Packet`](weft_base::Packet)s, count what they drop by name, and contain no
//! protocol logic. They never block: wait for [`Port::fd`] with epoll.
//!
//! A port can be opened by one process ([`open_descriptors`]) and used by another ([`adopt`]), which needs
//! no privileges.
//!
//! [`Scheduling`] says how a thread that uses ports shares the processors with others.
//!
//! [`namespace`] gives a process a network of its own to put ports into.
//!
//! ```
//! use std::collections::VecDeque;
//! use weft_base::Packet;
//! use weft_port::{Port, memory};
//!
//! let (mut here, mut there) = memory::pair(1500, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]])?;
//! here.transmit(&mut VecDeque::from([Packet::from_slice(b"frame")]))?;
//! let mut batch = Vec::new();
//! there.receive(&mut batch, 64)?;
//! assert_eq!(batch[0].bytes(), b"frame");
//! assert_eq!(there.statistics().received.packets, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`datagrams`] is the batched socket I/O below them; the runtime's channels use it, too. [`unix`] is where
//! the sockets of channels and flows come from. [`stream`] has the options of TCP sockets for protocols of others.
//!
//! Reference: packet(7), udp(7), recvmmsg(2), netdevice(7); Linux kernel,
//! Documentation/networking/tuntap.rst and af_xdp.rst.

// An edge crate: some system calls have no safe wrapper. They are confined to `sys`.
#![deny(unsafe_code)]

mod connected;
pub mod datagrams;
mod error;
mod ethernet;
pub mod filter;
mod group;
mod ip;
mod link;
pub mod memory;
pub mod namespace;
mod port;
mod scheduling;
mod spec;
mod statistics;
pub mod stream;
#[allow(unsafe_code, reason = "raw system calls; each block says why it is sound")]
mod sys;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tun;
mod udp;
pub mod unix;
mod xdp;

pub use error::{Lost, OpenError};
pub use port::{Options, Port, XDP_DESCRIPTORS, adopt, open, open_descriptors};
pub use scheduling::{Priority, Scheduled, Scheduling};
pub use spec::{PortInfo, PortSpec, PortSpecError};
pub use statistics::{PortDrop, PortStatistics, Traffic};
