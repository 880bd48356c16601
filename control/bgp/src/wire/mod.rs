//! The messages of BGP-4.
//!
//! Bytes of a connection are cut into messages by the [`Cutter`]. Then, by type:
//!
//! | message | read by | written by |
//! |---|---|---|
//! | OPEN | [`Open::parse`] | [`Open::emit`] |
//! | UPDATE | [`Update::new_checked`], [`Update::judge`] | [`UpdateEncoder`], [`withdraw`], [`end_of_rib`] |
//! | NOTIFICATION | [`Notification::parse`] | [`Notification::emit`] |
//! | KEEPALIVE | (has nothing in it) | [`keepalive`] |
//! | ROUTE-REFRESH | [`RouteRefresh::parse`] | [`RouteRefresh::emit`] |
//!
//! What two speakers have agreed on decides how an UPDATE is read and written: the [`Context`]. What is wrong with
//! a message so that the session has to end is a [`MessageError`], which knows its NOTIFICATION.
//!
//! Reference: RFC 4271 §4, §6; the files name what each implements beyond it.

mod as_path;
mod attributes;
mod capability;
mod context;
mod counts;
mod encoder;
mod error;
mod family;
#[cfg(test)]
pub(crate) mod malformed;
mod nlri;
mod notification;
mod open;
mod refresh;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod update;

pub use as_path::{AsPath, AsPathError, Segment, SegmentKind, Segments};
pub use attributes::{
    Action, Aggregator, Attributes, Fault, LargeCommunity, NextHop, Origin, Parsed, Rare, RareBox,
    Rule, UnknownAttribute,
};
pub use capability::{AddPath, Capability, ExtendedNextHop, GracefulRestart, LongLived, Role};
pub use context::{Context, MAX_EXTENDED_MESSAGE, MAX_MESSAGE, Neighbour};
pub use encoder::{EncodeError, UpdateEncoder, end_of_rib, withdraw};
pub use error::MessageError;
pub use family::{Families, Family};
pub use nlri::{Nlri, NlriError, NlriIter};
pub use notification::{MAX_SHUTDOWN_TEXT, Notification};
pub use open::Open;
pub use refresh::{RefreshKind, RouteRefresh};
pub use stream::{Cutter, HEADER_LEN, Message, MessageType, keepalive};
pub use update::{Disposition, Judgement, Reach, Update};

pub(crate) use attributes::{RawAttributes, emit_block, expected_flags};
pub(crate) use counts::MessageCounts;
pub(crate) use nlri::emit as emit_prefix;
pub(crate) use stream::framed;
