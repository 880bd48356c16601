//! What a peer needs of everything else while something happens to it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use weft_base::{ChannelId, Counters, Instant, Token};
use weft_xrl::Output;

use super::Activity;
use super::links::Links;
use super::monitors::Monitors;
use crate::config::Config;
use crate::fanout::Fanout;
use crate::routes::Routes;

/// Everything but the peers.
pub(super) struct World<'a> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) routes: &'a mut Routes,
    pub(super) fanout: &'a mut Fanout,
    pub(super) links: &'a Links,
    /// Those who hear of what peers say.
    pub(super) monitors: &'a mut Monitors,
    /// Whose connections are whose.
    pub(super) channels: &'a mut BTreeMap<ChannelId, IpAddr>,
    /// Whose attempts to connect are whose.
    pub(super) attempts: &'a mut BTreeMap<Token, IpAddr>,
    pub(super) last_token: &'a mut u32,
    pub(super) counters: &'a mut Counters<Activity>,
    pub(super) out: &'a mut Vec<Output>,
}

impl World<'_> {
    /// A token that stands for nothing yet.
    pub(super) fn token(&mut self) -> Token {
        *self.last_token = self.last_token.wrapping_add(1).max(super::FIRST_TOKEN);
        Token(*self.last_token)
    }
}
