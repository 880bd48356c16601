//! What can go wrong with a port, said in sentences that name the remedy.

use std::io;
use std::net::SocketAddr;

use crate::PortSpec;

/// Why a port could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The process may not do this.
    #[error(
        "opening {spec} needs the capability {capability}: run as root, or grant it; \
         `weft doctor` tells what is missing here"
    )]
    NoPrivilege {
        /// What was to be opened.
        spec: PortSpec,
        /// The capability that is missing.
        capability: &'static str,
    },
    /// There is no such interface in this network namespace.
    #[error("there is no interface `{name}` in this network namespace: `ip link` lists them")]
    NoInterface {
        /// Its name.
        name: String,
    },
    /// An interface cannot have this name.
    #[error("`{name}` cannot be the name of an interface: 1 to 15 bytes are allowed")]
    BadName {
        /// The name.
        name: String,
    },
    /// The interface is not in use.
    #[error("the interface `{name}` is down: `ip link set {name} up` mends it")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// Frames of another kind.
    #[error("the interface `{name}` carries no Ethernet frames")]
    NotEthernet {
        /// Its name.
        name: String,
    },
    /// The kernel was built without AF_XDP, or is too old.
    #[error(
        "opening {spec} needs AF_XDP sockets of Linux 6.4 or newer (CONFIG_XDP_SOCKETS), which this kernel does \
         not have: use an Ethernet port"
    )]
    NoXdpSockets {
        /// What was to be opened.
        spec: PortSpec,
    },
    /// The limit of memory that may be locked is too low.
    #[error(
        "opening {spec} needs {bytes} bytes of locked memory: raise the limit (`ulimit -l`), or grant \
         CAP_IPC_LOCK"
    )]
    LockedMemory {
        /// What was to be opened.
        spec: PortSpec,
        /// How much it takes.
        bytes: usize,
    },
    /// Packets of the interface are longer than a page.
    #[error(
        "the interface `{name}` carries packets of {mtu} bytes, and an XDP port at most {longest}: \
         `ip link set {name} mtu {longest}` mends it, or use an Ethernet port"
    )]
    LongPackets {
        /// Its name.
        name: String,
        /// Its MTU.
        mtu: usize,
        /// What is possible.
        longest: usize,
    },
    /// Another process has bound the address.
    #[error(
        "the UDP address {address} is in use by another process: `ss -ulpn sport = :{}` shows which",
        address.port()
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// This host does not have the address.
    #[error("no interface of this host has the address {}: `ip address` lists them", address.ip())]
    NoAddress {
        /// The address.
        address: SocketAddr,
    },
    /// Another process has attached itself to the TUN or TAP interface.
    #[error("{spec} is in use by another process: choose another name or end that process")]
    Busy {
        /// What was to be opened.
        spec: PortSpec,
    },
    /// An interface of this name exists and is of another kind.
    #[error("{spec} cannot be made: there is an interface of another kind with that name")]
    OtherKind {
        /// What was to be opened.
        spec: PortSpec,
    },
    /// The kernel lacks the driver.
    #[error("{spec} needs /dev/net/tun, which is missing: `modprobe tun` may mend it")]
    NoTunDriver {
        /// What was to be opened.
        spec: PortSpec,
    },
    /// A descriptor that somebody handed over is of another kind, or bound elsewhere.
    #[error("the descriptor that was handed over is not {spec}: {found}; ask for another one")]
    NotThat {
        /// What it should be.
        spec: PortSpec,
        /// What it is.
        found: String,
    },
    /// Anything else.
    #[error("opening {spec} failed ({call}): {source}")]
    System {
        /// What was to be opened.
        spec: PortSpec,
        /// The system call that failed.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl OpenError {
    /// A descriptor that was handed over for `spec` is something else.
    pub(crate) fn not_that(spec: &PortSpec, found: impl Into<String>) -> Self {
        Self::NotThat { spec: spec.clone(), found: found.into() }
    }

    /// For `map_err`: `call` failed for a reason that has no variant of its own.
    pub(crate) fn system<E: Into<io::Error>>(
        spec: &PortSpec,
        call: &'static str,
    ) -> impl Fn(E) -> Self {
        move |source| Self::System { spec: spec.clone(), call, source: source.into() }
    }
}

/// An open port is gone for good and has to be closed; opening it again may work later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The interface does not exist any more.
    #[error("the interface `{name}` was deleted or moved to another network namespace")]
    Deleted {
        /// Its name.
        name: String,
    },
    /// The interface was set down.
    #[error("the interface `{name}` was set down: `ip link set {name} up` mends it")]
    Down {
        /// Its name.
        name: String,
    },
    /// The other end of an in-memory pair was dropped.
    #[error("the other end of the in-memory port was closed")]
    OtherEnd,
}
