//! A session with a peer: from the first connection to the last message.
//!
//! [`Session`] is a pure state machine: [`Input`]s and the time go in, [`Output`]s come out. It opens connections,
//! settles which of two is kept, exchanges OPENs, keeps the session alive, and ends it.
//!
//! ```text
//!            start             connection            OPEN              KEEPALIVE
//!   Idle ───────────▶ Connect ────────────▶ OpenSent ─────▶ OpenConfirm ─────────▶ Established
//!    ▲                 │   ▲                 │  ▲               │                       │
//!    │          failed │   │ ConnectRetry    │  │ connection    │                       │
//!    │                 ▼   │                 │  │               │                       │
//!    │                 Active ◀──────────────┘  │               │                       │
//!    │                    └─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─┘               │                       │
//!    └────── anything that is wrong; IdleHold, then start ◀─────┴───────────────────────┘
//! ```
//!
//! A connection has a state machine of its own, as RFC 4271 §8.2.1 says; there are at most two, of which the second
//! lives until both OPENs are there. `states` has the table of the RFC, a function for each state; `actions` what
//! they do; `session` makes events of inputs, and settles collisions.
//!
//! # Differences from RFC 4271
//! Each is marked where it is made, and shows in `transitions.txt`, which the tests compare.
//! * A connection that cannot be opened leads from Connect to Active, not to Idle, where the peer would be refused.
//! * A NOTIFICATION is never answered with another one, also in OpenSent.
//! * A header that is wrong is answered with its own error in Established, too, and not with one of the state
//!   machine.
//! * A passive session never opens a connection, also when ConnectRetryTimer expires.
//! * Of two connections that were opened by the same side the newer one is kept.
//! * Two connections are compared as soon as one of them has the peer's OPEN, since the identifier is known then.
//!
//! Reference: RFC 4271 §6.8, §8; RFC 4724 §5 (connections of a peer that has restarted); RFC 6286 §2.3 (equal
//! identifiers); RFC 6608 (subcodes); RFC 8538 (NOTIFICATIONs with graceful restart); RFC 9687 (SendHoldTimer).

mod actions;
mod event;
mod negotiate;
mod session;
mod settings;
mod states;
#[cfg(test)]
mod tests;
mod timers;

pub use negotiate::Negotiated;
pub use session::Session;
pub use settings::{PeerAs, Settings, Transport};
pub use timers::Timer;
pub(crate) use timers::jittered;

use std::fmt;

use crate::wire::{Notification, Open, RouteRefresh};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing happens, and connections are refused.
    Idle,
    /// A connection is being opened.
    Connect,
    /// The peer may open one.
    Active,
    /// Our OPEN is sent.
    OpenSent,
    /// The peer's OPEN is there.
    OpenConfirm,
    /// Routes are exchanged.
    Established,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Idle,
        Self::Connect,
        Self::Active,
        Self::OpenSent,
        Self::OpenConfirm,
        Self::Established,
    ];
}

/// Its name in RFC 4271.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::Active => "Active",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        })
    }
}

/// A connection, as whoever opens and accepts them names it. A name is not used again in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// An attempt to open a connection, as the session names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptId(pub u64);

/// What a session is told.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// It shall be, from now on.
    Start,
    /// It shall not be, until it is started again. The peer is told so, with this text for its operator; with
    /// graceful restart by a hard reset, so that it forgets our routes.
    Stop {
        /// Why: a subcode of Cease.
        subcode: u8,
        /// For the peer's operator, if the subcode is that of an administrative shutdown or reset.
        text: &'a str,
    },
    /// It shall end and begin again; the peer is told this. Whether it forgets our routes is up to the
    /// NOTIFICATION ([`Notification::into_hard_reset`]).
    Reset(Notification),
    /// An attempt has succeeded.
    Opened {
        /// The attempt.
        attempt: AttemptId,
        /// The connection that has come of it.
        connection: ConnectionId,
    },
    /// An attempt has failed.
    OpenFailed(AttemptId),
    /// The peer has opened a connection.
    Accepted(ConnectionId),
    /// A connection was closed by the peer, or has failed. Everything that it brought was told before.
    Lost(ConnectionId),
    /// A connection has brought bytes.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// Bytes as they came.
        bytes: &'a [u8],
    },
    /// A connection has taken bytes that were to be sent.
    Sent(ConnectionId),
    /// An UPDATE was wrong so that the session has to end ([`Disposition::ResetSession`]), with this error.
    ///
    /// [`Disposition::ResetSession`]: crate::wire::Disposition::ResetSession
    BadUpdate(Notification),
    /// Time has passed.
    Tick,
}

/// What a session asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open a connection to the peer, and say what became of it.
    Connect(AttemptId),
    /// Give up an attempt; nothing need be said of it.
    CancelConnect(AttemptId),
    /// Send bytes.
    Send {
        /// On this connection.
        connection: ConnectionId,
        /// Whole messages.
        bytes: Vec<u8>,
    },
    /// Close a connection when what was to be sent on it has been sent, or cannot be; nothing need be said of it
    /// any more.
    Close(ConnectionId),
    /// Routes can be exchanged.
    Up {
        /// On this connection.
        connection: ConnectionId,
        /// What was agreed on.
        negotiated: Box<Negotiated>,
        /// Our OPEN, as it was sent.
        open: Box<Open>,
    },
    /// Routes cannot be exchanged any more.
    Down {
        /// Why.
        ending: Ending,
        /// The peer's routes may be kept, for the time and the families that it stated.
        is_graceful: bool,
    },
    /// The only connection has ended before routes could be exchanged.
    Failed(Ending),
    /// The body of an UPDATE.
    Update(Vec<u8>),
    /// Something about sending routes again.
    Refresh(RouteRefresh),
    /// A connection's state has changed; for logs and counters.
    Transition(Transition),
}

/// Why routes cannot be exchanged any more, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// We have said so.
    Sent(Notification),
    /// The peer has said so.
    Received(Notification),
    /// The connection is gone.
    Lost,
    /// The peer has opened another connection, since it has restarted (RFC 4724 §5).
    Replaced,
}

/// For logs.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(notification) => write!(f, "sent: {notification}"),
            Self::Received(notification) => write!(f, "received: {notification}"),
            Self::Lost => f.write_str("the connection was lost"),
            Self::Replaced => f.write_str("the peer has restarted"),
        }
    }
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The connection, if there was one before it or is one now.
    pub connection: Option<ConnectionId>,
    /// The state before.
    pub from: State,
    /// The state from now on.
    pub to: State,
    /// The event, by its name in RFC 4271.
    pub event: &'static str,
}
