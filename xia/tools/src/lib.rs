//! Applications of XIA: ping, cat, perf, addr, trace, push, receive.
//!
//! Each application is a process in the sense of [`weft_runtime`]: events in, actions out. The real
//! driver runs them as commands (`weft xia ping …`), the simulator inside its world; the code is the
//! same. All talk to their node through [`weft_xia_sockets::Client`].

pub mod ask;
mod cat;
pub mod perf;
mod ping;
mod push;
mod receive;
#[cfg(test)]
mod testing;
mod text;
mod worker;

pub use ask::Ask;
pub use cat::{Cat, CatOptions};
pub use ping::{Ping, PingOptions};
pub use push::{Push, PushOptions};
pub use receive::{Receive, ReceiveOptions};
pub use text::destination;
pub use weft_xia_sockets::{parse_address, parse_bind};
