//! Vocabulary shared by every crate: time, ids, counters, randomness and the packet buffer.
//!
//! Nothing here does I/O and nothing here knows an architecture. What each module settles is settled
//! for the whole code base, because it is dear to change later:
//!
//! * [`Instant`] — monotonic time in nanoseconds; [`WallTime`] is a type of its own so that the two
//!   cannot be mixed up.
//! * [`Packet`] — one owned frame with headroom, its metadata beside it, recycled per thread.
//! * [`Message`] — what channels carry: bytes, and with them descriptors that change hands.
//! * [`reasons!`] and [`Counters`] — every drop has a name, and the counter follows from the name.
//! * [`Random`] — a seeded generator that is passed in, never global.

mod counters;
mod ids;
mod message;
mod packet;
mod random;
mod time;

pub use counters::{Count, CounterGroup, Counters, Reason};
pub use ids::{ChannelId, FileId, PortId, Token};
pub use message::{Handle, Message};
pub use packet::{HEADROOM, LinkAddress, Meta, Packet, STANDARD_FRAME};
pub use random::Random;
pub use time::{Instant, WallTime};
