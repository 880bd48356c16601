//! The policy language: which routes pass, and how they are changed, said once for all protocols.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §8.1: a policy says what is matched
//! (`from`, `to`) and what is done (`then`), is compiled to a program for a machine with a stack, and runs in each protocol
//! over variables that the protocol brings.
//!
//! ```text
//! policy {
//!     prefix-list customers { 192.0.2.0/24; 198.51.100.0/22 upto 24; }
//!     policy-statement from-customer {
//!         term known {
//!             from { prefix in customers; as-path matches "^65001+$"; }
//!             then { local-pref 200; community add 65000:1; accept; }
//!         }
//!         then { reject; }
//!     }
//! }
//! ```
//!
//! A protocol brings a table of [`Variable`]s, whose types the language knows, and shows each route as a [`Route`]. The
//! way of a policy: [`Policies`] reads the statement; [`Program`] gives its words their meaning by the table, or says what
//! is wrong and where, and compiles what some names lead to; [`Program::run`] says what becomes of a route, and
//! [`Program::explain`] why.
//!
//! What differs from XORP, and why: there a process of its own compiles policies and hands programs to the protocols. Here
//! the manager gives `policy { … }` to each component that uses policies, with the component's own statement, and each
//! compiles what it uses with this crate. So a commit that names a missing policy, or that sets what a protocol cannot set,
//! is refused before anything has changed, with the place of the mistake; policies and their users change in one step; and
//! there is no process without which nobody can filter.
//!
//! ```
//! use weft_policy::{Access, Kind, Policies, Program, Route, Value, Variable, names};
//!
//! static VARIABLES: &[Variable] = &[
//!     Variable::new("metric", Kind::Number { most: 15 }, "how far it is").with(Access::Write),
//!     Variable::new("tag", Kind::Number { most: 65535 }, "what it is marked with"),
//! ];
//! struct Rip { metric: u64, tag: u64 }
//! impl Route for Rip {
//!     fn read(&self, variable: usize) -> Option<Value<'_>> {
//!         Some(Value::Number(if variable == 0 { self.metric } else { self.tag }))
//!     }
//! }
//!
//! let text = "policy { policy-statement far { from { tag 7; } then { metric add 3; accept; } } }";
//! let policies = Policies::parse("node.conf", text)?;
//! let program = Program::new(&policies, VARIABLES, &names("node.conf", &["far"])?)?;
//! let route = Rip { metric: 14, tag: 7 };
//! let (outcome, why) = program.explain(&route);
//! assert!(outcome.accepted);
//! assert_eq!(outcome.changes, [(0, Some(Value::Number(15)))]);
//! assert_eq!(why.to_string(), "\
//! policy far
//!   its own term
//!     tag 7: yes, it is 7
//!     metric add 3: metric was 14, is 15
//!     accept
//! accepted by far
//! ");
//! # Ok::<(), weft_config::Errors>(())
//! ```

#![forbid(unsafe_code)]

mod as_path;
mod check;
mod community;
mod filter;
mod number;
mod prefixes;
mod program;
mod read;
mod run;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod tree;
mod value;

pub use as_path::{AsPath, AsPathPattern, Hop, PathError, PatternError};
pub use community::{CommunityError, CommunityKind, CommunityPattern};
pub use filter::Filter;
pub use number::{NumberError, NumberRange};
pub use prefixes::{Lengths, PrefixRange, PrefixRangeError};
pub use program::Program;
pub use read::Policies;
pub use run::Outcome;
pub use text::{TextRoute, names};
pub use trace::{Explanation, Step};
pub use value::{Access, Kind, Route, Side, Value, Variable};

/// The statement.
pub const STATEMENT: &str = "policy";
/// The statement of one policy in it.
pub(crate) const POLICY: &str = "policy-statement";

/// What may be configured. What stands in policies only the components know that use them.
pub const SCHEMA: &str = r#"
container policy {
    help "which routes pass, and how they are changed";
    list prefix-list { help "prefixes, with ranges of lengths"; key name name { help "the name of the list"; } any; }
    list as-list { help "numbers of autonomous systems, and ranges of them"; key name name { help "the name of the list"; } any; }
    list as-path-list { help "regular expressions for AS paths"; key name name { help "the name of the list"; } any; }
    list community-list { help "communities, and patterns of them"; key name name { help "the name of the list"; } any; }
    list extended-community-list { help "extended communities, and patterns of them"; key name name { help "the name of the list"; } any; }
    list large-community-list { help "large communities, and patterns of them"; key name name { help "the name of the list"; } any; }
    list policy-statement {
        help "a policy: terms, of which the first that fits decides";
        key name name { help "the name of the policy"; }
        list term {
            help "if all in `from` and `to` holds, what is in `then` is done";
            key name name { help "the name of the term"; }
            container from { help "what must hold of the route"; any; }
            container to { help "what must hold of who is told of it"; any; }
            container then { help "what is done"; any; }
        }
        container from { help "what must hold of the route, behind all terms"; any; }
        container to { help "what must hold of who is told of it, behind all terms"; any; }
        container then { help "what is done, behind all terms"; any; }
    }
}
"#;
