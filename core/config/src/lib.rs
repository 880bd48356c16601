//! The configuration language: text with positions in, checked statements out.
//!
//! The form is that of Junos: a statement is one or more words, ended by `;` or followed by a block
//! of statements in braces. Node files and lab files are written in it, and a single statement of
//! the same form is a command to a running node.
//!
//! ```text
//! version 1;                      # the first statement of every file
//! link server:eth0 r1:eth0 {
//!     rate 200Mbit/s;             // values carry their unit
//!     loss 1%;
//! }
//! ```
//!
//! * **Words** are runs of ASCII letters, digits and `- : . / * > % ! @ = + _ ,`, or strings in
//!   double quotes with the escapes `\" \\ \n \r \t \u{1f600}`. Quoting never changes the meaning.
//! * **Comments** run from `#` or `//` to the end of the line, or from `/*` to `*/`. As `/` is an
//!   ordinary character of words, `//` and `/*` begin a comment only where a word could begin.
//! * **Positions** stay with the tree, so that whoever finds a mistake, however late, can show the
//!   line with a caret below the place.
//!
//! The way of a text through this crate: [`Document::parse`] makes the tree (several mistakes are
//! reported in one go); a consumer reads it through the cursors [`Block`] and [`Entry`], which turn
//! words into typed values ([`FromWord`]) and remember what was asked for; [`Block::finish`] then
//! reports every statement that nobody asked for. `Display` of [`Document`] and [`Statement`] prints
//! the canonical text, which parses to an equal document. Comments are not part of it.
//!
//! Whoever keeps a configuration and lets it be edited, instead of reading it once, takes the other way: a
//! [`Tree`] keeps comments, is copied for nothing and compared quickly ([`Diff`]); a [`Schema`], made from the
//! texts that components bring, checks it, edits it by command lines, loads other texts into it, completes
//! commands and masks secrets; a [`Loader`] puts several files together. A component then gets its
//! part of the tree as text and reads it as above. `weft_commit` has the transactions.
//!
//! The crate does no I/O. Size ([`MAX_SIZE`]) and depth ([`MAX_DEPTH`]) of a text are bounded.
//!
//! ```
//! use weft_config::{Document, Entry, Errors, InterfaceName, Probability, Rate, gather};
//!
//! struct Link {
//!     interface: InterfaceName,
//!     rate: Option<Rate>,
//!     loss: Probability,
//! }
//!
//! fn read_link(mut entry: Entry<'_>) -> Result<Link, Errors> {
//!     let interface = entry.argument("the interface")?;
//!     entry.read_block(|block| {
//!         Ok(Link {
//!             interface,
//!             rate: block.leaf("rate")?,
//!             loss: block.leaf("loss")?.unwrap_or_default(),
//!         })
//!     })
//! }
//!
//! fn read_links(name: &str, text: &str) -> Result<Vec<Link>, Errors> {
//!     let document = Document::parse(name, text)?;
//!     document.read(1, |block| gather(block.many("link").into_iter().map(read_link)))
//! }
//!
//! let links = read_links("node.conf", "version 1; link eth0 { rate 2Mbit/s; loss 1%; }").unwrap();
//! assert_eq!(links[0].interface.as_str(), "eth0");
//! assert_eq!(links[0].rate.unwrap().bits_per_second(), 2_000_000);
//! assert_eq!(links[0].loss.parts_per_billion(), 10_000_000);
//!
//! let errors = read_links("node.conf", "version 1;\nlink eth0 { raet 2Mbit/s; }").err().unwrap();
//! assert_eq!(
//!     errors.to_string(),
//!     "node.conf:2:13: unknown statement `raet`: did you mean `rate`?\n  \
//!        2 | link eth0 { raet 2Mbit/s; }\n    \
//!          |             ^^^^"
//! );
//! ```

mod block;
mod command;
mod document;
mod entry;
mod error;
mod include;
mod lexer;
mod parser;
mod print;
mod schema;
mod source;
mod statement;
mod suggest;
mod tree;
mod value;

pub use block::Block;
pub use command::Command;
pub use document::{Document, MAX_DEPTH, MAX_SIZE};
pub use entry::Entry;
pub use error::{Error, ErrorKind, Errors, MAX_ERRORS, gather};
pub use include::Loader;
pub use schema::{Candidate, Completion, LoadMode, Schema};
pub use source::{Location, Source, Span};
pub use statement::{Statement, Word};
pub use suggest::suggest;
pub use tree::{Diff, DoesNotFit, Node, Tree, VERSION};
pub use value::{
    ByteSize, Form, FromWord, InterfaceName, Ipv4Interface, Ipv4Prefix, Keyword, Located, Name,
    Probability, Rate, ReadWord, ToWord, ValueError,
};
