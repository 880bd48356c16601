//! The commands as users give them: the built program, its exit status and what it says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod c;
mod configure;
mod doctor;
mod flood;
mod gateway;
mod generate;
mod glass;
mod id;
mod interfaces;
mod metrics;
mod operators;
mod output;
mod processes;
mod programs;
mod push;
mod python;
mod routes;
mod run;
mod service;
mod show;
mod sockets;
mod streams;
mod support;
mod tables;
mod tuning;
mod xip;
