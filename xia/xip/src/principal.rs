//! What a principal is to XIP: one small interface.
//!
//! Reference: Machado et al., "Linux XIA", §3 (principals), §4.1 (no static dependencies between
//! principals) and §4.2.1 (routing redirects).
//!
//! A principal gives meaning to XIDs of one type. XIP asks it [`Principal::lookup`] for each edge it
//! considers; the answer is a next hop, "that is this node", "look that other XID up instead", or
//! "unknown, try the next edge". A principal never calls another one: a redirect names an XID, and
//! whoever is loaded for its type answers for it. So every set of principals works, the empty one
//! included, and each can be added and removed while packets flow.
//!
//! The control part — neighbour discovery, tunnels — has the form of a component: time and inputs go
//! in, outputs come out ([`Input`], [`Output`]).

use std::net::IpAddr;

use serde_json::Value;
use sha2::{Digest, Sha256};
use weft_base::{CounterGroup, Instant, LinkAddress, Packet, PortId, Token};
use weft_keys::PrivateKey;
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{IpChange, Level};

use crate::changes::Change;
use crate::forward::DropReason;
use crate::prefixes::{PrefixError, PrefixNews};
use crate::words::WordError;
use crate::{Xid, XidType};

/// A principal of XIA; see the module's text.
pub trait Principal: Send {
    /// The type of XIDs that it answers for. Never changes.
    fn kind(&self) -> XidType;

    /// What to do with a packet whose next edge leads to `xid` (whose type is [`Principal::kind`]).
    ///
    /// Called for every packet that the routing cache has nothing for: no allocation, no search that grows with
    /// the table. The answer depends on nothing that can change without a call by `&mut self`; time comes by
    /// [`Principal::handle`]. For [`Answer::Branches`] the branches are pushed to `branches`, which is empty
    /// before, and for [`Answer::AnyOf`] the gateways, in order.
    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer;

    /// The key of the node, if it has one: told once and before anything else, for principals that prove that an
    /// XID is theirs.
    fn take_key(&mut self, key: &PrivateKey) {
        let _ = key;
    }

    /// The node ends, or the principal is removed: the last thing it is told. Its neighbours may be told.
    fn stop(&mut self, out: &mut Vec<Output>) {
        let _ = out;
    }

    /// Told of XIDs that will be looked up soon, so that the memory of their entries can be on its way
    /// to the processor by then. Worth it for tables that are larger than its caches.
    fn prefetch(&self, xid: &Xid) {
        let _ = xid;
    }

    /// Tells for which XIDs [`Principal::lookup`] may answer otherwise than when this was called last. Called
    /// after every call that may change the principal.
    ///
    /// A principal that does not say is asked again about everything that was kept of its answers, which is
    /// right but takes its time; [`ChangeLog`](crate::changes::ChangeLog) helps to say it.
    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        out.push(Change::All);
    }

    /// Takes an input for the control part.
    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let _ = (now, input, out);
    }

    /// When [`Input::Tick`] must come at the latest; `None` if never.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Adds or changes something: the words of one configuration statement or of one live command,
    /// such as `route ad-… via hid-…`. Nothing is changed when an error is returned.
    ///
    /// # Errors
    /// Says which word is wrong and what would be right.
    fn set(&mut self, now: Instant, words: &[&str], out: &mut Vec<Output>)
    -> Result<(), WordError>;

    /// Removes what the same words would have set.
    ///
    /// # Errors
    /// Says which word is wrong, or that there is no such thing ([`WordError::absent`]).
    fn delete(
        &mut self,
        now: Instant,
        words: &[&str],
        out: &mut Vec<Output>,
    ) -> Result<(), WordError>;

    /// Tables and counters for people and programs: a JSON object whose lists are sorted.
    fn show(&self) -> Value;

    /// What it has counted, under its name.
    fn counters(&self) -> Option<CounterGroup> {
        None
    }

    /// The XIDs of this principal that are this node, in order.
    fn locals(&self) -> Vec<Xid> {
        Vec::new()
    }

    /// Redirects `xid` to one of `via`, or to nothing any more if there is none: what a
    /// [routing protocol](crate::protocol) has found. What an operator has stated of the XID goes first.
    fn learn(&mut self, xid: Xid, via: &[Xid]) {
        // A principal without redirects has no use for it.
        let _ = (xid, via);
    }

    /// Takes news of prefixes of its XIDs, as [somebody outside of the stack](crate::prefixes) has found them.
    ///
    /// # Errors
    /// The principal has no use for them, or the prefix is none; then nothing is different.
    fn learn_prefix(&mut self, news: PrefixNews<'_>) -> Result<(), PrefixError> {
        let _ = news;
        Err(PrefixError::NoPrefixes)
    }

    /// The XID that leads a packet over all of these links, each from a host to the next, and into the hosts `ends`, as a JSON
    /// object whose `xid` it is. `None` if no XID of this type does such a thing.
    ///
    /// # Errors
    /// There is none for so many links: says why, and how to mend it.
    fn tree(&self, links: &[(Xid, Xid)], ends: &[Xid]) -> Option<Result<Value, String>> {
        let _ = (links, ends);
        None
    }

    /// Makes packets to the sink `xid` go to `socket`.
    ///
    /// # Errors
    /// The principal has no sockets, or the XID is taken.
    fn bind(&mut self, xid: Xid, socket: SocketId) -> Result<(), BindError> {
        let _ = (xid, socket);
        Err(BindError::NoSockets)
    }

    /// Undoes [`Principal::bind`]; nothing happens if `xid` is not bound.
    fn unbind(&mut self, xid: &Xid) {
        let _ = xid;
    }
}

/// What a principal knows about an XID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: XIP tries the next edge.
    Unknown,
    /// Look this XID up instead, usually one of another type (§4.2.1).
    Redirect(Xid),
    /// Look one of several XIDs up instead, which are pushed to the caller's list as [`Branch::To`]. The caller
    /// chooses, and takes another one if that leads nowhere.
    AnyOf(GatewaySet),
    /// It is this node: mark the edge and go on from there. An error at a sink.
    Through,
    /// It is a socket of this node: deliver. An error anywhere but at a sink.
    Deliver(SocketId),
    /// Send the packet to this neighbour, its address unchanged.
    Forward(NextHop),
    /// Several ways at once, each with a copy of its own, pushed to the caller's list.
    Branches,
    /// The XID cannot be right; the packet is dropped and no other edge is tried.
    Refuse(DropReason),
}

/// Stands for the gateways of [`Answer::AnyOf`]: the same for the same gateways, and another one for others.
///
/// Decisions are kept as long as the answers that they rest on stay the same, and this is how such an answer is
/// compared: half of the SHA-256 of the gateways. Nobody can find two lists with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewaySet([u32; 4]);

impl GatewaySet {
    /// Of these gateways, which are in order. It takes about a microsecond: a principal does it when its table
    /// changes, not when it is asked.
    #[must_use]
    pub fn of(gateways: &[Xid]) -> Self {
        let hash =
            gateways.iter().fold(Sha256::new(), |hash, xid| hash.chain_update(xid.to_bytes()));
        let bytes: [u8; 32] = hash.finalize().into();
        let (words, _) = bytes.as_chunks::<4>();
        // Not of longer ones: an answer would take more memory for the sake of their alignment.
        Self(std::array::from_fn(|at| u32::from_le_bytes(words[at])))
    }
}

/// One of several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// As [`Answer::Through`].
    Through,
    /// As [`Answer::Redirect`].
    To(Xid),
}

/// Where to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// Out of which port.
    pub port: PortId,
    /// To which neighbour on it.
    pub link: LinkAddress,
}

/// A datagram socket of an application on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// Why [`Principal::bind`] failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Another socket has the XID.
    #[error("another socket is bound to this XID; choose another identifier or close that socket")]
    Taken,
    /// Principals such as HID or AD name nodes, not sockets.
    #[error("this principal has no sockets; the sink of the address must be an XDP XID")]
    NoSockets,
}

/// What the node tells the control part of a principal, or a routing protocol.
#[derive(Debug)]
pub enum Input {
    /// The deadline has come, or the node merely checks.
    Tick,
    /// An interface carries XIP packets now. Also told for every interface that is there already
    /// when the principal is added, and again, with the same port or another one in its place, when its address
    /// or MTU has changed.
    InterfaceUp {
        /// Its name, for opening further ports on it.
        name: String,
        /// The port that carries its XIP packets, for [`NextHop::port`].
        port: PortId,
        /// Its Ethernet address and MTU.
        info: PortInfo,
    },
    /// An interface is gone: nothing can be sent out of `port` any more.
    InterfaceDown {
        /// The port of [`Input::InterfaceUp`].
        port: PortId,
    },
    /// Where this machine's IP leads is different from what was told before; see [`Output::WatchIp`].
    Ip {
        /// How, in order.
        changes: Vec<IpChange>,
    },
    /// Whether a routing protocol has this node and a neighbour in its topology, with a link to each other. Also told
    /// of all that there are when the principal is added.
    Adjacency {
        /// The host that this node is, by its first version of HID, whichever it has.
        own: Xid,
        /// The host next to it, by the version of HID by which it is a gateway.
        neighbour: Xid,
        /// False: not any more.
        up: bool,
    },
    /// A port that the principal asked for is open.
    PortOpened {
        /// The token of [`Output::OpenPort`].
        token: Token,
        /// The new port.
        port: PortId,
        /// What is known of it.
        info: PortInfo,
    },
    /// A port that the principal asked for could not be opened. Asking again is up to the principal.
    PortFailed {
        /// The token of [`Output::OpenPort`].
        token: Token,
        /// Why, in one sentence.
        error: String,
    },
    /// One of the principal's ports is gone.
    PortLost {
        /// Which.
        port: PortId,
        /// Why, in one sentence.
        error: String,
    },
    /// Packets came in on one of the principal's own ports.
    Packets {
        /// Which.
        port: PortId,
        /// At least one, in order.
        packets: Vec<Packet>,
    },
}

/// What a principal's control part, or a routing protocol, asks of the node.
#[derive(Debug)]
pub enum Output {
    /// Open a port for this principal.
    OpenPort {
        /// Comes back in the answer; unique among the principal's own tokens.
        token: Token,
        /// What to open.
        spec: PortSpec,
    },
    /// Close one of the principal's ports.
    ClosePort {
        /// Which.
        port: PortId,
    },
    /// Send a packet, complete with its link header, out of one of the principal's ports.
    Transmit {
        /// Where.
        port: PortId,
        /// What.
        packet: Packet,
    },
    /// Tell where this machine's IP leads and which neighbours it knows, by [`Input::Ip`], and from then on each
    /// change. Everything is told anew now and then, beginning with [`IpChange::Again`].
    WatchIp,
    /// Have this machine's IP look for a neighbour, or whether it is still there. [`Input::Ip`] tells what comes of
    /// it; if nothing does, nothing.
    FindNeighbour {
        /// The index of the interface that it is on.
        interface: u32,
        /// Its address.
        ip: IpAddr,
    },
    /// Route this XIP packet as one that was received on `packet.meta.port`: it came out of a tunnel.
    Route {
        /// It begins with the XIP header.
        packet: Packet,
    },
    /// Redirect each of these XIDs, of whichever principal there is for it, to one of its gateways; if there is none, there is
    /// no way any more. For [routing protocols](crate::protocol): what they have found is taken back when they are removed.
    Redirect(Vec<(Xid, Vec<Xid>)>),
    /// Tell all principals that a neighbour is in the topology, or is not any more. For
    /// [routing protocols](crate::protocol): all are gone when they are removed.
    Adjacency {
        /// The host that this node is, by its first version of HID, whichever it has.
        own: Xid,
        /// The host next to it, by the version of HID by which it is a gateway.
        neighbour: Xid,
        /// False: not any more.
        up: bool,
    },
    /// Tell the operator.
    Report {
        /// How serious it is.
        level: Level,
        /// One line.
        line: String,
    },
}
