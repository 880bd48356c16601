//! The lab: networks of nodes on one machine, scenarios that happen in them, and what is expected.
//!
//! A lab file ([`Lab`]) names nodes, links and scenarios. [`run()`] builds the network, runs a scenario
//! and takes the network down, whatever happens. There are two engines for the same files: network
//! namespaces with real packets, and the simulator of `weft_runtime` in virtual time. [`up`] builds a
//! lab that stays.
//!
//! The lab knows no architecture. The program that embeds it is what runs on nodes, and gives a
//! meaning to names: that is a [`Host`].
//!
//! The way of a lab: text → `file` (checked statements) → `plan` (names replaced, configurations
//! checked by the host) → `netns` or `sim` (built, an `Engine`) → `scenario` (step after step) →
//! [`Outcome`]. Beside it: `output` (the working directory), `capture` (pcapng files), [`trace`] (the
//! life of one packet), `joiner` (the process of user-space links), `router` (BIRD, FRR, GoBGP and ExaBGP),
//! `rootless` (labs without root).
//!
//! ```
//! use weft_lab::{Lab, Variables};
//!
//! let text = "version 1;
//! lab pair {
//!     node a { kind linux; }
//!     node b { kind linux; }
//!     link a:eth0 b:eth0 { address 10.0.0.1/24 10.0.0.2/24; loss 1%; }
//!     scenario default { exec a \"ping -c 1 10.0.0.2\"; }
//! }";
//! let lab = Lab::parse("pair.lab", text, &Variables::new())?;
//! assert!(lab.nodes().eq(["a", "b"]));
//!
//! let errors = Lab::parse("pair.lab", &text.replace("b:eth0", "c:eth0"), &Variables::new());
//! assert!(errors.unwrap_err().to_string().starts_with("pair.lab:5:17: there is no node `c`"));
//! # Ok::<(), weft_config::Errors>(())
//! ```

// An edge crate: `sys` holds what needs `unsafe`, and allows it for itself alone.

mod capture;
mod engine;
mod error;
mod file;
mod host;
mod joiner;
mod lines;
mod manage;
mod netns;
mod outcome;
mod output;
mod plan;
mod rootless;
mod router;
mod run;
mod scenario;
mod sim;
mod sys;
pub mod trace;

pub use error::LabError;
pub use file::{Lab, Variables};
pub use host::{Host, SimNode};
pub use joiner::run_links;
pub use manage::{capture, down, exec, labs, start_trace, up, visits};
pub use netns::{LabStatus, NodeStatus, ProcessStatus};
pub use outcome::{Log, Observer, Outcome, ProcessOutcome, Progress, StepOutcome};
pub use rootless::{enter_user_namespace, is_root};
pub use router::run_router;
pub use run::{EngineKind, Options, check, run};
pub use sim::{Maker, SimLauncher, Starting};
