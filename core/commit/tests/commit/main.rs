//! A configuration with components and a disk, from outside: what operators see, what a power cut
//! leaves, and random sequences against a model.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail with the test")]

mod disk;
mod node;
mod power_cuts;
mod sequences;
mod transactions;
