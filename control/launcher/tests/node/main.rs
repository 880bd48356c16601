//! Whole nodes: a real launcher, real processes, and a test that says what the manager wants.
//!
//! They run as root, who alone can give processes users of their own; what an ordinary user gets is in
//! `unprivileged`.

#![allow(clippy::unwrap_used, reason = "a test helper fails by panicking")]

mod holder;
mod hostile;
mod isolation;
mod keeping;
mod life;
mod limits;
mod node;
mod unprivileged;
