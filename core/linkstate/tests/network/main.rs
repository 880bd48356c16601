//! Networks of engines in virtual time.

// All of this is tests, helpers too.
#![allow(clippy::unwrap_used)]

mod faults;
mod large;
mod reference;
mod world;
