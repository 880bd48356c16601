//! Labs as users run them: the built program, in the simulator and on real interfaces.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod demo;
mod support;
