//! Vocabulary shared by every crate: time, ids, counters, randomness and the packet buffer.
//!
//! Nothing here does I/O and nothing here knows an architecture. What each module settles is settled
//! for the whole code base, because it is dear to change later:
//!
//! * [`Instant`] — monotonic time in nanoseconds; [`WallTime`] is a type of its own so that the two
//!   cannot be mixed up.
//! * [`Buffer`] — one owned frame with headroom, recycled per thread; [`Packet`] — a buffer and its
//!   metadata.
//! * [`Message`] — what channels carry: bytes, and with them descriptors that change hands.
//! * [`reasons!`] and [`Counters`] — every drop has a name, and the counter follows from the name.
//! * [`KeyedHash`] — for tables whose keys strangers choose.
//! * [`Bucket`] — a limit on how often something may be done, for what strangers can ask for.
//! * [`Random`] — a seeded generator that is passed in, never global.

mod bucket;
mod buffer;
mod counters;
mod ids;
mod keyed_hash;
mod message;
mod packet;
mod random;
mod time;

pub use bucket::Bucket;
pub use buffer::{Buffer, HEADROOM, STANDARD_FRAME};
pub use counters::{Count, CounterGroup, Counters, Reason};
pub use ids::{ChannelId, FileId, PortId, Token};
pub use keyed_hash::{KeyedHash, KeyedHasher};
pub use message::{Handle, Message};
pub use packet::{LinkAddress, Meta, Packet};
pub use random::Random;
pub use time::{Instant, WallTime};
