//! Labs in network namespaces: built, used, and gone without a trace.
//!
//! Needs root. Without it each test says so and returns.
//!
//! The program that embeds the lab is this test binary: `child` is what it does when it is started as
//! `weft` (see `support`).

// All of this file is tests, helpers too.
#![allow(clippy::unwrap_used)]

mod child;
mod cleanup;
mod links;
mod manage;
mod rootless;
mod routers;
mod scenarios;
mod support;
