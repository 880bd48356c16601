//! The running and the candidate configuration: transactions, and their history on disk.
//!
//! Three machines without I/O. [`Transaction`] takes operators' requests and leads a commit through the
//! components; [`History`] keeps revisions on a disk that may lose power at any time; [`Configuration`] is
//! both together, which is what the owner of a node's configuration runs.
//!
//! They stand apart from the configuration language (`weft_config`), which every component needs,
//! because they need the disk requests of `weft_runtime`, which only the owner does.

mod changes;
mod configuration;
mod file;
mod history;
mod job;
mod messages;
mod revision;
mod transaction;

pub use configuration::{Configuration, Event, Want};
pub use history::{History, HistoryInput, HistoryOutput, HistorySettings};
pub use messages::{Action, BlockChange, Done, Input, Lock, Objection, Output, Refusal, Who};
pub use revision::{Revision, Unconfirmed};
pub use transaction::Transaction;
