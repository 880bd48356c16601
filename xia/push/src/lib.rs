//! Reliable push of files to many receivers with RaptorQ (RFC 6330) and no back channel.
//!
//! Reference: Machado et al., "Linux XIA: An Interoperable Meta Network Architecture to Crowdsource
//! the Future Internet", §6.1: an application that makes multicast reliable with erasure codes, after
//! Byers, Luby, Mitzenmacher and Rege, "A Digital Fountain Approach to Reliable Distribution of Bulk
//! Data", SIGCOMM 1998; RFC 6330 for the code.
//!
//! A file is cut into blocks, a block into K symbols. The sender sends all of them once and then,
//! round after round, *repair symbols* that were never sent before. Any K symbols of a block, or now
//! and then one or two more, give the block back. So whatever a receiver loses, and whenever it
//! begins to listen, it waits for enough symbols and says nothing; one datagram serves all receivers
//! for whom it is new, however different their losses.
//!
//! The way of a file:
//!
//! 1. [`sender::Sender`] hashes the file, derives its id, and asks the `Carousel` which symbols of
//!    which block come next; one block is read and encoded while another is sent, paced by a
//!    [`pacing::Pacer`].
//! 2. Each symbol is a datagram of its own ([`wire::Symbol`]) which says where it belongs; an
//!    [`wire::Announce`] with name, length and SHA-256 is repeated between them.
//! 3. [`receiver::Receiver`] finds the object by sender and id (`Reception`), `store`s source symbols
//!    at their place in a sparse file and repair symbols beside it, decodes a block as soon as it has
//!    enough, and hashes what is complete. When the digest is right the file gets its name.
//!
//! Both are components without I/O: datagrams and disk requests go in and out as values, and whoever
//! owns sockets and files carries them out.
//!
//! ```
//! use weft_base::{FileId, Instant, Random};
//! use weft_runtime::{Component, DiskReply};
//! use weft_xia_push::host::{HostInput, HostOutput};
//! use weft_xia_push::sender::{Sender, SenderConfig, SenderInput, SenderOutput};
//! use weft_xia_push::wire::Datagram;
//!
//! let mut sender = Sender::new(SenderConfig::new("hello.txt"), Random::from_seed(1))?;
//! let (now, mut out, mut sent) = (Instant::ZERO, Vec::new(), Vec::new());
//! sender.handle(now, SenderInput::Start, &mut out);
//! // Answer what it asks of the disk, and do its background work, until datagrams come out.
//! while sent.is_empty() {
//!     for output in std::mem::take(&mut out) {
//!         match output {
//!             SenderOutput::Host(HostOutput::Disk { token, request }) => {
//!                 let reply = match request {
//!                     weft_runtime::DiskRequest::Open { .. } => {
//!                         DiskReply::Opened { file: FileId(1), len: Some(5) }
//!                     }
//!                     _ => DiskReply::Data { bytes: b"hello".to_vec(), end: true },
//!                 };
//!                 let answer = HostInput::Disk { token, result: Ok(reply) };
//!                 sender.handle(now, answer.into(), &mut out);
//!             }
//!             SenderOutput::Datagram(packet) => sent.push(packet),
//!             _ => {}
//!         }
//!     }
//!     sender.handle(now, HostInput::Slice.into(), &mut out);
//! }
//! let Ok(Datagram::Announce(announce)) = Datagram::parse(sent[0].bytes()) else { panic!() };
//! assert_eq!(announce.description.name, "hello.txt");
//! assert_eq!(announce.total.map(|total| total.length), Some(5));
//! # Ok::<(), weft_xia_push::sender::ConfigError>(())
//! ```

mod code;
mod digest;
mod disk;
pub mod host;
pub mod names;
pub mod object;
pub mod pacing;
pub mod receiver;
pub mod sender;
pub mod wire;

#[cfg(test)]
mod tests;
