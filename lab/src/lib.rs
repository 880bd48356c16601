//! The lab: networks of nodes in namespaces or in the simulator, scenarios and expectations.

// An edge crate: one file, `sys`, holds what needs `unsafe`, and allows it.

mod capture;
mod engine;
mod error;
mod file;
mod host;
mod joiner;
mod manage;
mod netns;
mod outcome;
mod output;
mod plan;
mod rootless;
mod run;
mod scenario;
mod sim;
mod sys;
pub mod trace;

pub use error::LabError;
pub use file::{Lab, Variables};
pub use host::{Host, SimNode};
pub use joiner::run_links;
pub use manage::{capture, down, exec, start_trace, status, up, visits};
pub use netns::{LabStatus, NodeStatus, ProcessStatus};
pub use outcome::{Log, Observer, Outcome, ProcessOutcome, Progress, StepOutcome};
pub use rootless::{enter_user_namespace, is_root};
pub use run::{EngineKind, Options, check, run};
