//! What the FEA does for components in processes of their own, which do not know that it is not the world: the same
//! component makes connections and watches interfaces by itself and through the FEA, in the simulator and on the
//! machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod streams;
mod watching;
