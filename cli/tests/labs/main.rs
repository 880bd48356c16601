//! Labs as users run them: the built program, in the simulator and on real interfaces.
//!
//! `network` is the lab that most of these tests run; what happens in it is theirs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod bgp;
mod bgp_killed;
mod builds;
mod demo;
mod disk;
mod echo;
mod engine;
mod examples;
mod hearsay;
mod interface_changes;
mod interfaces;
mod killed;
mod large;
mod network;
mod packet_io;
mod perf;
mod ports;
mod profile;
mod restart;
mod rip;
mod routing;
mod soak;
mod static_routes;
mod support;
mod tables;
mod two_ways;
mod whole;
mod wireshark;
