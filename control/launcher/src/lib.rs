//! The launcher: the small privileged process of a node.
//!
//! It starts the manager, and for the manager all other processes, each a child that executes the same
//! binary anew with a user of its own, no privilege and no descriptor but those that it was given. It
//! keeps what must outlive a crash: listening sockets, and descriptors such as links of attached eBPF
//! programs. It opens no connection, and it speaks to the manager alone ([`protocol`]). When
//! the manager dies everything else runs on; when the launcher dies nothing does.
//!
//! [`run`] is the launcher; what it decides is in [`supervisor`], without system calls. A child begins with [`inherited`], which gives it its descriptors, and
//! [`isolate::enter`], which gives up what it does not need; both come before its first thread.
//!
//! The binary that both are part of:
//!
//! ```no_run
//! use weft_launcher::{Config, Sandbox, inherited, isolate};
//!
//! # fn serve(_: weft_launcher::Inherited, _: Vec<String>) {}
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     if std::env::args().nth(1).as_deref() != Some("component") {
//!         let binary = std::env::current_exe()?;
//!         return Ok(weft_launcher::run(Config::new("r1", "/run/weft/r1".into(), binary))?);
//!     }
//!     // `component CLASS --instance NAME …`: no thread yet.
//!     let given = inherited()?;
//!     let sandbox = Sandbox::from_environment()?.ok_or("no launcher started this process")?;
//!     let missing = isolate::enter(&sandbox)?;
//!     serve(given, missing);
//!     Ok(())
//! }
//! ```
//!
//! Reference: xorp.txt §7; capabilities(7), seccomp(2), landlock(7), cgroups(7), unix(7).

mod cgroup;
mod channel;
mod config;
mod inherit;
pub mod isolate;
mod launcher;
mod listeners;
mod missing;
mod name;
mod powers;
mod profile;
pub mod protocol;
mod spawn;
pub mod supervisor;
#[allow(unsafe_code, reason = "fork, descriptors by number and waiting for any child need it")]
mod sys;
mod uids;
mod way;

pub use channel::ManagerChannel;
pub use config::{Config, LauncherError};
pub use inherit::{InheritError, Inherited, VARIABLE, inherited};
pub use launcher::{Notify, run};
pub use name::{Name, Secret};
pub use profile::{Profile, Sandbox};
pub use supervisor::Notice;
pub use way::make_way;
