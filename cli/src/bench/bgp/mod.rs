//! What the benchmarks of BGP share: a router in a network namespace, and speakers in processes of their own around
//! it.
//!
//! ```text
//!   namespace of the peers                     namespace of the router
//!   injector  10.255.1.2  AS 65001 ──────────  10.255.1.1
//!   sink      10.255.2.2  AS 65002 ──────────  10.255.2.1   AS 65000
//!   prober    10.255.3.2  AS 65003 ──────────  10.255.3.1
//! ```
//!
//! The router is weft, BIRD, FRR or GoBGP, with the same peers in the same network; it is told nothing but what it needs
//! for that, and whatever makes it wait on purpose is switched off. It begins anew for each run. The speakers open
//! all sessions. What the kernel does is seen by a program in the kernel (`told.rs`).
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software", NSDI 2005, §8.2, §8.3.

mod cache;
mod crowd;
mod kernel;
mod latency;
mod load;
mod memory;
mod network;
mod origins;
mod peers;
mod reflector;
mod remote;
pub(super) mod restart;
mod router;
mod scene;
mod speaker;
mod storm;
mod table;
mod told;

pub(super) use latency::RouteLatency;
pub(super) use load::RouteLoad;
pub(super) use origins::RouteOrigins;
pub(super) use peers::RoutePeers;
pub(super) use router::BIRD;
pub(super) use storm::RouteStorm;

use crate::bgp::session::Time;
use crate::output::Outcome;

/// What a process around the router is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BgpEndArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Role {
    /// A speaker that does what it is told on standard input
    Speaker(speaker::SpeakerArgs),
    /// Many speakers, each of which announces some routes
    Crowd(crowd::CrowdArgs),
    /// What tells each peer what it has read from the others
    Reflector,
    /// A cache of the RPKI that says what it is told on standard input
    Cache(cache::CacheArgs),
}

/// Carries it out.
pub(crate) fn run_end(args: &BgpEndArgs) -> Outcome {
    match &args.role {
        Role::Speaker(args) => speaker::run(args),
        Role::Crowd(args) => crowd::run(args),
        Role::Reflector => reflector::run(),
        Role::Cache(args) => cache::run(args),
    }
}

pub(super) fn check_root() -> Result<(), String> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err("run this benchmark as root: it makes network namespaces".to_owned())
}
