//! Flows: the channel between an application and a stack on the same machine.
//!
//! A flow carries messages ([`Kind::Datagram`]) or bytes ([`Kind::Stream`]) in both directions through
//! memory that both sides share; two that are busy make no system call. A Unix socket attaches them, wakes
//! who sleeps, and tells when one is gone. The application makes the shared memory, and neither side trusts
//! the other: indices are loaded once and checked, bytes are copied before they are looked at.
//!
//! * A stack makes an [`Attaching`] of each connection that it accepts (a [`Listener`] does both), a [`Flow`]
//!   of that, and drives it from its poll loop.
//! * An application has a [`Client`], whose calls wait; or an [`Asking`], which becomes a [`Flow`] for a loop
//!   of its own.
//!
//! ```
//! use weft_flow::{Attached, Client, Kind, Limits, Listener, Options};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("stack.sock");
//! let listener = Listener::bind(&path)?;
//! let application = std::thread::spawn(move || -> Result<Vec<u8>, weft_flow::Error> {
//!     let mut client = Client::connect(&path, &Options::new(Kind::Datagram))?;
//!     client.send(b"ping", None)?;
//!     let mut buffer = [0; 1500];
//!     let len = client.receive(&mut buffer, None)?;
//!     Ok(buffer[..len].to_vec())
//! });
//!
//! // A stack would do all this whenever its poll says that a descriptor is ready.
//! let mut attaching = loop {
//!     if let Some(attaching) = listener.accept()? { break attaching }
//! };
//! let mut flow = loop {
//!     match attaching.advance(&Limits::default())? {
//!         Attached::NotYet(again) => attaching = again,
//!         Attached::Flow(flow) => break flow,
//!     }
//! };
//! let mut received = Vec::new();
//! while received.is_empty() {
//!     flow.receive(64, |packet| received.push(packet))?;
//! }
//! flow.try_send(b"pong")?;
//! assert_eq!(application.join().unwrap()?, b"pong");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reference: the handbook's chapter on flows; `layout` for the shared memory and `wire` for the socket,
//! byte by byte.

// An edge crate: shared pages can only be reached through raw pointers. That is confined to `shared`.
#![deny(unsafe_code)]

mod ask;
mod attach;
mod bell;
mod client;
mod dispose;
mod error;
mod flow;
mod layout;
mod listener;
mod returning;
#[cfg(not(feature = "testing"))]
#[allow(unreachable_pub, reason = "public for tests elsewhere: feature `testing`")]
mod ring;
#[cfg(feature = "testing")]
pub mod ring;
mod segment;
#[allow(unsafe_code, reason = "pages of another process; each block says why it is sound")]
mod shared;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "as above"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod wire;

pub use ask::{Asked, Asking};
pub use attach::{Attached, Attaching};
pub use client::{Client, Options};
pub use error::Error;
pub use flow::{Flow, Received, Sent};
pub use layout::{Kind, LONGEST, Limits, Sizes};
pub use listener::Listener;
