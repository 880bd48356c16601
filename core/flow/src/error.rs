//! What can go wrong with a flow, said in sentences that name the remedy.

use std::io;

/// Why something could not be done with a flow.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other side closed the flow or died, and everything that it sent was received.
    #[error("the other side closed the flow or died: attach again when it is back")]
    Closed,
    /// The other side broke the rules of the shared memory or of the control socket. The flow cannot be
    /// used any more.
    #[error("the other side of the flow broke its rules ({what}): this flow is of no more use")]
    Hostile {
        /// What it did.
        what: &'static str,
    },
    /// An empty message cannot be sent.
    #[error("a message of a flow has at least one byte")]
    Empty,
    /// A message is longer than [`LONGEST`](crate::LONGEST).
    #[error("a message of {len} bytes is too long for a flow, which takes 65536: send it in parts")]
    TooLong {
        /// How long it is, in bytes.
        len: usize,
    },
    /// The buffer is shorter than the next message, which stays where it is.
    #[error(
        "the next message has {needed} bytes and the buffer {given}: receive with a larger one"
    )]
    BufferTooSmall {
        /// The message's length, in bytes.
        needed: usize,
        /// The buffer's, in bytes.
        given: usize,
    },
    /// The time given was over before it could be done.
    #[error("the flow was not ready in time")]
    TimedOut,
    /// There is no stack to attach to, or it may not be attached to.
    #[error("{text}")]
    NoStack {
        /// Where, why, and what to do about it, in one sentence.
        text: String,
    },
    /// The stack refused to attach, for the reason that it gave.
    #[error("the stack at `{path}` refused the flow: {text}")]
    Refused {
        /// The stack's socket.
        path: String,
        /// What the stack said.
        text: String,
    },
    /// Whoever is at the other end of the socket does not speak the protocol of flows.
    #[error(
        "the other end of the socket does not attach as flows do ({what}): is it another program's?"
    )]
    NotAFlow {
        /// What is wrong with what it said.
        what: &'static str,
    },
    /// Anything else that the system refused.
    #[error("{call} failed: {source}")]
    System {
        /// The system call.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: `call` failed for a reason that has no variant of its own.
    pub(crate) fn system<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { call, source: error.into() }
    }
}
