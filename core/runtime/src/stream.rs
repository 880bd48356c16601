//! Connections of TCP to peers that speak protocols of others, such as BGP: what a process asks for, and what it is
//! told.
//!
//! A connection is a channel without frames: its messages are pieces of bytes as they came, without borders, and
//! what is sent leaves byte by byte in order, whatever the pieces were. [`Event::Congested`](crate::Event::Congested),
//! [`Event::Drained`](crate::Event::Drained) and [`Event::Closed`](crate::Event::Closed) are as with other channels. It
//! is closed when the other side sends nothing more, after everything that it had sent was told. Closing it waits ten
//! seconds at most for what was sent before to arrive and for the other side to close, too, and not at all if nothing
//! was sent.
//!
//! A process that may not open sockets has another one do it: that one opens handles, and it adopts them.
//!
//! What is opened, and how, [`StreamSpec`] and [`StreamListenerSpec`] say.

use std::net::SocketAddr;

use weft_base::{ChannelId, Handle};
use weft_port::stream::{PeerKey, StreamListenerSpec, StreamSpec};

/// Something to be done with connections of TCP.
#[derive(Debug)]
pub enum StreamRequest {
    /// Connect; answered by [`StreamEvent::Opened`] or [`StreamEvent::Failed`], the latter when the system gives up
    /// (Linux after some two minutes) at the latest.
    Open(StreamSpec),
    /// Connect, for another process that may not do so itself; answered by [`StreamEvent::HandleOpened`] or
    /// [`StreamEvent::Failed`].
    OpenHandle(StreamSpec),
    /// Give up the connecting that the token stands for, which is answered by [`StreamEvent::Failed`]. If it was
    /// answered already nothing happens, even if that answer was not told yet.
    Cancel,
    /// Use a connection that another process has made; answered by [`StreamEvent::Opened`] or
    /// [`StreamEvent::Failed`]. No privileges are needed.
    Adopt(Handle),
    /// Accept connections; answered by [`StreamEvent::Listening`] or [`StreamEvent::Failed`]. Each connection is
    /// told by [`StreamEvent::Accepted`], until [`Action::CloseListener`](crate::Action::CloseListener).
    Listen(StreamListenerSpec),
    /// Open the socket for that, for another process that may not do so itself; answered by
    /// [`StreamEvent::ListenerOpened`] or [`StreamEvent::Failed`]. A duplicate of the descriptor stays here for
    /// [`StreamRequest::SetKeys`], until [`Action::CloseListener`](crate::Action::CloseListener).
    OpenListenerHandle(StreamListenerSpec),
    /// Accept connections with a socket that another process has opened; answered like [`StreamRequest::Listen`]. No
    /// privileges are needed.
    AdoptListener(Handle),
    /// Let the listener that the token stands for have these keys and no others from now on, for connections that
    /// come; those that are open keep theirs. Answered by [`StreamEvent::KeysSet`].
    SetKeys(Vec<PeerKey>),
}

/// What happened to connections of TCP.
#[derive(Debug)]
pub enum StreamEvent {
    /// There is a connection, which is a channel from now on.
    Opened {
        /// The channel.
        channel: ChannelId,
        /// Its own address.
        local: SocketAddr,
        /// The other side's.
        peer: SocketAddr,
    },
    /// There is a connection for another process.
    HandleOpened {
        /// The descriptor, to be handed to whoever adopts it.
        handle: Handle,
        /// Its own address.
        local: SocketAddr,
        /// The other side's.
        peer: SocketAddr,
    },
    /// Connections are accepted from now on. Told again if the socket had to be opened anew, at which connections
    /// that were accepted before stay.
    Listening {
        /// Where, with the port that the system has chosen if that was left open.
        local: SocketAddr,
    },
    /// A socket that listens is open for another process.
    ListenerOpened {
        /// The descriptor, to be handed to whoever adopts it.
        handle: Handle,
        /// Where it listens, with the port that the system has chosen if that was left open.
        local: SocketAddr,
    },
    /// Somebody has made a connection, which is a channel from now on.
    Accepted {
        /// The channel.
        channel: ChannelId,
        /// Its own address.
        local: SocketAddr,
        /// From where it came.
        peer: SocketAddr,
    },
    /// The answer to [`StreamRequest::SetKeys`].
    KeysSet {
        /// Why not all of them hold, and what to do about it, in one sentence.
        result: Result<(), String>,
    },
    /// What was asked for was not done.
    Failed {
        /// Why, and what to do about it, in one sentence.
        error: String,
    },
}
