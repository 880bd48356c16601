//! Where channels lead, what kinds there are, and who is at the other end.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use weft_base::Message;
use weft_keys::{KeyHash, PrivateKey};
use weft_port::unix::SocketType;

use crate::{MOST_HANDLES, frames};

/// Where a listener is, and with it what kind of channel leads there.
///
/// All kinds keep the borders and the order of messages and tell when the other side is gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelAddress {
    /// A Unix socket of type `SOCK_SEQPACKET`. Messages have 1 to 65,536 bytes and up to
    /// [`MOST_HANDLES`] handles; what does not fit, or exceeds the queue, is dropped and counted.
    Packets(PathBuf),
    /// A Unix socket of type `SOCK_STREAM` that carries [`frames`]. Messages have 1 to
    /// [`LONGEST_FRAME`](frames::LONGEST_FRAME) bytes and up to as many handles; what does not fit, or is not
    /// the only one in a queue that it exceeds, closes the channel. The side that accepts takes long ones
    /// only when it [says so](crate::Action::TakeLong).
    Stream(PathBuf),
    /// A flow of messages (`weft_flow`): a Unix socket of type `SOCK_SEQPACKET` attaches both sides to
    /// memory that they share, through which messages travel without the kernel. The side that
    /// connects makes the memory. Messages have 1 to 65,536 bytes and no handles; what does not fit, or
    /// exceeds the queue, is dropped and counted.
    Flow(PathBuf),
    /// The same frames as on a stream over TCP, without handles. Nothing is encrypted, therefore only addresses of
    /// the loopback interface are allowed. Port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The same frames inside TLS 1.3 over TCP, without handles. Both sides prove that they have the
    /// [`Keys`] that they show. Port 0 lets the system choose. The simulator has none of it.
    Tls {
        /// Where the listener is.
        address: SocketAddr,
        /// The only key that is accepted of the other side; without it those of [`Keys::peers`] are.
        peer: Option<KeyHash>,
    },
}

/// By what a process proves who it is on channels of [`ChannelAddress::Tls`], and whom it accepts; see
/// [`Action::SetKeys`](crate::Action::SetKeys).
#[derive(Clone, Debug)]
pub struct Keys {
    /// Its own key.
    pub own: PrivateKey,
    /// Who is accepted where an address does not say it.
    pub peers: BTreeSet<KeyHash>,
}

impl fmt::Display for ChannelAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(path) | Self::Stream(path) | Self::Flow(path) => {
                write!(f, "`{}`", path.display())
            }
            Self::Tcp(address) => write!(f, "TCP {address}"),
            Self::Tls { address, .. } => write!(f, "TLS {address}"),
        }
    }
}

/// Who is at the other end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A process of this machine, as the kernel says (`SO_PEERCRED`).
    Process {
        /// Process id.
        pid: u32,
        /// Effective user id when the connection was made.
        uid: u32,
        /// Effective group id when the connection was made.
        gid: u32,
    },
    /// Somebody at an address, who may be anyone there.
    Address(SocketAddr),
    /// Somebody who has proved to have a key, wherever that is.
    Key {
        /// The hash of the public key.
        key: KeyHash,
        /// From where the connection came.
        address: SocketAddr,
    },
}

impl Peer {
    /// The user, if that is known.
    #[must_use]
    pub fn uid(&self) -> Option<u32> {
        match self {
            Self::Process { uid, .. } => Some(*uid),
            Self::Address(_) | Self::Key { .. } => None,
        }
    }

    /// The process, if that is known.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Process { pid, .. } => Some(*pid),
            Self::Address(_) | Self::Key { .. } => None,
        }
    }
}

/// What carries a channel. Both drivers go by its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelKind {
    /// A Unix socket of type `SOCK_SEQPACKET`.
    Packets,
    /// A Unix socket of type `SOCK_STREAM`.
    Stream,
    /// Shared memory, attached over a Unix socket of type `SOCK_SEQPACKET`.
    Flow,
    Tcp,
    /// TLS over TCP.
    Tls,
    /// TCP without frames, for protocols of others: messages are pieces of bytes, without borders.
    Bytes,
}

/// Why a kind of channel does not carry a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsuitable {
    Empty,
    TooLong,
    TooManyHandles,
    /// Channels of this kind have no handles at all.
    NoHandles,
}

impl ChannelKind {
    /// What leads to `address`.
    pub(crate) fn of(address: &ChannelAddress) -> Self {
        match address {
            ChannelAddress::Packets(_) => Self::Packets,
            ChannelAddress::Stream(_) => Self::Stream,
            ChannelAddress::Flow(_) => Self::Flow,
            ChannelAddress::Tcp(_) => Self::Tcp,
            ChannelAddress::Tls { .. } => Self::Tls,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Packets => "SOCK_SEQPACKET",
            Self::Stream => "SOCK_STREAM",
            Self::Flow => "SOCK_SEQPACKET for flows",
            Self::Tcp => "TCP",
            Self::Tls => "TCP for TLS",
            Self::Bytes => "TCP for bytes",
        }
    }

    /// The type of its socket.
    pub(crate) fn socket_type(self) -> SocketType {
        match self {
            Self::Packets | Self::Flow => SocketType::SEQPACKET,
            Self::Stream | Self::Tcp | Self::Tls | Self::Bytes => SocketType::STREAM,
        }
    }

    /// Whether single messages may be dropped. If not, the channel is closed instead.
    pub(crate) fn may_drop(self) -> bool {
        matches!(self, Self::Packets | Self::Flow)
    }

    /// Checks whether it carries `message`.
    pub(crate) fn check(self, message: &Message) -> Result<(), Unsuitable> {
        let longest = match self {
            Self::Packets => weft_port::datagrams::LONGEST,
            Self::Flow => weft_flow::LONGEST,
            Self::Stream | Self::Tcp | Self::Tls => frames::LONGEST_FRAME,
            Self::Bytes => usize::MAX,
        };
        let handles = message.handles.len();
        match message.buffer.len() {
            0 if self != Self::Bytes => Err(Unsuitable::Empty),
            len if len > longest => Err(Unsuitable::TooLong),
            _ if handles > 0 && !matches!(self, Self::Packets | Self::Stream) => {
                Err(Unsuitable::NoHandles)
            }
            _ if handles > MOST_HANDLES => Err(Unsuitable::TooManyHandles),
            _ => Ok(()),
        }
    }
}

/// Checks that channels may lead to `address`; `what` is what they are to do there.
///
/// # Errors
/// A sentence: nothing is encrypted, so the address must be one of this machine.
pub(crate) fn only_loopback(what: &str, address: SocketAddr) -> Result<(), String> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "cannot {what} TCP {address}: channels are not encrypted, so only addresses of this machine \
         are allowed; use 127.0.0.1, [::1], a path, or TLS"
    ))
}
