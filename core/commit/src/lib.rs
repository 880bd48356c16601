//! The running and the candidate configuration: transactions, and their history on disk.
//!
//! [`Configuration`] is one machine without I/O, for the owner of a node's configuration: operators'
//! requests, components' answers and the disk's go in, questions to components, requests to the disk and
//! replies come out. Inside, [`Transaction`] leads a commit through the components and takes it back when
//! anybody refuses; the history keeps [`Revision`]s on a disk that may lose power at any time.
//!
//! The crate stands apart from the configuration language (`weft_config`), which every component needs,
//! because it needs the disk requests of `weft_runtime`, which only the owner does.
//!
//! ```
//! use weft_base::{FileId, Instant, Token, WallTime};
//! use weft_commit::{Action, Configuration, Done, Event, HistorySettings, Want, Who};
//! use weft_config::Schema;
//! use weft_runtime::{Component, DiskReply, DiskRequest};
//!
//! let schema = Schema::parse("fea", "version 1; container fea { leaf mtu number; }").unwrap();
//! let settings = HistorySettings { directory: "/var/lib/weft/r1".into(), keep: 50 };
//! let mut configuration = Configuration::new(schema, vec!["fea".to_owned()].into(), settings);
//!
//! // An owner whose components agree to everything, and whose disk holds nothing.
//! let mut replies = Vec::new();
//! let mut tell = |event: Event| {
//!     let (mut events, mut out) = (vec![event], Vec::new());
//!     while let Some(event) = events.pop() {
//!         configuration.handle(Instant::ZERO, event, &mut out);
//!         for want in out.drain(..) {
//!             match want {
//!                 Want::Check { step, .. } | Want::Apply { step, .. } => {
//!                     events.push(Event::Answer { step, result: Ok(()) });
//!                 }
//!                 Want::Disk { token, request } => {
//!                     let reply = match request {
//!                         DiskRequest::Open { .. } => {
//!                             DiskReply::Opened { file: FileId(1), len: Some(0) }
//!                         }
//!                         DiskRequest::List { .. } => DiskReply::Names(Vec::new()),
//!                         _ => DiskReply::Done,
//!                     };
//!                     events.push(Event::Disk { token, result: Ok(reply) });
//!                 }
//!                 Want::Reply { result, .. } => replies.push(result.unwrap()),
//!                 Want::Ready | Want::Renew { .. } | Want::Notice(_) | Want::Failed(_) => {}
//!             }
//!         }
//!     }
//! };
//!
//! let wall = WallTime::from_unix_nanos(0);
//! tell(Event::Start { wall });
//! for action in [
//!     Action::Lock,
//!     Action::Edit("set fea mtu 1500".to_owned()),
//!     Action::Commit { comment: "jumbo no more".to_owned(), confirm_within: None },
//! ] {
//!     let who = Who { session: 1, user: "alice".to_owned(), uid: 1000 };
//!     tell(Event::Request { token: Token(1), who, wall, action });
//! }
//! assert!(matches!(replies.last(), Some(Done::Committed(revision)) if revision.number == 1));
//! let running = configuration.transaction().running().to_string();
//! assert_eq!(running, "version 1;\nfea {\n    mtu 1500;\n}\n");
//! ```

mod changes;
mod configuration;
mod excerpt;
mod file;
mod history;
mod job;
mod kept;
mod messages;
mod parts;
mod revision;
mod sealed;
mod transaction;

pub use configuration::{Configuration, Event, Want};
pub use history::HistorySettings;
pub use messages::{Action, BlockChange, Done, Lock, Objection, Reason, Refusal, Who};
pub use parts::Parts;
pub use revision::{Revision, Unconfirmed, file_name};
pub use transaction::Transaction;
