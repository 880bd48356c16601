//! The RPKI-to-router protocol, the router's side.
//!
//! Reference: RFC 8210 (version 1), RFC 6810 (version 0).
//!
//! * [`pdu`] reads and writes messages, which are called protocol data units there; [`cutter`] cuts them out of a stream, and
//!   [`error`] says what is wrong with one.
//! * `session` is the life of a session with a cache.

pub mod cutter;
pub mod error;
pub mod pdu;
pub(crate) mod session;
#[cfg(test)]
mod tests;
