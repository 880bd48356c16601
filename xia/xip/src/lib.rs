//! XIP: header, DAG addresses, forwarding, and what principals share.

pub mod changes;
pub mod channel;
pub mod dag;
pub mod error_message;
pub mod forward;
pub mod header;
pub mod kept_port;
pub mod node;
pub mod numbers;
pub mod offload;
pub mod prefixes;
pub mod principal;
pub mod principal_map;
pub mod protocol;
pub mod table;
pub mod text;
pub mod words;
pub mod xid;

pub use dag::{
    Address, BuildError, CheckError, DagBuilder, DagNode, Edge, EdgesError, LastNode, Row,
    SinkError, Targets,
};
pub use header::{EmitError, HeaderError, XipPacket, XipRepr};
pub use principal_map::{MapWarning, NameError, Names};
pub use text::{TextError, TextErrorKind};
pub use xid::{Xid, XidType};
