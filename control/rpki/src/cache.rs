//! A cache: its session, and the connection that it has.

use weft_base::{ChannelId, Instant, Token};
use weft_runtime::{StreamOptions, StreamSpec};

use crate::config::CacheConfig;
use crate::payloads::CacheId;
use crate::rtr::session::Session;

/// A cache.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) id: CacheId,
    pub(crate) config: CacheConfig,
    pub(crate) session: Session,
    /// An attempt to connect.
    pub(crate) attempt: Option<Token>,
    pub(crate) channel: Option<ChannelId>,
    /// Whether it has told everything, and that counts.
    pub(crate) has_told: bool,
    /// What went wrong last.
    pub(crate) failure: Option<String>,
}

impl Cache {
    pub(crate) fn new(now: Instant, id: CacheId, config: CacheConfig) -> Self {
        let mut session = Session::new(now);
        session.refresh_within(now, config.refresh);
        Self { id, config, session, attempt: None, channel: None, has_told: false, failure: None }
    }

    /// How to connect to it.
    pub(crate) fn stream(&self) -> StreamSpec {
        self.config.remote.stream(StreamOptions::default())
    }
}
