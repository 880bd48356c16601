//! The interface language of XRLs (`.xif` files): what it says, how it is read, and the Rust stubs made
//! from it.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §6.1 and §6.2: a
//! component implements interfaces, groups of methods whose arguments have core types. A method is
//! specified as the XRL that calls it, with types where the values would be:
//!
//! ```text
//! /// What a routing table offers.
//! interface rib/1.0 {
//!     /// A route.
//!     record route { net: ipnet; nexthop: ip; metric: u32; }
//!
//!     /// Adds routes of one protocol.
//!     /// @protocol who knows them
//!     /// @metric   the default for routes without one
//!     add_routes ? protocol:txt & routes:list<route> & [metric:u32] -> added:u32;
//! }
//! ```
//!
//! Records, optional arguments (in brackets, at the end) and types that hold either address family
//! go beyond the paper; `///` lines document what follows them, and `@name` a method's argument.
//!
//! [`Interface::parse`] reads a file; [`generate()`] writes the Rust module for it, from a build script.
//! Tools read interfaces at run time: every component registers the text of its own.

mod error;
mod generate;
mod lexer;
mod model;
mod parser;
mod types;

pub use error::XifError;
pub use generate::{build, generate};
pub use model::{Field, Interface, Method, Record, Version};
pub use types::{Family, Type};
